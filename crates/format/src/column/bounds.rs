//! Block statistics of a column: where each block ends, its bounds where these exclude blocks, and the blocks
//! of rare values. With them a search reads only the blocks that may match.

use super::block::HEAD_BYTES as LEAST_BLOCK;
use super::rare::Rare;
use super::{Block, Cell, Class};
use crate::bytes::{FieldReader, SliceWriter, u32_at};
use crate::{FormatError, Section, crc32c};
use std::ops::Range;

const WHAT: &str = "bounds of blocks";

/// Bytes in front.
const HEAD_BYTES: usize = 16;

/// Of fewer blocks nothing is told.
const LEAST_BLOCKS: u32 = 4;

/// Most bytes for a block of that class: where it ends, and two bounds.
pub(crate) const fn bounds_bytes(class: Class) -> usize {
    4 + 2 * match class {
        Class::Word => 8,
        Class::Wide | Class::Bytes => 16,
    }
}

/// Most bytes for so many blocks.
pub(crate) const fn most_bytes(class: Class, blocks: usize) -> usize {
    HEAD_BYTES + bounds_bytes(class) * blocks
}

/// Bytes that a number takes which is not greater than that: 1, 2, 4, 8 or 16.
fn width(most: u128) -> usize {
    (16 - most.leading_zeros() as usize / 8).max(1).next_power_of_two()
}

/// How widely the values of blocks are spread, and so whether they are told of; found by looking at them one by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    blocks: u32,
    /// What the bounds of all blocks span together, in parts of [`WHOLE`] of what those of the column do.
    spans: u64,
}

/// The whole of a span.
const WHOLE: u64 = 1 << 20;

impl Spread {
    /// Goes on with a block, of a column with these bounds.
    pub(crate) fn add(&mut self, block: Option<(u128, u128)>, column: (u128, u128)) {
        let span = block.map_or(0, |(least, greatest)| greatest - least);
        // Of large numbers the lowest bits do not matter.
        let whole = (column.1 - column.0).max(1);
        let down = 64u32.saturating_sub(whole.leading_zeros());
        self.spans += ((span >> down) * u128::from(WHOLE) / (whole >> down)) as u64;
        self.blocks += 1;
    }

    /// Bytes of a bound; none where bounds would not exclude much.
    pub(crate) fn told(&self, column: (u128, u128)) -> Option<usize> {
        let pays = self.blocks >= LEAST_BLOCKS
            && column.0 < column.1
            && self.spans <= u64::from(self.blocks) * WHOLE / 2;
        pays.then(|| width(column.1 - column.0))
    }
}

/// What is told beside where blocks end: bytes of a bound, and bits of a bucket's number; 0: not that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) width: usize,
    pub(crate) bits: u32,
}

impl Shape {
    /// As a section has it.
    pub(crate) fn encoding(self) -> u16 {
        self.width as u16 | (self.bits as u16) << 8
    }

    pub(crate) fn of(section: &Section) -> Self {
        Self { width: usize::from(section.encoding & 0xff), bits: u32::from(section.encoding >> 8) }
    }

    /// Bytes in front of what is told of buckets.
    pub(crate) fn bytes(self, blocks: usize) -> usize {
        HEAD_BYTES + blocks * (4 + 2 * self.width)
    }
}

/// Writes what is told of block number `number` of a column with these bounds: where it ends in the column's section, and its
/// bounds. `bytes` are those of the section that tells it.
pub(crate) fn put_bounds(
    bytes: &mut [u8],
    section: &Section,
    column: (u128, u128),
    number: usize,
    (end, block): (u32, Option<(u128, u128)>),
) {
    let (count, Shape { width, .. }) = (section.count as usize, Shape::of(section));
    let mut put = SliceWriter::new(bytes);
    put.u128(if width > 0 { column.0 } else { 0 }).seek(HEAD_BYTES + 4 * number).u32(end);
    if width == 0 {
        return;
    }
    // Nothing is between these.
    let (least, greatest) = block.map_or((1, 0), |(low, high)| (low - column.0, high - column.0));
    let lists = HEAD_BYTES + 4 * count;
    put.seek(lists + width * number).bytes(&least.to_le_bytes()[..width]);
    put.seek(lists + width * (count + number)).bytes(&greatest.to_le_bytes()[..width]);
}

/// Where the blocks of a column end, and what is told of what they have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockBounds {
    blocks: Vec<(u32, Option<(u128, u128)>)>,
    has_bounds: bool,
    rare: Option<Rare>,
}

impl BlockBounds {
    /// Whether a section has bounds.
    pub fn has_bounds(section: &Section) -> bool {
        Shape::of(section).width > 0
    }

    /// Whether a section tells where single values are.
    pub fn has_values(section: &Section) -> bool {
        Shape::of(section).bits > 0
    }

    /// Reads those of a section, which tells of the blocks of `column`; `bytes` are the section's.
    pub fn decode(bytes: &[u8], section: &Section, column: &Section) -> Result<Self, FormatError> {
        if crc32c(bytes) != section.crc {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 0 });
        }
        let mut get = FieldReader::new(WHAT, bytes);
        let base = get.u128()?;
        let (count, shape) = (section.count as usize, Shape::of(section));
        let Shape { width, bits } = shape;
        let right =
            if bits == 0 { bytes.len() == shape.bytes(count) } else { bytes.len() > shape.bytes(count) };
        if !matches!(width, 0 | 1 | 2 | 4 | 8 | 16) || !right || (width == 0 && base != 0) {
            return Err(get.malformed("a size that it cannot have"));
        }
        // Each block has a head, so that a section cannot tell of many more than there are bytes.
        if section.count != column.count || count > column.bytes as usize / LEAST_BLOCK {
            return Err(get.malformed("other blocks than the column has"));
        }
        let (front, values) = bytes.split_at(shape.bytes(count));
        let rare = (bits > 0).then(|| Rare::decode(&get, values, bits, count)).transpose()?;
        let (ends, lists) = front[HEAD_BYTES..].split_at(4 * count);
        let (least, greatest) = lists.split_at(width * count);
        let (mut blocks, mut start) = (Vec::with_capacity(count), 0);
        for (at, end) in ends.chunks_exact(4).enumerate() {
            let end = u32_at(end, 0);
            let len = end.checked_sub(start);
            if len.is_none_or(|len| len < LEAST_BLOCK as u32) || !end.is_multiple_of(8) {
                return Err(get.malformed("a place that no block can have"));
            }
            start = end;
            let number = |list: &[u8]| number(&list[width * at..width * (at + 1)]);
            let (least, greatest) = (number(least), number(greatest));
            let bounds = if width > 0 && least <= greatest {
                let bounds = base.checked_add(least).zip(base.checked_add(greatest));
                Some(bounds.ok_or_else(|| get.malformed("bounds that no cell can have"))?)
            } else {
                None
            };
            blocks.push((end, bounds));
        }
        if start != column.bytes {
            return Err(get.malformed("other blocks than the column has"));
        }
        Ok(Self { blocks, has_bounds: width > 0, rare })
    }

    /// How many blocks there are.
    pub fn count(&self) -> usize {
        self.blocks.len()
    }

    /// Where a block is in the column's section; `None`: there is none of that number.
    pub fn range(&self, block: usize) -> Option<Range<usize>> {
        let (end, _) = self.blocks.get(block)?;
        let start = block.checked_sub(1).map_or(0, |before| self.blocks[before].0);
        Some(start as usize..*end as usize)
    }

    /// Whether it tells the truth of the block that begins at `start` of the column's section.
    pub fn is_true_of(&self, start: usize, block: &Block<'_>) -> bool {
        let number = self.blocks.partition_point(|(end, _)| *end as usize <= start);
        let has = |cell: Cell<'_>| self.may_have(number, cell);
        self.range(number) == Some(start..start + block.bytes())
            && self.bounds(number).is_none_or(|bounds| bounds == block.bounds())
            && (self.rare.is_none() || block.decode().is_ok_and(|column| column.iter().flatten().all(has)))
    }

    /// Least and greatest [rank](crate::Cell::rank) of a block's cells that are not null, or nothing: all are; `None`: that is not told,
    /// or the block is not there.
    pub fn bounds(&self, block: usize) -> Option<Option<(u128, u128)>> {
        self.blocks.get(block).filter(|_| self.has_bounds).map(|(_, bounds)| *bounds)
    }

    /// Whether a block may have that cell, as far as it is told where single values are.
    pub fn may_have(&self, block: usize, cell: Cell<'_>) -> bool {
        self.rare.as_ref().is_none_or(|rare| rare.may_have(block, cell.hash()))
    }
}

fn number(bytes: &[u8]) -> u128 {
    let mut word = [0; 16];
    word[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(word)
}
