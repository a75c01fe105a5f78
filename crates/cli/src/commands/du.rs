//! `holdfast du`: sum the current versions of a site by collection.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{Session, SitePath, each_entry};
use holdfast_base::clean;
use holdfast_base::failure::Result;
use holdfast_client::json::PlaceUsage;
use holdfast_remote::CatalogKind;

/// Sum the bytes and objects of each collection of a site
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Current versions count. A collection includes those below it, and comes after them.\n\n\
    Examples:\n  holdfast du /lab\n  holdfast du --json"
)]
pub(crate) struct Args {
    /// Collection or object: /PROJECT/PATH, or / for all projects
    #[arg(value_name = "PATH", default_value = "/")]
    path: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Sum over the objects of a place.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    objects: u64,
    bytes: u64,
}

/// Runs the command `holdfast du`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    if !out.is_json() {
        out.line(format_args!("{:>16}  {:>10}  path", "bytes", "objects"))?;
    }
    let stat = session.request(session.site().catalog_stat(&args.path.to_string()))?;
    if stat.kind == CatalogKind::Collection {
        return collection(&session, &args.path, out).map(drop);
    }
    let current = stat.versions.iter().find(|version| Some(&version.version) == stat.current.as_ref());
    let bytes = current.map_or(0, |version| version.size);
    told(&args.path, Sum { objects: 1, bytes }, "", out)
}

fn collection(session: &Session, path: &SitePath, out: &mut Out) -> Result<Sum> {
    let mut sum = Sum::default();
    each_entry(session, path, &mut |entry| {
        let below = match entry.kind {
            CatalogKind::Collection => collection(session, &path.child(&entry.name), out)?,
            // The bytes of a link count where its object has its own name.
            CatalogKind::Link => Sum { objects: 0, bytes: 0 },
            CatalogKind::Object => Sum { objects: 1, bytes: entry.version.map_or(0, |version| version.size) },
        };
        sum.objects += below.objects;
        sum.bytes += below.bytes;
        Ok(())
    })?;
    told(path, sum, "/", out)?;
    Ok(sum)
}

fn told(path: &SitePath, sum: Sum, slash: &str, out: &mut Out) -> Result<()> {
    let (shown, Sum { objects, bytes }) = (path.to_string(), sum);
    if out.is_json() {
        return out.object(&PlaceUsage { path: &shown, objects, bytes });
    }
    let slash = if shown == "/" { "" } else { slash };
    out.line(format_args!("{bytes:>16}  {objects:>10}  {}{slash}", clean(&shown)))
}
