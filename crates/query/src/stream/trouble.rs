//! What a search could not look into: told at its end, beside what it found.

use holdfast_link::PlannedSlot;
use std::sync::{Mutex, PoisonError};

/// Damaged places that are told one by one.
const MOST: usize = 16;

/// What could not be looked into.
#[derive(Debug, Default)]
pub struct Trouble {
    state: Mutex<Missed>,
}

/// What was missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Missed {
    /// Slots that expired before they were searched, or while they were.
    pub expired: u64,
    /// Slots that are damaged.
    pub damaged: u64,
    /// What is wrong with the first of these.
    pub places: Vec<String>,
    /// Elements that were found and of which a part is not there any more: their payload is null.
    pub partial: u64,
}

impl Trouble {
    /// What has been missed since it was asked last.
    pub fn take(&self) -> Missed {
        std::mem::take(&mut *self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn expired(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).expired += 1;
    }

    pub(super) fn partial(&self, elements: u64) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).partial += elements;
    }

    pub(super) fn damaged(&self, slot: &PlannedSlot, place: &str) {
        let mut missed = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        missed.damaged += 1;
        if missed.places.len() < MOST {
            let at = slot.slot.map_or_else(String::new, |slot| format!("slot {slot}, "));
            missed.places.push(format!("{at}sequence {}: {place}", slot.sequence));
        }
    }
}
