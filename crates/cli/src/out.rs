//! What commands say: to people in aligned columns, to programs as JSON, one object a line.

use holdfast_base::failure::{Failure, Kind, Result, reason};
pub(crate) use holdfast_base::{clean, counted, grouped};
use serde::Serialize;
use std::fmt;
use std::io::{self, BufWriter, Write};

/// Standard output, and in which form to fill it.
pub(crate) struct Out {
    json: bool,
    to: BufWriter<Box<dyn Write>>,
}

impl Out {
    /// The program's standard output.
    pub(crate) fn stdout(json: bool) -> Self {
        Self::to(json, Box::new(io::stdout()))
    }

    /// The program's standard error: for what is said beside data on standard output.
    pub(crate) fn stderr(json: bool) -> Self {
        Self::to(json, Box::new(io::stderr()))
    }

    fn to(json: bool, to: Box<dyn Write>) -> Self {
        Self { json, to: BufWriter::new(to) }
    }

    /// Whether a program listens.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// One object on a line of its own.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<()> {
        let written = serde_json::to_writer(&mut self.to, object).map_err(io::Error::from);
        written.and_then(|()| self.to.write_all(b"\n")).map_err(|error| broken(&error))
    }

    /// A line for people.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> Result<()> {
        writeln!(self.to, "{line}").map_err(|error| broken(&error))
    }

    /// A table for people.
    pub(crate) fn table(&mut self, table: &Table) -> Result<()> {
        write!(self.to, "{table}").map_err(|error| broken(&error))
    }

    /// The only object that is said there.
    pub(crate) fn last(mut self, object: &impl Serialize) -> Result<()> {
        self.object(object)?;
        self.flush()
    }

    /// Lets go what is waiting.
    pub(crate) fn flush(&mut self) -> Result<()> {
        self.to.flush().map_err(|error| broken(&error))
    }
}

/// An error of an output: one whose reader has left (`… | head`) is no failure.
pub(crate) fn broken(error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return Failure::said(Kind::Done);
    }
    Failure::failed(format_args!("cannot write: {}", reason(error))).at("standard output")
}

/// Which side a column leans to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// Rows of cells that stand below each other.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| clean(&cell)).collect());
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |at: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
            cells.chain(std::iter::once(self.columns[at].0.chars().count())).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let heads: Vec<String> = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let line: Vec<String> = cells
                .map(|((cell, (_, side)), width)| match side {
                    Side::Left => format!("{cell:<width$}"),
                    Side::Right => format!("{cell:>width$}"),
                })
                .collect();
            writeln!(f, "{}", line.join("  ").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_stand_in_columns_and_do_not_move_the_cursor() {
        let mut table =
            Table::new(&[("stream", Side::Left), ("elements", Side::Right), ("note", Side::Left)]);
        table.row(["eth0".to_owned(), grouped(1_234_567), "a".to_owned()]);
        table.row(["\u{1b}[2Jü".to_owned(), grouped(7), String::new()]);
        assert_eq!(
            table.to_string(),
            "stream       elements  note\n\
             eth0        1 234 567  a\n\
             \\u{1b}[2Jü          7\n"
        );
    }
}
