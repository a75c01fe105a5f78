//! Sources in order: as they were named, entries of folders sorted by the bytes of their paths. One reader feeds all of them,
//! so that results come in that order, while the module runs on all cores.

use crate::engine::Shared;
use crate::feeder::{Feeder, Order, Stopped};
use crate::item::{Container, Item};
use crate::source::stream::{self, Stream};
use crate::source::{Named, Pick, Sources, dataset, ends_with, feed_file, is_ring, open_regular, ring};
use holdfast_base::failure::reason;
use holdfast_dataset::{RangeRead as _, is_mcap};
use holdfast_vault::{Place, Vault};
use std::fs::{DirEntry, FileType};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of an object that are read at once.
const STEP: u64 = 4 << 20;

/// Reads all sources in order.
pub(crate) fn read(sources: &Sources, shared: &Shared<'_>, silo: usize) -> Result<(), Stopped> {
    let feeder = Feeder::new(shared, silo, Order::AsFed);
    let mut reader = InOrder { sources, shared, feeder };
    for named in &sources.named {
        match named {
            Named::StandardInput => stream::feed(&Stream::StandardInput, &mut reader.feeder, shared)?,
            Named::Stream(path) => stream::feed(&Stream::Path(path.clone()), &mut reader.feeder, shared)?,
            Named::Failed(place, reason) => reader.trouble(Container::file(place), reason),
            Named::File(path) => reader.file(path)?,
            Named::Folder(path) => reader.folder(path, path)?,
            Named::Ring(path) => reader.ring(path)?,
            Named::Dataset(place) => reader.dataset(place)?,
            Named::Object(vault, path) => reader.object(vault, path)?,
        }
    }
    reader.feeder.flush();
    Ok(())
}

struct InOrder<'a, 's> {
    sources: &'a Sources,
    shared: &'a Shared<'s>,
    feeder: Feeder<'a, 's>,
}

impl InOrder<'_, '_> {
    fn trouble(&self, container: Container, reason: &str) {
        self.shared.trouble(&Item::whole(&Arc::new(container)), reason);
    }

    fn file(&mut self, path: &Path) -> Result<(), Stopped> {
        self.feeder.begin(&Arc::new(Container::file(path)), None);
        match open_regular(path) {
            Ok(mut file) => feed_file(&mut self.feeder, &mut file),
            Err(error) => self.feeder.fail(reason(&error)),
        }
    }

    /// Reads the files below a folder, `root` being that which was named.
    fn folder(&mut self, folder: &Path, root: &Path) -> Result<(), Stopped> {
        let entries = match sorted_entries(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.trouble(Container::file(folder), &reason(&error));
                return Ok(());
            }
        };
        for (entry, kind) in entries {
            if self.shared.silos.is_stopped() {
                return Err(Stopped);
            }
            let path = entry.path();
            let is_wanted = self.sources.globs.admits(&path, root, kind.is_dir());
            match kind {
                _ if !is_wanted => {}
                kind if kind.is_dir() => self.folder(&path, root)?,
                kind if kind.is_file() => self.found(&path)?,
                _ => drop(self.shared.passed_over.fetch_add(1, Ordering::Relaxed)),
            }
        }
        Ok(())
    }

    fn found(&mut self, path: &Path) -> Result<(), Stopped> {
        let are_elements = self.sources.pick == Pick::Elements;
        if are_elements && ends_with(path, "mcap") && is_mcap(path) {
            return self.dataset(&Place::Local(path.to_owned()));
        }
        if are_elements && ends_with(path, "hf") && is_ring(path) {
            return self.ring(path);
        }
        self.file(path)
    }

    fn ring(&mut self, path: &Path) -> Result<(), Stopped> {
        match ring::Opened::new(path, self.sources) {
            Ok(opened) => opened.feed(&mut self.feeder, self.shared),
            Err(failure) if self.sources.is_one_ring() => {
                self.shared.fail(failure);
                return Err(Stopped);
            }
            Err(failure) => self.trouble(Container::file(path), &failure.without_place().to_string()),
        }
        if self.shared.silos.is_stopped() { Err(Stopped) } else { Ok(()) }
    }

    fn dataset(&mut self, place: &Place) -> Result<(), Stopped> {
        dataset::feed(place, self.sources, self.shared, &mut self.feeder);
        if self.shared.silos.is_stopped() { Err(Stopped) } else { Ok(()) }
    }

    fn object(&mut self, vault: &Arc<Vault>, path: &str) -> Result<(), Stopped> {
        self.feeder.begin(&Arc::new(Container::named(&vault.place(path))), None);
        let object = match vault.object(path) {
            Ok(object) => object,
            Err(failure) => return self.feeder.fail(failure.to_string()),
        };
        let mut offset = 0;
        while offset < object.size() {
            match object.read(offset, STEP.min(object.size() - offset) as usize) {
                Ok(bytes) => {
                    offset += bytes.len() as u64;
                    self.feeder.feed(&bytes)?;
                }
                Err(error) => return self.feeder.fail(reason(&error)),
            }
        }
        self.feeder.end()
    }
}

/// Entries of a folder in the order of their paths' bytes, in which a folder's name is followed by a slash.
fn sorted_entries(folder: &Path) -> io::Result<Vec<(DirEntry, FileType)>> {
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        entries.push((entry, kind));
    }
    entries.sort_by_cached_key(|(entry, kind)| {
        let mut name = entry.file_name().as_bytes().to_vec();
        if kind.is_dir() {
            name.push(b'/');
        }
        name
    });
    Ok(entries)
}
