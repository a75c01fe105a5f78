//! Partial elements: those that end in a slot and have lost their beginning.

use super::item::PlannedSlot;
use super::slot_ages::missing_between;
use super::slot_lookup::LookupError;
use super::slot_view::{SlotError, SlotView};
use holdfast_base::{Age, Ordinal, Sequence};
use holdfast_format::{EntrySummary, Flags, Kind};

/// What is partial of a slot.
#[derive(Debug, Default)]
pub struct PartialElements {
    /// Elements that end in it: they are none any more.
    pub ordinals: Vec<Ordinal>,
    /// Slots that were there when a search was planned, and have expired with something of them since.
    pub expired: Vec<Sequence>,
}

impl SlotView<'_> {
    /// Which of a stream's elements that end here, and began before ([`EntrySummary::back`]), are partial. `planned` are the slots that
    /// were there when the search began.
    pub fn partial_elements(
        &mut self,
        (entry, number): (&EntrySummary, u16),
        planned: &[PlannedSlot],
    ) -> Result<PartialElements, SlotError> {
        let mut partial = PartialElements::default();
        if entry.back == 0
            || (!self.planned.is_copy() && self.reader.have_all_since(&self.planned, entry.back)?)
        {
            return Ok(partial);
        }
        let tails = if self.planned.is_copy() {
            self.tails(number)?
        } else {
            // Elements of a stream follow each other: only the first one that ends here can have begun before.
            entry.ordinals.map(|(least, _)| least).into_iter().collect()
        };
        for ordinal in tails {
            if !self.element(entry.stream, ordinal, &mut |_| ())? {
                partial.ordinals.push(ordinal);
            }
        }
        if !partial.ordinals.is_empty() {
            partial.expired = self.gone(entry.back, planned)?;
        }
        Ok(partial)
    }

    /// Of the slots in which an element may be that began so many ages before this one those that have expired since a search was
    /// `planned`.
    pub fn gone(&mut self, back: u64, planned: &[PlannedSlot]) -> Result<Vec<Sequence>, SlotError> {
        let (before, age) = since(&self.planned, back);
        if missing_between(planned, before, age) {
            return Ok(Vec::new());
        }
        let candidates = self.reader.candidates()?;
        let gone = |slot: &&PlannedSlot| {
            let needed = before < slot.age && slot.age <= age;
            needed && candidates.iter().all(|other| other.sequence != slot.sequence)
        };
        Ok(planned.iter().filter(gone).map(|slot| slot.sequence).collect())
    }

    /// What ends here in a fragment and has none here that begins it: copies hold rows of several slots, so that there may be many.
    fn tails(&mut self, number: u16) -> Result<Vec<Ordinal>, SlotError> {
        let (queue, looked) = self.looked()?;
        let (mut began, mut tails) = (None, Vec::new());
        for (at, _) in looked.index.directory.iter().enumerate().filter(|(_, chunk)| chunk.may_have(number)) {
            let chunk = looked.chunk(queue, at)?;
            for (row, _) in chunk.rows_of(number).filter(|(row, _)| row.kind == Kind::Fragment) {
                if row.number == 0 {
                    began = Some(row.ordinal);
                } else if row.flags.has(Flags::LAST) && began != Some(row.ordinal) {
                    tails.push(row.ordinal);
                }
            }
        }
        Ok(tails)
    }
}

/// The ages, the first excluded, of slots in which an element may be that ends in this one and began so many ages before.
fn since(slot: &PlannedSlot, back: u64) -> (Age, Age) {
    (Age(slot.age.0.saturating_sub(back).saturating_sub(1)), slot.age)
}

impl super::RingReader {
    /// Whether all slots are there as they were recorded in which an element may be that ends in this one and began so many ages
    /// before. The numbers of originals that were distilled are missing, or are those of copies, which have some of them: that only
    /// the element itself can tell.
    fn have_all_since(&mut self, slot: &PlannedSlot, back: u64) -> Result<bool, LookupError> {
        let (before, age) = since(slot, back);
        let candidates = self.candidates().map_err(LookupError::Failed)?;
        let whole =
            candidates.iter().filter(|other| !other.is_copy() && before < other.age && other.age <= age);
        Ok(whole.count() as u64 == age.0 - before.0)
    }
}
