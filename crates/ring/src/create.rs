//! Creation of a ring: the first snapshot, then the superblocks. Earlier contents of the lane are lost.

use crate::blocking::Blocking;
use crate::ledger::Ledger;
use crate::snapshot::{Item, Runway, Walk};
use holdfast_base::{LaneNo, RingId, Sequence, Timestamp};
use holdfast_format::{Codec, CommitHead, CommitWriter, Geometry, Key, Superblock, Terms};
use holdfast_media::{Disk, DiskError, PoolError};

/// What a new ring is to be.
#[derive(Clone, Debug)]
pub struct NewRing {
    /// Its UUID, chosen at random.
    pub ring: RingId,
    /// Its key, chosen at random.
    pub key: Key,
    /// Its name.
    pub name: String,
    /// Where its slots are.
    pub geometry: Geometry,
    /// Whether every slot has been written once already.
    pub prefilled: bool,
    /// What it was admitted for, if it was.
    pub terms: Option<Terms>,
}

impl NewRing {
    /// A ring that was not prefilled and does its best.
    pub fn plain(ring: RingId, key: Key, name: &str, geometry: Geometry) -> Self {
        Self { ring, key, name: name.to_owned(), geometry, prefilled: false, terms: None }
    }
}

/// Why a ring could not be made or its superblocks not be written.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The disk said no.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// No memory for a buffer.
    #[error(transparent)]
    Memory(#[from] PoolError),
    /// The first snapshot does not fit: a bug, as the limits of the format make it fit.
    #[error("the first snapshot does not fit in one extent")]
    Snapshot,
}

/// Slots that no hold may take, of a ring with so many: a twentieth.
pub(crate) fn default_reserve(slots: u32) -> u32 {
    slots.div_ceil(20)
}

/// Formats a lane. The order makes a crash harmless: a lane without a valid superblock is no ring.
pub fn create(disk: &mut dyn Disk, new: NewRing, now: Timestamp) -> Result<Superblock, CreateError> {
    let superblock = Superblock {
        version: Superblock::VERSION,
        generation: 1,
        ring: new.ring,
        group: new.ring,
        key: new.key,
        created: now,
        lane: LaneNo(0),
        lanes: 1,
        n: 1,
        k: 0,
        codec: Codec::None,
        prefilled: new.prefilled,
        reserve: default_reserve(new.geometry.slots),
        name: new.name,
        lane_ids: vec![new.ring],
        terms: new.terms,
        geometry: new.geometry,
    };
    write_first_snapshot(disk, &superblock, now)?;
    write_superblocks(disk, &superblock)?;
    Ok(superblock)
}

fn write_first_snapshot(
    disk: &mut dyn Disk,
    superblock: &Superblock,
    now: Timestamp,
) -> Result<(), CreateError> {
    let geometry = &superblock.geometry;
    let mut ledger = Ledger::empty(geometry.clone());
    ledger.recovery = superblock.to_recovery_string();
    let (mut walk, mut whole) = (Walk::default(), false);
    let runway = Runway { naming: Sequence(1), slots: &[], until: Sequence(2), tells: true };
    let mut window = Blocking::new(disk, geometry.commit_bytes())?;
    let (mut at, mut number) = (0, 0);
    while !whole {
        number += 1;
        let mut written = 0;
        window.write(geometry.extent_offset(0) + at, |buffer| {
            let mut writer = CommitWriter::new(buffer);
            while walk != Walk::Whole && ledger.emit_part(&mut walk, &runway, &mut writer) {}
            whole = walk == Walk::Whole && ledger.emit(&mut Item::CleanEnd(now), &runway, &mut writer);
            let head = CommitHead {
                ring: superblock.ring,
                generation: 1,
                number,
                epoch: ledger.epoch.epoch,
                begins: number == 1,
                part: true,
                ends: whole,
            };
            written = writer.finish(&superblock.key, &head);
            written
        })?;
        at += written as u64;
        if at > geometry.extent_bytes() {
            return Err(CreateError::Snapshot);
        }
    }
    Ok(())
}

/// Writes the four copies, the second pair only once the first is on the medium.
pub fn write_superblocks(disk: &mut dyn Disk, superblock: &Superblock) -> Result<(), CreateError> {
    let bytes = superblock.encode();
    let mut window = Blocking::new(disk, bytes.len())?;
    for offset in Superblock::OFFSETS {
        window.write(offset, |buffer| {
            buffer[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        })?;
    }
    Ok(())
}
