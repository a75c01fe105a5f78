//! Tests of promise 2 for interfaces that are removed, and made again under the same name.

use super::link::{EXPERIMENTAL, Link, frame, number};
use crate::common::rig::{Rig, count, opened};
use holdfast_ingest::{Cause, SourceEnd, SourceOptions};
use std::sync::atomic::Ordering;

/// Waits for something that a source says of itself.
fn until(mut told: impl FnMut() -> bool) {
    while !told() {
        std::thread::yield_now();
    }
}

// Promise 2: nobody knows what was lost while the interface was away, and that is told.
#[test]
fn a_source_takes_up_its_interface_again_and_tells_of_the_gap() {
    let Some(link) = Link::make() else { return };
    let options = SourceOptions {
        filter: Some(format!("ether proto {EXPERIMENTAL:#x}")),
        promiscuous: true,
        ..SourceOptions::default()
    };
    let (opened, stop) = opened(&format!("iface:{}", link.near), &options);
    let mut rig = Rig::start(opened, stop, 4);
    let counters = rig.counters();
    let is_down = || counters.down.load(Ordering::Relaxed);
    link.send(&[frame(0, 60)]);
    rig.collect_until(|collector| collector.elements.len() == 1);
    link.remove();
    until(is_down);
    assert!(link.connect());
    until(|| count(&counters.interrupted) == 1);
    link.send(&[frame(1, 60)]);
    rig.collect_until(|collector| collector.elements.len() == 2);
    // Another of the name may be there before anybody looks.
    link.remove();
    assert!(link.connect());
    until(|| count(&counters.interrupted) == 2);
    link.send(&[frame(2, 60)]);
    rig.collect_until(|collector| collector.elements.len() == 3);
    until(|| !is_down());
    // A stop ends it while it waits.
    link.remove();
    until(is_down);
    let (collector, end) = rig.stop();
    assert!(matches!(end, Ok(SourceEnd::Stopped)), "{end:?}");
    let numbers: Vec<_> = collector.elements.iter().map(|e| (e.ordinal, number(&e.data))).collect();
    assert_eq!(numbers, [(0, Some(0)), (1, Some(1)), (2, Some(2))]);
    let gaps: Vec<_> = collector.gaps.iter().map(|gap| (gap.first, gap.elements, gap.cause)).collect();
    let unknown = |first| (first, None, Cause::Upstream as u8);
    assert_eq!(gaps, [unknown(1), unknown(2), unknown(3)]);
}

#[test]
fn several_rings_end_with_their_interface() {
    let Some(link) = Link::make() else { return };
    let wanted = SourceOptions { rings: Some(2), ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("iface:{}", link.near), &wanted);
    let rig = Rig::start(opened, stop, 4);
    link.remove();
    let (_, end) = rig.finish();
    let told = end.unwrap_err().to_string();
    assert!(told.contains("has been removed") && told.contains("--rings"), "{told}");
}
