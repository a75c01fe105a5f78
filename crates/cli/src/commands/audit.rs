//! `holdfast audit`: what was done with data, by whom and why.

use crate::failure::{Failure, Kind, Result};
use crate::out::{Out, Side, Table, clean, counted};
use crate::session::{self, RingArg, link, stream_name};
use crate::show;
use crate::times::{self, When};
use holdfast_base::{HoldId, Timestamp};
use holdfast_ring::{ActKind, ActStatus, StreamStatus};
use serde::Serialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Tell who held, released, exported and purged what, when and why
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    The ring keeps the newest 256 purges and the newest 256 other acts, fewer where its slots are\n\
    small; how many were dropped is told at the end. What is read where no recorder runs is on\n\
    record only with --reason or --owner: otherwise that writes nothing.\n\n\
    --append keeps them all, if it is given often enough: it adds to a file, as JSON lines, what is\n\
    not in it yet, and exits with 1 when something was dropped between.\n\n\
    Exits with 3 when nothing was done.\n\n\
    Examples:\n  holdfast audit lab.hf\n  holdfast audit lab.hf --since -25h --json\n  \
    holdfast audit lab.hf --append lab-acts.jsonl", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Only what was done since then
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    since: Option<When>,
    /// Add to this file what is not in it yet
    #[arg(long, value_name = "FILE", conflicts_with = "since")]
    append: Option<PathBuf>,
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
    if let Some(file) = &args.append {
        acts.sort_by_key(|act| (act.kind == ActKind::Purge, act.number));
        return append(file, &acts, &streams, out);
    }
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

#[derive(Serialize)]
struct Appended {
    appended: u64,
    dropped: u64,
}

/// Adds to a file of JSON lines those of all acts, in the order of their numbers, that are not in it.
fn append(path: &Path, acts: &[ActStatus], streams: &[StreamStatus], out: &mut Out) -> Result<()> {
    let failed = |error: io::Error| Failure::io("cannot add to the file", path, &error);
    let mut file = File::options().read(true).append(true).create(true).open(path).map_err(failed)?;
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(failed)?;
    // A line that was not written to its end is written again.
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let lines = text[..whole].lines().map(serde_json::from_str::<Value>).collect::<Result<Vec<_>, _>>();
    let lines = lines.map_err(|error| {
        Failure::failed(format_args!("this is no file of acts: {error}"))
            .at_path(path)
            .advice("name a new one, or one that `holdfast audit --append` has made")
    })?;
    let (mut more, mut appended, mut dropped) = (Vec::new(), 0, 0);
    for purges in [false, true] {
        let last = lines.iter().rfind(|line| (line["act"] == word(ActKind::Purge)) == purges);
        let first = last.and_then(|line| line["number"].as_u64()).unwrap_or(0) + 1;
        let kind = acts.iter().filter(|act| (act.kind == ActKind::Purge) == purges);
        let own: Vec<&ActStatus> = kind.collect();
        let is_other = match own.iter().find(|act| act.number + 1 == first) {
            Some(act) => serde_json::to_value(Shown::new(act, streams)).ok().as_ref() != last,
            None => own.last().map_or(0, |act| act.number) + 1 < first,
        };
        if is_other {
            return Err(Failure::failed("this file has the acts of another ring")
                .at_path(path)
                .advice("give each ring a file of its own"));
        }
        let mut next = first;
        for act in own.into_iter().skip_while(|act| act.number < first) {
            dropped += act.number - next;
            next = act.number + 1;
            appended += 1;
            serde_json::to_writer(&mut more, &Shown::new(act, streams))
                .map_err(|error| failed(error.into()))?;
            more.push(b'\n');
        }
    }
    file.set_len(whole as u64).and_then(|()| file.write_all(&more)).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    if out.is_json() {
        out.object(&Appended { appended, dropped })?;
    } else {
        out.line(format_args!("{} added to {}", counted(appended, "act"), path.display()))?;
    }
    if dropped > 0 {
        return Err(Failure::failed(format_args!(
            "{} had been dropped before: they are in no file",
            counted(dropped, "act")
        ))
        .at_path(path)
        .advice("do this more often than 256 of them come"));
    }
    Ok(())
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
