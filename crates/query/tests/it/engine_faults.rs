//! Questions that the engine has open reports of wrong answers for: each is answered as `PostgreSQL` does, or refused.
//!
//! The list of reports is read again at each update of the engine.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::util::display::array_value_to_string;
use holdfast_query::{Limits, ask, session};
use std::num::NonZeroUsize;

/// Rows with nulls in every column but the first.
const ROWS: &str = "with t(n, k, v, s) as (values (1, 1, 10, 'a'), (2, 1, null, 'b'), (3, 2, 30, null), (4, null, 40, 'a'), \
                    (5, 2, null, null), (6, 3, null, 'c')), \
                    o(k, v) as (values (1, 10), (1, null), (4, 40), (null, 7)), \
                    i(n, z) as (values (1, '2026-03-29 00:30:00'::timestamp), (2, '2026-03-29 01:30:00'::timestamp), (3, null))";

/// Numbers of the reports, a question, and its answer; "cannot" is a refusal, or an error of a value.
const QUESTIONS: [(&str, &str, &str); 50] = [
    // `not in`, correlated or of constants.
    ("25347", "select n from t where 3 not in (select k from o) order by n", ""),
    ("25336", "select n from t where k not in (select o.k from o where o.v = t.v) order by n", "2, 3, 5, 6"),
    ("25480", "select n from t where k not in (select null::bigint) order by n", ""),
    (
        "25480",
        "select n from t where null not in (select k from o where k > 9) order by n",
        "1, 2, 3, 4, 5, 6",
    ),
    (
        "25340",
        "select n from t where (k not in (select k from o where k is not null)) is null order by n",
        "4",
    ),
    ("8241", "select n from t where k not in (select k from o where v is null) order by n", "3, 5, 6"),
    // A correlated condition below an outer join.
    (
        "25507",
        "select n from t where exists (select 1 from o left join t u on u.n = o.k and o.k = t.k where u.n is null) order by n",
        "cannot",
    ),
    // Orders of aggregates.
    ("25055", "select count(v + 0 order by k), count(k + 0 order by v) from t", "3 5"),
    ("25401", "select k, count(v order by s) from t group by k order by k", "1 1, 2 1, 3 0,  1"),
    (
        "25401",
        "select sum(v order by k), min(v order by s), max(s order by v), avg(v order by s) from t",
        "80 10 c 26.666666666666668",
    ),
    (
        "25401",
        "select count(distinct k order by k), median(v order by s), bit_or(n order by v), bool_and(n > 0 order by k) from t",
        "3 30.0 7 true",
    ),
    ("25398", "select array_agg(n order by k, k desc, n) from t", "[1, 2, 3, 5, 6, 4]"),
    ("25398", "select string_agg(s, ',' order by n, n) from t", "a,b,a,c"),
    ("25398", "select first_value(n order by v desc nulls last, v) from t", "4"),
    // Offsets over an order by what is not in the list.
    ("23534", "select n from t where k in (select k from t order by n desc offset 4) order by n", "1, 2"),
    ("23534", "select k, count(*) from (select k from t order by n desc offset 4) x group by k", "1 2"),
    ("23534", "select x.s from (select s from t order by n desc offset 5) x join t on t.n = 1", "a"),
    // Sets of groups over sorted and constant rows, with one thread.
    (
        "16965",
        "select v from (select 'id' v union all select 'id' v) group by grouping sets ((v), ()) order by v nulls last",
        "id, ",
    ),
    (
        "24421",
        "select k, s, count(*) from (select k, s, row_number() over (order by k) from t union all select k, v::text, 1 from o) \
         group by rollup (k, s) having k = 1 order by s nulls last, 3",
        "1 10 1, 1 a 1, 1 b 1, 1  1, 1  4",
    ),
    // Lists with null, and powers.
    ("24246", "select n from t where k in (1, null) order by n", "1, 2"),
    ("24246", "select n from t where k not in (1, null) order by n", ""),
    ("24246", "select n from t where (k not in (2, null)) is null order by n", "1, 2, 4, 6"),
    ("24246", "select n from t where s in ('a', null) and s not in ('b') order by n", "1, 4"),
    ("24246", "select power(2, 10), power(2.0, -1), power(-2, 3)", "1024.0 0.5 -8.0"),
    // Set operations with counts.
    ("12955", "select k from t intersect all select k from o order by k", "1, 1, "),
    ("12955", "select k from t except all select k from o order by k", "2, 2, 3"),
    // Time zones: times have none, or that of UTC.
    ("25095", "select n from i where z at time zone 'UTC' = '2026-03-29T00:30:00Z' order by n", "1"),
    ("25095", "select date_trunc('hour', z at time zone 'UTC') from i where n = 2", "2026-03-29T01:00:00Z"),
    ("25166", "select n from i where z::timestamptz < '2026-03-29T01:00:00Z'::timestamptz order by n", "1"),
    (
        "25166",
        "select n from i where z::timestamptz = '2026-03-29T02:30:00+02:00'::timestamptz order by n",
        "1",
    ),
    ("12218", "select date_part('hour', z::timestamptz) from i where n = 2", "1"),
    ("12218", "select date_bin(interval '1 day', z::timestamptz) from i where n = 1", "2026-03-29T00:00:00Z"),
    // The first groups by an aggregate that is null.
    ("22190", "select k, max(v) m from t group by k order by m nulls first, k limit 2", "3 , 1 10"),
    ("22190", "select s, min(v) m from t group by s order by m nulls last, s limit 4", "a 10,  30, b , c "),
    ("23440", "select m from (select k, max(v) m from t group by k) order by m desc nulls first limit 1", ""),
    ("23440", "select k from (select distinct k from t) order by k desc nulls first limit 2", ", 3"),
    // Windows that leave rows behind.
    (
        "19612",
        "select n, sum(v) over (order by n rows between 2 preceding and 1 preceding) from t order by n",
        "1 , 2 10, 3 10, 4 30, 5 70, 6 40",
    ),
    (
        "19612",
        "select n, min(v) over (order by n rows between 1 following and 2 following) from t order by n",
        "1 30, 2 30, 3 40, 4 , 5 , 6 ",
    ),
    (
        "19612",
        "select n, count(v) over (order by n rows between 1 preceding and 1 preceding), avg(v) over (order by n rows 1 preceding) \
         from t order by n",
        "1 0 10.0, 2 1 10.0, 3 0 30.0, 4 1 35.0, 5 1 40.0, 6 0 ",
    ),
    // Conditions that a join finds out while it runs.
    (
        "25147",
        "select t.n from t join (select k from o order by v limit 1) x on t.k is not distinct from x.k order by n",
        "4",
    ),
    (
        "25147",
        "select t.n from t left join o on t.k = o.k where coalesce(o.v, 0) = 0 order by n",
        "1, 2, 3, 4, 5, 6",
    ),
    // A union of conditions on one table.
    ("25071", "select n from t where k = 1 union select n from t where v > 20 order by n", "1, 2, 3, 4"),
    ("25071", "select n from t where k = 1 union all select n from t where n < 3 order by n", "1, 1, 2, 2"),
    // One value of a function for each row.
    ("25457", "select count(*) from t where random() between 0.5 and 0.5", "cannot"),
    ("25457", "select count(*) from t where random() in (0.5, 0.25)", "cannot"),
    ("25457", "select count(*) from (select random() r, n from t) where r not between 0 and 1", "0"),
    ("25477", "select count(*) from t where coalesce(random(), 2) > 1", "cannot"),
    ("25477", "select n from t where nullif(random(), 2) < 0", "cannot"),
    // The second part of a condition may fail where the first one is false: no wrong value.
    ("8927", "select n from t where k <> 1 and 10 / (k - 1) > 4 order by n", "cannot"),
    (
        "8927",
        "select case when k = 1 then 0 else 10 / (k - 1) end from t where k is not null order by n",
        "0, 0, 10, 10, 5",
    ),
];

#[test]
fn open_reports_of_wrong_answers_do_not_concern_us() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let mut wrong = Vec::new();
    for threads in [1, 2] {
        let limits = Limits { threads: NonZeroUsize::new(threads).unwrap(), ..Limits::default() };
        let context = session(&limits, Vec::new(), Vec::new()).unwrap();
        for (report, question, expected) in QUESTIONS {
            let sql = format!("{ROWS} {question}");
            let answer = match runtime.block_on(async { ask(&context, &sql).await?.collect().await }) {
                Err(error) => error.to_string(),
                Ok(batches) => {
                    let rows = batches.iter().flat_map(|batch| {
                        (0..batch.num_rows()).map(|row| {
                            let cell = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
                            batch.columns().iter().map(cell).collect::<Vec<_>>().join(" ")
                        })
                    });
                    rows.collect::<Vec<_>>().join(", ")
                }
            };
            let is_refused = answer.contains("cannot ") || answer.contains("Divide by zero");
            if answer != expected && !(expected == "cannot" && is_refused) {
                wrong.push(format!("{report}, {threads} threads: {question}: {answer:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
