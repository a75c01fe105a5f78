//! Encoder of blocks: cells into bytes. The loops are over one width at a time so that the compiler can use
//! vector instructions.

use super::block::{DICTIONARY, EACH, HEAD_BYTES, Head, MAX_VALUE_BYTES, PLANES};
use super::bounds::bounds_bytes;
use super::dictionary::Dictionary;
use super::{Cell, CellBuffer, Cells, Class, planes};
use crate::bytes::SliceWriter;
use crate::crc32c;
use crate::slot::MAX_CHUNK_ROWS;

/// Whose block it is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockAddress {
    /// The slot's, its low half.
    pub(crate) sequence: u32,
    pub(crate) chunk: u32,
    pub(crate) entry: u16,
    pub(crate) column: u16,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) bytes: usize,
    /// Least and greatest rank; `None`: all are null.
    pub(crate) bounds: Option<(u128, u128)>,
}

/// Most bytes of a block beside its cells: its head, what rounds the two parts behind it, and what may be told of it elsewhere.
pub(crate) const BESIDE: usize = HEAD_BYTES + 16 + bounds_bytes(Class::Wide);

/// Most bytes that a cell takes in a block, its text left out.
pub(crate) const fn cell_bytes(class: Class) -> usize {
    // One more says whether it is null; a bit, to be exact.
    1 + match class {
        Class::Word => 8,
        Class::Wide => 16,
        Class::Bytes => 2,
    }
}

/// A cell that is a number.
trait Number: Copy + Ord + Default {
    /// What it exceeds another one by.
    fn over(self, least: Self) -> u128;
    /// The lower half of that, which is all of it where it fits.
    fn low_over(self, least: Self) -> u64;
    fn rank(self) -> u128;
    /// Good enough to tell values of a block apart.
    fn spread(self) -> u64;
}

const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

impl Number for u64 {
    #[inline]
    fn over(self, least: Self) -> u128 {
        self.wrapping_sub(least).into()
    }

    #[inline]
    fn low_over(self, least: Self) -> u64 {
        self.wrapping_sub(least)
    }

    fn rank(self) -> u128 {
        self.into()
    }

    #[inline]
    fn spread(self) -> u64 {
        self.wrapping_mul(SPREAD)
    }
}

impl Number for u128 {
    #[inline]
    fn over(self, least: Self) -> u128 {
        self.wrapping_sub(least)
    }

    #[inline]
    fn low_over(self, least: Self) -> u64 {
        self.wrapping_sub(least) as u64
    }

    fn rank(self) -> u128 {
        self
    }

    #[inline]
    fn spread(self) -> u64 {
        (self as u64 ^ (self >> 64) as u64).wrapping_mul(SPREAD)
    }
}

/// Least and greatest of the cells that are not null.
fn bounds<T: Number>(cells: &[T], valid: &[bool], nulls: usize) -> (T, T) {
    let grow = |(least, most): (T, T), cell: T| (least.min(cell), most.max(cell));
    let mut known = cells.iter().zip(valid).filter(|(_, valid)| nulls == 0 || **valid).map(|(cell, _)| *cell);
    let Some(first) = known.next() else { return (T::default(), T::default()) };
    if nulls == 0 {
        return cells.iter().copied().fold((first, first), grow);
    }
    known.fold((first, first), grow)
}

/// Bytes that numbers up to `span` take.
fn width_of(span: u128) -> u8 {
    match span {
        0 => 0,
        1..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        0x1_0000_0000..=0xffff_ffff_ffff_ffff => 8,
        _ => 16,
    }
}

fn fill<T: Copy, const N: usize>(
    put: &mut SliceWriter<'_>,
    cells: impl Iterator<Item = T>,
    count: usize,
    bytes: impl Fn(T) -> [u8; N],
) {
    let Some(space) = put.space(N * count) else { return };
    let (places, _) = space.as_chunks_mut::<N>();
    places.iter_mut().zip(cells).for_each(|(place, cell)| *place = bytes(cell));
}

/// What each of so many cells exceeds the least one by, in `width` bytes each, padded to 8.
fn narrow<T: Number>(
    put: &mut SliceWriter<'_>,
    width: u8,
    least: T,
    count: usize,
    cells: impl Iterator<Item = T>,
) {
    match width {
        1 => fill(put, cells, count, |cell| [cell.low_over(least) as u8]),
        2 => fill(put, cells, count, |cell| (cell.low_over(least) as u16).to_le_bytes()),
        4 => fill(put, cells, count, |cell| (cell.low_over(least) as u32).to_le_bytes()),
        8 => fill(put, cells, count, |cell| cell.low_over(least).to_le_bytes()),
        16 => fill(put, cells, count, |cell| cell.over(least).to_le_bytes()),
        _ => {}
    }
    put.align(8);
}

/// Makes blocks. All its memory is allocated when it is made.
#[derive(Debug)]
pub(crate) struct ColumnWriter {
    dictionary: Dictionary,
}

impl ColumnWriter {
    pub(crate) fn new() -> Self {
        Self { dictionary: Dictionary::new(MAX_CHUNK_ROWS) }
    }

    /// Writes the block of these cells to the start of `space`; how many bytes it has, a multiple of 8. `None` when it does
    /// not fit, or there are more cells than a chunk has rows.
    pub(crate) fn write(
        &mut self,
        space: &mut [u8],
        place: BlockAddress,
        buffer: &CellBuffer,
    ) -> Option<Written> {
        let (count, nulls) = (buffer.len(), buffer.nulls());
        if count > MAX_CHUNK_ROWS {
            return None;
        }
        self.dictionary.clear();
        let mut put = SliceWriter::new(space);
        put.seek(HEAD_BYTES);
        if nulls > 0 && nulls < count {
            for eight in buffer.valid().chunks(8) {
                put.u8(eight.iter().rev().fold(0, |bits, valid| bits << 1 | u8::from(*valid)));
            }
            put.align(8);
        }
        let head = Head {
            sequence: place.sequence,
            chunk: place.chunk,
            entry: place.entry,
            column: place.column,
            class: buffer.class(),
            encoding: EACH,
            width: 0,
            cells: count as u16,
            nulls: nulls as u16,
            values: 0,
            least: 0,
            greatest: 0,
        };
        let head = match buffer.cells() {
            _ if nulls == count => head,
            Cells::Words(cells) => self.numbers(&mut put, cells, buffer, head),
            Cells::Wide(cells) => self.numbers(&mut put, cells, buffer, head),
            Cells::Bytes(ends, bytes) => self.texts(&mut put, ends, bytes, buffer, head),
        };
        put.align(8);
        let bytes = put.at();
        if !put.fits() {
            return None;
        }
        head.put(&mut put, bytes);
        let crc = crc32c(space.get(4..bytes)?);
        SliceWriter::new(space).u32(crc);
        Some(Written { bytes, bounds: (nulls < count).then_some((head.least, head.greatest)) })
    }

    /// The first cell with each value of the block that was written last, where they are few.
    pub(crate) fn firsts(&self) -> &[u16] {
        &self.dictionary.firsts
    }

    /// What each exceeds the least by; or where that takes less, the same of the few values that there are, and which of
    /// them each has.
    fn numbers<T: Number>(
        &mut self,
        put: &mut SliceWriter<'_>,
        cells: &[T],
        buffer: &CellBuffer,
        head: Head,
    ) -> Head {
        let (valid, nulls, count) = (buffer.valid(), buffer.nulls(), cells.len());
        let (least, greatest) = bounds(cells, valid, nulls);
        let width = width_of(greatest.over(least));
        let head = Head { width, least: least.rank(), greatest: greatest.rank(), ..head };
        let each = (usize::from(width) * count).next_multiple_of(8);
        // Planes take a little more time to read: where they save a quarter.
        let bits = planes::bits_of(greatest.over(least));
        let packed = (1..=planes::MAX_BITS).contains(&bits).then(|| planes::bytes_of(bits, count));
        let packed = packed.filter(|packed| 4 * packed <= 3 * each);
        let listed = |values: usize| (values * usize::from(width)).next_multiple_of(8) + count;
        let dictionary = &mut self.dictionary;
        let same = |a: usize, b: usize| cells[a] == cells[b];
        if width <= 1 {
            dictionary.note(valid, |at| cells[at].low_over(least) as u8);
        } else if dictionary.list(valid, |at| cells[at].spread(), same)
            && listed(dictionary.firsts.len()) < packed.unwrap_or(each)
        {
            let values = dictionary.firsts.len();
            narrow(
                put,
                width,
                least,
                values,
                dictionary.firsts.iter().map(|first| cells[usize::from(*first)]),
            );
            put.bytes(&dictionary.codes);
            return Head { encoding: DICTIONARY, values: values as u16, ..head };
        }
        if packed.is_some() {
            // A null stands as something that fits.
            let over = |cell: T| cell.clamp(least, greatest).low_over(least);
            planes::put(put, bits, cells, over);
            return Head { encoding: PLANES, width: bits, ..head };
        }
        if nulls == 0 {
            narrow(put, width, least, count, cells.iter().copied());
        } else {
            // A null stands as something that fits.
            narrow(put, width, least, count, cells.iter().map(|cell| (*cell).clamp(least, greatest)));
        }
        head
    }

    /// Each text as it is, or the few that there are and which of them each cell has.
    fn texts(
        &mut self,
        put: &mut SliceWriter<'_>,
        ends: &[u32],
        bytes: &[u8],
        buffer: &CellBuffer,
        head: Head,
    ) -> Head {
        let cells = Cells::Bytes(ends, bytes);
        let text = |at: usize| match cells.at(at) {
            Some(Cell::Bytes(text)) => text,
            _ => &[],
        };
        let count = ends.len();
        let rank = |at: usize| Cell::Bytes(text(at)).rank();
        let known = buffer.valid().iter().enumerate().filter(|(_, valid)| **valid).map(|(at, _)| at);
        let (mut least, mut greatest, mut longest) = (u128::MAX, 0, 0);
        for at in known {
            (least, greatest) = (least.min(rank(at)), greatest.max(rank(at)));
            longest = longest.max(text(at).len());
        }
        let width = if longest <= 0xff { 1 } else { 2 };
        let head = Head { width, least, greatest, ..head };
        let lengths = |put: &mut SliceWriter<'_>, count: usize, lengths: &mut dyn Iterator<Item = usize>| {
            if width == 1 {
                fill(put, lengths, count, |length| [length as u8]);
            } else {
                fill(put, lengths, count, |length| (length as u16).to_le_bytes());
            }
        };
        let dictionary = &mut self.dictionary;
        let list = longest <= MAX_VALUE_BYTES
            && dictionary.list(buffer.valid(), |at| Cell::Bytes(text(at)).hash(), |a, b| text(a) == text(b));
        let firsts = dictionary.firsts.iter().map(|first| usize::from(*first));
        let listed: usize = firsts.clone().map(|first| text(first).len() + usize::from(width)).sum();
        if list && listed + count < bytes.len() + usize::from(width) * count {
            lengths(put, dictionary.firsts.len(), &mut firsts.clone().map(|first| text(first).len()));
            for first in firsts {
                put.bytes(text(first));
            }
            put.bytes(&dictionary.codes);
            return Head { encoding: DICTIONARY, values: dictionary.firsts.len() as u16, ..head };
        }
        lengths(put, count, &mut (0..count).map(|at| text(at).len()));
        put.bytes(bytes);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Block, Packed};
    use super::*;
    use proptest::prelude::*;

    type OwnCell = Option<OwnValue>;

    #[derive(Clone, Debug, PartialEq)]
    enum OwnValue {
        Word(u64),
        Wide(u128),
        Bytes(Vec<u8>),
    }

    fn lent(cell: &OwnCell) -> Option<Cell<'_>> {
        cell.as_ref().map(|cell| match cell {
            OwnValue::Word(word) => Cell::Word(*word),
            OwnValue::Wide(wide) => Cell::Wide(*wide),
            OwnValue::Bytes(bytes) => Cell::Bytes(bytes),
        })
    }

    fn buffer_of(class: Class, cells: &[OwnCell]) -> CellBuffer {
        let mut buffer = CellBuffer::new(class, cells.len(), 2 << 20);
        for cell in cells {
            match cell {
                None => buffer.null(),
                Some(OwnValue::Word(word)) => buffer.word(*word),
                Some(OwnValue::Wide(wide)) => buffer.wide(*wide),
                Some(OwnValue::Bytes(bytes)) => buffer.bytes(bytes),
            }
        }
        buffer
    }

    /// What `n` is as a cell: over a span of so many bits from `base` on, or a text of one of so many values.
    fn made(class: Class, n: u64, base: u128, bits: u32, texts: (usize, u64)) -> OwnValue {
        let wide = u128::from(n) << 64 | u128::from(n.rotate_left(7));
        match class {
            Class::Word => OwnValue::Word((base as u64).wrapping_add((wide >> (64 + bits % 64)) as u64)),
            Class::Wide => OwnValue::Wide(base.wrapping_add(wide.checked_shr(bits).unwrap_or(0))),
            Class::Bytes => OwnValue::Bytes((n % texts.1).to_string().into_bytes().repeat(texts.0)),
        }
    }

    /// Few values or many, over any span, with any nulls.
    fn cells() -> impl Strategy<Value = (Class, Vec<OwnCell>)> {
        let class = prop_oneof![Just(Class::Word), Just(Class::Wide), Just(Class::Bytes)];
        let shape = (any::<u128>(), 0..129u32, (0..20usize, 1..4000u64), 0..3u8);
        let values = proptest::collection::vec(any::<u64>(), 1..600);
        let which = proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..700);
        (class, shape, values, which).prop_map(|(class, (base, bits, texts, nulls), values, which)| {
            let cell = |(at, null): (prop::sample::Index, bool)| {
                let is_null = nulls == 2 || nulls == 1 && null;
                (!is_null).then(|| made(class, values[at.index(values.len())], base, bits, texts))
            };
            (class, which.into_iter().map(cell).collect())
        })
    }

    fn most(buffer: &CellBuffer) -> usize {
        let text = match buffer.cells() {
            Cells::Bytes(_, bytes) => bytes.len(),
            _ => 0,
        };
        // What may be told of it elsewhere is not for the block.
        BESIDE - bounds_bytes(Class::Wide) + cell_bytes(buffer.class()) * buffer.len() + text
    }

    proptest! {
        // Promise 5: what is read is what was written, and never more than was said.
        #[test]
        fn a_block_reads_as_it_was_written((class, cells) in cells(), numbers: (u32, u32, u16, u16), behind in 0..20usize) {
            let (sequence, chunk, entry, column) = numbers;
            let place = BlockAddress { sequence, chunk, entry, column };
            let buffer = buffer_of(class, &cells);
            let mut writer = ColumnWriter::new();
            let mut space = vec![0xa5; most(&buffer) + behind];
            let written = writer.write(&mut space, place, &buffer).unwrap();
            prop_assert!(written.bytes <= most(&buffer) && written.bytes.is_multiple_of(8));

            let block = Block::read(&space).unwrap();
            prop_assert_eq!((block.bytes(), block.chunk(), block.entry(), block.column()), (written.bytes, chunk, entry, column));
            prop_assert_eq!((block.class(), block.cells(), block.nulls()), (class, cells.len(), buffer.nulls()));
            let ranks = || cells.iter().filter_map(lent).map(Cell::rank);
            prop_assert_eq!(block.bounds(), ranks().min().zip(ranks().max()));
            prop_assert_eq!(block.bounds(), written.bounds);
            let read = block.decode().unwrap();
            prop_assert_eq!(read.iter().collect::<Vec<_>>(), cells.iter().map(lent).collect::<Vec<_>>());
            prop_assert_eq!(read.nulls.is_some(), buffer.nulls() > 0);
            // A null is a zero or empty, also for who does not look whether it is one.
            let zero = buffer_of(class, &cells);
            prop_assert_eq!(read.cells.lent(), zero.cells());

            // What can be looked at as it is kept is the same.
            let ranks: Vec<u128> = ranks().collect();
            if let Some(Packed::Planes { least, over }) = block.packed().unwrap() {
                let numbers: Vec<u128> = over.numbers().into_iter().map(|over| least + u128::from(over)).collect();
                prop_assert_eq!(&numbers, &ranks);
                for number in &numbers {
                    prop_assert!(over.may_have(&[u64::MAX, (number - least) as u64]));
                }
                prop_assert!(!over.may_have(&[]));
            }

            // All values are among the first ones, where they were listed.
            let firsts: Vec<_> = writer.firsts().iter().map(|first| &cells[usize::from(*first)]).collect();
            prop_assert!(firsts.is_empty() || cells.iter().all(|cell| cell.is_none() || firsts.contains(&cell)));

            prop_assert_eq!(writer.write(&mut space[..written.bytes - 1], place, &buffer), None);
            prop_assert!(Block::read(&space[..written.bytes - 1]).is_err());
            space[written.bytes / 2] ^= 1;
            prop_assert!(Block::read(&space).is_err());
        }
    }

    fn size(class: Class, cells: impl Iterator<Item = OwnValue>) -> usize {
        let cells: Vec<OwnCell> = cells.map(Some).collect();
        let buffer = buffer_of(class, &cells);
        let mut space = vec![0; most(&buffer)];
        ColumnWriter::new().write(&mut space, BlockAddress::default(), &buffer).unwrap().bytes
    }

    #[test]
    fn what_is_alike_takes_little() {
        let words = |word: fn(u64) -> u64| size(Class::Word, (0..4096).map(|n| OwnValue::Word(word(n))));
        assert_eq!(words(|_| 7), HEAD_BYTES);
        assert_eq!(words(|n| 1000 + n % 200), HEAD_BYTES + 4096);
        // 44 bits; one; 17 in any order; 31, of which planes would save too little.
        assert_eq!(words(|n| n << 32), HEAD_BYTES + 44 * 512);
        assert_eq!(words(|n| n % 2), HEAD_BYTES + 512);
        assert_eq!(words(|n| n * 0x9e37 % 100_003), HEAD_BYTES + 17 * 512);
        assert_eq!(words(|n| n << 19), HEAD_BYTES + 4 * 4096);
        // Few values that lie far apart: four bytes each, and one a cell.
        assert_eq!(words(|n| n * n % 50 * 1_000_000), HEAD_BYTES + 22 * 4 + 4096);
        let mapped = |n: u64| OwnValue::Wide(0xffff_0000_0000 | 0x0a00_0000 | u128::from(n));
        assert_eq!(size(Class::Wide, (0..4096).map(mapped)), HEAD_BYTES + 12 * 512);
        let names =
            (0..4096).map(|n| OwnValue::Bytes(if n % 3 == 0 { b"dns".to_vec() } else { b"http".to_vec() }));
        // Two lengths, two texts, and a code each.
        assert_eq!(size(Class::Bytes, names), HEAD_BYTES + (2 + 7 + 4096usize).next_multiple_of(8));
    }
}
