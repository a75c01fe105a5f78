//! Linear scan of an MCAP file: record after record from the beginning, without its summary.

use crate::records::{HEAD, MAGIC};
use crate::storage::RangeRead;
use bytes::Bytes;
use std::io;

/// Bytes that are read at once.
const WINDOW: u64 = 256 << 10;

/// Place of a record in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordPlace {
    /// Offset of the record.
    pub(crate) at: u64,
    pub(crate) opcode: u8,
    /// Bytes of its content.
    pub(crate) length: u64,
}

impl RecordPlace {
    /// Offset of the next record.
    pub(crate) fn end(&self) -> u64 {
        self.at + HEAD as u64 + self.length
    }
}

/// Result of a step of a scan.
#[derive(Debug)]
pub(crate) enum Step {
    /// Record that lies in the file as a whole.
    Record(RecordPlace),
    /// End of the file, at the border of a record.
    End,
    /// Record that is cut off, or whose head makes no sense.
    Broken(String),
}

/// Scan of an MCAP file.
pub(crate) struct Scan<'f> {
    file: &'f dyn RangeRead,
    /// Offset of the next record.
    at: u64,
    window: (u64, Bytes),
}

impl<'f> Scan<'f> {
    /// Begins a scan; `None` if the file does not begin with the magic.
    pub(crate) fn new(file: &'f dyn RangeRead) -> io::Result<Option<Self>> {
        let mut scan = Self { file, at: MAGIC.len() as u64, window: (0, Bytes::new()) };
        let is_mcap = file.size() >= scan.at && scan.bytes(0, scan.at)? == MAGIC[..];
        Ok(is_mcap.then_some(scan))
    }

    /// Offset of the next record.
    pub(crate) fn position(&self) -> u64 {
        self.at
    }

    /// Bytes of the file, through the window.
    pub(crate) fn bytes(&mut self, at: u64, length: u64) -> io::Result<Bytes> {
        let (start, window) = &self.window;
        let from = at.checked_sub(*start).filter(|from| from.saturating_add(length) <= window.len() as u64);
        if let Some(from) = from {
            return Ok(window.slice(from as usize..(from + length) as usize));
        }
        let most = self.file.size().saturating_sub(at).min(WINDOW).max(length);
        let most = usize::try_from(most).map_err(io::Error::other)?;
        self.window = (at, self.file.read(at, most)?);
        Ok(self.window.1.slice(..length as usize))
    }

    /// Bytes of a record, its head included.
    pub(crate) fn record(&mut self, place: RecordPlace) -> io::Result<Bytes> {
        self.bytes(place.at, HEAD as u64 + place.length)
    }

    /// Continues at another offset, behind damage.
    pub(crate) fn go_to(&mut self, at: u64) {
        self.at = at.min(self.file.size());
    }

    /// Goes to the next record.
    pub(crate) fn next(&mut self) -> io::Result<Step> {
        let left = self.file.size() - self.at;
        if left == 0 {
            return Ok(Step::End);
        }
        if left < HEAD as u64 {
            return Ok(Step::Broken("it is cut off: the file ends in it".to_owned()));
        }
        let head = self.bytes(self.at, HEAD as u64)?;
        let length = head[1..].first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
        if head[0] == 0 {
            return Ok(Step::Broken("it has the opcode 0, which no record has".to_owned()));
        }
        if length > left - HEAD as u64 {
            return Ok(Step::Broken("it is cut off: the file ends in it".to_owned()));
        }
        let place = RecordPlace { at: self.at, opcode: head[0], length };
        self.at = place.end();
        Ok(Step::Record(place))
    }
}
