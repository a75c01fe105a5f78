//! The header of a VDIF frame (VLBI Data Interchange Format 1.1): four little-endian words of which every frame has at least
//! these.
//!
//! ```text
//!  0  invalid (bit 31) | legacy header (30) | seconds since the reference epoch (0–29)
//!  4  reference epoch, in half years since 2000 (24–29) | frame in its second (0–23)
//!  8  version (29–31) | log2 of the channels (24–28) | frame's length in 8 bytes, header included (0–23)
//! 12  complex (31) | bits a sample, less one (26–30) | thread (16–25) | station (0–15)
//! ```

use crate::{Count, Type, rfc3339, value};
use holdfast_format::CellBuffer;

/// A field of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VdifField {
    /// The second that the frame belongs to. Leap seconds since the reference epoch, of which the header says nothing, are not
    /// taken off.
    EventTime,
    /// Seconds since the reference epoch.
    Second,
    /// Half years from 2000 to the reference epoch.
    Epoch,
    /// Number of the frame in its second.
    Frame,
    /// Thread.
    Thread,
    /// Station: two characters, or its number.
    Station,
    /// Bits of a sample, or of each part of a complex one.
    Bits,
    /// Channels.
    Channels,
    /// Whether the header is the short one.
    Legacy,
    /// Whether the frame says that its data are invalid.
    Invalid,
}

impl VdifField {
    pub(crate) const ALL: [Self; 10] = [
        Self::EventTime,
        Self::Second,
        Self::Epoch,
        Self::Frame,
        Self::Thread,
        Self::Station,
        Self::Bits,
        Self::Channels,
        Self::Legacy,
        Self::Invalid,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::EventTime => "event_time",
            Self::Second => "second",
            Self::Epoch => "epoch",
            Self::Frame => "frame",
            Self::Thread => "thread",
            Self::Station => "station",
            Self::Bits => "bits",
            Self::Channels => "channels",
            Self::Legacy => "legacy",
            Self::Invalid => "invalid",
        }
    }

    pub(crate) fn kind(self) -> Type {
        match self {
            Self::EventTime => Type::Time,
            Self::Station => Type::Text,
            Self::Legacy | Self::Invalid => Type::Bool,
            _ => Type::Uint,
        }
    }
}

/// The header of one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VdifHeader {
    words: [u32; 4],
}

impl VdifHeader {
    /// Of a frame of `size` bytes. `None` if it is too short, or says that it is longer or shorter than it is.
    pub(crate) fn read(data: &[u8], size: u64) -> Option<Self> {
        let (words, _) = data.first_chunk::<16>()?.as_chunks::<4>();
        let header =
            Self { words: [0, 1, 2, 3].map(|at| words.get(at).copied().map_or(0, u32::from_le_bytes)) };
        let least = if header.is_legacy() { 16 } else { 32 };
        let told = 8 * u64::from(header.words[2] & 0xff_ffff);
        (told >= least && told == size).then_some(header)
    }

    fn is_legacy(self) -> bool {
        self.words[0] >> 30 & 1 == 1
    }

    /// Nanoseconds from 1970 to the frame's second.
    fn time(self) -> i64 {
        let half_years = i64::from(self.words[1] >> 24 & 0x3f);
        let days = rfc3339::days(2000 + half_years / 2, 1 + 6 * (half_years % 2), 1);
        (days * 86_400 + i64::from(self.words[0] & 0x3fff_ffff)) * 1_000_000_000
    }

    /// Frames are counted by second, for each reference epoch, thread and station.
    pub(crate) fn count(self) -> Count {
        let [first, second, _, fourth] = self.words;
        let flow = u64::from(second >> 24 & 0x3f) << 32 | u64::from(fourth & 0x03ff_ffff);
        Count { flow, second: first & 0x3fff_ffff, number: u64::from(second & 0xff_ffff), alone: true }
    }

    pub(crate) fn push(self, field: VdifField, into: &mut CellBuffer) {
        let [first, second, third, fourth] = self.words;
        match field {
            VdifField::EventTime => into.word(value::int(self.time())),
            VdifField::Second => into.word(u64::from(first & 0x3fff_ffff)),
            VdifField::Epoch => into.word(u64::from(second >> 24 & 0x3f)),
            VdifField::Frame => into.word(u64::from(second & 0xff_ffff)),
            VdifField::Thread => into.word(u64::from(fourth >> 16 & 0x3ff)),
            VdifField::Station => station(fourth as u16, into),
            VdifField::Bits => into.word(u64::from((fourth >> 26 & 0x1f) + 1)),
            VdifField::Channels => into.word(1 << (third >> 24 & 0x1f)),
            VdifField::Legacy => into.word(u64::from(self.is_legacy())),
            VdifField::Invalid => into.word(u64::from(first >> 31)),
        }
    }
}

/// Two characters if they are such, the first in the upper byte; else the number in decimal.
fn station(number: u16, into: &mut CellBuffer) {
    let characters = number.to_be_bytes();
    if characters.iter().all(u8::is_ascii_graphic) {
        return into.bytes(&characters);
    }
    crate::value::decimal(number.into(), |digits| into.bytes(digits));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Extractor, Schema};
    use holdfast_format::Cells;

    fn frame(words: [u32; 4], size: usize) -> Vec<u8> {
        let mut frame = words.map(u32::to_le_bytes).concat();
        frame.resize(size, 7);
        frame
    }

    fn cells(schema: &Schema) -> Vec<CellBuffer> {
        schema.classes().iter().map(|class| CellBuffer::new(class, 1, 0)).collect()
    }

    #[test]
    fn the_header_is_read_field_by_field() {
        // 2014-06-16T05:56:07Z, of the station Ef.
        let first = 14_363_767 + (1 << 31);
        let second = (28 << 24) + 77;
        let third = (1 << 29) + (3 << 24) + 5032 / 8;
        let words = [first, second, third, (1 << 26) + (5 << 16) + 0x4566];
        let schema = Schema::typed(["vdif"]).unwrap();
        let mut buffers = cells(&schema);
        let outcome = Extractor::new(&schema).extract(&Element::of(&frame(words, 5032)), &mut buffers);
        assert!(!outcome.undecodable);
        assert_eq!(outcome.event_time.map(|time| time.0), rfc3339::nanos(b"2014-06-16T05:56:07Z"));
        let words: Vec<u64> = buffers[1..]
            .iter()
            .filter_map(|buffer| match buffer.cells() {
                Cells::Words(words) => Some(words[0]),
                _ => None,
            })
            .collect();
        assert_eq!(words, [14_363_767, 28, 77, 5, 2, 8, 0, 1]);
        assert_eq!(buffers[5].cells(), Cells::Bytes(&[2], b"Ef"));
    }

    #[test]
    fn a_station_of_no_characters_is_its_number() {
        let mut buffer = CellBuffer::new(holdfast_format::Class::Bytes, 3, 0);
        for number in [65_532, 0, 0x4100] {
            station(number, &mut buffer);
        }
        assert_eq!(buffer.cells(), Cells::Bytes(&[5, 6, 11], b"65532016640"));
    }

    #[test]
    fn what_is_no_frame_of_this_length_is_undecodable() {
        let words = |length: u32, legacy: u32| [legacy << 30, 0, length / 8, 0];
        for (frame, good) in [
            (frame(words(64, 0), 64), true),
            (frame(words(16, 1), 16), true),
            (frame(words(64, 0), 72), false),
            (frame(words(64, 0), 56), false),
            (frame(words(16, 0), 16), false),
            (frame(words(0, 0), 0), false),
            (vec![1; 15], false),
        ] {
            let schema = Schema::typed(["vdif:frame,event_time"]).unwrap();
            let mut buffers = cells(&schema);
            let outcome = Extractor::new(&schema).extract(&Element::of(&frame), &mut buffers);
            assert_eq!((!outcome.undecodable, outcome.event_time.is_some()), (good, good), "{frame:?}");
            assert!(buffers.iter().all(|buffer| buffer.valid() == [good]));
        }
    }
}
