//! Payload access of a slot scan: payloads of hits, and attributes extracted from payloads where a slot has
//! no columns.

use super::attribute_reads::{AttributeExtractor, extracted_event};
use super::rows::{ElementRow, alike, size, with_events};
use super::slot_state::SlotScan;
use crate::stream::{ColumnBuilder, DecodedColumns, ScanStop};
use holdfast_attributes::{Element, Extractor, MAX_DATA};
use holdfast_format::{CellBuffer, Cells, Flags, Kind, OwnCells, Row};
use holdfast_reader as reader;

impl SlotScan<'_, '_> {
    /// Extracts the attributes that the scan needs from payloads.
    pub(super) fn extract(
        &mut self,
        rows: &[ElementRow],
        attributes: &mut AttributeExtractor,
        extracted: &mut DecodedColumns,
    ) -> Result<(), ScanStop> {
        let AttributeExtractor { extractor, classes, numbers } = attributes;
        let texts = rows.len() * holdfast_format::MAX_TEXT;
        let mut cells: Vec<CellBuffer> =
            classes.iter().map(|class| CellBuffer::new(class, rows.len(), texts)).collect();
        if let (Some(fixed), Some((size, elements))) = (extractor.fixed(), alike(rows)) {
            let mut data = Vec::with_capacity(elements.len());
            self.counters.bytes += elements.len() as u64;
            self.view.payload(elements.start, elements.end, &mut data)?;
            fixed.extract_many(&data, size, &mut cells);
        } else {
            self.extract_each(rows, extractor, &mut cells)?;
        }
        let places = self.spec.places();
        let event = extracted_event(self.spec, &places, self.recorded.attributes);
        for (place, number) in self.spec.attributes(&places).into_iter().chain(event) {
            let at = numbers.iter().position(|extracted| *extracted == number);
            if let Some(buffer) = at.and_then(|at| cells.get(at)) {
                let own = match buffer.cells() {
                    Cells::Words(cells) => OwnCells::Words(cells.to_vec()),
                    Cells::Wide(cells) => OwnCells::Wide(cells.to_vec()),
                    Cells::Bytes(ends, bytes) => OwnCells::Bytes(ends.to_vec(), bytes.to_vec()),
                };
                let nulls = (buffer.nulls() > 0).then(|| buffer.valid().iter().map(|valid| !valid).collect());
                let column = (own, nulls);
                let is_event = event.is_some_and(|(event, _)| event == place);
                extracted.insert(place, if is_event { with_events(column, rows) } else { column });
            }
        }
        Ok(())
    }

    /// Extracts the attributes of one element after the other.
    fn extract_each(
        &mut self,
        rows: &[ElementRow],
        extractor: &mut Extractor,
        cells: &mut [CellBuffer],
    ) -> Result<(), ScanStop> {
        let (mut header, mut data) = (Vec::new(), Vec::new());
        for (row, at) in rows {
            header.clear();
            data.clear();
            self.beginning(row, *at, &mut header, &mut data)?;
            let header = row.flags.has(Flags::HEADER).then_some(&header[..]);
            let size = size(row);
            let links = self.link_types.get(&self.recorded.preamble);
            let link_type = links.and_then(|links| links.get(usize::from(row.tag))).copied();
            let original_size = size + u64::from(row.extra);
            let element = Element { data: &data, size, original_size, link_type, header };
            extractor.extract(&element, cells);
        }
        Ok(())
    }

    /// Reads the beginning of an element, of which attributes are extracted, and its header, if it has one.
    fn beginning(
        &mut self,
        row: &Row,
        at: u32,
        header: &mut Vec<u8>,
        data: &mut Vec<u8>,
    ) -> Result<(), ScanStop> {
        if row.kind == Kind::Element {
            let (at, start) = (at as usize, at as usize + usize::from(row.meta));
            if row.flags.has(Flags::HEADER) {
                self.counters.bytes += u64::from(row.meta);
                self.view.payload(at, start, header)?;
            }
            let len = (row.len as usize).min(MAX_DATA);
            self.counters.bytes += len as u64;
            self.view.payload(start, start + len, data)?;
            return Ok(());
        }
        self.whole(row, &mut |element| {
            header.extend_from_slice(element.meta);
            data.extend_from_slice(&element.data[..element.data.len().min(MAX_DATA)]);
        })?;
        Ok(())
    }

    /// Reads a fragmented element; false if a fragment has expired.
    fn whole(&mut self, row: &Row, take: &mut dyn FnMut(&reader::Element<'_>)) -> Result<bool, ScanStop> {
        self.counters.bytes += size(row);
        let whole =
            !self.torn.contains(&row.ordinal) && self.view.element(self.spec.stream, row.ordinal, take)?;
        if !whole && !self.torn.contains(&row.ordinal) {
            self.diagnostics.partial(1);
            // Its beginning was there when the scan of this slot began, and has expired since, or it is damaged.
            self.diagnostics.expired(self.view.gone(self.recorded.back, self.planned)?);
        }
        Ok(whole)
    }

    /// Appends the payloads of the picked elements to `array`.
    pub(super) fn payloads(
        &mut self,
        rows: &[ElementRow],
        picked: &[bool],
        array: &mut ColumnBuilder,
    ) -> Result<(), ScanStop> {
        let mut data = Vec::new();
        for ((row, at), _) in rows.iter().zip(picked).filter(|(_, picked)| **picked) {
            data.clear();
            if row.kind == Kind::Element {
                let start = *at as usize + usize::from(row.meta);
                self.counters.bytes += u64::from(row.len);
                self.view.payload(start, start + row.len as usize, &mut data)?;
            } else if !self.whole(row, &mut |element| data.extend_from_slice(element.data))? {
                array.push(None)?;
                continue;
            }
            array.push(Some(holdfast_attributes::Cell::Bytes(&data)))?;
        }
        Ok(())
    }
}
