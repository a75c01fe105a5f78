//! `holdfast grow`: more room for a ring, without losing what it holds.

use crate::args::RingArg;
use crate::out::{Out, notices};
use crate::progress;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{BLOCK, ByteSize};
use holdfast_client::json::GrownRing;
use holdfast_client::orders;
use holdfast_format::Geometry;
use holdfast_media::{Prefill, extend_file};
use holdfast_ring::{Order, Outcome};
use rustix::fs::FileType;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

/// Grow a ring: extend its file, or use a device that has grown
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Existing data stays, and the recorder may run. A ring with a guarantee is not grown, since it\n\
    would exceed its measured region. In a ring made with --prefill, the new part of the file is\n\
    written once, which may take long.\n\n\
    Examples:\n  holdfast grow lab.hf --size 20GiB\n  holdfast grow /dev/vg0/ring"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// New size of the ring (default for a device: all of it)
    #[arg(long, value_name = "SIZE")]
    size: Option<ByteSize>,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (path, reader) = args.ring.open()?;
    let before = reader.superblock().geometry.clone();
    let prefilled = reader.superblock().prefilled && is_file_at(&path)?;
    let promised = reader.superblock().terms.is_some();
    drop(reader);
    let bytes = wanted(&path, args.size)?;
    if promised && bytes > before.lane_bytes {
        return Err(beyond(&path, &before));
    }
    // Refused before the file is touched, so that it does not grow for nothing.
    let after = before.grown(bytes).map_err(|error| Failure::usage(error).at_path(&path))?;
    if after.slots == before.slots {
        return Err(Failure::usage(format_args!(
            "{} has room for {} of {}, as many as the ring has now",
            ByteSize(bytes),
            counted(after.slots.into(), "slot"),
            ByteSize(before.slot_bytes)
        ))
        .at_path(&path)
        .advice(more_room(&path, args.size)?));
    }
    // Done here and not by the recorder, because it may take long.
    let bar = progress::bar(bytes.saturating_sub(before.lane_bytes), prefilled);
    let mut told = |done| bar.set_position(done);
    let prefill = if prefilled { Prefill::Yes(&mut told) } else { Prefill::No };
    extend_file(&path, bytes, prefill)
        .map_err(|error| Failure::failed(format_args!("cannot extend the ring: {error}")))?;
    bar.finish_and_clear();
    let outcome = orders::give(&path, &Order::Grow(ByteSize(bytes)), &notices())?;
    let Outcome::Grown { slots } = outcome else { return Err(orders::unexpected(&outcome)) };
    if out.is_json() {
        return out.object(&GrownRing { lane_bytes: bytes, slots, slots_before: before.slots, prefilled });
    }
    out.line(format_args!(
        "{}: {} now, {} (before: {})",
        path.display(),
        ByteSize(bytes),
        counted(slots.into(), "slot"),
        before.slots
    ))
}

/// What was admitted rests on what was measured of the ring's region, and on nothing beyond.
fn beyond(path: &Path, geometry: &Geometry) -> Failure {
    Failure::failed(format_args!(
        "the guarantee of this ring rests on what was measured of its {}, and on nothing beyond",
        ByteSize(geometry.lane_bytes)
    ))
    .at_path(path)
    .advice(
        "save what is to stay (`holdfast read`) and make the ring anew, with a profile of all that it is to use: \
         `holdfast format --profile FILE --rate RATE`",
    )
}

/// What to do when there is no room for more slots.
fn more_room(path: &Path, size: Option<ByteSize>) -> Result<&'static str> {
    Ok(match (is_file_at(path)?, size) {
        (true, _) => "give a larger --size",
        (false, Some(_)) => "give a larger --size, or leave it out to take all of the device",
        (false, None) => "make the device larger first: its partition or its volume",
    })
}

/// The size that the lane is to have.
fn wanted(path: &Path, size: Option<ByteSize>) -> Result<u64> {
    let cannot = |error: std::io::Error| Failure::io("cannot measure the ring", path, &error);
    let mut file = File::open(path).map_err(cannot)?;
    if is_file(&file, path)? {
        let size = size.ok_or_else(|| {
            Failure::usage("a ring file needs to be told its new size")
                .at_path(path)
                .advice("give --size, such as --size 20GiB")
        })?;
        return Ok(size.0 / BLOCK as u64 * BLOCK as u64);
    }
    let has = file.seek(SeekFrom::End(0)).map_err(cannot)?;
    match size {
        Some(size) if size.0 > has => {
            Err(Failure::usage(format_args!("the device has {} only", ByteSize(has)))
                .at_path(path)
                .advice("make the device larger first, or leave --size out"))
        }
        Some(size) => Ok(size.0 / BLOCK as u64 * BLOCK as u64),
        None => Ok(has / BLOCK as u64 * BLOCK as u64),
    }
}

fn is_file_at(path: &Path) -> Result<bool> {
    let file = File::open(path).map_err(|error| Failure::io("cannot measure the ring", path, &error))?;
    is_file(&file, path)
}

fn is_file(file: &File, path: &Path) -> Result<bool> {
    let stat = rustix::fs::fstat(file)
        .map_err(|error| Failure::io("cannot look at the ring", path, &error.into()))?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}
