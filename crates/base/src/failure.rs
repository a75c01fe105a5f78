//! The error that people read: what failed, where, what to do about it, and the exit code.
//!
//! Libraries above the reader return it; typed errors of lower crates are converted into it once, at the edge that knows the
//! place.

use std::fmt;
use std::io;
use std::path::Path;

/// Result of an operation whose error people read.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// The exit codes that scripts can trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It ended early because the reader of its output had enough.
    Done = 0,
    /// It could not be done, or what was found is damaged.
    Failed = 1,
    /// The command line or the configuration file makes no sense.
    Usage = 2,
    /// The stream, hold or range that was asked for is not on the ring.
    Nothing = 3,
}

/// Reason why an operation was not done as asked.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    kind: Kind,
    what: String,
    place: String,
    advice: String,
    quiet: bool,
    lossy: bool,
}

impl Failure {
    /// It could not be done.
    pub fn failed(what: impl fmt::Display) -> Self {
        Self::new(Kind::Failed, what)
    }

    /// It was asked for wrongly.
    pub fn usage(what: impl fmt::Display) -> Self {
        Self::new(Kind::Usage, what)
    }

    /// It is not there.
    pub fn nothing(what: impl fmt::Display) -> Self {
        Self::new(Kind::Nothing, what)
    }

    fn new(kind: Kind, what: impl fmt::Display) -> Self {
        Self {
            kind,
            what: what.to_string(),
            place: String::new(),
            advice: String::new(),
            quiet: false,
            lossy: false,
        }
    }

    /// The exit code of a command that has said all there is to say.
    pub fn said(kind: Kind) -> Self {
        Self { quiet: true, ..Self::new(kind, "") }
    }

    /// Names the file, device or argument.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.place = place.to_string();
        self
    }

    /// Leaves the place out, for a message that begins with it.
    #[must_use]
    pub fn without_place(self) -> Self {
        Self { place: String::new(), ..self }
    }

    /// The same for a path.
    #[must_use]
    pub fn at_path(self, path: &Path) -> Self {
        self.at(path.display())
    }

    /// Says what to do about it.
    #[must_use]
    pub fn advice(mut self, advice: impl fmt::Display) -> Self {
        self.advice = advice.to_string();
        self
    }

    /// Tells that the result is complete but for data that is damaged or gone.
    #[must_use]
    pub fn lossy(mut self) -> Self {
        self.lossy = true;
        self
    }

    /// True if the result is complete but for data that is damaged or gone.
    pub fn is_lossy(&self) -> bool {
        self.lossy
    }

    /// An error of the operating system at a path, with the advice that fits it.
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                "run as root, or as a user who may open it (for devices, group disk)"
            }
            io::ErrorKind::NotFound => "check the path",
            io::ErrorKind::StorageFull => "make room, or choose another place",
            io::ErrorKind::ResourceBusy => "something else uses it: unmount it or end that program",
            _ => "",
        };
        Self::failed(format_args!("{doing}: {}", reason(error))).at_path(path).advice(advice)
    }

    /// The same where something was to be written.
    pub fn output(doing: &str, path: &Path, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => "choose another place with -o, or make its folder first",
            io::ErrorKind::StorageFull => "make room, or choose another place with -o",
            _ => "choose another place with -o",
        };
        Self::io(doing, path, error).advice(advice)
    }

    /// The number of its exit code.
    pub fn number(&self) -> u8 {
        self.kind as u8
    }

    /// True when there is nothing left to say.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }
}

/// An operating system's error without the number that nobody looks up.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut chars = text[..end].chars();
    chars.next().map_or(String::new(), |first| first.to_lowercase().chain(chars).collect())
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.place.is_empty() {
            write!(f, ", {}", self.place)?;
        }
        if !self.advice.is_empty() {
            write!(f, ": {}", self.advice)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_says_what_where_and_what_to_do() {
        let failure =
            Failure::io("cannot open the ring", Path::new("/dev/sdb"), &io::Error::from_raw_os_error(13));
        assert_eq!(
            failure.to_string(),
            "cannot open the ring: permission denied, /dev/sdb: run as root, or as a user who may open it \
             (for devices, group disk)"
        );
        assert_eq!(failure.number(), 1);
        assert_eq!(Failure::usage("no").to_string(), "no");
    }
}
