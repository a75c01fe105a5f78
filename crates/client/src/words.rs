//! Words for states, causes and ranges of a ring, in tables and in JSON.

use crate::times;
use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::Cause;
use holdfast_protocol::wire::{DeviceState, SourceState};
use holdfast_ring::{ActKind, Range, SlotLook};

/// What was asked for, in words.
pub fn range(range: &Range) -> String {
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
pub fn look(look: SlotLook) -> &'static str {
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
pub fn act(kind: ActKind) -> &'static str {
    match kind {
        ActKind::Unknown => "unknown",
        ActKind::Hold => "hold",
        ActKind::Release => "release",
        ActKind::End => "end",
        ActKind::Export => "export",
        ActKind::Purge => "purge",
    }
}

/// What a cause means, for people.
pub fn cause_in_words(cause: Cause) -> &'static str {
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
pub fn source_state(state: SourceState) -> &'static str {
    match state {
        SourceState::Running => "running",
        SourceState::Ended => "ended",
        SourceState::Failed => "failed",
    }
}

/// The word for how a device does.
pub fn device_state(state: DeviceState) -> &'static str {
    match state {
        DeviceState::Ok => "ok",
        DeviceState::Retrying => "retrying",
        DeviceState::Absent => "absent",
    }
}

/// Ordinals that have expired, as people read them: those before the rest of a range that begins with `first`, and those
/// inside it.
pub fn expired_ordinals(first: Ordinal, from: Ordinal, end: Ordinal) -> String {
    match end.0 - from.0 {
        _ if from == first => format!("elements before ordinal {end} had expired already"),
        1 => format!("the element with ordinal {from} had expired already"),
        _ => format!("elements with ordinals {from} to {} had expired already", end.0 - 1),
    }
}
