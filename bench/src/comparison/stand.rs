//! The drive that all cells run on: the emulated one of the paper, a partition of it under a loop device, and file
//! systems on that. Who writes there is not known here.

use super::cell::FileSystem;
use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::emulated::Emulated;
use crate::work_folder::{LoopDevice, WorkFolder};
use crate::{BenchError, Scale, tools};
use holdfast_media::DriveModel;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where on the drive the partition begins: there it leaves 12 MiB/s for reading beside 60 of writing, as the paper's
/// did.
const PART: f64 = 0.3;

/// Answers that are later than this count as late. The drive keeps its account in modelled time, so that a late answer
/// costs nobody more than that it is late: what counts here are rates over seconds. File systems keep the kernel busy for
/// longer than the 2 ms that a calibration wants.
const LATE: &str = "10ms";

/// The sizes of everything.
#[derive(Clone, Copy, Debug)]
pub struct StandSetup {
    /// Of the partition.
    pub bytes: u64,
    /// Of Holdfast's slots.
    pub slot_bytes: u64,
    /// Buffers of each contestant.
    pub memory: u64,
    /// So much is written to a file system between two syncs.
    pub sync_bytes: u64,
    /// Of a cell.
    pub time: Duration,
    /// The first part of it, in which buffers fill: rates are taken behind it.
    pub lead_in: Duration,
    /// How much is measured.
    pub scale: Scale,
}

impl StandSetup {
    /// As the paper had it, where it says so; `HOLDFAST_SECONDS` sets the time of a cell.
    pub fn new(scale: Scale) -> Self {
        let seconds = std::env::var("HOLDFAST_SECONDS").ok().and_then(|text| text.parse().ok());
        match scale {
            Scale::Tiny => Self {
                bytes: 64 << 20,
                slot_bytes: 1 << 20,
                memory: 32 << 20,
                sync_bytes: 4 << 20,
                time: Duration::from_millis(500),
                lead_in: Duration::ZERO,
                scale,
            },
            // A guarantee on this drive takes slots of 64 MiB, and 40 of them beside the journal: 2.8 GiB. And at most
            // 13 slots of memory, since a drive that does not say how long it tries to read may try for 7 s.
            Scale::Real => {
                let time = Duration::from_secs(seconds.unwrap_or(60));
                Self {
                    bytes: 3 << 30,
                    slot_bytes: 64 << 20,
                    memory: 13 * (64 << 20),
                    sync_bytes: 128 << 20,
                    time,
                    lead_in: time / 5,
                    scale,
                }
            }
        }
    }
}

impl StandSetup {
    /// Bytes a second that the drive writes in the partition, and reads, when nothing disturbs it.
    pub fn rates(&self) -> (f64, f64) {
        let part = DriveModel::paper().part(PART, self.bytes);
        (part.least_write(0.0..1.0).0 as f64, part.least_read(0.0..1.0).0 as f64)
    }
}

/// The drive under its loop device. What is on it must be dropped before.
#[derive(Debug)]
pub struct Stand {
    // Dropped in this order: the loop device before the drive, the folder last.
    device: LoopDevice,
    drive: Emulated,
    place: WorkFolder,
    setup: StandSetup,
}

impl Stand {
    /// A new one, with nothing on it.
    pub fn new(setup: StandSetup) -> Result<Self, BenchError> {
        let place = WorkFolder::with_room(16 << 20)?;
        let bytes = setup.bytes.to_string();
        let part = PART.to_string();
        let arguments = ["--model", "paper", "--part", &part, "--bytes", &bytes, "--late", LATE];
        let drive = Emulated::mount(&place, &arguments, setup.scale)?;
        drive.order("fast")?;
        let device = LoopDevice::over(&drive.path())?;
        // As the kernel would know it of such a drive: it turns, and what it has taken is on the medium.
        for (name, value) in [("write_cache", "write through"), ("rotational", "1")] {
            let name = format!("/sys/class/block/{}/queue/{name}", device.name());
            std::fs::write(&name, value).map_err(BenchError::file(Path::new(&name), "write to it"))?;
        }
        Ok(Self { device, drive, place, setup })
    }

    /// The loop device.
    pub fn device(&self) -> &Path {
        self.device.path()
    }

    /// The drive below.
    pub fn drive(&self) -> &Emulated {
        &self.drive
    }

    /// A file beside it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.place.file(name)
    }

    /// Sizes.
    pub fn setup(&self) -> &StandSetup {
        &self.setup
    }

    /// Lets the drive keep to its model, and forget how late it was. A tiny run measures nothing.
    pub fn be_timed(&self) -> Result<(), BenchError> {
        self.drive.order("reset")?;
        match self.setup.scale {
            Scale::Tiny => Ok(()),
            Scale::Real => self.drive.order("ok"),
        }
    }

    /// Lets it answer at once: for filling, ageing and emptying.
    pub fn be_fast(&self) -> Result<(), BenchError> {
        self.drive.order("fast")
    }
}

/// A file system that is mounted; unmounted when dropped.
#[derive(Debug)]
pub struct Mounted {
    folder: PathBuf,
    device: PathBuf,
    kind: FileSystem,
    noted: Option<CleanupGuard>,
}

impl Mounted {
    /// Makes one on the stand's device, for so many files.
    pub fn new(stand: &Stand, kind: FileSystem, files: u64) -> Result<Self, BenchError> {
        let (device, files) = (stand.device().display().to_string(), files.to_string());
        let arguments = match kind {
            FileSystem::Ext2 => {
                vec!["-F", "-q", "-b", "4096", "-m", "0", "-N", &files, "-E", "nodiscard", &device]
            }
            FileSystem::Ext4 => {
                let options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0";
                vec!["-F", "-q", "-b", "4096", "-m", "0", "-N", &files, "-E", options, &device]
            }
            FileSystem::Xfs => vec!["-f", "-q", "-K", "-i", "maxpct=50", &device],
        };
        let name = format!("mkfs.{}", kind.name());
        tools::need(&name)?;
        tools::output(&name, &arguments)?;
        let folder = stand.file("mounted");
        std::fs::create_dir_all(&folder).map_err(BenchError::file(&folder, "make it"))?;
        let mut mounted = Self { folder, device: stand.device().to_owned(), kind, noted: None };
        mounted.mount()?;
        Ok(mounted)
    }

    fn mount(&mut self) -> Result<(), BenchError> {
        let (device, folder) = (self.device.to_string_lossy(), self.folder.to_string_lossy());
        tools::output("mount", &["-t", self.kind.name(), "-o", "noatime", &device, &folder])?;
        self.noted = Some(register(Cleanup::Mount(self.folder.clone())));
        Ok(())
    }

    /// Unmounts and mounts again: nothing is in the page cache any more.
    pub fn renew(&mut self) -> Result<(), BenchError> {
        tools::output("umount", &[&self.folder.to_string_lossy()])?;
        self.noted = None;
        self.mount()
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Bytes that are free, and all that there are.
    pub fn room(&self) -> Result<(u64, u64), BenchError> {
        let stat = rustix::fs::statvfs(&self.folder).map_err(BenchError::file(&self.folder, "look at it"))?;
        Ok((stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.noted.take().is_some() && tools::output("umount", &[&self.folder.to_string_lossy()]).is_err()
        {
            crate::emulated::unmount(&self.folder);
        }
    }
}
