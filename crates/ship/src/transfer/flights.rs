//! Segments of an upload on their way to the archive.

use super::Segment;
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight {
    length: u64,
    failures: u32,
    is_waiting: bool,
}

/// Segments of an upload that were sent and are not acknowledged, by their offsets. The archive acknowledges bytes in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Flights {
    acknowledged: u64,
    next: u64,
    sent: BTreeMap<u64, Flight>,
    is_renaming: bool,
}

impl Flights {
    pub(super) fn new(offset: u64) -> Self {
        Self { acknowledged: offset, next: offset, sent: BTreeMap::new(), is_renaming: false }
    }

    /// Number of bytes that the archive has acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Offset of the first byte that was never sent.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sent.is_empty()
    }

    /// Starts a segment at the end; `None` while the window is full.
    pub(super) fn launch(&mut self, length: u64, window: usize) -> Option<Segment> {
        if self.sent.len() >= window.max(1) || self.is_renaming {
            return None;
        }
        let start = self.next;
        self.next += length;
        let is_ahead = !self.sent.is_empty();
        self.sent.insert(start, Flight { length, failures: 0, is_waiting: false });
        Some(Segment { start, length, is_ahead, is_again: false })
    }

    /// Segment that must be sent again.
    pub(super) fn resend(&mut self) -> Option<Segment> {
        let first = self.sent.keys().next().copied();
        let (start, flight) = self.sent.iter_mut().find(|(_, flight)| flight.is_waiting)?;
        flight.is_waiting = false;
        Some(Segment {
            start: *start,
            length: flight.length,
            is_ahead: first != Some(*start),
            is_again: true,
        })
    }

    /// Counts a segment and all before it as durable.
    pub(super) fn acknowledge(&mut self, start: u64) {
        if let Some(flight) = self.sent.remove(&start) {
            self.acknowledged = self.acknowledged.max(start + flight.length);
        }
    }

    /// True when the archive's offset lies behind the segment.
    pub(super) fn is_received(&self, start: u64, offset: u64) -> bool {
        self.sent.get(&start).is_some_and(|flight| offset >= start + flight.length)
    }

    /// True when no segment before this one is on its way.
    pub(super) fn is_first(&self, start: u64) -> bool {
        self.sent.keys().next() == Some(&start)
    }

    /// Marks a segment for sending again. Returns its number of failures.
    pub(super) fn fail(&mut self, start: u64) -> u32 {
        let Some(flight) = self.sent.get_mut(&start) else { return 0 };
        flight.is_waiting = true;
        flight.failures += 1;
        flight.failures
    }

    /// Begins a rename; false while one goes on.
    pub(super) fn rename(&mut self) -> bool {
        !std::mem::replace(&mut self.is_renaming, true)
    }

    /// Ends the rename that goes on.
    pub(super) fn end_rename(&mut self) {
        self.is_renaming = false;
    }
}
