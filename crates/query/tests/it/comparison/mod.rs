//! Comparison of generated questions with `DuckDB`, over three recorded streams with nulls, duplicates and NaN:
//! every answer is the same, or the question is refused in words that docs/search.md lists.
//! The folder `questions` makes the questions and asks `DuckDB`.
//!
//! A run has a seed, that of the day, and rounds of 100 questions, each with a seed of its own (`20261129/7`). All 5,000
//! questions of a seed: `HOLDFAST_SEED=20261129 cargo test -p holdfast-query --test it comparison`; one round of it: with
//! `HOLDFAST_ROUND=7`.

mod holds;

use crate::streams::recorded::{Content, MakeHeader, Recorded};
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::error::Result;
use futures::TryStreamExt;
use holdfast_attributes::{Schema, Type};
use holdfast_base::ByteSize;
use holdfast_media::{MemoryDisk, Seed};
use holdfast_query::ring_source::{OpenRing, ReaderPool, RingSource};
use holdfast_query::stream::{OrdinalRuns, ScanDiagnostics};
use holdfast_query::{Engine, Limits, SourceStream, address, address_type, answer, engine_of};
use holdfast_reader::RingReader;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Rounds of a run whose seed is given, and of one in the suite.
const ROUNDS: u64 = 50;
const ROUNDS_OF_THE_DAY: u64 = 8;
const QUESTIONS: usize = 100;
/// At most one question in so many may be refused.
const REFUSED: usize = 25;
/// One question in so many is asked of an engine with one thread, too.
const ALONE: usize = 4;

const SCHEMA: [&str; 13] = [
    "id:int=given",
    "w:int=given",
    "u:uint=given",
    "big:uint=given",
    "x:float=given",
    "s:text=given",
    "b:bool=given",
    "ts:time=given",
    "day:time=given",
    "event_time:time=given",
    "ip:ip=given",
    "mac:mac=given",
    "bin:binary=given",
];

/// Floating point numbers, with zeros of both signs and more than one NaN.
const FLOATS: [f64; 10] = [f64::NAN, -f64::NAN, 0.25, 1.5, 1.5, -2.0, 100.0, -0.0, 0.0, f64::INFINITY];
const ADDRESSES: [&str; 6] = ["10.0.0.1", "10.0.0.2", "10.1.0.1", "192.168.0.9", "2001:db8::1", "::"];
const MACS: [[u8; 6]; 3] = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 0xff], [0xfe, 0, 0, 0, 0, 1]];
/// Microseconds from the first day on: some days, with fractions of one.
const DAYS: [i64; 8] = [
    0,
    86_400_000_000,
    86_400_500_000,
    129_600_000_000,
    172_800_000_001,
    2_637_296_789_012,
    2_678_400_000_000,
    3_455_999_999_999,
];
const BINARIES: [&[u8]; 4] = [b"", b"\x00", b"a", b"\xff\x00a"];

/// Refusals: a part of the message, which docs/search.md explains.
const REFUSALS: [&str; 12] = [
    "SanityCheckPlan",
    "cannot compute a sum: the total",
    "cannot answer a subquery that names",
    "cannot compare a subquery with the values of another one",
    "cannot extract `",
    "cannot use an interval in",
    "Unary operator '-' only supports signed numeric",
    "Correlated scalar subquery must be aggregated",
    "the result is not within",
    "with `ignore nulls` and an offset other than 1",
    "in this place: use it in a condition",
    "cannot use `using` or `natural` in a right or full join",
];

/// Values of a row behind its ordinal.
#[derive(Clone)]
struct Row {
    id: Option<i64>,
    w: Option<i64>,
    u: Option<u64>,
    big: Option<u64>,
    x: Option<f64>,
    s: Option<&'static str>,
    b: Option<bool>,
    ts: Option<i64>,
    day: Option<i64>,
    event_time: Option<i64>,
    ip: Option<IpAddr>,
    mac: Option<[u8; 6]>,
    bin: Option<&'static [u8]>,
}

/// Rows of a table: few values, which occur several times, and nulls.
fn row(table: u64, number: u64) -> Row {
    let mut random = Seed::new(table * 1000 + number);
    // One table has no nulls in two columns.
    let mut some = |of: u64, nulls: u64| {
        let value = random.below(of);
        (random.below(10) >= nulls).then_some(value)
    };
    let nulls = if table == 3 { 0 } else { 2 };
    Row {
        id: some(7, nulls).map(|value| value as i64),
        w: some(4, 2).map(|value| value as i64 - 1),
        u: some(5, 2),
        x: some(FLOATS.len() as u64, 2).map(|value| FLOATS[value as usize]),
        s: some(5, nulls).map(|value| ["a", "b", "ab", "", "B"][value as usize]),
        b: some(2, 3).map(|value| value == 1),
        ts: some(5, 2).map(|value| 1_780_000_000_000_000_000 + value as i64 * 1_000_000_000),
        event_time: some(12, 2).map(|value| 1_780_000_000_000_000_000 + value as i64 * 1_000_000),
        ip: some(6, 2).map(|value| ADDRESSES[value as usize].parse().unwrap()),
        mac: some(3, 2).map(|value| MACS[value as usize]),
        bin: some(4, nulls).map(|value| BINARIES[value as usize]),
        big: some(5, 2).map(|value| (1 << 63) - 2 + value * value.div_ceil(2)),
        day: some(DAYS.len() as u64, 2).map(|value| 1_780_000_000_000_000_000 + DAYS[value as usize] * 1000),
    }
}

impl Row {
    fn header(&self) -> Vec<u8> {
        let values = [
            self.id.map(|value| value.to_le_bytes().to_vec()),
            self.w.map(|value| value.to_le_bytes().to_vec()),
            self.u.map(|value| value.to_le_bytes().to_vec()),
            self.big.map(|value| value.to_le_bytes().to_vec()),
            self.x.map(|value| value.to_le_bytes().to_vec()),
            self.s.map(|value| value.as_bytes().to_vec()),
            self.b.map(|value| vec![u8::from(value)]),
            self.ts.map(|value| value.to_le_bytes().to_vec()),
            self.day.map(|value| value.to_le_bytes().to_vec()),
            self.event_time.map(|value| value.to_le_bytes().to_vec()),
            self.ip.map(|value| match value {
                IpAddr::V4(address) => address.octets().to_vec(),
                IpAddr::V6(address) => address.octets().to_vec(),
            }),
            self.mac.map(|value| value.to_vec()),
            self.bin.map(<[u8]>::to_vec),
        ];
        let mut header = Vec::new();
        for value in values {
            let length = value.as_ref().map_or(u16::MAX, |value| value.len() as u16);
            header.extend(length.to_le_bytes());
            header.extend(value.unwrap_or_default());
        }
        header
    }

    /// The row as `DuckDB` has it: numbers that JSON cannot state as texts, an address with a text of its order, and
    /// bytes in hexadecimal digits.
    fn json(&self, ordinal: u64, time: i64) -> Value {
        let hex = |bytes: &[u8]| address::show(Type::Binary, bytes);
        let mapped = |address: IpAddr| match address {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let payload = payload(ordinal);
        json!({
            "ordinal": ordinal,
            "id": self.id,
            "w": self.w,
            "u": self.u,
            "big": self.big,
            "x": self.x.map(|x| x.to_string()),
            "s": self.s,
            "b": self.b,
            "ts": self.ts,
            "day": self.day,
            "event_time": self.event_time,
            "time": time,
            "ip": self.ip.map(|address| address.to_string()),
            "ip_key": self.ip.map(|address| hex(&mapped(address).octets())),
            "mac": self.mac.map(|octets| octets.map(|octet| format!("{octet:02x}")).join(":")),
            "bin": self.bin.map(hex),
            "payload": hex(&payload),
            "payload_text": String::from_utf8_lossy(&payload),
        })
    }
}

/// Payload of an element: text, JSON, bytes that are no text, or nothing.
fn payload(number: u64) -> Vec<u8> {
    match number % 4 {
        0 => Vec::new(),
        1 => format!("element {number}").into_bytes(),
        2 => vec![0xff, number as u8, 0, 0x80, 0x7f, 0xfe, 1, 2, 3],
        _ => format!(
            "{{\"n\": {number}, \"o\": {{\"f\": {}.5, \"t\": \"x{}\"}}, \"l\": [{}, null]}}",
            number % 5,
            number % 3,
            number.is_multiple_of(2)
        )
        .into_bytes(),
    }
}

/// The tables: name, rows, and the header of a row.
const TABLES: [(&str, u64, MakeHeader); 3] = [
    ("a", 24, |_, number| Some(row(1, number).header())),
    ("e", 17, |_, number| Some(row(2, number).header())),
    ("c", 6, |_, number| Some(row(3, number).header())),
];

/// A recorded stream of the first rows of a table.
fn stream(name: &str, rows: u64, header: MakeHeader, diagnostics: &Arc<ScanDiagnostics>) -> SourceStream {
    let schema = Schema::typed(SCHEMA).unwrap();
    let content = Content { header, noise: 90, element: |_, number| payload(number) };
    let (image, recorded) = Recorded::of(9, rows, Some(&schema), &content);
    let ring: OpenRing = Arc::new(move || RingReader::over(Box::new(MemoryDisk::from_image(image.clone()))));
    let source = RingSource::new(ReaderPool::new(&ring), HashMap::new(), Arc::clone(diagnostics));
    let (name, ring) = (name.to_owned(), "a ring".to_owned());
    SourceStream { name, id: recorded.stream, schema, source: Arc::new(source), ring, ordinals: None }
}

/// An engine over the tables. Each is a recording, or a union of two with the first half of the rows in both.
fn engine(is_union: bool, threads: usize) -> Engine {
    let diagnostics = Arc::new(ScanDiagnostics::default());
    let mut streams = Vec::new();
    for (name, rows, header) in TABLES {
        streams.push(stream(name, rows, header, &diagnostics));
        if is_union {
            let ordinals = Some(OrdinalRuns::new(vec![(0, rows / 2 - 1)]));
            streams.push(SourceStream { ordinals, ..stream(name, rows / 2, header, &diagnostics) });
        }
    }
    let limits = Limits {
        // Two questions at a time share it.
        memory: ByteSize::mib(1024),
        spill: None,
        spill_bytes: ByteSize::mib(64),
        threads: NonZeroUsize::new(threads).unwrap(),
    };
    engine_of(&limits, streams, Vec::new()).unwrap()
}

/// A cell in a form that is the same for equal values: floating point numbers with ten digits, whole numbers and times in
/// nanoseconds exactly.
fn normal(text: &str) -> String {
    const SMALL: u128 = 1_000_000_000;
    /// Rounding errors around zero are less.
    const ZERO: f64 = 1e-12;
    match text.parse::<f64>() {
        // A small number may be whole on one side alone.
        Ok(_) if text.parse::<i128>().is_ok_and(|whole| whole.unsigned_abs() > SMALL) => text.to_owned(),
        // A whole number beside fractions is one on both sides.
        Ok(number) if number.fract() == 0.0 && (1e9..9e15).contains(&number.abs()) => format!("{number:.0}"),
        Ok(number) if number.is_nan() => "NaN".to_owned(),
        Ok(number) if number.abs() < ZERO => format!("{:.9e}", 0.0),
        Ok(number) => format!("{number:.9e}"),
        Err(_) => text.to_owned(),
    }
}

/// Nanoseconds of a length: a month has 30 days, and a day 24 hours.
fn length(interval: IntervalMonthDayNano) -> i128 {
    const DAY: i128 = 86_400_000_000_000;
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    days * DAY + i128::from(interval.nanoseconds)
}

fn cells(batch: &RecordBatch) -> Vec<Vec<String>> {
    let column = |(array, field): (&Arc<dyn Array>, &Arc<Field>)| -> Vec<String> {
        let address = address_type(field);
        let array = match array.data_type() {
            DataType::Timestamp(..) | DataType::Duration(_) => cast(array, &DataType::Int64).unwrap(),
            _ => Arc::clone(array),
        };
        let cell = |at: usize| match array.data_type() {
            _ if array.is_null(at) => "null".to_owned(),
            DataType::FixedSizeBinary(_) if address.is_some() => {
                address::show(address.unwrap(), array.as_fixed_size_binary().value(at))
            }
            DataType::Float64 => normal(&format!("{:?}", array.as_primitive::<Float64Type>().value(at))),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                normal(&length(array.as_primitive::<IntervalMonthDayNanoType>().value(at)).to_string())
            }
            _ => normal(&array_value_to_string(&array, at).unwrap()),
        };
        (0..array.len()).map(cell).collect()
    };
    let columns: Vec<Vec<String>> = batch.columns().iter().zip(batch.schema().fields()).map(column).collect();
    (0..batch.num_rows()).map(|at| columns.iter().map(|column| column[at].clone()).collect()).collect()
}

async fn asked(engine: &Engine, sql: &str) -> Result<Vec<Vec<String>>> {
    let batches: Vec<RecordBatch> = answer(engine, sql).await?.try_collect().await?;
    Ok(batches.iter().flat_map(cells).collect())
}

/// Seeds of the rounds of this run.
fn round_seeds() -> Vec<String> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let given = number("HOLDFAST_SEED");
    let seed = given.or_else(|| number("PROPTEST_RNG_SEED")).unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        since.as_secs() / 86_400
    });
    let rounds = match given {
        Some(_) => ROUNDS,
        None => ROUNDS_OF_THE_DAY * number("HOLDFAST_SEEDS").unwrap_or(1),
    };
    match number("HOLDFAST_ROUND") {
        Some(round) => vec![format!("{seed}/{round}")],
        None => (0..rounds).map(|round| format!("{seed}/{round}")).collect(),
    }
}

/// Lines of the generator, as JSON.
fn generated(python: &Path, given: &Value) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/comparison/questions");
    let mut child = (Command::new(python).arg("-B").arg(script))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(given.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Questions with the answers of `DuckDB`.
fn questions(python: &Path, times: impl Fn(&str) -> Vec<i64>) -> Vec<Value> {
    let rows = |table: usize, name: &str| -> Vec<Value> {
        let times = times(name).into_iter().zip(0..);
        times.map(|(time, number)| row(table as u64 + 1, number).json(number, time)).collect()
    };
    let tables: BTreeMap<&str, Vec<Value>> =
        TABLES.iter().enumerate().map(|(at, (name, ..))| (*name, rows(at, name))).collect();
    generated(python, &json!({ "seeds": round_seeds(), "count": QUESTIONS, "tables": tables }))
}

/// Outcome of the comparison of one answer.
enum Compared {
    Same,
    /// Refused for a reason.
    Refused(&'static str),
    BothFail,
    Different(String),
}

fn compared(runtime: &Runtime, engine: &Engine, question: &Value) -> Compared {
    let sql = question["sql"].as_str().unwrap();
    let answer = || runtime.block_on(asked(engine, sql));
    let Ok(ours) = std::panic::catch_unwind(AssertUnwindSafe(answer)) else {
        return Compared::Different("ours: a panic".to_owned());
    };
    let rows = question["rows"].as_array().map(|rows| {
        let cell = |cell: &Value| cell.as_str().map_or_else(|| "null".to_owned(), normal);
        let row = |row: &Value| row.as_array().unwrap().iter().map(cell).collect::<Vec<_>>();
        rows.iter().map(row).collect::<Vec<_>>()
    });
    match (ours, rows) {
        (Ok(mut ours), Some(mut theirs)) => {
            if question["kind"] != "ordered" {
                ours.sort();
                theirs.sort();
            }
            if ours == theirs {
                Compared::Same
            } else {
                Compared::Different(format!("ours {ours:?}\ntheirs {theirs:?}"))
            }
        }
        (Err(error), theirs) => {
            let text = error.to_string();
            match (REFUSALS.iter().find(|refusal| text.contains(*refusal)), theirs) {
                (Some(refusal), _) => Compared::Refused(refusal),
                (None, None) => Compared::BothFail,
                (None, Some(_)) => Compared::Different(format!("our error: {error}")),
            }
        }
        (Ok(_), None) => Compared::Different(format!("their error: {}", question["error"])),
    }
}

/// The Python interpreter, if it has a package.
fn python_with(package: &str) -> Option<PathBuf> {
    let python = std::env::var_os("HOLDFAST_PYTHON").map(PathBuf::from).filter(|path| {
        let import = format!("import {package}");
        let has = Command::new(path).args(["-c", &import]).stderr(Stdio::null()).status();
        has.is_ok_and(|status| status.success())
    });
    if python.is_none() {
        eprintln!("skipped: HOLDFAST_PYTHON has no package {package}");
    }
    python
}

#[test]
fn generated_questions_have_the_answers_of_duckdb() {
    let Some(python) = python_with("duckdb") else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (engines, alone) = ([engine(false, 2), engine(true, 2)], engine(true, 1));
    // Arrival times are those of the recording.
    let times = |name: &str| -> Vec<i64> {
        let sql = format!("select cast(time as bigint) from {name} order by ordinal");
        let rows = runtime.block_on(asked(&engines[0], &sql)).unwrap();
        rows.iter().map(|row| row[0].parse::<f64>().unwrap() as i64).collect()
    };
    let questions = questions(&python, times);
    let ask = |questions: &[Value]| -> Vec<Compared> {
        let asked = questions.iter().zip(engines.iter().cycle()).enumerate();
        asked
            .map(|(number, (question, engine))| match compared(&runtime, engine, question) {
                Compared::Same if number % ALONE == 0 => compared(&runtime, &alone, question),
                outcome => outcome,
            })
            .collect()
    };
    let (first, second) = questions.split_at(questions.len() / 2);
    let outcomes = std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(first));
        let second = ask(second);
        first.join().unwrap().into_iter().chain(second).collect::<Vec<_>>()
    });
    let (mut failed, mut different) = (0, Vec::new());
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    let mut refusals: BTreeMap<&str, usize> = BTreeMap::new();
    for (question, outcome) in questions.iter().zip(outcomes) {
        let text = |name: &str| question[name].as_str().unwrap();
        match outcome {
            Compared::Same => *kinds.entry(text("kind")).or_default() += 1,
            Compared::Refused(reason) => *refusals.entry(reason).or_default() += 1,
            Compared::BothFail => failed += 1,
            Compared::Different(how) => {
                let (seed, round) = text("seed").split_once('/').unwrap();
                different.push(format!(
                    "HOLDFAST_SEED={seed} HOLDFAST_ROUND={round} cargo test -p holdfast-query --test it comparison\n\
                     {}: {}\n{}\n{how}",
                    text("kind"),
                    text("sql"),
                    text("theirs")
                ));
            }
        }
    }
    let (all, refused) = (questions.len(), refusals.values().sum::<usize>());
    println!(
        "{all} questions, {failed} failed in both; the same: {kinds:?}; {refused} refused: {refusals:#?}"
    );
    assert!(different.is_empty(), "{} differ\n\n{}", different.len(), different.join("\n\n"));
    assert!(refused * REFUSED <= all, "{refused} of {all} questions were refused");
    assert!(failed * 20 <= all, "{failed} of {all} questions failed in both");
    assert!(all < 1000 || kinds.values().all(|count| *count > 5), "{kinds:?}");
}
