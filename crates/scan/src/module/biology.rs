//! Module `bio`: approximate search of DNA and protein patterns in FASTA, FASTQ and plain sequence text, also gzip-compressed.
//!
//! Folding decompresses (`biology/gzip.rs`), parses records (`biology/records.rs`) and searches their letters
//! (`biology/scanner.rs`). Alignments with gap costs or scores do not belong here: the distance is the edit distance.

mod alphabet;
mod gzip;
mod pattern;
mod pieces;
mod records;
mod scanner;
mod seeds;
mod unknown;

pub use alphabet::Alphabet;

use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};
use gzip::{Gzip, MAGIC};
use pattern::Lane;
use records::{Event, Records};
use scanner::Scanner;
use seeds::Seeds;

/// Patterns of a search at most: each is a pass of its own over the text.
const MOST_PATTERNS: usize = 1000;

/// Strand of a hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strand {
    /// Strand that the record holds.
    Forward,
    /// Opposite strand: the reverse complement of the pattern matches the record.
    Reverse,
}

/// Options of a sequence search.
#[derive(Clone, Debug)]
pub struct BiologyOptions {
    /// Patterns: up to 256 bases with IUPAC codes, up to 100 000 exact bases, or up to 1000 amino acids.
    pub patterns: Vec<Vec<u8>>,
    /// Alphabet of the patterns and sequences.
    pub alphabet: Alphabet,
    /// Greatest edit distance of a hit: less than the length of each pattern, for more than 256 bases at most 5 % of it.
    pub distance: u32,
    /// Greatest share of unknown letters (`N` of DNA, `X` of proteins) in the text of a hit, from 0 to 1.
    pub most_unknown: f64,
    /// Hits of an item at most.
    pub most: Option<u64>,
}

impl Default for BiologyOptions {
    fn default() -> Self {
        Self { patterns: Vec::new(), alphabet: Alphabet::Dna, distance: 0, most_unknown: 0.2, most: None }
    }
}

/// Module that searches sequences.
#[derive(Clone, Debug)]
pub struct Biology {
    options: BiologyOptions,
    lanes: Vec<Lane>,
    seeds: Option<Seeds>,
    canonical: [u8; 256],
    masks: [u32; 256],
    /// Greatest length of a match.
    longest: usize,
}

/// Hit of a sequence search: a local minimum of the distance among adjacent ends on one strand.
///
/// Letters are the same if one base or amino acid exists that both stand for. An end whose match has too large a share of unknown
/// letters is no end. End and start are chosen as by the module `approx`, in the forward text on both strands. Hits of a
/// record are ordered by the last of adjacent ends with equal distances, then by pattern, then by strand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BiologyHit {
    /// Item that holds the hit.
    pub item: ItemId,
    /// First word of the record's header, at most 256 bytes; empty for plain text.
    pub record: String,
    /// Number of the pattern, from 0.
    pub pattern: usize,
    /// Strand that the pattern matches.
    pub strand: Strand,
    /// Offset of the first letter in the record, on the forward strand.
    pub start: u64,
    /// Offset behind the last letter in the record, on the forward strand.
    pub end: u64,
    /// Edit distance between the pattern and the text.
    pub distance: u32,
    /// First letters of the forward text, at most 1100: upper case, `T` for `U`, `X` or `*` for bytes that are no code.
    pub text: Vec<u8>,
}

/// Encoding of an item's bytes.
enum Encoding {
    /// No byte has arrived.
    Undecided,
    /// The first byte of `MAGIC` has arrived and waits for the second.
    Magic,
    Plain,
    Gzip(Box<Gzip>),
}

/// Search state of one item.
pub struct State {
    encoding: Encoding,
    records: Records,
    scanner: Scanner,
}

impl Biology {
    /// Makes a search of its options.
    pub fn new(options: BiologyOptions) -> Result<Self, String> {
        let count = options.patterns.len();
        if count == 0 || count > MOST_PATTERNS {
            return Err(format!(
                "cannot search sequences: there are {count} patterns; give 1 to {MOST_PATTERNS}"
            ));
        }
        if !(0.0..=1.0).contains(&options.most_unknown) {
            return Err(format!(
                "cannot limit unknown letters: their share of {} is out of range; give a number from 0 to 1",
                options.most_unknown
            ));
        }
        let mut lanes = Vec::new();
        for (number, pattern) in options.patterns.iter().enumerate() {
            lanes.extend(pattern::lanes(number, pattern, options.alphabet, options.distance)?);
        }
        let seeds = match options.alphabet {
            Alphabet::Dna => Seeds::new(&lanes, options.distance),
            Alphabet::Protein => None,
        };
        let longest =
            lanes.iter().map(|lane| lane.letters.len()).max().unwrap_or(0) + options.distance as usize;
        let (canonical, masks) = (options.alphabet.canonical(), options.alphabet.masks());
        Ok(Self { options, lanes, seeds, canonical, masks, longest })
    }

    /// Takes the next bytes of an item, as they are stored.
    fn take(
        &self,
        state: &mut State,
        item: &Item<'_>,
        mut bytes: &[u8],
        out: &mut Outputs<'_, BiologyHit>,
    ) -> Result<(), ModuleError> {
        let State { encoding, records, scanner } = state;
        let mut parse = |text: &[u8]| records.push(text, &mut |event| self.event(scanner, item, event, out));
        while let Some(first) = bytes.first() {
            match encoding {
                Encoding::Undecided if *first == MAGIC[0] => {
                    *encoding = Encoding::Magic;
                    bytes = &bytes[1..];
                }
                Encoding::Magic if *first == MAGIC[1] => {
                    let mut gzip = Box::new(Gzip::new());
                    gzip.push(&MAGIC[..1], &mut parse)?;
                    *encoding = Encoding::Gzip(gzip);
                }
                Encoding::Undecided => *encoding = Encoding::Plain,
                Encoding::Magic => {
                    *encoding = Encoding::Plain;
                    parse(&MAGIC[..1])?;
                }
                Encoding::Plain => return parse(bytes),
                Encoding::Gzip(gzip) => return gzip.push(bytes, parse),
            }
        }
        Ok(())
    }

    /// Ends the bytes of an item.
    fn finish(
        &self,
        state: &mut State,
        item: &Item<'_>,
        out: &mut Outputs<'_, BiologyHit>,
    ) -> Result<(), ModuleError> {
        let State { encoding, records, scanner } = state;
        let mut sink = |event: Event<'_>| self.event(scanner, item, event, out);
        match encoding {
            Encoding::Magic => records.push(&MAGIC[..1], &mut sink)?,
            Encoding::Gzip(gzip) => gzip.finish(|text| records.push(text, &mut sink))?,
            Encoding::Undecided | Encoding::Plain => {}
        }
        records.finish(&mut sink)
    }

    fn event(
        &self,
        scanner: &mut Scanner,
        item: &Item<'_>,
        event: Event<'_>,
        out: &mut Outputs<'_, BiologyHit>,
    ) {
        match event {
            Event::Begin(name) => scanner.begin(name),
            Event::Letters(bytes) => scanner.push(self, item, bytes, out),
            Event::End => scanner.end(self, item, out),
        }
    }
}

impl Module for Biology {
    type Worker = ();
    type Partial = ();
    type State = State;
    type Output = BiologyHit;

    fn division(&self) -> Division {
        Division::Serial
    }

    fn worker(&self) -> Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), _: &Block<'_>) -> Result<(), ModuleError> {
        Ok(())
    }

    fn start(&self, _: &Item<'_>) -> Result<State, ModuleError> {
        Ok(State {
            encoding: Encoding::Undecided,
            records: Records::new(),
            scanner: Scanner::new(self.options.alphabet),
        })
    }

    fn fold(
        &self,
        state: &mut State,
        block: &Block<'_>,
        (): (),
        out: &mut Outputs<'_, BiologyHit>,
    ) -> Result<Flow, ModuleError> {
        if !state.scanner.is_enough(self) {
            self.take(state, &block.item, block.own_bytes(), out)?;
        }
        Ok(if state.scanner.is_enough(self) { Flow::Enough } else { Flow::Continue })
    }

    fn end(
        &self,
        item: &Item<'_>,
        mut state: State,
        out: &mut Outputs<'_, BiologyHit>,
    ) -> Result<(), ModuleError> {
        if state.scanner.is_enough(self) { Ok(()) } else { self.finish(&mut state, item, out) }
    }
}
