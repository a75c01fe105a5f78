//! A program that looks for what holds are to keep, for tests of such holds.
#![allow(dead_code, missing_docs, unreachable_pub, clippy::unwrap_used)]

use crate::common::{ends, holdfast};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

/// The lines of the stream that can be read.
pub fn left(dir: &Path) -> Vec<String> {
    left_of(dir, "")
}

/// The same of a range.
pub fn left_of(dir: &Path, range: &str) -> Vec<String> {
    let text = ends(dir, &format!("read r.hf --stream log --format jsonl {range}"), 0);
    let elements = text.lines().into_iter().filter(|line| line["kind"] == "element");
    elements.map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

/// What says nothing for so long has nothing to say, in seconds.
const PATIENCE: i64 = 60;

/// An evaluator at work, and what it says.
pub struct Evaluator {
    pub child: Child,
    said: Option<BufReader<ChildStdout>>,
    warned: BufReader<ChildStderr>,
}

impl Evaluator {
    pub fn start(dir: &Path, line: &str) -> Self {
        Self::of(dir, line.split_whitespace().map(|word| word.replace('_', " ")))
    }

    /// The same of words as they are.
    pub fn of(dir: &Path, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let mut command = holdfast(dir);
        command.args(words);
        Self::run(command)
    }

    /// The same of a command.
    pub fn run(mut command: Command) -> Self {
        command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let warned = BufReader::new(child.stderr.take().unwrap());
        Self { child, said: Some(said), warned }
    }

    /// The next that it says.
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        let said = self.said.as_mut().unwrap();
        if said.buffer().is_empty() {
            let patience = Timespec { tv_sec: PATIENCE, tv_nsec: 0 };
            let count = poll(&mut [PollFd::new(said.get_ref(), PollFlags::IN)], Some(&patience)).unwrap();
            assert_eq!(count, 1, "it says nothing");
        }
        said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}{error}: {}", self.warning()))
    }

    /// Whether it has said something that was not read.
    pub fn has_said(&self) -> bool {
        let said = self.said.as_ref().unwrap();
        !said.buffer().is_empty() || rustix::io::ioctl_fionread(said.get_ref()).unwrap() > 0
    }

    /// The next that it warns of.
    pub fn warning(&mut self) -> String {
        let mut line = String::new();
        self.warned.read_line(&mut line).unwrap();
        line
    }

    /// All that it warned of before its end.
    pub fn warnings(&mut self) -> String {
        let mut text = String::new();
        self.warned.read_to_string(&mut text).unwrap();
        text
    }

    /// Reads what it says until it has found so many elements in all, whatever is distilled meanwhile.
    pub fn await_found(&mut self, mut count: u64) -> Value {
        loop {
            let said = self.next();
            if !said["originals"].is_null() {
                continue;
            }
            count = count.checked_sub(said["elements"].as_u64().unwrap()).unwrap_or_else(|| panic!("{said}"));
            if count == 0 {
                return said;
            }
        }
    }

    /// Kills it, in whatever it does.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn end(self) -> Option<i32> {
        self.finish().0
    }

    /// Ends it; and what it says until then.
    pub fn finish(mut self) -> (Option<i32>, Vec<Value>) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let said = self.said.take().into_iter().flat_map(BufRead::lines);
        let said = said.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Evaluator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
