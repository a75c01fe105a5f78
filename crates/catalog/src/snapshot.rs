//! Byte form of snapshots: all records of a catalog and its log, in blocks with checksums. Golden files keep every
//! version.
//!
//! ```text
//! offset 0  8 bytes   "HFCATSNP"
//! offset 8  u8        format version, 1
//! offset 9            blocks, each:
//!           u32       length of the body in bytes, little-endian, at most MAX_BLOCK_BYTES
//!           body      items, postcard one after another: variant number and fields
//!           16 bytes  beginning of the BLAKE3 hash of all bytes of the snapshot before these
//! ```
//!
//! The first item is the head and the last one the end, which counts the others. New kinds of items and records are
//! appended to their enums; any other change of layout needs a new version byte.

use crate::error::Result;
use crate::hlc::HlcTime;
use crate::ids::SiteId;
use crate::record::Record;
use crate::vector::VersionVector;
use serde::{Deserialize, Serialize};
use std::io::Read;

/// Version of the byte form that is written.
pub const SNAPSHOT_VERSION: u8 = 1;

const MAGIC: &[u8; 8] = b"HFCATSNP";

/// Body of a block that is written as soon as it has this length.
const BLOCK_BYTES: usize = 64 << 10;

/// Longest body that is read: a full block and the longest operation or record. It bounds the memory of a reader.
const MAX_BLOCK_BYTES: usize = 8 << 20;

const CHECK_BYTES: usize = 16;

/// Bytes that are no snapshot, or none that can be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// Snapshot written by newer software.
    #[error(
        "cannot read a snapshot: it has format version {0}, and this software reads version \
         {SNAPSHOT_VERSION}; update the software"
    )]
    Version(u8),
    /// Bytes cut short, altered, or followed by others.
    #[error("cannot read a snapshot: {0}; fetch it again from its site")]
    Damaged(String),
    /// Catalog that would lose operations.
    #[error("cannot import a snapshot of site {site}: {reason}; {remedy}")]
    Unsuitable {
        /// Site that exported the snapshot.
        site: SiteId,
        /// Rule that forbids the import.
        reason: &'static str,
        /// Advice to the reader.
        remedy: &'static str,
    },
}

/// Facts about a snapshot that are needed before its records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Head {
    /// Site that exported the snapshot.
    pub(crate) site: SiteId,
    /// Greatest stamp that the site gave or witnessed.
    pub(crate) clock: HlcTime,
    /// Operations that the records contain.
    pub(crate) applied: VersionVector,
    /// Operations that the log of the site no longer has, but for those that recorded conflicts name.
    pub(crate) compacted: VersionVector,
}

/// Part of a snapshot.
#[derive(Serialize, Deserialize)]
pub(crate) enum Item {
    /// First item of a snapshot.
    Head(Head),
    /// Row of the state.
    Record(Record),
    /// Encoded operation of the log.
    Operation(Vec<u8>),
    /// Last item: the number of records and that of operations.
    End(u64, u64),
}

/// Writer of a snapshot to a receiver of bytes.
pub(crate) struct SnapshotWriter<'a> {
    receiver: &'a mut dyn FnMut(&[u8]) -> Result<()>,
    hasher: blake3::Hasher,
    body: Vec<u8>,
    records: u64,
    operations: u64,
}

impl<'a> SnapshotWriter<'a> {
    /// Begins a snapshot with its head.
    pub(crate) fn new(receiver: &'a mut dyn FnMut(&[u8]) -> Result<()>, head: Head) -> Result<Self> {
        let (hasher, body) = (blake3::Hasher::new(), Vec::new());
        let mut writer = Self { receiver, hasher, body, records: 0, operations: 0 };
        writer.write(MAGIC)?;
        writer.write(&[SNAPSHOT_VERSION])?;
        writer.item(&Item::Head(head))?;
        Ok(writer)
    }

    /// Adds a row of the state.
    pub(crate) fn record(&mut self, record: Record) -> Result<()> {
        self.records += 1;
        self.item(&Item::Record(record))
    }

    /// Adds an operation of the log.
    pub(crate) fn operation(&mut self, encoded: Vec<u8>) -> Result<()> {
        self.operations += 1;
        self.item(&Item::Operation(encoded))
    }

    /// Ends the snapshot with the numbers of its parts.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.item(&Item::End(self.records, self.operations))?;
        self.block()
    }

    fn item(&mut self, item: &Item) -> Result<()> {
        let body = postcard::to_extend(item, std::mem::take(&mut self.body));
        self.body = body.map_err(|error| SnapshotError::Damaged(error.to_string()))?;
        if self.body.len() < BLOCK_BYTES { Ok(()) } else { self.block() }
    }

    fn block(&mut self) -> Result<()> {
        let body = std::mem::take(&mut self.body);
        self.write(&(body.len() as u32).to_le_bytes())?;
        self.write(&body)?;
        let check = self.hasher.finalize();
        self.write(&check.as_bytes()[..CHECK_BYTES])
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        (self.receiver)(bytes)
    }
}

/// Reader of a snapshot. It passes no item on before the checksum of its block agrees.
pub(crate) struct SnapshotReader<'a> {
    bytes: &'a mut dyn Read,
    hasher: blake3::Hasher,
    head: Head,
    /// Items of the first block after the head.
    first: Vec<Item>,
}

fn damaged<T>(reason: &str) -> Result<T> {
    Err(SnapshotError::Damaged(reason.to_owned()).into())
}

impl<'a> SnapshotReader<'a> {
    /// Reads the head of a snapshot.
    pub(crate) fn new(bytes: &'a mut dyn Read) -> Result<Self> {
        let mut hasher = blake3::Hasher::new();
        let start = take(bytes, &mut hasher, MAGIC.len() + 1)?;
        match start.strip_prefix(MAGIC) {
            Some(&[SNAPSHOT_VERSION]) => {}
            Some(&[version]) => return Err(SnapshotError::Version(version).into()),
            _ => return damaged("it does not begin as one"),
        }
        let mut first = block(bytes, &mut hasher)?;
        match first.remove(0) {
            Item::Head(head) => Ok(Self { bytes, hasher, head, first }),
            _ => damaged("it has no head"),
        }
    }

    /// Head of this snapshot.
    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    /// Passes all records and operations to the visitor, and checks that the snapshot is complete.
    pub(crate) fn read(mut self, visit: &mut dyn FnMut(Item) -> Result<()>) -> Result<()> {
        let (mut records, mut operations) = (0, 0);
        let mut applied = VersionVector::default();
        let mut items = std::mem::take(&mut self.first);
        loop {
            for item in items {
                match &item {
                    Item::Head(_) => return damaged("it has two heads"),
                    Item::Record(record) => {
                        records += 1;
                        if let Record::Site(progress) = record {
                            applied.raise(progress.site, progress.applied);
                        }
                    }
                    Item::Operation(_) => operations += 1,
                    Item::End(..) if self.bytes.read(&mut [0]).map_err(unreadable)? > 0 => {
                        return damaged("other bytes follow its end");
                    }
                    Item::End(all, logged)
                        if (*all, *logged) == (records, operations) && applied == self.head.applied =>
                    {
                        return Ok(());
                    }
                    Item::End(..) => return damaged("its parts are not all there"),
                }
                visit(item)?;
            }
            items = block(self.bytes, &mut self.hasher)?;
        }
    }
}

fn unreadable(error: impl std::fmt::Display) -> SnapshotError {
    SnapshotError::Damaged(error.to_string())
}

/// Reads some bytes, which count for the checksums after them.
fn take(bytes: &mut dyn Read, hasher: &mut blake3::Hasher, length: usize) -> Result<Vec<u8>> {
    let mut taken = vec![0; length];
    match bytes.read_exact(&mut taken) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return damaged("it is cut short"),
        Err(error) => return Err(unreadable(error).into()),
    }
    hasher.update(&taken);
    Ok(taken)
}

/// Reads a block, which holds an item at least.
fn block(bytes: &mut dyn Read, hasher: &mut blake3::Hasher) -> Result<Vec<Item>> {
    let length = take(bytes, hasher, 4)?;
    let length = length.iter().rev().fold(0_usize, |length, byte| (length << 8) | usize::from(*byte));
    if length == 0 || length > MAX_BLOCK_BYTES {
        return damaged("a block has an impossible length");
    }
    let body = take(bytes, hasher, length)?;
    let expected = hasher.finalize();
    if take(bytes, hasher, CHECK_BYTES)? != expected.as_bytes()[..CHECK_BYTES] {
        return damaged("a checksum differs");
    }
    let (mut items, mut left) = (Vec::new(), body.as_slice());
    while !left.is_empty() {
        let (item, rest) = postcard::take_from_bytes(left).map_err(unreadable)?;
        items.push(item);
        left = rest;
    }
    Ok(items)
}
