//! `holdfast find`: search the objects and collections of a site by name and attributes.

use crate::args::SiteArgs;
use crate::commands::entries::EntryPrinter;
use crate::out::Out;
use crate::site::{EntryView, SitePath};
use holdfast_base::failure::{Failure, Result};
use holdfast_catalog::Condition;
use holdfast_remote::FindRequest;

/// Search the objects and collections of a site by name and attributes
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A condition compares attributes with values: = != < <= > >=, like \"ngc*\", and, or, not, ( ).\n\
    Values are texts in quotes, numbers, sizes (1.5GB) and times (2026-11-20T10:05:00Z). Exits with 3\n\
    if nothing is found.\n\n\
    Examples:\n  holdfast find /lab --meta \"exposure > 1 and target = 'm31'\"\n  \
    holdfast find /lab --name \"*.dada\" -l\n  holdfast find /lab/2026 --meta \"not target like 'ngc*'\" --json"
)]
pub(crate) struct Args {
    /// Collection in which to search: /PROJECT/PATH
    #[arg(value_name = "PATH", default_value = "/")]
    path: SitePath,
    /// Condition over the attributes
    #[arg(long = "meta", value_name = "CONDITION", value_parser = condition)]
    condition: Option<String>,
    /// Pattern of the name, such as `*.dada`
    #[arg(long, value_name = "GLOB")]
    name: Option<String>,
    /// Show sizes, times and versions
    #[arg(short, long)]
    long: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Checks a condition before it is sent.
fn condition(text: &str) -> Result<String, String> {
    text.parse::<Condition>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Runs the command `holdfast find`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let mut request = FindRequest {
        under: Some(args.path.to_string()),
        condition: args.condition.clone(),
        name: args.name.clone(),
        after: None,
    };
    let mut printer = EntryPrinter::new(out, args.long);
    loop {
        let page = session.request(session.site().catalog_find(&request))?;
        for found in &page.entries {
            let (path, id, version) = (&found.path, &found.id, found.version.as_ref());
            printer.entry(&EntryView { path, id, kind: found.kind, version }, path)?;
        }
        request.after = page.next;
        if request.after.is_none() {
            break;
        }
    }
    if printer.entries == 0 {
        return Err(Failure::nothing("nothing is found").at(&args.path));
    }
    printer.end()
}
