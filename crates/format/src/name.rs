//! Inline name of at most 64 bytes, so that opening a slot copies and never allocates.

use crate::FormatError;
use holdfast_base::MAX_NAME;
use std::fmt;

/// A stream's or ring's name: UTF-8 of at most [`MAX_NAME`] bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Name {
    bytes: [u8; MAX_NAME],
    len: u8,
}

impl Name {
    /// `text` as a name; refused when it is too long.
    pub fn new(text: &str) -> Result<Self, FormatError> {
        if text.len() > MAX_NAME {
            return Err(FormatError::TooMany {
                what: "bytes in a name",
                count: text.len() as u64,
                limit: MAX_NAME as u64,
            });
        }
        let mut bytes = [0; MAX_NAME];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Self { bytes, len: text.len() as u8 })
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).unwrap_or_default()
    }

    /// Bytes of the name.
    pub(crate) fn len(&self) -> u8 {
        self.len
    }

    /// The name as it is kept, zero padded.
    pub(crate) fn padded(&self) -> &[u8; MAX_NAME] {
        &self.bytes
    }
}

impl Default for Name {
    fn default() -> Self {
        Self { bytes: [0; MAX_NAME], len: 0 }
    }
}

impl TryFrom<&str> for Name {
    type Error = FormatError;

    fn try_from(text: &str) -> Result<Self, FormatError> {
        Self::new(text)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
