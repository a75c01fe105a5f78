//! Tests of the privileges of a recorder while it reads untrusted input: no more than it needs (promise 8).

use crate::process::common::TestFolder;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// `CAP_IPC_LOCK`, as `/proc` has it.
const IPC_LOCK: u64 = 1 << 14;

/// What the threads of a process have, by their names: capabilities in force and to be had, and whether programs that
/// they run may give them others.
fn rights(pid: u32) -> BTreeMap<String, (u64, u64, bool)> {
    let mut all = BTreeMap::new();
    for task in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten() {
        let Ok(status) = std::fs::read_to_string(task.path().join("status")) else { continue };
        let said = |what: &str| status.lines().find_map(|line| line.strip_prefix(what)).unwrap().trim();
        let mask = |what| u64::from_str_radix(said(what), 16).unwrap();
        let name = format!("{} {}", said("Name:"), task.file_name().display());
        // The kernel's own threads of io_uring, which run nothing of ours.
        if !name.starts_with("iou-") {
            all.insert(name, (mask("CapEff:"), mask("CapPrm:"), said("NoNewPrivs:") == "0"));
        }
    }
    all
}

#[test]
fn a_recorder_of_root_keeps_no_privilege_but_locked_memory() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root has privileges to give up");
        return;
    }
    let place = TestFolder::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (tcp, shm) = (format!("tcp:127.0.0.1:{port}"), format!("shm:{}", place.path("door").display()));
    let words = "--size 32MiB --slot 1MiB --realtime --source stdin --name in --frame lines --source iface:lo --name lo";
    let mut options: Vec<&str> = words.split(' ').collect();
    options.extend([
        "--source", &tcp, "--name", "net", "--frame", "lines", "--source", &shm, "--name", "shared",
    ]);
    let mut recorder = place.start(&options);
    // All threads are there when it answers; one that was just started may not have come to it yet.
    let mut connection = recorder.connect();
    connection.status().unwrap();
    let begun = Instant::now();
    let rights = loop {
        let rights = rights(recorder.child.id());
        let dropped = |(effective, permitted, open): &(u64, u64, bool)| {
            (effective | permitted) & !IPC_LOCK == 0 && !open
        };
        if rights.values().all(dropped) {
            break rights;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{rights:x?}");
    };
    for name in ["holdfast-rec", "holdfast-lane", "holdfast-signal", "holdfast-ctl"] {
        assert!(rights.keys().any(|known| known.starts_with(name)), "{name}: {rights:x?}");
    }
    // It records from all of them, with what is open.
    writeln!(recorder.stdin().unwrap(), "a line").unwrap();
    TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"another\n").unwrap();
    while {
        let sources = connection.status().unwrap().recorder.unwrap().sources;
        sources[..3].iter().any(|source| source.packed_elements == 0)
    } {
        assert!(begun.elapsed() < Duration::from_mins(2), "a source delivers nothing");
    }
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(!place.path("door").exists(), "its sockets go with it");
}
