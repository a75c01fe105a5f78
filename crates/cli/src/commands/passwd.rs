//! `holdfast passwd`: change the password of an account.

use crate::args::{SiteArgs, password};
use crate::out::Out;
use crate::site::{ask_new_password, ask_password};
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::ChangedPassword;
use std::path::PathBuf;

/// Change the own password, or as an administrator that of any account
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Asks for the new password twice; for the own account it asks for the current one, too. A password\n\
    has at least 8 characters. Tokens of earlier log-ins stay valid until they expire.\n\n\
    Examples:\n  holdfast passwd\n  holdfast passwd ann\n  holdfast passwd ann --password-file ann.password"
)]
pub(crate) struct Args {
    /// Account, for administrators [default: the account of the token]
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// File with the new password, readable by its owner only
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// File with the current password of the own account
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    current_password_file: Option<PathBuf>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast passwd`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let current = match (&args.name, &args.current_password_file) {
        (Some(_), _) => None,
        (None, Some(file)) => Some(password(file)?),
        (None, None) => Some(ask_password("current password")?),
    };
    let new = match &args.password_file {
        Some(file) => password(file)?,
        None => ask_new_password()?,
    };
    let site = session.site();
    match (&args.name, current) {
        (Some(name), _) => drop(session.request(site.change_account(name, Some(&new), None))?),
        (None, current) => {
            session.request(site.change_password(current.as_deref().unwrap_or_default(), &new))?;
        }
    }
    if out.is_json() {
        return out.object(&ChangedPassword { account: args.name.as_deref() });
    }
    let of = args.name.as_ref().map(|name| format!(" of {}", clean(name))).unwrap_or_default();
    out.line(format_args!("changed the password{of}"))
}
