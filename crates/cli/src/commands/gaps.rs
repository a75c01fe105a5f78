//! `holdfast gaps`: every loss that the ring still knows of, with its cause.

use crate::failure::{Failure, Kind, Result};
use crate::out::{Out, Side, Table, counted, grouped};
use crate::range::RangeArgs;
use crate::session::{self, RingArg, link, stream_name};
use crate::show::{self, GapShown};
use crate::times;
use holdfast_base::{ByteSize, StreamId};
use holdfast_format::Gap;
use holdfast_link::Item;
use serde::Serialize;
use std::collections::BTreeMap;
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

const CUT_OFF: &str =
    "the last run was cut off: what that lost, if anything, is told when a recorder starts next";

/// The same to programs, behind the gaps.
#[derive(Serialize)]
struct CutOff {
    cut_off: bool,
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
    let mut found = 0u64;
    let mut show = |stream: StreamId, ordinal: u64, gap: &Gap| {
        found += 1;
        let name = stream_name(&streams, stream);
        if out.is_json() {
            return out.object(&GapShown::new(&name, ordinal, gap));
        }
        let unknown = || "unknown".to_owned();
        table.row([
            name,
            format!("{ordinal}..{}", ordinal.saturating_add(gap.ordinals)),
            gap.elements.map_or_else(unknown, grouped),
            gap.bytes.map_or_else(unknown, |bytes| ByteSize(bytes).to_string()),
            times::to_the_milli(gap.first),
            times::spoken(gap.last.since(gap.first)),
            show::cause_in_words(gap.cause).to_owned(),
        ]);
        Ok(())
    };
    let (mut open, mut damaged, mut said) = (BTreeMap::new(), Vec::new(), Ok(()));
    reader
        .gaps(&selection, &mut |item| {
            match item {
                Item::Gap { stream, ordinal, gap } => {
                    let before = open.insert(stream, (ordinal.0, gap));
                    if let Some((start, earlier)) = before {
                        match joined(start, &earlier, ordinal.0, &gap) {
                            Some(both) => drop(open.insert(stream, (start, both))),
                            None => said = show(stream, start, &earlier),
                        }
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
    for (stream, (start, gap)) in &open {
        show(*stream, *start, gap)?;
    }
    tell(found, &table, reader.was_cut_off(), out)?;
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

/// What was found, and that there may be more to come: what a crash lost becomes a gap when a recorder starts next.
fn tell(found: u64, table: &Table, cut_off: bool, out: &mut Out) -> Result<()> {
    if out.is_json() {
        return if cut_off { out.object(&CutOff { cut_off }) } else { Ok(()) };
    }
    if found > 0 {
        out.table(table)?;
    }
    match (found, cut_off) {
        (0, false) => out.line("no gaps: nothing that is still on the ring was lost"),
        (0, true) => out.line(format_args!("no gaps so far, but {CUT_OFF}")),
        (_, true) => out.line(CUT_OFF),
        (_, false) => Ok(()),
    }
}

/// One loss that was written down in pieces (chunk by chunk, or slot by slot), as one: of two gaps of a stream the second
/// begins where the first ends, for the same reason.
fn joined(start: u64, earlier: &Gap, next: u64, later: &Gap) -> Option<Gap> {
    let one = start.checked_add(earlier.ordinals) == Some(next)
        && (earlier.cause, earlier.note) == (later.cause, later.note)
        && earlier.elements.is_some() == later.elements.is_some()
        && earlier.bytes.is_some() == later.bytes.is_some();
    let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
    one.then(|| Gap {
        ordinals: earlier.ordinals.saturating_add(later.ordinals),
        elements: sum(earlier.elements, later.elements),
        bytes: sum(earlier.bytes, later.bytes),
        first: earlier.first.min(later.first),
        last: earlier.last.max(later.last),
        ..*earlier
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::Timestamp;
    use holdfast_format::Cause;

    fn gap(ordinals: u64, elements: Option<u64>, first: i64) -> Gap {
        let (first, last) = (Timestamp(first), Timestamp(first + 5));
        Gap { ordinals, elements, bytes: Some(10), first, last, cause: Cause::Purged, note: 0 }
    }

    #[test]
    fn only_what_adjoins_for_the_same_reason_is_one_loss() {
        let (one, two) = (gap(4, Some(4), 100), gap(3, Some(2), 110));
        let both = joined(20, &one, 24, &two).unwrap();
        assert_eq!(
            both,
            Gap { ordinals: 7, elements: Some(6), bytes: Some(20), last: Timestamp(115), ..one }
        );
        assert_eq!(joined(20, &one, 25, &two), None);
        assert_eq!(joined(20, &one, 24, &gap(3, None, 110)), None);
        assert_eq!(joined(20, &one, 24, &Gap { cause: Cause::NoBuffer, ..two }), None);
        assert_eq!(joined(20, &one, 24, &Gap { note: 1, ..two }), None);
    }
}
