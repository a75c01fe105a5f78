//! Module `search`: lines and matches of literals and regular expressions, with the engine and the habits of ripgrep.

mod bytes;
mod lines;
mod long_line;
mod pattern;
mod telling;

use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};
use bytes::{ByteLines, ByteState};
use holdfast_base::failure::Result;
use lines::{Detail, FoundLines, LineFinder};
use pattern::Pattern;
use telling::{LineState, SHOWN, Teller};

/// Notation of search patterns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// Regular expressions in the syntax of the crate `regex`; a match lies in one line.
    #[default]
    Regex,
    /// Text as it is.
    Text,
    /// Bytes in hexadecimal digits, which may include line ends.
    Hex,
}

/// Results that a search gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// Lines that have matches.
    #[default]
    Lines,
    /// Lines with matches, and their numbers.
    NumberedLines,
    /// Matches, each as a line whose text is the match.
    Matches,
    /// Matches, and the numbers of their lines.
    NumberedMatches,
    /// Number of lines with matches of each item that has one.
    Counts,
    /// Number of lines with matches of each item, zero too.
    AllCounts,
}

impl Wanted {
    fn detail(self) -> Detail {
        match self {
            Self::Lines | Self::NumberedLines => Detail::Lines,
            Self::Matches | Self::NumberedMatches => Detail::Matches,
            Self::Counts | Self::AllCounts => Detail::Count,
        }
    }

    fn has_numbers(self) -> bool {
        matches!(self, Self::NumberedLines | Self::NumberedMatches)
    }

    fn is_all(self) -> bool {
        self == Self::AllCounts
    }
}

/// Options of a search.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct SearchOptions {
    /// Patterns, of which one must match.
    pub patterns: Vec<String>,
    /// Notation of the patterns.
    pub syntax: Syntax,
    /// True if upper and lower case are the same.
    pub ignore_case: bool,
    /// True if matches must be whole words.
    pub word: bool,
    /// True if a match must be a whole line; `word` says nothing more then.
    pub whole_line: bool,
    /// True if lines without a match are selected. Not for bytes in hexadecimal digits.
    pub invert: bool,
    /// Lines of context in front of a selected one. Not for bytes in hexadecimal digits.
    pub before: usize,
    /// Lines of context behind a selected one. Not for bytes in hexadecimal digits.
    pub after: usize,
    /// Results of the search.
    pub wanted: Wanted,
    /// Selected lines of an item at most.
    pub most: Option<u64>,
}

/// Module that searches items.
#[derive(Clone, Debug)]
pub struct Search {
    pattern: Pattern,
    options: SearchOptions,
}

/// Line that was selected, or its context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Item that has the line.
    pub item: ItemId,
    /// Offset of the line in the item.
    pub offset: u64,
    /// Offset of the line's end in the item.
    pub end: u64,
    /// Number of the line, from 1, if lines are counted.
    pub number: Option<u64>,
    /// Offset of the text in the item: that of the line, unless the line is very long, or a match is told.
    pub text_offset: u64,
    /// Text of the line without its end, at most some KiB around the first match; or text of the match.
    pub text: Vec<u8>,
    /// Offsets of the first 1024 matches in the item: first byte, and first byte behind.
    pub matches: Vec<(u64, u64)>,
    /// True if the line is context of a selected one.
    pub is_context: bool,
    /// True if the line told before it, of the same item, is the one in front of it, or the same.
    pub follows: bool,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hit {
    /// Line that has matches.
    Line(Line),
    /// Number of lines with matches in an item.
    Count(ItemId, u64),
}

/// Result over one block.
#[derive(Debug)]
pub struct Partial(Found);

#[derive(Debug)]
enum Found {
    Lines {
        lines: FoundLines,
        /// Line ends in the block, if lines are counted.
        line_ends: u64,
    },
    Bytes(ByteLines),
}

/// State of an item.
#[derive(Debug, Default)]
pub struct State {
    lines: LineState,
    bytes: ByteState,
}

impl Search {
    /// Makes a search of its options.
    pub fn new(options: SearchOptions) -> Result<Self> {
        let pattern = Pattern::new(&options)?;
        Ok(Self { pattern, options })
    }

    fn teller(&self) -> Teller<'_> {
        let options = &self.options;
        let finder = LineFinder {
            pattern: &self.pattern,
            invert: options.invert,
            detail: options.wanted.detail(),
            numbers: options.wanted.has_numbers(),
            most: options.most,
        };
        Teller { options, finder }
    }
}

impl Module for Search {
    type Worker = ();
    type Partial = Partial;
    type State = State;
    type Output = Hit;

    fn division(&self) -> Division {
        if self.options.syntax != Syntax::Hex {
            return Division::Lines;
        }
        let longest = self.pattern.longest.unwrap_or_default();
        Division::Blocks { before: SHOWN, behind: longest.max(SHOWN) }
    }

    fn worker(&self) -> std::result::Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), block: &Block<'_>) -> std::result::Result<Partial, ModuleError> {
        if self.options.syntax == Syntax::Hex {
            let found = bytes::find(self, block, block.own.start, None)?;
            return Ok(Partial(Found::Bytes(found)));
        }
        // Pieces of a line are searched in order, when they are folded.
        let is_piece = block.piece.is_some();
        let lines = if is_piece { FoundLines::default() } else { self.teller().examine(block)? };
        let counts = is_piece || self.options.wanted.has_numbers();
        let line_ends = if counts { memchr::memchr_iter(b'\n', block.own_bytes()).count() as u64 } else { 0 };
        Ok(Partial(Found::Lines { lines, line_ends }))
    }

    fn start(&self, _: &Item<'_>) -> std::result::Result<State, ModuleError> {
        Ok(State::default())
    }

    fn fold(
        &self,
        state: &mut State,
        block: &Block<'_>,
        partial: Partial,
        out: &mut Outputs<'_, Hit>,
    ) -> std::result::Result<Flow, ModuleError> {
        match (partial.0, block.piece) {
            (Found::Bytes(found), _) => bytes::fold(self, &mut state.bytes, block, found, out),
            (Found::Lines { line_ends, .. }, Some(piece)) => {
                self.teller().piece(&mut state.lines, block, piece, line_ends, out)
            }
            (Found::Lines { lines, line_ends }, None) => {
                self.teller().block(&mut state.lines, block, lines, line_ends, out)
            }
        }
    }

    fn end(
        &self,
        item: &Item<'_>,
        mut state: State,
        out: &mut Outputs<'_, Hit>,
    ) -> std::result::Result<(), ModuleError> {
        if self.options.syntax == Syntax::Hex {
            state.lines.count = bytes::end(self, state.bytes, out);
        }
        self.teller().end(item, &state.lines, out);
        Ok(())
    }
}
