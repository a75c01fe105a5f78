//! Sorts and groups of more than they are given memory for: what does not fit is put aside on disk, and the answer is the same.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use datafusion::arrow::array::{ArrayRef, AsArray, BinaryViewArray, Float64Array, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;
use holdfast_base::ByteSize;
use holdfast_query::{Limits, ask, session};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

const ROWS: u64 = 1_000_000;
const BATCH: u64 = 8192;

/// Two columns of numbers that go to and fro, 16 MB in all.
fn context(memory: ByteSize, folder: &Path) -> SessionContext {
    let batch = |first: u64| {
        let numbers = |factor: u64| -> ArrayRef {
            let rows = first..ROWS.min(first + BATCH);
            Arc::new(UInt64Array::from_iter_values(rows.map(|row| row.wrapping_mul(factor) >> 8)))
        };
        let columns = [("a", numbers(0x9e37_79b9_7f4a_7c15)), ("b", numbers(0xbf58_476d_1ce4_e5b9))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    over((0..ROWS).step_by(BATCH as usize).map(batch).collect(), memory, folder)
}

/// An engine over a table.
fn over(batches: Vec<RecordBatch>, memory: ByteSize, folder: &Path) -> SessionContext {
    let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    let limits = Limits {
        memory,
        spill: Some(folder.to_owned()),
        spill_bytes: ByteSize::mib(512),
        threads: NonZeroUsize::new(2).unwrap(),
    };
    session(&limits, Vec::new(), vec![("t".to_owned(), Arc::new(table))]).unwrap()
}

fn answer(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let answer = runtime.block_on(async { ask(context, sql).await?.collect().await });
    answer.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn text(batches: &[RecordBatch]) -> String {
    datafusion::arrow::util::pretty::pretty_format_batches(batches).unwrap().to_string()
}

#[test]
fn what_does_not_fit_into_memory_is_put_aside_and_the_answer_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (little, much) =
        (context(ByteSize::mib(12), folder.path()), context(ByteSize::mib(512), folder.path()));
    // What is sorted is looked at as a whole, by what stands beside its neighbour.
    let sorted = "select count(*), sum(place * (b % 7)), max(place) from \
                  (select b, row_number() over (order by a, b) place from t)";
    assert_eq!(text(&answer(&little, sorted)), text(&answer(&much, sorted)));
    let said = text(&answer(&little, &format!("explain analyze {sorted}")));
    let spilled = |said: &str| {
        said.split("spill_count=").skip(1).filter_map(|rest| rest.chars().next()).any(|digit| digit != '0')
    };
    assert!(spilled(&said), "{said}");
    let said = text(&answer(&much, &format!("explain analyze {sorted}")));
    assert!(!spilled(&said), "{said}");
}

/// Elements of so many bytes, with a number before them that goes to and fro, and one that is often the same.
fn elements(count: u64, size: usize) -> Vec<RecordBatch> {
    let batch = |first: u64| {
        let rows = || first..count.min(first + BATCH);
        let mixed = |row: u64| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let payload = |row: u64| {
            let mut bytes = vec![row as u8; size];
            bytes[..8].copy_from_slice(&row.to_le_bytes());
            bytes
        };
        let columns: [(&str, ArrayRef); 4] = [
            ("ordinal", Arc::new(UInt64Array::from_iter_values(rows()))),
            ("f", Arc::new(Float64Array::from_iter_values(rows().map(|row| (mixed(row) % 1000) as f64)))),
            ("b", Arc::new(UInt64Array::from_iter_values(rows().map(mixed)))),
            ("payload", Arc::new(BinaryViewArray::from_iter_values(rows().map(payload)))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    (0..count).step_by(BATCH as usize).map(batch).collect()
}

// What is sorted has its bytes beside it, be they few or many.
#[test]
fn whole_elements_are_sorted_in_little_memory() {
    let folder = tempfile::tempdir().unwrap();
    for (count, size, memory) in
        [(200_000, 20, 16), (200_000, 20, 64), (20_000, 1500, 16), (20_000, 1500, 48)]
    {
        let context = over(elements(count, size), ByteSize::mib(memory), folder.path());
        for order in ["f, b", "payload"] {
            let sql = format!("select * from t order by {order}");
            let (mut seen, mut last) = (BTreeSet::new(), (0.0, 0));
            for batch in answer(&context, &sql) {
                let numbers = |column: usize| batch.column(column).as_primitive::<UInt64Type>().values();
                let floats = batch.column(1).as_primitive::<Float64Type>().values();
                let payloads = batch.column(3).as_binary_view();
                for row in 0..batch.num_rows() {
                    let ordinal = numbers(0)[row];
                    assert!(seen.insert(ordinal), "{sql}: {ordinal} comes twice");
                    let payload = payloads.value(row);
                    assert_eq!((payload.len(), &payload[..8]), (size, &ordinal.to_le_bytes()[..]), "{sql}");
                    let place = (floats[row], numbers(2)[row]);
                    assert!(order != "f, b" || last <= place, "{sql}: {place:?} behind {last:?}");
                    last = place;
                }
            }
            assert_eq!(seen.len() as u64, count, "{sql}");
        }
    }
}
