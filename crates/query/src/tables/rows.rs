//! Rows and columns of the tables `streams`, `slots`, `holds` and `gaps`.

use super::table_builder::TableBuilder;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::error::ArrowError;
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_format::{ConditionHold, StreamKind};
use holdfast_reader::Loss;
use holdfast_ring::{HoldStatus, SlotLook, SlotStatus, StreamStatus};

/// What a bound is that does not bound.
fn bound(time: Timestamp) -> Option<Timestamp> {
    (time != Timestamp::MIN && time != Timestamp::MAX).then_some(time)
}

fn name(streams: &[StreamStatus], id: StreamId) -> Option<&str> {
    streams.iter().find(|stream| stream.id == id).map(|stream| stream.name.as_str())
}

/// The table `streams`.
pub fn streams(streams: &[StreamStatus]) -> Result<RecordBatch, ArrowError> {
    TableBuilder::of(streams)
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
        .number("unknown_gaps", |stream| Some(stream.counters.unknown_gaps))
        .number("next_ordinal", |stream| Some(stream.counters.next_ordinal.0))
        .number("preamble_version", |stream| Some(stream.preamble.into()))
        .number("preamble_bytes", |stream| Some(stream.preamble_bytes.into()))
        .number("attributes", |stream| Some(stream.schema.into()))
        .finish()
}

/// The table `slots`.
pub fn slots(slots: &[SlotStatus]) -> Result<RecordBatch, ArrowError> {
    TableBuilder::of(slots)
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

/// The table `holds`, of a ring with slots of so many bytes.
pub fn holds(
    holds: &[HoldStatus],
    streams: &[StreamStatus],
    slot_bytes: u64,
) -> Result<RecordBatch, ArrowError> {
    let names = |hold: &HoldStatus| {
        let names: Vec<&str> = hold.streams.iter().filter_map(|id| name(streams, *id)).collect();
        (!names.is_empty()).then(|| names.join(","))
    };
    let sequences = |hold: &HoldStatus| {
        let spans = hold.sequences.iter().map(|(first, last)| format!("{first}-{last}"));
        Some(spans.collect::<Vec<_>>().join(","))
    };
    // In others nothing is looked for any more.
    let evaluated = |condition_hold: &ConditionHold| {
        let all = condition_hold.watermarks.iter().filter(|(_, next)| *next < Ordinal(u64::MAX));
        all.filter_map(|(id, next)| Some(format!("{}:{next}", name(streams, *id)?)))
            .collect::<Vec<_>>()
            .join(",")
    };
    TableBuilder::of(holds)
        .number("id", |hold| Some(hold.id.0))
        .time("created", |hold| Some(hold.created))
        .time("until", |hold| bound(hold.until))
        .text("owner", |hold| Some(&hold.owner))
        .text("reason", |hold| Some(&hold.reason))
        .text("streams", names)
        .time("from", |hold| bound(hold.range.from))
        .time("to", |hold| bound(hold.range.to))
        .truth("event", |hold| hold.range.by_event)
        .number("first_ordinal", |hold| hold.range.ordinals.map(|(first, _)| first.0))
        .number("end_ordinal", |hold| hold.range.ordinals.map(|(_, end)| end.0))
        .number("slots", |hold| Some(hold.slots.into()))
        .number("bytes", |hold| Some(u64::from(hold.slots) * slot_bytes))
        .text("sequences", sequences)
        .text("order", |hold| hold.order.map(|order| order.to_string()))
        .text("condition", |hold| {
            hold.condition_hold
                .as_ref()
                .filter(|condition_hold| condition_hold.sample.is_none())
                .map(|condition_hold| &condition_hold.condition)
        })
        .seconds("before_seconds", |hold| Some(hold.condition_hold.as_ref()?.before))
        .seconds("after_seconds", |hold| Some(hold.condition_hold.as_ref()?.after))
        .truth("standing", |hold| {
            hold.condition_hold.as_ref().is_some_and(|condition_hold| condition_hold.standing)
        })
        .truth("distil", |hold| {
            hold.condition_hold.as_ref().is_some_and(|condition_hold| condition_hold.distil)
        })
        .seconds("sample_seconds", |hold| Some(hold.condition_hold.as_ref()?.sample?.0))
        .seconds("period_seconds", |hold| Some(hold.condition_hold.as_ref()?.sample?.1))
        .text("when", |hold| Some(&hold.condition_hold.as_ref()?.when.as_ref()?.0))
        .seconds("within_seconds", |hold| Some(hold.condition_hold.as_ref()?.when.as_ref()?.1))
        .number("quota", |hold| Some(hold.condition_hold.as_ref()?.quota.into()).filter(|quota| *quota > 0))
        .text("evaluated", |hold| hold.condition_hold.as_ref().map(evaluated))
        .finish()
}

/// The table `gaps`.
pub fn gaps(losses: &[Loss], streams: &[StreamStatus]) -> Result<RecordBatch, ArrowError> {
    TableBuilder::of(losses)
        .text("stream", |loss| name(streams, loss.stream))
        .number("ordinal", |loss| Some(loss.ordinal.0))
        .number("ordinals", |loss| Some(loss.gap.ordinals))
        .number("elements", |loss| loss.gap.elements)
        .number("bytes", |loss| loss.gap.bytes)
        .time("first", |loss| bound(loss.gap.first))
        .time("last", |loss| bound(loss.gap.last))
        .text("cause", |loss| Some(loss.gap.cause.name()))
        .finish()
}
