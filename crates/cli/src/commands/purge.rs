//! `holdfast purge`: destroy a range on purpose. What is left of it afterwards is a note of who did it and why.

use crate::args::IndexArg;
use crate::args::RangeArgs;
use crate::args::RingArg;
use crate::out::{Out, notices, say};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_base::{clean, counted};
use holdfast_client::attribution::current_user;
use holdfast_client::index_copies::{self, CopyError};
use holdfast_client::json::PurgedRange;
use holdfast_client::orders;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::times;
use holdfast_reader::{IndexDrive, Selection};
use holdfast_ring::{Order, Outcome, PurgeRequest};
use std::io::{self, IsTerminal, Write};
use std::path::Path;

/// Destroy a range: overwrite its bytes, and record owner and reason
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    Destroyed data cannot be restored. At a terminal the command asks first. The newest 256 purges\n\
    stay on record, or fewer if their reasons are long and the ring's slots small.\n\n\
    Example:\n  holdfast purge lab.hf --stream eth0 --from -10m --to -5m --reason \"request 17\"", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Only this stream (may be repeated)
    #[arg(long = "stream", value_name = "S")]
    streams: Vec<String>,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    index: IndexArg,
    /// Destroy held data, too
    #[arg(long)]
    held: bool,
    /// Reason of the purge
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// Owner of the purge (default: you)
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    if args.streams.is_empty() && args.range.options().is_all() {
        return Err(Failure::usage("this would destroy everything on the ring")
            .advice("name a --stream or a range; to begin anew, use `holdfast format --force`"));
    }
    let (path, mut reader) = args.ring.open()?;
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let selection = session::selection(&streams, &args.streams, &args.range.options())?;
    drop(reader);
    if !args.yes && io::stdin().is_terminal() && io::stderr().is_terminal() {
        confirm(args, &selection)?;
    }
    let order = Order::Purge(PurgeRequest {
        streams: selection.streams,
        range: selection.range,
        held: args.held,
        reason: args.reason.clone(),
        owner: args.owner.clone().unwrap_or_else(current_user),
    });
    let outcome = orders::give(&path, &order, &notices())?;
    let Outcome::Purged { elements, bytes, slots } = outcome else {
        return Err(orders::unexpected(&outcome));
    };
    if let Some(folder) = args.index.place(&args.ring)? {
        sweep(&path, &folder)?;
    }
    if out.is_json() {
        return out.object(&PurgedRange { elements, bytes, slots });
    }
    out.line(format_args!(
        "purged: {} ({}) destroyed, {} overwritten",
        counted(elements, "element"),
        ByteSize(bytes),
        counted(slots.into(), "slot")
    ))
}

/// Takes away what an index drive has of slots that are no more.
fn sweep(path: &Path, folder: &Path) -> Result<()> {
    let mut reader = session::open(path)?;
    let drive = IndexDrive::new(folder, reader.superblock().ring);
    if let Some(nothing) = index_copies::nothing_of(&drive, folder) {
        say(&format!("{nothing}: no copy is taken away there"));
    }
    let at = drive.path();
    let left = index_copies::sweep(&mut reader, &drive).map_err(|trouble| match trouble {
        CopyError::Ring(failure) | CopyError::Drive(failure) => failure.advice(format_args!(
            "the range is destroyed on the ring, but not what {} has of its index: delete that",
            at.display()
        )),
    })?;
    left.map_or(Ok(()), |error| {
        let gone = "what is purged was taken away there, too, but could not be overwritten before";
        Err(Failure::io(gone, at, &error).advice("overwrite what is free on that drive"))
    })
}

fn confirm(args: &Args, selection: &Selection) -> Result<()> {
    let end = |time: Timestamp, open: &str| match time {
        Timestamp::MIN | Timestamp::MAX => open.to_owned(),
        time => times::rfc3339(time),
    };
    let what =
        if args.streams.is_empty() { "all streams".to_owned() } else { clean(&args.streams.join(", ")) };
    let range = &selection.range;
    let mut parts = vec![what];
    if range.is_timed() {
        parts.push(format!("from {} to {}", end(range.from, "the beginning"), end(range.to, "the end")));
    }
    if let Some((from, to)) = range.ordinals {
        parts.push(format!("ordinals {from}..{to}"));
    }
    if args.held {
        parts.push("held data too".to_owned());
    }
    let question = format!("Destroy {}", parts.join(", "));
    let mut stderr = io::stderr();
    let asked =
        write!(stderr, "{question}? It cannot be brought back. Type yes: ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = asked.and_then(|()| io::stdin().read_line(&mut answer));
    if read.is_ok() && answer.trim() == "yes" {
        return Ok(());
    }
    Err(Failure::failed("nothing was destroyed: the answer was not yes"))
}
