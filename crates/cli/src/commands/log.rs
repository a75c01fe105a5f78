//! `holdfast log`: the audit of a site.

use crate::args::SiteArgs;
use crate::commands::paged_table::PagedTable;
use crate::out::Out;
use crate::site::stored;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{UnitError, clean};
use holdfast_client::json::SiteAuditLine;
use holdfast_client::table::Side;
use holdfast_client::times;
use holdfast_remote::AuditRecord;
use holdfast_server::Clock;
use std::time::Duration;

const COLUMNS: &[(&str, Side)] = &[
    ("time", Side::Left),
    ("account", Side::Left),
    ("token", Side::Left),
    ("from", Side::Left),
    ("outcome", Side::Left),
    ("act", Side::Left),
    ("object", Side::Left),
];

/// List denied requests, log-ins and administrative acts of a site, the newest first
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A site keeps its own log, for 90 days. Needs a token with the scope admin. `holdfast audit` lists what\n\
    was done to a ring.\n\nExits with 3 if there are none.\n\n\
    Examples:\n  holdfast log --since 7d\n  holdfast log --denied --json"
)]
pub(crate) struct Args {
    /// List denied requests only
    #[arg(long)]
    denied: bool,
    /// List only what is not older than this
    #[arg(long, value_name = "SPAN", value_parser = span)]
    since: Option<Duration>,
    #[command(flatten)]
    site: SiteArgs,
}

fn span(text: &str) -> Result<Duration, UnitError> {
    times::span(text)
}

/// Runs the command `holdfast log`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let session = args.site.session()?;
    let since = args.since.map(|since| {
        let since = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
        Clock::System.now().milliseconds().saturating_sub(since)
    });
    let (mut table, mut before, mut is_empty) = (PagedTable::new(COLUMNS), None, true);
    loop {
        let page = session.request(session.site().audit(args.denied, since, before))?;
        for record in &page.records {
            is_empty = false;
            if out.is_json() {
                out.object(&shape(record))?;
            } else {
                table.row(out, row(record))?;
            }
        }
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    if is_empty {
        return Err(Failure::nothing("the log has no such records"));
    }
    if out.is_json() { Ok(()) } else { table.end(out) }
}

fn row(record: &AuditRecord) -> [String; 7] {
    let optional = |text: &Option<String>| clean(text.as_deref().unwrap_or("-"));
    [
        stored(record.time),
        optional(&record.account),
        optional(&record.token),
        optional(&record.peer),
        clean(&record.outcome),
        clean(&record.act),
        clean(&record.object),
    ]
}

fn shape(record: &AuditRecord) -> SiteAuditLine<'_> {
    SiteAuditLine {
        time: stored(record.time),
        account: record.account.as_deref(),
        token: record.token.as_deref(),
        peer: record.peer.as_deref(),
        act: &record.act,
        object: &record.object,
        outcome: &record.outcome,
    }
}
