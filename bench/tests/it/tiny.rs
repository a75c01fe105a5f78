//! Tiny runs of all benches, one test each. They share the process and the machine: one runs at a time.

use holdfast_bench::{BenchError, Scale, cases, cleanup};
use std::sync::{Mutex, Once, PoisonError};

/// Runs a bench with a tiny amount; a bench that lacks something of this machine is skipped.
fn tiny(bench: impl FnOnce(Scale) -> Result<(), BenchError>) {
    static PREPARED: Once = Once::new();
    static TURN: Mutex<()> = Mutex::new(());
    PREPARED.call_once(cleanup::prepare);
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    match bench(Scale::Tiny) {
        Ok(()) => {}
        Err(BenchError::Skipped { reason }) => println!("skipped: {reason}"),
        Err(error) => panic!("{error}"),
    }
}

macro_rules! tiny {
    ($($case:ident),* $(,)?) => { $(#[test] fn $case() { tiny(cases::$case::bench); })* };
}

tiny![
    attributes,
    beside,
    catalog,
    disturbers,
    drive,
    elements,
    hunt,
    memory,
    mount,
    mount_peers,
    needle,
    packets,
    packing,
    producers,
    readers,
    reading,
    scan,
    search,
    shares,
    ship,
    sites,
    slots,
];
