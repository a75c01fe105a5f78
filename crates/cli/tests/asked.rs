//! Answers while elements arrive and slots expire, and after the recorder was killed in the middle of it: whatever ends well
//! is what a naive look at every element finds (promise 5); what ends as expired has found nothing wrong.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/recording.rs"]
mod recording;

use common::{Said, ends, folder, holdfast, run};
use recording::{Recording, named_pipe};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

const BYTES: usize = 64;
/// A mark is an element's head; some elements have no more either.
const HEAD: usize = 16;
const ROUNDS: u32 = 4;
/// Elements that are sent while one question is at work: the ring has room for some six times as many.
const SENT: u64 = 16_000;

/// An element of a run of the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Element {
    run: u32,
    number: u64,
}

impl Element {
    fn key(self) -> u32 {
        (self.number.wrapping_mul(0x9e37_79b9) >> 7) as u32 % 1000
    }

    fn is_short(self) -> bool {
        self.number % 13 == 5
    }

    /// Null in those that are short.
    fn word(self) -> Option<String> {
        let word = self.number % 11;
        (!self.is_short()).then(|| if word > 0 { format!("w{word}") } else { String::new() })
    }

    /// Null in those that are short.
    fn float(self) -> Option<f64> {
        let float =
            [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.25, 1e300, 0.5][(self.number % 7) as usize];
        (!self.is_short()).then_some(float)
    }

    /// Whether there is a mark beside it, in a stream of its own.
    fn is_marked(self) -> bool {
        self.number % 100 == 31
    }

    fn bytes(self) -> Vec<u8> {
        let mut bytes =
            [self.run.to_le_bytes().as_slice(), &self.number.to_le_bytes(), &self.key().to_le_bytes()]
                .concat();
        if let (Some(word), Some(float)) = (self.word(), self.float()) {
            bytes.resize(BYTES, 0);
            bytes[16..16 + word.len()].copy_from_slice(word.as_bytes());
            bytes[24..32].copy_from_slice(&float.to_le_bytes());
        }
        bytes
    }

    /// As it is sent, behind its length.
    fn sent(self) -> Vec<u8> {
        let bytes = self.bytes();
        [&(bytes.len() as u32).to_le_bytes(), bytes.as_slice()].concat()
    }

    fn mark(self) -> Vec<u8> {
        self.bytes()[..HEAD].to_vec()
    }

    fn head(bytes: &[u8]) -> Self {
        let run = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        Self { run, number: u64::from_le_bytes(bytes[4..12].try_into().unwrap()) }
    }

    fn of(bytes: &[u8]) -> Self {
        let element = Self::head(bytes);
        assert_eq!(element.bytes(), bytes, "{element:?}");
        element
    }

    /// Elements as they were sent, one after the other.
    fn all(mut bytes: &[u8]) -> Vec<Self> {
        let mut all = Vec::new();
        while let Some((length, others)) = bytes.split_first_chunk::<4>() {
            let (one, others) = others.split_at(u32::from_le_bytes(*length) as usize);
            all.push(Self::of(one));
            bytes = others;
        }
        all
    }
}

/// A condition, in both languages.
struct Condition {
    sql: String,
    is: Box<dyn Fn(Element) -> bool>,
}

fn conditions(salt: u32) -> [Condition; 12] {
    let of = |sql: String, is: Box<dyn Fn(Element) -> bool>| Condition { sql, is };
    let (key, word) = (salt * 37 % 1000, format!("w{}", salt % 13));
    let (low, high, other) = (key / 2, key / 2 + 3, word.clone());
    [
        of("1 = 1".into(), Box::new(|_| true)),
        of(format!("key = {key}"), Box::new(move |e| e.key() == key)),
        of(format!("key between {low} and {high}"), Box::new(move |e| (low..=high).contains(&e.key()))),
        of(
            format!("word = '{word}' and key < {key}"),
            Box::new(move |e| e.word().as_deref() == Some(&word) && e.key() < key),
        ),
        of(
            format!("not (key < 990) or n % 500 = {}", salt % 500),
            Box::new(move |e| e.key() >= 990 || e.number % 500 == u64::from(salt % 500)),
        ),
        of(
            format!("word = '' and key in ({low}, {high}, {key})"),
            Box::new(move |e| e.word().as_deref() == Some("") && [low, high, key].contains(&e.key())),
        ),
        of(format!("word is null and key > {key}"), Box::new(move |e| e.word().is_none() && e.key() > key)),
        // Of what is not known it is not known whether it is another.
        of(
            format!("word <> '{other}' and key <= {low}"),
            Box::new(move |e| e.word().is_some_and(|word| word != other) && e.key() <= low),
        ),
        of(
            format!("not (f < 1 and word = 'w3') and key < {high}"),
            Box::new(move |e| {
                let less = e.float().is_some_and(|float| float.total_cmp(&1.0).is_lt());
                let is = less && e.word().as_deref() == Some("w3");
                !(e.is_short() || is) && e.key() < high
            }),
        ),
        // To the engine NaN is greater than all.
        of(
            format!("f > 1e9 and key < {key}"),
            Box::new(move |e| e.float().is_some_and(|f| f.total_cmp(&1e9).is_gt()) && e.key() < key),
        ),
        of(
            format!("f = 'NaN' and key <> {key}"),
            Box::new(move |e| e.float().is_some_and(f64::is_nan) && e.key() != key),
        ),
        of(
            format!("not (f between -3 and 1.5) or key = {high}"),
            Box::new(move |e| {
                e.float().is_some_and(|float| !(-3.0..=1.5).contains(&float)) || e.key() == high
            }),
        ),
    ]
}

fn ask(dir: &Path, question: &str) -> Said {
    holdfast(dir).args(["query", "r.hf", "--format", "csv", question]).output().unwrap().into()
}

/// The same, into a file.
fn export(dir: &Path, question: &str) -> (Said, Option<Vec<Element>>) {
    let file = dir.join("out.mcap");
    let _ = std::fs::remove_file(&file);
    let said = run(dir, &format!("query r.hf --format mcap -o out.mcap {}", question.replace(' ', "_")));
    assert!(!dir.join("out.mcap.part").exists());
    let found = std::fs::read(file).ok().map(|bytes| {
        let messages = mcap::MessageStream::new(&bytes).unwrap();
        messages.map(|message| Element::of(&message.unwrap().data)).collect()
    });
    (said, found)
}

fn fields(said: &Said) -> Vec<Vec<u64>> {
    let of = |line: &str| line.split(',').map(|field| field.parse().unwrap()).collect();
    said.out.lines().skip(1).map(of).collect()
}

/// Of a list, each element and its ordinal; they are what they should be, and in order.
fn listed(said: &Said, condition: &Condition) -> Vec<(u64, Element)> {
    let rows = fields(said).into_iter().map(|row| {
        let element = Element { run: row[1] as u32, number: row[2] };
        assert_eq!(u64::from(element.key()), row[3], "{element:?}");
        assert!((condition.is)(element), "{element:?} is not {}", condition.sql);
        (row[0], element)
    });
    let rows: Vec<_> = rows.collect();
    assert!(rows.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "{}", condition.sql);
    // The elements of a run follow one another.
    for two in rows.windows(2).filter(|two| two[0].1.run == two[1].1.run) {
        assert_eq!(two[1].0 - two[0].0, two[1].1.number - two[0].1.number, "{two:?}");
    }
    rows
}

/// How a question ended that was asked while elements arrived: well, or because some expired.
fn ended_well(said: &Said) -> bool {
    let good = said.code == Some(0) || said.code == Some(3);
    assert!(good || said.code == Some(1) && said.err.contains("expired"), "{:?} {}", said.code, said.err);
    good
}

/// Nothing is found that should not be. Stretches may be missing: what queries have pinned is there still when what came behind it has
/// expired.
fn compare_found(found: &[Element], is: &dyn Fn(Element) -> bool, what: &str) {
    for element in found {
        assert!(is(*element), "{element:?} is not {what}");
    }
}

/// The ordinal up to which questions ask that look twice: what arrives between the two looks is in one of them.
fn so_far(dir: &Path) -> Option<u64> {
    let asked = (0..4).map(|_| ask(dir, "select max(ordinal) from log"));
    asked.into_iter().find(ended_well).and_then(|said| fields(&said).first().map(|row| row[0]))
}

/// Asks once while elements arrive; tells whether it ended well.
fn ask_beside_capture(dir: &Path, salt: u32) -> bool {
    let all = conditions(salt);
    let [one, other] = [salt * 7, salt * 5 + 2].map(|number| &all[number as usize % all.len()]);
    let sql = &one.sql;
    match salt % 8 {
        5 => ask_for_some(dir, one),
        6 => ask_for_marked(dir, one),
        7 => ask_for_last(dir, one),
        0 => {
            let said =
                ask(dir, &format!("select ordinal, run, n, key from log where {sql} order by ordinal"));
            let found: Vec<Element> = listed(&said, one).into_iter().map(|(_, element)| element).collect();
            let good = ended_well(&said);
            compare_found(&found, &one.is, sql);
            good
        }
        1 => ask_for_sums(dir, one),
        kind => {
            let Some(last) = so_far(dir) else { return false };
            let (not, is): (_, Box<dyn Fn(Element) -> bool>) = if kind == 2 {
                ("", Box::new(|e| (one.is)(e) && (other.is)(e)))
            } else {
                ("not ", Box::new(|e| (one.is)(e) && !(other.is)(e)))
            };
            let others = format!("select ordinal from log where {}", other.sql);
            let where_ = format!("({sql}) and ordinal <= {last} and ordinal {not}in ({others})");
            let both = format!("{sql} and {not}in {}", other.sql);
            if kind == 4 {
                let (said, found) = export(dir, &format!("select ordinal from log where {where_}"));
                let good = ended_well(&said);
                let found = found.unwrap_or_default();
                assert!(good || found.is_empty(), "{both}: a file");
                compare_found(&found, &is, &both);
                return good;
            }
            let question = if kind == 2 {
                // As a join.
                format!(
                    "select a.ordinal, a.run, a.n, a.key from (select * from log where {sql}) a \
                     join (select ordinal o from log where {}) b on a.ordinal = b.o \
                     where a.ordinal <= {last} order by 1",
                    other.sql
                )
            } else {
                format!("select ordinal, run, n, key from log where {where_} order by ordinal")
            };
            let said = ask(dir, &question);
            let good = ended_well(&said);
            let found: Vec<Element> = listed(&said, one).into_iter().map(|(_, element)| element).collect();
            assert!(good || found.is_empty(), "{both}: {}", said.out);
            compare_found(&found, &is, &both);
            good
        }
    }
}

/// Slot by slot: between them some may have expired.
fn ask_for_sums(dir: &Path, condition: &Condition) -> bool {
    let what = "run, count(*), min(n), max(n), sum(key)";
    let said = ask(dir, &format!("select {what} from log where {} group by slot, run", condition.sql));
    let good = ended_well(&said);
    assert!(good || fields(&said).is_empty(), "{}", said.out);
    for row in fields(&said) {
        let [run, count, first, last, sum] = row[..] else { panic!("{row:?}") };
        let all = (first..=last).map(|number| Element { run: run as u32, number });
        let wanted: Vec<u64> =
            all.filter(|element| (condition.is)(*element)).map(|one| one.key().into()).collect();
        assert_eq!((count, sum), (wanted.len() as u64, wanted.iter().sum()), "{} {row:?}", condition.sql);
    }
    good
}

/// As many as are wanted, whichever; they are what they should be, and none comes twice.
fn ask_for_some(dir: &Path, condition: &Condition) -> bool {
    let sql = &condition.sql;
    let said = ask(dir, &format!("select ordinal, run, n, key from log where {sql} limit 7"));
    let good = ended_well(&said);
    let rows = fields(&said);
    for row in &rows {
        let element = Element { run: row[1] as u32, number: row[2] };
        assert!((condition.is)(element) && u64::from(element.key()) == row[3], "{element:?} is not {sql}");
    }
    let distinct: BTreeSet<u64> = rows.iter().map(|row| row[0]).collect();
    assert!(distinct.len() == rows.len() && rows.len() <= 7, "{sql}: {rows:?}");
    // Of the whole ring there are more.
    assert!(!good || sql != "1 = 1" || rows.len() == 7, "{rows:?}");
    good
}

/// The last ones: between them there are no others.
fn ask_for_last(dir: &Path, condition: &Condition) -> bool {
    let sql = &condition.sql;
    let said =
        ask(dir, &format!("select ordinal, run, n, key from log where {sql} order by ordinal desc limit 50"));
    let good = ended_well(&said);
    let mut rows = fields(&said);
    assert!((good || rows.is_empty()) && rows.len() <= 50, "{sql}: {}", rows.len());
    rows.reverse();
    let found: Vec<Element> = rows.iter().map(|row| Element { run: row[1] as u32, number: row[2] }).collect();
    for run in found.chunk_by(|one, next| one.run == next.run) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let all = (first.number..=last.number).map(|number| Element { number, ..first });
        let wanted: Vec<Element> = all.filter(|element| (condition.is)(*element)).collect();
        assert_eq!(run, wanted, "{sql}");
    }
    good
}

/// Elements that have a mark, in a stream of its own.
fn ask_for_marked(dir: &Path, condition: &Condition) -> bool {
    let sql = &condition.sql;
    let question = format!(
        "select a.ordinal, a.run, a.n, a.key from (select * from log where {sql}) a \
         join marks m on a.run = m.run and a.n = m.n order by 1"
    );
    let said = ask(dir, &question);
    let good = ended_well(&said);
    let found: Vec<Element> = listed(&said, condition).into_iter().map(|(_, element)| element).collect();
    assert!(good || found.is_empty(), "{sql}: {}", said.out);
    compare_found(&found, &|element| (condition.is)(element) && element.is_marked(), sql);
    good
}

/// All that can be read, when nobody records.
fn left(dir: &Path) -> Vec<Element> {
    ends(dir, "read r.hf --stream log --format raw -o all --force", 0);
    Element::all(&std::fs::read(dir.join("all")).unwrap())
}

/// All marks that can be read.
fn marks_left(dir: &Path) -> Vec<Element> {
    ends(dir, "read r.hf --stream marks --format raw -o marks.raw --force", 0);
    let marks = std::fs::read(dir.join("marks.raw")).unwrap();
    marks.chunks_exact(HEAD).map(Element::head).collect()
}

/// Every kind of question about all that is left.
fn compare(dir: &Path, all: &[Element], salt: u32) {
    // Two of three, others each time.
    let some = (salt..).zip(conditions(salt)).filter(|(number, _)| number % 3 > 0);
    for (_, condition) in some {
        let sql = &condition.sql;
        let wanted: Vec<Element> = all.iter().copied().filter(|element| (condition.is)(*element)).collect();
        let said = ask(dir, &format!("select ordinal, run, n, key from log where {sql} order by ordinal"));
        let found: Vec<Element> = listed(&said, &condition).into_iter().map(|(_, element)| element).collect();
        assert_eq!(found.len(), wanted.len(), "{sql}: {:?} and {:?}", found.first(), wanted.first());
        assert_eq!(found, wanted, "{sql}");
        // What is null comes last.
        let mut groups: BTreeMap<(u32, bool, String), (u64, u64)> = BTreeMap::new();
        for element in &wanted {
            let group = groups
                .entry((element.run, element.word().is_none(), element.word().unwrap_or_default()))
                .or_default();
            *group = (group.0 + 1, group.1 + u64::from(element.key()));
        }
        let said = ask(
            dir,
            &format!("select run, word, count(*), sum(key) from log where {sql} group by 1, 2 order by 1, 2"),
        );
        let mut text = String::new();
        for ((run, _, word), (count, sum)) in groups {
            writeln!(text, "{run},{word},{count},{sum}").unwrap();
        }
        let rows = said.out.split_once('\n').map_or("", |(_, rows)| rows);
        assert_eq!(rows, text, "{sql}");
        let said = ask(dir, &format!("select run, n from log where {sql} order by ordinal desc limit 5"));
        let last: Vec<_> = wanted.iter().rev().take(5).map(|e| vec![e.run.into(), e.number]).collect();
        assert_eq!(fields(&said), last, "{sql}");
    }
}

/// An export of what others are not, about all that is left.
fn compare_export(dir: &Path, all: &[Element], salt: u32) {
    let all_of_them = conditions(salt);
    let condition = &all_of_them[salt as usize % all_of_them.len()];
    let sql = &condition.sql;
    let others = format!("select ordinal from log where f > 1 and key < {}", 300 + salt);
    let is_other =
        |e: &Element| e.float().is_some_and(|float| float.total_cmp(&1.0).is_gt()) && e.key() < 300 + salt;
    let (_, found) =
        export(dir, &format!("select ordinal from log where ({sql}) and ordinal not in ({others})"));
    let left: Vec<Element> =
        all.iter().copied().filter(|element| (condition.is)(*element) && !is_other(element)).collect();
    assert_eq!(found.unwrap_or_default(), left, "{sql} but not {others}");
}

/// Two streams, each with all that is left of it.
fn compare_marks(dir: &Path, all: &[Element], salt: u32) {
    let marks = marks_left(dir);
    assert!(marks.len() > 100 && marks.iter().all(|mark| mark.is_marked()), "{}", marks.len());
    let marked: BTreeSet<Element> = marks.iter().copied().collect();
    for condition in conditions(salt).iter().skip(salt as usize % 3).step_by(3) {
        let sql = &condition.sql;
        let some: Vec<Element> = all.iter().copied().filter(|element| (condition.is)(*element)).collect();
        let both: Vec<Element> = some.iter().copied().filter(|element| marked.contains(element)).collect();
        let joined =
            format!("(select * from log where {sql}) a KIND join marks m on a.run = m.run and a.n = m.n");
        let inner = joined.replace("KIND ", "");
        let said = ask(dir, &format!("select a.ordinal, a.run, a.n, a.key from {inner} order by 1"));
        let found: Vec<Element> = listed(&said, condition).into_iter().map(|(_, element)| element).collect();
        assert_eq!(found, both, "{sql}");
        for (kind, rows, of_marks) in [
            ("left", some.len(), both.len()),
            ("right", marks.len(), marks.len()),
            ("full", some.len() + marks.len() - both.len(), marks.len()),
        ] {
            let said = ask(
                dir,
                &format!("select count(*), count(m.n), count(a.n) from {}", joined.replace("KIND", kind)),
            );
            let of_log = if kind == "right" { both.len() } else { some.len() };
            assert_eq!(fields(&said), [[rows, of_marks, of_log].map(|n| n as u64)], "{kind}: {sql}");
        }
    }
    compare_nearest(dir, all, &marks);
}

/// Each mark beside the element that arrived nearest to it.
fn compare_nearest(dir: &Path, all: &[Element], marks: &[Element]) {
    let times = |stream: &str, elements: &[Element]| -> Vec<Vec<u64>> {
        let columns = "ordinal, cast(time as bigint), run, n";
        let rows = fields(&ask(dir, &format!("select {columns} from {stream} order by ordinal")));
        let told: Vec<Element> =
            rows.iter().map(|row| Element { run: row[2] as u32, number: row[3] }).collect();
        assert_eq!(told, elements, "{stream}");
        rows
    };
    let (of_log, of_marks) = (times("log", all), times("marks", marks));
    let said =
        ask(dir, "select ordinal, n, log_ordinal, log_n from nearest('marks', 'log') order by ordinal");
    let rows = fields(&said);
    assert_eq!(rows.len(), of_marks.len(), "{}", said.err);
    let all_times: BTreeSet<u64> = of_log.iter().map(|element| element[1]).collect();
    let by_ordinal: BTreeMap<u64, &Vec<u64>> = of_log.iter().map(|element| (element[0], element)).collect();
    for (row, mark) in rows.iter().zip(&of_marks) {
        assert_eq!((row[0], row[1]), (mark[0], mark[3]));
        let found = by_ordinal.get(&row[2]).unwrap_or_else(|| panic!("{row:?} has what is not there"));
        let around = [all_times.range(..mark[1]).next_back(), all_times.range(mark[1]..).next()];
        let least = around.into_iter().flatten().map(|time| time.abs_diff(mark[1])).min();
        assert_eq!((Some(found[1].abs_diff(mark[1])), found[3]), (least, row[3]), "{row:?}");
    }
}

#[test]
fn answers_are_right_while_slots_expire_and_after_the_recorder_was_killed() {
    let folder = folder();
    let dir = folder.path();
    let schema = "--attr run:uint=at:0:u32le --attr n:uint=at:4:u64le --attr key:uint=at:12:u32le \
                  --attr word:text=at:16:text8 --attr f:float=at:24:f64le \
                  --source file:marks --name marks --frame fixed:16 \
                  --attr run:uint=at:0:u32le --attr n:uint=at:4:u64le";
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let (mut well, mut expired) = (0, 0);
    for run in 0..ROUNDS {
        let marks = named_pipe(dir, "marks");
        let mut recording = Recording::framed(dir, "len32", schema);
        let mut input = recording.input.take().unwrap();
        let mut marks = OpenOptions::new().write(true).open(marks).unwrap();
        let mut numbers = (0..).map(|number| Element { run, number });
        let mut send = |count: u64| {
            for _ in 0..count / 500 {
                let some: Vec<Element> = numbers.by_ref().take(500).collect();
                let marked = some.iter().copied().filter(|element| element.is_marked());
                let marked: Vec<u8> = marked.flat_map(Element::mark).collect();
                let some: Vec<u8> = some.into_iter().flat_map(Element::sent).collect();
                if input.write_all(&some).is_err() || marks.write_all(&marked).is_err() {
                    return;
                }
            }
        };
        // Round once at least.
        send(160_000);
        recording.await_lines(dir, 160_000);
        for look in 0..8 {
            std::thread::scope(|scope| {
                scope.spawn(|| send(SENT));
                if ask_beside_capture(dir, 1 + run * 100 + look) {
                    well += 1;
                } else {
                    expired += 1;
                }
            });
        }
        // In the middle of what it is sent.
        std::thread::scope(|scope| {
            scope.spawn(|| send(SENT * 4));
            ask_beside_capture(dir, 50 + run);
            recording.child.kill().unwrap();
        });
        recording.child.wait().unwrap();
        let all = left(dir);
        assert!(all.len() > 20_000 && all[0].number > 0, "{} from {:?}", all.len(), all.first());
        compare(dir, &all, 9 + run * 11);
        compare_export(dir, &all, run * 10);
        compare_export(dir, &all, run * 10 + 1);
        compare_marks(dir, &all, run);
    }
    eprintln!("{well} answers while elements came, {expired} expired");
    assert!(well > 0);
}
