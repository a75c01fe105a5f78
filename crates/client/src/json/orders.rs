//! Outcomes of orders: holds, releases, purges, growth.

use super::{time, time_if};
use holdfast_base::Timestamp;
use serde::Serialize;

/// New hold of a range.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct NewHold {
    pub id: u64,
    pub slots: u32,
    pub bytes: u64,
    #[serde(serialize_with = "time_if")]
    pub expired_before: Option<Timestamp>,
    pub expired_before_ordinal: Option<u64>,
    pub expired_ordinals: Vec<(u64, u64)>,
    #[serde(serialize_with = "time")]
    pub until: Timestamp,
}

/// Hold that was released.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ReleasedHold {
    pub id: u64,
    pub slots: u32,
}

/// Range that was purged.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct PurgedRange {
    pub elements: u64,
    pub bytes: u64,
    pub slots: u32,
}

/// Ring that was given more room.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct GrownRing {
    pub lane_bytes: u64,
    pub slots: u32,
    pub slots_before: u32,
    pub prefilled: bool,
}
