//! A restart on a lane whose journal says anything whatever: it ends in an answer, and a run that begins on it comes to
//! rest.

use crate::{commit, sparse, world};
use holdfast_base::{SlotNo, Timestamp};
use holdfast_format::{Cursor, Superblock};
use holdfast_media::{Buffer, MemoryDisk};
use holdfast_ring::{Config, Driver, recover};
use std::time::Duration;

/// Steps in which a run must have begun: the snapshot of a small ring takes a few commits.
const STEPS: usize = 64;

/// Puts the superblock, the commits and two sound slots on a lane, opens it, and begins a run.
pub fn run(data: &[u8]) {
    let (mut journal, leave) = sparse::expand(data);
    journal.truncate(2 * world::SLOT as usize);
    let mut at = 0;
    // Commits follow each other: put each right as far as its own length goes.
    while at < journal.len() && journal.len() - at >= 4096 {
        commit::seal(&mut journal[at..], leave, &world::key());
        let records = sparse::u32_at(&journal[at..], 56);
        at += records.saturating_add(128).next_multiple_of(4096).min(journal.len());
    }
    let geometry = world::geometry();
    let mut image = holdfast_media::Image::new(geometry.lane_bytes);
    let superblock = world::superblock().encode();
    for offset in Superblock::OFFSETS {
        image.write(offset, &superblock);
    }
    image.write(geometry.extent_offset(0), &journal);
    for (slot, sequence) in [(0, 13), (4, 14)] {
        image.write(geometry.slot_offset(SlotNo(slot)), &world::sealed_slot(slot, sequence, 20));
    }
    let mut disk = MemoryDisk::from_image(image);
    let Ok(mut recovered) = recover(&mut disk) else { return };
    let status = recovered.status("lane");
    let slots = status.slots;
    assert!(slots.free + slots.live + slots.held + slots.runway + slots.writing + slots.bad == slots.total);
    assert_eq!(recovered.slot_looks().count(), slots.total as usize);
    recovered.note_bounds(SlotNo(0), None);
    let _ = (recovered.hold_looks().count(), recovered.stream_looks().count());

    let buffers = (0..2).filter_map(|_| Buffer::aligned(world::SLOT as usize).ok()).collect();
    let config = Config { buffers: 2, flush: Duration::from_secs(1), writes: 1 };
    let now = Timestamp(1_800_000_000_000_000_000);
    let Ok(mut driver) = Driver::start(disk, recovered, buffers, config, now, now) else { return };
    for _ in 0..STEPS {
        driver.poll(now, Duration::ZERO, None, &mut |_, _| (Cursor::default(), true));
    }
    let _ = driver.ring().status("lane");
}

/// A ring in the middle of its life, one that ended well, and a fresh one.
pub fn seeds() -> Vec<Vec<u8>> {
    let ended = [world::snapshot(), world::clean_end()].concat();
    [world::snapshot(), ended].iter().map(|journal| sparse::squeeze(journal)).collect()
}
