//! `holdfast login`: get a token of an account, and keep it for the next commands.

use crate::args::{SiteArgs, password};
use crate::out::Out;
use crate::site::{KeptToken, Session, ask_password, failure, stored};
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::attribution::current_user;
use holdfast_client::json::LoggedInLine;
use holdfast_remote::{LoggedIn, RemoteErrorKind};
use std::path::PathBuf;

/// Log in to a site: get a token for 12 hours, which the next commands use
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The token is kept in ~/.config/holdfast/tokens. Commands use it for this site unless --token-file,\n\
    $HOLDFAST_TOKEN or the configuration file gives another one.\n\n\
    Who is logged in and a member of the group of a project account's name switches to that account\n\
    without a password.\n\n\
    Examples:\n  holdfast login\n  holdfast login --account ann\n  holdfast login --account m31\n  \
    holdfast login --account ann --password-file ann.password"
)]
pub(crate) struct Args {
    /// Account [default: the name of the user]
    #[arg(long, value_name = "NAME")]
    account: Option<String>,
    /// File with the password, readable by its owner only
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast login`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let account = args.account.clone().unwrap_or_else(current_user);
    let found = match &args.password_file {
        Some(file) => {
            let password = password(file)?;
            session.request(session.site().log_in(&account, Some(&password)))?
        }
        None => by_membership_or_password(&session, &account)?,
    };
    let (endpoint, _) = args.site.address()?;
    let kept = KeptToken::of(&endpoint);
    let (expires, file) = (stored(found.expires), kept.keep(&found.secret)?);
    if out.is_json() {
        return out.object(&LoggedInLine {
            site: session.address(),
            account: &found.account,
            id: &found.id,
            expires,
            file: file.display().to_string(),
        });
    }
    let (account, site) = (clean(&found.account), clean(session.address()));
    out.line(format_args!("logged in to {site} as {account} until {expires}"))
}

/// Switches as a member of a project account, or else asks for the password.
fn by_membership_or_password(session: &Session, account: &str) -> Result<LoggedIn> {
    let switched = session.run(async {
        match session.site().log_in(account, None).await {
            Ok(found) => Ok(Some(found)),
            Err(error)
                if matches!(error.kind, RemoteErrorKind::Forbidden | RemoteErrorKind::Unauthorized) =>
            {
                Ok(None)
            }
            Err(error) => Err(failure(&error)),
        }
    })?;
    if let Some(found) = switched {
        return Ok(found);
    }
    let password = ask_password(&format!("password of {}", clean(account)))?;
    session.request(session.site().log_in(account, Some(&password)))
}
