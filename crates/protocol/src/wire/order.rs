//! Codec of orders, ranges and outcomes.

use crate::wire::bytes::{Get, Put, WireError};
use crate::wire::message::MAX_RANGES;
use holdfast_base::{ByteSize, HoldId, MAX_STREAMS, OrderId, Ordinal, Sequence, StreamId};
use holdfast_format::ConditionHold;
use holdfast_ring::{
    DistilRequest, ExportRequest, ExtendRequest, HoldRequest, Order, Original, Outcome, PurgeRequest, Range,
    Refusal, ReleaseRequest,
};

pub(crate) fn put_range(put: &mut Put, range: &Range) {
    let (first, end) = range.ordinals.unwrap_or_default();
    let flags = u8::from(range.by_event) | u8::from(range.ordinals.is_some()) << 1;
    put.time(range.from).time(range.to).u64(first.0).u64(end.0).u8(flags);
}

pub(crate) fn get_range(get: &mut Get<'_>) -> Result<Range, WireError> {
    let (from, to) = (get.time("from")?, get.time("to")?);
    let ordinals = (Ordinal(get.u64("first ordinal")?), Ordinal(get.u64("end ordinal")?));
    let flags = get.u8("range flags")?;
    Ok(Range { from, to, by_event: flags & 1 != 0, ordinals: (flags & 2 != 0).then_some(ordinals) })
}

pub(crate) fn put_streams(put: &mut Put, streams: &[StreamId]) {
    put.list(streams, |put, stream| {
        put.u32(stream.0);
    });
}

pub(crate) fn get_streams(get: &mut Get<'_>) -> Result<Vec<StreamId>, WireError> {
    let streams = get.list("streams", 4, |get| get.u32("stream").map(StreamId))?;
    limit(get, "number of streams", streams, MAX_STREAMS)
}

pub(crate) fn put_ranges(put: &mut Put, ranges: &[(Sequence, Sequence)]) {
    put.list(ranges, |put, (first, last)| {
        put.u64(first.0).u64(last.0);
    });
}

pub(crate) fn get_ranges(get: &mut Get<'_>) -> Result<Vec<(Sequence, Sequence)>, WireError> {
    get.list("ranges", 16, |get| {
        Ok((Sequence(get.u64("first sequence")?), Sequence(get.u64("last sequence")?)))
    })
}

fn put_watermarks(put: &mut Put, watermarks: &[(StreamId, Ordinal)]) {
    put.list(watermarks, |put, (stream, ordinal)| {
        put.u32(stream.0).u64(ordinal.0);
    });
}

fn get_watermarks(get: &mut Get<'_>) -> Result<Vec<(StreamId, Ordinal)>, WireError> {
    let watermarks =
        get.list("watermarks", 12, |get| Ok((StreamId(get.u32("stream")?), Ordinal(get.u64("watermark")?))))?;
    limit(get, "number of watermarks", watermarks, MAX_STREAMS)
}

pub(crate) fn put_condition_hold(put: &mut Put, condition_hold: &ConditionHold) {
    put.text(&condition_hold.condition).u64(condition_hold.before).u64(condition_hold.after);
    put.u8(u8::from(condition_hold.standing) | u8::from(condition_hold.distil) << 1);
    put.option(condition_hold.sample, |put, (held, every)| {
        put.u64(held).u64(every);
    });
    put.option(condition_hold.when.as_ref(), |put, (when, within)| {
        put.text(when).u64(*within);
    });
    put.u32(condition_hold.quota);
    put_watermarks(put, &condition_hold.watermarks);
}

pub(crate) fn get_condition_hold(get: &mut Get<'_>) -> Result<ConditionHold, WireError> {
    let condition = get.text("condition")?;
    let (before, after) = (get.u64("what is held before")?, get.u64("what is held after")?);
    let flags = get.u8("flags of a hold by condition")?;
    Ok(ConditionHold {
        condition,
        before,
        after,
        standing: flags & 1 != 0,
        distil: flags & 2 != 0,
        sample: get.option("sample", |get| Ok((get.u64("length of a sample")?, get.u64("of every")?)))?,
        when: get.option("when", |get| Ok((get.text("condition over a window")?, get.u64("window")?)))?,
        quota: get.u32("quota")?,
        watermarks: get_watermarks(get)?,
    })
}

pub(crate) fn put_order_id(put: &mut Put, order: Option<OrderId>) {
    put.option(order, |put, order| {
        put.bytes(&order.0);
    });
}

pub(crate) fn get_order_id(get: &mut Get<'_>) -> Result<Option<OrderId>, WireError> {
    get.option("order id", |get| Ok(OrderId(get.id("order id")?)))
}

fn limit<T>(get: &Get<'_>, what: &'static str, things: Vec<T>, most: usize) -> Result<Vec<T>, WireError> {
    if things.len() > most { Err(get.unknown(what, things.len() as u64)) } else { Ok(things) }
}

pub(crate) fn put_order(put: &mut Put, order: &Order) {
    match order {
        Order::Hold(hold) => {
            put.u8(1);
            put_range(put, &hold.range);
            put.time(hold.until);
            put_streams(put, &hold.streams);
            put.option(hold.sequences.as_deref(), put_ranges);
            put.text(&hold.reason).text(&hold.owner);
            put.option(hold.condition_hold.as_ref(), put_condition_hold);
            put_order_id(put, hold.order);
        }
        Order::Release(release) => {
            put.u8(2).u64(release.hold.0).text(&release.reason).text(&release.owner);
            put_order_id(put, release.order);
        }
        Order::Purge(purge) => {
            put.u8(3);
            put_range(put, &purge.range);
            put_streams(put, &purge.streams);
            put.u8(u8::from(purge.held)).text(&purge.reason).text(&purge.owner);
        }
        Order::Grow(bytes) => {
            put.u8(4).u64(bytes.0);
        }
        Order::Extend(extend) => {
            put.u8(5).u64(extend.hold.0);
            put_ranges(put, &extend.sequences);
            put_watermarks(put, &extend.watermarks);
            put.u8(u8::from(extend.durable));
        }
        Order::Distil(distil) => {
            put.u8(6).u64(distil.hold.0);
            put.list(&distil.originals, |put, original| {
                put.u64(original.sequence.0).list(&original.holds, |put, hold| {
                    put.u64(hold.0);
                });
                let mut before = 0;
                put.list(&original.keep, |put, (stream, first, end)| {
                    let gap = first.0.wrapping_sub(before);
                    put.short(stream.0.into()).short(folded(gap)).short(end.0.wrapping_sub(first.0));
                    before = end.0;
                });
            });
        }
        Order::Export(export) => {
            put.u8(7);
            put_range(put, &export.range);
            put_streams(put, &export.streams);
            put.text(&export.reason).text(&export.owner);
        }
    }
}

/// As many ranges as one order may have.
fn get_order_ranges(get: &mut Get<'_>) -> Result<Vec<(Sequence, Sequence)>, WireError> {
    let ranges = get_ranges(get)?;
    limit(get, "number of ranges", ranges, MAX_RANGES)
}

pub(crate) fn get_order(get: &mut Get<'_>) -> Result<Order, WireError> {
    match get.u8("kind of order")? {
        1 => {
            let (range, until, streams) = (get_range(get)?, get.time("until")?, get_streams(get)?);
            let sequences = get.option("ranges", get_order_ranges)?;
            let (reason, owner) = (get.text("reason")?, get.text("owner")?);
            let condition_hold = get.option("what a hold looks for", get_condition_hold)?;
            let order = get_order_id(get)?;
            Ok(Order::Hold(HoldRequest {
                streams,
                range,
                sequences,
                reason,
                owner,
                until,
                condition_hold,
                order,
            }))
        }
        2 => {
            let (hold, reason, owner) = (HoldId(get.u64("hold")?), get.text("reason")?, get.text("owner")?);
            Ok(Order::Release(ReleaseRequest { hold, reason, owner, order: get_order_id(get)? }))
        }
        3 => {
            let (range, streams, held) = (get_range(get)?, get_streams(get)?, get.bool("held")?);
            let (reason, owner) = (get.text("reason")?, get.text("owner")?);
            Ok(Order::Purge(PurgeRequest { streams, range, held, reason, owner }))
        }
        4 => Ok(Order::Grow(ByteSize(get.u64("bytes")?))),
        5 => {
            let (hold, sequences) = (HoldId(get.u64("hold")?), get_order_ranges(get)?);
            let (watermarks, durable) = (get_watermarks(get)?, get.bool("durable")?);
            Ok(Order::Extend(ExtendRequest { hold, sequences, watermarks, durable }))
        }
        6 => {
            let hold = HoldId(get.u64("hold")?);
            let originals = get.list("originals", 16, get_original)?;
            Ok(Order::Distil(DistilRequest { hold, originals }))
        }
        7 => {
            let (range, streams) = (get_range(get)?, get_streams(get)?);
            let (reason, owner) = (get.text("reason")?, get.text("owner")?);
            Ok(Order::Export(ExportRequest { streams, range, reason, owner }))
        }
        other => Err(get.unknown("kind of order", u64::from(other))),
    }
}

/// A difference of either sign, small where it is.
fn folded(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

fn unfolded(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

fn get_original(get: &mut Get<'_>) -> Result<Original, WireError> {
    let sequence = Sequence(get.u64("sequence of an original")?);
    let holds = get.list("holds of an original", 8, |get| Ok(HoldId(get.u64("hold")?)))?;
    let mut before = 0u64;
    let keep = get.list("what is kept", 3, |get| {
        let stream = get.short("stream")?;
        let stream = u32::try_from(stream).map_err(|_| get.unknown("stream", stream))?;
        let first = before.wrapping_add(unfolded(get.short("first ordinal")?));
        before = first.wrapping_add(get.short("ordinals")?);
        Ok((StreamId(stream), Ordinal(first), Ordinal(before)))
    })?;
    Ok(Original { sequence, holds, keep })
}

pub(crate) fn put_outcome(put: &mut Put, outcome: &Outcome) {
    match outcome {
        Outcome::Held { id, slots, bytes, expired_before } => {
            put.u8(1).u64(id.0).u32(*slots).u64(bytes.0).option(*expired_before, |put, at| {
                put.time(at);
            });
        }
        Outcome::Released { slots } => {
            put.u8(2).u32(*slots);
        }
        Outcome::Purged { elements, bytes, slots } => {
            put.u8(3).u64(*elements).u64(*bytes).u32(*slots);
        }
        Outcome::Grown { slots } => {
            put.u8(4).u32(*slots);
        }
        Outcome::Refused(refusal) => {
            put.u8(5);
            put_refusal(put, refusal);
        }
        Outcome::Extended { added, slots, left, missed } => {
            put.u8(6).u32(*added).u32(*slots).u32(*left).u32(*missed);
        }
        Outcome::Distilled { originals, copies, elements, bytes, due } => {
            put.u8(7).u32(*originals).u32(*copies).u64(*elements).u64(*bytes).u32(*due);
        }
        Outcome::Noted => {
            put.u8(8);
        }
    }
}

pub(crate) fn get_outcome(get: &mut Get<'_>) -> Result<Outcome, WireError> {
    match get.u8("kind of outcome")? {
        1 => {
            let (id, slots) = (HoldId(get.u64("hold")?), get.u32("slots")?);
            let bytes = ByteSize(get.u64("bytes")?);
            let expired_before = get.option("expired before", |get| get.time("expired before"))?;
            Ok(Outcome::Held { id, slots, bytes, expired_before })
        }
        2 => Ok(Outcome::Released { slots: get.u32("slots")? }),
        3 => {
            let (elements, bytes) = (get.u64("elements")?, get.u64("bytes")?);
            Ok(Outcome::Purged { elements, bytes, slots: get.u32("slots")? })
        }
        4 => Ok(Outcome::Grown { slots: get.u32("slots")? }),
        5 => get_refusal(get).map(Outcome::Refused),
        6 => Ok(Outcome::Extended {
            added: get.u32("slots added")?,
            slots: get.u32("slots")?,
            left: get.u32("slots left")?,
            missed: get.u32("slots missed")?,
        }),
        7 => {
            let (originals, copies) = (get.u32("originals")?, get.u32("copies")?);
            let (elements, bytes) = (get.u64("elements")?, get.u64("bytes")?);
            Ok(Outcome::Distilled { originals, copies, elements, bytes, due: get.u32("slots due")? })
        }
        8 => Ok(Outcome::Noted),
        other => Err(get.unknown("kind of outcome", u64::from(other))),
    }
}

fn put_refusal(put: &mut Put, refusal: &Refusal) {
    match refusal {
        Refusal::Nothing { oldest } => {
            put.u8(1).option(*oldest, |put, at| {
                put.time(at);
            });
        }
        Refusal::NoRoom { wanted, free } => {
            put.u8(2).u32(*wanted).u32(*free);
        }
        Refusal::JournalFull { bytes, budget } => {
            put.u8(3).u64(*bytes).u64(*budget);
        }
        Refusal::NoSuchHold(id) => {
            put.u8(4).u64(id.0);
        }
        Refusal::Held(id) => {
            put.u8(5).u64(id.0);
        }
        Refusal::Geometry(text) => {
            put.u8(6).text(text);
        }
        Refusal::Wrong(text) => {
            put.u8(7).text(text);
        }
        Refusal::NoDevice => {
            put.u8(8);
        }
        Refusal::Busy(what) => {
            put.u8(9).text(what);
        }
        Refusal::Scattered { runs, most } => {
            put.u8(10).u64(*runs).u64(*most);
        }
        Refusal::Quota { quota, wanted } => {
            put.u8(11).u32(*quota).u32(*wanted);
        }
    }
}

fn get_refusal(get: &mut Get<'_>) -> Result<Refusal, WireError> {
    Ok(match get.u8("kind of refusal")? {
        1 => Refusal::Nothing { oldest: get.option("oldest", |get| get.time("oldest"))? },
        2 => Refusal::NoRoom { wanted: get.u32("wanted")?, free: get.u32("free")? },
        3 => Refusal::JournalFull { bytes: get.u64("bytes")?, budget: get.u64("budget")? },
        4 => Refusal::NoSuchHold(HoldId(get.u64("hold")?)),
        5 => Refusal::Held(HoldId(get.u64("hold")?)),
        6 => Refusal::Geometry(get.text("text")?),
        7 => Refusal::Wrong(get.text("text")?),
        8 => Refusal::NoDevice,
        9 => Refusal::Busy(busy(&get.text("what is busy")?)),
        10 => Refusal::Scattered { runs: get.u64("runs")?, most: get.u64("most")? },
        11 => Refusal::Quota { quota: get.u32("quota")?, wanted: get.u32("wanted")? },
        other => return Err(get.unknown("kind of refusal", u64::from(other))),
    })
}

/// The words that a ring uses for what keeps it busy; another release's are told in general.
fn busy(what: &str) -> &'static str {
    let known = ["hold", "release", "purge", "growth", "grow", "distilling"];
    known.into_iter().find(|word| *word == what).unwrap_or("order")
}
