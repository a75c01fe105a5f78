//! End of a run: sources drained, the open slot sealed, everything written, the clean end recorded.

use super::Capture;
use super::feed::Feed;
use holdfast_base::Timestamp;
use holdfast_format::SlotFlags;
use holdfast_media::Disk;

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Sources deliver, or may.
    Recording,
    /// They have ended, and everything they delivered is packed: it is being written.
    Writing,
    /// All is written; the clean end is being recorded.
    Closing,
    /// Nothing is left to do.
    Done,
}

impl<D: Disk> Capture<D> {
    /// Where the run stands.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// From here on the run ends: what is left is written before all else. Reads, orders and jobs of clients are refused, so
    /// that none of them delays the end.
    pub fn drain(&mut self) {
        if !std::mem::replace(&mut self.ending, true) {
            self.driver.drain();
        }
    }

    /// Goes on towards the end once every source has ended. They end by themselves, or because they were told to.
    pub(super) fn advance_end(&mut self, now: Timestamp) -> bool {
        let before = self.phase;
        if self.phase == Phase::Recording
            && self.feeds.iter().all(Feed::is_finished)
            && self.opening_is_written(now)
        {
            self.seal(now, SlotFlags::SHORT);
            self.driver.end_view();
            self.phase = Phase::Writing;
        }
        if self.phase == Phase::Writing && self.driver.is_idle() && !self.driver.is_starting() {
            self.driver.ring_mut().end(now);
            self.phase = Phase::Closing;
        } else if self.phase == Phase::Closing && self.driver.is_idle() {
            self.phase = Phase::Done;
        }
        self.phase != before
    }

    /// After a crash the gaps are written even when nothing else is: a run that ends cleanly leaves exact counters.
    fn opening_is_written(&mut self, now: Timestamp) -> bool {
        !self.opening.is_due() || self.ensure_open(false, now)
    }

    /// Whether the end waits for a ring that takes nothing: a device that is away, or no slot.
    pub fn is_stuck(&self) -> bool {
        self.phase < Phase::Done && self.driver.ring().starved().is_some()
    }

    /// Whether the disk has something to do that it has not answered yet.
    pub fn awaits_disk(&self) -> bool {
        self.phase < Phase::Done && !self.driver.is_idle()
    }

    /// Slots in memory that are not on the medium, the open one included: what is lost, but for what the journal has of
    /// them, if a stuck recorder is ended.
    pub fn unwritten_slots(&self) -> usize {
        self.driver.on_the_way().count() + usize::from(self.packer.is_open())
    }

    /// Elements that are in batches and in no slot: what is lost if a stuck recorder is ended.
    pub fn unpacked_batches(&self) -> usize {
        self.feeds.iter().map(|feed| feed.inlet.waiting() + usize::from(feed.batch.is_some())).sum()
    }
}
