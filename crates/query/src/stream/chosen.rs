//! How the slots of a search were chosen: what an `EXPLAIN` tells of them. A search itself passes over slots as it comes to them; only
//! where nothing else is asked for, what is known of each is looked at beforehand.

use super::needs;
use super::wants::Wants;
use holdfast_reader::{PlannedSlot, RingReader};
use std::fmt;

/// Of a question that is explained, and not carried out.
#[derive(Debug)]
pub(crate) struct Explained;

/// How many slots there are, and how many of them are passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Chosen {
    /// Slots with data, of any stream.
    pub(super) all: usize,
    /// Those that are not in the times, or among the slots, that are asked for.
    pub(super) by_time: usize,
    /// Those of the others that a recorder's bird's-eye view excludes, where it tells of any.
    pub(super) by_view: Option<usize>,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slots={}, pruned_by_time={}", self.all, self.by_time)?;
        self.by_view.map_or(Ok(()), |slots| write!(f, ", pruned_by_birds_eye={slots}"))
    }
}

/// How many of these slots hold nothing that is wanted, by the bird's-eye view alone; nothing where it tells of none of them.
pub(super) fn excluded(reader: &mut RingReader, wants: &Wants, slots: &[PlannedSlot]) -> Option<usize> {
    let (mut told, mut excluded) = (0, 0);
    for view in slots.iter().filter_map(|slot| Some(needs::is_excluded(&reader.foresee(slot)?, wants))) {
        told += 1;
        excluded += usize::from(view);
    }
    (told > 0).then_some(excluded)
}
