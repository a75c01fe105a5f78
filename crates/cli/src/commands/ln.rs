//! `holdfast ln`: second names of objects of a site.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{SitePath, Target};
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::MovedEntry;

/// Give objects of a site a second name
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The second name shows the versions and attributes of the object, also those to come; `rm` removes the\n\
    name alone. One object gets the path TO; several, or one with a collection as TO, go below TO.\n\n\
    Examples:\n  holdfast ln /lab/2026/run1.dada /lab/best.dada\n  holdfast ln \"/lab/2026/run*\" /archive/"
)]
pub(crate) struct Args {
    /// Objects that get a second name: /PROJECT/PATH
    #[arg(value_name = "OBJECT", required = true)]
    from: Vec<SitePath>,
    /// Second name, or collection of the second names
    #[arg(value_name = "TO")]
    to: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast ln`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    Target::each(&session, &args.from, &args.to, &mut |from, to| {
        session.request(session.site().link_entry(from, to))?;
        if out.is_json() {
            return out.object(&MovedEntry { from, to });
        }
        out.line(format_args!("{} is {} too", clean(from), clean(to)))
    })
}
