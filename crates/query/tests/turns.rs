//! A search asks a recorder for all of a slot that it is going to read before it waits for any of that: a turn at reading is over as
//! soon as nothing waits, and comes back when all others have had theirs. Of what it passes over it asks for nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../link/tests/common/mod.rs"]
mod common;

use common::recorder::{FakeRecorder, Mood};
use common::{Maker, bytes};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use holdfast_attributes::Schema;
use holdfast_base::{ByteSize, StreamId};
use holdfast_link::RingReader;
use holdfast_query::stream::{OpenRing, StreamTable, Trouble, Ways};
use holdfast_query::{Limits, ask, session};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A ring of some slots.
fn maker() -> Maker {
    let mut maker = Maker::new(64 << 10, 30, 1);
    for number in 0..10_000 {
        maker.element(0, 1000 + number, None, b"", &bytes(number as u64, 20), 1);
    }
    maker
}

/// The number that answers a question about the ring's only stream, `s0`.
fn asked(recorder: &FakeRecorder, question: &str) -> i64 {
    let socket = recorder.socket().to_owned();
    let ring: OpenRing = Arc::new(move || RingReader::connect(&socket));
    let schema = Schema::default();
    let ways = Ways::new(&ring);
    let table = StreamTable::new("s0", StreamId(1), schema, Vec::new(), ways, Arc::new(Trouble::default()));
    let limits = Limits {
        memory: ByteSize::mib(64),
        spill: None,
        spill_bytes: ByteSize::mib(1),
        threads: NonZeroUsize::new(2).unwrap(),
    };
    let context = session(&limits, Vec::new(), vec![("s0".to_owned(), Arc::new(table))]).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let found = runtime.block_on(async { ask(&context, question).await?.collect().await });
    found.unwrap()[0].column(0).as_primitive::<Int64Type>().value(0)
}

#[test]
fn chunks_and_directory_are_asked_for_together() {
    // No view tells of a head, so that nothing can be asked for before a slot's turn.
    let recorder = FakeRecorder::start(maker(), Mood { together: 2, ..Mood::default() });
    assert_eq!(asked(&recorder, "select count(*) from s0 where size > 10"), 10_000);
}

#[test]
fn slots_that_the_view_excludes_take_neither_reads_nor_pins() {
    let mood = Mood { view: Some(|_| {}), pins: Some(1), ..Mood::default() };
    let mut maker = maker();
    maker.seal();
    let recorder = FakeRecorder::start(maker, mood);
    assert_eq!(asked(&recorder, "select count(*) from s0 where ordinal = 5000"), 1);
    let reads = || recorder.reads.lock().unwrap().clone();
    let (before, slots) = (reads(), reads().into_iter().collect::<BTreeSet<u64>>());
    assert_eq!(slots.len(), 1, "slots that were read: {slots:?}");
    // When the question was planned, and when there was something to read.
    assert_eq!(recorder.pins_asked.load(Ordering::SeqCst), 2);
    assert_eq!(asked(&recorder, "select count(*) from s0 where ordinal = 50000"), 0);
    assert_eq!((reads(), recorder.pins_asked.load(Ordering::SeqCst)), (before, 3));
}
