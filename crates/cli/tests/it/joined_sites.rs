//! Sites that share one name space: put at one, read at the other, cut apart, written at both, healed and settled.

use crate::common::filled::{Filler, START, STEP};
use crate::common::site::Site;
use crate::common::{Said, documented, ends, folder, holdfast};
use crate::serving::{examples, run_example};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bound for what another process does in its own time, so that a failing test ends.
const PATIENCE: Duration = Duration::from_mins(1);

pub(crate) fn start(dir: &Path, name: &str) -> Site {
    let folder = dir.join(name);
    fs::create_dir(&folder).unwrap();
    Site::start(&folder, &["--name", name])
}

/// Runs words on a site that must end with 0.
pub(crate) fn run(site: &Site, words: &[&str]) -> Said {
    let said: Said = site.command().args(words).output().unwrap().into();
    assert_eq!(said.code, Some(0), "{words:?}\n{}{}", said.out, said.err);
    said
}

/// Repeats words on a site until they end with 0 and the output is as wanted.
pub(crate) fn until(site: &Site, words: &[&str], is_wanted: impl Fn(&str) -> bool) -> String {
    let end = Instant::now() + PATIENCE;
    loop {
        let said: Said = site.command().args(words).output().unwrap().into();
        if said.code == Some(0) && is_wanted(&said.out) {
            return said.out;
        }
        assert!(Instant::now() < end, "{words:?}\n{}{}", said.out, said.err);
    }
}

pub(crate) fn put(site: &Site, dir: &Path, contents: &str, path: &str) {
    let file = dir.join("file");
    fs::write(&file, contents).unwrap();
    run(site, &["put", file.to_str().unwrap(), path]);
}

pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

#[test]
fn two_sites_write_while_they_are_apart_and_agree_afterwards() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (start(dir, "a"), start(dir, "b"));
    let said: Said = a.command().args(["site", "ls"]).output().unwrap().into();
    assert_eq!((said.code, said.err.contains("site add")), (Some(3), true));
    let added = run(&a, &["site", "add", "b", b.url(), "--interval", "200ms", "--json"]);
    documented("site", [&json(&added.out)]);
    run(&b, &["site", "add", "a", a.url(), "--interval", "200ms"]);
    put(&a, dir, "written at a", "/lab/notes.txt");
    until(&b, &["ls", "/lab"], |out| out == "notes.txt\n");
    // The bytes are at A only; B fetches them for its client.
    until(&b, &["site", "status", "--json"], |out| json(out)["state"] == "connected");
    let got = dir.join("got");
    run(&b, &["get", "/lab/notes.txt", got.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&got).unwrap(), "written at a");

    for (site, peer) in [(&a, "b"), (&b, "a")] {
        assert!(run(site, &["site", "pause", peer]).out.contains("paused"));
    }
    put(&a, dir, "from a", "/lab/plan.txt");
    put(&b, dir, "from b", "/lab/plan.txt");
    let status = run(&a, &["site", "status", "--json"]).out;
    documented("site", [&json(&status)]);
    assert_eq!((&json(&status)["state"], &json(&status)["queue"]), (&json!("paused"), &json!(1)));
    for (site, peer) in [(&a, "b"), (&b, "a")] {
        run(site, &["site", "resume", peer]);
    }
    for site in [&a, &b] {
        until(site, &["ls", "/lab"], |out| out == "notes.txt\nplan.txt\nplan.txt_1\n");
    }
    let listed = until(&a, &["conflicts", "--json"], |out| out.contains("same_name"));
    let conflict = json(&listed);
    documented("conflicts", [&conflict]);
    assert_eq!(run(&b, &["conflicts", "--json"]).out, listed);
    let id = conflict["id"].as_str().unwrap();
    let shown = run(&b, &["conflicts", "show", id]).out;
    assert!(shown.contains("/lab/plan.txt_1") && shown.contains("open"), "{shown}");
    let settled = run(&b, &["conflicts", "flip", id, "--json"]).out;
    documented("conflicts keep", [&json(&settled)]);
    let contents = |site: &Site, path: &str| {
        let _ = fs::remove_file(&got);
        run(site, &["get", path, got.to_str().unwrap()]);
        fs::read_to_string(&got).unwrap()
    };
    let none: Said = until_none(&a);
    assert!(none.err.contains("no open conflicts"), "{}", none.err);
    // The later one, of B, has the name now, at both sites.
    for site in [&a, &b] {
        assert_eq!(contents(site, "/lab/plan.txt"), "from b");
        assert_eq!(contents(site, "/lab/plan.txt_1"), "from a");
    }
    let removed = run(&a, &["site", "remove", "b", "--json"]).out;
    documented("site remove", [&json(&removed)]);
}

fn until_none(site: &Site) -> Said {
    let end = Instant::now() + PATIENCE;
    loop {
        let said: Said = site.command().arg("conflicts").output().unwrap().into();
        if said.code == Some(3) {
            return said;
        }
        assert!(Instant::now() < end, "{}{}", said.out, said.err);
    }
}

#[test]
fn accounts_and_grants_of_one_site_count_at_the_other() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (start(dir, "a"), start(dir, "b"));
    let secret = |name: &str, text: &str| {
        let file = dir.join(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let create = ["token", "create", "--name", "a", "--scope", "replicate", "--data", "data", "--quiet"];
    let (token, password) = (secret("token", &run(&b, &create).out), secret("password", "correct horse"));
    run(&a, &["site", "add", "b", b.url(), "--interval", "200ms", "--peer-token-file", &token]);
    run(&a, &["account", "add", "ann", "--password-file", &password]);
    run(&a, &["mkdir", "/secret"]);
    run(&a, &["mkdir", "/lab", "--owner", "ann"]);
    until(&b, &["login", "--account", "ann", "--password-file", &password], |_| true);
    until(&b, &["ls", "/"], |out| out == "lab/\n");
    run(&b, &["grant", "read", "/lab", "everyone"]);
    until(&a, &["grants", "/lab"], |out| out.contains("everyone  read   /lab"));
    run(&a, &["account", "disable", "ann"]);
    let end = Instant::now() + PATIENCE;
    loop {
        let said: Said = b.command().args(["ls", "/"]).output().unwrap().into();
        if said.code == Some(1) && said.err.contains("disabled or removed") {
            break;
        }
        assert!(Instant::now() < end, "{}{}", said.out, said.err);
    }
}

#[test]
fn wrong_sites_and_conflicts_are_told() {
    let folder = folder();
    let site = Site::start(folder.path(), &[]);
    for (words, code, wanted) in [
        (&["site", "add", "b", "ftp://x"][..], 1, "http"),
        (&["site", "add", "b/c", "http://127.0.0.1:1"], 1, "letters"),
        (&["site", "add", "b", "http://127.0.0.1:1", "--interval", "1ms"], 1, "100 ms"),
        (
            &["site", "add", "b", "http://127.0.0.1:1", "--peer-token-file", "none"],
            1,
            "cannot read the token",
        ),
        (&["site", "pause", "b"], 3, "no such site"),
        (&["site", "remove", "b"], 3, "b"),
        (&["site", "status"], 3, "no other sites"),
        (&["conflicts"], 3, "no open conflicts"),
        (&["conflicts", "show", "x"], 3, "no such conflict"),
        (&["conflicts", "keep", "x"], 1, "KIND-UUID"),
    ] {
        let said: Said = site.command().args(words).output().unwrap().into();
        assert_eq!(said.code, Some(code), "{words:?} {}{}", said.out, said.err);
        assert!(said.err.contains(wanted), "{words:?}: {}", said.err);
    }
    run(&site, &["site", "add", "gone", "http://127.0.0.1:1"]);
    let end = Instant::now() + PATIENCE;
    loop {
        let said: Said = site.command().args(["site", "status"]).output().unwrap().into();
        if said.code == Some(1) {
            assert!(said.err.contains("gone") && said.out.contains("lost"), "{}{}", said.out, said.err);
            break;
        }
        assert!(Instant::now() < end, "{}{}", said.out, said.err);
    }
    let offline: Said =
        holdfast(folder.path()).args(["site", "ls", "--site", "http://127.0.0.1:1"]).output().unwrap().into();
    assert_eq!(offline.code, Some(1));
}

#[test]
fn copies_are_made_by_policy_and_staged() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (start(dir, "ams"), start(dir, "gva"));
    run(&a, &["site", "add", "gva", b.url(), "--interval", "200ms"]);
    run(&b, &["site", "add", "ams", a.url(), "--interval", "200ms"]);
    put(&a, dir, "one", "/lab/one.txt");
    until(&b, &["ls", "/lab"], |out| out == "one.txt\n");
    until(&b, &["site", "status", "--json"], |out| json(out)["state"] == "connected");
    let staged = run(&a, &["stage", "/lab", "--near", "gva", "--json"]).out;
    documented("stage", [&json(&staged)]);
    assert_eq!(json(&staged)["fetching"], 1);
    let jobs = until(&b, &["jobs", "--json"], |out| json(out)["state"] == "done");
    documented("jobs", [&json(&jobs)]);
    let policy =
        until(&a, &["policy", "set", "/lab", "--copies", "2", "--sites", "ams,gva", "--json"], |_| true);
    documented("policy", [&json(&policy)]);
    put(&a, dir, "two", "/lab/two.txt");
    until(&a, &["replicas", "/lab/two.txt", "--json"], |out| out.lines().count() == 2);
    // Sites are shown by their names.
    let replicas = run(&a, &["replicas", "/lab/two.txt", "--json"]).out;
    documented("replicas", replicas.lines().map(json).collect::<Vec<_>>().iter());
    let identity = json(&run(&a, &["site", "digest", "--json"]).out)["site"].as_str().unwrap().to_owned();
    for words in [&["replicas", "/lab/two.txt"][..], &["stat", "/lab/two.txt"]] {
        let told = run(&a, words).out;
        let columns = told.lines().filter(|line| line.contains("verified"));
        let sites: Vec<_> =
            columns.map(|line| u8::from(line.contains("gva")) * 2 + u8::from(line.contains("ams"))).collect();
        assert!(sites.contains(&2) && sites.contains(&1), "{told}");
        assert!(
            !told
                .lines()
                .any(|line| line.contains("verified") && line.split([' ', ',']).any(|word| word == identity)),
            "{told}"
        );
    }
    let removed = run(&b, &["policy", "rm", "/lab", "--json"]).out;
    documented("policy rm", [&json(&removed)]);
    let id = json(&run(&a, &["stat", "/lab/one.txt", "--json"]).out)["id"].as_str().unwrap().to_owned();
    run(&a, &["rm", "/lab/one.txt"]);
    let early: Said = a.command().args(["trash", "purge", "/lab/one.txt"]).output().unwrap().into();
    assert!(
        early.code == Some(0) || early.err.contains("is not acknowledged by site gva"),
        "{}{}",
        early.out,
        early.err
    );
    let unknown: Said = a.command().args(["trash", "purge", "/lab/none"]).output().unwrap().into();
    assert_eq!(unknown.code, Some(3), "{id} {}", unknown.err);
    for (words, code, wanted) in [
        (&["policy", "set", "/lab", "--copies", "2", "--sites", "ams"][..], 1, "at least as many"),
        (&["policy", "set", "/lab", "--copies", "1", "--sites", "nowhere"], 1, "known site"),
        (&["policy", "set", "/none", "--copies", "1", "--sites", "ams"], 3, "none"),
        (&["policy", "rm", "/lab"], 3, "policy"),
        (&["stage", "/lab", "--near", "nowhere"], 1, "no known site"),
    ] {
        let said: Said = a.command().args(words).output().unwrap().into();
        assert_eq!(said.code, Some(code), "{words:?} {}{}", said.out, said.err);
        assert!(said.err.contains(wanted), "{words:?}: {}", said.err);
    }
}

#[test]
fn the_examples_of_commands_for_several_sites_work() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (start(dir, "ams"), start(dir, "gva"));
    put(&a, dir, "one", "/lab/2026/run1.dada");
    run(&a, &["site", "add", "gva", b.url(), "--interval", "200ms"]);
    until(&b, &["ls", "/lab/2026"], |out| out == "run1.dada\n");
    run(&a, &["site", "pause", "gva"]);
    put(&a, dir, "plan of a", "/lab/plan.txt");
    put(&b, dir, "plan of b", "/lab/plan.txt");
    run(&a, &["site", "resume", "gva"]);
    let listed = until(&a, &["conflicts", "--json"], |out| out.contains("same_name"));
    let conflict = json(&listed)["id"].as_str().unwrap().to_owned();
    run(&a, &["site", "remove", "gva"]);
    let subcommands = ["conflicts show", "policy set", "policy ls", "policy rm"];
    let whole = ["site", "policy", "stage", "jobs", "hold", "holds", "conflicts"];
    for command in subcommands.into_iter().chain(whole) {
        let words = command.split(' ').chain(["--help"]);
        let help: Said = a.command().args(words).output().unwrap().into();
        let mut all = examples(&help.out);
        // Those for a ring here have a test of their own.
        all.retain(|example| !command.starts_with("hold") || example.contains("hf://"));
        assert!(!all.is_empty(), "{command}");
        for example in &all {
            // The other site of the example, and the identity of a conflict.
            let example = example.replace("http://127.0.0.1:7371", b.url());
            let words =
                example.split(' ').map(|word| if word.starts_with("same-") { &conflict } else { word });
            let said = run_example(dir, &a, &words.collect::<Vec<_>>().join(" "));
            // After the one conflict is settled there is none, and nothing is fetched.
            let is_list = matches!(command, "conflicts" | "jobs") && said.code == Some(3);
            assert!(said.code == Some(0) || is_list, "{example}: {}{}", said.out, said.err);
        }
    }
}

#[test]
fn a_hold_ordered_at_one_site_is_applied_when_the_ring_of_another_is_back() {
    let folder = folder();
    let dir = folder.path();
    let (a, b) = (start(dir, "ams"), start(dir, "gva"));
    let there = dir.join("gva");
    let config = there.join(".config/holdfast");
    fs::create_dir_all(&config).unwrap();
    let ring = there.join("r.hf");
    fs::write(config.join("config.toml"), format!("[rings.lab]\npath = {ring:?}\n")).unwrap();
    ends(&there, "format r.hf --size 8MiB --slot 64KiB", 0);
    let mut filler = Filler::open(&ring);
    filler.lines(3000);
    filler.close();
    run(&a, &["site", "add", "gva", b.url(), "--interval", "200ms"]);
    until(&a, &["site", "status", "--json"], |out| json(out)["state"] == "connected");
    until(&a, &["policy", "set", "/", "--copies", "1", "--sites", "gva"], |_| true);

    // The disk of the ring and then the whole site are away.
    fs::rename(&ring, there.join("away")).unwrap();
    let (from, to) = ((START + 2001 * STEP).to_string(), (START + 2100 * STEP).to_string());
    let words = ["hold", "hf://gva/rings/lab", "--from", &from, "--to", &to, "--reason", "burst", "--json"];
    let ordered = json(&run(&a, &words).out);
    documented("ordered holds", [&ordered]);
    assert_eq!(ordered["state"], "ordered");
    let state = |wanted: &'static str| move |out: &str| json(out)["state"] == wanted;
    let waiting = until(&a, &["holds", "hf://gva/rings/lab", "--json"], state("waiting"));
    assert!(json(&waiting)["message"].as_str().unwrap().contains("r.hf"), "{waiting}");
    let address = b.url().strip_prefix("http://").unwrap().to_owned();
    drop(b);
    fs::rename(there.join("away"), &ring).unwrap();
    let b = Site::at(&there, &address, &["--name", "gva"]);
    let applied = until(&a, &["holds", "hf://", "--json"], state("applied"));
    documented("ordered holds", [&json(&applied)]);
    let held = ends(&there, "holds r.hf --json", 0).json();
    assert_eq!((&held["id"], &held["reason"]), (&json(&applied)["hold"], &Value::from("burst")));

    // A range that left the ring has expired, an unknown ring is refused, and both are told everywhere.
    let early = (START - 2000 * STEP).to_string();
    let before = (START - 1000 * STEP).to_string();
    run(&b, &["hold", "hf://gva/rings/lab", "--from", &early, "--to", &before, "--reason", "too late"]);
    run(&b, &["hold", "hf://gva/rings/none", "--reason", "no ring"]);
    let last = |wanted: &'static str| move |out: &str| out.lines().any(|line| json(line)["state"] == wanted);
    until(&a, &["holds", "hf://", "--json"], last("expired"));
    until(&a, &["holds", "hf://", "--json"], last("refused"));
    assert_eq!(ends(&there, "holds r.hf --json", 0).lines().len(), 1);
    for (words, code, wanted) in [
        (&["hold", "hf://nowhere/rings/lab", "--reason", "x"][..], 1, "no known site"),
        (&["hold", "hf://gva", "--reason", "x"], 2, "hf://SITE/rings/RING"),
        (&["hold", "hf://gva/lab/x/y", "--reason", "x"], 2, "hf://SITE/rings/RING"),
        (&["hold", "hf://gva/rings/lab", "--where", "size > 1", "--reason", "x"], 2, "times and streams"),
        (&["holds", "hf://nowhere"], 3, "no hold was ordered"),
    ] {
        let said: Said = a.command().args(words).output().unwrap().into();
        assert_eq!(said.code, Some(code), "{words:?} {}{}", said.out, said.err);
        assert!(said.err.contains(wanted), "{words:?}: {}", said.err);
    }
}
