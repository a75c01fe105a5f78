//! Property tests of the nearest-time join against a comparison of every pair.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch, TimestampNanosecondArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{MemTable, TableProvider};
use datafusion::prelude::SessionContext;
use holdfast_base::ByteSize;
use holdfast_query::{Limits, ask, session};
use proptest::prelude::*;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// The time of an element; `None` where it has none.
type Times = Vec<Option<i64>>;

fn schema() -> SchemaRef {
    let time = |name| Field::new(name, DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), true);
    Arc::new(Schema::new(vec![
        Field::new("ordinal", DataType::Int64, false),
        time("time"),
        time("event_time"),
    ]))
}

/// A stream in batches of so many, over two partitions; events happen 1000 before they arrive.
fn table(times: &Times, batch: usize) -> Arc<dyn TableProvider> {
    let of = |(number, times): (usize, &[Option<i64>])| {
        let first = (number * batch) as i64;
        let time = |back: i64| {
            let times = times.iter().map(|time| time.map(|time| time - back));
            Arc::new(times.collect::<TimestampNanosecondArray>().with_timezone("UTC")) as ArrayRef
        };
        let ordinals = Arc::new(Int64Array::from_iter_values(first..first + times.len() as i64));
        RecordBatch::try_new(schema(), vec![ordinals, time(0), time(1000)]).unwrap()
    };
    let batches: Vec<RecordBatch> = times.chunks(batch).enumerate().map(of).collect();
    let (one, other) = batches.split_at(batches.len() / 2);
    Arc::new(MemTable::try_new(schema(), vec![one.to_vec(), other.to_vec()]).unwrap())
}

fn engine(left: &Times, right: &Times, batch: usize) -> SessionContext {
    let limits = Limits {
        memory: ByteSize::mib(64),
        spill: None,
        spill_bytes: ByteSize::mib(1),
        threads: NonZeroUsize::new(2).unwrap(),
    };
    let streams = vec![("a".to_owned(), table(left, batch)), ("b".to_owned(), table(right, batch))];
    session(&limits, Vec::new(), streams).unwrap()
}

/// Pairs of numbers, null as -1, in the order of the first.
fn pairs(context: &SessionContext, sql: &str) -> Vec<(i64, i64)> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let batches = runtime.block_on(async { ask(context, sql).await?.collect().await });
    let batches = batches.unwrap_or_else(|error| panic!("{sql}: {error}"));
    let mut all = Vec::new();
    for batch in &batches {
        let column = |place: usize| {
            let column = batch.column(place).as_primitive::<Int64Type>().clone();
            column.iter().map(|value| value.unwrap_or(-1)).collect::<Vec<_>>()
        };
        all.extend(column(0).into_iter().zip(column(1)));
    }
    all.sort_unstable();
    all
}

fn refused(context: &SessionContext, sql: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(ask(context, sql)).unwrap_err().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    // Promise 5: every element has the nearest beside it, or none.
    #[test]
    fn each_element_is_beside_the_nearest(
        left in prop::collection::vec(prop::option::weighted(0.9, 0i64..3000), 0..120),
        right in prop::collection::vec(prop::option::weighted(0.9, prop_oneof![0i64..3000, 1000i64..1020]), 0..300),
        within in prop::option::of(0i64..200), batch in 1usize..40, from in 0i64..3000,
    ) {
        let context = engine(&left, &right, batch);
        let span = within.map_or("null".to_owned(), |within| format!("interval '{within} nanoseconds'"));
        let distance = |sql: &str, wanted: &dyn Fn(i64) -> bool| {
            let found = pairs(&context, sql);
            let mut ordinals = Vec::new();
            for (one, other) in found {
                ordinals.push(one);
                let time = left[one as usize];
                let far = |time: i64| right.iter().flatten().map(|other| other.abs_diff(time)).min();
                let least = time.and_then(far).filter(|far| within.is_none_or(|within| *far <= within as u64));
                let found = (other >= 0).then(|| right[other as usize].unwrap().abs_diff(time.unwrap()));
                prop_assert_eq!(found, least, "{}: {} of {:?}", sql, one, time);
                // Of several with one time the last before it, or the first behind it.
                let same = right.iter().enumerate().filter(|(_, time)| other >= 0 && **time == right[other as usize]);
                let same = same.map(|(place, _)| place);
                let is_behind = other >= 0 && right[other as usize] > time;
                let chosen = if is_behind { same.min() } else { same.max() };
                prop_assert_eq!(chosen, usize::try_from(other).ok(), "{}: {} of {:?}", sql, one, time);
            }
            let all: Vec<i64> = (0..left.len() as i64).filter(|one| wanted(*one)).collect();
            prop_assert_eq!(ordinals, all, "{}", sql);
            Ok(())
        };
        let all = format!("select ordinal, b_ordinal from nearest('a', 'b', {span})");
        distance(&all, &|_| true)?;
        distance(&format!("select ordinal, b_ordinal from nearest('a', 'b', {span}, 'event_time')"), &|_| true)?;
        // Conditions on the first stream change nothing for what is left of it.
        let after = |one: i64| left[one as usize].is_some_and(|time| time >= from);
        let since = format!("{all} where time >= to_timestamp_nanos({from})");
        distance(&since, &after)?;
        let count = pairs(&context, &format!("select count(*), count(b_time) from nearest('a', 'b', {span})"));
        prop_assert_eq!(count[0].0, left.len() as i64);
    }
}

#[test]
fn of_two_that_are_as_near_the_earlier_one_is_taken() {
    let context = engine(&vec![Some(10)], &vec![Some(15), Some(5)], 1);
    assert_eq!(pairs(&context, "select ordinal, b_ordinal from nearest('a', 'b')"), [(0, 1)]);
}

// As lists of what is looked for are made: the engine goes down from each operator to the one before it.
#[test]
fn as_many_operators_as_may_be_are_no_trouble_and_more_are_refused() {
    let long = |count: usize, by: &str| -> String {
        let all: Vec<String> = (0..=count).map(|at| format!("ordinal = {at}")).collect();
        format!("select ordinal, ordinal as again from a where {}", all.join(by))
    };
    let run = move || {
        let context = engine(&vec![Some(1); 9], &vec![], 1);
        assert_eq!(pairs(&context, &long(1000, " or ")).len(), 9);
        for by in [" or ", " and "] {
            let said = refused(&context, &long(1001, by));
            assert!(said.contains("1001 operators exceed the limit of 1000"), "{said}");
        }
    };
    // As much as the main thread of a program has.
    std::thread::Builder::new().stack_size(8 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn what_is_no_such_join_is_told() {
    let context = engine(&vec![Some(1)], &vec![Some(1)], 1);
    for (sql, wanted) in [
        ("select * from nearest('a', 'c')", "cannot find stream `c`: the streams are a, b"),
        ("select * from nearest('a')", "nearest: it takes two streams"),
        ("select * from nearest('a', 'b', 20)", "nearest: it takes two streams"),
        ("select * from nearest('a', 'b', interval '1 month')", "nearest: it takes two streams"),
        ("select * from nearest('a', 'b', null, 'size')", "nearest: it takes two streams"),
        ("select * from a tablesample (10)", "`tablesample` is not supported"),
        ("explain select 1 from (select * from a tablesample (10)) b", "`tablesample` is not supported"),
    ] {
        let said = refused(&context, sql);
        assert!(said.contains(wanted), "{sql}: {said}");
    }
}
