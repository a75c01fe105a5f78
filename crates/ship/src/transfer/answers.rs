//! Answers to a transfer's actions: what they change, and what failures lead to.

use super::flights::Flights;
use super::{
    Comparison, Delivery, FIRST_PAUSE, Failure, LONGEST_PAUSE, MOST_RETRIES, Resumption, Stage, Transfer,
};
use std::time::Duration;

impl<A: Clone> Transfer<A> {
    pub(super) fn resume(&mut self, resumption: Resumption) {
        let Stage::Resuming { .. } = self.stage else { return };
        match resumption {
            Resumption::Matches { offset, length } => {
                self.fixed = length;
                self.generation += 1;
                self.failures = 0;
                self.waiting_since.get_or_insert(Duration::ZERO);
                self.stage = Stage::Sending(Flights::new(offset));
            }
            Resumption::Differs => {
                self.is_rewritten = true;
                self.retire();
            }
            Resumption::Sealed { root, size, observed } => {
                let delivery = Delivery { root: Some(root), size, is_verified: true, is_cut: false };
                self.stage = Stage::Awaiting { delivery, observed: Some(observed), is_busy: false };
            }
            // The upload became a version of earlier contents, or is no more.
            Resumption::Settled | Resumption::Lost => self.start_over(),
            // Nothing can be compared any more: the archive keeps the bytes that it has.
            Resumption::Unreadable { offset } => {
                let delivery = Delivery { root: None, size: offset, is_verified: true, is_cut: true };
                self.stage = if offset == 0 {
                    Stage::Retiring { is_busy: false }
                } else {
                    Stage::Sealing { delivery, observed: None, is_busy: false }
                };
            }
        }
    }

    pub(super) fn segment_failed(&mut self, now: Duration, start: u64, failure: Failure) {
        let Stage::Sending(flights) = &mut self.stage else { return };
        match failure {
            Failure::OffsetMismatch { offset } if flights.is_received(start, offset) => {
                flights.acknowledge(start);
            }
            Failure::Lost => self.start_over(),
            Failure::Refused => self.refuse(),
            Failure::OffsetMismatch { offset } if offset > start || flights.is_first(start) => {
                self.generation += 1;
                self.stage = Stage::Resuming { is_busy: false };
            }
            Failure::OffsetMismatch { .. } | Failure::Damaged | Failure::Transient => {
                let failures = flights.fail(start);
                // One damaged segment is sent again at once: nothing is wrong with the archive.
                if failure != Failure::Damaged || failures > 1 {
                    self.back_off(now);
                }
                if failures > MOST_RETRIES {
                    self.generation += 1;
                    self.stage = Stage::Resuming { is_busy: false };
                }
            }
        }
    }

    /// Puts the next attempt off, each time for twice as long.
    pub(super) fn back_off(&mut self, now: Duration) {
        // Segments that were on their way together fail together: that is one failure.
        if self.failures > 0 && now < self.retry_at {
            return;
        }
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(10));
        self.failures += 1;
        self.retry_at = now + pause.min(LONGEST_PAUSE);
    }

    pub(super) fn refuse(&mut self) {
        self.generation += 1;
        self.address = None;
        self.stage = Stage::Refused(self.observed);
    }

    pub(super) fn compare(&mut self, now: Duration, comparison: Comparison) {
        if let Stage::Checking { delivery } = self.stage {
            self.stage = match comparison {
                Comparison::Equal { observed, .. } if !self.must_rename => {
                    Stage::Delivered { delivery, observed: Some(observed) }
                }
                _ => Stage::Fresh,
            };
            self.must_rename = false;
            return;
        }
        let Stage::Comparing { size, .. } = self.stage else { return };
        match comparison {
            // The upload cannot get more bytes.
            Comparison::Grown(seen) if self.fixed.is_some() => {
                self.observed = Some(seen);
                self.retire();
            }
            Comparison::Grown(seen) => {
                self.observed = Some(seen);
                self.generation += 1;
                self.waiting_since.get_or_insert(now);
                self.stage = Stage::Sending(Flights::new(size));
            }
            Comparison::Changed => {
                self.is_rewritten = true;
                self.retire();
            }
            Comparison::Equal { root, observed } => {
                let observed = Some(observed);
                let delivery = Delivery { root: Some(root), size, is_verified: true, is_cut: false };
                self.stage = Stage::Sealing { delivery, observed, is_busy: false };
            }
            Comparison::Unreadable { root } => {
                let delivery = Delivery { root: Some(root), size, is_verified: true, is_cut: true };
                self.stage = Stage::Sealing { delivery, observed: None, is_busy: false };
            }
        }
    }

    pub(super) fn stored(&mut self, root: Option<blake3::Hash>) {
        let Stage::Awaiting { delivery, observed, .. } = self.stage else { return };
        let differs = matches!((root, delivery.root), (Some(archived), Some(own)) if archived != own);
        if differs {
            // The archive keeps other bytes as a version.
            self.copy_failed();
        } else if self.must_rename {
            // The archive keeps the bytes under the file's old path as a version.
            self.start_over();
        } else {
            self.address = None;
            self.is_rewritten = false;
            self.waiting_since = None;
            self.failures = 0;
            self.failed_copies = 0;
            let delivery = Delivery { root: delivery.root.or(root), is_verified: root.is_some(), ..delivery };
            self.stage = Stage::Delivered { delivery, observed };
        }
    }

    /// Takes the failure of an action that is not a segment.
    pub(super) fn failed(&mut self, now: Duration, failure: Failure) {
        self.back_off(now);
        if failure == Failure::Refused {
            return self.refuse();
        }
        let is_lost = failure == Failure::Lost;
        match &mut self.stage {
            Stage::Creating(_) | Stage::Whole(_) | Stage::Checking { .. } => self.stage = Stage::Fresh,
            Stage::Sealing { is_busy, .. } if failure == Failure::Transient => *is_busy = false,
            Stage::Sealing { .. } if !is_lost => self.stage = Stage::Resuming { is_busy: false },
            Stage::Awaiting { .. } if failure == Failure::Damaged => self.copy_failed(),
            // The archive has lost bytes that it had acknowledged.
            Stage::Awaiting { .. } if matches!(failure, Failure::OffsetMismatch { .. }) => {
                self.stage = Stage::Resuming { is_busy: false };
            }
            Stage::Sending(_)
            | Stage::Resuming { .. }
            | Stage::Sealing { .. }
            | Stage::Awaiting { .. }
            | Stage::Retiring { .. }
                if is_lost =>
            {
                self.start_over();
            }
            Stage::Resuming { is_busy }
            | Stage::Comparing { is_busy, .. }
            | Stage::Awaiting { is_busy, .. }
            | Stage::Retiring { is_busy } => *is_busy = false,
            // The upload may be complete already, by a request whose answer was lost.
            Stage::Sending(_) => {
                self.generation += 1;
                self.stage = Stage::Resuming { is_busy: false };
            }
            Stage::Sealing { .. } | Stage::Fresh | Stage::Delivered { .. } | Stage::Refused(_) => {}
        }
    }
}
