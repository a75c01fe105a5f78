//! A search asks a recorder for all of a slot that it is going to read before it waits for any of that: a turn at reading is over as
//! soon as nothing waits, and comes back when all others have had theirs.
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
use std::num::NonZeroUsize;
use std::sync::Arc;

#[test]
fn chunks_and_directory_are_asked_for_together() {
    let mut maker = Maker::new(64 << 10, 30, 1);
    for number in 0..10_000 {
        maker.element(0, 1000 + number, None, b"", &bytes(number as u64, 20), 1);
    }
    // No view tells of a head, so that nothing can be asked for before a slot's turn.
    let recorder = FakeRecorder::start(maker, Mood { together: 2, ..Mood::default() });
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
    let found = runtime
        .block_on(async { ask(&context, "select count(*) from s0 where size > 10").await?.collect().await });
    assert_eq!(found.unwrap()[0].column(0).as_primitive::<Int64Type>().value(0), 10_000);
}
