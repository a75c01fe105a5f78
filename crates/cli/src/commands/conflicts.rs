//! `holdfast conflicts`: changes that two sites made at once, and their settlement.

use crate::args::SiteArgs;
use crate::out::Out;
use crate::site::{site_name, stored};
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::json::{ConflictLine, ConflictWriteLine, SettledConflict};
use holdfast_client::table::{Side, Table};
use holdfast_remote::{ConflictWrite, SiteConflict};

/// List and settle the conflicts between changes that two sites made at once
#[derive(clap::Args, Debug)]
#[command(
    after_help = "A rule has decided each conflict already, and nothing is lost: of two entries with one name, the\n\
    later one is shown as NAME_1; of two renames, the later counts, and the other one can be chosen for\n\
    24 hours; of two contents, both are versions. A changed entry is never deleted.\n\n\
    `keep` makes what is shown final; `flip` takes what lost.\n\n\
    Exits with 3 if there are none.\n\n\
    Examples:\n  holdfast conflicts\n  holdfast conflicts --all --json\n  \
    holdfast conflicts show same-019ac3f2-6a00-7c3e-8f00-3b1f0c2d4e5f\n  \
    holdfast conflicts flip same-019ac3f2-6a00-7c3e-8f00-3b1f0c2d4e5f"
)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// List settled and final conflicts too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    site: SiteArgs,
}

impl Args {
    /// True for a command that only prints.
    pub(crate) fn only_prints(&self) -> bool {
        matches!(self.what, None | Some(What::Show { .. }))
    }
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Show both sides of a conflict
    #[command(after_help = "Example:\n  holdfast conflicts show same-019ac3f2-6a00-7c3e-8f00-3b1f0c2d4e5f")]
    Show {
        #[command(flatten)]
        conflict: Conflict,
    },
    /// Keep what is shown now, for good
    #[command(after_help = "Example:\n  holdfast conflicts keep same-019ac3f2-6a00-7c3e-8f00-3b1f0c2d4e5f")]
    Keep {
        #[command(flatten)]
        conflict: Conflict,
    },
    /// Take the write that lost
    #[command(after_help = "Example:\n  holdfast conflicts flip same-019ac3f2-6a00-7c3e-8f00-3b1f0c2d4e5f")]
    Flip {
        #[command(flatten)]
        conflict: Conflict,
    },
}

/// Conflict by its identity.
#[derive(clap::Args, Debug)]
struct Conflict {
    /// Identity of the conflict, as the list shows it
    #[arg(value_name = "ID")]
    id: String,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast conflicts`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    match &args.what {
        None => list(&args.site, args.all, out),
        Some(What::Show { conflict }) => show(conflict, out),
        Some(What::Keep { conflict }) => settle(conflict, false, out),
        Some(What::Flip { conflict }) => settle(conflict, true, out),
    }
}

fn list(site: &SiteArgs, all: bool, out: &mut Out) -> Result<()> {
    let session = site.session()?;
    let mut conflicts = session.request(session.site().conflicts())?;
    conflicts.retain(|conflict| all || conflict.state == "open");
    if conflicts.is_empty() {
        return Err(Failure::nothing("there are no open conflicts"));
    }
    let mut table = Table::new(&[
        ("kind", Side::Left),
        ("state", Side::Left),
        ("path", Side::Left),
        ("lost", Side::Left),
        ("won", Side::Left),
        ("id", Side::Left),
    ]);
    for conflict in &conflicts {
        if out.is_json() {
            out.object(&shape(conflict))?;
            continue;
        }
        let value = |write: &ConflictWrite| clean(write.value.as_deref().unwrap_or_default());
        table.row([
            kind(conflict).to_owned(),
            clean(&conflict.state),
            clean(conflict.path.as_deref().unwrap_or_default()),
            value(&conflict.lost),
            conflict.won.as_ref().map(value).unwrap_or_default(),
            clean(&conflict.id),
        ]);
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}

/// Name of the kind for people.
fn kind(conflict: &SiteConflict) -> &str {
    match conflict.kind.as_str() {
        "same_name" => "same name",
        kind => kind,
    }
}

fn show(wanted: &Conflict, out: &mut Out) -> Result<()> {
    let session = wanted.site.session()?;
    let conflicts = session.request(session.site().conflicts())?;
    let Some(conflict) = conflicts.iter().find(|conflict| conflict.id == wanted.id) else {
        return Err(Failure::nothing("there is no such conflict")
            .at(clean(&wanted.id))
            .advice("`holdfast conflicts --all` lists all conflicts"));
    };
    if out.is_json() {
        return out.object(&shape(conflict));
    }
    let path = conflict.path.as_deref().map_or_else(|| "in the trash".to_owned(), clean);
    out.line(format_args!("{} of {path}: {}", kind(conflict), clean(&conflict.state)))?;
    let told = |name: &str, write: &ConflictWrite| {
        let value = write.value.as_deref().map_or_else(|| "gone".to_owned(), clean);
        format!(
            "{name} {value}, written at {} by site {}",
            stored(write.time),
            clean(site_name(&write.site, &write.site_name))
        )
    };
    out.line(told("lost", &conflict.lost))?;
    if let Some(won) = &conflict.won {
        out.line(told("won ", won))?;
    }
    if let Some(until) = conflict.until {
        out.line(format_args!("it can be settled until {}", stored(until)))?;
    }
    Ok(())
}

fn settle(wanted: &Conflict, flip: bool, out: &mut Out) -> Result<()> {
    let session = wanted.site.session()?;
    session.request(session.site().settle_conflict(&wanted.id, flip))?;
    let choice = if flip { "flip" } else { "keep" };
    if out.is_json() {
        return out.object(&SettledConflict { settled: &wanted.id, choice });
    }
    let done = if flip { "took what lost" } else { "kept what is shown" };
    out.line(format_args!("{done} in {}", clean(&wanted.id)))
}

fn shape(conflict: &SiteConflict) -> ConflictLine<'_> {
    ConflictLine {
        id: &conflict.id,
        kind: &conflict.kind,
        object: &conflict.object,
        path: conflict.path.as_deref(),
        state: &conflict.state,
        lost: line(&conflict.lost),
        won: conflict.won.as_ref().map(line),
        noted: conflict.noted.map(stored),
        until: conflict.until.map(stored),
        choice: conflict.choice.as_deref(),
    }
}

fn line(write: &ConflictWrite) -> ConflictWriteLine<'_> {
    ConflictWriteLine {
        site: &write.site,
        site_name: site_name(&write.site, &write.site_name),
        time: stored(write.time),
        value: write.value.as_deref(),
    }
}
