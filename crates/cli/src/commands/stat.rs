//! `holdfast stat`: show all that a site knows of an entry.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{Session, SitePath, failure, stat};
use holdfast_base::failure::Result;
use holdfast_base::{ByteSize, clean};
use holdfast_client::json::SiteStat;
use holdfast_client::table::{Side, Table};
use holdfast_remote::{CatalogKind, CatalogStat, GrowingObject, RemoteErrorKind};
use serde_json::Value;

/// Show versions, replicas and attributes of an object or collection
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Examples:\n  holdfast stat /lab/2026/run1.dada\n  holdfast stat /lab/2026/run1.dada --json"
)]
pub(crate) struct Args {
    /// Object or collection: /PROJECT/PATH
    #[arg(value_name = "PATH")]
    path: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast stat`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let (found, growing) = find(&session, &args.path)?;
    let shape = stat(&found, &growing);
    if out.is_json() {
        return out.object(&shape);
    }
    told(&shape, out)
}

/// Properties of an entry with its unfinished uploads. An object without a version has only those.
fn find(session: &Session, path: &SitePath) -> Result<(CatalogStat, Vec<GrowingObject>)> {
    let (site, at) = (session.site(), path.to_string());
    session.run(async {
        let found = site.catalog_stat(&at).await;
        let mut growing = Vec::new();
        if let Some(project) = path.project().filter(|_| !path.is_folder()) {
            let page = site.versions(project, &path.inside()).await;
            growing = page.map_err(|error| failure(&error))?.growing;
        }
        match found {
            Ok(found) => Ok((found, growing)),
            Err(error) if error.kind == RemoteErrorKind::NotFound && !growing.is_empty() => {
                let kind = CatalogKind::Object;
                let (versions, replicas, attributes) = (Vec::new(), Vec::new(), Vec::new());
                let (id, current) = (None, None);
                Ok((CatalogStat { path: at, id, kind, current, versions, replicas, attributes }, growing))
            }
            Err(error) => Err(failure(&error)),
        }
    })
}

fn told(stat: &SiteStat<'_, Value>, out: &mut Out) -> Result<()> {
    let id = stat.id.map_or(String::new(), |id| format!(" {id}"));
    out.line(format_args!("{}: {}{id}", clean(stat.path), stat.kind))?;
    for version in &stat.versions {
        let current = if stat.current == Some(version.version) { ", current" } else { "" };
        let (name, bytes) = (clean(version.version), ByteSize(version.bytes));
        let (blake3, stored) = (clean(version.blake3), &version.stored);
        out.line(format_args!("version {name}{current}: {bytes}, stored {stored}, BLAKE3 {blake3}"))?;
        for replica in stat.replicas.iter().filter(|replica| replica.version == version.version) {
            let (vault, key, state) = (clean(replica.vault), clean(replica.key), clean(replica.state));
            let site = clean(replica.site_name);
            out.line(format_args!("  {state} at site {site}, in vault {vault} at {key}"))?;
        }
    }
    for upload in &stat.growing {
        let (so_far, state) = (ByteSize(upload.bytes), upload.state);
        let length = upload.length.map_or(String::new(), |length| format!(" of {}", ByteSize(length)));
        out.line(format_args!("upload {}: {state}, {so_far}{length}", clean(upload.upload)))?;
    }
    if stat.attributes.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[("attribute", Side::Left), ("value", Side::Left), ("unit", Side::Left)]);
    for attribute in &stat.attributes {
        let value = match &attribute.value {
            Value::String(text) => clean(text),
            number => number.to_string(),
        };
        table.row([clean(attribute.name), value, clean(attribute.unit.unwrap_or_default())]);
    }
    out.table(&table)
}
