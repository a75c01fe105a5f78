//! Searching: small elements with four attributes are recorded by `holdfast record` and asked for by `holdfast query`, beside
//! `SQLite` and `DuckDB` with the same rows, which are given an index on what the needle is looked for by. Each answer is
//! timed from the start of a program to its end, and has to be the right one. Then Holdfast is asked while it records.
//!
//! Values of `a` are uniform among 100,000 even numbers, with one odd needle amid them; `b` is uniform among all 32-bit numbers; `c`
//! rises with the elements; `d` is uniform among 100.

use crate::cores::Cores;
use crate::program::{Program, holdfast};
use crate::report::{Goal, Report};
use crate::rounds::{Rounds, Spread};
use crate::sql_session::SqlSession;
use crate::standing_hold::StandingHold;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use holdfast_base::ByteSize;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const ELEMENT: usize = 20;
/// Addresses `a`, beside the needle: so many in 10.0.0.0/8, each so far from the next; the needle lies between two of them.
const DISTINCT: u64 = 100_000;
const FIRST: u32 = 10 << 24;
const APART: u32 = 166;
const NEEDLE: u32 = FIRST + 50_000 * APART + APART / 2;

const ATTRIBUTES: [&str; 4] =
    ["a:ip=at:0:ipv4", "b:uint=at:4:u32le", "c:uint=at:8:u32le", "d:uint=at:12:u16le"];

/// A question.
struct Question {
    what: &'static str,
    sql: &'static str,
    /// As those are asked who have addresses as numbers.
    with_numbers: &'static str,
    /// Million elements a second that one core is to look at, once the index is in memory.
    a_core: Option<f64>,
}

const fn question(what: &'static str, sql: &'static str, a_core: Option<f64>) -> Question {
    Question { what, sql, with_numbers: sql, a_core }
}

const QUESTIONS: [Question; 4] = [
    Question {
        with_numbers: "select count(*) from bench where a = 176072243",
        ..question("a needle", "select count(*) from bench where a = '10.126.166.51'", None)
    },
    question("a filtered count", "select count(*) from bench where d < 10", Some(200.0)),
    question("a range of what rises", "select count(*) from bench where c between 1000 and 2000", None),
    question(
        "group by 100,000 addresses",
        "select count(*) from (select a, count(*) n from bench group by a)",
        Some(50.0),
    ),
];

/// The values of an element.
fn values(number: u64, elements: u64) -> (u32, u32, u32, u16) {
    // SplitMix64.
    let mut word = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^= word >> 31;
    let a = if number == elements / 3 { NEEDLE } else { FIRST + (word % DISTINCT) as u32 * APART };
    (a, (word >> 32) as u32, number as u32, (word >> 17) as u16 % 100)
}

/// The file of `SQLite`.
const ROWS: &str = "rows.sqlite";

/// One that holds the elements and is asked.
enum Engine {
    Holdfast { program: PathBuf, ring: PathBuf, index: Option<PathBuf> },
    Sqlite { file: PathBuf },
    SqlitePackage { python: PathBuf, file: PathBuf },
    Duck { python: PathBuf, file: PathBuf },
}

impl Engine {
    fn name(&self) -> &'static str {
        match self {
            Self::Holdfast { index: None, .. } => "Holdfast",
            Self::Holdfast { .. } => "Holdfast, index in memory",
            Self::Sqlite { .. } => "SQLite, its program",
            Self::SqlitePackage { .. } => "SQLite, Python package",
            Self::Duck { .. } => "DuckDB, Python package",
        }
    }

    /// The answer to a question.
    fn ask(&self, question: &Question) -> Result<u64, BenchError> {
        let question = match self {
            Self::Holdfast { .. } => question.sql,
            _ => question.with_numbers,
        };
        let mut command = match self {
            Self::Holdfast { program, ring, index } => {
                let mut command = tools::command(program);
                command.arg("query").arg(ring).args([question, "--format", "csv"]);
                if let Some(index) = index {
                    command.arg("--index").arg(index);
                }
                command
            }
            Self::Sqlite { file } => {
                let mut command = tools::command("sqlite3");
                command.arg("-readonly").arg(file).arg(question);
                command
            }
            Self::SqlitePackage { python, file } => {
                let mut command = tools::command(python);
                let script = "import sqlite3, sys\n\
                              base = sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True)\n\
                              print(base.execute(sys.argv[2]).fetchone()[0])";
                command.args(["-c", script]).arg(file).arg(question);
                command
            }
            Self::Duck { python, file } => {
                let mut command = tools::command(python);
                let script = "import duckdb, sys\n\
                              print(duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2]).fetchone()[0])";
                command.args(["-c", script]).arg(file).arg(question);
                command
            }
        };
        let text = output(&mut command)?;
        let answer = text.lines().next_back().and_then(|line| line.trim().parse().ok());
        answer.ok_or_else(|| BenchError::Accounting(format!("{} says {text:?} to {question}", self.name())))
    }

    /// Bytes on the disk.
    fn bytes(&self) -> u64 {
        match self {
            Self::Holdfast { .. } => 0,
            Self::Sqlite { file } | Self::SqlitePackage { file, .. } | Self::Duck { file, .. } => {
                file.metadata().map_or(0, |file| file.len())
            }
        }
    }
}

fn output(command: &mut Command) -> Result<String, BenchError> {
    tools::run(command).map(|(out, _)| out)
}

/// Measures each contestant that is installed.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let elements: u64 = scale.pick(30_000, 20_000_000);
    let place = WorkFolder::with_room(scale.pick(64 << 20, 16 << 30))?;
    let program = holdfast("holdfast", scale)?;
    let mut report = Report::new("search", scale);
    // With whoever sends them, and the disk's thread.
    let one_core = place.file("ring of one core");
    let alone = (0..scale.pick(1, 5)).map(|_| {
        let (_, took) = Cores::Last.run(|| record(&program, &place, &one_core, elements, scale))?;
        std::fs::remove_file(&one_core).map_err(BenchError::file(&one_core, "remove it"))?;
        Ok(elements as f64 / took / 1e6)
    });
    let alone = Spread::of(alone.collect::<Result<Vec<_>, BenchError>>()?);
    let (holdfast, took) = record(&program, &place, &place.file("ring"), elements, scale)?;
    let mut contestants = vec![(holdfast, took)];
    if scale == Scale::Real {
        let rows = place.file("rows.csv");
        write_rows(&rows, elements)?;
        for peer in [sqlite(&place, &rows), duck(&place, &rows)] {
            match peer {
                Ok(peer) => contestants.push(peer),
                Err(why) => println!("{why}"),
            }
        }
    }
    let rate = |took: f64| format!("{:.2}", elements as f64 / took / 1e6);
    let mut rows =
        vec![row!["", "M elements/s taken, indexed", "bytes an element", "Holdfast's to that", "verdict"]];
    let ours = contestants[0].1;
    for (who, took) in &contestants {
        let bytes =
            if let Engine::Holdfast { ring, .. } = who { written(&program, ring)? } else { who.bytes() };
        let ratio = Spread::of([took / ours]);
        let (ratio, verdict) = match who {
            Engine::Holdfast { .. } => (String::new(), String::new()),
            _ => (ratio.show(1), Goal::AtLeast(1.0).verdict(&ratio)),
        };
        let bytes = format!("{:.0}", bytes as f64 / elements as f64);
        rows.push(row![who.name(), rate(*took), bytes, ratio, verdict]);
    }
    let goal = Goal::AtLeast(5.0).verdict(&alone);
    rows.insert(1, row!["Holdfast, all on one core", alone.show(2), String::new(), String::new(), goal]);
    report.table(&rows);
    contestants.insert(1, copied(&contestants[0].0, &place)?);
    if let Some(at) = contestants.iter().position(|(who, _)| matches!(who, Engine::Sqlite { .. })) {
        let package = Engine::SqlitePackage { python: python(), file: place.file(ROWS) };
        contestants.insert(at + 1, (package, contestants[at].1));
    }
    report.table(&asked(&contestants, elements, scale.pick(1, 5))?);
    // What was copied is of a ring that does not change.
    let (index, copied) = contestants.remove(1);
    let Engine::Holdfast { program, ring, .. } = &contestants[0].0 else { return report.finish() };
    let beside = BackgroundCapture::start(program, ring, &place, scale)?;
    report.say("The same while Holdfast records:");
    report.table(&asked(&contestants, elements, scale.pick(1, 5))?);
    let mut rows = vec![row!["beside capture", "ms", "verdict"]];
    let wide = ["select ordinal, a from bench", "select * from bench"];
    let rounds = Rounds::run(scale.pick(1, 9), 2, |at| first_row(program, ring, wide[at]))?;
    for (at, what) in ["first row of all elements", "with all columns and payload"].into_iter().enumerate() {
        let first = rounds.of(at).by(1e3);
        rows.push(row![what, first.show(0), Goal::AtMost(200.0).verdict(&first)]);
    }
    let mut fresh = fresh(program, ring, beside.connect()?, scale.pick(3, 200))?;
    fresh.sort_unstable_by(f64::total_cmp);
    for (what, share) in [("middle", 0.5), ("99 of 100", 0.99), ("all of 200", 1.0)] {
        let within = fresh[((fresh.len() - 1) as f64 * share) as usize] * 1e3;
        let verdict = Goal::AtMost(50.0).verdict(&Spread::of([within]));
        rows.push(row![format!("from arrival until it is found: {what}"), format!("{within:.0}"), verdict]);
    }
    let mut standing = StandingHold::begin(program, ring, "fresh")?;
    let mut held = standing.holds_within(beside.connect()?, scale.pick(3, 20))?;
    drop(standing);
    held.sort_unstable_by(f64::total_cmp);
    for (what, share) in [("middle", 0.5), ("all of 20", 1.0)] {
        let within = held[((held.len() - 1) as f64 * share) as usize] * 1e3;
        let verdict = Goal::AtMost(1000.0).verdict(&Spread::of([within]));
        let what = format!("from arrival until a standing hold has it: {what}");
        rows.push(row![what, format!("{within:.0}"), verdict]);
    }
    report.table(&rows);
    let said = beside.end()?;
    report.say(&format!(
        "{elements} elements of {ELEMENT} bytes; ring of {}. BackgroundCapture questions {RATE} MiB/s of such elements are recorded with \
         their attributes, of which {said}; the others' rows stay as they are. What arrives is asked for by `holdfast sql`, again and \
         again. {}: it was copied in {copied:.1} s.",
        ByteSize(ring_bytes(scale)),
        index.name()
    ));
    report.finish()
}

/// Asks each of them everything, in turns, and checks the answers.
fn asked(
    contestants: &[(Engine, f64)],
    elements: u64,
    rounds: usize,
) -> Result<Vec<Vec<String>>, BenchError> {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get) as f64;
    let mut rows =
        vec![row!["", "asked", "ms from start to end", "M elements/s", "a core", "to Holdfast's", "verdict"]];
    for (which, question) in QUESTIONS.iter().enumerate() {
        let what = question.what;
        let right = contestants[0].0.ask(question)?;
        check(which, right, elements)?;
        let rounds = Rounds::run(rounds, contestants.len(), |at| {
            let start = Instant::now();
            let answer = contestants[at].0.ask(question)?;
            let took = start.elapsed().as_secs_f64();
            if answer == right {
                return Ok(took);
            }
            Err(BenchError::Accounting(format!(
                "{} says {answer} to {what}, and {right} is right",
                contestants[at].0.name()
            )))
        })?;
        for (at, (who, _)) in contestants.iter().enumerate() {
            let took = rounds.of(at);
            let ratio = rounds.ratio(at, 0);
            let rate = |took: f64| elements as f64 / took / 1e6;
            let a_core = Spread {
                median: rate(took.median) / cores,
                least: rate(took.most) / cores,
                most: rate(took.least) / cores,
            };
            let (ratio, verdict) = match who {
                Engine::Holdfast { index: None, .. } => (String::new(), String::new()),
                Engine::Holdfast { .. } => {
                    let verdict = question.a_core.map(|least| Goal::AtLeast(least).verdict(&a_core));
                    (String::new(), verdict.unwrap_or_default())
                }
                _ => (ratio.show(2), Goal::AtLeast(1.0).verdict(&ratio)),
            };
            let a_core = question.a_core.map_or(String::new(), |_| a_core.show(0));
            let took_ms = took.by(1e3).show(0);
            rows.push(row![
                who.name(),
                what,
                took_ms,
                format!("{:.2}", rate(took.median)),
                a_core,
                ratio,
                verdict
            ]);
        }
    }
    Ok(rows)
}

/// MiB of elements a second that are recorded beside questions.
const RATE: u64 = 20;

/// A recorder at work beside questions: small elements with attributes of one stream at a steady rate, and of another now and
/// then one.
struct BackgroundCapture {
    recorder: Program,
    /// Where the other one comes in.
    fresh: SocketAddr,
    over: Arc<AtomicBool>,
    sender: JoinHandle<std::io::Result<u64>>,
}

impl BackgroundCapture {
    fn start(program: &Path, ring: &Path, place: &WorkFolder, scale: Scale) -> Result<Self, BenchError> {
        let network = |cause: std::io::Error| BenchError::program("a connection to the recorder", cause);
        // Free a moment ago, and so it is a moment later.
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let to = free.map_err(network)?;
        let (ring, fresh) = (ring.display().to_string(), format!("tcp:{to}"));
        let mut arguments =
            vec!["record", &ring, "--source", "stdin", "--name", "more", "--frame", "fixed:20"];
        arguments.extend(ATTRIBUTES.iter().flat_map(|attribute| ["--attr", attribute]));
        arguments.extend(["--on-overload", "drop-newest"]);
        arguments.extend([
            "--source",
            &fresh,
            "--name",
            "fresh",
            "--frame",
            "lines",
            "--attr",
            "n:uint=json:n",
        ]);
        let mut recorder = Program::start(program, &arguments, Stdio::piped(), &place.file("beside"))?;
        let mut input = recorder.input().ok_or_else(|| BenchError::skipped("no pipe to the recorder"))?;
        recorder.until("it records", |recorder| recorder.said().contains("recording"))?;
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        // Fifty times a second as much as that makes.
        let count = scale.pick(64, RATE << 20) / 50 / ELEMENT as u64;
        let sender = std::thread::spawn(move || {
            let (mut sent, began) = (0, Instant::now());
            let mut turn = 0;
            while !stop.load(Ordering::Relaxed) {
                let block: Vec<u8> =
                    (sent..sent + count).flat_map(|number| element(number, u64::MAX)).collect();
                input.write_all(&block)?;
                sent += count;
                turn += 1;
                let next = Duration::from_millis(20) * turn;
                std::thread::sleep(next.saturating_sub(began.elapsed()));
            }
            Ok(sent)
        });
        Ok(Self { recorder, fresh: to, over, sender })
    }

    /// A way for elements that come now and then.
    fn connect(&self) -> Result<TcpStream, BenchError> {
        let to = TcpStream::connect(self.fresh);
        to.and_then(|to| to.set_nodelay(true).map(|()| to))
            .map_err(|cause| BenchError::program("a connection to the recorder", cause))
    }

    /// Ends it; what it says of what was lost.
    fn end(self) -> Result<String, BenchError> {
        self.over.store(true, Ordering::Relaxed);
        let sent = self.sender.join().map_err(|_| BenchError::skipped("the sender failed"))?;
        let sent = sent.map_err(|cause| BenchError::program("a pipe to the recorder", cause))?;
        self.recorder.interrupt();
        let said = self.recorder.end(&[0])?;
        let whole = said.contains(&format!("more: {sent} elements")) && said.contains("nothing lost");
        if whole {
            Ok("nothing was lost".to_owned())
        } else {
            Err(BenchError::Accounting(format!("{sent} elements were sent: {said}")))
        }
    }
}

/// Seconds until the first row of a question that finds everything.
fn first_row(program: &Path, ring: &Path, question: &str) -> Result<f64, BenchError> {
    let mut command = tools::command(program);
    command.arg("query").arg(ring).args([question, "--format", "jsonl"]);
    let text = format!("{command:?}");
    let error = |cause: std::io::Error| BenchError::program(text.clone(), cause);
    let start = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().map_err(error)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(error)?;
    }
    let took = start.elapsed().as_secs_f64();
    // Nobody wants the rest.
    let _ = child.kill();
    let _ = child.wait();
    if line.contains("\"ordinal\"") {
        Ok(took)
    } else {
        Err(BenchError::Accounting(format!("the first row is {line:?}")))
    }
}

/// Seconds from when an element is given to the recorder until a question finds it, of so many of them.
fn fresh(program: &Path, ring: &Path, mut to: TcpStream, count: u64) -> Result<Vec<f64>, BenchError> {
    let mut session = SqlSession::begin(program, ring)?;
    let error = |cause: std::io::Error| BenchError::program("a connection to the recorder", cause);
    let mut found = Vec::new();
    for number in 1..=count {
        let start = Instant::now();
        writeln!(to, "{{\"n\":{number}}}").map_err(error)?;
        let question = format!("select count(*) c from fresh where n = {number}");
        while session.row(&question)?["c"] != 1 {}
        found.push(start.elapsed().as_secs_f64());
    }
    Ok(found)
}

fn ring_bytes(scale: Scale) -> u64 {
    scale.pick(16 << 20, 8 << 30)
}

/// What Holdfast says is compared with what the values are.
fn check(which: usize, answer: u64, elements: u64) -> Result<(), BenchError> {
    let all = || (0..elements).map(|number| values(number, elements));
    let right = match which {
        0 => 1,
        1 => all().filter(|(.., d)| *d < 10).count() as u64,
        2 => 1001,
        _ => {
            let mut seen = vec![false; DISTINCT as usize];
            let numbers = all().filter(|(a, ..)| *a != NEEDLE).map(|(a, ..)| (a - FIRST) / APART);
            numbers.for_each(|number| seen[number as usize] = true);
            seen.iter().filter(|seen| **seen).count() as u64 + 1
        }
    };
    if answer == right {
        return Ok(());
    }
    Err(BenchError::Accounting(format!(
        "Holdfast says {answer} to {}, and {right} is right",
        QUESTIONS[which].what
    )))
}

/// Records them through a pipe; seconds from the first byte to the recorder's end.
fn record(
    program: &Path,
    place: &WorkFolder,
    ring: &Path,
    elements: u64,
    scale: Scale,
) -> Result<(Engine, f64), BenchError> {
    let path = ring.display().to_string();
    let (size, slot) = (ring_bytes(scale).to_string(), scale.pick("256KiB", "64MiB"));
    output(tools::command(program).args(["format", &path, "--size", &size, "--slot", slot, "--prefill"]))?;
    let mut arguments = vec!["record", &path, "--source", "stdin", "--name", "bench", "--frame", "fixed:20"];
    arguments.extend(ATTRIBUTES.iter().flat_map(|attribute| ["--attr", attribute]));
    let mut recorder = Program::start(program, &arguments, Stdio::piped(), &place.file("recorder"))?;
    let input = recorder.input().ok_or_else(|| BenchError::skipped("no pipe to the recorder"))?;
    recorder.until("it records", |recorder| recorder.said().contains("recording"))?;
    // Made before, so that making them is not measured.
    let block: Vec<u8> = (0..elements).flat_map(|number| element(number, elements)).collect();
    let start = Instant::now();
    let mut input = input;
    let sent = input.write_all(&block);
    sent.map_err(|cause| BenchError::program("a pipe to the recorder", cause))?;
    drop(input);
    let said = recorder.end(&[0])?;
    let took = start.elapsed().as_secs_f64();
    if !said.contains(&format!("{elements} elements")) || !said.contains("nothing lost") {
        return Err(BenchError::Accounting(format!(
            "{elements} elements were sent, and the recorder says {said}"
        )));
    }
    Ok((Engine::Holdfast { program: program.to_owned(), ring: ring.to_owned(), index: None }, took))
}

/// The same ring, with copies of its index in a folder that the page cache has; seconds that they took.
fn copied(of: &Engine, place: &WorkFolder) -> Result<(Engine, f64), BenchError> {
    let Engine::Holdfast { program, ring, .. } = of else { return Err(BenchError::skipped("no ring")) };
    let (program, ring, folder) = (program.clone(), ring.clone(), place.file("index"));
    let start = Instant::now();
    output(tools::command(&program).arg("index").arg(&ring).arg("--once").arg("--index").arg(&folder))?;
    let took = start.elapsed().as_secs_f64();
    Ok((Engine::Holdfast { program, ring, index: Some(folder) }, took))
}

fn element(number: u64, elements: u64) -> [u8; ELEMENT] {
    let (a, b, c, d) = values(number, elements);
    let mut bytes = [0; ELEMENT];
    bytes[..4].copy_from_slice(&a.to_be_bytes());
    bytes[4..8].copy_from_slice(&b.to_le_bytes());
    bytes[8..12].copy_from_slice(&c.to_le_bytes());
    bytes[12..14].copy_from_slice(&d.to_le_bytes());
    bytes
}

/// Bytes that the slots of a ring have.
fn written(program: &Path, ring: &Path) -> Result<u64, BenchError> {
    let text = output(tools::command(program).arg("check").arg(ring).arg("--json"))?;
    let last: serde_json::Value =
        text.lines()
            .next_back()
            .and_then(|line| serde_json::from_str(line).ok())
            .ok_or_else(|| BenchError::Accounting(format!("`holdfast check` says {text}")))?;
    Ok(last["bytes"].as_u64().unwrap_or(0))
}

fn write_rows(path: &Path, elements: u64) -> Result<(), BenchError> {
    let file = File::create(path).map_err(BenchError::file(path, "make it"))?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    for number in 0..elements {
        let (a, b, c, d) = values(number, elements);
        writeln!(file, "{a},{b},{c},{d}").map_err(BenchError::file(path, "write it"))?;
    }
    file.flush().map_err(BenchError::file(path, "write it"))
}

/// Rows, and then the index: quicker than both at once.
fn sqlite(place: &WorkFolder, rows: &Path) -> Result<(Engine, f64), BenchError> {
    let program = tools::need("sqlite3")?;
    let file = place.file(ROWS);
    let import = format!(".import {} bench", rows.display());
    let start = Instant::now();
    output(tools::command(program).arg(&file).args([
        "pragma journal_mode = off; pragma synchronous = off; create table bench(a integer, b integer, c integer, d integer)",
        ".mode csv",
        &import,
        "create index bench_a on bench(a)",
    ]))?;
    Ok((Engine::Sqlite { file }, start.elapsed().as_secs_f64()))
}

fn python() -> PathBuf {
    std::env::var_os("HOLDFAST_PYTHON").unwrap_or_else(|| "python3".into()).into()
}

fn duck(place: &WorkFolder, rows: &Path) -> Result<(Engine, f64), BenchError> {
    let python = python();
    let there = output(tools::command(&python).args(["-c", "import duckdb"]));
    there
        .map_err(|_| BenchError::skipped("no Python package duckdb here (scripts/need bench installs it)"))?;
    let file = place.file("rows.duckdb");
    let script = "import duckdb, sys\n\
                  base = duckdb.connect(sys.argv[1])\n\
                  base.execute(f\"create table bench as select * from read_csv('{sys.argv[2]}', header=false, \
                  columns={{'a': 'ubigint', 'b': 'ubigint', 'c': 'ubigint', 'd': 'ubigint'}})\")\n\
                  base.execute('create index bench_a on bench(a)')";
    let start = Instant::now();
    output(tools::command(&python).args(["-c", script]).arg(&file).arg(rows))?;
    Ok((Engine::Duck { python, file }, start.elapsed().as_secs_f64()))
}
