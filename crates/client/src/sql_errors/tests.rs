//! Messages about wrong queries, as a user types them: no words of the engine, and the part of the query to change.

use super::failure;
use datafusion::arrow::array::{
    ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, Float64Array, Int64Array, RecordBatch,
    StringViewArray, TimestampNanosecondArray, UInt64Array,
};
use datafusion::catalog::MemTable;
use datafusion::error::DataFusionError;
use holdfast_attributes::Schema;
use holdfast_base::ByteSize;
use holdfast_query::{Columns, Limits, ask, session};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Words of the engine that mean nothing to people.
const INTERNAL: [&str; 33] = [
    "Utf8",
    "Int64",
    "Int32",
    "Int8",
    "UInt",
    "Float64",
    "BinaryView",
    "FixedSize",
    "Timestamp(",
    "Boolean",
    "Decimal128",
    "Interval(",
    "DataFusion",
    "Internal error",
    "bug",
    "Arrow",
    "Schema error",
    "Error during",
    "Execution error",
    "LogicalPlan",
    "Exec",
    "TreeNode",
    "Optimizer",
    "type_coercion",
    "Coercion",
    "Signature",
    "TypeSignature",
    "Candidate",
    "Some(",
    "This feature is not implemented",
    "Compute error",
    "RecordBatch",
    "backtrace",
];

/// Queries of a table `log` that fail, and a part of the message that names the fault or the remedy.
const WRONG: [(&str, &str); 46] = [
    ("select nosuch from log", "no column `nosuch`"),
    ("select level from logs", "no table `logs`"),
    ("select lenght(level) from log", "no function `lenght`"),
    ("select level, count(*) from log", "group by"),
    ("select level from log group by host", "no column `host`"),
    ("select * from log where n", "a condition is true or false"),
    ("select * from log where level = 5 + 'x'", "a number + a text"),
    ("select level + 1 from log", "a text + a number"),
    ("select n + level from log", "a number + a text"),
    ("select * from log where level > 5 and level like 5", "LIKE"),
    ("select cast(level as int) from log", "`info`"),
    ("select level::double from log", "`info`"),
    ("select cast('abc' as int)", "`abc`"),
    ("select cast(300 as tinyint)", "300"),
    ("select cast(big as int) from log", "9223372036854775807"),
    ("select cast('2026-13-01' as timestamp)", "2026-13-01"),
    ("select * from log where time > '2026-02-30'", "2026-02-30"),
    ("select * from log where time > 'last week'", "last week"),
    ("select date '2026-99-01'", "2026-99-01"),
    ("select interval '5 parsecs'", "5 parsecs"),
    ("select n / 0 from log", "divided by zero"),
    ("select n % (n - n) from log", "divided by zero"),
    ("select * from log where level ~ '('", "("),
    ("select regexp_replace(level, '[', 'x') from log", "["),
    ("select * from log where level = 'abc", "unterminated"),
    ("select \"level from log", "close delimiter"),
    ("select substr(level) from log", "substr"),
    ("select sum(n, n) from log", "sum"),
    ("select sum(level) from log", "sum"),
    ("select avg(time) from log", "avg"),
    ("select round('x') from log", "round"),
    ("select abs(level) from log", "abs"),
    ("select date_trunc('fortnight', time) from log", "fortnight"),
    ("select date_bin('10 seconds', level) from log", "`info` is no time"),
    ("select date_part('nosuch', time) from log", "nosuch"),
    (
        "select a.n from log a join log b on a.n = b.n where level = 'x'",
        "more than one table has a column `level`",
    ),
    ("select n from log union select n, level from log", "different number of columns"),
    ("select case when n > 1 then 'x' else 5.5 end + 1 from log", ""),
    ("select count(*) from log having sum(level) > 1", "sum"),
    ("select count(distinct) from log", "found `)`"),
    ("select n from log order by nosuch", "no column `nosuch`"),
    ("selct n from log", "selct"),
    ("select max(n) over (order by) from log", "expected"),
    ("select (select n from log) from log", "more than one row"),
    ("select json_get(payload, 'a[') from log", "path"),
    ("select n from log where n in (select n, level from log)", "one column"),
];

async fn error(sql: &str) -> Option<DataFusionError> {
    let schema = Schema::typed([
        "level:text=json:a",
        "n:int=json:b",
        "big:int=json:c",
        "x:float=json:d",
        "up:bool=json:e",
        "src:ip=json:f",
    ]);
    let columns = Columns::new(&schema.unwrap());
    let arrow = columns.arrow();
    let column = |name: &str| -> ArrayRef {
        match name {
            "time" | "event_time" => {
                Arc::new(TimestampNanosecondArray::from(vec![1, 2]).with_timezone("UTC"))
            }
            "direction" | "level" => Arc::new(StringViewArray::from(vec!["info", "warn"])),
            "n" => Arc::new(Int64Array::from(vec![1, 2])),
            "big" => Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN])),
            "x" => Arc::new(Float64Array::from(vec![0.5, 1e300])),
            "up" => Arc::new(BooleanArray::from(vec![true, false])),
            "src" => Arc::new(FixedSizeBinaryArray::try_from_iter([[0u8; 16], [1; 16]].into_iter()).unwrap()),
            "payload" => Arc::new(BinaryViewArray::from_iter_values([&b"{}"[..], b"\xff"])),
            _ => Arc::new(UInt64Array::from(vec![0, 1])),
        }
    };
    let arrays = arrow.fields().iter().map(|field| column(field.name())).collect();
    let batch = RecordBatch::try_new(Arc::clone(arrow), arrays).unwrap();
    let table = Arc::new(MemTable::try_new(Arc::clone(arrow), vec![vec![batch]]).unwrap());
    let limits = Limits {
        memory: ByteSize::mib(64),
        spill: None,
        spill_bytes: ByteSize::mib(1),
        threads: NonZeroUsize::MIN,
    };
    let context = session(&limits, Vec::new(), vec![("log".to_owned(), table)]).unwrap();
    match ask(&context, sql).await {
        Ok(frame) => frame.collect().await.err(),
        Err(error) => Some(error),
    }
}

// Promise 8.
#[test]
fn wrong_queries_are_explained_without_words_of_the_engine() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let tables = ["log".to_owned()];
    let mut wrong = Vec::new();
    for (sql, part) in WRONG {
        let Some(error) = runtime.block_on(error(sql)) else {
            wrong.push(format!("no error: {sql}\n"));
            continue;
        };
        let said = failure(&error, sql, &tables).to_string();
        // The message quotes the line of the query, which is not checked.
        let words = said.replace(sql, "");
        let internal: Vec<_> = INTERNAL.iter().filter(|word| words.contains(**word)).collect();
        if !internal.is_empty() || !words.contains(part) {
            wrong.push(format!("{sql}\n  {internal:?} {part:?}\n  {said}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
