//! Diagnostics on standard error in the form that all Holdfast programs use, `NAME: what, where: what to do`, under the
//! name that the program was called by. The callers supply the texts.
//!
//! Nobody waits for a log: what a pipe, a terminal or a socket does not take within a moment is left out.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsStr;
use std::io::{Stderr, Write as _};
use std::path::Path;
use std::time::Duration;

const OWN: &str = "holdfast-recorder";

/// How long a log may take to take something. The socket is not served meanwhile.
const MOMENT: Duration = Duration::from_millis(50);

/// A pipe that takes anything takes as much as that without waiting.
const PIECE: usize = 4096;

/// Says what went wrong.
pub(crate) fn complain(text: &str) {
    let called = std::env::args_os().next();
    say(&format!("{}: {text}\n", name(called.as_deref())));
}

/// Says something as it is, if it is taken within a moment.
pub(crate) fn say(text: &str) {
    put(text, MOMENT);
}

/// Says something that is of no use later: only if it is taken at once.
pub(crate) fn mention(text: &str) {
    put(text, Duration::ZERO);
}

fn put(text: &str, patience: Duration) {
    let mut err = std::io::stderr();
    for piece in text.as_bytes().chunks(PIECE) {
        if !takes(&err, patience) || err.write_all(piece).is_err() {
            return;
        }
    }
}

/// Whether a write would not have to wait.
fn takes(err: &Stderr, patience: Duration) -> bool {
    let patience = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
    let mut look = [PollFd::new(err, PollFlags::OUT)];
    // A file is always ready.
    poll(&mut look, Some(&patience)).is_ok_and(|count| count > 0)
        && look[0].revents().contains(PollFlags::OUT)
}

/// `holdfast record` runs this program under that name: its user knows no other.
fn name(called: Option<&OsStr>) -> &str {
    let file = called.and_then(|called| Path::new(called).file_name()?.to_str());
    file.and_then(|file| file.split(' ').next()).filter(|name| !name.is_empty()).unwrap_or(OWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_name_it_was_called_by() {
        for (called, shown) in [
            (Some("/usr/bin/holdfast-recorder"), "holdfast-recorder"),
            (Some("holdfast record"), "holdfast"),
            (Some(""), OWN),
            (None, OWN),
        ] {
            assert_eq!(name(called.map(OsStr::new)), shown);
        }
    }
}
