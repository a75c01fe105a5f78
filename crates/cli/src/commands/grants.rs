//! `holdfast grants`: list the rights on an entry.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::SitePath;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::GrantLine;
use holdfast_client::table::{Side, Table};

/// List the rights on an object or collection, and where each comes from
#[derive(clap::Args, Debug)]
#[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast grants /lab/2026")]
pub(crate) struct Args {
    /// Object or collection: /PROJECT/PATH, or /
    #[arg(value_name = "PATH")]
    path: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast grants`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let grants = session.request(session.site().grants(&args.path.to_string()))?;
    if grants.is_empty() {
        return Err(Failure::nothing("no account has a right by a grant").at(&args.path));
    }
    let mut table = Table::new(&[("subject", Side::Left), ("right", Side::Left), ("granted on", Side::Left)]);
    for grant in &grants {
        let (subject, right, path) = (&grant.subject, grant.right.as_str(), &grant.path);
        if out.is_json() {
            out.object(&GrantLine { subject, right: Some(right), path })?;
        } else {
            table.row([clean(subject), clean(right), clean(path)]);
        }
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
