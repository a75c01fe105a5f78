//! `holdfast jobs`: the copies that a site fetches from other sites.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::stored;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::JobLine;
use holdfast_client::table::{Side, Table};

/// List the copies that a site fetches from other sites
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Policies (`holdfast policy`) and `holdfast stage` make jobs; a failed one is tried again until it\n\
    succeeds. Open jobs come first, then the last completed ones. Exits with 3 if there are none.\n\n\
    Examples:\n  holdfast jobs\n  holdfast jobs --open --json"
)]
pub(crate) struct Args {
    /// List jobs that are not completed only
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast jobs`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let mut jobs = session.request(session.site().jobs())?;
    jobs.retain(|job| !args.open || job.state != "done");
    if jobs.is_empty() {
        return Err(Failure::nothing("this site fetches nothing"));
    }
    let mut table = Table::new(&[
        ("state", Side::Left),
        ("reason", Side::Left),
        ("attempts", Side::Right),
        ("since", Side::Left),
        ("path", Side::Left),
        ("error", Side::Left),
    ]);
    for job in &jobs {
        if out.is_json() {
            out.object(&JobLine {
                path: &job.path,
                object: &job.object,
                version: &job.version,
                reason: &job.reason,
                state: &job.state,
                attempts: job.attempts,
                changed: stored(job.changed),
                due: job.due.map(stored),
                error: job.error.as_deref(),
            })?;
            continue;
        }
        table.row([
            clean(&job.state),
            clean(&job.reason),
            job.attempts.to_string(),
            stored(job.changed),
            clean(&job.path),
            clean(job.error.as_deref().unwrap_or_default()),
        ]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
