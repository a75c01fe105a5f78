//! `holdfast mkdir`: make collections on a site.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::SitePath;
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::SiteEntryId;

/// Make collections on a site
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  holdfast mkdir /archive\n  holdfast mkdir -p /lab/2027/raw\n  \
    holdfast mkdir /m31 --owner ann")]
pub(crate) struct Args {
    /// Collections to make: /PROJECT/PATH
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<SitePath>,
    /// Make missing collections above, too, and accept those that exist
    #[arg(short, long)]
    parents: bool,
    /// Account or group that gets the right own on them
    #[arg(long, value_name = "ACCOUNT")]
    owner: Option<String>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast mkdir`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    for path in &args.paths {
        let (path, owner) = (path.to_string(), args.owner.as_deref());
        let made = session.request(session.site().make_collection(&path, args.parents, owner))?;
        if out.is_json() {
            out.object(&SiteEntryId { path: &made.path, id: &made.id })?;
        } else {
            out.line(format_args!("{}/", clean(&made.path)))?;
        }
    }
    Ok(())
}
