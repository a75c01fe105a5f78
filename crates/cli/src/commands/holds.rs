//! `holdfast holds`: what is held on a ring, why, by whom and until when.

use crate::failure::{Failure, Kind, Result};
use crate::out::{Out, Side, Table, clean};
use crate::session::{RingArg, link, stream_name};
use crate::{show, times};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_ring::{HoldStatus, StreamStatus};
use serde::Serialize;

/// List the holds of a ring
#[derive(clap::Args, Debug)]
#[command(after_help = "Exits with 3 when nothing is held.\n\nExample:\n  holdfast holds lab.hf")]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
}

#[derive(Serialize)]
struct Row<'a> {
    id: u64,
    #[serde(serialize_with = "show::time")]
    created: Timestamp,
    #[serde(serialize_with = "show::time")]
    until: Timestamp,
    owner: &'a str,
    reason: &'a str,
    streams: Vec<String>,
    #[serde(serialize_with = "show::time")]
    from: Timestamp,
    #[serde(serialize_with = "show::time")]
    to: Timestamp,
    event: bool,
    ordinals: Option<[u64; 2]>,
    slots: u32,
    bytes: u64,
    sequences: Vec<[u64; 2]>,
}

impl<'a> Row<'a> {
    fn new(hold: &'a HoldStatus, streams: &[StreamStatus], slot: ByteSize) -> Self {
        Self {
            id: hold.id.0,
            created: hold.created,
            until: hold.until,
            owner: &hold.owner,
            reason: &hold.reason,
            streams: hold.streams.iter().map(|id| stream_name(streams, *id)).collect(),
            from: hold.range.from,
            to: hold.range.to,
            event: hold.range.by_event,
            ordinals: hold.range.ordinals.map(|(from, to)| [from.0, to.0]),
            slots: hold.slots,
            bytes: u64::from(hold.slots) * slot.0,
            sequences: hold.sequences.iter().map(|(first, last)| [first.0, last.0]).collect(),
        }
    }

    fn range(&self) -> String {
        let time = |time: Timestamp, open: &str| match time {
            Timestamp::MIN | Timestamp::MAX => open.to_owned(),
            time => times::to_the_milli(time),
        };
        let mut parts = Vec::new();
        if self.from != Timestamp::MIN || self.to != Timestamp::MAX {
            let which = if self.event { " (event time)" } else { "" };
            parts.push(format!(
                "{} to {}{which}",
                time(self.from, "the beginning"),
                time(self.to, "the end")
            ));
        }
        if let Some([from, to]) = self.ordinals {
            parts.push(format!("ordinals {from}..{to}"));
        }
        if parts.is_empty() { "all".to_owned() } else { parts.join(", ") }
    }
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (_, mut reader) = args.ring.open()?;
    let holds = reader.holds().map_err(|error| link(&error))?;
    let streams = reader.streams().map_err(|error| link(&error))?;
    let slot = ByteSize(reader.superblock().geometry.slot_bytes);
    let mut table = Table::new(&[
        ("hold", Side::Right),
        ("slots", Side::Right),
        ("bytes", Side::Right),
        ("streams", Side::Left),
        ("range", Side::Left),
        ("until", Side::Left),
        ("owner", Side::Left),
        ("reason", Side::Left),
    ]);
    for hold in &holds {
        let row = Row::new(hold, &streams, slot);
        if out.is_json() {
            out.object(&row)?;
            continue;
        }
        let until = if hold.until == Timestamp::MAX {
            "released".to_owned()
        } else {
            times::to_the_second(hold.until)
        };
        table.row([
            row.id.to_string(),
            row.slots.to_string(),
            ByteSize(row.bytes).to_string(),
            if row.streams.is_empty() { "all".to_owned() } else { row.streams.join(", ") },
            row.range(),
            until,
            clean(row.owner),
            clean(row.reason),
        ]);
    }
    if holds.is_empty() {
        if !out.is_json() {
            out.line("nothing is held")?;
        }
        return Err(Failure::said(Kind::Nothing));
    }
    if out.is_json() { Ok(()) } else { out.table(&table) }
}
