//! Back-pressure on blocking sources: how many full slots may wait for the disk before such a source gets
//! another. A pure value.
//!
//! Buffers are there for a disk's pauses and for bursts. A source that is faster than the disk for good has all of them full
//! for good: that absorbs nothing, for it waits all the same, and takes them from sources that cannot wait; and what is written has
//! long left the processor's cache. Once as many slots as make several rounds of all buffers took nearly the last of them,
//! such a source waits as soon as the disk has enough to do; when the disk is the faster one again, it may fill all of them.

/// So many rounds of all buffers have to have been taken like that.
const ROUNDS: u32 = 2;

/// A slot for which there were buffers enough makes up for so many for which there were not.
const EASED: u32 = 4;

/// Slots that a disk may end together: fewer buffers than that are nearly none.
const TOGETHER: usize = 2;

/// How it has been lately.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backpressure {
    buffers: usize,
    /// Slot writes that the disk takes at once.
    at_hand: usize,
    /// Slots that took nearly the last buffer there was for them, less those that did not.
    crowded: u32,
}

impl Backpressure {
    /// Of so many buffers nearly all are free.
    pub(crate) fn new(buffers: usize, at_hand: usize) -> Self {
        Self { buffers, at_hand, crowded: 0 }
    }

    /// From how many crowded slots on what can wait waits early.
    fn lasting(&self) -> u32 {
        ROUNDS * self.buffers as u32
    }

    /// How many buffers of slots a source that can wait may make full.
    fn most(&self) -> usize {
        if self.crowded < self.lasting() { self.buffers } else { self.buffers.min(self.at_hand + 1) }
    }

    /// Whether a source that can wait may have a slot opened beside so many that are full.
    pub(crate) fn may_open(&self, full: usize) -> bool {
        full < self.most()
    }

    /// A slot is opened beside so many that are full, for whom it may be.
    pub(crate) fn opened(&mut self, full: usize) {
        self.crowded = if full + TOGETHER >= self.most() {
            (self.crowded + 1).min(self.lasting() + EASED * ROUNDS)
        } else {
            self.crowded.saturating_sub(EASED)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AT_HAND: usize = 3;

    /// A source that is given slots one by one, and a disk that writes them.
    struct World {
        backpressure: Backpressure,
        full: usize,
    }

    impl World {
        fn new(buffers: usize) -> Self {
            Self { backpressure: Backpressure::new(buffers, AT_HAND), full: 0 }
        }

        /// The source would fill so many slots, and the disk writes so many; how many were filled.
        fn step(&mut self, wanted: usize, written: usize) -> usize {
            let mut filled = 0;
            while filled < wanted && self.backpressure.may_open(self.full) {
                self.backpressure.opened(self.full);
                (filled, self.full) = (filled + 1, self.full + 1);
            }
            self.full = self.full.saturating_sub(written);
            filled
        }

        /// The same so many times.
        fn steps(&mut self, times: usize, wanted: usize, written: usize) -> usize {
            (0..times).map(|_| self.step(wanted, written)).sum()
        }
    }

    // Promise 1: buffers that a source could wait for are left to those that cannot.
    #[test]
    fn who_is_faster_than_the_disk_for_good_has_few_buffers_and_loses_no_time() {
        for together in [1, 2] {
            let mut world = World::new(15);
            world.step(15, 1);
            assert_eq!(world.full, 14, "a burst has all of them");
            let filled = world.steps(1000, 5, together);
            assert!(world.full <= AT_HAND, "{} are full", world.full);
            assert!(filled + 15 >= 1000 * together, "the disk always had something to write: {filled}");
        }
    }

    // Promise 1: what rides out a disk's pause is there as soon as the source is the slower one again.
    #[test]
    fn who_is_slower_again_has_all_buffers() {
        let mut world = World::new(15);
        world.steps(1000, 5, 1);
        world.steps(100, 1, 2);
        let paused = world.steps(15, 1, 0);
        assert!(paused >= 14, "{paused} slots in a pause of the disk");
    }

    // Promise 1.
    #[test]
    fn pauses_now_and_then_take_no_buffers_away() {
        let mut world = World::new(15);
        for _ in 0..200 {
            // A pause that is longer than all buffers last, and what it held up.
            world.steps(20, 1, 0);
            world.steps(60, 1, 2);
            let paused = world.steps(15, 1, 0);
            assert!(paused >= 14, "{paused} slots in a pause of the disk");
            world.steps(60, 1, 2);
        }
    }

    proptest! {
        // However it comes, the disk always has something to write where a source has something.
        #[test]
        fn a_disk_is_never_left_without_work(
            buffers in 4usize..64,
            steps in proptest::collection::vec((0usize..8, 0usize..4), 1..2000),
        ) {
            let mut world = World::new(buffers);
            for (wanted, written) in steps {
                let before = world.full;
                let filled = world.step(wanted, 0);
                prop_assert!(filled == wanted || before + filled > AT_HAND.min(buffers - 1));
                prop_assert!(world.full <= buffers);
                world.full = world.full.saturating_sub(written);
            }
        }
    }
}
