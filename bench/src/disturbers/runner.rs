//! Plays a case: a new ring, a recorder that is fed at its guaranteed rate, two readers who want all, the disturber. Then
//! the books are closed, and what is on the ring is read again, byte by byte.

use super::case::{Case, Disturber};
use super::ring_contents::{RingContents, Summary, element};
use super::scene::{FedRecorder, Scene};
use super::{clients, machine_load};
use crate::comparison::tally::Tally;
use crate::control_group::ControlGroup;
use crate::program::holdfast;
use crate::{BenchError, Scale};
use holdfast_protocol::wire::MarginStatus;
use holdfast_reader::{Item, RingReader, Selection};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// Times that a case is played before it is given up because the machine is too slow.
const MOST: u32 = 3;

/// A memory group has so much beside the slot buffers.
const BESIDE: u64 = 160 << 20;

/// The longest wait for a place among the clients: a crowd that has left is noticed within this time.
const FULL_HOUSE: Duration = Duration::from_secs(10);

/// When a disturbance begins: the ring has something by then, and readers are at work.
const BEGINS: f64 = 3.0;

/// What came of a case.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    /// Bytes sent.
    pub sent: u64,
    /// What the recorder says.
    pub summary: Summary,
    /// What is on the ring.
    pub found: RingContents,
    /// The margin at the end.
    pub margin: Option<MarginStatus>,
    /// Bytes that readers got off the drive.
    pub read: u64,
    /// Bytes a second that were sent.
    pub rate: f64,
    /// What the disturber came to.
    pub note: String,
    /// Runs that did not count, for the machine was too slow.
    pub discarded: u32,
    /// Whether it is as it has to be.
    pub kept: bool,
}

/// Plays one until it counts; `None` when the machine is too slow for it.
pub fn play(scene: &Scene, case: &Case) -> Result<Option<CaseOutcome>, BenchError> {
    for discarded in 0..MOST {
        let (outcome, too_slow) = once(scene, case)?;
        if !too_slow {
            return Ok(Some(CaseOutcome { discarded, ..outcome }));
        }
    }
    Ok(None)
}

/// What a disturber needs to have before the recorder starts; taken away behind it.
struct Surroundings {
    before: Option<String>,
    full: Option<machine_load::FullDisk>,
    pipe: Option<std::fs::File>,
    group: Option<ControlGroup>,
}

impl Surroundings {
    fn of(scene: &Scene, case: &Case, buffers: u64) -> Result<Self, BenchError> {
        let mut this = Self { before: None, full: None, pipe: None, group: None };
        let folder = scene.stand().file("");
        match case.disturber {
            Disturber::FullLog => {
                let full = machine_load::FullDisk::mount(&folder)?;
                this.before = Some(format!("exec 2>'{}'", full.log().display()));
                this.full = Some(full);
            }
            Disturber::CloggedLog => {
                let (path, pipe) = machine_load::clogged(&folder)?;
                this.before = Some(format!("exec 2>'{}'", path.display()));
                this.pipe = Some(pipe);
            }
            Disturber::Memory => {
                let group = ControlGroup::with_memory(buffers * scene.amount().slot + BESIDE)?;
                this.before = Some(group.enter());
                this.group = Some(group);
            }
            _ => {}
        }
        Ok(this)
    }
}

/// Once; whether the machine was too slow.
fn once(scene: &Scene, case: &Case) -> Result<(CaseOutcome, bool), BenchError> {
    let (rate, buffers) = (scene.rate(case)?, scene.ring(case)?);
    let surroundings = Surroundings::of(scene, case, buffers)?;
    let FedRecorder { program, mut input, mut watch } = scene.record(case, surroundings.before.as_deref())?;
    let socket = watch.connection().map(|connection| connection.path().to_owned());
    let socket = socket.ok_or_else(|| BenchError::Accounting("the recorder is not live".into()))?;
    // Who asks nothing for long gives way to others.
    drop(watch);
    let (stand, pid) = (scene.stand(), program.pid());
    stand.be_timed()?;
    let tally = Tally::lasting(lasts(scene, case));
    let tally = if scene.scale() == Scale::Real { tally.leading() } else { tally };
    let stopping = |result: Result<String, BenchError>| {
        if result.is_err() {
            tally.stop();
        }
        result
    };
    let result = std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| stopping(read(stand.device(), case, &tally).map(|()| String::new()))))
            .collect();
        let disturbs = scope.spawn(|| stopping(disturb(scene, case, &surroundings, (&socket, pid), &tally)));
        let feeds = scope.spawn(|| feed(&mut input, rate.0 as f64, case.element(), &tally));
        let sent = joined(feeds);
        tally.stop();
        let note = joined(disturbs)?;
        for reader in readers {
            joined(reader)?;
        }
        Ok::<_, BenchError>((sent?, note))
    });
    let failed = |error: &BenchError| {
        BenchError::program(
            format!("case {}: holdfast-recorder", case.name),
            format!("{error}\n{}", program.said()),
        )
    };
    let (sent, note) = result.map_err(|error| failed(&error))?;
    // What was disturbed is over; what waits is written, and the drive may be fast about it.
    let too_slow = scene.scale() == Scale::Real && (stand.drive().too_slow()? || tally.was_late());
    let read = stand.drive().figure("read_bytes")? as u64;
    let mut watch = opened(stand.device(), || true)?;
    let status = watch.status().map_err(BenchError::during("asking the recorder"))?;
    let recorder = status.recorder.ok_or_else(|| BenchError::Accounting("no recorder answers".into()))?;
    let margin = recorder.margin;
    let dropped: u64 = recorder.sources.iter().flat_map(|source| &source.dropped).map(|one| one.bytes).sum();
    stand.be_fast()?;
    drop((input, watch));
    let said = program.end(&[0])?;
    let summary = Summary::of(&said).ok_or_else(|| BenchError::Accounting(format!("no summary: {said}")))?;
    summary.balances(sent, case.element() as u64)?;
    let found = RingContents::on(stand.device(), sent / case.element() as u64, case.element())?;
    if dropped != summary.lost {
        let text = format!("`status` told of {dropped} bytes lost, and {summary:?}");
        return Err(BenchError::Accounting(text));
    }
    // Whoever reads the log knows how near it was, where it goes to where it is read here.
    let near = margin.is_some_and(|margin| margin.least < margin.kept / 2);
    if near && surroundings.before.is_none() && !said.contains("capture could have continued for only ") {
        return Err(BenchError::Accounting(format!("the log does not tell of a small margin: {said}")));
    }
    let told = ["the device does not answer", "capture could have continued for only"]
        .iter()
        .any(|words| said.contains(words));
    let kept = if case.covered { summary.lost == 0 } else { summary.lost > 0 && found.missing > 0 && told };
    let rate = rate.0 as f64;
    let outcome = CaseOutcome { sent, summary, found, margin, read, rate, note, discarded: 0, kept };
    Ok((outcome, too_slow))
}

/// What a thread came to.
pub fn joined<T>(handle: ScopedJoinHandle<'_, Result<T, BenchError>>) -> Result<T, BenchError> {
    handle.join().unwrap_or_else(|_| Err(BenchError::Accounting("a thread panicked".into())))
}

/// A disturbance of some length has to begin, end, and be over for a while.
fn lasts(scene: &Scene, case: &Case) -> Duration {
    let longer = match case.disturber {
        Disturber::Stall(_, Some(every)) => every * 2,
        Disturber::Stall(length, None) | Disturber::Hang(length) | Disturber::Errors(length) => length,
        // Of a slot of these what is not in memory waits for the reads of others.
        Disturber::Searches if case.small => Duration::from_secs(30),
        _ => Duration::ZERO,
    };
    scene.scale().pick(scene.amount().time, scene.amount().time + longer)
}

/// Sends elements at the rate until the time is over; bytes sent. The world does not wait: it goes before everybody.
pub fn feed(input: &mut ChildStdin, rate: f64, size: usize, tally: &Tally) -> Result<u64, BenchError> {
    tally.lead();
    // As much at once as a large element has.
    let mut data = vec![0; (64 << 10) / size * size];
    let mut sent = 0u64;
    while tally.wait(|| rate * tally.seconds() - sent as f64 >= data.len() as f64) {
        while rate * tally.seconds() - sent as f64 >= data.len() as f64 {
            let first = sent / size as u64;
            data.chunks_mut(size).zip(first..).for_each(|(one, number)| element(number, one));
            input.write_all(&data).map_err(|cause| {
                BenchError::program(
                    "holdfast-recorder",
                    format!("it does not take what it is given: {cause}"),
                )
            })?;
            sent += data.len() as u64;
        }
    }
    Ok(sent)
}

/// Opens the ring; while the recorder has no place for another client, tries again, up to a limit.
fn opened(device: &Path, runs: impl Fn() -> bool) -> Result<RingReader, BenchError> {
    let began = Instant::now();
    loop {
        match RingReader::open(device) {
            Err(error)
                if error.to_string().contains("clients are connected")
                    && runs()
                    && began.elapsed() < FULL_HOUSE =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened.map_err(BenchError::during("opening the ring")),
        }
    }
}

/// Reads all that there is, again and again. A recorder that has no place for us is no failure.
pub fn read(device: &Path, case: &Case, tally: &Tally) -> Result<(), BenchError> {
    let answers = case.covered;
    let mut reader = opened(device, || tally.runs())?;
    let mut wanted = vec![0; case.element()];
    while tally.wait(|| true) {
        let plan = reader.plan(&Selection::ALL).map_err(BenchError::during("planning"))?;
        let (mut wrong, mut got) = (None, false);
        let mut sink = |item: Item<'_>| {
            match item {
                Item::Element(one) => {
                    element(one.ordinal.0, &mut wanted);
                    wrong = (one.data != wanted).then(|| format!("element {} is another", one.ordinal.0));
                    got = true;
                }
                // What could not be read is told of as what was read wrongly is; in the end all is read once more.
                Item::Damaged { sequence, place, .. } if answers => {
                    wrong = Some(format!("sequence {} is damaged: {place}", sequence.0));
                }
                _ => {}
            }
            if tally.runs() && wrong.is_none() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let done = reader.read(&plan, &mut sink);
        if let Some(wrong) = wrong {
            return Err(BenchError::Accounting(wrong));
        }
        // A device that answers errors, or nothing, is no reader's fault.
        if done.is_err() || !got {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    Ok(())
}

/// Disturbs until the time is over; what it came to.
fn disturb(
    scene: &Scene,
    case: &Case,
    surroundings: &Surroundings,
    (socket, recorder): (&Path, u32),
    tally: &Tally,
) -> Result<String, BenchError> {
    let (stand, scale) = (scene.stand(), scene.scale());
    let begins = scale.pick(0.05, BEGINS);
    tally.wait(|| tally.seconds() >= begins);
    let folder: PathBuf = stand.file("");
    // What takes seconds takes a tiny run hundredths of them, on a drive that keeps to no model.
    let short = |span: Duration| scale.pick(span / 100, span);
    let pause = |span: Duration| {
        let until = tally.seconds() + short(span).as_secs_f64();
        tally.wait(|| tally.seconds() >= until);
    };
    let order = |order: &str| stand.drive().order(order);
    let well = scale.pick("fast", "ok");
    match case.disturber {
        Disturber::Readers | Disturber::FullLog | Disturber::CloggedLog => {
            tally.wait(|| false);
            Ok(String::new())
        }
        Disturber::Stopped => {
            let program = holdfast("holdfast", scale)?;
            clients::stopped(&program, stand.device(), &folder, tally)
        }
        Disturber::Searches => {
            let program = holdfast("holdfast", scale)?;
            clients::searches(&program, stand.device(), &folder, case.small, scale == Scale::Real, tally)
        }
        Disturber::Standing => {
            let program = holdfast("holdfast", scale)?;
            let every = (scene.rate(case)?.0 / case.element() as u64).max(2);
            clients::standing(&program, stand.device(), every, scale == Scale::Real, tally)
        }
        Disturber::Dawdlers => clients::dawdlers(socket, tally),
        Disturber::Crowd => clients::crowd(socket, tally),
        Disturber::Scribblers => clients::scribblers(socket, tally),
        Disturber::Hogs => {
            let hogs = machine_load::hogs(&folder)?;
            tally.wait(|| false);
            Ok(format!("{} hogs", hogs.len()))
        }
        Disturber::Memory => {
            let Some(group) = &surroundings.group else { return Ok(String::new()) };
            let filler = machine_load::fill(group, &folder, recorder)?;
            tally.wait(|| false);
            drop(filler);
            let killed = machine_load::killed(group).map_or("?".to_owned(), |count| count.to_string());
            Ok(format!("{killed} killed for want of memory"))
        }
        Disturber::Stall(length, every) => {
            let mut count = 0;
            while tally.runs() {
                let micros = short(length).as_micros();
                order(&format!("stall {micros}us"))?;
                count += 1;
                match every {
                    Some(every) => pause(every),
                    None => {
                        tally.wait(|| false);
                    }
                }
            }
            Ok(format!("{count} times"))
        }
        Disturber::Hang(length) => {
            order("hang")?;
            pause(length);
            order(well)?;
            tally.wait(|| false);
            Ok(String::new())
        }
        Disturber::Errors(length) => {
            order("eio")?;
            pause(length);
            order(well)?;
            tally.wait(|| false);
            Ok(String::new())
        }
    }
}
