//! Copies of slots' indexes in a folder on a faster drive: one file a slot, in a folder of the ring's own. Nothing depends on
//! them: what is not there, or is not what was copied, is read from the ring.

use holdfast_base::{CHECK_BLOCK, RingId, Sequence};
use holdfast_format::{IndexCopy, PartHeader};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What a file is called until all of it is there.
const UNFINISHED: &str = "unfinished";

/// Bytes of a copy that are checked at once.
const CHECKED: usize = 16 * CHECK_BLOCK;

/// The copies of one ring.
#[derive(Clone, Debug)]
pub struct IndexDrive {
    ring: RingId,
    folder: PathBuf,
}

impl IndexDrive {
    /// Those of a ring in `folder`, where those of others may be, too. Nothing is made.
    pub fn new(folder: &Path, ring: RingId) -> Self {
        Self { ring, folder: folder.join(ring.to_string()) }
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes it ready to be written by this process alone, until what comes back is dropped. `None`: another one writes here.
    pub fn own(&self) -> io::Result<Option<File>> {
        fs::create_dir_all(&self.folder)?;
        let owned = File::options().create(true).append(true).open(self.folder.join("owner"))?;
        match owned.try_lock() {
            Ok(()) => Ok(Some(owned)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }

    fn path(&self, sequence: Sequence) -> PathBuf {
        self.folder.join(format!("{:016x}", sequence.0))
    }

    /// Which slots there are copies of, and the bytes that each takes; none where there is no folder.
    pub fn copies(&self) -> io::Result<Vec<(Sequence, u64)>> {
        let listed = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            listed => listed?,
        };
        let mut copies = Vec::new();
        for file in listed {
            let file = file?;
            let name = file.file_name();
            let number = name.to_str().filter(|name| name.len() == 16);
            if let Some(number) = number.and_then(|name| u64::from_str_radix(name, 16).ok()) {
                // One that is gone by now is none.
                copies.extend(file.metadata().ok().map(|found| (Sequence(number), found.len())));
            }
        }
        copies.sort_unstable();
        Ok(copies)
    }

    /// Puts a copy there, whole or not at all.
    pub fn put(&self, sequence: Sequence, copy: &[u8]) -> io::Result<()> {
        let unfinished = self.folder.join(UNFINISHED);
        let mut file = File::create(&unfinished)?;
        // What a crash leaves of it does not pass its checks: it need not be waited for.
        file.write_all(copy)?;
        fs::rename(&unfinished, self.path(sequence))
    }

    /// Takes a copy away, if it is there.
    pub fn remove(&self, sequence: Sequence) -> io::Result<()> {
        match fs::remove_file(self.path(sequence)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Whether the copy of a slot is there, and all of it is as it was made.
    pub fn is_sound(&self, sequence: Sequence) -> bool {
        self.open(sequence).is_some_and(|copy| copy.is_sound())
    }

    /// The copy of what held `sequence`.
    pub(crate) fn open(&self, sequence: Sequence) -> Option<Copy> {
        let file = File::open(self.path(sequence)).ok()?;
        let mut front = [0; IndexCopy::FRONT];
        file.read_exact_at(&mut front, 0).ok()?;
        let start = IndexCopy::start_of(&front).ok()?;
        let all = file.metadata().ok()?.len();
        // A file that ends too soon is not worth the memory that it speaks of.
        let mut bytes = vec![0; Some(start).filter(|start| *start as u64 <= all)?];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let copy = IndexCopy::decode(&bytes).ok()?;
        (copy.ring == self.ring && copy.sequence == sequence).then_some(Copy { file, copy })
    }
}

/// The whole file of a copy: `bytes` are the slot's up to its payload, then its index.
pub(crate) fn image(header: &PartHeader, bytes: &[u8]) -> Vec<u8> {
    [&IndexCopy::new(header, bytes).encode()[..], bytes].concat()
}

/// A copy of a slot's index.
#[derive(Debug)]
pub(crate) struct Copy {
    file: File,
    copy: IndexCopy,
}

impl Copy {
    /// Bytes before the payload.
    pub(crate) fn head_bytes(&self) -> usize {
        self.copy.head as usize
    }

    fn is_sound(&self) -> bool {
        let all = self.copy.slot_bytes();
        let mut piece = vec![0; all.min(CHECKED)];
        (0..all).step_by(CHECKED).all(|start| {
            let len = CHECKED.min(all - start);
            self.fill(start, &mut piece[..len]).is_some()
        })
    }

    /// The bytes in a range of the slot; `None` where they are not among them, or not as they were.
    pub(crate) fn read(&self, range: &Range<usize>) -> Option<Vec<u8>> {
        let range = self.copy.place(range)?;
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
            let end = (start + CHECK_BLOCK).min(self.copy.slot_bytes());
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
        self.file.read_exact_at(into, (self.copy.start() + start) as u64).ok()?;
        self.copy.is_sound(start, into).then_some(())
    }
}
