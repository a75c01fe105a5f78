//! Blocks: what the elements that end in one chunk of a slot have of one attribute, as bytes that stand for themselves.

use super::Cells;
use crate::bytes::{Get, Put};
use crate::slot::MAX_CHUNK_ROWS;
use crate::{FormatError, crc32c};

const WHAT: &str = "attribute column";

/// Bytes of a block in front of its cells.
const HEAD_BYTES: usize = 48;

/// More values than that are not worth a dictionary, nor are longer ones: a code is one byte, and a block of a few kilobytes
/// must not come to more than a MiB of text.
const MAX_VALUES: usize = 256;
const MAX_VALUE_BYTES: usize = 256;

/// Places of the table that finds values: far more than there are values, so that it finds them at once.
const PLACES: usize = 1024;

/// How the cells of a block are laid out.
const EACH: u8 = 0;
const DICTIONARY: u8 = 1;

impl Cells<'_> {
    /// Most bytes of a block with these cells.
    pub fn worst(&self) -> usize {
        let cells = match self {
            Self::Words(cells) => 8 * cells.len(),
            Self::Wide(cells) => 16 * cells.len(),
            Self::Bytes(ends, bytes) => 4 * ends.len() + 8 + bytes.len(),
        };
        HEAD_BYTES + self.len().div_ceil(8).next_multiple_of(8) + cells.next_multiple_of(8)
    }
}

/// Least and greatest of the cells that are not null.
fn bounds<T: Copy + Ord + Default>(cells: &[T], valid: &[bool], nulls: usize) -> (T, T) {
    let grow = |(least, most): (T, T), cell: &T| (least.min(*cell), most.max(*cell));
    if nulls == 0 {
        let Some(first) = cells.first() else { return (T::default(), T::default()) };
        return cells.iter().fold((*first, *first), grow);
    }
    let mut known = cells.iter().zip(valid).filter(|(_, valid)| **valid).map(|(cell, _)| cell);
    let Some(first) = known.next() else { return (T::default(), T::default()) };
    known.fold((*first, *first), grow)
}

fn width_of(span: u64) -> u8 {
    match span {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Puts what each cell exceeds the base by.
fn narrow(put: &mut Put<'_>, count: usize, width: u8, cell: impl Fn(usize) -> u64) {
    let width = usize::from(width);
    let Some(space) = put.space(width * count) else { return };
    if width > 0 {
        for (at, place) in space.chunks_exact_mut(width).enumerate() {
            place.copy_from_slice(&cell(at).to_le_bytes()[..width]);
        }
    }
}

/// Makes blocks. All its memory is allocated when it is made.
#[derive(Debug)]
pub struct ColumnWriter {
    /// By hash: one more than the number of a value; 0: none.
    places: Box<[u16]>,
    /// The first cell that has each value.
    values: Vec<u16>,
    /// The value of each cell.
    codes: Vec<u8>,
}

impl Default for ColumnWriter {
    fn default() -> Self {
        Self {
            places: vec![0; PLACES].into_boxed_slice(),
            values: Vec::with_capacity(MAX_VALUES),
            codes: Vec::with_capacity(MAX_CHUNK_ROWS),
        }
    }
}

impl ColumnWriter {
    /// Writes the block of chunk number `chunk` to the start of `space`; how many bytes it has, a multiple of 8. `None` when
    /// it does not fit, or there are more cells than a chunk has rows. `valid` says of each cell whether it is one.
    pub fn write(&mut self, space: &mut [u8], chunk: u32, cells: Cells<'_>, valid: &[bool]) -> Option<usize> {
        let count = cells.len();
        if count > MAX_CHUNK_ROWS || valid.len() != count {
            return None;
        }
        let nulls = valid.iter().filter(|valid| !**valid).count();
        let head = Head { chunk, count, nulls, class: cells.class() as u8, ..Head::default() };
        let mut put = Put::new(space);
        put.seek(HEAD_BYTES);
        if nulls > 0 && nulls < count {
            for eight in valid.chunks(8) {
                put.u8(eight.iter().rev().fold(0, |bits, valid| bits << 1 | u8::from(*valid)));
            }
            put.align(8);
        }
        let head = match cells {
            _ if nulls == count => head,
            Cells::Words(cells) => {
                let (base, most) = bounds(cells, valid, nulls);
                let width = width_of(most - base);
                // A null stands as something that fits.
                narrow(&mut put, count, width, |at| cells[at].clamp(base, most) - base);
                Head { width, base, most, ..head }
            }
            Cells::Wide(cells) => {
                let (least, most) = bounds(cells, valid, nulls);
                let (high, base) = ((least >> 64) as u64, least as u64);
                if (most >> 64) as u64 == high {
                    let width = width_of(most as u64 - base);
                    narrow(&mut put, count, width, |at| cells[at].clamp(least, most) as u64 - base);
                    Head { width, base, most: most as u64, high, ..head }
                } else {
                    for cell in cells {
                        put.bytes(&cell.to_le_bytes());
                    }
                    Head { width: 16, ..head }
                }
            }
            Cells::Bytes(ends, bytes) => self.bytes(&mut put, ends, bytes, valid, head),
        };
        put.align(8);
        let bytes = put.at();
        if !put.fits() {
            return None;
        }
        put.seek(4);
        head.put(&mut put, bytes);
        let crc = crc32c(space.get(4..bytes)?);
        Put::new(space).u32(crc);
        Some(bytes)
    }

    /// Each text as it is, or a list of those that there are and a number for each cell.
    fn bytes(&mut self, put: &mut Put<'_>, ends: &[u32], bytes: &[u8], valid: &[bool], head: Head) -> Head {
        let text = |at: usize| if valid[at] { cell_of(ends, bytes, at) } else { &[] };
        if let Some(listed) = self.list(ends.len(), text)
            && listed + 4 * self.values.len() + ends.len() < bytes.len() + 4 * ends.len()
        {
            put.u32(self.values.len() as u32);
            for first in &self.values {
                put.u32(text(usize::from(*first)).len() as u32);
            }
            for first in &self.values {
                put.bytes(text(usize::from(*first)));
            }
            put.bytes(&self.codes);
            return Head { encoding: DICTIONARY, width: 1, ..head };
        }
        for at in 0..ends.len() {
            put.u32(text(at).len() as u32);
        }
        for at in 0..ends.len() {
            put.bytes(text(at));
        }
        Head { encoding: EACH, width: 4, ..head }
    }

    /// Lists the values of all cells, if they are few; how many bytes they have together.
    fn list<'a>(&mut self, count: usize, text: impl Fn(usize) -> &'a [u8]) -> Option<usize> {
        self.places.fill(0);
        self.values.clear();
        self.codes.clear();
        let mut bytes = 0;
        for at in 0..count {
            let value = text(at);
            if value.len() > MAX_VALUE_BYTES {
                return None;
            }
            let mut place = hash(value) as usize % PLACES;
            let code = loop {
                match self.places[place] {
                    0 if self.values.len() == MAX_VALUES => return None,
                    0 => {
                        self.values.push(at as u16);
                        self.places[place] = self.values.len() as u16;
                        bytes += value.len();
                        break self.values.len() - 1;
                    }
                    known => {
                        let code = usize::from(known - 1);
                        if text(usize::from(self.values[code])) == value {
                            break code;
                        }
                        place = (place + 1) % PLACES;
                    }
                }
            };
            self.codes.push(code as u8);
        }
        Some(bytes)
    }
}

/// FNV-1a.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The bytes of one cell.
fn cell_of<'a>(ends: &[u32], bytes: &'a [u8], at: usize) -> &'a [u8] {
    let start = if at == 0 { 0 } else { ends[at - 1] };
    bytes.get(start as usize..ends[at] as usize).unwrap_or_default()
}

fn cell_of_len(ends: &[u32], at: usize) -> usize {
    (ends[at] - if at == 0 { 0 } else { ends[at - 1] }) as usize
}

/// What a block says of itself.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    chunk: u32,
    count: usize,
    nulls: usize,
    class: u8,
    encoding: u8,
    width: u8,
    base: u64,
    most: u64,
    high: u64,
}

impl Head {
    fn put(&self, put: &mut Put<'_>, bytes: usize) {
        put.u32(bytes as u32).u32(self.chunk).u32(self.count as u32).u32(self.nulls as u32);
        put.u8(self.class)
            .u8(self.encoding)
            .u8(self.width)
            .u8(0)
            .u64(self.base)
            .u64(self.most)
            .u64(self.high);
    }
}

/// A block that was read: everything about it has been checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Number of the chunk in its slot.
    pub chunk: u32,
    /// The cells, where a null is a zero or empty.
    pub cells: OwnCells,
    /// Which cells are none, if any is.
    pub nulls: Option<Vec<bool>>,
}

/// As [`Cells`], but owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnCells {
    /// See [`Cells::Words`].
    Words(Vec<u64>),
    /// See [`Cells::Wide`].
    Wide(Vec<u128>),
    /// See [`Cells::Bytes`].
    Bytes(Vec<u32>, Vec<u8>),
}

impl Column {
    /// Reads the block at the start of `bytes`, which may go on behind it; how long it is, too.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), FormatError> {
        let mut get = Get::new(WHAT, bytes);
        let (crc, len) = (get.u32()?, get.u32()? as usize);
        if len < HEAD_BYTES || !len.is_multiple_of(8) {
            return Err(get.malformed("a length that no block can have"));
        }
        let bytes = get.seek(0).take(len)?;
        if crc32c(&bytes[4..]) != crc {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 4 });
        }
        let mut get = Get::new(WHAT, bytes);
        get.seek(8);
        let (chunk, count, nulls) = (get.u32()?, get.u32()? as usize, get.u32()? as usize);
        let (class, encoding, width) = (get.u8()?, get.u8()?, get.u8()?);
        get.take(1)?;
        let (base, _, high) = (get.u64()?, get.u64()?, get.u64()?);
        if count > MAX_CHUNK_ROWS || nulls > count {
            return Err(get.seek(12).malformed("a number of cells that no block can have"));
        }
        let none = match nulls {
            0 => None,
            _ if nulls == count => Some(vec![true; count]),
            _ => {
                let bits = get.take(count.div_ceil(8).next_multiple_of(8))?;
                let none: Vec<bool> = (0..count).map(|at| bits[at / 8] >> (at % 8) & 1 == 0).collect();
                if none.iter().filter(|none| **none).count() != nulls {
                    return Err(get.malformed("other nulls than it counts"));
                }
                Some(none)
            }
        };
        let all_none = nulls == count;
        let is_none = |at: usize| none.as_ref().is_some_and(|none| none[at]);
        let cells = match class {
            0 if all_none => OwnCells::Words(vec![0; count]),
            1 if all_none => OwnCells::Wide(vec![0; count]),
            2 if all_none => OwnCells::Bytes(vec![0; count], Vec::new()),
            0 => {
                let cells = widen(&mut get, count, width, base)?;
                OwnCells::Words(
                    cells.enumerate().map(|(at, cell)| if is_none(at) { 0 } else { cell }).collect(),
                )
            }
            1 if width == 16 => {
                let (cells, _) = get.take(16 * count)?.as_chunks::<16>();
                let cells = cells.iter().map(|cell| u128::from_le_bytes(*cell)).enumerate();
                OwnCells::Wide(cells.map(|(at, cell)| if is_none(at) { 0 } else { cell }).collect())
            }
            1 => {
                let high = u128::from(high) << 64;
                let cells = widen(&mut get, count, width, base)?.enumerate();
                OwnCells::Wide(
                    cells.map(|(at, low)| if is_none(at) { 0 } else { high | u128::from(low) }).collect(),
                )
            }
            2 => texts(&mut get, count, encoding)?,
            _ => return Err(get.seek(20).malformed("a class of cells that does not exist")),
        };
        Ok((Self { chunk, cells, nulls: none }, len))
    }
}

fn widen<'a>(
    get: &mut Get<'a>,
    count: usize,
    width: u8,
    base: u64,
) -> Result<impl Iterator<Item = u64> + use<'a>, FormatError> {
    let width = usize::from(width);
    if !matches!(width, 0 | 1 | 2 | 4 | 8) {
        return Err(get.malformed("a width that does not exist"));
    }
    let bytes = get.take(width * count)?;
    Ok((0..count).map(move |at| {
        let mut cell = [0; 8];
        cell[..width].copy_from_slice(&bytes[at * width..(at + 1) * width]);
        base.wrapping_add(u64::from_le_bytes(cell))
    }))
}

/// Where each of `count` texts ends, from their lengths.
fn ends(get: &mut Get<'_>, count: usize) -> Result<Vec<u32>, FormatError> {
    let (lengths, _) = get.take(4 * count)?.as_chunks::<4>();
    let mut end = 0u32;
    let all = lengths.iter().map(|length| {
        end = end.checked_add(u32::from_le_bytes(*length))?;
        Some(end)
    });
    all.collect::<Option<Vec<u32>>>().ok_or_else(|| get.outside("the length of a text"))
}

fn texts(get: &mut Get<'_>, count: usize, encoding: u8) -> Result<OwnCells, FormatError> {
    match encoding {
        EACH => {
            let ends = ends(get, count)?;
            let bytes = get.take(ends.last().map_or(0, |end| *end as usize))?;
            Ok(OwnCells::Bytes(ends, bytes.to_vec()))
        }
        DICTIONARY => {
            let values = get.u32()? as usize;
            if values > MAX_VALUES {
                return Err(get.malformed("more values than a dictionary has"));
            }
            let value_ends = ends(get, values)?;
            let long = |at: usize| cell_of_len(&value_ends, at) > MAX_VALUE_BYTES;
            if (0..values).any(long) {
                return Err(get.malformed("a longer value than a dictionary has"));
            }
            let listed = get.take(value_ends.last().map_or(0, |end| *end as usize))?;
            let (mut cell_ends, mut bytes) = (Vec::with_capacity(count), Vec::new());
            for code in get.take(count)? {
                if usize::from(*code) >= values {
                    return Err(get.malformed("a value that the dictionary lacks"));
                }
                bytes.extend_from_slice(cell_of(&value_ends, listed, usize::from(*code)));
                cell_ends.push(u32::try_from(bytes.len()).map_err(|_| get.outside("the texts"))?);
            }
            Ok(OwnCells::Bytes(cell_ends, bytes))
        }
        _ => Err(get.seek(21).malformed("an encoding that does not exist")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lent(cells: &OwnCells) -> Cells<'_> {
        match cells {
            OwnCells::Words(cells) => Cells::Words(cells),
            OwnCells::Wide(cells) => Cells::Wide(cells),
            OwnCells::Bytes(ends, bytes) => Cells::Bytes(ends, bytes),
        }
    }

    fn joined(texts: &[Vec<u8>]) -> OwnCells {
        let mut end = 0;
        let ends = texts.iter().map(|text| {
            end += text.len() as u32;
            end
        });
        OwnCells::Bytes(ends.collect(), texts.concat())
    }

    /// The same with nothing where a cell is null.
    fn without(cells: &OwnCells, valid: &[bool]) -> OwnCells {
        match cells {
            OwnCells::Words(cells) => OwnCells::Words(
                cells.iter().zip(valid).map(|(cell, valid)| cell * u64::from(*valid)).collect(),
            ),
            OwnCells::Wide(cells) => OwnCells::Wide(
                cells.iter().zip(valid).map(|(cell, valid)| cell * u128::from(*valid)).collect(),
            ),
            OwnCells::Bytes(ends, bytes) => {
                let text = |at: usize| if valid[at] { cell_of(ends, bytes, at).to_vec() } else { Vec::new() };
                joined(&(0..ends.len()).map(text).collect::<Vec<_>>())
            }
        }
    }

    fn cells() -> impl Strategy<Value = OwnCells> {
        let words = (any::<u64>(), 0..64u32, 0..300usize).prop_flat_map(|(base, bits, count)| {
            let cell = any::<u64>().prop_map(move |cell| base.wrapping_add(cell >> bits));
            proptest::collection::vec(cell, count).prop_map(OwnCells::Words)
        });
        let wide = (any::<u128>(), 0..128u32, 0..300usize).prop_flat_map(|(base, bits, count)| {
            let cell = any::<u128>().prop_map(move |cell| base.wrapping_add(cell >> bits));
            proptest::collection::vec(cell, count).prop_map(OwnCells::Wide)
        });
        let bytes = (1..600usize, 0..20usize, 0..700usize).prop_flat_map(|(values, long, count)| {
            let text = (0..values).prop_map(move |n| n.to_string().into_bytes().repeat(long));
            proptest::collection::vec(text, count).prop_map(|texts| joined(&texts))
        });
        prop_oneof![words, wide, bytes]
    }

    fn block() -> impl Strategy<Value = (OwnCells, Vec<bool>)> {
        (cells(), 0..3u8).prop_flat_map(|(cells, nulls)| {
            let count = lent(&cells).len();
            let valid = match nulls {
                0 => Just(vec![true; count]).boxed(),
                1 => Just(vec![false; count]).boxed(),
                _ => proptest::collection::vec(any::<bool>(), count).boxed(),
            };
            (Just(cells), valid)
        })
    }

    proptest! {
        // Promise 5: what is read is what was written, and never more than was said.
        #[test]
        fn a_block_reads_as_it_was_written((cells, valid) in block(), chunk: u32, behind in 0..20usize) {
            let mut writer = ColumnWriter::default();
            let worst = lent(&cells).worst();
            let mut space = vec![0xa5; worst + behind];
            let bytes = writer.write(&mut space, chunk, lent(&cells), &valid).unwrap();
            prop_assert!(bytes <= worst && bytes % 8 == 0);
            let (column, len) = Column::decode(&space).unwrap();
            prop_assert_eq!(len, bytes);
            prop_assert_eq!(column.chunk, chunk);
            let nulls: Vec<bool> = valid.iter().map(|valid| !valid).collect();
            prop_assert_eq!(column.nulls, nulls.contains(&true).then_some(nulls));
            prop_assert_eq!(column.cells, without(&cells, &valid));
            prop_assert_eq!(writer.write(&mut space[..bytes - 1], chunk, lent(&cells), &valid), None);
            prop_assert!(Column::decode(&space[..bytes - 1]).is_err());
            space[bytes / 2] ^= 1;
            prop_assert!(Column::decode(&space).is_err());
        }
    }

    #[test]
    fn what_is_alike_takes_little() {
        let mut writer = ColumnWriter::default();
        let mut size = |cells: Cells<'_>| {
            let mut space = vec![0; cells.worst()];
            writer.write(&mut space, 0, cells, &vec![true; cells.len()]).unwrap()
        };
        assert_eq!(size(Cells::Words(&[7; 4096])), HEAD_BYTES);
        assert_eq!(
            size(Cells::Words(&std::array::from_fn::<u64, 4096, _>(|n| n as u64 % 200))),
            HEAD_BYTES + 4096
        );
        let mapped = |n: usize| 0xffff_0000_0000 | 0x0a00_0000 | n as u128;
        assert_eq!(size(Cells::Wide(&std::array::from_fn::<u128, 4096, _>(mapped))), HEAD_BYTES + 2 * 4096);
        let names: Vec<Vec<u8>> =
            (0..4096).map(|n| if n % 3 == 0 { b"udp".to_vec() } else { b"tcp".to_vec() }).collect();
        let OwnCells::Bytes(ends, bytes) = joined(&names) else { panic!() };
        // Two lengths of four bytes behind their number, two texts, and a code each.
        assert_eq!(
            size(Cells::Bytes(&ends, &bytes)),
            HEAD_BYTES + (4 + 8 + 6 + 4096usize).next_multiple_of(8)
        );
    }
}
