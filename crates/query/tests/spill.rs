//! Sorts and groups of more than they are given memory for: what does not fit is put aside on disk, and the answer is the same.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use datafusion::arrow::array::{ArrayRef, RecordBatch, UInt64Array};
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;
use holdfast_base::ByteSize;
use holdfast_query::{Limits, ask, session};
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
    let batches: Vec<RecordBatch> = (0..ROWS).step_by(BATCH as usize).map(batch).collect();
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
