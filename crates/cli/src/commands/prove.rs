//! `holdfast prove`: drive a ring at its guarantee, see whether it keeps it, and write that down. What is measured and
//! concluded is in `prove`; here is what a ring must be for it, and what becomes of it.

use crate::args::RingArg;
use crate::out::Out;
use crate::progress;
use crate::prove::drive::{Driven, Job, drive};
use crate::prove::pattern::Pattern;
use crate::prove::read_back::read_back;
use crate::prove::report::{Proof, RingShown};
use crate::prove::ring::{Subject, device, empty, machine};
use crate::prove::stages::{Stage, is_read_back_now, stages};
use crate::prove::tally::Sent;
use crate::prove::verdict::{Measured, Verdict, judge};
use holdfast_base::failure::{Failure, Kind, Result, reason};
use holdfast_base::{ByteSize, Rate};
use holdfast_client::random;
use holdfast_client::session::{self, link};
use holdfast_client::times;
use holdfast_format::Superblock;
use indicatif::ProgressBar;
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The longest proof, in minutes: a week.
const LONGEST: f64 = 7.0 * 24.0 * 60.0;

/// Drive a ring at its guarantee, with readers and bursts, and write a report to sign
#[derive(clap::Args, Debug)]
#[command(
    after_help = "The ring is filled with data of the proof and left empty, with the same name, slots and terms, and\n\
    a new recovery string. A ring with data is refused without --destroy.\n\n\
    The first stage has no readers. Then readers read all they can get, in order, at random places,\n\
    and a held range repeatedly. Bursts of 1.5, 2 and 4 times the rate follow, longer than guaranteed.\n\
    The medium is read back and compared with the sent data, which takes about as long again, beyond\n\
    --minutes.\n\n\
    Exits with 1 unless every promise was kept. The figures, for programs, are beside the report.\n\n\
    Examples:\n  holdfast prove /dev/sdb --minutes 60\n  holdfast prove lab.hf --minutes 5 -o lab.proof.txt\n  \
    holdfast prove try.hf --rate 100MiB/s"
)]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Minutes to drive the ring
    #[arg(long, value_name = "N", default_value = "10", value_parser = minutes)]
    minutes: Duration,
    /// Output file of the report (default: NAME.proof.txt)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing report and figures
    #[arg(long)]
    force: bool,
    /// Destroy the data on the ring
    #[arg(long)]
    destroy: bool,
    /// Payload rate for a ring without a guarantee: it is measured, not proved
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,
    #[arg(long, help = "Record with --realtime (needs CAP_SYS_NICE)")]
    realtime: bool,
}

fn minutes(text: &str) -> Result<Duration, String> {
    let number = text.parse::<f64>().ok().filter(|minutes| (0.05..=LONGEST).contains(minutes));
    let number =
        number.ok_or_else(|| format!("`{text}` is not a number of minutes: give 0.05 to {LONGEST}"))?;
    Ok(Duration::from_secs_f64(number * 60.0))
}

/// What is printed with --json: where it is kept, and the proof itself.
#[derive(Serialize)]
struct Shown<'a> {
    report: &'a Path,
    figures: &'a Path,
    recovery: &'a str,
    #[serde(flatten)]
    proof: &'a Proof,
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    if args.rate == Some(Rate(0)) {
        return Err(Failure::usage("a rate of 0 drives nothing")
            .at("--rate")
            .advice("give the payload, such as 100MiB/s"));
    }
    let path = args.ring.path()?;
    let files = Files::new(args.output.as_deref(), &path, args.force)?;
    let subject = Subject::open(&path, args.destroy, args.rate)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The first one ends the proof in order, a second one at once.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|error| Failure::failed(format_args!("cannot catch signals: {}", reason(&error))))?;
    }
    let superblock = if subject.has_data { empty(&path)? } else { subject.superblock.clone() };
    let bar = progress::share();
    let went = prove(&path, args, &subject, &superblock, &stop, &bar);
    bar.finish_and_clear();
    // Whatever came of it, nothing of it stays.
    let left = empty(&path);
    let mut proof = match (went, &left) {
        (Ok(proof), _) => proof,
        (Err(failure), Ok(left)) => {
            let recovery = left.to_recovery_string();
            return Err(failure
                .advice(format_args!("the ring is empty again; its recovery string is now {recovery}")));
        }
        (Err(failure), Err(_)) => {
            return Err(
                failure.advice("the ring has data of the proof on it: make it anew with `holdfast format`")
            );
        }
    };
    let left = left?;
    proof.ended = session::now();
    let json = proof.json().map_err(|error| Failure::failed(format_args!("the figures: {error}")))?;
    let kept = files.figures.file_name().unwrap_or_default().to_string_lossy();
    let text = proof.text(&kept, &json);
    for (file, content) in [(&files.figures, &json), (&files.report, &text)] {
        fs::write(file, content).map_err(|error| Failure::io("cannot write the report", file, &error))?;
    }
    let recovery = left.to_recovery_string();
    if out.is_json() {
        out.object(&Shown {
            report: &files.report,
            figures: &files.figures,
            recovery: &recovery,
            proof: &proof,
        })?;
    } else {
        out.line(text.trim_end())?;
        out.line(format_args!("\nreport            {}", files.report.display()))?;
        out.line("The ring is empty again. Its recovery string is new (keep it somewhere else; it holds the ring's key):")?;
        out.line(format_args!("  {recovery}"))?;
    }
    match proof.verdict {
        Verdict::Pass | Verdict::Measured => Ok(()),
        Verdict::Fail | Verdict::Void => Err(Failure::said(Kind::Failed)),
    }
}

/// Where the results go.
struct Files {
    report: PathBuf,
    figures: PathBuf,
}

impl Files {
    /// As asked, or named after the ring. What cannot be written is told before an hour of proving, not after.
    fn new(asked: Option<&Path>, ring: &Path, force: bool) -> Result<Self> {
        let stem = ring.file_stem().unwrap_or_default().to_string_lossy();
        let report = asked.map_or_else(|| PathBuf::from(format!("{stem}.proof.txt")), Path::to_path_buf);
        let figures = report.with_extension("json");
        let folder = match report.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let canonical = |path: &Path| fs::canonicalize(path).ok();
        let itself = |file: &Path| canonical(file).is_some() && canonical(file) == canonical(ring);
        if report == figures || itself(&report) || itself(&figures) {
            return Err(Failure::usage(
                "the report needs a file of its own, and its figures another (.json)",
            )
            .at_path(&report)
            .advice("give such as lab.proof.txt"));
        }
        let writable = rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).map_err(std::io::Error::from);
        writable.map_err(|error| Failure::io("cannot write the report there", folder, &error))?;
        if report.is_dir() {
            return Err(Failure::usage("this is a directory").at_path(&report).advice("name a file in it"));
        }
        let there = [&report, &figures].into_iter().find(|file| file.symlink_metadata().is_ok());
        if let Some(there) = there.filter(|_| !force) {
            return Err(Failure::failed("there is a file of that name, from an earlier run perhaps")
                .at_path(there)
                .advice("choose another name with -o, or say --force to replace it"));
        }
        Ok(Self { report, figures })
    }
}

/// Goes through the stages.
fn prove(
    path: &Path,
    args: &Args,
    subject: &Subject,
    superblock: &Superblock,
    stop: &AtomicBool,
    bar: &ProgressBar,
) -> Result<Proof> {
    let seed = u64::from_le_bytes(random::bytes()?);
    let slot = ByteSize(superblock.geometry.slot_bytes);
    let promised = subject.promised.as_ref().map(|(promised, _)| promised);
    let job = Job {
        ring: path,
        pattern: Pattern::new(seed),
        element: subject.element,
        rate: subject.rate,
        promised,
        slot,
        realtime: args.realtime,
        stop,
    };
    let began = session::now();
    let all = stages(args.minutes, subject.rate, promised);
    let mut account = Account::default();
    for (number, stage) in all.iter().enumerate() {
        let before: Duration = all[..number].iter().map(|stage| stage.lasts).sum();
        let driven = drive(&job, stage, account.next, &mut |took| {
            show(bar, stage, before + took.min(stage.lasts), args.minutes);
        })?;
        account.add(driven);
        account.look_back(&job, &all[number + 1..], bar)?;
    }
    let (format, version, holdfast) = Proof::head();
    let judged = judge(&account.measured, subject.rate, promised);
    let sum =
        |of: fn(&crate::prove::verdict::StageResult) -> u64| account.measured.stages.iter().map(of).sum();
    Ok(Proof {
        format,
        version,
        holdfast,
        verdict: judged.verdict,
        reasons: judged.reasons,
        notes: judged.notes,
        began,
        ended: began,
        ring: RingShown {
            path: fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).display().to_string(),
            name: superblock.name.clone(),
            lane_bytes: superblock.geometry.lane_bytes,
            slot_bytes: slot.0,
            slots: superblock.geometry.slots,
        },
        device: device(path),
        machine: machine(args.realtime),
        terms: subject.promised.as_ref().map(|(_, terms)| terms.clone()),
        seed,
        element_bytes: subject.element,
        rate_bytes_per_second: subject.rate.0,
        sent_elements: sum(|stage| stage.sent_elements),
        sent_bytes: sum(|stage| stage.sent_bytes),
        lost_elements: sum(|stage| stage.lost_elements),
        gaps: sum(|stage| stage.gaps),
        measured: account.measured,
    })
}

fn show(bar: &ProgressBar, stage: &Stage, done: Duration, total: Duration) {
    let left = total.saturating_sub(done);
    let left = times::spoken(Duration::from_secs(left.as_secs()));
    let part = done.as_secs_f64() / total.as_secs_f64().max(1e-3);
    progress::show_share(bar, part, format!("{}, {left} left, then it is read back", stage.kind.name()));
}

/// What has come of it so far.
#[derive(Default)]
struct Account {
    measured: Measured,
    /// The element that comes next.
    next: u64,
    /// The first that was not read back.
    from: u64,
    held: Vec<(u64, u64)>,
}

impl Account {
    fn add(&mut self, driven: Driven) {
        self.next = driven.next;
        self.held.extend(driven.held);
        self.measured.wrong += driven.wrong;
        self.measured.faults.extend(driven.faults);
        self.measured.stages.push(driven.result);
    }

    /// Reads back what was not, if what comes would overwrite it or nothing comes.
    fn look_back(&mut self, job: &Job<'_>, coming: &[Stage], bar: &ProgressBar) -> Result<()> {
        if !coming.is_empty() {
            let status = session::open(job.ring)?.status().map_err(|error| link(&error))?;
            if !is_read_back_now(status.ring.slots.free.into(), job.slot, coming) {
                return Ok(());
            }
        }
        let sent = Sent { pattern: job.pattern, element: job.element, from: self.from, to: self.next };
        let tally = read_back(job.ring, sent, &self.held, job.stop, &mut |part| {
            progress::show_share(bar, part, "of what was sent so far is read back".to_owned());
        })?;
        let back = &mut self.measured.read_back;
        back.elements += tally.elements;
        back.bytes += tally.bytes;
        back.lost_elements += tally.lost;
        back.gaps += tally.gaps;
        back.expired_elements +=
            (sent.to - sent.from).saturating_sub(tally.elements + tally.lost + tally.wrong);
        self.measured.wrong += tally.wrong;
        self.measured.faults.extend(tally.faults);
        self.from = self.next;
        Ok(())
    }
}
