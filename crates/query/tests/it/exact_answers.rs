//! Questions that the engine alone answers wrongly, or not at all, with their answers over a few rows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::util::display::array_value_to_string;
use futures::TryStreamExt;
use holdfast_base::ByteSize;
use holdfast_query::{Engine, Limits, answer, ask, session};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Rows with every kind of float that is compared by bits somewhere.
const ROWS: &str = "with t(n, x, y, k) as (values (1, 0.0, 0.0, 1), (2, -0.0, 1.0, 2), (3, 'NaN'::double, 2.0, null), \
                    (4, -1.5, 'NaN', 3), (5, null, null, 3))";

#[test]
fn answers_are_exact_where_those_of_the_engine_are_not() {
    let context = session(&Limits::default(), Vec::new(), Vec::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for (question, expected) in [
        // All NaN are equal, and greater than all numbers.
        ("select min(x), max(x) from t", "-1.5 NaN"),
        ("select min(x) filter (where n = 3), max(x) filter (where n < 3) = 0 from t", "NaN true"),
        ("select n from t where x / 0.0 = 'NaN' order by n", "1, 2, 3"),
        ("select n from t where - x > 5 order by n", "3"),
        ("select count(distinct x / 0.0) from t", "2"),
        (
            "select n, min(x) over (order by n desc rows between 1 preceding and current row) from t order by n",
            "1 -0.0, 2 -0.0, 3 -1.5, 4 -1.5, 5 ",
        ),
        ("select n, rank() over (order by x * y) from t order by n", "1 1, 2 1, 3 3, 4 3, 5 5"),
        ("select x * y, count(*) from t where n in (3, 4) group by x * y", "NaN 2"),
        // Both zeros are equal.
        ("select n from t where x in (0.0, 7.5) order by n", "1, 2"),
        ("select n from t where nullif(x, 0.0) is null order by n", "1, 2, 5"),
        ("select count(*) from t where case x when 0.0 then true else false end", "2"),
        ("select count(*) from (select count(*) over (partition by x) c from t) where c = 2", "2"),
        ("select count(distinct x) from t group by rollup(k % 1) having grouping(k % 1) = 1", "3"),
        (
            "select a.n, b.n from t a join t b on a.x is not distinct from b.y where a.n < 3 order by 1",
            "1 1, 2 1",
        ),
        ("select count(*) from (select x from t where n = 1 intersect select x from t where n = 2)", "1"),
        // Lists of one value.
        ("select count(*) from t where k not in (1, 2) or k not in (3)", "4"),
        ("select count(*) from t where k in (1, 2) and k not in (2, null)", "0"),
        ("select count(*) from t where k in (n) and k in (n + 0)", "2"),
        ("select n from t where (k in (1) and k in (2)) is null", "3"),
        // Null keys among other joins.
        ("select count(*) from t a join t b on a.k is not distinct from b.k join t c on a.n = c.n", "7"),
        // Plans that the engine refuses.
        ("select count(distinct 5) from t", "1"),
        ("select count(*) from (select distinct (k between 1 and 2) is true from t)", "2"),
        ("select distinct on (k) k, n from t order by k nulls first, k desc, n", " 3, 1 1, 2 2, 3 4"),
        (
            "select n, rank() over (order by arrow_cast(n::text, 'Binary')) from t where n < 3 order by n",
            "1 1, 2 2",
        ),
    ] {
        let sql = format!("{ROWS} {question}");
        let batches = runtime.block_on(async { ask(&context, &sql).await?.collect().await });
        let batches = batches.unwrap_or_else(|error| panic!("{question}: {error}"));
        let rows = batches.iter().flat_map(|batch| {
            (0..batch.num_rows()).map(|row| {
                let cell = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
                batch.columns().iter().map(cell).collect::<Vec<_>>().join(" ")
            })
        });
        assert_eq!(rows.collect::<Vec<_>>().join(", "), expected, "{question}");
    }
}

#[test]
fn many_sorts_share_the_memory() {
    let limits =
        Limits { memory: ByteSize::mib(64), threads: NonZeroUsize::new(2).unwrap(), ..Limits::default() };
    let context = session(&limits, Vec::new(), Vec::new()).unwrap();
    let engine = Engine { context, diagnostics: Arc::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut sql = "select n from t".to_owned();
    for number in 0..16 {
        sql = format!("({sql}) except all select n + {number} from t where n < 0");
    }
    let batches: Vec<RecordBatch> = runtime
        .block_on(async { answer(&engine, &format!("{ROWS} {sql}")).await?.try_collect().await })
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
}
