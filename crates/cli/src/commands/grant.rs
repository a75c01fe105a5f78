//! `holdfast grant`: give an account or a group a right on an entry.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::SitePath;
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::GrantLine;

/// Grant a right on an object or collection, and all below it, to an account or a group
#[derive(clap::Args, Debug)]
#[command(
    after_help = "`read` is listing, searching and reading; `write` adds uploads and changes; `own` adds granting, and\n\
    settling conflicts. An account has the greatest right that it, its groups or everyone has on the entry\n\
    or on one above it. Granting needs `own`, or a token with the scope admin.\n\n\
    Examples:\n  holdfast grant write /lab/2026 ann\n  holdfast grant own /m31 m31\n  \
    holdfast grant read /public everyone"
)]
pub(crate) struct Args {
    /// Right: read, write or own; each one includes those before it
    #[arg(value_name = "RIGHT", value_parser = ["read", "write", "own"])]
    right: String,
    /// Object or collection: /PROJECT/PATH, or / for all
    #[arg(value_name = "PATH")]
    path: SitePath,
    /// Account or group, or `everyone`
    #[arg(value_name = "SUBJECT")]
    subject: String,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast grant`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let (path, subject, right) = (args.path.to_string(), &args.subject, &args.right);
    session.request(session.site().grant(&path, subject, right))?;
    if out.is_json() {
        return out.object(&GrantLine { subject, right: Some(right), path: &path });
    }
    out.line(format_args!("{}: {right} on {}", clean(subject), clean(&path)))
}
