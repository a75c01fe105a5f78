//! `holdfast prove` on small rings, with the real recorder: what it says adds up, whatever this machine's disk does
//! meanwhile (promises 2, 5), and nothing is lost that was not to be lost (promise 8). What follows from which figures is
//! tested beside the verdict.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::by_hand;
use crate::common::recording;

use by_hand::{of_file, promising};
use common::{Said, documented, ends, folder, holdfast, recorder_program, run};
use recording::{PATIENCE, Recording};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// What every proof says, whoever was faster; what the text has of it.
fn adds_up(dir: &Path, said: &Said, report: &str) -> Value {
    let proof = said.json();
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{proof}"));
    assert_eq!((&proof["wrong"], &proof["faults"]), (&0.into(), &Value::Array(Vec::new())), "{proof}");
    let stages = proof["stages"].as_array().unwrap();
    assert_eq!(stages.len(), 5);
    let mut sent = 0;
    for stage in stages {
        let told = number(&stage["recorded_elements"]) + number(&stage["lost_elements"]);
        assert_eq!(number(&stage["sent_elements"]), told, "{stage}");
        assert!(told > 0, "{stage}");
        sent += told;
    }
    assert_eq!(number(&proof["sent_elements"]), sent);
    assert_eq!(number(&proof["sent_bytes"]), sent * number(&proof["element_bytes"]));
    let back = &proof["read_back"];
    let found =
        number(&back["elements"]) + number(&back["lost_elements"]) + number(&back["expired_elements"]);
    assert_eq!(found, sent, "{proof}");
    assert_eq!(number(&back["bytes"]), number(&back["elements"]) * number(&proof["element_bytes"]));
    let readers = stages.iter().flat_map(|stage| stage["readers"].as_array().unwrap());
    assert!(readers.map(|reader| number(&reader["bytes"])).sum::<u64>() > 0, "{proof}");
    let text = fs::read_to_string(dir.join(report)).unwrap();
    let figures = dir.join(report.replace(".txt", ".json"));
    let digest = blake3::hash(&fs::read(&figures).unwrap()).to_string();
    for wanted in [digest.as_str(), "Signature ____", "worst slack", "verified, ", "each as it was sent"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    let kept: Value = serde_json::from_slice(&fs::read(figures).unwrap()).unwrap();
    assert_eq!((&kept["format"], &kept["stages"]), (&"holdfast proof".into(), &proof["stages"]));
    proof
}

fn is_empty(dir: &Path) {
    ends(dir, "streams a.hf", 3);
    assert!(ends(dir, "check a.hf", 0).out.contains("sound"));
}

#[test]
fn a_ring_is_driven_at_what_it_promised_and_left_empty() {
    recorder_program();
    let folder = folder();
    let dir = folder.path();
    of_file(dir);
    let format =
        "format a.hf --size 400MiB --name lab --profile p.json --rate 5MiB/s --elements 200 --prefill --json";
    let made = ends(dir, format, 0).json();
    let said = run(dir, "prove a.hf --minutes 0.05 --json");
    if !promising(dir) {
        assert!(said.code == Some(1) && said.err.contains("nothing is promised here now"), "{}", said.err);
        return;
    }
    let proof = adds_up(dir, &said, "a.proof.txt");
    documented("prove", [&proof]);
    // A busy machine may have been too slow; then it is not called a proof.
    let verdict = proof["verdict"].as_str().unwrap();
    assert_eq!(said.code, Some(i32::from(verdict != "pass")), "{proof}");
    assert_eq!(proof["reasons"].as_array().unwrap().is_empty(), verdict == "pass", "{proof}");
    assert_eq!(proof["element_bytes"], (5_u64 << 20).div_ceil(200));
    assert_eq!(proof["stages"][4]["bursts"].as_array().unwrap().len(), 3);
    assert!(proof["stages"][2]["slack_least_seconds"].as_f64() > Some(0.0) || verdict != "pass");
    is_empty(dir);
    let left = ends(dir, "status a.hf --json", 0).json();
    assert_eq!((&left["guarantee"], &left["name"]), (&made["guarantee"], &"lab".into()));
    // The recovery string is the ring's own again.
    let recovery = proof["recovery"].as_str().unwrap();
    assert_ne!(recovery, made["recovery"]);
    ends(dir, &format!("check --geometry {recovery} a.hf"), 0);
}

#[test]
fn a_ring_that_promises_nothing_is_only_measured() {
    recorder_program();
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format a.hf --size 24MiB --slot 256KiB", 0);
    let said = ends(dir, "prove a.hf --minutes 0.05", 1);
    assert!(said.err.contains("promises nothing") && said.err.contains("holdfast profile"), "{}", said.err);
    // It is written several times over: what is overwritten next is read back before.
    let said = ends(dir, "prove a.hf --minutes 0.05 --rate 16MiB/s -o m.txt --json", 0);
    let proof = adds_up(dir, &said, "m.txt");
    assert_eq!((&proof["verdict"], &proof["terms"]), (&"measured".into(), &Value::Null));
    assert!(proof["read_back"]["bytes"].as_u64() > Some(24 << 20), "{proof}");
    let text = fs::read_to_string(dir.join("m.txt")).unwrap();
    for (name, there) in [("m.txt", "m.txt"), ("m.proof", "m.json")] {
        fs::copy(dir.join("m.json"), dir.join("m.proof.json")).unwrap();
        let said = ends(dir, &format!("prove a.hf --minutes 0.05 --rate 16MiB/s -o {name}"), 1);
        assert!(said.err.contains(there) && said.err.contains("--force"), "{}", said.err);
    }
    assert_eq!(fs::read_to_string(dir.join("m.txt")).unwrap(), text, "an earlier report stays");
    assert!(text.contains("which promises nothing") && text.contains("MEASURED, NOT PROMISED"), "{text}");
    is_empty(dir);
}

// Promise 8: nothing is lost that nobody gave away.
#[test]
fn what_is_recorded_or_used_is_not_destroyed_unasked() {
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 24MiB --slot 256KiB");
    recording.lines(100);
    recording.await_lines(dir, 100);
    let pid = recording.child.id().to_string();
    let said = ends(dir, "prove r.hf --rate 1MiB/s --destroy", 1);
    assert!(said.err.contains(&pid), "the recorder is named: {}", said.err);
    assert_eq!(recording.end().0, Some(0));
    for (line, code, wanted) in [
        ("prove r.hf --rate 1MiB/s", 1, "say --destroy"),
        ("prove none.hf --rate 1MiB/s", 1, "none.hf"),
        ("prove r.hf --rate 1MiB/s --destroy --minutes 0", 2, "minutes"),
        ("prove r.hf --rate 0 --destroy", 2, "a rate of 0 drives nothing"),
        ("prove r.hf --rate 1MiB/s --destroy -o r.hf", 2, "a file of its own"),
        ("prove r.hf --rate 1MiB/s --destroy -o p.json", 2, "a file of its own"),
        ("prove r.hf --rate 1MiB/s --destroy -o none/p.txt", 1, "cannot write the report there"),
        ("prove r.hf --destroy", 1, "promises nothing"),
    ] {
        let said = ends(dir, line, code);
        assert!(said.err.contains(wanted), "{line}: {}", said.err);
    }
    assert_eq!(ends(dir, "read r.hf --stream log", 0).out.lines().count(), 100);
    let said = ends(dir, "prove r.hf --rate 1MiB/s --destroy --minutes 0.05 --json", 0);
    adds_up(dir, &said, "r.proof.txt");
    ends(dir, "streams r.hf", 3);
}

#[test]
fn one_that_is_interrupted_is_no_proof_and_leaves_the_ring_empty() {
    recorder_program();
    let folder = folder();
    let dir = folder.path();
    ends(dir, "format a.hf --size 24MiB --slot 256KiB", 0);
    let mut command = holdfast(dir);
    command.args(["prove", "a.hf", "--rate", "1MiB/s", "--minutes", "5"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let started = Instant::now();
    while run(dir, "status a.hf --json").out.lines().all(|line| !line.contains("\"pid\"")) {
        assert!(started.elapsed() < PATIENCE, "no recorder");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{err}");
    assert!(err.contains("this is no proof") && err.contains("the ring is empty again"), "{err}");
    assert!(!dir.join("a.proof.txt").exists());
    is_empty(dir);
}
