//! SIGHUP of a closed terminal: programs that were started to ignore it (`nohup`) go on.

use crate::common::recording::{PATIENCE, Recording};
use crate::common::site::Site;
use crate::common::{folder, holdfast_without_hang_ups};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::{Child, Stdio};
use std::time::Instant;

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn a_shipper_outlives_its_terminal_under_nohup() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    fs::create_dir(dir.join("files")).unwrap();
    let url = format!("{}/lab", site.url());
    let mut command = holdfast_without_hang_ups(dir);
    command.args(["ship", "files", "--to", &url, "--into", "shipped", "--state", "st", "--quiet", "100ms"]);
    let mut shipper = command.stdout(Stdio::null()).spawn().unwrap();
    for name in ["before", "after"] {
        fs::write(dir.join("files").join(name), name).unwrap();
        let began = Instant::now();
        let path = format!("/lab/shipped/{name}");
        while site.command().args(["stat", &path]).output().unwrap().status.code() != Some(0) {
            assert_eq!(shipper.try_wait().unwrap(), None, "the shipper ended");
            assert!(began.elapsed() < PATIENCE, "{name} does not arrive");
        }
        signal(&shipper, Signal::HUP);
    }
    signal(&shipper, Signal::TERM);
    assert_eq!(shipper.wait().unwrap().code(), Some(0));
}

#[test]
fn a_recorder_outlives_its_terminal_under_nohup() {
    let folder = folder();
    let dir = folder.path();
    let command = holdfast_without_hang_ups(dir);
    let mut recording = Recording::by(command, dir, "log --frame lines", "--size 8MiB --slot 64KiB");
    for count in [100, 200] {
        recording.lines(100);
        recording.await_lines(dir, count);
        signal(&recording.child, Signal::HUP);
    }
    assert_eq!(recording.end().0, Some(0));
}
