//! Subject of a measurement: a device or file, and which of its places may be written: all of an empty device or file, or
//! with leave to destroy; of a ring those slots that hold nothing. How it is measured is not known here.

use holdfast_base::failure::{Failure, Result};
use holdfast_base::{BLOCK, ByteSize, SlotNo};
use holdfast_media::{
    Access, Described, Device, Foreign, Medium, OpenError, PROFILE_DEPTH, ProfileBuffers, RealDisk, describe,
    signature,
};
use holdfast_ring::{SlotLook, recover};
use std::ops::Range;
use std::path::Path;

/// What is shorter cannot be a ring, and nothing could be told of it.
const LEAST: u64 = 1 << 20;

/// A device or file that may be measured. Nobody else owns it as long as this lives.
pub struct Place {
    pub(crate) disk: RealDisk,
    pub(crate) buffers: ProfileBuffers,
    pub(crate) bytes: u64,
    pub(crate) described: Described,
    /// What may be written.
    pub(crate) writable: Vec<Range<u64>>,
    /// Where slots are, or would be.
    pub(crate) slots: Range<u64>,
    /// Of a ring: how many slots may be written, and how many there are.
    pub ring: Option<(usize, usize)>,
    /// Of a ring: whether every place was written when it was made.
    pub(crate) prefilled: bool,
    /// What a person should know.
    pub warnings: Vec<String>,
}

/// Opens a path for measuring; with `destroy` whatever is there may go.
pub fn open(path: &Path, destroy: bool) -> Result<Place> {
    let device = Device::open(path, Access::Own).map_err(|error| not_opened(error, path))?;
    let (bytes, medium) = (device.info().bytes, device.info().medium);
    if bytes < LEAST {
        return Err(Failure::failed(format_args!(
            "this is too short to be measured: {} are needed",
            ByteSize(LEAST)
        ))
        .at_path(path)
        .advice("make the file as long as the ring is to be: `fallocate -l 10GiB FILE`"));
    }
    let cannot = |error| Failure::failed(format_args!("cannot see what is there: {error}")).at_path(path);
    let found = if destroy { None } else { signature(&device).map_err(cannot)? };
    let is_ring = found == Some(Foreign::Ring);
    if let Some(found) = found.filter(|_| !is_ring) {
        return Err(occupied(found, medium, path));
    }
    let buffers = ProfileBuffers::new().map_err(Failure::failed)?;
    let described = describe(&device);
    if described.zoned {
        return Err(zoned(path));
    }
    let mut disk = RealDisk::new(device, &buffers.regions(), PROFILE_DEPTH);
    let whole = Range { start: 0, end: bytes };
    let (mut writable, mut slots, mut ring, mut prefilled) = (vec![whole.clone()], whole, None, false);
    if is_ring {
        let found = free_slots(&mut disk, path)?;
        (writable, slots, prefilled) = (found.writable, found.slots, found.prefilled);
        ring = Some((writable.len(), found.count));
    }
    let warnings = disk.warnings().to_vec();
    Ok(Place { disk, buffers, bytes, described, writable, slots, ring, prefilled, warnings })
}

fn not_opened(error: OpenError, path: &Path) -> Failure {
    match error {
        OpenError::Missing { .. } => Failure::failed("there is nothing to be measured")
            .at_path(path)
            .advice("give a device, or make a file as long as the ring is to be: `fallocate -l 10GiB FILE`"),
        OpenError::InUse { holder: Some(holder), .. } => {
            Failure::failed(format_args!("in use by {holder}, which a measurement would keep from its work"))
                .at_path(path)
                .advice("end that first; a ring in use shows by its margin how the device does")
        }
        other => Failure::failed(format_args!("cannot be measured: {other}")),
    }
}

/// The system knows of its zones: written in any order but theirs it takes as long as it likes, or refuses.
fn zoned(path: &Path) -> Failure {
    Failure::failed("its tracks overlap (a zoned, shingled drive): no order of writing but that of its zones can be relied on")
        .at_path(path)
        .advice("record there as best effort, or take a drive without that (CMR)")
}

/// It is not for us to take.
fn occupied(found: Foreign, medium: Medium, path: &Path) -> Failure {
    let what = if medium == Medium::File && found == Foreign::Data {
        "a file with data in it".to_owned()
    } else {
        found.to_string()
    };
    let failure =
        Failure::failed(format_args!("there is {what}, and measuring writes all over it")).at_path(path);
    if found == Foreign::LostRing {
        return failure.advice(format_args!(
            "`holdfast check --geometry find {}` brings the ring back; --destroy measures and destroys it",
            path.display()
        ));
    }
    failure.advice("choose another place, or say --destroy to lose what is there")
}

/// Of a ring: what may be written without harm.
struct Free {
    writable: Vec<Range<u64>>,
    slots: Range<u64>,
    count: usize,
    prefilled: bool,
}

/// Slots that hold nothing, or what has expired. Their first and last blocks, by which a restart knows a slot, are left
/// as they are.
fn free_slots(disk: &mut RealDisk, path: &Path) -> Result<Free> {
    let recovered = recover(disk)
        .map_err(|error| Failure::failed(format_args!("cannot open the ring: {error}")).at_path(path))?;
    let looks: Vec<_> = recovered.slot_looks().collect();
    let mut geometry = recovered.superblock.geometry.clone();
    if looks.len() as u32 > geometry.slots {
        // A growth that has reached the journal and not yet the superblock.
        let lane = recovered.status("").lane_bytes;
        geometry = geometry.grown(lane.0).unwrap_or(geometry);
    }
    let block = BLOCK as u64;
    let place = |slot: SlotNo| {
        let offset = geometry.slot_offset(slot);
        offset + block..offset + geometry.slot_bytes - block
    };
    let free = looks.iter().filter(|slot| matches!(slot.look, SlotLook::Free | SlotLook::Runway));
    let last = SlotNo(geometry.slots.saturating_sub(1));
    Ok(Free {
        writable: free.map(|slot| place(slot.slot)).collect(),
        slots: geometry.first_slot()..geometry.slot_offset(last) + geometry.slot_bytes,
        count: looks.len(),
        prefilled: recovered.superblock.prefilled,
    })
}

/// What to do about a ring with too few places that may be written.
pub(crate) fn too_full((free, all): (usize, usize), path: &Path, bytes: u64) -> Failure {
    Failure::failed(format_args!(
        "there are not enough free slots to measure the ring: {free} of {all} {} free or next to go, and not towards the \
         end of its {}",
        if free == 1 { "slot is" } else { "slots are" },
        ByteSize(bytes)
    ))
    .at_path(path)
    .advice(
        "measure a ring before it is full, or another device of the same model that is empty, or say --destroy to lose \
         what is there",
    )
}
