//! The slot table: what is in every slot, and which goes next. Pure bookkeeping, 64 bytes a slot.

use crate::{Range, SlotCounts, SlotLook, SlotStatus};
use holdfast_base::{Age, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{SlotState, TableEntry};

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
    Pinned,
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
}

impl Bounds {
    /// Bounds of nothing.
    pub const NONE: Self = Self {
        first: Timestamp::MAX,
        last: Timestamp::MIN,
        event_first: Timestamp::MAX,
        event_last: Timestamp::MIN,
        streams: 0,
    };

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

    /// Whether anything in `range` of `streams` (none: all) can be here. Ordinals are not looked at.
    pub fn touches(&self, streams: &[StreamId], range: &Range) -> bool {
        let named = streams.is_empty() || streams.iter().any(|s| self.streams & Self::bit(*s) != 0);
        let (first, last) =
            if range.by_event { (self.event_first, self.event_last) } else { (self.first, self.last) };
        named && first <= last && first <= range.to && range.from <= last
    }
}

/// One slot's row in the table.
#[allow(clippy::struct_excessive_bools, reason = "independent marks, not a state")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) sequence: Sequence,
    pub(crate) age: Age,
    pub(crate) bounds: Bounds,
    pub(crate) held: u16,
    pub(crate) state: State,
    pub(crate) damaged: bool,
    /// Kept from expiring by work in the background.
    pub(crate) pinned: bool,
    pub(crate) purged: bool,
    /// Whether `bounds` are those of the data (after a restart they are read behind capture).
    pub(crate) known: bool,
}

const _: () = assert!(size_of::<Slot>() <= 64, "the memory bound says 64 bytes a slot");

impl Slot {
    pub(crate) const FREE: Self = Self {
        sequence: Sequence(0),
        age: Age(0),
        bounds: Bounds::NONE,
        held: 0,
        state: State::Free,
        damaged: false,
        pinned: false,
        purged: false,
        known: true,
    };
}

/// All slots of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    slots: Vec<Slot>,
}

impl Table {
    pub(crate) fn new(slots: u32) -> Self {
        Self { slots: vec![Slot::FREE; slots as usize] }
    }

    pub(crate) fn grow(&mut self, slots: u32) {
        self.slots.resize((slots as usize).max(self.slots.len()), Slot::FREE);
    }

    pub(crate) fn len(&self) -> u32 {
        self.slots.len() as u32
    }

    pub(crate) fn get(&self, slot: SlotNo) -> &Slot {
        &self.slots[slot.0 as usize]
    }

    pub(crate) fn get_mut(&mut self, slot: SlotNo) -> &mut Slot {
        &mut self.slots[slot.0 as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SlotNo, &Slot)> {
        self.slots.iter().enumerate().map(|(at, slot)| (SlotNo(at as u32), slot))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (SlotNo, &mut Slot)> {
        self.slots.iter_mut().enumerate().map(|(at, slot)| (SlotNo(at as u32), slot))
    }

    /// The slot that holds `sequence` as data.
    pub(crate) fn find(&self, sequence: Sequence) -> Option<SlotNo> {
        self.iter().find(|(_, s)| s.state == State::Data && s.sequence == sequence).map(|(no, _)| no)
    }

    /// The next `count` slots to overwrite, in that order: free ones in place order, then the oldest by age that
    /// nothing holds. `out` is cleared first and never grows beyond `count`.
    pub(crate) fn victims(&self, count: usize, out: &mut Vec<SlotNo>) {
        out.clear();
        if count == 0 {
            return;
        }
        let key = |no: SlotNo| {
            let slot = self.get(no);
            (if slot.state == State::Free { 0 } else { slot.age.0 }, slot.sequence, no)
        };
        for (no, slot) in self.iter() {
            let takeable =
                slot.state == State::Free || (slot.state == State::Data && slot.held == 0 && !slot.pinned);
            if !takeable || (out.len() == count && out.last().is_some_and(|last| key(*last) < key(no))) {
                continue;
            }
            if out.len() == count {
                out.pop();
            }
            let at = out.partition_point(|other| key(*other) < key(no));
            out.insert(at, no);
        }
    }

    /// Slots by state; `holdable` is left 0: the ring's to say.
    pub(crate) fn counts(&self) -> SlotCounts {
        let mut counts = SlotCounts { total: self.len(), ..SlotCounts::default() };
        for slot in &self.slots {
            match slot.state {
                State::Free => counts.free += 1,
                State::Runway => counts.runway += 1,
                State::Writing => counts.writing += 1,
                State::Pinned => counts.pinned += 1,
                State::Data if slot.held > 0 => counts.held += 1,
                State::Data if slot.pinned => counts.pinned += 1,
                State::Data => counts.live += 1,
                State::Bad => counts.bad += 1,
            }
            counts.damaged += u32::from(slot.damaged && slot.state == State::Data);
        }
        counts
    }

    pub(crate) fn look(&self, no: SlotNo) -> SlotStatus {
        let slot = self.get(no);
        let look = match slot.state {
            State::Free => SlotLook::Free,
            State::Runway => SlotLook::Runway,
            State::Writing => SlotLook::Writing,
            State::Pinned => SlotLook::Pinned,
            State::Bad => SlotLook::Bad,
            State::Data if slot.damaged => SlotLook::Damaged,
            State::Data if slot.held > 0 => SlotLook::Held,
            State::Data if slot.pinned => SlotLook::Pinned,
            State::Data => SlotLook::Live,
        };
        let shown = slot.state == State::Data && slot.known && slot.bounds.first <= slot.bounds.last;
        SlotStatus {
            slot: no,
            look,
            sequence: slot.sequence,
            age: slot.age,
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
            State::Free | State::Runway | State::Writing | State::Pinned => SlotState::Free,
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

    fn data(table: &mut Table, no: u32, age: u64, held: u16) {
        *table.get_mut(SlotNo(no)) =
            Slot { sequence: Sequence(age), age: Age(age), held, state: State::Data, ..Slot::FREE };
    }

    #[test]
    fn victims_are_free_slots_then_the_oldest_that_nothing_holds() {
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
