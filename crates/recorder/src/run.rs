//! The run: threads, the capture loop, the end.

use crate::args::{self, Settings, Wanted};
use crate::capture::Capture;
use crate::desk::{Bell, Counter, Desk, Facts, Report, Setup, Watch, passage};
use crate::signals;
use crate::start::{Cores, Ready, StartError, lock_memory, start};
use crate::summary::{StreamSummary, Summary, gained};
use holdfast_base::Clock as _;
use holdfast_format::Cause;
use holdfast_ingest::{Parker, StopFlag, spawn};
use holdfast_media::Disk;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// How long a run that was told to end waits for a ring that takes nothing.
const STUCK: Duration = Duration::from_secs(10);

/// How long the capture thread sleeps at most: the ring's clock ticks with it.
const SLEEP: Duration = Duration::from_millis(20);

/// How often the wall clock is compared.
const CLOCK_LOOK: Duration = Duration::from_secs(1);

/// The program: arguments in, exit code out.
pub fn main() -> ExitCode {
    speak_plainly_of_panics();
    match args::parse(std::env::args_os().skip(1)) {
        Ok(Wanted::Help) => said(args::HELP),
        Ok(Wanted::Version) => said(concat!("holdfast-recorder ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Wanted::Record(settings)) => record(&settings).unwrap_or_else(|error| {
            complain(&error.to_string());
            ExitCode::from(error.exit_code())
        }),
        Err(wrong) => {
            complain(&wrong.to_string());
            ExitCode::from(2)
        }
    }
}

fn said(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "error: {text}");
}

/// A panic of a source ends that source, which tells of it itself; any other ends the process with one line.
fn speak_plainly_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        if name.starts_with("src ") || name == "holdfast-purge" {
            return;
        }
        let text = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map_or_else(String::new, |at| format!(" ({}:{})", at.file(), at.line()));
        complain(&format!("{name} failed inside: {text}{place}; please report this"));
        std::process::exit(1);
    }));
}

/// Records until the sources end or a signal comes.
fn record(settings: &Settings) -> Result<ExitCode, StartError> {
    let thread = |what| move |cause| StartError::Thread { what, cause };
    let stop = StopFlag::new().map_err(thread("the signals"))?;
    let begun = Instant::now();
    let bell = Bell::new().map_err(thread("the signals"))?;
    // From here on a signal is heeded: a preamble may be waited for.
    signals::heed(stop.clone(), bell.clone()).map_err(thread("the signals"))?;
    let mut ready = start(settings, &stop)?;
    ready.warnings.extend(lock_memory());
    if !settings.quiet {
        let mut err = std::io::stderr();
        for warning in &ready.warnings {
            let _ = writeln!(err, "warning: {warning}");
        }
        let _ = writeln!(err, "{}; recording {}", ready.greeting, names(settings));
    }
    let Ready { mut capture, sources, listener, area, clock, mut parker, cores, warnings, .. } = ready;

    let (mut counter, way) = passage(parker.waker(), bell.clone());
    let over = Arc::new(AtomicBool::new(false));
    let lane = settings.ring.display().to_string();
    let (mut running, mut facts) = (Vec::new(), Vec::new());
    for (at, source) in sources.into_iter().enumerate() {
        let core = cores.of_source(at);
        let name = source.facts.spec.clone();
        facts.push(source.facts);
        let started = spawn(&name, source.source, source.producer, stop.clone(), move || Cores::stay(core));
        running.push(started.map_err(thread("a source"))?);
    }
    let kept: Vec<_> =
        facts.iter().map(|f| (f.name.clone(), f.spec.clone(), Arc::clone(&f.counters))).collect();
    let facts = Facts {
        since: clock.now(),
        started: Instant::now(),
        ring: capture.driver().ring().status(&lane),
        superblock: capture.driver().superblock().clone(),
        streams: capture.driver().ring().stream_looks().collect(),
        sources: facts,
        warnings,
    };
    let progress = !settings.quiet && std::io::stderr().is_terminal();
    let desk = Desk::new(
        Setup {
            listener,
            area,
            facts,
            sources: Watch::new(running),
            stop: stop.clone(),
            over: Arc::clone(&over),
            progress,
            quiet: settings.quiet,
        },
        way,
    );
    let desk = Builder::new().name("holdfast-desk".to_owned()).spawn(move || desk.run());
    let desk = desk.map_err(thread("the socket"))?;

    Cores::stay(cores.capture);
    let ended = capture_loop(&mut capture, &mut counter, &mut parker, &*clock, &stop, settings.flush);
    drop(counter);
    over.store(true, Ordering::Release);
    bell.ring();
    let report = finish(desk, &ended);
    let summary = summarize(settings, &capture, &kept, begun.elapsed(), report, &ended);
    let text = if settings.json { summary.json() } else { summary.text() };
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(if summary.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn names(settings: &Settings) -> String {
    let names: Vec<&str> = settings.sources.iter().map(|source| source.name.as_str()).collect();
    names.join(", ")
}

/// How the capture loop ended.
#[derive(Debug)]
enum Ended {
    Well,
    /// The ring took nothing any more; so many batches were left.
    Stuck {
        batches: usize,
        error: String,
    },
}

/// Captures until all is written. Nothing is allocated here.
fn capture_loop<D: Disk>(
    capture: &mut Capture<D>,
    counter: &mut Counter,
    parker: &mut Parker,
    clock: &dyn holdfast_base::Clock,
    stop: &StopFlag,
    flush: Duration,
) -> Ended {
    let sleep = SLEEP.min(flush / 2);
    let (mut idle, mut looked) = (0, clock.now());
    let mut stuck_since = None;
    loop {
        let now = clock.now();
        while let Some((id, ask)) = counter.ask() {
            if let Some(answer) = capture.ask(id, ask, now) {
                counter.answer(Some(id), answer);
            }
        }
        let round = capture.step(now, Duration::ZERO);
        while let Some((id, answer)) = capture.answer() {
            counter.answer(id, answer);
        }
        counter.deliver();
        if round.done {
            return Ended::Well;
        }
        if now.since(looked) >= CLOCK_LOOK {
            looked = now;
            capture.look_at_clock(now, clock.wall());
        }
        if stop.is_stopped() && capture.is_stuck() {
            if now.since(*stuck_since.get_or_insert(now)) >= STUCK {
                let error = capture.driver().last_error().unwrap_or("no slot is free to be overwritten");
                return Ended::Stuck { batches: capture.unpacked_batches(), error: error.to_owned() };
            }
        } else {
            stuck_since = None;
        }
        // What one step has begun, the next may go on with: only two idle ones in a row are a reason to sleep.
        idle = if round.busy { 0 } else { idle + 1 };
        if idle > 1 {
            parker.wait(Some(sleep));
        }
    }
}

/// Waits for the desk, unless sources could keep it waiting for a ring that takes nothing.
fn finish(desk: JoinHandle<Report>, ended: &Ended) -> Report {
    match ended {
        Ended::Well => desk.join().unwrap_or_default(),
        Ended::Stuck { .. } => Report::default(),
    }
}

type Kept = (String, String, Arc<holdfast_ingest::SourceCounters>);

fn summarize<D: Disk>(
    settings: &Settings,
    capture: &Capture<D>,
    kept: &[Kept],
    took: Duration,
    report: Report,
    ended: &Ended,
) -> Summary {
    let streams = kept.iter().enumerate().map(|(at, (name, source, counters))| StreamSummary {
        name: name.clone(),
        source: source.clone(),
        counters: gained(&capture.began(at), &capture.counters(at)),
        dropped: (1..=u8::MAX)
            .map_while(Cause::from_byte)
            .map(|cause| (cause, counters.dropped(cause)))
            .filter(|(_, count)| *count > 0)
            .collect(),
    });
    let mut errors = report.failures;
    if let Ended::Stuck { batches, error } = ended {
        let text = format!(
            "the ring takes nothing ({error}): what was last taken is lost ({batches} batches), and the run counts as cut off"
        );
        complain(&text);
        errors.push(text);
    }
    let (all, _, fewest) = capture.driver().buffers();
    Summary {
        ring: settings.ring.display().to_string(),
        took,
        slots: capture.slots_sealed(),
        counts: *capture.driver().counts(),
        buffers: (all, fewest),
        streams: streams.collect(),
        errors,
    }
}
