//! Run of a recorder: threads, the capture loop, the end.

use crate::args::{self, Invocation, Settings, SourceSettings};
use crate::capture::Capture;
use crate::control::{
    ControlServer, ControlThread, ControlWaker, Facts, JOB_THREAD, Report, Setup, Watch, channel,
};
use crate::signals;
use crate::start::{Cores, Ready, StartError, lock_memory, start};
use crate::summary::{StreamSummary, Summary, failure_json, gained};
use crate::voice::{complain, say};
use holdfast_base::{Clock as _, Timestamp, many};
use holdfast_format::Cause;
use holdfast_ingest::{Parker, StopFlag, is_source_thread, spawn};
use holdfast_media::{Disk, drop_privileges};
use holdfast_ring::NOTHING_PROMISED;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// A device that answers nothing gets so many times the patience of one that answers with errors: drives take half a
/// minute over one that they recover from.
const SILENCE: u32 = 4;

/// How long the capture thread sleeps at most: the ring's clock ticks with it.
const SLEEP: Duration = Duration::from_millis(20);

/// How long it sleeps at least when there is nothing to do.
const LEAST_SLEEP: Duration = Duration::from_millis(1);

/// How often the wall clock is compared.
const CLOCK_LOOK: Duration = Duration::from_secs(1);

/// The program: arguments in, exit code out.
pub fn main() -> ExitCode {
    speak_plainly_of_panics();
    match args::parse(std::env::args_os().skip(1)) {
        Ok(Invocation::Help) => said(args::HELP),
        Ok(Invocation::Version) => said(concat!("holdfast-recorder ", env!("CARGO_PKG_VERSION"), "\n")),
        Ok(Invocation::Record(settings)) => match record(&settings) {
            Ok(summary) => end(&summary, settings.json),
            Err(error) => refuse(&error.to_string(), error.exit_code(), settings.json),
        },
        Err(wrong) => refuse(&wrong.to_string(), 2, asks_for_json()),
    }
}

fn asks_for_json() -> bool {
    std::env::args_os().any(|word| word == "--json")
}

/// Says why nothing is recorded.
fn refuse(error: &str, exit: u8, json: bool) -> ExitCode {
    complain(error);
    if json {
        let _ = std::io::stdout().write_all(failure_json(error, exit).as_bytes());
    }
    ExitCode::from(exit)
}

fn said(text: &str) -> ExitCode {
    let _ = std::io::stdout().write_all(text.as_bytes());
    ExitCode::SUCCESS
}

/// A panic of a source ends that source, which tells of it itself; any other ends the process with one line.
fn speak_plainly_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread");
        if fails_alone(name) {
            return;
        }
        let text = panic.payload_as_str().unwrap_or("no message");
        let place = panic.location().map_or_else(String::new, |at| format!(" ({}:{})", at.file(), at.line()));
        complain(&format!("internal error in {name}: {text}{place}; please report this"));
        std::process::exit(1);
    }));
}

/// Whether the recorder goes on when the thread of this name panics: who waits for it tells of it.
fn fails_alone(name: &str) -> bool {
    is_source_thread(name) || name == JOB_THREAD
}

/// How far ahead of other programs the recorder's threads go for a processor, where that is allowed; its jobs go beside them.
pub(crate) const AHEAD: i32 = 10;

/// Prints the summary; the exit code.
fn end(summary: &Summary, json: bool) -> ExitCode {
    let text = if json { summary.json() } else { summary.text() };
    let told = tell(&text);
    if told && summary.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Records until the sources end or a signal comes. The calling thread is the capture thread: it gets a priority of its own, and
/// signals that end programs end the recording.
pub fn record(settings: &Settings) -> Result<Summary, StartError> {
    let thread = |what| move |cause| StartError::Thread { what, cause };
    let stop = StopFlag::new().map_err(thread("the signals"))?;
    let begun = Instant::now();
    // The threads that it starts go with it. Where it is forbidden they go beside all others, as they would have.
    let _ = rustix::process::nice(-AHEAD);
    let waker = ControlWaker::new().map_err(thread("the signals"))?;
    // From here on a signal is heeded: a preamble that is a pipe of its own may be waited for.
    signals::install_handlers(stop.clone(), waker.clone()).map_err(thread("the signals"))?;
    let mut ready = start(settings, &stop)?;
    ready.warnings.extend(lock_memory());
    ready.warnings.extend(give_up_privileges());
    if !settings.quiet {
        for warning in &ready.warnings {
            say(&format!("warning: {warning}\n"));
        }
        let promise = ready.promise.as_deref().unwrap_or(NOTHING_PROMISED);
        say(&format!("{}; recording {}; {promise}\n", ready.greeting, names(settings)));
    }
    let Ready {
        mut capture, sources, listener, file, area, clock, mut parker, cores, warnings, view, ..
    } = ready;

    let (mut server, way) = channel(parker.waker(), waker.clone());
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
        file,
        superblock: capture.driver().superblock().clone(),
        schemas: capture.driver().ring().schemas().map(|(id, text)| (id, text.to_owned())).collect(),
        streams: capture.driver().ring().stream_looks().collect(),
        sources: facts,
        warnings,
        view,
    };
    let progress = !settings.quiet && std::io::stderr().is_terminal();
    let control = ControlThread::new(
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
    let control = Builder::new().name("holdfast-ctl".to_owned()).spawn(move || control.run());
    let control = control.map_err(thread("the socket"))?;

    Cores::stay(cores.capture);
    let ended = capture_loop(&mut capture, &mut server, &mut parker, &*clock, &stop, settings);
    drop(server);
    over.store(true, Ordering::Release);
    waker.wake();
    let report = finish(control, &ended);
    let summary = summarize(settings, &capture, &kept, begun.elapsed(), report, &ended);
    if matches!(ended, RunEnd::Stuck { .. }) {
        // Its lane waits for the device; nothing else does.
        std::mem::forget(capture);
    }
    Ok(summary)
}

/// All that needs a privilege is open, and nothing has been read from outside. The threads that are started from here on
/// have no more than this one; the disk's and the one for signals, which are there already, give up their own.
fn give_up_privileges() -> Option<String> {
    let cause = drop_privileges().err()?;
    Some(format!(
        "cannot drop privileges: {cause}; the recorder keeps those that it was started with; start it as a user of its own that has only the necessary rights"
    ))
}

/// Prints what was recorded. A script that is told nothing must not take that for success; who does not listen at all
/// wants to know nothing.
fn tell(text: &str) -> bool {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(cause) if cause.kind() != std::io::ErrorKind::BrokenPipe => {
            complain(&format!(
                "cannot print the summary on standard output: {cause}; the data is recorded, see `holdfast streams`"
            ));
            false
        }
        _ => true,
    }
}

fn names(settings: &Settings) -> String {
    let names: Vec<&str> = settings.sources.iter().map(|source| source.name.as_str()).collect();
    names.join(", ")
}

/// How the capture loop ended.
#[derive(Debug)]
enum RunEnd {
    Well,
    /// The ring took nothing any more; so many slots and batches were left in memory.
    Stuck {
        slots: usize,
        batches: usize,
        error: String,
    },
}

/// How long a run that was told to end has waited for its ring.
struct Patience {
    limit: Duration,
    /// What the disk had answered when it last did something for us, and since when we have been waiting.
    answers: u64,
    since: Option<Timestamp>,
}

impl Patience {
    fn new(limit: Duration) -> Self {
        Self { limit, answers: 0, since: None }
    }

    /// Why it is at its end, if it is.
    fn is_over<D: Disk>(&mut self, capture: &Capture<D>, now: Timestamp) -> Option<String> {
        let driver = capture.driver();
        let counts = driver.counts();
        let starved = driver.ring().starved().filter(|_| capture.is_stuck());
        if counts.answers != self.answers || !(starved.is_some() || capture.awaits_disk()) {
            self.answers = counts.answers;
            self.since = None;
        }
        let waited = now.since(*self.since.get_or_insert(now));
        if let Some(cause) = starved {
            let error = match cause {
                Cause::NoSlot => "no slot is free to be overwritten",
                _ => driver.last_error().unwrap_or("the device does not answer"),
            };
            return (waited >= self.limit).then(|| error.to_owned());
        }
        let silence = (self.limit * SILENCE).max(counts.writing.worst * 2);
        (waited >= silence).then(|| format!("the device has not answered for {:.1} s", waited.as_secs_f64()))
    }
}

/// Captures until all is written. Nothing is allocated here.
fn capture_loop<D: Disk>(
    capture: &mut Capture<D>,
    server: &mut ControlServer,
    parker: &mut Parker,
    clock: &dyn holdfast_base::Clock,
    stop: &StopFlag,
    settings: &Settings,
) -> RunEnd {
    let sleep = SLEEP.min(settings.flush / 2);
    let (mut idle, mut looked) = (0, clock.now());
    let mut patience = Patience::new(settings.patience);
    loop {
        let now = clock.now();
        if stop.is_stopped() {
            capture.drain();
        }
        while let Some((id, ask)) = server.ask() {
            if let Some(answer) = capture.ask(id, ask, now) {
                server.answer(Some(id), answer);
            }
        }
        let round = capture.step(now, Duration::ZERO);
        while let Some((id, answer)) = capture.answer() {
            server.answer(id, answer);
        }
        server.deliver();
        if round.done {
            return RunEnd::Well;
        }
        if now.since(looked) >= CLOCK_LOOK {
            looked = now;
            capture.look_at_clock(now, clock.wall());
        }
        if stop.is_stopped()
            && let Some(error) = patience.is_over(capture, now)
        {
            return RunEnd::Stuck {
                slots: capture.unwritten_slots(),
                batches: capture.unpacked_batches(),
                error,
            };
        }
        // What one step has begun, the next may go on with: only two idle ones in a row are a reason to sleep.
        idle = if round.busy { 0 } else { idle + 1 };
        if idle > 1 {
            let due = capture.rests_until().map_or(sleep, |until| until.since(now));
            // A time that has passed is no reason to run in circles.
            parker.wait(Some(due.clamp(LEAST_SLEEP, sleep)));
        }
    }
}

/// Waits for the control thread, unless sources could keep it waiting for a ring that takes nothing.
fn finish(control: JoinHandle<Report>, ended: &RunEnd) -> Report {
    match ended {
        RunEnd::Well => control.join().unwrap_or_default(),
        RunEnd::Stuck { .. } => Report::default(),
    }
}

type Kept = (String, String, Arc<holdfast_ingest::SourceCounters>);

fn summarize<D: Disk>(
    settings: &Settings,
    capture: &Capture<D>,
    kept: &[Kept],
    took: Duration,
    report: Report,
    ended: &RunEnd,
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
        interrupted: counters.interrupted.load(Ordering::Relaxed),
        interface_drops: counters.interface_drops.load(Ordering::Relaxed),
        perhaps_lost: counters.perhaps_lost.load(Ordering::Relaxed),
        options_left_out: counters.options_left_out.load(Ordering::Relaxed),
        undecodable: counters.undecodable.load(Ordering::Relaxed),
        too_long: counters.too_long.load(Ordering::Relaxed),
        whole_seconds: counters.whole_seconds.load(Ordering::Relaxed),
        header_format: settings.sources.get(at).and_then(SourceSettings::header_format),
    });
    let mut errors = report.failures;
    if let RunEnd::Stuck { slots, batches, error } = ended {
        let text = format!(
            "{}: cannot write to the ring: {error}; the last received data is lost unless it is in the journal ({} and {} in memory), and the run counts as interrupted; check the device, then record again",
            settings.ring.display(),
            many(*slots as u64, "slot"),
            many(*batches as u64, "batch"),
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
        away: capture.away().longest,
        streams: streams.collect(),
        errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::{Ordinal, SystemClock};
    use holdfast_ingest::{
        Overload, Pressure, Producer, ProducerSettings, Source, SourceEnd, SourceError, channel,
    };
    use std::sync::mpsc::{Sender, channel as mpsc};

    /// Tells the name of the thread that it runs on.
    struct Named(Sender<String>);

    impl Source for Named {
        fn run(self: Box<Self>, _out: &mut Producer, _stop: &StopFlag) -> Result<SourceEnd, SourceError> {
            self.0.send(std::thread::current().name().unwrap().to_owned()).unwrap();
            Ok(SourceEnd::Ended)
        }
    }

    // Promises 1 and 2: a mistake in one source is no reason to record nothing of the others.
    #[test]
    fn a_panic_of_a_source_or_of_a_job_is_not_the_end_of_the_process_and_any_other_is() {
        let (parker, settings) = (Parker::new(), ProducerSettings::new(Overload::Block, Ordinal(0)));
        for spec in ["stdin", "tcp:127.0.0.1:5000", "holdfast-lane", ""] {
            let (sender, name) = mpsc();
            let clock = Arc::new(SystemClock::new());
            let (producer, _inlet) = channel(&settings, clock, Arc::new(Pressure::default()), parker.waker());
            let source = Box::new(Named(sender));
            let running = spawn(spec, source, producer, StopFlag::new().unwrap(), || {}).unwrap();
            let name = name.recv().unwrap();
            assert!(name.ends_with(spec) && fails_alone(&name), "{name}");
            running.join().unwrap();
        }
        assert!(fails_alone(JOB_THREAD));
        for name in
            ["holdfast-recorder", "main", "holdfast-lane", "holdfast-ctl", "holdfast-signal", "a thread"]
        {
            assert!(!fails_alone(name), "{name}");
        }
    }
}
