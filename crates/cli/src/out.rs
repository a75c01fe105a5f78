//! Output of commands: to people in aligned columns, to programs as JSON, one object a line. A command that changes
//! something finishes its work even if its output is lost.

use crate::commands::Effect;
use holdfast_base::failure::{Failure, Kind, Result, reason};
use holdfast_client::Notices;
use holdfast_client::table::Table;
use serde::Serialize;
use std::fmt;
use std::io::{self, BufWriter, Write};

/// Standard output, and in which form to fill it.
pub(crate) struct Out {
    json: bool,
    effect: Effect,
    to: BufWriter<Box<dyn Write + Send>>,
    /// First failure of the output of a command that goes on without it.
    lost: Option<Failure>,
}

impl Out {
    /// Standard output of a command with this effect.
    pub(crate) fn stdout(effect: Effect, json: bool) -> Self {
        Self::to(effect, json, Box::new(io::stdout()))
    }

    /// Standard error, for messages beside data on standard output. Its failures end no command.
    pub(crate) fn stderr(json: bool) -> Self {
        Self::to(Effect::Changes, json, Box::new(io::stderr()))
    }

    fn to(effect: Effect, json: bool, to: Box<dyn Write + Send>) -> Self {
        Self { json, effect, to: BufWriter::new(to), lost: None }
    }

    /// Whether a program listens.
    pub(crate) fn is_json(&self) -> bool {
        self.json
    }

    /// One object on a line of its own.
    pub(crate) fn object(&mut self, object: &impl Serialize) -> Result<()> {
        let written = serde_json::to_writer(&mut self.to, object).map_err(io::Error::from);
        let written = written.and_then(|()| self.to.write_all(b"\n"));
        self.written(written)
    }

    /// A line for people.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> Result<()> {
        let written = writeln!(self.to, "{line}");
        self.written(written)
    }

    /// A line for people that begins with a name, which need not be text.
    pub(crate) fn line_of(&mut self, name: &[u8], line: impl fmt::Display) -> Result<()> {
        let written = self.to.write_all(name).and_then(|()| writeln!(self.to, "{line}"));
        self.written(written)
    }

    /// Bytes as they are.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.to.write_all(bytes);
        self.written(written)
    }

    /// A table for people.
    pub(crate) fn table(&mut self, table: &Table) -> Result<()> {
        let written = write!(self.to, "{table}");
        self.written(written)
    }

    /// The only object that is said there.
    pub(crate) fn last(mut self, object: &impl Serialize) -> Result<()> {
        self.object(object)?;
        self.flush()
    }

    /// Lets go what is waiting.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let flushed = self.to.flush();
        self.written(flushed)
    }

    /// Writes the buffered rest. Fails if a part of the output could not be written, unless its reader has left.
    pub(crate) fn end(mut self) -> Result<()> {
        self.flush()?;
        match self.lost {
            Some(failure) if !failure.is_quiet() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Ends a command that only prints when its output fails. Other commands write each line at once, for it tells what is
    /// done, and keep the first failure for their end.
    fn written(&mut self, written: io::Result<()>) -> Result<()> {
        let written = match self.effect {
            Effect::Prints => written,
            Effect::Changes => written.and_then(|()| self.to.flush()),
        };
        let Err(error) = written else { return Ok(()) };
        if self.effect == Effect::Prints {
            return Err(broken(&error));
        }
        self.lost = Some(broken(&error));
        self.to = BufWriter::new(Box::new(io::sink()));
        Ok(())
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

/// Prints a complaint about something whose name need not be text.
pub(crate) fn say_of(name: &[u8], text: &str) {
    let line = [b"holdfast: ", name, b": ", text.as_bytes(), b"\n"].concat();
    let _ = io::stderr().write_all(&line);
}

/// Prints a notice or a complaint on standard error.
pub(crate) fn say(text: &str) {
    // Whoever does not listen misses nothing else.
    let _ = writeln!(io::stderr(), "holdfast: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output that fails from its first byte on.
    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn out(effect: Effect, error: io::ErrorKind) -> Out {
        Out::to(effect, false, Box::new(Failing(error)))
    }

    #[test]
    fn a_lost_output_ends_commands_that_only_print() {
        let mut left = out(Effect::Prints, io::ErrorKind::BrokenPipe);
        left.line("a").unwrap();
        let failure = left.flush().unwrap_err();
        assert!(failure.is_quiet() && failure.number() == 0);
        let mut full = out(Effect::Prints, io::ErrorKind::StorageFull);
        full.line("a").unwrap();
        assert_eq!(full.flush().unwrap_err().number(), 1);
    }

    #[test]
    fn a_lost_output_is_told_at_the_end_of_commands_that_change_something() {
        for (error, code) in [(io::ErrorKind::BrokenPipe, None), (io::ErrorKind::StorageFull, Some(1))] {
            let mut out = out(Effect::Changes, error);
            out.line("a").unwrap();
            assert!(out.lost.is_some(), "a line is not written at once");
            for _ in 0..3 {
                out.line("a").unwrap();
                out.flush().unwrap();
            }
            assert_eq!(out.end().err().map(|failure| failure.number()), code, "{error}");
        }
    }
}
