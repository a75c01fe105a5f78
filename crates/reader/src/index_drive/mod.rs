//! Copies of slot indexes on a faster drive: in a folder (`folder`), or on a device of their own (`device`).
//!
//! Nothing depends on the copies: the ring replaces one that is missing or fails its checks.

mod device;
mod folder;
mod writer_lock;

pub use writer_lock::WriterLock;

use device::Device;
use folder::Folder;
use holdfast_base::{BLOCK, CHECK_BLOCK, RingId, Sequence};
use holdfast_format::{IndexCopy, PartHeader};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a copy that are checked at once.
const CHECKED: usize = 16 * CHECK_BLOCK;

/// The copies of one ring.
#[derive(Clone, Debug)]
pub struct IndexDrive {
    ring: RingId,
    place: Backend,
}

#[derive(Clone, Debug)]
enum Backend {
    Folder(Folder),
    Device(Arc<Device>),
}

/// Writes zeros: from a place in a file on, so many bytes.
fn empty((file, first, bytes): (File, u64, u64)) -> io::Result<()> {
    let zeros = vec![0; CHECKED];
    let mut at = 0;
    while at < bytes {
        let some = (bytes - at).min(CHECKED as u64);
        file.write_all_at(&zeros[..some as usize], first + at)?;
        at += some;
    }
    file.sync_data()
}

impl IndexDrive {
    /// Those of a ring in a folder or on a device (or a file that stands for one), where those of others may be, too. Nothing is
    /// made.
    pub fn new(path: &Path, ring: RingId) -> Self {
        let is_folder = path.metadata().map_or(true, |found| found.is_dir());
        let place = if is_folder {
            Backend::Folder(Folder::new(path, ring))
        } else {
            Backend::Device(Arc::new(Device::new(path, ring)))
        };
        Self { ring, place }
    }

    /// Where they are: the ring's own folder, or the device.
    pub fn path(&self) -> &Path {
        match &self.place {
            Backend::Folder(folder) => folder.path(),
            Backend::Device(device) => device.path(),
        }
    }

    /// Whether there is anything of the ring: its own folder, or copies on the device.
    pub fn is_there(&self) -> io::Result<bool> {
        match &self.place {
            Backend::Folder(folder) => folder.is_there(),
            Backend::Device(device) => Ok(!device.copies()?.is_empty()),
        }
    }

    /// Makes it ready to be written by this process alone, until what comes back is dropped. `None`: another one writes here. A
    /// device that has something else on it is left as it is unless `force` says otherwise.
    pub fn lock(&self, force: bool) -> io::Result<Option<WriterLock>> {
        match &self.place {
            Backend::Folder(folder) => folder.lock(),
            Backend::Device(device) => device.lock(force),
        }
    }

    /// Whether what was made ready is there still: the folder, or an index drive on the device.
    pub fn is_locked(&self, lock: &WriterLock) -> bool {
        match &self.place {
            Backend::Folder(folder) => folder.is_locked(lock),
            Backend::Device(device) => device.is_made(),
        }
    }

    /// Makes what was lost ready again: of what was known of its copies nothing holds. `false`: another process did before. A
    /// device that has something else on it by now is left as it is.
    pub fn relock(&self, lock: &mut WriterLock) -> io::Result<bool> {
        match &self.place {
            Backend::Folder(folder) => folder.relock(lock),
            Backend::Device(device) => device.make_if_none(false).map(|()| true),
        }
    }

    /// Which slots there are copies of, and the bytes that each takes; none where there is nothing yet.
    pub fn copies(&self) -> io::Result<Vec<(Sequence, u64)>> {
        let mut copies = match &self.place {
            Backend::Folder(folder) => folder.copies()?,
            Backend::Device(device) => device.copies()?,
        };
        copies.sort_unstable();
        Ok(copies)
    }

    /// Puts a copy there, whole or not at all. It has its name from the beginning, by which it is taken away again: what a crash leaves
    /// of it does not pass its checks.
    pub fn put(&self, sequence: Sequence, copy: &[u8]) -> io::Result<()> {
        let put = match &self.place {
            Backend::Folder(folder) => folder.put(sequence, copy),
            Backend::Device(device) => device.put(sequence, copy),
        };
        if put.is_err() {
            // Why it could not be put there is told.
            let _ = self.remove(sequence);
        }
        put
    }

    /// Takes a copy away, if it is there. Nothing of it is left on the drive, as far as that writes where it is told to: what it is of
    /// may have been purged. Why it could not be overwritten, if so: it is gone all the same.
    pub fn remove(&self, sequence: Sequence) -> io::Result<Option<io::Error>> {
        let there = match &self.place {
            Backend::Folder(folder) => folder.writable(sequence),
            Backend::Device(device) => device.writable(sequence),
        };
        let emptied = there.and_then(|there| there.map_or(Ok(()), empty));
        match &self.place {
            Backend::Folder(folder) => folder.remove(sequence)?,
            Backend::Device(device) => device.remove(sequence)?,
        }
        Ok(emptied.err())
    }

    /// Whether the copy of a slot is there, and all of it is as it was made.
    pub fn is_sound(&self, sequence: Sequence) -> bool {
        self.open(sequence).is_some_and(|copy| copy.is_sound())
    }

    /// Whether the copy of a slot that has this header is there: a ring that was put back to what it was before gives its sequences
    /// again, to something else.
    pub fn has_copy_of(&self, header: &PartHeader) -> bool {
        self.open(header.sequence).is_some_and(|copy| copy.is_of(header))
    }

    /// The copy of what held `sequence`.
    pub(crate) fn open(&self, sequence: Sequence) -> Option<StoredCopy> {
        let (file, base, all) = match &self.place {
            Backend::Folder(folder) => folder.open(sequence)?,
            Backend::Device(device) => device.open(sequence)?,
        };
        let mut front = [0; IndexCopy::FRONT];
        file.read_exact_at(&mut front, base).ok()?;
        let start = IndexCopy::start_of(&front).ok()?;
        // One that ends too soon is not worth the memory that it speaks of.
        let mut bytes = vec![0; Some(start).filter(|start| *start as u64 <= all)?];
        file.read_exact_at(&mut bytes, base).ok()?;
        let front = IndexCopy::decode(&bytes).ok()?;
        (front.ring == self.ring && front.sequence == sequence).then_some(StoredCopy { file, base, front })
    }
}

/// The whole file of a copy: `bytes` are the slot's up to its payload, then its index.
pub(crate) fn image(header: &PartHeader, bytes: &[u8]) -> Vec<u8> {
    [&IndexCopy::new(header, bytes).encode()[..], bytes].concat()
}

/// A copy of a slot's index.
#[derive(Debug)]
pub(crate) struct StoredCopy {
    file: File,
    /// Where it begins there.
    base: u64,
    /// What stands before its bytes.
    front: IndexCopy,
}

impl StoredCopy {
    /// Whether it was made of a slot with this header.
    pub(crate) fn is_of(&self, header: &PartHeader) -> bool {
        self.read(&(0..BLOCK)).is_some_and(|bytes| header.is_in(&bytes))
    }

    /// Bytes before the payload.
    pub(crate) fn head_bytes(&self) -> usize {
        self.front.head as usize
    }

    fn is_sound(&self) -> bool {
        let all = self.front.slot_bytes();
        let mut piece = vec![0; all.min(CHECKED)];
        (0..all).step_by(CHECKED).all(|start| {
            let len = CHECKED.min(all - start);
            self.fill(start, &mut piece[..len]).is_some()
        })
    }

    /// The bytes in a range of the slot; `None` where they are not among them, or not as they were.
    pub(crate) fn read(&self, range: &Range<usize>) -> Option<Vec<u8>> {
        let range = self.front.place(range)?;
        let mut bytes = Vec::with_capacity(range.len());
        let whole = range.start.next_multiple_of(CHECK_BLOCK)..range.end / CHECK_BLOCK * CHECK_BLOCK;
        if whole.start >= whole.end {
            self.parts(range, &mut bytes)?;
            return Some(bytes);
        }
        self.parts(range.start..whole.start, &mut bytes)?;
        let from = bytes.len();
        bytes.resize(from + whole.len(), 0);
        self.fill(whole.start, &mut bytes[from..])?;
        self.parts(whole.end..range.end, &mut bytes)?;
        Some(bytes)
    }

    /// Appends a range that is not whole check blocks.
    fn parts(&self, mut range: Range<usize>, into: &mut Vec<u8>) -> Option<()> {
        while range.start < range.end {
            let start = range.start / CHECK_BLOCK * CHECK_BLOCK;
            let end = (start + CHECK_BLOCK).min(self.front.slot_bytes());
            let mut block = vec![0; end - start];
            self.fill(start, &mut block)?;
            let stop = range.end.min(end);
            into.extend_from_slice(&block[range.start - start..stop - start]);
            range.start = stop;
        }
        Some(())
    }

    /// Reads whole check blocks, and checks them.
    fn fill(&self, start: usize, into: &mut [u8]) -> Option<()> {
        self.file.read_exact_at(into, self.base + (self.front.start() + start) as u64).ok()?;
        self.front.is_sound(start, into).then_some(())
    }
}
