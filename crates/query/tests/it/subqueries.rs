//! Subqueries over the rows of the query around them, generated and compared with an evaluation row by row.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::array_value_to_string;
use holdfast_media::Seed;
use holdfast_query::{Limits, ask, session};
use holdfast_sim::seeds;
use std::fmt::Write;

const QUESTIONS: usize = 120;
const ROWS: u64 = 9;

/// A row: its number, a key, and two values.
#[derive(Clone, Copy)]
struct Row {
    n: i64,
    k: i64,
    x: Option<i64>,
    y: Option<i64>,
}

fn rows(random: &mut Seed) -> Vec<Row> {
    let nulls = random.below(3);
    let mut some = |of: u64| {
        let value = random.below(of) as i64;
        (random.below(10) >= 2 * nulls).then_some(value)
    };
    (0..ROWS).map(|n| Row { n: n as i64, k: n as i64 % 4, x: some(5), y: some(4) }).collect()
}

/// The rows as a table `t` of a `with`, and one with half of them, `u`.
fn tables(rows: &[Row]) -> String {
    let mut values = String::new();
    let text = |value: Option<i64>| value.map_or("null".to_owned(), |value| value.to_string());
    for row in rows {
        let comma = if values.is_empty() { "" } else { ", " };
        write!(values, "{comma}({}, {}, {}, {})", row.n, row.k, text(row.x), text(row.y)).unwrap();
    }
    format!(
        "with t as (select column1 n, column2 k, column3::bigint x, column4::bigint y from (values {values})), \
         u as (select * from t where n < 5)"
    )
}

/// The value of a comparison, which may be null.
type Value = Option<bool>;

fn not(value: Value) -> Value {
    value.map(|value| !value)
}

/// The value of `ANY` over some comparisons.
fn any(values: impl Iterator<Item = Value>) -> Value {
    let values: Vec<Value> = values.collect();
    if values.contains(&Some(true)) {
        return Some(true);
    }
    if values.contains(&None) { None } else { Some(false) }
}

/// The value of a left side for a row.
type Side = fn(&Row) -> Option<i64>;

/// The left side of a comparison.
fn left(random: &mut Seed) -> (&'static str, Side) {
    const LEFT: [(&str, Side); 8] = [
        ("x", |row| row.x),
        ("t.x", |row| row.x),
        ("y", |row| row.y),
        ("n", |row| Some(row.n)),
        ("nullif(n, 5)", |row| (row.n != 5).then_some(row.n)),
        ("x + 1", |row| row.x.map(|x| x + 1)),
        ("3", |_| Some(3)),
        ("null::bigint", |_| None),
    ];
    LEFT[random.below(LEFT.len() as u64) as usize]
}

type Values = fn(&[Row], &Row) -> Vec<Option<i64>>;

/// A subquery and its values beside a row.
fn subquery(random: &mut Seed) -> (&'static str, Values) {
    const SUBQUERIES: [(&str, Values); 16] = [
        ("select x from t where n in (0, 2)", |all, _| {
            all.iter().filter(|row| row.n == 0 || row.n == 2).map(|row| row.x).collect()
        }),
        ("select x from t", |all, _| all.iter().map(|row| row.x).collect()),
        ("select t.x from t where t.x is not null", |all, _| {
            all.iter().filter(|row| row.x.is_some()).map(|row| row.x).collect()
        }),
        ("select n from t where k = 1", |all, _| {
            all.iter().filter(|row| row.k == 1).map(|row| Some(row.n)).collect()
        }),
        ("select distinct y from t", |all, _| all.iter().map(|row| row.y).collect()),
        ("select x from t union select y from t", |all, _| {
            all.iter().flat_map(|row| [row.x, row.y]).collect()
        }),
        ("select x from t order by n desc limit 2", |all, _| {
            all.iter().rev().take(2).map(|row| row.x).collect()
        }),
        ("select x from t where n < 0", |_, _| Vec::new()),
        ("select max(x) from t group by k", |all, _| {
            (0..4).map(|k| all.iter().filter(|row| row.k == k).filter_map(|row| row.x).max()).collect()
        }),
        ("select t.x from t join u on t.k = u.k", |all, _| {
            all.iter().filter(|row| all[..5].iter().any(|other| other.k == row.k)).map(|row| row.x).collect()
        }),
        ("select max(x) from t", |all, _| vec![all.iter().filter_map(|row| row.x).max()]),
        ("select i.x from t i where i.k = t.k", |all, row| {
            all.iter().filter(|other| other.k == row.k).map(|row| row.x).collect()
        }),
        ("select v from (select y v, k w from t) where w = t.k", |all, row| {
            all.iter().filter(|other| other.k == row.k).map(|row| row.y).collect()
        }),
        ("select distinct i.y from u i where i.x = t.x", |all, row| {
            let is_same = |other: &&Row| row.x.is_some() && other.x == row.x;
            all[..5].iter().filter(is_same).map(|row| row.y).collect()
        }),
        ("select i.x from t i where i.k = t.k order by i.n", |all, row| {
            all.iter().filter(|other| other.k == row.k).map(|row| row.x).collect()
        }),
        ("select min(i.x) from t i where i.k = t.k group by i.y", |all, row| {
            let of = |y| all.iter().filter(move |other| other.k == row.k && other.y == y);
            let keys = [None, Some(0), Some(1), Some(2), Some(3)].into_iter();
            let keys = keys.filter(|y| of(*y).next().is_some());
            keys.map(|y| of(y).filter_map(|row| row.x).min()).collect()
        }),
    ];
    SUBQUERIES[random.below(SUBQUERIES.len() as u64) as usize]
}

/// A comparison of two values.
type Compared = fn(&i64, &i64) -> bool;

/// Comparisons by their signs.
const OPERATORS: [(&str, Compared); 6] = [
    ("=", |one, other| one == other),
    ("<>", |one, other| one != other),
    ("<", |one, other| one < other),
    ("<=", |one, other| one <= other),
    (">", |one, other| one > other),
    (">=", |one, other| one >= other),
];

/// A condition with a subquery, and its value for each row.
fn condition(random: &mut Seed, all: &[Row]) -> (String, Vec<Value>) {
    let ((left, expr), (subquery, values)) = (left(random), subquery(random));
    if random.below(6) == 0 {
        let (word, is_negated) = [("exists", false), ("not exists", true)][random.below(2) as usize];
        let value = |row: &Row| Some(values(all, row).is_empty() == is_negated);
        return (format!("{word} ({subquery})"), all.iter().map(value).collect());
    }
    let (sign, holds) = OPERATORS[random.below(6) as usize];
    let compared = |row: &Row, holds: Compared| {
        let left = expr(row);
        values(all, row).into_iter().map(move |value| Some(holds(&left?, &value?)))
    };
    let of = |holds, is_any: bool| {
        let value = |row: &Row| {
            if is_any { any(compared(row, holds)) } else { not(any(compared(row, holds).map(not))) }
        };
        all.iter().map(value).collect()
    };
    match random.below(4) {
        0 => (format!("{left} in ({subquery})"), of(OPERATORS[0].1, true)),
        1 => (format!("{left} not in ({subquery})"), of(OPERATORS[1].1, false)),
        2 => (format!("{left} {sign} any ({subquery})"), of(holds, true)),
        _ => (format!("{left} {sign} all ({subquery})"), of(holds, false)),
    }
}

/// A question, and its answer.
fn question(random: &mut Seed, all: &[Row]) -> (String, Vec<String>) {
    let (text, values) = condition(random, all);
    let (other_text, other) = condition(random, all);
    let pairs = || all.iter().zip(&values);
    let kept = |holds: &dyn Fn(&Row, Value) -> bool| {
        pairs().filter(|(row, value)| holds(row, **value)).map(|(row, _)| row.n.to_string()).collect()
    };
    let shown = |value: Value| value.map_or(String::new(), |value| value.to_string());
    let question = |condition: String| format!("select n from t where {condition} order by n");
    let is = |value: Value| value == Some(true);
    match random.below(15) {
        0 => (question(text), kept(&|_, value| is(value))),
        1 => (question(format!("not ({text})")), kept(&|_, value| value == Some(false))),
        2 => (question(format!("{text} or n > 5")), kept(&|row, value| is(value) || row.n > 5)),
        3 => (question(format!("{text} and n > 2")), kept(&|row, value| is(value) && row.n > 2)),
        4 => (question(format!("({text}) is null")), kept(&|_, value| value.is_none())),
        5 => (question(format!("({text}) is not true")), kept(&|_, value| !is(value))),
        6 => (question(format!("not ({text} and x < 3)")), {
            kept(&|row, value| any([not(value), row.x.map(|x| x >= 3)].into_iter()) == Some(true))
        }),
        7 => (question(format!("case when {text} then n < 4 else n > 6 end")), {
            kept(&|row, value| if is(value) { row.n < 4 } else { row.n > 6 })
        }),
        8 => (question(format!("{text} or {other_text}")), {
            kept(&|row, value| is(value) || is(other[row.n as usize]))
        }),
        9 => (question(format!("{text} and not ({other_text})")), {
            kept(&|row, value| is(value) && other[row.n as usize] == Some(false))
        }),
        10 => (format!("select n, {text} from t order by n"), {
            pairs().map(|(row, value)| format!("{} {}", row.n, shown(*value))).collect()
        }),
        11 => (format!("select n, {text} p, not ({other_text}) q from t order by n"), {
            let rows = pairs().zip(&other);
            rows.map(|((row, value), other)| format!("{} {} {}", row.n, shown(*value), shown(not(*other))))
                .collect()
        }),
        12 => (format!("select count(*) from (select n, {text} p from t) where p is null"), {
            vec![values.iter().filter(|value| value.is_none()).count().to_string()]
        }),
        13 => (format!("select count(*) filter (where {text}), count(n) from t"), {
            vec![format!("{} {ROWS}", values.iter().filter(|value| is(**value)).count())]
        }),
        _ => (format!("select n from t order by ({text}) is true desc, n"), {
            let mut rows: Vec<_> = pairs().collect();
            rows.sort_by_key(|(row, value)| (!is(**value), row.n));
            rows.into_iter().map(|(row, _)| row.n.to_string()).collect()
        }),
    }
}

fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let line = |batch: &RecordBatch, row| {
        let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
        cells.collect::<Vec<_>>().join(" ")
    };
    batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| line(batch, row))).collect()
}

/// Rows for the shapes below.
const SHAPES: &str = "with a(n, k, x) as (values (0, 1, 2), (1, 2, null), (2, 1, 4), (3, null, 1), (4, 3, 1)), \
                      b(n, k, x) as (values (0, 1, 3), (1, 1, 2), (2, 2, 2), (3, 2, null), (4, null, 1), (5, 4, 0))";

/// Questions over them, with the answers of `DuckDB`.
const ANSWERS: &[(&str, &str)] = &[
    (
        "select n from a where exists (select 1 from (select x from b where b.k = a.k) d where d.x > 2) order by n",
        "0, 2",
    ),
    (
        "select n from a where exists (select 1 from (select x from b where b.k = a.k) d join (select n from b order by n limit 3) e on d.x = e.n) order by n",
        "0, 1, 2",
    ),
    (
        "select n from a where exists (select 1 from (select x from b where b.k = a.k) d join (select count(*) c from b) e on d.x < e.c) order by n",
        "0, 1, 2",
    ),
    (
        "select n from a where exists (select 1 from (select x from b where b.k = a.k) d join (select x from b where b.k = a.k) e on d.x < e.x) order by n",
        "0, 2",
    ),
    ("select n from a where exists (select a.x + b.x from b where b.k = a.k limit 1) order by n", "0, 1, 2"),
    ("select n from a where x in (select b.x from b where b.k = a.k order by b.n limit 1) order by n", ""),
    (
        "select n from a where x in (select d.x from b d left join a e on d.n = e.n where d.k = a.k) order by n",
        "0",
    ),
    ("select n from a where nullif(n, 4) not in (select k from b where k is not null) order by n", "0, 3"),
    ("select n from a where (nullif(n, 4) not in (select n from b where n > 9)) order by n", "0, 1, 2, 3, 4"),
    ("select sum(p) from (select (k = any (select x from b))::bigint p from a) d where p = 1", "4"),
    (
        "select \"k = ANY\" from (select k = any (select x from b) \"k = ANY\" from a) d where \"k = ANY\"",
        "true, true, true, true",
    ),
    // The outer column has the name of one beside the condition.
    (
        "select n from a where x in (select a.x from (select v from (select k v, x w from b) where w = a.x) join a on v = a.k) order by n",
        "0",
    ),
    (
        "select n from a where exists (select 1 from (select v from (select k v, x w from b) where w = a.x) join a on v = a.k where a.n > 1) order by n",
        "0",
    ),
    (
        "select n, (select b.x from b where b.k = a.k order by b.n desc limit 1) from a order by n",
        "0 2, 1 , 2 2, 3 , 4 ",
    ),
    (
        "select n, (select b.x from b where b.k = a.k order by b.n limit 1 offset 1) from a order by n",
        "0 2, 1 , 2 2, 3 , 4 ",
    ),
    ("select n, (select max(x) from b where b.k = a.k limit 1) from a order by n", "0 3, 1 2, 2 3, 3 , 4 "),
    (
        "select n, (select count(*) from (select distinct x from b where b.k = a.k) d) from a order by n",
        "0 2, 1 2, 2 2, 3 0, 4 0",
    ),
    (
        "select n, (select max(c) from (select x, count(*) c from b where b.k = a.k group by x) d) from a order by n",
        "0 1, 1 1, 2 1, 3 , 4 ",
    ),
    (
        "select n, exists (select 1 from b where b.k = a.k and b.x = 2), a.k not in (select k from b) from a order by n",
        "0 true false, 1 true false, 2 true false, 3 false , 4 false ",
    ),
    (
        "select n, x > all (select x from b where x < 3), x <> any (select n from b where n in (1, 2)) from a order by n",
        "0 false true, 1  , 2 true true, 3 false true, 4 false true",
    ),
    (
        "select k in (select k from b) q, count(*) from a group by k in (select k from b) order by count(*)",
        " 2, true 3",
    ),
    ("select sum(case when exists (select 1 from b where b.k = a.k) then 1 else 0 end) from a", "3"),
    (
        "select a.n, b.n from a join b on a.n = b.n and exists (select 1 from b c where c.k = a.k) order by 1",
        "0 0, 1 1, 2 2",
    ),
    (
        "select a.n, d.x from a, lateral (select b.x from b where b.k = a.k order by b.n limit 1) d order by 1",
        "0 3, 1 2, 2 3",
    ),
    (
        "select a.n, d.x from a left join lateral (select b.x from b where b.k = a.k order by b.n desc limit 1) d on true order by 1",
        "0 2, 1 , 2 2, 3 , 4 ",
    ),
    (
        "select a.n, d.c from a, lateral (select count(*) c from b where b.k = a.k) d order by 1",
        "0 2, 1 2, 2 2, 3 0, 4 0",
    ),
    (
        "select a.n, d.c from a left join lateral (select count(*) c from b where b.k = a.k) d on d.c > 1 order by 1",
        "0 2, 1 2, 2 2, 3 , 4 ",
    ),
    (
        "select a.n, d.c from a, lateral (select max(c) c from (select x, count(*) c from b where b.k = a.k group by x) e) d order by 1",
        "0 1, 1 1, 2 1, 3 , 4 ",
    ),
    (
        "select a.n, d.x from a, lateral (select distinct x from b where b.k = a.k) d order by 1, 2",
        "0 2, 0 3, 1 2, 1 , 2 2, 2 3",
    ),
    (
        "select a.n, d.c from a, lateral (select x, count(*) c from b where b.k = a.k group by x having count(*) > 0) d order by 1, 2",
        "0 1, 0 1, 1 1, 1 1, 2 1, 2 1",
    ),
    (
        "select a.n, d.x from a, lateral (select b.x from b where b.n > a.n and b.x > 1) d order by 1, 2",
        "0 2, 0 2, 1 2",
    ),
];

#[test]
fn correlated_subqueries_of_many_shapes_have_their_values() {
    let context = session(&Limits::default(), Vec::new(), Vec::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for (question, expected) in ANSWERS {
        let sql = format!("{SHAPES} {question}");
        let batches = runtime.block_on(async { ask(&context, &sql).await?.collect().await });
        let batches = batches.unwrap_or_else(|error| panic!("{question}\n{error}"));
        assert_eq!(lines(&batches).join(", "), *expected, "{question}");
    }
}

#[test]
fn subqueries_without_a_right_plan_are_refused() {
    let context = session(&Limits::default(), Vec::new(), Vec::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for (question, reason) in [
        (
            "select n from a where exists (select 1 from b where b.k = a.k group by rollup(b.x))",
            "below `rollup`, `cube` or `grouping sets`",
        ),
        (
            "select a.n from a, lateral (select count(*) c from b where b.k = a.k having count(*) > 1) d",
            "`having`",
        ),
        (
            "select a.n, (select c from (select count(*) c from b where b.k = a.k) d where c = 0) from a",
            "a condition on an aggregate",
        ),
        (
            "select a.n, c from a, lateral (select row_number() over () c from b where b.k = a.k) d",
            "a window function",
        ),
        (
            "select n, exists (select 1 from b where b.n > a.n) from a",
            "unless it is equal to one of its columns",
        ),
        (
            "select a.n from a, lateral (select distinct x from b where b.n > a.n) d",
            "unless it is equal to one of",
        ),
        (
            "select n from a where exists (select 1 from b where exists (select 1 from b c where c.n = b.n and c.k = a.k))",
            "names `a.k`, a column of a query that is not directly around it",
        ),
        ("select n from a where random() < all (select x from b)", "a random value"),
        (
            "select a.n from a left join b on a.n = b.n and exists (select 1 from b c where c.k = a.k)",
            "in this place",
        ),
    ] {
        let sql = format!("{SHAPES} {question}");
        let error =
            runtime.block_on(ask(&context, &sql)).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("cannot ") && error.contains(reason), "{question}\n{error}");
    }
}

#[test]
fn subqueries_over_the_same_rows_have_the_values_of_an_evaluation_row_by_row() {
    let context = session(&Limits::default(), Vec::new(), Vec::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    for seed in seeds(2) {
        let mut random = Seed::new(seed);
        for _ in 0..QUESTIONS {
            let rows = rows(&mut random);
            let (question, expected) = question(&mut random, &rows);
            let sql = format!("{} {question}", tables(&rows));
            let batches = runtime.block_on(async { ask(&context, &sql).await?.collect().await });
            match batches {
                Ok(batches) => assert_eq!(lines(&batches), expected, "HOLDFAST_SEED={seed}\n{sql}"),
                // An order sees only the columns of the result.
                Err(error)
                    if question.contains("order by (") && error.to_string().contains("directly around") => {}
                Err(error) => panic!("HOLDFAST_SEED={seed}\n{sql}\n{error}"),
            }
        }
    }
}
