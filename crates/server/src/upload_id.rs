//! Identity of an upload: 128 random bits, the last part of its address.

use crate::random::{NoRandomness, random};
use std::fmt;
use std::str::FromStr;

/// Identity of an upload, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(u128);

impl UploadId {
    pub(crate) fn random() -> Result<Self, NoRandomness> {
        random().map(|bytes| Self(u128::from_be_bytes(bytes)))
    }

    /// Path of the upload on the server.
    pub(crate) fn address(self) -> String {
        format!("/files/{self}")
    }
}

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for UploadId {
    type Err = ();

    /// Accepts exactly 32 lower-case hexadecimal digits, so that an upload has one name only.
    fn from_str(text: &str) -> Result<Self, ()> {
        let valid = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(valid) {
            return Err(());
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upload_has_one_name_only() {
        let id = UploadId::random().unwrap();
        assert_eq!(id.to_string().parse(), Ok(id));
        for bad in ["", "..", "0", "+0000000000000000000000000000000", &id.to_string().replace('0', "A")] {
            assert!(bad.len() == 32 && bad == id.to_string() || bad.parse::<UploadId>().is_err(), "{bad}");
        }
    }
}
