//! `holdfast trash`: list, restore and purge the deleted entries of a site.

use crate::args::SiteArgs;
use crate::commands::paged_table::PagedTable;
use crate::out::Out;
use crate::site::{Session, SitePath, kind_name, stored};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::{PurgedEntry, SiteEntryId, TrashLine};
use holdfast_client::table::Side;
use holdfast_remote::TrashedEntry;

const COLUMNS: &[(&str, Side)] =
    &[("deleted", Side::Left), ("kind", Side::Left), ("id", Side::Left), ("path", Side::Left)];

/// List, restore and purge the deleted objects and collections of a site
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  holdfast trash ls\n  holdfast trash ls /lab/2027 --json\n  \
    holdfast trash restore /lab/2027/first.dada\n  \
    holdfast trash restore /lab/2027/run1.dada --to /lab/2026/run1.dada\n  \
    holdfast trash purge /lab/2027/run2.dada")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.what, What::Ls { .. })
    }
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// List deleted entries with their former paths
    #[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast trash ls /lab/2027")]
    Ls {
        /// Only entries that were at this path or below it
        #[arg(value_name = "PATH")]
        path: Option<SitePath>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Restore a deleted entry with all below it
    #[command(after_help = "If the former path is taken, the entry appears there under a numbered name.\n\n\
        Example:\n  holdfast trash restore /lab/2027/first.dada")]
    Restore {
        /// Identity of the entry, or its former path: then the entry that was deleted last
        #[arg(value_name = "ID|PATH")]
        entry: String,
        /// New path, instead of the former one
        #[arg(long, value_name = "PATH")]
        to: Option<SitePath>,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Remove a deleted entry with all below it for ever, at all sites
    #[command(after_help = "Possible once all sites know that it was deleted, which takes minutes.\n\n\
        Example:\n  holdfast trash purge /lab/2027/run2.dada")]
    Purge {
        /// Identity of the entry, or its former path: then the entry that was deleted last
        #[arg(value_name = "ID|PATH")]
        entry: String,
        #[command(flatten)]
        site: SiteArgs,
    },
}

/// Runs the command `holdfast trash`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::Ls { path, site } => list(&site.session()?, path.as_ref(), out),
        What::Restore { entry, to, site } => restore(&site.session()?, entry, to.as_ref(), out),
        What::Purge { entry, site } => purge(&site.session()?, entry, out),
    }
}

fn each_trashed(
    session: &Session,
    path: Option<&str>,
    visit: &mut dyn FnMut(TrashedEntry) -> Result<()>,
) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let page = session.request(session.site().list_trash(path, after.as_deref()))?;
        page.entries.into_iter().try_for_each(&mut *visit)?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn list(session: &Session, path: Option<&SitePath>, out: &mut Out) -> Result<()> {
    let at = path.map(SitePath::to_string);
    let (mut table, mut count) = (PagedTable::new(COLUMNS), 0_u64);
    each_trashed(session, at.as_deref(), &mut |entry| {
        count += 1;
        let (kind, deleted) = (kind_name(entry.kind), stored(entry.deleted));
        if out.is_json() {
            return out.object(&TrashLine { path: &entry.path, id: &entry.id, kind, deleted });
        }
        table.row(out, [deleted, kind.to_owned(), clean(&entry.id), clean(&entry.path)])
    })?;
    if count == 0 {
        let place = at.as_deref().unwrap_or("/");
        return Err(Failure::nothing("the trash has nothing from this place").at(place));
    }
    if out.is_json() { Ok(()) } else { table.end(out) }
}

/// Identity of an entry that is given by it or by its former path.
fn identity(session: &Session, entry: &str) -> Result<String> {
    if entry.starts_with('/') { latest(session, entry) } else { Ok(entry.to_owned()) }
}

fn purge(session: &Session, entry: &str, out: &mut Out) -> Result<()> {
    let id = identity(session, entry)?;
    session.request(session.site().purge_entry(&id))?;
    if out.is_json() {
        return out.object(&PurgedEntry { purged: &id });
    }
    out.line(format_args!("{}: gone for ever", clean(entry)))
}

fn restore(session: &Session, entry: &str, to: Option<&SitePath>, out: &mut Out) -> Result<()> {
    let id = identity(session, entry)?;
    let to = to.map(SitePath::to_string);
    let restored = session.request(session.site().restore_entry(&id, to.as_deref()))?;
    if out.is_json() {
        return out.object(&SiteEntryId { path: &restored.path, id: &restored.id });
    }
    out.line(format_args!("{}: restored", clean(&restored.path)))
}

/// Identity of the entry that was deleted last at a path.
fn latest(session: &Session, path: &str) -> Result<String> {
    let path: SitePath = path.parse().map_err(|error: String| Failure::usage(error).at("ID|PATH"))?;
    let path = path.to_string();
    let mut latest: Option<TrashedEntry> = None;
    each_trashed(session, Some(&path), &mut |entry| {
        if entry.path == path && latest.as_ref().is_none_or(|latest| latest.deleted <= entry.deleted) {
            latest = Some(entry);
        }
        Ok(())
    })?;
    let missing = || {
        Failure::nothing("no deleted entry had this path").at(&path).advice("`holdfast trash ls` lists them")
    };
    latest.map(|entry| entry.id).ok_or_else(missing)
}
