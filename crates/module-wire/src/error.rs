//! Errors of a module process, each with the module, the cause and the place.

use crate::failure::{Failure, Step};
use crate::frame::WireError;
use crate::limits::time_text;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Reason why a request to a module process failed.
#[derive(Debug)]
pub enum Cause {
    /// The process reports a failure of the module.
    Failure(Failure),
    /// The program that runs the module cannot be started.
    Program {
        /// Path of the program.
        program: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The process gave no answer within this time.
    Silent(Duration),
    /// The process ended by itself.
    Ended {
        /// Exit status or signal.
        status: String,
        /// First lines of its standard error.
        message: String,
    },
    /// The process gave an answer that cannot be decoded.
    Answer(WireError),
    /// The process gave an answer that does not belong to the request.
    WrongAnswer,
    /// The caller made a request that is not possible now.
    Misuse(String),
    /// The operating system refused an operation to the scan.
    System(io::Error),
}

/// Call during which a module failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Call into the module.
    pub step: Step,
    /// Name of the item, where there is one.
    pub item: String,
    /// Offset of the block in the item.
    pub offset: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, item, offset } = self;
        match step {
            Step::Load => f.write_str("while it was loaded"),
            Step::Arguments => f.write_str("on its arguments"),
            Step::Start => write!(f, "at the start of {item}"),
            Step::Block => write!(f, "on a block of {item} at offset {offset}"),
            Step::End => write!(f, "at the end of {item}"),
            Step::Finish => f.write_str("at the end of the scan"),
        }
    }
}

/// Error of a module process.
#[derive(Debug)]
pub struct ModuleError {
    /// File name of the module.
    pub module: String,
    /// Reason of the failure.
    pub cause: Cause,
    /// Call during which it happened; `None` where the cause says enough.
    pub place: Option<Box<Place>>,
    /// Log lines that the module wrote before.
    pub log: Vec<String>,
    /// The process was ended; a new one must be started for further items.
    pub ended: bool,
}

/// Text without control characters, which a terminal could obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

impl fmt::Display for ModuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write(&mut text)?;
        f.write_str(&printable(&text))
    }
}

impl ModuleError {
    fn write(&self, f: &mut impl fmt::Write) -> fmt::Result {
        let name = &self.module;
        match &self.cause {
            Cause::Failure(failure) => write!(f, "the module {name} {failure}")?,
            Cause::Program { program, error } => {
                write!(
                    f,
                    "cannot start {} for the module {name}: {error}; build it with `make module`, and keep it beside \
                     holdfast or in the PATH",
                    program.display()
                )?;
            }
            Cause::Silent(time) => {
                let time = time_text(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
                write!(f, "the process of the module {name} gave no answer within {time}")?;
            }
            Cause::Ended { status, message } if message.is_empty() => {
                write!(f, "the process of the module {name} ended by itself ({status})")?;
            }
            Cause::Ended { status, message } => {
                write!(f, "the process of the module {name} ended by itself ({status}, \"{message}\")")?;
            }
            Cause::Answer(error) => {
                write!(f, "the process of the module {name} gave an answer without meaning: {error}")?;
            }
            Cause::WrongAnswer => {
                write!(f, "the process of the module {name} gave an answer to another request")?;
            }
            Cause::Misuse(reason) => write!(f, "cannot pass a request to the module {name}: {reason}")?,
            Cause::System(error) => write!(f, "cannot run the module {name}: {error}")?,
        }
        if let Some(place) = &self.place {
            write!(f, " {place}")?;
        }
        if self.ended {
            f.write_str(": ended")?;
        }
        match self.log.last() {
            Some(line) => write!(f, "; its last log line: {line}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ModuleError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            Cause::Program { error, .. } | Cause::System(error) => Some(error),
            Cause::Answer(error) => Some(error),
            _ => None,
        }
    }
}

/// The failure is a property of the module's file, so that its place says nothing.
pub(crate) fn is_static(failure: &Failure) -> bool {
    use Failure::{Abi, Arguments, MissingExport, NotWasm, Unreadable, WrongExport, WrongImport};
    matches!(
        failure,
        Unreadable(_)
            | NotWasm(_)
            | MissingExport(_)
            | WrongExport(_)
            | WrongImport(_)
            | Abi(_)
            | Arguments(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cause: Cause, step: Option<Step>, ended: bool) -> String {
        let place = step.map(|step| Box::new(Place { step, item: "a.log".to_owned(), offset: 4096 }));
        ModuleError { module: "my.wasm".to_owned(), cause, place, log: vec![], ended }.to_string()
    }

    #[test]
    fn an_error_is_free_of_control_characters() {
        let trap = Cause::Failure(Failure::Trap("\u{1b}[31m\n".to_owned()));
        assert_eq!(text(trap, None, false), "the module my.wasm trapped: \u{fffd}[31m\u{fffd}");
    }

    #[test]
    fn an_error_names_the_module_the_cause_and_the_place() {
        let slow = Cause::Failure(Failure::Time(2000));
        assert_eq!(
            text(slow, Some(Step::Block), true),
            "the module my.wasm ran longer than 2 s on a block of a.log at offset 4096: ended"
        );
        let code = Cause::Failure(Failure::Code(-3));
        assert_eq!(
            text(code, Some(Step::End), false),
            "the module my.wasm reported its error -3 at the end of a.log"
        );
        let ended = Cause::Ended { status: "signal: 9 (SIGKILL)".to_owned(), message: String::new() };
        assert_eq!(
            text(ended, None, false),
            "the process of the module my.wasm ended by itself (signal: 9 (SIGKILL))"
        );
        let silent = Cause::Silent(Duration::from_secs(7));
        assert_eq!(
            text(silent, Some(Step::Load), true),
            "the process of the module my.wasm gave no answer within 7 s while it was loaded: ended"
        );
    }
}
