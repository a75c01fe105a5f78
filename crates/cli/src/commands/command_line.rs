//! The command line as a whole: which commands there are. Each command's own arguments are in its file.

use crate::commands::Effect;
use crate::commands::{
    account, archive, audit, cat, check, completion, conflicts, cp, dataset, du, edit, encrypt, evacuate,
    find, format, gaps, get, grant, grants, grep, group, grow, hash, hold, holds, index, jobs, ln, log,
    login, logout, ls, meta, metrics, mkdir, mount, mv, packed_folder, passwd, plan, policy, profile, prove,
    purge, put, query, read, record, release, replicas, revoke, rm, scan, serve, shell, ship, site, slots,
    sql, stage, stat, status, streams, token, touch, trash, tree, vault,
};
use crate::out::Out;
use holdfast_base::failure::Result;

/// Holdfast: a flight recorder for data that arrives too fast to store
#[derive(clap::Parser, Debug)]
#[command(
    name = "holdfast",
    version,
    max_term_width = 110,
    after_help = "Begin with:\n  holdfast record lab.hf --size 10GiB --source iface:eth0 --name eth0\n  holdfast status lab.hf\n\n\
        RING is a path, or a name from the configuration file: $HOLDFAST_CONFIG, or\n\
        ~/.config/holdfast/config.toml, then /etc/holdfast/config.toml.\n\
        Exit codes: 0 success, 1 failure, 2 usage error, 3 nothing found."
)]
pub(crate) struct Cli {
    /// Print JSON, one object a line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
pub(super) enum Command {
    Profile(profile::Args),
    Plan(plan::Args),
    Format(format::Args),
    Prove(prove::Args),
    Record(record::Args),
    Status(status::Args),
    Streams(streams::Args),
    Slots(slots::Args),
    Gaps(gaps::Args),
    Read(read::Args),
    Query(query::Args),
    Sql(sql::Args),
    Grep(grep::Args),
    Hash(hash::Args),
    Scan(scan::Args),
    Encrypt(encrypt::EncryptArgs),
    Decrypt(encrypt::DecryptArgs),
    Concat(packed_folder::ConcatArgs),
    Index(index::Args),
    Hold(hold::Args),
    Holds(holds::Args),
    Release(release::Args),
    Purge(purge::Args),
    Grow(grow::Args),
    Evacuate(evacuate::Args),
    Archive(archive::Args),
    Dataset(dataset::Args),
    Vault(vault::Args),
    Serve(serve::Args),
    Ship(ship::Args),
    Token(token::Args),
    Account(account::Args),
    Group(group::Args),
    Passwd(passwd::Args),
    Login(login::Args),
    Logout(logout::Args),
    Grant(grant::Args),
    Revoke(revoke::Args),
    Grants(grants::Args),
    Log(log::Args),
    Site(site::Args),
    Conflicts(conflicts::Args),
    Policy(policy::Args),
    Jobs(jobs::Args),
    Stage(stage::Args),
    Put(put::Args),
    Get(get::Args),
    Ls(ls::Args),
    Stat(stat::Args),
    Find(find::Args),
    Meta(meta::Args),
    Mkdir(mkdir::Args),
    Mount(mount::Args),
    Shell(shell::Args),
    Touch(touch::Args),
    Cp(cp::Args),
    Mv(mv::Args),
    Ln(ln::Args),
    Rm(rm::Args),
    Trash(trash::Args),
    Cat(cat::Args),
    Edit(edit::Args),
    Tree(tree::Args),
    Du(du::Args),
    Replicas(replicas::Args),
    Audit(audit::Args),
    Check(check::Args),
    Metrics(metrics::Args),
    Completion(completion::Args),
}

impl Cli {
    /// Whether it is to be said in JSON.
    pub(crate) fn wants_json(&self) -> bool {
        // The recorder's options are its own, and this one means the same there.
        self.json || matches!(&self.command, Command::Record(args) if args.says_json())
    }

    /// Whether standard output carries data that an error message would spoil.
    pub(crate) fn stdout_is_taken(&self) -> bool {
        match &self.command {
            Command::Read(args) => args.to_stdout(),
            Command::Get(args) => args.to_stdout(),
            Command::Query(args) => args.to_stdout(),
            Command::Sql(_) | Command::Cat(_) => true,
            _ => false,
        }
    }

    /// Effect of the command, which decides what a lost output does to it.
    pub(crate) fn effect(&self) -> Effect {
        Effect::of(&self.command)
    }

    /// Does what was asked.
    pub(crate) fn run(&self, out: &mut Out) -> Result<()> {
        match &self.command {
            Command::Profile(args) => profile::run(args, out),
            Command::Plan(args) => plan::run(args, out),
            Command::Format(args) => format::run(args, out),
            Command::Prove(args) => prove::run(args, out),
            Command::Record(args) => record::run(args, self.json),
            Command::Status(args) => status::run(args, out),
            Command::Streams(args) => streams::run(args, out),
            Command::Slots(args) => slots::run(args, out),
            Command::Gaps(args) => gaps::run(args, out),
            Command::Read(args) => read::run(args, out),
            Command::Query(args) => query::run(args, out),
            Command::Sql(args) => sql::run(args, out),
            Command::Grep(args) => grep::run(args, out),
            Command::Hash(args) => hash::run(args, out),
            Command::Scan(args) => scan::run(args, out),
            Command::Encrypt(args) => encrypt::encrypt(args, out),
            Command::Decrypt(args) => encrypt::decrypt(args, out),
            Command::Concat(args) => packed_folder::concat(args, out),
            Command::Index(args) => index::run(args, out),
            Command::Hold(args) => hold::run(args, out),
            Command::Holds(args) => holds::run(args, out),
            Command::Release(args) => release::run(args, out),
            Command::Purge(args) => purge::run(args, out),
            Command::Grow(args) => grow::run(args, out),
            Command::Evacuate(args) => evacuate::run(args, out),
            Command::Archive(args) => archive::run(args, out),
            Command::Dataset(args) => dataset::run(args, out),
            Command::Vault(args) => vault::run(args, out),
            Command::Serve(args) => serve::run(args, out),
            Command::Ship(args) => ship::run(args, out),
            Command::Token(args) => token::run(args, out),
            Command::Account(args) => account::run(args, out),
            Command::Group(args) => group::run(args, out),
            Command::Passwd(args) => passwd::run(args, out),
            Command::Login(args) => login::run(args, out),
            Command::Logout(args) => logout::run(args, out),
            Command::Grant(args) => grant::run(args, out),
            Command::Revoke(args) => revoke::run(args, out),
            Command::Grants(args) => grants::run(args, out),
            Command::Log(args) => log::run(args, out),
            Command::Site(args) => site::run(args, out),
            Command::Conflicts(args) => conflicts::run(args, out),
            Command::Policy(args) => policy::run(args, out),
            Command::Jobs(args) => jobs::run(args, out),
            Command::Stage(args) => stage::run(args, out),
            Command::Put(args) => put::run(args, out),
            Command::Get(args) => get::run(args, out),
            Command::Ls(args) => ls::run(args, out),
            Command::Stat(args) => stat::run(args, out),
            Command::Find(args) => find::run(args, out),
            Command::Meta(args) => meta::run(args, out),
            Command::Mkdir(args) => mkdir::run(args, out),
            Command::Mount(args) => mount::run(args, out),
            Command::Shell(args) => shell::run(args, out),
            Command::Touch(args) => touch::run(args, out),
            Command::Cp(args) => cp::run(args, out),
            Command::Mv(args) => mv::run(args, out),
            Command::Ln(args) => ln::run(args, out),
            Command::Rm(args) => rm::run(args, out),
            Command::Trash(args) => trash::run(args, out),
            Command::Cat(args) => cat::run(args),
            Command::Edit(args) => edit::run(args, out),
            Command::Tree(args) => tree::run(args, out),
            Command::Du(args) => du::run(args, out),
            Command::Replicas(args) => replicas::run(args, out),
            Command::Audit(args) => audit::run(args, out),
            Command::Check(args) => check::run(args, out),
            Command::Metrics(args) => metrics::run(args, out),
            Command::Completion(args) => completion::run(args, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser};

    /// Words as a shell takes them, up to where something else is read or written.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quoted = false;
        for c in line.chars() {
            match c {
                '"' => quoted = !quoted,
                ' ' if !quoted => words.push(String::new()),
                '|' | '<' if !quoted => break,
                c => words.last_mut().unwrap().push(c),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_command_has_an_example_that_is_understood() {
        let mut cli = Cli::command();
        cli.build();
        cli.clone().debug_assert();
        for command in cli.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let name = command.get_name().to_owned();
            let help = command.render_long_help().to_string();
            let examples: Vec<&str> =
                help.lines().filter(|line| line.starts_with(&format!("  holdfast {name} "))).collect();
            assert!(!examples.is_empty(), "{name} shows no example");
            for example in examples {
                let parsed = Cli::try_parse_from(words(example.trim()));
                assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
            }
        }
    }
}
