//! Column outlines: number of cells, bounds and a filter, with which a search skips a slot without reading
//! the column.

use super::filter::{BLOCK_BYTES, may_have};
use super::{Cell, Class};
use crate::bytes::{FieldReader, SliceWriter};
use crate::{FormatError, Section, crc32c};

const WHAT: &str = "attribute filter";

/// Bytes in front of the filter.
pub(crate) const OUTLINE_BYTES: usize = 48;

/// What a slot holds of one column, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outline<'a> {
    /// What its cells are.
    pub class: Class,
    /// How many there are: as many as elements of the stream end in the slot.
    pub cells: u32,
    /// How many of them are null.
    pub nulls: u32,
    pub(crate) least: u128,
    pub(crate) greatest: u128,
    filter: &'a [u8],
}

impl<'a> Outline<'a> {
    /// Reads that of a section; `bytes` are the section's.
    pub fn decode(bytes: &'a [u8], section: &Section) -> Result<Self, FormatError> {
        if crc32c(bytes) != section.crc {
            return Err(FormatError::BadChecksum { structure: WHAT, at: 0 });
        }
        let mut get = FieldReader::new(WHAT, bytes);
        let (cells, nulls, class) = (get.u32()?, get.u32()?, Class::from_number(get.u8()?));
        let class = class.ok_or_else(|| get.malformed("a class of cells that does not exist"))?;
        get.take(7)?;
        let (least, greatest) = (get.u128()?, get.u128()?);
        let filter = &bytes[OUTLINE_BYTES..];
        let blocks = filter.len() / BLOCK_BYTES;
        let sized = filter.len().is_multiple_of(BLOCK_BYTES) && blocks == section.count as usize;
        if !sized || !(blocks == 0 || blocks.is_power_of_two()) {
            return Err(get.malformed("a size that no filter can have"));
        }
        if nulls > cells {
            return Err(get.seek(4).malformed("more nulls than cells"));
        }
        if nulls == cells && (least, greatest) != (0, 0) {
            return Err(get.seek(16).malformed("bounds of cells that are not there"));
        }
        if least > greatest {
            return Err(get.seek(16).malformed("a least cell that is greater than the greatest"));
        }
        Ok(Self { class, cells, nulls, least, greatest, filter })
    }

    /// Least and greatest [rank](Cell::rank) of the cells that are not null; `None`: all are.
    pub fn bounds(&self) -> Option<(u128, u128)> {
        (self.nulls < self.cells).then_some((self.least, self.greatest))
    }

    /// Bytes of its filter; 0: it has none, as bounds say as much, or none was worth its room.
    pub fn filter_bytes(&self) -> usize {
        self.filter.len()
    }

    /// Whether such a cell may be among them; if it is, then always.
    pub fn may_have(&self, cell: Cell<'_>) -> bool {
        let within = |(least, greatest)| (least..=greatest).contains(&cell.rank());
        cell.class() == self.class
            && self.bounds().is_some_and(within)
            && (self.filter.is_empty() || may_have(self.filter, cell.hash()))
    }
}

/// What an open slot holds of one column so far, in short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenOutline {
    /// How many cells there are: as many as elements of the stream end in the slot.
    pub cells: u32,
    /// How many of them are null.
    pub nulls: u32,
    /// Least and greatest [rank](Cell::rank) of the cells that are not null; `None`: all are.
    pub bounds: Option<(u128, u128)>,
    /// Whether a cell with one of the [hashes](Cell::hash) that were asked for may be among them; if it is, then always.
    pub may_have: bool,
}

impl OpenOutline {
    /// Of no cells.
    pub const EMPTY: Self = Self { cells: 0, nulls: 0, bounds: None, may_have: false };
}

/// Puts all but the filter, which follows.
pub(crate) fn put_outline(
    put: &mut SliceWriter<'_>,
    class: Class,
    cells: u32,
    nulls: u32,
    bounds: Option<(u128, u128)>,
) {
    let (least, greatest) = bounds.unwrap_or_default();
    put.u32(cells).u32(nulls).u8(class as u8).zeros(7).u128(least).u128(greatest);
}
