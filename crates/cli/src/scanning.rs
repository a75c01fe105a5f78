//! Scans as commands run them: troubles on standard error, the report, and the end of the command.

use crate::args::ScanArgs;
use crate::item_name;
use crate::out::{Out, say, say_of};
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{ByteSize, counted};
use holdfast_client::json::{ScanReport, ScannedItem};
use holdfast_client::session;
use holdfast_scan::{Bottleneck, ItemId, Module, Report, SiloReport, Sources, scan};
use std::ops::ControlFlow;

/// Troubles that are told one by one.
const MOST_TOLD: u64 = 100;

/// Runs a module over the sources. Results go to `take`, whose failure ends the scan.
pub(crate) fn run<M: Module>(
    module: &M,
    sources: &Sources,
    args: &ScanArgs,
    take: &mut (dyn FnMut(M::Output) -> Result<()> + Send),
) -> Result<Report> {
    session::give_way_to_recorders();
    session::prefer_oom_kill();
    let mut failure = None;
    let mut told = 0;
    let report = scan(
        module,
        sources,
        args.options()?,
        &mut |outputs| {
            for output in outputs {
                if let Err(cause) = take(output) {
                    failure = Some(cause);
                    return ControlFlow::Break(());
                }
            }
            ControlFlow::Continue(())
        },
        &mut |item, reason| {
            told += 1;
            if told <= MOST_TOLD {
                say_of(&item_name::shown(&item.id()), reason);
            }
        },
    )?;
    if report.troubles > MOST_TOLD {
        say(&format!("{} more could not be scanned", report.troubles - MOST_TOLD));
    }
    failure.map_or(Ok(report), Err)
}

/// Prints the report where it is wanted; the command's end: failed if some items could not be scanned.
pub(crate) fn end(report: &Report, args: &ScanArgs, out: &mut Out) -> Result<()> {
    out.flush()?;
    if args.explain {
        explain(report, out.is_json())?;
    }
    if report.troubles > 0 { Err(Failure::said(Kind::Failed)) } else { Ok(()) }
}

fn explain(report: &Report, json: bool) -> Result<()> {
    let mut err = Out::stderr(json);
    if json {
        return err.last(&ScanReport { explain: report, bottleneck: report.bottleneck() });
    }
    let share = |seconds: f64, threads: usize| 100.0 * seconds / (report.seconds * threads as f64).max(1e-9);
    for SiloReport { name, items, bytes, buffers, reading_seconds, full_seconds, .. } in &report.silos {
        let rate = ByteSize((*bytes as f64 / report.seconds.max(1e-9)) as u64);
        let waited = 100.0 * full_seconds / (reading_seconds + full_seconds).max(1e-9);
        err.line(format_args!(
            "{name}: {}, {}, {rate}/s; readers {:.0} % reading, {waited:.0} % waiting for the module \
             ({buffers} buffers)",
            counted(*items, "item"),
            ByteSize(*bytes),
            100.0 - waited,
        ))?;
    }
    err.line(format_args!(
        "{}: {:.0} % waiting for data, {:.0} % in the module, {:.0} % in the output",
        counted(report.workers as u64, "worker thread"),
        share(report.idle_seconds, report.workers),
        share(report.module_seconds, report.workers),
        share(report.output_seconds, report.workers),
    ))?;
    if report.passed_over > 0 {
        err.line(format_args!("{} passed over: no regular files", counted(report.passed_over, "entry")))?;
    }
    let verdict = match report.bottleneck() {
        Bottleneck::Disk => "disk-bound: the module waited for data",
        Bottleneck::Cores => "core-bound: data waited for the module",
        Bottleneck::Output => "output-bound: the module waited for the output",
    };
    err.line(format_args!("{:.3} s, {verdict}", report.seconds))?;
    err.flush()
}

/// Name of an item, for programs.
pub(crate) fn item(item: &ItemId) -> ScannedItem<'_> {
    ScannedItem {
        source: &item.container.source,
        source_bytes: item_name::source_bytes(&item.container),
        stream: item.container.stream.as_deref(),
        ordinal: item.ordinal,
        arrival_ns: item.arrival_ns,
    }
}
