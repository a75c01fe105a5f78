//! Codec of orders, ranges and outcomes.

use crate::wire::frame::Writer;
use crate::wire::message::MAX_RANGES;
use holdfast_base::{ByteSize, HoldId, MAX_STREAMS, OrderId, Ordinal, Sequence, StreamId};
use holdfast_format::ConditionHold;
use holdfast_format::{FieldReader, FormatError};
use holdfast_ring::{
    DistilRequest, ExportRequest, ExtendRequest, HoldRequest, Order, Original, Outcome, PurgeRequest, Range,
    Refusal, ReleaseRequest,
};

pub(crate) fn put_range(put: &mut Writer, range: &Range) {
    let (first, end) = range.ordinals.unwrap_or_default();
    let flags = u8::from(range.by_event) | u8::from(range.ordinals.is_some()) << 1;
    put.time(range.from).time(range.to).u64(first.0).u64(end.0).u8(flags);
}

pub(crate) fn get_range(get: &mut FieldReader<'_>) -> Result<Range, FormatError> {
    let (from, to) = (get.named("from").time()?, get.named("to").time()?);
    let ordinals = (Ordinal(get.named("first ordinal").u64()?), Ordinal(get.named("end ordinal").u64()?));
    let flags = get.named("range flags").u8()?;
    Ok(Range { from, to, by_event: flags & 1 != 0, ordinals: (flags & 2 != 0).then_some(ordinals) })
}

pub(crate) fn put_streams(put: &mut Writer, streams: &[StreamId]) {
    put.list(streams, |put, stream| {
        put.u32(stream.0);
    });
}

pub(crate) fn get_streams(get: &mut FieldReader<'_>) -> Result<Vec<StreamId>, FormatError> {
    let streams = get.named("streams").list(4, |get| get.named("stream").u32().map(StreamId))?;
    limit(get, "number of streams", streams, MAX_STREAMS)
}

pub(crate) fn put_ranges(put: &mut Writer, ranges: &[(Sequence, Sequence)]) {
    put.list(ranges, |put, (first, last)| {
        put.u64(first.0).u64(last.0);
    });
}

pub(crate) fn get_ranges(get: &mut FieldReader<'_>) -> Result<Vec<(Sequence, Sequence)>, FormatError> {
    get.named("ranges").list(16, |get| {
        Ok((Sequence(get.named("first sequence").u64()?), Sequence(get.named("last sequence").u64()?)))
    })
}

fn put_watermarks(put: &mut Writer, watermarks: &[(StreamId, Ordinal)]) {
    put.list(watermarks, |put, (stream, ordinal)| {
        put.u32(stream.0).u64(ordinal.0);
    });
}

fn get_watermarks(get: &mut FieldReader<'_>) -> Result<Vec<(StreamId, Ordinal)>, FormatError> {
    let watermarks = get
        .named("watermarks")
        .list(12, |get| Ok((StreamId(get.named("stream").u32()?), Ordinal(get.named("watermark").u64()?))))?;
    limit(get, "number of watermarks", watermarks, MAX_STREAMS)
}

pub(crate) fn put_condition_hold(put: &mut Writer, condition_hold: &ConditionHold) {
    put.cut_string(&condition_hold.condition).u64(condition_hold.before).u64(condition_hold.after);
    put.u8(u8::from(condition_hold.standing) | u8::from(condition_hold.distil) << 1);
    put.option(condition_hold.sample, |put, (held, every)| {
        put.u64(held).u64(every);
    });
    put.option(condition_hold.when.as_ref(), |put, (when, within)| {
        put.cut_string(when).u64(*within);
    });
    put.u32(condition_hold.quota);
    put_watermarks(put, &condition_hold.watermarks);
}

pub(crate) fn get_condition_hold(get: &mut FieldReader<'_>) -> Result<ConditionHold, FormatError> {
    let condition = get.named("condition").string()?;
    let (before, after) = (get.named("what is held before").u64()?, get.named("what is held after").u64()?);
    let flags = get.named("flags of a hold by condition").u8()?;
    Ok(ConditionHold {
        condition,
        before,
        after,
        standing: flags & 1 != 0,
        distil: flags & 2 != 0,
        sample: get
            .named("sample")
            .option(|get| Ok((get.named("length of a sample").u64()?, get.named("of every").u64()?)))?,
        when: get
            .named("when")
            .option(|get| Ok((get.named("condition over a window").string()?, get.named("window").u64()?)))?,
        quota: get.named("quota").u32()?,
        watermarks: get_watermarks(get)?,
    })
}

pub(crate) fn put_order_id(put: &mut Writer, order: Option<OrderId>) {
    put.option(order, |put, order| {
        put.bytes(&order.0);
    });
}

pub(crate) fn get_order_id(get: &mut FieldReader<'_>) -> Result<Option<OrderId>, FormatError> {
    get.named("order id").option(|get| Ok(OrderId(get.named("order id").array()?)))
}

fn limit<T>(
    get: &mut FieldReader<'_>,
    what: &'static str,
    things: Vec<T>,
    most: usize,
) -> Result<Vec<T>, FormatError> {
    if things.len() > most { Err(get.named(what).unknown(things.len() as u64)) } else { Ok(things) }
}

pub(crate) fn put_order(put: &mut Writer, order: &Order) {
    match order {
        Order::Hold(hold) => {
            put.u8(1);
            put_range(put, &hold.range);
            put.time(hold.until);
            put_streams(put, &hold.streams);
            put.option(hold.sequences.as_deref(), put_ranges);
            put.cut_string(&hold.reason).cut_string(&hold.owner);
            put.option(hold.condition_hold.as_ref(), put_condition_hold);
            put_order_id(put, hold.order);
        }
        Order::Release(release) => {
            put.u8(2).u64(release.hold.0).cut_string(&release.reason).cut_string(&release.owner);
            put_order_id(put, release.order);
        }
        Order::Purge(purge) => {
            put.u8(3);
            put_range(put, &purge.range);
            put_streams(put, &purge.streams);
            put.u8(u8::from(purge.held)).cut_string(&purge.reason).cut_string(&purge.owner);
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
                    put.varint(stream.0.into()).varint(folded(gap)).varint(end.0.wrapping_sub(first.0));
                    before = end.0;
                });
            });
        }
        Order::Export(export) => {
            put.u8(7);
            put_range(put, &export.range);
            put_streams(put, &export.streams);
            put.cut_string(&export.reason).cut_string(&export.owner);
        }
    }
}

/// As many ranges as one order may have.
fn get_order_ranges(get: &mut FieldReader<'_>) -> Result<Vec<(Sequence, Sequence)>, FormatError> {
    let ranges = get_ranges(get)?;
    limit(get, "number of ranges", ranges, MAX_RANGES)
}

pub(crate) fn get_order(get: &mut FieldReader<'_>) -> Result<Order, FormatError> {
    match get.named("kind of order").u8()? {
        1 => {
            let (range, until, streams) = (get_range(get)?, get.named("until").time()?, get_streams(get)?);
            let sequences = get.named("ranges").option(get_order_ranges)?;
            let (reason, owner) = (get.named("reason").string()?, get.named("owner").string()?);
            let condition_hold = get.named("what a hold looks for").option(get_condition_hold)?;
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
            let (hold, reason, owner) = (
                HoldId(get.named("hold").u64()?),
                get.named("reason").string()?,
                get.named("owner").string()?,
            );
            Ok(Order::Release(ReleaseRequest { hold, reason, owner, order: get_order_id(get)? }))
        }
        3 => {
            let (range, streams, held) = (get_range(get)?, get_streams(get)?, get.named("held").bool()?);
            let (reason, owner) = (get.named("reason").string()?, get.named("owner").string()?);
            Ok(Order::Purge(PurgeRequest { streams, range, held, reason, owner }))
        }
        4 => Ok(Order::Grow(ByteSize(get.named("bytes").u64()?))),
        5 => {
            let (hold, sequences) = (HoldId(get.named("hold").u64()?), get_order_ranges(get)?);
            let (watermarks, durable) = (get_watermarks(get)?, get.named("durable").bool()?);
            Ok(Order::Extend(ExtendRequest { hold, sequences, watermarks, durable }))
        }
        6 => {
            let hold = HoldId(get.named("hold").u64()?);
            let originals = get.named("originals").list(16, get_original)?;
            Ok(Order::Distil(DistilRequest { hold, originals }))
        }
        7 => {
            let (range, streams) = (get_range(get)?, get_streams(get)?);
            let (reason, owner) = (get.named("reason").string()?, get.named("owner").string()?);
            Ok(Order::Export(ExportRequest { streams, range, reason, owner }))
        }
        other => Err(get.named("kind of order").unknown(u64::from(other))),
    }
}

/// A difference of either sign, small where it is.
fn folded(difference: u64) -> u64 {
    (difference << 1) ^ ((difference as i64 >> 63) as u64)
}

fn unfolded(folded: u64) -> u64 {
    (folded >> 1) ^ (folded & 1).wrapping_neg()
}

fn get_original(get: &mut FieldReader<'_>) -> Result<Original, FormatError> {
    let sequence = Sequence(get.named("sequence of an original").u64()?);
    let holds = get.named("holds of an original").list(8, |get| Ok(HoldId(get.named("hold").u64()?)))?;
    let mut before = 0u64;
    let keep = get.named("what is kept").list(3, |get| {
        let stream = get.named("stream").varint()?;
        let stream = u32::try_from(stream).map_err(|_| get.named("stream").unknown(stream))?;
        let first = before.wrapping_add(unfolded(get.named("first ordinal").varint()?));
        before = first.wrapping_add(get.named("ordinals").varint()?);
        Ok((StreamId(stream), Ordinal(first), Ordinal(before)))
    })?;
    Ok(Original { sequence, holds, keep })
}

pub(crate) fn put_outcome(put: &mut Writer, outcome: &Outcome) {
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

pub(crate) fn get_outcome(get: &mut FieldReader<'_>) -> Result<Outcome, FormatError> {
    match get.named("kind of outcome").u8()? {
        1 => {
            let (id, slots) = (HoldId(get.named("hold").u64()?), get.named("slots").u32()?);
            let bytes = ByteSize(get.named("bytes").u64()?);
            let expired_before =
                get.named("expired before").option(|get| get.named("expired before").time())?;
            Ok(Outcome::Held { id, slots, bytes, expired_before })
        }
        2 => Ok(Outcome::Released { slots: get.named("slots").u32()? }),
        3 => {
            let (elements, bytes) = (get.named("elements").u64()?, get.named("bytes").u64()?);
            Ok(Outcome::Purged { elements, bytes, slots: get.named("slots").u32()? })
        }
        4 => Ok(Outcome::Grown { slots: get.named("slots").u32()? }),
        5 => get_refusal(get).map(Outcome::Refused),
        6 => Ok(Outcome::Extended {
            added: get.named("slots added").u32()?,
            slots: get.named("slots").u32()?,
            left: get.named("slots left").u32()?,
            missed: get.named("slots missed").u32()?,
        }),
        7 => {
            let (originals, copies) = (get.named("originals").u32()?, get.named("copies").u32()?);
            let (elements, bytes) = (get.named("elements").u64()?, get.named("bytes").u64()?);
            Ok(Outcome::Distilled { originals, copies, elements, bytes, due: get.named("slots due").u32()? })
        }
        8 => Ok(Outcome::Noted),
        other => Err(get.named("kind of outcome").unknown(u64::from(other))),
    }
}

fn put_refusal(put: &mut Writer, refusal: &Refusal) {
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
            put.u8(6).cut_string(text);
        }
        Refusal::Wrong(text) => {
            put.u8(7).cut_string(text);
        }
        Refusal::NoDevice => {
            put.u8(8);
        }
        Refusal::Busy(what) => {
            put.u8(9).cut_string(what);
        }
        Refusal::Scattered { runs, most } => {
            put.u8(10).u64(*runs).u64(*most);
        }
        Refusal::Quota { quota, wanted } => {
            put.u8(11).u32(*quota).u32(*wanted);
        }
    }
}

fn get_refusal(get: &mut FieldReader<'_>) -> Result<Refusal, FormatError> {
    Ok(match get.named("kind of refusal").u8()? {
        1 => Refusal::Nothing { oldest: get.named("oldest").option(|get| get.named("oldest").time())? },
        2 => Refusal::NoRoom { wanted: get.named("wanted").u32()?, free: get.named("free").u32()? },
        3 => Refusal::JournalFull { bytes: get.named("bytes").u64()?, budget: get.named("budget").u64()? },
        4 => Refusal::NoSuchHold(HoldId(get.named("hold").u64()?)),
        5 => Refusal::Held(HoldId(get.named("hold").u64()?)),
        6 => Refusal::Geometry(get.named("text").string()?),
        7 => Refusal::Wrong(get.named("text").string()?),
        8 => Refusal::NoDevice,
        9 => Refusal::Busy(busy(&get.named("what is busy").string()?)),
        10 => Refusal::Scattered { runs: get.named("runs").u64()?, most: get.named("most").u64()? },
        11 => Refusal::Quota { quota: get.named("quota").u32()?, wanted: get.named("wanted").u32()? },
        other => return Err(get.named("kind of refusal").unknown(u64::from(other))),
    })
}

/// The words that a ring uses for what keeps it busy; another release's are told in general.
fn busy(what: &str) -> &'static str {
    let known = ["hold", "release", "purge", "growth", "grow", "distilling"];
    known.into_iter().find(|word| *word == what).unwrap_or("order")
}
