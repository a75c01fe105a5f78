//! Writer that keeps the error of its medium, which writers of formats may report as one of the format.

use super::output_error::OutputError;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Writer in front of the medium.
pub(super) struct ErrorKeeper<W> {
    to: W,
    kept: KeptError,
}

/// Error of the medium, if there was one.
#[derive(Clone, Default)]
pub(super) struct KeptError(Arc<Mutex<Option<io::Error>>>);

impl<W> ErrorKeeper<W> {
    pub(super) fn new(to: W) -> (Self, KeptError) {
        let kept = KeptError::default();
        (Self { to, kept: kept.clone() }, kept)
    }
}

impl KeptError {
    /// The result, but with the medium's error in the place of another.
    pub(super) fn instead_of<T>(&self, result: Result<T, OutputError>) -> Result<T, OutputError> {
        let kept = || self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.map_err(|error| kept().map_or(error, OutputError::Io))
    }

    /// Keeps an error of the medium; the writer of the format gets one of the same kind.
    fn keep(&self, error: io::Error) -> io::Error {
        let kind = error.kind();
        if kind != io::ErrorKind::Interrupted {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
        kind.into()
    }
}

impl<W: Write> Write for ErrorKeeper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes).map_err(|error| self.kept.keep(error))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush().map_err(|error| self.kept.keep(error))
    }
}
