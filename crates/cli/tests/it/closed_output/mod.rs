//! Commands whose output nobody takes: each one that changes something finishes its work, and its exit code tells the truth
//! (promise 8). A new command has to be entered in a list here.

mod accounts;
mod datasets;
mod names;
mod rings;
mod servers;
mod sites;

use crate::common::site::Site;
use crate::common::{ends, folder};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Entries of a command that takes many: most of them come after the first line has failed.
const MANY: usize = 500;

/// Commands that only print, one a line; a reader that leaves may end them early. A unit test compares them with the code.
const PRINTS: &str = include_str!("prints.txt");

/// Commands that change something or check it, with the tests that run them without an output.
const CHANGES: &[&[&str]] = &[
    accounts::COMMANDS,
    datasets::COMMANDS,
    names::COMMANDS,
    rings::COMMANDS,
    servers::COMMANDS,
    sites::COMMANDS,
];

/// Commands of a help text: those listed under `Commands:`.
fn listed(help: &str) -> Vec<String> {
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = list.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    names
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// All commands: those with subcommands count only if they do something without one.
fn commands(dir: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for name in listed(&ends(dir, "--help", 0).out) {
        if name == "record" {
            // Its help is that of the recorder.
            all.insert(name);
            continue;
        }
        let help = ends(dir, &format!("{name} --help"), 0).out;
        all.extend(listed(&help).iter().map(|below| format!("{name} {below}")));
        let usage = help.lines().find(|line| line.starts_with("Usage:")).unwrap();
        if !usage.contains("<COMMAND>") {
            all.insert(name);
        }
    }
    all
}

#[test]
fn every_command_is_in_a_list() {
    let folder = folder();
    crate::common::recorder_program();
    let known = CHANGES.iter().copied().flatten().copied().chain(PRINTS.lines()).map(str::to_owned);
    assert_eq!(commands(folder.path()), known.collect());
}

/// Runs commands whose output and messages nobody takes, and keeps their names.
struct Deaf<'a> {
    site: &'a Site,
    tried: BTreeSet<String>,
}

impl<'a> Deaf<'a> {
    fn new(site: &'a Site) -> Self {
        Self { site, tried: BTreeSet::new() }
    }

    /// Runs a command line that must end with 0; words as in `run`.
    fn run(&mut self, line: &str) {
        self.ends(line, 0);
    }

    /// Runs a command line that must end with this code.
    fn ends(&mut self, line: &str, code: i32) {
        assert_eq!(self.start(line).wait().unwrap().code(), Some(code), "{line}");
    }

    /// Starts a command line.
    fn start(&mut self, line: &str) -> Child {
        let words = line.split_whitespace().map(|word| word.replace('_', " "));
        self.start_words(words.collect())
    }

    /// Starts a command of words as they are.
    fn start_words(&mut self, words: Vec<String>) -> Child {
        self.note(&words);
        let mut command = self.site.command();
        close_output(command.args(words));
        command.spawn().unwrap()
    }

    fn note(&mut self, words: &[String]) {
        let two = words[..words.len().min(2)].join(" ");
        let is_known = |name: &str| CHANGES.iter().any(|commands| commands.contains(&name));
        let name = if is_known(&two) { two } else { words[0].clone() };
        assert!(is_known(&name), "{name} is in no list");
        self.tried.insert(name);
    }

    /// All commands of a list were run.
    fn tried_all(self, commands: &[&str]) {
        assert_eq!(self.tried, commands.iter().map(|name| (*name).to_owned()).collect());
    }
}

/// Gives a command pipes that nobody reads as standard output and error.
fn close_output(command: &mut Command) {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(Stdio::from(writer.try_clone().unwrap())).stderr(Stdio::from(writer));
}

/// Ends a command by a signal; gives its exit code.
fn stopped(mut child: Child) -> Option<i32> {
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    child.wait().unwrap().code()
}
