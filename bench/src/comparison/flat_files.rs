//! Flat files: one an element, on a file system that is kept full. The index (which file is the oldest) is in memory.

use super::cell::{ElementSize, FileSystem, PartitionState, WritePolicy};
use super::opponent::ElementStore;
use super::stand::{Mounted, Stand};
use super::tally::ReadGate;
use crate::BenchError;
use holdfast_base::BLOCK;
use holdfast_media::{Buffer, Seed};
use rustix::fs::{Advice, OFlags, fadvise, syncfs};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Files in a folder.
const FOLDER: u64 = 1000;

/// What a reader reads at once: what it may delay a writer that comes before it. Past the page cache nobody reads
/// ahead, so that it must be more there.
const QUANTUM: usize = 1 << 20;
const DIRECT_QUANTUM: usize = 8 << 20;

/// Elements of this size are written out as they come; smaller ones are better off together.
const AT_ONCE: u64 = 16 << 20;

/// The share that is filled.
const FULL: f64 = 0.99;

/// Times that all is overwritten before it counts as aged.
const LAPS: u64 = 2;

/// Which elements are there.
#[derive(Debug, Default)]
struct Index {
    /// The oldest, and the one that comes next.
    range: (u64, u64),
    /// Bytes of those in between, where they may differ.
    sizes: VecDeque<u64>,
    bytes: u64,
}

impl Index {
    /// What to read after `last`: one after the other; from the newest quarter again when that is not there.
    fn after(&self, last: Option<u64>) -> Option<u64> {
        let (first, end) = self.range;
        let next = last.map_or(end, |last| last + 1);
        let begin = (end > first).then(|| end - (end - first).div_ceil(4));
        if (first..end).contains(&next) { Some(next) } else { begin }
    }
}

/// A file system full of elements.
#[derive(Debug)]
pub struct FlatFiles {
    // Kept open for syncs; closed before it is unmounted.
    root: Option<File>,
    mounted: Mounted,
    manner: WritePolicy,
    size: ElementSize,
    /// Files, in place; bytes, when deleting.
    limit: u64,
    content: Buffer,
    index: Mutex<Index>,
}

impl FlatFiles {
    /// A new file system, filled and aged if that is wanted.
    pub fn prepare(
        stand: &Stand,
        kind: FileSystem,
        manner: WritePolicy,
        size: ElementSize,
        state: PartitionState,
    ) -> Result<Self, BenchError> {
        let files = stand.setup().bytes / size.mean().next_multiple_of(BLOCK as u64) * 5 / 4 + 1024;
        let mounted = Mounted::new(stand, kind, files)?;
        let most = match size {
            ElementSize::Fixed(bytes) => bytes,
            ElementSize::Varied => 4 << 20,
        };
        let content = Buffer::aligned(most as usize).map_err(BenchError::during("getting a buffer"))?;
        let (free, _) = mounted.room()?;
        let in_place = manner != WritePolicy::Deleting;
        // Deletion wants a limit in bytes, a block for each end and for what describes the files.
        let full = (free as f64 * FULL) as u64;
        let limit = if in_place { full / size.mean().next_multiple_of(BLOCK as u64) } else { full };
        let index = Mutex::default();
        let mut files = Self { root: None, mounted, manner, size, limit, content, index };
        if state == PartitionState::Aged {
            files.age()?;
        }
        files.renew()?;
        Ok(files)
    }

    /// Fills all there is, and writes it over.
    fn age(&mut self) -> Result<(), BenchError> {
        let (free, _) = self.mounted.room()?;
        let left = (free as f64 * (1.0 - FULL)) as u64 + self.size.mean();
        let look = ((4 << 20) / self.size.mean()).max(1);
        let (mut seed, mut count, mut bytes) = (Seed::new(2), 0u64, 0);
        self.limit = u64::MAX;
        while !count.is_multiple_of(look) || self.mounted.room()?.0 >= left {
            let len = self.size.next(&mut seed);
            if !self.store(len)? {
                break;
            }
            bytes += len;
            count += 1;
        }
        self.limit = if self.in_place() { count.max(1) } else { self.index().bytes };
        let (mut written, mut dirty) = (0, 0);
        while written < bytes * LAPS {
            let len = self.size.next(&mut seed);
            self.put(len)?;
            written += len;
            dirty += len;
            // Not all of it at once: what waits in the page cache would be laid out together.
            if dirty > 64 << 20 {
                self.sync()?;
                dirty = 0;
            }
        }
        self.sync()
    }

    /// Puts all that waits on the medium. What describes the files stays in the page cache, a thousandth of what they hold:
    /// it fits in memory where they do not. A reader forgets what is in a file before it reads it.
    pub fn renew(&mut self) -> Result<(), BenchError> {
        if self.root.is_none() {
            let folder = self.mounted.folder();
            self.root = Some(File::open(folder).map_err(BenchError::file(folder, "open it"))?);
        }
        self.sync()
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn in_place(&self) -> bool {
        self.manner != WritePolicy::Deleting
    }

    /// The file of an element.
    fn path(&self, number: u64) -> PathBuf {
        let number = if self.in_place() { number % self.limit } else { number };
        self.mounted.folder().join((number / FOLDER).to_string()).join((number % FOLDER).to_string())
    }

    /// Deletes the oldest; `false` when there is none.
    fn expire(&self) -> Result<bool, BenchError> {
        let number = {
            let mut index = self.index();
            let Some(bytes) = index.sizes.pop_front() else { return Ok(false) };
            index.bytes -= bytes;
            index.range.0 += 1;
            index.range.0 - 1
        };
        let path = self.path(number);
        std::fs::remove_file(&path).map_err(BenchError::file(&path, "delete it"))?;
        if number % FOLDER == FOLDER - 1
            && let Some(folder) = path.parent()
        {
            let _ = std::fs::remove_dir(folder);
        }
        Ok(true)
    }

    fn write(&self, path: &Path, bytes: u64) -> std::io::Result<()> {
        let mut options = File::options();
        options.create(true).write(true).truncate(false);
        if self.manner == WritePolicy::Direct {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        let file = options.open(path);
        let mut file = match file {
            Err(cause) if cause.kind() == ErrorKind::NotFound => {
                std::fs::create_dir_all(path.parent().unwrap_or(path))?;
                options.open(path)?
            }
            other => other?,
        };
        file.write_all(&self.content[..bytes as usize])?;
        if bytes >= AT_ONCE && matches!(self.manner, WritePolicy::InPlace | WritePolicy::Deleting) {
            // The kernel begins to write it out now, and does not wait: until the next sync the drive would rest. A reader
            // who gives way to the writer must not find the drive at work when that has nothing to do.
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
        Ok(())
    }

    /// Reads one element after the other, the oldest of the newest quarter first.
    pub fn read(&self, gate: &mut ReadGate<'_>) -> Result<(), BenchError> {
        let direct = self.manner == WritePolicy::Direct;
        let quantum = if direct { DIRECT_QUANTUM } else { QUANTUM };
        let mut buffer = Buffer::aligned(quantum).map_err(BenchError::during("getting a buffer"))?;
        let mut options = File::options();
        options.read(true);
        if direct {
            options.custom_flags(OFlags::DIRECT.bits() as i32);
        }
        let mut last = None;
        while gate.may() {
            let next = self.index().after(last);
            let Some(number) = next else {
                std::thread::sleep(std::time::Duration::from_millis(1));
                continue;
            };
            last = Some(number);
            let path = self.path(number);
            let mut file = match options.open(&path) {
                Ok(file) => file,
                // It expired just now.
                Err(cause) if cause.kind() == ErrorKind::NotFound => continue,
                Err(cause) => return Err(BenchError::file(&path, "open it")(cause)),
            };
            // A disk is larger than memory in life: nothing is found there.
            fadvise(&file, 0, None, Advice::DontNeed).map_err(BenchError::file(&path, "forget it"))?;
            while gate.may() {
                let got = file.read(&mut buffer[..]).map_err(BenchError::file(&path, "read it"))?;
                if got == 0 {
                    break;
                }
                gate.got(got as u64);
            }
        }
        Ok(())
    }

    /// Writes the next element; `false` where there is no space for it.
    fn store(&self, bytes: u64) -> Result<bool, BenchError> {
        let number = self.index().range.1;
        let path = self.path(number);
        match self.write(&path, bytes) {
            Ok(()) => {}
            Err(cause) if cause.kind() == ErrorKind::StorageFull => {
                let _ = std::fs::remove_file(&path);
                return Ok(false);
            }
            Err(cause) => return Err(BenchError::file(&path, "write it")(cause)),
        }
        let mut index = self.index();
        index.range.1 += 1;
        if self.in_place() {
            index.range.0 = index.range.0.max(index.range.1.saturating_sub(self.limit));
        } else {
            let space = bytes.next_multiple_of(BLOCK as u64);
            index.sizes.push_back(space);
            index.bytes += space;
        }
        Ok(true)
    }

    /// The same; the oldest give way.
    fn put(&self, bytes: u64) -> Result<(), BenchError> {
        while !self.in_place() && self.index().bytes + bytes > self.limit {
            self.expire()?;
        }
        while !self.store(bytes)? {
            if self.in_place() || !self.expire()? {
                return Err(BenchError::Accounting(format!(
                    "no space for {bytes} bytes on a file system that had it"
                )));
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), BenchError> {
        let folder = self.mounted.folder();
        if let Some(root) = &self.root {
            return syncfs(root).map_err(BenchError::file(folder, "sync it"));
        }
        let root = File::open(folder).map_err(BenchError::file(folder, "open it"))?;
        syncfs(&root).map_err(BenchError::file(folder, "sync it"))
    }

    /// The writer's part: elements are put through this, while [`FlatFiles::read`] goes on.
    pub fn shelf(&self) -> FlatFileWriter<'_> {
        FlatFileWriter(self)
    }
}

/// Writes to [`FlatFiles`].
#[derive(Debug)]
pub struct FlatFileWriter<'a>(&'a FlatFiles);

impl ElementStore for FlatFileWriter<'_> {
    fn put(&mut self, bytes: u64) -> Result<(), BenchError> {
        self.0.put(bytes)
    }

    fn sync(&mut self) -> Result<(), BenchError> {
        // Past the page cache it is on the medium already, in place: only times of files are missing.
        if self.0.manner == WritePolicy::Direct { Ok(()) } else { self.0.sync() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_goes_through_the_newest_quarter_and_again() {
        let mut index = Index::default();
        assert_eq!(index.after(None), None);
        index.range = (10, 20);
        assert_eq!(index.after(None), Some(17));
        assert_eq!(index.after(Some(15)), Some(16));
        assert_eq!(index.after(Some(19)), Some(17));
        // It was too slow: what comes next has expired.
        assert_eq!(index.after(Some(3)), Some(17));
        index.range = (0, 1);
        assert_eq!(index.after(None), Some(0));
    }
}
