//! Sink between the reader and an export: it passes on the chosen elements and counts all items. The source of the items is not
//! known here.

use crate::atomic_file;
use crate::export::Export;
use crate::filter::Filter;
use crate::output::PipedBytes;
use crate::thinning::Thinning;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Ordinal, counted};
use holdfast_reader::{Element, Item};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Damaged places and partial elements that are told one by one; more are counted.
const MOST_TOLD: usize = 20;

/// Which elements of a range go to the export.
pub enum ElementFilter {
    /// All, and everything that the ring says of what is not there.
    All,
    /// The packets that pass, and everything that the ring says of what is not there.
    Passing(Filter),
    /// Those with these ordinals, which rise; and nothing else.
    Only(Vec<Ordinal>),
}

/// What came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements that were exported.
    pub elements: u64,
    /// Bytes of their payloads.
    pub bytes: u64,
    /// Elements that came and were not wanted.
    pub others: u64,
    /// Gaps.
    pub gaps: u64,
    /// Notes.
    pub notes: u64,
    /// Elements that may have been wanted, and of which a part is left.
    pub partial: u64,
    /// Damaged places.
    pub damaged: u64,
    /// Slots that expired meanwhile.
    pub expired: u64,
    /// The first of the partial elements, in words.
    pub partial_told: Vec<String>,
    /// The first of the damaged places, in words.
    pub damaged_told: Vec<String>,
}

impl Counts {
    /// Lines that tell people what was left out.
    pub fn left_out(&self) -> Vec<String> {
        let mut told = Vec::new();
        for (what, all, lines) in [
            ("partial element", self.partial, &self.partial_told),
            ("damaged place", self.damaged, &self.damaged_told),
        ] {
            if all > 0 {
                told.push(format!("{}, left out:", counted(all, what)));
                told.extend(lines.iter().map(|line| format!("  {line}")));
                if all > lines.len() as u64 {
                    told.push(format!("  and {} more", all - lines.len() as u64));
                }
            }
        }
        told
    }
}

/// Takes what the reader gives.
pub struct Sink {
    export: Export,
    passed: PipedBytes,
    wanted: ElementFilter,
    progress: Box<dyn FnMut(u64)>,
    stop: Arc<AtomicBool>,
    failure: Option<Failure>,
    taken: Counts,
    thinning: Thinning,
}

impl Sink {
    /// Begins; from here on the first signal ends the export tidily. `progress` is told how many bytes have been read.
    pub fn new(
        export: Export,
        passed: PipedBytes,
        wanted: ElementFilter,
        progress: Box<dyn FnMut(u64)>,
    ) -> Result<Self> {
        let stop = atomic_file::ends_tidily()?;
        Ok(Self {
            export,
            passed,
            wanted,
            progress,
            stop,
            failure: None,
            taken: Counts::default(),
            thinning: Thinning::default(),
        })
    }

    /// Passes on less than what comes.
    #[must_use]
    pub fn thinned(self, thinning: Thinning) -> Self {
        Self { thinning, ..self }
    }

    /// Changes what is wanted of what comes next.
    pub fn want(&mut self, wanted: ElementFilter) {
        self.wanted = wanted;
    }

    /// Ends a read whose items were taken, of which so many slots expired meanwhile: an error of the export comes before one of
    /// the read.
    pub fn end_read(&mut self, expired: Result<u64>) -> Result<()> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.taken.expired += expired?;
        Ok(())
    }

    /// What came, and the export to be ended.
    pub fn finish(self) -> (Export, Counts) {
        (self.export, self.taken)
    }

    /// Whether it is to end early.
    pub fn interrupted(&self) -> Result<()> {
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

    /// Takes the next item of a read; breaks where the export fails or is interrupted.
    pub fn take(&mut self, item: &Item<'_>) -> ControlFlow<()> {
        if let Item::Element(element) = item
            && !self.thinning.keeps(element.ordinal, element.arrival)
        {
            return ControlFlow::Continue(());
        }
        let taken = self.interrupted().and_then(|()| {
            if let (ElementFilter::Passing(filter), Item::Preamble { stream, bytes, .. }) =
                (&mut self.wanted, item)
            {
                filter.preamble(*stream, bytes)?;
            }
            if !self.count(item) {
                return Ok(());
            }
            match item {
                Item::Element(element) if self.thinning.bytes.is_some() => {
                    let cut = self.thinning.cut(element);
                    self.taken.bytes -= (element.data.len() - cut.data.len()) as u64;
                    self.export.item(&Item::Element(cut))
                }
                item => self.export.item(item),
            }
        });
        self.failure = taken.err();
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Counts it; whether it goes to the export.
    #[inline]
    fn count(&mut self, item: &Item<'_>) -> bool {
        let (taken, only) = (&mut self.taken, matches!(self.wanted, ElementFilter::Only(_)));
        let may_be = |ordinal: &Ordinal| match &self.wanted {
            ElementFilter::All | ElementFilter::Passing(_) => true,
            ElementFilter::Only(ordinals) => ordinals.binary_search(ordinal).is_ok(),
        };
        let passes = |element: &Element<'_>| match &self.wanted {
            ElementFilter::Passing(filter) => filter.accepts(element),
            ElementFilter::All | ElementFilter::Only(_) => may_be(&element.ordinal),
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
            Item::Progress { bytes } => (self.progress)(*bytes),
            Item::Preamble { .. } | Item::Expired { .. } => {}
        }
        true
    }
}
