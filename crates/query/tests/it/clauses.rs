//! Clauses of SQL that are rewritten before the engine plans them, with answers of `PostgreSQL`, and clauses that are
//! refused because the engine would ignore them.

use datafusion::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringArray, TimestampNanosecondArray, UInt64Array,
};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::catalog::MemTable;
use datafusion::prelude::SessionContext;
use holdfast_query::condition_search::{Search, SearchScope};
use holdfast_query::{Limits, ask, session};
use std::sync::Arc;
use tokio::runtime::Runtime;

const ROWS: &str = "with t(n, a, b, s) as (values (1, 1, 2, 'ab'), (2, 1, null, 'b'), (3, null, 3, 'ab\nc'), \
                    (4, null, null, null), (5, 2, 1, 'a.c'), (6, 1, 2, ''))";

fn engine() -> (SessionContext, Runtime) {
    let context = session(&Limits::default(), Vec::new(), Vec::new()).unwrap();
    (context, tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap())
}

/// Rows of an answer, or its error.
fn answer((context, runtime): &(SessionContext, Runtime), question: &str) -> Result<Vec<String>, String> {
    let sql = if question.starts_with("with") { question.to_owned() } else { format!("{ROWS} {question}") };
    let batches = runtime.block_on(async { ask(context, &sql).await?.collect().await });
    let batches = batches.map_err(|error| error.to_string())?;
    let rows = batches.iter().flat_map(|batch| {
        (0..batch.num_rows()).map(|row| {
            let cell = |column: &ArrayRef| array_value_to_string(column, row).unwrap();
            batch.columns().iter().map(cell).collect::<Vec<_>>().join(" ")
        })
    });
    Ok(rows.collect())
}

/// Asserts answers; those without an order in any order.
fn assert_answers(cases: &[(&str, &str)]) {
    let engine = engine();
    let mut wrong = Vec::new();
    for (question, expected) in cases {
        let mut expected: Vec<String> = match *expected {
            "" => Vec::new(),
            rows => rows.split(", ").map(str::to_owned).collect(),
        };
        let mut rows = answer(&engine, question);
        if !question.contains("order by") || question.contains("over") {
            expected.sort_unstable();
            let _ = rows.as_mut().map(|rows| rows.sort_unstable());
        }
        if rows.as_ref() != Ok(&expected) {
            wrong.push(format!("{question}\n  expected {expected:?}\n  is       {rows:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn compared_rows_have_the_answers_of_postgresql() {
    assert_answers(&[
        ("select n from t where (a, b) = (1, 2)", "1, 6"),
        ("select n from t where (a, b) <> (1, 2)", "3, 5"),
        ("select n from t where not ((a, b) = (1, 2))", "3, 5"),
        ("select n from t where not ((a, b) <> (1, 2))", "1, 6"),
        ("select n from t where (a, b) < (1, 3)", "1, 6"),
        ("select n from t where (a, b) <= (1, 2)", "1, 6"),
        ("select n from t where (a, b) > (1, 1)", "1, 5, 6"),
        ("select n from t where (a, b) >= (2, 0)", "5"),
        ("select n from t where not ((a, b) < (1, 3))", "5"),
        ("select n from t where ((a, b) < (1, 3)) is null", "2, 3, 4"),
        ("select n from t where (a, b, n) < (1, 2, 6)", "1"),
        ("select n from t where row(a, b) = row(1, 2)", "1, 6"),
        ("select n from t where (a, b) in ((1, 2), (2, 1), (null, 3))", "1, 5, 6"),
        ("select n from t where (a, b) not in ((1, 2), (2, 2))", "3, 5"),
        ("select n from t where not ((a, b) in ((1, 2), (2, null)))", ""),
        ("select n from t where ((a, b) in ((1, 2), (2, null))) is null", "2, 3, 4, 5"),
        ("select n from t where (a, b) is not distinct from (1, null)", "2"),
        ("select n from t where (a, b) is distinct from (1, null)", "1, 3, 4, 5, 6"),
        ("select n from t where (a, b) is null", "4"),
        ("select n from t where (a, b) is not null", "1, 5, 6"),
        ("select n from t where not ((a, b) is null)", "1, 2, 3, 5, 6"),
        ("select n from t where row(a, b) is not null", "1, 5, 6"),
        ("select n from t where (a, b) between (1, 2) and (2, 0)", "1, 6"),
        ("select n from t where (a, b) not between (1, 0) and (1, 5)", "5"),
        ("select n from t where (n, (a, b)) = (1, (1, 2))", "1"),
        ("select n from t where (n, (a, b)) < (5, (2, 2))", "1, 2, 3, 4, 5"),
        ("select n, (a, b) = (1, 2) from t", "1 true, 2 , 3 false, 4 , 5 false, 6 true"),
        ("select n from t where (a, b) in (select a, b from t where n in (1, 2))", "1, 6"),
        ("select n from t where (a, b) not in (select a, b from t where n in (1, 2))", "5"),
        ("select n from t where (a, b) not in (select a, b from t where n = 1)", "3, 5"),
        ("select n from t where not ((a, b) in (select a, b from t where n = 1))", "3, 5"),
        ("select n from t where not ((a, b) not in (select a, b from t where n = 5))", "5"),
        ("select n from t where (a, b) in (select a, b from t where n > 6)", ""),
        ("select n from t where (n, n) in (select n, t.n from t where n < 3)", "1, 2"),
        ("select n from t where (a, b) not in (select a, b from t where n > 6)", "1, 2, 3, 4, 5, 6"),
        ("select n from t where (n, a) in (values (1, 1), (2, 3), (5, 2))", "1, 5"),
        ("select n from t where (a, b) = any (select a, b from t where n < 3)", "1, 6"),
        ("select n from t where (a, b) <> all (select a, b from t where n = 1)", "3, 5"),
        ("select n from t where (a, b) in (select a, b from t where n = 1) and n > 2", "6"),
        ("select n from t where n = 5 or (a, b) in (select a, b from t where n = 1)", "1, 5, 6"),
        ("select a, b, count(*) from t group by (a, b) order by a, b", "1 2 2, 1  1, 2 1 1,  3 1,   1"),
    ]);
}

#[test]
fn windows_and_standard_forms_have_the_answers_of_postgresql() {
    assert_answers(&[
        ("select n from t order by n fetch first 2 rows only", "1, 2"),
        ("select n from t order by n offset 1 rows fetch next row only", "2"),
        ("select n from t where n between symmetric 4 and 2", "2, 3, 4"),
        ("select n from t where n not between symmetric 4 and 2", "1, 5, 6"),
        ("select n from t where n between asymmetric 4 and 2", ""),
        ("select n from t where not (b between symmetric a and 1) order by n", "1, 6"),
        ("select n, b between symmetric 5 and a from t", "1 true, 2 , 3 , 4 , 5 false, 6 true"),
        ("select n from t where s similar to 'a%'", "1, 3, 5"),
        ("select n from t where s not similar to 'a%'", "2, 6"),
        ("select n from t where not (s similar to '%')", ""),
        ("select n from t where (s similar to '%') is null", "4"),
        ("select n from t where s similar to 'a.c'", "5"),
        ("select n from t where s similar to '(a|b)+'", "1, 2"),
        ("select n from t where s similar to 'b|ab_c'", "2, 3"),
        ("select n from t where s similar to '[ab]{2}'", "1"),
        ("select n from t where s similar to 'a#.c' escape '#'", "5"),
        ("select n from t where s similar to ''", "6"),
        ("select n, rank() over w from t window w as (order by a)", "1 1, 2 1, 6 1, 5 4, 3 5, 4 5"),
        ("select n, sum(n) over (w) from t window w as (order by n)", "1 1, 2 3, 3 6, 4 10, 5 15, 6 21"),
        (
            "select n, sum(n) over (w order by n) from t window w as (partition by a)",
            "1 1, 2 3, 6 9, 5 5, 3 3, 4 7",
        ),
        (
            "select n, sum(n) over (w rows between 1 preceding and current row) from t window w as (order by n)",
            "1 1, 2 3, 3 5, 4 7, 5 9, 6 11",
        ),
        (
            "select n, sum(n) over x from t window w as (partition by a), x as (w order by n)",
            "1 1, 2 3, 6 9, 5 5, 3 3, 4 7",
        ),
        ("select n from t window w as (order by a desc, n) order by row_number() over w", "3, 4, 5, 1, 2, 6"),
        (
            "select a, count(*) over w from t window w as (partition by a) order by count(*) over w, a",
            "2 1,  2,  2, 1 3, 1 3, 1 3",
        ),
        (
            "select n, sum(n) over \"W\" from t window \"W\" as (order by n desc), w as (partition by a)",
            "6 6, 5 11, 4 15, 3 18, 2 20, 1 21",
        ),
        (
            "select distinct on (count(*) over w) n from t window w as (partition by a) order by count(*) over w, n",
            "5, 3, 1",
        ),
        (
            "select n, (select count(*) over w from t x window w as () limit 1), count(*) over w from t window w as (partition by a)",
            "1 6 3, 2 6 3, 6 6 3, 5 6 1, 3 6 2, 4 6 2",
        ),
        (
            "select n, count(*) over w from t where n < 3 window w as (order by n) union all select n, count(*) over w from t where n > 4 window w as (order by n desc) order by n",
            "1 1, 2 2, 5 2, 6 1",
        ),
        (
            "select n, first_value(n) over w from t window w as (order by n rows between 1 preceding and 1 following)",
            "1 1, 2 1, 3 2, 4 3, 5 4, 6 5",
        ),
        (
            "with recursive r(i) as (select 1 union all select i + 1 from r where i < 9) select i from r order by i limit 3",
            "1, 2, 3",
        ),
        ("select count(b order by n) from t", "4"),
        ("select count(a + 0 order by b), sum(b order by a, n desc) from t", "4 8"),
        ("select a, count(b + 0 order by n, n) from t group by a order by a", "1 2, 2 1,  1"),
        ("select string_agg(s, '-' order by n desc, n) from t where n in (1, 2)", "b-ab"),
    ]);
}

/// Asserts refusals, each with a part of its message.
fn assert_refused(cases: &[(&str, &str)]) {
    let engine = engine();
    let mut wrong = Vec::new();
    for (question, expected) in cases {
        match answer(&engine, question) {
            Err(error) if error.contains(expected) => {}
            other => wrong.push(format!("{question}\n  expected {expected:?}\n  is       {other:?}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn clauses_without_effect_are_refused() {
    const IGNORED: &str = "it would have no effect";
    assert_refused(&[
        ("select n from t prewhere n > 3", "cannot use `prewhere`"),
        ("select a, count(*) from t group by a with rollup", IGNORED),
        ("select a, count(*) from t group by a with totals", IGNORED),
        ("select n from t start with n = 1 connect by prior n = a", "`connect by` or `start with`"),
        ("select n from t for update", IGNORED),
        ("select n from t settings x = 1", IGNORED),
        ("select n from t format CSV", IGNORED),
        ("select n from t limit 1 by a", IGNORED),
        ("select n into x from t union all select n from t", IGNORED),
        ("select top 1 n from t", IGNORED),
        ("select n from t with (nolock)", IGNORED),
        ("select n from t partition (p)", IGNORED),
        ("select * from t global join t x on t.n = x.n", IGNORED),
        ("select * from t as x(n int, a, b, s)", IGNORED),
        ("select * rename (n as m) from t", IGNORED),
        ("select * from t join t x", "cannot join without a condition"),
        ("select * from t right join t x using (n)", "in a right or full join"),
        ("select n from (t right join t x using (n))", "in a right or full join"),
        ("from t", "`from` without `select`"),
        ("from t |> where n > 3", "cannot use"),
        ("select n from t tablesample bernoulli (10)", "cannot sample a table"),
        ("with recursive r(i) as (select 1 union all select i + 1 from r limit 1) select i from r", IGNORED),
        ("select n from t where n > 3 fetch first 10 percent rows only", "only a number of rows"),
        ("select n from t limit 1 fetch first 1 row only", "together"),
        // Calls.
        ("select abs(n) over () from t", "cannot use `over` with `abs`"),
        ("select n from t where abs(n) filter (where n > 3) > 0", "cannot use `filter` with `abs`"),
        ("select upper(distinct s) from t", "cannot use `distinct` with `upper`"),
        ("select upper(s order by s) from t", "cannot use `order by` with `upper`"),
        ("select upper(s) ignore nulls from t", "cannot use `ignore nulls` with `upper`"),
        ("select sum(0.5)(n) from t", "cannot call `sum` with two lists"),
        ("select row_number() filter (where n > 3) over () from t", "cannot use `filter` with `row_number`"),
        (
            "select first_value(distinct a) over (order by n) from t",
            "cannot use `distinct` with `first_value`",
        ),
        ("select rank() ignore nulls over (order by n) from t", "cannot use `ignore nulls` with `rank`"),
        ("select max(a) respect nulls over () from t", "cannot use `ignore nulls` with `max`"),
        ("select count(distinct *) from t", "only count(*) takes all columns"),
        ("select count(t.*) from t", "only count(*) takes all columns"),
        ("select coalesce(nullif(random(), 2), 1)", "another value at each call"),
        ("select n from t where random() between 0.25 and 0.75", "another value at each call"),
        ("select n from t where (n, random()) < (1, 2)", "another value at each call"),
        // Expressions.
        ("select n from t where a xor b", "cannot use `xor`"),
        ("select n from t where s::varchar(1) = 'a'", "the length would have no effect"),
        ("select s::char from t", "the length would have no effect"),
        ("select trim(s, 'a', 'b') from t", IGNORED),
        ("select n from t where s like any ('a%')", "`like any`"),
        ("select n from t where n = any (array_agg(n))", "only a query is supported"),
        ("select struct(n) from t", "cannot make a struct"),
        ("select (n, a) from t", "cannot use the row"),
        ("select n from t order by (n, a)", "cannot use the row"),
        ("select n from t where case (a, b) when (1, 2) then true end", "cannot use the row"),
        ("select n from t where (a, b) = 1", "only one of them is a row"),
        ("select n from t where (a, b) = (1, 2, 3)", "different numbers of values"),
        ("select n from t where (a, (b, n)) is null", "cannot test the row"),
        ("select n from t where (a, b) < any (select a, b from t)", "only `in`, `= any` and `<> all`"),
        ("select n from t where (n, (a, b)) in (select 1, (1, 2))", "only one of them is a row"),
        (
            "select n from t where (a, b) in (select 1, x.b from t x where x.n = t.n)",
            "cannot compare a row with a query that names columns of the query around it",
        ),
        ("select n from t where s similar to a::text", "the pattern has to be a text in quotes"),
        ("select n from t where s similar to '*a'", "cannot use the pattern"),
        ("select n from t where s similar to 'a' escape '##'", "takes one character"),
        // Windows.
        ("select sum(n) over w from t", "cannot find window `w`"),
        ("select sum(n) over (w) from t window v as (w), w as ()", "cannot find window `w`"),
        ("select n from t order by sum(n) over w", "cannot find window `w`"),
        (
            "select sum(n) over (w partition by b) from t window w as (partition by a)",
            "`partition by` of window `w`",
        ),
        ("select sum(n) over (w order by b) from t window w as (order by a)", "`order by` of window `w`"),
        (
            "select sum(n) over (w) from t window w as (order by n rows unbounded preceding)",
            "write `over w` without parentheses",
        ),
        ("select sum(n) over w from t window w as (), w as (order by n)", "cannot define window `w` twice"),
        ("select n from t where sum(n) over w > 3 window w as ()", "cannot use window `w` in this place"),
    ]);
}

/// A stream in memory: the rows of `ROWS`, in one slot.
fn stream() -> Arc<MemTable> {
    let (a, b) =
        ([Some(1), Some(1), None, None, Some(2), Some(1)], [Some(2), None, Some(3), None, Some(1), Some(2)]);
    let s = [Some("ab"), Some("b"), Some("ab\nc"), None, Some("a.c"), Some("")];
    let columns: [(&str, ArrayRef); 6] = [
        ("ordinal", Arc::new(UInt64Array::from_iter_values(1..7))),
        ("slot", Arc::new(UInt64Array::from(vec![0; 6]))),
        ("time", Arc::new(TimestampNanosecondArray::from_iter_values(1..7).with_timezone("UTC"))),
        ("a", Arc::new(Int64Array::from_iter(a))),
        ("b", Arc::new(Int64Array::from_iter(b))),
        ("s", Arc::new(StringArray::from_iter(s))),
    ];
    let columns = columns.map(|(name, values)| (name, values, true));
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap())
}

#[test]
fn conditions_of_holds_take_the_same_way() {
    let context = session(&Limits::default(), Vec::new(), vec![("t".to_owned(), stream())]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let found = |condition: &str| {
        let search = Search { condition: condition.to_owned(), when: None };
        let found = runtime.block_on(search.found(&context, "t", &SearchScope::ALL));
        found
            .map(|found| found.iter().map(|found| found.elements).sum::<u64>())
            .map_err(|error| error.to_string())
    };
    for (condition, elements) in [
        ("(a, b) < (1, 3)", 2),
        ("not ((a, b) < (1, 3))", 1),
        ("(a, b) not in ((1, 2), (2, 2))", 2),
        ("row(a, b) is null", 1),
        ("ordinal between symmetric 4 and 2", 3),
        ("s similar to 'a%'", 3),
        ("s not similar to 'a%'", 2),
    ] {
        assert_eq!(found(condition), Ok(elements), "{condition}");
    }
    for (condition, expected) in [
        ("abs(a) filter (where b > 1) > 0", "cannot use `filter` with `abs`"),
        ("a xor b", "cannot use `xor`"),
        ("s::varchar(1) = 'a'", "the length would have no effect"),
        ("(a, b) = 1", "only one of them is a row"),
        ("a > 1 as b", "cannot use `b` in a condition"),
    ] {
        let error = found(condition).expect_err(condition);
        assert!(error.contains(expected), "{condition}: {error}");
    }
}
