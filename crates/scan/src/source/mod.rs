//! Sources of a scan: places as they are typed, told apart, and the threads that read them.

mod dataset;
mod device;
mod folder;
mod globs;
mod ring;
mod router;
mod small;
mod sorted;
mod stream;

use crate::engine::Shared;
use crate::feeder::{Feeder, Stopped};
use crate::item::Container;
pub use globs::Globs;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::range::RangeOptions;
use holdfast_client::session;
use holdfast_dataset::{SourceAccess, is_dataset};
use holdfast_format::Superblock;
use holdfast_vault::{Place, Vault};
use router::Router;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use stream::Stream;

/// Standard input as a path.
const STDIN: &str = "/dev/stdin";

/// Contents of rings and datasets that a scan takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Elements of rings and datasets, and the files of packed folders.
    Elements,
    /// Files as they lie, datasets too; elements of rings that are named.
    Files,
    /// Files as they lie, rings and datasets too; no folders.
    Bytes,
}

/// Sources of a scan.
#[derive(Clone, Debug)]
pub struct Sources {
    named: Vec<Named>,
    pick: Pick,
    is_sorted: bool,
    globs: Globs,
    /// Streams of rings and datasets; empty: all.
    pub(crate) streams: Vec<String>,
    /// Range of the elements of rings and datasets.
    pub(crate) range: RangeOptions,
}

/// Place that was named.
#[derive(Clone, Debug)]
enum Named {
    StandardInput,
    File(PathBuf),
    Folder(PathBuf),
    Ring(PathBuf),
    Dataset(Place),
    Object(Arc<Vault>, String),
    /// Named pipe, file descriptor or character device.
    Stream(PathBuf),
    /// Place that is no source, and the reason.
    Failed(PathBuf, String),
}

impl Sources {
    /// Sources at these places: rings, datasets, files, folders, pipes, `VAULT:PREFIX`, or `-` for standard input. Of several
    /// places, one that is missing or unreadable is told by the scan, which goes on with the others.
    pub fn new(places: &[PathBuf], pick: Pick, streams: Vec<String>, range: RangeOptions) -> Result<Self> {
        let mut named = Vec::new();
        for place in places {
            match named_at(place, pick) {
                Ok(found) => named.extend(found),
                Err(failure) if places.len() == 1 => return Err(failure),
                Err(failure) => {
                    named.push(Named::Failed(place.clone(), failure.without_place().to_string()));
                }
            }
        }
        Ok(Self { named, pick, is_sorted: false, globs: Globs::default(), streams, range })
    }

    /// The same sources, read in the order of their names, so that results come in that order.
    #[must_use]
    pub fn sorted(self, is_sorted: bool) -> Self {
        Self { is_sorted, ..self }
    }

    /// The same sources, of whose folders only files that the globs admit are read.
    #[must_use]
    pub fn among(self, globs: Globs) -> Self {
        Self { globs, ..self }
    }

    /// True if all that is scanned is one ring, whose failure is that of the scan.
    pub(crate) fn is_one_ring(&self) -> bool {
        matches!(self.named[..], [Named::Ring(_)])
    }

    /// Paths of the rings among the sources.
    pub fn rings(&self) -> Vec<&Path> {
        self.named
            .iter()
            .filter_map(|named| if let Named::Ring(path) = named { Some(path.as_path()) } else { None })
            .collect()
    }

    /// Path of a file below the source that it was found in. With several sources, the name of a folder comes first.
    pub fn relative(&self, container: &Container) -> PathBuf {
        let several = self.named.len() > 1;
        let below = |named: &Named| match (named, &container.path) {
            (Named::File(path) | Named::Stream(path), Some(found)) if path == found => {
                path.file_name().map(PathBuf::from)
            }
            (Named::Folder(folder), Some(found)) => {
                let below = found.strip_prefix(folder).ok()?;
                let name = folder.file_name().filter(|_| several).map(PathBuf::from).unwrap_or_default();
                Some(name.join(below))
            }
            (Named::Object(vault, path), None) if *container.source == vault.place(path) => Some(path.into()),
            _ => None,
        };
        self.named.iter().find_map(below).unwrap_or_else(|| {
            let name = container.source.trim_matches('/').replace("..", "_");
            if name == "-" { PathBuf::from("stdin") } else { PathBuf::from(name) }
        })
    }

    /// Names that the sources give to their outputs: the source, its file or folder there, and true for a folder.
    pub(crate) fn output_names(&self) -> Vec<(String, PathBuf, bool)> {
        let several = self.named.len() > 1;
        let name = |path: &Path| path.file_name().map(PathBuf::from).unwrap_or_default();
        let named = self.named.iter().filter_map(|named| match named {
            Named::StandardInput => Some(("-".to_owned(), PathBuf::from("stdin"), false)),
            Named::File(path) | Named::Stream(path) => Some((path.display().to_string(), name(path), false)),
            Named::Folder(path) if several => Some((path.display().to_string(), name(path), true)),
            Named::Object(vault, path) => Some((vault.place(path), path.into(), false)),
            Named::Folder(_) | Named::Ring(_) | Named::Dataset(_) | Named::Failed(..) => None,
        });
        named.collect()
    }

    /// Source that lies in a folder which is a source, too, with that folder.
    pub(crate) fn nested(&self) -> Option<(&Path, &Path)> {
        let paths = || {
            self.named.iter().enumerate().filter_map(|(at, named)| match named {
                Named::File(path) => Some((at, path.as_path(), false)),
                Named::Folder(path) => Some((at, path.as_path(), true)),
                _ => None,
            })
        };
        let mut folders = paths().filter(|(.., is_folder)| *is_folder);
        folders.find_map(|(at, folder, _)| {
            let mut inside = paths().filter(|(other, path, _)| *other != at && path.starts_with(folder));
            inside.next().map(|(_, path, _)| (path, folder))
        })
    }

    /// Access to a container, by which outputs of its items are bounded.
    pub fn access(&self, container: &Container) -> SourceAccess {
        let object = self.named.iter().find_map(|named| match named {
            Named::Object(vault, path) if *container.source == vault.place(path) => Some(vault.access(path)),
            _ => None,
        });
        let path = container.path.as_deref();
        let path = path
            .unwrap_or_else(|| Path::new(if &*container.source == "-" { STDIN } else { &*container.source }));
        object.unwrap_or_else(|| SourceAccess::of(path))
    }

    /// True if the only source is one file, object or standard input, so that its name need not be told.
    pub fn is_one_file(&self) -> bool {
        matches!(
            self.named[..],
            [Named::StandardInput | Named::File(_) | Named::Stream(_) | Named::Object(..)]
        )
    }
}

/// Sources at a place.
fn named_at(place: &Path, pick: Pick) -> Result<Vec<Named>> {
    if place == Path::new("-") {
        return Ok(vec![Named::StandardInput]);
    }
    match Place::parse(place)? {
        Place::Local(path) => local(path, pick).map(|named| vec![named]),
        Place::Vault(vault, prefix) => {
            let entries = vault.list(&prefix)?;
            if entries.is_empty() {
                return Err(Failure::nothing("there is no object at this place")
                    .at(vault.place(&prefix))
                    .advice(format_args!("`holdfast vault ls {}:` lists all objects", vault.name())));
            }
            let named = entries.into_iter().map(|entry| {
                if pick == Pick::Elements && ends_with(Path::new(&entry.path), "mcap") {
                    Named::Dataset(Place::Vault(Arc::clone(&vault), entry.path))
                } else {
                    Named::Object(Arc::clone(&vault), entry.path)
                }
            });
            Ok(named.collect())
        }
    }
}

/// Tells a local path apart.
fn local(path: PathBuf, pick: Pick) -> Result<Named> {
    let found = match std::fs::metadata(&path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let ring = session::ring_path(&path)?;
            if ring.exists() && pick != Pick::Bytes {
                return Ok(Named::Ring(ring));
            }
            return Err(Failure::io("cannot open the source", &path, &error));
        }
        Err(error) => return Err(Failure::io("cannot open the source", &path, &error)),
    };
    let kind = found.file_type();
    if kind.is_dir() && pick == Pick::Bytes {
        return Err(Failure::failed("this is a folder").at_path(&path));
    }
    if kind.is_dir() {
        return Ok(Named::Folder(path));
    }
    if kind.is_block_device() && pick != Pick::Bytes && is_ring(&path) {
        return Ok(Named::Ring(session::ring_path(&path)?));
    }
    if !kind.is_file() {
        return Ok(Named::Stream(path));
    }
    if pick == Pick::Elements && is_dataset(&path) {
        return Ok(Named::Dataset(Place::Local(path)));
    }
    Ok(if pick != Pick::Bytes && is_ring(&path) { Named::Ring(path) } else { Named::File(path) })
}

/// True if a file begins as a ring does.
fn is_ring(path: &Path) -> bool {
    let mut magic = [0; Superblock::MAGIC.len()];
    File::open(path).and_then(|file| file.read_exact_at(&mut magic, 0)).is_ok() && magic == *Superblock::MAGIC
}

fn ends_with(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// Reads all sources to their end.
pub(crate) fn read(sources: &Sources, shared: &Shared<'_>, workers: usize) -> Result<()> {
    std::thread::scope(|scope| {
        let router = Router::new(scope, shared, sources, workers);
        if sources.is_sorted {
            return router.sorted();
        }
        for named in &sources.named {
            if shared.silos.is_stopped() {
                break;
            }
            match named {
                Named::StandardInput => router.stream(Stream::StandardInput)?,
                Named::Stream(path) => router.stream(Stream::Path(path.clone()))?,
                Named::Failed(place, reason) => router.failed(place, reason),
                Named::File(path) => router.file(path)?,
                Named::Folder(path) => folder::walk(path, &router)?,
                Named::Ring(path) => router.ring(path)?,
                Named::Dataset(place) => router.dataset(place)?,
                Named::Object(vault, path) => router.object(vault, path)?,
            }
        }
        Ok(())
    })
}

/// Feeds a file to its end.
fn feed_file(feeder: &mut Feeder<'_, '_>, file: &mut impl Read) -> Result<(), Stopped> {
    loop {
        match file.read(feeder.room()?) {
            Ok(0) => return feeder.end(),
            Ok(count) => feeder.fed(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return feeder.fail(holdfast_base::failure::reason(&error)),
        }
        if feeder.is_skipped() {
            return feeder.end();
        }
    }
}

/// Opens a file that is still a regular one: a named pipe in its place would wait for its other end.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file any more"))
    }
}

/// Reader of a silo: announced before its thread starts, so that workers wait for it, and accounted for when it is dropped.
pub(crate) struct Reader<'a, 's> {
    shared: &'a Shared<'s>,
    silo: usize,
    began: Instant,
}

impl<'a, 's> Reader<'a, 's> {
    pub(crate) fn announce(shared: &'a Shared<'s>, silo: usize) -> Self {
        shared.silos.begin_reader();
        Self { shared, silo, began: Instant::now() }
    }

    pub(crate) fn run(self, read: impl FnOnce(&'a Shared<'s>, usize) -> Result<(), Stopped>) {
        // Readers that wait for buffers are told of the end in the same way.
        let _ = read(self.shared, self.silo);
    }
}

impl Drop for Reader<'_, '_> {
    fn drop(&mut self) {
        self.shared.silos.end_reader(Some(self.silo), self.began.elapsed().as_secs_f64());
    }
}
