//! `holdfast gaps`: every loss that the ring still knows of, with its cause.

use crate::args::RangeArgs;
use crate::args::RingArg;
use crate::out::Out;
use holdfast_base::ByteSize;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{StreamId, clean, counted, grouped};
use holdfast_client::json::{CutOffRun, Gap, InterfaceLoss};
use holdfast_client::losses;
use holdfast_client::session::{self, ring_failure, stream_name};
use holdfast_client::table::{Side, Table};
use holdfast_client::times;
use holdfast_client::words::{self};
use holdfast_protocol::wire::SourceStatus;
use holdfast_reader::{Item, Loss, LossMerger};
use std::ops::ControlFlow;

/// List lost and purged data: stream, ordinals, times, elements, bytes, cause
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    Exits with 3 if nothing was lost.\n\
    What an interface lost counts only if no range is given.\n\n\
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

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (path, mut reader) = args.ring.open()?;
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let selection = session::selection(&streams, &args.streams, &args.range.options())?;
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
    let mut show = |Loss { stream, ordinal, gap }: Loss| {
        found += 1;
        let name = stream_name(&streams, stream);
        if out.is_json() {
            return out.object(&Gap::new(&name, ordinal.0, &gap));
        }
        let unknown = || "unknown".to_owned();
        table.row([
            name,
            format!("{ordinal}..{}", ordinal.0.saturating_add(gap.ordinals)),
            gap.elements.map_or_else(unknown, grouped),
            gap.bytes.map_or_else(unknown, |bytes| ByteSize(bytes).to_string()),
            times::to_the_milli(gap.first),
            times::spoken(gap.last.since(gap.first)),
            words::cause_in_words(gap.cause).to_owned(),
        ]);
        Ok(())
    };
    let (mut merger, mut damaged, mut said) = (LossMerger::default(), Vec::new(), Ok(()));
    reader
        .gaps(&selection, &mut |item| {
            match item {
                Item::Gap { stream, ordinal, gap } => {
                    said = merger.push(Loss { stream, ordinal, gap }).map_or(Ok(()), &mut show);
                }
                Item::Damaged { slot, sequence, place } => {
                    damaged.push(format!("slot {slot} (sequence {sequence}): {place}"));
                }
                _ => {}
            }
            if said.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .map_err(|error| ring_failure(&error))?;
    said?;
    merger.finish().try_for_each(show)?;
    let status = reader.status().map_err(|error| ring_failure(&error))?;
    let wanted: Vec<StreamId> =
        streams.iter().map(|stream| stream.id).filter(|id| selection.wants(*id)).collect();
    let interface = losses::without_gap(&status, &wanted);
    let end = ListEnd {
        cut_off: reader.was_cut_off(),
        interface,
        selects: !selection.is_all(),
        has_range: !args.range.options().is_all(),
    };
    end.tell(found, &table, out)?;
    if let Some(first) = damaged.first() {
        return Err(Failure::failed(format_args!(
            "{} could not be looked at, the first is {first}",
            counted(damaged.len() as u64, "damaged place")
        ))
        .at_path(&path)
        .advice("`holdfast check` lists all"));
    }
    if end.lost(found) { Ok(()) } else { Err(Failure::said(Kind::Nothing)) }
}

/// Lines that follow the list of gaps.
struct ListEnd<'a> {
    /// The last run ended in a crash: what that lost becomes a gap when a recorder starts next.
    cut_off: bool,
    /// Sources whose interface lost frames in this run, which are in no gap.
    interface: Vec<&'a SourceStatus>,
    /// Only a part of the ring was asked for.
    selects: bool,
    /// A range was given. When in the run an interface lost its frames is not known.
    has_range: bool,
}

impl ListEnd<'_> {
    /// Returns true if something was lost in what was asked for, with so many gaps.
    fn lost(&self, found: u64) -> bool {
        let of_interface = self.interface.iter().any(|source| source.interface_drops > 0);
        found > 0 || (of_interface && !self.has_range)
    }

    fn tell(&self, found: u64, table: &Table, out: &mut Out) -> Result<()> {
        if out.is_json() {
            for source in self.interface.iter().filter(|_| !self.has_range) {
                out.object(&InterfaceLoss {
                    stream: &source.name,
                    interface_drops: source.interface_drops,
                    interface_perhaps_lost: source.perhaps_lost,
                })?;
            }
            return if self.cut_off { out.object(&CutOffRun { cut_off: true }) } else { Ok(()) };
        }
        if found > 0 {
            out.table(table)?;
        }
        match (found, self.cut_off) {
            (0, true) => out.line(format_args!("no gaps so far, but {CUT_OFF}"))?,
            (0, false) if !self.interface.is_empty() && !self.has_range => out.line("no gaps")?,
            (0, false) if self.selects => out.line("no gaps in the selection")?,
            (0, false) => out.line("no gaps: nothing that is still on the ring was lost")?,
            (_, true) => out.line(CUT_OFF)?,
            (_, false) => {}
        }
        for source in &self.interface {
            let mut lost = Vec::new();
            for (frames, how) in [(source.interface_drops, "lost"), (source.perhaps_lost, "perhaps lost")] {
                if frames > 0 {
                    lost.push(format!("{} {how}", counted(frames, "frame")));
                }
            }
            out.line(format_args!(
                "{}: {} by the interface since the recorder started, in no gap{}",
                clean(&source.name),
                lost.join(", "),
                if self.has_range { "; whether in this range is not known" } else { "" }
            ))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sim::samples;

    // Promise 2: a loss of an interface, whose time nobody knows, is none of every range until the recorder ends.
    #[test]
    fn what_an_interface_lost_counts_where_no_range_is_given() {
        let status = samples::status();
        let wanted: Vec<StreamId> = (0..16).map(StreamId).collect();
        let interface = losses::without_gap(&status, &wanted);
        assert!(interface.iter().any(|source| source.interface_drops > 0));
        let mut end = ListEnd { cut_off: false, interface, selects: false, has_range: false };
        assert!(end.lost(0) && end.lost(1));
        (end.selects, end.has_range) = (true, true);
        assert!(!end.lost(0) && end.lost(1));
    }
}
