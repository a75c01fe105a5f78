//! Tests of result files: they contain the rows of the answer and no bytes of other elements that share its
//! buffers. Promise 5.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use datafusion::arrow::array::{
    ArrayRef, AsArray, BinaryViewArray, RecordBatch, StringViewArray, UInt64Array,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;
use holdfast_base::ByteSize;
use holdfast_query::output::{Format, Output, OutputError};
use holdfast_query::{Limits, ask, session};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::io::Write;
use std::num::NonZeroUsize;
use std::sync::Arc;

const ROWS: u64 = 8000;
const SIZE: usize = 500;

fn payload(row: u64) -> Vec<u8> {
    let mut bytes = format!("element {row} of them ").into_bytes();
    bytes.resize(SIZE, b'.');
    bytes
}

fn name(row: u64) -> String {
    format!("this is the name of {row}.")
}

fn context() -> SessionContext {
    let columns: [(&str, ArrayRef); 3] = [
        ("ordinal", Arc::new(UInt64Array::from_iter_values(0..ROWS))),
        ("name", Arc::new(StringViewArray::from_iter_values((0..ROWS).map(name)))),
        ("payload", Arc::new(BinaryViewArray::from_iter_values((0..ROWS).map(payload)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
    let limits = Limits {
        memory: ByteSize::mib(256),
        spill: None,
        spill_bytes: ByteSize::mib(1),
        threads: NonZeroUsize::MIN,
    };
    session(&limits, Vec::new(), vec![("t".to_owned(), Arc::new(table))]).unwrap()
}

fn written(batches: &[RecordBatch], format: Format) -> Vec<u8> {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut output = Output::new(format, &batches[0].schema(), file.reopen().unwrap()).unwrap();
    for batch in batches {
        output.write(batch).unwrap();
    }
    output.finish().unwrap();
    std::fs::read(file.path()).unwrap()
}

#[test]
fn nothing_of_elements_that_were_not_chosen_is_written() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let context = context();
    let has = |bytes: &[u8], what: &[u8]| bytes.windows(what.len()).any(|window| window == what);
    // How many rows, and values in all.
    for (sql, rows, values) in [
        ("select name, payload from t where ordinal in (7, 4000, 7900)", 3, 3),
        ("select name, payload from t order by ordinal desc limit 5", 5, 5),
        ("select name, payload from t limit 3 offset 100", 3, 3),
        (
            "select case when ordinal % 1000 = 7 then name end, nullif(payload, payload) from t where ordinal % 500 = 7",
            16,
            8,
        ),
        (
            "select array_agg(name), array_agg(payload) from t where ordinal % 1000 = 3 group by ordinal % 2000",
            2,
            8,
        ),
    ] {
        let batches = runtime.block_on(async { ask(&context, sql).await.unwrap().collect().await.unwrap() });
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), rows, "{sql}");
        for format in [Format::Arrow, Format::Parquet] {
            let bytes = written(&batches, format);
            // A batch with nothing in it has a head.
            assert!(bytes.len() < values * (SIZE + 200) + 8192, "{sql}: {} bytes of {format:?}", bytes.len());
            let named = (0..ROWS).filter(|row| has(&bytes, name(*row).as_bytes())).count();
            let found = (0..ROWS).filter(|row| has(&bytes, &payload(*row)[..30])).count();
            assert!(named <= values && found <= values, "{sql}: {named} and {found} of {format:?}");
        }
        let arrow = written(&batches, Format::Arrow);
        let back: Vec<RecordBatch> =
            StreamReader::try_new(&arrow[..], None).unwrap().map(Result::unwrap).collect();
        assert_eq!(back, batches, "{sql}");
        let mut parquet = tempfile::tempfile().unwrap();
        parquet.write_all(&written(&batches, Format::Parquet)).unwrap();
        let back = ParquetRecordBatchReaderBuilder::try_new(parquet).unwrap().build().unwrap();
        let back: Vec<RecordBatch> = back.map(Result::unwrap).collect();
        let schema = batches[0].schema();
        assert_eq!(back[0].schema(), schema, "{sql}");
        let whole = |batches: &[RecordBatch]| concat_batches(&schema, batches).unwrap();
        assert_eq!(whole(&back), whole(&batches), "{sql}");
        if let Some(names) = back[0].column(0).as_string_view_opt() {
            assert!(names.iter().flatten().all(|name| has(&arrow, name.as_bytes())), "{sql}");
        }
    }
}

/// A medium with room for so many bytes.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// Promise 8: a full disk is told as such, and not as a value that has no form in the format.
#[test]
fn every_format_says_that_the_disk_is_full_wherever_it_fills() {
    let columns: [(&str, ArrayRef); 2] = [
        ("ordinal", Arc::new(UInt64Array::from_iter_values(0..ROWS))),
        ("name", Arc::new(StringViewArray::from_iter_values((0..ROWS).map(name)))),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for format in [Format::Table, Format::Csv, Format::Jsonl, Format::Arrow, Format::Parquet] {
        let write = |room| {
            let mut output = Output::new(format, &batch.schema(), Full(room))?;
            output.write(&batch)?;
            output.write(&batch)?;
            output.finish()
        };
        let size = written(&[batch.clone(), batch.clone()], format).len();
        assert_eq!(write(size).unwrap(), 2 * ROWS);
        for room in (0..size).step_by(size / 23).chain([1, size - 1]) {
            match write(room) {
                Err(OutputError::Io(error)) if error.kind() == std::io::ErrorKind::StorageFull => {}
                other => panic!("{format:?} in {room} of {size}: {other:?}"),
            }
        }
    }
}
