//! What goes to the sink: preambles before elements, counts, expired neighbours together. And which rows are wanted.

use super::assemble::Open;
use super::item::{Element, Item, Missing, PlannedSlot, ReadReport};
use holdfast_base::{Ordinal, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Flags, Gap, Kind, Row};
use holdfast_ring::Range;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Which rows are in a range.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filter {
    from: Timestamp,
    to: Timestamp,
    by_event: bool,
    timed: bool,
    ordinals: Option<(Ordinal, Ordinal)>,
}

impl Filter {
    pub(crate) fn new(range: &Range) -> Self {
        let timed = range.is_timed();
        Self { from: range.from, to: range.to, by_event: range.by_event, timed, ordinals: range.ordinals }
    }

    #[inline]
    fn time(&self, arrival: Timestamp, event: Option<Timestamp>) -> bool {
        if !self.timed {
            return true;
        }
        let time = if self.by_event { event } else { Some(arrival) };
        time.is_some_and(|time| self.from <= time && time <= self.to)
    }

    #[inline]
    pub(crate) fn ordinal(&self, ordinal: Ordinal) -> bool {
        self.ordinals.is_none_or(|(first, end)| first <= ordinal && ordinal < end)
    }

    /// Whether a row that is a whole element, or ends one, is wanted.
    #[inline]
    pub(crate) fn element(&self, row: &Row) -> bool {
        let event = row.flags.has(Flags::EVENT).then_some(row.event);
        self.time(row.arrival, event) && self.ordinal(row.ordinal)
    }

    /// Whether a collected element is wanted.
    pub(crate) fn whole(&self, open: &Open) -> bool {
        self.time(open.arrival, open.event) && self.ordinal(open.ordinal)
    }

    /// Whether the element of a fragment may still be wanted: its last byte arrives later than this one's.
    pub(crate) fn fragment(&self, row: &Row) -> bool {
        let by_arrival = self.timed && !self.by_event;
        let late = by_arrival && row.arrival > self.to;
        let early = by_arrival && row.flags.has(Flags::LAST) && row.arrival < self.from;
        self.ordinal(row.ordinal) && !late && !early
    }

    /// Whether anything of a slot may be wanted, as far as its times are known. A plan by time has neighbours in it, for the
    /// beginnings of what arrived at its start: what they lacked is told with the element.
    pub(crate) fn may_want(&self, slot: &PlannedSlot) -> bool {
        let outside = |first: Timestamp, last: Timestamp| last < self.from || first > self.to;
        let known = slot.first.zip(slot.last).filter(|_| self.timed && !self.by_event);
        !known.is_some_and(|(first, last)| outside(first, last))
    }

    /// Whether something of the payload of a row may be looked at.
    pub(crate) fn payload(&self, row: &Row) -> bool {
        match row.kind {
            Kind::Element => self.element(row),
            Kind::Fragment => self.fragment(row),
            Kind::Note => self.note(row),
            Kind::Gap => true,
            Kind::Abort => false,
        }
    }

    pub(crate) fn note(&self, row: &Row) -> bool {
        self.ordinals.is_none() && self.element(row)
    }

    pub(crate) fn gap(&self, ordinal: Ordinal, gap: &Gap) -> bool {
        let end = ordinal.0.saturating_add(gap.ordinals.max(1));
        let ordinals =
            self.ordinals.is_none_or(|(first, stop)| first < stop && ordinal < stop && first.0 < end);
        // A gap has no event time: a range by event time takes what is lost with it.
        let times = !self.timed || self.by_event || (gap.first <= self.to && self.from <= gap.last);
        ordinals && times
    }
}

/// Preambles by stream and version.
pub(crate) type Preambles = HashMap<(StreamId, u32), Vec<u8>>;

/// The sink, and what it was given.
pub(crate) struct Output<'s> {
    sink: &'s mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    pub(crate) report: ReadReport,
    /// The preamble that each stream's reader has.
    announced: HashMap<StreamId, u32>,
    /// By dictionary entry of the slot at work: whether its preamble has still to be looked at.
    fresh: Vec<Option<(StreamId, u32)>>,
    expired: Option<(Sequence, Sequence, Option<Timestamp>, Option<Timestamp>)>,
}

impl<'s> Output<'s> {
    pub(crate) fn new(sink: &'s mut dyn FnMut(Item<'_>) -> ControlFlow<()>) -> Self {
        let (report, announced, fresh) = (ReadReport::default(), HashMap::new(), Vec::new());
        Self { sink, report, announced, fresh, expired: None }
    }

    #[inline]
    pub(crate) fn item(&mut self, item: Item<'_>) -> ControlFlow<()> {
        if self.expired.is_some() && !matches!(item, Item::Progress { .. }) {
            self.tell_expired()?;
        }
        let flow = (self.sink)(item);
        self.report.stopped |= flow.is_break();
        flow
    }

    /// A slot with these streams and preamble versions begins.
    pub(crate) fn begin_slot(&mut self, entries: impl Iterator<Item = (StreamId, u32)>) {
        self.fresh.clear();
        self.fresh.extend(entries.map(Some));
    }

    /// Gives the preamble of a dictionary entry, if the stream's reader does not have it.
    #[inline]
    pub(crate) fn announce(&mut self, entry: u16, preambles: &Preambles) -> ControlFlow<()> {
        match self.fresh.get_mut(usize::from(entry)).and_then(Option::take) {
            None => ControlFlow::Continue(()),
            Some((stream, version)) => self.preamble(stream, version, preambles),
        }
    }

    #[cold]
    fn preamble(&mut self, stream: StreamId, version: u32, preambles: &Preambles) -> ControlFlow<()> {
        if version == 0 || self.announced.insert(stream, version) == Some(version) {
            return ControlFlow::Continue(());
        }
        match preambles.get(&(stream, version)) {
            Some(bytes) => self.item(Item::Preamble { stream, version, bytes }),
            None => ControlFlow::Continue(()),
        }
    }

    #[inline]
    pub(crate) fn element(&mut self, element: Element<'_>) -> ControlFlow<()> {
        self.report.elements += 1;
        self.report.bytes += element.data.len() as u64;
        self.item(Item::Element(element))
    }

    /// A collected element.
    pub(crate) fn collected(&mut self, open: &Open) -> ControlFlow<()> {
        self.element(Element {
            stream: open.stream,
            ordinal: open.ordinal,
            first: open.first,
            arrival: open.arrival,
            event: open.event,
            flags: open.flags,
            tag: open.tag,
            extra: open.extra,
            meta: &open.meta,
            data: &open.data,
        })
    }

    pub(crate) fn gap(&mut self, stream: StreamId, ordinal: Ordinal, gap: Gap) -> ControlFlow<()> {
        self.report.gaps += 1;
        self.item(Item::Gap { stream, ordinal, gap })
    }

    pub(crate) fn partial(&mut self, stream: StreamId, ordinal: Ordinal, why: Missing) -> ControlFlow<()> {
        self.report.partial += 1;
        self.item(Item::Partial { stream, ordinal, why })
    }

    pub(crate) fn damaged(&mut self, planned: &PlannedSlot, place: &str) -> ControlFlow<()> {
        self.report.damaged += 1;
        let slot = planned.slot.unwrap_or(SlotNo(u32::MAX));
        self.item(Item::Damaged { slot, sequence: planned.sequence, place })
    }

    /// Takes note of a slot that expired; neighbours are told of together.
    pub(crate) fn expired(&mut self, planned: &PlannedSlot) -> ControlFlow<()> {
        self.report.expired += 1;
        if let Some((_, to, _, last)) = &mut self.expired {
            if planned.sequence.0 == to.0 + 1 {
                *to = planned.sequence;
                *last = planned.last.or(*last);
                return ControlFlow::Continue(());
            }
            self.tell_expired()?;
        }
        self.expired = Some((planned.sequence, planned.sequence, planned.first, planned.last));
        ControlFlow::Continue(())
    }

    /// Tells of what has expired up to here.
    pub(crate) fn tell_expired(&mut self) -> ControlFlow<()> {
        match self.expired.take() {
            Some((from, to, first, last)) => self.item(Item::Expired { from, to, first, last }),
            None => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::Age;

    // Promise 4: who reads what is held is not told that something expired which was never asked for.
    #[test]
    fn a_neighbour_that_has_nothing_of_a_range_of_time_is_not_wanted() {
        let slot = |first: Option<i64>, last: Option<i64>| PlannedSlot {
            sequence: Sequence(1),
            slot: None,
            age: Age(1),
            first: first.map(Timestamp),
            last: last.map(Timestamp),
            held: false,
            bytes: 1,
        };
        let range = Range { from: Timestamp(10), to: Timestamp(20), ..Range::ALL };
        let filter = Filter::new(&range);
        for (first, last, wanted) in
            [(0, 9, false), (0, 10, true), (12, 15, true), (20, 30, true), (21, 30, false)]
        {
            assert_eq!(filter.may_want(&slot(Some(first), Some(last))), wanted, "{first} to {last}");
        }
        assert!(filter.may_want(&slot(None, None)) && filter.may_want(&slot(Some(30), None)));
        let by_event = Filter::new(&Range { by_event: true, ..range });
        assert!(by_event.may_want(&slot(Some(0), Some(9))));
        assert!(Filter::new(&Range::ALL).may_want(&slot(Some(0), Some(9))));
    }
}
