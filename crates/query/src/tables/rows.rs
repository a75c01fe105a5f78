//! What each table says of its things.

use super::list::List;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_format::{Gap, StreamKind};
use holdfast_ring::{HoldStatus, SlotLook, SlotStatus, StreamStatus};

/// A gap, and where it was found.
#[derive(Clone, Copy, Debug)]
pub struct FoundGap {
    /// Of which stream.
    pub stream: StreamId,
    /// The first lost ordinal.
    pub ordinal: Ordinal,
    /// What was lost.
    pub gap: Gap,
}

/// What a bound is that does not bound.
fn bound(time: Timestamp) -> Option<Timestamp> {
    (time != Timestamp::MIN && time != Timestamp::MAX).then_some(time)
}

fn name(streams: &[StreamStatus], id: StreamId) -> Option<&str> {
    streams.iter().find(|stream| stream.id == id).map(|stream| stream.name.as_str())
}

/// The table `streams`.
pub fn streams(streams: &[StreamStatus]) -> Result<RecordBatch, ArrowError> {
    List::of(streams)
        .number("id", |stream| Some(stream.id.0.into()))
        .text("name", |stream| Some(&stream.name))
        .text("kind", |stream| {
            Some(match stream.kind {
                StreamKind::Bytes => "bytes",
                StreamKind::Packets => "packets",
            })
        })
        .text("framing", |stream| Some(&stream.framing))
        .time("created", |stream| Some(stream.created))
        .number("received", |stream| Some(stream.counters.received))
        .number("received_bytes", |stream| Some(stream.counters.received_bytes))
        .number("lost", |stream| Some(stream.counters.lost))
        .number("lost_bytes", |stream| Some(stream.counters.lost_bytes))
        .number("gaps", |stream| Some(stream.counters.gaps))
        .number("next_ordinal", |stream| Some(stream.counters.next_ordinal.0))
        .number("preamble_bytes", |stream| Some(stream.preamble_bytes.into()))
        .finish()
}

/// The table `slots`.
pub fn slots(slots: &[SlotStatus]) -> Result<RecordBatch, ArrowError> {
    List::of(slots)
        .number("slot", |slot| Some(slot.slot.0.into()))
        .text("state", |slot| {
            Some(match slot.look {
                SlotLook::Free => "free",
                SlotLook::Runway => "runway",
                SlotLook::Writing => "writing",
                SlotLook::Live => "live",
                SlotLook::Held => "held",
                SlotLook::Pinned => "pinned",
                SlotLook::Damaged => "damaged",
                SlotLook::Bad => "bad",
            })
        })
        .number("sequence", |slot| Some(slot.sequence.0).filter(|sequence| *sequence > 0))
        .number("age", |slot| Some(slot.age.0).filter(|_| slot.sequence.0 > 0))
        .time("first", |slot| slot.first)
        .time("last", |slot| slot.last)
        .finish()
}

/// The table `holds`.
pub fn holds(holds: &[HoldStatus], streams: &[StreamStatus]) -> Result<RecordBatch, ArrowError> {
    let names = |hold: &HoldStatus| {
        let names: Vec<&str> = hold.streams.iter().filter_map(|id| name(streams, *id)).collect();
        (!names.is_empty()).then(|| names.join(","))
    };
    List::of(holds)
        .number("id", |hold| Some(hold.id.0))
        .time("created", |hold| Some(hold.created))
        .time("until", |hold| bound(hold.until))
        .text("reason", |hold| Some(&hold.reason))
        .text("owner", |hold| Some(&hold.owner))
        .text("streams", names)
        .time("from", |hold| bound(hold.range.from))
        .time("to", |hold| bound(hold.range.to))
        .truth("by_event", |hold| hold.range.by_event)
        .number("first_ordinal", |hold| hold.range.ordinals.map(|(first, _)| first.0))
        .number("end_ordinal", |hold| hold.range.ordinals.map(|(_, end)| end.0))
        .number("slots", |hold| Some(hold.slots.into()))
        .text("condition", |hold| hold.finding.as_ref().map(|finding| finding.condition.as_str()))
        .truth("standing", |hold| hold.finding.as_ref().is_some_and(|finding| finding.standing))
        .number("quota", |hold| {
            hold.finding.as_ref().map(|finding| finding.quota.into()).filter(|quota| *quota > 0)
        })
        .finish()
}

/// The table `gaps`.
pub fn gaps(gaps: &[FoundGap], streams: &[StreamStatus]) -> Result<RecordBatch, ArrowError> {
    List::of(gaps)
        .text("stream", |found| name(streams, found.stream))
        .number("ordinal", |found| Some(found.ordinal.0))
        .number("skipped", |found| Some(found.gap.ordinals))
        .number("elements", |found| found.gap.elements)
        .number("bytes", |found| found.gap.bytes)
        .time("from", |found| bound(found.gap.first))
        .time("to", |found| bound(found.gap.last))
        .text("cause", |found| Some(found.gap.cause.name()))
        .finish()
}
