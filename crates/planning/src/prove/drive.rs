//! Drives one stage: a recorder, the source in front of it, the readers beside it; and takes down how it went.

use super::pattern::Pattern;
use super::readers::{Crowd, Found, Known};
use super::recording::{Load, Recording, attributes};
use super::source::Source;
use super::stages::{Burst, Promised, Readers, Stage, StageKind, bursts, elements};
use super::tally::Sent;
use super::verdict::{BurstResult, StageResult};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_base::{ByteSize, Rate};
use holdfast_client::Notices;
use holdfast_protocol::wire::RecorderStatus;
use holdfast_ring::BURSTS;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// After a burst the ring is left alone until its buffers are empty, and no longer than this.
const QUIET: Duration = Duration::from_mins(2);

/// What all stages have in common.
pub(crate) struct Job<'a> {
    pub(crate) ring: &'a Path,
    pub(crate) pattern: Pattern,
    pub(crate) element: u64,
    /// Declared payload.
    pub(crate) rate: Rate,
    pub(crate) promised: Option<&'a Promised>,
    pub(crate) slot: ByteSize,
    pub(crate) realtime: bool,
    /// Set when somebody wants it to end.
    pub(crate) stop: &'a AtomicBool,
    /// Receiver of what people are told meanwhile.
    pub(crate) notices: &'a Notices,
}

/// How a stage went.
pub(crate) struct Driven {
    pub(crate) result: StageResult,
    /// The ordinal that comes next.
    pub(crate) next: u64,
    /// What is held.
    pub(crate) held: Vec<(u64, u64)>,
    pub(crate) wrong: u64,
    pub(crate) faults: Vec<String>,
}

/// Why a proof ended early.
pub(crate) fn interrupted() -> Failure {
    Failure::failed("interrupted: this is no proof").advice("run it again, to its end")
}

/// A recorder, its source and its readers.
struct Running<'a> {
    job: &'a Job<'a>,
    recording: Recording,
    source: Source,
    began: Instant,
    seen: RecorderStatus,
    told: &'a mut dyn FnMut(Duration),
}

impl Running<'_> {
    /// Looks how the recorder does.
    fn look(&mut self) -> Result<()> {
        (self.told)(self.began.elapsed());
        if self.job.stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        match self.recording.status() {
            Some((_, recorder)) => {
                self.seen = recorder;
                Ok(())
            }
            None => Err(Failure::failed("the recorder does not answer any more")),
        }
    }

    /// Elements lost so far.
    fn lost(&self) -> u64 {
        self.seen.sources.iter().flat_map(|source| &source.dropped).map(|dropped| dropped.elements).sum()
    }

    fn go_on(&mut self, span: Duration) -> Result<()> {
        let until = Instant::now() + span;
        loop {
            self.look()?;
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(LOOK.min(left));
        }
    }

    /// Until there is nothing on its way.
    fn quiet(&mut self) -> Result<()> {
        self.source.set_rate(0);
        let began = Instant::now();
        loop {
            self.go_on(LOOK)?;
            if self.seen.buffers.in_use <= 1 || began.elapsed() > QUIET {
                return Ok(());
            }
        }
    }

    fn burst(&mut self, burst: &Burst) -> Result<BurstResult> {
        let rate = self.job.rate.0;
        self.source.set_rate(rate);
        let lost = self.lost();
        self.go_on(burst.lead)?;
        let factor = f64::from(burst.halves) / 2.0;
        let mut result = BurstResult {
            factor,
            promised_seconds: burst.promised.map(|promised| promised.as_secs_f64()),
            ..BurstResult::default()
        };
        let (sent, began) = (self.source.bytes(), Instant::now());
        self.source.set_rate(rate / 2 * u64::from(burst.halves));
        while began.elapsed() < burst.lasts {
            if self.lost() > lost {
                result.lost_after_seconds = Some(began.elapsed().as_secs_f64());
                break;
            }
            self.go_on(LOOK)?;
        }
        let took = began.elapsed().as_secs_f64();
        let came = (self.source.bytes() - sent) as f64;
        result.driven_seconds = took;
        result.reached = came / took.max(1e-3) / (rate as f64).max(1.0);
        self.quiet()?;
        Ok(result)
    }
}

/// Drives a stage that begins with the element `first`. `told` is told from time to time how long it has taken.
pub(crate) fn drive(
    job: &Job<'_>,
    stage: &Stage,
    first: u64,
    told: &mut dyn FnMut(Duration),
) -> Result<Driven> {
    let burst = job.promised.map_or(ByteSize(0), |promised| promised.burst);
    // While nobody reads a ring takes more than it could be made to promise beside readers: that is only driven.
    let declared = if stage.readers == Readers::Nobody { job.rate } else { stage.rate };
    let load = Load {
        element: job.element,
        declared: job.promised.map(|_| (declared, elements(declared, job.element), burst)),
        attributes: job.promised.map_or(Vec::new(), |promised| attributes(promised.each, job.element)),
        realtime: job.realtime,
    };
    let (mut recording, stdin) = Recording::start(job.ring, &load)?;
    let (_, seen) =
        recording.status().ok_or_else(|| Failure::failed("the recorder does not answer any more"))?;
    let cannot = |error: std::io::Error| Failure::failed(format_args!("the source: {}", reason(&error)));
    let source = Source::start(stdin, job.pattern, job.element, first, stage.rate.0).map_err(cannot)?;
    let known = Known {
        ring: job.ring.to_owned(),
        sent: Sent { pattern: job.pattern, element: job.element, from: 0, to: u64::MAX },
        period: Duration::from_secs_f64(job.slot.0 as f64 / (stage.rate.0 as f64).max(1.0)),
        seed: first,
        notices: job.notices.clone(),
    };
    let crowd = Crowd::start(stage.readers, &known).map_err(cannot)?;
    let began = Instant::now();
    let mut running = Running { job, recording, source, began, seen, told };
    let went = through(&mut running, stage);
    let (took, bytes) = (began.elapsed(), running.source.bytes());
    // The last look before its end, with nothing more to come.
    running.source.set_rate(0);
    let went = went.and_then(|bursts| running.go_on(LOOK).map(|()| bursts));
    let read_bytes = running.seen.lanes.iter().map(|lane| lane.read_bytes).sum();
    crowd.stop();
    let ended = went.and_then(|bursts| finish(running, stage, first).map(|ended| (bursts, ended)));
    let found = crowd.end();
    let (bursts, (result, next)) = ended?;
    let seconds = took.as_secs_f64();
    let sent_bytes_per_second = (bytes as f64 / seconds.max(1e-3)) as u64;
    let result = StageResult { seconds, sent_bytes_per_second, read_bytes, bursts, ..result };
    Ok(with_readers(result, next, found))
}

/// The time of a stage.
fn through(running: &mut Running<'_>, stage: &Stage) -> Result<Vec<BurstResult>> {
    if stage.kind != StageKind::Bursts {
        running.go_on(stage.lasts)?;
        return Ok(Vec::new());
    }
    bursts(stage, BURSTS, running.job.promised).iter().map(|burst| running.burst(burst)).collect()
}

/// Ends source and recorder, and takes down what they say.
fn finish(running: Running<'_>, stage: &Stage, first: u64) -> Result<(StageResult, u64)> {
    let Running { job, recording, source, seen, .. } = running;
    let sent = source.end(stage.rate.0.max(job.element));
    let sent = sent.map_err(|error| Failure::failed(format_args!("the source: {}", reason(&error))))?;
    let summary = recording.end()?;
    let stream = summary.streams.first().cloned().ok_or_else(|| Failure::failed("nothing was recorded"))?;
    if let Some(error) = summary.errors.first() {
        return Err(Failure::failed(error));
    }
    let worst = |latency: fn(&holdfast_protocol::wire::LaneStatus) -> Duration| {
        seen.lanes.iter().map(latency).max().unwrap_or_default().as_secs_f64()
    };
    // Of requests that it serves at once the times add up.
    let at_once = job.promised.map_or(1, |promised| promised.parallel.max(1));
    let busy = seen.lanes.iter().map(|lane| lane.read_latency.total + lane.write_latency.total);
    let busy = busy.sum::<Duration>().as_secs_f64() / f64::from(at_once);
    let reading: Duration = seen.lanes.iter().map(|lane| lane.read_latency.total).sum();
    let margin = seen.margin.as_ref();
    let result = StageResult {
        kind: Some(stage.kind),
        stage: stage.kind.name(),
        asked_bytes_per_second: stage.rate.0,
        sent_elements: sent.elements,
        sent_bytes: sent.bytes,
        recorded_elements: stream.elements,
        lost_elements: stream.lost_elements,
        gaps: stream.gaps,
        unknown_gaps: stream.unknown_gaps,
        lost_by_cause: stream.lost,
        slack_least_seconds: margin.map(|margin| margin.least.as_secs_f64()),
        durable_after_worst_seconds: margin.map(|margin| margin.eldest.as_secs_f64()),
        away_worst_seconds: seen.away.longest.as_secs_f64(),
        buffers: seen.buffers.count,
        buffers_most_in_use: seen.buffers.most_in_use,
        worst_write_seconds: worst(|lane| lane.write_latency.worst),
        worst_read_seconds: worst(|lane| lane.read_latency.worst),
        disk_errors: summary.disk_errors,
        device_busy_share: busy / seen.uptime.as_secs_f64().max(1e-3),
        device_reads: seen.lanes.iter().map(|lane| lane.reads).sum(),
        device_read_seconds: reading.as_secs_f64() / f64::from(at_once),
        ..StageResult::default()
    };
    Ok((result, first + sent.elements))
}

fn with_readers(mut result: StageResult, next: u64, found: Vec<Found>) -> Driven {
    let (mut held, mut wrong, mut faults) = (Vec::new(), 0, Vec::new());
    for found in found {
        result.readers.push(found.result);
        held.extend(found.held);
        wrong += found.wrong;
        faults.extend(found.faults);
    }
    Driven { result, next, held, wrong, faults }
}
