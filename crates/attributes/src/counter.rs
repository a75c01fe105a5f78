//! Sequence counters inside elements, from which a receiver detects missing elements: `vdif`, `spead`, `rtp`, `mcap`,
//! or a number at an offset, `at:2:u16be` or `at:2:u16be,flow=at:8:u32be`.
//!
//! Here they are read; what a hole in them means is told elsewhere.
//!
//! ```text
//! RTP   0 version 2 (bits 6–7) | 1 type (0–6) | 2 sequence u16be | 4 time u32be | 8 source u32be
//! ```

use crate::cursor::Cursor;
use crate::given;
use crate::spead::Items;
use crate::vdif::VdifHeader;
use crate::{Element, FieldLocation, MAX_ATTRIBUTE, MAX_DATA, Problem, SchemaError, SpeadField};
use std::fmt;
use std::str::FromStr;

/// Fewest bits of a counter: one that begins again sooner cannot tell a loss from a doubled element.
const LEAST_BITS: u32 = 4;

/// Where the numbers stand that a sender gives its elements, one more for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Frames of a VDIF stream, by station and thread.
    Vdif,
    /// Heaps of a SPEAD stream.
    Spead,
    /// Packets of RTP, by source.
    Rtp,
    /// Messages of an MCAP file, by channel.
    Mcap,
    /// A number at a fixed place.
    At {
        /// An unsigned number.
        number: FieldLocation,
        /// Another, which tells senders apart whose elements are mixed.
        flow: Option<FieldLocation>,
    },
}

/// When a counter begins again at 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cycle {
    /// After as many numbers as so many bits have.
    Bits(u32),
    /// With every second, after as many as the sender makes in one, which is nowhere said.
    Second,
}

/// The number of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Whose it is.
    pub flow: u64,
    /// In which second it was counted; 0 where seconds play no part.
    pub second: u32,
    /// The number.
    pub number: u64,
    /// Whether no other element has this number, too.
    pub alone: bool,
}

impl Counter {
    /// When its numbers begin again.
    pub fn cycle(&self) -> Cycle {
        match self {
            Self::Vdif => Cycle::Second,
            Self::Spead => Cycle::Bits(48),
            Self::Rtp => Cycle::Bits(16),
            Self::Mcap => Cycle::Bits(32),
            Self::At { number, .. } => Cycle::Bits(number.bits().unwrap_or(64)),
        }
    }

    /// Bytes of an element, from its first one on, that are looked at.
    pub fn reach(&self) -> usize {
        match self {
            Self::Vdif => 16,
            Self::Spead => MAX_DATA,
            Self::Rtp => 12,
            Self::Mcap => 0,
            Self::At { number, flow } => number.end().max(flow.as_ref().map_or(0, FieldLocation::end)),
        }
    }

    /// The number of an element; `None` where it has none.
    pub fn read(&self, element: &Element<'_>) -> Option<Count> {
        let data = element.data;
        let plain = |flow, number| Count { flow, second: 0, number, alone: true };
        match self {
            Self::Vdif => VdifHeader::read(data, element.size).map(VdifHeader::count),
            Self::Spead => {
                // Numbers of others begin anew elsewhere.
                let items = Items::read(data).filter(|items| items.bits() == 48)?;
                let of = |field| items.value(field);
                // Packets of one heap have its number.
                let whole = of(SpeadField::HeapSize).zip(of(SpeadField::PayloadLen));
                let alone = whole.is_some_and(|(heap, here)| heap == here);
                Some(Count { alone, ..plain(0, of(SpeadField::Heap)?) })
            }
            Self::Rtp => {
                let [first, kind, high, low, _, _, _, _, source @ ..] = data.first_chunk::<12>()?;
                // The numbers of types that reports (RTCP) have, which may come by the same way.
                let report = (192..224).contains(kind);
                let number = u16::from_be_bytes([*high, *low]).into();
                (first >> 6 == 2 && !report).then(|| plain(u32::from_be_bytes(*source).into(), number))
            }
            Self::Mcap => {
                // As the ready-made list `mcap` has them.
                let mut values = given::values(element.header?);
                let mut number = |at| values.nth(at)??.try_into().ok().map(u64::from_le_bytes);
                let (sequence, channel) = (number(1)?, number(1)?);
                Some(plain(channel, sequence & u64::from(u32::MAX)))
            }
            Self::At { number, flow } => {
                let flow = match flow {
                    Some(place) => place.number(data)?,
                    None => 0,
                };
                Some(plain(flow, number.number(data)?))
            }
        }
    }
}

impl FromStr for Counter {
    type Err = SchemaError;

    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let mut cursor = Cursor::new(text);
        if text.len() > MAX_ATTRIBUTE {
            return Err(cursor.wrong(Problem::TooLong { what: "a counter", most: MAX_ATTRIBUTE }));
        }
        let counter = match cursor.take_while(|c| c.is_ascii_alphanumeric()) {
            "vdif" => Self::Vdif,
            "spead" => Self::Spead,
            "rtp" => Self::Rtp,
            "mcap" => Self::Mcap,
            "at" => {
                let number = unsigned(&mut cursor, LEAST_BITS)?;
                let flow = cursor.eat(",flow=at").then(|| unsigned(&mut cursor, 1)).transpose()?;
                Self::At { number, flow }
            }
            _ => {
                let wanted = "`vdif`, `spead`, `rtp`, `mcap`, or the place of an unsigned number such as `at:2:u16be`,";
                return Err(cursor.wrong_at(0, Problem::Wanted(wanted)));
            }
        };
        if cursor.is_done() { Ok(counter) } else { Err(cursor.wrong(Problem::Wanted("the end"))) }
    }
}

/// The place of an unsigned number of at least so many bits.
fn unsigned(cursor: &mut Cursor<'_>, least: u32) -> Result<FieldLocation, SchemaError> {
    cursor.expect(":", "`:`")?;
    let at = cursor.at();
    let place = FieldLocation::parse(cursor)?;
    match place.bits() {
        Some(bits) if bits >= least => Ok(place),
        _ => Err(cursor.wrong_at(at, Problem::Counter { least })),
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vdif => f.write_str("vdif"),
            Self::Spead => f.write_str("spead"),
            Self::Rtp => f.write_str("rtp"),
            Self::Mcap => f.write_str("mcap"),
            Self::At { number, flow: None } => write!(f, "at:{number}"),
            Self::At { number, flow: Some(flow) } => write!(f, "at:{number},flow=at:{flow}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(counter: &str, data: &[u8]) -> Option<(u64, u32, u64, bool)> {
        let counter: Counter = counter.parse().unwrap();
        let all = counter.read(&Element::of(data));
        // Nothing beyond its reach plays a part, but the size.
        let near = &data[..data.len().min(counter.reach())];
        assert_eq!(counter.read(&Element { data: near, ..Element::of(data) }), all);
        all.map(|count| (count.flow, count.second, count.number, count.alone))
    }

    #[test]
    fn counters_are_read_and_shown_and_what_is_none_is_told_where() {
        for text in ["vdif", "spead", "rtp", "mcap", "at:2:u16be", "at:0:u32le:bits3..7,flow=at:8:u8"] {
            assert_eq!(text.parse::<Counter>().unwrap().to_string(), text);
        }
        let long = format!("at:{}", "1".repeat(MAX_ATTRIBUTE));
        for (text, column, said) in [
            ("", 1, "expected "),
            ("dada", 1, "`vdif`, `spead`, `rtp`"),
            ("rtp2", 1, "`rtp`"),
            ("vdif:frame", 5, "expected the end"),
            ("at", 3, "expected `:`"),
            ("at:2", 5, "a layout"),
            ("at:2:i16be", 4, "unsigned"),
            ("at:0:ipv4", 4, "unsigned"),
            ("at:0:u8:bits0..3", 4, "at least 4 bits"),
            ("at:0:u8,flow=at:1:f32be", 17, "unsigned"),
            ("at:0:u8,by=at:1:u8", 8, "the end"),
            ("at:65535:u16be", 4, "65537"),
            (&long, 1, "at most"),
        ] {
            let error = text.parse::<Counter>().unwrap_err();
            assert_eq!(error.column, column, "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn numbers_are_found_and_elements_without_them_have_none() {
        let rtp = [0x80, 0x60, 0x12, 0x34, 0, 0, 0, 0, 0xde, 0xad, 0xbe, 0xef, 9];
        assert_eq!(read("rtp", &rtp), Some((0xdead_beef, 0, 0x1234, true)));
        assert_eq!(read("rtp", &rtp[..11]), None);
        for (at, other) in [(0, 0x40), (1, 200), (1, 0xc8)] {
            let mut none = rtp;
            none[at] = other;
            assert_eq!(read("rtp", &none), None, "{at}: {other}");
        }
        // With its mark, it is a packet all the same.
        assert_eq!(
            read("rtp", &[[0x80, 0xe0].as_slice(), &rtp[2..]].concat()).map(|read| read.2),
            Some(0x1234)
        );

        let bytes = [0x0f, 1, 2, 3, 4, 5, 6, 7, 0xf8];
        assert_eq!(read("at:1:u16be", &bytes), Some((0, 0, 0x0102, true)));
        assert_eq!(read("at:1:u16le", &bytes), Some((0, 0, 0x0201, true)));
        assert_eq!(
            read("at:0:u64be,flow=at:8:u8:bits3..8", &bytes),
            Some((31, 0, 0x0f01_0203_0405_0607, true))
        );
        assert_eq!(read("at:1:u64le", &bytes), Some((0, 0, 0xf807_0605_0403_0201, true)));
        assert_eq!(read("at:0:u32be:bits20..28", &bytes), Some((0, 0, 0xf0, true)));
        assert_eq!(read("at:2:u64be", &bytes), None);
        assert_eq!(read("at:0:u8,flow=at:9:u8", &bytes), None);
    }

    #[test]
    fn messages_have_those_of_their_header() {
        let mut header = Vec::new();
        given::push(&mut header, Some(b"/imu"));
        given::push(&mut header, Some(&77u64.to_le_bytes()));
        given::push(&mut header, None);
        given::push(&mut header, Some(&3u64.to_le_bytes()));
        let read = |header| Counter::Mcap.read(&Element { header, ..Element::of(b"message") });
        assert_eq!(read(Some(&header[..])), Some(Count { flow: 3, second: 0, number: 77, alone: true }));
        assert_eq!((read(None), read(Some(&header[..header.len() - 1]))), (None, None));
    }

    #[test]
    fn frames_and_heaps_have_the_numbers_of_their_headers() {
        // Second 1000, epoch 28, frame 77, thread 5, station 0x4566.
        let words = [1000u32, 28 << 24 | 0x4d, 64 / 8, 5 << 16 | 0x4566].map(u32::to_le_bytes).concat();
        let mut frame = words.clone();
        frame.resize(64, 0);
        assert_eq!(read("vdif", &frame), Some((28 << 32 | 5 << 16 | 0x4566, 1000, 77, true)));
        assert_eq!(read("vdif", &frame[..63]), None);

        let packet = |items: &[(u64, u64)]| {
            let header = [0x53, 4, 2, 6, 0, 0, 0, items.len() as u8];
            let items =
                items.iter().flat_map(|(item, value)| (1u64 << 63 | item << 48 | value).to_be_bytes());
            header.into_iter().chain(items).collect::<Vec<u8>>()
        };
        assert_eq!(read("spead", &packet(&[(1, 9), (2, 40), (4, 40)])), Some((0, 0, 9, true)));
        assert_eq!(read("spead", &packet(&[(2, 40), (1, 9), (4, 30)])), Some((0, 0, 9, false)));
        assert_eq!(read("spead", &packet(&[(1, 9)])), Some((0, 0, 9, false)));
        assert_eq!(read("spead", &packet(&[(2, 40), (4, 40)])), None);
        assert_eq!(read("spead", b"S"), None);
        // Of addresses of 40 bits it is not known from where on heaps are numbered anew.
        let mut other = [0x53, 4, 3, 5, 0, 0, 0, 1].to_vec();
        other.extend((1u64 << 63 | 1 << 40 | 9).to_be_bytes());
        assert!(Items::read(&other).is_some_and(|items| items.value(SpeadField::Heap) == Some(9)));
        assert_eq!(read("spead", &other), None);
    }
}
