//! Evaluation of a scan over one chunk: predicate, residual filter, then the wanted columns and payloads of hits.

use super::column_builder::ColumnBuilder;
use super::scan_spec::ScanSpec;
use super::source::{Chunk, DecodedColumn, ScanCounters, ScanStop};
use crate::columns::{Column, CommonColumn};
use crate::predicate::{ColumnCells, Predicate};
use datafusion::arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use holdfast_attributes::Type;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Payload bytes of a batch, unless a single element has more. Batches that wait for their consumer are not counted as
/// memory of the query.
const BATCH_PAYLOAD: u64 = 4 << 20;

/// Columns of a chunk that are decoded, by place.
pub(crate) type DecodedColumns = HashMap<usize, DecodedColumn>;

/// Consumer of result batches, given the work that was done until then.
pub(super) type BatchSink<'a> = dyn FnMut(RecordBatch, &ScanCounters) -> ControlFlow<()> + 'a;

/// Finds the wanted elements of a chunk, and gives them to `sink` as batches with this schema.
pub(super) fn scan_chunk(
    spec: &ScanSpec,
    schema: &SchemaRef,
    chunk: &mut dyn Chunk,
    sink: &mut BatchSink<'_>,
) -> Result<(), ScanStop> {
    let mut decoded = DecodedColumns::new();
    let mut picked = chunk.complete();
    pick(&spec.predicate, spec, chunk, &mut decoded, &mut picked)?;
    if !picked.contains(&true) {
        return Ok(());
    }
    decode(&spec.projection, spec, chunk, &mut decoded)?;
    pick_by_residual(spec, &decoded, &mut picked)?;
    for part in by_payload(chunk, picked, spec.payload()) {
        give(spec, schema, chunk, &part, &decoded, sink)?;
    }
    Ok(())
}

/// Clears in `picked` the elements that do not fulfil a predicate.
pub(crate) fn pick(
    predicate: &Predicate,
    spec: &ScanSpec,
    chunk: &dyn Chunk,
    decoded: &mut DecodedColumns,
    picked: &mut [bool],
) -> Result<(), ScanStop> {
    let mut places = predicate.columns();
    // A column that is no part of the result need not be decoded.
    let mut narrow = HashMap::new();
    for place in &places {
        if !decoded.contains_key(place)
            && !spec.projection.contains(place)
            && let Some(cells) = chunk.packed(*place)?
        {
            narrow.insert(*place, cells);
        }
    }
    places.retain(|place| !narrow.contains_key(place));
    decode(&places, spec, chunk, decoded)?;
    let cells = |place: usize| {
        if let Some(cells) = narrow.get(&place) {
            return Some(ColumnCells::Packed(cells));
        }
        let (cells, nulls) = decoded.get(&place)?;
        Some(ColumnCells::Cells(cells.lent(), nulls.as_deref()))
    };
    predicate.pick(picked, &cells);
    Ok(())
}

/// Decodes columns, except payloads and those that are decoded already.
fn decode(
    places: &[usize],
    spec: &ScanSpec,
    chunk: &dyn Chunk,
    decoded: &mut DecodedColumns,
) -> Result<(), ScanStop> {
    for place in places {
        let is_payload =
            matches!(spec.columns.at(*place), None | Some((Column::Common(CommonColumn::Payload), _)));
        if !is_payload
            && !decoded.contains_key(place)
            && let Some(column) = chunk.column(*place)?
        {
            decoded.insert(*place, column);
        }
    }
    Ok(())
}

/// Clears in `picked` the elements that the residual filter excludes, whose payloads need not be read then. The engine
/// evaluates the filter again: an element for which it fails here stays.
fn pick_by_residual(spec: &ScanSpec, decoded: &DecodedColumns, picked: &mut [bool]) -> Result<(), ScanStop> {
    let Some(residual) = &spec.residual else { return Ok(()) };
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(residual.columns.len());
    for column in &residual.columns {
        arrays.push(array_of(*column, decoded, picked)?);
    }
    residual.pick(arrays, picked);
    Ok(())
}

/// Gives the picked elements to `sink`.
fn give(
    spec: &ScanSpec,
    schema: &SchemaRef,
    chunk: &mut dyn Chunk,
    picked: &[bool],
    decoded: &DecodedColumns,
    sink: &mut BatchSink<'_>,
) -> Result<(), ScanStop> {
    let hits = picked.iter().filter(|picked| **picked).count();
    if hits == 0 {
        return Ok(());
    }
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(spec.projection.len());
    for place in &spec.projection {
        let Some((column, kind)) = spec.columns.at(*place) else { continue };
        if column == Column::Common(CommonColumn::Payload) {
            let mut payloads = ColumnBuilder::new(kind);
            chunk.payloads(picked, &mut payloads)?;
            arrays.push(payloads.finish());
        } else {
            arrays.push(array_of((*place, kind), decoded, picked)?);
        }
    }
    let options = RecordBatchOptions::new().with_row_count(Some(hits));
    let batch = RecordBatch::try_new_with_options(Arc::clone(schema), arrays, &options)?;
    match sink(batch, &chunk.counters()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(ScanStop::Enough),
    }
}

/// Builds the Arrow column of the picked elements, from a column other than the payload.
fn array_of(
    (place, kind): (usize, Type),
    decoded: &DecodedColumns,
    picked: &[bool],
) -> Result<ArrayRef, ScanStop> {
    let mut array = ColumnBuilder::new(kind);
    match decoded.get(&place) {
        Some((cells, nulls)) => array.extend(cells.lent(), nulls.as_deref(), picked)?,
        None => array.nulls(picked.iter().filter(|picked| **picked).count())?,
    }
    Ok(array.finish())
}

/// Splits the picked elements into parts, none of which has more payload than a batch may have.
fn by_payload(chunk: &dyn Chunk, picked: Vec<bool>, payload: bool) -> Vec<Vec<bool>> {
    if !payload {
        return vec![picked];
    }
    let sizes = chunk.payload_sizes();
    let all: u64 = sizes.iter().zip(&picked).filter(|(_, picked)| **picked).map(|(size, _)| size).sum();
    if all <= BATCH_PAYLOAD {
        return vec![picked];
    }
    let none = vec![false; picked.len()];
    let (mut parts, mut part, mut bytes) = (Vec::new(), none.clone(), 0);
    for (number, size) in sizes.iter().enumerate().filter(|(number, _)| picked[*number]) {
        if bytes > 0 && bytes + size > BATCH_PAYLOAD {
            parts.push(std::mem::replace(&mut part, none.clone()));
            bytes = 0;
        }
        part[number] = true;
        bytes += size;
    }
    parts.push(part);
    parts
}
