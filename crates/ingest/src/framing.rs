//! Framing: boundaries of elements in a stream of bytes, and the reverse.
//!
//! Pure: bytes in, steps out. [`Framing`] is the rule, read from text and kept with the stream; [`Cutter`] is the
//! state of one stream of bytes under it. Reading the bytes is the sources' part, storing them the producer's.

use holdfast_base::{ByteSize, MAX_ELEMENT, MIN_SLOT, UnitError};
use std::fmt;
use std::io::Write as _;
use std::str::FromStr;

/// How a stream of bytes is cut into elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Elements of a fixed size; a shorter rest is not an element.
    Fixed(u64),
    /// Plain chopping: blocks of a fixed size, the last one as short as it comes.
    Blocks(u64),
    /// Text lines; the newline is not part of the element.
    Lines,
    /// A length of 4 bytes, little-endian, then as many bytes.
    Len32,
    /// The same, big-endian.
    Len32Be,
    /// A length of 4 bytes, little-endian; then, counted by it, the length of a header of 2 bytes, the header, and the element.
    Attr32,
    /// Syslog messages over a stream (RFC 6587): a decimal count and a space, then as many bytes; a message that does not
    /// begin with a count ends with a newline or a NUL.
    Syslog,
    /// No bytes between elements and no rule inside: datagrams, packets.
    Whole,
}

/// The mark (tag) of a last line that had no newline.
pub const UNTERMINATED: u16 = 1;

/// Marks (tags) of syslog messages that ended with a newline, or with a NUL: they came without a count.
const SYSLOG_NEWLINE: u16 = 2;
const SYSLOG_NUL: u16 = 3;

/// Most digits of the count of a syslog message: those of 1 GiB.
const COUNT_DIGITS: usize = 10;

/// Most bytes of framing in front of an element: a count and its space.
const LEAD: usize = COUNT_DIGITS + 1;

/// Bytes of a header: an eighth of the smallest slot, so that no row has to do without.
pub const MAX_HEADER: usize = (MIN_SLOT / 8) as usize;

/// Block size where none is said: what a pipe holds.
pub const DEFAULT_BLOCK: ByteSize = ByteSize::kib(64);

/// An element up to this size is kept in one piece if a batch can take it.
pub(crate) const KEEP_TOGETHER: usize = 64 << 10;

const WANTED: &str = "fixed:N, blocks:N, lines, len32, len32be, attr32 or syslog (N from 1 to 1GiB, such as fixed:5032 or blocks:64KiB)";

impl FromStr for Framing {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = || UnitError::new("framing", text, WANTED);
        let size = |text: &str| {
            let size: ByteSize = text.parse().map_err(|_| wrong())?;
            if (1..=MAX_ELEMENT).contains(&size.0) { Ok(size.0) } else { Err(wrong()) }
        };
        match text.split_once(':') {
            Some(("fixed", n)) => Ok(Self::Fixed(size(n)?)),
            Some(("blocks", n)) => Ok(Self::Blocks(size(n)?)),
            None if text == "lines" => Ok(Self::Lines),
            None if text == "len32" => Ok(Self::Len32),
            None if text == "len32be" => Ok(Self::Len32Be),
            None if text == "attr32" => Ok(Self::Attr32),
            None if text == "syslog" => Ok(Self::Syslog),
            None if text == "whole" => Ok(Self::Whole),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(n) => write!(f, "fixed:{n}"),
            Self::Blocks(n) => write!(f, "blocks:{n}"),
            Self::Lines => f.write_str("lines"),
            Self::Len32 => f.write_str("len32"),
            Self::Len32Be => f.write_str("len32be"),
            Self::Attr32 => f.write_str("attr32"),
            Self::Syslog => f.write_str("syslog"),
            Self::Whole => f.write_str("whole"),
        }
    }
}

/// Bytes of framing that stood in front of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lead {
    bytes: [u8; LEAD],
    len: u8,
}

impl Lead {
    fn of(length: [u8; 4]) -> Self {
        let mut lead = Self { len: 4, ..Self::default() };
        lead.bytes[..4].copy_from_slice(&length);
        lead
    }

    fn headed(length: u32, header: u16) -> Self {
        let mut lead = Self { len: 6, ..Self::of(length.to_le_bytes()) };
        lead.bytes[4..6].copy_from_slice(&header.to_le_bytes());
        lead
    }

    /// The count of a syslog message, and a space.
    fn counted(len: u64) -> Self {
        let mut lead = Self::default();
        let mut rest = &mut lead.bytes[..];
        // A count with more digits begins no element.
        let _ = write!(rest, "{len} ");
        lead.len = (LEAD - rest.len()) as u8;
        lead
    }
}

impl AsRef<[u8]> for Lead {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or(&[])
    }
}

impl Framing {
    /// Whether elements come with a header, in which attributes can be given.
    pub fn has_header(&self) -> bool {
        *self == Self::Attr32
    }

    /// What stood in front of an element of `len` bytes with this tag, and of its header of so many bytes, if it came with one.
    pub fn lead(&self, len: u64, header: Option<usize>, tag: u16) -> Lead {
        let length = |len: u64| u32::try_from(len).unwrap_or(u32::MAX);
        match (self, header) {
            (Self::Attr32, Some(header)) => Lead::headed(length(len + header as u64 + 2), header as u16),
            // The tag tells how long its header would have been.
            (Self::Attr32, None) if tag != 0 => Lead::headed(length(len + 2), tag),
            (Self::Len32 | Self::Attr32, _) => Lead::of(length(len).to_le_bytes()),
            (Self::Len32Be, _) => Lead::of(length(len).to_be_bytes()),
            (Self::Syslog, _) if tag == 0 => Lead::counted(len),
            _ => Lead::default(),
        }
    }

    /// What stood behind an element with this tag.
    pub fn trail(&self, tag: u16) -> &'static [u8] {
        match (self, tag) {
            (Self::Lines, UNTERMINATED) => b"",
            (Self::Lines, _) | (Self::Syslog, SYSLOG_NEWLINE) => b"\n",
            (Self::Syslog, SYSLOG_NUL) => b"\0",
            _ => b"",
        }
    }

    /// Writes an element back as it came, with its header if it came with one.
    pub fn restore(&self, out: &mut Vec<u8>, header: Option<&[u8]>, payload: &[u8], tag: u16) {
        out.extend_from_slice(self.lead(payload.len() as u64, header.map(<[u8]>::len), tag).as_ref());
        out.extend_from_slice(header.unwrap_or_default());
        out.extend_from_slice(payload);
        out.extend_from_slice(self.trail(tag));
    }
}

/// What the next bytes are: `lead` bytes of framing, `take` bytes of an element with its header, `trail` bytes of framing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Bytes of framing first.
    pub lead: usize,
    /// An element begins behind them.
    pub begins: bool,
    /// Its size, where it is known.
    pub total: Option<u64>,
    /// Bytes of the header that it begins with, if it comes with one.
    pub header: Option<usize>,
    /// Bytes of the element, those of its header included.
    pub take: usize,
    /// The element ends behind them.
    pub ends: bool,
    /// How its framing marks it (tag): with [`Framing::Attr32`] the length of a header that the frame, or a row, has no room for.
    /// What follows that is then the element.
    pub tag: u16,
    /// Its framing makes no sense: the element is lost, and the next one begins where it ends.
    pub malformed: bool,
    /// Bytes of framing last.
    pub trail: usize,
}

/// What the end of a stream leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// Nothing: the last element was whole.
    Clean,
    /// An element that is whole by the end of the stream, marked with a tag.
    Ends(u16),
    /// The beginning of an element, or of its length.
    Cut {
        /// Bytes of it that came, a length prefix included.
        have: u64,
        /// Bytes it should have had, where that is known.
        want: Option<u64>,
    },
}

/// The state of one stream of bytes.
#[derive(Clone, Debug)]
pub struct Cutter {
    framing: Framing,
    /// Bytes the open element still lacks (not for lines).
    lacks: u64,
    /// Bytes of the open element so far.
    has: u64,
    /// An element has begun and not ended.
    inside: bool,
    /// The open element is a syslog message without a count.
    uncounted: bool,
    /// The number in front of it is no count.
    malformed: bool,
    prefix: [u8; LEAD],
    prefix_has: usize,
    /// The mark of the open element.
    tag: u16,
    elements: u64,
    bytes: u64,
}

impl Cutter {
    /// At the beginning of a stream.
    pub fn new(framing: Framing) -> Self {
        Self {
            framing,
            lacks: 0,
            has: 0,
            inside: false,
            uncounted: false,
            malformed: false,
            prefix: [0; LEAD],
            prefix_has: 0,
            tag: 0,
            elements: 0,
            bytes: 0,
        }
    }

    /// The rule.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// Bytes seen so far.
    pub fn position(&self) -> u64 {
        self.bytes
    }

    /// What the next bytes are; `bytes` is not empty, and the step covers at least one of them.
    pub fn step(&mut self, bytes: &[u8]) -> Step {
        let step = match self.framing {
            Framing::Fixed(n) | Framing::Blocks(n) => self.counted(0, Some(n), bytes.len()),
            Framing::Lines => self.line(bytes),
            Framing::Len32 | Framing::Len32Be | Framing::Attr32 => self.prefixed(bytes),
            Framing::Syslog => self.syslog(bytes),
            Framing::Whole => self.counted(0, Some(bytes.len() as u64), bytes.len()),
        };
        self.bytes += (step.lead + step.take + step.trail) as u64;
        self.elements += u64::from(step.ends);
        step
    }

    /// An element whose size is known: `total` when it begins here.
    fn counted(&mut self, lead: usize, total: Option<u64>, there: usize) -> Step {
        let begins = !self.inside;
        if let Some(total) = total
            && begins
        {
            self.lacks = total;
            self.has = 0;
        }
        let take = usize::try_from(self.lacks).unwrap_or(usize::MAX).min(there);
        self.lacks -= take as u64;
        self.has += take as u64;
        self.inside = self.lacks > 0;
        let total = total.filter(|_| begins);
        Step { lead, begins, total, take, ends: !self.inside, tag: self.tag, ..Step::default() }
    }

    fn line(&mut self, bytes: &[u8]) -> Step {
        let begins = !self.inside;
        let newline = memchr::memchr(b'\n', bytes);
        self.has = if begins { 0 } else { self.has } + newline.unwrap_or(bytes.len()) as u64;
        self.inside = newline.is_none();
        let total = newline.filter(|_| begins).map(|n| n as u64);
        let trail = usize::from(newline.is_some());
        let take = newline.unwrap_or(bytes.len());
        Step { begins, total, take, ends: newline.is_some(), trail, ..Step::default() }
    }

    fn prefixed(&mut self, bytes: &[u8]) -> Step {
        if self.inside {
            return self.counted(0, None, bytes.len());
        }
        let mut lead = self.fill_prefix(bytes, 4);
        if self.prefix_has < 4 {
            return Step { lead, ..Step::default() };
        }
        let [a, b, c, d, ..] = self.prefix;
        let length = match self.framing {
            Framing::Len32Be => u32::from_be_bytes([a, b, c, d]),
            _ => u32::from_le_bytes([a, b, c, d]),
        };
        let mut length = u64::from(length);
        let (mut header, mut tag) = (None, 0);
        if self.framing == Framing::Attr32 && length >= 2 {
            lead += self.fill_prefix(&bytes[lead..], 6);
            if self.prefix_has < 6 {
                return Step { lead, ..Step::default() };
            }
            length -= 2;
            let wanted = u16::from_le_bytes([self.prefix[4], self.prefix[5]]);
            let fits = u64::from(wanted) <= length && usize::from(wanted) <= MAX_HEADER;
            (header, tag) = if fits { (Some(usize::from(wanted)), 0) } else { (None, wanted) };
        }
        (self.prefix_has, self.tag) = (0, tag);
        let step = self.counted(lead, Some(length), bytes.len() - lead);
        Step { total: Some(length - header.unwrap_or(0) as u64), header, ..step }
    }

    /// A message with a count, or one that ends with a newline or a NUL. A number without a space behind it is no count: all
    /// up to the next newline or NUL is lost then, and the next message begins behind that.
    fn syslog(&mut self, bytes: &[u8]) -> Step {
        if self.inside {
            return if self.uncounted { self.uncounted(bytes) } else { self.counted(0, None, bytes.len()) };
        }
        let is_count = self.prefix_has > 0 || matches!(bytes.first(), Some(b'1'..=b'9'));
        let digits = bytes.iter().take_while(|byte| is_count && byte.is_ascii_digit()).count();
        let lead = self.fill_prefix(&bytes[..digits], COUNT_DIGITS);
        match bytes.get(lead) {
            None => Step { lead, ..Step::default() },
            Some(b' ') if is_count => {
                let digits = self.prefix[..self.prefix_has].iter();
                let length = digits.fold(0, |length, digit| length * 10 + u64::from(digit - b'0'));
                (self.prefix_has, self.uncounted) = (0, false);
                let lead = lead + 1;
                self.counted(lead, Some(length), bytes.len() - lead)
            }
            Some(_) => {
                (self.prefix_has, self.uncounted, self.malformed) = (0, true, is_count);
                Step { lead, ..self.uncounted(&bytes[lead..]) }
            }
        }
    }

    fn uncounted(&mut self, bytes: &[u8]) -> Step {
        let begins = !self.inside;
        let end = memchr::memchr2(b'\n', 0, bytes);
        let take = end.unwrap_or(bytes.len());
        self.has = if begins { 0 } else { self.has } + take as u64;
        self.inside = end.is_none();
        let tag = match end.and_then(|at| bytes.get(at)) {
            Some(0) => SYSLOG_NUL,
            Some(_) => SYSLOG_NEWLINE,
            None => UNTERMINATED,
        };
        let total = end.filter(|_| begins).map(|n| n as u64);
        let (ends, malformed, trail) = (end.is_some(), self.malformed, usize::from(end.is_some()));
        Step { begins, total, take, ends, tag, malformed, trail, ..Step::default() }
    }

    /// Takes bytes of the prefix, until there are so many of it. How many it took.
    fn fill_prefix(&mut self, bytes: &[u8], until: usize) -> usize {
        let n = until.saturating_sub(self.prefix_has).min(bytes.len());
        self.prefix[self.prefix_has..self.prefix_has + n].copy_from_slice(&bytes[..n]);
        self.prefix_has += n;
        n
    }

    /// The stream is over: what is left?
    pub fn finish(&self) -> Tail {
        match self.framing {
            _ if self.prefix_has > 0 => Tail::Cut { have: self.prefix_has as u64, want: None },
            _ if !self.inside => Tail::Clean,
            Framing::Syslog if self.uncounted && self.malformed => Tail::Cut { have: self.has, want: None },
            Framing::Syslog if self.uncounted => Tail::Ends(UNTERMINATED),
            Framing::Lines => Tail::Ends(UNTERMINATED),
            Framing::Blocks(_) | Framing::Whole => Tail::Ends(0),
            Framing::Fixed(n) => Tail::Cut { have: self.has, want: Some(n) },
            Framing::Len32 | Framing::Len32Be | Framing::Attr32 | Framing::Syslog => {
                Tail::Cut { have: self.has, want: Some(self.has + self.lacks) }
            }
        }
    }

    /// Bytes of room that keep the next element in one piece, if it is not too large for that.
    pub fn least(&self) -> usize {
        let next = match self.framing {
            Framing::Fixed(n) | Framing::Blocks(n) if !self.inside => n,
            Framing::Fixed(_)
            | Framing::Blocks(_)
            | Framing::Len32
            | Framing::Len32Be
            | Framing::Attr32
            | Framing::Syslog => self.lacks,
            Framing::Lines | Framing::Whole => 0,
        };
        if next <= KEEP_TOGETHER as u64 { next as usize } else { 0 }
    }

    /// Of `room` bytes and `rows` rows, how many bytes to read so that both end together and, if it can be, with
    /// an element.
    pub fn most(&self, room: usize, rows: usize) -> usize {
        let rows = rows as u64;
        let most = match self.framing {
            Framing::Fixed(n) | Framing::Blocks(n) => {
                let first = if self.inside { self.lacks } else { 0 };
                let whole = ((room as u64).saturating_sub(first) / n).min(rows.saturating_sub(1));
                first + whole * n
            }
            // What is known to belong to the open element, and as many as there are rows of the usual size.
            _ => {
                let usual = self.bytes.checked_div(self.elements).map_or(16, |mean| mean + 1);
                self.lacks.saturating_add(rows.saturating_mul(usual))
            }
        };
        // Less than a page is not worth a system call; then the last element is simply cut.
        usize::try_from(most).unwrap_or(room).max(4096).min(room)
    }
}

#[cfg(test)]
mod tests;
