//! Object of a vault, open for ranged reads. Its last bytes, with which readers begin, come with its size in one request.

use crate::vault::Vault;
use bytes::Bytes;
use holdfast_dataset::RangeRead;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes at the end that are fetched when an object is opened: the summary, manifest and index of most datasets.
const TAIL: u64 = 512 << 10;

/// Bytes that are fetched in addition before a read that reaches into the tail: the index lies before the manifest.
const BEFORE: u64 = 256 << 10;

/// Object of a vault, open for reading.
#[derive(Debug)]
pub struct VaultObject {
    vault: Arc<Vault>,
    path: String,
    name: String,
    size: u64,
    /// Last bytes of the object, as far as they were fetched.
    tail: Mutex<Bytes>,
}

impl VaultObject {
    pub(crate) fn open(vault: &Arc<Vault>, path: &str, name: &str) -> io::Result<Self> {
        let (tail, size) = vault.store().tail(path, TAIL)?;
        let (path, name) = (path.to_owned(), name.to_owned());
        Ok(Self { vault: Arc::clone(vault), path, name, size, tail: Mutex::new(tail) })
    }

    /// Bytes from `offset` on, out of the tail, which is first extended to them.
    fn read_tail(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let mut start = self.size - tail.len() as u64;
        if offset < start {
            let from = offset.saturating_sub(BEFORE);
            let more = self.vault.store().read(&self.path, from, (start - from) as usize)?;
            *tail = [&more[..], &tail[..]].concat().into();
            start = from;
        }
        let at = (offset - start) as usize;
        Ok(tail.slice(at..at + length))
    }
}

impl RangeRead for VaultObject {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let end = offset.checked_add(length as u64).filter(|end| *end <= self.size);
        if end.is_none() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the object is shorter than it says"));
        }
        let start = self.size - self.tail.lock().unwrap_or_else(PoisonError::into_inner).len() as u64;
        if offset + length as u64 > start && length as u64 <= TAIL {
            return self.read_tail(offset, length);
        }
        self.vault.store().read(&self.path, offset, length)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}
