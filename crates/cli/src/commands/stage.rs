//! `holdfast stage`: bring objects to a site before a computation reads them there.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::SitePath;
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::StagedVersions;

/// Bring objects to a site, before a computation reads them there
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The site fetches the current versions that it lacks, before all other jobs; `holdfast jobs` there\n\
    shows the work. `holdfast put` there takes the results back into the name space.\n\n\
    Examples:\n  holdfast stage /lab/2026\n  holdfast stage /lab/2026/run1.dada --near ams"
)]
pub(crate) struct Args {
    /// Object, or collection for all objects below it: /PROJECT/PATH
    #[arg(value_name = "PATH")]
    path: SitePath,
    /// Name of the site that shall have them [default: the site that is asked]
    #[arg(long, value_name = "SITE")]
    near: Option<String>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast stage`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let path = args.path.to_string();
    let fetching = session.request(session.site().stage(&path, args.near.as_deref()))?;
    if out.is_json() {
        return out.object(&StagedVersions { path: &path, fetching });
    }
    let versions = if fetching == 1 { "version" } else { "versions" };
    out.line(format_args!("{}: fetching {fetching} {versions}", clean(&path)))
}
