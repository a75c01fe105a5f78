//! Distilling: the wanted elements of held slots are copied into fewer slots, and the originals are given
//! back.
//!
//! Nothing expires before its turn: only slots are taken that would have expired by now but for these holds. In order: the
//! ring says which of the originals those are; what is wanted of each is measured; neighbours that come to fewer slots
//! together are copied, in the order of their ages; one record puts the copies in their place. Until that is durable the
//! originals count, and after it the copies do.

use crate::cells::{SlotCells, column_bytes, numbered};
use crate::copies::{Copies, Origin, Payload, chunks, opening};
use crate::job::{Job, JobError};
use crate::job_step::{Due, JobStep, StepReply};
use crate::runway::runway_of;
use crate::{DistilRequest, Outcome, PlacedCopy, Refusal};
use holdfast_base::{BLOCK, HoldId, Ordinal, Sequence, SlotNo, StreamId};
use holdfast_format::{
    Chunk, Classes, Counters, Entry, EntrySummary, Geometry, Kind, Name, PartHeader, Row, SectionKind,
    StreamKind, Summary,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Originals that one record takes out: their sequences fit into a commit of the smallest slots many times over.
const MOST_ORIGINALS: usize = 1024;

/// Dictionary entries of originals that are remembered from the measuring to the copying: a few MiB.
const MOST_ENTRIES: usize = 16 << 10;

/// Copies that wait for one record: each takes a slot from the runway meanwhile.
const MOST_COPIES: u32 = 4;

/// What a row takes beside its payload, at most about; and how much more than in the original, where rows lie closer
/// together and are told in fewer bytes.
const ROW: u64 = 24;
const WIDER: u64 = 4;

/// What a column takes at least in a slot, head, outline and sections, and how much more its cells may take than in the original,
/// where they lie beside others: a quarter.
const COLUMN: u64 = 192;
const WIDER_CELLS: u64 = 4;

/// Ordinals of a stream, in rising order and apart: first, and end without it.
type Ordinals = Vec<(Ordinal, Ordinal)>;

/// Which rows are wanted.
struct KeepSet {
    /// What is named of each original.
    named: HashMap<Sequence, HashMap<StreamId, Ordinals>>,
    /// The holds that keep it.
    held_by: HashMap<Sequence, Vec<HoldId>>,
    /// Elements in fragments that are in several slots and named for another one.
    together: HashSet<(StreamId, Ordinal)>,
}

impl KeepSet {
    fn of(request: &DistilRequest) -> Result<Self, &'static str> {
        if request.originals.is_empty() {
            return Err("it names no slots to be distilled");
        }
        let mut named: HashMap<Sequence, HashMap<StreamId, Ordinals>> = HashMap::new();
        let mut held_by: HashMap<Sequence, Vec<HoldId>> = HashMap::new();
        for original in &request.originals {
            held_by.entry(original.sequence).or_default().extend(&original.holds);
            let named = named.entry(original.sequence).or_default();
            for (stream, first, end) in &original.keep {
                if first >= end {
                    return Err("a range of ordinals ends before it begins");
                }
                named.entry(*stream).or_default().push((*first, *end));
            }
        }
        for ordinals in named.values_mut().flat_map(HashMap::values_mut) {
            *ordinals = joined(std::mem::take(ordinals));
        }
        Ok(Self { named, held_by, together: HashSet::new() })
    }

    fn names(&self, original: Sequence, stream: StreamId, ordinal: Ordinal) -> bool {
        let named = self.named.get(&original).and_then(|named| named.get(&stream));
        named.is_some_and(|ordinals| {
            let at = ordinals.partition_point(|(_, end)| *end <= ordinal);
            ordinals.get(at).is_some_and(|(first, _)| *first <= ordinal)
        })
    }

    fn has(&self, original: Sequence, stream: StreamId, row: &Row) -> bool {
        match row.kind {
            Kind::Element => self.names(original, stream, row.ordinal),
            Kind::Fragment | Kind::Abort => {
                self.names(original, stream, row.ordinal) || self.together.contains(&(stream, row.ordinal))
            }
            Kind::Gap | Kind::Note => {
                self.named.get(&original).is_some_and(|named| named.contains_key(&stream))
            }
        }
    }

    /// Brings together what is named of elements that are in several slots: for one that is distilled now and has some of the
    /// element, or for one whose turn has not come.
    fn bring_together(&mut self, sources: &[Source]) {
        let due: HashSet<Sequence> = sources.iter().map(|source| source.sequence).collect();
        let across = || sources.iter().flat_map(|source| source.across.iter().map(|e| (source.sequence, *e)));
        let named = across().filter(|(sequence, (stream, ordinal))| {
            let later = || self.named.keys().filter(|original| !due.contains(*original));
            self.names(*sequence, *stream, *ordinal)
                || later().any(|original| self.names(*original, *stream, *ordinal))
        });
        self.together = named.map(|(_, element)| element).collect();
    }
}

/// Ranges in rising order, those that touch made one.
fn joined(mut ranges: Ordinals) -> Ordinals {
    ranges.sort_unstable();
    let mut out = Ordinals::with_capacity(ranges.len());
    for (first, end) in ranges {
        match out.last_mut() {
            Some((_, last)) if first <= *last => *last = end.max(*last),
            _ => out.push((first, end)),
        }
    }
    out
}

/// A dictionary entry of which rows are kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    entry: EntrySummary,
    /// What they count.
    counts: Counters,
    /// What the cells of its columns are, none where it has none; `None`: no element is completed by them.
    classes: Option<Classes>,
}

/// Rows of a dictionary entry while they are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    kept: u64,
    counts: Counters,
    /// Those that complete an element: all there are, and the kept ones.
    whole: u64,
    whole_kept: u64,
}

impl Tally {
    /// About what the cells of its kept rows will take.
    fn columns(&self, summary: &Summary, entry: usize, classes: Classes) -> u64 {
        if self.whole_kept == 0 || classes.is_empty() {
            return 0;
        }
        let cells = column_bytes(summary, entry) * self.whole_kept / self.whole.max(1);
        cells + cells / WIDER_CELLS + COLUMN * classes.len() as u64
    }
}

/// A slot that is to be distilled, and what is kept of it.
#[derive(Clone, Debug)]
struct Source {
    slot: SlotNo,
    sequence: Sequence,
    /// Whether another slot of its age comes behind it.
    tied: bool,
    origin: Origin,
    /// Its dictionary entries with rows that are kept.
    streams: Vec<Kept>,
    elements: u64,
    bytes: u64,
    /// Bytes of the rows' payload.
    payload: u64,
    /// About what they will take, and how much of that is columns.
    size: u64,
    columns: u64,
    /// Elements in fragments of which something is in other slots.
    across: Vec<(StreamId, Ordinal)>,
}

impl Source {
    /// Whether it has something of an element that is kept for the sake of another slot.
    fn has_more(&self, wanted: &KeepSet) -> bool {
        self.across.iter().any(|element| {
            wanted.together.contains(element) && !wanted.names(self.sequence, element.0, element.1)
        })
    }
}

/// Elements in fragments, and which of their ends a slot has.
#[derive(Default)]
struct Pieces(HashMap<(StreamId, Ordinal), (bool, bool)>);

impl Pieces {
    fn note(&mut self, stream: StreamId, row: &Row) {
        if matches!(row.kind, Kind::Fragment | Kind::Abort) {
            let (begins, ends) = self.0.entry((stream, row.ordinal)).or_default();
            *begins |= row.kind == Kind::Fragment && row.number == 0;
            *ends |= row.ends_element();
        }
    }

    fn across(self) -> Vec<(StreamId, Ordinal)> {
        self.0.into_iter().filter(|(_, (begins, ends))| !(*begins && *ends)).map(|(e, _)| e).collect()
    }
}

/// Neighbours that one record and one dictionary can be about.
#[derive(Debug, Default)]
struct Batch {
    sources: Vec<Source>,
    /// About what they will take.
    size: u64,
    entries: usize,
    /// What is said of each stream: no slot may say two things.
    streams: HashMap<StreamId, Said>,
}

/// Preamble, kind and name of a stream.
type Said = (u32, StreamKind, Name);

fn said(entry: &EntrySummary) -> Said {
    (entry.preamble, entry.kind, entry.name)
}

impl Batch {
    fn takes(&self, next: &Source, most: u64, most_streams: usize) -> bool {
        let of_next = || next.streams.iter().map(|kept| &kept.entry);
        let fresh = of_next().filter(|entry| !self.streams.contains_key(&entry.stream)).count();
        let same = |entry: &EntrySummary| self.streams.get(&entry.stream).is_none_or(|s| *s == said(entry));
        self.sources.len() < MOST_ORIGINALS
            && self.entries + next.streams.len() <= MOST_ENTRIES
            && self.size + next.size <= most
            && self.streams.len() + fresh <= most_streams
            && of_next().all(same)
    }

    fn push(&mut self, source: Source) {
        self.size += source.size;
        self.entries += source.streams.len();
        self.streams.extend(source.streams.iter().map(|kept| (kept.entry.stream, said(&kept.entry))));
        self.sources.push(source);
    }
}

/// What was done.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    originals: u32,
    copies: u32,
    elements: u64,
    bytes: u64,
}

/// A distilling at work.
struct Distil<'j, 'a, 'p> {
    job: &'j mut Job<'a, 'p>,
    wanted: KeepSet,
    /// About what fits into a copy, and how many may wait for a record.
    capacity: u64,
    most_copies: u64,
    done: Done,
}

/// Carries it out, step by step.
pub(crate) fn distil(
    job: &mut Job<'_, '_>,
    request: &DistilRequest,
    enough: &dyn Fn() -> bool,
) -> Result<Outcome, JobError> {
    let wanted = match KeepSet::of(request) {
        Ok(wanted) => wanted,
        Err(why) => return Ok(Outcome::Refused(Refusal::Wrong(why.to_owned()))),
    };
    let originals = wanted.held_by.iter().map(|(sequence, holds)| (*sequence, holds.clone())).collect();
    let StepReply::Due(due) = job.ask(JobStep::Due { hold: request.hold, originals })? else {
        return Ok(Outcome::Refused(Refusal::NoSuchHold(request.hold)));
    };
    let geometry = &job.superblock.geometry;
    let (capacity, most_copies) = (capacity(geometry), most_copies(geometry));
    let mut distil = Distil { job, wanted, capacity, most_copies, done: Done::default() };
    distil.all(&due, enough)?;
    let Done { originals, copies, elements, bytes } = distil.done;
    Ok(Outcome::Distilled { originals, copies, elements, bytes, due: due.len() as u32 })
}

/// About how much payload and index fit into a slot.
fn capacity(geometry: &Geometry) -> u64 {
    let around = 4 * BLOCK as u64 + geometry.slot_bytes / 64;
    geometry.slot_bytes.saturating_sub(around).max(1)
}

/// About what a row of a slot would take in a copy beside its payload.
fn row_bytes(header: &PartHeader, summary: &Summary) -> u64 {
    let chunks = summary.section(SectionKind::Chunks).map_or(0, |section| u64::from(section.bytes));
    (chunks / u64::from(header.rows.max(1)) + WIDER).min(ROW)
}

/// Copies that may wait for their record: a quarter of the least runway of such a ring.
fn most_copies(geometry: &Geometry) -> u64 {
    (runway_of(geometry.slots, 0) / 4).clamp(1, MOST_COPIES).into()
}

impl Distil<'_, '_, '_> {
    fn all(&mut self, due: &[Due], enough: &dyn Fn() -> bool) -> Result<(), JobError> {
        let mut sources = Vec::new();
        for due in due {
            if enough() {
                return Ok(());
            }
            sources.extend(self.measure(due)?);
        }
        self.wanted.bring_together(&sources);
        let geometry = &self.job.superblock.geometry;
        let (most, most_streams) = (self.most_copies * self.capacity, geometry.max_streams());
        let mut batch = Batch::default();
        let mut sources = sources.into_iter().peekable();
        for due in due {
            // One that could not be read is between those before and behind it.
            let mut next = sources.next_if(|source| source.sequence == due.sequence);
            if next.as_ref().is_some_and(|source| source.has_more(&self.wanted)) {
                next = self.measure(due)?;
            }
            let goes_on = due.follows && next.as_ref().is_some_and(|n| batch.takes(n, most, most_streams));
            if !goes_on {
                self.take(&std::mem::take(&mut batch).sources)?;
            }
            if let Some(next) = next {
                batch.push(next);
            }
            if enough() {
                return Ok(());
            }
        }
        self.take(&batch.sources)
    }

    /// What is kept of an original; `None` where it cannot be read, so that it is left alone.
    fn measure(&mut self, due: &Due) -> Result<Option<Source>, JobError> {
        match self.try_measure(due) {
            Err(JobError::Damaged { .. }) => Ok(None),
            measured => measured.map(Some),
        }
    }

    fn try_measure(&mut self, due: &Due) -> Result<Source, JobError> {
        let (header, summary) = self.brief(due.slot, due.sequence)?;
        let mut tallies = vec![Tally::default(); summary.entries.len()];
        let (mut elements, mut bytes, mut payload_bytes, mut rows) = (0, 0, 0, 0u64);
        let (mut payload, mut pieces) = (None, Pieces::default());
        let wanted = &self.wanted;
        chunks(self.job, &header, &summary, &mut |job, _, chunk| {
            for (row, _) in chunk.rows() {
                let stream = usize::from(row.stream);
                if let Some((entry, tally)) = summary.entries.get(stream).zip(tallies.get_mut(stream)) {
                    pieces.note(entry.stream, &row);
                    tally.whole += u64::from(row.completes_element());
                }
            }
            for (row, at, _) in kept(chunk, &summary, wanted, due.sequence) {
                let mut gap = None;
                if row.kind == Kind::Gap {
                    if payload.is_none() {
                        payload = Some(Payload::of(job, &header, &summary)?.sparse(0));
                    }
                    let read = payload.as_mut().map(|payload| payload.gap(job, &row, at as usize));
                    gap = read.transpose()?.flatten();
                }
                if let Some(tally) = tallies.get_mut(usize::from(row.stream)) {
                    tally.kept += 1;
                    tally.whole_kept += u64::from(row.completes_element());
                    tally.counts.count(&row, gap.as_ref());
                }
                rows += 1;
                elements += u64::from(row.completes_element());
                if matches!(row.kind, Kind::Element | Kind::Fragment) {
                    bytes += u64::from(row.len);
                }
                payload_bytes += row.payload() as u64;
            }
            Ok(())
        })?;
        let mut cells = SlotCells::of(&header, &summary, |entry| tallies[entry].whole_kept > 0);
        let classes = cells.classes(self.job)?;
        let (mut streams, mut columns) = (Vec::new(), 0);
        for (number, (entry, tally)) in summary.entries.iter().zip(&tallies).enumerate() {
            if tally.kept > 0 {
                let of_entry = (tally.whole_kept > 0).then_some(classes[number]);
                streams.push(Kept { entry: *entry, counts: tally.counts, classes: of_entry });
                columns += tally.columns(&summary, number, classes[number]);
            }
        }
        Ok(Source {
            slot: due.slot,
            sequence: due.sequence,
            tied: due.tied,
            origin: Origin::from(&header),
            streams,
            elements,
            bytes,
            payload: payload_bytes,
            size: payload_bytes + rows * row_bytes(&header, &summary) + columns,
            columns,
            across: pieces.across(),
        })
    }

    /// Header and summary of a slot that must still be the one that is meant.
    fn brief(&mut self, slot: SlotNo, sequence: Sequence) -> Result<(PartHeader, Summary), JobError> {
        let damaged = |why: String| JobError::Damaged { slot, why };
        let check = self.job.brief(slot)?.map_err(|why| damaged(why.to_string()))?;
        let sound = check.sound().filter(|(header, ..)| header.sequence == sequence);
        let (header, summary, _) = sound.ok_or_else(|| damaged("it holds another slot".to_owned()))?;
        Ok((header.clone(), summary.clone()))
    }

    /// Copies neighbours together and puts the copies in their place, if that makes fewer slots of them. Where one cannot be
    /// read it is left alone, and those before and behind it are on their own.
    fn take(&mut self, batch: &[Source]) -> Result<(), JobError> {
        // A copy comes behind all that has its age already: what it holds must not come before that.
        let end = batch.iter().rposition(|source| !source.tied).map_or(0, |last| last + 1);
        let batch = &batch[..end];
        let size: u64 = batch.iter().map(|source| source.size).sum();
        if size.div_ceil(self.capacity) >= batch.len() as u64 {
            return Ok(());
        }
        match self.copy(batch) {
            Ok(copies) if copies.len() < batch.len() => self.replace(batch, copies),
            Ok(_) => self.give_up(),
            Err(JobError::Damaged { slot, .. }) => {
                self.give_up()?;
                let (before, behind) = around(batch, slot);
                self.take(before)?;
                self.take(behind)
            }
            Err(error) => {
                // Where the device or the ring is gone, this says no more than that.
                let _ = self.give_up();
                Err(error)
            }
        }
    }

    /// The copies that were made are not wanted: their slots go back.
    fn give_up(&mut self) -> Result<(), JobError> {
        self.job.done(JobStep::GiveUp)
    }

    fn copy(&mut self, batch: &[Source]) -> Result<Vec<PlacedCopy>, JobError> {
        let (Some(first), Some(youngest)) = (batch.first(), batch.last()) else { return Ok(Vec::new()) };
        let origin = Origin { opened: first.origin.opened, ..youngest.origin };
        let entries = dictionary(batch);
        let numbers: HashMap<StreamId, u16> =
            entries.iter().enumerate().map(|(number, entry)| (entry.stream, number as u16)).collect();
        // They are filled one after the other, and columns lie in them as in the originals.
        let size: u64 = batch.iter().map(|source| source.size).sum();
        let columns: u64 = batch.iter().map(|source| source.columns).sum();
        let columns = columns / size.div_ceil(self.capacity).max(1);
        let mut filling = Copies::new(self.job, origin, entries, columns);
        let mut filled = Ok(());
        for source in batch.iter().filter(|source| !source.streams.is_empty()) {
            filling.come_to(&source.origin);
            filled = filled.and_then(|()| self.fill(&mut filling, source, &numbers));
        }
        filling.finish(self.job, filled)
    }

    /// Appends what is kept of an original.
    fn fill(
        &mut self,
        filling: &mut Copies,
        source: &Source,
        numbers: &HashMap<StreamId, u16>,
    ) -> Result<(), JobError> {
        let (header, summary) = self.brief(source.slot, source.sequence)?;
        let mut payload = Payload::of(self.job, &header, &summary)?.sparse(source.payload);
        let wanted = &self.wanted;
        let number = |entry: &EntrySummary| numbers.get(&entry.stream).copied();
        let numbers: Vec<Option<u16>> = summary.entries.iter().map(number).collect();
        let has_columns = |entry: usize| numbers[entry].is_some_and(|number| filling.has_columns(number));
        let with_columns: Vec<bool> = (0..numbers.len()).map(has_columns).collect();
        let mut cells = SlotCells::of(&header, &summary, |entry| with_columns[entry]);
        chunks(self.job, &header, &summary, &mut |job, chunk_number, chunk| {
            let mut looked_at = vec![false; numbers.len()];
            for (row, ..) in kept(chunk, &summary, wanted, source.sequence) {
                let stream = usize::from(row.stream);
                looked_at[stream] |= with_columns[stream] && row.completes_element();
            }
            cells.come_to(job, chunk_number, |entry| looked_at[entry])?;
            for (row, at, before) in kept(chunk, &summary, wanted, source.sequence) {
                let Some(number) = numbers[usize::from(row.stream)] else { continue };
                let copied = Row { stream: number, ..row };
                let of_row = cells.at(row.stream, before);
                filling.row(job, &copied, of_row, |job, write| {
                    payload.take(job, at as usize, row.payload(), write)
                })?;
            }
            Ok(())
        })
    }

    /// From here on the copies count, unless something has come between: then the originals do, on and on.
    fn replace(&mut self, batch: &[Source], copies: Vec<PlacedCopy>) -> Result<(), JobError> {
        let originals = batch.iter().map(|source| (source.slot, source.sequence)).collect();
        let count = copies.len() as u32;
        let holds = |source: &Source| self.wanted.held_by.get(&source.sequence).cloned().unwrap_or_default();
        let held_by = Some(batch.iter().map(holds).collect());
        let replace = JobStep::Replace { originals, copies, held_by };
        match self.job.ask(replace) {
            Ok(StepReply::Done) => {
                self.done.originals += batch.len() as u32;
                self.done.copies += count;
                self.done.elements += batch.iter().map(|source| source.elements).sum::<u64>();
                self.done.bytes += batch.iter().map(|source| source.bytes).sum::<u64>();
                Ok(())
            }
            Ok(_) => self.give_up(),
            Err(error) => {
                let _ = self.give_up();
                Err(error)
            }
        }
    }
}

/// The rows of a chunk that are wanted, and where their payload and their cells are.
fn kept<'c>(
    chunk: &'c Chunk,
    summary: &'c Summary,
    wanted: &'c KeepSet,
    original: Sequence,
) -> impl Iterator<Item = (Row, u32, usize)> + use<'c> {
    numbered(chunk).filter(move |(row, ..)| {
        let entry = summary.entries.get(usize::from(row.stream));
        entry.is_some_and(|entry| wanted.has(original, entry.stream, row))
    })
}

/// Those before and behind the one in a slot.
fn around(batch: &[Source], slot: SlotNo) -> (&[Source], &[Source]) {
    let mut parts = batch.splitn(2, |source| source.slot == slot);
    match (parts.next(), parts.next()) {
        (Some(before), Some(behind)) => (before, behind),
        _ => (&[], &[]),
    }
}

/// The columns that copies of these have of each stream: those that all of them have, or none.
fn columns(batch: &[Source]) -> HashMap<StreamId, Classes> {
    let mut all = HashMap::new();
    let whole = batch.iter().flat_map(|source| &source.streams);
    for (stream, classes) in whole.filter_map(|kept| Some((kept.entry.stream, kept.classes?))) {
        let common = all.entry(stream).or_insert(classes);
        if *common != classes {
            *common = Classes::default();
        }
    }
    all
}

/// The dictionary of copies of these, in the order of the streams' ids.
fn dictionary(batch: &[Source]) -> Vec<Entry> {
    let columns = columns(batch);
    let mut entries: BTreeMap<StreamId, (Entry, Counters)> = BTreeMap::new();
    for source in batch {
        for Kept { entry: summary, counts, .. } in &source.streams {
            let age = source.origin.age;
            let classes = columns.get(&summary.stream).copied().unwrap_or_default();
            let (entry, sum) = entries.entry(summary.stream).or_insert_with(|| {
                (opening(summary, &Counters::default(), age, classes), Counters::default())
            });
            add(sum, counts);
            // It ends as the youngest does, and begins as the oldest.
            let (next_ordinal, now) = (entry.counters.next_ordinal, opening(summary, sum, age, classes));
            entry.counters = Counters { next_ordinal, ..now.counters };
            entry.began = entry.began.into_iter().chain(now.began).min();
        }
    }
    entries.into_values().map(|(entry, _)| entry).collect()
}

/// Adds what rows count.
fn add(sum: &mut Counters, more: &Counters) {
    sum.received += more.received;
    sum.received_bytes += more.received_bytes;
    sum.lost += more.lost;
    sum.lost_bytes += more.lost_bytes;
    sum.gaps += more.gaps;
    sum.unknown_gaps += more.unknown_gaps;
}
