//! The drive of the tests in virtual time, and what a profile of it would say. What runs on it is each test's own.

use holdfast_base::{ByteSize, Rate, Timestamp};
use holdfast_format::Measured;
use holdfast_media::DriveModel;
use holdfast_media::drive::{Curve, Flaw};
use std::time::Duration;

/// Of its ring.
pub(crate) const SLOT: ByteSize = ByteSize(8 << 20);

/// Large enough for so many slots. Slow, so that they may be small: 8 MiB/s, and it tries for two seconds to read what it
/// cannot.
pub(crate) fn drive(slots: u64) -> DriveModel {
    let flat = || Curve::flat(Rate(8 << 20));
    let whole = DriveModel {
        bytes: (1 << 20) + (4 + slots) * SLOT.0,
        write: flat(),
        read: flat(),
        read_error_limit: Duration::from_secs(2),
        ..DriveModel::paper()
    };
    whole.damaged(Flaw::Unreadable, 12, 7)
}

/// What a profile says of a drive that does not stand still.
pub(crate) fn measured(drive: &DriveModel) -> Measured {
    Measured {
        at: Timestamp(0),
        write: drive.least_write(0.0..1.0),
        read: drive.least_read(0.0..1.0),
        reposition: drive.worst_reposition(),
        commit: Duration::ZERO,
        read_error: drive.read_error_limit,
        stall: Duration::ZERO,
        stalled: 0,
        parallel: 1,
        elements: 10_000_000,
    }
}
