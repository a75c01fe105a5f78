//! `holdfast ls`: list the collections and objects of a site.

use crate::args::SiteArgs;
use crate::commands::entries::EntryPrinter;
use crate::out::Out;
use crate::site::{EntryView, Session, SitePath, failure, upload};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::table::{Side, Table};
use holdfast_remote::{CatalogKind, RemoteErrorKind};

/// List the collections and objects of a site
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Exits with 3 if there are none.\n\nExamples:\n  holdfast ls /\n  holdfast ls -l /lab/2026\n  \
    holdfast ls -R /lab --json\n  holdfast ls /lab --growing"
)]
pub(crate) struct Args {
    /// Collection or object: /PROJECT/PATH, or / for the projects
    #[arg(value_name = "PATH", default_value = "/")]
    path: SitePath,
    /// Show sizes, times and versions
    #[arg(short, long)]
    long: bool,
    /// List all that is below the collection
    #[arg(short = 'R', long)]
    recursive: bool,
    /// List the uploads that are not stored yet, instead
    #[arg(long, conflicts_with_all = ["long", "recursive"])]
    growing: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast ls`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    if args.growing {
        return growing(&session, &args.path, out);
    }
    let mut printer = EntryPrinter::new(out, args.long);
    list(&session, &args.path, args.recursive, &mut printer)?;
    if printer.entries == 0 {
        return Err(Failure::nothing("there is nothing in this collection").at(&args.path));
    }
    printer.end()
}

fn list(session: &Session, path: &SitePath, recursive: bool, printer: &mut EntryPrinter<'_>) -> Result<()> {
    let (site, mut after) = (session.site(), None);
    let at = path.to_string();
    loop {
        let page = session.run(async {
            match site.catalog_list(&at, after.as_deref()).await {
                Ok(page) => Ok(Some(page)),
                // An object is listed as itself.
                Err(error) if error.kind == RemoteErrorKind::Refused => match site.catalog_stat(&at).await {
                    Ok(stat) if stat.kind != CatalogKind::Collection => Ok(None),
                    _ => Err(failure(&error)),
                },
                Err(error) => Err(failure(&error)),
            }
        })?;
        let Some(page) = page else { return object(session, &at, printer) };
        for entry in &page.entries {
            let child = path.child(&entry.name);
            let child_path = child.to_string();
            let shown = if recursive { &child_path } else { &entry.name };
            let (id, kind, version) = (&entry.id, entry.kind, entry.version.as_ref());
            printer.entry(&EntryView { path: &child_path, id, kind, version }, shown)?;
            if recursive && kind == CatalogKind::Collection {
                list(session, &child, true, printer)?;
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

fn object(session: &Session, path: &str, printer: &mut EntryPrinter<'_>) -> Result<()> {
    let stat = session.request(session.site().catalog_stat(path))?;
    let version = stat.versions.iter().find(|version| Some(&version.version) == stat.current.as_ref());
    let id = stat.id.as_deref().unwrap_or_default();
    printer.entry(&EntryView { path, id, kind: stat.kind, version }, path)
}

/// Lists the uploads below a path.
fn growing(session: &Session, path: &SitePath, out: &mut Out) -> Result<()> {
    let Some(project) = path.project() else {
        return Err(Failure::usage("the root has no uploads").at("--growing").advice("name a project"));
    };
    let page = session.request(session.site().list(project, None))?;
    let inside = path.inside();
    let is_below = |found: &str| {
        inside.is_empty()
            || found.strip_prefix(&inside).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let mut table = Table::new(&[
        ("bytes", Side::Right),
        ("length", Side::Right),
        ("state", Side::Left),
        ("path", Side::Left),
    ]);
    let mut count = 0;
    for found in page.growing.iter().filter(|found| is_below(&found.path)) {
        count += 1;
        let path = format!("/{project}/{}", found.path);
        let shape = upload(&path, found);
        if out.is_json() {
            out.object(&shape)?;
            continue;
        }
        let length = shape.length.map(|length| length.to_string()).unwrap_or_default();
        table.row([shape.bytes.to_string(), length, shape.state.to_owned(), clean(&path)]);
    }
    if count == 0 {
        return Err(Failure::nothing("no upload grows here").at(path));
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
