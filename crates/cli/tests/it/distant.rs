//! Searches over rings of other sites: the same answers as where the rings are, refusals, and ends.

use crate::common::filled::Filler;
use crate::common::site::Site;
use crate::common::{Said, documented, ends, folder, holdfast};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Bound for what another process does in its own time, so that a failing test ends.
const PATIENCE: Duration = Duration::from_mins(1);

/// Site with a ring `lab` of lines and packets, which clients may search, and `own`, which they may not.
fn with_ring(dir: &Path, name: &str, lines: u64) -> Site {
    let there = dir.join(name);
    let config = there.join(".config/holdfast");
    fs::create_dir_all(&config).unwrap();
    let ring = there.join("r.hf");
    let path = ring.to_str().unwrap();
    let text = format!("[rings.lab]\npath = \"{path}\"\n[rings.own]\npath = \"{path}\"\n");
    fs::write(config.join("config.toml"), text).unwrap();
    fs::write(there.join("site.toml"), "[search]\nrings = [\"lab\", \"gone\"]\n").unwrap();
    ends(&there, "format r.hf --size 8MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&ring);
    filler.lines(lines).packets(50);
    filler.close();
    Site::start(&there, &["--name", name, "--config", "site.toml"])
}

fn join(site: &Site, name: &str, peer: &Site) {
    site.ends(&format!("site add {name} {} --interval 200ms", peer.url()), 0);
    let end = Instant::now() + PATIENCE;
    // The name of the site is a fact of its catalog.
    loop {
        let said: Said = site.command().args(["site", "status", "--json"]).output().unwrap().into();
        if said.out.contains("\"connected\"") {
            break;
        }
        assert!(Instant::now() < end, "{}{}", said.out, said.err);
    }
    until(site, &["hash", &format!("hf://{name}/rings/lab"), "--stream", "eth0"]);
}

/// Repeats words until they end with 0.
fn until(site: &Site, words: &[&str]) {
    let end = Instant::now() + PATIENCE;
    loop {
        let said: Said = site.command().args(words).output().unwrap().into();
        if said.code == Some(0) {
            return;
        }
        assert!(Instant::now() < end, "{words:?} {}{}", said.out, said.err);
    }
}

fn said(site: &Site, words: &[&str]) -> Said {
    site.command().args(words).output().unwrap().into()
}

#[test]
fn a_search_at_another_site_answers_as_one_there() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("ams")).unwrap();
    let (a, b) = (Site::start(&dir.join("ams"), &["--name", "ams"]), with_ring(dir, "gva", 300));
    join(&a, "gva", &b);
    let there = dir.join("gva");
    let ring = there.join("r.hf");
    let pcap = dir.join("hits.pcapng");
    let pcap = pcap.to_str().unwrap();
    let count = "select count(*) n, max(size) most from log";
    for words in [
        &["query", "RING", count][..],
        &["query", "RING", count, "--json"],
        &["query", "RING", "select ordinal, src from eth0 limit 3", "--format", "csv"],
        &["query", "RING", "select ordinal from eth0 where ordinal = 900"],
        &["query", "RING", "select none from log"],
        &["grep", "line 2[0-9]+", "RING", "--count"],
        &["grep", "-F", "-e", "line 20 ", "-e", "--x", "RING", "--stream", "log", "--json"],
        &["grep", "no such line", "RING"],
        &["grep", "[", "RING"],
        &["hash", "RING", "--algorithm", "sha256,md5", "--stream", "eth0", "--ordinals", "3..5"],
        &["scan", "RING", "--module", "stats", "--json"],
        &["scan", "RING", "--module", "approx", "--pattern", "lime 17 ", "--distance", "1", "-m", "1"],
    ] {
        let with =
            |ring: &str| -> Vec<String> { words.iter().map(|word| word.replace("RING", ring)).collect() };
        let here: Said = holdfast(&there).args(with(ring.to_str().unwrap())).output().unwrap().into();
        let words = with("hf://gva/rings/lab");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        for site in [&a, &b] {
            let found = said(site, &words);
            assert_eq!((found.code, &found.out), (here.code, &here.out), "{words:?} {}", found.err);
            // The site of a message is told.
            assert_eq!(found.err, here.err.replace("holdfast: ", "holdfast: gva: "), "{words:?}");
        }
    }
    // The elements themselves, as a file here.
    let sql = "select ordinal from eth0 where ordinal < 20";
    let found = said(&a, &["query", "hf://gva/rings/lab", sql, "--format", "pcapng", "-o", pcap]);
    assert_eq!(found.code, Some(0), "{}", found.err);
    let words = ["query", "r.hf", sql, "--format", "pcapng", "-o", "here.pcapng"];
    let here: Said = holdfast(&there).args(words).output().unwrap().into();
    assert_eq!(here.code, Some(0), "{}", here.err);
    assert_eq!(fs::read(pcap).unwrap(), fs::read(there.join("here.pcapng")).unwrap());
    let again = said(&a, &["query", "hf://gva/rings/lab", sql, "--format", "pcapng", "-o", pcap]);
    assert!(again.code != Some(0) && again.err.contains("--force"), "{}", again.err);
    // Whoever asked is in the audit of the ring, by the name that the server knows.
    let _ = fs::remove_file(pcap);
    let why = ["--format", "pcapng", "-o", pcap, "--reason", "a burst"];
    let found = said(&b, &[&["query", "hf://gva/rings/lab", sql], &why[..]].concat());
    assert_eq!(found.code, Some(0), "{}", found.err);
    let acts = ends(&there, "audit r.hf --json", 0).out;
    assert!(acts.contains("a burst") && acts.contains("this machine"), "{acts}");
    let log = said(&b, &["log", "--json"]).out;
    assert!(log.contains("search by grep") && log.contains("hf://gva/rings/lab"), "{log}");
}

#[test]
fn answers_of_several_sites_are_put_together() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (with_ring(dir, "ams", 100), with_ring(dir, "gva", 200));
    join(&a, "gva", &b);
    let rings = ["hf://ams/rings/lab", "hf://gva/rings/lab"];
    let sql = "select count(*) n from log";
    let found = said(&a, &["query", rings[0], rings[1], sql, "--json"]);
    assert_eq!(found.code, Some(0), "{}", found.err);
    let mut rows: Vec<_> = found.out.lines().collect();
    rows.sort_unstable();
    assert_eq!(rows, ["{\"site\":\"ams\",\"n\":100}", "{\"site\":\"gva\",\"n\":200}"]);
    let table = said(&a, &["query", rings[0], rings[1], sql]);
    assert!(table.code == Some(2) && table.err.contains("--format jsonl"), "{}", table.err);
    // Lines that only one of them has: its end counts, and with none there is nothing.
    let found = said(&a, &["grep", "line 15[0-9] ", rings[0], rings[1]]);
    assert_eq!(found.code, Some(0), "{}", found.err);
    assert_eq!(found.out.lines().count(), 10);
    assert!(
        found.out.lines().all(|line| line.starts_with("gva: ") && line.contains("r.hf:log/15")),
        "{}",
        found.out
    );
    assert_eq!(said(&a, &["grep", "no such line", rings[0], rings[1]]).code, Some(3));
    let found = said(&a, &["grep", "line 15[0-9] ", rings[0], rings[1], "--json"]);
    documented("grep", [&serde_json::from_str(found.out.lines().next().unwrap()).unwrap()]);
    // A site that is away does not keep the others from answering.
    drop(b);
    let half = said(&a, &["grep", "line 7[0-9] ", rings[0], rings[1]]);
    assert_eq!((half.code, half.out.lines().count()), (Some(1), 10), "{}", half.err);
}

#[test]
fn a_file_is_made_of_a_complete_result_only() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (with_ring(dir, "ams", 4000), with_ring(dir, "gva", 200));
    join(&a, "gva", &b);
    let file = dir.join("rows");
    let at = |words: &[&str]| {
        let words = [&["query"], words, &["-o", file.to_str().unwrap()]].concat();
        let found = said(&a, &words);
        let rows = fs::read_to_string(&file).ok().map(|rows| rows.lines().count());
        let _ = fs::remove_file(&file);
        (found.code, rows, found.err)
    };
    let (own, other, csv) = ("hf://ams/rings/lab", "hf://gva/rings/lab", ["--format", "csv"]);
    let (none, all) = ("select ordinal from eth0 where ordinal = 900", "select ordinal, payload from log");
    assert_eq!(at(&[own, none, csv[0], csv[1]]).1, Some(1), "the names of the columns");
    assert_eq!(at(&[own, none, "--format", "pcapng"]).1, None, "no elements");
    // Damage at the site: all else is in the file.
    let ring = fs::OpenOptions::new().write(true).open(dir.join("ams/r.hf")).unwrap();
    ring.write_all_at(&vec![0xa5; 64 << 10], (1 << 20) + 14 * (64 << 10)).unwrap();
    let (code, rows, err) = at(&[own, all, csv[0], csv[1]]);
    assert!(err.contains("ams: 1 damaged slot could not be looked into"), "{err}");
    assert!(code == Some(1) && rows.is_some_and(|rows| (3000..4001).contains(&rows)), "{rows:?}");
    // One site of two is away.
    drop(b);
    let (code, rows, err) =
        at(&[other, "hf://ams/rings/lab", "select ordinal from eth0", "--format", "jsonl"]);
    assert_eq!((code, rows), (Some(1), Some(50)), "{err}");
    assert!(err.contains("gva: cannot search"), "{err}");
    assert_eq!(at(&[other, "select 1", csv[0], csv[1]]).1, None);
}

#[test]
fn what_may_not_be_searched_is_refused() {
    let folder = folder();
    let dir = folder.path();
    fs::create_dir(dir.join("ams")).unwrap();
    let (a, mut b) = (Site::start(&dir.join("ams"), &["--name", "ams"]), with_ring(dir, "gva", 30));
    fs::write(dir.join("long"), "x".repeat(140_000)).unwrap();
    for (words, code, wanted) in [
        (&["hash", "hf://gva/rings/own"][..], 1, "search.rings"),
        (&["hash", "hf://gva/rings/gone"], 1, "no ring is named `gone`"),
        (&["hash", "hf://gva/rings/lab", "--threads", "1"], 1, "--threads"),
        (&["scan", "hf://gva/rings/lab", "--module", "wasm:x.wasm"], 1, "stats, approx, bio"),
        (&["query", "hf://gva/rings/lab", "select 1", "--spill", "/"], 1, "--spill"),
        (&["hash", "hf://nowhere/rings/lab"], 1, "no connected site is named 'nowhere'"),
        (&["hash", "hf://gva"], 2, "hf://SITE/rings/RING"),
        (&["grep", "x", "hf://gva/rings/lab", "file"], 2, "two commands"),
        (&["grep", "-f", "/dev/null", "hf://gva/rings/lab"], 2, "no pattern"),
        (&["query", "hf://gva/rings/lab", "select 1", "--owner", "root"], 1, "--owner"),
        (&["grep", "-f", "../long", "hf://gva/rings/lab"], 1, "gva: cannot start the search"),
    ] {
        let found = said(&b, words);
        assert_eq!(found.code, Some(code), "{words:?} {}{}", found.out, found.err);
        assert!(found.err.contains(wanted), "{words:?}: {}", found.err);
    }
    let none = said(&a, &["hash", "hf://ams/rings/lab"]);
    assert!(none.code == Some(1) && none.err.contains("search.rings"), "{}", none.err);

    // Rights: reading the whole site, and nothing less.
    let create = |scope: &str, more: &[&str]| {
        let words = ["token", "create", "--name", "t", "--scope", scope, "--data", "data", "--quiet"];
        said(&b, &[&words[..], more].concat()).out.trim().to_owned()
    };
    let tokens = [create("read", &[]), create("write", &[]), create("read", &["--project", "lab"])];
    for (token, code) in tokens.into_iter().zip([0, 1, 1]) {
        b.token = Some(token);
        assert_eq!(said(&b, &["hash", "hf://gva/rings/lab"]).code, Some(code));
    }
    b.token = None;
    let denied = said(&b, &["hash", "hf://gva/rings/lab"]);
    assert!(denied.code == Some(1) && denied.err.contains("token"), "{}", denied.err);
}

#[test]
fn a_reader_that_leaves_ends_the_search() {
    let folder = folder();
    let dir = folder.path();
    let site = with_ring(dir, "gva", 4000);
    let mut child = site
        .command()
        .args(["grep", "line", "hf://gva/rings/lab"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Nobody reads: the answer fills the pipe, and all before it waits.
    drop(child.stdout.take());
    let ended: Said = child.wait_with_output().unwrap().into();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    // More than may run at the same time: each place is free again.
    for _ in 0..4 {
        let mut child = site
            .command()
            .args(["grep", "line", "hf://gva/rings/lab"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert_eq!(said(&site, &["hash", "hf://gva/rings/lab", "--stream", "log"]).code, Some(0));
}
