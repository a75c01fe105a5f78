//! The examples of every `--help`, typed as they stand there, on a ring like the one that they speak of (promise 8: what
//! is advised works). Left out are those on devices and interfaces, which want privileges.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::filled;

use common::{Said, ends, folder, holdfast, tool};
use filled::Filler;
use holdfast_base::Timestamp;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A quarter of an hour of a log and of packets, and as much that is still to come: the commands may take their time.
fn lab(dir: &Path) {
    ends(dir, "format lab.hf --size 16MiB --slot 64KiB", 0);
    let now = Timestamp(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64);
    let mut filler = Filler::open_at(&dir.join("lab.hf"), now - Duration::from_mins(15));
    for at in 0..360 {
        filler.lines(10).packets(1).pass(Duration::from_secs(5));
        if at == 170 {
            // Some of the last ten minutes' are lost.
            filler.lose_of(1, 3);
        }
    }
    filler.close();
    for reason in ["one", "two", "three"] {
        ends(dir, &format!("hold lab.hf --stream log --ordinals 1..5 --reason {reason}"), 0);
    }
    ends(dir, "read lab.hf --stream eth0 --format pcapng -o trace.pcapng", 0);
}

/// The examples of a help text, without those that want what a test has not got.
fn examples(help: &str) -> Vec<String> {
    // What stands behind usage and options.
    let titles = ["\nExample", "\nBegin with"];
    let shown = titles.iter().find_map(|title| help.split_once(title)).unwrap_or_default().1;
    let lines =
        shown.lines().map(str::trim).filter(|line| line.starts_with("holdfast ") && !line.ends_with('\\'));
    lines
        .filter(|line| {
            !["/dev/", "iface:", "s3:", "RING", "[", "--watch", "--follow", "hf://"]
                .iter()
                .any(|word| line.contains(word))
        })
        .map(|line| {
            // The same in small, and at any port.
            let line = line.replace("10GiB", "16MiB").replace("20GiB", "32MiB").replace("1GiB", "16MiB");
            line.replace(":9477", ":0").replace(":7370", ":0")
        })
        .collect()
}

/// Has the shell run it, in a folder of its own with the ring.
fn typed(lab: &Path, line: &str) -> Said {
    let folder = folder();
    for file in ["lab.hf", "trace.pcapng"] {
        fs::copy(lab.join(file), folder.path().join(file)).unwrap();
    }
    if line.starts_with("holdfast format") {
        fs::remove_file(folder.path().join("lab.hf")).unwrap();
    }
    let line = match line.split_once(" | ") {
        Some((line, reader)) if tool(reader.split(' ').next().unwrap()).is_none() => line,
        _ => line,
    };
    let programs = Path::new(env!("CARGO_BIN_EXE_holdfast")).parent().unwrap();
    let path = format!("{}:{}:/usr/sbin:/sbin", programs.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    let settings = holdfast(folder.path());
    let listens = line.contains("--listen");
    // One that goes on until it is told to end takes the shell's place, so that it is told.
    let line = if listens { format!("exec {line}") } else { line.to_owned() };
    shell.args(["-ec", &line]).current_dir(folder.path()).env("PATH", path).stdin(Stdio::null());
    for (name, value) in settings.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    if !listens {
        return shell.output().unwrap().into();
    }
    let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM)
        .unwrap();
    let code = child.wait().unwrap().code();
    Said { code, out: first, err: String::new(), bytes: Vec::new() }
}

#[test]
fn the_examples_of_every_help_work() {
    common::recorder_program();
    let folder = folder();
    let dir = folder.path();
    lab(dir);
    let mut ran = 0;
    for command in [
        "",
        "format",
        "record",
        "status",
        "streams",
        "slots",
        "gaps",
        "read",
        "hold",
        "holds",
        "release",
        "purge",
        "grow",
        "serve",
        "audit",
        "check",
        "metrics",
        "completion",
    ] {
        let help = ends(dir, &format!("{command} --help"), 0).out;
        let examples = examples(&help);
        assert!(!examples.is_empty(), "{command} has no example that anybody can try");
        for example in examples {
            let said = typed(dir, &example);
            assert_eq!(said.code, Some(0), "{example}: {}{}", said.out, said.err);
            assert!(!said.err.contains("holdfast: "), "{example}: {}", said.err);
            ran += 1;
        }
    }
    assert!(ran > 15, "{ran}");
}
