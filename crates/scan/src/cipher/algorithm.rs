//! Closed set of ciphers: their names and key lengths.

use super::error::CipherError;
use std::fmt;
use std::str::FromStr;

/// Cipher of a file, with its mode of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cipher {
    /// AES-256-GCM in chunks: authenticated, for new files.
    Aes256Gcm,
    /// Triple DES with cipher block chaining and PKCS#7 padding.
    TripleDesCbc,
    /// Triple DES block by block with PKCS#7 padding; equal blocks stay recognisable.
    TripleDesEcb,
    /// Triple DES as key stream of a 64-bit counter, without padding.
    TripleDesCtr,
}

impl Cipher {
    /// All ciphers, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Aes256Gcm, Self::TripleDesCbc, Self::TripleDesEcb, Self::TripleDesCtr];

    /// Name in flags and configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes256Gcm => "aes-256-gcm",
            Self::TripleDesCbc => "3des-cbc",
            Self::TripleDesEcb => "3des-ecb",
            Self::TripleDesCtr => "3des-ctr",
        }
    }

    /// Admissible key lengths in bytes, the preferred one first.
    ///
    /// A key of 16 bytes for Triple DES is two-key EDE: the third key equals the first.
    pub const fn key_lengths(self) -> &'static [usize] {
        match self {
            Self::Aes256Gcm => &[32],
            Self::TripleDesCbc | Self::TripleDesEcb | Self::TripleDesCtr => &[24, 16],
        }
    }

    /// True when a file contains or needs an initialisation vector.
    pub const fn has_iv(self) -> bool {
        matches!(self, Self::TripleDesCbc | Self::TripleDesCtr)
    }

    /// True when a decryption reports every alteration of the file.
    pub const fn is_authenticated(self) -> bool {
        matches!(self, Self::Aes256Gcm)
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Cipher {
    type Err = CipherError;

    fn from_str(name: &str) -> Result<Self, CipherError> {
        let found = Self::ALL.into_iter().find(|cipher| cipher.name() == name);
        found.ok_or_else(|| CipherError::UnknownCipher { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_others_are_refused() {
        for cipher in Cipher::ALL {
            assert_eq!(cipher.to_string().parse(), Ok(cipher));
        }
        let error = "rot13".parse::<Cipher>().unwrap_err().to_string();
        assert!(error.contains("`rot13`") && error.contains("3des-ctr"), "{error}");
    }
}
