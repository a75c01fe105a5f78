//! Index of a stream: one Parquet row an element, with its attributes and the position of its message.

use crate::error::DatasetError;
use crate::manifest::IndexPart;
use crate::mcap_writer::Position;
use crate::storage::FilePart;
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, BinaryBuilder, RecordBatch, StringViewBuilder, TimestampNanosecondArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use datafusion::arrow::datatypes::{
    DataType, Field, Schema as ArrowSchema, SchemaRef, TimestampNanosecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use holdfast_attributes::{Element as Extracted, Extractor, MAX_DATA, Schema};
use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::{CellBuffer, Direction, Flags};
use holdfast_query::stream::ColumnBuilder;
use holdfast_query::{Column, Columns, CommonColumn, arrow_type};
use holdfast_reader::Element;
use parquet::arrow::ArrowWriter;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::sync::Arc;

/// Rows of a row group: the unit that a query reads.
pub(crate) const GROUP_ROWS: usize = 16 << 10;

/// Bytes and rows of a part, about: it is kept in memory until it is written.
const PART_BYTES: usize = 16 << 20;
const PART_ROWS: u64 = 1 << 20;

/// Elements whose attributes are extracted before they become Arrow columns.
const CELLS: usize = 1024;
const CELL_BYTES: usize = 256 << 10;

/// Columns beside those of the stream's table.
const FLAGS: &str = "holdfast_flags";
const TAG: &str = "holdfast_tag";
const META: &str = "holdfast_meta";
pub(crate) const CHUNK: &str = "holdfast_chunk";
pub(crate) const OFFSET: &str = "holdfast_offset";

/// Rows of a group while they are gathered.
#[derive(Default)]
struct Rows {
    ordinals: Vec<u64>,
    times: Vec<i64>,
    events: Vec<Option<i64>>,
    spans: Vec<u64>,
    directions: StringViewBuilder,
    sizes: Vec<u64>,
    originals: Vec<u64>,
    flags: Vec<u8>,
    tags: Vec<u16>,
    metas: BinaryBuilder,
    chunks: Vec<u32>,
    offsets: Vec<u64>,
}

/// Builder of the index of a stream.
pub(crate) struct IndexBuilder {
    stream: String,
    columns: Columns,
    arrow: SchemaRef,
    extractor: Extractor,
    cells: Vec<CellBuffer>,
    /// Arrow columns of the attributes in the table, by their number in the schema.
    attributes: Vec<(usize, ColumnBuilder)>,
    rows: Rows,
    writer: Option<ArrowWriter<Vec<u8>>>,
    part: IndexPart,
}

/// Bytes of a part of an index, and its entry without a place.
pub(crate) type BuiltPart = (Vec<u8>, IndexPart);

impl IndexBuilder {
    /// Begins the index of a stream with these attributes.
    pub(crate) fn new(stream: &str, schema: &Schema) -> Self {
        let columns = Columns::new(schema);
        let kept = columns.arrow().fields().iter().enumerate();
        let kept = kept.filter(|(place, _)| is_stored(&columns, *place)).map(|(_, field)| (**field).clone());
        let own = [
            (FLAGS, DataType::UInt8),
            (TAG, DataType::UInt16),
            (META, DataType::Binary),
            (CHUNK, DataType::UInt32),
            (OFFSET, DataType::UInt64),
        ];
        let own = own.into_iter().map(|(name, kind)| Field::new(name, kind, false));
        let arrow = Arc::new(ArrowSchema::new(kept.chain(own).collect::<Vec<_>>()));
        let cells = schema.classes().iter().map(|class| CellBuffer::new(class, CELLS, CELL_BYTES)).collect();
        let extractor = Extractor::new(schema);
        let mut builder = Self {
            stream: stream.to_owned(),
            columns,
            arrow,
            extractor,
            cells,
            attributes: Vec::new(),
            rows: Rows::default(),
            writer: None,
            part: IndexPart::default(),
        };
        builder.attributes = builder.column_builders();
        builder
    }

    fn column_builders(&self) -> Vec<(usize, ColumnBuilder)> {
        let places = 0..self.columns.arrow().fields().len();
        let attributes = places.filter_map(|place| match self.columns.at(place)? {
            (Column::Attribute(number), kind) => Some((number, ColumnBuilder::new(kind))),
            (Column::Common(_), _) => None,
        });
        attributes.collect()
    }

    /// Adds an element; a part where one is full.
    pub(crate) fn push(
        &mut self,
        element: &Element<'_>,
        at: Position,
        link_type: Option<u16>,
    ) -> Result<Option<BuiltPart>, DatasetError> {
        let size = element.data.len() as u64;
        let original_size = size + u64::from(element.extra);
        // An element that was recorded before the stream had an attribute for it may have one all the same.
        let mut event = element.event;
        if !self.cells.is_empty() {
            if !self.cells.iter().all(CellBuffer::has_room) {
                self.drain_cells()?;
            }
            let header = element.flags.has(Flags::HEADER).then_some(element.meta);
            let data = &element.data[..element.data.len().min(MAX_DATA)];
            let extracted = Extracted { data, size, original_size, link_type, header };
            event = event.or(self.extractor.extract(&extracted, &mut self.cells).event_time);
        }
        let rows = &mut self.rows;
        rows.ordinals.push(element.ordinal.0);
        rows.times.push(element.arrival.0);
        rows.events.push(event.map(|event| event.0));
        rows.spans.push(element.arrival.0.abs_diff(element.first.0));
        rows.directions.append_option(match element.flags.direction() {
            Direction::Unknown => None,
            Direction::In => Some("in"),
            Direction::Out => Some("out"),
        });
        rows.sizes.push(size);
        rows.originals.push(original_size);
        rows.flags.push(element.flags.0);
        rows.tags.push(element.tag);
        rows.metas.append_value(element.meta);
        rows.chunks.push(at.chunk);
        rows.offsets.push(at.offset);
        let (ordinal, time) = (element.ordinal.0, element.arrival.0);
        let part = &mut self.part;
        if part.rows == 0 {
            part.ordinals = (ordinal, ordinal);
            part.arrivals_ns = (time, time);
        }
        part.ordinals = (part.ordinals.0.min(ordinal), part.ordinals.1.max(ordinal));
        part.arrivals_ns = (part.arrivals_ns.0.min(time), part.arrivals_ns.1.max(time));
        part.rows += 1;
        if self.rows.ordinals.len() < GROUP_ROWS {
            return Ok(None);
        }
        self.end_group()?;
        let bytes = self.writer.as_ref().map_or(0, ArrowWriter::bytes_written);
        if bytes > PART_BYTES || self.part.rows >= PART_ROWS { self.finish() } else { Ok(None) }
    }

    fn wrong(&self, cause: &impl ToString) -> DatasetError {
        DatasetError::Index { stream: self.stream.clone(), cause: cause.to_string() }
    }

    fn drain_cells(&mut self) -> Result<(), DatasetError> {
        for (number, builder) in &mut self.attributes {
            let Some(cells) = self.cells.get(*number) else { continue };
            let nulls: Vec<bool> = cells.valid().iter().map(|valid| !valid).collect();
            builder.extend(cells.cells(), Some(&nulls), &vec![true; nulls.len()]).map_err(|error| {
                DatasetError::Index { stream: self.stream.clone(), cause: error.to_string() }
            })?;
        }
        self.cells.iter_mut().for_each(CellBuffer::clear);
        Ok(())
    }

    /// Ends the rows that were gathered as a row group.
    fn end_group(&mut self) -> Result<(), DatasetError> {
        if self.rows.ordinals.is_empty() {
            return Ok(());
        }
        self.drain_cells()?;
        let fresh = self.column_builders();
        let mut attributes = std::mem::replace(&mut self.attributes, fresh).into_iter();
        let mut rows = std::mem::take(&mut self.rows);
        let times = |values: Vec<Option<i64>>| -> ArrayRef {
            let kind = arrow_type(holdfast_attributes::Type::Time);
            Arc::new(TimestampNanosecondArray::from(values).with_data_type(kind))
        };
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for place in 0..self.columns.arrow().fields().len() {
            let Some((column, _)) = self.columns.at(place) else { continue };
            arrays.push(match column {
                Column::Attribute(_) => match attributes.next() {
                    Some((_, builder)) => builder.finish(),
                    None => continue,
                },
                Column::Common(CommonColumn::Payload | CommonColumn::Slot) => continue,
                Column::Common(CommonColumn::Ordinal) => words(&mut rows.ordinals),
                Column::Common(CommonColumn::Time) => {
                    times(std::mem::take(&mut rows.times).into_iter().map(Some).collect())
                }
                Column::Common(CommonColumn::EventTime) => times(std::mem::take(&mut rows.events)),
                Column::Common(CommonColumn::Span) => words(&mut rows.spans),
                Column::Common(CommonColumn::Direction) => Arc::new(rows.directions.finish()),
                Column::Common(CommonColumn::Size) => words(&mut rows.sizes),
                Column::Common(CommonColumn::OriginalSize) => words(&mut rows.originals),
            });
        }
        arrays.push(Arc::new(UInt8Array::from(rows.flags)));
        arrays.push(Arc::new(UInt16Array::from(rows.tags)));
        arrays.push(Arc::new(rows.metas.finish()));
        arrays.push(Arc::new(UInt32Array::from(rows.chunks)));
        arrays.push(words(&mut rows.offsets));
        let batch =
            RecordBatch::try_new(Arc::clone(&self.arrow), arrays).map_err(|error| self.wrong(&error))?;
        let mut writer = if let Some(writer) = self.writer.take() {
            writer
        } else {
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(Some(GROUP_ROWS))
                .build();
            ArrowWriter::try_new(Vec::new(), Arc::clone(&self.arrow), Some(properties))
                .map_err(|error| self.wrong(&error))?
        };
        writer.write(&batch).and_then(|()| writer.flush()).map_err(|error| self.wrong(&error))?;
        self.writer = Some(writer);
        Ok(())
    }

    /// Ends the part; `None` where nothing was added to it.
    pub(crate) fn finish(&mut self) -> Result<Option<BuiltPart>, DatasetError> {
        self.end_group()?;
        let Some(writer) = self.writer.take() else { return Ok(None) };
        let bytes = writer.into_inner().map_err(|error| self.wrong(&error))?;
        let part = std::mem::take(&mut self.part);
        let entry = IndexPart {
            length: bytes.len() as u64,
            blake3: blake3::hash(&bytes).to_hex().to_string(),
            ..part
        };
        Ok(Some((bytes, entry)))
    }
}

/// Returns true if a column of the table is stored in the index.
fn is_stored(columns: &Columns, place: usize) -> bool {
    !matches!(columns.at(place), None | Some((Column::Common(CommonColumn::Payload | CommonColumn::Slot), _)))
}

fn words(values: &mut Vec<u64>) -> ArrayRef {
    Arc::new(UInt64Array::from(std::mem::take(values)))
}

/// Row of an index: an element without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) at: Position,
    pub(crate) ordinal: Ordinal,
    pub(crate) first: Timestamp,
    pub(crate) arrival: Timestamp,
    pub(crate) event: Option<Timestamp>,
    pub(crate) flags: Flags,
    pub(crate) tag: u16,
    pub(crate) size: u64,
    pub(crate) extra: u32,
    pub(crate) meta: Vec<u8>,
}

/// Rows of a part, in the order of their messages.
pub(crate) struct RowReader {
    stream: String,
    batches: ParquetRecordBatchReader,
    batch: Option<(RecordBatch, usize)>,
}

impl RowReader {
    /// Opens a part of an index.
    pub(crate) fn open(stream: &str, part: FilePart) -> Result<Self, DatasetError> {
        let wrong = |cause: &dyn ToString| DatasetError::Index {
            stream: stream.to_owned(),
            cause: cause.to_string(),
        };
        let builder = ParquetRecordBatchReaderBuilder::try_new(part).map_err(|error| wrong(&error))?;
        let names = [
            "ordinal",
            "time",
            "event_time",
            "span",
            "size",
            "original_size",
            FLAGS,
            TAG,
            META,
            CHUNK,
            OFFSET,
        ];
        let mask = ProjectionMask::columns(builder.parquet_schema(), names);
        let batches = builder.with_projection(mask).build().map_err(|error| wrong(&error))?;
        Ok(Self { stream: stream.to_owned(), batches, batch: None })
    }

    /// Reads the next row.
    pub(crate) fn next(&mut self) -> Result<Option<Row>, DatasetError> {
        loop {
            if let Some((batch, at)) = &mut self.batch
                && *at < batch.num_rows()
            {
                let row = row(batch, *at);
                *at += 1;
                let cause = "a column is missing or has another type";
                return row.map(Some).ok_or_else(|| DatasetError::Index {
                    stream: self.stream.clone(),
                    cause: cause.to_owned(),
                });
            }
            match self.batches.next() {
                None => return Ok(None),
                Some(batch) => {
                    let batch = batch.map_err(|error| DatasetError::Index {
                        stream: self.stream.clone(),
                        cause: error.to_string(),
                    })?;
                    self.batch = Some((batch, 0));
                }
            }
        }
    }
}

fn row(batch: &RecordBatch, at: usize) -> Option<Row> {
    let word = |name: &str| Some(batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>()?.value(at));
    let time = |name: &str| {
        let column = batch.column_by_name(name)?.as_primitive_opt::<TimestampNanosecondType>()?;
        Some(column.is_valid(at).then(|| Timestamp(column.value(at))))
    };
    let arrival = time("time")??;
    let span = i64::try_from(word("span")?).ok()?;
    let size = word("size")?;
    let flags = Flags(batch.column_by_name(FLAGS)?.as_primitive_opt::<UInt8Type>()?.value(at));
    Some(Row {
        at: Position {
            chunk: batch.column_by_name(CHUNK)?.as_primitive_opt::<UInt32Type>()?.value(at),
            offset: word(OFFSET)?,
        },
        ordinal: Ordinal(word("ordinal")?),
        first: Timestamp(arrival.0.saturating_sub(span)),
        arrival,
        event: time("event_time")?.filter(|_| flags.has(Flags::EVENT)),
        flags,
        tag: batch.column_by_name(TAG)?.as_primitive_opt::<UInt16Type>()?.value(at),
        size,
        extra: u32::try_from(word("original_size")?.checked_sub(size)?).ok()?,
        meta: batch.column_by_name(META)?.as_binary_opt::<i32>()?.value(at).to_vec(),
    })
}
