//! Limits at which an archived dataset ends, and times of its checkpoints. Pure.

use holdfast_base::ByteSize;
use holdfast_ring::SlotCounts;
use std::time::Duration;

/// Share of the ring that may be recorded while a dataset is open: the other half is left for a restart.
const MOST_SHARE: f64 = 0.5;

/// Share of the ring that may be recorded between two checkpoints.
const CHECKPOINT_SHARE: f64 = 1.0 / 16.0;

/// Time between two checkpoints at most. A checkpoint repeats the list of chunks, below 1 MiB in a dataset of 1 GiB.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(30);

/// Limits of a dataset that the user gave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of the dataset.
    pub(crate) bytes: ByteSize,
    /// Time since its beginning.
    pub(crate) age: Option<Duration>,
}

/// Progress of an open dataset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Number of elements and gaps.
    pub(crate) elements: u64,
    pub(crate) bytes: ByteSize,
    /// Time since its beginning.
    pub(crate) age: Duration,
    /// Share of the ring that was recorded since its first element.
    pub(crate) share: f64,
}

impl Limits {
    /// True if a dataset has to be published.
    pub(crate) fn are_reached(&self, progress: &Progress) -> bool {
        let is_old = self.age.is_some_and(|age| progress.age >= age);
        let is_full = progress.bytes.0 >= self.bytes.0;
        progress.elements > 0 && (is_old || is_full || progress.share >= MOST_SHARE)
    }
}

/// True if a checkpoint is due.
pub(crate) fn needs_checkpoint(since: Duration, share: f64) -> bool {
    since >= CHECKPOINT_AFTER || share >= CHECKPOINT_SHARE
}

/// Share of the ring that these slots are. Held slots give no room to new data.
pub(crate) fn share(passed: usize, slots: &SlotCounts) -> f64 {
    let usable = slots.total.saturating_sub(slots.held).saturating_sub(slots.bad);
    passed as f64 / f64::from(usable.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dataset_ends_by_size_age_or_half_of_the_ring() {
        let limits = Limits { bytes: ByteSize(1 << 30), age: Some(Duration::from_mins(10)) };
        let young = Progress { elements: 1, bytes: ByteSize(1), age: Duration::from_secs(1), share: 0.1 };
        assert!(!limits.are_reached(&young));
        for reached in [
            Progress { bytes: ByteSize(1 << 30), ..young },
            Progress { age: Duration::from_mins(10), ..young },
            Progress { share: 0.5, ..young },
        ] {
            assert!(limits.are_reached(&reached), "{reached:?}");
            assert!(!limits.are_reached(&Progress { elements: 0, ..reached }), "{reached:?}");
        }
    }

    #[test]
    fn held_slots_do_not_count_as_room() {
        let slots = SlotCounts { total: 100, held: 60, ..SlotCounts::default() };
        assert!((share(20, &slots) - 0.5).abs() < 1e-9);
        assert!(share(1, &SlotCounts { total: 1, held: 1, ..SlotCounts::default() }) >= 1.0);
    }
}
