//! Lines of a file with their numbers, each of a bounded length. A byte order mark of UTF-8 is left out.

use super::LineError;
use holdfast_base::failure::reason;
use std::io::{BufRead, Read as _};

/// Bytes of one line, or of one record of CSV with line feeds in it: bounds the memory of an import.
pub(super) const MOST_LINE: usize = 1 << 20;

/// Byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reader of lines of JSON.
pub(super) struct Lines<R> {
    reader: R,
    /// Line that was read in advance.
    ahead: Option<String>,
    /// Number of the line that was read last.
    number: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, ahead: None, number: 0 }
    }

    /// First byte of the first line that is not blank; the line stays unread.
    pub(super) fn first(&mut self) -> Result<Option<u8>, LineError> {
        while self.ahead.as_ref().is_none_or(|line| line.trim().is_empty()) {
            self.ahead = self.read()?;
            if self.ahead.is_none() {
                return Ok(None);
            }
        }
        Ok(self.ahead.as_ref().and_then(|line| line.trim_start().bytes().next()))
    }

    /// Next line with its line feed; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<String>, LineError> {
        match self.ahead.take() {
            Some(line) => Ok(Some(line)),
            None => self.read(),
        }
    }

    /// Number of the line that was read last, from 1.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Error of the line that was read last.
    pub(super) fn error(&self, reason: impl Into<String>) -> LineError {
        LineError { line: self.number.max(1), reason: reason.into() }
    }

    fn read(&mut self) -> Result<Option<String>, LineError> {
        let mut line = Vec::new();
        let read = self.reader.by_ref().take(MOST_LINE as u64 + 1).read_until(b'\n', &mut line);
        if !matches!(read, Ok(0)) {
            self.number += 1;
        }
        match read {
            Ok(0) => return Ok(None),
            Ok(_) if line.len() > MOST_LINE => {
                return Err(self.error(format!("it is longer than {MOST_LINE} bytes; split it")));
            }
            Ok(_) => {}
            Err(error) => return Err(self.error(format!("it cannot be read ({})", reason(&error)))),
        }
        if self.number == 1 && line.starts_with(MARK) {
            line.drain(..MARK.len());
        }
        String::from_utf8(line).map(Some).map_err(|_| self.error("it is not UTF-8; convert the file"))
    }
}
