//! Tokens: identity, scopes and text form of bearer tokens. Their storage is in `token_store`.

use crate::account::AccountName;
use crate::clock::Timestamp;
use crate::object_path::ProjectName;
use crate::random::{NoRandomness, random};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// Prefix of every token, by which secret scanners recognise it.
const PREFIX: &str = "hft";

/// Permission that a token can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Reading and listing objects and growing uploads.
    Read,
    /// Creating, continuing and terminating uploads.
    Write,
    /// Managing tokens; includes the other scopes.
    Admin,
    /// Exchanging operations of the catalog, as another site does.
    Replicate,
}

impl Scope {
    /// All scopes in the order of their bits.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Admin, Self::Replicate];

    /// Name of the scope in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
            Self::Replicate => "replicate",
        }
    }
}

/// Set of scopes of one token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Vec<Scope>", from = "Vec<Scope>")]
pub struct Scopes(u8);

impl Scopes {
    /// Set of the given scopes.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |bits, scope| bits | 1 << *scope as u8))
    }

    /// True when the set grants `scope`, itself or by `admin`.
    pub fn grants(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8 | 1 << Scope::Admin as u8) != 0
    }

    /// True for the set without scopes.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Names of the scopes, separated by commas.
    pub(crate) fn names(self) -> String {
        Vec::from(self).iter().map(|scope| scope.name()).collect::<Vec<_>>().join(",")
    }

    /// Set of the scopes named in a text that [`names`](Self::names) made; other names grant nothing.
    pub(crate) fn from_names(text: &str) -> Self {
        let scopes: Vec<Scope> =
            Scope::ALL.into_iter().filter(|scope| text.split(',').any(|name| name == scope.name())).collect();
        Self::of(&scopes)
    }
}

impl From<Scopes> for Vec<Scope> {
    fn from(scopes: Scopes) -> Self {
        Scope::ALL.into_iter().filter(|scope| scopes.0 & 1 << *scope as u8 != 0).collect()
    }
}

impl From<Vec<Scope>> for Scopes {
    fn from(scopes: Vec<Scope>) -> Self {
        Self::of(&scopes)
    }
}

/// Public identity of a token, safe to print and to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenId(u64);

impl TokenId {
    pub(crate) fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for TokenId {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        digits(text, 16)?;
        u64::from_str_radix(text, 16).map(Self).map_err(|_| ())
    }
}

/// Properties of a token that is to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewToken {
    /// Name for people, such as the machine that uses the token.
    pub name: String,
    /// Scopes that the token carries.
    pub scopes: Scopes,
    /// Project that the token is bound to; `None` for all projects.
    pub project: Option<ProjectName>,
    /// Account whose rights limit the token; `None` for no limit.
    pub account: Option<AccountName>,
    /// End of the token's validity; `None` for no end.
    pub expires: Option<Timestamp>,
}

/// Stored properties of a token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// Public identity of the token.
    pub id: TokenId,
    /// Name for people, not necessarily unique.
    pub name: String,
    /// Scopes that the token carries.
    pub scopes: Scopes,
    /// Project that the token is bound to; `None` for all projects.
    pub project: Option<ProjectName>,
    /// Account whose rights limit the token; `None` for no limit.
    pub account: Option<AccountName>,
    /// Time of the token's creation.
    pub created: Timestamp,
    /// End of the token's validity.
    pub expires: Option<Timestamp>,
    /// Time of the token's revocation.
    pub revoked: Option<Timestamp>,
    /// Time of the last use, exact to a minute.
    pub last_use: Option<Timestamp>,
}

/// Text of a token: `hft_ID_SECRET`, both in hexadecimal digits.
pub(crate) struct TokenText {
    pub(crate) id: TokenId,
    secret: [u8; 32],
}

impl TokenText {
    pub(crate) fn random() -> Result<Self, NoRandomness> {
        Ok(Self { id: TokenId(u64::from_be_bytes(random()?)), secret: random()? })
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '_');
        let (prefix, id, secret) = (parts.next()?, parts.next()?, parts.next()?);
        digits(secret, 64).ok().filter(|()| prefix == PREFIX)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(secret.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self { id: id.parse().ok()?, secret: bytes })
    }

    /// Hash that is stored in place of the secret. The secret has 256 random bits, so no slow hash is needed. Comparison of
    /// two `blake3::Hash` values takes constant time.
    pub(crate) fn hash(&self) -> blake3::Hash {
        blake3::hash(&self.secret)
    }
}

impl fmt::Display for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}_{}_", self.id)?;
        self.secret.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Accepts exactly `count` lower-case hexadecimal digits.
fn digits(text: &str, count: usize) -> Result<(), ()> {
    let valid = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() == count && text.bytes().all(valid) { Ok(()) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_survives_its_text() {
        let token = TokenText::random().unwrap();
        let parsed = TokenText::parse(&token.to_string()).unwrap();
        assert_eq!((parsed.id, parsed.hash()), (token.id, token.hash()));
        for bad in ["", "hft", "hft_1_2", &token.to_string()[1..], &token.to_string().to_uppercase()] {
            assert!(TokenText::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn admin_grants_all_scopes_and_others_only_themselves() {
        for scope in Scope::ALL {
            for wanted in Scope::ALL {
                let grants = Scopes::of(&[scope]).grants(wanted);
                assert_eq!(grants, scope == wanted || scope == Scope::Admin, "{scope:?} {wanted:?}");
            }
        }
        let both = Scopes::of(&[Scope::Write, Scope::Read]);
        assert_eq!(both.names(), "read,write");
        assert_eq!(Scopes::from_names("read,write"), both);
        assert!(Scopes::from_names("other").is_empty());
    }
}
