//! Inside of a dataset: a packed folder as it was, or the streams of others as files.

use crate::error::FsError;
use crate::file_system::FileKind;
use crate::inode_table::ShownVersion;
use crate::reader::Reader;
use crate::rings::{Exported, FileFormat, failed, scratch};
use bytes::Bytes;
use holdfast_base::failure::Failure;
use holdfast_dataset::{Dataset, DatasetError, PackedEntry, PackedTree, RangeRead};
use holdfast_export::{Export, Format, Output};
use holdfast_reader::Selection;
use holdfast_ring::Range;
use rustix::io::Errno;
use std::fmt;
use std::io::{self, BufWriter, Write as _};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Handle;

/// Ending of the name under which the inside of a dataset is found.
pub(crate) const ENDING: &str = ".d";

/// Place inside of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InsidePath {
    /// Path at the site of the dataset.
    pub(crate) dataset: String,
    pub(crate) version: ShownVersion,
    /// Names from the root of the dataset on.
    pub(crate) names: Vec<String>,
}

impl InsidePath {
    pub(crate) fn child(&self, name: &str) -> Self {
        let mut child = self.clone();
        child.names.push(name.to_owned());
        child
    }
}

impl fmt::Display for InsidePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{ENDING}", self.dataset)?;
        self.names.iter().try_for_each(|name| write!(f, "/{name}"))
    }
}

/// Entry inside of a dataset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InsideEntry {
    pub(crate) name: String,
    pub(crate) kind: FileKind,
    /// Size in bytes; 0 if it is known once the file is open.
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
}

/// Dataset that is open.
#[derive(Debug)]
pub(crate) enum Inside {
    /// Packed folder with its directory.
    Folder(PackedTree),
    /// Streams of elements, as from a ring.
    Streams(Box<Dataset>),
}

/// Stored version that is read by ranges, within a thread that may block.
struct Stored {
    reader: Arc<Reader>,
    size: u64,
    name: String,
    runtime: Handle,
}

impl RangeRead for Stored {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, length: usize) -> io::Result<Bytes> {
        // A damaged file may ask for more than there is.
        if offset.checked_add(length as u64).is_none_or(|end| end > self.size) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.runtime.block_on(self.reader.read(offset, length as u64)).map_err(io::Error::other)
    }

    fn name(&self) -> String {
        self.name.clone()
    }
}

fn damaged(error: &DatasetError) -> FsError {
    FsError::new(Errno::IO, format!("cannot read the dataset: {error}"))
}

impl Inside {
    /// Opens a stored version. Returns nothing if it is no dataset. Blocks.
    pub(crate) fn open(
        reader: Arc<Reader>,
        path: &InsidePath,
        runtime: Handle,
    ) -> Result<Option<Self>, FsError> {
        let (size, name) = (path.version.size, path.dataset.clone());
        let file: Arc<dyn RangeRead> = Arc::new(Stored { reader, size, name, runtime });
        match PackedTree::open(Arc::clone(&file)) {
            Ok(tree) => return Ok(Some(Self::Folder(tree))),
            Err(error @ DatasetError::Io(_)) => return not_there(&error),
            Err(_) => {}
        }
        match Dataset::open(file) {
            Ok(dataset) => Ok(Some(Self::Streams(Box::new(dataset)))),
            Err(error) => not_there(&error),
        }
    }

    /// Entry of some names; nothing if there is none. Blocks.
    pub(crate) fn find(&self, names: &[String]) -> Result<Option<InsideEntry>, FsError> {
        let name = names.last().cloned().unwrap_or_default();
        match self {
            Self::Folder(tree) => {
                let found = tree.entry(names.join("/").as_bytes()).map_err(|error| damaged(&error))?;
                Ok(found.map(|found| InsideEntry { name, ..packed(&found) }))
            }
            Self::Streams(_) if names.is_empty() => {
                let (kind, modified) = (FileKind::Directory, SystemTime::UNIX_EPOCH);
                Ok(Some(InsideEntry { name, kind, size: 0, modified }))
            }
            Self::Streams(dataset) => {
                let is_there = names.len() == 1 && stream(dataset, &name).is_some();
                let (kind, modified) = (FileKind::File, SystemTime::UNIX_EPOCH);
                Ok(is_there.then_some(InsideEntry { name, kind, size: 0, modified }))
            }
        }
    }

    /// Entries of a directory. Blocks.
    pub(crate) fn list(&self, names: &[String]) -> Result<Vec<InsideEntry>, FsError> {
        match self {
            Self::Folder(tree) => {
                let found = tree.entries(names.join("/").as_bytes()).map_err(|error| damaged(&error))?;
                Ok(found.iter().map(packed).filter(|entry| !entry.name.is_empty()).collect())
            }
            Self::Streams(dataset) => {
                let name = |stream| {
                    let ending = Format::fitting(std::slice::from_ref(stream)).name();
                    format!("{}.{ending}", stream.name)
                };
                let names = dataset.streams().iter().map(name).collect::<Vec<_>>();
                let names = names.into_iter().filter(|name| !name.contains('/'));
                let (kind, modified) = (FileKind::File, SystemTime::UNIX_EPOCH);
                Ok(names.map(|name| InsideEntry { name, kind, size: 0, modified }).collect())
            }
        }
    }

    /// Makes the contents of a file, in a local file in `folder`. Blocks.
    pub(crate) fn export(&self, path: &InsidePath, folder: &Path) -> Result<Exported, FsError> {
        let missing =
            || FsError::new(Errno::NOENT, format!("cannot read `{path}`: no such file is in the dataset"));
        let scratch = scratch(folder)?;
        let copy = scratch.try_clone().map_err(|error| FsError::new(Errno::IO, error.to_string()))?;
        match self {
            Self::Folder(tree) => {
                let mut out = BufWriter::new(copy);
                let written = tree.cat(path.names.join("/").as_bytes(), &mut out);
                let written = written.map_err(|error| damaged(&error))?.ok_or_else(missing)?;
                out.flush().map_err(|error| FsError::new(Errno::IO, error.to_string()))?;
                Ok(Exported::new(scratch, written))
            }
            Self::Streams(dataset) => {
                let name = path.names.first().ok_or_else(missing)?;
                let (stream, format) = stream(dataset, name).ok_or_else(missing)?;
                let export = Export::new(format.into(), std::slice::from_ref(&stream), Output::writer(copy));
                let mut export = export.map_err(|failure| failed(&failure))?;
                let selection = Selection { streams: vec![stream.id], range: Range::ALL };
                let mut wrong = None::<Failure>;
                let read = dataset.read(&selection, &mut |item| match export.item(&item) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(failure) => {
                        wrong = Some(failure);
                        ControlFlow::Break(())
                    }
                });
                read.map_err(|error| damaged(&error))?;
                if let Some(failure) = wrong {
                    return Err(failed(&failure));
                }
                let written = export.finish().and_then(Output::finish).map_err(|failure| failed(&failure))?;
                Ok(Exported::new(scratch, written.bytes))
            }
        }
    }
}

/// Result for a file that is no dataset; failures of the site remain such.
fn not_there<T>(error: &DatasetError) -> Result<Option<T>, FsError> {
    match error {
        DatasetError::Io(cause) if cause.kind() != io::ErrorKind::UnexpectedEof => Err(damaged(error)),
        _ => Ok(None),
    }
}

/// Stream and format of a file's name.
fn stream(dataset: &Dataset, name: &str) -> Option<(holdfast_ring::StreamStatus, FileFormat)> {
    let (stream, ending) = name.rsplit_once('.')?;
    let format = FileFormat::of(ending)?;
    let found = dataset.streams().into_iter().find(|found| found.name == stream)?;
    Some((found, format))
}

fn packed(entry: &PackedEntry) -> InsideEntry {
    let age = Duration::new(u64::try_from(entry.modified.0).unwrap_or(0), entry.modified.1);
    InsideEntry {
        // A name that is no text cannot be shown.
        name: String::from_utf8(entry.name.clone()).unwrap_or_default(),
        kind: if entry.is_directory { FileKind::Directory } else { FileKind::File },
        size: entry.size,
        modified: SystemTime::UNIX_EPOCH + age,
    }
}
