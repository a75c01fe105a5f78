//! Opening of a ring's path, to look or to own.

use super::lock::{self, Holder};
use super::{busy, bytes, caution};
use crate::Buffer;
use crate::disk::{DiskError, DiskInfo, Medium};
use holdfast_base::BLOCK;
use rustix::fs::{FileType, Mode, OFlags, Stat, StatxFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

/// What a path is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reading, beside an owner if there is one.
    Look,
    /// Reading and writing, alone.
    Own,
}

/// An open device or file. An owner's claim lasts as long as this does, or the disk that is made of it.
#[derive(Debug)]
pub struct Device {
    file: File,
    claim: Option<DeviceLock>,
    info: DiskInfo,
    access: Access,
    warnings: Vec<String>,
}

/// Keeps other owners away: a second descriptor, which holds the lock and the exclusive claim and is used for nothing
/// else. The one for the bytes would not do: the kernel gives up what an `io_uring` has registered only some time after
/// its process is gone, and a recorder that restarts would find itself locked out by its own ghost.
#[derive(Debug)]
pub(crate) struct DeviceLock(File);

/// What disks are made of.
pub(crate) struct Parts {
    pub(crate) file: File,
    pub(crate) claim: Option<DeviceLock>,
    pub(crate) info: DiskInfo,
    pub(crate) warnings: Vec<String>,
}

/// Why a path could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing.
    #[error("{}: not found; check the path", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// The user may not.
    #[error("{}: permission denied; run as a user who may {wanted} it (devices usually belong to the group `disk`)", path.display())]
    Denied {
        /// The path.
        path: PathBuf,
        /// `read`, or `read and write`.
        wanted: &'static str,
    },
    /// It takes no writes, whoever asks.
    #[error(
        "{}: is read-only; make it writable first (`blockdev --setrw` for a device, a mount with `rw` for a file)",
        path.display()
    )]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// It is neither a file nor a block device.
    #[error("{}: is {found}; a ring lives on a block device, a partition or a regular file", path.display())]
    LockKind {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: &'static str,
    },
    /// Another process owns it.
    #[error("{}: in use by {}; end that first (what only reads, as `holdfast status` and `holdfast read` do, works beside it)", path.display(), known(holder.as_ref()))]
    InUse {
        /// The path.
        path: PathBuf,
        /// Who, where the system tells.
        holder: Option<Holder>,
    },
    /// The system uses the device.
    #[error("{}: busy: {user}; release it there first", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
        /// How it is used.
        user: String,
    },
    /// Its blocks are larger than the format's.
    #[error("{}: its blocks have {block} bytes; at most {BLOCK} are supported", path.display())]
    BlockSize {
        /// The path.
        path: PathBuf,
        /// Bytes of a logical block.
        block: usize,
    },
    /// Anything else.
    #[error("{}: cannot {what}: {cause}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        cause: std::io::Error,
    },
}

fn known(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process (not visible from here)".to_owned(), ToString::to_string)
}

impl Device {
    /// Opens `path`, bypassing the page cache where that is possible.
    pub fn open(path: &Path, access: Access) -> Result<Self, OpenError> {
        let system = |what: &'static str, cause: Errno| OpenError::System {
            path: path.to_owned(),
            what,
            cause: cause.into(),
        };
        // Before opening: to open a pipe or a tape may block or rewind.
        let stat = rustix::fs::stat(path).map_err(|cause| refused(path, access, cause))?;
        let medium = medium(path, &stat)?;
        let claim = match access {
            Access::Look => None,
            Access::Own => Some(claim(path, medium)?),
        };
        let (file, direct) = open_file(path, access)?;
        let opened = rustix::fs::fstat(&file).map_err(|cause| system("look at it", cause))?;
        let claimed = claim.as_ref().map_or(Ok(stat), |claim| rustix::fs::fstat(&claim.0));
        let claimed = claimed.map_err(|cause| system("look at it", cause))?;
        if (opened.st_dev, opened.st_ino) != (claimed.st_dev, claimed.st_ino) {
            // Somebody put another file in its place between our looks.
            return Err(system("open it", Errno::AGAIN));
        }
        let block = logical_block(&file, medium);
        if block > BLOCK {
            return Err(OpenError::BlockSize { path: path.to_owned(), block });
        }
        let bytes = bytes::length(&file).map_err(|cause| system("measure it", cause))?;
        let name = path.display().to_string();
        let info = DiskInfo { name, medium, bytes, block, depth: 1, direct };
        let mut device = Self { file, claim, info, access, warnings: Vec::new() };
        device.take_precautions().map_err(|cause| system("read it", cause))?;
        Ok(device)
    }

    /// Finds out whether direct I/O really works, and what else a person should know.
    fn take_precautions(&mut self) -> Result<(), Errno> {
        if self.info.direct && self.info.bytes >= BLOCK as u64 {
            let mut probe = Buffer::aligned(BLOCK).map_err(|_| Errno::NOMEM)?;
            if rustix::io::pread(&self.file, &mut probe[..], 0) == Err(Errno::INVAL) {
                let flags = rustix::fs::fcntl_getfl(&self.file)?;
                rustix::fs::fcntl_setfl(&self.file, flags - OFlags::DIRECT)?;
                self.info.direct = false;
            }
        }
        if !self.info.direct {
            self.warnings.push(format!(
                "{}: the file system has no direct I/O: writes go through the page cache with a sync each, and take memory and time from capture",
                self.info.name
            ));
        }
        if self.info.medium == Medium::File
            && let Some(text) =
                rustix::fs::fstatfs(&self.file).ok().and_then(|stat| caution::no_guarantee(&stat))
        {
            self.warnings.push(format!("{}: {text}", self.info.name));
        }
        Ok(())
    }

    /// What is known of it.
    pub fn info(&self) -> &DiskInfo {
        &self.info
    }

    /// What it was opened for.
    pub fn access(&self) -> Access {
        self.access
    }

    /// What a person should know before relying on it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn parts(self) -> Parts {
        Parts { file: self.file, claim: self.claim, info: self.info, warnings: self.warnings }
    }

    /// Reads `len` bytes at `offset` into the start of `buffer`, in the calling thread.
    pub fn read(&self, offset: u64, buffer: &mut Buffer, len: usize) -> Result<(), DiskError> {
        bytes::read_at(&self.file, &self.info, offset, &mut buffer[..len])
    }

    /// Writes the first `len` bytes of `buffer` at `offset`, in the calling thread; durable only after a
    /// [`Device::sync`].
    pub fn write(&self, offset: u64, buffer: &Buffer, len: usize) -> Result<(), DiskError> {
        bytes::write_at(&self.file, &self.info, offset, &buffer[..len])
    }

    /// Brings everything written to the medium.
    pub fn sync(&self) -> Result<(), DiskError> {
        bytes::sync(&self.file, &self.info)
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn medium(path: &Path, stat: &Stat) -> Result<Medium, OpenError> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => return Ok(Medium::File),
        FileType::BlockDevice => return Ok(Medium::Device),
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a named pipe",
        FileType::Socket => "a socket",
        _ => "something else",
    };
    Err(OpenError::LockKind { path: path.to_owned(), found })
}

/// Makes sure that nobody else owns `path`.
fn claim(path: &Path, medium: Medium) -> Result<DeviceLock, OpenError> {
    let mut flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    if medium == Medium::Device {
        // The kernel's own claim: nothing can be mounted or built on the device meanwhile.
        flags |= OFlags::EXCL;
    }
    let file = rustix::fs::open(path, flags, Mode::empty()).map(File::from);
    let file = file.map_err(|cause| refused(path, Access::Own, cause))?;
    if medium == Medium::Device && is_locked(&file) {
        return Err(OpenError::ReadOnly { path: path.to_owned() });
    }
    match lock::claim(&file) {
        Ok(Ok(())) => Ok(DeviceLock(file)),
        Ok(Err(holder)) => Err(OpenError::InUse { path: path.to_owned(), holder }),
        Err(cause) => Err(OpenError::System { path: path.to_owned(), what: "lock it", cause: cause.into() }),
    }
}

/// Whether a device is set to read-only: some can be opened for writing all the same, and then refuse every write.
fn is_locked(file: &File) -> bool {
    let Ok(stat) = rustix::fs::fstat(file) else { return false };
    let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    let told = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/ro"));
    told.is_ok_and(|text| text.trim_end() == "1")
}

fn open_file(path: &Path, access: Access) -> Result<(File, bool), OpenError> {
    let mut flags = OFlags::CLOEXEC | OFlags::NOCTTY;
    flags |= match access {
        Access::Look => OFlags::RDONLY,
        Access::Own => OFlags::RDWR,
    };
    let open = |flags| rustix::fs::open(path, flags, Mode::empty()).map(File::from);
    let opened = match open(flags | OFlags::DIRECT) {
        Ok(file) => Ok((file, true)),
        // The file system has no direct I/O.
        Err(Errno::INVAL) => open(flags).map(|file| (file, false)),
        Err(cause) => Err(cause),
    };
    opened.map_err(|cause| refused(path, access, cause))
}

fn refused(path: &Path, access: Access, cause: Errno) -> OpenError {
    let path = path.to_owned();
    match cause {
        Errno::NOENT | Errno::NOTDIR => OpenError::Missing { path },
        Errno::ROFS => OpenError::ReadOnly { path },
        Errno::ACCESS | Errno::PERM => {
            let wanted = if access == Access::Own { "read and write" } else { "read" };
            OpenError::Denied { path, wanted }
        }
        Errno::BUSY => {
            let stat = rustix::fs::stat(&path).ok();
            if let Some((holder, lock::LockKind::Exclusive)) = stat.as_ref().and_then(lock::holder) {
                return OpenError::InUse { path, holder: Some(holder) };
            }
            let numbers = stat.map(|stat| (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev)));
            let user = numbers.and_then(|(major, minor)| busy::user_of(major, minor));
            OpenError::Busy {
                path,
                user: user.unwrap_or_else(|| "something claims it for itself".to_owned()),
            }
        }
        cause => OpenError::System { path, what: "open it", cause: cause.into() },
    }
}

/// What offsets and lengths must be multiples of.
fn logical_block(file: &File, medium: Medium) -> usize {
    let known = match medium {
        Medium::Device => rustix::fs::ioctl_blksszget(file).ok(),
        _ => rustix::fs::statx(file, c"", rustix::fs::AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN)
            .ok()
            .filter(|known| known.stx_mask & StatxFlags::DIOALIGN.bits() != 0)
            .map(|known| known.stx_dio_offset_align),
    };
    known.filter(|bytes| bytes.is_power_of_two() && *bytes >= 512).map_or(BLOCK, |bytes| bytes as usize)
}
