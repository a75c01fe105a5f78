//! Control records of streams, holds and purges.

use super::ConditionHold;
use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use crate::slot::{Counters, StreamKind};
use holdfast_base::{HoldId, OrderId, Ordinal, Sequence, StreamId, Timestamp};

/// What the ring knows of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StreamRecord {
    /// Its number in this ring.
    pub id: StreamId,
    /// What its elements are.
    pub kind: StreamKind,
    /// Version of the preamble in force; 0: none.
    pub preamble: u32,
    /// Version of its schema; 0: none.
    pub schema: u32,
    /// When it was first seen.
    pub created: Timestamp,
    /// What it has received and lost so far.
    pub counters: Counters,
    /// Its name.
    pub name: String,
    /// How its source cuts bytes into elements, for people and for the exporter.
    pub framing: String,
    /// Its schema as text, of at most [`StreamRecord::MAX_SCHEMA`] bytes; empty: none.
    pub schema_text: String,
}

impl StreamRecord {
    /// Most bytes of a schema: 64 attributes, each with a name, a unit and a comment, and a record of the journal that always
    /// fits a commit.
    pub const MAX_SCHEMA: usize = 16 << 10;

    /// Bytes of the schema in its record, which has none where there is no schema.
    pub(super) fn schema_bytes(&self) -> usize {
        if self.schema_text.is_empty() { 0 } else { 2 + self.schema_text.len() }
    }

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        put.u32(self.id.0)
            .u8(self.kind as u8)
            .zeros(3)
            .u32(self.preamble)
            .u32(self.schema)
            .time(self.created);
        self.counters.put(put);
        put.string(&self.name).string(&self.framing);
        if !self.schema_text.is_empty() {
            put.string(&self.schema_text);
        }
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let id = StreamId(get.u32()?);
        let kind = StreamKind::read(get)?;
        get.take(3)?;
        let mut stream = Self {
            id,
            kind,
            preamble: get.u32()?,
            schema: get.u32()?,
            created: get.time()?,
            counters: Counters::read(get)?,
            name: get.string()?,
            framing: get.string()?,
            schema_text: String::new(),
        };
        if get.is_more() {
            stream.schema_text = get.string()?;
        }
        if stream.schema_text.len() > Self::MAX_SCHEMA {
            return Err(get.malformed("a schema that is too long"));
        }
        Ok(stream)
    }
}

/// An order to preserve.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HoldRecord {
    /// Its number in this ring.
    pub id: HoldId,
    /// When it was ordered.
    pub created: Timestamp,
    /// When it ends by itself; [`Timestamp::MAX`]: never.
    pub until: Timestamp,
    /// First time of the range.
    pub from: Timestamp,
    /// Last time of the range.
    pub to: Timestamp,
    /// First ordinal of the range.
    pub first_ordinal: Ordinal,
    /// The ordinal behind the range.
    pub end_ordinal: Ordinal,
    /// The time range counts.
    pub by_time: bool,
    /// The ordinal range counts.
    pub by_ordinal: bool,
    /// The time range means event times.
    pub by_event: bool,
    /// Streams it concerns; none: all.
    pub streams: Vec<StreamId>,
    /// The slots it holds, as ranges of first and last sequence.
    pub sequences: Vec<(Sequence, Sequence)>,
    /// Why.
    pub reason: String,
    /// Who.
    pub owner: String,
    /// Its condition, if it is a hold by condition.
    pub condition_hold: Option<ConditionHold>,
    /// UUID of the order that gave it; holds of format version 1 have none.
    pub order: Option<OrderId>,
}

impl HoldRecord {
    /// Bytes of the optional fields at the end of its record: condition and order.
    pub(super) fn optional_bytes(&self) -> usize {
        // Where only the condition is missing, a zero byte stands for it.
        let absent = usize::from(self.order.is_some());
        let condition = self.condition_hold.as_ref().map_or(absent, ConditionHold::bytes);
        condition + self.order.map_or(0, |order| order.0.len())
    }

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) -> bool {
        let Ok(streams) = u16::try_from(self.streams.len()) else { return false };
        put.u64(self.id.0).time(self.created).time(self.until).time(self.from).time(self.to);
        put.u64(self.first_ordinal.0).u64(self.end_ordinal.0);
        let which = u8::from(self.by_time) | u8::from(self.by_ordinal) << 1 | u8::from(self.by_event) << 2;
        put.u8(which).zeros(5).u16(streams);
        for stream in &self.streams {
            put.u32(stream.0);
        }
        put.u32(self.sequences.len() as u32);
        for (first, last) in &self.sequences {
            put.u64(first.0).u64(last.0);
        }
        put.string(&self.reason).string(&self.owner);
        if !self.condition_hold.as_ref().is_none_or(|condition_hold| condition_hold.put(put)) {
            return false;
        }
        if let Some(order) = &self.order {
            if self.condition_hold.is_none() {
                put.u8(0);
            }
            put.bytes(&order.0);
        }
        true
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let id = HoldId(get.u64()?);
        let (created, until, from, to) = (get.time()?, get.time()?, get.time()?, get.time()?);
        let (first_ordinal, end_ordinal) = (Ordinal(get.u64()?), Ordinal(get.u64()?));
        let which = get.u8()?;
        get.take(5)?;
        let count = get.u16()?;
        let mut streams = Vec::new();
        for _ in 0..count {
            streams.push(StreamId(get.u32()?));
        }
        let count = get.count(16)?;
        let mut sequences = Vec::with_capacity(count);
        for _ in 0..count {
            sequences.push((Sequence(get.u64()?), Sequence(get.u64()?)));
        }
        let (by_time, by_ordinal, by_event) = (which & 1 != 0, which & 2 != 0, which & 4 != 0);
        Ok(Self {
            id,
            created,
            until,
            from,
            to,
            first_ordinal,
            end_ordinal,
            by_time,
            by_ordinal,
            by_event,
            streams,
            sequences,
            reason: get.string()?,
            owner: get.string()?,
            condition_hold: ConditionHold::read(get)?,
            order: read_order(get)?,
        })
    }
}

/// Reads the UUID of an order at the end of a record; zeros stand for none.
pub(super) fn read_order(get: &mut FieldReader<'_>) -> Result<Option<OrderId>, FormatError> {
    let order = if get.is_more() { OrderId(get.array()?) } else { OrderId::default() };
    Ok(Some(order).filter(|order| *order != OrderId::default()))
}

/// The audit of a purge.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PurgeRecord {
    /// When it was done.
    pub at: Timestamp,
    /// Of which stream; `None`: all.
    pub stream: Option<StreamId>,
    /// The time range counts.
    pub by_time: bool,
    /// The ordinal range counts.
    pub by_ordinal: bool,
    /// The time range means event times.
    pub by_event: bool,
    /// First time of the range.
    pub from: Timestamp,
    /// Last time of the range.
    pub to: Timestamp,
    /// First ordinal of the range.
    pub first_ordinal: Ordinal,
    /// The ordinal behind the range.
    pub end_ordinal: Ordinal,
    /// Elements destroyed.
    pub elements: u64,
    /// Bytes destroyed.
    pub bytes: u64,
    /// Audits of older purges that had been dropped by then, at most [`PurgeRecord::MOST_DROPPED`].
    pub dropped: u32,
    /// Why.
    pub reason: String,
    /// Who.
    pub owner: String,
}

impl PurgeRecord {
    /// As many dropped audits as a record can tell of.
    pub const MOST_DROPPED: u32 = (1 << 24) - 1;

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        let which = u8::from(self.by_time) | u8::from(self.by_ordinal) << 1 | u8::from(self.by_event) << 2;
        put.time(self.at).u32(self.stream.map_or(u32::MAX, |stream| stream.0)).u8(which);
        put.bytes(&self.dropped.min(Self::MOST_DROPPED).to_le_bytes()[..3]);
        put.time(self.from).time(self.to).u64(self.first_ordinal.0).u64(self.end_ordinal.0);
        put.u64(self.elements).u64(self.bytes).string(&self.reason).string(&self.owner);
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let at = get.time()?;
        let stream = Some(get.u32()?).filter(|id| *id != u32::MAX).map(StreamId);
        let which = get.u8()?;
        let [a, b, c] = get.array()?;
        Ok(Self {
            at,
            dropped: u32::from_le_bytes([a, b, c, 0]),
            stream,
            by_time: which & 1 != 0,
            by_ordinal: which & 2 != 0,
            by_event: which & 4 != 0,
            from: get.time()?,
            to: get.time()?,
            first_ordinal: Ordinal(get.u64()?),
            end_ordinal: Ordinal(get.u64()?),
            elements: get.u64()?,
            bytes: get.u64()?,
            reason: get.string()?,
            owner: get.string()?,
        })
    }
}
