//! Little-endian reader and writer of fields in a slice, without panics. It knows no structure of the format.

use crate::FormatError;
use holdfast_base::Timestamp;

/// Takes fields one after the other out of a structure.
#[derive(Clone)]
pub(crate) struct Get<'a> {
    structure: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Get<'a> {
    pub(crate) fn new(structure: &'static str, bytes: &'a [u8]) -> Self {
        Self { structure, bytes, at: 0 }
    }

    /// Goes on at byte `at`.
    pub(crate) fn seek(&mut self, at: usize) -> &mut Self {
        self.at = at;
        self
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Whether any bytes are left.
    pub(crate) fn is_more(&self) -> bool {
        self.at < self.bytes.len()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let taken = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.outside("a field"))?;
        self.at += len;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, FormatError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn u128(&mut self) -> Result<u128, FormatError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub(crate) fn time(&mut self) -> Result<Timestamp, FormatError> {
        Ok(Timestamp(i64::from_le_bytes(self.array()?)))
    }

    /// A u16 length and that much UTF-8.
    pub(crate) fn str(&mut self) -> Result<&'a str, FormatError> {
        let len = usize::from(self.u16()?);
        let text = self.take(len)?;
        std::str::from_utf8(text).map_err(|_| self.malformed("text that is not UTF-8"))
    }

    /// The same as a string of its own.
    pub(crate) fn string(&mut self) -> Result<String, FormatError> {
        self.str().map(str::to_owned)
    }

    /// A count of things of `size` bytes each, refused when there are not that many bytes left.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, FormatError> {
        let count = self.u32()? as usize;
        if count > (self.bytes.len() - self.at) / size {
            return Err(self.outside("a count"));
        }
        Ok(count)
    }

    pub(crate) fn magic(&mut self, magic: [u8; 8]) -> Result<(), FormatError> {
        if self.array::<8>()? == magic {
            Ok(())
        } else {
            Err(FormatError::BadMagic { structure: self.structure })
        }
    }

    pub(crate) fn malformed(&self, what: &'static str) -> FormatError {
        FormatError::Malformed { structure: self.structure, at: self.at as u64, what }
    }

    pub(crate) fn outside(&self, what: &'static str) -> FormatError {
        FormatError::OutOfBounds { structure: self.structure, at: self.at as u64, what }
    }
}

/// Puts fields one after the other into a structure. What no longer fits is left out, and [`Put::fits`] says so.
pub(crate) struct Put<'a> {
    bytes: &'a mut [u8],
    at: usize,
    fits: bool,
}

impl<'a> Put<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self { bytes, at: 0, fits: true }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn fits(&self) -> bool {
        self.fits
    }

    /// Goes on at byte `at`.
    pub(crate) fn seek(&mut self, at: usize) -> &mut Self {
        self.at = at;
        self
    }

    /// Goes back to byte `at`, whatever did not fit behind it.
    pub(crate) fn rewind(&mut self, at: usize) {
        (self.at, self.fits) = (at, true);
    }

    /// Bytes that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// All that there is room for.
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.at..).unwrap_or_default()
    }

    /// The next `len` bytes, to be filled by the caller; `None` when there are fewer.
    pub(crate) fn space(&mut self, len: usize) -> Option<&mut [u8]> {
        let end = self.at.checked_add(len).filter(|end| self.fits && *end <= self.bytes.len());
        let Some(end) = end else {
            self.fits = false;
            return None;
        };
        let space = self.bytes.get_mut(self.at..end);
        self.at = end;
        space
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        if let Some(space) = self.space(bytes.len()) {
            space.copy_from_slice(bytes);
        }
        self
    }

    pub(crate) fn zeros(&mut self, len: usize) -> &mut Self {
        if let Some(space) = self.space(len) {
            space.fill(0);
        }
        self
    }

    /// Zeros up to a multiple of `unit` from the start.
    pub(crate) fn align(&mut self, unit: usize) -> &mut Self {
        let to = self.at.next_multiple_of(unit);
        self.zeros(to - self.at)
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

    pub(crate) fn u128(&mut self, value: u128) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    pub(crate) fn time(&mut self, value: Timestamp) -> &mut Self {
        self.bytes(&value.0.to_le_bytes())
    }

    /// A u16 length and UTF-8. A text over 65,535 bytes does not fit.
    pub(crate) fn string(&mut self, text: &str) -> &mut Self {
        let Ok(len) = u16::try_from(text.len()) else {
            self.fits = false;
            return self;
        };
        self.u16(len).bytes(text.as_bytes())
    }
}

/// The little-endian u32 at `at`; 0 past the end.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map_or(0, |four| u32::from_le_bytes(*four))
}

/// The little-endian u64 at `at`; 0 past the end.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()).map_or(0, |eight| u64::from_le_bytes(*eight))
}

/// The next multiple of a block.
pub(crate) fn blocks(bytes: usize) -> usize {
    bytes.next_multiple_of(holdfast_base::BLOCK)
}
