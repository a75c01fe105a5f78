//! Backfill of an element whose later fragments were read first: a search backwards through skipped chunks and older slots.

use super::assembler::PartialElement;
use super::interrupt::{Interrupt, SlotInterrupt};
use super::item::{Missing, PlannedSlot};
use super::read_queue::ReadQueue;
use super::row_position::RowPosition;
use super::slot_ages::missing_between;
use super::slot_lookup::{IndexedSlot, LookupError, head};
use holdfast_base::{Age, Ordinal, StreamId};
use holdfast_format::{Kind, Row, Superblock};

/// Slots that are looked into for the beginning of one element: beyond that it has long been given up.
const MOST_SLOTS: usize = 4096;

/// A fragment and where it is.
struct FoundFragment {
    planned: PlannedSlot,
    row: Row,
    at: usize,
}

struct FragmentSearch<'a> {
    queue: &'a mut ReadQueue,
    superblock: &'a Superblock,
    stream: StreamId,
    ordinal: Ordinal,
    /// Fragments, the latest first.
    found: Vec<FoundFragment>,
    /// The number that is looked for next is one less.
    number: u32,
    /// The age of the slot that was looked into last.
    oldest: Age,
}

/// Finds and reads all fragments before `row`.
pub(crate) fn beginning(
    queue: &mut ReadQueue,
    superblock: &Superblock,
    candidates: &[PlannedSlot],
    here: &RowPosition<'_>,
    row: &Row,
) -> Result<Result<PartialElement, Missing>, SlotInterrupt> {
    let mut search = FragmentSearch {
        queue,
        superblock,
        stream: here.stream,
        ordinal: row.ordinal,
        found: Vec::new(),
        number: row.number,
        oldest: here.planned.age,
    };
    let result = search.run(candidates, here).and_then(|()| search.read());
    let why = match result {
        Ok(open) if open.continues(row) => return Ok(Ok(open)),
        Ok(_) => Missing::Lost,
        Err(BackfillError::Missing(why)) => why,
        Err(BackfillError::Off(interrupt)) => return Err(SlotInterrupt::Stop(interrupt)),
    };
    // Where slots are missing, what was in them has expired: a hold keeps what is older, or younger.
    let expired = why == Missing::Lost && missing_between(candidates, search.oldest, here.planned.age);
    Ok(Err(if expired { Missing::Expired } else { why }))
}

enum BackfillError {
    Missing(Missing),
    Off(Interrupt),
}

impl From<LookupError> for BackfillError {
    fn from(miss: LookupError) -> Self {
        match miss {
            LookupError::Expired => Self::Missing(Missing::Expired),
            LookupError::Defect(_) => Self::Missing(Missing::Damaged),
            LookupError::Failed(error) => Self::Off(Interrupt::Failed(error)),
        }
    }
}

impl FragmentSearch<'_> {
    fn run(&mut self, candidates: &[PlannedSlot], here: &RowPosition<'_>) -> Result<(), BackfillError> {
        self.slot(here.planned, Some(here.number))?;
        let start = candidates.iter().position(|slot| slot.sequence == here.planned.sequence);
        let older = candidates[..start.unwrap_or(0)].iter().rev().take(MOST_SLOTS);
        for planned in older {
            if self.number == 0 {
                break;
            }
            self.slot(planned, None)?;
        }
        if self.number == 0 { Ok(()) } else { Err(BackfillError::Missing(Missing::Expired)) }
    }

    /// Looks through a slot backwards, from the chunk before `before` on.
    fn slot(&mut self, planned: &PlannedSlot, before: Option<usize>) -> Result<(), BackfillError> {
        self.oldest = planned.age;
        let head = head(self.queue, self.superblock, planned)?;
        let entries = head.summary.entries.iter();
        let Some(entry) = entries.clone().position(|entry| entry.stream == self.stream && entry.rows > 0)
        else {
            return Ok(());
        };
        let ordinals = head.summary.entries[entry].ordinals;
        if ordinals.is_some_and(|(_, greatest)| greatest < self.ordinal) {
            // It ended before the element began: the beginning should have been behind it.
            return Err(BackfillError::Missing(Missing::Lost));
        }
        let looked = IndexedSlot::new(self.queue, *planned, head)?;
        let end = before.unwrap_or(looked.index.directory.len());
        for number in (0..end).rev() {
            if self.number == 0 {
                return Ok(());
            }
            if !looked.index.directory[number].may_have(entry as u16) {
                continue;
            }
            let chunk = looked.chunk(self.queue, number)?;
            let rows: Vec<(Row, u32)> = chunk.rows().collect();
            for (row, at) in rows.into_iter().rev() {
                let ours = row.kind == Kind::Fragment && usize::from(row.stream) == entry;
                if ours && row.ordinal == self.ordinal && row.number < self.number {
                    self.number = row.number;
                    self.found.push(FoundFragment { planned: *planned, row, at: at as usize });
                }
            }
        }
        Ok(())
    }

    /// Reads what was found, first fragment first.
    fn read(&mut self) -> Result<PartialElement, BackfillError> {
        let mut found = std::mem::take(&mut self.found).into_iter().rev().peekable();
        let Some(first) = found.peek() else { return Err(BackfillError::Missing(Missing::Expired)) };
        let mut open = PartialElement::begin(self.stream, &first.row);
        while let Some(next) = found.next() {
            let planned = next.planned;
            let head = head(self.queue, self.superblock, &planned)?;
            let mut looked = IndexedSlot::new(self.queue, planned, head)?;
            add(self.queue, &mut looked, &mut open, &next)?;
            while let Some(more) = found.next_if(|more| more.planned.sequence == planned.sequence) {
                add(self.queue, &mut looked, &mut open, &more)?;
            }
        }
        Ok(open)
    }
}

/// Appends a fragment.
fn add(
    queue: &mut ReadQueue,
    looked: &mut IndexedSlot,
    open: &mut PartialElement,
    found: &FoundFragment,
) -> Result<(), BackfillError> {
    if !open.continues(&found.row) {
        return Err(BackfillError::Missing(Missing::Lost));
    }
    let data_at = found.at + usize::from(found.row.meta);
    looked.payload(queue, found.at, data_at, &mut open.meta)?;
    looked.payload(queue, data_at, found.at + found.row.payload(), &mut open.data)?;
    open.note(&found.row, found.planned.age);
    Ok(())
}
