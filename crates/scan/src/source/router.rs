//! Router: leads each file to the reader of its device, to the small files, or to the readers of elements.

use crate::engine::Shared;
use crate::feeder::Stopped;
use crate::item::{Container, Item};
use crate::module::Division;
use crate::source::device::{Device, Large};
use crate::source::stream::{self, Stream};
use crate::source::{Pick, Reader, Sources, dataset, device, ends_with, ring, small, sorted};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_dataset::is_dataset;
use holdfast_vault::{Place, Vault};
use std::collections::HashMap;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

/// Bytes of a buffer with small files or elements at most: many readers have one each.
const MOST_SMALL_BUFFER: u64 = 1 << 20;

/// Files between the walk and their reader at most.
const MOST_QUEUED: usize = 4096;

/// Threads that open and read small files: as many requests are in flight.
const SMALL_READERS: usize = 16;

/// Threads that read one vault: as many requests are in flight.
const VAULT_READERS: usize = 8;

/// Silos that share the memory evenly; further ones get the least that works.
const SHARES: u64 = 4;

/// Key of a group of readers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Lane {
    Device(u64),
    Vault(String),
}

/// File of a queue that several threads empty.
pub(crate) type Queue<T> = Arc<Mutex<Receiver<T>>>;

/// Takes the next of a queue. `None`: it has ended.
pub(crate) fn next<T>(queue: &Queue<T>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

#[derive(Default)]
struct Queues {
    large: HashMap<Lane, SyncSender<Large>>,
    small: Option<SyncSender<PathBuf>>,
    streams: Option<SyncSender<Stream>>,
    datasets: Option<SyncSender<Place>>,
    /// Devices, and whether they have turning disks.
    turning: HashMap<u64, bool>,
}

/// Router of a scan. Queues end when it is dropped.
pub(crate) struct Router<'scope, 'env, 's> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'s>,
    sources: &'env Sources,
    workers: usize,
    queues: Mutex<Queues>,
}

impl<'scope, 'env, 's: 'env> Router<'scope, 'env, 's> {
    pub(crate) fn new(
        scope: &'scope Scope<'scope, 'env>,
        shared: &'env Shared<'s>,
        sources: &'env Sources,
        workers: usize,
    ) -> Self {
        Self { scope, shared, sources, workers, queues: Mutex::default() }
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.shared.silos.is_stopped()
    }

    /// Counts a file that is no regular one.
    pub(crate) fn pass_over(&self) {
        self.shared.passed_over.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports a path that cannot be read.
    pub(crate) fn trouble(&self, path: &Path, error: &io::Error) {
        let container = Arc::new(Container::file(path));
        self.shared.trouble(&Item::whole(&container), reason(error));
    }

    /// Reports a place that cannot be read.
    pub(crate) fn failed(&self, place: &Path, reason: &str) {
        let container = Arc::new(Container::file(place));
        self.shared.trouble(&Item::whole(&container), reason);
    }

    /// Adds a silo whose buffers have room for `block` bytes and those around them.
    fn silo(&self, name: String, block: u64, readers: usize) -> Result<usize> {
        let (before, behind) = self.shared.division.margins();
        // Each reader fills one, and carries the end of an item over into another.
        let least = 2 * readers as u64 + 2;
        let bytes = block + ((before + behind) as u64).next_multiple_of(4096);
        let count = (self.shared.options.memory / SHARES / bytes).clamp(least, 4 * least);
        self.shared.silos.add(name, count as usize, bytes as usize)
    }

    /// Starts threads that fill a silo of their own.
    pub(crate) fn reader<F>(&self, name: &str, threads: usize, read: F) -> Result<()>
    where
        F: Fn(&'env Shared<'s>, usize) -> Result<(), Stopped> + Clone + Send + 'scope,
    {
        let silo = self.silo(name.to_owned(), self.shared.options.block.min(MOST_SMALL_BUFFER), threads)?;
        self.threads(name, silo, threads, read)
    }

    fn threads<F>(&self, name: &str, silo: usize, threads: usize, read: F) -> Result<()>
    where
        F: Fn(&'env Shared<'s>, usize) -> Result<(), Stopped> + Clone + Send + 'scope,
    {
        for _ in 0..threads {
            let (reader, read) = (Reader::announce(self.shared, silo), read.clone());
            let builder = std::thread::Builder::new().name("holdfast-read".to_owned());
            let started = builder.spawn_scoped(self.scope, move || reader.run(read));
            if let Err(error) = started {
                return Err(Failure::failed(format_args!("cannot start a thread for {name}: {error}")));
            }
        }
        Ok(())
    }

    /// Starts the reader of all sources in order.
    pub(crate) fn sorted(&self) -> Result<()> {
        let sources = self.sources;
        self.reader("sources in order", 1, move |shared, silo| sorted::read(sources, shared, silo))
    }

    /// True if an entry below the folder `root` is wanted.
    pub(crate) fn admits(&self, path: &Path, root: &Path, is_folder: bool) -> bool {
        self.sources.globs.admits(path, root, is_folder)
    }

    /// Routes a file that was named.
    pub(crate) fn file(&self, path: &Path) -> Result<()> {
        match std::fs::metadata(path) {
            Ok(metadata) => self.lead(path.to_owned(), &metadata),
            Err(error) => {
                self.trouble(path, &error);
                Ok(())
            }
        }
    }

    /// Routes a file that was found in a folder.
    pub(crate) fn found(&self, path: PathBuf, metadata: &Metadata) -> Result<()> {
        if self.sources.pick == Pick::Elements {
            if ends_with(&path, "mcap") && is_dataset(&path) {
                return self.dataset(&Place::Local(path));
            }
            if ends_with(&path, "hf") && super::is_ring(&path) {
                return self.ring(&path);
            }
        }
        self.lead(path, metadata)
    }

    fn lead(&self, path: PathBuf, metadata: &Metadata) -> Result<()> {
        let device = metadata.dev();
        let turns = *self.queues().turning.entry(device).or_insert_with(|| device::is_rotational(device));
        // Files of /proc say that they are empty.
        if metadata.len() <= self.shared.options.small || metadata.len() == 0 {
            return self.small(path);
        }
        let large = Large::File { path, size: metadata.len() };
        let readers = match (self.shared.division, turns) {
            (_, true) => 1,
            (Division::Serial, false) => self.workers,
            (Division::Blocks { .. } | Division::Lines, false) => 2,
        };
        let name = || device::name(device);
        self.large(Lane::Device(device), name, readers, large)
    }

    /// Routes an object of a vault.
    pub(crate) fn object(&self, vault: &Arc<Vault>, path: &str) -> Result<()> {
        let lane = Lane::Vault(vault.name().to_owned());
        let object = Large::Object { vault: Arc::clone(vault), path: path.to_owned() };
        self.large(lane, || format!("vault {}", vault.name()), VAULT_READERS, object)
    }

    fn large(&self, lane: Lane, name: impl Fn() -> String, readers: usize, large: Large) -> Result<()> {
        let mut queues = self.queues();
        let sender = if let Some(sender) = queues.large.get(&lane) {
            sender.clone()
        } else {
            let (sender, receiver) = sync_channel(MOST_QUEUED);
            let block = self.shared.options.block;
            let silo = self.silo(name(), block, readers)?;
            let device = Device::new(receiver, self.shared.division, readers, block);
            self.threads(&name(), silo, readers, move |shared, silo| device.read(shared, silo))?;
            queues.large.insert(lane, sender.clone());
            sender
        };
        drop(queues);
        // Readers that have stopped take no more.
        let _ = sender.send(large);
        Ok(())
    }

    fn small(&self, path: PathBuf) -> Result<()> {
        let mut queues = self.queues();
        let sender = if let Some(sender) = &queues.small {
            sender.clone()
        } else {
            let (sender, receiver) = sync_channel(MOST_QUEUED);
            let queue: Queue<PathBuf> = Arc::new(Mutex::new(receiver));
            self.reader("small files", SMALL_READERS, move |shared, silo| small::read(&queue, shared, silo))?;
            queues.small = Some(sender.clone());
            sender
        };
        drop(queues);
        let _ = sender.send(path);
        Ok(())
    }

    /// Routes a stream to their reader.
    pub(crate) fn stream(&self, stream: Stream) -> Result<()> {
        let mut queues = self.queues();
        let sender = if let Some(sender) = &queues.streams {
            sender.clone()
        } else {
            let (sender, receiver) = sync_channel(MOST_QUEUED);
            let queue: Queue<Stream> = Arc::new(Mutex::new(receiver));
            self.reader("streams", 1, move |shared, silo| stream::read(&queue, shared, silo))?;
            queues.streams = Some(sender.clone());
            sender
        };
        drop(queues);
        let _ = sender.send(stream);
        Ok(())
    }

    /// Starts the reader of a ring.
    pub(crate) fn ring(&self, path: &Path) -> Result<()> {
        let opened = match ring::Opened::new(path, self.sources) {
            Ok(opened) => opened,
            Err(failure) if self.sources.is_one_ring() => return Err(failure),
            Err(failure) => {
                self.failed(path, &failure.without_place().to_string());
                return Ok(());
            }
        };
        let opened = Arc::new(Mutex::new(Some(opened)));
        self.reader(&path.display().to_string(), 1, move |shared, silo| {
            let opened = opened.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(opened) = opened {
                opened.read(shared, silo);
            }
            Ok(())
        })
    }

    /// Routes a dataset to its readers.
    pub(crate) fn dataset(&self, place: &Place) -> Result<()> {
        let mut queues = self.queues();
        let sender = if let Some(sender) = &queues.datasets {
            sender.clone()
        } else {
            let (sender, receiver) = sync_channel(MOST_QUEUED);
            let queue: Queue<Place> = Arc::new(Mutex::new(receiver));
            let sources = self.sources;
            self.reader("datasets", self.workers, move |shared, silo| {
                dataset::read(&queue, sources, shared, silo)
            })?;
            queues.datasets = Some(sender.clone());
            sender
        };
        drop(queues);
        let _ = sender.send(place.clone());
        Ok(())
    }
}
