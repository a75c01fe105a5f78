//! Copying a slot without some of its rows. Copies keep the original's age and order; in the place of what was left out
//! stand gaps that say so.

use crate::check::SlotCheck;
use crate::purge::{Job, PurgeError, STEP};
use crate::table::Bounds;
use crate::{PlacedCopy, PurgeRequest};
use holdfast_base::{Age, CHECK_BLOCK, SlotNo};
use holdfast_format::{
    Builder, Cause, Chunk, Classes, Counters, Entry, EntrySummary, Flags, Gap, Kind, PartHeader, Row,
    SectionKind, SlotFlags, SlotId, Summary, check_payload_block, crc32c, decode_directory,
};
use holdfast_media::Buffer;

/// What a purge takes out of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cut {
    /// Rows that go.
    pub(crate) rows: u64,
    /// Elements that end with the rows that go.
    pub(crate) elements: u64,
    /// Bytes of data that go, also those of elements that are not counted.
    pub(crate) bytes: u64,
    /// What the rows of the copy will count, per dictionary entry.
    counts: Vec<Counters>,
}

/// Whether a row is to go.
fn goes(row: &Row, entries: &[EntrySummary], request: &PurgeRequest) -> bool {
    let Some(entry) = entries.get(usize::from(row.stream)) else {
        return false;
    };
    let named = request.streams.is_empty() || request.streams.contains(&entry.stream);
    if !named || !matches!(row.kind, Kind::Element | Kind::Fragment | Kind::Note) {
        return false;
    }
    let range = &request.range;
    let time =
        if range.by_event { row.flags.has(Flags::EVENT).then_some(row.event) } else { Some(row.arrival) };
    let timed = time.is_some_and(|t| range.from <= t && t <= range.to);
    let counted = range
        .ordinals
        .is_none_or(|(first, end)| row.kind != Kind::Note && first <= row.ordinal && row.ordinal < end);
    timed && counted
}

/// Runs of rows of one chunk: kept ones as they are, those that go gathered into one gap a stream.
enum Piece {
    Keep(Row, u32),
    /// And the bytes of data that go.
    Gap(Row, Gap, u64),
}

/// Elements and bytes that go with a row, as the stream's counters had them: an element in fragments counts with its last
/// one, whole, and one that was given up never, because the gap behind its abort counts all of it.
fn counted(row: &Row) -> (u64, u64) {
    let mut counters = Counters::default();
    counters.count(row, None);
    (counters.received, counters.received_bytes)
}

fn pieces(chunk: &Chunk, entries: &[EntrySummary], request: &PurgeRequest) -> Vec<Piece> {
    let mut out: Vec<Piece> = Vec::new();
    // Where in `out` each stream's gap under way stands.
    let mut open: Vec<Option<usize>> = vec![None; entries.len()];
    for (row, at) in chunk.rows() {
        let stream = usize::from(row.stream);
        if !goes(&row, entries, request) {
            if let Some(slot) = open.get_mut(stream) {
                *slot = None;
            }
            out.push(Piece::Keep(row, at));
            continue;
        }
        let (elements, bytes) = counted(&row);
        if let Some(Piece::Gap(_, gap, gone)) =
            open.get(stream).copied().flatten().and_then(|at| out.get_mut(at))
        {
            gap.ordinals += elements;
            gap.elements = gap.elements.map(|e| e + elements);
            gap.bytes = gap.bytes.map(|b| b + bytes);
            *gone += u64::from(row.len);
            gap.first = gap.first.min(row.first_arrival());
            gap.last = gap.last.max(row.arrival);
            continue;
        }
        let gap = Gap {
            ordinals: elements,
            elements: Some(elements),
            bytes: Some(bytes),
            first: row.first_arrival(),
            last: row.arrival,
            cause: Cause::Purged,
            note: 0,
        };
        let head = Row {
            kind: Kind::Gap,
            stream: row.stream,
            ordinal: row.ordinal,
            arrival: row.arrival,
            len: Gap::BYTES as u32,
            ..Row::default()
        };
        if let Some(slot) = open.get_mut(stream) {
            *slot = Some(out.len());
        }
        out.push(Piece::Gap(head, gap, row.len.into()));
    }
    out
}

/// Reads the slot's chunks one after the other.
fn chunks(
    job: &mut Job<'_, '_>,
    slot: SlotNo,
    header: &PartHeader,
    summary: &Summary,
    visit: &mut dyn FnMut(&mut Job<'_, '_>, &Chunk) -> Result<(), PurgeError>,
) -> Result<(), PurgeError> {
    let damaged = |why: &dyn std::fmt::Display| PurgeError::Damaged { slot, why: why.to_string() };
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
    for entry in &entries {
        let bytes = job.read_slot(header, base + entry.offset as usize, entry.bytes as usize)?;
        let chunk = Chunk::decode_at(entry, header.sequence, bytes).map_err(|e| damaged(&e))?;
        visit(job, &chunk)?;
    }
    Ok(())
}

/// What the request takes out of a slot.
pub(crate) fn measure(
    job: &mut Job<'_, '_>,
    slot: SlotNo,
    check: &SlotCheck,
    request: &PurgeRequest,
) -> Result<Cut, PurgeError> {
    let Some((header, summary, _)) = check.sound() else {
        return Ok(Cut::default());
    };
    let mut cut = Cut { counts: vec![Counters::default(); summary.entries.len()], ..Cut::default() };
    let mut payload = None;
    chunks(job, slot, header, summary, &mut |job, chunk| {
        for piece in pieces(chunk, &summary.entries, request) {
            let (row, gap) = match piece {
                Piece::Keep(row, at) if row.kind == Kind::Gap => {
                    if payload.is_none() {
                        payload = Some(Payload::of(job, slot, header, summary)?);
                    }
                    let gap = payload.as_mut().map(|payload| payload.gap(job, &row, at as usize));
                    (row, gap.transpose()?.flatten())
                }
                Piece::Keep(row, _) => (row, None),
                Piece::Gap(row, gap, gone) => {
                    cut.rows += 1;
                    cut.elements += gap.elements.unwrap_or(0);
                    cut.bytes += gone;
                    (row, Some(gap))
                }
            };
            if let Some(counts) = cut.counts.get_mut(usize::from(row.stream)) {
                counts.count(&row, gap.as_ref());
            }
        }
        Ok(())
    })?;
    Ok(cut)
}

/// Reads payload of a slot block by block, each checked.
struct Payload<'h> {
    header: &'h PartHeader,
    checks: Vec<u8>,
    at: usize,
    bytes: Vec<u8>,
}

impl<'h> Payload<'h> {
    /// The payload of a slot, with the checks that it is held against.
    fn of(
        job: &mut Job<'_, '_>,
        slot: SlotNo,
        header: &'h PartHeader,
        summary: &Summary,
    ) -> Result<Self, PurgeError> {
        let damaged = |why: &str| PurgeError::Damaged { slot, why: why.to_owned() };
        let section = summary.section(SectionKind::PayloadChecks).ok_or_else(|| damaged("no checks"))?;
        let checks = job.read_slot(header, section.range().start, section.range().len())?.to_vec();
        if crc32c(&checks) != section.crc {
            return Err(damaged("the payload checks are damaged"));
        }
        Ok(Self { header, checks, at: 0, bytes: Vec::new() })
    }

    /// What a gap that is there already says; `None` where that cannot be understood.
    fn gap(&mut self, job: &mut Job<'_, '_>, row: &Row, at: usize) -> Result<Option<Gap>, PurgeError> {
        let mut data = Vec::with_capacity(Gap::BYTES);
        let start = at + usize::from(row.meta);
        self.take(job, start, row.len as usize, &mut |bytes| data.extend_from_slice(bytes))?;
        Ok(Gap::decode(&data).ok())
    }

    /// The `len` bytes at `at` of the payload, appended to `out`.
    fn take(
        &mut self,
        job: &mut Job<'_, '_>,
        mut at: usize,
        mut len: usize,
        out: &mut dyn FnMut(&[u8]),
    ) -> Result<(), PurgeError> {
        while len > 0 {
            if at < self.at || at >= self.at + self.bytes.len() {
                self.load(job, at)?;
            }
            let from = at - self.at;
            let here = len.min(self.bytes.len() - from);
            out(&self.bytes[from..from + here]);
            at += here;
            len -= here;
        }
        Ok(())
    }

    fn load(&mut self, job: &mut Job<'_, '_>, at: usize) -> Result<(), PurgeError> {
        let damaged = |why: String| PurgeError::Damaged { slot: self.header.slot, why };
        let whole = self.header.payload_bytes as usize;
        let start = at / CHECK_BLOCK * CHECK_BLOCK;
        let len = STEP.min(whole.saturating_sub(start));
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

/// Copies under way: one slot after the other is filled, so that there is always room for what stays and for the gaps.
struct Copies<'h> {
    header: &'h PartHeader,
    entries: Vec<Entry>,
    builder: Builder,
    /// The slot being filled.
    open: Option<Buffer>,
    placed: Vec<PlacedCopy>,
}

impl Copies<'_> {
    fn damaged(&self, why: &dyn std::fmt::Display) -> PurgeError {
        PurgeError::Damaged { slot: self.header.slot, why: why.to_string() }
    }

    /// Appends a row, whose payload `write` gives piece by piece.
    fn row(
        &mut self,
        job: &mut Job<'_, '_>,
        row: &Row,
        write: impl FnOnce(&mut Job<'_, '_>, &mut dyn FnMut(&[u8])) -> Result<(), PurgeError>,
    ) -> Result<(), PurgeError> {
        if self.open.is_some() && self.builder.room() < row.payload().max(1) {
            self.place(job)?;
        }
        if self.open.is_none() {
            self.begin(job)?;
        }
        if self.builder.room() < row.payload().max(1) {
            return Err(self.damaged(&"a row is larger than its slot"));
        }
        let Some(buffer) = &mut self.open else { return Ok(()) };
        write(job, &mut |bytes| self.builder.write(buffer, bytes))?;
        self.builder.row(buffer, row);
        Ok(())
    }

    fn begin(&mut self, job: &mut Job<'_, '_>) -> Result<(), PurgeError> {
        let (sequence, buffer) = job.new_copy()?;
        let buffer = self.open.insert(buffer);
        let superblock = job.superblock;
        let id = SlotId {
            ring: superblock.ring,
            group: superblock.group,
            lane: superblock.lane,
            sequence,
            epoch: self.header.epoch,
            age: self.header.age,
        };
        let opened = self.builder.open(buffer, id, self.header.opened, &self.entries);
        opened.map_err(|error| self.damaged(&error))
    }

    /// Seals the slot being filled and writes it; what follows goes to another.
    fn place(&mut self, job: &mut Job<'_, '_>) -> Result<(), PurgeError> {
        let Some(mut buffer) = self.open.take() else { return Ok(()) };
        let bounds = Bounds::of(self.builder.summaries());
        for (number, entry) in self.entries.iter_mut().enumerate() {
            entry.counters = self.builder.counters(number as u16);
            entry.began = self.builder.began(number as u16);
        }
        let key = &job.superblock.key;
        let sealed = self.builder.seal(&mut buffer, key, SlotNo(0), self.header.sealed, SlotFlags::DISTILLED);
        let slot = job.place(buffer, sealed.bytes)?;
        let (sequence, age) = (sealed.sequence, self.header.age);
        self.placed.push(PlacedCopy { slot, sequence, age, bounds });
        Ok(())
    }
}

/// Copies what stays of a slot, and gaps in the place of what does not, to slots of their own: one, or where gaps take
/// more room than what they stand for, two.
pub(crate) fn copy(
    job: &mut Job<'_, '_>,
    slot: SlotNo,
    check: &SlotCheck,
    request: &PurgeRequest,
    cut: &Cut,
) -> Result<Vec<PlacedCopy>, PurgeError> {
    let damaged = |why: &str| PurgeError::Damaged { slot, why: why.to_owned() };
    let (header, summary, _) = check.sound().ok_or_else(|| damaged("its header is not sound"))?;
    let mut payload = Payload::of(job, slot, header, summary)?;
    let entries: Vec<Entry> =
        summary.entries.iter().zip(&cut.counts).map(|(e, counts)| opening(e, counts, header.age)).collect();
    let builder = Builder::new(job.superblock.geometry.slot_bytes, entries.len().max(1));
    let mut filling = Copies { header, entries, builder, open: None, placed: Vec::new() };
    let copied = chunks(job, slot, header, summary, &mut |job, chunk| {
        for piece in pieces(chunk, &summary.entries, request) {
            match piece {
                Piece::Keep(row, at) => filling
                    .row(job, &row, |job, write| payload.take(job, at as usize, row.payload(), write))?,
                Piece::Gap(row, gap, _) => filling.row(job, &row, |_, write| {
                    write(&gap.encode());
                    Ok(())
                })?,
            }
        }
        Ok(())
    });
    let copied = copied.and_then(|()| filling.place(job));
    if let Some(buffer) = filling.open {
        job.give_back(buffer)?;
    }
    copied.map(|()| filling.placed)
}

/// The dictionary entry with which a copy is opened, so that its counters end where the original's did.
fn opening(entry: &EntrySummary, counts: &Counters, age: Age) -> Entry {
    let end = entry.counters;
    Entry {
        stream: entry.stream,
        kind: entry.kind,
        name: entry.name,
        preamble: entry.preamble,
        // What is looked for in a copy is looked for in its payload.
        classes: Classes::default(),
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
