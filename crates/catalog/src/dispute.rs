//! Conflicts between concurrent writes: their records, identities and settlements.
//!
//! A write of a register loses against a later write whose site had not seen it. Equal sets of operations give equal
//! records. Rules of merging are not here (`merge`), nor is the time limit of a settlement (`catalog`).

use crate::hlc::{Hlc, HlcTime};
use crate::ids::{ObjectId, OpId, SiteId};
use crate::operation::Operation;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Register that two sites wrote concurrently.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum DisputeKind {
    /// Collection and name of an entry.
    Name,
    /// Current version of an object.
    Contents,
}

/// Decision between the two writes of a conflict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Choice {
    /// Keeps the later write in force.
    Keep,
    /// Puts the earlier write in force.
    Flip,
}

/// Write of a register: its stamp, and its place in the log of its site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Write {
    /// Stamp of the operation.
    pub stamp: Hlc,
    /// Place of the operation in its site's log.
    pub seq: u64,
}

impl Write {
    /// Write by an operation.
    pub(crate) fn of(op: &Operation) -> Self {
        Self { stamp: op.stamp(), seq: op.id.seq }
    }

    /// Operation that holds the write.
    pub fn op(&self) -> OpId {
        OpId { site: self.stamp.site, seq: self.seq }
    }
}

/// Settlement of a conflict by an operation; the latest one counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Settlement {
    /// Stamp of the operation that settled the conflict.
    pub set: Hlc,
    /// Decision that was taken.
    pub choice: Choice,
}

/// Conflict between a write and the earliest later one whose site had not seen it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Dispute {
    /// Register of the conflict.
    pub kind: DisputeKind,
    /// Object or collection that has the register.
    pub object: ObjectId,
    /// Earlier write, the one that lost.
    pub lost: Write,
    /// Later write, the one that won.
    pub won: Write,
    /// Settlement, once there is one.
    pub settled: Option<Settlement>,
}

impl Dispute {
    /// Identity of the conflict, equal at all sites.
    pub fn id(&self) -> ConflictId {
        ConflictId { kind: self.kind, object: self.object, lost: self.lost.stamp }
    }
}

/// Identity of a recorded conflict, written as `name-UUID-TIME-SITE` or `contents-UUID-TIME-SITE`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConflictId {
    /// Register of the conflict.
    pub kind: DisputeKind,
    /// Object or collection that has the register.
    pub object: ObjectId,
    /// Stamp of the write that lost.
    pub lost: Hlc,
}

impl fmt::Display for ConflictId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            DisputeKind::Name => "name",
            DisputeKind::Contents => "contents",
        };
        let object = uuid::Uuid::from_bytes(self.object.0).simple();
        write!(f, "{kind}-{object}-{:x}-{}", self.lost.time.0, self.lost.site)
    }
}

/// Text that is not the id of a conflict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot read `{text}` as a conflict id: it is not KIND-UUID-TIME-SITE; copy it from the list of conflicts"
)]
pub struct ConflictIdError {
    text: String,
}

impl FromStr for ConflictId {
    type Err = ConflictIdError;

    fn from_str(text: &str) -> Result<Self, ConflictIdError> {
        let parse = || {
            let mut parts = text.split('-');
            let kind = match parts.next()? {
                "name" => DisputeKind::Name,
                "contents" => DisputeKind::Contents,
                _ => return None,
            };
            let object = parts.next()?.parse().ok()?;
            let time = HlcTime(u64::from_str_radix(parts.next()?, 16).ok()?);
            let site = SiteId::new(u64::from_str_radix(parts.next()?, 16).ok()?).ok()?;
            parts.next().is_none().then_some(Self { kind, object, lost: Hlc { time, site } })
        };
        parse().ok_or_else(|| ConflictIdError { text: text.chars().take(80).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_conflicts_are_read_back() {
        let lost = Hlc { time: HlcTime::new(1_800_000_000_000, 3), site: SiteId::new(255).unwrap() };
        for kind in [DisputeKind::Name, DisputeKind::Contents] {
            let id = ConflictId { kind, object: ObjectId([7; 16]), lost };
            assert_eq!(id.to_string().parse(), Ok(id));
        }
        let cut = "name-07070707070707070707070707070707-1";
        assert!(cut.parse::<ConflictId>().is_err());
    }
}
