//! Answers while elements arrive and slots expire, after the recorder was killed in the middle of it, and while the next one gets
//! to know what is there: whatever ends well is what a naive look at every element finds (promise 5); what ends as expired has
//! found nothing wrong.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::conditions;
use crate::common::recording;

use common::{Said, ends, folder, holdfast, run};
use conditions::{Condition, Element, HEAD, condition, conditions, twice};
use recording::{PATIENCE, Recording, named_pipe};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

const ROUNDS: u32 = 4;
/// Questions of a round while elements arrive.
const LOOKS: u32 = 8;
/// Elements that are sent while one question is at work: the ring has room for some six times as many.
const SENT: u64 = 16_000;
/// How often it is asked where it ends as expired. For that slots must be named to be overwritten while it is at work: these are half a
/// runway at once, and what is sent fills little more than one.
const TRIES: usize = 6;
/// Which of the questions is about elements that have a mark.
const WITH_MARKS: u32 = 6;
const SCHEMA: &str = "--attr run:uint=at:0:u32le --attr n:uint=at:4:u64le --attr key:uint=at:12:u32le \
                      --attr word:text=at:16:text8 --attr f:float=at:24:f64le \
                      --source file:marks --name marks --frame fixed:16 \
                      --attr run:uint=at:0:u32le --attr n:uint=at:4:u64le";

const FIRST: Element = Element { run: 0, number: 0 };
const BEYOND: Element = Element { run: u32::MAX, number: u64::MAX };

fn such(all: &[Element], condition: &Condition) -> Vec<Element> {
    all.iter().copied().filter(|element| (condition.is)(*element)).collect()
}

fn same(found: &[Element], wanted: &[Element], what: &str) {
    let other = found.iter().zip(wanted).find(|(found, wanted)| found != wanted);
    let counts = (found.len(), wanted.len());
    assert!(found == wanted, "{what}: {counts:?} elements, the first that are not the same are {other:?}");
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

/// The element of a row that has its ordinal, run, number and key.
fn element(row: &[u64]) -> Element {
    let element = Element { run: row[1] as u32, number: row[2] };
    assert_eq!(u64::from(element.key()), row[3], "{element:?}");
    element
}

/// Nothing is found that should not be.
fn are(found: &[Element], condition: &Condition) {
    for element in found {
        assert!((condition.is)(*element), "{element:?} is not {}", condition.sql);
    }
}

/// What a list has; it is what it should be, and in order.
fn listed(said: &Said, condition: &Condition) -> Vec<Element> {
    let rows: Vec<(u64, Element)> = fields(said).iter().map(|row| (row[0], element(row))).collect();
    assert!(rows.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1), "{}", condition.sql);
    // The elements of a run follow one another.
    for two in rows.windows(2).filter(|two| two[0].1.run == two[1].1.run) {
        assert_eq!(two[1].0 - two[0].0, two[1].1.number - two[0].1.number, "{two:?}");
    }
    let found: Vec<Element> = rows.into_iter().map(|(_, element)| element).collect();
    are(&found, condition);
    found
}

/// How a question ended that was asked while elements arrived: well, or because some expired.
fn ended_well(said: &Said) -> bool {
    let good = said.code == Some(0) || said.code == Some(3);
    assert!(good || said.code == Some(1) && said.err.contains("expired"), "{:?} {}", said.code, said.err);
    good
}

/// What a question found that ended well.
struct Answer {
    asked: Condition,
    found: Vec<Element>,
    /// From this element on nothing may be missing.
    from: Element,
}

impl Answer {
    /// Nothing is missing of what was there all the time that was asked; how many elements of that are what was asked for.
    fn compare(&self, there: &[Element], salt: u32) -> usize {
        let found: BTreeSet<Element> = self.found.iter().copied().collect();
        let wanted = such(there, &self.asked);
        let is_missing = |element: &&Element| **element >= self.from && !found.contains(*element);
        let missing: Vec<&Element> = wanted.iter().filter(is_missing).collect();
        let counts = (missing.len(), wanted.len(), found.len());
        assert!(missing.is_empty(), "{salt}, {}: {counts:?}, {:?} is missing", self.asked.sql, missing[0]);
        wanted.len()
    }
}

/// Asks once while elements arrive; nothing where some of what it was to look at expired.
fn ask_beside_capture(dir: &Path, salt: u32) -> Option<Answer> {
    let (one, other) = (condition(salt, salt * 7), condition(salt, salt * 5 + 2));
    let list = |asked: Condition| {
        let sql = &asked.sql;
        (format!("select ordinal, run, n, key from log where {sql} order by ordinal"), asked)
    };
    let join = |one: &Condition| {
        format!("select a.ordinal, a.run, a.n, a.key from (select * from log where {}) a join", one.sql)
    };
    let (question, asked) = match salt % 8 {
        0 => list(one),
        1 => return ask_for_sums(dir, one),
        2 => {
            let others = format!("(select ordinal o from log where {})", other.sql);
            let question = format!("{} {others} b on a.ordinal = b.o order by 1", join(&one));
            (question, twice(one, other, false))
        }
        3 => list(twice(one, other, true)),
        4 => return ask_for_file(dir, twice(one, other, true)),
        5 => return ask_for_some(dir, one),
        // Elements that have a mark, in a stream of its own.
        WITH_MARKS => {
            let question = format!("{} marks m on a.run = m.run and a.n = m.n order by 1", join(&one));
            let sql = format!("{} and has a mark", one.sql);
            (question, Condition { sql, is: Box::new(move |e| (one.is)(e) && e.is_marked()) })
        }
        _ => return ask_for_last(dir, one),
    };
    let said = ask(dir, &question);
    let (good, found) = (ended_well(&said), listed(&said, &asked));
    // Only a list goes on without what expired.
    assert!(good || salt.is_multiple_of(8) || found.is_empty(), "{salt}, {}: {}", asked.sql, said.out);
    good.then_some(Answer { asked, found, from: FIRST })
}

/// An export.
fn ask_for_file(dir: &Path, asked: Condition) -> Option<Answer> {
    let (said, found) = export(dir, &format!("select ordinal from log where {}", asked.sql));
    let (good, found) = (ended_well(&said), found.unwrap_or_default());
    assert!(good || found.is_empty(), "{}: a file", asked.sql);
    are(&found, &asked);
    good.then_some(Answer { asked, found, from: FIRST })
}

/// Slot by slot: between them some may have expired.
fn ask_for_sums(dir: &Path, asked: Condition) -> Option<Answer> {
    let sql = &asked.sql;
    let what = "run, count(*), min(n), max(n), sum(key)";
    let said = ask(dir, &format!("select {what} from log where {sql} group by slot, run"));
    let good = ended_well(&said);
    let rows = fields(&said);
    assert!(good || rows.is_empty(), "{}", said.out);
    let mut found = Vec::new();
    for row in rows {
        let [run, count, first, last, sum] = row[..] else { panic!("{row:?}") };
        let all: Vec<Element> = (first..=last).map(|number| Element { run: run as u32, number }).collect();
        let some = such(&all, &asked);
        let keys: u64 = some.iter().map(|element| u64::from(element.key())).sum();
        assert_eq!((count, sum), (some.len() as u64, keys), "{sql} {row:?}");
        found.extend(some);
    }
    good.then_some(Answer { asked, found, from: FIRST })
}

/// As many as are wanted, whichever; they are what they should be, and none comes twice.
fn ask_for_some(dir: &Path, asked: Condition) -> Option<Answer> {
    let said = ask(dir, &format!("select ordinal, run, n, key from log where {} limit 7", asked.sql));
    let good = ended_well(&said);
    let found: Vec<Element> = fields(&said).iter().map(|row| element(row)).collect();
    are(&found, &asked);
    let distinct: BTreeSet<&Element> = found.iter().collect();
    assert!(distinct.len() == found.len() && found.len() <= 7, "{}: {found:?}", asked.sql);
    // Where they are fewer there are no others.
    let from = if found.len() < 7 { FIRST } else { BEYOND };
    good.then_some(Answer { asked, found, from })
}

/// The last ones: between them there are no others.
fn ask_for_last(dir: &Path, asked: Condition) -> Option<Answer> {
    let sql = &asked.sql;
    let said =
        ask(dir, &format!("select ordinal, run, n, key from log where {sql} order by ordinal desc limit 50"));
    let good = ended_well(&said);
    let found: Vec<Element> = fields(&said).iter().rev().map(|row| element(row)).collect();
    assert!((good || found.is_empty()) && found.len() <= 50, "{sql}: {}", found.len());
    for run in found.chunk_by(|one, next| one.run == next.run) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let all: Vec<Element> =
            (first.number..=last.number).map(|number| Element { number, ..first }).collect();
        same(run, &such(&all, &asked), sql);
    }
    let from = if found.len() < 50 { FIRST } else { found[0] };
    good.then_some(Answer { asked, found, from })
}

/// What is on the ring, as one question finds it, which is asked again while what was sent last still makes room for itself.
fn there(dir: &Path) -> Vec<Element> {
    let question = "select run, min(n), max(n), count(*) from log group by slot, run order by 1, 2";
    let said = (0..TRIES).map(|_| ask(dir, question)).find(ended_well).unwrap();
    let slots = fields(&said).into_iter().flat_map(|row| {
        let [run, first, last, count] = row[..] else { panic!("{row:?}") };
        // In a slot the elements of a run follow one another.
        assert_eq!(count, last - first + 1, "{row:?}");
        (first..=last).map(move |number| Element { run: run as u32, number })
    });
    slots.collect()
}

/// Marks that are there: each that is listed, and be it without some that expired.
fn marks_there(dir: &Path) -> BTreeSet<Element> {
    let said = ask(dir, "select run, n from marks");
    ended_well(&said);
    fields(&said).iter().map(|row| Element { run: row[0] as u32, number: row[1] }).collect()
}

/// All that can be read.
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

/// Every kind of question about all that is left, others in each part of the test.
fn compare_all(dir: &Path, all: &[Element], marks: &[Element], part: u32) {
    compare(dir, all, part);
    compare_export(dir, all, part);
    compare_marks(dir, all, marks, part);
    if part.is_multiple_of(2) {
        compare_nearest(dir, all, marks);
    }
}

fn salt_of(part: u32) -> u32 {
    9 + part * 11
}

/// Lists, groups, and what comes last.
fn compare(dir: &Path, all: &[Element], part: u32) {
    for condition in conditions(salt_of(part)).iter().skip(part as usize % 6).step_by(6) {
        let sql = &condition.sql;
        let wanted = such(all, condition);
        let said = ask(dir, &format!("select ordinal, run, n, key from log where {sql} order by ordinal"));
        same(&listed(&said, condition), &wanted, sql);
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
fn compare_export(dir: &Path, all: &[Element], part: u32) {
    let most = 300 + salt_of(part);
    let others = Condition {
        sql: format!("f > 1 and key < {most}"),
        is: Box::new(move |e| e.float().is_some_and(|f| f.total_cmp(&1.0).is_gt()) && e.key() < most),
    };
    let asked = twice(condition(salt_of(part), salt_of(part)), others, true);
    let (said, found) = export(dir, &format!("select ordinal from log where {}", asked.sql));
    assert!(ended_well(&said), "{}: {}", asked.sql, said.err);
    same(&found.unwrap_or_default(), &such(all, &asked), &asked.sql);
}

/// Two streams, each with all that is left of it.
fn compare_marks(dir: &Path, all: &[Element], marks: &[Element], part: u32) {
    let marked: BTreeSet<Element> = marks.iter().copied().collect();
    for condition in conditions(salt_of(part)).iter().skip(part as usize % 12).step_by(12) {
        let sql = &condition.sql;
        let some = such(all, condition);
        let both: Vec<Element> = some.iter().copied().filter(|element| marked.contains(element)).collect();
        let joined =
            format!("(select * from log where {sql}) a KIND join marks m on a.run = m.run and a.n = m.n");
        let inner = joined.replace("KIND ", "");
        let said = ask(dir, &format!("select a.ordinal, a.run, a.n, a.key from {inner} order by 1"));
        same(&listed(&said, condition), &both, sql);
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

/// What is sent to a recorder.
struct Source {
    run: u32,
    sent: u64,
    input: File,
    marks: File,
}

/// Another run of the recorder, which nothing has been sent to yet.
fn start(dir: &Path, run: u32) -> (Recording, Source) {
    let marks = named_pipe(dir, "marks");
    let mut recording = Recording::framed(dir, "len32", SCHEMA);
    let input = recording.input.take().unwrap();
    let marks = OpenOptions::new().write(true).open(marks).unwrap();
    (recording, Source { run, sent: 0, input, marks })
}

impl Source {
    /// Sends so many more, until nobody takes them any more.
    fn send(&mut self, count: u64) {
        let run = self.run;
        for _ in 0..count / 500 {
            let some: Vec<Element> =
                (self.sent..self.sent + 500).map(|number| Element { run, number }).collect();
            self.sent += 500;
            let marked = some.iter().copied().filter(|element| element.is_marked());
            let marked: Vec<u8> = marked.flat_map(Element::mark).collect();
            let some: Vec<u8> = some.into_iter().flat_map(Element::sent).collect();
            if self.input.write_all(&some).is_err() || self.marks.write_all(&marked).is_err() {
                return;
            }
        }
    }

    /// Waits until all that was sent can be found, marks, too; what the recorder says of itself then.
    fn await_arrived(&self, recording: &mut Recording, dir: &Path) -> Value {
        let started = Instant::now();
        loop {
            let status = recording.await_lines(dir, self.sent);
            let marks = status["recorder"]["sources"][1]["packed_elements"].as_u64();
            if marks >= Some(self.sent / 100) {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "marks did not arrive: {status}");
        }
    }
}

/// Whether the recorder's bird's-eye view tells of all slots.
fn tells_all(status: &Value) -> bool {
    let slots = |name: &str| status["slots"][name].as_u64().unwrap();
    status["recorder"]["birds_eye"]["slots"].as_u64() == Some(slots("live") + slots("held"))
}

fn await_told(dir: &Path) {
    let started = Instant::now();
    loop {
        let status = ends(dir, "status r.hf --json", 0).json();
        if tells_all(&status) {
            return;
        }
        assert!(started.elapsed() < PATIENCE, "{status}");
    }
}

/// What is there once a recorder has begun is what was there before it, but for the oldest: it may have named these to be overwritten
/// next. A runway has a quarter of the slots at most.
fn is_rest(rest: &[Element], all: &[Element]) {
    let (_, younger) = all.split_at(all.len() / 2);
    let is_there = |element: &Element| all.binary_search(element).is_ok();
    let counts = (rest.len(), all.len());
    assert!(rest.ends_with(younger) && rest.iter().all(is_there), "{counts:?} elements are there");
}

#[test]
fn answers_are_right_while_slots_expire_and_after_the_recorder_was_killed() {
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let (mut well, mut expired, mut telling, mut filling) = (0, 0, 0, 0);
    let (mut recording, mut source) = start(dir, 0);
    for run in 0..ROUNDS {
        // Round once at least.
        source.send(160_000);
        for look in 0..LOOKS {
            let salt = 1 + run * 100 + look;
            source.await_arrived(&mut recording, dir);
            let known = Element { run, number: source.sent };
            let answer = std::thread::scope(|scope| {
                scope.spawn(|| source.send(SENT));
                (0..TRIES).find_map(|_| {
                    let answer = ask_beside_capture(dir, salt);
                    expired += u32::from(answer.is_none());
                    answer
                })
            });
            let Some(answer) = answer else { continue };
            // What was there before, and still is. Stretches may be missing: what queries have pinned is there still when what came
            // behind it has expired.
            let mut all = there(dir);
            all.retain(|element| *element < known);
            if salt % 8 == WITH_MARKS {
                let marks = marks_there(dir);
                all.retain(|element| marks.contains(element));
            }
            well += 1;
            telling += u32::from(answer.compare(&all, salt) > 0);
        }
        // In the middle of what it is sent.
        std::thread::scope(|scope| {
            scope.spawn(|| source.send(SENT * 4));
            ask_beside_capture(dir, 50 + run);
            recording.child.kill().unwrap();
        });
        recording.child.wait().unwrap();
        let (all, marks) = (left(dir), marks_left(dir));
        assert!(all.len() > 20_000 && all[0].number > 0, "{} from {:?}", all.len(), all.first());
        assert!(marks.len() > 100 && marks.iter().all(|mark| mark.is_marked()), "{}", marks.len());
        compare_all(dir, &all, &marks, run * 3);
        // The next one looks at what is there, and fills its view of it.
        (recording, source) = start(dir, run + 1);
        filling += u32::from(!tells_all(&source.await_arrived(&mut recording, dir)));
        // What the journal alone had is written by then, and nothing more expires.
        let rest = there(dir);
        let marks_of_rest = marks_left(dir);
        is_rest(&rest, &all);
        is_rest(&marks_of_rest, &marks);
        compare_all(dir, &rest, &marks_of_rest, run * 3 + 1);
        await_told(dir);
        same(&left(dir), &rest, "all that can be read");
        compare_all(dir, &rest, &marks_of_rest, run * 3 + 2);
    }
    eprintln!("{well} answers while elements came, {telling} with something to find, {expired} expired");
    eprintln!("{filling} times the view was being filled when the first question came");
    assert!(well >= ROUNDS * LOOKS / 2 && telling >= well / 2);
}
