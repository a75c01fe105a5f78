//! Window over a byte stream that knows its position. No format is known here.

use std::io::{self, Read};

/// Bytes that are asked of the source at once.
const CHUNK: usize = 256 << 10;

/// Reads ahead in large pieces and hands out one unit (a block, a record) at a time. Its memory grows with what
/// really came, never with what a length field promises; where it is known how much there is, not for what cannot
/// come whole either.
#[derive(Debug)]
pub(crate) struct Input<R> {
    source: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    position: u64,
    /// Bytes that the source has, as far as that is known.
    length: u64,
    /// Bytes of the largest unit that came whole.
    largest: usize,
}

impl<R: Read> Input<R> {
    /// Over a source of `length` bytes (`u64::MAX`: nobody knows), in memory that may be there already.
    pub(crate) fn within(source: R, length: u64, buffer: Vec<u8>) -> Self {
        Self { source, buffer, start: 0, end: 0, position: 0, length, largest: 0 }
    }

    /// Memory in which all that came would have had room.
    pub(crate) fn room(&self) -> usize {
        self.largest.next_multiple_of(CHUNK)
    }

    /// Bytes of memory that there are for units.
    pub(crate) fn memory(&self) -> usize {
        self.buffer.len()
    }

    /// The source begins anew: what is left of it is forgotten.
    pub(crate) fn begin_again(&mut self) {
        (self.start, self.end, self.position) = (0, 0, 0);
    }

    /// Position in the file of the current unit's first byte.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Tries to have `wanted` bytes of the current unit; tells how many there are, fewer only at the end.
    /// After an error the same call may be made again, nothing is lost.
    pub(crate) fn want(&mut self, wanted: usize) -> io::Result<usize> {
        let left = self.length.saturating_sub(self.position);
        let there = self.end - self.start;
        if there < wanted && wanted > CHUNK && wanted as u64 > left {
            return Ok(there.max(left as usize));
        }
        while self.end - self.start < wanted {
            if self.start > 0 && self.buffer.len() - self.start < wanted {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
            }
            if self.end == self.buffer.len() {
                // Twice as much as has come, but not more than is wanted.
                let most = wanted.next_multiple_of(CHUNK);
                self.buffer.resize((self.buffer.len() * 2).clamp(CHUNK, most), 0);
            }
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Ok(self.end - self.start),
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.largest = self.largest.max(wanted);
        Ok(wanted)
    }

    /// The first `len` bytes of the current unit, which [`Input::want`] has found.
    pub(crate) fn unit(&self, len: usize) -> &[u8] {
        let end = (self.start + len).min(self.end);
        &self.buffer[self.start..end]
    }

    /// The same, to be changed in place.
    pub(crate) fn unit_mut(&mut self, len: usize) -> &mut [u8] {
        let end = (self.start + len).min(self.end);
        &mut self.buffer[self.start..end]
    }

    /// Ends the current unit after `len` bytes.
    pub(crate) fn skip(&mut self, len: usize) {
        let len = len.min(self.end - self.start);
        self.start += len;
        self.position += len as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte a call, and an error before each.
    struct Stutter(Vec<u8>, bool);

    impl Read for Stutter {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if self.0.is_empty() || into.is_empty() {
                return Ok(0);
            }
            into[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn an_error_of_the_source_loses_nothing() {
        let mut input = Input::within(Stutter((0..10).collect(), false), u64::MAX, Vec::new());
        let mut errors = 0;
        for unit in [4usize, 3, 3] {
            while input.want(unit).is_err() {
                errors += 1;
            }
            assert_eq!(input.unit(unit).len(), unit);
            let first = input.position() as u8;
            assert_eq!(input.unit(unit), (first..first + unit as u8).collect::<Vec<_>>());
            input.skip(unit);
        }
        assert_eq!((input.position(), errors), (10, 10));
        while input.want(1).is_err() {}
        assert_eq!(input.want(0).unwrap(), 0);
    }

    #[test]
    fn a_source_that_begins_anew_is_read_from_its_first_byte() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut input = Input::within(io::Cursor::new(&bytes), u64::MAX, Vec::new());
        assert_eq!(input.want(7).unwrap(), 7);
        input.skip(7);
        input.source.set_position(0);
        input.begin_again();
        assert_eq!((input.want(101).unwrap(), input.position()), (100, 0));
        assert_eq!(input.unit(100), bytes);
    }

    #[test]
    fn units_larger_than_a_chunk_come_whole() {
        let bytes: Vec<u8> = (0..3 * CHUNK).map(|n| (n % 251) as u8).collect();
        let mut input = Input::within(&bytes[..], u64::MAX, Vec::new());
        assert_eq!(input.want(100).unwrap(), 100);
        input.skip(100);
        let rest = bytes.len() - 100;
        assert_eq!(input.want(rest + 1).unwrap(), rest);
        assert!(input.unit(rest) == &bytes[100..]);
    }
}
