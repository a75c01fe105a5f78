//! `holdfast group`: the groups of accounts.

use crate::args::SiteArgs;
use crate::out::Out;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::MemberLine;
use holdfast_client::table::{Side, Table};

/// Add accounts to groups, list groups, and remove accounts from them
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A group exists while it has members. A right that is granted to it is one of all its members. The\n\
    members of the group of a project account's name may switch to that account: \
    `holdfast login --account`.\n\n\
    Examples:\n  holdfast group add staff ann bob\n  holdfast group ls\n  holdfast group ls staff\n  \
    holdfast group rm staff bob"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.what, What::Ls { .. })
    }
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Add accounts to a group
    #[command(after_help = "Example:\n  holdfast group add staff ann bob")]
    Add {
        #[command(flatten)]
        members: Members,
    },
    /// Remove accounts from a group
    #[command(after_help = "Example:\n  holdfast group rm staff bob")]
    Rm {
        #[command(flatten)]
        members: Members,
    },
    /// List the members of a group, or of all groups
    #[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast group ls staff")]
    Ls {
        /// Name of the group [default: all groups]
        #[arg(value_name = "GROUP")]
        group: Option<String>,
        #[command(flatten)]
        site: SiteArgs,
    },
}

/// Accounts of a group.
#[derive(clap::Args, Debug)]
struct Members {
    /// Name of the group
    #[arg(value_name = "GROUP")]
    group: String,
    /// Names of the accounts
    #[arg(value_name = "ACCOUNT", required = true)]
    accounts: Vec<String>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast group`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::Add { members } => set(members, true, out),
        What::Rm { members } => set(members, false, out),
        What::Ls { group, site } => list(group.as_deref(), site, out),
    }
}

fn set(members: &Members, is_member: bool, out: &mut Out) -> Result<()> {
    let session = members.site.session()?;
    let group = &members.group;
    for account in &members.accounts {
        session.request(session.site().set_member(group, account, is_member))?;
        if out.is_json() {
            out.object(&MemberLine { group, account })?;
        } else {
            let change = if is_member { "added to" } else { "removed from" };
            out.line(format_args!("{} {change} {}", clean(account), clean(group)))?;
        }
    }
    Ok(())
}

fn list(group: Option<&str>, site: &SiteArgs, out: &mut Out) -> Result<()> {
    let session = site.session()?;
    let members = session.request(session.site().groups(group))?;
    if members.is_empty() {
        let missing = if group.is_some() { "the group has no members" } else { "there are no groups" };
        return Err(Failure::nothing(missing).advice("`holdfast group add` adds members"));
    }
    let mut table = Table::new(&[("group", Side::Left), ("account", Side::Left)]);
    for member in &members {
        if out.is_json() {
            out.object(&MemberLine { group: &member.group, account: &member.account })?;
        } else {
            table.row([clean(&member.group), clean(&member.account)]);
        }
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
