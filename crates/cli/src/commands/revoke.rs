//! `holdfast revoke`: take a granted right away.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::SitePath;
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::GrantLine;

/// Revoke the right that was granted on an object or collection
#[derive(clap::Args, Debug)]
#[command(after_help = "Inherited rights stay: `holdfast grants` shows where each comes from.\n\n\
    Example:\n  holdfast revoke /lab/2026 ann")]
pub(crate) struct Args {
    /// Object or collection that has the grant: /PROJECT/PATH, or /
    #[arg(value_name = "PATH")]
    path: SitePath,
    /// Account or group, or `everyone`
    #[arg(value_name = "SUBJECT")]
    subject: String,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast revoke`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let (path, subject) = (args.path.to_string(), &args.subject);
    session.request(session.site().revoke(&path, subject))?;
    if out.is_json() {
        return out.object(&GrantLine { subject, right: None, path: &path });
    }
    out.line(format_args!("{}: no right on {} by a grant there", clean(subject), clean(&path)))
}
