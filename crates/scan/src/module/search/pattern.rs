//! Patterns: compiled regular expressions and literals, and the facts about them that the division of an item rests on.

use crate::module::ModuleError;
use crate::module::search::{SearchOptions, Syntax};
use aho_corasick::{AhoCorasick, MatchKind};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use holdfast_base::failure::{Failure, Result};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Look;

/// Engine of a search.
#[derive(Clone, Debug)]
enum Engine {
    Regex(RegexMatcher),
    /// Many words: searched by their rare bytes where they have some in common, which the other engine does not.
    Words(AhoCorasick),
}

/// Compiled patterns, of which one must match.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    engine: Engine,
    /// True if the pattern asks for the begin or the end of a text, which is that of a line.
    pub(super) is_by_line: bool,
    /// Bytes of a match at most; `None`: no limit.
    pub(super) longest: Option<usize>,
    /// True if the pattern asks for the byte behind a match.
    pub(super) looks_behind: bool,
}

impl Pattern {
    pub(super) fn new(options: &SearchOptions) -> Result<Self> {
        if options.patterns.is_empty() {
            return Err(Failure::usage("there is no pattern to search for"));
        }
        let is_hex = options.syntax == Syntax::Hex;
        let patterns: Vec<String> = if is_hex {
            options.patterns.iter().map(|pattern| bytes_pattern(pattern)).collect::<Result<_>>()?
        } else {
            options.patterns.clone()
        };
        let wrong = |error: &dyn ToString| {
            let text = error.to_string();
            Failure::usage(format_args!("cannot understand the pattern: {}", text.trim()))
                .advice("take -F for plain text, or --hex for bytes")
        };
        let are_words = options.syntax == Syntax::Text
            && patterns.len() > 1
            && !options.ignore_case
            && !options.word
            && !options.whole_line
            && patterns.iter().all(|pattern| !pattern.is_empty() && !pattern.contains('\n'));
        let mut is_by_line = false;
        let engine = if are_words {
            let mut words = AhoCorasick::builder();
            let words = words.match_kind(MatchKind::LeftmostFirst).build(&patterns);
            Engine::Words(words.map_err(|error| wrong(&error))?)
        } else {
            let mut builder = RegexMatcherBuilder::new();
            builder.multi_line(true).unicode(true).octal(false);
            builder
                .case_insensitive(options.ignore_case)
                .word(options.word)
                .whole_line(options.whole_line)
                .fixed_strings(options.syntax == Syntax::Text);
            if !is_hex {
                builder.line_terminator(Some(b'\n'));
            }
            let matcher = builder.build_many(&patterns).map_err(|error| wrong(&error))?;
            is_by_line = !is_hex && matcher.line_terminator().is_none();
            Engine::Regex(matcher)
        };
        let (longest, looks_behind) = facts(&patterns, options);
        Ok(Self { engine, is_by_line, longest, looks_behind })
    }

    /// Finds the first match that begins at a place or behind it.
    pub(super) fn find(
        &self,
        bytes: &[u8],
        from: usize,
    ) -> std::result::Result<Option<(usize, usize)>, ModuleError> {
        if from > bytes.len() {
            return Ok(None);
        }
        match &self.engine {
            Engine::Regex(matcher) => matcher
                .find_at(bytes, from)
                .map(|found| found.map(|found| (found.start(), found.end())))
                .map_err(|error| ModuleError(error.to_string())),
            Engine::Words(words) => {
                let found = words.find(aho_corasick::Input::new(bytes).range(from..));
                Ok(found.map(|found| (found.start(), found.end())))
            }
        }
    }

    /// Finds the first match as `find` does; each line is a text of its own where the pattern asks for that.
    pub(super) fn find_in_lines(
        &self,
        bytes: &[u8],
        mut from: usize,
    ) -> std::result::Result<Option<(usize, usize)>, ModuleError> {
        if !self.is_by_line {
            return self.find(bytes, from);
        }
        while from <= bytes.len() {
            let start = memchr::memrchr(b'\n', &bytes[..from]).map_or(0, |at| at + 1);
            let end = memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |at| from + at);
            if let Some((at, behind)) = self.find(&bytes[start..end], from - start)? {
                return Ok(Some((start + at, start + behind)));
            }
            from = end + 1;
        }
        Ok(None)
    }
}

/// Matches of a range of bytes one after the other; an empty match at the end of the one before is none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walk {
    /// Place from which the next match is looked for.
    pub(super) at: usize,
    /// End of the last match.
    pub(super) matched: Option<usize>,
}

impl Walk {
    /// Steps to the next match.
    pub(super) fn next(
        &mut self,
        mut find: impl FnMut(usize) -> std::result::Result<Option<(usize, usize)>, ModuleError>,
    ) -> std::result::Result<Option<(usize, usize)>, ModuleError> {
        loop {
            let Some((from, end)) = find(self.at)? else { return Ok(None) };
            self.at = if from == end { end + 1 } else { end };
            if from == end && self.matched == Some(end) {
                continue;
            }
            self.matched = Some(end);
            return Ok(Some((from, end)));
        }
    }
}

/// Length of the longest match, and true if a match depends on the byte behind it.
fn facts(patterns: &[String], options: &SearchOptions) -> (Option<usize>, bool) {
    let mut longest = Some(0);
    let mut looks_behind = options.word || options.whole_line;
    for pattern in patterns {
        let pattern =
            if options.syntax == Syntax::Text { regex_syntax::escape(pattern) } else { pattern.clone() };
        let mut parser = ParserBuilder::new();
        let parser = parser.utf8(false).multi_line(true).case_insensitive(options.ignore_case);
        let hir = parser.build().parse(&pattern).ok();
        let properties = hir.as_ref().map(regex_syntax::hir::Hir::properties);
        let length = properties.and_then(regex_syntax::hir::Properties::maximum_len);
        longest = longest.zip(length).map(|(longest, length)| longest.max(length));
        let begins = |look| matches!(look, Look::Start | Look::StartLF);
        looks_behind |= properties.is_none_or(|properties| !properties.look_set().iter().all(begins));
    }
    (longest, looks_behind)
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
