//! Locations of fields in elements of a fixed layout, as typed: `4:u16be`, `4:u32le:bits0..24`, `16:text8`.

use crate::cursor::Cursor;
use crate::{MAX_DATA, Problem, SchemaError, Type};
use holdfast_format::MAX_TEXT;
use std::fmt;

/// Where in an element a value lies, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLocation {
    pub(crate) offset: usize,
    pub(crate) layout: Layout,
}

/// How bytes are a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Some bits of it, if not all: from, and how many.
    Unsigned(Bytes, Option<(u32, u32)>),
    Signed(Bytes),
    Float32(Order),
    Float64(Order),
    Raw(usize),
    /// Up to its first zero.
    Text(usize),
    Ipv4,
    Ipv6,
    Mac,
}

/// How many bytes a number has, and which one is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) width: usize,
    /// Of a single byte it is always the same.
    pub(crate) order: Order,
}

/// Which byte of a number is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Layout {
    fn named(name: &str) -> Option<Self> {
        match name {
            "ipv4" => return Some(Self::Ipv4),
            "ipv6" => return Some(Self::Ipv6),
            "mac" => return Some(Self::Mac),
            _ => {}
        }
        let sized = |count: &str| {
            let canonical = !count.starts_with('0') && count.bytes().all(|byte| byte.is_ascii_digit());
            count.parse().ok().filter(|count| canonical && (1..=MAX_TEXT).contains(count))
        };
        if let Some(count) = name.strip_prefix("bytes") {
            return sized(count).map(Self::Raw);
        }
        if let Some(count) = name.strip_prefix("text") {
            return sized(count).map(Self::Text);
        }
        let (number, order) = match (name.strip_suffix("le"), name.strip_suffix("be")) {
            (Some(number), _) => (number, Some(Order::Little)),
            (_, Some(number)) => (number, Some(Order::Big)),
            _ => (name, None),
        };
        Some(match (number, order) {
            ("u8", None) => Self::Unsigned(Bytes { width: 1, order: Order::Little }, None),
            ("i8", None) => Self::Signed(Bytes { width: 1, order: Order::Little }),
            ("u16", Some(order)) => Self::Unsigned(Bytes { width: 2, order }, None),
            ("u32", Some(order)) => Self::Unsigned(Bytes { width: 4, order }, None),
            ("u64", Some(order)) => Self::Unsigned(Bytes { width: 8, order }, None),
            ("i16", Some(order)) => Self::Signed(Bytes { width: 2, order }),
            ("i32", Some(order)) => Self::Signed(Bytes { width: 4, order }),
            ("i64", Some(order)) => Self::Signed(Bytes { width: 8, order }),
            ("f32", Some(order)) => Self::Float32(order),
            ("f64", Some(order)) => Self::Float64(order),
            _ => return None,
        })
    }

    /// Bytes that it takes.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::Unsigned(bytes, _) | Self::Signed(bytes) => bytes.width,
            Self::Float32(_) | Self::Ipv4 => 4,
            Self::Float64(_) => 8,
            Self::Raw(width) | Self::Text(width) => width,
            Self::Ipv6 => 16,
            Self::Mac => 6,
        }
    }

    /// The types of which its value may be.
    fn gives(self) -> &'static [Type] {
        match self {
            Self::Unsigned(Bytes { width: 8, .. }, None | Some((_, 64))) => {
                &[Type::Uint, Type::Bool, Type::Time]
            }
            Self::Unsigned(..) => &[Type::Uint, Type::Int, Type::Bool, Type::Time],
            Self::Signed(_) => &[Type::Int, Type::Time],
            Self::Float32(_) | Self::Float64(_) => &[Type::Float, Type::Time],
            Self::Raw(_) => &[Type::Binary],
            Self::Text(_) => &[Type::Text],
            Self::Ipv4 => &[Type::Ipv4, Type::Ip],
            Self::Ipv6 => &[Type::Ipv6, Type::Ip],
            Self::Mac => &[Type::Mac],
        }
    }
}

impl FieldLocation {
    /// The types of which its value may be.
    pub(crate) fn gives(&self) -> &'static [Type] {
        self.layout.gives()
    }

    /// Of an unsigned number, how many bits it has.
    pub(crate) fn bits(&self) -> Option<u32> {
        match self.layout {
            Layout::Unsigned(bytes, bits) => Some(bits.map_or(8 * bytes.width as u32, |(_, count)| count)),
            _ => None,
        }
    }

    /// Of numbers and addresses, bytes that tell all values of a type apart that there may be; `None` where there may be none.
    pub(crate) fn bytes_of(&self, kind: Type) -> Option<usize> {
        match self.layout {
            _ if kind == Type::Time => None,
            Layout::Unsigned(..) => self.bits().map(|bits| bits.div_ceil(8) as usize),
            Layout::Float32(_) | Layout::Float64(_) => Some(8),
            Layout::Signed(_) | Layout::Ipv4 | Layout::Ipv6 | Layout::Mac => Some(self.layout.width()),
            Layout::Raw(_) | Layout::Text(_) => None,
        }
    }

    /// The byte behind it.
    pub(crate) fn end(&self) -> usize {
        self.offset + self.layout.width()
    }

    /// The unsigned number that lies here.
    pub(crate) fn number(&self, data: &[u8]) -> Option<u64> {
        let Layout::Unsigned(Bytes { width, order }, bits) = self.layout else { return None };
        let bytes = data.get(self.offset..self.offset + width)?;
        let more = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
        let number = match order {
            Order::Big => bytes.iter().fold(0, more),
            Order::Little => bytes.iter().rev().fold(0, more),
        };
        let (from, count) = bits.unwrap_or((0, 8 * width as u32));
        Some(number >> from & u64::MAX >> (64 - count))
    }

    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        let start = cursor.at();
        let offset: u32 = cursor.number("a number of bytes from the start of the element")?;
        cursor.expect(":", "`:` and a layout, such as u16be,")?;
        let at = cursor.at();
        let name = cursor.take_while(|c| c.is_ascii_alphanumeric());
        let layout = Layout::named(name);
        let mut layout = layout.ok_or_else(|| cursor.wrong_at(at, Problem::Layout(name.to_owned())))?;
        let end = u64::from(offset) + layout.width() as u64;
        if end > MAX_DATA as u64 {
            return Err(cursor.wrong_at(start, Problem::TooFar { end }));
        }
        if cursor.eat(":") {
            let at = cursor.at();
            let Layout::Unsigned(bytes, bits) = &mut layout else {
                return Err(cursor.wrong_at(at, Problem::NoBits));
            };
            *bits = Some(Self::some_bits(cursor, 8 * bytes.width as u32)?);
        }
        Ok(Self { offset: offset as usize, layout })
    }

    fn some_bits(cursor: &mut Cursor<'_>, most: u32) -> Result<(u32, u32), SchemaError> {
        let at = cursor.at();
        cursor.expect("bits", "`bitsA..B`")?;
        let from: u32 = cursor.number("the lowest bit")?;
        cursor.expect("..", "`..`")?;
        let to: u32 = cursor.number("the bit behind the highest")?;
        if from < to && to <= most {
            Ok((from, to - from))
        } else {
            Err(cursor.wrong_at(at, Problem::Bits(most)))
        }
    }
}

impl fmt::Display for FieldLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.offset)?;
        let ordered = |f: &mut fmt::Formatter<'_>, letter, bytes: Bytes| match (bytes.width, bytes.order) {
            (1, _) => write!(f, "{letter}8"),
            (width, Order::Little) => write!(f, "{letter}{}le", 8 * width),
            (width, Order::Big) => write!(f, "{letter}{}be", 8 * width),
        };
        match self.layout {
            Layout::Unsigned(bytes, bits) => {
                ordered(f, 'u', bytes)?;
                match bits {
                    Some((from, count)) => write!(f, ":bits{from}..{}", from + count),
                    None => Ok(()),
                }
            }
            Layout::Signed(bytes) => ordered(f, 'i', bytes),
            Layout::Float32(order) => ordered(f, 'f', Bytes { width: 4, order }),
            Layout::Float64(order) => ordered(f, 'f', Bytes { width: 8, order }),
            Layout::Raw(count) => write!(f, "bytes{count}"),
            Layout::Text(count) => write!(f, "text{count}"),
            Layout::Ipv4 => f.write_str("ipv4"),
            Layout::Ipv6 => f.write_str("ipv6"),
            Layout::Mac => f.write_str("mac"),
        }
    }
}
