//! Fingerprint of a certificate: SHA-256 of its DER form. The verifier that uses it is in `tls`.

use ring::digest::{SHA256, digest};
use std::fmt;
use std::str::FromStr;

/// SHA-256 of a certificate in DER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// Fingerprint of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Self(bytes)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02X}", if at == 0 { "" } else { ":" })?;
        }
        Ok(())
    }
}

/// Error of a text that is no fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the fingerprint: it is not SHA-256 in hexadecimal digits; copy it from the server")]
pub struct FingerprintError;

impl FromStr for Fingerprint {
    type Err = FingerprintError;

    /// Accepts 64 hexadecimal digits, with or without colons between bytes.
    fn from_str(text: &str) -> Result<Self, FingerprintError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.replace(':', ""), &mut bytes).map_err(|_| FingerprintError)?;
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_survives_its_text() {
        let fingerprint = Fingerprint::of(&[1, 2, 3]);
        let text = fingerprint.to_string();
        assert_eq!(text.len(), 95);
        assert_eq!(text.parse(), Ok(fingerprint));
        assert_eq!(text.replace(':', "").to_lowercase().parse(), Ok(fingerprint));
        for bad in ["", "00", &text[1..], &format!("{text}00"), &text.replace(['A', '0'], "g")] {
            assert_eq!(bad.parse::<Fingerprint>(), Err(FingerprintError), "{bad}");
        }
    }
}
