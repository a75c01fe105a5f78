//! Error of starting, configuring and administering a server. Errors of single requests are problem bodies (`problem`).

use std::fmt;
use std::io;
use std::path::Path;

/// Class of an error, from which a program chooses its exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// An option or a file of the caller makes no sense.
    Usage,
    /// The operation failed although its options are valid.
    Failed,
}

/// Error that reads "cannot VERB OBJECT: REASON; REMEDY".
#[derive(Debug, PartialEq, Eq)]
pub struct ServerError {
    kind: ErrorKind,
    action: String,
    reason: String,
    remedy: String,
}

impl ServerError {
    /// Error of a valid operation: `action` is "VERB OBJECT".
    pub fn failed(action: impl fmt::Display, reason: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        Self {
            kind: ErrorKind::Failed,
            action: action.to_string(),
            reason: reason.to_string(),
            remedy: remedy.to_string(),
        }
    }

    /// Error of an option or file that the caller must correct.
    pub fn usage(action: impl fmt::Display, reason: impl fmt::Display, remedy: impl fmt::Display) -> Self {
        Self { kind: ErrorKind::Usage, ..Self::failed(action, reason, remedy) }
    }

    /// Error of the operating system at a path, with the remedy that fits it.
    pub(crate) fn io(action: &str, path: &Path, error: &io::Error) -> Self {
        let remedy = match error.kind() {
            io::ErrorKind::PermissionDenied => "run as a user who may write there, or choose another folder",
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::StorageFull => "make room, or choose another folder",
            io::ErrorKind::AddrInUse => "end the other program, or choose another port",
            _ => "correct the cause and start again",
        };
        Self::failed(format_args!("{action} {}", path.display()), reason(error), remedy)
    }

    /// Class of this error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Text of an operating system's error without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut chars = text[..end].chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}: {}; {}", self.action, self.reason, self.remedy)
    }
}

impl std::error::Error for ServerError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_object_reason_and_remedy() {
        let error =
            ServerError::io("open the data folder", Path::new("/data"), &io::Error::from_raw_os_error(13));
        assert_eq!(
            error.to_string(),
            "cannot open the data folder /data: permission denied; run as a user who may write there, or \
             choose another folder"
        );
        assert_eq!(error.kind(), ErrorKind::Failed);
        assert_eq!(ServerError::usage("a", "b", "c").kind(), ErrorKind::Usage);
    }
}
