//! The header of a VDIF frame (VLBI Data Interchange Format 1.1): four little-endian words that every frame has, and two of
//! extended headers that tell the sample rate.
//!
//! ```text
//!  0  invalid (bit 31) | legacy header (30) | seconds since the reference epoch (0–29)
//!  4  reference epoch, in half years since 2000 (24–29) | frame in its second (0–23)
//!  8  version (29–31) | log2 of the channels (24–28) | frame's length in 8 bytes, header included (0–23)
//! 12  complex (31) | bits a sample, less one (26–30) | thread (16–25) | station (0–15)
//! 16  extended data version (24–31) | of versions 1, 3 and 4: unit is MHz, else kHz (23) | sample rate (0–22)
//! 20  of versions 1, 3 and 4: 0xacabfeed
//! ```
//!
//! The sample rate is that of complex samples of a channel; real ones come twice as often. Values do not cross words of 32 bits.

use crate::cursor::Cursor;
use crate::{Count, Problem, SchemaError, Type, rfc3339, value};
use holdfast_format::CellBuffer;

/// Nanoseconds that a second has.
const SECOND: u64 = 1_000_000_000;

/// A field of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VdifField {
    /// Time of the frame's first sample: its second, and its number by the rate of frames, if that is known. Leap seconds since
    /// the reference epoch, of which the header says nothing, are not taken off.
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

/// Begin of the option of an event time that tells how many frames of a thread a second has.
pub(crate) const RATE: &str = ",rate=";

/// Frames of a thread a second at most: the header has 24 bits for their number.
const MOST_RATE: u32 = 1 << 24;

/// Reads the option `,rate=N`, if it is next.
pub(crate) fn rate(cursor: &mut Cursor<'_>) -> Result<Option<u32>, SchemaError> {
    const WANTED: &str = "a number of frames a second, from 1 to 16777216";
    if !cursor.eat(RATE) {
        return Ok(None);
    }
    let at = cursor.at();
    let rate = cursor.number(WANTED)?;
    if !(1..=MOST_RATE).contains(&rate) {
        return Err(cursor.wrong_at(at, Problem::Wanted(WANTED)));
    }
    Ok(Some(rate))
}

/// The header of one frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VdifHeader {
    words: [u32; 4],
    /// Extended data version and sample rate, and the word behind.
    extension: Option<[u32; 2]>,
}

/// Word that marks the extended headers with a sample rate.
const SYNC: u32 = 0xacab_feed;

impl VdifHeader {
    /// Of a frame of `size` bytes. `None` if it is too short, or says that it is longer or shorter than it is.
    pub(crate) fn read(data: &[u8], size: u64) -> Option<Self> {
        let word = |at: usize| Some(u32::from_le_bytes(*data.get(4 * at..)?.first_chunk()?));
        let words = [word(0)?, word(1)?, word(2)?, word(3)?];
        let header = Self { words, extension: word(4).zip(word(5)).map(|(rate, sync)| [rate, sync]) };
        let least = if header.is_legacy() { 16 } else { 32 };
        let told = 8 * u64::from(header.words[2] & 0xff_ffff);
        (told >= least && told == size).then_some(header)
    }

    fn is_legacy(self) -> bool {
        self.words[0] >> 30 & 1 == 1
    }

    /// Nanoseconds from 1970 to the frame, of whose thread so many come a second; to its second, if that is not known.
    fn time(self, rate: Option<u32>) -> i64 {
        let half_years = i64::from(self.words[1] >> 24 & 0x3f);
        let days = rfc3339::days(2000 + half_years / 2, 1 + 6 * (half_years % 2), 1);
        let second = days * 86_400 + i64::from(self.words[0] & 0x3fff_ffff);
        let frames = rate.map(|rate| (u128::from(rate), 1)).or_else(|| self.frames());
        second * SECOND as i64 + frames.map_or(0, |frames| self.within_second(frames)) as i64
    }

    /// True if the header or the schema tells the rate of frames.
    pub(crate) fn has_rate(self, rate: Option<u32>) -> bool {
        rate.is_some() || self.frames().is_some()
    }

    /// Nanoseconds from the frame's second to the frame, at `samples` a second and `each` of them a frame; 0 for a number that
    /// no frame of a second has.
    fn within_second(self, (samples, each): (u128, u128)) -> u64 {
        let number = u128::from(self.words[1] & 0xff_ffff);
        let nanos = (number * each * u128::from(SECOND) + samples / 2) / samples;
        u64::try_from(nanos).ok().filter(|nanos| *nanos < SECOND).unwrap_or_default()
    }

    /// Samples a second, and those of each frame, by an extended header.
    fn frames(self) -> Option<(u128, u128)> {
        let [_, _, third, fourth] = self.words;
        let [rate, SYNC] = self.extension.filter(|_| !self.is_legacy())? else { return None };
        if !matches!(rate >> 24, 1 | 3 | 4) {
            return None;
        }
        let unit = if rate >> 23 & 1 == 1 { 1_000_000 } else { 1000 };
        let is_complex = fourth >> 31 == 1;
        let samples = u128::from(rate & 0x7f_ffff) * unit * if is_complex { 1 } else { 2 };
        let values_a_word = 32 / ((fourth >> 26 & 0x1f) + 1) / if is_complex { 2 } else { 1 };
        let words = (third & 0xff_ffff).saturating_sub(4) * 2;
        let each = (u128::from(words) * u128::from(values_a_word)) >> (third >> 24 & 0x1f);
        (samples > 0 && each > 0).then_some((samples, each))
    }

    /// Frames are counted by second, for each reference epoch, thread and station.
    pub(crate) fn count(self) -> Count {
        let [first, second, _, fourth] = self.words;
        let flow = u64::from(second >> 24 & 0x3f) << 32 | u64::from(fourth & 0x03ff_ffff);
        Count { flow, second: first & 0x3fff_ffff, number: u64::from(second & 0xff_ffff), alone: true }
    }

    /// Adds a field; `rate` is the number of frames of a thread a second, where somebody told it.
    pub(crate) fn push(self, field: VdifField, rate: Option<u32>, into: &mut CellBuffer) {
        let [first, second, third, fourth] = self.words;
        match field {
            VdifField::EventTime => into.word(value::int(self.time(rate))),
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

    /// Event time in nanoseconds after 2014-06-16T05:56:07Z.
    fn after_second(typed: &str, frame: &[u8]) -> i64 {
        let schema = Schema::typed([typed]).unwrap();
        let outcome = Extractor::new(&schema).extract(&Element::of(frame), &mut cells(&schema));
        outcome.event_time.unwrap().0 - rfc3339::nanos(b"2014-06-16T05:56:07Z").unwrap()
    }

    #[test]
    fn the_event_time_is_that_of_the_frame() {
        // Frame 77 with 5000 bytes of samples of 2 bits.
        let words = [14_363_767, (28 << 24) + 77, 5032 / 8, 1 << 26];
        let extended = |words: [u32; 4], rate: u32, sync: u32| {
            let mut frame = frame(words, 5032);
            frame[16..20].copy_from_slice(&rate.to_le_bytes());
            frame[20..24].copy_from_slice(&sync.to_le_bytes());
            frame
        };
        // 16 MHz, twice for real samples: 1600 frames of 20 000 samples a second.
        let rate = 1 << 23 | 16;
        for version in [1, 3, 4] {
            assert_eq!(after_second("vdif", &extended(words, version << 24 | rate, SYNC)), 48_125_000);
            assert_eq!(after_second("vdif", &extended(words, version << 24 | 0x3e80, SYNC)), 48_125_000);
        }
        let complex = [words[0], words[1], words[2] + (1 << 24), words[3] + (1 << 31)];
        // 16 million complex samples a second, 5000 a frame of two channels.
        assert_eq!(after_second("vdif", &extended(complex, 3 << 24 | rate, SYNC)), 24_062_500);
        // No rate: other versions, no mark, a rate of 0, and a legacy header.
        for (version, sync) in [(0, SYNC), (2, SYNC), (3, 7)] {
            assert_eq!(after_second("vdif", &extended(words, version << 24 | rate, sync)), 0);
        }
        assert_eq!(after_second("vdif", &extended(words, 3 << 24, SYNC)), 0);
        let legacy = [words[0] | 1 << 30, words[1], words[2], words[3]];
        assert_eq!(after_second("vdif", &extended(legacy, 3 << 24 | rate, SYNC)), 0);
        // A rate that somebody tells goes first; a frame that no second of that rate has is at its second.
        for frame in [extended(words, 3 << 24 | rate, SYNC), extended(legacy, 0, 0)] {
            assert_eq!(after_second("vdif:event_time,rate=1000", &frame), 77_000_000);
            assert_eq!(after_second("vdif:frame,event_time,rate=77", &frame), 0);
            assert_eq!(after_second("event_time:time=vdif:event_time,rate=78", &frame), 987_179_487);
        }
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
