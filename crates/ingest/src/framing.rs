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
        // What has more digits is no element.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An element as it is kept: header, data and tag.
    type Kept = (Option<Vec<u8>>, Vec<u8>, u16);

    /// Cuts `stream`, given in pieces, and returns the elements and what is left.
    fn cut(framing: Framing, stream: &[u8], pieces: &[usize]) -> (Vec<Kept>, Tail) {
        let mut cutter = Cutter::new(framing);
        let (mut elements, mut open, mut header) = (Vec::new(), None::<Vec<u8>>, None);
        let kept = |mut bytes: Vec<u8>, header: Option<usize>, tag| match header {
            Some(header) => {
                let data = bytes.split_off(header);
                (Some(bytes), data, tag)
            }
            None => (None, bytes, tag),
        };
        let mut pieces = pieces.iter().copied().cycle();
        let mut rest = stream;
        while !rest.is_empty() {
            let (mut piece, after) = rest.split_at(pieces.next().unwrap_or(7).clamp(1, rest.len()));
            rest = after;
            while !piece.is_empty() {
                let step = cutter.step(piece);
                assert!(step.lead + step.take + step.trail > 0, "progress");
                assert_eq!(step.begins, step.begins && open.is_none());
                if step.begins {
                    open = Some(Vec::new());
                    header = step.header;
                }
                if step.take > 0 || step.ends {
                    open.as_mut().unwrap().extend_from_slice(&piece[step.lead..step.lead + step.take]);
                }
                if step.ends {
                    let bytes = open.take().unwrap();
                    elements.extend((!step.malformed).then(|| kept(bytes, header, step.tag)));
                }
                piece = &piece[step.lead + step.take + step.trail..];
            }
        }
        assert_eq!(cutter.position(), stream.len() as u64);
        let tail = cutter.finish();
        if let Tail::Ends(tag) = tail {
            elements.push(kept(open.take().unwrap(), None, tag));
        }
        (elements, tail)
    }

    fn framing() -> impl Strategy<Value = Framing> {
        prop_oneof![
            (1u64..50).prop_map(Framing::Fixed),
            (1u64..50).prop_map(Framing::Blocks),
            Just(Framing::Lines),
            Just(Framing::Len32),
            Just(Framing::Len32Be),
            Just(Framing::Attr32),
            Just(Framing::Syslog),
        ]
    }

    proptest! {
        // Promises 2 and 5: whatever the pieces, the same elements, and the stream comes back byte for byte.
        #[test]
        fn elements_do_not_depend_on_how_the_bytes_arrive_and_restore_to_the_stream(
            framing in framing(),
            payloads in prop::collection::vec(
                (prop::option::of(prop::collection::vec(any::<u8>(), 0..9)), prop::collection::vec(any::<u8>(), 0..60), 0..3u16),
                0..20,
            ),
            pieces in prop::collection::vec(1usize..40, 1..8),
            cut_off in 0usize..30,
        ) {
            let mut stream = Vec::new();
            let mut wanted = Vec::new();
            for (header, payload, tag) in &payloads {
                let mut data: Vec<u8> = match framing {
                    Framing::Lines => payload.iter().map(|b| if *b == b'\n' { b' ' } else { *b }).collect(),
                    _ => payload.clone(),
                };
                let header = header.clone().filter(|_| framing.has_header());
                // Without a header: one that is longer than its frame, or a frame that is too short for any.
                let tag = match header {
                    // With a count, where there is something to count; with a newline, or a NUL.
                    None if framing == Framing::Syslog && *tag == 0 && !data.is_empty() => 0,
                    None if framing == Framing::Syslog => {
                        data.retain(|byte| !matches!(byte, b'\n' | 0));
                        data.insert(0, b'<');
                        tag.max(&1) + 1
                    }
                    None if framing.has_header() && *tag > 0 => data.len() as u16 + tag,
                    None if framing.has_header() => {
                        data.truncate(1);
                        0
                    }
                    _ => 0,
                };
                framing.restore(&mut stream, header.as_deref(), &data, tag);
                wanted.push((header, data, tag));
            }
            stream.truncate(stream.len().saturating_sub(cut_off));
            let (elements, tail) = cut(framing, &stream, &pieces);
            prop_assert_eq!(&cut(framing, &stream, &[usize::MAX]).0, &elements);
            let mut back = Vec::new();
            for (header, payload, tag) in &elements {
                framing.restore(&mut back, header.as_deref(), payload, *tag);
            }
            if framing.has_header() {
                prop_assert_eq!(&elements[..], &wanted[..elements.len()]);
            }
            if let Tail::Cut { have, .. } = tail {
                prop_assert!(stream.starts_with(&back));
                let lead = stream.len() - back.len() - have as usize;
                prop_assert!(lead <= LEAD, "{} bytes are nobody's", lead);
            } else {
                prop_assert_eq!(&stream, &back);
            }
        }
    }

    /// The elements of a stream of syslog messages with their tags, how many were malformed, and its tail: told from the whole
    /// stream.
    fn split_syslog(mut rest: &[u8]) -> (Vec<(Vec<u8>, u16)>, Tail) {
        let mut elements = Vec::new();
        while !rest.is_empty() {
            let number = rest.iter().take(COUNT_DIGITS).take_while(|byte| byte.is_ascii_digit()).count();
            let digits = if rest[0] == b'0' { 0 } else { number };
            let behind = &rest[digits..];
            if digits > 0 && behind.is_empty() {
                return (elements, Tail::Cut { have: digits as u64, want: None });
            }
            if digits > 0 && behind[0] == b' ' {
                let count: u64 = std::str::from_utf8(&rest[..digits]).unwrap().parse().unwrap();
                let Some(message) = behind[1..].get(..count as usize) else {
                    return (elements, Tail::Cut { have: behind.len() as u64 - 1, want: Some(count) });
                };
                elements.push((message.to_vec(), 0));
                rest = &behind[1 + count as usize..];
                continue;
            }
            let Some(end) = behind.iter().position(|byte| matches!(byte, b'\n' | 0)) else {
                let have = behind.len() as u64;
                if digits > 0 {
                    return (elements, Tail::Cut { have, want: None });
                }
                elements.push((behind.to_vec(), UNTERMINATED));
                return (elements, Tail::Ends(UNTERMINATED));
            };
            if digits == 0 {
                let tag = if behind[end] == 0 { SYSLOG_NUL } else { SYSLOG_NEWLINE };
                elements.push((behind[..end].to_vec(), tag));
            }
            rest = &behind[end + 1..];
        }
        (elements, Tail::Clean)
    }

    /// A stream of syslog messages, in part good and in part anything.
    fn syslog() -> impl Strategy<Value = Vec<u8>> {
        let anything = || prop::collection::vec(prop::sample::select(b"<0123456789 \n\0ab".to_vec()), 0..24);
        let message = prop_oneof![
            4 => anything().prop_map(|bytes| [format!("{} ", bytes.len()).as_bytes(), &bytes].concat()),
            2 => "<[0-9]{1,3}>[a-z 0-9]{0,12}[\n\0]".prop_map(String::into_bytes),
            1 => anything(),
        ];
        prop::collection::vec(message, 0..12).prop_map(|messages| messages.concat())
    }

    proptest! {
        #[test]
        fn syslog_messages_are_those_of_a_splitter_that_has_the_whole_stream(
            stream in syslog(), pieces in prop::collection::vec(1usize..9, 1..8),
        ) {
            let (wanted, tail) = split_syslog(&stream);
            let wanted: Vec<Kept> = wanted.into_iter().map(|(data, tag)| (None, data, tag)).collect();
            prop_assert_eq!(cut(Framing::Syslog, &stream, &pieces), (wanted, tail));
        }
    }

    #[test]
    fn syslog_messages_of_both_kinds_may_be_mixed_and_a_false_count_costs_what_it_stands_in() {
        let stream = b"6 <1>one<2>two\n<3>three\x0012x lost 6 not\n05 zero\n99999999999 no\n4 \n\0<55 cut";
        let kept = |data: &[u8], tag| (None, data.to_vec(), tag);
        let wanted = [
            kept(b"<1>one", 0),
            kept(b"<2>two", SYSLOG_NEWLINE),
            kept(b"<3>three", SYSLOG_NUL),
            kept(b"05 zero", SYSLOG_NEWLINE),
            kept(b"\n\0<5", 0),
        ];
        let (elements, tail) = cut(Framing::Syslog, stream, &[1]);
        assert_eq!((&elements[..], tail), (&wanted[..], Tail::Cut { have: 3, want: Some(5) }));
    }

    #[test]
    fn framings_are_read_and_shown_and_wrong_ones_say_what_to_give() {
        for text in ["fixed:5032", "blocks:65536", "lines", "len32", "len32be", "attr32", "syslog", "whole"] {
            assert_eq!(text.parse::<Framing>().unwrap().to_string(), text);
        }
        assert_eq!("blocks:64KiB".parse(), Ok(Framing::Blocks(65_536)));
        for text in ["", "fixed", "fixed:0", "fixed:2GiB", "lines:3", "len64"] {
            let said = text.parse::<Framing>().unwrap_err().to_string();
            assert!(said.contains("fixed:N, blocks:N, lines"), "{said}");
        }
    }

    #[test]
    fn a_cut_element_says_what_it_has_and_what_it_lacks() {
        assert_eq!(cut(Framing::Fixed(5), b"helloab", &[3]).1, Tail::Cut { have: 2, want: Some(5) });
        assert_eq!(cut(Framing::Len32, &[9, 0, 0, 0, 1, 2], &[1]).1, Tail::Cut { have: 2, want: Some(9) });
        assert_eq!(cut(Framing::Len32Be, &[0, 0], &[1]).1, Tail::Cut { have: 2, want: None });
        let (lines, tail) = cut(Framing::Lines, b"a\n\nb", &[1]);
        assert_eq!(tail, Tail::Ends(UNTERMINATED));
        let line = |text: &[u8], tag| (None, text.to_vec(), tag);
        assert_eq!(lines, [line(b"a", 0), line(b"", 0), line(b"b", UNTERMINATED)]);
        assert_eq!(cut(Framing::Attr32, &[9, 0, 0, 0, 1], &[1]).1, Tail::Cut { have: 5, want: None });
        let begun = [9, 0, 0, 0, 3, 0, 7, 7, 7, 1];
        assert_eq!(cut(Framing::Attr32, &begun, &[4]).1, Tail::Cut { have: 4, want: Some(7) });
    }

    #[test]
    fn a_frame_whose_header_cannot_be_is_an_element_without_one() {
        // Too long for its frame; too long for a row; no place for its length.
        let large = MAX_HEADER + 1;
        let mut stream = [&[4, 0, 0, 0, 3, 0, b'a', b'b'][..], &[1, 0, 0, 0, b'c', 0, 0, 0, 0]].concat();
        stream.extend([&(large as u32 + 2).to_le_bytes()[..], &(large as u16).to_le_bytes()].concat());
        stream.extend(vec![7; large]);
        let (elements, tail) = cut(Framing::Attr32, &stream, &[3, 900]);
        let kept = |data: &[u8], tag| (None, data.to_vec(), tag);
        let wanted = [kept(b"ab", 3), kept(b"c", 0), kept(b"", 0), kept(&vec![7; large], large as u16)];
        assert_eq!((&elements[..], tail), (&wanted[..], Tail::Clean));
        let mut back = Vec::new();
        for (_, data, tag) in &elements {
            Framing::Attr32.restore(&mut back, None, data, *tag);
        }
        assert!(back == stream);
    }

    #[test]
    fn reads_are_sized_so_that_elements_stay_whole() {
        let mut cutter = Cutter::new(Framing::Fixed(5032));
        assert_eq!(cutter.most(20_000, 4000), 3 * 5032);
        cutter.step(&[0; 5000]);
        assert_eq!((cutter.least(), cutter.most(20_000, 4000)), (32, 32 + 3 * 5032));
        assert_eq!(Cutter::new(Framing::Fixed(20)).most(256 << 10, 1001), 20 * 1000);
    }
}
