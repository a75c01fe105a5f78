//! A gap: a loss, as the 64 bytes of data that its row has.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use holdfast_base::Timestamp;

const UNKNOWN: u64 = u64::MAX;

/// Why something was lost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cause {
    /// The ring was full of what may not expire.
    NoSlot = 1,
    /// All buffers were waiting for the medium.
    NoBuffer = 2,
    /// The kernel dropped it.
    Kernel = 3,
    /// The recorder or the machine stopped.
    Crash = 4,
    /// The device was away.
    DeviceAbsent = 5,
    /// The source failed.
    SourceFailed = 6,
    /// It was destroyed on purpose.
    Purged = 7,
    /// The source gave up in the middle of an element.
    Aborted = 8,
    /// It was larger than an element may be.
    Oversized = 9,
    /// It was beyond what its stream had declared, and what was left did not last for it.
    OverRate = 10,
    /// Buffers were free, but what packs elements into them had no processor.
    NoProcessor = 11,
    /// It was lost before it came to us, as a counter in what came shows.
    Upstream = 12,
}

impl Cause {
    /// The word for it, the same wherever programs read it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoSlot => "no_slot",
            Self::NoBuffer => "no_buffer",
            Self::Kernel => "kernel",
            Self::Crash => "crash",
            Self::DeviceAbsent => "device_absent",
            Self::SourceFailed => "source_failed",
            Self::Purged => "purged",
            Self::Aborted => "aborted",
            Self::Oversized => "oversized",
            Self::OverRate => "over_rate",
            Self::NoProcessor => "no_processor",
            Self::Upstream => "upstream",
        }
    }

    /// The cause with this number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        use Cause::{
            Aborted, Crash, DeviceAbsent, Kernel, NoBuffer, NoProcessor, NoSlot, OverRate, Oversized, Purged,
            SourceFailed, Upstream,
        };
        const ALL: [Cause; 12] = [
            NoSlot,
            NoBuffer,
            Kernel,
            Crash,
            DeviceAbsent,
            SourceFailed,
            Purged,
            Aborted,
            Oversized,
            OverRate,
            NoProcessor,
            Upstream,
        ];
        ALL.get(usize::from(byte).wrapping_sub(1)).copied()
    }
}

/// A loss.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    /// Ordinals that it skips.
    pub ordinals: u64,
    /// Elements lost; `None`: unknown.
    pub elements: Option<u64>,
    /// Bytes lost; `None`: unknown.
    pub bytes: Option<u64>,
    /// When the loss began.
    pub first: Timestamp,
    /// When it ended.
    pub last: Timestamp,
    /// Why.
    pub cause: Cause,
    /// More about the cause.
    pub note: u64,
}

impl Gap {
    /// Bytes of a gap.
    pub const BYTES: usize = 64;

    /// The data of the gap's row.
    pub fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        SliceWriter::new(&mut bytes)
            .u64(self.ordinals)
            .u64(self.elements.unwrap_or(UNKNOWN))
            .u64(self.bytes.unwrap_or(UNKNOWN))
            .time(self.first)
            .time(self.last)
            .u8(self.cause as u8)
            .zeros(15)
            .u64(self.note);
        bytes
    }

    /// Reads the data of a gap's row.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut get = FieldReader::new("gap", bytes);
        let known = |count| Some(count).filter(|count| *count != UNKNOWN);
        let ordinals = get.u64()?;
        let (elements, bytes) = (known(get.u64()?), known(get.u64()?));
        let (first, last) = (get.time()?, get.time()?);
        let cause =
            Cause::from_byte(get.u8()?).ok_or_else(|| get.malformed("a cause that does not exist"))?;
        get.take(15)?;
        Ok(Self { ordinals, elements, bytes, first, last, cause, note: get.u64()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_the_numbers_and_words_that_they_always_had() {
        let words = [
            "no_slot",
            "no_buffer",
            "kernel",
            "crash",
            "device_absent",
            "source_failed",
            "purged",
            "aborted",
            "oversized",
            "over_rate",
            "no_processor",
            "upstream",
        ];
        for (number, word) in (1..).zip(words) {
            let cause = Cause::from_byte(number).unwrap();
            assert_eq!((cause as u8, cause.name()), (number, word));
        }
        assert_eq!((Cause::from_byte(0), Cause::from_byte(13)), (None, None));
    }
}
