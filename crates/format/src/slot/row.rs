//! A row: the entry of one element, fragment, abort, gap or note in a slot. `columns` encodes rows as bytes.

use holdfast_base::{Ordinal, Timestamp};

/// What a row tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Kind {
    /// A whole element.
    #[default]
    Element = 0,
    /// A contiguous piece of one.
    Fragment = 1,
    /// The end of an element that gets no further fragments.
    Abort = 2,
    /// A loss.
    Gap = 3,
    /// Metadata of a stream, without an ordinal of its own.
    Note = 4,
}

impl Kind {
    /// The kind with this number.
    pub fn from_byte(byte: u8) -> Option<Self> {
        [Self::Element, Self::Fragment, Self::Abort, Self::Gap, Self::Note].get(usize::from(byte)).copied()
    }
}

/// Which way a packet went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// Not known, or of no meaning.
    #[default]
    Unknown = 0,
    /// Inbound.
    In = 1,
    /// Outbound.
    Out = 2,
}

/// Facts about a row that are true or not, and the direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// It has an event time.
    pub const EVENT: Self = Self(1);
    /// The last fragment of its element.
    pub const LAST: Self = Self(2);
    /// Its metadata is pcapng options.
    pub const PCAPNG_OPTIONS: Self = Self(16);
    /// Its element came with a header, which is its metadata: it may be empty, and is that of the whole element where this is a
    /// fragment.
    pub const HEADER: Self = Self(32);

    /// Whether all of `flags` are set.
    #[inline]
    pub fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// These and `flags`.
    #[inline]
    #[must_use]
    pub fn with(self, flags: Self) -> Self {
        Self(self.0 | flags.0)
    }

    /// Which way the packet went.
    pub fn direction(self) -> Direction {
        match self.0 >> 2 & 3 {
            1 => Direction::In,
            2 => Direction::Out,
            _ => Direction::Unknown,
        }
    }

    /// The same with another direction.
    #[must_use]
    pub fn with_direction(self, direction: Direction) -> Self {
        Self(self.0 & !0b1100 | (direction as u8) << 2)
    }
}

impl std::ops::BitOr for Flags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

/// What a slot says of the next `meta + len` bytes of its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Row {
    /// Dictionary entry of its stream.
    pub stream: u16,
    /// What it tells of.
    pub kind: Kind,
    /// Facts.
    pub flags: Flags,
    /// Chosen by the source: the interface of a packet.
    pub tag: u16,
    /// Bytes of metadata in front of the data.
    pub meta: u16,
    /// Bytes of data.
    pub len: u32,
    /// Bytes the element had on arrival beyond `len`.
    pub extra: u32,
    /// Number of the fragment, from 0.
    pub number: u32,
    /// Ordinal of the element; of the first lost one for a gap. A note is read back with the ordinal that the
    /// stream's next element was expected to get.
    pub ordinal: Ordinal,
    /// Arrival of the last byte.
    pub arrival: Timestamp,
    /// Nanoseconds from the arrival of the first byte to that of the last.
    pub span: u64,
    /// Event time; 0 unless [`Flags::EVENT`] is set.
    pub event: Timestamp,
    /// Where the fragment begins in its element.
    pub offset: u64,
}

impl Row {
    /// Bytes of the payload that it describes.
    #[inline]
    pub fn payload(&self) -> usize {
        self.len as usize + usize::from(self.meta)
    }

    /// Whether nothing more will come of its element.
    #[inline]
    pub fn ends_element(&self) -> bool {
        ends_element(self.kind, self.flags)
    }

    /// Whether with it all of its element is there: such a row has a cell in every column of its stream.
    #[inline]
    pub fn completes_element(&self) -> bool {
        self.kind != Kind::Abort && self.ends_element()
    }

    /// Arrival of the first byte.
    #[inline]
    pub fn first_arrival(&self) -> Timestamp {
        Timestamp(self.arrival.0.saturating_sub_unsigned(self.span))
    }
}

/// Whether such a row ends its element.
#[inline]
pub(super) fn ends_element(kind: Kind, flags: Flags) -> bool {
    match kind {
        Kind::Element | Kind::Abort => true,
        Kind::Fragment => flags.has(Flags::LAST),
        Kind::Gap | Kind::Note => false,
    }
}
