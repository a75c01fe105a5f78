//! Chunk of a slot as the scan sees it: columns from blocks, rows or extraction, payloads from the slot.

use super::rows::{ElementRow, of_rows, size};
use super::slot_state::SlotScan;
use crate::columns::Column;
use crate::stream::{Chunk, ColumnBuilder, DecodedColumn, DecodedColumns, ScanCounters, ScanStop};
use holdfast_format::{Block, Kind, Packed};
use std::cell::RefCell;
use std::collections::HashMap;

/// Elements that end in one chunk of a slot.
pub(super) struct SlotChunk<'s, 'a, 'r> {
    scan: &'s mut SlotScan<'a, 'r>,
    /// Column blocks by attribute.
    blocks: &'s HashMap<usize, Block<'s>>,
    /// Rows of the elements, if they are needed.
    rows: &'s [ElementRow],
    /// Number of elements.
    count: usize,
    /// Columns that were extracted from payloads, by place.
    extracted: RefCell<DecodedColumns>,
}

impl<'s, 'a, 'r> SlotChunk<'s, 'a, 'r> {
    pub(super) fn new(
        scan: &'s mut SlotScan<'a, 'r>,
        blocks: &'s HashMap<usize, Block<'s>>,
        rows: &'s [ElementRow],
        count: usize,
        extracted: DecodedColumns,
    ) -> Self {
        Self { scan, blocks, rows, count, extracted: RefCell::new(extracted) }
    }

    fn column_of(&self, place: usize) -> Option<Column> {
        self.scan.spec.columns.at(place).map(|(column, _)| column)
    }
}

impl Chunk for SlotChunk<'_, '_, '_> {
    fn complete(&self) -> Vec<bool> {
        let mut complete = vec![true; self.count];
        if !self.scan.torn.is_empty() {
            for (complete, (row, _)) in complete.iter_mut().zip(self.rows) {
                *complete = row.kind != Kind::Fragment || !self.scan.torn.contains(&row.ordinal);
            }
        }
        complete
    }

    fn packed(&self, place: usize) -> Result<Option<Packed<'_>>, ScanStop> {
        match self.column_of(place) {
            Some(Column::Attribute(number)) if !self.extracted.borrow().contains_key(&place) => {
                Ok(self.blocks.get(&number).map(Block::packed).transpose()?.flatten())
            }
            _ => Ok(None),
        }
    }

    fn column(&self, place: usize) -> Result<Option<DecodedColumn>, ScanStop> {
        if let Some(extracted) = self.extracted.borrow_mut().remove(&place) {
            return Ok(Some(extracted));
        }
        Ok(match self.column_of(place) {
            Some(Column::Attribute(number)) => {
                let column = self.blocks.get(&number).map(Block::decode).transpose()?;
                column.map(|column| (column.cells, column.nulls))
            }
            Some(Column::Common(common)) => {
                Some(of_rows(common, self.rows, self.scan.view.header().sequence.0))
            }
            None => None,
        })
    }

    fn payload_sizes(&self) -> Vec<u64> {
        self.rows.iter().map(|(row, _)| size(row)).collect()
    }

    fn payloads(&mut self, picked: &[bool], payloads: &mut ColumnBuilder) -> Result<(), ScanStop> {
        self.scan.payloads(self.rows, picked, payloads)
    }

    fn counters(&self) -> ScanCounters {
        let ScanCounters { bytes, copied, .. } = *self.scan.counters;
        ScanCounters {
            bytes: self.scan.unread_bytes.unwrap_or(bytes),
            copied: copied + self.scan.view.copied(),
            ..*self.scan.counters
        }
    }
}
