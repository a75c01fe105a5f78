//! `holdfast meta`: list and change the attributes of an object or collection.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{AttributeText, SitePath, attribute};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::table::{Side, Table};
use holdfast_remote::{AttributeChange, CatalogAttribute};
use serde_json::Value;

/// List and change the attributes of an object or collection of a site
#[derive(clap::Args, Debug)]
#[command(
    after_help = "An attribute is a name with a value, and perhaps a unit; an entry may have several of one name.\n\
    A value is a time, a number, a size such as 1.5GB, or a text.\n\n\
    Examples:\n  holdfast meta add /lab/2026/run1.dada target=m31 exposure=1.5[s]\n  \
    holdfast meta set /lab/2026/run1.dada target=m33\n  holdfast meta ls /lab/2026/run1.dada\n  \
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
