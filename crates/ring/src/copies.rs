//! Row-by-row reader of slots, and writer of the copies that keep some of the rows. `redact` and `distil`
//! choose the rows.

use crate::PlacedCopy;
use crate::job::{Job, JobError, STEP};
use crate::table::Bounds;
use holdfast_base::{Age, CHECK_BLOCK, Epoch, Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Builder, CellBuffer, CellsAt, Chunk, Classes, Counters, Entry, EntrySummary, Gap, PartHeader, Row,
    SectionKind, SlotFlags, SlotId, Summary, check_payload_block, crc32c, decode_directory,
};
use holdfast_media::Buffer;

/// Memory that the columns of copies take beside their buffer: with what else a recorder takes for itself it stays within
/// 64 MiB.
const COLUMN_MEMORY: usize = 36 << 20;

/// Reads the slot's chunks one after the other, each with its number.
pub(crate) fn chunks(
    job: &mut Job<'_, '_>,
    header: &PartHeader,
    summary: &Summary,
    visit: &mut dyn FnMut(&mut Job<'_, '_>, u32, &Chunk) -> Result<(), JobError>,
) -> Result<(), JobError> {
    let damaged = |why: &dyn std::fmt::Display| JobError::Damaged { slot: header.slot, why: why.to_string() };
    let missing = || damaged(&"a section is missing");
    let directory = summary.section(SectionKind::ChunkDirectory).ok_or_else(missing)?;
    let base = summary.section(SectionKind::Chunks).ok_or_else(missing)?.range().start;
    let mut bytes = Vec::with_capacity(directory.range().len());
    let range = directory.range();
    let mut at = range.start;
    while at < range.end {
        let len = (range.end - at).min(STEP);
        bytes.extend_from_slice(job.read_slot(header, at, len)?);
        at += len;
    }
    let entries = decode_directory(&bytes, directory.crc).map_err(|e| damaged(&e))?;
    for (number, entry) in (0..).zip(&entries) {
        let bytes = job.read_slot(header, base + entry.offset as usize, entry.bytes as usize)?;
        let chunk = Chunk::decode_at(entry, header.sequence, bytes).map_err(|e| damaged(&e))?;
        visit(job, number, &chunk)?;
    }
    Ok(())
}

/// Reads payload of a slot block by block, each checked.
pub(crate) struct Payload<'h> {
    header: &'h PartHeader,
    checks: Vec<u8>,
    /// Bytes that are read at once, or more where a row has more.
    piece: usize,
    at: usize,
    bytes: Vec<u8>,
}

impl<'h> Payload<'h> {
    /// The payload of a slot, with the checks that it is held against.
    pub(crate) fn of(
        job: &mut Job<'_, '_>,
        header: &'h PartHeader,
        summary: &Summary,
    ) -> Result<Self, JobError> {
        let damaged = |why: &str| JobError::Damaged { slot: header.slot, why: why.to_owned() };
        let section = summary.section(SectionKind::PayloadChecks).ok_or_else(|| damaged("no checks"))?;
        let checks = job.read_slot(header, section.range().start, section.range().len())?.to_vec();
        if crc32c(&checks) != section.crc {
            return Err(damaged("the payload checks are damaged"));
        }
        Ok(Self { header, checks, piece: STEP, at: 0, bytes: Vec::new() })
    }

    /// The same where so many bytes of all of it are wanted: if they are few, they lie apart, and little is read around each.
    #[must_use]
    pub(crate) fn sparse(self, wanted: u64) -> Self {
        let few = wanted.saturating_mul(4) < u64::from(self.header.payload_bytes);
        Self { piece: if few { CHECK_BLOCK } else { STEP }, ..self }
    }

    /// What a gap that is there already says; `None` where that cannot be understood.
    pub(crate) fn gap(
        &mut self,
        job: &mut Job<'_, '_>,
        row: &Row,
        at: usize,
    ) -> Result<Option<Gap>, JobError> {
        let mut data = Vec::with_capacity(Gap::BYTES);
        let start = at + usize::from(row.meta);
        self.take(job, start, row.len as usize, &mut |bytes| data.extend_from_slice(bytes))?;
        Ok(Gap::decode(&data).ok())
    }

    /// The `len` bytes at `at` of the payload, appended to `out`.
    pub(crate) fn take(
        &mut self,
        job: &mut Job<'_, '_>,
        mut at: usize,
        mut len: usize,
        out: &mut dyn FnMut(&[u8]),
    ) -> Result<(), JobError> {
        while len > 0 {
            if at < self.at || at >= self.at + self.bytes.len() {
                self.load(job, at, len)?;
            }
            let from = at - self.at;
            let here = len.min(self.bytes.len() - from);
            out(&self.bytes[from..from + here]);
            at += here;
            len -= here;
        }
        Ok(())
    }

    fn load(&mut self, job: &mut Job<'_, '_>, at: usize, wanted: usize) -> Result<(), JobError> {
        let damaged = |why: String| JobError::Damaged { slot: self.header.slot, why };
        let whole = self.header.payload_bytes as usize;
        let start = at / CHECK_BLOCK * CHECK_BLOCK;
        let len = (at - start + wanted).next_multiple_of(CHECK_BLOCK).clamp(self.piece, STEP);
        let len = len.min(whole.saturating_sub(start));
        if at >= whole {
            return Err(damaged("a row lies outside its payload".to_owned()));
        }
        let bytes = job.read_slot(self.header, self.header.payload_offset as usize + start, len)?;
        for (n, block) in bytes.chunks(CHECK_BLOCK).enumerate() {
            let check = check_payload_block(&self.checks, start / CHECK_BLOCK + n, block);
            check.map_err(|e| damaged(e.to_string()))?;
        }
        self.bytes.clear();
        self.bytes.extend_from_slice(bytes);
        self.at = start;
        Ok(())
    }
}

/// What copies say of where they come from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The slot of the original, or of one of them.
    pub(crate) slot: SlotNo,
    /// That of which there is something in the copy under way.
    pub(crate) sequence: Sequence,
    pub(crate) epoch: Epoch,
    /// Its age, or that of the youngest of which there is something in the copy under way.
    pub(crate) age: Age,
    pub(crate) opened: Timestamp,
    pub(crate) sealed: Timestamp,
}

impl From<&PartHeader> for Origin {
    fn from(header: &PartHeader) -> Self {
        let PartHeader { slot, sequence, epoch, age, opened, sealed, .. } = *header;
        Self { slot, sequence, epoch, age, opened, sealed }
    }
}

/// The dictionary entry with which copies are opened that get rows of an original's entry which count so much, and the cells of
/// its columns: so that their counters end where the original's did.
pub(crate) fn opening(entry: &EntrySummary, counts: &Counters, age: Age, classes: Classes) -> Entry {
    let end = entry.counters;
    Entry {
        stream: entry.stream,
        kind: entry.kind,
        name: entry.name,
        preamble: entry.preamble,
        classes,
        counters: Counters {
            received: end.received.saturating_sub(counts.received),
            received_bytes: end.received_bytes.saturating_sub(counts.received_bytes),
            lost: end.lost.saturating_sub(counts.lost),
            lost_bytes: end.lost_bytes.saturating_sub(counts.lost_bytes),
            next_ordinal: entry.ordinals.map_or(end.next_ordinal, |(first, _)| first),
            gaps: end.gaps.saturating_sub(counts.gaps),
            unknown_gaps: end.unknown_gaps.saturating_sub(counts.unknown_gaps),
        },
        began: (entry.back > 0).then_some(Age(age.0.saturating_sub(entry.back))),
    }
}

/// Copies under way: one slot after the other is filled, so that there is always room for what stays and for the gaps.
pub(crate) struct Copies {
    origin: Origin,
    entries: Vec<Entry>,
    builder: Builder,
    /// The slot being filled.
    open: Option<Buffer>,
    /// Of which originals there is something in it.
    of: Vec<Sequence>,
    placed: Vec<PlacedCopy>,
}

impl Copies {
    /// Copies with this dictionary. A copy is expected to have so many bytes of columns at most: where there is no memory for as
    /// many, or no room in a slot for the columns of all these streams, they have none, and what is looked for in them is
    /// looked for in their payload.
    pub(crate) fn new(job: &Job<'_, '_>, origin: Origin, mut entries: Vec<Entry>, columns: u64) -> Self {
        let mut builder = Builder::new(job.superblock.geometry.slot_bytes, entries.len().max(1));
        let prepared = builder.prepare_within(&entries, COLUMN_MEMORY);
        if prepared.is_err() || columns > builder.column_room() as u64 {
            for entry in &mut entries {
                entry.classes = Classes::default();
            }
        }
        Self { origin, entries, builder, open: None, of: Vec::new(), placed: Vec::new() }
    }

    /// Whether they get the cells of a dictionary entry.
    pub(crate) fn has_columns(&self, number: u16) -> bool {
        self.entries.get(usize::from(number)).is_some_and(|entry| !entry.classes.is_empty())
    }

    fn damaged(&self, why: &dyn std::fmt::Display) -> JobError {
        JobError::Damaged { slot: self.origin.slot, why: why.to_string() }
    }

    /// What comes now is of that original, which is not older than those before.
    pub(crate) fn come_to(&mut self, original: &Origin) {
        (self.origin.sequence, self.origin.age) = (original.sequence, original.age);
    }

    /// Appends a row, whose payload `write` gives piece by piece, with its cells where it completes an element of a stream
    /// of which they [have columns](Copies::has_columns).
    pub(crate) fn row(
        &mut self,
        job: &mut Job<'_, '_>,
        row: &Row,
        cells: CellsAt<'_>,
        write: impl FnOnce(&mut Job<'_, '_>, &mut dyn FnMut(&[u8])) -> Result<(), JobError>,
    ) -> Result<(), JobError> {
        if self.open.is_some() && self.builder.room() < row.payload().max(1) {
            self.place(job)?;
        }
        if self.open.is_none() {
            self.begin(job)?;
        }
        if self.builder.room() < row.payload().max(1) {
            return Err(self.damaged(&"a row is larger than its slot"));
        }
        if row.completes_element() && !self.has_cells(row.stream, cells) {
            return Err(self.damaged(&"an element lacks its attributes"));
        }
        let Some(buffer) = &mut self.open else { return Ok(()) };
        self.builder.grow_younger(self.origin.age);
        write(job, &mut |bytes| self.builder.write(buffer, bytes))?;
        self.builder.row_with(buffer, row, cells);
        if self.of.last() != Some(&self.origin.sequence) {
            self.of.push(self.origin.sequence);
        }
        Ok(())
    }

    /// Whether the cells of a row are those of its stream's columns.
    fn has_cells(&self, number: u16, cells: CellsAt<'_>) -> bool {
        let Some(entry) = self.entries.get(usize::from(number)) else { return false };
        let there = cells.columns.iter().filter(|column| column.len() > cells.first);
        entry.classes.is_empty() || entry.classes.iter().eq(there.map(CellBuffer::class))
    }

    fn begin(&mut self, job: &mut Job<'_, '_>) -> Result<(), JobError> {
        let (sequence, buffer) = job.new_copy()?;
        let buffer = self.open.insert(buffer);
        let superblock = job.superblock;
        let id = SlotId {
            ring: superblock.ring,
            group: superblock.group,
            lane: superblock.lane,
            sequence,
            epoch: self.origin.epoch,
            age: self.origin.age,
        };
        let opened = self.builder.open(buffer, id, self.origin.opened, &self.entries);
        opened.map_err(|error| self.damaged(&error))
    }

    /// Seals the slot being filled and writes it; what follows goes to another.
    fn place(&mut self, job: &mut Job<'_, '_>) -> Result<(), JobError> {
        let Some(mut buffer) = self.open.take() else { return Ok(()) };
        let bounds = Bounds::of(self.builder.summaries());
        for (number, entry) in self.entries.iter_mut().enumerate() {
            entry.counters = self.builder.counters(number as u16);
            entry.began = self.builder.began(number as u16);
        }
        let key = &job.superblock.key;
        let sealed = self.builder.seal(&mut buffer, key, SlotNo(0), self.origin.sealed, SlotFlags::DISTILLED);
        let (sequence, age) = (sealed.sequence, self.builder.id().age);
        let slot = job.place(sequence, buffer, sealed.bytes)?;
        let with_preamble = self.entries.iter().filter(|entry| entry.preamble != 0);
        let preambles = with_preamble.map(|entry| (entry.stream, entry.preamble)).collect();
        self.placed.push(PlacedCopy {
            slot,
            sequence,
            age,
            of: std::mem::take(&mut self.of),
            bounds,
            preambles,
        });
        Ok(())
    }

    /// Writes what is open, if `filled` went well; in any case nothing is kept of the buffers that were lent.
    pub(crate) fn finish(
        mut self,
        job: &mut Job<'_, '_>,
        filled: Result<(), JobError>,
    ) -> Result<Vec<PlacedCopy>, JobError> {
        let filled = filled.and_then(|()| self.place(job));
        if let Some(buffer) = self.open {
            job.give_back(buffer)?;
        }
        filled.map(|()| self.placed)
    }
}
