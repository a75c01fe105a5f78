//! Position in a text that is being parsed, for errors that name it. The meaning of the text is not known here.

use crate::{Problem, SchemaError};

/// Characters of a text that an error repeats.
const SHOWN: usize = 120;

/// A text and how far it has been read.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// What has not been read.
    pub(crate) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// How far it has been read, to go back to.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn is_done(&self) -> bool {
        self.rest().is_empty()
    }

    /// Reads `token` if it is next.
    pub(crate) fn eat(&mut self, token: &str) -> bool {
        let next = self.rest().starts_with(token);
        if next {
            self.at += token.len();
        }
        next
    }

    /// Reads `token`, which must be next.
    pub(crate) fn expect(&mut self, token: &str, wanted: &'static str) -> Result<(), SchemaError> {
        if self.eat(token) { Ok(()) } else { Err(self.wrong(Problem::Wanted(wanted))) }
    }

    /// Reads as long as characters are such.
    pub(crate) fn take_while(&mut self, such: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !such(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Reads one character.
    pub(crate) fn next(&mut self) -> Option<char> {
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Reads a number of decimal digits that a `T` can be.
    pub(crate) fn number<T: std::str::FromStr>(&mut self, wanted: &'static str) -> Result<T, SchemaError> {
        let at = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        digits.parse().map_err(|_| self.wrong_at(at, Problem::Wanted(wanted)))
    }

    /// The error that something is wrong here.
    pub(crate) fn wrong(&self, problem: Problem) -> SchemaError {
        self.wrong_at(self.at, problem)
    }

    /// The error that something is wrong where it was before.
    pub(crate) fn wrong_at(&self, at: usize, problem: Problem) -> SchemaError {
        let column = self.text.char_indices().take_while(|(byte, _)| *byte < at).count() + 1;
        let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        let mut text: String = self.text.chars().take(SHOWN).map(visible).collect();
        if self.text.chars().nth(SHOWN).is_some() {
            text.push('…');
        }
        SchemaError { text, column, problem }
    }
}
