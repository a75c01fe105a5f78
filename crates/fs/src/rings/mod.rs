//! Rings of this machine as files by time, made as they are read.
//!
//! `RING/STREAM/2026-11-27/10:05.pcapng` is a minute of a stream (UTC), `RING/STREAM/live.pcapng` the last minute and all
//! that comes, `RING/holds/ID/STREAM.pcapng` the data of a hold, `RING/query/NAME.jsonl` the rows of a query. The recorder of a ring may run or not.

mod export;
mod live_export;
mod ring_path;

use crate::error::FsError;
use holdfast_base::failure::Failure;
use holdfast_client::Notices;
use holdfast_client::index_copies::IndexCopies;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::sql;
use holdfast_export::Format;
use holdfast_query::Limits;
use holdfast_query::output::Format as RowFormat;
use holdfast_reader::{OpenSlots, RingReader, Selection};
use holdfast_ring::StreamStatus;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufWriter;
use std::path::PathBuf;

pub(crate) use export::{Exported, scratch};
pub(crate) use live_export::LiveExport;
pub(crate) use ring_path::{FileFormat, RingFile, RingPath, Span};

/// Name of the directory of all rings.
pub(crate) const RINGS: &str = "rings";

/// Directory of the queries of a ring.
const QUERIES: &str = "query";

/// Directory of the holds of a ring.
const HOLDS: &str = "holds";

/// Ring of this machine with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedRing {
    /// Name in the tree.
    pub name: String,
    /// File, device or folder of the ring.
    pub path: PathBuf,
    /// Folder with copies of its index.
    pub index: Option<PathBuf>,
    /// Queries in SQL by their names.
    pub queries: BTreeMap<String, String>,
}

/// Error of a ring as programs get it.
pub(crate) fn failed(failure: &Failure) -> FsError {
    FsError::new(Errno::IO, failure.to_string())
}

fn missing(path: &RingPath) -> FsError {
    FsError::new(Errno::NOENT, format!("cannot find `/{RINGS}/{path}`: nothing like that was recorded"))
}

/// Rings of this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rings(Vec<NamedRing>);

impl Rings {
    pub(crate) fn new(mut rings: Vec<NamedRing>) -> Self {
        rings.sort_by(|one, other| one.name.cmp(&other.name));
        Self(rings)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn ring(&self, path: &RingPath, name: &str) -> Result<&NamedRing, FsError> {
        self.0.iter().find(|ring| ring.name == name).ok_or_else(|| missing(path))
    }

    fn open(&self, path: &RingPath, name: &str) -> Result<RingReader, FsError> {
        let ring = self.ring(path, name)?;
        session::open(&ring.path).map_err(|failure| failed(&failure))
    }

    /// Checks that there is such an entry. Blocks.
    pub(crate) fn check(&self, path: &RingPath) -> Result<(), FsError> {
        let found = match path {
            RingPath::Root => true,
            RingPath::Ring(name) => self.0.iter().any(|ring| ring.name == *name),
            RingPath::Queries(name) => !self.ring(path, name)?.queries.is_empty(),
            RingPath::Query(ring, name) => self.ring(path, ring)?.queries.contains_key(name),
            RingPath::Holds(_) | RingPath::Hold(..) | RingPath::Stream(..) | RingPath::Day(..) => {
                let parent = path.parent().ok_or_else(|| missing(path))?;
                let names = self.list(&parent)?;
                names.into_iter().any(|(name, _)| path.last() == Some(name))
            }
            RingPath::File(file) => {
                let mut reader = self.open(path, &file.ring)?;
                let streams = streams(&mut reader)?;
                streams.iter().any(|stream| stream.name == file.stream) && span_exists(&mut reader, file)?
            }
        };
        if found { Ok(()) } else { Err(missing(path)) }
    }

    /// Names of the entries of a directory, and whether each is a directory. Blocks.
    pub(crate) fn list(&self, path: &RingPath) -> Result<Vec<(String, bool)>, FsError> {
        let directory = |name: String| (name, true);
        let file = |name: String| (name, false);
        Ok(match path {
            RingPath::Root => self.0.iter().map(|ring| directory(ring.name.clone())).collect(),
            RingPath::Ring(name) => {
                let mut reader = self.open(path, name)?;
                let names = streams(&mut reader)?.into_iter().map(|stream| stream.name);
                let has_queries = !self.ring(path, name)?.queries.is_empty();
                let queries = has_queries.then(|| QUERIES.to_owned());
                names.chain([HOLDS.to_owned()]).chain(queries).map(directory).collect()
            }
            RingPath::Holds(ring) => {
                let mut reader = self.open(path, ring)?;
                let holds = reader.holds().map_err(|error| failed(&ring_failure(&error)))?;
                holds.iter().map(|hold| directory(hold.id.0.to_string())).collect()
            }
            RingPath::Queries(ring) => {
                let names = self.ring(path, ring)?.queries.keys();
                names
                    .map(|name| RingPath::Query(ring.clone(), name.clone()))
                    .filter_map(|path| path.last())
                    .map(file)
                    .collect()
            }
            RingPath::Hold(ring, _) => {
                let mut reader = self.open(path, ring)?;
                let streams = streams(&mut reader)?;
                streams.iter().map(|stream| file(format!("{}.{}", stream.name, extension(stream)))).collect()
            }
            RingPath::Stream(ring, name) => {
                let mut reader = self.open(path, ring)?;
                let stream = stream(&mut reader, path, name)?;
                let minutes = minutes(&mut reader)?;
                let days: BTreeSet<String> = minutes.into_iter().map(ring_path::day).collect();
                let live = file(format!("live.{}", extension(&stream)));
                days.into_iter().map(directory).chain([live]).collect()
            }
            RingPath::Day(ring, name, day) => {
                let mut reader = self.open(path, ring)?;
                let stream = stream(&mut reader, path, name)?;
                let minutes = minutes(&mut reader)?.into_iter();
                let minutes = minutes.filter(|minute| ring_path::day(*minute) == *day);
                let name = |minute| format!("{}.{}", ring_path::minute(minute), extension(&stream));
                minutes.map(|minute| file(name(minute))).collect()
            }
            RingPath::File(_) | RingPath::Query(..) => {
                return Err(FsError::new(
                    Errno::NOTDIR,
                    format!("cannot list `/{RINGS}/{path}`: it is a file"),
                ));
            }
        })
    }

    /// Makes the contents of a file. Blocks.
    pub(crate) fn export(&self, file: &RingFile, folder: &std::path::Path) -> Result<Exported, FsError> {
        let path = RingPath::File(file.clone());
        let mut reader = self.open(&path, &file.ring)?;
        let stream = stream(&mut reader, &path, &file.stream)?;
        Exported::make(&mut reader, &stream, file, folder)
    }

    /// Starts the contents of a file that grows. Blocks.
    pub(crate) fn follow(&self, file: &RingFile, folder: &std::path::Path) -> Result<LiveExport, FsError> {
        let path = RingPath::File(file.clone());
        LiveExport::start(self.ring(&path, &file.ring)?.path.clone(), file, folder)
    }

    /// Makes the rows of a query, as JSON lines. Blocks.
    pub(crate) fn query(&self, path: &RingPath, folder: &std::path::Path) -> Result<Exported, FsError> {
        let RingPath::Query(ring, name) = path else { return Err(missing(path)) };
        let ring = self.ring(path, ring)?;
        let text = ring.queries.get(name).ok_or_else(|| missing(path))?;
        let scratch = scratch(folder)?;
        let copy = scratch.try_clone().map_err(|error| FsError::new(Errno::IO, error.to_string()))?;
        let index = IndexCopies::at(ring.index.clone(), Notices::default());
        let rows = sql::open(&ring.path, &Limits::default(), &index, &OpenSlots::default()).and_then(|sql| {
            sql.answer(text, RowFormat::Jsonl, |_| Ok(Box::new(BufWriter::new(copy))))?;
            sql::told(&sql.engine.diagnostics.take())
        });
        rows.map_err(|failure| failed(&failure))?;
        let size = scratch.metadata().map_err(|error| FsError::new(Errno::IO, error.to_string()))?.len();
        Ok(Exported::new(scratch, size))
    }
}

fn streams(reader: &mut RingReader) -> Result<Vec<StreamStatus>, FsError> {
    reader.streams().map_err(|error| failed(&ring_failure(&error)))
}

fn stream(reader: &mut RingReader, path: &RingPath, name: &str) -> Result<StreamStatus, FsError> {
    streams(reader)?.into_iter().find(|stream| stream.name == name).ok_or_else(|| missing(path))
}

/// Ending of the names of a stream's files.
fn extension(stream: &StreamStatus) -> &'static str {
    Format::fitting(std::slice::from_ref(stream)).name()
}

fn span_exists(reader: &mut RingReader, file: &RingFile) -> Result<bool, FsError> {
    Ok(match file.span {
        Span::Live => true,
        Span::Minute(minute) => minutes(reader)?.contains(&minute),
        Span::Hold(id) => {
            let holds = reader.holds().map_err(|error| failed(&ring_failure(&error)))?;
            holds.iter().any(|hold| hold.id.0 == id)
        }
    })
}

/// Minutes since 1970 in which data of the ring arrived: those of its slots, and up to now while a recorder runs.
fn minutes(reader: &mut RingReader) -> Result<BTreeSet<i64>, FsError> {
    let plan = reader.plan(&Selection::ALL).map_err(|error| failed(&ring_failure(&error)))?;
    let status = reader.status().map_err(|error| failed(&ring_failure(&error)))?.ring;
    let end = if reader.is_live() { Some(session::now()) } else { status.newest };
    let mut all = BTreeSet::new();
    let mut known = status.oldest;
    for slot in &plan.slots {
        // A slot that is not sealed tells no times: it begins after those before it.
        let first = slot.first.or(known).or(end);
        let last = slot.last.or(end).or(first);
        if let (Some(first), Some(last)) = (first, last) {
            all.extend(ring_path::minute_of(first)..=ring_path::minute_of(last));
        }
        known = slot.last.or(known);
    }
    Ok(all)
}
