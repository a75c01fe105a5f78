//! `holdfast rm`: move objects and collections of a site to the trash.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{SitePath, each_match};
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::SiteEntryId;

/// Move objects and collections of a site to the trash
#[derive(clap::Args, Debug)]
#[command(
    after_help = "`holdfast trash` lists and restores deleted entries. The last name of PATH may have * ? [abc] in it.\n\n\
    Examples:\n  holdfast rm /lab/2027/first.dada\n  holdfast rm -r \"/lab/2027/r*\""
)]
pub(crate) struct Args {
    /// Objects and collections to delete: /PROJECT/PATH
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<SitePath>,
    /// Delete collections with all that is below them
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast rm`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    for path in &args.paths {
        each_match(&session, path, &mut |path| {
            let deleted = session.request(session.site().delete_entry(&path.to_string(), args.recursive))?;
            if out.is_json() {
                return out.object(&SiteEntryId { path: &deleted.path, id: &deleted.id });
            }
            out.line(format_args!("{}: in the trash as {}", clean(&deleted.path), clean(&deleted.id)))
        })?;
    }
    Ok(())
}
