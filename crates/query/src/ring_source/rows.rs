//! Common columns of the elements that end in a chunk, taken from its rows.

use super::pruning_stats::time;
use crate::columns::CommonColumn;
use crate::stream::DecodedColumn;
use holdfast_attributes::MAX_DATA;
use holdfast_format::{Direction, Flags, Kind, OwnCells, Row};
use std::ops::Range;

/// Element that ends in a chunk: its last row, and the place of that in the payload.
pub(super) type ElementRow = (Row, u32);

/// Returns the payload bytes of the element that ends in a row.
pub(super) fn size(row: &Row) -> u64 {
    row.offset + u64::from(row.len)
}

/// Returns the size and the payload range of elements, if all have one size and lie one behind the other.
pub(super) fn alike(rows: &[ElementRow]) -> Option<(usize, Range<usize>)> {
    let (first, start) = rows.first()?;
    let (size, start) = (first.len as usize, *start as usize);
    let follows = |(number, (row, at)): (usize, &ElementRow)| {
        row.kind == Kind::Element
            && row.meta == 0
            && row.len == first.len
            && *at as usize == start + number * size
    };
    let all = (1..=MAX_DATA).contains(&size) && rows.iter().enumerate().all(follows);
    all.then(|| (size, start..start + rows.len() * size))
}

/// Replaces extracted event times by those of the rows that have one.
pub(super) fn with_events(made: DecodedColumn, rows: &[ElementRow]) -> DecodedColumn {
    let (OwnCells::Words(mut words), nulls) = made else { return made };
    let mut nulls = nulls.unwrap_or_else(|| vec![false; rows.len()]);
    for ((word, null), (row, _)) in words.iter_mut().zip(&mut nulls).zip(rows) {
        if row.flags.has(Flags::EVENT) {
            (*word, *null) = (time(row.event), false);
        }
    }
    (OwnCells::Words(words), Some(nulls))
}

/// Returns a common column as the rows have it.
pub(super) fn of_rows(fixed: CommonColumn, rows: &[ElementRow], sequence: u64) -> DecodedColumn {
    let words = |of: &dyn Fn(&Row) -> u64| OwnCells::Words(rows.iter().map(|(row, _)| of(row)).collect());
    match fixed {
        CommonColumn::Ordinal => (words(&|row| row.ordinal.0), None),
        CommonColumn::Time => (words(&|row| time(row.arrival)), None),
        CommonColumn::EventTime => {
            let nulls: Vec<bool> = rows.iter().map(|(row, _)| !row.flags.has(Flags::EVENT)).collect();
            (words(&|row| time(row.event)), Some(nulls))
        }
        CommonColumn::Span => (words(&|row| row.span), None),
        CommonColumn::Size => (words(&size), None),
        CommonColumn::OriginalSize => (words(&|row| size(row) + u64::from(row.extra)), None),
        CommonColumn::Slot => (words(&|_| sequence), None),
        CommonColumn::Direction => {
            let word = |row: &Row| match row.flags.direction() {
                Direction::Unknown => "",
                Direction::In => "in",
                Direction::Out => "out",
            };
            let (mut ends, mut bytes) = (Vec::with_capacity(rows.len()), Vec::new());
            for (row, _) in rows {
                bytes.extend_from_slice(word(row).as_bytes());
                ends.push(bytes.len() as u32);
            }
            let nulls = rows.iter().map(|(row, _)| word(row).is_empty()).collect();
            (OwnCells::Bytes(ends, bytes), Some(nulls))
        }
        CommonColumn::Payload => (OwnCells::Bytes(vec![0; rows.len()], Vec::new()), None),
    }
}
