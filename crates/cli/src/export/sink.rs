//! Between the reader and an export: what is wanted of what comes goes on, and all is counted. Where it comes from is not
//! known here.

use super::Export;
use super::filter::Filter;
use super::output::Passed;
use crate::failure::{Failure, Result};
use crate::out::{Out, counted};
use crate::session::link;
use crate::unfinished;
use holdfast_base::Ordinal;
use holdfast_reader::{Element, Item, Plan, RingReader};
use indicatif::ProgressBar;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Damaged places and partial elements that are told one by one; more are counted.
const MOST_TOLD: usize = 20;

/// Which elements of a range go to the export.
pub(crate) enum Wanted {
    /// All, and everything that the ring says of what is not there.
    All,
    /// The packets that pass, and everything that the ring says of what is not there.
    Passing(Filter),
    /// Those with these ordinals, which rise; and nothing else.
    Only(Vec<Ordinal>),
}

/// What came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Elements that were exported.
    pub(crate) elements: u64,
    /// Bytes of their payloads.
    pub(crate) bytes: u64,
    /// Elements that came and were not wanted.
    pub(crate) others: u64,
    /// Gaps.
    pub(crate) gaps: u64,
    /// Notes.
    pub(crate) notes: u64,
    /// Elements that may have been wanted, and of which a part is left.
    pub(crate) partial: u64,
    /// Damaged places.
    pub(crate) damaged: u64,
    /// Slots that expired meanwhile.
    pub(crate) expired: u64,
    /// The first of the partial elements, in words.
    pub(crate) partial_told: Vec<String>,
    /// The first of the damaged places, in words.
    pub(crate) damaged_told: Vec<String>,
}

impl Taken {
    /// Says for people what was left out.
    pub(crate) fn left_out(&self, to: &mut Out) -> Result<()> {
        for (what, all, lines) in [
            ("partial element", self.partial, &self.partial_told),
            ("damaged place", self.damaged, &self.damaged_told),
        ] {
            if all > 0 {
                to.line(format_args!("{}, left out:", counted(all, what)))?;
                for line in lines {
                    to.line(format_args!("  {line}"))?;
                }
                if all > lines.len() as u64 {
                    to.line(format_args!("  and {} more", all - lines.len() as u64))?;
                }
            }
        }
        Ok(())
    }
}

/// Takes what the reader gives.
pub(crate) struct Sink {
    export: Export,
    passed: Passed,
    wanted: Wanted,
    progress: ProgressBar,
    stop: Arc<AtomicBool>,
    failure: Option<Failure>,
    taken: Taken,
}

impl Sink {
    /// Begins; from here on the first signal ends the export tidily.
    pub(crate) fn new(export: Export, passed: Passed, wanted: Wanted, progress: ProgressBar) -> Result<Self> {
        let stop = unfinished::ends_tidily()?;
        Ok(Self { export, passed, wanted, progress, stop, failure: None, taken: Taken::default() })
    }

    /// Changes what is wanted of what comes next.
    pub(crate) fn want(&mut self, wanted: Wanted) {
        self.wanted = wanted;
    }

    /// Takes all that a plan leads to.
    pub(crate) fn fill(&mut self, reader: &mut RingReader, plan: &Plan) -> Result<()> {
        let report = reader.read(plan, &mut |item| self.take(&item));
        self.progress.finish_and_clear();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.taken.expired += report.map_err(|error| link(&error))?.expired;
        Ok(())
    }

    /// What came, and the export to be ended.
    pub(crate) fn finish(self) -> (Export, Taken) {
        (self.export, self.taken)
    }

    /// Whether it is to end early.
    pub(crate) fn interrupted(&self) -> Result<()> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(match self.passed.bytes() {
                0 => Failure::failed("interrupted: nothing was written").advice("run it again"),
                bytes => Failure::failed(format_args!(
                    "interrupted: the output is incomplete, {} were written",
                    counted(bytes, "byte")
                ))
                .advice("take nothing for the whole, and run it again"),
            });
        }
        Ok(())
    }

    fn take(&mut self, item: &Item<'_>) -> ControlFlow<()> {
        let taken = self.interrupted().and_then(|()| {
            if let (Wanted::Passing(filter), Item::Preamble { stream, bytes, .. }) = (&mut self.wanted, item)
            {
                filter.preamble(*stream, bytes)?;
            }
            if self.count(item) { self.export.item(item) } else { Ok(()) }
        });
        self.failure = taken.err();
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Counts it; whether it goes to the export.
    #[inline]
    fn count(&mut self, item: &Item<'_>) -> bool {
        let (taken, only) = (&mut self.taken, matches!(self.wanted, Wanted::Only(_)));
        let may_be = |ordinal: &Ordinal| match &self.wanted {
            Wanted::All | Wanted::Passing(_) => true,
            Wanted::Only(ordinals) => ordinals.binary_search(ordinal).is_ok(),
        };
        let passes = |element: &Element<'_>| match &self.wanted {
            Wanted::Passing(filter) => filter.accepts(element),
            Wanted::All | Wanted::Only(_) => may_be(&element.ordinal),
        };
        match item {
            Item::Element(element) if passes(element) => {
                taken.elements += 1;
                taken.bytes += element.data.len() as u64;
            }
            Item::Partial { ordinal, why, .. } if may_be(ordinal) => {
                taken.partial += 1;
                if taken.partial_told.len() < MOST_TOLD {
                    taken.partial_told.push(format!("element {ordinal}: {why}"));
                }
            }
            Item::Element(_) => {
                taken.others += 1;
                return false;
            }
            Item::Partial { .. } => return false,
            Item::Damaged { slot, sequence, place } => {
                taken.damaged += 1;
                if taken.damaged_told.len() < MOST_TOLD {
                    taken.damaged_told.push(format!("slot {slot} (sequence {sequence}): {place}"));
                }
            }
            Item::Gap { .. } | Item::Note { .. } if only => return false,
            Item::Gap { .. } => taken.gaps += 1,
            Item::Note { .. } => taken.notes += 1,
            Item::Progress { bytes } => self.progress.set_position(*bytes),
            Item::Preamble { .. } | Item::Expired { .. } => {}
        }
        true
    }
}
