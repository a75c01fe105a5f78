//! Rings: made, recorded, held, purged, copied and archived.

use super::{Deaf, stopped};
use crate::common::recording::{PATIENCE, Recording};
use crate::common::site::Site;
use crate::common::{ends, folder, holdfast, recorder_program, run};
use crate::vaults::{configure, held};
use std::fs;
use std::path::Path;
use std::time::Instant;

pub(super) const COMMANDS: &[&str] = &[
    "profile", "format", "prove", "record", "read", "query", "index", "hold", "release", "purge", "grow",
    "evacuate", "archive", "audit", "check",
];

fn holds(dir: &Path) -> usize {
    run(dir, "holds r.hf --json").lines().len()
}

#[test]
fn rings_are_changed_though_nobody_reads_it() {
    recorder_program();
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    held(dir);
    fs::create_dir(dir.join("a")).unwrap();
    configure(dir, &[("a", format!("url = \"{}\"", dir.join("a").display()))]);
    let mut deaf = Deaf::new(&site);
    deaf.run("check r.hf");
    deaf.run("read r.hf --ordinals 0..5000 --format raw -o read.raw");
    assert!(fs::metadata(dir.join("read.raw")).unwrap().len() > 0);
    deaf.run("query r.hf select_ordinal_from_log -o rows.csv --format csv --json");
    assert_eq!(fs::read_to_string(dir.join("rows.csv")).unwrap().lines().count(), 20_001);
    // Each dataset is told before the next one begins.
    deaf.run("archive r.hf --to a:archived --roll 4KiB --once --compress none");
    let archived = "query a:archived/*.mcap select_count(*)_c_from_log --json";
    assert_eq!(ends(dir, archived, 0).json()["c"], 20_000);
    assert!(fs::read_dir(dir.join("a/archived")).unwrap().count() > 1);
    deaf.run("evacuate r.hf 1 --to a:held.mcap --json");
    site.ends("dataset verify a:held.mcap", 0);
    deaf.run("index r.hf --index index --once");
    assert!(fs::read_dir(dir.join("index")).unwrap().count() > 0);
    deaf.run("hold r.hf --ordinals 100..400 --reason x");
    assert_eq!(holds(dir), 2);
    deaf.run("release r.hf 2");
    assert_eq!(holds(dir), 1);
    deaf.run("purge r.hf --stream log --ordinals 0..100 --reason x --yes");
    assert_eq!(ends(dir, "query r.hf select_min(ordinal)_m_from_log --json", 0).json()["m"], 100);
    deaf.run("grow r.hf --size 32MiB");
    assert_eq!(fs::metadata(dir.join("r.hf")).unwrap().len(), 32 << 20);
    deaf.run("audit r.hf --append acts.jsonl");
    assert!(fs::read_to_string(dir.join("acts.jsonl")).unwrap().lines().count() > 1);

    deaf.run("format f.hf --size 24MiB --slot 256KiB");
    deaf.run("record f.hf --source file:in.jsonl --name log --frame lines");
    assert_eq!(ends(dir, "query f.hf select_count(*)_c_from_log --json", 0).json()["c"], 20_000);
    fs::File::create(dir.join("a.img")).unwrap().set_len(96 << 20).unwrap();
    deaf.run("profile a.img --minutes 0.02 -o a.json");
    assert!(dir.join("a.json").is_file());
    ends(dir, "format p.hf --size 24MiB --slot 256KiB", 0);
    deaf.run("prove p.hf --minutes 0.05 --rate 16MiB/s -o proof.txt");
    assert!(dir.join("proof.txt").is_file());
    deaf.tried_all(COMMANDS);
}

#[test]
fn a_damaged_ring_is_told_by_the_exit_code_alone() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    held(dir);
    let mut bytes = fs::read(dir.join("r.hf")).unwrap();
    // In the payload of every slot that has it.
    let places: Vec<_> = memchr::memmem::find_iter(&bytes, b"request 1000 of").collect();
    for place in places {
        bytes[place] ^= 0x55;
    }
    fs::write(dir.join("r.hf"), bytes).unwrap();
    ends(dir, "check r.hf", 1);
    Deaf::new(&site).ends("check r.hf", 1);
}

#[test]
fn a_standing_hold_goes_on_though_nobody_reads_it() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(1000);
    recording.await_lines(dir, 1000);
    let mut hold = holdfast(dir);
    let condition =
        ["--where", "text(payload) like 'line 7%'", "--standing", "--quota", "60", "--reason", "few"];
    super::close_output(hold.args(["hold", "r.hf", "--stream", "log"]).args(condition));
    let hold = hold.spawn().unwrap();
    let slots =
        || run(dir, "holds r.hf --json").lines().first().map_or(0, |hold| hold["slots"].as_u64().unwrap());
    let grows = |more: u64| {
        let began = Instant::now();
        while slots() <= more {
            assert!(began.elapsed() < PATIENCE, "the hold does not grow");
        }
        slots()
    };
    let first = grows(0);
    recording.lines(8000);
    grows(first);
    assert_eq!(stopped(hold), Some(0));
    recording.end();
}
