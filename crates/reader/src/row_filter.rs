//! Filter of rows by the range of a selection.

use super::assembler::PartialElement;
use super::item::PlannedSlot;
use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::{Flags, Gap, Kind, Row};
use holdfast_ring::Range;

/// The range of a selection, as a filter of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowFilter {
    from: Timestamp,
    to: Timestamp,
    by_event: bool,
    timed: bool,
    ordinals: Option<(Ordinal, Ordinal)>,
}

impl RowFilter {
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

    /// True if a row that is or ends an element is in the range.
    #[inline]
    pub(crate) fn element(&self, row: &Row) -> bool {
        let event = row.flags.has(Flags::EVENT).then_some(row.event);
        self.time(row.arrival, event) && self.ordinal(row.ordinal)
    }

    /// True if an assembled element is in the range.
    pub(crate) fn whole(&self, open: &PartialElement) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{Age, Sequence};

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
        let filter = RowFilter::new(&range);
        for (first, last, wanted) in
            [(0, 9, false), (0, 10, true), (12, 15, true), (20, 30, true), (21, 30, false)]
        {
            assert_eq!(filter.may_want(&slot(Some(first), Some(last))), wanted, "{first} to {last}");
        }
        assert!(filter.may_want(&slot(None, None)) && filter.may_want(&slot(Some(30), None)));
        let by_event = RowFilter::new(&Range { by_event: true, ..range });
        assert!(by_event.may_want(&slot(Some(0), Some(9))));
        assert!(RowFilter::new(&Range::ALL).may_want(&slot(Some(0), Some(9))));
    }
}
