//! Packed rows of the slot table and its index of sequences: 56 and 8 bytes a slot, 64 together. (Each block
//! of slots adds the span of its times, a 32nd of a byte a slot.) Bits only; `table` gives them meaning.

use crate::table::{Bounds, Slot, State};
use holdfast_base::{Age, Sequence, SlotNo, Timestamp};

/// Flags beside the state in a row's mark.
const DAMAGED: u8 = 1 << 3;
const LOCKED: u8 = 1 << 4;
const PURGED: u8 = 1 << 5;
const KNOWN: u8 = 1 << 6;
const WRITTEN: u8 = 1 << 7;

/// The most that a copy's age may lie below its sequence: 2³² slots of a mebibyte are 4 PiB, written while a hold stood.
const MOST_YOUNGER: u64 = u32::MAX as u64;

/// The bits of a sequence in a row; pins are in the others. 2⁵⁶ slots of a mebibyte are more than was ever written anywhere.
const SEQUENCE_BITS: u32 = 56;
/// The largest sequence that a row has.
pub(crate) const MOST_SEQUENCE: Sequence = Sequence((1 << SEQUENCE_BITS) - 1);

/// One slot's row in the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotRow {
    /// The sequence, and above it the pins.
    sequence: u64,
    arrivals: (Timestamp, Timestamp),
    events: (Timestamp, Timestamp),
    streams: u64,
    /// How far the age lies below the sequence.
    younger: u32,
    held: u16,
    /// How far the bounds reach back, rounded up.
    back: u8,
    /// State and flags.
    mark: u8,
}

/// Memory of a slot in the table, as docs/operations.md has it.
pub(crate) const BYTES_A_SLOT: usize = 64;

const _: () = assert!(size_of::<SlotRow>() + 2 * size_of::<u32>() <= BYTES_A_SLOT);

/// A number in eight bits: exact below 16, then the next one that three bits behind the first tell. What is too large for that
/// is as large as can be.
fn rounded_up(number: u64) -> u8 {
    if number < 16 {
        return number as u8;
    }
    let exponent = u64::from(number.ilog2());
    let eighths = number.div_ceil(1 << (exponent - 3));
    (16 + (exponent - 4) * 8 + (eighths - 8)).min(u8::MAX.into()) as u8
}

fn number_of(rounded: u8) -> u64 {
    match rounded {
        0..16 => rounded.into(),
        u8::MAX => u64::MAX,
        _ => u64::from(8 + (rounded - 16) % 8) << (1 + (rounded - 16) / 8),
    }
}

impl SlotRow {
    pub(crate) fn pack(slot: &Slot) -> Self {
        let younger = slot.sequence.0.saturating_sub(slot.age.0).min(MOST_YOUNGER);
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        Self {
            sequence: slot.sequence.min(MOST_SEQUENCE).0 | u64::from(slot.pins) << SEQUENCE_BITS,
            arrivals: (slot.bounds.first, slot.bounds.last),
            events: (slot.bounds.event_first, slot.bounds.event_last),
            streams: slot.bounds.streams,
            younger: younger as u32,
            held: slot.held,
            back: rounded_up(slot.bounds.back),
            mark: slot.state as u8
                | flag(slot.damaged, DAMAGED)
                | flag(slot.locked, LOCKED)
                | flag(slot.purged, PURGED)
                | flag(slot.written, WRITTEN)
                | flag(slot.known, KNOWN),
        }
    }

    pub(crate) fn sequence(&self) -> Sequence {
        Sequence(self.sequence & MOST_SEQUENCE.0)
    }

    pub(crate) fn unpack(&self) -> Slot {
        let sequence = self.sequence();
        let bounds = Bounds {
            first: self.arrivals.0,
            last: self.arrivals.1,
            event_first: self.events.0,
            event_last: self.events.1,
            streams: self.streams,
            back: number_of(self.back),
        };
        Slot {
            sequence,
            age: Age(sequence.0 - u64::from(self.younger)),
            bounds,
            held: self.held,
            state: match self.mark & 7 {
                1 => State::Runway,
                2 => State::Writing,
                3 => State::Data,
                4 => State::Locked,
                5 => State::Bad,
                _ => State::Free,
            },
            damaged: self.mark & DAMAGED != 0,
            locked: self.mark & LOCKED != 0,
            pins: (self.sequence >> SEQUENCE_BITS) as u8,
            purged: self.mark & PURGED != 0,
            written: self.mark & WRITTEN != 0,
            known: self.mark & KNOWN != 0,
        }
    }
}

/// An empty place of the index.
const EMPTY: u32 = u32::MAX;

/// Where every sequence is: slot numbers in a table of twice as many places, each at the place that its sequence hashes to
/// or, where others are, soon behind it. It asks the caller which sequence a slot has, and allocates only when made.
#[derive(Clone, Debug)]
pub(crate) struct SequenceIndex {
    places: Vec<u32>,
}

impl SequenceIndex {
    pub(crate) fn new(slots: u32) -> Self {
        Self { places: vec![EMPTY; (2 * slots as usize).max(2)] }
    }

    /// Memory that it takes.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }

    /// Where a sequence belongs: consecutive ones far apart, so that old ones among them are found as soon.
    fn home(&self, sequence: Sequence) -> usize {
        let mixed = sequence.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        ((mixed * self.places.len() as u64) >> 32) as usize
    }

    fn next(&self, place: usize) -> usize {
        if place + 1 == self.places.len() { 0 } else { place + 1 }
    }

    /// The place of a slot that has `sequence` and is `right`.
    fn place(
        &self,
        sequence: Sequence,
        of: impl Fn(SlotNo) -> Sequence,
        right: impl Fn(SlotNo) -> bool,
    ) -> Option<usize> {
        let mut place = self.home(sequence);
        // Half of the places are empty: one comes soon.
        while self.places[place] != EMPTY {
            let no = SlotNo(self.places[place]);
            if of(no) == sequence && right(no) {
                return Some(place);
            }
            place = self.next(place);
        }
        None
    }

    pub(crate) fn find(&self, sequence: Sequence, of: impl Fn(SlotNo) -> Sequence) -> Option<SlotNo> {
        self.place(sequence, of, |_| true).map(|place| SlotNo(self.places[place]))
    }

    /// Enters a slot, which must not be there yet.
    pub(crate) fn insert(&mut self, sequence: Sequence, no: SlotNo) {
        let mut place = self.home(sequence);
        while self.places[place] != EMPTY {
            place = self.next(place);
        }
        self.places[place] = no.0;
    }

    /// Takes a slot out; those behind it move up, so that no search ends too soon.
    pub(crate) fn remove(&mut self, sequence: Sequence, no: SlotNo, of: impl Fn(SlotNo) -> Sequence) {
        let Some(mut gap) = self.place(sequence, &of, |other| other == no) else {
            return;
        };
        let mut at = self.next(gap);
        while self.places[at] != EMPTY {
            let home = self.home(of(SlotNo(self.places[at])));
            // It may move to the gap unless its home lies between the two.
            let between = if gap < at { gap < home && home <= at } else { gap < home || home <= at };
            if !between {
                self.places[gap] = self.places[at];
                gap = at;
            }
            at = self.next(at);
        }
        self.places[gap] = EMPTY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_row_says_what_the_slot_was(
            numbers in any::<([i64; 4], u64, u16, u8, u8)>(),
            (sequence, younger) in (0..=MOST_SEQUENCE.0).prop_flat_map(|s| (Just(s), 0..=s.min(MOST_YOUNGER))),
            state in 0..6usize,
            flags in any::<[bool; 5]>(),
        ) {
            let ([a, b, c, d], streams, held, back, pins) = numbers;
            let bounds = Bounds {
                first: Timestamp(a),
                last: Timestamp(b),
                event_first: Timestamp(c),
                event_last: Timestamp(d),
                streams,
                back: number_of(back),
            };
            let states =
                [State::Free, State::Runway, State::Writing, State::Data, State::Locked, State::Bad];
            let [damaged, locked, purged, written, known] = flags;
            let (sequence, age, state) = (Sequence(sequence), Age(sequence - younger), states[state]);
            let slot =
                Slot { sequence, age, bounds, held, state, damaged, locked, pins, purged, written, known };
            prop_assert_eq!(SlotRow::pack(&slot).unpack(), slot);
        }

        #[test]
        fn what_is_rounded_up_is_never_less_and_an_eighth_more_at_most(bits in 0..64u32, number in any::<u64>()) {
            let number = number >> bits;
            let rounded = number_of(rounded_up(number));
            prop_assert!(rounded >= number);
            prop_assert!(number > 1 << 33 || rounded - number <= number / 8, "{number} is {rounded}");
            prop_assert!(number >= 16 || rounded == number);
        }

        /// Sequences come mostly in order, and some stay long: as in a ring with holds.
        #[test]
        fn the_index_finds_what_a_map_finds(
            slots in 1..40u32,
            steps in proptest::collection::vec((0..40u32, 1..4u64, any::<bool>()), 0..300),
        ) {
            let mut index = SequenceIndex::new(slots);
            let mut sequences = vec![Sequence(0); slots as usize];
            let mut map = BTreeMap::new();
            let mut sequence = 0;
            for (no, ahead, filled) in steps {
                let no = no % slots;
                let before = sequences[no as usize];
                index.remove(before, SlotNo(no), |no| sequences[no.0 as usize]);
                map.remove(&before);
                if filled {
                    sequence += ahead;
                    sequences[no as usize] = Sequence(sequence);
                    index.insert(Sequence(sequence), SlotNo(no));
                    map.insert(Sequence(sequence), SlotNo(no));
                }
                for asked in (0..=sequence + 1).map(Sequence) {
                    let found = index.find(asked, |no| sequences[no.0 as usize]);
                    prop_assert_eq!(found, map.get(&asked).copied());
                }
            }
        }
    }
}
