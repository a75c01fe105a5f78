//! Progress of a condition hold.

use super::time;
use holdfast_base::Timestamp;
use serde::Serialize;

/// Slots that a condition hold came to keep.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HoldProgress {
    pub id: u64,
    #[serde(serialize_with = "time")]
    pub at: Timestamp,
    pub elements: u64,
    pub slots: u32,
    pub added: u32,
    pub missed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quota_left: Option<u32>,
}

/// Elements that expired before a condition hold searched them.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UnseenElements<'a> {
    pub id: u64,
    #[serde(serialize_with = "time")]
    pub at: Timestamp,
    pub stream: &'a str,
    /// The first ordinal, and the one behind the last.
    pub unseen_ordinals: (u64, u64),
}

/// Slots of a hold that were distilled.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DistilledSlots {
    pub id: u64,
    #[serde(serialize_with = "time")]
    pub at: Timestamp,
    pub originals: u32,
    pub copies: u32,
    pub elements: u64,
    pub bytes: u64,
}
