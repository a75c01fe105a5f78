//! A recorder for tests of commands: the real program, with one stream of lines.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use crate::common::{holdfast, recorder_program, run};
use rustix::fs::OFlags;
use serde_json::Value;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write, read_to_string};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// No wait takes longer than this, unless something is wrong.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A recorder of one stream of lines, fed through a named pipe; ends with the test.
pub struct Recording {
    pub child: Child,
    pub input: Option<File>,
    next: u64,
}

impl Recording {
    pub fn start(dir: &Path, more: &str) -> Self {
        Self::framed(dir, "lines", more)
    }

    pub fn framed(dir: &Path, frame: &str, more: &str) -> Self {
        Self::of(dir, &format!("log --frame {frame}"), more)
    }

    /// Of another stream of lines.
    pub fn named(dir: &Path, name: &str, more: &str) -> Self {
        Self::of(dir, &format!("{name} --frame lines"), more)
    }

    fn of(dir: &Path, stream: &str, more: &str) -> Self {
        Self::by(holdfast(dir), dir, stream, more)
    }

    /// Recorder that this command starts.
    pub fn by(mut command: Command, dir: &Path, stream: &str, more: &str) -> Self {
        recorder_program();
        let pipe = named_pipe(dir, "pipe");
        let line = format!("record r.hf --source file:pipe --name {stream} --flush 100ms {more}");
        let mut child = command
            .args(line.split_whitespace())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Not before it is read from: it may be refused.
        let input = loop {
            match OpenOptions::new().write(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(&pipe) {
                Ok(input) => break input,
                Err(_) if child.try_wait().unwrap().is_none() => std::thread::yield_now(),
                Err(error) => panic!("{error}: {}", read_to_string(child.stderr.take().unwrap()).unwrap()),
            }
        };
        rustix::fs::fcntl_setfl(&input, OFlags::empty()).unwrap();
        Self { child, input: Some(input), next: 0 }
    }

    pub fn lines(&mut self, count: u64) {
        let text: Vec<String> = (self.next..self.next + count).map(line).collect();
        let text = text.join("\n") + "\n";
        self.next += count;
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Waits until so many lines have arrived.
    pub fn await_lines(&mut self, dir: &Path, count: u64) -> Value {
        let started = Instant::now();
        loop {
            let said = run(dir, "status r.hf --json");
            if said.code == Some(0) {
                let status = said.json();
                if status["recorder"]["sources"][0]["packed_elements"].as_u64() >= Some(count) {
                    return status;
                }
            }
            assert_eq!(self.child.try_wait().unwrap(), None, "the recorder ended");
            assert!(started.elapsed() < PATIENCE, "{count} lines did not arrive: {}{}", said.out, said.err);
        }
    }

    /// Ends it with a signal and gives what it said.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let (mut out, mut err) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let code = self.child.wait().unwrap().code();
        (code, out, err)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new named pipe.
pub fn named_pipe(dir: &Path, name: &str) -> PathBuf {
    let pipe = dir.join(name);
    let _ = fs::remove_file(&pipe);
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    pipe
}

/// The text of a line.
pub fn line(ordinal: u64) -> String {
    format!("line {ordinal} {}", "x".repeat((ordinal % 977) as usize))
}
