//! Hashes of passwords: PBKDF2 with HMAC-SHA256. The number of rounds is stored, so that it can grow.

use crate::random::{NoRandomness, random};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::pbkdf2::{PBKDF2_HMAC_SHA256, derive, verify};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// Prefix of the text of a hash.
const PREFIX: &str = "pbkdf2-sha256";

/// Rounds of a new hash: some tenths of a second on one core.
const ROUNDS: NonZeroU32 = NonZeroU32::new(600_000).unwrap();

/// Most rounds of a hash that is checked: bounds the work that a damaged one causes.
const MOST_ROUNDS: u32 = 10_000_000;

/// Fewest characters of a new password.
pub(crate) const FEWEST_CHARACTERS: usize = 8;

/// Greatest length of a password in bytes.
pub(crate) const MOST_BYTES: usize = 1024;

/// Hash of a password with its salt, as the text `pbkdf2-sha256$ROUNDS$SALT$HASH`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct PasswordHash {
    rounds: NonZeroU32,
    salt: [u8; 16],
    hash: [u8; 32],
}

impl PasswordHash {
    /// Hash of a password with a random salt. Takes long on purpose.
    pub(crate) fn new(password: &str) -> Result<Self, NoRandomness> {
        let (salt, mut hash) = (random()?, [0; 32]);
        derive(PBKDF2_HMAC_SHA256, ROUNDS, &salt, password.as_bytes(), &mut hash);
        Ok(Self { rounds: ROUNDS, salt, hash })
    }

    /// Hash that stands for an account without one, so that its refusal takes as long. Nobody knows a password for it.
    pub(crate) fn decoy() -> Self {
        Self { rounds: ROUNDS, salt: [0; 16], hash: [0; 32] }
    }

    /// True for the password of this hash. Takes long on purpose.
    pub(crate) fn is_of(&self, password: &str) -> bool {
        verify(PBKDF2_HMAC_SHA256, self.rounds, &self.salt, password.as_bytes(), &self.hash).is_ok()
    }
}

impl From<PasswordHash> for String {
    fn from(hash: PasswordHash) -> Self {
        let (salt, value) = (STANDARD_NO_PAD.encode(hash.salt), STANDARD_NO_PAD.encode(hash.hash));
        format!("{PREFIX}${}${salt}${value}", hash.rounds)
    }
}

impl TryFrom<String> for PasswordHash {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        fn read(text: &str) -> Option<PasswordHash> {
            let mut parts = text.strip_prefix(PREFIX)?.strip_prefix('$')?.splitn(3, '$');
            let rounds = parts.next()?.parse::<NonZeroU32>().ok()?;
            let salt = STANDARD_NO_PAD.decode(parts.next()?).ok()?.try_into().ok()?;
            let hash = STANDARD_NO_PAD.decode(parts.next()?).ok()?.try_into().ok()?;
            Some(PasswordHash { rounds, salt, hash }).filter(|hash| hash.rounds.get() <= MOST_ROUNDS)
        }
        read(&text).ok_or("the text is no hash of a password")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_survives_its_text_and_knows_its_password() {
        let hash = PasswordHash::new("correct horse").unwrap();
        let text = String::from(hash.clone());
        assert!(text.starts_with("pbkdf2-sha256$600000$"), "{text}");
        let read = PasswordHash::try_from(text.clone()).unwrap();
        assert_eq!(read, hash);
        assert!(read.is_of("correct horse") && !read.is_of("correct horse "));
        for bad in ["", "x", &text[1..], &text[..text.len() - 4], &text.replace("600000", "10000001")] {
            assert!(PasswordHash::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }

    /// First vector of RFC 7914, section 11, by its first 32 bytes.
    #[test]
    fn the_hash_is_that_of_the_standard() {
        let mut hash = [0; 32];
        derive(PBKDF2_HMAC_SHA256, NonZeroU32::new(1).unwrap(), b"salt", b"passwd", &mut hash);
        assert_eq!(STANDARD_NO_PAD.encode(hash), "VawEblbjCJ/sFpHCJUS2BflBhSFt3gRl5oudV8INrLw");
    }
}
