//! Counters of a stream: over the ring's life, and in one slot.

use super::gap::{Cause, Gap};
use super::row::{Flags, Kind, Row};
use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use holdfast_base::Ordinal;

/// What a stream's elements are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StreamKind {
    /// Byte strings.
    #[default]
    Bytes = 0,
    /// Network packets.
    Packets = 1,
}

impl StreamKind {
    /// Name of the kind in JSON and in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Packets => "packets",
        }
    }

    pub(crate) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        match get.u8()? {
            0 => Ok(Self::Bytes),
            1 => Ok(Self::Packets),
            _ => Err(get.malformed("a kind of stream that does not exist")),
        }
    }
}

/// What a stream received and lost, counted over the ring's life.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Elements whose end was received.
    pub received: u64,
    /// Bytes of data of these.
    pub received_bytes: u64,
    /// Elements lost, as far as it is known.
    pub lost: u64,
    /// Bytes lost, as far as it is known.
    pub lost_bytes: u64,
    /// The ordinal that the next element gets.
    pub next_ordinal: Ordinal,
    /// Gaps, without those that a purge left and those of what never arrived.
    pub gaps: u64,
    /// Gaps of which the number of elements is unknown.
    pub unknown_gaps: u64,
}

impl Counters {
    pub(crate) const BYTES: usize = 56;

    pub(crate) fn put(&self, put: &mut SliceWriter<'_>) {
        put.u64(self.received).u64(self.received_bytes).u64(self.lost).u64(self.lost_bytes);
        put.u64(self.next_ordinal.0).u64(self.gaps).u64(self.unknown_gaps);
    }

    pub(crate) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        Ok(Self {
            received: get.u64()?,
            received_bytes: get.u64()?,
            lost: get.u64()?,
            lost_bytes: get.u64()?,
            next_ordinal: Ordinal(get.u64()?),
            gaps: get.u64()?,
            unknown_gaps: get.u64()?,
        })
    }

    /// Counts a row. `gap` is what the row of a gap says, if it could be read.
    #[inline]
    pub fn count(&mut self, row: &Row, gap: Option<&Gap>) {
        match row.kind {
            Kind::Element => {
                self.received = self.received.wrapping_add(1);
                self.received_bytes = self.received_bytes.wrapping_add(row.len.into());
                self.next_ordinal = Ordinal(row.ordinal.0.wrapping_add(1));
            }
            // Those of an element that is given up count in its gap, so none counts before the end is there.
            Kind::Fragment if row.flags.has(Flags::LAST) => {
                let bytes = row.offset.wrapping_add(row.len.into());
                self.received = self.received.wrapping_add(1);
                self.received_bytes = self.received_bytes.wrapping_add(bytes);
                self.next_ordinal = Ordinal(row.ordinal.0.wrapping_add(1));
            }
            Kind::Abort => self.next_ordinal = Ordinal(row.ordinal.0.wrapping_add(1)),
            Kind::Gap => self.count_gap(row.ordinal, gap),
            Kind::Fragment | Kind::Note => {}
        }
    }

    /// Counts a run of whole elements.
    #[inline]
    pub(crate) fn count_run(&mut self, run: &RunStats) {
        self.received = self.received.wrapping_add(run.rows);
        self.received_bytes = self.received_bytes.wrapping_add(run.data_bytes);
        self.next_ordinal = Ordinal(run.next_ordinal);
    }

    #[cold]
    fn count_gap(&mut self, ordinal: Ordinal, gap: Option<&Gap>) {
        let skipped = gap.map_or(0, |gap| gap.ordinals);
        // One that a crash took out of the middle is told of behind what came later.
        self.next_ordinal = self.next_ordinal.max(Ordinal(ordinal.0.wrapping_add(skipped)));
        // What was purged was received, and is counted as that for ever. What was lost upstream never arrived, and has
        // no ordinals: received and lost are what came to us.
        if gap.is_some_and(|gap| matches!(gap.cause, Cause::Purged | Cause::Upstream)) {
            return;
        }
        let elements = gap.and_then(|gap| gap.elements);
        self.gaps = self.gaps.wrapping_add(1);
        self.unknown_gaps = self.unknown_gaps.wrapping_add(elements.is_none().into());
        self.lost = self.lost.saturating_add(elements.unwrap_or(0));
        self.lost_bytes = self.lost_bytes.saturating_add(gap.and_then(|gap| gap.bytes).unwrap_or(0));
    }
}

/// What one slot holds of one stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EntryStats {
    /// Least ordinal; max: none.
    pub(crate) first_ordinal: u64,
    pub(crate) last_ordinal: u64,
    pub(crate) rows: u64,
    pub(crate) payload_bytes: u64,
    pub(crate) first_arrival: i64,
    pub(crate) last_arrival: i64,
    /// Least event time; max: none.
    pub(crate) first_event: i64,
    pub(crate) last_event: i64,
    pub(crate) gaps: u64,
    /// How many ages before this slot the earliest element began that ends here.
    pub(crate) back: u64,
}

impl EntryStats {
    pub(crate) const EMPTY: Self = Self {
        first_ordinal: u64::MAX,
        last_ordinal: 0,
        rows: 0,
        payload_bytes: 0,
        first_arrival: i64::MAX,
        last_arrival: i64::MIN,
        first_event: i64::MAX,
        last_event: i64::MIN,
        gaps: 0,
        back: 0,
    };

    /// Takes a run of whole elements into account.
    #[inline]
    pub(crate) fn count_run(&mut self, run: &RunStats) {
        self.rows += run.rows;
        self.payload_bytes += run.payload_bytes;
        self.first_arrival = self.first_arrival.min(run.first_arrival);
        self.last_arrival = self.last_arrival.max(run.last_arrival);
        self.first_event = self.first_event.min(run.first_event);
        self.last_event = self.last_event.max(run.last_event);
        self.first_ordinal = self.first_ordinal.min(run.first_ordinal);
        self.last_ordinal = self.last_ordinal.max(run.last_ordinal);
    }

    /// Takes a row into account.
    #[inline]
    pub(crate) fn count(&mut self, row: &Row, gap: Option<&Gap>) {
        self.rows += 1;
        self.payload_bytes += row.payload() as u64;
        self.first_arrival = self.first_arrival.min(row.first_arrival().0);
        self.last_arrival = self.last_arrival.max(row.arrival.0);
        if row.flags.has(Flags::EVENT) {
            self.first_event = self.first_event.min(row.event.0);
            self.last_event = self.last_event.max(row.event.0);
        }
        if row.kind != Kind::Note {
            let mut last = row.ordinal.0;
            if row.kind == Kind::Gap {
                self.gaps += 1;
                last = last.saturating_add(gap.map_or(0, |gap| gap.ordinals).saturating_sub(1));
            }
            self.first_ordinal = self.first_ordinal.min(row.ordinal.0);
            self.last_ordinal = self.last_ordinal.max(last);
        }
    }
}

/// What several rows of whole elements of one stream come to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunStats {
    pub(crate) rows: u64,
    pub(crate) data_bytes: u64,
    pub(crate) payload_bytes: u64,
    /// Of the first of them.
    pub(crate) ordinal: u64,
    /// The least.
    pub(crate) first_ordinal: u64,
    /// The greatest.
    pub(crate) last_ordinal: u64,
    /// What comes after the last of them.
    pub(crate) next_ordinal: u64,
    pub(crate) first_arrival: i64,
    pub(crate) last_arrival: i64,
    /// Least event time; max: none.
    pub(crate) first_event: i64,
    pub(crate) last_event: i64,
    /// Whether their ordinals do not just follow each other.
    pub(crate) jumps: bool,
    /// Whether any has an event time.
    pub(crate) events: bool,
    pub(crate) same: Same,
}

/// What the rows of a run have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Same {
    /// Bytes of data.
    pub(crate) length: bool,
    /// The time of arrival.
    pub(crate) arrival: bool,
    /// All but the ordinal, the two above, and the event time.
    pub(crate) rest: bool,
}

impl RunStats {
    /// With their stream. `None` when a row is something else than a whole element, or of another stream than the first.
    #[inline]
    pub(crate) fn of<R>(run: &[R], row: impl Fn(&R) -> Row + Copy) -> Option<(u16, Self)> {
        let (first, last) = (row(run.first()?), row(run.last()?));
        let mut stats = Self {
            rows: run.len() as u64,
            data_bytes: 0,
            payload_bytes: 0,
            ordinal: first.ordinal.0,
            first_ordinal: first.ordinal.0,
            last_ordinal: last.ordinal.0,
            next_ordinal: last.ordinal.0.wrapping_add(1),
            first_arrival: first.arrival.0,
            last_arrival: last.arrival.0,
            first_event: i64::MAX,
            last_event: i64::MIN,
            jumps: false,
            events: false,
            same: Same { length: true, arrival: first.arrival == last.arrival, rest: true },
        };
        if stats.regular(run, row, &first) {
            Some((first.stream, stats))
        } else {
            stats.any(run, row, &first)
        }
    }

    /// The usual case, in as few steps as it can be: rows that differ in length only, one ordinal after the other, in
    /// order of arrival. Whether it is that; if not, what was counted is of no use.
    #[inline]
    fn regular<R>(&mut self, run: &[R], row: impl Fn(&R) -> Row + Copy, first: &Row) -> bool {
        if first.flags.has(Flags::EVENT) || first.span != 0 {
            return false;
        }
        let (mut next, mut arrival, mut data, mut lengths) = (first.ordinal.0, first.arrival, 0, 0);
        for row in run.iter().map(row) {
            let goes_on = row.kind == Kind::Element
                && row.stream == first.stream
                && row.ordinal.0 == next
                && row.arrival >= arrival
                && row.meta == first.meta
                && row.tag == first.tag
                && row.extra == first.extra
                && row.flags == first.flags
                && row.span == first.span
                && row.number == first.number
                && row.offset == first.offset;
            if !goes_on {
                return false;
            }
            next = next.wrapping_add(1);
            arrival = row.arrival;
            data += u64::from(row.len);
            lengths |= row.len ^ first.len;
        }
        self.same.length = lengths == 0;
        self.data_bytes = data;
        self.payload_bytes = data + u64::from(first.meta) * self.rows;
        // Over the end of all ordinals.
        self.last_ordinal >= self.first_ordinal
    }

    #[inline(never)]
    fn any<R>(mut self, run: &[R], row: impl Fn(&R) -> Row + Copy, first: &Row) -> Option<(u16, Self)> {
        let stats = &mut self;
        (stats.data_bytes, stats.payload_bytes) = (0, 0);
        (stats.first_arrival, stats.last_arrival) = (i64::MAX, i64::MIN);
        // What is the same for most is only noticed here: the loop has few values to keep.
        let (mut spans, mut flags, mut jumps, mut next) = (0, 0, 0, first.ordinal.0);
        let (mut lengths, mut differing) = (0, 0);
        for row in run.iter().map(row) {
            if row.kind != Kind::Element || row.stream != first.stream {
                return None;
            }
            stats.data_bytes += u64::from(row.len);
            stats.payload_bytes += row.payload() as u64;
            jumps |= row.ordinal.0 ^ next;
            next = row.ordinal.0.wrapping_add(1);
            stats.first_arrival = stats.first_arrival.min(row.arrival.0);
            stats.last_arrival = stats.last_arrival.max(row.arrival.0);
            spans |= row.span;
            flags |= row.flags.0;
            lengths |= row.len ^ first.len;
            differing |= row.span ^ first.span | row.offset ^ first.offset;
            differing |= u64::from(row.extra ^ first.extra | row.number ^ first.number);
            differing |= u64::from(row.meta ^ first.meta | row.tag ^ first.tag);
            differing |= u64::from(row.flags.0 ^ first.flags.0);
        }
        stats.same.length = lengths == 0;
        stats.same.arrival = stats.first_arrival == stats.last_arrival;
        stats.same.rest = differing == 0;
        stats.jumps = jumps != 0 || stats.last_ordinal < stats.first_ordinal;
        if stats.jumps {
            let ordinals = || run.iter().map(|one| row(one).ordinal.0);
            stats.first_ordinal = ordinals().min().unwrap_or(u64::MAX);
            stats.last_ordinal = ordinals().max().unwrap_or(0);
        }
        if spans != 0 {
            stats.first_arrival = run.iter().map(|one| row(one).first_arrival().0).min().unwrap_or(i64::MAX);
        }
        stats.events = Flags(flags).has(Flags::EVENT);
        if stats.events {
            for row in run.iter().map(row).filter(|row| row.flags.has(Flags::EVENT)) {
                stats.first_event = stats.first_event.min(row.event.0);
                stats.last_event = stats.last_event.max(row.event.0);
            }
        }
        Some((first.stream, self))
    }
}
