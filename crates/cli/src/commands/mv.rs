//! `holdfast mv`: move or rename objects and collections of a site.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{SitePath, Target};
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::MovedEntry;

/// Move or rename objects and collections of a site
#[derive(clap::Args, Debug)]
#[command(
    after_help = "One entry gets the path TO; several, or one with a collection as TO, go below TO. Nothing is\n\
    overwritten. The last name of FROM may have * ? [abc] in it.\n\n\
    Examples:\n  holdfast mv /lab/2026/best.dada /lab/2027/first.dada\n  \
    holdfast mv \"/lab/2026/run*\" /lab/2027/"
)]
pub(crate) struct Args {
    /// Objects and collections to move: /PROJECT/PATH
    #[arg(value_name = "FROM", required = true)]
    from: Vec<SitePath>,
    /// New path, or collection of the entries
    #[arg(value_name = "TO")]
    to: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast mv`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    Target::each(&session, &args.from, &args.to, &mut |from, to| {
        session.request(session.site().move_entry(from, to))?;
        if out.is_json() {
            return out.object(&MovedEntry { from, to });
        }
        out.line(format_args!("{} -> {}", clean(from), clean(to)))
    })
}
