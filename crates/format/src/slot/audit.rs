//! Consistency checks of a slot's columns: every column that the summary names exists, has a cell for each
//! element that ends in the slot, and agrees with its outline.

use super::{PartHeader, Section, SectionKind, Summary};
use crate::bytes::FieldReader;
use crate::column::{Block, BlockBounds, Blocks, Outline};
use crate::{FormatError, MAX_COLUMNS};

fn wrong(what: &'static str) -> FormatError {
    FormatError::Malformed { structure: "attribute column", at: 0, what }
}

/// How many elements of each dictionary entry end in each chunk.
#[derive(Debug, Default)]
pub(super) struct Ended(Vec<Vec<(u16, u32)>>);

impl Ended {
    /// Goes on with the next chunk.
    pub(super) fn next_chunk(&mut self) {
        self.0.push(Vec::new());
    }

    /// Counts an element.
    pub(super) fn count(&mut self, entry: u16) {
        let Some(chunk) = self.0.last_mut() else { return };
        match chunk.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, count)) => *count += 1,
            None => chunk.push((entry, 1)),
        }
    }

    /// The chunks in which any of that entry does, and how many.
    fn of(&self, entry: u16) -> impl Iterator<Item = (u32, u32)> {
        let chunks = (0..).zip(&self.0);
        chunks.flat_map(move |(number, chunk)| {
            chunk.iter().filter(move |(known, _)| *known == entry).map(move |(_, count)| (number, *count))
        })
    }
}

/// Checks all columns.
pub(super) fn check_columns(
    header: &PartHeader,
    summary: &Summary,
    image: &[u8],
    ended: &Ended,
) -> Result<(), FormatError> {
    let mut sections = 0;
    for (entry, number) in summary.entries.iter().zip(0..) {
        if entry.schema as usize > MAX_COLUMNS {
            return Err(wrong("a stream has more attributes than there may be"));
        }
        for column in 0..entry.schema as u16 {
            let found = (summary.filter(number, column), summary.column(number, column));
            match (found, ended.of(number).next()) {
                ((None, None), None) if summary.bounds(number, column).is_none() => {}
                ((Some(outline), Some(blocks)), Some(_)) => {
                    let told = summary.bounds(number, column);
                    check_column(header, (outline, told, blocks), image, ended.of(number))?;
                    sections += 2 + usize::from(told.is_some());
                }
                _ => return Err(wrong("it is not there just where elements end")),
            }
        }
    }
    let of_columns = |section: &&Section| {
        matches!(section.kind, SectionKind::Filter | SectionKind::Attribute | SectionKind::Bounds)
    };
    if summary.sections.iter().filter(of_columns).count() == sections {
        Ok(())
    } else {
        Err(wrong("there is one of a stream that has none, or one twice"))
    }
}

fn check_column(
    header: &PartHeader,
    (outline, told, blocks): (&Section, Option<&Section>, &Section),
    image: &[u8],
    mut ended: impl Iterator<Item = (u32, u32)>,
) -> Result<(), FormatError> {
    let bytes = |section: &Section| {
        FieldReader::new("slot", image).seek(section.offset as usize).take(section.bytes as usize)
    };
    let outline = Outline::decode(bytes(outline)?, outline)?;
    let told = told.map(|told| BlockBounds::decode(bytes(told)?, told, blocks)).transpose()?;
    let mut at = 0;
    let (mut cells, mut nulls, mut bounds) = (0u64, 0u64, None);
    for block in Blocks::new(blocks, bytes(blocks)?, header.sequence) {
        let block = block?;
        if ended.next() != Some((block.chunk(), block.cells() as u32)) {
            return Err(wrong("a block has other cells than elements end in its chunk"));
        }
        check_block(&block, &outline)?;
        if told.as_ref().is_some_and(|told| !told.is_true_of(at, &block)) {
            return Err(wrong("what is told of a block is not so"));
        }
        at += block.bytes();
        cells += block.cells() as u64;
        nulls += block.nulls() as u64;
        bounds = wider(bounds, block.bounds());
    }
    if ended.next().is_some() {
        return Err(wrong("a chunk in which elements end has no block"));
    }
    let told = (u64::from(outline.cells), u64::from(outline.nulls), outline.bounds());
    if told == (cells, nulls, bounds) {
        Ok(())
    } else {
        Err(wrong("its filter tells of other cells than it has"))
    }
}

fn check_block(block: &Block<'_>, outline: &Outline<'_>) -> Result<(), FormatError> {
    if block.class() != outline.class {
        return Err(wrong("a block is of another class than its filter tells of"));
    }
    let column = block.decode()?;
    let mut bounds = None;
    for cell in column.iter().flatten() {
        bounds = wider(bounds, Some((cell.rank(), cell.rank())));
        if !outline.may_have(cell) {
            return Err(wrong("its filter denies a cell that is there"));
        }
    }
    if bounds == block.bounds() {
        Ok(())
    } else {
        Err(wrong("the bounds of a block are not those of its cells"))
    }
}

/// The bounds of both together.
fn wider(a: Option<(u128, u128)>, b: Option<(u128, u128)>) -> Option<(u128, u128)> {
    match (a, b) {
        (Some((least, greatest)), Some((low, high))) => Some((least.min(low), greatest.max(high))),
        (known, None) => known,
        (None, new) => new,
    }
}
