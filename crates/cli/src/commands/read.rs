//! `holdfast read`: gets a range back, to a file or a pipe, in the form that other programs want.

use crate::export::output::{Output, Written};
use crate::export::{Export, Format};
use crate::failure::{Failure, Kind, Result, reason};
use crate::out::{Out, counted};
use crate::range::RangeArgs;
use crate::session::{self, RingArg, link};
use crate::{progress, show, times};
use holdfast_base::{ByteSize, Timestamp};
use holdfast_link::{Item, Plan, ReadReport, RingReader};
use holdfast_ring::StreamStatus;
use indicatif::ProgressBar;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Damaged places and partial elements that are told one by one; more are counted.
const MOST_TOLD: usize = 20;

/// Read a range back: payloads, pcapng, MCAP or JSON lines, to a file or a pipe
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    Without -o, or with `-o -`, it goes to standard output. A file gets its name when it is whole.\n\
    Standard error is told what was read, what was lost inside the range, and the BLAKE3 of what was\n\
    written. Exits with 1 when something in the range is damaged (what is sound is written), with 3\n\
    when nothing is there.\n\n\
    Examples:\n  holdfast read lab.hf --stream eth0 --last 30s --format pcapng -o - | tcpdump -r -\n  \
    holdfast read lab.hf --stream log --from -5m --to -2m -o log.txt\n  \
    holdfast read lab.hf --stream log --ordinals 100..200 --format jsonl", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// The stream (mcap and jsonl: may be repeated, or left out for all)
    #[arg(long = "stream", value_name = "S")]
    streams: Vec<String>,
    #[command(flatten)]
    range: RangeArgs,
    /// Form of the export (pcapng for a stream of packets, raw for another one)
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Where to: a file, or - for standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace a file that is there already
    #[arg(long)]
    force: bool,
}

impl Args {
    /// Whether the export goes where messages would go.
    pub(crate) fn to_stdout(&self) -> bool {
        self.output.as_deref().is_none_or(|path| path == Path::new("-"))
    }
}

#[derive(Serialize)]
struct Shown<'a> {
    output: Option<&'a Path>,
    format: &'static str,
    bytes: u64,
    blake3: String,
    elements: u64,
    payload_bytes: u64,
    gaps: u64,
    partial: u64,
    damaged: u64,
    expired_slots: u64,
    #[serde(serialize_with = "show::time_if")]
    expired_before: Option<Timestamp>,
    expired_ordinals: Vec<(u64, u64)>,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let (path, mut reader) = args.ring.open()?;
    let all = reader.streams().map_err(|error| link(&error))?;
    // The only stream need not be named.
    let ids = match all.as_slice() {
        [one] if args.streams.is_empty() => vec![one.id],
        _ => session::streams_named(&all, &args.streams)?,
    };
    let chosen: Vec<StreamStatus> =
        all.iter().filter(|stream| ids.is_empty() || ids.contains(&stream.id)).cloned().collect();
    if chosen.is_empty() {
        return Err(Failure::nothing("nothing was recorded on this ring yet").at_path(&path));
    }
    let selection = session::selection_of(ids, &args.range)?;
    let format = args.format.unwrap_or_else(|| Format::fitting(&chosen));
    if chosen.len() > 1 && args.streams.is_empty() && matches!(format, Format::Raw | Format::Pcapng) {
        let names: Vec<&str> = chosen.iter().map(|stream| stream.name.as_str()).collect();
        return Err(Failure::usage(format_args!("--format {} takes one stream", format.name()))
            .advice(format_args!("give --stream: the ring has {}", names.join(", "))));
    }
    let output = match &args.output {
        Some(file) if !args.to_stdout() => Output::file(file, args.force)?,
        _ => Output::stdout(format.is_binary())?,
    };
    let export = Export::new(format, &chosen, output)?;
    let plan = reader.plan(&selection).map_err(|error| link(&error))?;
    let mut sink = Sink::new(export, &plan)?;
    let report = sink.fill(&mut reader, &plan)?;
    let Sink { export, partial, damaged, notes, .. } = sink;
    let told_too =
        if format == Format::Jsonl { notes + report.gaps + report.partial + report.damaged } else { 0 };
    // What has nothing in it gets no name, and what was to be written is forgotten.
    if report.elements + told_too == 0 {
        return Err(nothing(&path, &chosen, &report, &partial, &damaged, reader));
    }
    let written = export.finish()?.finish()?;
    let shown = Shown {
        output: args.output.as_deref().filter(|_| !args.to_stdout()),
        format: format.name(),
        bytes: written.bytes,
        blake3: written.blake3.clone(),
        elements: report.elements,
        payload_bytes: report.bytes,
        gaps: report.gaps,
        partial: report.partial,
        damaged: report.damaged,
        expired_slots: report.expired,
        expired_before: plan.expired_before,
        expired_ordinals: plan.expired_ordinals.iter().map(|(_, from, end)| (from.0, end.0)).collect(),
    };
    if out.is_json() {
        if args.to_stdout() { Out::stderr(true).last(&shown)? } else { out.object(&shown)? }
    } else {
        told(&report, &written, &plan, &partial, &damaged)?;
    }
    if report.damaged > 0 { Err(Failure::said(Kind::Failed)) } else { Ok(()) }
}

/// Takes what the reader gives.
struct Sink {
    export: Export,
    progress: ProgressBar,
    stop: Arc<AtomicBool>,
    failure: Option<Failure>,
    notes: u64,
    partial: Vec<String>,
    damaged: Vec<String>,
}

impl Sink {
    fn new(export: Export, plan: &Plan) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // The first one ends the export tidily, a second one at once.
            signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
                .map_err(|error| Failure::failed(format_args!("cannot catch signals: {}", reason(&error))))?;
        }
        let progress = progress::bar(plan.bytes, true);
        Ok(Self { export, progress, stop, failure: None, notes: 0, partial: Vec::new(), damaged: Vec::new() })
    }

    fn fill(&mut self, reader: &mut RingReader, plan: &Plan) -> Result<ReadReport> {
        let report = reader.read(plan, &mut |item| self.take(&item));
        self.progress.finish_and_clear();
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        report.map_err(|error| link(&error))
    }

    fn take(&mut self, item: &Item<'_>) -> ControlFlow<()> {
        match item {
            Item::Progress { bytes } => self.progress.set_position(*bytes),
            Item::Note { .. } => self.notes += 1,
            Item::Partial { ordinal, why, .. } if self.partial.len() < MOST_TOLD => {
                self.partial.push(format!("element {ordinal}: {why}"));
            }
            Item::Damaged { slot, sequence, place } if self.damaged.len() < MOST_TOLD => {
                self.damaged.push(format!("slot {slot} (sequence {sequence}): {place}"));
            }
            _ => {}
        }
        if self.stop.load(Ordering::Relaxed) {
            self.failure = Some(Failure::failed("interrupted: nothing was written").advice("run it again"));
        } else if let Err(failure) = self.export.item(item) {
            self.failure = Some(failure);
        }
        if self.failure.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Why there is nothing, as far as it can be told.
fn nothing(
    path: &Path,
    chosen: &[StreamStatus],
    report: &ReadReport,
    partial: &[String],
    damaged: &[String],
    mut reader: RingReader,
) -> Failure {
    let failure = Failure::nothing("nothing in that range is on the ring").at_path(path);
    if let Some(known) = seen(path, report, partial, damaged) {
        return known;
    }
    let status = reader.status().ok();
    match status.as_ref().and_then(|status| status.ring.oldest.zip(status.ring.newest)) {
        Some((oldest, newest)) => {
            let next = chosen
                .iter()
                .map(|stream| format!("{} is at ordinal {}", stream.name, stream.counters.next_ordinal));
            failure.advice(format_args!(
                "it reaches from {} to {}; {}",
                times::rfc3339(oldest),
                times::rfc3339(newest),
                next.collect::<Vec<_>>().join(", ")
            ))
        }
        None => failure.advice("nothing was recorded yet"),
    }
}

/// What the read itself came across instead of elements.
fn seen(path: &Path, report: &ReadReport, partial: &[String], damaged: &[String]) -> Option<Failure> {
    if let Some(first) = damaged.first() {
        let are = if report.damaged == 1 { "is" } else { "are" };
        let places = counted(report.damaged, "place");
        let what = format!("{places} in that range {are} damaged, the first is {first}");
        return Some(Failure::failed(what).at_path(path).advice("`holdfast check` lists all"));
    }
    if report.expired > 0 {
        let what = format!(
            "all there was of that range expired while it was being read, {}",
            counted(report.expired, "slot")
        );
        return Some(Failure::nothing(what).at_path(path).advice("hold the range first, then read it"));
    }
    let failure = Failure::nothing("nothing in that range is on the ring").at_path(path);
    if let Some(first) = partial.first() {
        let left = format!("of {} a part is left, the first is {first}", counted(report.partial, "element"));
        return Some(failure.advice(left));
    }
    if report.gaps > 0 {
        let lost =
            format!("what arrived then is gone, in {}: see `holdfast gaps`", counted(report.gaps, "gap"));
        return Some(failure.advice(lost));
    }
    None
}

/// The report for people, on standard error.
fn told(
    report: &ReadReport,
    written: &Written,
    plan: &Plan,
    partial: &[String],
    damaged: &[String],
) -> Result<()> {
    let mut err = Out::stderr(false);
    let elements = counted(report.elements, "element");
    err.line(format_args!("{elements}, {} of payload", ByteSize(report.bytes)))?;
    if let Some(first) = plan.begins {
        err.line(format_args!("the ring begins at {}", times::rfc3339(first)))?;
    }
    if let Some(oldest) = plan.expired_before {
        err.line(format_args!("what was before {} had expired already", times::rfc3339(oldest)))?;
    }
    let first = plan.selection.range.ordinals.map_or_else(Default::default, |(first, _)| first);
    for (_, from, end) in &plan.expired_ordinals {
        err.line(format_args!("{}", show::expired_ordinals(first, *from, *end)))?;
    }
    if report.gaps > 0 {
        err.line(format_args!("{} inside the range: see `holdfast gaps`", counted(report.gaps, "gap")))?;
    }
    if report.expired > 0 {
        err.line(format_args!(
            "{} expired during the read: hold the range first to keep it",
            counted(report.expired, "slot")
        ))?;
    }
    for (what, all, lines) in
        [("partial element", report.partial, partial), ("damaged place", report.damaged, damaged)]
    {
        if all > 0 {
            err.line(format_args!("{}, left out:", counted(all, what)))?;
            for line in lines {
                err.line(format_args!("  {line}"))?;
            }
            if all > lines.len() as u64 {
                err.line(format_args!("  and {} more", all - lines.len() as u64))?;
            }
        }
    }
    err.line(format_args!("wrote {}, BLAKE3 {}", counted(written.bytes, "byte"), written.blake3))?;
    err.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_expired_under_the_reader_is_not_called_absent() {
        let path = Path::new("r.hf");
        let report = ReadReport { expired: 7, ..ReadReport::default() };
        let failure = seen(path, &report, &[], &[]).unwrap();
        let text = failure.to_string();
        assert!(
            text.contains("expired while it was being read, 7 slots, r.hf: hold the range first"),
            "{text}"
        );
        assert_eq!(failure.number(), 3);
        assert_eq!(seen(path, &ReadReport::default(), &[], &[]), None);
    }
}
