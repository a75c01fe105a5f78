//! `holdfast audit`: what was done with data, by whom and why.

use crate::failure::{Failure, Kind, Result};
use crate::out::{Out, Side, Table, clean, counted};
use crate::session::{self, RingArg, link, stream_name};
use crate::show;
use crate::times::{self, When};
use holdfast_base::{HoldId, Timestamp};
use holdfast_ring::{ActKind, ActStatus, StreamStatus};
use serde::Serialize;

/// Tell who held, released, exported and purged what, when and why
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    The ring keeps the newest 256 purges and the newest 256 other acts, fewer where its slots are\n\
    small; how many were dropped is told at the end. What is read where no recorder runs is not on\n\
    record: that writes nothing.\n\n\
    Exits with 3 when nothing was done.\n\n\
    Examples:\n  holdfast audit lab.hf\n  holdfast audit lab.hf --since -25h --json", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Only what was done since then
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    since: Option<When>,
}

#[derive(Serialize)]
struct Shown<'a> {
    act: &'static str,
    number: u64,
    #[serde(serialize_with = "show::time")]
    at: Timestamp,
    owner: &'a str,
    reason: &'a str,
    hold: Option<u64>,
    stream: Option<String>,
    #[serde(serialize_with = "show::time")]
    from: Timestamp,
    #[serde(serialize_with = "show::time")]
    to: Timestamp,
    event: bool,
    ordinals: Option<[u64; 2]>,
    slots: Option<u32>,
    elements: Option<u64>,
    bytes: Option<u64>,
}

#[derive(Serialize)]
struct Dropped {
    dropped_purges: u64,
    dropped_acts: u64,
}

fn word(kind: ActKind) -> &'static str {
    match kind {
        ActKind::Unknown => "unknown",
        ActKind::Hold => "hold",
        ActKind::Release => "release",
        ActKind::End => "end",
        ActKind::Export => "export",
        ActKind::Purge => "purge",
    }
}

impl<'a> Shown<'a> {
    fn new(act: &'a ActStatus, streams: &[StreamStatus]) -> Self {
        let purged = act.kind == ActKind::Purge;
        Self {
            act: word(act.kind),
            number: act.number,
            at: act.at,
            owner: &act.owner,
            reason: &act.reason,
            hold: act.hold.map(|HoldId(id)| id),
            stream: act.stream.map(|stream| stream_name(streams, stream)),
            from: act.range.from,
            to: act.range.to,
            event: act.range.by_event,
            ordinals: act.range.ordinals.map(|(from, to)| [from.0, to.0]),
            slots: Some(act.slots).filter(|_| act.kind == ActKind::Hold),
            elements: Some(act.elements).filter(|_| purged),
            bytes: Some(act.bytes).filter(|_| purged),
        }
    }
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (_, mut reader) = args.ring.open()?;
    let (mut acts, dropped) = reader.acts().map_err(|error| link(&error))?;
    let streams = reader.streams().map_err(|error| link(&error))?;
    let since = args.since.map_or(Timestamp::MIN, |since| since.resolve(session::now()));
    acts.retain(|act| act.at >= since);
    acts.sort_by_key(|act| act.at);
    if out.is_json() {
        for act in &acts {
            out.object(&Shown::new(act, &streams))?;
        }
        out.object(&Dropped { dropped_purges: dropped.purges, dropped_acts: dropped.others })?;
    } else {
        if acts.is_empty() {
            out.line("nothing is on record")?;
        } else {
            out.table(&table(&acts, &streams))?;
        }
        if dropped.purges + dropped.others > 0 {
            let (purges, others) = (counted(dropped.purges, "purge"), counted(dropped.others, "other act"));
            out.line(format_args!("{purges} and {others} before these were dropped"))?;
        }
    }
    if acts.is_empty() { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

fn table(acts: &[ActStatus], streams: &[StreamStatus]) -> Table {
    let mut table = Table::new(&[
        ("when", Side::Left),
        ("act", Side::Left),
        ("hold", Side::Right),
        ("stream", Side::Left),
        ("range", Side::Left),
        ("owner", Side::Left),
        ("reason", Side::Left),
    ]);
    for act in acts {
        table.row([
            times::to_the_second(act.at),
            word(act.kind).to_owned(),
            act.hold.map_or_else(String::new, |HoldId(id)| id.to_string()),
            act.stream.map_or_else(|| "all".to_owned(), |stream| stream_name(streams, stream)),
            show::range(&act.range),
            clean(&act.owner),
            clean(&act.reason),
        ]);
    }
    table
}
