//! Emulated drive of the tests in virtual time, its profile, and greedy readers. Each test supplies the load.

use holdfast_base::{ByteSize, Rate, SlotNo, Timestamp};
use holdfast_format::Measured;
use holdfast_media::drive::{Curve, Flaw};
use holdfast_media::{Buffer, Disk, DriveModel, Seed};
use holdfast_recorder::capture::{Ask, Capture, ReadOrigin};
use holdfast_ring::{Class, SlotLook};
use std::time::Duration;

/// Of its ring.
pub(crate) const SLOT: ByteSize = ByteSize(8 << 20);

/// What is read at once.
pub(crate) const QUANTUM: usize = 1 << 20;

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
        cells: 100_000_000,
    }
}

/// Whoever has a buffer wants a piece of some slot.
pub(crate) fn ask<D: Disk>(
    capture: &mut Capture<D>,
    readers: &mut Vec<Buffer>,
    seed: &mut Seed,
    now: Timestamp,
) {
    if readers.is_empty() {
        return;
    }
    let looks: Vec<_> = capture.driver().ring().slot_looks(SlotNo(0), u32::MAX).collect();
    let data: Vec<_> = looks.iter().filter(|look| look.look == SlotLook::Live).collect();
    while let Some(buffer) = readers.pop_if(|_| !data.is_empty()) {
        let slot = data[seed.below(data.len() as u64) as usize];
        let at = seed.below(SLOT.0 / QUANTUM as u64) * QUANTUM as u64;
        let reader = ReadOrigin { class: Class::Export, client: seed.below(3) };
        let ask = Ask::Read(slot.sequence, at as u32, QUANTUM as u32, buffer, reader);
        assert!(capture.ask(1, ask, now).is_none());
    }
}
