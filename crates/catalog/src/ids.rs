//! Identifiers of sites, objects, operations and changes, each a type of its own.

use crate::name::Name;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Identifier of a site: a random number from 1 to `i64::MAX`, chosen once when its catalog is made.
///
/// The upper bound lets both databases keep it, and order it, as a signed integer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct SiteId(u64);

/// Number that cannot identify a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {0} as a site id: it is outside of 1 to 9223372036854775807; choose another number")]
pub struct SiteIdError(pub u64);

impl SiteId {
    /// Checks a number and makes it a site id.
    pub fn new(number: u64) -> Result<Self, SiteIdError> {
        if number == 0 || i64::try_from(number).is_err() {
            Err(SiteIdError(number))
        } else {
            Ok(Self(number))
        }
    }

    /// Chooses the id of a new site: 62 random bits.
    pub fn random() -> Self {
        let (_, low) = uuid::Uuid::now_v7().as_u64_pair();
        // The two highest bits tell the variant of the UUID.
        Self((low & (u64::MAX >> 2)).max(1))
    }

    /// Number of this site.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for SiteId {
    type Error = SiteIdError;

    fn try_from(number: u64) -> Result<Self, SiteIdError> {
        Self::new(number)
    }
}

impl From<SiteId> for u64 {
    fn from(site: SiteId) -> Self {
        site.0
    }
}

/// Hexadecimal without leading zeros.
impl fmt::Display for SiteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// Identifier of an object or a collection: a UUID of version 7, or one of version 8 that tells parent and first name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectId(pub [u8; 16]);

impl ObjectId {
    /// Root collection of the name space. It exists at every site without an operation.
    pub const ROOT: Self = Self([0; 16]);

    /// Makes an id from milliseconds since 1970 and ten random bytes.
    pub fn from_parts(millis: u64, random: &[u8; 10]) -> Self {
        Self(uuid::Builder::from_unix_timestamp_millis(millis, random).into_uuid().into_bytes())
    }

    /// Id of a collection that is made under a name: the same at all sites, so that equal collections become one.
    ///
    /// It is a UUID of version 8: BLAKE3 of the parent's id and the name, cut to 16 bytes.
    pub fn of_collection(parent: Self, name: &Name) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("holdfast catalog collection");
        hasher.update(&parent.0).update(name.as_str().as_bytes());
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        bytes[6] = bytes[6] & 0x0f | 0x80;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Self(bytes)
    }

    /// True for the root collection.
    pub fn is_root(self) -> bool {
        self == Self::ROOT
    }
}

/// Hyphenated hexadecimal, as UUIDs are written.
impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        uuid::Uuid::from_bytes(self.0).hyphenated().fmt(f)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Text that is not the id of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read `{text}` as an object id: it is not a UUID; give 32 hexadecimal digits with hyphens")]
pub struct ObjectIdError {
    text: String,
}

impl FromStr for ObjectId {
    type Err = ObjectIdError;

    fn from_str(text: &str) -> Result<Self, ObjectIdError> {
        let parsed = uuid::Uuid::try_parse(text);
        parsed
            .map(|uuid| Self(uuid.into_bytes()))
            .map_err(|_| ObjectIdError { text: text.chars().take(80).collect() })
    }
}

/// Identifier of an operation: its site, and its place in the gap-free log of that site, from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct OpId {
    /// Site that made the operation.
    pub site: SiteId,
    /// Place in the site's log, counted from 1 without gaps.
    pub seq: u64,
}

impl fmt::Display for OpId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.site, self.seq)
    }
}

/// Identifier of one change in an operation. It identifies versions, attributes and annotations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Tag {
    /// Operation that holds the change.
    pub op: OpId,
    /// Place of the change in its operation, counted from 0.
    pub index: u16,
}

impl Tag {
    /// Least tag, below that of every change.
    pub(crate) const MIN: Self = Self { op: OpId { site: SiteId(1), seq: 0 }, index: 0 };
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.op, self.index)
    }
}

/// BLAKE3 hash of the contents of a version.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ContentHash(pub [u8; 32]);

/// Sixty-four hexadecimal digits without separators.
impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Nanoseconds since 1970 (UTC), as in attributes and versions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
pub struct Nanos(pub i64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_ids_fit_a_signed_integer() {
        assert!(SiteId::new(0).is_err());
        assert!(SiteId::new(u64::MAX).is_err());
        let random = SiteId::random();
        assert!(SiteId::new(random.number()) == Ok(random) && random != SiteId::random());
        assert_eq!(SiteId::new(255).unwrap().to_string(), "ff");
    }

    #[test]
    fn object_ids_are_version_7_and_ordered_by_time() {
        let early = ObjectId::from_parts(1_000, &[255; 10]);
        let late = ObjectId::from_parts(1_001, &[0; 10]);
        assert!(early < late);
        assert_eq!(early.0[6] >> 4, 7);
        assert_eq!(early.to_string().parse::<ObjectId>(), Ok(early));
        assert!("no".parse::<ObjectId>().is_err());
    }
}
