//! Start of a run, in the order in which failures are cheapest: the ring, its lock, files to be replayed, memory,
//! recovery, the other sources, the socket. Nothing is captured before all of it succeeded, and a ring file that was
//! created for this run is removed if not.

mod attributes;
mod error;
mod limits;
mod memory;
mod pipes;
mod promise;
mod ring;

pub use error::StartError;

use crate::args::Settings;
use crate::capture::{Capture, Stream};
use crate::control::SourceFacts;
use crate::plan::{Needs, Plan, fitting, plan};
use attributes::{Attributes, SourceParts};
use holdfast_base::{ByteSize, Clock, Rate, SystemClock, Timestamp, many, typed};
use holdfast_format::Superblock;
use holdfast_ingest::{
    Inlet, Opened, Parker, Pressure, Producer, ProducerSettings, SourceSpec, StopFlag, channel, open,
};
use holdfast_media::{BufferPool, Footing, InflightLimiter, Lane, LaneOptions, Lock, RealDisk};
use holdfast_protocol::StartMark;
use holdfast_protocol::server::Listener;
use holdfast_protocol::wire::LaneFile;
use holdfast_ring::{
    BirdsEye, Config, Driver, NewStream, Recovered, Refusal, Ring, is_slot_write, recover_for_capture,
    too_small_to_hold,
};
use promise::{Promise, less_that_fits};
use ring::OwnedRing;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use memory::{Cores, lock_memory};

/// Requests that the disk may have at once: slots, commit, scan, tickets and a step of a purge.
const DEPTH: usize = 32;

/// Bytes of slots that are in flight at once: a drive's queue is kept full with small slots, too.
const FLIGHT: u64 = 8 << 20;

/// Everything that a run needs, ready.
pub struct Ready {
    /// The capture core, over the lane.
    pub capture: Capture<Lane>,
    /// The sources, to be run.
    pub sources: Vec<ReadySource>,
    /// The socket.
    pub listener: Listener,
    /// Which file or device the ring is.
    pub file: LaneFile,
    /// The area of tickets.
    pub area: BufferPool,
    /// The memory of the bird's-eye view, and bytes of a slot's place in it.
    pub view: Option<(BufferPool, usize)>,
    /// Arrival time.
    pub clock: Arc<SystemClock>,
    /// Where the capture thread waits.
    pub parker: Parker,
    /// Which thread goes where.
    pub cores: Cores,
    /// What a person should know.
    pub warnings: Vec<String>,
    /// How it began, in a line.
    pub greeting: String,
    /// What is promised, in a line, and whether that holds; nothing on a ring that was made without a profile.
    pub promise: Option<String>,
    /// The memory plan.
    pub plan: Plan,
    /// Slots of the ring.
    pub slots: u32,
}

/// A source that is ready to run.
pub struct ReadySource {
    /// What is known of it.
    pub facts: SourceFacts,
    /// It.
    pub source: Box<dyn holdfast_ingest::Source>,
    /// Where it delivers.
    pub producer: Producer,
}

/// Starts a run. `stop` ends waiting for a `--preamble` that is a pipe of its own.
pub fn start(settings: &Settings, stop: &StopFlag) -> Result<Ready, StartError> {
    let mut warnings = Vec::new();
    limits::open_files();
    let mortal = limits::outlive_others();
    // Until it answers on its socket, commands leave the ring to it.
    let there = holdfast_protocol::locate(&settings.ring).ok();
    let mark = there.as_ref().and_then(|place| StartMark::set(place.superblock.ring));
    if there.is_some() && mark.is_none() {
        warnings.push(format!(
            "{}: cannot mark beside the socket that a recorder starts: commands that have the ring do not give way",
            settings.ring.display()
        ));
    }
    let place = ring::find_or_make(settings, stop, &mut warnings)?;
    let made = place.made.clone();
    let mut started = start_on(settings, stop, place, warnings);
    if let Ok(ready) = &mut started {
        // Who promises nothing need not warn of everything.
        ready.warnings.extend(mortal.filter(|_| ready.promise.is_some()));
    } else if let Some(path) = made {
        // It was made a moment ago and holds nothing.
        let _ = std::fs::remove_file(path);
    }
    started
}

fn start_on(
    settings: &Settings,
    stop: &StopFlag,
    place: OwnedRing,
    mut warnings: Vec<String>,
) -> Result<Ready, StartError> {
    let OwnedRing { device, superblock, made } = place;
    let file = holdfast_protocol::lane_file(&device)
        .map_err(|cause| StartError::Look { path: settings.ring.clone(), cause })?;
    let slot_bytes = superblock.geometry.slot_bytes;
    let cores = Cores::choose(&settings.cpus, &mut warnings);
    let (slots, sources) = (superblock.geometry.slots, settings.sources.len());
    let available = memory::available();
    let (replayed, source_bytes) = open_replayed(settings, stop)?;
    let mut attributes = Attributes::wanted(settings);
    let promise = weighed(settings, &superblock, &mut attributes, &mut warnings)?;
    let needs = Needs {
        slot_bytes,
        slots,
        sources,
        source_bytes: source_bytes + attributes.reserve(settings.memory),
        bound: settings.memory,
        available,
        promised: promise.as_ref().map_or(0, Promise::buffers),
        load: promise.as_ref().map_or((Rate(0), 0), Promise::comes),
        quantum: promise.as_ref().map_or(usize::MAX, Promise::quantum),
        columns: &[],
        column_bytes: 0,
        view: settings.birds_eye,
    };
    let plan = planned(&needs, promise.as_ref(), settings, &superblock, &mut attributes, &mut warnings)?;
    let named = promise.as_ref().map_or(0, Promise::named);
    let nothing = too_small_to_hold(&superblock.geometry, plan.slot_buffers as u32, named);
    warnings.extend(nothing.map(|nothing| format!("{}: {nothing}", settings.ring.display())));
    let mut pool = BufferPool::new(plan.slot_buffers, slot_bytes as usize, Lock::Prefault)?;
    let area = BufferPool::shared(plan.tickets, plan.quantum, Lock::Prefault)?;
    warnings.extend(device.warnings().iter().cloned());
    let mut disk = RealDisk::new(device, &[pool.region(), area.region()], DEPTH);
    let writes = (FLIGHT / slot_bytes).clamp(2, 8) as usize;
    disk.limit_inflight(InflightLimiter::new(is_slot_write, writes));

    let begun = Instant::now();
    let recovered = recover_for_capture(&mut disk)?;
    let greeting = greeting(&recovered, made.as_ref(), begun.elapsed());
    let floor = recovered.last_arrival.unwrap_or(Timestamp::MIN);
    let clock = Arc::new(SystemClock::not_before(floor + Duration::from_nanos(1)));
    warnings.extend(behind(&clock));
    let opened = open_sources(settings, replayed, stop, &mut warnings)?;
    let parker = Parker::new();
    let waker = parker.waker();
    let options = LaneOptions { cpu: cores.lane, realtime: settings.realtime, drops_privileges: true };
    let lane = Lane::spawn(disk, "holdfast-lane", options, Box::new(move || waker.wake()))
        .map_err(|cause| StartError::Thread { what: "the disk", cause })?;
    // The disk's own warnings are among the lane's.
    for warning in lane.warnings() {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    let known = Known::of(&recovered);
    attributes.settle(settings, &known, &opened, &mut warnings)?;
    let buffers = plan.slot_buffers as u32;
    let promise = weighed_with(buffers, settings, &superblock, &mut attributes, &mut warnings)?;
    let plan = settled(&plan, &needs, source_bytes, &mut attributes, &mut warnings)?;
    let buffers = std::iter::from_fn(|| pool.take()).collect();
    let config = Config {
        buffers: plan.slot_buffers as u32,
        flush: settings.flush,
        // One more than may be with the kernel: it follows whichever ends without waiting for the capture thread.
        writes: writes + 1,
    };
    let mut driver = Driver::start(lane, recovered, buffers, config, clock.now(), clock.wall())?;
    let refused = |refused| StartError::NotAdmitted {
        path: settings.ring.clone(),
        refused: Box::new(refused),
        also: None,
        advice: "give it more --memory".to_owned(),
    };
    let view = view(&mut driver, &plan, settings, &mut warnings)?;
    let rates = promise.as_ref().map(|promise| promise.rates(clock.now()));
    let footing = Footing::of(&settings.ring);
    let promise = promise.map(|promise| promise.give(&mut driver, &footing)).transpose().map_err(refused)?;
    let streams = add_streams(driver.ring_mut(), settings, &opened, &known, &attributes, clock.now())?;

    let pressure = Arc::new(Pressure::default());
    let opened = attributes.join(opened, slot_bytes, attributes.reserve(settings.memory));
    let (sources, inlets) = join(settings, opened, &streams, &plan, &clock, &pressure, &parker);
    let slots = superblock.geometry.slots;
    let mut capture = Capture::start(driver, &streams, inlets, pressure, settings.flush, &*clock)
        .map_err(StartError::Attributes)?;
    if let Some(rates) = rates {
        capture.hold_to(rates);
    }
    let listener = Listener::bind(superblock.ring)?;
    Ok(Ready {
        capture,
        sources,
        listener,
        file,
        area,
        view,
        clock,
        parker,
        cores,
        warnings,
        greeting,
        promise,
        plan,
        slots,
    })
}

/// The bird's-eye view, in memory that clients may map.
fn view(
    driver: &mut Driver<Lane>,
    plan: &Plan,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<Option<(BufferPool, usize)>, StartError> {
    let slots = driver.superblock().geometry.slots;
    if plan.view.0 == 0 {
        let said = settings.birds_eye.filter(|said| said.0 > 0);
        warnings.extend(said.map(|said| {
            format!(
                "--birds-eye {said}: no bird's-eye view: {} would not fit into it",
                many(slots.into(), "slot")
            )
        }));
        return Ok(None);
    }
    let mut memory = BufferPool::shared(1, plan.view.0 as usize, Lock::Prefault)?;
    let Some(buffer) = memory.take() else { return Ok(None) };
    let place = BirdsEye::place_bytes(buffer.len(), slots);
    driver.keep_view(BirdsEye::new(buffer, slots));
    Ok(Some((memory, place)))
}

/// A wall clock that was set back.
fn behind(clock: &SystemClock) -> Option<String> {
    let far = clock.now().0.saturating_sub(clock.wall().0) > 1_000_000_000;
    far.then(|| {
        "the wall clock is behind the newest data of the ring: arrival times continue from that data"
            .to_owned()
    })
}

/// Joins the sources to the capture thread.
fn join(
    settings: &Settings,
    opened: Vec<SourceParts>,
    streams: &[Stream],
    plan: &Plan,
    clock: &Arc<SystemClock>,
    pressure: &Arc<Pressure>,
    parker: &Parker,
) -> (Vec<ReadySource>, Vec<Inlet>) {
    let (mut sources, mut inlets) = (Vec::new(), Vec::new());
    for ((settings, (opened, extraction, inference)), stream) in
        settings.sources.iter().zip(opened).zip(streams)
    {
        let shape = ProducerSettings {
            batches: plan.batches,
            batch_bytes: plan.batch_bytes,
            batch_rows: plan.batch_rows,
            overload: opened.overload,
            next: stream.next(),
            leads: opened.leads,
            extraction,
            inference,
            counter: settings.options.counter.clone(),
        };
        let (producer, inlet) =
            channel(&shape, Arc::clone(clock) as Arc<dyn Clock>, Arc::clone(pressure), parker.waker());
        let facts = SourceFacts {
            stream: stream.entry.stream,
            name: settings.name.clone(),
            spec: settings.spec.to_string(),
            counters: Arc::clone(inlet.counters()),
        };
        inlets.push(inlet);
        sources.push(ReadySource { facts, source: opened.source, producer });
    }
    (sources, inlets)
}

/// What is promised, with all attributes; those that nobody asked for give way.
fn weighed(
    settings: &Settings,
    superblock: &Superblock,
    attributes: &mut Attributes,
    warnings: &mut Vec<String>,
) -> Result<Option<Promise>, StartError> {
    let weighed = Promise::weigh(settings, superblock, &attributes.loads());
    let why = match &weighed {
        Err(StartError::NotAdmitted { refused, .. }) => refused.to_string(),
        Err(StartError::TooFewSlots { slots, least, .. }) => {
            format!("{slots} slots are too few: it needs {least}")
        }
        _ => return weighed,
    };
    if !attributes.do_without(why, warnings) {
        return weighed;
    }
    Promise::weigh(settings, superblock, &attributes.loads())
}

/// The same with the attributes that there are now that the ring is known, and the buffers.
fn weighed_with(
    buffers: u32,
    settings: &Settings,
    superblock: &Superblock,
    attributes: &mut Attributes,
    warnings: &mut Vec<String>,
) -> Result<Option<Promise>, StartError> {
    let promise = weighed(settings, superblock, attributes, warnings)?;
    if promise.is_some() && attributes.are_inferred() {
        return Err(StartError::AutoPromised);
    }
    match promise.as_ref().and_then(|promise| promise.with_only(buffers)) {
        Some(refused) if attributes.do_without(refused, warnings) => {
            weighed(settings, superblock, attributes, warnings)
        }
        _ => Ok(promise),
    }
}

/// The memory plan. A guarantee has all its buffers, or there is none; attributes that nobody asked for give way.
fn planned(
    needs: &Needs<'_>,
    promise: Option<&Promise>,
    settings: &Settings,
    superblock: &Superblock,
    attributes: &mut Attributes,
    warnings: &mut Vec<String>,
) -> Result<Plan, StartError> {
    let column_bytes = attributes.memory(needs.slot_bytes, warnings)?;
    let columns = &attributes.classes();
    let needs = &Needs { columns, column_bytes, ..*needs };
    let loads = attributes.loads();
    let short = |bound, advice: String, fits: &dyn Fn(&Promise) -> bool| {
        let refused = promise?.with_only(fitting(needs, bound))?;
        let less = less_that_fits(settings, superblock, &loads, fits);
        let advice = less.map_or_else(|| advice.clone(), |less| format!("{advice}, or declare less: {less}"));
        Some(StartError::PromisedMemory { path: settings.ring.clone(), refused: Box::new(refused), advice })
    };
    let plan = match plan(needs) {
        Ok(plan) => plan,
        Err(little) if attributes.do_without(little, warnings) => {
            return planned(needs, promise, settings, superblock, attributes, warnings);
        }
        Err(little) => {
            let advice = format!("use --memory {} or more", typed(little.least()));
            let fits = |less: &Promise| {
                plan(&Needs { promised: less.buffers(), load: less.comes(), ..*needs }).is_ok()
            };
            let refused = needs.bound.and_then(|bound| short(bound, advice, &fits));
            return Err(refused.unwrap_or(StartError::Memory(little)));
        }
    };
    let available = needs.available;
    if available.0 > 0 && plan.total > available {
        let advice = format!("it needs {} of memory, and {available} is available", plan.total.shown_up());
        let fits = |less: &Promise| less.with_only(fitting(needs, available)).is_none();
        if let Some(refused) = short(available, advice, &fits) {
            return Err(refused);
        }
    }
    Ok(plan)
}

/// The plan with the attributes that there are now that the ring is known; there are as many buffers as before.
fn settled(
    plan: &Plan,
    needs: &Needs<'_>,
    source_bytes: u64,
    attributes: &mut Attributes,
    warnings: &mut Vec<String>,
) -> Result<Plan, StartError> {
    let column_bytes = attributes.memory(needs.slot_bytes, warnings)?;
    let source_bytes = source_bytes + attributes.reserve(needs.bound);
    let columns = &attributes.classes();
    let plan = plan.with_columns(&Needs { source_bytes, columns, column_bytes, ..*needs });
    match needs.bound.filter(|bound| plan.total > *bound) {
        Some(bound) => Err(StartError::KeptAttributes { bound, least: plan.total.shown_up() }),
        None => Ok(plan),
    }
}

/// What was on the ring, as far as it matters after the recovered state has gone into the driver.
struct Known {
    crashed: bool,
    last: Option<Timestamp>,
    streams: Vec<KnownStream>,
}

struct KnownStream {
    name: String,
    kind: holdfast_format::StreamKind,
    framing: String,
    preamble: Option<Vec<u8>>,
    schema: String,
    created: Timestamp,
}

impl Known {
    fn of(recovered: &Recovered) -> Self {
        let streams = recovered.streams().iter().map(|stream| KnownStream {
            name: stream.name.clone(),
            kind: stream.kind,
            framing: stream.framing.clone(),
            preamble: recovered.preamble(stream.id, stream.preamble).map(<[u8]>::to_vec),
            schema: stream.schema_text.clone(),
            created: stream.created,
        });
        Self { crashed: recovered.after_crash(), last: recovered.last_arrival, streams: streams.collect() }
    }

    /// A stream's schema as text, if it has one.
    fn schema(&self, name: &str) -> Option<&str> {
        let stream = self.streams.iter().find(|stream| stream.name == name)?;
        (!stream.schema.is_empty()).then_some(&stream.schema)
    }

    /// Since when a stream's data may be lost.
    fn lost_since(&self, name: &str) -> Option<Timestamp> {
        let stream = self.streams.iter().find(|stream| stream.name == name)?;
        self.crashed.then(|| self.last.unwrap_or(stream.created))
    }
}

/// Opens files that are replayed, and tells what memory all sources take. Such files are looked through first, and how
/// much they take is then known before any is distributed; nothing is lost while they wait.
fn open_replayed(settings: &Settings, stop: &StopFlag) -> Result<(Vec<Option<Opened>>, u64), StartError> {
    let mut bytes = 0;
    let mut all = Vec::new();
    for source in &settings.sources {
        let replayed = matches!(source.spec, SourceSpec::Replay(_));
        let opened = replayed.then(|| open(&source.spec, &source.options, stop)).transpose()?;
        bytes += memory::of_source(&source.spec, &source.options);
        bytes += opened.as_ref().map_or(0, |opened| opened.memory);
        all.push(opened);
    }
    Ok((all, bytes))
}

/// Opens all others, too.
fn open_sources(
    settings: &Settings,
    replayed: Vec<Option<Opened>>,
    stop: &StopFlag,
    warnings: &mut Vec<String>,
) -> Result<Vec<Opened>, StartError> {
    pipes::refuse_shared(&settings.sources)?;
    let mut all = Vec::new();
    for (source, replayed) in settings.sources.iter().zip(replayed) {
        let opened = replayed.map_or_else(|| open(&source.spec, &source.options, stop), Ok)?;
        warnings.extend(opened.notes.iter().cloned());
        all.push(opened);
    }
    Ok(all)
}

/// The streams of this run: the sources' first, and after a crash all others too, for their gaps.
fn add_streams(
    ring: &mut Ring,
    settings: &Settings,
    opened: &[Opened],
    known: &Known,
    attributes: &Attributes,
    now: Timestamp,
) -> Result<Vec<Stream>, StartError> {
    let mut streams = Vec::new();
    let refused = |new: &NewStream<'_>, source: Option<&SourceSpec>| {
        let (origin, kind) = (source.cloned(), new.kind);
        let (stream, own) = (new.name.to_owned(), new.preamble.map_or(0, <[u8]>::len) as u64);
        move |refusal| match (refusal, origin) {
            (Refusal::JournalFull { bytes, budget }, Some(origin)) if own > 0 => StartError::Preamble {
                stream,
                origin,
                kind,
                bytes: ByteSize(own),
                budget: ByteSize(budget),
                others: ByteSize(bytes.saturating_sub(own)),
            },
            (refusal, _) => StartError::Stream { stream, refusal },
        }
    };
    for (at, (source, opened)) in settings.sources.iter().zip(opened).enumerate() {
        let framing = opened.framing.to_string();
        // Until another comes with the input, the last one stays in force.
        let last = known.streams.iter().find(|k| opened.leads && k.name == source.name);
        let preamble = opened.preamble.as_deref().or(last.and_then(|k| k.preamble.as_deref()));
        let schema = attributes.told(at);
        let new = NewStream { name: &source.name, kind: opened.kind, framing: &framing, preamble, schema };
        let entry = ring.add_stream(&new, now).map_err(refused(&new, Some(&source.spec)))?;
        streams.push(Stream { entry, lost_since: known.lost_since(&source.name) });
    }
    let others =
        known.streams.iter().filter(|k| known.crashed && settings.sources.iter().all(|s| s.name != k.name));
    for other in others {
        let preamble = other.preamble.as_deref();
        let new = NewStream {
            name: &other.name,
            kind: other.kind,
            framing: &other.framing,
            preamble,
            schema: None,
        };
        let entry = ring.add_stream(&new, now).map_err(refused(&new, None))?;
        streams.push(Stream { entry, lost_since: known.lost_since(&other.name) });
    }
    Ok(streams)
}

/// What was found, in a line.
fn greeting(recovered: &Recovered, made: Option<&PathBuf>, took: Duration) -> String {
    let superblock = &recovered.superblock;
    let geometry = &superblock.geometry;
    let size = holdfast_base::ByteSize(geometry.lane_bytes);
    let slot = holdfast_base::ByteSize(geometry.slot_bytes);
    let what =
        format!("ring {} ({size}, {} of {slot})", superblock.name, many(geometry.slots.into(), "slot"));
    if made.is_some() {
        return format!("{what}: made");
    }
    let data = recovered.data().count() as u64;
    let are = if data == 1 { "is" } else { "are" };
    let data = many(data, "slot");
    let took = took.as_millis();
    if recovered.after_crash() {
        let rebuilt = recovered.rebuilt.len();
        return format!(
            "{what}: the last run was cut off; {data} of data {are} there, {rebuilt} more rebuilt from the journal; recovered in {took} ms"
        );
    }
    format!("{what}: {data} of data {are} there; opened in {took} ms")
}
