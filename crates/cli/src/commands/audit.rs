//! `holdfast audit`: what was done with data, by whom and why.

use crate::args::RingArg;
use crate::interruption::interruption;
use crate::out::Out;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{HoldId, Timestamp};
use holdfast_base::{clean, counted};
use holdfast_client::json::{Act, AppendedActs, DroppedActs};
use holdfast_client::session::{self, ring_failure, stream_name};
use holdfast_client::table::{Side, Table};
use holdfast_client::times::{self, When};
use holdfast_client::words::{self};
use holdfast_reader::ReaderError;
use holdfast_reader::RingReader;
use holdfast_ring::{ActNumbers, ActStatus, StreamStatus};
use holdfast_standing::{ActsFile, AddedActs};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long it waits until it looks again: the ring keeps more than anybody can do meanwhile.
const TURN: Duration = Duration::from_millis(250);
/// So many times as long where no recorder runs: to look is to read the journal then, and an act takes a command.
const REST: u32 = 20;

/// List who held, released, exported and purged what, when and why
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    The ring keeps the newest 256 purges and the newest 256 other acts, fewer with small slots; the\n\
    number of dropped acts is printed at the end. Without a recorder, reads are recorded only with\n\
    --reason or --owner, since they write nothing otherwise.\n\n\
    --append keeps all acts: it appends new ones to a file, as JSON lines. With --follow it continues\n\
    until it is interrupted; without, run it often enough. It exits with 1 if acts had been dropped\n\
    before they were appended.\n\n\
    Exits with 3 if there are no acts.\n\n\
    Examples:\n  holdfast audit lab.hf\n  holdfast audit lab.hf --since -25h --json\n  \
    holdfast audit lab.hf --append lab-acts.jsonl --follow", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Only acts since this time
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    since: Option<When>,
    /// Append new acts to this file
    #[arg(long, value_name = "FILE", conflicts_with = "since")]
    append: Option<PathBuf>,
    /// Continue until interrupted
    #[arg(long, requires = "append")]
    follow: bool,
}

impl Args {
    /// True if the acts go to standard output, and no file is written.
    pub(crate) fn only_prints(&self) -> bool {
        self.append.is_none()
    }
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (place, mut reader) = args.ring.open()?;
    if let Some(file) = &args.append {
        return append(file, args.follow, &place, reader, out);
    }
    let (mut acts, dropped) = reader.acts(ActNumbers::default()).map_err(|error| ring_failure(&error))?;
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let since = args.since.map_or(Timestamp::MIN, |since| since.resolve(session::now()));
    acts.retain(|act| act.at >= since);
    acts.sort_by_key(|act| act.at);
    if out.is_json() {
        for act in &acts {
            out.object(&Act::new(act, &streams))?;
        }
        out.object(&DroppedActs { dropped_purges: dropped.purges, dropped_acts: dropped.others })?;
    } else {
        if acts.is_empty() {
            out.line("nothing is on record")?;
        } else {
            out.table(&table(&acts, &streams))?;
        }
        if dropped.purges + dropped.others > 0 {
            let (purges, others) = (counted(dropped.purges, "purge"), counted(dropped.others, "other act"));
            out.line(format_args!(
                "{purges} and {others} before these were dropped: only what --append had added to a file by then is left"
            ))?;
        }
    }
    if acts.is_empty() { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}

/// Adds to a file what is not in it yet; with `follow` also what comes, until it is interrupted.
fn append(file: &Path, follow: bool, place: &Path, mut reader: RingReader, out: &mut Out) -> Result<()> {
    let end = interruption()?;
    let ending = || end.load(Ordering::Relaxed);
    let mut file = ActsFile::open(file)?;
    let (mut all, mut trouble) = (AddedActs::default(), String::new());
    loop {
        let looked = look(&mut reader, file.after());
        let is_there = looked.is_ok();
        match looked {
            Ok((acts, streams)) => {
                let added = file.add(&acts, &streams)?;
                if !follow || added != AddedActs::default() {
                    tell(added, &file, out)?;
                }
                all = AddedActs { acts: all.acts + added.acts, dropped: all.dropped + added.dropped };
            }
            Err(error) if !follow => return Err(ring_failure(&error)),
            // The recorder has ended, or goes on without us.
            Err(_) => {}
        }
        if !follow || ending() {
            break;
        }
        out.flush()?;
        for _ in 0..if reader.is_live() { 1 } else { REST } {
            std::thread::sleep(TURN);
            if ending() {
                break;
            }
        }
        if !is_there || !reader.is_live() {
            match RingReader::open(place) {
                Ok(opened) => {
                    reader = opened;
                    file.look_again();
                }
                Err(error) => complain(&mut trouble, &ring_failure(&error).to_string()),
            }
        }
    }
    if all.dropped > 0 {
        return Err(dropped(all.dropped, &file, follow));
    }
    Ok(())
}

/// What there is of acts behind these numbers, and the streams that they name.
fn look(
    reader: &mut RingReader,
    after: ActNumbers,
) -> std::result::Result<(Vec<ActStatus>, Vec<StreamStatus>), ReaderError> {
    let (acts, _) = reader.acts(after)?;
    let streams = if acts.is_empty() { Vec::new() } else { reader.streams()? };
    Ok((acts, streams))
}

/// Says what was added. What is missing is said at once, for somebody may be there for a long time.
fn tell(added: AddedActs, file: &ActsFile, out: &mut Out) -> Result<()> {
    if out.is_json() {
        return out.object(&AppendedActs { appended: added.acts, dropped: added.dropped });
    }
    out.line(format_args!("{} added to {}", counted(added.acts, "act"), file.path().display()))?;
    if added.dropped > 0 {
        let missing = counted(added.dropped, "act");
        out.line(format_args!("{missing} before them had been dropped unexported: they are in no file"))?;
    }
    Ok(())
}

/// Some acts are lost.
fn dropped(acts: u64, file: &ActsFile, follow: bool) -> Failure {
    let advice = if follow {
        "let this run all the time: what comes while it does not may be dropped"
    } else {
        "do this more often than 256 of them come, or let it go on with --follow"
    };
    let acts = counted(acts, "act");
    Failure::failed(format_args!("{acts} had been dropped before they were added: they are in no file"))
        .at_path(file.path())
        .advice(advice)
}

/// Says on standard error what is wrong, once.
fn complain(before: &mut String, trouble: &str) {
    if before != trouble {
        let _ = writeln!(io::stderr(), "holdfast: {trouble}");
    }
    trouble.clone_into(before);
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
            words::act(act.kind).to_owned(),
            act.hold.map_or_else(String::new, |HoldId(id)| id.to_string()),
            act.stream.map_or_else(|| "all".to_owned(), |stream| stream_name(streams, stream)),
            words::range(&act.range),
            clean(&act.owner),
            clean(&act.reason),
        ]);
    }
    table
}
