//! Creation of a ring's file: its space is reserved, so that no write finds the file system full later.

use super::space::{Space, free};
use super::{Access, Device, OpenError};
use crate::disk::DiskError;
use holdfast_base::{BLOCK, ByteSize};
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Whether every byte is written once in advance.
pub enum Prefill<'a> {
    /// Space is reserved; the first lap writes to it.
    No,
    /// All is written now, so that the first lap is as fast as those after it. Told the bytes done so far.
    Yes(&'a mut dyn FnMut(u64)),
}

/// Why a file could not be made. Nothing is left of it then.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is something already.
    #[error("{}: exists already", path.display())]
    Exists {
        /// The path.
        path: PathBuf,
    },
    /// A size that no ring can have.
    #[error("{}: a ring file needs a size of whole {BLOCK}-byte blocks, not {bytes} bytes", path.display())]
    Size {
        /// The path.
        path: PathBuf,
        /// What was asked.
        bytes: u64,
    },
    /// The file system is too small.
    #[error("{}: {} do not fit: the file system has {} free; give a smaller size or another place", path.display(), ByteSize(*bytes), ByteSize(*free))]
    NoSpace {
        /// The path.
        path: PathBuf,
        /// What was asked.
        bytes: u64,
        /// What there is.
        free: u64,
    },
    /// The file system cannot hold files of that size.
    #[error("{}: the file system cannot hold a file of {}", path.display(), ByteSize(*bytes))]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// What was asked.
        bytes: u64,
    },
    /// It is being made longer already.
    #[error("{}: somebody else is making it longer; try again when that is done", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
    },
    /// There is no folder for it.
    #[error("{}: there is no such folder to put it in; make it first, or give another path", path.display())]
    NoFolder {
        /// The path.
        path: PathBuf,
    },
    /// Writing it failed.
    #[error(transparent)]
    Write(#[from] DiskError),
    /// It could not be opened after being made.
    #[error(transparent)]
    Open(#[from] OpenError),
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

impl CreateError {
    /// The same of another path: of the one that the file was made for.
    #[must_use]
    pub fn of(mut self, named: &Path) -> Self {
        match &mut self {
            Self::Exists { path }
            | Self::Size { path, .. }
            | Self::NoSpace { path, .. }
            | Self::TooLarge { path, .. }
            | Self::Busy { path }
            | Self::NoFolder { path }
            | Self::System { path, .. } => named.clone_into(path),
            Self::Write(_) | Self::Open(_) => {}
        }
        self
    }
}

/// Makes a file of `bytes` at `path` and opens it as its owner. Only its user may read it: it will hold what was
/// recorded.
pub fn create_file(path: &Path, bytes: u64, prefill: Prefill<'_>) -> Result<Device, CreateError> {
    if bytes == 0 || !bytes.is_multiple_of(BLOCK as u64) || i64::try_from(bytes).is_err() {
        return Err(CreateError::Size { path: path.to_owned(), bytes });
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = |what: &'static str| {
        move |cause: Errno| CreateError::System { path: path.to_owned(), what, cause: cause.into() }
    };
    let space = rustix::fs::statvfs(folder).map_err(|cause| match cause {
        Errno::NOENT | Errno::NOTDIR => CreateError::NoFolder { path: path.to_owned() },
        cause => failed("look at its folder")(cause),
    })?;
    let free = free(&space);
    if free < bytes {
        return Err(CreateError::NoSpace { path: path.to_owned(), bytes, free });
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::EXIST) => return Err(CreateError::Exists { path: path.to_owned() }),
        Err(cause) => return Err(failed("create it")(cause)),
    };
    // From here on a failure must not leave a piece of a ring behind.
    let made = make(&file, path, folder, bytes, prefill);
    if made.is_err() {
        let _ = rustix::fs::unlink(path);
    }
    made
}

fn make(
    file: &File,
    path: &Path,
    folder: &Path,
    bytes: u64,
    prefill: Prefill<'_>,
) -> Result<Device, CreateError> {
    let space = Space { file, path, has: 0, bytes };
    let failed = |what: &'static str| move |cause: Errno| space.failed(what, cause);
    let reserved = space.reserve(FallocateFlags::empty())?;
    if !reserved {
        rustix::fs::ftruncate(file, bytes).map_err(failed("set its length"))?;
    }
    let device = Device::open(path, Access::Own)?;
    space.write(device.file(), device.info(), prefill, reserved)?;
    rustix::fs::fsync(file).map_err(failed("bring it to the medium"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(folder, flags, Mode::empty())
        .and_then(rustix::fs::fsync)
        .map_err(failed("bring its folder to the medium"))?;
    Ok(device)
}
