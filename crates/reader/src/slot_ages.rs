//! Missing slots, inferred from the ages of the slots that are there.

use super::item::PlannedSlot;
use holdfast_base::Age;

/// True if slots are missing before a candidate: ages are assigned consecutively.
pub(crate) fn is_broken(candidates: &[PlannedSlot], at: usize) -> bool {
    let before = at.checked_sub(1).map_or(0, |before| candidates[before].age.0);
    candidates.get(at).is_some_and(|slot| slot.age.0 > before + 1)
}

/// True if slots are missing between two ages, the second included. Every number between them is the age of a slot, or the
/// sequence of a distilled copy, which has the age of another slot.
pub(crate) fn missing_between(candidates: &[PlannedSlot], after: Age, until: Age) -> bool {
    let between = |number: u64| after.0 < number && number <= until.0;
    let mut numbers: Vec<u64> =
        candidates.iter().flat_map(|slot| [slot.age.0, slot.sequence.0]).filter(|n| between(*n)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    (numbers.len() as u64) < until.0.saturating_sub(after.0)
}
