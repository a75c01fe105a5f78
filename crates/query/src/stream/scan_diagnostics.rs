//! Diagnostics of scans: slots and elements that could not be read, reported at the end of a query.

use holdfast_base::{Sequence, SlotNo};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Damaged places that are told one by one.
const MOST: usize = 16;

/// What could not be looked into.
#[derive(Debug, Default)]
pub struct ScanDiagnostics {
    state: Mutex<DiagnosticsState>,
}

#[derive(Debug, Default)]
struct DiagnosticsState {
    missed: SkippedData,
    /// Slots that expired: what began in one and ends in the next misses it, too.
    expired: BTreeSet<Sequence>,
    /// Whether some damaged ones were to be searched, not only told of.
    spoils: bool,
    /// Slots that whoever asks has seen, and that no search may pass by in silence.
    expected: Vec<Sequence>,
}

/// What was missed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedData {
    /// Slots that expired before they were searched, or while they or those behind them were.
    pub expired: u64,
    /// Slots that are damaged.
    pub damaged: u64,
    /// Which ones.
    pub slots: BTreeSet<Sequence>,
    /// What is wrong with the first of these.
    pub places: Vec<String>,
    /// Elements that were found and of which a part is not there any more: their payload is null.
    pub partial: u64,
}

/// Error of a computed answer, of which some input could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IncompleteAnswer {
    /// Number of slots that expired while the query ran.
    #[error("cannot complete the answer: {0} slots expired while the query ran")]
    Expired(u64),
    /// Number of matching elements of which a part is missing.
    #[error("cannot complete the answer: a part of {0} matching elements is missing")]
    Partial(u64),
    /// Damaged slots.
    #[error("cannot complete the answer: {} slots are damaged, the first is {first}", slots.len())]
    Damaged {
        /// Sequences of the slots, in order.
        slots: Vec<Sequence>,
        /// Place and cause of the first damage.
        first: String,
    },
}

impl SkippedData {
    /// Together with what was missed elsewhere.
    pub fn with(&mut self, other: Self) {
        let Self { expired, damaged, slots, places, partial } = other;
        self.expired += expired;
        self.damaged += damaged;
        self.slots.extend(slots);
        self.places.extend(places);
        self.partial += partial;
    }
}

impl ScanDiagnostics {
    /// What has been missed since it was asked last.
    pub fn take(&self) -> SkippedData {
        let mut state = self.state();
        state.spoils = false;
        let (missed, expired) = (std::mem::take(&mut state.missed), std::mem::take(&mut state.expired));
        SkippedData { expired: expired.len() as u64, ..missed }
    }

    /// What was found until now is thrown away and looked for anew: what was missed will be missed again. What expired will not be
    /// looked at any more.
    pub(crate) fn begin_anew(&self) {
        let mut state = self.state();
        (state.missed, state.spoils) = (SkippedData::default(), false);
    }

    /// From here on a search that does not find one of these slots when it begins counts it as expired.
    pub fn expect(&self, slots: Vec<Sequence>) {
        self.state().expected = slots;
    }

    /// These slots.
    pub(crate) fn expected(&self) -> Vec<Sequence> {
        self.state().expected.clone()
    }

    /// What has been missed so far of what an answer may be computed over.
    pub(crate) fn lacking(&self) -> Option<IncompleteAnswer> {
        let DiagnosticsState { missed, expired, spoils, .. } = &*self.state();
        if let Some(first) = missed.places.first().filter(|_| *spoils) {
            let slots = missed.slots.iter().copied().collect();
            return Some(IncompleteAnswer::Damaged { slots, first: first.clone() });
        }
        let partial = (missed.partial > 0).then_some(IncompleteAnswer::Partial(missed.partial));
        (!expired.is_empty()).then_some(IncompleteAnswer::Expired(expired.len() as u64)).or(partial)
    }

    fn state(&self) -> MutexGuard<'_, DiagnosticsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn expired(&self, slots: impl IntoIterator<Item = Sequence>) {
        self.state().expired.extend(slots);
    }

    pub(crate) fn partial(&self, elements: u64) {
        self.state().missed.partial += elements;
    }

    /// Something is wrong with a slot that is searched, which has a place unless it is open.
    pub(crate) fn damaged(&self, slot: Option<SlotNo>, sequence: Sequence, place: &str) {
        self.told(slot, sequence, place);
        self.state().spoils = true;
    }

    /// The same of one that is only told of.
    pub(crate) fn told(&self, slot: Option<SlotNo>, sequence: Sequence, place: &str) {
        let missed = &mut self.state().missed;
        if !missed.slots.insert(sequence) {
            return;
        }
        missed.damaged += 1;
        if missed.places.len() < MOST {
            let at = slot.map_or_else(String::new, |slot| format!("slot {slot}, "));
            missed.places.push(format!("{at}sequence {sequence}: {place}"));
        }
    }
}
