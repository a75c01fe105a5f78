//! `holdfast prove`: drive a ring at its guarantee, see whether it keeps it, and write that down.

use crate::args::RingArg;
use crate::interruption::server_interruption;
use crate::out::{Out, notices};
use crate::progress;
use holdfast_base::Rate;
use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_client::{session, times};
use holdfast_planning::prove::{Progress, ProofResult, ProofRun, Subject, Verdict, empty, prove};
use indicatif::ProgressBar;
use std::fs;
use std::path::{Path, PathBuf};
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
    // A proof outlives its terminal.
    let stop = server_interruption()?;
    let superblock = if subject.has_data { empty(&path)? } else { subject.superblock.clone() };
    let bar = progress::share();
    let run = ProofRun {
        path: &path,
        lasts: args.minutes,
        realtime: args.realtime,
        subject: &subject,
        superblock: &superblock,
        stop: &stop,
        notices: &notices(),
    };
    let went = prove(&run, &mut |progress| show(&bar, &progress));
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
        out.object(&ProofResult {
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

fn show(bar: &ProgressBar, progress: &Progress) {
    let (part, text) = match progress {
        Progress::Stage { name, done, total } => {
            let left = total.saturating_sub(*done);
            let left = times::spoken(Duration::from_secs(left.as_secs()));
            let part = done.as_secs_f64() / total.as_secs_f64().max(1e-3);
            (part, format!("{name}, {left} left, then it is read back"))
        }
        Progress::ReadBack(part) => (*part, "of what was sent so far is read back".to_owned()),
    };
    progress::show_share(bar, part, text);
}
