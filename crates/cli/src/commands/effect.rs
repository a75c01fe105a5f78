//! Effect of each command: whether a lost output may end it early.

use super::command_line::Command;

/// Effect of a command beside its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The command only prints: it ends when its output fails.
    Prints,
    /// The command changes something, or checks it: it finishes its work without its output, and its exit code tells the
    /// truth. Its output is not buffered.
    Changes,
}

impl Effect {
    /// Effect of a command. A new command has to be entered here and in `tests/it/closed_output`.
    pub(super) fn of(command: &Command) -> Self {
        match command {
            Command::Hash(args) if args.checks() => Self::Changes,
            Command::Read(args) if args.to_stdout() => Self::Prints,
            Command::Get(args) if args.to_stdout() => Self::Prints,
            Command::Query(args) if args.to_stdout() => Self::Prints,
            Command::Audit(args) if args.only_prints() => Self::Prints,
            Command::Dataset(args) if args.only_prints() => Self::Prints,
            Command::Vault(args) if args.only_prints() => Self::Prints,
            Command::Ship(args) if args.only_prints() => Self::Prints,
            Command::Token(args) if args.only_prints() => Self::Prints,
            Command::Account(args) if args.only_prints() => Self::Prints,
            Command::Group(args) if args.only_prints() => Self::Prints,
            Command::Site(args) if args.only_prints() => Self::Prints,
            Command::Conflicts(args) if args.only_prints() => Self::Prints,
            Command::Policy(args) if args.only_prints() => Self::Prints,
            Command::Meta(args) if args.only_prints() => Self::Prints,
            Command::Trash(args) if args.only_prints() => Self::Prints,
            Command::Plan(_)
            | Command::Status(_)
            | Command::Streams(_)
            | Command::Slots(_)
            | Command::Gaps(_)
            | Command::Sql(_)
            | Command::Grep(_)
            | Command::Hash(_)
            | Command::Scan(_)
            | Command::Holds(_)
            | Command::Grants(_)
            | Command::Log(_)
            | Command::Jobs(_)
            | Command::Ls(_)
            | Command::Stat(_)
            | Command::Find(_)
            | Command::Cat(_)
            | Command::Tree(_)
            | Command::Du(_)
            | Command::Replicas(_)
            | Command::Completion(_) => Self::Prints,
            Command::Profile(_)
            | Command::Format(_)
            | Command::Prove(_)
            | Command::Record(_)
            | Command::Read(_)
            | Command::Query(_)
            | Command::Encrypt(_)
            | Command::Decrypt(_)
            | Command::Concat(_)
            | Command::Index(_)
            | Command::Hold(_)
            | Command::Release(_)
            | Command::Purge(_)
            | Command::Grow(_)
            | Command::Evacuate(_)
            | Command::Archive(_)
            | Command::Dataset(_)
            | Command::Vault(_)
            | Command::Serve(_)
            | Command::Ship(_)
            | Command::Token(_)
            | Command::Account(_)
            | Command::Group(_)
            | Command::Passwd(_)
            | Command::Login(_)
            | Command::Logout(_)
            | Command::Grant(_)
            | Command::Revoke(_)
            | Command::Site(_)
            | Command::Conflicts(_)
            | Command::Policy(_)
            | Command::Stage(_)
            | Command::Put(_)
            | Command::Get(_)
            | Command::Meta(_)
            | Command::Mkdir(_)
            | Command::Mount(_)
            | Command::Shell(_)
            | Command::Touch(_)
            | Command::Cp(_)
            | Command::Mv(_)
            | Command::Ln(_)
            | Command::Rm(_)
            | Command::Trash(_)
            | Command::Edit(_)
            | Command::Audit(_)
            | Command::Check(_)
            | Command::Metrics(_) => Self::Changes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::Cli;
    use clap::{CommandFactory as _, Parser as _};
    use std::collections::{BTreeMap, BTreeSet};

    /// Commands that the tests of closed outputs take as ones that only print.
    const PRINTS: &str = include_str!("../../tests/it/closed_output/prints.txt");

    /// Commands whose effect depends on the place of their output, or on an option.
    const BOTH: &[&str] = &["audit", "get", "hash", "query", "read"];

    /// Words of a command line, without quotes.
    fn words(line: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
        for letter in line.chars() {
            if quote == Some(letter) {
                quote = None;
            } else if quote.is_none() && matches!(letter, '\'' | '"') {
                quote = Some(letter);
            } else if quote.is_none() && letter == ' ' {
                words.push(std::mem::take(&mut word));
            } else {
                word.push(letter);
            }
        }
        words.push(word);
        words
    }

    /// Effects of the examples in the help of all commands, by the name of the command.
    fn effects_of_examples() -> BTreeMap<String, Effect> {
        let (mut names, mut helps) = (BTreeSet::new(), Vec::new());
        for command in Cli::command().get_subcommands() {
            helps.extend(command.get_after_help().map(ToString::to_string));
            for below in command.get_subcommands() {
                names.insert(format!("{} {}", command.get_name(), below.get_name()));
                helps.extend(below.get_after_help().map(ToString::to_string));
            }
        }
        let mut effects = BTreeMap::new();
        let lines = helps.iter().flat_map(|help| help.lines()).map(str::trim);
        for line in lines.filter(|line| line.starts_with("holdfast ")) {
            let line = line.split(['|', '>']).next().unwrap().trim();
            let words = words(line);
            // An example may go on in the next line, or set another program to work.
            let Ok(cli) = Cli::try_parse_from(&words) else { continue };
            let two = words[1..words.len().min(3)].join(" ");
            let name = if names.contains(&two) { two } else { words[1].clone() };
            let effect = cli.effect();
            if !BOTH.contains(&name.as_str()) {
                assert_eq!(*effects.entry(name).or_insert(effect), effect, "{line}");
            }
        }
        effects
    }

    #[test]
    fn commands_that_only_print_are_those_of_the_list() {
        let listed: BTreeSet<&str> = PRINTS.lines().collect();
        let effects = effects_of_examples();
        for (name, effect) in &effects {
            assert_eq!(*effect == Effect::Prints, listed.contains(name.as_str()), "{name}");
        }
        for name in listed {
            let is_known = effects.contains_key(name) || BOTH.contains(&name);
            assert!(is_known, "{name} has no example that can be parsed");
        }
    }
}
