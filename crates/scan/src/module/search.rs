//! Module `search`: lines and matches of literals and regular expressions, with the engine and the habits of ripgrep.

use crate::item::{Item, ItemId};
use crate::module::{Block, Division, Flow, Module, ModuleError, Outputs};
use aho_corasick::{AhoCorasick, MatchKind};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use holdfast_base::failure::{Failure, Result};
use regex_syntax::ParserBuilder;

/// Bytes of a line that are shown on each side of its first match.
const SHOWN: usize = 4096;

/// Bytes of a match of a pattern that sets no limit itself; a longer one may be found only in part.
const MOST_MATCH: usize = 64 << 10;

/// Matches of one line that are told apart; further ones are not looked for.
const MOST_MATCHES: usize = 1024;

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
    /// Number of lines with matches of each item that has one.
    Counts,
}

/// Options of a search.
#[derive(Clone, Debug, Default)]
pub struct SearchOptions {
    /// Patterns, of which one must match.
    pub patterns: Vec<String>,
    /// Notation of the patterns.
    pub syntax: Syntax,
    /// True if upper and lower case are the same.
    pub ignore_case: bool,
    /// True if matches must be whole words.
    pub word: bool,
    /// Results of the search.
    pub wanted: Wanted,
    /// Lines of an item at most.
    pub most: Option<u64>,
}

/// Engine of a search.
#[derive(Clone, Debug)]
enum Engine {
    Regex(RegexMatcher),
    /// Many words: searched by their rare bytes where they have some in common, which the other engine does not.
    Words(AhoCorasick),
}

impl Engine {
    /// Gives the matches from a place on, until `take` has enough.
    fn find_at(
        &self,
        bytes: &[u8],
        from: usize,
        mut take: impl FnMut(usize, usize) -> bool,
    ) -> Result<(), ModuleError> {
        match self {
            Self::Regex(matcher) => matcher
                .find_iter_at(bytes, from, |found| take(found.start(), found.end()))
                .map_err(|error| ModuleError(error.to_string())),
            Self::Words(words) => {
                let input = aho_corasick::Input::new(bytes).range(from..);
                for found in words.find_iter(input) {
                    if !take(found.start(), found.end()) {
                        break;
                    }
                }
                Ok(())
            }
        }
    }
}

/// Module that searches items.
#[derive(Clone, Debug)]
pub struct Search {
    engine: Engine,
    options: SearchOptions,
    behind: usize,
}

/// Line that has matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Item that has the line.
    pub item: ItemId,
    /// Offset of the line in the item.
    pub offset: u64,
    /// Number of the line, from 1, if lines are counted.
    pub number: Option<u64>,
    /// Offset of the text in the item: that of the line, unless the line is very long.
    pub text_offset: u64,
    /// Text of the line without its end, at most some KiB around the first match.
    pub text: Vec<u8>,
    /// Offsets of the matches in the item: first byte, and first byte behind.
    pub matches: Vec<(u64, u64)>,
}

/// Result of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hit {
    /// Line that has matches.
    Line(Line),
    /// Number of lines with matches in an item.
    Count(ItemId, u64),
}

/// Line of a block, before it is known what was in front of the block.
#[derive(Debug)]
struct RawLine {
    /// Offset in the item; `None`: it begins before the block.
    offset: Option<u64>,
    /// Line ends in the block in front of it.
    number: u64,
    text_offset: u64,
    text: Vec<u8>,
    matches: Vec<(u64, u64)>,
}

/// Lines of a block.
#[derive(Debug, Default)]
pub struct Partial {
    lines: Vec<RawLine>,
    /// Line ends in the block, if lines are counted.
    line_ends: u64,
    /// Offset behind the last line end of the block.
    last_line: Option<u64>,
    /// End of the last match, also of one that no line keeps.
    matched: Option<u64>,
}

/// State of an item.
#[derive(Debug, Default)]
pub struct State {
    count: u64,
    /// Line ends so far.
    line_ends: u64,
    /// Offset of the line at which the next block begins.
    line: u64,
    /// End of the last match.
    matched: Option<u64>,
    /// Line that further matches may belong to.
    pending: Option<Line>,
}

impl Search {
    /// Makes a search of its options.
    pub fn new(options: SearchOptions) -> Result<Self> {
        if options.patterns.is_empty() {
            return Err(Failure::usage("there is no pattern to search for"));
        }
        let patterns: Vec<String> = if options.syntax == Syntax::Hex {
            options.patterns.iter().map(|pattern| bytes_pattern(pattern)).collect::<Result<_>>()?
        } else {
            options.patterns.clone()
        };
        let mut builder = RegexMatcherBuilder::new();
        builder.multi_line(true).unicode(true).octal(false);
        builder
            .case_insensitive(options.ignore_case)
            .word(options.word)
            .fixed_strings(options.syntax == Syntax::Text);
        if options.syntax != Syntax::Hex {
            builder.line_terminator(Some(b'\n'));
        }
        let wrong = |error: &dyn ToString| {
            let text = error.to_string();
            Failure::usage(format_args!("cannot understand the pattern: {}", text.trim()))
                .advice("take -F for plain text, or --hex for bytes")
        };
        let are_words = options.syntax == Syntax::Text
            && patterns.len() > 1
            && !options.ignore_case
            && !options.word
            && patterns.iter().all(|pattern| !pattern.is_empty() && !pattern.contains('\n'));
        let engine = if are_words {
            let mut words = AhoCorasick::builder();
            let words = words.match_kind(MatchKind::LeftmostFirst).build(&patterns);
            Engine::Words(words.map_err(|error| wrong(&error))?)
        } else {
            Engine::Regex(builder.build_many(&patterns).map_err(|error| wrong(&error))?)
        };
        let mut longest = 0;
        for pattern in &patterns {
            let pattern =
                if options.syntax == Syntax::Text { regex_syntax::escape(pattern) } else { pattern.clone() };
            let mut parser = ParserBuilder::new();
            let parser = parser.utf8(false).multi_line(true).case_insensitive(options.ignore_case);
            let length = parser.build().parse(&pattern).ok().and_then(|hir| hir.properties().maximum_len());
            longest = longest.max(length.unwrap_or(MOST_MATCH));
        }
        // Four bytes more: the character behind a word.
        let behind = (longest.min(16 * MOST_MATCH) + 4).max(SHOWN);
        Ok(Self { engine, options, behind })
    }

    fn numbers(&self) -> bool {
        self.options.wanted == Wanted::NumberedLines
    }

    fn counts(&self) -> bool {
        self.options.wanted == Wanted::Counts
    }

    /// Finds the lines of a block from a place in its own range on. An empty match at `matched`, the end of the match before,
    /// is none: so it is inside a block.
    fn lines(&self, block: &Block<'_>, from: usize, matched: Option<u64>) -> Result<Partial, ModuleError> {
        let (numbers, counts) = (self.numbers(), self.counts());
        let bytes = block.bytes;
        let own = &block.own;
        let mut partial = Partial { matched, ..Partial::default() };
        if numbers {
            partial.line_ends = memchr::memchr_iter(b'\n', block.own_bytes()).count() as u64;
        }
        let last = memchr::memrchr(b'\n', block.own_bytes());
        partial.last_line = last.map(|at| block.offset + (own.start + at) as u64 + 1);
        // End of the line found last, and the place up to which line ends were counted.
        let (mut line_end, mut counted, mut line_ends) = (from, own.start, 0);
        self.engine.find_at(bytes, from, |at, end| {
            let in_line = at < own.end || (block.last && at == own.end && at > 0 && bytes[at - 1] != b'\n');
            if !in_line {
                return false;
            }
            let span = (block.offset + at as u64, block.offset + end as u64);
            if at == end && partial.matched == Some(span.1) {
                return true;
            }
            partial.matched = Some(span.1);
            match partial.lines.last_mut() {
                Some(line)
                    if at <= line_end && memchr::memchr(b'\n', &bytes[at.min(line_end)..at]).is_none() =>
                {
                    if line.matches.len() < MOST_MATCHES {
                        line.matches.push(span);
                    }
                }
                _ => {
                    if numbers && at > counted {
                        line_ends += memchr::memchr_iter(b'\n', &bytes[counted..at]).count() as u64;
                        counted = at;
                    }
                    let start = memchr::memrchr(b'\n', &bytes[..at]).map(|end| end + 1);
                    let start = start.or_else(|| (block.offset == 0).then_some(0));
                    let text_start = start.unwrap_or(0).max(at.saturating_sub(SHOWN));
                    line_end = memchr::memchr(b'\n', &bytes[end..]).map_or(bytes.len(), |found| end + found);
                    let text_end = line_end.min(end + SHOWN);
                    let text = if counts { &[] } else { &bytes[text_start..text_end] };
                    partial.lines.push(RawLine {
                        offset: start.map(|start| block.offset + start as u64),
                        number: line_ends,
                        text_offset: block.offset + text_start as u64,
                        text: text.to_vec(),
                        matches: vec![span],
                    });
                }
            }
            self.options.most.is_none_or(|most| partial.lines.len() as u64 <= most)
        })?;
        Ok(partial)
    }

    fn push(&self, state: &mut State, out: &mut Outputs<Hit>) -> Flow {
        if let Some(line) = state.pending.take() {
            state.count += 1;
            if !self.counts() {
                out.push(Hit::Line(line));
            }
        }
        if self.options.most.is_some_and(|most| state.count >= most) { Flow::Enough } else { Flow::Continue }
    }
}

impl Module for Search {
    type Worker = ();
    type Partial = Partial;
    type State = State;
    type Output = Hit;

    fn division(&self) -> Division {
        Division::Blocks { before: SHOWN, behind: self.behind }
    }

    fn worker(&self) -> Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), block: &Block<'_>) -> Result<Partial, ModuleError> {
        self.lines(block, block.own.start, None)
    }

    fn start(&self, _: &Item<'_>) -> Result<State, ModuleError> {
        Ok(State::default())
    }

    fn fold(
        &self,
        state: &mut State,
        block: &Block<'_>,
        mut partial: Partial,
        out: &mut Outputs<Hit>,
    ) -> Result<Flow, ModuleError> {
        let first = partial.lines.first().and_then(|line| line.matches.first()).copied();
        if let (Some(matched), Some((from, end))) = (state.matched, first)
            && (from < matched || end == matched)
        {
            // The last match of the block before reaches into this one, or ends where an empty one begins.
            let from = (matched - block.offset) as usize;
            partial = self.lines(block, from.min(block.own.end), Some(matched))?;
        }
        state.matched = partial.matched.or(state.matched);
        let before = state.line_ends;
        for raw in partial.lines {
            let offset = raw.offset.unwrap_or(state.line);
            match &mut state.pending {
                Some(line) if line.offset == offset => {
                    let room = MOST_MATCHES.saturating_sub(line.matches.len());
                    line.matches.extend(raw.matches.into_iter().take(room));
                }
                _ => {
                    if self.push(state, out) == Flow::Enough {
                        return Ok(Flow::Enough);
                    }
                    state.pending = Some(Line {
                        item: block.item.id(),
                        offset,
                        number: self.numbers().then_some(before + raw.number + 1),
                        text_offset: raw.text_offset,
                        text: raw.text,
                        matches: raw.matches,
                    });
                }
            }
        }
        state.line_ends += partial.line_ends;
        state.line = partial.last_line.unwrap_or(state.line);
        Ok(Flow::Continue)
    }

    fn end(&self, item: &Item<'_>, mut state: State, out: &mut Outputs<Hit>) -> Result<(), ModuleError> {
        self.push(&mut state, out);
        if self.counts() && state.count > 0 {
            out.push(Hit::Count(item.id(), state.count));
        }
        Ok(())
    }
}

/// Regular expression of bytes in hexadecimal digits, with spaces or colons between them.
fn bytes_pattern(text: &str) -> Result<String> {
    let digits: String = text.chars().filter(|letter| !matches!(letter, ' ' | ':')).collect();
    let is_hex = digits.len().is_multiple_of(2) && digits.chars().all(|digit| digit.is_ascii_hexdigit());
    let is_hex = is_hex && !digits.is_empty();
    if !is_hex {
        return Err(Failure::usage(format_args!("`{text}` is no pattern of bytes"))
            .at("--hex")
            .advice("write pairs of hexadecimal digits, such as \"de ad be ef\""));
    }
    let mut pattern = "(?-u)".to_owned();
    for pair in digits.as_bytes().chunks(2) {
        pattern.push_str("\\x");
        pattern.extend(pair.iter().map(|digit| char::from(*digit)));
    }
    Ok(pattern)
}
