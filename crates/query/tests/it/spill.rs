//! Tests of sorts, groups and joins that exceed their memory: they spill to disk and give the same answer.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use datafusion::arrow::array::{ArrayRef, AsArray, BinaryViewArray, Float64Array, RecordBatch, UInt64Array};
use datafusion::arrow::datatypes::{Float64Type, UInt64Type};
use datafusion::catalog::MemTable;
use datafusion::error::Result;
use futures::TryStreamExt;
use holdfast_base::ByteSize;
use holdfast_query::{Engine, Limits, answer, is_join_memory, session};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

const BATCH: u64 = 8192;

/// Two columns of numbers that go to and fro, 16 bytes a row.
fn numbers(count: u64, memory: ByteSize, folder: &Path) -> Engine {
    let batch = |first: u64| {
        let numbers = |factor: u64| -> ArrayRef {
            let rows = first..count.min(first + BATCH);
            Arc::new(UInt64Array::from_iter_values(rows.map(|row| row.wrapping_mul(factor) >> 8)))
        };
        let columns = [("a", numbers(0x9e37_79b9_7f4a_7c15)), ("b", numbers(0xbf58_476d_1ce4_e5b9))];
        RecordBatch::try_from_iter(columns).unwrap()
    };
    over((0..count).step_by(BATCH as usize).map(batch).collect(), memory, folder)
}

/// An engine over a table.
fn over(batches: Vec<RecordBatch>, memory: ByteSize, folder: &Path) -> Engine {
    within(batches, memory, folder, ByteSize::mib(512), 2)
}

/// The same, with so much room for what is put aside, and so many threads.
fn within(
    batches: Vec<RecordBatch>,
    memory: ByteSize,
    folder: &Path,
    spill_bytes: ByteSize,
    threads: usize,
) -> Engine {
    let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
    let limits = Limits {
        memory,
        spill: Some(folder.to_owned()),
        spill_bytes,
        threads: NonZeroUsize::new(threads).unwrap(),
    };
    let context = session(&limits, Vec::new(), vec![("t".to_owned(), Arc::new(table))]).unwrap();
    Engine { context, diagnostics: Arc::default() }
}

fn tried(engine: &Engine, sql: &str) -> Result<Vec<RecordBatch>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async { answer(engine, sql).await?.try_collect().await })
}

fn answered(engine: &Engine, sql: &str) -> Vec<RecordBatch> {
    tried(engine, sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn text(batches: &[RecordBatch]) -> String {
    datafusion::arrow::util::pretty::pretty_format_batches(batches).unwrap().to_string()
}

/// What is done with little memory is what is done with much; and whether something was put aside, with either.
fn same(sql: &str, little: &Engine, much: &Engine) -> [String; 2] {
    assert_eq!(text(&answered(little, sql)), text(&answered(much, sql)), "{sql}");
    [little, much].map(|engine| text(&answered(engine, &format!("explain analyze {sql}"))))
}

fn spilled(said: &str) -> bool {
    said.split("spill_count=").skip(1).filter_map(|rest| rest.chars().next()).any(|digit| digit != '0')
}

#[test]
fn what_does_not_fit_into_memory_is_put_aside_and_the_answer_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let of = |memory| numbers(500_000, ByteSize::mib(memory), folder.path());
    let (little, much) = (of(8), of(512));
    let questions = [
        // What is sorted is looked at as a whole, by what stands beside its neighbour.
        "select count(*), sum(place * (b % 7)), max(place) from \
         (select b, row_number() over (order by a, b) place from t)",
        // Groups of a number, as many as there are rows, and of a text; what is known of them is looked at as a whole.
        "select count(*), sum(n), sum(a % 1000 * (b % 7)), max(b) from \
         (select a, count(*) n, max(b) b from t group by a)",
        "select count(*), sum(n), sum(length(word) * (b % 7)), max(b) from \
         (select 'number ' || (a % 200000) word, count(*) n, max(b) b from t group by word)",
    ];
    for question in questions {
        let [with_little, with_much] = same(question, &little, &much);
        assert!(spilled(&with_little), "{with_little}");
        assert!(!spilled(&with_much), "{with_much}");
    }
}

// Promise 8. A join holds one side in memory: it gives the right answer or an error.
#[test]
fn joins_of_more_than_fits_into_memory_end_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let of = |memory| over(elements(20_000, 1500), ByteSize::mib(memory), folder.path());
    let (little, much) = (of(8), of(512));
    let aggregates = "count(*), sum(u32le(l.payload, 0) % 1013 * (r.ordinal % 5)), min(r.payload)";
    let mut questions = Vec::new();
    for kind in ["", "left ", "right ", "full "] {
        for on in
            ["l.ordinal + 1000 = r.b % 20000", "l.ordinal between r.ordinal + 19990 and r.ordinal + 19995"]
        {
            questions.push(format!("select {aggregates} from t l {kind}join t r on {on}"));
        }
    }
    for question in &questions {
        let error = tried(&little, question).unwrap_err();
        assert!(is_join_memory(&error), "{question}: {error}");
    }
    for question in questions.iter().filter(|question| !question.contains("between")) {
        assert_eq!(answered(&much, question).len(), 1, "{question}");
    }
    for question in [
        "select min(l.payload), min(r.payload) from t l cross join t r",
        "select count(*) from t where nullif(payload, cast('' as bytea)) not in \
         (select nullif(payload, cast('' as bytea)) from t)",
    ] {
        let error = tried(&little, question).unwrap_err();
        assert!(is_join_memory(&error), "{question}: {error}");
    }
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
        let engine = over(elements(count, size), ByteSize::mib(memory), folder.path());
        for order in ["f, b", "payload"] {
            let sql = format!("select * from t order by {order}");
            let (mut seen, mut last) = (BTreeSet::new(), (0.0, 0));
            for batch in answered(&engine, &sql) {
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
