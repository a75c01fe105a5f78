//! Test of the seam between a stream as a table and its recording: a second, tiny source with elements in memory, whose
//! segments are pruned by bounds.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use futures::TryStreamExt;
use holdfast_attributes::{Cell, Schema};
use holdfast_base::{ByteSize, Ordinal, StreamId};
use holdfast_format::{OwnCells, Packed};
use holdfast_query::output::{Format, Output};
use holdfast_query::predicate::{ColumnStatistics, PruningStatistics, SearchedValues};
use holdfast_query::stream::{
    Chunk, ChunkSink, ColumnBuilder, DecodedColumn, PruningReport, ScanCounters, ScanPlan, ScanRequest,
    ScanSpec, ScanStop, SegmentReader, SegmentScan, StreamSource, StreamSurvey, StreamTable,
};
use holdfast_query::{Column, CommonColumn, Engine, Limits, answer, session};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::collections::HashMap;
use std::fs::File;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SEGMENT: usize = 100;
const CHUNK: usize = 10;
const COUNT: usize = 2000;

/// Element `number`: its attribute `n` is its number times 3, its payload says so.
fn payload(number: usize) -> Vec<u8> {
    format!("{{\"n\":{}}}", number * 3).into_bytes()
}

/// Value of a column of an element, as a cell.
fn word(column: Column, number: usize) -> Option<u64> {
    match column {
        Column::Common(CommonColumn::Ordinal) => Some(number as u64),
        Column::Common(CommonColumn::Time) => Some((1000 * number as u64) ^ 1 << 63),
        Column::Common(CommonColumn::Size) => Some(payload(number).len() as u64),
        Column::Attribute(0) => Some(3 * number as u64),
        _ => None,
    }
}

/// Source of elements 0 to `COUNT`, in segments.
#[derive(Default)]
struct MemorySource {
    payloads_read: Arc<AtomicUsize>,
}

impl StreamSource for MemorySource {
    fn plan(&self, request: ScanRequest) -> Result<ScanPlan> {
        let scan = MemoryScan {
            spec: request.spec,
            next: AtomicUsize::new(0),
            payloads_read: Arc::clone(&self.payloads_read),
        };
        let report = PruningReport { all: COUNT / SEGMENT, ..PruningReport::default() };
        Ok(ScanPlan { scan: Box::new(scan), report, threads: COUNT / SEGMENT, payload: 10 })
    }

    fn survey(&self, _stream: StreamId, from: Ordinal) -> Result<StreamSurvey> {
        let segments = (COUNT - from.0 as usize).div_ceil(SEGMENT);
        Ok(StreamSurvey { segments, all: COUNT / SEGMENT, ends: None })
    }

    fn next_ordinals(&self) -> Result<Option<HashMap<StreamId, Ordinal>>> {
        Ok(None)
    }
}

/// Scan of all segments.
struct MemoryScan {
    spec: ScanSpec,
    next: AtomicUsize,
    payloads_read: Arc<AtomicUsize>,
}

impl SegmentScan for MemoryScan {
    fn reader(&self, _threads: usize) -> Result<Box<dyn SegmentReader + '_>> {
        Ok(Box::new(MemoryReader { scan: self, counters: ScanCounters::default() }))
    }

    fn again(&self) -> Box<dyn SegmentScan> {
        let payloads_read = Arc::clone(&self.payloads_read);
        Box::new(Self { spec: self.spec.clone(), next: AtomicUsize::new(0), payloads_read })
    }
}

struct MemoryReader<'a> {
    scan: &'a MemoryScan,
    counters: ScanCounters,
}

/// Bounds of some elements.
struct Bounds<'a> {
    spec: &'a ScanSpec,
    first: usize,
    count: usize,
}

impl PruningStatistics for Bounds<'_> {
    fn statistics(&self, place: usize) -> Option<ColumnStatistics> {
        let (column, _) = self.spec.columns.at(place)?;
        let bounds = word(column, self.first)?.into()..=word(column, self.first + self.count - 1)?.into();
        let bounds = Some((*bounds.start(), *bounds.end()));
        Some(ColumnStatistics { bounds, nulls: Some(0), cells: self.count as u64 })
    }

    fn may_have(&self, _place: usize, _values: &SearchedValues<'_>) -> bool {
        true
    }
}

impl SegmentReader for MemoryReader<'_> {
    fn next(&mut self, sink: &mut ChunkSink<'_>) -> Result<bool> {
        let MemoryScan { spec, next, payloads_read } = self.scan;
        let segment = next.fetch_add(1, Ordering::Relaxed);
        if segment * SEGMENT >= COUNT {
            return Ok(false);
        }
        let first = segment * SEGMENT;
        if !spec.predicate.may_hold(&Bounds { spec, first, count: SEGMENT }) {
            self.counters.pruned += 1;
            self.counters.unread += 1;
            return Ok(true);
        }
        self.counters.searched += 1;
        for first in (first..first + SEGMENT).step_by(CHUNK) {
            let mut chunk = MemoryChunk { spec, first, payloads_read, counters: &mut self.counters };
            match sink(spec, &mut chunk) {
                Ok(()) => {}
                Err(ScanStop::Enough) => return Ok(false),
                Err(ScanStop::Failed(error)) => return Err(error),
                Err(stop) => panic!("{stop:?}"),
            }
        }
        Ok(true)
    }

    fn counters(&self) -> ScanCounters {
        self.counters
    }
}

struct MemoryChunk<'a> {
    spec: &'a ScanSpec,
    first: usize,
    payloads_read: &'a AtomicUsize,
    counters: &'a mut ScanCounters,
}

impl Chunk for MemoryChunk<'_> {
    fn complete(&self) -> Vec<bool> {
        vec![true; CHUNK]
    }

    fn packed(&self, _place: usize) -> Result<Option<Packed<'_>>, ScanStop> {
        Ok(None)
    }

    fn column(&self, place: usize) -> Result<Option<DecodedColumn>, ScanStop> {
        let (column, _) = self.spec.columns.at(place).unwrap();
        let words: Option<Vec<u64>> =
            (self.first..self.first + CHUNK).map(|number| word(column, number)).collect();
        Ok(words.map(|words| (OwnCells::Words(words), None)))
    }

    fn payload_sizes(&self) -> Vec<u64> {
        (self.first..self.first + CHUNK).map(|number| payload(number).len() as u64).collect()
    }

    fn payloads(&mut self, picked: &[bool], payloads: &mut ColumnBuilder) -> Result<(), ScanStop> {
        for number in (0..CHUNK).filter(|number| picked[*number]) {
            let bytes = payload(self.first + number);
            self.payloads_read.fetch_add(1, Ordering::Relaxed);
            self.counters.bytes += bytes.len() as u64;
            payloads.push(Some(Cell::Bytes(&bytes)))?;
        }
        Ok(())
    }

    fn counters(&self) -> ScanCounters {
        *self.counters
    }
}

fn context(source: MemorySource) -> SessionContext {
    let schema = Schema::typed(["n:uint=json:n"]).unwrap();
    let table = StreamTable::new("t", StreamId(7), schema, Arc::new(source));
    let limits = Limits {
        memory: ByteSize::mib(64),
        spill: None,
        spill_bytes: ByteSize::mib(1),
        threads: NonZeroUsize::new(2).unwrap(),
    };
    session(&limits, Vec::new(), vec![("t".to_owned(), Arc::new(table))]).unwrap()
}

#[test]
fn elements_in_memory_are_a_table_whose_segments_are_pruned() {
    let payloads_read = Arc::new(AtomicUsize::new(0));
    let source = MemorySource { payloads_read: Arc::clone(&payloads_read) };
    let engine = Engine { context: context(source), diagnostics: Arc::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let asked = |sql: &str| {
        let batches = runtime.block_on(async { answer(&engine, sql).await?.try_collect::<Vec<_>>().await });
        let batches = batches.unwrap_or_else(|error| panic!("{sql}: {error}"));
        pretty_format_batches(&batches).unwrap().to_string()
    };
    let value = |sql: &str| {
        let said = asked(sql);
        let row = said.lines().nth(3).unwrap_or_else(|| panic!("{sql}: {said}"));
        row.trim_matches(['|', ' ']).to_owned()
    };
    assert_eq!(value("select count(*) from t"), "2000");
    assert_eq!(
        value("select sum(n) from t where n % 2 = 0"),
        (0..1000).map(|n| 6 * n).sum::<u64>().to_string()
    );
    assert_eq!(value("select max(ordinal) from t where n between 600 and 899"), "299");
    assert_eq!(value("select max(n) from t where time < to_timestamp_nanos(500000)"), "1497");
    assert_eq!(value("select ordinal from t order by ordinal desc limit 1"), "1999");
    assert_eq!(value("select count(*) from t a join t b on a.n = b.n where b.ordinal >= 1990"), "10");
    assert_eq!(payloads_read.load(Ordering::Relaxed), 0);
    assert_eq!(value("select text(payload) from t where n = 4242"), "{\"n\":4242}");
    assert_eq!(payloads_read.swap(0, Ordering::Relaxed), 1, "only payloads of hits are read");
    // A residual filter is evaluated before payloads are read.
    assert_eq!(
        value("select text(payload) from t where n < 3000 and ordinal * 3 = n - 0 and n + ordinal = 400"),
        "{\"n\":300}"
    );
    assert_eq!(payloads_read.swap(0, Ordering::Relaxed), 1, "only payloads of hits are read");
    let said = asked("explain analyze select count(n) from t where n between 600 and 899");
    let number = |name: &str| {
        let rest = said.split_once(name).unwrap_or_else(|| panic!("{name}: {said}")).1;
        rest.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    assert_eq!((number("slots_searched="), number("slots_pruned=")), ("1".to_owned(), "19".to_owned()));
    let explained = asked("explain select n from t where n > 5");
    assert!(explained.contains("slots=20"), "{explained}");
    assert_eq!(value("select max(time) from t"), "1970-01-01T00:00:00.001999Z");
}

/// Names of the columns of a result, as a format has them.
fn names(engine: &Engine, sql: &str, format: Format) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    runtime.block_on(async {
        let mut batches = answer(engine, sql).await.unwrap();
        let mut output = Output::new(format, &batches.schema(), file.reopen().unwrap()).unwrap();
        while let Some(batch) = batches.try_next().await.unwrap() {
            output.write(&batch).unwrap();
        }
        assert!(output.finish().unwrap() > 0, "{sql}");
    });
    let first_line = || std::fs::read_to_string(file.path()).unwrap().lines().next().unwrap().to_owned();
    let names = match format {
        Format::Arrow => StreamReader::try_new(File::open(file.path()).unwrap(), None).unwrap().schema(),
        Format::Parquet => {
            ParquetRecordBatchReaderBuilder::try_new(file.reopen().unwrap()).unwrap().schema().clone()
        }
        Format::Csv => return first_line().split(',').map(str::to_owned).collect(),
        Format::Table => return first_line().split_whitespace().map(str::to_owned).collect(),
        Format::Jsonl => return first_line().split('"').skip(1).step_by(2).map(str::to_owned).collect(),
    };
    names.fields().iter().map(|field| field.name().clone()).collect()
}

#[test]
fn columns_of_one_name_are_qualified_in_every_format() {
    let engine = Engine { context: context(MemorySource::default()), diagnostics: Arc::default() };
    for format in [Format::Table, Format::Csv, Format::Jsonl, Format::Arrow, Format::Parquet] {
        for (sql, wanted) in [
            (
                "select a.n, b.n, a.ordinal, b.ordinal, a.size from t a join t b on a.n = b.n order by a.n limit 3",
                vec!["a.n", "b.n", "a.ordinal", "b.ordinal", "size"],
            ),
            ("select t.n, b.n, 5 x from t join t b on t.n = b.n limit 1", vec!["t.n", "b.n", "x"]),
            (
                "select t.n, x.n, x.k from stream.t t join (select n, 1 k from t) x on t.n = x.n limit 1",
                vec!["t.n", "x.n", "k"],
            ),
            ("select n, n + 1 from t limit 1", vec!["n", "t.n + UInt64(1)"]),
        ] {
            let wanted: Vec<&str> = match format {
                // Names with spaces are several words of the text table.
                Format::Table => wanted.iter().flat_map(|name| name.split(' ')).collect(),
                _ => wanted,
            };
            assert_eq!(names(&engine, sql, format), wanted, "{sql} as {format:?}");
        }
    }
}

#[test]
fn fields_of_documents_are_found_without_a_schema() {
    let payloads_read = Arc::new(AtomicUsize::new(0));
    let source = MemorySource { payloads_read: Arc::clone(&payloads_read) };
    let engine = Engine { context: context(source), diagnostics: Arc::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let asked = |sql: &str| {
        let batches = runtime.block_on(async { answer(&engine, sql).await?.try_collect::<Vec<_>>().await });
        batches.map(|batches| {
            let table = pretty_format_batches(&batches).unwrap().to_string();
            table.lines().nth(3).unwrap_or_default().trim_matches(['|', ' ']).to_owned()
        })
    };
    let value = |sql: &str| asked(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert_eq!(value("select count(*) from t where json_get_int(payload, 'n') = n"), "2000");
    assert_eq!(payloads_read.swap(0, Ordering::Relaxed), 2000);
    assert_eq!(value("select json_get(payload, 'n') from t where n = 4242"), "4242");
    assert_eq!(value("select count(*) from t where n < 30 and json_get_int(payload, 'n') > 14"), "5");
    assert_eq!(payloads_read.swap(0, Ordering::Relaxed), 11, "only payloads of candidates are read");
    let document = r#"'{"a":{"b":[1,2.5,"x\u00e9y"]},"t":true,"e":1e3}'"#;
    for (call, wanted) in [
        ("json_get(D, 'a.b')", r#"[1,2.5,"x\u00e9y"]"#),
        ("json_get(D, 'a.b[2]')", "xéy"),
        ("json_get(D, 't')", "true"),
        ("json_get_text(D, 'a.b[2]')", "xéy"),
        ("json_get_text(D, 'a.b[0]') is null", "true"),
        ("json_get_int(D, 'a.b[0]')", "1"),
        ("json_get_int(D, 'e')", "1000"),
        ("json_get_int(D, 'a.b[1]') is null", "true"),
        ("json_get_float(D, 'a.b[1]') + 1", "3.5"),
        ("json_get_float(D, 'a.b[0]')", "1.0"),
        ("json_get_bool(D, 't') and true", "true"),
        ("json_get_bool(D, 'e') is null", "true"),
        ("json_get(D, 'nowhere[3].x') is null", "true"),
        ("json_get('no document', 'a') is null", "true"),
        ("json_get(json_get(D, 'a'), 'b[0]')", "1"),
        ("json_get(null::bytea, 'a') is null", "true"),
        ("json_get(D, null::text) is null", "true"),
    ] {
        let sql = format!("select {}", call.replace('D', document));
        assert_eq!(value(&sql), wanted, "{sql}");
    }
    for (call, wanted) in [
        ("json_get(payload, 'a[')", "not a JSON path"),
        ("json_get(payload)", "such as json_get(payload, 'a.b[0]')"),
        ("json_get(n, 'a')", "it takes bytes or a text"),
        ("json_get_int(payload, text(payload))", "must be a text literal"),
    ] {
        let error = asked(&format!("select {call} from t")).unwrap_err().to_string();
        assert!(error.contains(wanted), "{call}: {error}");
    }
}
