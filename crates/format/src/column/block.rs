//! Blocks of cells: one attribute of the elements of one dictionary entry that end in one chunk, as bytes
//! with a checksum of their own. Reading is here; `write` makes them.

use super::cells::{Column, OwnCells};
use super::planes::Planes;
use super::{Class, cells::MAX_TEXT, dictionary::MAX_VALUES};
use crate::bytes::{FieldReader, SliceWriter};
use crate::slot::MAX_CHUNK_ROWS;
use crate::{FormatError, Section, crc32c};
use holdfast_base::Sequence;

const WHAT: &str = "attribute column";

/// Bytes of a block in front of its cells.
pub(crate) const HEAD_BYTES: usize = 64;

/// Longer values are not listed: a code is one byte, and a block of a few kilobytes must not come to more than a MiB of text.
pub(super) const MAX_VALUE_BYTES: usize = 256;

const _: () = assert!(MAX_VALUE_BYTES * MAX_CHUNK_ROWS <= 1 << 20);

/// How the cells of a block are laid out: each as it is, as the number of a value, or in planes of bits.
pub(super) const EACH: u8 = 0;
pub(super) const DICTIONARY: u8 = 1;
/// Each in as many bits as the greatest takes.
pub(super) const PLANES: u8 = 2;

/// What a block says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) sequence: u32,
    pub(super) chunk: u32,
    pub(super) entry: u16,
    pub(super) column: u16,
    pub(super) class: Class,
    pub(super) encoding: u8,
    pub(super) width: u8,
    pub(super) cells: u16,
    pub(super) nulls: u16,
    pub(super) values: u16,
    pub(super) least: u128,
    pub(super) greatest: u128,
}

impl Head {
    /// All but the checksum, which comes first.
    pub(super) fn put(&self, put: &mut SliceWriter<'_>, bytes: usize) {
        put.seek(4).u32(bytes as u32).u32(self.sequence).u32(self.chunk).u16(self.entry).u16(self.column);
        put.u8(self.class as u8).u8(self.encoding).u8(self.width).u8(0);
        put.u16(self.cells).u16(self.nulls).u16(self.values).u16(0).u128(self.least).u128(self.greatest);
    }

    fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let (sequence, chunk, entry, column) = (get.u32()?, get.u32()?, get.u16()?, get.u16()?);
        let class = Class::from_number(get.u8()?);
        let class = class.ok_or_else(|| get.malformed("a class of cells that does not exist"))?;
        let (encoding, width, _) = (get.u8()?, get.u8()?, get.u8()?);
        let (cells, nulls, values, _) = (get.u16()?, get.u16()?, get.u16()?, get.u16()?);
        let (least, greatest) = (get.u128()?, get.u128()?);
        if usize::from(cells) > MAX_CHUNK_ROWS || nulls > cells || usize::from(values) > MAX_VALUES {
            return Err(get.seek(24).malformed("a number of cells that no block can have"));
        }
        if nulls == cells && (least, greatest) != (0, 0) {
            return Err(get.seek(32).malformed("bounds of cells that are not there"));
        }
        if least > greatest {
            return Err(get.seek(32).malformed("a least cell that is greater than the greatest"));
        }
        Ok(Self {
            sequence,
            chunk,
            entry,
            column,
            class,
            encoding,
            width,
            cells,
            nulls,
            values,
            least,
            greatest,
        })
    }
}

/// The dictionary entry and the column of the sound block at the start of `bytes`, and how long it is.
pub(crate) fn place_of(bytes: &[u8]) -> (u16, u16, usize) {
    let u16_at = |at: usize| bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
    (u16_at(16), u16_at(18), crate::bytes::u32_at(bytes, 4) as usize)
}

/// The bounds of the sound block at the start of `bytes`; `None`: all its cells are null.
pub(crate) fn bounds_of(bytes: &[u8]) -> Option<(u128, u128)> {
    let head = Head::read(FieldReader::new(WHAT, bytes).seek(8)).ok()?;
    (head.nulls < head.cells).then_some((head.least, head.greatest))
}

/// A block whose checksum holds and whose head makes sense. Its cells are yet to be decoded.
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    head: Head,
    bytes: &'a [u8],
}

impl<'a> Block<'a> {
    /// Reads the block at the start of `bytes`, which may go on behind it.
    pub fn read(bytes: &'a [u8]) -> Result<Self, FormatError> {
        let mut get = FieldReader::new(WHAT, bytes);
        let (crc, len) = (get.u32()?, get.u32()? as usize);
        if len < HEAD_BYTES || !len.is_multiple_of(8) {
            return Err(get.malformed("a length that no block can have"));
        }
        let bytes = get.seek(0).take(len)?;
        if crc32c(&bytes[4..]) != crc {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 4 });
        }
        let mut get = FieldReader::new(WHAT, bytes);
        Ok(Self { head: Head::read(get.seek(8))?, bytes })
    }

    /// How long the block is that begins with `bytes`, if they are enough to say.
    pub fn length(bytes: &[u8]) -> Result<Option<usize>, FormatError> {
        if bytes.len() < 8 {
            return Ok(None);
        }
        let mut get = FieldReader::new(WHAT, bytes);
        let len = get.seek(4).u32()? as usize;
        if len < HEAD_BYTES || !len.is_multiple_of(8) {
            return Err(get.malformed("a length that no block can have"));
        }
        Ok(Some(len))
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Number of the chunk in its slot, in the order of the directory.
    pub fn chunk(&self) -> u32 {
        self.head.chunk
    }

    /// Dictionary entry of its stream.
    pub fn entry(&self) -> u16 {
        self.head.entry
    }

    /// Number of the column in the stream's schema.
    pub fn column(&self) -> u16 {
        self.head.column
    }

    /// What its cells are.
    pub fn class(&self) -> Class {
        self.head.class
    }

    /// How many cells it has: as many as elements of the stream end in the chunk, in their order.
    pub fn cells(&self) -> usize {
        self.head.cells.into()
    }

    /// How many of them are null.
    pub fn nulls(&self) -> usize {
        self.head.nulls.into()
    }

    /// Least and greatest [rank](crate::Cell::rank) of the others; `None`: all are null.
    pub fn bounds(&self) -> Option<(u128, u128)> {
        (self.head.nulls < self.head.cells).then_some((self.head.least, self.head.greatest))
    }

    /// Whether it was made for the slot with this sequence, as far as the lower half tells: one that an older lap left at
    /// its place was not.
    pub fn belongs_to(&self, sequence: Sequence) -> bool {
        self.head.sequence == sequence.0 as u32
    }

    /// Its numbers as they are kept, to be looked at without being made; `None` where some are null, or cells are no numbers.
    pub fn packed(&self) -> Result<Option<Packed<'a>>, FormatError> {
        let Head { class, encoding, width, nulls, least, .. } = self.head;
        let most = if class == Class::Word { u64::MAX.into() } else { u128::MAX };
        if class == Class::Bytes || nulls > 0 || most - least < u32::MAX.into() {
            return Ok(None);
        }
        let count = self.cells();
        let mut get = FieldReader::new(WHAT, self.bytes);
        get.seek(HEAD_BYTES);
        Ok(Some(match (encoding, width) {
            (DICTIONARY, _) => {
                let values = wide(&mut get, self.head.values.into(), width, least)?;
                let codes = codes(&mut get, count, values.len())?;
                Packed::Listed { values, codes }
            }
            (EACH, 1) => Packed::Bytes { least, over: get.take(count)? },
            (EACH, 2) => Packed::Pairs { least, over: each(&mut get, count)? },
            (EACH, 4) => Packed::Fours { least, over: each(&mut get, count)? },
            (PLANES, bits) => match Planes::read(&mut get, count, bits)? {
                planes if planes.bits() <= 32 => Packed::Planes { least, over: Bits(planes) },
                _ => return Ok(None),
            },
            _ => return Ok(None),
        }))
    }

    /// Its cells. They take 16 bytes and a flag each at most, and their texts no more than the block, or where they are listed a
    /// MiB.
    pub fn decode(&self) -> Result<Column, FormatError> {
        let Head { chunk, class, encoding, width, nulls, least, .. } = self.head;
        let count = self.cells();
        let mut get = FieldReader::new(WHAT, self.bytes);
        get.seek(HEAD_BYTES);
        if nulls > 0 && usize::from(nulls) == count {
            if (encoding, width) != (EACH, 0) {
                return Err(get.seek(21).malformed("a layout of cells that are not there"));
            }
            let cells = match class {
                Class::Word => OwnCells::Words(vec![0; count]),
                Class::Wide => OwnCells::Wide(vec![0; count]),
                Class::Bytes => OwnCells::Bytes(vec![0; count], Vec::new()),
            };
            return Ok(Column { chunk, cells, nulls: Some(vec![true; count]) });
        }
        let nulls = if nulls == 0 { None } else { Some(which_are_null(&mut get, count, nulls.into())?) };
        let mut cells = match (class, encoding) {
            (Class::Word, EACH) => OwnCells::Words(words(&mut get, count, width, least as u64)?),
            (Class::Word, DICTIONARY) => {
                let values = words(&mut get, self.head.values.into(), width, least as u64)?;
                OwnCells::Words(chosen(&mut get, count, &values)?)
            }
            (Class::Word, PLANES) => {
                let planes = Planes::read(&mut get, count, width)?;
                OwnCells::Words(planes.each_as(|over| over.wrapping_add(least as u64)))
            }
            (Class::Wide, PLANES) => {
                let planes = Planes::read(&mut get, count, width)?;
                OwnCells::Wide(planes.each_as(|over| least.wrapping_add(over.into())))
            }
            (Class::Wide, EACH) => OwnCells::Wide(wide(&mut get, count, width, least)?),
            (Class::Wide, DICTIONARY) => {
                let values = wide(&mut get, self.head.values.into(), width, least)?;
                OwnCells::Wide(chosen(&mut get, count, &values)?)
            }
            (Class::Bytes, EACH) => texts(&mut get, count, width)?,
            (Class::Bytes, DICTIONARY) => {
                listed(&mut get, count, self.head.values.into(), width, nulls.as_deref())?
            }
            _ => return Err(get.seek(21).malformed("a layout that does not exist")),
        };
        if nulls.as_ref().is_some_and(|nulls| !cells.blank(nulls)) {
            return Err(get.seek(HEAD_BYTES).malformed("a text where there is none"));
        }
        Ok(Column { chunk, cells, nulls })
    }
}

/// Numbers as a block keeps them: `least` and what each exceeds it by; or which of some values each is.
#[derive(Clone, Debug)]
pub enum Packed<'a> {
    /// In a byte each.
    Bytes {
        /// What to add.
        least: u128,
        /// To each of these.
        over: &'a [u8],
    },
    /// In two.
    Pairs {
        /// What to add.
        least: u128,
        /// To each of these, little-endian.
        over: &'a [[u8; 2]],
    },
    /// In four.
    Fours {
        /// What to add.
        least: u128,
        /// To each of these, little-endian.
        over: &'a [[u8; 4]],
    },
    /// In no more bits than they take.
    Planes {
        /// What to add.
        least: u128,
        /// To each of these.
        over: Bits<'a>,
    },
    /// As the numbers of values.
    Listed {
        /// The values.
        values: Vec<u128>,
        /// The number of each, which there is.
        codes: &'a [u8],
    },
}

/// Numbers of 32 bits or less, in planes.
#[derive(Clone, Copy, Debug)]
pub struct Bits<'a>(Planes<'a>);

impl Bits<'_> {
    /// Whether one of these numbers may be among them; if it is, then always.
    pub fn may_have(&self, numbers: &[u64]) -> bool {
        self.0.may_have(numbers)
    }

    /// All of them.
    pub fn numbers(&self) -> Vec<u32> {
        self.0.numbers()
    }
}

/// What the next block of a section must be.
#[derive(Clone, Debug)]
struct Next {
    section: Section,
    sequence: Sequence,
    left: u32,
    chunk: u32,
}

impl Next {
    fn new(section: &Section, sequence: Sequence) -> Self {
        Self { section: *section, sequence, left: section.count, chunk: 0 }
    }

    /// Reads it at the start of `bytes`.
    fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Block<'a>, FormatError> {
        let wrong = |what| FormatError::Malformed { structure: WHAT, at: 8, what };
        if self.left == 0 {
            return Err(wrong("there are more blocks than its section tells of"));
        }
        let block = Block::read(bytes)?;
        let mine = block.entry() == self.section.entry && block.column() == self.section.column;
        if !mine || !block.belongs_to(self.sequence) || block.chunk() < self.chunk {
            return Err(wrong("it is not the one that should be there"));
        }
        self.chunk = block.chunk().saturating_add(1);
        self.left -= 1;
        Ok(block)
    }

    /// Nothing comes behind the last one.
    fn end(&self) -> Result<(), FormatError> {
        let what = "there are fewer blocks than its section tells of";
        if self.left == 0 { Ok(()) } else { Err(FormatError::Malformed { structure: WHAT, at: 8, what }) }
    }
}

/// The blocks of one column of a slot, one behind the other as their chunks are.
#[derive(Clone, Debug)]
pub struct Blocks<'a> {
    next: Next,
    rest: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// Those of `section` of the slot with that sequence. `bytes` are the section's.
    pub fn new(section: &Section, bytes: &'a [u8], sequence: Sequence) -> Self {
        Self { next: Next::new(section, sequence), rest: bytes }
    }

    fn read(&mut self) -> Result<Block<'a>, FormatError> {
        let block = self.next.read(self.rest)?;
        self.rest = &self.rest[block.bytes()..];
        if self.rest.is_empty() {
            self.next.end()?;
        }
        Ok(block)
    }
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Result<Block<'a>, FormatError>;

    /// After an error there is no more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let block = self.read();
        if block.is_err() {
            self.rest = &[];
        }
        Some(block)
    }
}

/// The same while the section comes piece by piece.
#[derive(Debug)]
pub struct BlocksComing {
    next: Next,
    /// The beginning of a block of which the rest is in the next piece.
    begun: Vec<u8>,
}

impl BlocksComing {
    /// Those of `section` of the slot with that sequence.
    pub fn new(section: &Section, sequence: Sequence) -> Self {
        Self { next: Next::new(section, sequence), begun: Vec::new() }
    }

    /// Takes a piece, and gives each block that is whole by then to `take`.
    pub fn piece<E: From<FormatError>>(
        &mut self,
        mut bytes: &[u8],
        mut take: impl FnMut(Block<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        while !self.begun.is_empty() && !bytes.is_empty() {
            // First as much as tells how long it is.
            let whole = Block::length(&self.begun)?.unwrap_or(HEAD_BYTES);
            let (more, rest) = bytes.split_at(bytes.len().min(whole.saturating_sub(self.begun.len())));
            self.begun.extend_from_slice(more);
            bytes = rest;
            if Block::length(&self.begun)? == Some(self.begun.len()) {
                let begun = std::mem::take(&mut self.begun);
                take(self.next.read(&begun)?)?;
            }
        }
        while !bytes.is_empty() {
            if Block::length(bytes)?.is_none_or(|whole| whole > bytes.len()) {
                self.begun.extend_from_slice(bytes);
                return Ok(());
            }
            let block = self.next.read(bytes)?;
            bytes = &bytes[block.bytes()..];
            take(block)?;
        }
        Ok(())
    }

    /// When all pieces have come.
    pub fn end(&self) -> Result<(), FormatError> {
        if !self.begun.is_empty() {
            let what = "a block is cut off";
            return Err(FormatError::Malformed { structure: WHAT, at: 4, what });
        }
        self.next.end()
    }
}

fn which_are_null(get: &mut FieldReader<'_>, count: usize, nulls: usize) -> Result<Vec<bool>, FormatError> {
    let bits = get.take(count.div_ceil(8).next_multiple_of(8))?;
    let each = bits.iter().flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1 == 0));
    let null: Vec<bool> = each.take(count).collect();
    if null.iter().filter(|null| **null).count() == nulls {
        Ok(null)
    } else {
        Err(get.malformed("other nulls than it counts"))
    }
}

/// `count` numbers of `N` bytes each, padded to 8.
fn each<'a, const N: usize>(get: &mut FieldReader<'a>, count: usize) -> Result<&'a [[u8; N]], FormatError> {
    let (cells, _) = get.take((N * count).next_multiple_of(8))?.as_chunks::<N>();
    Ok(&cells[..count])
}

/// What `count` words are: `least` and what each exceeds it by.
fn words(get: &mut FieldReader<'_>, count: usize, width: u8, least: u64) -> Result<Vec<u64>, FormatError> {
    let more = |over: u64| least.wrapping_add(over);
    Ok(match width {
        0 => vec![least; count],
        1 => each::<1>(get, count)?.iter().map(|[over]| more((*over).into())).collect(),
        2 => each(get, count)?.iter().map(|over| more(u16::from_le_bytes(*over).into())).collect(),
        4 => each(get, count)?.iter().map(|over| more(u32::from_le_bytes(*over).into())).collect(),
        8 => each(get, count)?.iter().map(|over| more(u64::from_le_bytes(*over))).collect(),
        _ => return Err(get.seek(22).malformed("a width that does not exist")),
    })
}

/// The same of wide words.
fn wide(get: &mut FieldReader<'_>, count: usize, width: u8, least: u128) -> Result<Vec<u128>, FormatError> {
    if width == 16 {
        let cells = each(get, count)?.iter();
        return Ok(cells.map(|over| least.wrapping_add(u128::from_le_bytes(*over))).collect());
    }
    let overs = words(get, count, width, 0)?;
    Ok(overs.into_iter().map(|over| least.wrapping_add(over.into())).collect())
}

/// The codes of `count` cells, each the number of one of so many values.
fn codes<'a>(get: &mut FieldReader<'a>, count: usize, values: usize) -> Result<&'a [u8], FormatError> {
    let codes = get.take(count)?;
    match codes.iter().max() {
        Some(most) if usize::from(*most) >= values => Err(get.malformed("a value that is not listed")),
        _ => Ok(codes),
    }
}

/// The values that the codes of `count` cells choose.
fn chosen<T: Copy + Default>(
    get: &mut FieldReader<'_>,
    count: usize,
    values: &[T],
) -> Result<Vec<T>, FormatError> {
    let codes = codes(get, count, values.len())?;
    // A place for every code there can be, so that none needs to be looked at again.
    let mut all = [T::default(); MAX_VALUES];
    all[..values.len()].copy_from_slice(values);
    Ok(codes.iter().map(|code| all[usize::from(*code)]).collect())
}

/// Where each of `count` texts ends, from their lengths.
fn ends(get: &mut FieldReader<'_>, count: usize, width: u8, most: usize) -> Result<Vec<u32>, FormatError> {
    let (mut end, mut longest) = (0u32, 0);
    let mut next = |length: u16| {
        longest = longest.max(length);
        end += u32::from(length);
        end
    };
    // At most 4096 of 64 KiB: they do not add up to more than a u32.
    let ends = match width {
        1 => get.take(count)?.iter().map(|length| next((*length).into())).collect(),
        2 => {
            let (lengths, _) = get.take(2 * count)?.as_chunks::<2>();
            lengths.iter().map(|length| next(u16::from_le_bytes(*length))).collect()
        }
        _ => return Err(get.seek(22).malformed("a width that does not exist")),
    };
    if usize::from(longest) > most { Err(get.malformed("a text that is too long")) } else { Ok(ends) }
}

fn texts(get: &mut FieldReader<'_>, count: usize, width: u8) -> Result<OwnCells, FormatError> {
    let ends = ends(get, count, width, MAX_TEXT)?;
    let bytes = get.take(ends.last().map_or(0, |end| *end as usize))?;
    Ok(OwnCells::Bytes(ends, bytes.to_vec()))
}

fn listed(
    get: &mut FieldReader<'_>,
    count: usize,
    values: usize,
    width: u8,
    nulls: Option<&[bool]>,
) -> Result<OwnCells, FormatError> {
    let value_ends = ends(get, values, width, MAX_VALUE_BYTES)?;
    let values = get.take(value_ends.last().map_or(0, |end| *end as usize))?;
    let value = |code: u8| {
        let code = usize::from(code);
        let start = if code == 0 { 0 } else { value_ends[code - 1] as usize };
        &values[start..value_ends[code] as usize]
    };
    let (mut ends, mut bytes) = (Vec::with_capacity(count), Vec::new());
    for (at, code) in codes(get, count, value_ends.len())?.iter().enumerate() {
        if !nulls.is_some_and(|nulls| nulls[at]) {
            bytes.extend_from_slice(value(*code));
        }
        ends.push(bytes.len() as u32);
    }
    Ok(OwnCells::Bytes(ends, bytes))
}
