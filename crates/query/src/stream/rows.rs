//! Common columns of the elements that end in a chunk, taken from its rows.

use super::pruning_stats::time;
use crate::columns::CommonColumn;
use holdfast_attributes::MAX_DATA;
use holdfast_format::{Direction, Flags, Kind, OwnCells, Row};
use std::ops::Range;

/// The cells of one column of a chunk, and which are null.
pub(super) type LoadedColumn = (OwnCells, Option<Vec<bool>>);

/// An element of the stream that ends in a chunk: its last row, where that is in the payload.
pub(super) type ElementRow = (Row, u32);

/// Elements of one size that lie one behind the other: the size, and where they are.
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

/// Payload of a batch, but for a single element that has more: what waits of it for others is no part of what a question may have in
/// memory.
const LARGE: u64 = 4 << 20;

/// What was picked, in parts of which each has no more payload than is read at once.
pub(super) fn by_size(rows: &[ElementRow], picked: Vec<bool>, payload: bool) -> Vec<Vec<bool>> {
    let size = |row: &Row| row.offset + u64::from(row.len);
    let all = rows.iter().zip(&picked).filter(|(_, picked)| **picked);
    if !payload || all.map(|((row, _), _)| size(row)).sum::<u64>() <= LARGE {
        return vec![picked];
    }
    let none = vec![false; picked.len()];
    let (mut parts, mut part, mut bytes) = (Vec::new(), none.clone(), 0);
    for (number, (row, _)) in rows.iter().enumerate().filter(|(number, _)| picked[*number]) {
        if bytes > 0 && bytes + size(row) > LARGE {
            parts.push(std::mem::replace(&mut part, none.clone()));
            bytes = 0;
        }
        part[number] = true;
        bytes += size(row);
    }
    parts.push(part);
    parts
}

/// Event times that were made of payloads, where the rows have none.
pub(super) fn with_events(made: LoadedColumn, rows: &[ElementRow]) -> LoadedColumn {
    let (OwnCells::Words(mut words), nulls) = made else { return made };
    let mut nulls = nulls.unwrap_or_else(|| vec![false; rows.len()]);
    for ((word, null), (row, _)) in words.iter_mut().zip(&mut nulls).zip(rows) {
        if row.flags.has(Flags::EVENT) {
            (*word, *null) = (time(row.event), false);
        }
    }
    (OwnCells::Words(words), Some(nulls))
}

/// What rows tell of a column.
pub(super) fn of_rows(fixed: CommonColumn, rows: &[ElementRow], sequence: u64) -> LoadedColumn {
    let words = |of: &dyn Fn(&Row) -> u64| OwnCells::Words(rows.iter().map(|(row, _)| of(row)).collect());
    let size = |row: &Row| row.offset + u64::from(row.len);
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
