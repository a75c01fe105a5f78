//! Key of a cipher: raw bytes of an admissible length, read from the contents of a key file.

use super::Result;
use super::algorithm::Cipher;
use super::error::CipherError;
use std::fmt;

/// Secret key together with the cipher that it is for.
///
/// Its `Debug` text omits the bytes, so that no log shows them.
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    cipher: Cipher,
    bytes: Vec<u8>,
}

impl Key {
    /// Takes raw bytes of one of [`Cipher::key_lengths`].
    pub fn new(cipher: Cipher, bytes: &[u8]) -> Result<Self> {
        if cipher.key_lengths().contains(&bytes.len()) {
            return Ok(Self { cipher, bytes: bytes.to_vec() });
        }
        Err(CipherError::KeyLength { cipher, found: bytes.len() })
    }

    /// Reads the contents of a key file: raw bytes of the exact length, or hexadecimal text with an optional newline.
    ///
    /// No admissible raw length equals an admissible text length of the same cipher, so that the length decides.
    pub fn parse(cipher: Cipher, file: &[u8]) -> Result<Self> {
        if cipher.key_lengths().contains(&file.len()) {
            return Self::new(cipher, file);
        }
        let text = file.strip_suffix(b"\n").unwrap_or(file);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if !cipher.key_lengths().iter().any(|len| len * 2 == text.len()) {
            return Err(CipherError::KeyLength { cipher, found: file.len() });
        }
        let digit = |at: usize| {
            let value = char::from(text[at]).to_digit(16).map(|digit| digit as u8);
            value.ok_or(CipherError::KeyText { cipher, position: at + 1 })
        };
        let bytes: Result<Vec<u8>> =
            (0..text.len()).step_by(2).map(|at| Ok(digit(at)? << 4 | digit(at + 1)?)).collect();
        Self::new(cipher, &bytes?)
    }

    /// Cipher that the key is for.
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// Raw bytes of the key.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("cipher", &self.cipher).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_bytes_and_text_give_the_same_key() {
        for cipher in Cipher::ALL {
            for &len in cipher.key_lengths() {
                let raw: Vec<u8> = (0..len as u8).map(|at| at.wrapping_mul(37) ^ 0xa5).collect();
                let key = Key::parse(cipher, &raw).unwrap();
                for end in ["", "\n", "\r\n"] {
                    let text = format!("{}{end}", hex::encode(&raw));
                    assert_eq!(Key::parse(cipher, text.as_bytes()), Ok(key.clone()));
                    assert_eq!(Key::parse(cipher, text.to_uppercase().as_bytes()), Ok(key.clone()));
                }
            }
        }
    }

    #[test]
    fn wrong_lengths_and_digits_are_named() {
        let error = Key::parse(Cipher::TripleDesCbc, &[7; 23]).unwrap_err().to_string();
        assert!(error.contains("23 bytes") && error.contains("24 or 16 raw bytes"), "{error}");
        assert!(error.contains("48 or 32 hexadecimal digits"), "{error}");
        let error = Key::parse(Cipher::Aes256Gcm, &[b'g'; 64]).unwrap_err().to_string();
        assert!(error.contains("character 1 "), "{error}");
        for len in 0..100 {
            let admissible = [16, 24, 32, 33, 34, 48, 49, 50].contains(&len);
            let mut file = vec![b'1'; len];
            if len > 32 && len % 2 == 1 {
                file[len - 1] = b'\n';
            } else if len == 34 || len == 50 {
                file[len - 2..].copy_from_slice(b"\r\n");
            }
            assert_eq!(Key::parse(Cipher::TripleDesEcb, &file).is_ok(), admissible, "{len}");
        }
    }

    #[test]
    fn debug_text_hides_the_bytes() {
        let key = Key::new(Cipher::TripleDesEcb, b"sixteen bytes!!!").unwrap();
        assert_eq!(format!("{key:?}"), "Key { cipher: TripleDesEcb, .. }");
    }
}
