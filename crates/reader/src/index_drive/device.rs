//! Index copies on a device of their own, or on a file that stands for one: a directory, and the copies behind it.
//!
//! Several rings may share a device. Writers of the directory lock the device. Readers take no lock: a copy that is replaced during
//! a read fails its checks.

use super::writer_lock::WriterLock;
use holdfast_base::{BLOCK, RingId, Sequence};
use holdfast_format::{DriveBlock, DriveEntry, DriveHead};
use holdfast_media::{Access, signature};
use holdfast_protocol::socket_path::make_run_directory;
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{self, Error, ErrorKind, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What a ring has on it.
type DeviceEntries = HashMap<Sequence, DriveEntry>;

/// A device, for one ring.
#[derive(Debug)]
pub(super) struct Device {
    path: PathBuf,
    ring: RingId,
    /// As it was when it was looked at last: what has changed since does not pass for what was sought.
    known: Mutex<Option<Arc<DeviceEntries>>>,
}

/// The directory, to be changed by nobody else.
struct Directory {
    file: File,
    head: DriveHead,
    blocks: Vec<DriveBlock>,
}

impl Device {
    pub(super) fn new(path: &Path, ring: RingId) -> Self {
        Self { path: path.to_owned(), ring, known: Mutex::default() }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn lock(&self, force: bool) -> io::Result<Option<WriterLock>> {
        let folder = make_run_directory().map_err(Error::other)?;
        let owned =
            File::options().create(true).append(true).open(folder.join(format!("{}.index", self.ring)))?;
        match owned.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        self.make_if_none(force)?;
        Ok(Some(WriterLock { file: owned, mount: None }))
    }

    /// Whether it is an index drive.
    pub(super) fn is_made(&self) -> bool {
        File::open(&self.path).and_then(|file| head(&file)).is_ok_and(|head| head.is_some())
    }

    /// Makes an index drive of what is none.
    pub(super) fn make_if_none(&self, force: bool) -> io::Result<()> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        file.lock()?;
        if head(&file)?.is_none() {
            self.make(&file, force)?;
        }
        Ok(())
    }

    /// Makes an index drive of it.
    fn make(&self, file: &File, force: bool) -> io::Result<()> {
        let device = holdfast_media::Device::open(&self.path, Access::Look).map_err(Error::other)?;
        if let Some(other) = signature(&device).map_err(Error::other)?.filter(|_| !force) {
            let other = format!("it carries {other}, which would be lost: choose another, or say --force");
            return Err(Error::new(ErrorKind::AlreadyExists, other));
        }
        let bytes = (&*file).seek(SeekFrom::End(0))?;
        let head =
            DriveHead::of(bytes).ok_or_else(|| Error::new(ErrorKind::StorageFull, "it is too small"))?;
        let empty = DriveHead::encode_block(&[None; DriveHead::ENTRIES]);
        for block in 1..head.first() {
            file.write_all_at(&empty, place(block))?;
        }
        // Last: until it is there this is no index drive.
        file.sync_data()?;
        file.write_all_at(&head.encode(), 0)
    }

    fn directory(&self) -> io::Result<Directory> {
        let file = File::options().read(true).write(true).open(&self.path)?;
        file.lock()?;
        let Some(head) = head(&file)? else { return Err(ErrorKind::NotFound.into()) };
        let blocks = blocks(&file, &head)?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        Ok(Directory { file, head, blocks })
    }

    /// What there is of the ring; nothing where this is no index drive.
    fn known(&self) -> io::Result<Arc<DeviceEntries>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*known {
            return Ok(Arc::clone(known));
        }
        let file = File::open(&self.path)?;
        let blocks = head(&file)?.map(|head| blocks(&file, &head)).transpose()?.unwrap_or_default();
        let all = blocks.iter().flatten().flatten().filter(|entry| entry.ring == self.ring);
        let all = Arc::new(all.map(|entry| (entry.sequence, *entry)).collect());
        *known = Some(Arc::clone(&all));
        Ok(all)
    }

    pub(super) fn copies(&self) -> io::Result<Vec<(Sequence, u64)>> {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let known = self.known()?;
        Ok(known.values().map(|entry| (entry.sequence, entry.bytes.into())).collect())
    }

    pub(super) fn put(&self, sequence: Sequence, copy: &[u8]) -> io::Result<()> {
        let full = || Error::from(ErrorKind::StorageFull);
        let bytes = u32::try_from(copy.len()).map_err(|_| full())?;
        let mut directory = self.directory()?;
        directory.remove(self.ring, sequence)?;
        let first = directory.room(DriveEntry::blocks(bytes)).ok_or_else(full)?;
        let free =
            directory.blocks.iter().position(|block| block.iter().any(Option::is_none)).ok_or_else(full)?;
        let entry = DriveEntry { ring: self.ring, sequence, first, bytes };
        if let Some(free) = directory.blocks[free].iter_mut().find(|entry| entry.is_none()) {
            *free = Some(entry);
        }
        directory.write(free)?;
        directory.file.write_all_at(copy, place(first))
    }

    pub(super) fn remove(&self, sequence: Sequence) -> io::Result<()> {
        self.directory()?.remove(self.ring, sequence)
    }

    /// The same as `open`, to be written to: nobody else takes or gives room meanwhile.
    pub(super) fn writable(&self, sequence: Sequence) -> io::Result<Option<(File, u64, u64)>> {
        let Directory { file, blocks, .. } = self.directory()?;
        let mut entries = blocks.iter().flatten().flatten();
        let entry = entries.find(|entry| (entry.ring, entry.sequence) == (self.ring, sequence));
        // With what may be left of another at the end of its last block.
        let bytes = |entry: &DriveEntry| u64::from(DriveEntry::blocks(entry.bytes)) * BLOCK as u64;
        Ok(entry.map(|entry| (file, place(entry.first), bytes(entry))))
    }

    /// The device, where a copy begins on it, and its bytes.
    pub(super) fn open(&self, sequence: Sequence) -> Option<(File, u64, u64)> {
        let entry = *self.known().ok()?.get(&sequence)?;
        Some((File::open(&self.path).ok()?, place(entry.first), entry.bytes.into()))
    }
}

impl Directory {
    fn write(&self, block: usize) -> io::Result<()> {
        let bytes = DriveHead::encode_block(&self.blocks[block]);
        self.file.write_all_at(&bytes, place(block as u32 + 1))
    }

    fn remove(&mut self, ring: RingId, sequence: Sequence) -> io::Result<()> {
        for block in 0..self.blocks.len() {
            let is_it = |entry: &Option<DriveEntry>| {
                entry.is_some_and(|entry| (entry.ring, entry.sequence) == (ring, sequence))
            };
            if self.blocks[block].iter().any(is_it) {
                self.blocks[block].iter_mut().filter(|entry| is_it(entry)).for_each(|entry| *entry = None);
                self.write(block)?;
            }
        }
        Ok(())
    }

    /// So many blocks that nothing takes: the first there are.
    fn room(&self, blocks: u32) -> Option<u32> {
        let entries = self.blocks.iter().flatten().flatten();
        let mut taken: Vec<(u32, u32)> =
            entries.map(|entry| (entry.first, entry.end().unwrap_or(u32::MAX))).collect();
        taken.sort_unstable();
        taken.push((self.head.end(), u32::MAX));
        let mut free = self.head.first();
        for (first, end) in taken {
            if first.checked_sub(free).is_some_and(|room| room >= blocks) {
                return Some(free);
            }
            free = free.max(end);
        }
        None
    }
}

fn place(block: u32) -> u64 {
    u64::from(block) * BLOCK as u64
}

/// The head of an index drive; `None`: this is none.
fn head(file: &File) -> io::Result<Option<DriveHead>> {
    let mut bytes = [0; BLOCK];
    match file.read_exact_at(&mut bytes, 0) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let there = (&*file).seek(SeekFrom::End(0))?;
    Ok(DriveHead::decode(&bytes).ok().filter(|head| head.bytes <= there))
}

/// The directory; a block that is damaged has nothing.
fn blocks(file: &File, head: &DriveHead) -> io::Result<Vec<DriveBlock>> {
    let mut bytes = vec![0; head.blocks as usize * BLOCK];
    file.read_exact_at(&mut bytes, BLOCK as u64)?;
    let (blocks, _) = bytes.as_chunks::<BLOCK>();
    Ok(blocks.iter().map(|block| head.decode_block(block).unwrap_or([None; DriveHead::ENTRIES])).collect())
}
