//! `holdfast streams`: what is recorded on a ring, and how much of it was ever lost.

use crate::failure::{Failure, Kind, Result};
use crate::out::{Out, Side, Table, grouped};
use crate::session::{RingArg, link};
use crate::show::{self, CountersShown};
use crate::times;
use holdfast_base::{ByteSize, Timestamp};
use serde::Serialize;

/// List the streams of a ring, with what was received and lost over its life
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  holdfast streams lab.hf")]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
}

#[derive(Serialize)]
struct Row<'a> {
    id: u32,
    name: &'a str,
    kind: &'static str,
    framing: &'a str,
    #[serde(serialize_with = "show::time")]
    created: Timestamp,
    preamble_version: u32,
    preamble_bytes: u32,
    #[serde(flatten)]
    counters: CountersShown,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (_, mut reader) = args.ring.open()?;
    let streams = reader.streams().map_err(|error| link(&error))?;
    let mut table = Table::new(&[
        ("stream", Side::Left),
        ("kind", Side::Left),
        ("framing", Side::Left),
        ("elements", Side::Right),
        ("bytes", Side::Right),
        ("lost", Side::Right),
        ("gaps", Side::Right),
        ("preamble", Side::Right),
        ("since", Side::Left),
    ]);
    for stream in &streams {
        let counters = &stream.counters;
        if out.is_json() {
            out.object(&Row {
                id: stream.id.0,
                name: &stream.name,
                kind: show::kind(stream.kind),
                framing: &stream.framing,
                created: stream.created,
                preamble_version: stream.preamble,
                preamble_bytes: stream.preamble_bytes,
                counters: counters.into(),
            })?;
            continue;
        }
        let lost = grouped(counters.lost) + if counters.unknown_gaps > 0 { " + unknown" } else { "" };
        table.row([
            stream.name.clone(),
            show::kind(stream.kind).to_owned(),
            stream.framing.clone(),
            grouped(counters.received),
            ByteSize(counters.received_bytes).to_string(),
            lost,
            grouped(counters.gaps),
            if stream.preamble > 0 {
                ByteSize(stream.preamble_bytes.into()).to_string()
            } else {
                "-".to_owned()
            },
            times::to_the_second(stream.created),
        ]);
    }
    if streams.is_empty() {
        if !out.is_json() {
            out.line("no streams: nothing was recorded on this ring yet")?;
        }
        return Err(Failure::said(Kind::Nothing));
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
