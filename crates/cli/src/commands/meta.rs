//! `holdfast meta`: list and change the attributes of an object or collection.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{AttributeText, ImportRules, MetadataImport, Session, SitePath, attribute};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::ImportedLines;
use holdfast_client::table::{Side, Table};
use holdfast_remote::{AttributeChange, CatalogAttribute};
use serde_json::Value;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek as _};
use std::path::{Path, PathBuf};

/// List and change the attributes of an object or collection of a site
#[derive(clap::Args, Debug)]
#[command(
    after_help = "An attribute is a name with a value, and perhaps a unit; an entry may have several of one name.\n\
    A value is a time, a number, a size such as 1.5GB, or a text.\n\n\
    Examples:\n  holdfast meta add /lab/2026/run1.dada target=m31 exposure=1.5[s]\n  \
    holdfast meta set /lab/2026/run1.dada target=m33\n  holdfast meta import targets.csv\n  \
    holdfast meta ls /lab/2026/run1.dada\n  \
    holdfast meta rm /lab/2026/run1.dada exposure"
)]
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
    /// List the attributes of an entry
    #[command(
        after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast meta ls /lab/2026/run1.dada"
    )]
    Ls {
        #[command(flatten)]
        entry: EntryArgs,
    },
    /// Add attributes beside those of the same name
    #[command(after_help = "Example:\n  holdfast meta add /lab/2026/run1.dada target=m31 exposure=1.5[s]")]
    Add {
        #[command(flatten)]
        entry: EntryArgs,
        /// Attributes that are added
        #[arg(value_name = "NAME=VALUE[UNIT]", required = true)]
        attributes: Vec<AttributeText>,
    },
    /// Set attributes in place of all of the same names
    #[command(after_help = "Example:\n  holdfast meta set /lab/2026/run1.dada target=m33")]
    Set {
        #[command(flatten)]
        entry: EntryArgs,
        /// Attributes that are set
        #[arg(value_name = "NAME=VALUE[UNIT]", required = true)]
        attributes: Vec<AttributeText>,
    },
    /// Set attributes of many entries from a file of CSV or JSON lines
    #[command(
        after_help = "CSV has a head with the column `path`, and others NAME or NAME[UNIT]; an empty cell leaves its attribute\n\
        as it is. A line of JSON is an object with `path`; its other members are attributes: a text, a number,\n\
        {\"value\": 1.5, \"unit\": \"s\"}, a list of these for several values, or null for none.\n\n\
        A file is read to its end before the first line is sent; standard input is `-`. The site makes up to\n\
        1000 lines at once, wholly or not at all. An error names its line and the lines that are imported.\n\
        Lines that come again change nothing: after an error repeat the command with the whole file.\n\n\
        Examples:\n  holdfast meta import targets.csv\n  \
        holdfast meta import --under /lab/2026 targets.jsonl\n  \
        printf 'path,target,exposure[s]\\n/lab/2026/run1.dada,m31,1.5\\n' | holdfast meta import -"
    )]
    Import {
        /// File of CSV or JSON lines; `-` is standard input
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Collection of paths that do not begin with a slash
        #[arg(long, value_name = "PATH")]
        under: Option<SitePath>,
        /// Add the attributes beside those of the same names
        #[arg(long)]
        add: bool,
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Remove all attributes of some names
    #[command(after_help = "Example:\n  holdfast meta rm /lab/2026/run1.dada exposure")]
    Rm {
        #[command(flatten)]
        entry: EntryArgs,
        /// Names of the attributes to remove
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
    },
}

/// Entry whose attributes are meant.
#[derive(clap::Args, Debug)]
struct EntryArgs {
    /// Object or collection: /PROJECT/PATH
    #[arg(value_name = "PATH")]
    path: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast meta`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let requests =
        |attributes: &[AttributeText]| attributes.iter().map(AttributeText::request).collect::<Vec<_>>();
    match &args.what {
        What::Ls { entry } => list(entry, out),
        What::Add { entry, attributes } => {
            change(entry, &AttributeChange { add: requests(attributes), remove: Vec::new() }, out)
        }
        What::Set { entry, attributes } => {
            let remove = attributes.iter().map(|attribute| attribute.name().to_owned()).collect();
            change(entry, &AttributeChange { add: requests(attributes), remove }, out)
        }
        What::Import { file, under, add, site } => {
            import(file, &ImportRules { under: under.clone(), keeps: *add }, site, out)
        }
        What::Rm { entry, names } => {
            change(entry, &AttributeChange { add: Vec::new(), remove: names.clone() }, out)
        }
    }
}

fn list(entry: &EntryArgs, out: &mut Out) -> Result<()> {
    let session = entry.site.session()?;
    let stat = session.request(session.site().catalog_stat(&entry.path.to_string()))?;
    if stat.attributes.is_empty() {
        return Err(Failure::nothing("this entry has no attributes").at(&entry.path));
    }
    told(&stat.attributes, out)
}

fn change(entry: &EntryArgs, change: &AttributeChange, out: &mut Out) -> Result<()> {
    let session = entry.site.session()?;
    let path = entry.path.to_string();
    let stat = session.request(session.site().catalog_attributes(&path, change))?;
    told(&stat.attributes, out)
}

/// Imports a file. One that can be read twice is checked wholly before its first line is sent.
fn import(file: &Path, rules: &ImportRules, site: &SiteArgs, out: &mut Out) -> Result<()> {
    let cannot = |error: io::Error| Failure::io("cannot read", file, &error);
    let session = site.session()?;
    let name = file.display().to_string();
    if file.as_os_str() == "-" {
        return send(MetadataImport::open(io::stdin().lock(), rules, "standard input")?, &session, out);
    }
    let open = || File::open(file).map_err(cannot);
    let mut opened = open()?;
    if opened.metadata().map_err(cannot)?.is_file() {
        MetadataImport::open(BufReader::new(&opened), rules, &name)?.check()?;
        opened.rewind().map_err(cannot)?;
    }
    send(MetadataImport::open(BufReader::new(opened), rules, &name)?, &session, out)
}

/// Sends the lines of an import, and tells what the site has made.
fn send<R: BufRead>(import: MetadataImport<R>, session: &Session, out: &mut Out) -> Result<()> {
    let (mut lines, mut changed) = (0, 0);
    import.send(session, &mut |batch| {
        lines += batch.entries;
        changed += batch.changed;
        if !out.is_json() {
            return Ok(());
        }
        out.object(&ImportedLines {
            first_line: *batch.lines.start(),
            last_line: *batch.lines.end(),
            entries: batch.entries,
            changed: batch.changed,
        })?;
        out.flush()
    })?;
    if out.is_json() {
        return Ok(());
    }
    let same = lines - changed;
    out.line(format_args!("{lines} lines imported: {changed} entries changed, {same} had these attributes"))
}

fn told(attributes: &[CatalogAttribute], out: &mut Out) -> Result<()> {
    let mut table = Table::new(&[
        ("name", Side::Left),
        ("value", Side::Left),
        ("unit", Side::Left),
        ("type", Side::Left),
    ]);
    for shape in attributes.iter().map(attribute) {
        if out.is_json() {
            out.object(&shape)?;
            continue;
        }
        let value = match &shape.value {
            Value::String(text) => clean(text),
            number => number.to_string(),
        };
        table.row([clean(shape.name), value, clean(shape.unit.unwrap_or_default()), shape.r#type.to_owned()]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
