//! Tests of the cores and priorities of threads, as the kernel reports them, and of the warnings where they are not
//! permitted (promise 8).

use crate::process::common::{TestFolder, as_nobody};
use std::collections::BTreeMap;
use std::process::Command;

/// A thread, as the kernel shows it.
#[derive(Debug, PartialEq, Eq)]
struct Thread {
    cores: String,
    /// Policy (0: ordinary, 1: first in, first out) and real-time priority.
    policy: u64,
    priority: u64,
}

/// All threads of a process by name.
fn threads(pid: u32) -> BTreeMap<String, Thread> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let read = |file: &str| std::fs::read_to_string(task.as_ref().unwrap().path().join(file));
        // One that has ended meanwhile is none.
        let (Ok(name), Ok(status), Ok(stat)) = (read("comm"), read("status"), read("stat")) else { continue };
        let cores = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
        // Behind the name, which may hold anything, fields are counted from the third.
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        let field = |number: usize| fields[number - 3].parse().unwrap();
        let thread = Thread { cores: cores.trim().to_owned(), policy: field(41), priority: field(40) };
        all.insert(name.trim().to_owned(), thread);
    }
    all
}

/// Threads of a recorder with these options, and its warnings.
fn recorded(options: &[&str]) -> (BTreeMap<String, Thread>, String) {
    let place = TestFolder::in_memory();
    let common =
        ["--size", "16MiB", "--slot", "256KiB", "--source", "stdin", "--name", "s", "--frame", "lines"];
    let options: Vec<&str> = common.iter().chain(options).copied().collect();
    let mut recorder = place.start(&options);
    let mut stdin = recorder.stdin().unwrap();
    // Once this is packed all threads are where they stay.
    std::io::Write::write_all(&mut stdin, b"x\n").unwrap();
    recorder.await_packed(1);
    let threads = threads(recorder.child.id());
    drop(stdin);
    let ended = recorder.end();
    assert!(ended.status.success());
    (threads, ended.err)
}

/// What we may use, as a list of numbers and as the kernel writes it.
fn allowed() -> (Vec<usize>, String) {
    let set = rustix::thread::sched_getaffinity(None).unwrap();
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    ((0..rustix::thread::CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(), list.trim().to_owned())
}

const CAPTURE: &str = "holdfast-record";
const LANE: &str = "holdfast-lane";
/// What writes to a file for the lane.
const WRITER: &str = "holdfast-write";
const SOURCE: &str = "src stdin";

#[test]
fn threads_stay_on_the_cores_that_they_were_given() {
    let (cores, anywhere) = allowed();
    let [first, second, ..] = cores[..] else {
        println!("skipped: one core has no choice");
        return;
    };
    let (threads, said) = recorded(&["--cpu", &format!("{second},{first}")]);
    assert_eq!(threads[CAPTURE].cores, second.to_string(), "{threads:?}");
    assert_eq!([&threads[LANE].cores, &threads[WRITER].cores], [&first.to_string(); 2]);
    assert_eq!(threads[SOURCE].cores, anywhere);
    assert_eq!(threads["holdfast-ctl"].cores, anywhere);
    assert!(!said.contains("--cpu"), "{said}");
    // A core that is not there leaves its thread where it was, and the others on theirs.
    let (threads, said) = recorded(&["--cpu", &format!("8000,8001,{first}")]);
    assert_eq!([&threads[CAPTURE].cores, &threads[LANE].cores], [&anywhere; 2]);
    assert_eq!(threads[SOURCE].cores, first.to_string());
    assert!(said.contains("warning: --cpu: core 8000 does not exist or is not available"), "{said}");
    assert!(said.contains(&format!("available: {anywhere}")), "{said}");
}

#[test]
fn only_the_disks_threads_run_before_ordinary_ones_and_only_on_request() {
    let (threads, _) = recorded(&[]);
    assert!(threads.values().all(|thread| (thread.policy, thread.priority) == (0, 0)), "{threads:?}");
    let (threads, said) = recorded(&["--realtime"]);
    if said.contains("real-time") {
        println!("skipped: no right to real-time priority here");
        return;
    }
    for (name, thread) in &threads {
        let wanted = if [LANE, WRITER].contains(&name.as_str()) { (1, 40) } else { (0, 0) };
        assert_eq!((thread.policy, thread.priority), wanted, "{name}");
    }
}

#[test]
fn a_core_outside_of_what_it_may_use_is_told_with_those_that_it_may() {
    let (cores, _) = allowed();
    let [first, second, ..] = cores[..] else {
        println!("skipped: one core has no choice");
        return;
    };
    let place = TestFolder::in_memory();
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", &first.to_string(), crate::process::common::PROGRAM]);
    command.arg(&place.ring).args([
        "--size",
        "16MiB",
        "--source",
        "stdin",
        "--name",
        "s",
        "--cpu",
        &second.to_string(),
    ]);
    let output = command.env("HOLDFAST_RUN", place.run()).stdin(std::process::Stdio::null()).output();
    let Ok(output) = output else {
        println!("skipped: taskset is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("core {second} does not exist or is not available")), "{said}");
    assert!(said.contains(&format!("available: {first} ")), "{said}");
}

#[test]
fn without_the_rights_it_records_and_says_what_would_give_them() {
    let place = TestFolder::in_memory();
    let options = ["--size", "16MiB", "--source", "stdin", "--name", "s", "--realtime"];
    let limits = ["prlimit", "--rtprio=0:0", "--memlock=65536:65536"];
    let Some((code, said)) = as_nobody(&place, &limits, &options) else { return };
    assert_eq!(code, 0, "{said}");
    for what in [
        "its I/O thread gets no real-time priority",
        "CAP_SYS_NICE",
        "LimitRTPRIO=",
        "cannot lock memory",
        "limit: 64 KiB",
        "LimitMEMLOCK=",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
}
