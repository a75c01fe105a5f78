//! Time span of all slots' data, kept up to date with every change, so that a query looks at blocks of slots
//! and not at every slot. The table decides which slots count.

use holdfast_base::Timestamp;

/// Slots of a block: what a change costs at worst, a look at each of them, and how few blocks there are to ask.
const BLOCK: usize = 512;

/// Earliest and latest arrival of one slot or of many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
}

impl Span {
    /// Of nothing.
    pub(crate) const NONE: Self = Self { first: Timestamp::MAX, last: Timestamp::MIN };

    fn with(self, other: Self) -> Self {
        Self { first: self.first.min(other.first), last: self.last.max(other.last) }
    }

    /// Whether `other` reaches to one of its ends.
    fn ends_with(self, other: Self) -> bool {
        other.first <= self.first || other.last >= self.last
    }

    /// Its ends, if it is one of something.
    pub(crate) fn ends(self) -> Option<(Timestamp, Timestamp)> {
        (self.first <= self.last).then_some((self.first, self.last))
    }
}

/// The spans of all blocks of slots.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spans {
    blocks: Vec<Span>,
}

impl Spans {
    /// Memory that they take.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Span>()
    }

    /// Takes in so many slots, the new ones without data.
    pub(crate) fn grow(&mut self, slots: usize) {
        self.blocks.reserve_exact(slots.div_ceil(BLOCK).saturating_sub(self.blocks.len()));
        self.blocks.resize(slots.div_ceil(BLOCK), Span::NONE);
    }

    /// The slot at `at` had one span and has another now; `of` is asked for what its neighbours have, and for its own.
    pub(crate) fn change(
        &mut self,
        at: usize,
        before: Span,
        after: Span,
        of: impl Fn(usize) -> Option<Span>,
    ) {
        let Some(block) = self.blocks.get_mut(at / BLOCK) else { return };
        if before == after {
            return;
        }
        if before == Span::NONE || !block.ends_with(before) {
            *block = block.with(after);
            return;
        }
        let from = at / BLOCK * BLOCK;
        *block = (from..from + BLOCK).map_while(of).fold(Span::NONE, Span::with);
    }

    /// All of them together.
    pub(crate) fn all(&self) -> Span {
        self.blocks.iter().copied().fold(Span::NONE, Span::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;

    /// Promise 1: a client that asks in a loop does not take the capture thread's time.
    #[test]
    fn asking_costs_few_looks_however_many_slots_there_are() {
        let looks = |slots: u64| {
            let mut spans = Spans::default();
            spans.grow(slots as usize);
            spans.blocks.len()
        };
        assert_eq!(looks(1), 1);
        assert_eq!(looks(16_384), 32);
        // The most that a ring has.
        assert_eq!(looks(holdfast_base::MAX_SLOT / 64), 8192);
    }

    proptest! {
        #[test]
        fn it_is_what_a_look_at_every_slot_gives(
            changes in proptest::collection::vec((0usize..1300, 0i64..40, 0i64..40), 1..200)
        ) {
            let mut slots = vec![Span::NONE; 1300];
            let mut spans = Spans::default();
            spans.grow(300);
            spans.grow(1300);
            for (at, first, last) in changes {
                // One that ends before it begins is none.
                let after = if first <= last {
                    Span { first: Timestamp(first), last: Timestamp(last) }
                } else {
                    Span::NONE
                };
                let before = std::mem::replace(&mut slots[at], after);
                let asked = Cell::new(0);
                spans.change(at, before, after, |no| {
                    asked.set(asked.get() + 1);
                    slots.get(no).copied()
                });
                prop_assert!(asked.get() <= BLOCK + 1);
                prop_assert_eq!(spans.all(), slots.iter().copied().fold(Span::NONE, Span::with));
            }
        }
    }
}
