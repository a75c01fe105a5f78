//! CSV of an import (RFC 4180): a head that names the column `path` and attributes, then a record an entry.
//!
//! Cells are typed as the command line types them: a time, a number, a size, or a text.

use super::lines::{Lines, MOST_LINE};
use super::{LineError, Values};
use crate::site::AttributeText;
use holdfast_remote::NewAttribute;
use std::io::BufRead;

/// Name of the column with the paths of the entries.
const PATH: &str = "path";

/// Reader of a CSV file.
pub(super) struct Csv<R> {
    lines: Lines<R>,
    columns: Vec<String>,
}

/// State of a cell that is being read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Empty,
    Plain,
    Quoted,
    /// Behind a quotation mark in a quoted cell: the end of it, or half of a mark in its text.
    Mark,
}

impl<R: BufRead> Csv<R> {
    /// Reads the head of the file.
    pub(super) fn open(lines: Lines<R>) -> Result<Self, LineError> {
        let mut csv = Self { lines, columns: Vec::new() };
        let head = csv.record()?.map(|(_, _, cells)| cells).unwrap_or_default();
        if head.iter().filter(|name| *name == PATH).count() != 1 {
            let reason = "its first line does not name one column `path`; write a head such as `path,target,exposure[s]`";
            return Err(csv.lines.error(reason));
        }
        for name in head.iter().filter(|name| *name != PATH) {
            attribute(name, "1").map_err(|reason| csv.lines.error(format!("the head: {reason}")))?;
        }
        csv.columns = head;
        Ok(csv)
    }

    /// Next record: the number of its first line, its bytes and its values. An empty cell leaves its attribute as it is.
    pub(super) fn next(&mut self) -> Result<Option<(u64, usize, Values)>, LineError> {
        let Some((line, bytes, cells)) = self.record()? else { return Ok(None) };
        let error = |reason| LineError { line, reason };
        if cells.len() != self.columns.len() {
            let (found, wanted) = (cells.len(), self.columns.len());
            return Err(error(format!(
                "it has {found} cells, but the head has {wanted}; quote cells with commas in them"
            )));
        }
        let mut values = Values { path: String::new(), added: Vec::new(), emptied: Vec::new() };
        for (name, cell) in self.columns.iter().zip(cells) {
            if name == PATH {
                values.path = cell;
            } else if !cell.is_empty() {
                values.added.push(attribute(name, &cell).map_err(error)?);
            }
        }
        Ok(Some((line, bytes, values)))
    }

    /// Cells of the next record that is not blank, with the number of its first line and its bytes.
    fn record(&mut self) -> Result<Option<(u64, usize, Vec<String>)>, LineError> {
        let (mut cells, mut text, mut state) = (Vec::new(), String::new(), Cell::Empty);
        let (mut first, mut bytes) = (0, 0);
        loop {
            let Some(line) = self.lines.next()? else {
                if first == 0 {
                    return Ok(None);
                }
                let reason = "a quoted cell has no end; add its quotation mark";
                return Err(LineError { line: first, reason: reason.to_owned() });
            };
            if first == 0 {
                if line.trim().is_empty() {
                    continue;
                }
                first = self.lines.number();
            }
            bytes += line.len();
            if bytes > MOST_LINE {
                let reason =
                    format!("its record is longer than {MOST_LINE} bytes; look for a lost quotation mark");
                return Err(LineError { line: first, reason });
            }
            // The end of a line belongs to the text only within quotation marks.
            let body = line.strip_suffix('\n').unwrap_or(&line);
            let body = body.strip_suffix('\r').unwrap_or(body);
            for letter in body.chars() {
                state = self.letter(state, letter, &mut text, &mut cells)?;
            }
            if state == Cell::Quoted {
                text.push_str(&line[body.len()..]);
            } else {
                cells.push(text);
                return Ok(Some((first, bytes, cells)));
            }
        }
    }

    fn letter(
        &self,
        state: Cell,
        letter: char,
        text: &mut String,
        cells: &mut Vec<String>,
    ) -> Result<Cell, LineError> {
        Ok(match (state, letter) {
            (Cell::Empty | Cell::Plain | Cell::Mark, ',') => {
                cells.push(std::mem::take(text));
                Cell::Empty
            }
            (Cell::Empty, '"') => Cell::Quoted,
            (Cell::Quoted, '"') => Cell::Mark,
            (Cell::Mark, '"') | (Cell::Quoted, _) => {
                text.push(letter);
                Cell::Quoted
            }
            (Cell::Mark, _) => {
                return Err(self
                    .lines
                    .error("a quoted cell goes on behind its end; double the marks in its text"));
            }
            (Cell::Empty | Cell::Plain, _) => {
                text.push(letter);
                Cell::Plain
            }
        })
    }
}

/// Attribute of a cell in a column `NAME` or `NAME[UNIT]`.
fn attribute(column: &str, cell: &str) -> Result<NewAttribute, String> {
    let unit = column.strip_suffix(']').and_then(|column| column.split_once('['));
    let read = match unit {
        Some((name, unit)) if !unit.is_empty() => AttributeText::read(name, cell, Some(unit)),
        _ => AttributeText::read(column, cell, None),
    };
    read.map(|attribute| attribute.request())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open(text: &str) -> Result<Csv<&[u8]>, LineError> {
        let mut lines = Lines::new(text.as_bytes());
        lines.first()?;
        Csv::open(lines)
    }

    fn refused(text: &str) -> LineError {
        let read = open(text).and_then(|mut csv| {
            while csv.next()?.is_some() {}
            Ok(())
        });
        read.unwrap_err()
    }

    #[test]
    fn records_have_line_numbers_and_typed_cells() {
        let text = "\u{feff}path,target,t[s],size\r\n\r\n/a,m31,1.5,2 GB\n/b,\"x \"\"y\"\",\nz\",,\n/c,,,\n";
        let mut csv = open(text).unwrap();
        let mut next = || csv.next().unwrap().map(|(line, _, values)| (line, values));
        let (line, values) = next().unwrap();
        let seen: Vec<_> =
            values.added.iter().map(|new| (&*new.name, new.value.to_string(), new.unit.as_deref())).collect();
        assert_eq!((line, values.path.as_str()), (3, "/a"));
        assert_eq!(
            seen,
            [
                ("target", "\"m31\"".to_owned(), None),
                ("t", "1.5".to_owned(), Some("s")),
                ("size", "2".to_owned(), Some("GB"))
            ]
        );
        let (line, values) = next().unwrap();
        assert_eq!((line, &values.added[0].value), (4, &"x \"y\",\nz".into()));
        let (line, values) = next().unwrap();
        assert_eq!((line, values.added.len()), (6, 0));
        assert!(next().is_none());
    }

    #[test]
    fn other_files_are_refused_with_the_line() {
        for (text, line, reason) in [
            ("", 1, "does not name one column `path`"),
            ("a,b\n", 1, "does not name one column `path`"),
            ("path,path\n", 1, "does not name one column `path`"),
            ("path,\n", 1, "is empty"),
            ("path,a\n/x,1\n/y\n", 3, "1 cells, but the head has 2"),
            ("path,a\n/x,\"1\n/y,2\n", 2, "has no end"),
            ("path,a\n/x,\"1\"2\n", 2, "goes on behind its end"),
            (&format!("path,a\n/x,{}\n", "y".repeat(3000)), 2, "text"),
            (&format!("path,a\n/x,{}\n", "y".repeat(2 << 20)), 2, "longer than"),
            (&format!("path,a\n/x,\"{}\n", "y\n".repeat(1 << 20)), 2, "longer than"),
        ] {
            let error = refused(text);
            assert!(error.line == line && error.reason.contains(reason), "{text:.40}: {error:?}");
            assert!(error.reason.contains("; "), "{error:?}");
        }
        let bytes = Lines::new(&b"path,a\n/x,\xff\n"[..]);
        let error = Csv::open(bytes).unwrap().next().unwrap_err();
        assert!(error.line == 2 && error.reason.contains("UTF-8"), "{error:?}");
    }

    proptest! {
        #[test]
        fn quoted_cells_are_read_as_they_were_written(
            rows in prop::collection::vec(prop::collection::vec("[a\",\n\r;é ]{0,6}", 3), 1..8),
            ends in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let quote = |cell: &String| format!("\"{}\"", cell.replace('"', "\"\""));
            let line = |cells: &Vec<String>| cells.iter().map(quote).collect::<Vec<_>>().join(",") + ends;
            let text: String = rows.iter().map(line).collect();
            let mut csv = Csv { lines: Lines::new(text.as_bytes()), columns: Vec::new() };
            for row in &rows {
                prop_assert_eq!(csv.record().unwrap().unwrap().2, row.clone());
            }
            prop_assert_eq!(csv.record().unwrap(), None);
        }
    }
}
