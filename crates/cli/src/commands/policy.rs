//! `holdfast policy`: the number of copies of a collection's objects, and the sites that have them.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::SitePath;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::{PolicyLine, RemovedPolicy};
use holdfast_client::table::{Side, Table};
use holdfast_remote::{NewPolicy, SitePolicy};

/// Set how many sites keep a copy of the objects of a collection, and which
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A policy counts for everything below its collection that has no nearer one. Each site that it names\n\
    fetches what it lacks, until so many sites have a verified copy; `holdfast jobs` shows the work.\n\n\
    Examples:\n  holdfast policy set /lab --copies 1 --sites ams\n  holdfast policy ls\n  \
    holdfast policy rm /lab"
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
    /// Set the policy of a collection
    #[command(after_help = "Example:\n  holdfast policy set /lab --copies 1 --sites ams --priority 5")]
    Set {
        #[command(flatten)]
        collection: Collection,
        /// Number of sites that keep a verified copy
        #[arg(long, value_name = "NUMBER")]
        copies: u64,
        /// Names of the sites, with commas between, the preferred ones first
        #[arg(long, value_name = "SITES", value_delimiter = ',', required = true)]
        sites: Vec<String>,
        /// Priority of the work: greater numbers come first
        #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
        priority: i32,
    },
    /// List the policies of all collections
    #[command(after_help = "Exits with 3 if there are none.\n\nExample:\n  holdfast policy ls")]
    Ls {
        #[command(flatten)]
        site: SiteArgs,
    },
    /// Remove the policy of a collection; its copies stay
    #[command(after_help = "Example:\n  holdfast policy rm /lab")]
    Rm {
        #[command(flatten)]
        collection: Collection,
    },
}

/// Collection of a policy.
#[derive(clap::Args, Debug)]
struct Collection {
    /// Collection: /PROJECT/PATH, or / for all projects
    #[arg(value_name = "COLLECTION")]
    path: SitePath,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast policy`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        What::Set { collection, copies, sites, priority } => {
            let policy = NewPolicy { copies: *copies, sites: sites.clone(), priority: *priority };
            let session = collection.site.session()?;
            let path = collection.path.to_string();
            let set = session.request(session.site().set_policy(&path, &policy))?;
            told(&[set], out)
        }
        What::Ls { site } => {
            let session = site.session()?;
            let policies = session.request(session.site().policies())?;
            if policies.is_empty() {
                return Err(Failure::nothing("no collection has a policy"));
            }
            told(&policies, out)
        }
        What::Rm { collection } => {
            let session = collection.site.session()?;
            let path = collection.path.to_string();
            session.request(session.site().remove_policy(&path))?;
            if out.is_json() {
                return out.object(&RemovedPolicy { removed: &path });
            }
            out.line(format_args!("{}: no policy of its own", clean(&path)))
        }
    }
}

fn told(policies: &[SitePolicy], out: &mut Out) -> Result<()> {
    let mut table = Table::new(&[
        ("collection", Side::Left),
        ("copies", Side::Right),
        ("sites", Side::Left),
        ("priority", Side::Right),
    ]);
    for SitePolicy { path, copies, sites, priority } in policies {
        if out.is_json() {
            out.object(&PolicyLine { path, copies: *copies, sites, priority: *priority })?;
            continue;
        }
        table.row([clean(path), copies.to_string(), clean(&sites.join(", ")), priority.to_string()]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
