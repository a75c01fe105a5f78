//! `holdfast account`: the accounts of persons and projects.

use crate::args::{SiteArgs, password};
use crate::out::Out;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::{AccountLine, RemovedAccount};
use holdfast_client::table::{Side, Table};
use holdfast_remote::SiteAccount;
use std::path::PathBuf;

/// Add, list, disable and remove the accounts of persons and projects
#[derive(clap::Args, Debug)]
#[command(
    after_help = "All sites that exchange their catalogs have the same accounts. People get a token by `holdfast login`;\n\
    its rights are those that `holdfast grant` gives. Members of the group of a project account's name\n\
    switch to it without a password. These commands need a token with the scope admin.\n\n\
    Examples:\n  holdfast account add ann\n  holdfast account add m31 --project\n  holdfast account ls\n  \
    holdfast account disable ann\n  holdfast account rm ann"
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
    /// Add an account; `holdfast passwd` gives it a password later
    #[command(after_help = "Example:\n  holdfast account add ann --password-file ann.password")]
    Add {
        /// Name of the account: letters, digits, `.`, `_` and `-`
        #[arg(value_name = "NAME")]
        name: String,
        /// Make the account of a project, which several people use
        #[arg(long)]
        project: bool,
        /// File with the password, readable by its owner only
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// List the accounts of a site
    #[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast account ls")]
    Ls {
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Refuse the tokens of an account until it is enabled
    #[command(after_help = "Example:\n  holdfast account disable ann")]
    Disable {
        #[command(flatten)]
        account: Named,
    },
    /// Accept the tokens of an account again
    #[command(after_help = "Example:\n  holdfast account enable ann")]
    Enable {
        #[command(flatten)]
        account: Named,
    },
    /// Remove an account with its memberships and the grants to it
    #[command(after_help = "Example:\n  holdfast account rm ann")]
    Rm {
        #[command(flatten)]
        account: Named,
    },
}

/// Account by its name.
#[derive(clap::Args, Debug)]
struct Named {
    /// Name of the account
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast account`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::Add { name, project, password_file, site } => {
            let password = password_file.as_deref().map(password).transpose()?;
            let session = site.session()?;
            let add = session.site().add_account(name, *project, password.as_deref());
            show(&session.request(add)?, out)
        }
        What::Ls { site } => list(site, out),
        What::Disable { account } => set(account, true, out),
        What::Enable { account } => set(account, false, out),
        What::Rm { account } => {
            let session = account.site.session()?;
            session.request(session.site().remove_account(&account.name))?;
            if out.is_json() {
                return out.object(&RemovedAccount { removed: &account.name });
            }
            out.line(format_args!("removed {}", clean(&account.name)))
        }
    }
}

fn set(account: &Named, disabled: bool, out: &mut Out) -> Result<()> {
    let session = account.site.session()?;
    let change = session.site().change_account(&account.name, None, Some(disabled));
    show(&session.request(change)?, out)
}

fn show(account: &SiteAccount, out: &mut Out) -> Result<()> {
    if out.is_json() {
        return out.object(&shape(account));
    }
    let kind = account.kind.as_deref().unwrap_or("unknown");
    out.line(format_args!("{}: {}, {}", clean(&account.name), clean(kind), state(account)))
}

fn list(site: &SiteArgs, out: &mut Out) -> Result<()> {
    let session = site.session()?;
    let accounts = session.request(session.site().accounts())?;
    if accounts.is_empty() {
        return Err(Failure::nothing("there are no accounts").advice("`holdfast account add` adds one"));
    }
    let columns = [("name", Side::Left), ("kind", Side::Left), ("state", Side::Left)];
    let mut table = Table::new(&columns);
    for account in &accounts {
        if out.is_json() {
            out.object(&shape(account))?;
            continue;
        }
        let kind = clean(account.kind.as_deref().unwrap_or("unknown"));
        table.row([clean(&account.name), kind, state(account).to_owned()]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}

fn state(account: &SiteAccount) -> &'static str {
    match (account.disabled, account.has_password) {
        (true, _) => "disabled",
        (false, true) => "with a password",
        (false, false) => "without a password",
    }
}

fn shape(account: &SiteAccount) -> AccountLine<'_> {
    AccountLine {
        name: &account.name,
        kind: account.kind.as_deref(),
        has_password: account.has_password,
        disabled: account.disabled,
    }
}
