//! What can go wrong in a bench, or keep it from being run.

use std::path::PathBuf;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// It cannot be done here, which is nobody's fault.
    #[error("skipped: {why}")]
    Skipped {
        /// What is missing.
        why: String,
    },
    /// A program failed.
    #[error("`{command}` failed: {said}")]
    Program {
        /// What was run.
        command: String,
        /// What it said.
        said: String,
    },
    /// A file or folder.
    #[error("{}: cannot {what}: {cause}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        cause: std::io::Error,
    },
    /// Something of Holdfast's own: the message is its error's.
    #[error("{what}: {said}")]
    Holdfast {
        /// What was tried.
        what: &'static str,
        /// What it said.
        said: String,
    },
    /// The books do not balance.
    #[error("the accounting is wrong: {0}")]
    Accounting(String),
}

impl Trouble {
    /// For what is not there.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped { why: why.into() }
    }

    /// Wraps an error of Holdfast's own.
    pub fn of<E: std::fmt::Display>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Holdfast { what, said: error.to_string() }
    }

    /// Wraps an error about a file.
    pub fn file<E: Into<std::io::Error>>(
        path: &std::path::Path,
        what: &'static str,
    ) -> impl FnOnce(E) -> Self {
        let path = path.to_owned();
        move |cause| Self::File { path, what, cause: cause.into() }
    }
}
