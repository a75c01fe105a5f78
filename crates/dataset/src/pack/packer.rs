//! Packer: writes a folder to a dataset, and verifies it.

use crate::error::DatasetError;
use crate::evacuate::{failure, written_here};
use crate::manifest::{Manifest, NAME, Provenance, TreeEntry, VERSION};
use crate::mcap_writer::{McapWriter, Position};
use crate::pack::contents::zeros;
use crate::pack::directory::{DirectoryBuilder, ROOT, root_bytes};
use crate::pack::entry::{Encoding, Entry, Kind, ModifiedTime, Piece, shown};
use crate::pack::image::RawFrame;
use crate::pack::ordered_pool::OrderedPool;
use crate::pack::series::{Member, SeriesRules};
use crate::pack::source::{Contents, ImageRules, PIECE, Source, Whole, has_changed, read};
use crate::pack::walk::{Found, Walk};
use crate::reader::Dataset;
use crate::storage::RangeRead;
use crate::target::Target;
use crate::verify::verify;
use crate::{Options, Written};
use holdfast_base::failure::{Failure, Result as Outcome};
use holdfast_export::SourceAccess;
use mcap::records::MessageHeader;
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::{File, Metadata};
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::sync::Arc;

/// Topic of the files that are in no series.
const FILES: &str = "files";

/// Bytes that are gathered before a write.
const GATHER: usize = 1 << 20;

/// Entries and bytes of a batch that a thread reads.
const BATCH_ENTRIES: usize = 64;
const BATCH_BYTES: u64 = PIECE;

/// Threads that read files at most: each has up to two batches in memory.
const MOST_READERS: usize = 8;

/// Contents that are known for sharing: about 100 bytes of memory each. Contents beyond it are stored again.
const MOST_SHARED: usize = 1 << 21;

/// Entries that are listed by name if they were left out or changed; further ones are counted.
const MOST_LISTED: usize = 1000;

/// Packing of a folder.
pub struct Packing<'a> {
    /// Folder whose entries are packed.
    pub folder: &'a Path,
    /// Options of the dataset.
    pub options: Options,
    /// Patterns of paths below the folder: the files of each are a series.
    pub series: &'a [String],
    /// Size of raw frames, which are stored as images are.
    pub raw: Option<RawFrame>,
    /// True if images are stored as they are, never filtered.
    pub plain_images: bool,
    /// Size of the largest files that are packed; larger ones are passed over. `None`: all are packed.
    pub below: Option<u64>,
    /// User who packs the folder.
    pub owner: String,
}

/// Progress while a folder is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PackProgress {
    /// Entries packed so far, and bytes of their contents.
    Packed {
        /// Number of entries so far.
        entries: u64,
        /// Bytes of their contents.
        bytes: u64,
    },
    /// Bytes of the dataset verified so far.
    Verified(u64),
}

/// Entry that is not as it is in the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Path below the folder.
    pub path: Vec<u8>,
    /// Reason, as one clause.
    pub reason: String,
}

impl LeftOut {
    /// Path in text, for messages.
    pub fn shown(&self) -> String {
        shown(&self.path)
    }
}

/// Folder that was packed and verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Dataset that was written.
    pub written: Written,
    /// Bytes of file contents that were stored, each content once.
    pub stored: u64,
    /// Entries that were left out, the first ones of them.
    pub left_out: Vec<LeftOut>,
    /// Number of entries that were left out.
    pub left_out_count: u64,
    /// Files that changed while they were read, the first ones of them; the dataset has the bytes that were read.
    pub changed: Vec<LeftOut>,
    /// Number of files that changed.
    pub changed_count: u64,
}

/// Packs a folder. The dataset gets its name when it was read back.
pub fn pack(
    packing: &Packing<'_>,
    target: Box<dyn Target>,
    progress: &mut dyn FnMut(PackProgress),
) -> Outcome<Packed> {
    let Packing { folder, options, series, raw, plain_images, below, owner } = packing;
    let rules = SeriesRules::new(series).map_err(|(text, error)| {
        Failure::usage(format_args!("`{text}` is no pattern: {error}")).at("--series")
    })?;
    let found = std::fs::metadata(folder);
    if !found.map_err(|error| Failure::io("cannot open the folder", folder, &error))?.is_dir() {
        return Err(Failure::usage("this is no folder").at_path(folder));
    }
    // A link that names the folder is followed, links below it are not.
    let folder = std::fs::canonicalize(folder)
        .map_err(|error| Failure::io("cannot open the folder", folder, &error))?;
    let to = target.name();
    let failed = |error: DatasetError| failure(&error, Path::new(&to));
    let provenance =
        Provenance { folder: folder.display().to_string(), owner: owner.clone(), ..written_here() };
    let walk = Walk::new(&folder, rules, target.inode());
    let out = BufWriter::with_capacity(GATHER, target);
    let mut writer = Packer::new(out, options, provenance).map_err(failed)?;
    let images = ImageRules { is_off: *plain_images, raw: *raw, compression: options.compression };
    writer.walk(walk, &folder, images, *below, options.threads, progress).map_err(failed)?;
    let access = writer.access;
    let (out, packed) = writer.finish().map_err(failed)?;
    let target = out.into_inner().map_err(|error| failed(DatasetError::Io(error.into_error())));
    let mut target = target?;
    // A user who may not read all of the folder may not read the dataset.
    target.narrow(access);
    verified(target.verify()?, &to, &packed.written, progress)?;
    target.publish()?;
    Ok(packed)
}

/// Compares the dataset that was read back with the contents that were read.
fn verified(
    file: Arc<dyn RangeRead>,
    to: &str,
    written: &Written,
    progress: &mut dyn FnMut(PackProgress),
) -> Outcome<()> {
    let failed = |error: DatasetError| failure(&error, Path::new(to));
    let dataset = Dataset::open(file).map_err(failed)?;
    let findings = verify(&dataset, &mut |bytes| progress(PackProgress::Verified(bytes))).map_err(failed)?;
    if dataset.id() != written.id || dataset.size() != written.bytes {
        return Err(Failure::failed("what was read back is another dataset than was written").at(to));
    }
    findings.first().map_or(Ok(()), |first| {
        Err(Failure::failed(format_args!("read back, {} is damaged: {}", first.place, first.cause))
            .at(to)
            .advice("check the place, and pack the folder to another one"))
    })
}

type PackedEntry = Entry<(Position, Encoding)>;

/// File with several names: names that are still to come, and its entry.
struct Linked {
    left: u64,
    entry: PackedEntry,
}

/// Writer of a packed folder.
struct Packer<W: Write> {
    mcap: McapWriter<W>,
    manifest: Manifest,
    tree: TreeEntry,
    directory: DirectoryBuilder,
    channels: HashMap<(Option<Arc<str>>, u8), u16>,
    /// Messages by the BLAKE3 of the bytes they stand for.
    shared: HashMap<[u8; 32], (Position, Encoding)>,
    /// Files with several names by device and inode, until all names were seen.
    linked: HashMap<(u64, u64), Linked>,
    stored: u64,
    left_out: Vec<LeftOut>,
    left_out_count: u64,
    changed: Vec<LeftOut>,
    changed_count: u64,
    /// Access to all that is packed.
    access: SourceAccess,
}

impl<W: Write> Packer<W> {
    fn new(out: W, options: &Options, provenance: Provenance) -> Result<Self, DatasetError> {
        let compression = options.compression.to_string();
        Ok(Self {
            mcap: McapWriter::new(out, options.compression, options.chunk_bytes, options.threads.get())?,
            manifest: Manifest { version: VERSION, provenance, compression, ..Manifest::default() },
            tree: TreeEntry::default(),
            directory: DirectoryBuilder::default(),
            channels: HashMap::new(),
            shared: HashMap::new(),
            linked: HashMap::new(),
            stored: 0,
            left_out: Vec::new(),
            left_out_count: 0,
            changed: Vec::new(),
            changed_count: 0,
            access: SourceAccess::default(),
        })
    }

    /// Packs all entries of a walk; files are read on several threads.
    fn walk(
        &mut self,
        mut walk: Walk,
        folder: &Path,
        images: ImageRules,
        below: Option<u64>,
        threads: NonZeroUsize,
        progress: &mut dyn FnMut(PackProgress),
    ) -> Result<(), DatasetError> {
        let is_wanted = |found: &Found| {
            !found.metadata.is_file() || below.is_none_or(|below| found.metadata.size() <= below)
        };
        let threads = threads.min(NonZeroUsize::new(MOST_READERS).unwrap_or(NonZeroUsize::MIN));
        let folder: Arc<Path> = Arc::from(folder);
        let mut pool = OrderedPool::start(threads, "holdfast-read", || {
            let folder = Arc::clone(&folder);
            move |batch: Vec<Result<Found, LeftOut>>| -> Vec<Result<Source, LeftOut>> {
                batch.into_iter().map(|found| read(&folder, found?, images)).collect()
            }
        })?;
        let (mut batch, mut bytes) = (Vec::new(), 0);
        loop {
            let found = walk.next();
            let is_last = found.is_none();
            if let Some(found) = found.filter(|found| found.as_ref().map_or(true, is_wanted)) {
                bytes += found.as_ref().map_or(0, |found| found.metadata.size());
                batch.push(found);
            }
            if batch.len() < BATCH_ENTRIES && bytes < BATCH_BYTES && !is_last {
                continue;
            }
            bytes = 0;
            if let Some(sources) = pool.give(std::mem::take(&mut batch))? {
                self.sources(sources, progress)?;
            }
            if is_last {
                break;
            }
        }
        while let Some(sources) = pool.next()? {
            self.sources(sources, progress)?;
        }
        Ok(())
    }

    fn sources(
        &mut self,
        sources: Vec<Result<Source, LeftOut>>,
        progress: &mut dyn FnMut(PackProgress),
    ) -> Result<(), DatasetError> {
        for source in sources {
            let added = match source {
                Ok(source) => self.source(source, progress)?,
                Err(left_out) => Err(left_out),
            };
            if let Err(left_out) = added {
                self.left_out_count += 1;
                if self.left_out.len() < MOST_LISTED {
                    self.left_out.push(left_out);
                }
            }
        }
        progress(PackProgress::Packed { entries: self.tree.entries, bytes: self.tree.bytes });
        Ok(())
    }

    /// Packs an entry that was read.
    fn source(
        &mut self,
        source: Source,
        progress: &mut dyn FnMut(PackProgress),
    ) -> Result<Result<(), LeftOut>, DatasetError> {
        let Source { found, metadata, contents, is_changed } = source;
        let Found { path, series, .. } = found;
        if !metadata.is_symlink() {
            self.access = self.access.and(SourceAccess::of_metadata(&metadata));
        }
        let mut entry = PackedEntry {
            path,
            kind: Kind::File,
            mode: metadata.mode() & 0o7777,
            modified: ModifiedTime {
                seconds: metadata.mtime(),
                nanos: u32::try_from(metadata.mtime_nsec()).unwrap_or(0),
            },
            size: 0,
            target: Vec::new(),
            blake3: None,
            pieces: Vec::new(),
        };
        match contents {
            Contents::None => entry.kind = Kind::Directory,
            Contents::Target(target) => (entry.kind, entry.target) = (Kind::Symlink, target),
            Contents::Whole(..) | Contents::Open(_) => {
                if let Some(linked) = self.link(&metadata, &entry.path) {
                    return self.entry(linked).map(Ok);
                }
                let head = Head { log_time: nanos(entry.modified), series: series.as_ref() };
                let is_changed = match contents {
                    Contents::Open(file) => {
                        match self.large(&mut entry, &file, &metadata, &head, progress)? {
                            Ok(is_changed) => is_changed,
                            Err(error) => {
                                let reason =
                                    format!("cannot read it: {}", holdfast_base::failure::reason(&error));
                                return Ok(Err(LeftOut { path: entry.path, reason }));
                            }
                        }
                    }
                    Contents::Whole(Whole { size, blake3, message, encoding }) => {
                        (entry.size, entry.blake3) = (size, Some(blake3));
                        if size > 0 {
                            let place = Some(self.message(&head, 0, &message, encoding, blake3)?);
                            entry.pieces.push(Piece { offset: 0, length: size, place, blake3 });
                        }
                        is_changed
                    }
                    Contents::None | Contents::Target(_) => false,
                };
                if is_changed {
                    self.changed_count += 1;
                    if self.changed.len() < MOST_LISTED {
                        let reason = "it changed while it was read".to_owned();
                        self.changed.push(LeftOut { path: entry.path.clone(), reason });
                    }
                }
                if metadata.nlink() > 1 {
                    let linked = Linked { left: metadata.nlink() - 1, entry: entry.clone() };
                    self.linked.insert((metadata.dev(), metadata.ino()), linked);
                }
            }
        }
        self.entry(entry).map(Ok)
    }

    /// A further name of a file that is packed already.
    fn link(&mut self, metadata: &Metadata, path: &[u8]) -> Option<PackedEntry> {
        let key = (metadata.dev(), metadata.ino());
        let known = self.linked.get_mut(&key)?;
        known.left -= 1;
        let mut entry = known.entry.clone();
        entry.target = std::mem::replace(&mut entry.path, path.to_vec());
        entry.kind = Kind::HardLink;
        if known.left == 0 {
            self.linked.remove(&key);
        }
        Some(entry)
    }

    /// Packs a large or sparse file in pieces. The inner result: true if it changed, or why it cannot be read.
    fn large(
        &mut self,
        entry: &mut PackedEntry,
        file: &File,
        metadata: &Metadata,
        head: &Head<'_>,
        progress: &mut dyn FnMut(PackProgress),
    ) -> Result<io::Result<bool>, DatasetError> {
        let (size, mut at, mut hasher) = (metadata.size(), 0, blake3::Hasher::new());
        let mut buffer = vec![0; PIECE as usize];
        let mut sequence = 0;
        while at < size {
            let (data, end) = match extent(file, at, size) {
                Ok(extent) => extent,
                Err(error) => return Ok(Err(error)),
            };
            if data > at {
                zeros(data - at, |bytes| {
                    hasher.update(bytes);
                    Ok::<(), DatasetError>(())
                })?;
                entry.pieces.push(Piece { offset: at, length: data - at, place: None, blake3: [0; 32] });
                at = data;
            }
            while at < end {
                // Pieces begin at multiples of their size, so that files of the same contents share them.
                let length = (PIECE - at % PIECE).min(end - at) as usize;
                let read = match read_at(file, &mut buffer[..length], at) {
                    Ok(read) => read,
                    Err(error) => return Ok(Err(error)),
                };
                if read == 0 {
                    break;
                }
                let bytes = &buffer[..read];
                hasher.update(bytes);
                let hash = *blake3::hash(bytes).as_bytes();
                let place = Some(self.message(head, sequence, bytes, Encoding::Plain, hash)?);
                entry.pieces.push(Piece { offset: at, length: read as u64, place, blake3: hash });
                at += read as u64;
                sequence += 1;
                let bytes = self.tree.bytes + at;
                progress(PackProgress::Packed { entries: self.tree.entries, bytes });
            }
            if at < end {
                break;
            }
        }
        (entry.size, entry.blake3) = (at, Some(*hasher.finalize().as_bytes()));
        match file.metadata() {
            Ok(after) => Ok(Ok(at != size || has_changed(metadata, &after))),
            Err(error) => Ok(Err(error)),
        }
    }

    /// The message of some bytes: a new one, or that of the same bytes.
    fn message(
        &mut self,
        head: &Head<'_>,
        piece: u32,
        bytes: &[u8],
        encoding: Encoding,
        hash: [u8; 32],
    ) -> Result<(Position, Encoding), DatasetError> {
        // A series has its channel, though all its contents may be shared.
        let channel_id = self.channel(head.series.map(|series| &series.topic), encoding)?;
        if let Some(known) = self.shared.get(&hash) {
            return Ok(*known);
        }
        // MCAP has 32 bits for it; the name of the file has the number.
        let sequence = head.series.map_or(piece, |series| series.number as u32);
        let header =
            MessageHeader { channel_id, sequence, log_time: head.log_time, publish_time: head.log_time };
        let at = self.mcap.message(&header, bytes)?;
        self.stored += bytes.len() as u64;
        if self.shared.len() < MOST_SHARED {
            self.shared.insert(hash, (at, encoding));
        }
        Ok((at, encoding))
    }

    fn channel(&mut self, topic: Option<&Arc<str>>, encoding: Encoding) -> Result<u16, DatasetError> {
        let key = (topic.cloned(), encoding.number());
        if let Some(channel) = self.channels.get(&key) {
            return Ok(*channel);
        }
        let kind = if topic.is_some() { "series" } else { "files" };
        let metadata = BTreeMap::from([("holdfast".to_owned(), kind.to_owned())]);
        let name = topic.map_or(FILES, |topic| topic);
        let channel = self.mcap.new_channel(0, name, encoding.message_encoding(), &metadata)?;
        self.channels.insert(key, channel);
        Ok(channel)
    }

    /// Adds an entry to the directory.
    fn entry(&mut self, entry: PackedEntry) -> Result<(), DatasetError> {
        let tree = &mut self.tree;
        tree.entries += 1;
        let count = match entry.kind {
            Kind::File => &mut tree.files,
            Kind::HardLink => &mut tree.hard_links,
            Kind::Directory => &mut tree.directories,
            Kind::Symlink => &mut tree.symlinks,
        };
        *count += 1;
        tree.bytes += entry.size;
        if self.directory.push(entry) { self.end_part() } else { Ok(()) }
    }

    /// Writes a part of the directory, behind all chunks that it names.
    fn end_part(&mut self) -> Result<(), DatasetError> {
        self.mcap.drain()?;
        let Some((bytes, part)) = self.directory.build(|number| self.mcap.chunk_place(number))? else {
            return Ok(());
        };
        let name = format!("holdfast/tree/{}.parquet", self.tree.parts.len());
        let at = self.mcap.attach(&name, "application/vnd.apache.parquet", &bytes)?;
        self.tree.parts.push(crate::manifest::TreePart { offset: at.offset, ..part });
        Ok(())
    }

    fn finish(mut self) -> Result<(W, Packed), DatasetError> {
        self.end_part()?;
        // A series has two channels if a part of its files is filtered.
        let series: HashSet<_> = self.channels.keys().filter_map(|(topic, _)| topic.as_ref()).collect();
        self.tree.series = series.len() as u64;
        self.manifest.chunks = self.mcap.flush()?;
        self.mcap.summary_record(ROOT, root_bytes(&self.tree));
        self.manifest.tree = Some(self.tree);
        let bytes = self.manifest.to_bytes();
        self.mcap.attach(NAME, "application/json", &bytes)?;
        let id = blake3::hash(&bytes).to_hex().to_string();
        let (out, bytes) = self.mcap.finish()?;
        let packed = Packed {
            written: Written { id, bytes, manifest: self.manifest },
            stored: self.stored,
            left_out: self.left_out,
            left_out_count: self.left_out_count,
            changed: self.changed,
            changed_count: self.changed_count,
        };
        Ok((out, packed))
    }
}

/// Head of a file's messages.
struct Head<'a> {
    log_time: u64,
    series: Option<&'a Member>,
}

/// Nanoseconds since 1970 as MCAP counts them: without a sign.
fn nanos(time: ModifiedTime) -> u64 {
    let nanos = i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanos);
    u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
}

/// The next data of a file from an offset on: begin and end. A file system without holes has data everywhere.
fn extent(file: &File, at: u64, size: u64) -> io::Result<(u64, u64)> {
    let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.min(size),
        Err(Errno::NXIO) => return Ok((size, size)),
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok((at, size)),
        Err(error) => return Err(error.into()),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(data)).map_or(size, |end| end.min(size));
    Ok((data, end.max(data)))
}

/// Reads until the buffer is full or the file ends.
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match file.read_at(&mut buffer[done..], offset + done as u64) {
            Ok(0) => break,
            Ok(read) => done += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}
