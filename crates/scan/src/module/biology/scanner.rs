//! Search of records: letters are collected to pieces, pieces are searched, hits are reported record by record.
//!
//! Pieces are counted in letters of the record, so that hits do not depend on the blocks of the item.

use crate::item::Item;
use crate::module::Outputs;
use crate::module::approximate::alignment::align;
use crate::module::approximate::ends::{edit_ends, searcher};
use crate::module::approximate::plateau::{Match, Pending, push_end};
use crate::module::biology::alphabet::{Alphabet, BLANK, ProteinProfile};
use crate::module::biology::unknown::UnknownCounts;
use crate::module::biology::{Biology, BiologyHit};
use sassy::Searcher;
use sassy::profiles::Iupac;
use std::ops::Range;

/// Letters of a record that are searched at once.
const PIECE: usize = 1 << 20;

/// Searcher of one alphabet.
enum Engine {
    Dna(Box<Searcher<Iupac>>),
    Protein(Box<Searcher<ProteinProfile>>),
}

/// Search of the records of one item.
pub(super) struct Scanner {
    engine: Engine,
    record: String,
    /// Context and letters that are not searched yet.
    letters: Vec<u8>,
    /// Letters at the front of `letters` that are searched and serve as context.
    searched: usize,
    /// Offset of `letters` in the record.
    offset: u64,
    unknown: UnknownCounts,
    pending: Pending,
    hits: u64,
}

impl Scanner {
    /// Makes a scanner without a record.
    pub(super) fn new(alphabet: Alphabet) -> Self {
        let engine = match alphabet {
            Alphabet::Dna => Engine::Dna(Box::new(searcher())),
            Alphabet::Protein => Engine::Protein(Box::new(searcher())),
        };
        Self {
            engine,
            record: String::new(),
            letters: Vec::new(),
            searched: 0,
            offset: 0,
            unknown: UnknownCounts::default(),
            pending: Pending::default(),
            hits: 0,
        }
    }

    /// True if the item has as many hits as are wanted.
    pub(super) fn is_enough(&self, module: &Biology) -> bool {
        module.options.most.is_some_and(|most| self.hits >= most)
    }

    /// Begins the next record.
    pub(super) fn begin(&mut self, name: &[u8]) {
        self.record = String::from_utf8_lossy(name).into_owned();
        self.letters.clear();
        (self.searched, self.offset) = (0, 0);
    }

    /// Adds bytes of the record's sequence, with blanks.
    pub(super) fn push(
        &mut self,
        module: &Biology,
        item: &Item<'_>,
        bytes: &[u8],
        out: &mut Outputs<'_, BiologyHit>,
    ) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.is_enough(module) {
            let room = self.searched + PIECE - self.letters.len();
            let (part, behind) = rest.split_at(room.min(rest.len()));
            rest = behind;
            let from = self.letters.len();
            self.letters.extend(part.iter().map(|byte| module.canonical[usize::from(*byte)]));
            if let Some(blank) = memchr::memchr(BLANK, &self.letters[from..]) {
                let tail = self.letters.split_off(from + blank);
                self.letters.extend(tail.into_iter().filter(|letter| *letter != BLANK));
            }
            if self.letters.len() == self.searched + PIECE {
                self.search(module, item, out);
            }
        }
    }

    /// Ends the present record.
    pub(super) fn end(&mut self, module: &Biology, item: &Item<'_>, out: &mut Outputs<'_, BiologyHit>) {
        self.search(module, item, out);
        let matches = self.pending.finish();
        self.emit(module, item, matches, out);
    }

    /// Searches the letters that are not searched yet, and keeps the context of the next ones.
    fn search(&mut self, module: &Biology, item: &Item<'_>, out: &mut Outputs<'_, BiologyHit>) {
        if self.is_enough(module) || self.searched == self.letters.len() {
            return;
        }
        let found = self.matches(module);
        let border = self.offset + self.letters.len() as u64;
        let matches = self.pending.add(found, border);
        self.emit(module, item, matches, out);
        let done = self.letters.len().saturating_sub(module.longest);
        self.letters.drain(..done);
        self.offset += done as u64;
        self.searched = self.letters.len();
    }

    fn matches(&mut self, module: &Biology) -> Vec<Match> {
        let Self { engine, letters: text, searched, offset, unknown, .. } = self;
        let (text, from, offset) = (text.as_slice(), *searched, *offset);
        let most = module.options.most_unknown;
        unknown.count(text, module.options.alphabet.unknown());
        let seeds = module.seeds.as_ref();
        let mut candidates = seeds.map(|seeds| seeds.candidates(&module.lanes, text, from));
        let mut matches = Vec::new();
        for (number, lane) in module.lanes.iter().enumerate() {
            let pattern = lane.letters.as_slice();
            let length = |end: usize, distance: u32| {
                let window = &text[end.saturating_sub(pattern.len() + distance as usize)..end];
                let same = |row: usize, column: usize| {
                    let letter = usize::from(pattern[pattern.len() - 1 - row]);
                    let other = usize::from(window[window.len() - 1 - column]);
                    module.masks[letter] & module.masks[other] != 0
                };
                align(pattern.len(), window.len(), same).length
            };
            let mut plateaus = Vec::new();
            let mut push = |end: usize, distance: u32| {
                if unknown.is_admissible(end, pattern.len(), distance, most, || length(end, distance)) {
                    push_end(&mut plateaus, number, offset + end as u64, distance);
                }
            };
            let ranges = match &mut candidates {
                Some(candidates) if lane.is_long(module.options.alphabet) => {
                    let ranges = std::mem::take(&mut candidates[number]);
                    admissible(ranges, unknown, pattern.len(), module.options.distance, most)
                }
                _ => std::iter::once(from..text.len()).collect(),
            };
            for range in ranges {
                let (text, most) = (&text[..range.end], module.options.distance);
                match engine {
                    Engine::Dna(searcher) => {
                        edit_ends(searcher, pattern, most, text, range.start, &mut push);
                    }
                    Engine::Protein(searcher) => {
                        edit_ends(searcher, pattern, most, text, range.start, &mut push);
                    }
                }
            }
            for plateau in plateaus {
                let length = length((plateau.first - offset) as usize, plateau.distance);
                matches.push(Match::new(plateau, text, offset, length));
            }
        }
        matches
    }

    fn emit(
        &mut self,
        module: &Biology,
        item: &Item<'_>,
        matches: Vec<Match>,
        out: &mut Outputs<'_, BiologyHit>,
    ) {
        for Match { plateau, start, text } in matches {
            if self.is_enough(module) {
                return;
            }
            self.hits += 1;
            let lane = &module.lanes[plateau.lane];
            out.push(BiologyHit {
                item: item.id(),
                record: self.record.clone(),
                pattern: lane.pattern,
                strand: lane.strand,
                start,
                end: plateau.first,
                distance: plateau.distance,
                text,
            });
        }
    }
}

/// Parts of ranges of ends that no bound on unknown letters excludes: long runs of `N` are passed over.
fn admissible(
    ranges: Vec<Range<usize>>,
    unknown: &UnknownCounts,
    pattern: usize,
    distance: u32,
    most: f64,
) -> Vec<Range<usize>> {
    let (shortest, longest) = (pattern - distance as usize, pattern + distance as usize);
    let mut parts: Vec<Range<usize>> = Vec::new();
    for end in ranges.into_iter().flatten().map(|before| before + 1) {
        if f64::from(unknown.before(end, shortest)) <= most * longest as f64 {
            match parts.last_mut() {
                Some(part) if part.end + 1 == end => part.end = end,
                _ => parts.push(end - 1..end),
            }
        }
    }
    parts
}
