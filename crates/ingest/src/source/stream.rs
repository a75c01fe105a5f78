//! Common code of byte-stream sources: the end of a stream, and its first bytes as a preamble.

use super::error::{Fault, SourceError};
use super::stop::{StopFlag, Woken, has_input, wait};
use crate::Cause;
use crate::framing::{Cutter, Tail};
use crate::producer::Producer;
use std::fs::File;
use std::io::{self, ErrorKind, Read};

/// An element that its stream did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) have: u64,
    pub(super) want: Option<u64>,
    /// Where it began, counted from where the cutter began.
    pub(super) at: u64,
}

impl Cut {
    pub(super) fn error(self, name: &str, before: u64) -> SourceError {
        SourceError::Cut { name: name.to_owned(), have: self.have, want: self.want, at: before + self.at }
    }
}

/// The stream is over: ends the open element, or gives it up and tells what was missing.
pub(super) fn end_of_stream(out: &mut Producer, cutter: &Cutter) -> Result<Option<Cut>, Fault> {
    match cutter.finish() {
        Tail::Clean => Ok(None),
        Tail::Ends(tag) => {
            out.end_element(tag)?;
            Ok(None)
        }
        Tail::Cut { have, want } => {
            if out.in_element() {
                out.abort_element(Cause::Aborted);
            } else {
                // Not even its length was there.
                out.refuse_element(0, Cause::Aborted);
            }
            Ok(Some(Cut { have, want, at: cutter.position() - have }))
        }
    }
}

/// Reads a file or pipe to its end, or as far as `most` bytes. `None`: the flag was raised before.
pub(super) fn read_whole(mut file: File, most: u64, stop: &StopFlag) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    loop {
        if wait(&file, stop, None)? == Woken::Stopped {
            return Ok(None);
        }
        let left = most - bytes.len() as u64;
        match Read::by_ref(&mut file).take(left).read_to_end(&mut bytes) {
            Ok(_) => return Ok(Some(bytes)),
            // What was read before is kept in `bytes`.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads exactly `bytes` bytes, unless the input ends before, or the flag is raised and the rest is not there yet.
pub(super) fn read_leading(
    file: &mut File,
    bytes: usize,
    waits: bool,
    stop: &StopFlag,
) -> io::Result<Option<Vec<u8>>> {
    let mut leading = vec![0; bytes];
    let mut at = 0;
    while at < bytes {
        match if waits { wait(&*file, stop, None)? } else { Woken::Ready } {
            Woken::Ready => {}
            // What has come by then counts.
            Woken::Stopped if has_input(&*file)? => {}
            Woken::Stopped => return Ok(None),
            // A signal: there may still be nothing to read.
            Woken::TimedOut => continue,
        }
        match file.read(&mut leading[at..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(n) => at += n,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Some(leading))
}
