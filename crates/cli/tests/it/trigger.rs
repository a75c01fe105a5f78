//! The client of the recorder's socket that docs/protocol.md shows, beside a real recorder.
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;
use crate::common::recording;

use common::{ends, folder, tool};
use recording::Recording;
use std::path::Path;
use std::process::{Command, Output};

fn trigger(dir: &Path, seconds: &str) -> Output {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/trigger.py");
    let mut command = Command::new("python3");
    command.arg(program).args(["r.hf", seconds, "what was that?"]);
    command.current_dir(dir).env("HOLDFAST_RUN", dir.join("run")).output().unwrap()
}

#[test]
fn a_program_holds_the_last_seconds_through_the_socket() {
    if tool("python3").is_none() {
        return;
    }
    let folder = folder();
    let dir = folder.path();
    let mut recording = Recording::start(dir, "--size 8MiB --slot 64KiB");
    recording.lines(1000);
    recording.await_lines(dir, 1000);
    let held = trigger(dir, "3600");
    let (said, trouble) = (String::from_utf8(held.stdout).unwrap(), String::from_utf8_lossy(&held.stderr));
    assert!(held.status.success(), "{trouble}");
    let holds = ends(dir, "holds r.hf --json", 0).lines();
    assert_eq!(said, format!("hold 1: {} slots, {} bytes\n", holds[0]["slots"], holds[0]["bytes"]));
    assert_eq!((&holds[0]["reason"], &holds[0]["owner"]), (&"what was that?".into(), &"trigger.py".into()));
    assert!(holds[0]["slots"].as_u64() > Some(5), "{}", holds[0]);
    // Of what is yet to come there is nothing.
    let refused = trigger(dir, "-3600");
    let trouble = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && trouble.contains("not held: refused, reason"), "{trouble}");
    recording.end();
    let nobody = trigger(dir, "10");
    assert!(!nobody.status.success() && String::from_utf8_lossy(&nobody.stderr).starts_with("trigger: "));
}
