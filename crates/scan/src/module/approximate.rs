//! Module `approx`: approximate search of byte patterns, by edit distance or by Hamming distance.
//!
//! Each block yields the ends of matches in its own range, as plateaus of adjacent ends (`approximate/plateau.rs`); folding joins
//! plateaus across the borders of blocks. Sequences of molecules belong to the module `bio`.

pub(super) mod alignment;
pub(super) mod ends;
pub(super) mod plateau;

use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};
use alignment::align;
use plateau::{Match, Pending, push_end};
use sassy::Searcher;
use sassy::profiles::Ascii;

/// Bytes of a pattern at most: the time of a search grows with the length of its patterns.
const MOST_PATTERN: usize = 1000;

/// Patterns of a search at most: each is a pass of its own over the text.
const MOST_PATTERNS: usize = 1000;

/// Distance between a pattern and a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// Levenshtein distance: replaced, inserted and deleted bytes.
    #[default]
    Edit,
    /// Hamming distance: replaced bytes only.
    Hamming,
}

/// Options of an approximate search.
#[derive(Clone, Debug, Default)]
pub struct ApproximateOptions {
    /// Patterns of 1 to 1000 bytes, each searched for itself.
    pub patterns: Vec<Vec<u8>>,
    /// Greatest distance of a hit, less than the length of each pattern.
    pub distance: u32,
    /// Metric of the distance.
    pub metric: Metric,
    /// True if upper and lower case of ASCII letters are the same.
    pub ignore_case: bool,
    /// Hits of an item at most.
    pub most: Option<u64>,
}

/// Module that searches items approximately.
#[derive(Clone, Debug)]
pub struct Approximate {
    options: ApproximateOptions,
}

/// Hit of an approximate search: a local minimum of the distance among adjacent ends.
///
/// The end is the leftmost one of adjacent ends with equal distances, of which no neighbour has a smaller one. The start is the one with the least
/// distance for this end; of equal ones that whose text is nearest to the pattern in length, then that of the shorter text.
/// Hits of an item are ordered by the last of these ends, then by pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApproximateHit {
    /// Item that holds the hit.
    pub item: ItemId,
    /// Number of the pattern, from 0.
    pub pattern: usize,
    /// Offset of the first byte.
    pub start: u64,
    /// Offset behind the last byte.
    pub end: u64,
    /// Distance between the pattern and the text.
    pub distance: u32,
    /// First bytes of the text, at most 1100.
    pub text: Vec<u8>,
}

/// Scratch memory of a worker.
#[derive(Clone)]
pub struct Worker {
    searcher: Searcher<Ascii>,
    folded: Vec<u8>,
}

/// Matches of one block.
#[derive(Debug, Default)]
pub struct Partial {
    matches: Vec<Match>,
}

/// Search state of one item.
#[derive(Debug, Default)]
pub struct State {
    pending: Pending,
    hits: u64,
}

impl Approximate {
    /// Makes a search of its options.
    pub fn new(mut options: ApproximateOptions) -> Result<Self, String> {
        let count = options.patterns.len();
        if count == 0 || count > MOST_PATTERNS {
            return Err(format!(
                "cannot search approximately: there are {count} patterns; give 1 to {MOST_PATTERNS}"
            ));
        }
        for (number, pattern) in options.patterns.iter_mut().enumerate() {
            check_pattern(number, pattern.len(), MOST_PATTERN, "bytes", options.distance)?;
            if options.ignore_case {
                pattern.make_ascii_lowercase();
            }
        }
        Ok(Self { options })
    }

    /// Greatest length of a match.
    fn longest(&self) -> usize {
        let longest = self.options.patterns.iter().map(Vec::len).max().unwrap_or(0);
        match self.options.metric {
            Metric::Edit => longest + self.options.distance as usize,
            Metric::Hamming => longest,
        }
    }

    fn emit(
        &self,
        state: &mut State,
        item: &Item<'_>,
        matches: Vec<Match>,
        out: &mut Outputs<'_, ApproximateHit>,
    ) {
        for Match { plateau, start, text } in matches {
            if self.is_enough(state) {
                return;
            }
            state.hits += 1;
            out.push(ApproximateHit {
                item: item.id(),
                pattern: plateau.lane,
                start,
                end: plateau.first,
                distance: plateau.distance,
                text,
            });
        }
    }

    fn is_enough(&self, state: &State) -> bool {
        self.options.most.is_some_and(|most| state.hits >= most)
    }
}

impl Module for Approximate {
    type Worker = Worker;
    type Partial = Partial;
    type State = State;
    type Output = ApproximateHit;

    fn division(&self) -> Division {
        Division::Blocks { before: self.longest(), behind: 0 }
    }

    fn worker(&self) -> Result<Worker, ModuleError> {
        Ok(Worker { searcher: ends::searcher(), folded: Vec::new() })
    }

    fn examine(&self, worker: &mut Worker, block: &Block<'_>) -> Result<Partial, ModuleError> {
        let options = &self.options;
        let original = &block.bytes[..block.own.end];
        let mut text = original;
        if options.ignore_case {
            worker.folded.clear();
            worker.folded.extend_from_slice(original);
            worker.folded.make_ascii_lowercase();
            text = &worker.folded;
        }
        let from = block.own.start;
        let mut partial = Partial::default();
        let mut plateaus = Vec::new();
        // Two more than there may be hits: the first one may go on from the block before, the last one behind the block.
        let room = options.most.map_or(usize::MAX, |most| most.saturating_add(2) as usize);
        for (number, pattern) in options.patterns.iter().enumerate() {
            let push = |end: usize, distance: u32| {
                if plateaus.len() <= room {
                    push_end(&mut plateaus, number, block.offset + end as u64, distance);
                }
            };
            match options.metric {
                Metric::Edit => {
                    ends::edit_ends(&mut worker.searcher, pattern, options.distance, text, from, push);
                }
                Metric::Hamming => ends::hamming_ends(pattern, options.distance, text, from, push),
            }
            for plateau in plateaus.drain(..) {
                let end = (plateau.first - block.offset) as usize;
                let length = match options.metric {
                    Metric::Edit => edit_length(pattern, &text[..end], plateau.distance),
                    Metric::Hamming => pattern.len(),
                };
                partial.matches.push(Match::new(plateau, original, block.offset, length));
            }
        }
        Ok(partial)
    }

    fn start(&self, _: &Item<'_>) -> Result<State, ModuleError> {
        Ok(State::default())
    }

    fn fold(
        &self,
        state: &mut State,
        block: &Block<'_>,
        partial: Partial,
        out: &mut Outputs<'_, ApproximateHit>,
    ) -> Result<Flow, ModuleError> {
        let border = block.offset + block.own.end as u64;
        let matches = state.pending.add(partial.matches, border);
        self.emit(state, &block.item, matches, out);
        Ok(if self.is_enough(state) { Flow::Enough } else { Flow::Continue })
    }

    fn end(
        &self,
        item: &Item<'_>,
        mut state: State,
        out: &mut Outputs<'_, ApproximateHit>,
    ) -> Result<(), ModuleError> {
        let matches = state.pending.finish();
        self.emit(&mut state, item, matches, out);
        Ok(())
    }
}

/// Length of the match of a pattern that ends with the text.
fn edit_length(pattern: &[u8], text: &[u8], distance: u32) -> usize {
    let window = &text[text.len().saturating_sub(pattern.len() + distance as usize)..];
    let same =
        |row: usize, column: usize| pattern[pattern.len() - 1 - row] == window[window.len() - 1 - column];
    align(pattern.len(), window.len(), same).length
}

/// Checks the length of a pattern and its distance.
pub(super) fn check_pattern(
    number: usize,
    length: usize,
    most: usize,
    unit: &str,
    distance: u32,
) -> Result<(), String> {
    let number = number + 1;
    if length == 0 || length > most {
        return Err(format!(
            "cannot search pattern {number}: it has {length} {unit}; give 1 to {most} {unit}"
        ));
    }
    if distance as usize >= length {
        return Err(format!(
            "cannot search pattern {number}: a distance of {distance} matches any text for a pattern of {length} {unit}; \
             give a distance of at most {}",
            length - 1
        ));
    }
    Ok(())
}
