//! Little-endian fields into a vector and out of a slice. Knows no message.

use holdfast_base::Timestamp;

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The body ends before `what` does.
    #[error("{message}: ends at byte {at}, in the middle of {what}")]
    Short {
        /// Which message.
        message: &'static str,
        /// Where.
        at: usize,
        /// Which field.
        what: &'static str,
    },
    /// A value that the protocol does not have.
    #[error("{message}: byte {at}: {what} {value} is not known")]
    Value {
        /// Which message.
        message: &'static str,
        /// Where.
        at: usize,
        /// Which field.
        what: &'static str,
        /// What it was.
        value: u64,
    },
    /// A text that is not UTF-8.
    #[error("{message}: byte {at}: a text that is not UTF-8")]
    Text {
        /// Which message.
        message: &'static str,
        /// Where.
        at: usize,
    },
    /// A frame larger than its limit.
    #[error("a frame of {bytes} bytes: {limit} is the most")]
    Large {
        /// What its head claims, head included.
        bytes: u64,
        /// The limit.
        limit: usize,
    },
    /// A type of frame that is not known here.
    #[error("frames of type {0} are not known")]
    Kind(u16),
}

/// Appends fields.
#[derive(Debug, Default)]
pub(crate) struct Put {
    bytes: Vec<u8>,
}

impl Put {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(bytes);
        self
    }

    pub(crate) fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    pub(crate) fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// In as few bytes as it takes, seven bits in each, the lowest first; the highest bit tells that another one follows.
    pub(crate) fn short(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8)
    }

    pub(crate) fn time(&mut self, value: Timestamp) -> &mut Self {
        self.bytes(&value.0.to_le_bytes())
    }

    /// A u16 length and UTF-8; cut at a character when it is longer than that can tell.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        let text = &text[..text.floor_char_boundary(usize::from(u16::MAX))];
        self.u16(text.len() as u16).bytes(text.as_bytes())
    }

    /// A u32 count and that many things.
    pub(crate) fn list<T>(&mut self, things: &[T], mut put: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.u32(things.len() as u32);
        for thing in things {
            put(self, thing);
        }
        self
    }

    /// A u8 that tells whether there is one, and it.
    pub(crate) fn option<T>(&mut self, thing: Option<T>, put: impl FnOnce(&mut Self, T)) -> &mut Self {
        self.u8(u8::from(thing.is_some()));
        if let Some(thing) = thing {
            put(self, thing);
        }
        self
    }
}

/// Takes fields one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Get<'a> {
    message: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Get<'a> {
    pub(crate) fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self { message, bytes, at: 0 }
    }

    /// Whether nothing is left: whoever wrote it may not have known what is told here behind it.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Everything that is left.
    pub(crate) fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    pub(crate) fn take(&mut self, len: usize, what: &'static str) -> Result<&'a [u8], WireError> {
        let taken = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or(WireError::Short { message: self.message, at: self.at, what })?;
        self.at += len;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], WireError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N, what)?);
        Ok(array)
    }

    pub(crate) fn id(&mut self, what: &'static str) -> Result<[u8; 16], WireError> {
        self.array(what)
    }

    pub(crate) fn u8(&mut self, what: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(what)?[0])
    }

    pub(crate) fn u16(&mut self, what: &'static str) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array(what)?))
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array(what)?))
    }

    /// As [`Put::short`] puts it.
    pub(crate) fn short(&mut self, what: &'static str) -> Result<u64, WireError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.u8(what)?);
            if shift == 63 && byte > 1 {
                return Err(self.unknown(what, byte));
            }
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(value)
    }

    pub(crate) fn time(&mut self, what: &'static str) -> Result<Timestamp, WireError> {
        Ok(Timestamp(i64::from_le_bytes(self.array(what)?)))
    }

    /// 0 or 1.
    pub(crate) fn bool(&mut self, what: &'static str) -> Result<bool, WireError> {
        match self.u8(what)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.unknown(what, u64::from(other))),
        }
    }

    pub(crate) fn text(&mut self, what: &'static str) -> Result<String, WireError> {
        let len = usize::from(self.u16(what)?);
        let at = self.at;
        let text = self.take(len, what)?;
        let text = std::str::from_utf8(text).map_err(|_| WireError::Text { message: self.message, at })?;
        Ok(text.to_owned())
    }

    /// A u32 count and that many things of at least `least` bytes each.
    pub(crate) fn list<T>(
        &mut self,
        what: &'static str,
        least: usize,
        mut get: impl FnMut(&mut Self) -> Result<T, WireError>,
    ) -> Result<Vec<T>, WireError> {
        let count = self.u32(what)? as usize;
        if count > self.bytes.len().saturating_sub(self.at) / least.max(1) {
            return Err(WireError::Short { message: self.message, at: self.at, what });
        }
        (0..count).map(|_| get(self)).collect()
    }

    pub(crate) fn option<T>(
        &mut self,
        what: &'static str,
        get: impl FnOnce(&mut Self) -> Result<T, WireError>,
    ) -> Result<Option<T>, WireError> {
        if self.bool(what)? { get(self).map(Some) } else { Ok(None) }
    }

    /// The error for a value that is not known, which ends here.
    pub(crate) fn unknown(&self, what: &'static str, value: u64) -> WireError {
        WireError::Value { message: self.message, at: self.at, what, value }
    }
}
