//! Codec of a ring's status: slots, holds, audit log, the ring as a whole.

use crate::wire::figures::WireFigures as _;
use crate::wire::frame::Writer;
use crate::wire::order::{
    get_condition_hold, get_order_id, get_range, get_ranges, get_streams, put_condition_hold, put_order_id,
    put_range, put_ranges, put_streams,
};
use holdfast_base::{Age, ByteSize, Epoch, HoldId, RingId, Sequence, SlotNo, StreamId};
use holdfast_format::{FieldReader, FormatError};
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

pub(crate) fn put_time_option(put: &mut Writer, time: Option<holdfast_base::Timestamp>) {
    put.option(time, |put, time| {
        put.time(time);
    });
}

pub(crate) fn put_slot(put: &mut Writer, slot: &SlotStatus) {
    put.u32(slot.slot.0).u8(look_byte(slot.look)).u64(slot.sequence.0).u64(slot.age.0);
    put_time_option(put, slot.first);
    put_time_option(put, slot.last);
}

pub(crate) fn get_slot(get: &mut FieldReader<'_>) -> Result<SlotStatus, FormatError> {
    let slot = SlotNo(get.named("slot").u32()?);
    let look = get.named("state of a slot").u8()?;
    let look =
        *LOOKS.get(usize::from(look)).ok_or_else(|| get.named("state of a slot").unknown(u64::from(look)))?;
    let (sequence, age) = (Sequence(get.named("sequence").u64()?), Age(get.named("age").u64()?));
    let first = get.named("first").option(|get| get.named("first").time())?;
    let last = get.named("last").option(|get| get.named("last").time())?;
    Ok(SlotStatus { slot, look, sequence, age, first, last })
}

pub(crate) fn put_hold(put: &mut Writer, hold: &HoldStatus) {
    put.u64(hold.id.0).time(hold.created).time(hold.until);
    put_range(put, &hold.range);
    put_streams(put, &hold.streams);
    put.u32(hold.slots);
    put_ranges(put, &hold.sequences);
    put.cut_string(&hold.reason).cut_string(&hold.owner);
    put.option(hold.condition_hold.as_ref(), put_condition_hold);
    put_order_id(put, hold.order);
}

pub(crate) fn get_hold(get: &mut FieldReader<'_>) -> Result<HoldStatus, FormatError> {
    let (id, created, until) =
        (HoldId(get.named("hold").u64()?), get.named("created").time()?, get.named("until").time()?);
    let (range, streams) = (get_range(get)?, get_streams(get)?);
    let (slots, sequences) = (get.named("slots").u32()?, get_ranges(get)?);
    let (reason, owner) = (get.named("reason").string()?, get.named("owner").string()?);
    let condition_hold = get.named("what a hold looks for").option(get_condition_hold)?;
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

pub(crate) fn put_act(put: &mut Writer, act: &ActStatus) {
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
    put.u32(act.slots).u64(act.elements).u64(act.bytes).cut_string(&act.reason).cut_string(&act.owner);
}

pub(crate) fn get_act(get: &mut FieldReader<'_>) -> Result<ActStatus, FormatError> {
    Ok(ActStatus {
        number: get.named("number").u64()?,
        kind: match get.named("kind of act").u8()? {
            1 => ActKind::Hold,
            2 => ActKind::Release,
            3 => ActKind::End,
            4 => ActKind::Export,
            5 => ActKind::Purge,
            // Of a later release.
            _ => ActKind::Unknown,
        },
        at: get.named("at").time()?,
        hold: get.named("hold").option(|get| get.named("hold").u64().map(HoldId))?,
        stream: get.named("stream").option(|get| get.named("stream").u32().map(StreamId))?,
        range: get_range(get)?,
        slots: get.named("slots").u32()?,
        elements: get.named("elements").u64()?,
        bytes: get.named("bytes").u64()?,
        reason: get.named("reason").string()?,
        owner: get.named("owner").string()?,
    })
}

pub(crate) fn put_ring(put: &mut Writer, ring: &RingStatus) {
    put.bytes(&ring.ring.0).cut_string(&ring.name).cut_string(&ring.lane);
    put.u64(ring.lane_bytes.0).u64(ring.slot_bytes.0).u64(ring.epoch.0).u64(ring.sequence.0);
    ring.slots.put_figures(put);
    put_time_option(put, ring.oldest);
    put_time_option(put, ring.newest);
    put.u32(ring.holds).u8(u8::from(ring.scanned));
    put_span(put, ring.durable_after);
}

pub(crate) fn get_ring(get: &mut FieldReader<'_>) -> Result<RingStatus, FormatError> {
    Ok(RingStatus {
        ring: RingId(get.named("ring").array()?),
        name: get.named("name").string()?,
        lane: get.named("lane").string()?,
        lane_bytes: ByteSize(get.named("bytes of the lane").u64()?),
        slot_bytes: ByteSize(get.named("bytes of a slot").u64()?),
        epoch: Epoch(get.named("epoch").u64()?),
        sequence: Sequence(get.named("sequence").u64()?),
        slots: SlotCounts::get_figures(get)?,
        oldest: get.named("oldest").option(|get| get.named("oldest").time())?,
        newest: get.named("newest").option(|get| get.named("newest").time())?,
        holds: get.named("holds").u32()?,
        scanned: get.named("scanned").bool()?,
        durable_after: get_span(get, "durable after")?,
    })
}

/// A span of time as nanoseconds, at most 584 years.
pub(crate) fn put_span(put: &mut Writer, span: Duration) {
    put.u64(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX));
}

pub(crate) fn get_span(get: &mut FieldReader<'_>, what: &'static str) -> Result<Duration, FormatError> {
    get.named(what).u64().map(Duration::from_nanos)
}
