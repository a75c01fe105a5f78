//! Tests of attributes of a batch's elements (promise 5): however elements are split, however large batches are, and
//! whatever is dropped or carried over, each cell equals that of the whole element read alone.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::Collector;
use common::cells::{alone, buffers};
use holdfast_attributes::{Element, Extractor, MAX_DATA, Schema};
use holdfast_base::{ByteSize, ManualClock, Ordinal, Timestamp};
use holdfast_ingest::{
    AutoLimits, AutoSchema, Cause, Cutter, Extraction, Framing, Inlet, Marks, Overload, Parker, Pressure,
    Producer, ProducerSettings, Tail, channel,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Of every class, with and without an event time, at fixed places only, and of documents.
const SCHEMAS: [&[&str]; 5] = [
    &["a:uint=at:0:u32le:bits3..17", "b:binary=at:1:bytes3", "c:ip=at:4:ipv4", "d:float=at:8:f32le"],
    &["a:uint=at:0:u8", "event_time:time=at:1:u16be,unit=ms", "b:text=at:3:text4"],
    &["name:text=json:name", "n:int=json:n", "deep:bool=json:a[1].b", "first:uint=at:0:u8"],
    &["event_time:time=json:t", "name:text=json:name"],
    &["event_time:time=given", "first:uint=at:0:u8", "name:text=given", "who:ip=given", "n:float=given"],
];

const LINKS: [u16; 3] = [1, 101, 113];

fn rig(schema: &Schema, overload: Overload, rows: usize) -> (Producer, Inlet) {
    let settings = ProducerSettings {
        batches: 4,
        batch_bytes: ByteSize(0),
        batch_rows: rows,
        extraction: Some(Extraction::new(schema, LINKS.to_vec())),
        ..ProducerSettings::new(overload, Ordinal(0))
    };
    let clock = Arc::new(ManualClock::new(Timestamp(1000)));
    channel(&settings, clock, Arc::new(Pressure::default()), Parker::new().waker())
}

/// An element that may be a document, and may be much longer than what is looked at.
fn payload(number: usize, size: usize, document: bool) -> Vec<u8> {
    let filler = (0..size).map(|at| b'a' + ((at * 7 + number * 13) % 26) as u8);
    if !document {
        return filler.map(|byte| byte.wrapping_add((number % 3) as u8 * 0x55)).collect();
    }
    let name: String = filler.map(char::from).collect();
    let deep = number.is_multiple_of(2);
    match number % 7 {
        5 => format!("{{\"n\":{number},\"name\":\"{name}").into_bytes(),
        _ => format!("{{\"n\":-{number},\"t\":{number}.5,\"a\":[0,{{\"b\":{deep}}}],\"name\":\"{name}\"}}")
            .into_bytes(),
    }
}

/// What a producer gives with an element: sometimes less than all, wrong, or nothing at all.
fn header(number: usize) -> Option<Vec<u8>> {
    let name = "n".repeat(number * 37 % 1100);
    let values: [&[u8]; 4] =
        [&(number as i64).to_le_bytes(), name.as_bytes(), &[10, 0, 0, number as u8], &1.5f64.to_le_bytes()];
    let mut header = Vec::new();
    for (at, value) in values.iter().enumerate().take(5 - number % 3) {
        let len = if (number + at).is_multiple_of(5) { u16::MAX } else { value.len() as u16 };
        header.extend(len.to_le_bytes());
        header.extend(value.iter().filter(|_| len < u16::MAX));
    }
    match number % 11 {
        3 => None,
        5 => Some(Vec::new()),
        7 => Some(header[..header.len() - 1].to_vec()),
        _ => Some(header),
    }
}

/// Compares every recorded element's cells, event time and counts with those that it has alone.
fn check(collector: &Collector, producer: &Producer, schema: &Schema, link: impl Fn(u16) -> Option<u16>) {
    assert_eq!(collector.cells.len(), collector.elements.len());
    let mut extractor = Extractor::new(schema);
    let (mut undecodable, mut too_long) = (0, 0);
    for (element, cells) in collector.elements.iter().zip(&collector.cells) {
        let size = element.data.len() as u64;
        let whole = Element {
            data: &element.data[..element.data.len().min(MAX_DATA)],
            size,
            original_size: size + u64::from(element.extra),
            link_type: link(element.tag),
            header: element.header(),
        };
        let mut wanted = buffers(schema);
        let outcome = extractor.extract(&whole, &mut wanted);
        assert_eq!(cells, &alone(&wanted), "element {}", element.ordinal);
        if schema.event_time().is_some() {
            assert_eq!(element.event, outcome.event_time.map(|time| time.0), "element {}", element.ordinal);
        }
        undecodable += u64::from(outcome.undecodable);
        too_long += u64::from(outcome.too_long);
    }
    let counters = producer.counters();
    assert_eq!(counters.undecodable.load(Ordering::Relaxed), undecodable);
    assert_eq!(counters.too_long.load(Ordering::Relaxed), too_long);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn cells_of_a_stream_are_those_of_its_elements_one_by_one(
        which in 0..SCHEMAS.len(),
        fixed in prop::option::of(1..40usize),
        rows in prop_oneof![20..60usize, Just(4096)],
        sizes in prop::collection::vec(prop_oneof![8 => 0usize..60, 2 => 0usize..6000, 1 => 0usize..200_000], 1..90),
        reads in prop::collection::vec(prop_oneof![1usize..100, 1usize..9000, 1usize..200_000], 1..6),
        acts in prop::collection::vec(0..6u8, 1..12),
        block in any::<bool>(),
    ) {
        let schema = Schema::typed(SCHEMAS[which]).unwrap();
        let framing = match fixed {
            _ if which == 4 => Framing::Attr32,
            Some(size) => Framing::Fixed(size as u64),
            None => Framing::Lines,
        };
        let mut stream = Vec::new();
        for (number, size) in sizes.iter().enumerate() {
            match framing {
                Framing::Fixed(size) => (0..20).for_each(|n| {
                    framing.restore(&mut stream, None, &payload(number + n, size as usize, false), 0);
                }),
                Framing::Attr32 => {
                    // A tag where there is no header: one that the frame has no room for.
                    framing.restore(&mut stream, header(number).as_deref(), &payload(number, *size, false), u16::MAX);
                }
                _ => framing.restore(&mut stream, None, &payload(number, *size, which >= 2), 0),
            }
        }
        let overload = if block { Overload::Block } else { Overload::DropNewest };
        let (mut producer, mut inlet) = rig(&schema, overload, rows);
        let mut collector = Collector::default();
        let mut cutter = Cutter::new(framing);
        let (mut reads, mut acts) = (reads.iter().cycle(), acts.iter().cycle());
        let mut rest = &stream[..];
        while !rest.is_empty() {
            if block {
                collector.drain(&mut inlet, false);
                collector.let_go(&mut inlet, usize::MAX);
            }
            let space = producer.space(&cutter).unwrap();
            // Who waits for batches is woken by nobody here: of small ones one read must not fill them all.
            let most = if block && rows < 4096 { 16 } else { *reads.next().unwrap() };
            let n = space.len().min(rest.len()).min(most);
            space[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            producer.feed(n, &mut cutter).unwrap();
            match acts.next().unwrap() {
                0 => producer.flush().unwrap(),
                1 => { collector.drain(&mut inlet, true); }
                2 => collector.let_go(&mut inlet, 2),
                3 if !producer.in_element() => producer.lost_before(3, Timestamp(0)),
                _ => { collector.drain(&mut inlet, false); }
            }
        }
        collector.drain(&mut inlet, false);
        collector.let_go(&mut inlet, usize::MAX);
        match cutter.finish() {
            Tail::Ends(tag) => producer.end_element(tag).unwrap(),
            _ => producer.abort_element(Cause::Aborted),
        }
        producer.finish().unwrap();
        collector.drain(&mut inlet, false);
        check(&collector, &producer, &schema, |_| None);
    }

    #[test]
    fn cells_of_packets_are_those_of_each_with_its_own_link(
        packets in prop::collection::vec(
            (prop_oneof![8 => 0usize..200, 1 => 0usize..200_000], 0..4u16, 0..2000u32, 0..30usize, any::<[u8; 3]>()), 1..80
        ),
        acts in prop::collection::vec(0..4u8, 1..12),
    ) {
        let schema = Schema::typed(["packets"]).unwrap();
        let (mut producer, mut inlet) = rig(&schema, Overload::DropNewest, 40);
        let mut collector = Collector::default();
        let mut acts = acts.iter().cycle();
        for (size, tag, extra, meta, noise) in packets {
            // IPv4 in Ethernet, bare, or behind a cooked header; often cut, and sometimes none of that.
            let mut data = match tag {
                0 => [[2; 12].as_slice(), &[8, 0]].concat(),
                1 => Vec::new(),
                _ => [[0; 14].as_slice(), &[8, 0]].concat(),
            };
            data.extend([0x45, 0, 0, 60, 0, 0, 0, 0, 64, if noise[0] % 2 == 0 { 6 } else { 17 }, 0, 0, 10, 0, 0, noise[1], 10, 0, 0, noise[2]]);
            data.extend([noise[0], 1, 0, 53].iter().chain(&noise).copied().cycle().take(200_000));
            data.truncate(size);
            let marks = Marks { tag, extra, ..Marks::default() };
            producer.stamp();
            producer.element(&vec![9; meta], &data, marks).unwrap();
            match acts.next().unwrap() {
                0 => producer.flush().unwrap(),
                1 => { collector.drain(&mut inlet, true); }
                2 => collector.let_go(&mut inlet, 2),
                _ => { collector.drain(&mut inlet, false); }
            }
        }
        collector.drain(&mut inlet, false);
        collector.let_go(&mut inlet, usize::MAX);
        producer.finish().unwrap();
        collector.drain(&mut inlet, false);
        check(&collector, &producer, &schema, |tag| LINKS.get(usize::from(tag)).copied());
    }
}

/// A source whose attributes are inferred, behind explicit ones.
struct Inferring {
    producer: Producer,
    inlet: Inlet,
    clock: Arc<ManualClock>,
}

impl Inferring {
    fn new(explicit: &[&str], memory: ByteSize) -> Self {
        let explicit = Schema::typed(explicit).unwrap();
        let limits = AutoLimits { memory, slot_bytes: 1 << 20, others: Vec::new(), sharing: 1 };
        let settings = ProducerSettings {
            batches: 4,
            extraction: (!explicit.is_empty()).then(|| Extraction::new(&explicit, Vec::new())),
            inference: Some(AutoSchema::new(explicit, limits)),
            ..ProducerSettings::new(Overload::Block, Ordinal(0))
        };
        let clock = Arc::new(ManualClock::new(Timestamp(1000)));
        let (producer, inlet) = channel(
            &settings,
            Arc::clone(&clock) as Arc<dyn holdfast_base::Clock>,
            Arc::new(Pressure::default()),
            Parker::new().waker(),
        );
        Self { producer, inlet, clock }
    }

    fn send(&mut self, text: &str) {
        self.producer.stamp();
        self.producer.element(&[], text.as_bytes(), Marks::default()).unwrap();
    }

    /// Sends what is there; the schema that comes with it, elements without cells of it, and all elements.
    fn taken(&mut self) -> (Option<String>, usize, usize) {
        self.producer.idle().unwrap();
        self.all()
    }

    fn all(&mut self) -> (Option<String>, usize, usize) {
        let (mut schema, mut before, mut count) = (None, 0, 0);
        while let Some(mut batch) = self.inlet.take() {
            if let Some(new) = batch.take_attributes() {
                assert!(schema.is_none(), "it comes once");
                assert_eq!(new.classes.len(), batch.cells().len());
                schema = Some(new.text);
            }
            count += batch.rows().len();
            before += if schema.is_none() { batch.rows().len() } else { 0 };
            assert!(batch.cells().iter().all(|column| column.len() == batch.rows().len()));
            self.inlet.give_back(batch);
        }
        (schema, before, count)
    }
}

const MEMORY: ByteSize = ByteSize::mib(64);

#[test]
fn attributes_are_inferred_from_the_first_elements() {
    // By their number, in the middle of all; later fields are none.
    let mut source = Inferring::new(&[], MEMORY);
    (0..900).for_each(|n| source.send(&format!("{{\"n\":{n},\"a\":{{\"b\":\"x\"}}}}")));
    assert_eq!(source.taken(), (None, 900, 900));
    (0..200).for_each(|n| source.send(&format!("{{\"n\":0.5,\"late\":{n}}}")));
    let (schema, before, count) = source.taken();
    assert_eq!(
        (schema.as_deref(), before, count),
        (Some("n:float=json:n\na_b:text=json:a.b\nlate:int=json:late\n"), 0, 200)
    );
    source.send("{\"later\":1}");
    assert_eq!(source.taken(), (None, 1, 1));

    // By the time since the first, with and without another element.
    for another in [false, true] {
        let mut source = Inferring::new(&["own:int=json:n"], MEMORY);
        assert_eq!(source.producer.idle().unwrap(), None);
        source.send("{\"level\":\"info\",\"n\":1}");
        assert_eq!(source.taken(), (None, 1, 1));
        assert!(source.producer.idle().unwrap().is_some(), "it calls again");
        source.clock.set(Timestamp(1000 + 1_000_000_000));
        if another {
            source.send("{\"level\":\"warn\"}");
        }
        let (schema, _, count) = source.taken();
        assert_eq!(schema.as_deref(), Some("own:int=json:n\nlevel:text=json:level\n"));
        assert_eq!(count, usize::from(another));
        assert_eq!(source.producer.idle().unwrap(), None);
    }

    // At the end of the source.
    let mut source = Inferring::new(&[], MEMORY);
    source.send("{\"n\":null,\"up\":true}");
    source.producer.finish().unwrap();
    assert_eq!(source.all().0.as_deref(), Some("up:bool=json:up\n"));
    let mut source = Inferring::new(&[], MEMORY);
    source.producer.finish().unwrap();
    assert_eq!(source.all(), (None, 0, 0));
}

#[test]
fn inference_goes_on_until_there_is_a_field_and_stays_within_its_memory() {
    let mut source = Inferring::new(&[], MEMORY);
    (0..2500).for_each(|_| source.send("no document"));
    assert_eq!(source.taken(), (None, 2500, 2500));
    assert_eq!(source.producer.counters().undecodable.load(Ordering::Relaxed), 2500);
    source.send("{\"n\":1}");
    source.producer.finish().unwrap();
    assert_eq!(source.all().0.as_deref(), Some("n:int=json:n\n"));

    let fields: Vec<String> = (0..60).map(|n| format!("\"text{n}\":\"x\"")).collect();
    let document = format!("{{{}}}", fields.join(","));
    let inferred = |memory| {
        let mut source = Inferring::new(&[], memory);
        source.send(&document);
        source.producer.finish().unwrap();
        source.all().0.map_or(0, |schema| schema.lines().count())
    };
    let (little, much) = (inferred(ByteSize::mib(8)), inferred(ByteSize::mib(512)));
    assert!(little > 0 && little < 20 && much == 60, "{little} and {much}");
}
