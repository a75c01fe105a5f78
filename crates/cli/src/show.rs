//! The JSON forms of what the ring and the reader say, and words for their states. The names of fields are promised:
//! docs/commands.md lists them, and a test compares.

use crate::session::stream_name;
use crate::times;
use holdfast_base::{HoldId, Ordinal, Timestamp};
pub(crate) use holdfast_export::json::{Gap as GapShown, time, time_if};
use holdfast_format::{Cause, Counters};
use holdfast_protocol::wire::{DeviceState, SourceState};
use holdfast_ring::{ActKind, ActStatus, Range, SlotLook, StreamStatus};
use serde::Serialize;

/// What was asked for, in words.
pub(crate) fn range(range: &Range) -> String {
    let time = |time: Timestamp, open: &str| match time {
        Timestamp::MIN | Timestamp::MAX => open.to_owned(),
        time => times::to_the_milli(time),
    };
    let mut parts = Vec::new();
    if range.is_timed() {
        let which = if range.by_event { " (event time)" } else { "" };
        parts.push(format!("{} to {}{which}", time(range.from, "the beginning"), time(range.to, "the end")));
    }
    if let Some((from, to)) = range.ordinals {
        parts.push(format!("ordinals {from}..{to}"));
    }
    if parts.is_empty() { "all".to_owned() } else { parts.join(", ") }
}

/// The word for a slot's state.
pub(crate) fn look(look: SlotLook) -> &'static str {
    match look {
        SlotLook::Free => "free",
        SlotLook::Runway => "runway",
        SlotLook::Writing => "writing",
        SlotLook::Live => "live",
        SlotLook::Held => "held",
        SlotLook::Pinned => "pinned",
        SlotLook::Damaged => "damaged",
        SlotLook::Bad => "bad",
    }
}

/// The word for what somebody did.
pub(crate) fn act(kind: ActKind) -> &'static str {
    match kind {
        ActKind::Unknown => "unknown",
        ActKind::Hold => "hold",
        ActKind::Release => "release",
        ActKind::End => "end",
        ActKind::Export => "export",
        ActKind::Purge => "purge",
    }
}

/// An act.
#[derive(Serialize)]
pub(crate) struct ActShown<'a> {
    act: &'static str,
    number: u64,
    #[serde(serialize_with = "time")]
    at: Timestamp,
    owner: &'a str,
    reason: &'a str,
    hold: Option<u64>,
    stream: Option<String>,
    #[serde(serialize_with = "time")]
    from: Timestamp,
    #[serde(serialize_with = "time")]
    to: Timestamp,
    event: bool,
    ordinals: Option<[u64; 2]>,
    slots: Option<u32>,
    elements: Option<u64>,
    bytes: Option<u64>,
}

impl<'a> ActShown<'a> {
    /// As it is shown, by the names of streams.
    pub(crate) fn new(act: &'a ActStatus, streams: &[StreamStatus]) -> Self {
        let purged = act.kind == ActKind::Purge;
        Self {
            act: self::act(act.kind),
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

/// What a cause means, for people.
pub(crate) fn cause_in_words(cause: Cause) -> &'static str {
    match cause {
        Cause::NoSlot => "no slot was free",
        Cause::NoBuffer => "no buffer was free",
        Cause::Kernel => "dropped by the kernel",
        Cause::Crash => "recorder or machine stopped",
        Cause::DeviceAbsent => "device was absent",
        Cause::SourceFailed => "source failed",
        Cause::Purged => "purged on purpose",
        Cause::Aborted => "source broke off",
        Cause::Oversized => "larger than any element may be",
        Cause::OverRate => "beyond the declared rate",
        Cause::NoProcessor => "capture had no processor",
        Cause::Upstream => "lost upstream",
    }
}

/// The word for how a source does.
pub(crate) fn source_state(state: SourceState) -> &'static str {
    match state {
        SourceState::Running => "running",
        SourceState::Ended => "ended",
        SourceState::Failed => "failed",
    }
}

/// The word for how a device does.
pub(crate) fn device_state(state: DeviceState) -> &'static str {
    match state {
        DeviceState::Ok => "ok",
        DeviceState::Retrying => "retrying",
        DeviceState::Absent => "absent",
    }
}

/// Counts of a stream over the ring's life.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct CountersShown {
    received: u64,
    received_bytes: u64,
    lost: u64,
    lost_bytes: u64,
    next_ordinal: u64,
    gaps: u64,
    unknown_gaps: u64,
}

impl From<&Counters> for CountersShown {
    fn from(counters: &Counters) -> Self {
        Self {
            received: counters.received,
            received_bytes: counters.received_bytes,
            lost: counters.lost,
            lost_bytes: counters.lost_bytes,
            next_ordinal: counters.next_ordinal.0,
            gaps: counters.gaps,
            unknown_gaps: counters.unknown_gaps,
        }
    }
}

/// Ordinals that have expired, as people read them: those before the rest of a range that begins with `first`, and those
/// inside it.
pub(crate) fn expired_ordinals(first: Ordinal, from: Ordinal, end: Ordinal) -> String {
    match end.0 - from.0 {
        _ if from == first => format!("elements before ordinal {end} had expired already"),
        1 => format!("the element with ordinal {from} had expired already"),
        _ => format!("elements with ordinals {from} to {} had expired already", end.0 - 1),
    }
}
