//! `holdfast gaps`: every loss that the ring still knows of, with its cause.

use crate::failure::{Failure, Kind, Result};
use crate::out::{Out, Side, Table, counted, grouped};
use crate::range::RangeArgs;
use crate::session::{self, RingArg, link, stream_name};
use crate::show::{self, GapShown};
use crate::times;
use holdfast_base::ByteSize;
use holdfast_link::Item;
use std::ops::ControlFlow;

/// List what was lost or purged: stream, ordinals, times, elements, bytes, cause
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\nExits with 3 when nothing was lost.\n\n\
    Examples:\n  holdfast gaps lab.hf\n  holdfast gaps lab.hf --stream eth0 --last 10m", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Only this stream (may be repeated)
    #[arg(long = "stream", value_name = "S")]
    streams: Vec<String>,
    #[command(flatten)]
    range: RangeArgs,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (path, mut reader) = args.ring.open()?;
    let streams = reader.streams().map_err(|error| link(&error))?;
    let selection = session::selection(&streams, &args.streams, &args.range)?;
    let mut table = Table::new(&[
        ("stream", Side::Left),
        ("ordinals", Side::Left),
        ("elements", Side::Right),
        ("bytes", Side::Right),
        ("from", Side::Left),
        ("for", Side::Right),
        ("cause", Side::Left),
    ]);
    let (mut found, mut damaged, mut said) = (0u64, Vec::new(), Ok(()));
    reader
        .gaps(&selection, &mut |item| {
            match item {
                Item::Gap { stream, ordinal, gap } => {
                    found += 1;
                    let name = stream_name(&streams, stream);
                    if out.is_json() {
                        said = out.object(&GapShown::new(&name, ordinal.0, &gap));
                    } else {
                        let unknown = || "unknown".to_owned();
                        table.row([
                            name,
                            format!("{}..{}", ordinal.0, ordinal.0.saturating_add(gap.ordinals)),
                            gap.elements.map_or_else(unknown, grouped),
                            gap.bytes.map_or_else(unknown, |bytes| ByteSize(bytes).to_string()),
                            times::to_the_milli(gap.first),
                            times::spoken(gap.last.since(gap.first)),
                            show::cause_in_words(gap.cause).to_owned(),
                        ]);
                    }
                }
                Item::Damaged { slot, sequence, place } => {
                    damaged.push(format!("slot {slot} (sequence {sequence}): {place}"));
                }
                _ => {}
            }
            if said.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(|error| link(&error))?;
    said?;
    if !out.is_json() {
        if found == 0 {
            out.line("no gaps: nothing that is still on the ring was lost")?;
        } else {
            out.table(&table)?;
        }
    }
    if let Some(first) = damaged.first() {
        return Err(Failure::failed(format_args!(
            "{} could not be looked at, the first is {first}",
            counted(damaged.len() as u64, "damaged place")
        ))
        .at_path(&path)
        .advice("`holdfast check` lists all"));
    }
    if found == 0 { Err(Failure::said(Kind::Nothing)) } else { Ok(()) }
}
