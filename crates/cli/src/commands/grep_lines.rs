//! Lines of `holdfast grep` for people: name, place and text, with colours where they are wanted.

use crate::item_name;
use crate::out::Out;
use holdfast_base::failure::Result;
use holdfast_scan::{ItemId, Line};
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};

/// Bytes of a line that is no text which are shown on each side of its first match.
const AROUND: usize = 48;

/// Colours of GNU grep.
const NAME: &str = "35";
const NUMBER: &str = "32";
const SEPARATOR: &str = "36";
const MATCH: &str = "1;31";

/// Use of colours in the output.
#[derive(clap::ValueEnum, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Colour {
    /// Only if standard output is a terminal.
    #[default]
    Auto,
    /// Also in files and pipes.
    Always,
    /// Not even on a terminal.
    Never,
}

/// Printer of results of a search.
pub(super) struct Printer {
    has_colours: bool,
    /// True if a NUL follows each name, which is printed as it is.
    is_null: bool,
}

impl Printer {
    pub(super) fn new(colour: Colour, is_null: bool) -> Self {
        let has_colours = match colour {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
                    || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                io::stdout().is_terminal() && !is_plain
            }
        };
        Self { has_colours, is_null }
    }

    /// Prints the name of an item alone.
    pub(super) fn name(&self, item: &ItemId, out: &mut Out) -> Result<()> {
        let mut line = self.named(item, "");
        if !self.is_null {
            line.push(b'\n');
        }
        out.bytes(&line)
    }

    /// Prints the number of lines of an item.
    pub(super) fn count(&self, item: &ItemId, lines: u64, out: &mut Out) -> Result<()> {
        let space = if self.is_null { "" } else { " " };
        out.line_of(&self.named(item, ":"), format_args!("{space}{lines}"))
    }

    /// Prints a line, or the part around its first match.
    pub(super) fn line(&self, line: &Line, out: &mut Out) -> Result<()> {
        let is_text = std::str::from_utf8(&line.text).is_ok_and(|text| !text.chars().any(is_control));
        let (from, end) = line.matches.first().copied().unwrap_or_default();
        let at = |offset: u64| (offset.saturating_sub(line.text_offset) as usize).min(line.text.len());
        let shown = if is_text {
            0..line.text.len()
        } else {
            let start = at(from).saturating_sub(AROUND);
            start..(at(end) + AROUND).clamp(start, line.text.len())
        };
        let mut text = String::new();
        let mut done = shown.start;
        if self.has_colours {
            for (from, end) in &line.matches {
                let (from, end) = (at(*from).max(done), at(*end).min(shown.end));
                if from < end {
                    text.push_str(&escaped(&line.text[done..from]));
                    text.push_str(&self.painted(MATCH, &escaped(&line.text[from..end])));
                    done = end;
                }
            }
        }
        text.push_str(&escaped(&line.text[done..shown.end]));
        out.line_of(&self.place(line, line.offset), text)
    }

    /// Prints the matches of a line, a line each.
    pub(super) fn matches(&self, line: &Line, out: &mut Out) -> Result<()> {
        for (from, end) in &line.matches {
            let at = |offset: u64| (offset.saturating_sub(line.text_offset) as usize).min(line.text.len());
            let text = self.painted(MATCH, &escaped(&line.text[at(*from)..at(*end)]));
            out.line_of(&self.place(line, *from), text)?;
        }
        Ok(())
    }

    /// Place of a hit: an element has its ordinal, and a file the offset or the line.
    fn place(&self, line: &Line, offset: u64) -> Vec<u8> {
        let separator = ":";
        let mut place = self.named(&line.item, separator);
        let number = line.number.or_else(|| line.item.ordinal.is_none().then_some(offset));
        if let Some(number) = number {
            place.extend_from_slice(self.painted(NUMBER, &number.to_string()).as_bytes());
            place.extend_from_slice(self.painted(SEPARATOR, separator).as_bytes());
        }
        if number.is_some() || !self.is_null {
            place.push(b' ');
        }
        place
    }

    /// Name of an item, and the separator or NUL behind it.
    fn named(&self, item: &ItemId, separator: &str) -> Vec<u8> {
        let mut named = if self.is_null { item.name() } else { item_name::shown(item) };
        if self.has_colours {
            named = [format!("\x1b[{NAME}m").as_bytes(), &named, b"\x1b[m"].concat();
        }
        if self.is_null {
            named.push(0);
        } else if !separator.is_empty() {
            named.extend_from_slice(self.painted(SEPARATOR, separator).as_bytes());
        }
        named
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        if self.has_colours { format!("\x1b[{colour}m{text}\x1b[m") } else { text.to_owned() }
    }
}

fn is_control(letter: char) -> bool {
    letter.is_control() && letter != '\t' && letter != '\r'
}

/// Bytes as text: control characters and bytes that are no UTF-8 as `\xNN`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if is_control(letter) {
                for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
                    let _ = write!(text, "\\x{byte:02x}");
                }
            } else {
                text.push(letter);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}
