//! Simulated lane: the requests in flight on the drive, and when each ends.

use super::capture::Commit;
use holdfast_base::Timestamp;
use holdfast_media::Fault;
use holdfast_media::drive::{Drive, DriveAccess};
use holdfast_ring::ReadRequest;

/// What an access was for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Errand {
    /// A slot, with the time since which it has had what is nowhere else.
    Slot(f64),
    Commit(Commit),
    Read(ReadRequest),
}

/// Something under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    errand: Errand,
    done: Timestamp,
    fault: Option<Fault>,
}

/// The drive and what is under way on it.
#[derive(Debug)]
pub(super) struct Lane {
    drive: Drive,
    flights: Vec<Flight>,
    pub(super) writing: u32,
    pub(super) reading: u32,
    pub(super) committing: bool,
}

impl Lane {
    pub(super) fn new(drive: Drive) -> Self {
        Self { drive, flights: Vec::with_capacity(64), writing: 0, reading: 0, committing: false }
    }

    pub(super) fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Begins it; when it will be done.
    pub(super) fn begin(&mut self, errand: Errand, access: DriveAccess, now: Timestamp) -> Timestamp {
        match errand {
            Errand::Slot(_) => self.writing += 1,
            Errand::Commit(_) => self.committing = true,
            Errand::Read(_) => self.reading += 1,
        }
        let served = self.drive.serve(access, now);
        self.flights.push(Flight { errand, done: served.done, fault: served.fault });
        served.done
    }

    /// When the next one ends.
    pub(super) fn next_end(&self) -> Option<Timestamp> {
        self.flights.iter().map(|flight| flight.done).min()
    }

    /// Takes out one that has ended by `now`.
    pub(super) fn ended(&mut self, now: Timestamp) -> Option<(Errand, Option<Fault>)> {
        let at = self.flights.iter().position(|flight| flight.done <= now)?;
        let Flight { errand, fault, .. } = self.flights.swap_remove(at);
        match errand {
            Errand::Slot(_) => self.writing -= 1,
            Errand::Commit(_) => self.committing = false,
            Errand::Read(_) => self.reading -= 1,
        }
        Some((errand, fault))
    }
}
