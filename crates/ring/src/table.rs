//! The slot table: the contents of every slot, the place of a sequence, and the slot that goes next. Pure
//! bookkeeping.

use crate::ranges::{count, within};
use crate::slot_row::{MOST_SEQUENCE, SequenceIndex, SlotRow};
use crate::span::{Span, Spans};
use crate::{Range, SlotCounts, SlotLook, SlotStatus};
use holdfast_base::{Age, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{EntrySummary, SlotState, TableEntry};
use std::ops::{Deref, DerefMut};

/// Where a slot stands in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing of worth in it.
    Free,
    /// Named in the runway: what was in it counts as expired.
    Runway,
    /// Given to a sealed slot whose write has not completed.
    Writing,
    /// Data.
    Data,
    /// Kept out of use while work in the background overwrites it.
    Locked,
    /// Failed twice.
    Bad,
}

/// What a slot covers: enough to decide whether a range by time touches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Earliest arrival of a first byte.
    pub first: Timestamp,
    /// Latest arrival.
    pub last: Timestamp,
    /// Least event time (`Timestamp::MAX`: none).
    pub event_first: Timestamp,
    /// Greatest event time (`Timestamp::MIN`: none).
    pub event_last: Timestamp,
    /// Its streams, folded to 64 bits by id.
    pub streams: u64,
    /// How many ages before this slot's the earliest element began that ends here, at least; 0: all of them began here.
    pub back: u64,
}

impl Bounds {
    /// Bounds of nothing.
    pub const NONE: Self = Self {
        first: Timestamp::MAX,
        last: Timestamp::MIN,
        event_first: Timestamp::MAX,
        event_last: Timestamp::MIN,
        streams: 0,
        back: 0,
    };

    /// The bounds of what a slot holds of its streams.
    pub fn of(entries: impl IntoIterator<Item = EntrySummary>) -> Self {
        let mut bounds = Self::NONE;
        for entry in entries {
            if let Some((first, last)) = entry.arrivals {
                bounds.add(entry.stream, first, last, entry.events);
                bounds.back = bounds.back.max(entry.back);
            }
        }
        bounds
    }

    /// The bit of a stream.
    pub fn bit(stream: StreamId) -> u64 {
        1 << (stream.0 % 64)
    }

    /// Takes in what one stream has.
    pub fn add(
        &mut self,
        stream: StreamId,
        first: Timestamp,
        last: Timestamp,
        event: Option<(Timestamp, Timestamp)>,
    ) {
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        if let Some((least, greatest)) = event {
            self.event_first = self.event_first.min(least);
            self.event_last = self.event_last.max(greatest);
        }
        self.streams |= Self::bit(stream);
    }

    /// Whether anything of `streams` (none: all) can be here.
    pub fn has(&self, streams: &[StreamId]) -> bool {
        let named = streams.is_empty() || streams.iter().any(|s| self.streams & Self::bit(*s) != 0);
        named && self.first <= self.last
    }

    /// Whether anything in `range` of `streams` (none: all) can be here. Ordinals are not looked at.
    pub fn touches(&self, streams: &[StreamId], range: &Range) -> bool {
        let (first, last) =
            if range.by_event { (self.event_first, self.event_last) } else { (self.first, self.last) };
        self.has(streams) && first <= last && first <= range.to && range.from <= last
    }
}

/// One slot, as everybody sees it.
#[allow(clippy::struct_excessive_bools, reason = "independent marks, not a state")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) sequence: Sequence,
    pub(crate) age: Age,
    pub(crate) bounds: Bounds,
    pub(crate) held: u16,
    pub(crate) state: State,
    pub(crate) damaged: bool,
    /// Kept from expiring by work in the background.
    pub(crate) locked: bool,
    /// So many queries pin it: it expires when nothing else may.
    pub(crate) pins: u8,
    pub(crate) purged: bool,
    /// Something was written here once; the table never forgets it, whatever becomes of the slot.
    pub(crate) written: bool,
    /// Whether `bounds` are those of the data (after a restart they are read behind capture).
    pub(crate) known: bool,
}

impl Slot {
    pub(crate) const FREE: Self = Self {
        sequence: Sequence(0),
        age: Age(0),
        bounds: Bounds::NONE,
        held: 0,
        state: State::Free,
        damaged: false,
        locked: false,
        pins: 0,
        purged: false,
        written: false,
        known: true,
    };

    /// Whether work in the background keeps its data from expiring, or a query.
    pub(crate) fn is_kept(&self) -> bool {
        self.locked || self.pins > 0
    }

    /// Whether it may be overwritten, if need be.
    fn may_go(&self) -> bool {
        self.state == State::Free || (self.state == State::Data && self.held == 0 && !self.locked)
    }

    /// When it expires, relative to others that may go.
    pub(crate) fn turn(&self) -> (Age, Sequence) {
        (if self.state == State::Free { Age(0) } else { self.age }, self.sequence)
    }

    /// When its data arrived, as far as that is known.
    fn span(&self) -> Span {
        let Bounds { first, last, .. } = self.bounds;
        if self.state == State::Data && self.known && first <= last {
            Span { first, last }
        } else {
            Span::NONE
        }
    }
}

/// Counts a slot in or out.
fn tally(counts: &mut SlotCounts, slot: &Slot, change: impl Fn(&mut u32)) {
    change(match slot.state {
        State::Free => &mut counts.free,
        State::Runway => &mut counts.runway,
        State::Writing => &mut counts.writing,
        State::Locked => &mut counts.pinned,
        State::Data if slot.held > 0 => &mut counts.held,
        State::Data if slot.is_kept() => &mut counts.pinned,
        State::Data => &mut counts.live,
        State::Bad => &mut counts.bad,
    });
    if slot.damaged && slot.state == State::Data {
        change(&mut counts.damaged);
    }
    if !slot.written && slot.state != State::Bad {
        change(&mut counts.unwritten);
    }
}

/// All slots of a lane. What is asked often (where a sequence is, how many slots there are of each kind, when their data
/// arrived) is kept up to date with every change.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    rows: Vec<SlotRow>,
    /// How many slots queries pin.
    pinned: u32,
    index: SequenceIndex,
    counts: SlotCounts,
    spans: Spans,
    /// How often a slot has become data, or ceased to be.
    changes: u64,
}

/// A slot that is being changed: what becomes of it counts when this is dropped.
pub(crate) struct SlotMut<'t> {
    table: &'t mut Table,
    no: SlotNo,
    slot: Slot,
}

impl Deref for SlotMut<'_> {
    type Target = Slot;

    fn deref(&self) -> &Slot {
        &self.slot
    }
}

impl DerefMut for SlotMut<'_> {
    fn deref_mut(&mut self) -> &mut Slot {
        &mut self.slot
    }
}

impl Drop for SlotMut<'_> {
    fn drop(&mut self) {
        self.table.set(self.no, &self.slot);
    }
}

impl Table {
    pub(crate) fn new(slots: u32) -> Self {
        let counts = SlotCounts { total: slots, free: slots, unwritten: slots, ..SlotCounts::default() };
        let mut spans = Spans::default();
        spans.grow(slots as usize);
        let rows = vec![SlotRow::pack(&Slot::FREE); slots as usize];
        Self { rows, pinned: 0, index: SequenceIndex::new(slots), counts, spans, changes: 0 }
    }

    pub(crate) fn grow(&mut self, slots: u32) {
        let more = slots.saturating_sub(self.len());
        if more == 0 {
            return;
        }
        // No more than is wanted: a ring grows seldom, and its memory is told beforehand.
        self.rows.reserve_exact(more as usize);
        self.rows.resize(slots as usize, SlotRow::pack(&Slot::FREE));
        self.counts.total += more;
        self.counts.free += more;
        self.counts.unwritten += more;
        self.spans.grow(slots as usize);
        self.index = SequenceIndex::new(slots);
        for no in (0..slots).map(SlotNo) {
            let slot = self.get(no);
            if slot.state == State::Data {
                self.index.insert(slot.sequence, no);
            }
        }
    }

    /// Rises whenever a slot becomes data, or ceases to be.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }

    pub(crate) fn len(&self) -> u32 {
        self.rows.len() as u32
    }

    pub(crate) fn get(&self, slot: SlotNo) -> Slot {
        self.rows[slot.0 as usize].unpack()
    }

    pub(crate) fn get_mut(&mut self, no: SlotNo) -> SlotMut<'_> {
        let slot = self.get(no);
        SlotMut { table: self, no, slot }
    }

    fn set(&mut self, no: SlotNo, slot: &Slot) {
        let before = self.get(no);
        let written = before.written || slot.written || slot.purged || slot.state == State::Data;
        let key = |slot: &Slot| (slot.state == State::Data).then_some(slot.sequence);
        // No ring gets beyond; a forged header may say so.
        let sequence = slot.sequence.min(MOST_SEQUENCE);
        let slot = Slot { sequence, written, ..*slot };
        // Who pinned what was here before pins nothing of what is here now.
        let pins = if key(&before) == key(&slot) { slot.pins } else { 0 };
        let slot = &Slot { pins, ..slot };
        if key(&before) != key(slot) {
            self.changes += 1;
            if let Some(sequence) = key(&before) {
                self.index.remove(sequence, no, |no| self.rows[no.0 as usize].sequence());
            }
            if let Some(sequence) = key(slot) {
                self.index.insert(sequence, no);
            }
        }
        tally(&mut self.counts, &before, |n| *n -= 1);
        tally(&mut self.counts, slot, |n| *n += 1);
        self.rows[no.0 as usize] = SlotRow::pack(slot);
        self.pinned = self.pinned + u32::from(slot.pins > 0) - u32::from(before.pins > 0);
        let rows = &self.rows;
        let span = |at: usize| rows.get(at).map(|row| row.unpack().span());
        self.spans.change(no.0 as usize, before.span(), slot.span(), span);
    }

    /// Earliest and latest arrival of the data, as far as known.
    pub(crate) fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.spans.all().ends()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotNo, Slot)> {
        self.rows.iter().enumerate().map(|(at, row)| (SlotNo(at as u32), row.unpack()))
    }

    /// How many slots queries pin.
    pub(crate) fn pinned(&self) -> u32 {
        self.pinned
    }

    /// The slot that holds `sequence` as data.
    pub(crate) fn find(&self, sequence: Sequence) -> Option<SlotNo> {
        self.index.find(sequence, |no| self.rows[no.0 as usize].sequence())
    }

    /// The slots whose data lies in ranges of sequences that are in order and apart: a look at every sequence, or where there
    /// are fewer slots, at every slot.
    pub(crate) fn among(&self, ranges: &[(Sequence, Sequence)]) -> Vec<SlotNo> {
        if count(ranges) <= u64::from(self.len()) {
            let all = ranges.iter().flat_map(|(first, last)| (first.0..=last.0).map(Sequence));
            return all.filter_map(|sequence| self.find(sequence)).collect();
        }
        let named = |slot: &Slot| slot.state == State::Data && within(ranges, slot.sequence);
        self.iter().filter(|(_, slot)| named(slot)).map(|(no, _)| no).collect()
    }

    /// How many looks at a range of sequences, first and last, are needed to see all slots in it: at every sequence, or where there are fewer slots, at every slot.
    fn looks(&self, first: Sequence, last: Sequence) -> u64 {
        let more = if first <= last { last.0 - first.0 } else { return 0 };
        more.saturating_add(1).min(u64::from(self.len()))
    }

    fn look_in(&self, look: u64, first: Sequence, last: Sequence) -> Option<SlotNo> {
        if last.0 - first.0 < u64::from(self.len()) {
            return self.find(Sequence(first.0 + look));
        }
        let slot = self.get(SlotNo(look as u32));
        let within = slot.state == State::Data && first <= slot.sequence && slot.sequence <= last;
        within.then_some(SlotNo(look as u32))
    }

    /// Counts one hold more, or fewer, at every slot that it keeps.
    pub(crate) fn count_hold(&mut self, sequences: &[(Sequence, Sequence)], more: bool) {
        for (first, last) in sequences {
            for look in 0..self.looks(*first, *last) {
                if let Some(no) = self.look_in(look, *first, *last) {
                    let mut slot = self.get_mut(no);
                    slot.held = if more { slot.held.saturating_add(1) } else { slot.held.saturating_sub(1) };
                }
            }
        }
    }

    /// The next `count` slots to overwrite, in that order: free ones in place order, then the oldest by age that
    /// nothing holds, and those that queries pin when there are no others. `out` is cleared first and never grows
    /// beyond `count`.
    pub(crate) fn victims(&self, count: usize, out: &mut Vec<SlotNo>) {
        self.first(count, Slot::may_go, out);
    }

    /// Those of them that queries pin, in their order.
    pub(crate) fn pinned_victims(&self, count: usize, out: &mut Vec<SlotNo>) {
        self.first(count, |slot| slot.pins > 0 && slot.may_go(), out);
    }

    fn first(&self, count: usize, wanted: impl Fn(&Slot) -> bool, out: &mut Vec<SlotNo>) {
        out.clear();
        if count == 0 {
            return;
        }
        let key = |no: SlotNo| {
            let slot = self.get(no);
            (slot.pins > 0, slot.turn(), no)
        };
        for (no, slot) in self.iter() {
            if !wanted(&slot) || (out.len() == count && out.last().is_some_and(|last| key(*last) < key(no))) {
                continue;
            }
            if out.len() == count {
                out.pop();
            }
            let at = out.partition_point(|other| key(*other) < key(no));
            out.insert(at, no);
        }
    }

    /// Names a slot to be overwritten. When its turn was is remembered until then.
    pub(crate) fn name(&mut self, no: SlotNo) {
        let Slot { sequence, age, .. } = self.get(no);
        *self.get_mut(no) = Slot { state: State::Runway, sequence, age, ..Slot::FREE };
    }

    /// Slots by state; `holdable` and `promised` are left 0: the ring's to say.
    pub(crate) fn counts(&self) -> SlotCounts {
        self.counts
    }

    pub(crate) fn look(&self, no: SlotNo) -> SlotStatus {
        let slot = self.get(no);
        let look = match slot.state {
            State::Free => SlotLook::Free,
            State::Runway => SlotLook::Runway,
            State::Writing => SlotLook::Writing,
            State::Locked => SlotLook::Pinned,
            State::Bad => SlotLook::Bad,
            State::Data if slot.damaged => SlotLook::Damaged,
            State::Data if slot.held > 0 => SlotLook::Held,
            State::Data if slot.is_kept() => SlotLook::Pinned,
            State::Data => SlotLook::Live,
        };
        let data = slot.state == State::Data;
        let shown = data && slot.known && slot.bounds.first <= slot.bounds.last;
        SlotStatus {
            slot: no,
            look,
            sequence: if data { slot.sequence } else { Sequence(0) },
            age: if data { slot.age } else { Age(0) },
            first: shown.then_some(slot.bounds.first),
            last: shown.then_some(slot.bounds.last),
        }
    }

    /// The entry that a snapshot keeps. Slots that are being written or named count as free there: the runway
    /// record tells of them.
    pub(crate) fn entry(&self, no: SlotNo) -> TableEntry {
        let slot = self.get(no);
        let state = match slot.state {
            State::Data => SlotState::Data,
            State::Bad => SlotState::Bad,
            State::Free | State::Runway | State::Writing | State::Locked => SlotState::Free,
        };
        let (sequence, age) =
            if state == SlotState::Data { (slot.sequence, slot.age) } else { (Sequence(0), Age(0)) };
        TableEntry { sequence, age, state, damaged: slot.damaged, purged: slot.purged }
    }

    /// Takes over a snapshot's entry; bounds are unknown until the slot's summary is read.
    pub(crate) fn set_entry(&mut self, no: SlotNo, entry: &TableEntry) {
        let state = match entry.state {
            SlotState::Free => State::Free,
            SlotState::Data => State::Data,
            SlotState::Bad => State::Bad,
        };
        *self.get_mut(no) = Slot {
            sequence: entry.sequence,
            age: entry.age,
            state,
            damaged: entry.damaged,
            purged: entry.purged,
            known: state != State::Data,
            ..Slot::FREE
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot_row::BYTES_A_SLOT;

    #[test]
    fn counts_and_places_follow_every_change() {
        let mut table = Table::new(4);
        data(&mut table, 0, 10, 0);
        data(&mut table, 1, 11, 1);
        table.get_mut(SlotNo(1)).damaged = true;
        table.get_mut(SlotNo(2)).state = State::Bad;
        table.grow(6);
        let counts = SlotCounts {
            total: 6,
            free: 3,
            live: 1,
            held: 1,
            bad: 1,
            damaged: 1,
            unwritten: 3,
            ..SlotCounts::default()
        };
        assert_eq!(table.counts(), counts);
        assert_eq!((table.find(Sequence(11)), table.find(Sequence(12))), (Some(SlotNo(1)), None));
        data(&mut table, 1, 12, 0);
        assert_eq!((table.find(Sequence(11)), table.find(Sequence(12))), (None, Some(SlotNo(1))));
        assert_eq!(table.counts(), SlotCounts { live: 2, held: 0, damaged: 0, ..counts });
    }

    // Promise 8: what a forged header says of its sequence harms nobody, however often it is read.
    #[test]
    fn a_sequence_that_no_ring_gets_to_is_found_and_forgotten_like_others() {
        let mut table = Table::new(2);
        for _ in 0..10 {
            data(&mut table, 0, u64::MAX, 0);
            assert_eq!((table.find(MOST_SEQUENCE), table.find(Sequence(7))), (Some(SlotNo(0)), None));
            data(&mut table, 0, 7, 0);
            assert_eq!((table.find(MOST_SEQUENCE), table.find(Sequence(7))), (None, Some(SlotNo(0))));
        }
    }

    #[test]
    fn a_table_takes_the_memory_that_is_told_of_it_however_it_became_so_large() {
        const SLOTS: u32 = 16_384;
        let mut grown = Table::new(9000);
        grown.grow(SLOTS);
        for table in [Table::new(SLOTS), grown] {
            let rows = table.rows.capacity() * size_of::<SlotRow>();
            let spans = table.spans.bytes();
            assert!(spans <= SLOTS as usize / 32, "{spans}");
            assert_eq!(rows + table.index.bytes(), BYTES_A_SLOT * SLOTS as usize);
        }
    }

    // Promise 1: a file has a place on its device for what was written once, and for nothing else.
    #[test]
    fn a_slot_that_was_written_stays_so_whatever_becomes_of_it() {
        let mut table = Table::new(3);
        data(&mut table, 0, 10, 0);
        *table.get_mut(SlotNo(0)) = Slot { state: State::Runway, ..Slot::FREE };
        *table.get_mut(SlotNo(1)) = Slot { state: State::Runway, ..Slot::FREE };
        assert_eq!((table.counts().runway, table.counts().unwritten), (2, 2));
        table.get_mut(SlotNo(1)).state = State::Writing;
        assert_eq!(table.counts().unwritten, 2, "it is not there yet");
        data(&mut table, 1, 11, 0);
        *table.get_mut(SlotNo(1)) = Slot::FREE;
        assert_eq!(table.counts().unwritten, 1);
        // After a restart this is all that is known of a slot that a purge has overwritten.
        let purged = TableEntry {
            sequence: Sequence(0),
            age: Age(0),
            state: SlotState::Free,
            damaged: false,
            purged: true,
        };
        table.set_entry(SlotNo(2), &purged);
        assert_eq!(table.counts().unwritten, 0);
        table.grow(5);
        *table.get_mut(SlotNo(4)) = Slot { state: State::Bad, ..Slot::FREE };
        assert_eq!(table.counts().unwritten, 1, "nothing is ever written to a bad one");
    }

    #[test]
    fn a_hold_is_counted_where_its_sequences_are_however_wide_it_says_they_lie() {
        let mut table = Table::new(4);
        data(&mut table, 0, 10, 0);
        data(&mut table, 3, 12, 0);
        let everything = [(Sequence(0), Sequence(u64::MAX))];
        for ranges in [&[(Sequence(10), Sequence(10)), (Sequence(12), Sequence(13))][..], &everything] {
            assert_eq!(table.among(ranges), [SlotNo(0), SlotNo(3)]);
            table.count_hold(ranges, true);
            assert_eq!((table.counts().held, table.get(SlotNo(3)).held), (2, 1));
            table.count_hold(ranges, false);
            assert_eq!(table.counts().held, 0);
        }
        let nothing = [(Sequence(9), Sequence(8)), (Sequence(11), Sequence(11))];
        table.count_hold(&nothing, true);
        assert_eq!((table.counts().held, table.among(&nothing)), (0, Vec::new()));
    }

    fn data(table: &mut Table, no: u32, age: u64, held: u16) {
        *table.get_mut(SlotNo(no)) =
            Slot { sequence: Sequence(age), age: Age(age), held, state: State::Data, ..Slot::FREE };
    }

    #[test]
    fn victims_are_free_slots_then_the_oldest_that_nothing_holds_then_what_is_pinned() {
        let mut table = Table::new(6);
        data(&mut table, 0, 12, 0);
        data(&mut table, 1, 10, 1);
        data(&mut table, 2, 11, 0);
        data(&mut table, 4, 9, 0);
        table.get_mut(SlotNo(5)).state = State::Bad;
        let mut out = Vec::new();
        table.victims(3, &mut out);
        assert_eq!(out, [SlotNo(3), SlotNo(4), SlotNo(2)]);
        table.victims(99, &mut out);
        assert_eq!(out, [SlotNo(3), SlotNo(4), SlotNo(2), SlotNo(0)]);
        for pinned in [4, 1, 2] {
            table.get_mut(SlotNo(pinned)).pins = 1;
        }
        assert_eq!((table.pinned(), table.counts().pinned, table.counts().held), (3, 2, 1));
        table.victims(3, &mut out);
        assert_eq!(out, [SlotNo(3), SlotNo(0), SlotNo(4)]);
        table.victims(99, &mut out);
        assert_eq!(out, [SlotNo(3), SlotNo(0), SlotNo(4), SlotNo(2)]);
        table.pinned_victims(99, &mut out);
        assert_eq!(out, [SlotNo(4), SlotNo(2)], "what is held, too, is in nobody's way");
    }

    // Promise 3: what was pinned is the data, not the place.
    #[test]
    fn a_pin_ends_with_the_data_and_its_turn_is_known_until_something_is_written() {
        let mut table = Table::new(2);
        data(&mut table, 0, 12, 0);
        table.get_mut(SlotNo(0)).pins = 2;
        table.get_mut(SlotNo(0)).damaged = true;
        assert_eq!((table.pinned(), table.look(SlotNo(0)).look), (1, SlotLook::Damaged));
        table.name(SlotNo(0));
        let (named, shown) = (table.get(SlotNo(0)), table.look(SlotNo(0)));
        assert_eq!((table.pinned(), named.pins, named.turn()), (0, 0, (Age(12), Sequence(12))));
        assert_eq!((shown.look, shown.sequence, shown.age), (SlotLook::Runway, Sequence(0), Age(0)));
        assert_eq!((table.find(Sequence(12)), table.counts().pinned), (None, 0));
        data(&mut table, 0, 13, 0);
        assert_eq!(table.get(SlotNo(0)).pins, 0);
        table.get_mut(SlotNo(0)).pins = 1;
        table.grow(40);
        assert_eq!((table.pinned(), table.get(SlotNo(0)).pins, table.get(SlotNo(39)).pins), (1, 1, 0));
    }

    #[test]
    fn bounds_touch_a_range_by_arrival_or_event_time_and_stream() {
        let mut bounds = Bounds::NONE;
        assert!(!bounds.touches(&[], &Range::ALL));
        bounds.add(StreamId(3), Timestamp(10), Timestamp(20), Some((Timestamp(100), Timestamp(200))));
        let range =
            |from, to, by_event| Range { from: Timestamp(from), to: Timestamp(to), by_event, ordinals: None };
        assert!(bounds.touches(&[], &range(20, 30, false)));
        assert!(!bounds.touches(&[], &range(21, 30, false)));
        assert!(bounds.touches(&[StreamId(3)], &range(150, 160, true)));
        assert!(!bounds.touches(&[StreamId(4)], &Range::ALL));
    }
}
