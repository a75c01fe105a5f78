//! `holdfast tree`: show the collections and objects of a site as a tree.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{EntryView, Session, SitePath, each_entry};
use holdfast_base::failure::Result;
use holdfast_base::{clean, counted};
use holdfast_remote::{CatalogEntry, CatalogKind};

/// Show the collections and objects of a site as a tree
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  holdfast tree /lab\n  holdfast tree / --depth 2")]
pub(crate) struct Args {
    /// Collection: /PROJECT/PATH, or / for all projects
    #[arg(value_name = "PATH", default_value = "/")]
    path: SitePath,
    /// Number of levels to show
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    depth: Option<u32>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Printer of a tree, with the numbers of its entries.
struct Tree<'a> {
    session: &'a Session,
    out: &'a mut Out,
    objects: u64,
    collections: u64,
}

/// Runs the command `holdfast tree`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    if !out.is_json() {
        out.line(clean(&args.path.to_string()))?;
    }
    let mut tree = Tree { session: &session, out, objects: 0, collections: 0 };
    tree.branch(&args.path, "", args.depth.unwrap_or(u32::MAX))?;
    if tree.out.is_json() {
        return Ok(());
    }
    let (collections, objects) = (counted(tree.collections, "collection"), counted(tree.objects, "object"));
    tree.out.line(format_args!("{collections}, {objects}"))
}

impl Tree<'_> {
    /// Prints the entries of a collection. Each waits for the next one, as the last has another line.
    fn branch(&mut self, path: &SitePath, prefix: &str, depth: u32) -> Result<()> {
        let mut held: Option<CatalogEntry> = None;
        each_entry(self.session, path, &mut |entry| match held.replace(entry) {
            Some(entry) => self.twig(path, &entry, (prefix, "├── ", "│   "), depth),
            None => Ok(()),
        })?;
        match held {
            Some(entry) => self.twig(path, &entry, (prefix, "└── ", "    "), depth),
            None => Ok(()),
        }
    }

    /// Prints an entry and those below it, behind the lines of the collections above.
    fn twig(
        &mut self,
        above: &SitePath,
        entry: &CatalogEntry,
        (prefix, line, below): (&str, &str, &str),
        depth: u32,
    ) -> Result<()> {
        let (path, kind, name) = (above.child(&entry.name), entry.kind, clean(&entry.name));
        let is_collection = kind == CatalogKind::Collection;
        *(if is_collection { &mut self.collections } else { &mut self.objects }) += 1;
        if self.out.is_json() {
            let (path, id, version) = (path.to_string(), &entry.id, entry.version.as_ref());
            self.out.object(&EntryView { path: &path, id, kind, version }.json())?;
        } else {
            let slash = if is_collection { "/" } else { "" };
            self.out.line(format_args!("{prefix}{line}{name}{slash}"))?;
        }
        if is_collection && depth > 1 {
            self.branch(&path, &format!("{prefix}{below}"), depth - 1)?;
        }
        Ok(())
    }
}
