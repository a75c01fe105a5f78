//! Output of selected lines: counts, numbers, lines of context, and texts. Blocks come in the order of the item.

use crate::item::Item;
use crate::module::search::lines::{Cursor, Detail, FoundLines, LineFinder, line_end, line_start};
use crate::module::search::{Hit, Line, SearchOptions};
use crate::module::{Block, Flow, ModuleError, Outputs};
use std::collections::VecDeque;

/// Bytes of a line that are shown on each side of its first match.
pub(super) const SHOWN: usize = 4096;

/// State of an item whose blocks are lines.
#[derive(Debug, Default)]
pub(super) struct LineState {
    /// Number of selected lines.
    pub(super) count: u64,
    /// Line ends in front of the present block.
    pub(super) line_ends: u64,
    /// Offset of the line that was selected last.
    selected: Option<u64>,
    /// Offset behind the line that was told last.
    told: Option<u64>,
    /// Lines of context that are still to be told.
    pub(super) after: usize,
    /// Last lines, which become context if the next one is selected.
    pub(super) before: VecDeque<Line>,
    /// Line that is divided into pieces.
    pub(super) long: Option<super::long_line::LongLine>,
}

/// Wishes of a search concerning its output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Teller<'a> {
    pub(super) options: &'a SearchOptions,
    pub(super) finder: LineFinder<'a>,
}

/// Lines of a block behind those that were told.
struct Passed {
    /// Begin of the next line, from the block's first byte on.
    at: usize,
    number: u64,
}

impl Teller<'_> {
    /// Tells the selected lines of a block.
    pub(super) fn block(
        &self,
        state: &mut LineState,
        block: &Block<'_>,
        mut found: FoundLines,
        line_ends: u64,
        out: &mut Outputs<'_, Hit>,
    ) -> Result<Flow, ModuleError> {
        let mut passed = Passed { at: block.own.start, number: state.line_ends + 1 };
        loop {
            state.count += found.count;
            for line in &found.lines {
                let offset = block.offset + u64::from(line.line.start);
                let number = state.line_ends + line.line_ends + 1;
                if state.selected != Some(offset) {
                    if self.is_enough(state) {
                        break;
                    }
                    self.select(state, block, &mut passed, line.line.start as usize, number, out);
                    passed = Passed { at: line.line.end as usize + 1, number: number + 1 };
                }
                let matches = &found.matches[line.matches.start as usize..line.matches.end as usize];
                let bytes = line.line.start as usize..line.line.end as usize;
                self.line(state, block, (bytes, number), matches, out);
            }
            match found.rest.take() {
                Some(rest) if !self.is_enough(state) || self.finder.detail == Detail::Matches => {
                    found = self.finder.find(block, rest)?;
                    let is_next = |line: &super::lines::Found| {
                        state.selected != Some(block.offset + u64::from(line.line.start))
                    };
                    if self.is_enough(state) && found.lines.first().is_none_or(is_next) {
                        break;
                    }
                }
                _ => break,
            }
        }
        self.context_after(state, block, &mut passed, block.own.end, out);
        self.remember(state, block, &passed, line_ends);
        state.line_ends += line_ends;
        Ok(if self.is_enough(state) && state.after == 0 { Flow::Enough } else { Flow::Continue })
    }

    /// True if no more lines are to be selected.
    pub(super) fn is_enough(&self, state: &LineState) -> bool {
        self.options.most.is_some_and(|most| state.count >= most)
    }

    fn shows_context(&self) -> bool {
        self.finder.detail != Detail::Count && self.options.before + self.options.after > 0
    }

    /// Counts a selected line, and tells the context in front of it.
    fn select(
        &self,
        state: &mut LineState,
        block: &Block<'_>,
        passed: &mut Passed,
        start: usize,
        number: u64,
        out: &mut Outputs<'_, Hit>,
    ) {
        self.context_after(state, block, passed, start, out);
        if self.shows_context() && self.options.before > 0 {
            let bytes = block.bytes;
            let (mut from, mut lines) = (start, 0);
            while from > passed.at && lines < self.options.before {
                from = line_start(bytes, from - 1, passed.at);
                lines += 1;
            }
            let kept = state.before.len().saturating_sub(self.options.before - lines);
            for line in std::mem::take(&mut state.before).into_iter().skip(kept) {
                tell(state, line, out);
            }
            *passed = Passed { at: from, number: number - lines as u64 };
            while passed.at < start {
                self.context(state, block, passed, out);
            }
        }
        self.begin_selected(state, block.offset + start as u64);
    }

    /// Counts a selected line.
    pub(super) fn begin_selected(&self, state: &mut LineState, offset: u64) {
        state.before.clear();
        state.count += 1;
        state.selected = Some(offset);
        state.after = if self.shows_context() { self.options.after } else { 0 };
    }

    /// Tells the context that is due behind a selected line.
    fn context_after(
        &self,
        state: &mut LineState,
        block: &Block<'_>,
        passed: &mut Passed,
        end: usize,
        out: &mut Outputs<'_, Hit>,
    ) {
        while state.after > 0 && passed.at < end {
            state.after -= 1;
            self.context(state, block, passed, out);
        }
    }

    /// Tells a line of context, and passes it.
    fn context(
        &self,
        state: &mut LineState,
        block: &Block<'_>,
        passed: &mut Passed,
        out: &mut Outputs<'_, Hit>,
    ) {
        let end = line_end(block.bytes, passed.at);
        let line = self.context_line(block, passed.at..end, passed.number);
        *passed = Passed { at: end + 1, number: passed.number + 1 };
        tell(state, line, out);
    }

    fn context_line(&self, block: &Block<'_>, line: std::ops::Range<usize>, number: u64) -> Line {
        let offset = block.offset + line.start as u64;
        Line {
            item: block.item.id(),
            offset,
            number: self.finder.numbers.then_some(number),
            text_offset: offset,
            text: block.bytes[line.start..line.end.min(line.start + 2 * SHOWN)].to_vec(),
            matches: Vec::new(),
            end: block.offset + line.end as u64,
            is_context: true,
            follows: false,
        }
    }

    /// Remembers the last lines of a block as context of a line of the next one.
    fn remember(&self, state: &mut LineState, block: &Block<'_>, passed: &Passed, line_ends: u64) {
        if !self.shows_context() || self.options.before == 0 || block.last {
            return;
        }
        let mut number = state.line_ends + line_ends + 1;
        let mut lines = VecDeque::new();
        let mut end = block.own.end;
        while end > passed.at && lines.len() < self.options.before {
            number -= 1;
            let start = line_start(block.bytes, end - 1, passed.at);
            lines.push_front(self.context_line(block, start..end - 1, number));
            end = start;
        }
        if passed.at > block.own.start {
            state.before.clear();
        }
        state.before.append(&mut lines);
        while state.before.len() > self.options.before {
            state.before.pop_front();
        }
    }

    /// Tells a selected line, or its matches.
    fn line(
        &self,
        state: &mut LineState,
        block: &Block<'_>,
        (line, number): (std::ops::Range<usize>, u64),
        matches: &[(u32, u32)],
        out: &mut Outputs<'_, Hit>,
    ) {
        let offset = |at: usize| block.offset + at as u64;
        let told = |text: std::ops::Range<usize>, matches: Vec<(u64, u64)>| Line {
            item: block.item.id(),
            offset: offset(line.start),
            number: self.finder.numbers.then_some(number),
            text_offset: offset(text.start),
            text: block.bytes[text].to_vec(),
            matches,
            end: offset(line.end),
            is_context: false,
            follows: false,
        };
        let places = |(from, end): &(u32, u32)| (*from as usize, *end as usize);
        if self.finder.detail == Detail::Matches {
            for (from, end) in matches.iter().map(places) {
                tell(state, told(from..end, vec![(offset(from), offset(end))]), out);
            }
            return;
        }
        let (from, end) = matches.first().map_or((line.start, line.start + SHOWN), places);
        let text = line.start.max(from.saturating_sub(SHOWN))..line.end.min(end + SHOWN);
        let matches = matches.iter().map(places).map(|(from, end)| (offset(from), offset(end))).collect();
        tell(state, told(text, matches), out);
    }

    /// Keeps a line as context of the next one.
    pub(super) fn remember_line(&self, state: &mut LineState, line: Line) {
        if self.shows_context() && self.options.before > 0 {
            state.before.push_back(line);
            while state.before.len() > self.options.before {
                state.before.pop_front();
            }
        }
    }

    /// Tells the end of an item.
    pub(super) fn end(&self, item: &Item<'_>, state: &LineState, out: &mut Outputs<'_, Hit>) {
        if self.finder.detail == Detail::Count && (state.count > 0 || self.options.wanted.is_all()) {
            let count = self.options.most.map_or(state.count, |most| state.count.min(most));
            out.push(Hit::Count(item.id(), count));
        }
    }

    /// Finds the selected lines of a block.
    pub(super) fn examine(&self, block: &Block<'_>) -> Result<FoundLines, ModuleError> {
        self.finder.find(block, Cursor::begin(block))
    }
}

/// Tells a line of output.
pub(super) fn tell(state: &mut LineState, mut line: Line, out: &mut Outputs<'_, Hit>) {
    line.follows = state.told.is_some_and(|told| told >= line.offset);
    state.told = Some(line.end + 1);
    let bytes = line.text.len() + 16 * line.matches.len();
    out.push_sized(Hit::Line(line), bytes);
}
