//! Act: what somebody did with data of a ring.

use super::time;
use crate::session::stream_name;
use crate::words;
use holdfast_base::{HoldId, Timestamp};
use holdfast_ring::{ActKind, ActStatus, StreamStatus};
use serde::Serialize;

/// Act on the data of a ring, as the audit log has it.
#[derive(Serialize)]
pub struct Act<'a> {
    /// Name of the act.
    pub act: &'static str,
    /// Number of the act among its kind.
    pub number: u64,
    /// Time of the act.
    #[serde(serialize_with = "time")]
    pub at: Timestamp,
    /// Owner of the act.
    pub owner: &'a str,
    /// Reason that the owner gave.
    pub reason: &'a str,
    /// The hold that it is about.
    pub hold: Option<u64>,
    /// The stream that it is about; none for all.
    pub stream: Option<String>,
    /// Beginning of its range.
    #[serde(serialize_with = "time")]
    pub from: Timestamp,
    /// End of its range.
    #[serde(serialize_with = "time")]
    pub to: Timestamp,
    /// The range is of event times.
    pub event: bool,
    /// First ordinal, and the one behind the last.
    pub ordinals: Option<[u64; 2]>,
    /// Slots that a hold keeps.
    pub slots: Option<u32>,
    /// Elements that a purge destroyed.
    pub elements: Option<u64>,
    /// Bytes that a purge destroyed.
    pub bytes: Option<u64>,
}

impl<'a> Act<'a> {
    /// The shape of an act, with the names of streams.
    pub fn new(act: &'a ActStatus, streams: &[StreamStatus]) -> Self {
        let purged = act.kind == ActKind::Purge;
        Self {
            act: words::act(act.kind),
            number: act.number,
            at: act.at,
            owner: &act.owner,
            reason: &act.reason,
            hold: act.hold.map(|HoldId(id)| id),
            stream: act.stream.map(|stream| stream_name(streams, stream)),
            from: act.range.from,
            to: act.range.to,
            event: act.range.by_event,
            ordinals: act.range.ordinals.map(|(from, to)| [from.0, to.0]),
            slots: Some(act.slots).filter(|_| act.kind == ActKind::Hold),
            elements: Some(act.elements).filter(|_| purged),
            bytes: Some(act.bytes).filter(|_| purged),
        }
    }
}
