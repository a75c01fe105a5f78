//! `holdfast logout`: end the log-in to a site.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{KeptToken, Session, failure};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::LoggedOutLine;
use holdfast_remote::RemoteErrorKind;

/// End the log-in to a site: revoke its token, and remove it from this machine
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exits with 3 if nobody is logged in.\n\nExamples:\n  holdfast logout\n  holdfast logout --site lab"
)]
pub(crate) struct Args {
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast logout`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (mut endpoint, _) = args.site.address()?;
    let kept = KeptToken::of(&endpoint);
    endpoint.token = kept.read()?;
    if endpoint.token.is_none() {
        return Err(Failure::nothing("nobody is logged in to this site").at(clean(endpoint.url.as_str())));
    }
    let session = Session::open(&endpoint)?;
    let revoked = session.run(async {
        match session.site().log_out().await {
            Ok(()) => Ok(true),
            // An expired token needs no revocation.
            Err(error) if error.kind == RemoteErrorKind::Unauthorized => Ok(false),
            Err(error) => Err(failure(&error)),
        }
    })?;
    kept.forget()?;
    if out.is_json() {
        return out.object(&LoggedOutLine { site: session.address(), revoked });
    }
    out.line(format_args!("logged out of {}", clean(session.address())))
}
