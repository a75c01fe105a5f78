//! Limits at which an archived dataset ends, and times of its checkpoints. Pure.

use holdfast_base::ByteSize;
use holdfast_ring::SlotCounts;
use std::time::Duration;

/// Share of the ring that may be recorded while a dataset is open: the other half is left for a restart.
const MOST_SHARE: f64 = 0.5;

/// Share of the ring that may be recorded between two checkpoints.
const CHECKPOINT_SHARE: f64 = 1.0 / 16.0;

/// Time between two checkpoints, where enough was written. A checkpoint repeats the list of chunks.
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

/// Growth of an open dataset since its last checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Growth {
    /// Time since the last checkpoint.
    pub(crate) age: Duration,
    /// Share of the ring that was recorded since.
    pub(crate) share: f64,
    /// Bytes of the dataset since.
    pub(crate) bytes: ByteSize,
    /// Bytes of the last checkpoint's manifest.
    pub(crate) manifest: ByteSize,
}

/// True if a checkpoint is due. One that time asks for waits until as many bytes as it has were written: all checkpoints of a
/// slow stream are no larger than its data.
pub(crate) fn needs_checkpoint(growth: &Growth) -> bool {
    let is_old = growth.age >= CHECKPOINT_AFTER && growth.bytes.0 >= growth.manifest.0;
    is_old || growth.share >= CHECKPOINT_SHARE
}

/// Share of the ring that so many slots are. Held slots give no room to new data.
pub(crate) fn share(passed: u64, slots: &SlotCounts) -> f64 {
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
    fn a_checkpoint_of_a_slow_stream_waits_for_as_many_bytes_as_it_has() {
        let (bytes, manifest) = (ByteSize(99), ByteSize(100));
        let slow = Growth { age: Duration::from_hours(1), share: 0.01, bytes, manifest };
        assert!(!needs_checkpoint(&slow));
        assert!(needs_checkpoint(&Growth { bytes: manifest, ..slow }));
        assert!(needs_checkpoint(&Growth { share: 0.1, ..slow }));
        assert!(!needs_checkpoint(&Growth { bytes: manifest, age: Duration::from_secs(1), ..slow }));
        // The first one has nothing to wait for.
        assert!(needs_checkpoint(&Growth { bytes: ByteSize(0), manifest: ByteSize(0), ..slow }));
    }

    #[test]
    fn held_slots_do_not_count_as_room() {
        let slots = SlotCounts { total: 100, held: 60, ..SlotCounts::default() };
        assert!((share(20, &slots) - 0.5).abs() < 1e-9);
        assert!(share(1, &SlotCounts { total: 1, held: 1, ..SlotCounts::default() }) >= 1.0);
    }
}
