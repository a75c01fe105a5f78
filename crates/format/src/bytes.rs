//! Codec of little-endian fields: a reader over a slice, a writer into a slice or a vector. It never panics, and knows no
//! structure.

use crate::FormatError;
use holdfast_base::Timestamp;

/// Reads fields one after the other out of a structure.
#[derive(Clone, Debug)]
pub struct FieldReader<'a> {
    structure: &'static str,
    /// Name of the field at hand, for errors.
    field: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> FieldReader<'a> {
    /// Begins at the first byte; errors name the structure.
    pub fn new(structure: &'static str, bytes: &'a [u8]) -> Self {
        Self { structure, field: "a field", bytes, at: 0 }
    }

    /// Names the fields from here on, for errors.
    pub fn named(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// Goes on at byte `at`.
    pub(crate) fn seek(&mut self, at: usize) -> &mut Self {
        self.at = at;
        self
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// True if any bytes are left.
    pub fn is_more(&self) -> bool {
        self.at < self.bytes.len()
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at = self.bytes.len();
        rest
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let taken = self.at.checked_add(len).and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.ok_or_else(|| self.outside(self.field))?;
        self.at += len;
        Ok(taken)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// One byte as a number.
    pub fn u8(&mut self) -> Result<u8, FormatError> {
        Ok(self.array::<1>()?[0])
    }

    /// A number of two bytes.
    pub fn u16(&mut self) -> Result<u16, FormatError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// A number of four bytes.
    pub fn u32(&mut self) -> Result<u32, FormatError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// A number of eight bytes.
    pub fn u64(&mut self) -> Result<u64, FormatError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A number of sixteen bytes.
    pub fn u128(&mut self) -> Result<u128, FormatError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    /// A number as [`FieldWriter::varint`] writes it.
    pub fn varint(&mut self) -> Result<u64, FormatError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = u64::from(self.u8()?);
            if shift == 63 && byte > 1 {
                return Err(self.unknown(byte));
            }
            value |= (byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Ok(value)
    }

    /// A byte that is 0 or 1.
    pub fn bool(&mut self) -> Result<bool, FormatError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.unknown(u64::from(other))),
        }
    }

    /// A point in time.
    pub fn time(&mut self) -> Result<Timestamp, FormatError> {
        Ok(Timestamp(i64::from_le_bytes(self.array()?)))
    }

    /// A u16 length and that much UTF-8.
    pub(crate) fn str(&mut self) -> Result<&'a str, FormatError> {
        let len = usize::from(self.u16()?);
        let text = self.take(len)?;
        std::str::from_utf8(text).map_err(|_| self.malformed("text that is not UTF-8"))
    }

    /// A u16 length and that much UTF-8, as a string of its own.
    pub fn string(&mut self) -> Result<String, FormatError> {
        self.str().map(str::to_owned)
    }

    /// A count of things of `size` bytes each, refused when there are not that many bytes left.
    pub(crate) fn count(&mut self, size: usize) -> Result<usize, FormatError> {
        let count = self.u32()? as usize;
        if count > self.bytes.len().saturating_sub(self.at) / size.max(1) {
            return Err(self.outside("a count"));
        }
        Ok(count)
    }

    /// A u32 count and that many things of at least `least` bytes each.
    pub fn list<T>(
        &mut self,
        least: usize,
        mut read: impl FnMut(&mut Self) -> Result<T, FormatError>,
    ) -> Result<Vec<T>, FormatError> {
        let count = self.count(least)?;
        (0..count).map(|_| read(self)).collect()
    }

    /// A byte that is 1 if a thing follows, and the thing.
    pub fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, FormatError>,
    ) -> Result<Option<T>, FormatError> {
        if self.bool()? { read(self).map(Some) } else { Ok(None) }
    }

    pub(crate) fn magic(&mut self, magic: [u8; 8]) -> Result<(), FormatError> {
        if self.array::<8>()? == magic {
            Ok(())
        } else {
            Err(FormatError::BadMagic { structure: self.structure })
        }
    }

    /// The error of an unknown value of the field at hand, which ends here.
    pub fn unknown(&self, value: u64) -> FormatError {
        FormatError::Unknown { structure: self.structure, at: self.at as u64, what: self.field, value }
    }

    pub(crate) fn malformed(&self, what: &'static str) -> FormatError {
        FormatError::Malformed { structure: self.structure, at: self.at as u64, what }
    }

    pub(crate) fn outside(&self, what: &'static str) -> FormatError {
        FormatError::OutOfBounds { structure: self.structure, at: self.at as u64, what }
    }
}

/// The memory that a [`FieldWriter`] writes into.
pub trait FieldBuffer {
    /// The `len` bytes at `at`; `None` if there is no room for them.
    fn space(&mut self, at: usize, len: usize) -> Option<&mut [u8]>;
}

impl FieldBuffer for &mut [u8] {
    fn space(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        self.get_mut(at..at.checked_add(len)?)
    }
}

impl FieldBuffer for Vec<u8> {
    /// A vector grows as needed.
    fn space(&mut self, at: usize, len: usize) -> Option<&mut [u8]> {
        let end = at.checked_add(len)?;
        if self.len() < end {
            self.resize(end, 0);
        }
        self.get_mut(at..end)
    }
}

/// A writer into a slice of fixed length.
pub(crate) type SliceWriter<'a> = FieldWriter<&'a mut [u8]>;

/// Writes fields one after the other. Fields beyond the room of the buffer are left out, and [`FieldWriter::fits`] says so.
#[derive(Debug)]
pub struct FieldWriter<B> {
    buffer: B,
    at: usize,
    fits: bool,
}

impl SliceWriter<'_> {
    /// Goes back to byte `at`, whatever did not fit behind it.
    pub(crate) fn rewind(&mut self, at: usize) {
        (self.at, self.fits) = (at, true);
    }

    /// Bytes that there is room for.
    pub(crate) fn room(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// All that there is room for.
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        self.buffer.get_mut(self.at..).unwrap_or_default()
    }
}

impl<B: FieldBuffer> FieldWriter<B> {
    /// Begins at the first byte of a buffer.
    pub fn new(buffer: B) -> Self {
        Self { buffer, at: 0, fits: true }
    }

    /// The buffer, with everything that was written.
    pub fn into_buffer(self) -> B {
        self.buffer
    }

    /// The place of the next byte.
    pub fn at(&self) -> usize {
        self.at
    }

    /// True if there was room for every field.
    pub fn fits(&self) -> bool {
        self.fits
    }

    /// Goes on at byte `at`.
    pub fn seek(&mut self, at: usize) -> &mut Self {
        self.at = at;
        self
    }

    /// The next `len` bytes, to be filled by the caller; `None` when there are fewer.
    pub(crate) fn space(&mut self, len: usize) -> Option<&mut [u8]> {
        let space = if self.fits { self.buffer.space(self.at, len) } else { None };
        if space.is_some() {
            self.at += len;
        } else {
            self.fits = false;
        }
        space
    }

    /// Plain bytes, without a length.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
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

    /// A number of one byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.bytes(&[value])
    }

    /// A number of two bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A number of four bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A number of eight bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A number of sixteen bytes.
    pub fn u128(&mut self, value: u128) -> &mut Self {
        self.bytes(&value.to_le_bytes())
    }

    /// A number in as few bytes as possible: seven bits a byte, lowest first; the highest bit marks all bytes but the last.
    pub fn varint(&mut self, mut value: u64) -> &mut Self {
        while value >= 0x80 {
            self.u8(value as u8 | 0x80);
            value >>= 7;
        }
        self.u8(value as u8)
    }

    /// A point in time.
    pub fn time(&mut self, value: Timestamp) -> &mut Self {
        self.bytes(&value.0.to_le_bytes())
    }

    /// A u16 length and UTF-8. A text over 65,535 bytes does not fit.
    pub fn string(&mut self, text: &str) -> &mut Self {
        let Ok(len) = u16::try_from(text.len()) else {
            self.fits = false;
            return self;
        };
        self.u16(len).bytes(text.as_bytes())
    }

    /// A u16 length and UTF-8. A text over 65,535 bytes is cut at a character.
    pub fn cut_string(&mut self, text: &str) -> &mut Self {
        self.string(&text[..text.floor_char_boundary(usize::from(u16::MAX))])
    }

    /// A u32 count and that many things.
    pub fn list<T>(&mut self, things: &[T], mut write: impl FnMut(&mut Self, &T)) -> &mut Self {
        self.u32(things.len() as u32);
        for thing in things {
            write(self, thing);
        }
        self
    }

    /// A byte that is 1 if a thing follows, and the thing.
    pub fn option<T>(&mut self, thing: Option<T>, write: impl FnOnce(&mut Self, T)) -> &mut Self {
        self.u8(u8::from(thing.is_some()));
        if let Some(thing) = thing {
            write(self, thing);
        }
        self
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
