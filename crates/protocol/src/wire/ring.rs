//! Codec of a ring's status: slots, holds, audit log, the ring as a whole.

use crate::wire::bytes::{Get, Put, WireError};
use crate::wire::figures::WireFigures as _;
use crate::wire::order::{
    get_condition_hold, get_order_id, get_range, get_ranges, get_streams, put_condition_hold, put_order_id,
    put_range, put_ranges, put_streams,
};
use holdfast_base::{Age, ByteSize, Epoch, HoldId, RingId, Sequence, SlotNo, StreamId};
use holdfast_ring::{ActKind, ActStatus, HoldStatus, RingStatus, SlotCounts, SlotLook, SlotStatus};
use std::time::Duration;

/// Bytes of a slot's status, without its times.
pub(crate) const SLOT_LEAST: usize = 23;

/// Bytes of a hold's status without streams, ranges and texts: a purge may leave it without any range.
pub(crate) const HOLD_LEAST: usize = 75;

/// Bytes of an entry of the audit log without hold, stream and texts.
pub(crate) const ACT_LEAST: usize = 76;

const LOOKS: [SlotLook; 8] = [
    SlotLook::Free,
    SlotLook::Runway,
    SlotLook::Writing,
    SlotLook::Live,
    SlotLook::Held,
    SlotLook::Damaged,
    SlotLook::Bad,
    SlotLook::Pinned,
];

fn look_byte(look: SlotLook) -> u8 {
    match look {
        SlotLook::Free => 0,
        SlotLook::Runway => 1,
        SlotLook::Writing => 2,
        SlotLook::Live => 3,
        SlotLook::Held => 4,
        SlotLook::Damaged => 5,
        SlotLook::Bad => 6,
        SlotLook::Pinned => 7,
    }
}

pub(crate) fn put_time_option(put: &mut Put, time: Option<holdfast_base::Timestamp>) {
    put.option(time, |put, time| {
        put.time(time);
    });
}

pub(crate) fn put_slot(put: &mut Put, slot: &SlotStatus) {
    put.u32(slot.slot.0).u8(look_byte(slot.look)).u64(slot.sequence.0).u64(slot.age.0);
    put_time_option(put, slot.first);
    put_time_option(put, slot.last);
}

pub(crate) fn get_slot(get: &mut Get<'_>) -> Result<SlotStatus, WireError> {
    let slot = SlotNo(get.u32("slot")?);
    let look = get.u8("state of a slot")?;
    let look =
        *LOOKS.get(usize::from(look)).ok_or_else(|| get.unknown("state of a slot", u64::from(look)))?;
    let (sequence, age) = (Sequence(get.u64("sequence")?), Age(get.u64("age")?));
    let first = get.option("first", |get| get.time("first"))?;
    let last = get.option("last", |get| get.time("last"))?;
    Ok(SlotStatus { slot, look, sequence, age, first, last })
}

pub(crate) fn put_hold(put: &mut Put, hold: &HoldStatus) {
    put.u64(hold.id.0).time(hold.created).time(hold.until);
    put_range(put, &hold.range);
    put_streams(put, &hold.streams);
    put.u32(hold.slots);
    put_ranges(put, &hold.sequences);
    put.text(&hold.reason).text(&hold.owner);
    put.option(hold.condition_hold.as_ref(), put_condition_hold);
    put_order_id(put, hold.order);
}

pub(crate) fn get_hold(get: &mut Get<'_>) -> Result<HoldStatus, WireError> {
    let (id, created, until) = (HoldId(get.u64("hold")?), get.time("created")?, get.time("until")?);
    let (range, streams) = (get_range(get)?, get_streams(get)?);
    let (slots, sequences) = (get.u32("slots")?, get_ranges(get)?);
    let (reason, owner) = (get.text("reason")?, get.text("owner")?);
    let condition_hold = get.option("what a hold looks for", get_condition_hold)?;
    let order = get_order_id(get)?;
    Ok(HoldStatus {
        id,
        created,
        until,
        reason,
        owner,
        streams,
        range,
        slots,
        sequences,
        condition_hold,
        order,
    })
}

pub(crate) fn put_act(put: &mut Put, act: &ActStatus) {
    let kind = match act.kind {
        ActKind::Unknown => 0,
        ActKind::Hold => 1,
        ActKind::Release => 2,
        ActKind::End => 3,
        ActKind::Export => 4,
        ActKind::Purge => 5,
    };
    put.u64(act.number).u8(kind).time(act.at);
    put.option(act.hold, |put, hold| {
        put.u64(hold.0);
    });
    put.option(act.stream, |put, stream| {
        put.u32(stream.0);
    });
    put_range(put, &act.range);
    put.u32(act.slots).u64(act.elements).u64(act.bytes).text(&act.reason).text(&act.owner);
}

pub(crate) fn get_act(get: &mut Get<'_>) -> Result<ActStatus, WireError> {
    Ok(ActStatus {
        number: get.u64("number")?,
        kind: match get.u8("kind of act")? {
            1 => ActKind::Hold,
            2 => ActKind::Release,
            3 => ActKind::End,
            4 => ActKind::Export,
            5 => ActKind::Purge,
            // Of a later release.
            _ => ActKind::Unknown,
        },
        at: get.time("at")?,
        hold: get.option("hold", |get| get.u64("hold").map(HoldId))?,
        stream: get.option("stream", |get| get.u32("stream").map(StreamId))?,
        range: get_range(get)?,
        slots: get.u32("slots")?,
        elements: get.u64("elements")?,
        bytes: get.u64("bytes")?,
        reason: get.text("reason")?,
        owner: get.text("owner")?,
    })
}

pub(crate) fn put_ring(put: &mut Put, ring: &RingStatus) {
    put.bytes(&ring.ring.0).text(&ring.name).text(&ring.lane);
    put.u64(ring.lane_bytes.0).u64(ring.slot_bytes.0).u64(ring.epoch.0).u64(ring.sequence.0);
    ring.slots.put_figures(put);
    put_time_option(put, ring.oldest);
    put_time_option(put, ring.newest);
    put.u32(ring.holds).u8(u8::from(ring.scanned));
    put_span(put, ring.durable_after);
}

pub(crate) fn get_ring(get: &mut Get<'_>) -> Result<RingStatus, WireError> {
    Ok(RingStatus {
        ring: RingId(get.id("ring")?),
        name: get.text("name")?,
        lane: get.text("lane")?,
        lane_bytes: ByteSize(get.u64("bytes of the lane")?),
        slot_bytes: ByteSize(get.u64("bytes of a slot")?),
        epoch: Epoch(get.u64("epoch")?),
        sequence: Sequence(get.u64("sequence")?),
        slots: SlotCounts::get_figures(get)?,
        oldest: get.option("oldest", |get| get.time("oldest"))?,
        newest: get.option("newest", |get| get.time("newest"))?,
        holds: get.u32("holds")?,
        scanned: get.bool("scanned")?,
        durable_after: get_span(get, "durable after")?,
    })
}

/// A span of time as nanoseconds, at most 584 years.
pub(crate) fn put_span(put: &mut Put, span: Duration) {
    put.u64(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
}

pub(crate) fn get_span(get: &mut Get<'_>, what: &'static str) -> Result<Duration, WireError> {
    get.u64(what).map(Duration::from_nanos)
}
