//! Property tests of the partial aggregation against the engine's own.

use super::GroupByRule;
use datafusion::arrow::array::{
    ArrayRef, FixedSizeBinaryArray, Int64Array, RecordBatch, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SessionConfig, SessionContext};
use proptest::prelude::*;
use std::sync::Arc;

/// What is asked, each of which the rule takes.
const QUESTIONS: [&str; 7] = [
    "select u, count(*), sum(i), min(u), max(i), avg(i) from t group by u order by 1",
    "select i, count(*), count(u) from t group by i order by 1",
    "select t, max(u) from t group by t order by 1",
    "select a, count(*), sum(u) from t group by a order by 1",
    "select m, min(t) from t group by m order by 1",
    "select i % 3, count(*) from t group by i % 3 order by 1",
    "select distinct a from t order by 1",
];

type Elements = Vec<(Option<u64>, Option<i64>, Option<i64>, Option<u128>)>;

fn batch(elements: &Elements) -> RecordBatch {
    let bytes = |width: usize| {
        let of =
            elements.iter().map(|(.., address)| address.map(|all| all.to_be_bytes()[16 - width..].to_vec()));
        FixedSizeBinaryArray::try_from_sparse_iter_with_size(of, width as i32).unwrap()
    };
    let columns: Vec<ArrayRef> = vec![
        Arc::new(elements.iter().map(|(u, ..)| *u).collect::<UInt64Array>()),
        Arc::new(elements.iter().map(|(_, i, ..)| *i).collect::<Int64Array>()),
        Arc::new(
            elements.iter().map(|(_, _, t, _)| *t).collect::<TimestampNanosecondArray>().with_timezone("UTC"),
        ),
        Arc::new(bytes(16)),
        Arc::new(bytes(6)),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn schema() -> Arc<Schema> {
    Arc::new(Schema::new(vec![
        Field::new("u", DataType::UInt64, true),
        Field::new("i", DataType::Int64, true),
        Field::new("t", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())), true),
        Field::new("a", DataType::FixedSizeBinary(16), true),
        Field::new("m", DataType::FixedSizeBinary(6), true),
    ]))
}

/// An engine over these, with the rule or without.
fn context(parts: &[Vec<Elements>], rule: Option<GroupByRule>, memory: usize) -> SessionContext {
    let pool = Arc::new(GreedyMemoryPool::new(memory));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let config = SessionConfig::new()
        .with_target_partitions(parts.len())
        .with_batch_size(5)
        .with_sort_spill_reservation_bytes(0);
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .build();
    let mut builder = SessionStateBuilder::new_from_existing(state);
    if let Some(rule) = rule {
        builder = builder.with_physical_optimizer_rule(Arc::new(rule));
    }
    let context = SessionContext::new_with_state(builder.build());
    let parts = parts.iter().map(|part| part.iter().map(batch).collect()).collect();
    context.register_table("t", Arc::new(MemTable::try_new(schema(), parts).unwrap())).unwrap();
    context
}

fn answer(context: &SessionContext, sql: &str) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let batches = runtime.block_on(async { context.sql(sql).await.unwrap().collect().await.unwrap() });
    pretty_format_batches(&batches).unwrap().to_string()
}

fn elements() -> impl Strategy<Value = Elements> {
    let number =
        || prop_oneof![0..20u64, (1 << 18) - 3..(1 << 18) + 3u64, u64::MAX - 2..=u64::MAX, any::<u64>()];
    let signed = || prop_oneof![-10..10i64, -(1i64 << 19)..1 << 19, Just(i64::MIN), Just(i64::MAX)];
    let address = prop_oneof![
        (0..20u128).prop_map(|host| 0xffff_0a00_0000 | host),
        (0..3u128).prop_map(|host| 0xffff_ffff_ffff - host),
        // As short as one of IPv4, and none.
        0..5u128,
        any::<u128>(),
    ];
    let element = (
        prop::option::weighted(0.9, number()),
        // Sums of these fit.
        prop::option::weighted(0.9, signed().prop_map(|n| n / 1_000_000)),
        prop::option::weighted(0.9, signed()),
        prop::option::weighted(0.9, address),
    );
    prop::collection::vec(element, 0..40)
}

fn parts() -> impl Strategy<Value = Vec<Vec<Elements>>> {
    prop::collection::vec(prop::collection::vec(elements(), 1..4), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    // Whatever the values, however few groups are kept, however little memory there is.
    #[test]
    fn groups_are_those_that_the_engine_finds_by_itself(parts in parts(), most in 1..50usize, scarce in any::<bool>()) {
        let plain = context(&parts, None, usize::MAX);
        let most = if scarce { usize::MAX } else { most };
        // The second step takes some, the first nearly nothing.
        let memory = if scarce { 900 << 10 } else { usize::MAX };
        let grouped = context(&parts, Some(GroupByRule { most }), memory);
        for question in QUESTIONS {
            prop_assert_eq!(answer(&grouped, question), answer(&plain, question), "{}", question);
        }
    }
}

#[test]
fn only_what_it_can_do_is_taken() {
    let parts = vec![vec![vec![(Some(1), Some(1), Some(1), Some(1))]]; 3];
    let context = |threads: usize| context(&parts[..threads], Some(GroupByRule::default()), usize::MAX);
    let (one, three) = (context(1), context(3));
    let takes = |sql: &str| {
        let [by_one, by_three] =
            [&one, &three].map(|context| answer(context, &format!("explain {sql}")).contains("GroupExec"));
        assert_eq!(by_one, by_three, "{sql}");
        by_one
    };
    for question in QUESTIONS {
        assert!(takes(question), "{question}");
    }
    for question in [
        "select count(*) from t",
        "select u, i, count(*) from t group by u, i",
        "select u, count(*) filter (where i > 1) from t group by u",
        "select u, array_agg(i order by i) from t group by u",
        "select u > 1, count(*) from t group by u > 1",
        "select u, count(*) from t group by cube(u)",
        "select count(distinct 5) from t",
    ] {
        assert!(!takes(question), "{question}");
    }
}
