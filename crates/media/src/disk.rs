//! The storage trait [`Disk`], its requests and its errors. No implementation lives here.

use crate::Buffer;
use std::time::Duration;

/// One lane's storage: requests go in, completions come out, in any order.
///
/// Offsets and lengths are multiples of [`DiskInfo::block`]. Buffers move in with their request and come back
/// with its completion, so that nothing else can touch them meanwhile. A write with `durable` set, and every
/// write that completed before a [`Op::Flush`] was submitted, is on the medium once that completion is there.
pub trait Disk: Send {
    /// What is known of the medium. Its length is what it was at the start, or when an [`Op::Measure`] last completed.
    fn info(&self) -> &DiskInfo;

    /// Hands over a request; gives it back when [`DiskInfo::depth`] requests are already in flight.
    /// Whatever else is wrong with it is told by its completion.
    fn submit(&mut self, request: Request) -> Result<(), Request>;

    /// The next completion; waits for one for at most `wait`. `None` when there was none: at once when nothing is
    /// in flight (though in a simulation the time may pass).
    fn complete(&mut self, wait: Duration) -> Option<Completion>;
}

/// What a disk says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskInfo {
    /// What a person calls it: a path, or the kind for those without one.
    pub name: String,
    /// Its kind.
    pub medium: Medium,
    /// Bytes that can be addressed.
    pub bytes: u64,
    /// Alignment of offsets and lengths.
    pub block: usize,
    /// Requests that may be in flight at once.
    pub depth: usize,
    /// Whether the page cache is bypassed.
    pub direct: bool,
}

impl DiskInfo {
    /// What a request does, where, and to how much: for its error.
    pub(crate) fn error(&self, what: &'static str, offset: u64, len: u64, fault: Fault) -> DiskError {
        DiskError { disk: self.name.clone(), what, offset, len, fault }
    }

    /// Whether a request lies on the medium, is aligned, and fits its buffer.
    pub(crate) fn check(&self, op: &Op) -> Result<(), DiskError> {
        let (what, offset, len, room) = match op {
            Op::Write { offset, buffer, len, .. } => ("write", *offset, *len, buffer.len()),
            Op::Read { offset, buffer, len } => ("read", *offset, *len, buffer.len()),
            Op::Flush | Op::Measure => return Ok(()),
        };
        let inside = offset.checked_add(len as u64).is_some_and(|end| end <= self.bytes);
        let aligned = offset.is_multiple_of(self.block as u64) && len.is_multiple_of(self.block);
        if inside && aligned && len > 0 && len <= room && u32::try_from(len).is_ok() {
            Ok(())
        } else {
            Err(self.error(what, offset, len as u64, Fault::Misplaced))
        }
    }
}

impl Op {
    /// Its name in errors, its place and its length.
    pub(crate) fn place(&self) -> (&'static str, u64, u64) {
        match self {
            Self::Write { offset, len, .. } => ("write", *offset, *len as u64),
            Self::Read { offset, len, .. } => ("read", *offset, *len as u64),
            Self::Flush => ("flush", 0, 0),
            Self::Measure => ("measurement", 0, 0),
        }
    }

    /// The buffer that travels with it.
    pub(crate) fn into_buffer(self) -> Option<Buffer> {
        match self {
            Self::Write { buffer, .. } | Self::Read { buffer, .. } => Some(buffer),
            Self::Flush | Self::Measure => None,
        }
    }
}

/// Kinds of medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// A raw block device or a partition.
    Device,
    /// A preallocated file.
    File,
    /// Memory, for tests and benches.
    Memory,
}

/// One piece of work for a disk.
#[derive(Debug)]
pub struct Request {
    /// Chosen by the caller, returned with the completion.
    pub tag: u64,
    /// What to do.
    pub op: Op,
}

/// What a request asks for.
#[derive(Debug)]
pub enum Op {
    /// Write the first `len` bytes of `buffer` at `offset`; with `durable` the completion means "on the medium".
    Write {
        /// Byte position on the medium.
        offset: u64,
        /// Where the bytes are.
        buffer: Buffer,
        /// How many of them.
        len: usize,
        /// Whether the completion waits for the medium.
        durable: bool,
    },
    /// Read `len` bytes at `offset` into the start of `buffer`.
    Read {
        /// Byte position on the medium.
        offset: u64,
        /// Where the bytes go.
        buffer: Buffer,
        /// How many of them.
        len: usize,
    },
    /// Bring everything whose write has completed to the medium.
    Flush,
    /// Look how long the medium is by now: somebody may have made it longer. What is lost of it is not noticed here.
    Measure,
}

/// The end of a request.
#[derive(Debug)]
pub struct Completion {
    /// The request's tag.
    pub tag: u64,
    /// The request's buffer, if it had one.
    pub buffer: Option<Buffer>,
    /// How it went. After an error of a write nothing is known of the range; after one of a read the buffer
    /// holds nothing of worth.
    pub result: Result<(), DiskError>,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{disk}: {what} of {len} bytes at {offset} failed: {fault}")]
pub struct DiskError {
    /// The disk's name.
    pub disk: String,
    /// `write`, `read`, `flush` or `measurement`.
    pub what: &'static str,
    /// Where.
    pub offset: u64,
    /// How much.
    pub len: u64,
    /// What went wrong.
    pub fault: Fault,
}

/// Kinds of failure, told apart by what can be done about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The place is bad: another place may do.
    #[error("input/output error (the medium may be damaged there)")]
    Io,
    /// The device is gone: it may come back.
    #[error("the device is gone")]
    Gone,
    /// The file system has no room for the file.
    #[error("no space left on the file system")]
    NoSpace,
    /// The request does not fit the medium or its alignment: a programming error.
    #[error("the request is outside the medium or not aligned")]
    Misplaced,
    /// Anything else, with its errno; said in the system's words.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Os(i32),
}

impl<D: Disk + ?Sized> Disk for &mut D {
    fn info(&self) -> &DiskInfo {
        (**self).info()
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        (**self).submit(request)
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        (**self).complete(wait)
    }
}
