//! Import of metadata: CSV and JSON lines have the effect of single commands, and errors name their lines.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::site::Site;

use common::{Said, documented, folder};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;

const ENTRIES: u64 = 40;

/// Site with the collections `/lab/COLLECTION/0` to `39`.
fn site(dir: &Path, collections: &[&str]) -> Site {
    let site = Site::start(dir, &[]);
    for collection in collections {
        let paths: Vec<_> = (0..ENTRIES).map(|number| format!("/lab/{collection}/{number}")).collect();
        site.ends(&format!("mkdir -p {}", paths.join(" ")), 0);
    }
    site
}

fn attributes(site: &Site, path: &str) -> Vec<Value> {
    let said: Said = site.command().args(["meta", "ls", path, "--json"]).output().unwrap().into();
    assert!(matches!(said.code, Some(0 | 3)), "{}", said.err);
    if said.code == Some(0) { said.lines() } else { Vec::new() }
}

fn import(site: &Site, arguments: &[&str], input: &Path) -> Said {
    let mut command = site.command();
    command.args(["meta", "import"]).args(arguments).stdin(File::open(input).unwrap());
    command.output().unwrap().into()
}

/// Number from 0 that looks random.
fn random(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

#[test]
fn lines_have_the_effect_of_single_commands() {
    let folder = folder();
    let dir = folder.path();
    let site = site(dir, &["csv", "jsonl", "single"]);
    let cells = ["m31", "12", "1.5", "2 GB", "2026-11-20", "x, \"y\"", "", "\u{e9}\n[z].", "-7e3", "a=b"];
    let state = &mut u64::from(std::process::id());
    println!("seed {state}");
    let (mut csv, mut lines) = ("\u{feff}path,target,t[s],\"the, note\"\r\n".to_owned(), String::new());
    for _ in 0..100 {
        let entry = random(state, ENTRIES);
        let row: Vec<&str> = (0..3).map(|_| cells[random(state, cells.len() as u64) as usize]).collect();
        let quoted: Vec<_> = row.iter().map(|cell| format!("\"{}\"", cell.replace('"', "\"\""))).collect();
        write!(csv, "{entry},{}\r\n", quoted.join(",")).unwrap();
        let mut set = site.command();
        set.args(["meta", "set", "--json", &format!("/lab/single/{entry}")]);
        let names = ["target", "t", "the, note"];
        let given = names.iter().zip(&row).filter(|(_, cell)| !cell.is_empty());
        set.args(given.map(|(name, cell)| format!("{name}={cell}{}", if *name == "t" { "[s]" } else { "" })));
        if row.iter().any(|cell| !cell.is_empty()) {
            let said: Said = set.output().unwrap().into();
            assert_eq!(said.code, Some(0), "{}", said.err);
            // The values that the entry has then are those of a line of JSON.
            let mut line = json!({"path": entry.to_string()});
            for attribute in said.lines() {
                line[attribute["name"].as_str().unwrap()] =
                    json!([{"value": attribute["value"], "unit": attribute["unit"]}]);
            }
            writeln!(lines, "{line}\n").unwrap();
        }
    }
    fs::write(dir.join("t.csv"), csv).unwrap();
    fs::write(dir.join("t.jsonl"), lines).unwrap();
    let told = site.ends("meta import t.csv --under /lab/csv --json", 0).lines();
    documented("meta import", &told);
    assert_eq!((&told[0]["first_line"], &told[0]["entries"]), (&json!(2), &json!(100)));
    site.ends("meta import t.jsonl --under /lab/jsonl/", 0);
    for entry in 0..ENTRIES {
        let single = attributes(&site, &format!("/lab/single/{entry}"));
        for collection in ["csv", "jsonl"] {
            assert_eq!(
                attributes(&site, &format!("/lab/{collection}/{entry}")),
                single,
                "{collection} {entry}"
            );
        }
    }
}

#[test]
fn an_import_goes_on_where_it_was_refused() {
    let folder = folder();
    let dir = folder.path();
    let site = site(dir, &["x"]);
    // Line 2 is the first one of an entry: a batch has 1000 lines.
    let line = |number: u64| format!("/lab/x/{},{number}\n", number % ENTRIES);
    let rows = |range: std::ops::Range<u64>| range.map(line).collect::<String>();
    let target = |entry: u64| attributes(&site, &format!("/lab/x/{entry}"))[0]["value"].clone();
    let text = format!("path,n\n{}/lab/x/none,1\n{}", rows(0..1500), rows(1500..2400));
    fs::write(dir.join("t.csv"), &text).unwrap();
    let refused = import(&site, &["t.csv", "--json"], Path::new("/dev/null"));
    assert_eq!(refused.code, Some(1));
    let told = json!({"first_line": 2, "last_line": 1001, "entries": 1000, "changed": 1000});
    assert_eq!(refused.lines()[0], told);
    for part in [
        "cannot import line 1502 of t.csv (`/lab/x/none`): ",
        "none of the lines 1002 to 2001 is imported",
        "the lines up to 1001 are imported",
        "; correct it",
    ] {
        assert!(refused.err.contains(part), "{part}: {}", refused.err);
    }
    assert_eq!(target(39), 999);
    // The lines that are imported come again: each sets its entry once more, as the last of them has left another value.
    fs::write(dir.join("t.csv"), text.replace("none", "7")).unwrap();
    site.ends("meta import t.csv", 0);
    assert_eq!((target(39), target(7)), (json!(2399), json!(2367)));
    // Another time the file changes nothing where its lines concern other entries.
    let few = format!("path,n\n{}", rows(2360..2400));
    fs::write(dir.join("few.csv"), few).unwrap();
    let told = site.ends("meta import few.csv", 0).out;
    assert_eq!(told, "40 lines imported: 0 entries changed, 40 had these attributes\n");
    // A file is read to its end before anything is sent, but a pipe is sent as it comes.
    let bad = format!("path,n\n{}x,y,z\n", rows(0..1100));
    fs::write(dir.join("bad.csv"), bad).unwrap();
    let refused = site.ends("meta import bad.csv", 1).err;
    assert!(refused.contains("cannot import line 1102 of bad.csv: it has 3 cells"), "{refused}");
    assert!(refused.contains("nothing was changed"), "{refused}");
    assert_eq!(target(39), 2399);
    let refused = import(&site, &["-"], &dir.join("bad.csv"));
    assert!(
        refused.code == Some(1) && refused.err.contains("line 1102 of standard input"),
        "{}",
        refused.err
    );
    assert!(refused.err.contains("the lines up to 1101 are imported"), "{}", refused.err);
    assert_eq!(target(39), 1079);
}

#[test]
fn values_are_added_and_removed_and_other_lines_refused() {
    let folder = folder();
    let dir = folder.path();
    let mut site = site(dir, &["x"]);
    let run = |site: &Site, options: &str, text: &str, code: i32| {
        fs::write(dir.join("t"), text).unwrap();
        site.ends(&format!("meta import t {options}"), code)
    };
    run(&site, "", "{\"path\":\"/lab/x/1\",\"a\":[1,2],\"b\":\"x\",\"c\":true}\n", 0);
    let names = |site: &Site| -> Vec<String> {
        let all = attributes(site, "/lab/x/1");
        all.iter().map(|one| format!("{}={}", one["name"].as_str().unwrap(), one["value"])).collect()
    };
    assert_eq!(names(&site), ["a=1", "a=2", "b=\"x\"", "c=\"true\""]);
    run(&site, "", "\n{\"path\":\"/lab/x/1\",\"a\":3,\"b\":null,\"c\":[]}", 0);
    assert_eq!(names(&site), ["a=3"]);
    run(&site, "--add", "path,a\n/lab/x/1,4\n/lab/x/1,3\n", 0);
    assert_eq!(names(&site), ["a=3", "a=4"]);
    for (options, text, part) in [
        ("--add", "{\"path\":\"/lab/x/1\",\"a\":null}\n", "line 1 of t: `a` has the value null"),
        ("", "", "line 1 of t: its first line does not name one column `path`"),
        (
            "",
            "path,a\n\nx,1\n",
            "line 3 of t: `x` does not begin with a slash: write /PROJECT/PATH, or give --under",
        ),
        ("--under /lab/x", "path,a\n../x,1\n", "line 2 of t: "),
        ("", "{\"path\":\"/lab/x/1\",\"a\":1}\n{\"path\":1}\n", "line 2 of t: it has no text `path`"),
    ] {
        let refused = run(&site, options, text, 1).err;
        assert!(refused.contains(part) && refused.contains("nothing was changed"), "{refused}");
    }
    assert_eq!(names(&site), ["a=3", "a=4"]);
    let token = site.ends("token create --data data --name reader --scope read --json", 0).json();
    site.token = Some(token["token"].as_str().unwrap().to_owned());
    let refused = run(&site, "", "path,a\n/lab/x/1,5\n", 1).err;
    assert!(refused.contains("line 2 of t (`/lab/x/1`): it needs the scope write"), "{refused}");
    assert_eq!(names(&site), ["a=3", "a=4"]);
}
