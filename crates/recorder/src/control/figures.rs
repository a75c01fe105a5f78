//! Figures that clients see: constants of the run, the capture thread's last statistics, and the sources' own counters.

use super::CaptureClient;
use super::rate_window::{CounterSample, RateWindow, SourceCounts};
use super::sources::Watch;
use crate::capture::{Ask, Away, Stats};
use holdfast_base::{ByteSize, MAX_STREAMS, StreamId, Timestamp};
use holdfast_format::{Cause, Superblock};
use holdfast_ingest::SourceCounters;
use holdfast_media::BufferPool;
use holdfast_protocol::wire::{
    AwayStatus, BufferStatus, DeviceState, DeviceStatus, Dropped, LaneFile, LaneStatus, Latency,
    MarginStatus, RecorderStatus, SourceState, SourceStatus, Status, VERSION, ViewStatus, Welcome,
};
use holdfast_ring::{DeviceState as RingDevice, DriverCounts, RingStatus, StreamStatus, Took};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes of the disk's last error that are kept.
const ERROR_BYTES: usize = 512;

/// Figures are asked for at most this often, however many clients want them, but after each order.
const LEAST_AGE: Duration = Duration::from_millis(10);

/// What a run knows of itself from the start.
#[derive(Debug)]
pub struct Facts {
    /// When it started, on both clocks.
    pub since: Timestamp,
    /// The same moment, for spans.
    pub started: Instant,
    /// The ring as it was then.
    pub ring: RingStatus,
    /// Which file or device its lane is.
    pub file: LaneFile,
    /// The superblock as it was then.
    pub superblock: Superblock,
    /// All streams of the ring.
    pub streams: Vec<StreamStatus>,
    /// The schemas of those that had one then, as text.
    pub schemas: Vec<(StreamId, String)>,
    /// The sources, in the order they were given.
    pub sources: Vec<SourceFacts>,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// The bird's-eye view's memory, and bytes of a slot's place in it.
    pub view: Option<(BufferPool, usize)>,
}

/// What is known of a source.
#[derive(Debug)]
pub struct SourceFacts {
    /// Its stream.
    pub stream: StreamId,
    /// The stream's name.
    pub name: String,
    /// What was given.
    pub spec: String,
    /// Its own counters.
    pub counters: Arc<SourceCounters>,
}

impl SourceFacts {
    /// Amounts received and lost in this run, losses of every cause included.
    fn counts(&self) -> SourceCounts {
        let counters = &self.counters;
        SourceCounts {
            elements: counters.elements.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            lost: counters.all_dropped() + counters.interface_drops.load(Ordering::Relaxed),
            unknown: counters.unknown.load(Ordering::Relaxed),
        }
    }
}

/// What a line of progress shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Elements received.
    pub elements: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Elements lost, here or upstream, as far as that is known.
    pub lost: u64,
    /// Losses of unknown size.
    pub unknown: u64,
    /// Bytes on the medium.
    pub written: u64,
}

/// Figures of the run, as the control thread knows them.
pub(super) struct Figures {
    facts: Facts,
    stats: Option<Box<Stats>>,
    /// Statistics buffer that is not with the capture thread.
    spare: Option<Box<Stats>>,
    taken: Option<Instant>,
    /// Whether the superblock is the one in force.
    current: bool,
    wanted: bool,
    asked: bool,
    device: (DeviceState, Timestamp),
    window: RateWindow,
}

impl Figures {
    pub(super) fn new(facts: Facts) -> Self {
        let spare = Some(Box::new(Stats {
            ring: facts.ring.clone(),
            counts: DriverCounts::default(),
            buffers: (0, 0, 0),
            fewest_at: facts.since,
            device: RingDevice::Well,
            margin: None,
            view: None,
            eldest: Duration::ZERO,
            away: Away::default(),
            last_error: String::with_capacity(ERROR_BYTES),
            feeds: Vec::with_capacity(facts.sources.len()),
            counters: Vec::with_capacity(MAX_STREAMS),
            preambles: Vec::with_capacity(MAX_STREAMS),
            superblock: (facts.superblock.generation, facts.superblock.encode()),
            now: facts.since,
            slots_sealed: 0,
        }));
        let device = (DeviceState::Ok, facts.since);
        let window = RateWindow::new(facts.sources.len());
        Self {
            facts,
            stats: None,
            spare,
            taken: None,
            current: false,
            wanted: true,
            asked: false,
            device,
            window,
        }
    }

    /// Somebody wants figures.
    pub(super) fn want(&mut self) {
        self.wanted = true;
    }

    /// Whether the last figures are as good as new ones.
    pub(super) fn are_fresh(&self, now: Instant) -> bool {
        self.stats.is_some() && self.taken.is_some_and(|taken| now.duration_since(taken) < LEAST_AGE)
    }

    /// When they are to be asked for, if somebody wants them and nobody asks yet.
    pub(super) fn due_in(&self, now: Instant) -> Option<Duration> {
        let age = self.taken.map_or(Duration::MAX, |taken| now.duration_since(taken));
        (self.wanted && !self.asked).then(|| LEAST_AGE.saturating_sub(age))
    }

    /// Asks for them, if somebody wants them and the last are old enough.
    pub(super) fn ask(&mut self, capture: &mut CaptureClient, now: Instant) {
        if self.due_in(now).is_some_and(|due| due.is_zero()) && capture.has_room() {
            let stats = self.spare.take().or_else(|| self.stats.take());
            if let Some(stats) = stats {
                self.wanted = false;
                self.asked = true;
                capture.ask(Ask::Figures(stats));
            }
        }
    }

    pub(super) fn take(&mut self, stats: Box<Stats>, now: Instant) {
        if let Ok(superblock) = Superblock::decode(&stats.superblock.1) {
            self.facts.superblock = superblock;
        }
        self.device = match stats.device {
            RingDevice::Absent { since, .. } => (DeviceState::Absent, since),
            RingDevice::Well => {
                (DeviceState::Ok, if self.device.0 == DeviceState::Ok { self.device.1 } else { stats.now })
            }
        };
        self.window.look(self.look(&stats, self.uptime()), stats.now);
        self.spare = self.stats.replace(stats).or(self.spare.take());
        self.taken = Some(now);
        self.current = true;
        self.asked = false;
    }

    pub(super) fn stats(&self) -> Option<&Stats> {
        self.stats.as_deref()
    }

    /// An order was carried out: whoever is told so and asks then sees what it did. If the ring has `grown`, the superblock is another.
    pub(super) fn forget(&mut self, grown: bool) {
        self.taken = None;
        self.current &= !grown;
    }

    /// What is known of the sources.
    pub(super) fn sources(&self) -> &[SourceFacts] {
        &self.facts.sources
    }

    /// The superblock in force, once figures have come.
    pub(super) fn superblock(&self) -> Option<Superblock> {
        self.current.then(|| self.facts.superblock.clone())
    }

    pub(super) fn slot_bytes(&self) -> u64 {
        self.facts.superblock.geometry.slot_bytes
    }

    /// Arrival time, about.
    pub(super) fn now(&self) -> Timestamp {
        self.facts.since + self.facts.started.elapsed()
    }

    pub(super) fn uptime(&self) -> Duration {
        self.facts.started.elapsed()
    }

    pub(super) fn welcome(&self, area: &BufferPool) -> Welcome {
        Welcome {
            version: VERSION,
            pid: std::process::id(),
            ring: self.facts.superblock.ring,
            quantum: area.stride() as u32,
            place: self.facts.view.as_ref().map_or(0, |(_, place)| *place as u32),
            area: (area.count() * area.stride()) as u64,
            superblock: self.facts.superblock.encode(),
            file: self.facts.file,
            lane: self.facts.ring.lane.clone(),
        }
    }

    /// The memory file of the bird's-eye view.
    pub(super) fn view(&self) -> Option<BorrowedFd<'_>> {
        self.facts.view.as_ref().and_then(|(memory, _)| memory.fd())
    }

    pub(super) fn streams(&self) -> Vec<StreamStatus> {
        let mut streams = self.facts.streams.clone();
        let Some(stats) = &self.stats else { return streams };
        for stream in &mut streams {
            if let Some((_, now)) = stats.counters.iter().find(|(id, _)| *id == stream.id) {
                stream.counters = *now;
            }
            // One that comes with the input is not there at the start.
            if let Some((_, version, bytes)) = stats.preambles.iter().find(|(id, _, _)| *id == stream.id) {
                (stream.preamble, stream.preamble_bytes) = (*version, *bytes);
            }
            stream.schema =
                self.inferred(stream.id).map_or(stream.schema, |text| text.lines().count() as u32);
        }
        streams
    }

    /// A stream's schema as text.
    pub(super) fn schema(&self, stream: StreamId) -> &str {
        let known = || self.facts.schemas.iter().find(|(id, _)| *id == stream).map_or("", |(_, text)| text);
        self.inferred(stream).unwrap_or_else(known)
    }

    /// The schema of a stream as text, if it was inferred in this run.
    fn inferred(&self, stream: StreamId) -> Option<&str> {
        let source = self.facts.sources.iter().find(|source| source.stream == stream)?;
        source.counters.schema.get().map(String::as_str)
    }

    pub(super) fn status(&self, sources: &Watch) -> Status {
        let Some(stats) = &self.stats else {
            return Status { ring: self.facts.ring.clone(), recorder: None };
        };
        let (all, free, fewest) = stats.buffers;
        let uptime = self.uptime();
        let recorder =
            RecorderStatus {
                pid: std::process::id(),
                since: self.facts.since,
                now: stats.now,
                uptime,
                device: DeviceStatus {
                    state: self.device.0,
                    since: self.device.1,
                    error: stats.last_error.clone(),
                },
                sources: (0..self.facts.sources.len()).map(|at| self.source(at, stats, sources)).collect(),
                lanes: vec![lane(&stats.ring.lane, &stats.counts)],
                buffers: BufferStatus {
                    count: all as u32,
                    in_use: all.saturating_sub(free) as u32,
                    most_in_use: all.saturating_sub(fewest) as u32,
                    // Nothing was seen yet: since the start.
                    most_at: stats.fewest_at.max(self.facts.since),
                },
                away: AwayStatus { longest: stats.away.longest, since: stats.away.since },
                warnings: self.facts.warnings.clone(),
                margin: stats.margin.map(|margin| MarginStatus {
                    rate: margin.rate,
                    kept: margin.kept,
                    least: margin.least,
                    since: margin.since,
                    eldest: stats.eldest,
                }),
                view: stats.view.zip(self.facts.view.as_ref()).map(|((bytes, slots), (_, place))| {
                    ViewStatus { bytes, place: ByteSize(*place as u64), slots }
                }),
                recent: Some(self.window.told(&self.look(stats, uptime), self.now())),
            };
        Status { ring: stats.ring.clone(), recorder: Some(recorder) }
    }

    /// All that is told of the recent past, as it is now.
    fn look(&self, stats: &Stats, at: Duration) -> CounterSample {
        let sources = self.facts.sources.iter().map(SourceFacts::counts);
        let (slot_bytes, journal_bytes) = (stats.counts.write_bytes, stats.counts.journal_bytes);
        CounterSample { at, slot_bytes, journal_bytes, sources: sources.collect() }
    }

    fn source(&self, at: usize, stats: &Stats, sources: &Watch) -> SourceStatus {
        let facts = &self.facts.sources[at];
        let counters = &facts.counters;
        let (began, now, excess) = stats.feeds.get(at).copied().unwrap_or_default();
        let (delivery, mut error) = sources.state(at);
        if delivery == SourceState::Running && counters.down.load(Ordering::Relaxed) {
            "the interface is down or removed".clone_into(&mut error);
        }
        let elements = counters.elements.load(Ordering::Relaxed);
        let dropped: Vec<Dropped> = (1..=u8::MAX)
            .map_while(Cause::from_byte)
            .map(|cause| Dropped {
                cause,
                elements: counters.dropped(cause),
                bytes: counters.dropped_bytes(cause),
            })
            .filter(|dropped| dropped.elements > 0 || dropped.bytes > 0)
            .collect();
        // What the kernel dropped, and what was lost upstream, was never counted as an element.
        let reached = |dropped: &&Dropped| !matches!(dropped.cause, Cause::Kernel | Cause::Upstream);
        let ours: u64 = dropped.iter().filter(reached).map(|dropped| dropped.elements).sum();
        let packed = now.received.saturating_sub(began.received);
        SourceStatus {
            stream: facts.stream,
            name: facts.name.clone(),
            spec: facts.spec.clone(),
            elements,
            bytes: counters.bytes.load(Ordering::Relaxed),
            packed_elements: packed,
            packed_bytes: now.received_bytes.saturating_sub(began.received_bytes),
            unknown_losses: counters.unknown.load(Ordering::Relaxed),
            kernel_drops: counters.dropped(Cause::Kernel),
            interface_drops: counters.interface_drops.load(Ordering::Relaxed),
            perhaps_lost: counters.perhaps_lost.load(Ordering::Relaxed),
            waiting: elements.saturating_sub(packed + ours),
            beyond_elements: excess.elements,
            beyond_bytes: excess.bytes,
            undecodable: counters.undecodable.load(Ordering::Relaxed),
            too_long: counters.too_long.load(Ordering::Relaxed),
            connections: counters.connections.load(Ordering::Relaxed) as u32,
            refused: counters.refused.load(Ordering::Relaxed),
            dropped,
            state: delivery,
            error,
        }
    }
}

/// What all sources together have come to in this run.
pub(super) fn watched(stats: &Stats, sources: &[SourceFacts]) -> Watched {
    let mut all =
        Watched { written: stats.counts.write_bytes + stats.counts.journal_bytes, ..Watched::default() };
    for (began, now, _) in &stats.feeds {
        all.elements += now.received - began.received.min(now.received);
        all.bytes += now.received_bytes - began.received_bytes.min(now.received_bytes);
    }
    for counts in sources.iter().map(SourceFacts::counts) {
        all.lost += counts.lost;
        all.unknown += counts.unknown;
    }
    all
}

fn latency(took: &Took) -> Latency {
    Latency { buckets: took.buckets, worst: took.worst, total: took.total }
}

fn lane(path: &str, counts: &DriverCounts) -> LaneStatus {
    LaneStatus {
        path: path.to_owned(),
        slot_bytes: counts.write_bytes,
        journal_bytes: counts.journal_bytes,
        writes: counts.writes,
        read_bytes: counts.read_bytes,
        reads: counts.reads,
        errors: counts.errors,
        write_latency: latency(&counts.writing),
        read_latency: latency(&counts.reading),
    }
}
