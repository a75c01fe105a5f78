//! Encoding shared by all messages: a frame's head, integers, texts, and the limits of each.
//!
//! Integers are little-endian. A frame is drawn in `docs` of [`Writer`]; its payload belongs to `request` and
//! `answer`. Every length is checked against its limit before memory is allocated for it.

use std::fmt;

/// Longest name of an item, in bytes: four times the longest path of Linux.
pub const MAX_NAME_BYTES: usize = 16 << 10;
/// Longest arguments of a module together, in bytes: they pass through a command line.
pub const MAX_ARGUMENT_BYTES: usize = 64 << 10;
/// Longest text inside a failure, in bytes; longer ones are cut.
pub const MAX_TEXT_BYTES: usize = 1 << 10;
/// Number of log lines of one answer; further ones are dropped.
pub const MAX_LOG_LINES: usize = 64;
/// Longest log line, in bytes; longer ones are cut.
pub const MAX_LOG_BYTES: usize = 1 << 10;
/// Longest payload of a request: a name and some integers.
pub const MAX_REQUEST_BYTES: usize = MAX_NAME_BYTES + 64;
/// Longest payload of an answer: as many results and log lines as one frame may have.
pub const MAX_ANSWER_BYTES: usize =
    super::MAX_OUTPUT_BYTES as usize + 12 * super::PART_OUTPUTS as usize + 2 * MAX_LOG_LINES * MAX_LOG_BYTES;
/// Bytes of a frame's head: the length of its payload.
pub(crate) const HEAD_BYTES: usize = 4;

/// Reasons why a message cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WireError {
    /// The payload ends before the field that is named.
    Short(&'static str),
    /// A length or count is above its limit.
    TooLong {
        /// Name of the field.
        field: &'static str,
        /// Length or count that the message declares.
        length: u64,
        /// Largest length or count that is accepted.
        limit: u64,
    },
    /// A tag or flag has a value that this version does not know.
    Unknown {
        /// Name of the field.
        field: &'static str,
        /// Value of the field.
        value: u64,
    },
    /// A text is not UTF-8, in the named field.
    NotText(&'static str),
    /// The payload continues after its last field, by so many bytes.
    Trailing(usize),
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(field) => write!(f, "the message ends before its {field}"),
            Self::TooLong { field, length, limit } => write!(f, "the {field} is {length}, above {limit}"),
            Self::Unknown { field, value } => write!(f, "the {field} is {value}, which has no meaning"),
            Self::NotText(field) => write!(f, "the {field} is not UTF-8"),
            Self::Trailing(bytes) => write!(f, "the message has {bytes} bytes after its last field"),
        }
    }
}

impl std::error::Error for WireError {}

/// Length of a payload from the head of its frame, if it is within `limit`.
pub(crate) fn payload_bytes(head: [u8; HEAD_BYTES], limit: usize) -> Result<usize, WireError> {
    let length = u32::from_le_bytes(head);
    match usize::try_from(length) {
        Ok(length) if length <= limit => Ok(length),
        _ => Err(WireError::TooLong { field: "message", length: length.into(), limit: limit as u64 }),
    }
}

/// Prefix of `text` of at most `limit` bytes that ends with a whole character.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

/// Appends fields to a frame.
///
/// ```text
/// 0  u32  length of the payload
/// 4  u8   tag of the message
/// 5  …    fields of the message, in the order of its decoder
/// ```
#[derive(Debug)]
pub(crate) struct Writer<'a> {
    into: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Writer<'a> {
    /// Begins a frame behind everything that `into` already holds.
    pub(crate) fn begin(into: &'a mut Vec<u8>, tag: u8) -> Self {
        let start = into.len();
        into.extend_from_slice(&[0; HEAD_BYTES]);
        into.push(tag);
        Self { into, start }
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.into.push(value);
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.into.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.into.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Appends the length of `value`, then its bytes.
    pub(crate) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.u32(value.len() as u32);
        self.into.extend_from_slice(value);
        self
    }

    /// Writes the length of the payload into the head.
    pub(crate) fn end(self) {
        let length = (self.into.len() - self.start - HEAD_BYTES) as u32;
        if let Some(head) = self.into.get_mut(self.start..self.start + HEAD_BYTES) {
            head.copy_from_slice(&length.to_le_bytes());
        }
    }
}

/// Takes fields from the front of a payload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Number of bytes that no field has taken yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }

    fn take<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let (front, rest) = self.rest.split_first_chunk::<N>().ok_or(WireError::Short(field))?;
        self.rest = rest;
        Ok(*front)
    }

    pub(crate) fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        self.take::<1>(field).map(|[byte]| byte)
    }

    pub(crate) fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        self.take(field).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, field: &'static str) -> Result<u64, WireError> {
        self.take(field).map(u64::from_le_bytes)
    }

    /// Takes a flag, encoded as 0 or 1.
    pub(crate) fn flag(&mut self, field: &'static str) -> Result<bool, WireError> {
        match self.u8(field)? {
            0 => Ok(false),
            1 => Ok(true),
            value => Err(WireError::Unknown { field, value: value.into() }),
        }
    }

    /// Takes a count of at most `limit`.
    pub(crate) fn count(&mut self, field: &'static str, limit: usize) -> Result<usize, WireError> {
        let length = self.u32(field)?;
        match usize::try_from(length) {
            Ok(count) if count <= limit => Ok(count),
            _ => Err(WireError::TooLong { field, length: length.into(), limit: limit as u64 }),
        }
    }

    /// Takes a length of at most `limit`, then so many bytes.
    pub(crate) fn bytes(&mut self, field: &'static str, limit: usize) -> Result<&'a [u8], WireError> {
        let count = self.count(field, limit)?;
        let (front, rest) = self.rest.split_at_checked(count).ok_or(WireError::Short(field))?;
        self.rest = rest;
        Ok(front)
    }

    /// Takes a length of at most `limit`, then a text of so many bytes.
    pub(crate) fn text(&mut self, field: &'static str, limit: usize) -> Result<String, WireError> {
        let bytes = self.bytes(field, limit)?;
        let text = std::str::from_utf8(bytes).map_err(|_| WireError::NotText(field))?;
        Ok(text.to_owned())
    }

    /// Checks that nothing follows the last field.
    pub(crate) fn end(self) -> Result<(), WireError> {
        if self.rest.is_empty() { Ok(()) } else { Err(WireError::Trailing(self.rest.len())) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_above_its_limit_is_refused_before_it_is_read() {
        let mut reader = Reader::new(&[255, 255, 255, 255, 1]);
        let refused = WireError::TooLong { field: "name", length: u32::MAX.into(), limit: 10 };
        assert_eq!(reader.text("name", 10), Err(refused));
        assert_eq!(payload_bytes([11, 0, 0, 0], 11), Ok(11));
        assert!(payload_bytes([12, 0, 0, 0], 11).is_err());
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("añb", 2), "a");
        assert_eq!(cut("añb", 3), "añ");
        assert_eq!(cut("añb", 99), "añb");
    }
}
