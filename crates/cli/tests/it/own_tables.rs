//! The tables that tell of the ring itself, `streams`, `slots`, `holds` and `gaps`: they say what the commands of these names say, and what
//! could not be looked at is told.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;

use common::{Said, ends, folder, holdfast};
use filled::{Filler, START, STEP};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn ask(dir: &Path, sql: &str) -> Said {
    holdfast(dir).args(["query", "r.hf", sql, "--json"]).output().unwrap().into()
}

/// A ring with lines and packets, holds of three kinds, and losses.
fn ring(dir: &Path) {
    ends(dir, "format r.hf --size 8MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&dir.join("r.hf"));
    filler.lines(1000).packets(50).lose(7).lose_of(1, 3).lines(1000).lose(1).lines(1000);
    filler.close();
    ends(dir, "hold r.hf --stream log --ordinals 20..30 --owner me --reason run_7", 0);
    ends(dir, &format!("hold r.hf --from {START} --to {} --reason start", START + 10 * STEP), 0);
    ends(dir, "hold r.hf --where size_>_700_and_ordinal_<_900 --before 1s --after 2s --reason large", 0);
    ends(dir, "hold r.hf --sample 1s/10s --reason usual", 0);
    // Told of chunk by chunk.
    ends(dir, "purge r.hf --stream log --ordinals 1200..1900 --held --reason law", 0);
}

/// A row as its table has it: lists as texts, and what a hold looks for beside the rest.
fn flat(row: Map<String, Value>) -> Map<String, Value> {
    let texts = |list: &[Value], of: &dyn Fn(&Value) -> String| match list {
        [] => Value::Null,
        list => list.iter().map(of).collect::<Vec<_>>().join(",").into(),
    };
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut flat = Map::new();
    for (name, value) in row {
        match (name.as_str(), value) {
            ("finding", Value::Object(condition_hold)) => flat.extend(self::flat(condition_hold)),
            ("finding", _) => {
                flat.insert("standing".to_owned(), false.into());
                flat.insert("distil".to_owned(), false.into());
            }
            ("ordinals", Value::Array(ends)) => {
                flat.insert("first_ordinal".to_owned(), ends[0].clone());
                flat.insert("end_ordinal".to_owned(), ends[1].clone());
            }
            ("sample_seconds", Value::Array(spans)) => {
                flat.insert("sample_seconds".to_owned(), spans[0].clone());
                flat.insert("period_seconds".to_owned(), spans[1].clone());
            }
            ("sequences", Value::Array(runs)) => {
                let run = |run: &Value| format!("{}-{}", run[0], run[1]);
                flat.insert(name, texts(&runs, &run));
            }
            ("evaluated", Value::Array(all)) => {
                let one = |one: &Value| format!("{}:{}", text(&one["stream"]), one["ordinal"]);
                flat.insert(name, texts(&all, &one));
            }
            ("streams", Value::Array(names)) => drop(flat.insert(name, texts(&names, &text))),
            (_, value) => drop(flat.insert(name, value)),
        }
    }
    flat.retain(|_, value| !value.is_null());
    flat
}

/// Numbers that are alike, and times with as many digits as they need.
fn as_texts(row: Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: Value| match (value.as_f64(), value.as_str()) {
        (Some(number), _) => number.to_string(),
        (_, Some(text)) => match text.strip_suffix('Z').filter(|time| time.contains('.')) {
            Some(time) => time.trim_end_matches('0').trim_end_matches('.').to_owned() + "Z",
            None => text.to_owned(),
        },
        _ => value.to_string(),
    };
    row.into_iter().map(|(name, value)| (name, text(value))).collect()
}

#[test]
fn each_says_what_the_command_of_its_name_says() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    for (table, least) in [("streams", 2), ("slots", 100), ("holds", 4), ("gaps", 4)] {
        let told = ends(dir, &format!("{table} r.hf --json"), 0).lines();
        let said = ask(dir, &format!("select * from {table}"));
        assert_eq!(said.code, Some(0), "{table}: {}", said.err);
        let rows = said.lines();
        assert!(told.len() >= least && rows.len() == told.len(), "{table}: {rows:?} and {told:?}");
        for (told, row) in told.into_iter().zip(rows) {
            let (Value::Object(told), Value::Object(row)) = (told, row) else { panic!("{table}") };
            assert_eq!(as_texts(flat(row)), as_texts(flat(told)), "{table}");
        }
    }
    // Of pieces that adjoin one.
    let purged = ask(dir, "select ordinal, ordinals from gaps where cause = 'purged'").json();
    assert_eq!((&purged["ordinal"], &purged["ordinals"]), (&1200.into(), &700.into()));
}

#[test]
fn losses_that_cannot_be_looked_at_are_told() {
    let folder = folder();
    let dir = folder.path();
    ring(dir);
    let all = ask(dir, "select count(*) n from gaps");
    assert_eq!(all.code, Some(0), "{}", all.err);
    let slots = ends(dir, "slots r.hf --json", 0).lines();
    let slot = ask(dir, "select slot from log where ordinal = 1199").json()["slot"].clone();
    let place = slots.iter().find(|told| told["sequence"] == slot).unwrap()["slot"].as_u64().unwrap();
    let file = std::fs::File::options().write(true).open(dir.join("r.hf")).unwrap();
    file.write_all_at(&[0xa5; 4096], (1 << 20) + (4 + place) * (64 << 10)).unwrap();
    let said = ask(dir, "select count(*) n from gaps");
    assert!(said.code == Some(1) && said.err.contains("damaged slot"), "{:?}: {}", said.code, said.err);
    ends(dir, "gaps r.hf", 1);
}
