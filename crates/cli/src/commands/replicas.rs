//! `holdfast replicas`: list the copies of objects of a site, and those that no other site has.

use crate::args::SiteArgs;
use crate::commands::paged_table::PagedTable;
use crate::out::Out;
use crate::site::{SitePath, site_name};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::ReplicaLine;
use holdfast_client::table::Side;
use holdfast_remote::PlacedReplica;

const COLUMNS: &[(&str, Side)] = &[
    ("state", Side::Left),
    ("site", Side::Left),
    ("vault", Side::Left),
    ("version", Side::Left),
    ("path", Side::Left),
];

/// List the copies of objects: sites, vaults and states
#[derive(clap::Args, Debug)]
#[command(
    after_help = "--only-here lists what would be lost with this site: versions, also of deleted objects, that no\n\
    other site has verified. Exits with 3 if there are none.\n\n\
    Examples:\n  holdfast replicas /lab/2026/run1.dada\n  holdfast replicas --only-here"
)]
pub(crate) struct Args {
    /// Object or collection: /PROJECT/PATH, or / for all projects
    #[arg(value_name = "PATH", default_value = "/")]
    path: SitePath,
    /// List the copies at this site that no other site has
    #[arg(long)]
    only_here: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast replicas`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let (path, mut after) = (args.path.to_string(), None);
    let (mut table, mut count) = (PagedTable::new(COLUMNS), 0);
    loop {
        let page = session.site().list_replicas(Some(&path), args.only_here, after.as_deref());
        let page = session.request(page)?;
        for replica in &page.entries {
            count += 1;
            told(replica, &mut table, out)?;
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    if count == 0 {
        return Err(Failure::nothing("there is no such replica").at(&args.path));
    }
    if out.is_json() { Ok(()) } else { table.end(out) }
}

fn told(replica: &PlacedReplica, table: &mut PagedTable, out: &mut Out) -> Result<()> {
    let PlacedReplica { path, id, version, site, site_name: name, vault, key, state } = replica;
    let site_name = site_name(site, name);
    if out.is_json() {
        return out.object(&ReplicaLine {
            path: path.as_deref(),
            id,
            version,
            site,
            site_name,
            vault,
            key,
            state,
        });
    }
    let path = path.as_ref().map_or_else(|| format!("{id} in the trash"), |path| clean(path));
    table.row(out, [clean(state), clean(site_name), clean(vault), clean(version), path])
}
