//! Redaction of a slot for a purge: the rows to destroy, and the copy of the others. The copy keeps the
//! original's age and order; gaps stand for the destroyed rows.

use crate::cells::{SlotCells, column_bytes, numbered};
use crate::check::SlotCheck;
use crate::copies::{Copies, Origin, Payload, chunks, opening};
use crate::job::{Job, JobError};
use crate::job_step::JobStep;
use crate::{PlacedCopy, PurgeRequest};
use holdfast_base::SlotNo;
use holdfast_format::{Cause, CellsAt, Chunk, Counters, Entry, EntrySummary, Flags, Gap, Kind, Row};

/// What a purge takes out of one slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Redaction {
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
enum RedactedRun {
    Keep(Row, u32, usize),
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

fn pieces(chunk: &Chunk, entries: &[EntrySummary], request: &PurgeRequest) -> Vec<RedactedRun> {
    let mut out: Vec<RedactedRun> = Vec::new();
    // Where in `out` each stream's gap under way stands.
    let mut open: Vec<Option<usize>> = vec![None; entries.len()];
    for (row, at, before) in numbered(chunk) {
        let stream = usize::from(row.stream);
        if !goes(&row, entries, request) {
            if let Some(slot) = open.get_mut(stream) {
                *slot = None;
            }
            out.push(RedactedRun::Keep(row, at, before));
            continue;
        }
        let (elements, bytes) = counted(&row);
        if let Some(RedactedRun::Gap(_, gap, gone)) =
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
        out.push(RedactedRun::Gap(head, gap, row.len.into()));
    }
    out
}

/// What the request takes out of a slot.
pub(crate) fn measure(
    job: &mut Job<'_, '_>,
    check: &SlotCheck,
    request: &PurgeRequest,
) -> Result<Redaction, JobError> {
    let Some((header, summary, _)) = check.sound() else {
        return Ok(Redaction::default());
    };
    let mut redaction =
        Redaction { counts: vec![Counters::default(); summary.entries.len()], ..Redaction::default() };
    let mut payload = None;
    chunks(job, header, summary, &mut |job, _, chunk| {
        for piece in pieces(chunk, &summary.entries, request) {
            let (row, gap) = match piece {
                RedactedRun::Keep(row, at, _) if row.kind == Kind::Gap => {
                    if payload.is_none() {
                        payload = Some(Payload::of(job, header, summary)?);
                    }
                    let gap = payload.as_mut().map(|payload| payload.gap(job, &row, at as usize));
                    (row, gap.transpose()?.flatten())
                }
                RedactedRun::Keep(row, ..) => (row, None),
                RedactedRun::Gap(row, gap, gone) => {
                    redaction.rows += 1;
                    redaction.elements += gap.elements.unwrap_or(0);
                    redaction.bytes += gone;
                    (row, Some(gap))
                }
            };
            if let Some(counts) = redaction.counts.get_mut(usize::from(row.stream)) {
                counts.count(&row, gap.as_ref());
            }
        }
        Ok(())
    })?;
    Ok(redaction)
}

/// Copies what stays of a slot, and gaps in the place of what does not, to slots of their own: one, or where gaps take
/// more room than what they stand for, two. They have the columns that the slot has, if those are sound.
pub(crate) fn copy(
    job: &mut Job<'_, '_>,
    slot: SlotNo,
    check: &SlotCheck,
    request: &PurgeRequest,
    redaction: &Redaction,
) -> Result<Vec<PlacedCopy>, JobError> {
    let with_columns = try_copy(job, slot, check, request, redaction, true);
    if !matches!(with_columns, Err(JobError::Damaged { .. })) {
        return with_columns;
    }
    // The columns may be all that is damaged, and what is to be destroyed must not stay for their sake.
    job.done(JobStep::GiveUp)?;
    try_copy(job, slot, check, request, redaction, false)
}

fn try_copy(
    job: &mut Job<'_, '_>,
    slot: SlotNo,
    check: &SlotCheck,
    request: &PurgeRequest,
    redaction: &Redaction,
    with_columns: bool,
) -> Result<Vec<PlacedCopy>, JobError> {
    let damaged = |why: &str| JobError::Damaged { slot, why: why.to_owned() };
    let (header, summary, _) = check.sound().ok_or_else(|| damaged("its header is not sound"))?;
    let mut payload = Payload::of(job, header, summary)?;
    let mut cells = SlotCells::of(header, summary, |_| with_columns);
    let classes = cells.classes(job)?;
    let opened = summary.entries.iter().zip(&redaction.counts).zip(classes);
    let entries: Vec<Entry> =
        opened.map(|((entry, counts), classes)| opening(entry, counts, header.age, classes)).collect();
    let columns = (0..entries.len()).map(|entry| column_bytes(summary, entry)).sum();
    let mut filling = Copies::new(job, Origin::from(header), entries, columns);
    let copied = chunks(job, header, summary, &mut |job, number, chunk| {
        let pieces = pieces(chunk, &summary.entries, request);
        let mut wanted = vec![false; summary.entries.len()];
        for piece in &pieces {
            if let RedactedRun::Keep(row, ..) = piece
                && row.completes_element()
                && let Some(wanted) = wanted.get_mut(usize::from(row.stream))
            {
                *wanted = filling.has_columns(row.stream);
            }
        }
        cells.come_to(job, number, |entry| wanted[entry])?;
        for piece in pieces {
            match piece {
                RedactedRun::Keep(row, at, before) => {
                    let cells = cells.at(row.stream, before);
                    filling.row(job, &row, cells, |job, write| {
                        payload.take(job, at as usize, row.payload(), write)
                    })?;
                }
                RedactedRun::Gap(row, gap, _) => filling.row(job, &row, CellsAt::NONE, |_, write| {
                    write(&gap.encode());
                    Ok(())
                })?,
            }
        }
        Ok(())
    });
    filling.finish(job, copied)
}
