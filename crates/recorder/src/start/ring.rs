//! Ring of a run: opened at its path, or created there if a size was given and nothing exists.

use super::StartError;
use crate::args::Settings;
use crate::voice::complain;
use holdfast_base::{BLOCK, ByteSize, Clock as _, MAX_NAME, RingId, SystemClock};
use holdfast_format::{FormatError, Geometry, Key, Superblock};
use holdfast_ingest::StopFlag;
use holdfast_media::{
    Access, Buffer, Device, Disk as _, Foreign, OpenError, PlainDisk, Prefill, create_file,
};
use holdfast_protocol::{ProtocolError, find_recorder_now, is_recorder, locate};
use holdfast_ring::{NewRing, create};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A ring that we own.
pub(super) struct OwnedRing {
    pub(super) device: Device,
    pub(super) superblock: Superblock,
    /// The file, if it was made just now.
    pub(super) made: Option<PathBuf>,
}

/// Longest wait for a command that has the ring. Commands give way; one that cannot, such as a measurement, takes minutes.
const PATIENCE: Duration = Duration::from_secs(30);

/// Pause between two tries of a ring that a command has.
const AGAIN: Duration = Duration::from_millis(5);

/// After so long it is said who is waited for.
const SAID_AFTER: Duration = Duration::from_secs(1);

/// Takes the ring for this recorder. A command that has it for an order gives it back soon; another recorder does not.
fn own(path: &Path, stop: &StopFlag) -> Result<Device, OpenError> {
    let (began, mut said, mut answers) = (Instant::now(), false, None);
    loop {
        let refused = match Device::open(path, Access::Own) {
            Err(refused @ (OpenError::InUse { .. } | OpenError::Busy { .. })) => refused,
            opened => return opened,
        };
        let patience = patience(&refused, || *answers.get_or_insert_with(|| recorder_answers(path)));
        let waited = began.elapsed();
        if waited >= patience || stop.is_stopped() {
            return Err(refused);
        }
        if waited >= SAID_AFTER && !std::mem::replace(&mut said, true) {
            let holder = match &refused {
                OpenError::InUse { holder: Some(holder), .. } => holder.to_string(),
                _ => "another process".to_owned(),
            };
            complain(&format!(
                "{}: waiting up to {PATIENCE:?} for {holder}, which has the ring",
                path.display()
            ));
            // It may have been starting.
            answers = None;
        }
        std::thread::sleep(AGAIN);
    }
}

/// Longest wait for the holder of the ring. Where the system does not tell who that is, `answers` says whether it is a recorder.
fn patience(refused: &OpenError, answers: impl FnOnce() -> bool) -> Duration {
    let is_recorder = match refused {
        OpenError::InUse { holder: Some(holder), .. } => is_recorder(holder),
        OpenError::InUse { holder: None, .. } => answers(),
        // The kernel's claim comes first: the lock, which tells whose it is, follows.
        _ => return SAID_AFTER,
    };
    if is_recorder { Duration::ZERO } else { PATIENCE }
}

/// Returns true if a recorder of the ring at `path` answers on its socket, of whatever release.
fn recorder_answers(path: &Path) -> bool {
    let found = locate(path).and_then(|place| find_recorder_now(&place));
    matches!(found, Ok(Some(_)) | Err(ProtocolError::Version { .. }))
}

pub(super) fn find_or_make(
    settings: &Settings,
    stop: &StopFlag,
    warnings: &mut Vec<String>,
) -> Result<OwnedRing, StartError> {
    let path = &settings.ring;
    let there = path.symlink_metadata().is_ok();
    match settings.size {
        Some(size) if !there => make(path, size, settings.slot),
        _ => find(path, settings, stop, warnings),
    }
}

fn find(
    path: &Path,
    settings: &Settings,
    stop: &StopFlag,
    warnings: &mut Vec<String>,
) -> Result<OwnedRing, StartError> {
    let device = own(path, stop)?;
    let superblock = superblock(&device, path)?;
    let geometry = &superblock.geometry;
    let lane = ByteSize(geometry.lane_bytes);
    if let Some(size) = settings.size.filter(|size| whole_blocks(*size) != lane) {
        warnings.push(format!(
            "{}: the ring exists and has {lane}: --size {size} has no effect (`holdfast grow` enlarges it)",
            path.display()
        ));
    }
    let slot = ByteSize(geometry.slot_bytes);
    if let Some(wanted) = settings.slot.filter(|wanted| *wanted != slot) {
        warnings.push(format!(
            "{}: the ring exists and has slots of {slot}: --slot {wanted} has no effect",
            path.display()
        ));
    }
    Ok(OwnedRing { device, superblock, made: None })
}

/// The newest superblock. What is wrong with a lane without one is said as recovery says it.
fn superblock(device: &Device, path: &Path) -> Result<Superblock, StartError> {
    let mut buffer = Buffer::aligned(BLOCK)?;
    let bytes = device.info().bytes;
    let mut copies = Vec::new();
    for offset in Superblock::OFFSETS {
        let inside = offset + BLOCK as u64 <= bytes;
        // An unreadable copy is what the others are for.
        let read = inside && device.read(offset, &mut buffer, BLOCK).is_ok();
        copies.push(Superblock::decode(if read { &buffer[..BLOCK] } else { &[] }));
    }
    let newest = Superblock::newest(&copies).cloned();
    newest.map_err(|why| {
        let (carries, advice) = carried(device, path);
        let why = match why {
            FormatError::OutOfBounds { .. } => "it is too short".to_owned(),
            why => why.to_string(),
        };
        StartError::NotARing { path: path.to_owned(), carries, why, advice }
    })
}

/// What else is on it, and what to do about that.
fn carried(device: &Device, path: &Path) -> (String, String) {
    let path = path.display();
    let lost = format!(
        "`holdfast check --geometry find {path}` looks for its superblock, with the recovery string instead of \
         `find` it is rebuilt from that"
    );
    match holdfast_media::signature(device) {
        Ok(Some(foreign @ (Foreign::Ring | Foreign::LostRing))) => {
            (format!("it carries {foreign}"), format!("do not format it: {lost}"))
        }
        Ok(Some(foreign)) => (
            format!("it carries {foreign}"),
            "choose another path; `holdfast format --force` would destroy what is there".to_owned(),
        ),
        Ok(None) => (
            "nothing was found on it".to_owned(),
            format!("`holdfast format {path}` creates one; if it was one, {lost}"),
        ),
        Err(error) => (error.to_string(), format!("if it was one, {lost}")),
    }
}

fn make(path: &Path, size: ByteSize, slot: Option<ByteSize>) -> Result<OwnedRing, StartError> {
    let slot_bytes = slot.map_or_else(|| Geometry::default_slot(size.0), |slot| slot.0);
    // Looked at as it was given, so that it is told so.
    Geometry::for_lane(size.0, slot_bytes, Vec::new()).map_err(StartError::Geometry)?;
    let size = whole_blocks(size);
    let geometry = Geometry::for_lane(size.0, slot_bytes, Vec::new()).map_err(StartError::Geometry)?;
    let (ring, key) = chance().map_err(|cause| StartError::Chance { cause })?;
    let device = create_file(path, size.0, Prefill::No)?;
    let new = NewRing::plain(ring, key, &name_of(path), geometry);
    let now = SystemClock::new().now();
    // The claim goes with the device into the disk and comes back only by opening anew: nobody else knows the path yet.
    let mut disk = PlainDisk::new(device, 4);
    debug_assert!(disk.info().bytes >= size.0);
    let made = create(&mut disk, new, now);
    drop(disk);
    let owned = made.map_err(StartError::from).and_then(|superblock| {
        let device = Device::open(path, Access::Own)?;
        Ok(OwnedRing { device, superblock, made: Some(path.to_owned()) })
    });
    if owned.is_err() {
        let _ = std::fs::remove_file(path);
    }
    owned
}

fn whole_blocks(size: ByteSize) -> ByteSize {
    ByteSize(size.0 / BLOCK as u64 * BLOCK as u64)
}

/// The file's name without its ending.
fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    stem[..stem.floor_char_boundary(MAX_NAME)].to_owned()
}

/// A UUID (version 4) and a key, from the kernel.
fn chance() -> std::io::Result<(RingId, Key)> {
    let mut bytes = [0; 48];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    let (mut id, mut key) = ([0; 16], [0; 32]);
    id.copy_from_slice(&bytes[..16]);
    key.copy_from_slice(&bytes[16..]);
    id[6] = id[6] & 0x0f | 0x40;
    id[8] = id[8] & 0x3f | 0x80;
    Ok((RingId(id), Key(key)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // A second recorder is refused at once where the system does not tell who has the ring, but the first one answers.
    #[test]
    fn an_unknown_holder_is_waited_for_unless_a_recorder_answers() {
        let unknown = OpenError::InUse { path: PathBuf::new(), holder: None };
        assert_eq!(patience(&unknown, || true), Duration::ZERO);
        assert_eq!(patience(&unknown, || false), PATIENCE);
        let busy = OpenError::Busy { path: PathBuf::new(), user: String::new() };
        assert_eq!(patience(&busy, || unreachable!()), SAID_AFTER);
        assert!(!recorder_answers(Path::new("/nowhere/r.hf")));
    }
}
