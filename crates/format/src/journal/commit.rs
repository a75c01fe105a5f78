//! A commit: a header that nobody can forge, and records. One write and one flush make it durable.

use super::{ConditionHold, Record};
use crate::bytes::{FieldReader, SliceWriter, blocks};
use crate::{FormatError, Key, Superblock, crc32c};
use holdfast_base::{BLOCK, Epoch, MAX_HOLD_RUNS, MAX_REASON, MAX_STREAMS, OrderId, RingId};

const MAGIC: &[u8; 8] = b"HFJRNL01";
const WHAT: &str = "commit";
const TAG_AT: usize = 96;
const HEAD_BYTES: usize = 128;
/// Type, flags and length in front of a record's body.
const RECORD_HEAD: usize = 8;

/// Most bytes of a commit, padding included; less for slots that are smaller than it.
pub const MAX_COMMIT: usize = 1 << 20;

// The largest hold fits into a commit of its own: fixed fields, streams, runs, reason, owner, condition and order.
const _: () = assert!(
    HEAD_BYTES
        + RECORD_HEAD
        + 68
        + 4 * MAX_STREAMS
        + 16 * MAX_HOLD_RUNS
        + 2 * (2 + MAX_REASON)
        + ConditionHold::MOST
        + size_of::<OrderId>()
        + 7
        <= MAX_COMMIT
);

/// What a commit says of itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CommitHead {
    /// The ring.
    pub ring: RingId,
    /// The extent's generation: every switch adds 1.
    pub generation: u64,
    /// The commit's number: consecutive over the ring's life.
    pub number: u64,
    /// The run that wrote it.
    pub epoch: Epoch,
    /// A snapshot begins here.
    pub begins: bool,
    /// Part of a snapshot.
    pub part: bool,
    /// The snapshot ends here.
    pub ends: bool,
}

/// Fills a commit in memory that is given to it; never allocates.
#[derive(Debug)]
pub struct CommitWriter<'a> {
    buffer: &'a mut [u8],
    used: usize,
    /// Where all records but the first must end.
    limit: usize,
}

impl<'a> CommitWriter<'a> {
    /// A commit of at most `buffer.len()` bytes, padding included. At least one block is needed for it to hold
    /// anything, and more than [`MAX_COMMIT`] is not used.
    pub fn new(buffer: &'a mut [u8]) -> Self {
        Self::within(buffer, usize::MAX)
    }

    /// The same, of `most` bytes if its records are small: only the first may go beyond, for a record that does not fit
    /// there must not wait for ever.
    pub fn within(buffer: &'a mut [u8], most: usize) -> Self {
        let len = buffer.len().min(MAX_COMMIT) / BLOCK * BLOCK;
        let limit = len.min(most.max(BLOCK));
        Self { buffer: &mut buffer[..len], used: HEAD_BYTES, limit }
    }

    /// Bytes left, for a record's body and the 8 bytes in front of it.
    pub fn room(&self) -> usize {
        self.limit.saturating_sub(self.used)
    }

    /// Whether there is no record in it yet.
    pub fn is_empty(&self) -> bool {
        self.used == HEAD_BYTES
    }

    /// Adds a record. `false`: it does not fit, and nothing was added. [`Record::Unknown`] is never added.
    pub fn push(&mut self, record: &Record<'_>) -> bool {
        self.push_with(record.kind(), |put| record.put(put))
    }

    /// Adds a record whose body `fill` writes; `fill` says `false` when it could not.
    pub(crate) fn push_with(&mut self, kind: u16, fill: impl FnOnce(&mut SliceWriter<'_>) -> bool) -> bool {
        let end = if self.is_empty() { self.buffer.len() } else { self.limit.max(self.used) };
        let Some(space) = self.buffer.get_mut(self.used..end) else { return false };
        let mut put = SliceWriter::new(space);
        put.u16(kind).u16(0).u32(0);
        if !fill(&mut put) {
            return false;
        }
        let body = put.at().saturating_sub(RECORD_HEAD);
        put.align(8);
        if !put.fits() {
            return false;
        }
        let end = put.at();
        put.seek(4).u32(body as u32);
        self.used += end;
        true
    }

    /// Writes the header and zeros up to the next block; returns how many bytes are to be written to the medium:
    /// none when the buffer was shorter than a block.
    pub fn finish(self, key: &Key, head: &CommitHead) -> usize {
        let padded = blocks(self.used);
        let Some(commit) = self.buffer.get_mut(..padded) else { return 0 };
        commit[self.used..].fill(0);
        let crc = crc32c(&commit[HEAD_BYTES..self.used]);
        let flags = u8::from(head.begins) | u8::from(head.part) << 1 | u8::from(head.ends) << 2;
        let mut put = SliceWriter::new(commit);
        put.bytes(MAGIC).u16(1).u8(flags).zeros(5).bytes(&head.ring.0).u64(head.generation).u64(head.number);
        put.u64(head.epoch.0).u32((self.used - HEAD_BYTES) as u32).u32(crc).zeros(32);
        let tag = key.tag(&commit[..TAG_AT]);
        SliceWriter::new(commit).seek(TAG_AT).bytes(&tag).zeros(16);
        padded
    }
}

/// A commit's header, without a look at its records.
struct Header {
    head: CommitHead,
    records: usize,
    crc: u32,
}

fn read_header(bytes: &[u8], key: &Key, ring: RingId) -> Result<Header, FormatError> {
    let mut get = FieldReader::new(WHAT, bytes);
    get.magic(*MAGIC)?;
    let (version, flags) = (get.u16()?, get.u8()?);
    get.take(5)?;
    let theirs = RingId(get.array()?);
    if theirs != ring {
        return Err(FormatError::Foreign { structure: WHAT, ring: theirs });
    }
    let (generation, number, epoch) = (get.u64()?, get.u64()?, Epoch(get.u64()?));
    let (records, crc) = (get.u32()? as usize, get.u32()?);
    let tag: [u8; 16] = get.seek(TAG_AT).array()?;
    if tag != key.tag(&bytes[..TAG_AT]) {
        return Err(FormatError::BadTag { structure: WHAT, at: TAG_AT as u64 });
    }
    if version != 1 {
        return Err(FormatError::Version { structure: WHAT, version: version.into() });
    }
    if records > MAX_COMMIT - HEAD_BYTES {
        return Err(get.seek(56).malformed("more records than a commit may have"));
    }
    let (begins, part, ends) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
    let head = CommitHead { ring, generation, number, epoch, begins, part, ends };
    Ok(Header { head, records, crc })
}

/// Bytes of the commit whose first block this is, padding included: how much to read.
pub fn commit_len(first_block: &[u8], key: &Key, ring: RingId) -> Result<usize, FormatError> {
    Ok(blocks(HEAD_BYTES + read_header(first_block, key, ring)?.records))
}

/// What the recovery record in the commit at the start of `bytes` says, for a lane whose superblocks are all lost. The
/// key that makes the commit trustworthy is in the record itself: so this tells what the ring was, not that nobody
/// has forged it.
pub fn find_recovery(bytes: &[u8]) -> Option<Superblock> {
    let mut get = FieldReader::new(WHAT, bytes);
    get.magic(*MAGIC).ok()?;
    let records = get.seek(56).u32().ok()? as usize;
    let crc = get.u32().ok()?;
    let body = get.seek(HEAD_BYTES).take(records).ok()?;
    let found = (crc32c(body) == crc).then(|| {
        Records::new(body).flatten().find_map(|record| match record {
            Record::Recovery(text) => Superblock::from_recovery_string(text).ok(),
            _ => None,
        })
    })??;
    read_commit(bytes, &found.key, found.ring).is_ok().then_some(found)
}

/// Reads the commit at the start of `bytes`: its header, its records, and its length with the padding.
pub fn read_commit<'a>(
    bytes: &'a [u8],
    key: &Key,
    ring: RingId,
) -> Result<(CommitHead, Records<'a>, usize), FormatError> {
    let Header { head, records, crc } = read_header(bytes, key, ring)?;
    let body = FieldReader::new(WHAT, bytes).seek(HEAD_BYTES).take(records)?;
    if crc32c(body) != crc {
        return Err(FormatError::BadChecksum { structure: WHAT, at: HEAD_BYTES as u64 });
    }
    Ok((head, Records::new(body), blocks(HEAD_BYTES + records)))
}

/// The records of a commit. Ends after the first error.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    left: &'a [u8],
}

impl<'a> Records<'a> {
    /// The records in `bytes`, which is the inside of a commit whose checks held.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    fn read(&mut self) -> Result<Record<'a>, FormatError> {
        let mut get = FieldReader::new("record", self.left);
        let kind = get.u16()?;
        get.take(2)?;
        let len = get.u32()? as usize;
        let body = get.take(len)?;
        let next = (RECORD_HEAD + len).next_multiple_of(8).min(self.left.len());
        self.left = &self.left[next..];
        Record::read(kind, body)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left.is_empty() {
            return None;
        }
        let record = self.read();
        if record.is_err() {
            self.left = &[];
        }
        Some(record)
    }
}
