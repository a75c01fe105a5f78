//! Site of a test: `holdfast serve` as a process, with its events, and commands that use it.

use super::{Said, holdfast};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Running server, killed by its own process id when it is dropped.
pub struct Site {
    child: Child,
    events: BufReader<ChildStdout>,
    folder: PathBuf,
    /// First object that the server printed.
    pub started: Value,
    /// Token of the commands.
    pub token: Option<String>,
}

impl Site {
    /// Starts a server in a folder at a free port, with the data in `data` and further arguments.
    pub fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::at(folder, "127.0.0.1:0", arguments)
    }

    /// Starts a server at an address.
    pub fn at(folder: &Path, address: &str, arguments: &[&str]) -> Self {
        let mut child = holdfast(folder)
            .args(["serve", "data", "--listen", address, "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let events = BufReader::new(child.stdout.take().unwrap());
        let (folder, started) = (folder.to_owned(), Value::Null);
        let mut site = Self { child, events, folder, started, token: None };
        site.started = site.event("started");
        site
    }

    /// Reads events up to the next one of a name.
    pub fn event(&mut self, name: &str) -> Value {
        self.event_where(|event| event["event"] == name)
    }

    /// Reads events up to the next one that `is_it` accepts.
    pub fn event_where(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            self.events.read_line(&mut line).unwrap();
            let event = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line:?}: {error}"));
            if is_it(&event) {
                return event;
            }
        }
    }

    /// Address of the server.
    pub fn url(&self) -> &str {
        self.started["url"].as_str().unwrap()
    }

    /// Command that uses this site, in the folder of the test.
    pub fn command(&self) -> Command {
        let mut command = holdfast(&self.folder);
        command.env("HOLDFAST_SITE", self.url());
        if let Some(token) = &self.token {
            command.env("HOLDFAST_TOKEN", token);
        }
        command
    }

    /// Runs a command line on this site that must end with that code; `_` stands for a space in a word.
    pub fn ends(&self, line: &str, code: i32) -> Said {
        let words = line.split_whitespace().map(|word| word.replace('_', " "));
        let said: Said = self.command().args(words).output().unwrap().into();
        assert_eq!(said.code, Some(code), "{line}\n{}{}", said.out, said.err);
        assert!(!said.err.contains("panicked") && !said.err.contains("this is a bug"), "{}", said.err);
        said
    }

    /// Sends the signal of a terminal that is closed.
    pub fn hang_up(&self) {
        kill_process(Pid::from_child(&self.child), Signal::HUP).unwrap();
    }

    /// Ends the server by a signal, and returns its exit code.
    pub fn stop(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.event("stopped");
        self.child.wait().unwrap().code()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
