//! Output of commands: to people in aligned columns, to programs as JSON, one object a line.

use holdfast_base::failure::{Failure, Kind, Result, reason};
use holdfast_client::Notices;
use holdfast_client::table::Table;
use serde::Serialize;
use std::fmt;
use std::io::{self, BufWriter, Write};

/// Standard output, and in which form to fill it.
pub(crate) struct Out {
    json: bool,
    to: BufWriter<Box<dyn Write + Send>>,
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

    fn to(json: bool, to: Box<dyn Write + Send>) -> Self {
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

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.to.write_all(bytes).map_err(|error| broken(&error))
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
    let failure = Failure::failed(format_args!("cannot write: {}", reason(error))).at("standard output");
    if error.kind() == io::ErrorKind::StorageFull { failure.advice("make room") } else { failure }
}

/// Notices of the libraries, on standard error.
pub(crate) fn notices() -> Notices {
    Notices::new(say)
}

/// Prints a notice or a complaint on standard error.
pub(crate) fn say(text: &str) {
    // Whoever does not listen misses nothing else.
    let _ = writeln!(io::stderr(), "holdfast: {text}");
}
