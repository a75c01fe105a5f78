//! Effect of each command: whether a lost output may end it early.

use super::command_line::Command;

/// Effect of a command beside its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The command only prints: it ends when its output fails.
    Prints,
    /// The command changes something, or checks it: it finishes its work without its output, and its exit code tells the
    /// truth. A command with one such subcommand has this effect.
    Changes,
}

impl Effect {
    /// Effect of a command. A new command has to be entered here and in `tests/it/closed_output`.
    pub(super) fn of(command: &Command) -> Self {
        match command {
            Command::Read(args) if args.to_stdout() => Self::Prints,
            Command::Get(args) if args.to_stdout() => Self::Prints,
            Command::Query(args) if args.to_stdout() => Self::Prints,
            Command::Audit(args) if args.only_prints() => Self::Prints,
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
