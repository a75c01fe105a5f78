//! Dataset as a source of streams for queries: its segments are row groups of the index, pruned by their statistics;
//! payloads are decompressed of hits alone.

use crate::error::DatasetError;
use crate::index::{CHUNK, GROUP_ROWS, OFFSET};
use crate::manifest::{IndexPart, StreamEntry};
use crate::mcap_writer::Position;
use crate::reader::{Dataset, data_of};
use crate::storage::FilePart;
use datafusion::arrow::array::{Array, ArrayRef, AsArray as _, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Float64Type, Int64Type, TimestampNanosecondType, UInt32Type, UInt64Type,
};
use datafusion::error::{DataFusionError, Result};
use holdfast_attributes::{Cell, Schema, Type, Value};
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_format::{OwnCells, Packed};
use holdfast_query::predicate::{ColumnStatistics, PruningStatistics, SearchedValues};
use holdfast_query::stream::{
    Chunk, ChunkSink, ColumnBuilder, DecodedColumn, OrdinalRuns, PruningReport, ScanCounters, ScanPlan,
    ScanRequest, ScanSpec, ScanStop, SegmentReader, SegmentScan, StreamSource, StreamSurvey,
};
use holdfast_query::{Column, CommonColumn, SourceStream};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use parquet::file::metadata::RowGroupMetaData;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Streams of a dataset as tables, or parts of tables.
pub fn streams(dataset: &Arc<Dataset>) -> std::result::Result<Vec<SourceStream>, DatasetError> {
    let source: Arc<dyn StreamSource> = Arc::new(DatasetSource(Arc::clone(dataset)));
    let stream = |entry: &StreamEntry| {
        let schema = Schema::parse(&entry.schema)
            .map_err(|error| DatasetError::Schema { stream: entry.name.clone(), cause: error.to_string() })?;
        Ok(SourceStream {
            name: entry.name.clone(),
            id: StreamId(entry.id),
            schema,
            source: Arc::clone(&source),
            ring: dataset.manifest().provenance.ring.clone(),
            ordinals: Some(dataset.ordinals(entry)?),
        })
    };
    dataset.manifest().streams.iter().map(stream).collect()
}

impl Dataset {
    /// Ordinals of a stream's elements.
    fn ordinals(&self, entry: &StreamEntry) -> std::result::Result<OrdinalRuns, DatasetError> {
        if entry.exact_ordinals {
            return Ok(OrdinalRuns::new(entry.ordinals.clone()));
        }
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for part in &entry.index {
            let wrong = |cause: &dyn ToString| DatasetError::Index {
                stream: entry.name.clone(),
                cause: cause.to_string(),
            };
            let file = self.index_part(&entry.name, part)?;
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(&error))?;
            let mask = ProjectionMask::columns(builder.parquet_schema(), [CommonColumn::Ordinal.name()]);
            for batch in builder.with_projection(mask).build().map_err(|error| wrong(&error))? {
                let batch = batch.map_err(|error| wrong(&error))?;
                let column =
                    batch.columns().first().and_then(|column| column.as_primitive_opt::<UInt64Type>());
                for ordinal in column.ok_or_else(|| wrong(&"it has no ordinals"))?.values() {
                    match runs.last_mut() {
                        Some((_, last)) if last.checked_add(1) == Some(*ordinal) => *last = *ordinal,
                        _ => runs.push((*ordinal, *ordinal)),
                    }
                }
            }
        }
        Ok(OrdinalRuns::new(runs))
    }
}

/// Dataset as a source of streams.
struct DatasetSource(Arc<Dataset>);

fn external(error: DatasetError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Damage ends a part of the scan; all else ends the query.
fn stop(error: DatasetError) -> ScanStop {
    ScanStop::Failed(external(error))
}

impl StreamSource for DatasetSource {
    fn plan(&self, request: ScanRequest) -> Result<ScanPlan> {
        let spec = request.spec;
        let streams = &self.0.manifest().streams;
        let Some(entry) = streams.iter().position(|entry| StreamId(entry.id) == spec.stream) else {
            return Err(DataFusionError::Internal("a scan is of a stream that the dataset lacks".to_owned()));
        };
        let stream = &streams[entry];
        let all = stream.index.len();
        let parts: Vec<usize> = (0..all)
            .filter(|part| spec.predicate.may_hold(&PartBounds { spec: &spec, part: &stream.index[*part] }))
            .collect();
        let report = PruningReport { all, by_time: all - parts.len(), by_view: None };
        let payload = if spec.payload() { stream.bytes / stream.elements.max(1) } else { 0 };
        let threads = parts.len();
        let dataset = Arc::clone(&self.0);
        let scan = DatasetScan { dataset, entry, spec, parts: Arc::new(parts), next: AtomicUsize::new(0) };
        Ok(ScanPlan { scan: Box::new(scan), report, threads, payload })
    }

    fn survey(&self, stream: StreamId, from: Ordinal) -> Result<StreamSurvey> {
        let parts = |entry: &StreamEntry| {
            let all = entry.index.len();
            (entry.index.iter().filter(|part| part.ordinals.1 >= from.0).count(), all)
        };
        let entry = self.0.manifest().streams.iter().find(|entry| StreamId(entry.id) == stream);
        let (segments, all) = entry.map_or((0, 0), parts);
        Ok(StreamSurvey { segments, all, ends: None })
    }

    fn next_ordinals(&self) -> Result<Option<HashMap<StreamId, Ordinal>>> {
        Ok(None)
    }
}

/// Bounds of a part of an index, of which nothing is read yet.
struct PartBounds<'p> {
    spec: &'p ScanSpec,
    part: &'p IndexPart,
}

impl PruningStatistics for PartBounds<'_> {
    fn statistics(&self, place: usize) -> Option<ColumnStatistics> {
        let word = |value: u64| u128::from(value);
        let time = |value: i64| match Value::Time(Timestamp(value)).cell() {
            Cell::Word(word) => u128::from(word),
            Cell::Wide(_) | Cell::Bytes(_) => 0,
        };
        let part = self.part;
        let bounds = match self.spec.columns.at(place)?.0 {
            Column::Common(CommonColumn::Ordinal) => (word(part.ordinals.0), word(part.ordinals.1)),
            Column::Common(CommonColumn::Time) => (time(part.arrivals_ns.0), time(part.arrivals_ns.1)),
            Column::Common(CommonColumn::Slot) => (0, 0),
            _ => return None,
        };
        Some(ColumnStatistics { bounds: Some(bounds), nulls: Some(0), cells: part.rows })
    }

    fn may_have(&self, _place: usize, _values: &SearchedValues<'_>) -> bool {
        true
    }
}

/// Scan of some parts of a stream's index.
struct DatasetScan {
    dataset: Arc<Dataset>,
    /// Place of the stream in the manifest.
    entry: usize,
    spec: ScanSpec,
    parts: Arc<Vec<usize>>,
    next: AtomicUsize,
}

impl SegmentScan for DatasetScan {
    fn reader(&self, _threads: usize) -> Result<Box<dyn SegmentReader + '_>> {
        Ok(Box::new(DatasetReader { scan: self, counters: ScanCounters::default() }))
    }

    fn again(&self) -> Box<dyn SegmentScan> {
        Box::new(Self {
            dataset: Arc::clone(&self.dataset),
            entry: self.entry,
            spec: self.spec.clone(),
            parts: Arc::clone(&self.parts),
            next: AtomicUsize::new(0),
        })
    }
}

/// Reader of parts in one thread of a scan.
struct DatasetReader<'s> {
    scan: &'s DatasetScan,
    counters: ScanCounters,
}

impl SegmentReader for DatasetReader<'_> {
    fn next(&mut self, sink: &mut ChunkSink<'_>) -> Result<bool> {
        let DatasetScan { dataset, entry, spec, parts, next } = self.scan;
        let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) else { return Ok(false) };
        let stream = &dataset.manifest().streams[*entry];
        let part = &stream.index[*part];
        let file = dataset.index_part(&stream.name, part).map_err(external)?;
        self.counters.searched += 1;
        self.counters.bytes += part.length;
        let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::default())
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        for group in 0..metadata.metadata().num_row_groups() {
            let statistics = metadata.metadata().row_group(group);
            if !spec.predicate.may_hold(&GroupBounds { spec, group: statistics }) {
                continue;
            }
            let rows = usize::try_from(statistics.num_rows()).unwrap_or(usize::MAX);
            if rows > GROUP_ROWS {
                let cause = format!("a row group states {rows} rows, and {GROUP_ROWS} at most are read");
                return Err(external(DatasetError::Index { stream: stream.name.clone(), cause }));
            }
            let mut chunk = GroupChunk {
                dataset,
                stream,
                spec,
                file: &file,
                metadata: &metadata,
                group,
                rows,
                counters: &mut self.counters,
            };
            match sink(spec, &mut chunk) {
                Ok(()) => {}
                Err(ScanStop::Enough) => return Ok(false),
                Err(ScanStop::Failed(error)) => return Err(error),
                Err(ScanStop::Expired | ScanStop::Damaged(_)) => {
                    return Err(DataFusionError::Internal("a dataset cannot expire".to_owned()));
                }
            }
        }
        Ok(true)
    }

    fn counters(&self) -> ScanCounters {
        self.counters
    }
}

/// Name of a column in the index; `None` where the index lacks it.
fn index_name(spec: &ScanSpec, place: usize) -> Option<&str> {
    match spec.columns.at(place)?.0 {
        Column::Common(CommonColumn::Payload | CommonColumn::Slot) => None,
        _ => Some(spec.columns.arrow().fields().get(place)?.name()),
    }
}

/// Statistics of a row group.
struct GroupBounds<'g> {
    spec: &'g ScanSpec,
    group: &'g RowGroupMetaData,
}

impl PruningStatistics for GroupBounds<'_> {
    fn statistics(&self, place: usize) -> Option<ColumnStatistics> {
        let name = index_name(self.spec, place)?;
        let (_, kind) = self.spec.columns.at(place)?;
        let cells = self.group.num_rows() as u64;
        let Some(column) = self.group.columns().iter().find(|column| column.column_path().string() == name)
        else {
            // An attribute that the stream did not have yet.
            return Some(ColumnStatistics { bounds: None, nulls: Some(cells), cells });
        };
        let statistics = column.statistics()?;
        let bounds = statistics.min_bytes_opt().zip(statistics.max_bytes_opt());
        let bounds = bounds.and_then(|(least, greatest)| Some((bound(kind, least)?, bound(kind, greatest)?)));
        Some(ColumnStatistics { bounds, nulls: statistics.null_count_opt(), cells })
    }

    fn may_have(&self, _place: usize, _values: &SearchedValues<'_>) -> bool {
        true
    }
}

/// Bound of a Parquet column as a cell. Parquet has no bounds of floating point numbers with NaN
/// among them, and of texts it has the first bytes.
fn bound(kind: Type, bytes: &[u8]) -> Option<u128> {
    let word = || bytes.try_into().ok().map(u64::from_le_bytes);
    let number = |cell: Cell<'_>| match cell {
        Cell::Word(word) => Some(u128::from(word)),
        Cell::Wide(wide) => Some(wide),
        Cell::Bytes(_) => None,
    };
    match kind {
        Type::Uint => word().map(u128::from),
        Type::Int => number(Value::Int(word()? as i64).cell()),
        Type::Time => number(Value::Time(Timestamp(word()? as i64)).cell()),
        Type::Text | Type::Binary => {
            let mut first = [0; 16];
            let length = bytes.len().min(16);
            first[..length].copy_from_slice(&bytes[..length]);
            Some(u128::from_be_bytes(first))
        }
        Type::Float | Type::Bool | Type::Ipv4 | Type::Mac | Type::Ipv6 | Type::Ip => None,
    }
}

/// Row group of a part.
struct GroupChunk<'g> {
    dataset: &'g Dataset,
    stream: &'g StreamEntry,
    spec: &'g ScanSpec,
    file: &'g FilePart,
    metadata: &'g ArrowReaderMetadata,
    group: usize,
    rows: usize,
    counters: &'g mut ScanCounters,
}

impl GroupChunk<'_> {
    /// Columns with these names, those that the index has.
    fn read(&self, names: &[&str]) -> std::result::Result<Option<RecordBatch>, ScanStop> {
        let wrong = |cause: &dyn ToString| {
            stop(DatasetError::Index { stream: self.stream.name.clone(), cause: cause.to_string() })
        };
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.file.clone(), self.metadata.clone());
        let schema = builder.parquet_schema();
        let has = |name: &str| schema.columns().iter().any(|column| column.path().string() == name);
        if !names.iter().all(|name| has(name)) {
            return Ok(None);
        }
        let mask = ProjectionMask::columns(schema, names.iter().copied());
        let mut batches = builder
            .with_row_groups(vec![self.group])
            .with_projection(mask)
            .with_batch_size(self.rows.max(1))
            .build()
            .map_err(|error| wrong(&error))?;
        let batch = batches.next().transpose().map_err(|error| wrong(&error))?;
        let batch = batch.filter(|batch| batch.num_rows() == self.rows);
        batch.map(Some).ok_or_else(|| wrong(&"a row group does not have its rows"))
    }

    fn array(&self, name: &str) -> std::result::Result<Option<ArrayRef>, ScanStop> {
        Ok(self.read(&[name])?.map(|batch| Arc::clone(batch.column(0))))
    }
}

impl Chunk for GroupChunk<'_> {
    fn complete(&self) -> Vec<bool> {
        vec![true; self.rows]
    }

    fn packed(&self, _place: usize) -> std::result::Result<Option<Packed<'_>>, ScanStop> {
        Ok(None)
    }

    fn column(&self, place: usize) -> std::result::Result<Option<DecodedColumn>, ScanStop> {
        let Some((column, kind)) = self.spec.columns.at(place) else { return Ok(None) };
        if column == Column::Common(CommonColumn::Slot) {
            return Ok(Some((OwnCells::Words(vec![0; self.rows]), None)));
        }
        let Some(name) = index_name(self.spec, place) else { return Ok(None) };
        let Some(array) = self.array(name)? else { return Ok(None) };
        if array.null_count() == array.len() {
            return Ok(None);
        }
        let cells = cells(kind, &array).ok_or_else(|| {
            let cause = format!("column `{name}` has another type than its attribute");
            stop(DatasetError::Index { stream: self.stream.name.clone(), cause })
        })?;
        let nulls = (array.null_count() > 0).then(|| (0..array.len()).map(|at| array.is_null(at)).collect());
        Ok(Some((cells, nulls)))
    }

    fn payload_sizes(&self) -> Vec<u64> {
        let sizes = self.array(CommonColumn::Size.name()).ok().flatten();
        let sizes = sizes.and_then(|sizes| Some(sizes.as_primitive_opt::<UInt64Type>()?.values().to_vec()));
        sizes.unwrap_or_else(|| vec![0; self.rows])
    }

    fn payloads(
        &mut self,
        picked: &[bool],
        payloads: &mut ColumnBuilder,
    ) -> std::result::Result<(), ScanStop> {
        let names = [CommonColumn::Size.name(), CHUNK, OFFSET];
        let wrong = || {
            let cause = "a column is missing or has another type".to_owned();
            stop(DatasetError::Index { stream: self.stream.name.clone(), cause })
        };
        let batch = self.read(&names)?.ok_or_else(wrong)?;
        let word = |name: &str| batch.column_by_name(name)?.as_primitive_opt::<UInt64Type>();
        let chunks = batch.column_by_name(CHUNK).and_then(|chunks| chunks.as_primitive_opt::<UInt32Type>());
        let (Some(sizes), Some(chunks), Some(offsets)) =
            (word(CommonColumn::Size.name()), chunks, word(OFFSET))
        else {
            return Err(wrong());
        };
        let mut last: Option<(u32, Arc<Vec<u8>>)> = None;
        for (at, _) in picked.iter().enumerate().filter(|(_, picked)| **picked) {
            let position = Position { chunk: chunks.value(at), offset: offsets.value(at) };
            let records = match &last {
                Some((number, records)) if *number == position.chunk => Arc::clone(records),
                _ => {
                    let records = self.dataset.chunk(position.chunk).map_err(stop)?;
                    let entry = self.dataset.manifest().chunks.get(position.chunk as usize);
                    self.counters.bytes += entry.map_or(0, |entry| entry.length);
                    last = Some((position.chunk, Arc::clone(&records)));
                    records
                }
            };
            let data = data_of(&records, position, sizes.value(at), self.stream).map_err(stop)?;
            payloads.push(Some(Cell::Bytes(data)))?;
        }
        Ok(())
    }

    fn counters(&self) -> ScanCounters {
        *self.counters
    }
}

/// Arrow values as cells; nulls are zeros.
fn cells(kind: Type, array: &ArrayRef) -> Option<OwnCells> {
    let word = |value: Value<'_>| match value.cell() {
        Cell::Word(word) => word,
        Cell::Wide(_) | Cell::Bytes(_) => 0,
    };
    let address = |width: usize| {
        let array =
            array.as_fixed_size_binary_opt().filter(|array| array.value_length() as usize == width)?;
        let number = |at| array.value(at).iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
        Some((0..array.len()).map(number).collect::<Vec<u128>>())
    };
    Some(match kind {
        Type::Uint => OwnCells::Words(array.as_primitive_opt::<UInt64Type>()?.values().to_vec()),
        Type::Int => {
            let values = array.as_primitive_opt::<Int64Type>()?.values();
            OwnCells::Words(values.iter().map(|value| word(Value::Int(*value))).collect())
        }
        Type::Time => {
            let values = array.as_primitive_opt::<TimestampNanosecondType>()?.values();
            OwnCells::Words(values.iter().map(|value| word(Value::Time(Timestamp(*value)))).collect())
        }
        Type::Float => {
            let values = array.as_primitive_opt::<Float64Type>()?.values();
            OwnCells::Words(values.iter().map(|value| word(Value::Float(*value))).collect())
        }
        Type::Bool => {
            let values = array.as_boolean_opt()?.values();
            OwnCells::Words(values.iter().map(u64::from).collect())
        }
        Type::Ipv4 => OwnCells::Words(address(4)?.into_iter().map(|number| number as u64).collect()),
        Type::Mac => OwnCells::Words(address(6)?.into_iter().map(|number| number as u64).collect()),
        Type::Ipv6 | Type::Ip => OwnCells::Wide(address(16)?),
        Type::Text | Type::Binary => {
            let array = cast(array, &DataType::Binary).ok()?;
            let array = array.as_binary_opt::<i32>()?;
            let (mut ends, mut bytes) = (Vec::with_capacity(array.len()), Vec::new());
            for at in 0..array.len() {
                if array.is_valid(at) {
                    bytes.extend_from_slice(array.value(at));
                }
                ends.push(u32::try_from(bytes.len()).ok()?);
            }
            OwnCells::Bytes(ends, bytes)
        }
    })
}
