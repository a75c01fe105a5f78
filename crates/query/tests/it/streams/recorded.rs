//! Recorded ring for tests: it wraps, and the capture core fills it in virtual time with JSON lines of all
//! kinds, some of them large, and a second stream between them. Producers give attributes in headers.

use holdfast_attributes::Schema;
use holdfast_base::{Clock, ManualClock, RingId, SlotNo, StreamId, Timestamp};
use holdfast_format::{Flags, Geometry, Key, StreamKind, Summary, check_image};
use holdfast_ingest::{Extraction, Marks, Overload, Parker, Pressure, ProducerSettings, channel};
use holdfast_media::{Buffer, FaultPlan, FaultyDisk, Image, MemoryDisk, Seed};
use holdfast_recorder::capture::{Capture, Phase, Stream};
use holdfast_ring::{Config, Driver, NewRing, NewSchema, NewStream, create, recover};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

const SLOT: u64 = 256 << 10;
const SLOTS: u64 = 20;

/// What elements are made of.
pub(crate) struct Content {
    /// The header that its producer gives with the element of a number.
    pub(crate) header: MakeHeader,
    /// Bytes of what comes between, less than so many.
    pub(crate) noise: u64,
    pub(crate) element: MakeElement,
}

/// Makes the element of a number; the function gives a number below another, at random.
pub(crate) type MakeElement = fn(&mut dyn FnMut(u64) -> u64, u64) -> Vec<u8>;

/// Makes the header of an element, or none.
pub(crate) type MakeHeader = fn(&mut Seed, u64) -> Option<Vec<u8>>;

/// What was recorded.
pub(crate) struct Recorded {
    /// The stream of JSON lines.
    pub(crate) stream: StreamId,
}

const BYTES: u64 = (1 << 20) + 4 * SLOT + SLOTS * SLOT;
const RING: RingId = RingId([7; 16]);
const KEY: Key = Key([9; 32]);

fn geometry() -> Geometry {
    Geometry::for_lane(BYTES, SLOT, Vec::new()).unwrap()
}

/// The summaries of all slots of a ring that is made here, each of which is checked.
pub(crate) fn summaries(image: &Image) -> Vec<Summary> {
    let geometry = geometry();
    let slot = |number: u32| {
        let mut bytes = vec![0; SLOT as usize];
        image.read(geometry.slot_offset(SlotNo(number)), &mut bytes);
        let (_, summary) = check_image(&bytes, &KEY, RING).ok()?;
        Some(summary)
    };
    (0..geometry.slots).filter_map(slot).collect()
}

fn made() -> Image {
    let mut disk = MemoryDisk::new(BYTES);
    let new = NewRing::plain(RING, KEY, "r", geometry());
    create(&mut disk, new, Timestamp(1)).unwrap();
    disk.snapshot()
}

/// A document, or what should have been one.
pub(crate) fn line(pick: &mut dyn FnMut(u64) -> u64, number: u64) -> Vec<u8> {
    if pick(40) == 0 {
        return b"{\"id\":7, \"host\": broken".to_vec();
    }
    let host = ["alpha", "beta", "gamma", "", "a longer name of a host"][pick(5) as usize];
    let id = if pick(50) == 0 { u64::MAX } else { pick(500) };
    let temp = ["-0.0", "0", "21.5", "-40", "1e2", "99.25"][pick(6) as usize];
    let address = match pick(4) {
        0 => "2001:db8::7".to_owned(),
        _ => format!("10.0.0.{}", pick(8)),
    };
    let mut text = format!("{{\"id\":{id},\"t\":{temp},\"addr\":\"{address}\"");
    if pick(5) > 0 {
        let _ = write!(text, ",\"host\":\"{host}\",\"up\":{}", pick(2) == 0);
    }
    if pick(3) == 0 {
        let _ = write!(text, ",\"late\":{}", pick(9) as i64 - 4);
    }
    if pick(60) == 0 {
        let _ = write!(text, ",\"blob\":\"{}\"", "x".repeat(pick(60_000) as usize));
    }
    let _ = write!(text, ",\"n\":{number}}}");
    text.into_bytes()
}

/// What its producer gives with it: a number, and often a text behind it; sometimes no header at all.
pub(crate) fn header(seed: &mut Seed, _number: u64) -> Option<Vec<u8>> {
    let mut header = [&8u16.to_le_bytes()[..], &seed.below(7).to_le_bytes()].concat();
    if seed.below(3) > 0 {
        let mark = ["", "red", "green", "no \u{fffd}"][seed.below(4) as usize];
        header.extend((mark.len() as u16).to_le_bytes());
        header.extend(mark.as_bytes());
    }
    (seed.below(9) > 0).then_some(header)
}

/// No header is there.
pub(crate) fn without_header(_seed: &mut Seed, _number: u64) -> Option<Vec<u8>> {
    None
}

impl Recorded {
    /// Records so many lines with this schema.
    pub(crate) fn make(seed: u64, elements: u64, schema: Option<&Schema>) -> (Image, Self) {
        Self::of(seed, elements, schema, &Content { header, noise: 900, element: line })
    }

    /// Records so many elements of this content with this schema.
    pub(crate) fn of(seed: u64, elements: u64, schema: Option<&Schema>, content: &Content) -> (Image, Self) {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut disk = FaultyDisk::new(made(), FaultPlan::default(), seed, clock.clone());
        let recovered = recover(&mut disk).unwrap();
        let pool = (0..3).map(|_| Buffer::aligned(SLOT as usize).unwrap()).collect();
        let flush = Duration::from_secs(1);
        let config = Config { buffers: 3, flush, writes: 4 };
        let mut driver = Driver::start(disk, recovered, pool, config, clock.now(), clock.wall()).unwrap();
        let text = schema.map(Schema::text);
        let with = schema.zip(text.as_deref());
        let new_schema = with.map(|(schema, text)| NewSchema { text, classes: schema.classes() });
        let mut streams = Vec::new();
        for (name, schema) in [("other", None), ("log", new_schema)] {
            let kind = StreamKind::Bytes;
            let new = NewStream { name, kind, framing: "whole", preamble: None, schema };
            let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
            streams.push(Stream { entry, lost_since: None });
        }
        let pressure = Arc::new(Pressure::default());
        let (mut producers, mut inlets) = (Vec::new(), Vec::new());
        for (number, stream) in streams.iter().enumerate() {
            let extraction = schema.filter(|_| number == 1).map(|schema| Extraction::new(schema, Vec::new()));
            let settings = ProducerSettings {
                batches: 4,
                extraction,
                ..ProducerSettings::new(Overload::DropNewest, stream.next())
            };
            let clock = Arc::new(clock.clone());
            let (producer, inlet) = channel(&settings, clock, Arc::clone(&pressure), Parker::new().waker());
            producers.push(producer);
            inlets.push(inlet);
        }
        let mut capture = Capture::start(driver, &streams, inlets, pressure, flush, &clock).unwrap();
        let step = |capture: &mut Capture<FaultyDisk>| {
            capture.step(clock.now(), Duration::ZERO);
            clock.set(clock.now() + Duration::from_micros(100));
        };
        let mut random = Seed::new(seed);
        for number in 0..elements {
            if random.below(3) == 0 {
                let mut noise = vec![0; random.below(content.noise) as usize];
                random.fill(&mut noise);
                producers[0].stamp();
                producers[0].element(&[], &noise, Marks::default()).unwrap();
                producers[0].idle().unwrap();
            }
            let line = (content.element)(&mut |of| random.below(of), number);
            producers[1].stamp();
            let header = (content.header)(&mut random, number);
            let flags = if header.is_some() { Flags::HEADER } else { Flags::default() };
            let marks = Marks { flags, ..Marks::default() };
            producers[1].element(&header.unwrap_or_default(), &line, marks).unwrap();
            if random.below(8) == 0 {
                producers[1].idle().unwrap();
            }
            step(&mut capture);
        }
        let stream = streams[1].entry.stream;
        let finisher =
            std::thread::spawn(move || producers.iter_mut().for_each(|producer| producer.finish().unwrap()));
        for _ in 0..1_000_000 {
            if capture.phase() == Phase::Done {
                finisher.join().unwrap();
                return (capture.into_disk().seen(), Self { stream });
            }
            step(&mut capture);
            std::thread::yield_now();
        }
        panic!("it does not end");
    }
}
