//! Tests of the reads that a scan requests: all reads of a slot are requested before the scan waits for
//! one, since a reading turn ends when nothing waits. A pruned slot takes no read.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use holdfast_attributes::Schema;
use holdfast_base::{ByteSize, StreamId};
use holdfast_query::ring_source::{OpenRing, ReaderPool, RingSource};
use holdfast_query::stream::{ScanDiagnostics, SkippedData, StreamTable};
use holdfast_query::{Limits, ask, session};
use holdfast_reader::RingReader;
use holdfast_sim::fixture::{Behaviour, FakeRecorder, Spoil, TestRing, bytes};
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A ring of some slots.
fn test_ring() -> TestRing {
    let mut test_ring = TestRing::new(64 << 10, 30, 1);
    for number in 0..10_000 {
        test_ring.element(0, 1000 + number, None, b"", &bytes(number as u64, 20), 1);
    }
    test_ring
}

/// The number that answers a question about the ring's only stream, `s0`.
fn asked(recorder: &FakeRecorder, question: &str) -> i64 {
    asked_of(recorder, Schema::default(), question)
}

/// The same of a stream with attributes.
fn asked_of(recorder: &FakeRecorder, schema: Schema, question: &str) -> i64 {
    let socket = recorder.socket().to_owned();
    let ring: OpenRing = Arc::new(move || RingReader::connect(&socket));
    let readers = ReaderPool::new(&ring);
    let diagnostics = Arc::new(ScanDiagnostics::default());
    let source = RingSource::new(readers, HashMap::new(), Arc::clone(&diagnostics));
    let table = StreamTable::new("s0", StreamId(1), schema, Arc::new(source));
    let limits = Limits {
        memory: ByteSize::mib(64),
        spill: None,
        spill_bytes: ByteSize::mib(1),
        threads: NonZeroUsize::new(2).unwrap(),
    };
    let context = session(&limits, Vec::new(), vec![("s0".to_owned(), Arc::new(table))]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let found = runtime.block_on(async { ask(&context, question).await?.collect().await });
    assert_eq!(diagnostics.take(), SkippedData::default(), "{question}");
    found.unwrap()[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn chunks_and_directory_are_asked_for_together() {
    // No view tells of a head, so that nothing can be asked for before a slot's turn.
    let recorder = FakeRecorder::start(test_ring(), Behaviour { together: 2, ..Behaviour::default() });
    assert_eq!(asked(&recorder, "select count(*) from s0 where size > 10"), 10_000);
}

#[test]
fn slots_that_the_view_excludes_take_neither_reads_nor_pins() {
    let behaviour = Behaviour { view: Some(|_| {}), pins: Some(1), ..Behaviour::default() };
    let mut test_ring = test_ring();
    test_ring.seal();
    let recorder = FakeRecorder::start(test_ring, behaviour);
    assert_eq!(asked(&recorder, "select count(*) from s0 where ordinal = 5000"), 1);
    let reads = || recorder.reads.lock().unwrap().clone();
    let (before, slots) = (reads(), reads().into_iter().collect::<BTreeSet<u64>>());
    assert_eq!(slots.len(), 1, "slots that were read: {slots:?}");
    // When the question was planned, and when there was something to read.
    assert_eq!(recorder.pins_asked.load(Ordering::SeqCst), 2);
    assert_eq!(asked(&recorder, "select count(*) from s0 where ordinal = 50000"), 0);
    assert_eq!((reads(), recorder.pins_asked.load(Ordering::SeqCst)), (before, 3));
}

#[test]
fn of_the_open_slot_columns_are_taken_and_payload_of_hits() {
    const SCHEMA: &str = "n:uint=at:0:u32le";
    let mut test_ring = TestRing::new(1 << 20, 30, 2);
    test_ring.column(0, SCHEMA, |data| u64::from(data[0]) | u64::from(data[1]) << 8);
    for number in 0..6000u32 {
        let mut data = bytes(number.into(), 100);
        data[..4].copy_from_slice(&number.to_le_bytes());
        test_ring.element((number % 2) as usize, 1000 + i64::from(number), None, b"", &data, 1);
    }
    let open = test_ring.sequence;
    assert_eq!(open, 1, "nothing is sealed yet");
    let recorder = FakeRecorder::start(test_ring, Behaviour::default());
    let schema = || Schema::typed([SCHEMA]).unwrap();
    let asked = |question: &str| asked_of(&recorder, schema(), question);
    let reads = || recorder.reads.lock().unwrap().len();
    assert_eq!(asked("select count(*) from s0 where n between 1000 and 1999"), 500);
    assert_eq!(asked("select cast(max(ordinal) as bigint) from s0 where n <= 4000"), 2000);
    assert_eq!(asked("select count(*) from s0 where time is not null"), 3000);
    assert_eq!(reads(), 0, "it takes no payload");
    assert_eq!(asked("select count(*) from s0 where n = 5998 and u32le(payload, 0) = 5998"), 1);
    let of_one = reads();
    assert!((1..=2).contains(&of_one), "the check blocks of one hit: {of_one}");
    assert_eq!(asked("select count(*) from s0 where u32le(payload, 0) < 9000"), 3000);
    assert!(reads() > 2 * of_one);
}

/// A ring of elements of `size` bytes that begin with a number, and a recorder of it.
struct Numbers(FakeRecorder);

impl Numbers {
    const SCHEMA: &str = "n:uint=at:0:u32le";

    fn start(seed: u64, count: u32, size: usize, number: impl Fn(u32) -> u32) -> Self {
        Self(Self::recorder((1 << 20, seed), (count, size), number, Some(|_| {})))
    }

    /// With slots of a size, and a view of which something becomes.
    fn recorder(
        (slot_bytes, seed): (u64, u64),
        (count, size): (u32, usize),
        number: impl Fn(u32) -> u32,
        view: Option<Spoil>,
    ) -> FakeRecorder {
        let mut test_ring = TestRing::new(slot_bytes, seed, 1);
        test_ring.column(0, Self::SCHEMA, |data| u32::from_le_bytes(data[..4].try_into().unwrap()).into());
        for at in 0..count {
            let mut data = bytes(at.into(), size);
            data[..4].copy_from_slice(&number(at).to_le_bytes());
            test_ring.element(0, 1000 + i64::from(at), None, b"", &data, 1);
        }
        test_ring.seal();
        FakeRecorder::start(test_ring, Behaviour { view, ..Behaviour::default() })
    }

    /// Asks; how many bytes were read for the answer.
    fn bytes(&self, question: &str, answer: i64) -> u64 {
        let before = self.0.bytes.load(Ordering::SeqCst);
        assert_eq!(asked_of(&self.0, Schema::typed([Self::SCHEMA]).unwrap(), question), answer, "{question}");
        (self.0.bytes.load(Ordering::SeqCst) - before) as u64
    }
}

#[test]
fn of_a_column_that_rises_few_blocks_are_read() {
    let ring = Numbers::start(30, 60_000, 20, |at| at);
    let all = ring.bytes("select count(*) from s0 where n % 2 = 0", 30_000);
    let one = ring.bytes("select count(*) from s0 where n = 31234", 1);
    let some = ring.bytes("select count(*) from s0 where n between 31000 and 31999", 1000);
    let rows = ring.bytes("select cast(max(ordinal) as bigint) from s0 where n in (31234, 31235)", 31_235);
    // Of 4 KiB each: bounds of blocks, and a block or two. For a single value the filter, too, for which this view has no room; and
    // where rows are needed the directory, and a chunk.
    assert!(all >= 80 << 10 && some <= 12 << 10, "{all} {some}");
    assert!(one <= some + (20 << 10) && rows <= one + (16 << 10), "{one} {rows}");
}

#[test]
fn of_a_value_that_is_in_one_place_few_blocks_are_read() {
    // Odd ones, each where its place says, among even ones that are everywhere.
    const NEEDLES: [(u32, u32); 5] =
        [(17_000, 101), (34_000, 501), (51_000, 901), (68_000, 1301), (85_000, 1701)];
    let needle = |at: u32| NEEDLES.iter().find(|(place, _)| *place == at).map(|(_, needle)| *needle);
    let ring = Numbers::start(31, 90_000, 8, |at| needle(at).unwrap_or(at * 7919 % 1000 * 2));
    let all = ring.bytes("select count(*) from s0 where n % 2 = 0", 89_995);
    let count =
        |(_, needle): &(u32, u32)| ring.bytes(&format!("select count(*) from s0 where n = {needle}"), 1);
    let each: Vec<u64> = NEEDLES.iter().map(count).collect();
    // Some may share their bucket with others, and take a whole column; of the rest it is filters, the places of values, and a stretch of eight
    // blocks.
    let whole = ring.bytes("select count(*) from s0 where n = 500", 90);
    let few = each.iter().filter(|one| **one <= whole / 3).count();
    assert!(all >= 100 << 10 && whole >= 100 << 10 && few >= 3, "{all} {whole} {each:?}");
    let with_rows = |(place, needle): &&(u32, u32)| {
        let question = format!("select cast(max(ordinal) as bigint) from s0 where n = {needle}");
        ring.bytes(&question, i64::from(*place)) <= 64 << 10
    };
    assert!(NEEDLES.iter().filter(with_rows).count() >= 3);
}

// What a view tells is checked (promise 5): one that is damaged, of slots that were there before, or cut off is as good as none.
#[test]
fn whatever_becomes_of_the_view_answers_are_the_same() {
    const COUNT: u32 = 12_000;
    // Another thousand every 500 elements, which bounds tell, and where in it filters do.
    let number = |at: u32| at / 500 * 1000 + at.wrapping_mul(7919) % 1000;
    let spoils: [Option<Spoil>; 9] = [
        None,
        Some(|_| {}),
        // The sequence of the slot that it is of, its length, a bit of each part.
        Some(|place| place[0] ^= 1),
        Some(|place| place[8..12].fill(0xff)),
        Some(|place| place.iter_mut().step_by(64).for_each(|byte| *byte ^= 4)),
        Some(|place| place.iter_mut().skip(300).for_each(|byte| *byte = !*byte)),
        Some(|place| place.iter_mut().skip(300).for_each(|byte| *byte = 0)),
        Some(|place| place.fill(0)),
        Some(|place| place.rotate_left(1)),
    ];
    let mut read = Vec::new();
    for (view, spoil) in spoils.into_iter().zip(0..) {
        let recorder = Numbers::recorder((64 << 10, 70), (COUNT, 100), number, view);
        let asked = |question: &str| asked_of(&recorder, Schema::typed([Numbers::SCHEMA]).unwrap(), question);
        let count = |is: &dyn Fn(u32) -> bool| (0..COUNT).filter(|at| is(number(*at))).count() as i64;
        let needle = number(7777);
        for (condition, wanted) in [
            (format!("n = {needle}"), count(&|n| n == needle)),
            (format!("n in (3, {needle}, 999999)"), count(&|n| n == 3 || n == needle)),
            ("n between 4100 and 4300".to_owned(), count(&|n| (4100..=4300).contains(&n))),
            ("n > 30000".to_owned(), 0),
            (
                "n < 2500 and ordinal >= 900".to_owned(),
                (900..COUNT).filter(|at| number(*at) < 2500).count() as i64,
            ),
        ] {
            let question = format!("select count(*) from s0 where {condition}");
            assert_eq!(asked(&question), wanted, "{question}, spoilt as {spoil}");
        }
        read.push(recorder.reads.lock().unwrap().len());
    }
    // One that is sound saves reads; the others are found out.
    assert!(read[1] < read[0] / 2 && read[2..].iter().all(|reads| *reads > read[1]), "{read:?}");
}
