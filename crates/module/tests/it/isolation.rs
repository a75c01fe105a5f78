//! Processes end with their handle, with their scan, and after silence; they cannot open anything.

use crate::fixtures::{ModuleFile, PROGRAM, error, exists, metered, scan};
use holdfast_module_wire::{
    Answer, Channel, HostArguments, Limits, MAX_ANSWER_BYTES, ModuleProcess, Request, SharedMemory,
};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Module whose blocks never end.
const ENDLESS: (&str, &str) = (
    "hf_block",
    r#"(func (export "hf_block") (param i32 i32 i64) (result i32) (loop $again (br $again)) i32.const 0)"#,
);

/// Starts the program without the handle of the library.
pub(crate) fn bare(module: &ModuleFile, limits: Limits) -> (Child, Channel) {
    let memory = SharedMemory::new(limits.block_bytes).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let arguments = HostArguments { describe: false, wasm: module.path(), limits, arguments: Vec::new() };
    let child = Command::new(PROGRAM)
        .args(arguments.command_line())
        .stdin(OwnedFd::from(theirs))
        .stdout(memory.as_fd().try_clone_to_owned().unwrap())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut channel = Channel::new(ours);
    let ready = Answer::decode(channel.receive(MAX_ANSWER_BYTES, None).unwrap());
    assert!(matches!(ready, Ok(Answer::Ready(_))), "{ready:?}");
    (child, channel)
}

fn script(name: &str) -> String {
    format!("{}/tests/it/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_dropped_handle_kills_its_process() {
    let module = ModuleFile::with(&[]);
    let mut process = module.start(&[], metered()).unwrap();
    process.item("a", None).unwrap();
    let id = process.id();
    assert!(exists(id));
    drop(process);
    assert!(!exists(id));
}

#[test]
fn a_process_ends_with_its_scan() {
    let hour = Limits { call_time: Duration::from_hours(1), ..Limits::default() };
    let (mut idle, channel) = bare(&ModuleFile::with(&[]), hour.clone());
    drop(channel);
    assert!(idle.wait().unwrap().success());

    let (mut busy, mut channel) = bare(&ModuleFile::with(&[ENDLESS]), hour);
    let mut frames = Vec::new();
    Request::Item { name: "a".to_owned(), size: None }.encode(&mut frames);
    Request::Block { at: 0, length: 1, offset: 0, last: false }.encode(&mut frames);
    channel.send(&frames, None).unwrap();
    channel.receive(MAX_ANSWER_BYTES, None).unwrap();
    drop(channel);
    assert!(busy.wait().unwrap().success());
}

#[test]
fn a_killed_process_is_named() {
    let mut process = ModuleFile::with(&[]).start(&[], metered()).unwrap();
    process.item("a.log", None).unwrap();
    let id = rustix::process::Pid::from_raw(process.id().cast_signed()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::KILL).unwrap();
    assert_eq!(
        error(process.block(0, b"x", true)),
        "the process of the module my.wasm ended by itself (signal: 9 (SIGKILL)) on a block of a.log at offset 0: ended"
    );
}

#[test]
fn a_program_that_is_no_host_is_ended() {
    let module = ModuleFile::with(&[]);
    let short = Limits {
        load_time: Duration::from_millis(10),
        grace: Duration::from_millis(10),
        ..Limits::default()
    };
    let start =
        |program: &str, limits| error(ModuleProcess::start(Path::new(program), &module.path(), &[], limits));
    assert_eq!(
        start(&script("silent-host.sh"), short),
        "the process of the module my.wasm gave no answer within 20 ms while it was loaded: ended"
    );
    let text = start(&script("garbage-host.sh"), Limits::default());
    assert!(text.starts_with("the process of the module my.wasm gave an answer without meaning: "), "{text}");
    let text = start("/nowhere/host", Limits::default());
    assert!(text.starts_with("cannot start /nowhere/host for the module my.wasm: "), "{text}");
    let text = start("/bin/false", Limits::default());
    assert_eq!(
        text,
        "the process of the module my.wasm ended by itself (exit status: 1) while it was loaded: ended"
    );
}

#[test]
fn a_program_without_a_scan_says_so() {
    let output =
        Command::new(PROGRAM).arg("x.wasm").stdin(Stdio::null()).stdout(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("not the socket of a scan"), "{text}");
    let output = Command::new(PROGRAM).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && text.contains("usage:"), "{text}");
}

#[test]
fn a_running_module_has_no_rights() {
    let mut process = ModuleFile::with(&[]).start(&[], metered()).unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert_eq!(status.contains("Seccomp:\t2"), process.is_confined(), "{status}");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", process.id())).unwrap();
    for (name, most) in [("Max file size", "0"), ("Max core file size", "0"), ("Max open files", "3")] {
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
        let values: Vec<&str> = line[name.len()..].split_whitespace().take(2).collect();
        assert_eq!(values, [most, most], "{name}");
    }
    let environment = std::fs::read(format!("/proc/{}/environ", process.id())).unwrap();
    assert_eq!(environment, b"", "no secret of the scan is in reach");
    scan(&mut process).unwrap();
}
