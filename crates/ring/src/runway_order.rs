//! Order flag of runway lists: false once copies have taken slots or sequences out of order, so that the
//! places of a list no longer tell the sequences.

use holdfast_base::Sequence;

/// Whether sequences and slots were taken in turn since the last list of the runway, so that places in it tell sequences.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunwayOrder {
    /// The last sequence that a copy has taken.
    taken: Option<Sequence>,
    /// From which sequence on the last list tells.
    listed: Sequence,
    /// A slot of that list was taken for a copy, or has come back.
    moved: bool,
    /// Lists of this extent that had to say that they do not tell.
    pub(crate) untold: u32,
}

impl RunwayOrder {
    /// Whether the next list must say so.
    pub(crate) fn are_broken(&self) -> bool {
        self.moved || self.taken.is_some_and(|taken| taken >= self.listed)
    }

    /// A list that tells from this sequence on has been made.
    pub(crate) fn list(&mut self, naming: Sequence) {
        self.untold += u32::from(self.are_broken());
        (self.listed, self.moved) = (naming, false);
    }

    pub(crate) fn take(&mut self, sequence: Sequence) {
        self.taken = Some(sequence);
    }

    pub(crate) fn moved(&mut self) {
        self.moved = true;
    }
}

#[cfg(test)]
mod tests {
    use crate::driver::Driver;
    use crate::snapshot::Item;
    use crate::{Config, NewRing, create, recover};
    use holdfast_base::{RingId, Timestamp};
    use holdfast_format::{Cursor, Geometry, Key};
    use holdfast_media::{Disk as _, MemoryDisk};
    use std::time::Duration;

    /// Promise 6: capture begins soon after a crash, for the journal begins anew before there are many slots to look into.
    #[test]
    fn after_some_lists_that_do_not_tell_the_journal_begins_anew() {
        let now = Timestamp(10);
        let mut disk = MemoryDisk::new((1 << 20) + 24 * (64 << 10));
        let geometry = Geometry::for_lane(disk.info().bytes, 64 << 10, Vec::new()).unwrap();
        create(&mut disk, NewRing::plain(RingId([1; 16]), Key([2; 32]), "r", geometry), now).unwrap();
        let recovered = recover(&mut disk).unwrap();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 1 };
        let mut driver = Driver::start(disk, recovered, Vec::new(), config, now, now).unwrap();
        for _ in 0..50 {
            driver.poll(now, Duration::ZERO, None, &mut |_, _| (Cursor::default(), true));
        }
        assert!(driver.is_idle());
        let begins_anew = |driver: &mut Driver<MemoryDisk>, untold| {
            driver.ring.jobs.runway_order.untold = untold;
            driver.ring.journal.push(Item::Runway, None);
            assert!(driver.ring.plan_commit().is_some());
            driver.ring.journal.snapshot.is_some()
        };
        assert!(!begins_anew(&mut driver, 3));
        assert!(begins_anew(&mut driver, 30));
        assert_eq!(driver.ring.jobs.runway_order.untold, 0);
    }
}
