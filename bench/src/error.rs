//! Errors of a bench, and reasons why it is left out.

use std::fmt::Display;
use std::path::{Path, PathBuf};

/// The reason why a bench gives no figure.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// This machine lacks something that the bench needs; that is no failure.
    #[error("skipped: {reason}")]
    Skipped {
        /// The thing that is missing.
        reason: String,
    },
    /// Another program failed, or does not answer as it should.
    #[error("`{command}` failed: {output}")]
    Program {
        /// The command line, or the name of the program.
        command: String,
        /// The output of the program, or the error of the system.
        output: String,
    },
    /// A file or folder cannot be used.
    #[error("{}: cannot {action}: {cause}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The attempted action, such as "open it".
        action: &'static str,
        /// The error of the system.
        cause: std::io::Error,
    },
    /// A library of Holdfast failed.
    #[error("{action}: {message}")]
    Holdfast {
        /// The attempted action, such as "opening the ring".
        action: &'static str,
        /// The message of the library's error.
        message: String,
    },
    /// Figures that have to agree do not.
    #[error("the accounting is wrong: {0}")]
    Accounting(String),
}

impl BenchError {
    /// Leaves the bench out for this reason.
    pub fn skipped(reason: impl Into<String>) -> Self {
        Self::Skipped { reason: reason.into() }
    }

    /// Reports figures that do not agree.
    pub fn accounting(message: impl Into<String>) -> Self {
        Self::Accounting(message.into())
    }

    /// Reports a failed program with its output.
    pub fn program(command: impl Into<String>, output: impl Display) -> Self {
        Self::Program { command: command.into(), output: output.to_string() }
    }

    /// Wraps an error of talking to a program, for `map_err`.
    pub fn of_program<E: Display>(command: &str) -> impl FnOnce(E) -> Self {
        move |cause| Self::program(command, cause)
    }

    /// Wraps an error of a library of Holdfast, for `map_err`.
    pub fn during<E: Display>(action: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Holdfast { action, message: error.to_string() }
    }

    /// Wraps an error of using a file, for `map_err`.
    pub fn file<E: Into<std::io::Error>>(path: &Path, action: &'static str) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |cause| Self::File { path, action, cause: cause.into() }
    }
}
