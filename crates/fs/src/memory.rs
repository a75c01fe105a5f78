//! Memory of all buffers of a file system: one limit, and the files that hold some of it.

use crate::reader::Reader;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Memory that all files share.
#[derive(Debug)]
pub(crate) struct Memory {
    limit: u64,
    used: AtomicU64,
    /// Open files, in the order in which they were opened.
    readers: Mutex<Vec<Weak<Reader>>>,
}

/// Part of the memory, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.memory.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Memory {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0), readers: Mutex::default() })
    }

    /// Bytes that are free now.
    pub(crate) fn room(&self) -> u64 {
        self.limit.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    /// Takes some memory, unless so much is not free.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: u64) -> Option<Reservation> {
        let add = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.limit);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        taken.ok().map(|_| Reservation { memory: Arc::clone(self), bytes })
    }

    /// Counts an open file among those that hold memory.
    pub(crate) fn register(&self, reader: &Arc<Reader>) {
        let mut readers = self.lock();
        readers.retain(|reader| reader.strong_count() > 0);
        readers.push(Arc::downgrade(reader));
    }

    /// Makes files other than `reader` give up their buffers until some memory is free, the least recently used first.
    pub(crate) fn reclaim(&self, bytes: u64, reader: &Reader) {
        let mut others: Vec<Arc<Reader>> = self.lock().iter().filter_map(Weak::upgrade).collect();
        others.retain(|other| !std::ptr::eq(&raw const **other, reader));
        others.sort_by_key(|other| other.last_use());
        for other in others {
            if self.room() >= bytes {
                return;
            }
            other.give_up();
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<Reader>>> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
