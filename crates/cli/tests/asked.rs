//! Answers while elements arrive and slots expire, and after the recorder was killed in the middle of it: whatever ends well
//! is what a naive look at every element finds (promise 5); what ends as expired has found nothing wrong.
#![allow(missing_docs, clippy::unwrap_used)]

mod common;
#[path = "common/recording.rs"]
mod recording;

use common::{Said, ends, folder, run};
use recording::Recording;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

const BYTES: usize = 64;
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

    fn word(self) -> Option<String> {
        let word = self.number % 11;
        (word > 0).then(|| format!("w{word}"))
    }

    fn bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..4].copy_from_slice(&self.run.to_le_bytes());
        bytes[4..12].copy_from_slice(&self.number.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.key().to_le_bytes());
        let word = self.word().unwrap_or_default();
        bytes[16..16 + word.len()].copy_from_slice(word.as_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> Self {
        let run = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let element = Self { run, number: u64::from_le_bytes(bytes[4..12].try_into().unwrap()) };
        assert_eq!(element.bytes(), bytes, "{element:?}");
        element
    }
}

/// A condition, in both languages.
struct Condition {
    sql: String,
    is: Box<dyn Fn(Element) -> bool>,
}

fn conditions(salt: u32) -> [Condition; 6] {
    let of = |sql: String, is: Box<dyn Fn(Element) -> bool>| Condition { sql, is };
    let (key, word) = (salt * 37 % 1000, format!("w{}", salt % 13));
    let (low, high) = (key / 2, key / 2 + 3);
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
            Box::new(move |e| e.word().is_none() && [low, high, key].contains(&e.key())),
        ),
    ]
}

fn ask(dir: &Path, question: &str) -> Said {
    run(dir, &format!("query r.hf --format csv {}", question.replace(' ', "_")))
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

/// Asks once while elements arrive; tells whether it ended well.
fn ask_beside_capture(dir: &Path, salt: u32) -> bool {
    let condition = &conditions(salt)[salt as usize % 6];
    let is_list = salt.is_multiple_of(2);
    let what = if is_list { "ordinal, run, n, key" } else { "run, count(*), min(n), max(n), sum(key)" };
    let order = if is_list { "order by ordinal" } else { "group by run order by run" };
    let said = ask(dir, &format!("select {what} from log where {} {order}", condition.sql));
    let good = said.code == Some(0) || said.code == Some(3);
    assert!(good || said.code == Some(1) && said.err.contains("expired"), "{:?} {}", said.code, said.err);
    let between = |run: u32, first: u64, last: u64| {
        let all = (first..=last).map(move |number| Element { run, number });
        all.filter(|element| (condition.is)(*element))
    };
    if is_list {
        let rows = listed(&said, condition);
        let mut runs: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for (_, element) in rows {
            runs.entry(element.run).or_default().push(element.number);
        }
        for (run, numbers) in runs.iter().filter(|_| good) {
            let wanted: Vec<u64> =
                between(*run, numbers[0], *numbers.last().unwrap()).map(|element| element.number).collect();
            assert_eq!(*numbers, wanted, "{} of run {run}", condition.sql);
        }
    } else {
        assert!(good || fields(&said).is_empty(), "{}", said.out);
        for row in fields(&said) {
            let [run, count, first, last, sum] = row[..] else { panic!("{row:?}") };
            let wanted: Vec<u64> = between(run as u32, first, last).map(|one| one.key().into()).collect();
            assert_eq!((count, sum), (wanted.len() as u64, wanted.iter().sum()), "{} {row:?}", condition.sql);
        }
    }
    good
}

/// All that can be read, when nobody records.
fn left(dir: &Path) -> Vec<Element> {
    ends(dir, "read r.hf --stream log --format raw -o all --force", 0);
    std::fs::read(dir.join("all")).unwrap().chunks_exact(BYTES).map(Element::of).collect()
}

/// Every kind of question about all that is left.
fn compare(dir: &Path, all: &[Element], salt: u32) {
    for condition in conditions(salt) {
        let sql = &condition.sql;
        let wanted: Vec<Element> = all.iter().copied().filter(|element| (condition.is)(*element)).collect();
        let said = ask(dir, &format!("select ordinal, run, n, key from log where {sql} order by ordinal"));
        let found: Vec<Element> = listed(&said, &condition).into_iter().map(|(_, element)| element).collect();
        assert_eq!(found.len(), wanted.len(), "{sql}: {:?} and {:?}", found.first(), wanted.first());
        assert_eq!(found, wanted, "{sql}");
        let mut groups: BTreeMap<(u32, String), (u64, u64)> = BTreeMap::new();
        for element in &wanted {
            let group = groups.entry((element.run, element.word().unwrap_or_default())).or_default();
            *group = (group.0 + 1, group.1 + u64::from(element.key()));
        }
        let said = ask(
            dir,
            &format!("select run, word, count(*), sum(key) from log where {sql} group by 1, 2 order by 1, 2"),
        );
        let mut text = String::new();
        for ((run, word), (count, sum)) in groups {
            writeln!(text, "{run},{word},{count},{sum}").unwrap();
        }
        let rows = said.out.split_once('\n').map_or("", |(_, rows)| rows).replace("\"\"", "");
        assert_eq!(rows, text, "{sql}");
        let said = ask(dir, &format!("select run, n from log where {sql} order by ordinal desc limit 5"));
        let last: Vec<_> = wanted.iter().rev().take(5).map(|e| vec![e.run.into(), e.number]).collect();
        assert_eq!(fields(&said), last, "{sql}");
    }
}

#[test]
fn answers_are_right_while_slots_expire_and_after_the_recorder_was_killed() {
    let folder = folder();
    let dir = folder.path();
    let schema = "--attr run:uint=at:0:u32le --attr n:uint=at:4:u64le --attr key:uint=at:12:u32le \
                  --attr word:text=at:16:text8";
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let (mut well, mut expired) = (0, 0);
    for run in 0..ROUNDS {
        let mut recording = Recording::framed(dir, "fixed:64", schema);
        let mut input = recording.input.take().unwrap();
        let mut numbers = (0..).map(|number| Element { run, number });
        let mut send = |count: u64| {
            for _ in 0..count / 500 {
                let some: Vec<u8> = numbers.by_ref().take(500).flat_map(Element::bytes).collect();
                if input.write_all(&some).is_err() {
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
        compare(dir, &all, 9 + run * 10);
    }
    eprintln!("{well} answers while elements came, {expired} expired");
    assert!(well > 0);
}
