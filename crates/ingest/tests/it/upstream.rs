//! Losses upstream (promise 2): what a counter in the elements shows as missing is a gap of that cause and of no ordinals, and
//! what was lost here is not counted a second time, whatever is dropped, and in whatever pieces elements come.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use allocation_counter::measure;
use common::rig::{Rig, count, opened};
use common::{Collector, Element};
use holdfast_attributes::Counter;
use holdfast_base::{ByteSize, ManualClock, Ordinal, Timestamp};
use holdfast_ingest::{
    Cause, Cutter, Framing, Inlet, Marks, Overload, Parker, Pressure, Producer, ProducerSettings, SourceEnd,
    SourceOptions, channel,
};
use proptest::prelude::*;
use std::net::UdpSocket;
use std::sync::Arc;

const MILLI: i64 = 1_000_000;

fn rig(counter: &str, overload: Overload, rows: usize) -> (Producer, Inlet, ManualClock) {
    let clock = ManualClock::new(Timestamp(1_000));
    let settings = ProducerSettings {
        batches: 4,
        batch_bytes: ByteSize(0),
        batch_rows: rows,
        counter: Some(counter.parse().unwrap()),
        ..ProducerSettings::new(overload, Ordinal(0))
    };
    let waker = Parker::new().waker();
    let (producer, inlet) = channel(&settings, Arc::new(clock.clone()), Arc::new(Pressure::default()), waker);
    (producer, inlet, clock)
}

/// An element that comes, and how many before it are lost on their way to us, or by our kernel.
#[derive(Clone, Copy, Debug)]
struct Way {
    upstream: u64,
    kernel: u64,
    size: usize,
}

fn way() -> impl Strategy<Value = Way> {
    let upstream = prop_oneof![10 => Just(0), 1 => 1u64..30];
    let kernel = prop_oneof![15 => Just(0), 1 => 1u64..30];
    let size = prop_oneof![10 => 8usize..200, 1 => 8usize..60_000];
    (upstream, kernel, size).prop_map(|(upstream, kernel, size)| Way { upstream, kernel, size })
}

fn element(number: u32, size: usize) -> Vec<u8> {
    let mut element = vec![number as u8; size];
    element[3..7].copy_from_slice(&number.to_be_bytes());
    element
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_never_came_is_told_beside_what_was_dropped_here(
        ways in prop::collection::vec(way(), 1..700),
        start in any::<u32>(),
        reads in prop::collection::vec(prop_oneof![1usize..100, 1usize..9000], 1..6),
        acts in prop::collection::vec(0..7u8, 1..20),
        millis in prop_oneof![Just(1i64), Just(90)],
        stream in any::<bool>(),
    ) {
        let (mut producer, mut inlet, clock) = rig("at:3:u32be", Overload::DropNewest, 40);
        let mut collector = Collector::default();
        let mut cutter = Cutter::new(Framing::Len32);
        let (mut reads, mut acts) = (reads.iter().cycle(), acts.iter().cycle());
        let (mut number, mut upstream, mut sent, mut kernel) = (start, 0, 0, 0);
        let mut now = 1_000;
        // What is known of a sender begins with what is recorded first, and what it lost is known when it is heard again.
        let plain = Way { upstream: 0, kernel: 0, size: 9 };
        let (heard, last) = ([plain; 3], [plain; 90]);
        for (at, way) in heard.iter().chain(&ways).chain(&last).enumerate() {
            now += millis * MILLI;
            clock.set(Timestamp(now));
            upstream += way.upstream;
            kernel += way.kernel;
            number = number.wrapping_add((way.upstream + way.kernel) as u32);
            producer.lost_before(way.kernel, Timestamp(now));
            let element = element(number, way.size);
            (number, sent) = (number.wrapping_add(1), sent + 1);
            if stream {
                let mut bytes = Vec::new();
                Framing::Len32.restore(&mut bytes, None, &element, 0);
                let mut rest = &bytes[..];
                while !rest.is_empty() {
                    let space = producer.space(&cutter).unwrap();
                    let n = space.len().min(rest.len()).min(*reads.next().unwrap());
                    space[..n].copy_from_slice(&rest[..n]);
                    rest = &rest[n..];
                    producer.feed(n, &mut cutter).unwrap();
                }
                producer.settle().unwrap();
            } else {
                producer.stamp();
                producer.element(b"meta", &element, Marks::default()).unwrap();
            }
            if at < heard.len() || at >= heard.len() + ways.len() {
                collector.drain(&mut inlet, false);
                collector.let_go(&mut inlet, usize::MAX);
                continue;
            }
            match acts.next().unwrap() {
                0 => producer.flush().unwrap(),
                1 => { collector.drain(&mut inlet, true); }
                2 => collector.let_go(&mut inlet, 2),
                3 => { producer.idle().unwrap(); }
                _ => { collector.drain(&mut inlet, false); }
            }
        }
        producer.finish().unwrap();
        collector.drain(&mut inlet, false);

        let missing = collector.gaps.iter().filter(|gap| gap.cause == Cause::Upstream as u8);
        prop_assert!(missing.clone().all(|gap| gap.ordinals == 0 && gap.bytes.is_none() && gap.elements.is_some()));
        // Gaps of a second each, and what was left at the end.
        let seconds = (now / 1_000_000_000) as usize;
        prop_assert!(missing.count() <= seconds + 2);
        prop_assert_eq!(collector.lost(Cause::Kernel as u8), kernel);
        let here = collector.all_lost() - collector.lost(Cause::Upstream as u8);
        prop_assert_eq!(collector.elements.len() as u64 + here, sent + kernel, "what came to us is recorded, or lost here");
        prop_assert_eq!(collector.next, sent + kernel, "and has an ordinal");
        let told = collector.lost(Cause::Upstream as u8);
        prop_assert_eq!(told, upstream);
        prop_assert_eq!(producer.counters().dropped(Cause::Upstream), upstream);
        prop_assert_eq!((count(&producer.counters().unknown), count(&producer.counters().interrupted)), (0, 0));
    }
}

#[test]
fn a_loss_is_told_within_a_second_though_nothing_comes_any_more() {
    let (mut producer, mut inlet, clock) = rig("at:3:u32be", Overload::DropNewest, 40);
    let mut collector = Collector::default();
    for number in [1, 2, 5] {
        producer.stamp();
        producer.element(&[], &element(number, 9), Marks::default()).unwrap();
    }
    let mut waits = Vec::new();
    let mut wait = |producer: &mut Producer, milli: i64| {
        clock.set(Timestamp(1_000 + milli * MILLI));
        waits.push(producer.idle().unwrap().map(|wait| wait.as_millis()));
        collector.drain(&mut inlet, false);
        collector.gaps.len()
    };
    assert_eq!([0, 400, 999].map(|milli| wait(&mut producer, milli)), [0, 0, 0]);
    assert_eq!([1000, 5000].map(|milli| wait(&mut producer, milli)), [1, 1]);
    assert_eq!(waits, [Some(1000), Some(600), Some(1), None, None]);
    let gap = &collector.gaps[0];
    assert_eq!((gap.first, gap.ordinals, gap.elements, gap.cause), (3, 0, Some(2), Cause::Upstream as u8));
    producer.finish().unwrap();
}

#[test]
fn a_run_begins_with_no_loss_and_a_sender_that_begins_anew_is_told_of_as_unknown() {
    let run = |numbers: &[u32]| {
        let (mut producer, mut inlet, _) = rig("at:3:u32be", Overload::DropNewest, 40);
        let mut collector = Collector::default();
        for number in numbers {
            producer.stamp();
            producer.element(&[], &element(*number, 9), Marks::default()).unwrap();
        }
        producer.finish().unwrap();
        collector.drain(&mut inlet, false);
        assert_eq!(collector.elements.len(), numbers.len());
        assert_eq!(count(&producer.counters().interrupted), collector.gaps.len() as u64);
        collector.gaps.iter().map(|gap| (gap.ordinals, gap.elements, gap.cause)).collect::<Vec<_>>()
    };
    assert!(run(&[500, 501]).is_empty());
    assert_eq!(run(&[900_000_000, 900_000_001, 0, 1, 2]), [(0, None, Cause::Upstream as u8)]);
    assert!(run(&[900_000_000, 0, 900_000_001, 7000, 900_000_002]).is_empty());
}

#[test]
fn datagrams_that_never_came_are_gaps_between_those_that_did() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let options = SourceOptions { counter: Some(Counter::Rtp), ..SourceOptions::default() };
    let spec = format!("udp:127.0.0.1:{port}");
    let (opened, stop) = opened(&spec, &options);
    let mut rig = Rig::counting(opened, stop, options.counter);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |source: u8, number: u16| {
        let [high, low] = number.to_be_bytes();
        let packet = [0x80, 0x60, high, low, 0, 0, 0, 0, 0, 0, 0, source, 1, 2, 3];
        sender.send_to(&packet, ("127.0.0.1", port)).unwrap();
    };
    // Over the end of the numbers; of the other source none is missing, but some come late.
    let numbers = (0..200u16).map(|n| n.wrapping_add(65_436)).filter(|n| n % 10 != 3);
    let there: Vec<u16> = numbers.collect();
    for (at, number) in there.iter().enumerate() {
        send(1, *number);
        send(2, (at ^ 1) as u16);
    }
    rig.collect_until(|collector| collector.elements.len() == 2 * there.len());
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!(collector.lost(Cause::Upstream as u8), 200 - there.len() as u64);
    assert_eq!(collector.all_lost(), 200 - there.len() as u64);
    assert_eq!(collector.next, 2 * there.len() as u64);
    assert!(collector.elements.iter().map(|Element { ordinal, .. }| *ordinal).eq(0..collector.next));
}

#[test]
fn counting_allocates_nothing() {
    let (mut producer, mut inlet, clock) = rig("at:3:u32be,flow=at:0:u16le", Overload::DropNewest, 4096);
    let mut element = element(0, 20);
    let large = vec![7; 300_000];
    let mut gaps = 0;
    let allocated = measure(|| {
        for round in 0..200_000u32 {
            // Some senders that speak again and again, and more strangers than are told apart.
            let flow = if round % 3 == 0 { round % 50 } else { round } as u16;
            element[..2].copy_from_slice(&flow.to_le_bytes());
            element[3..7].copy_from_slice(&(round / 7).to_be_bytes());
            clock.set(Timestamp(1_000 + i64::from(round) * MILLI / 10));
            producer.stamp();
            producer.element(&[], &element, Marks::default()).unwrap();
            if round % 10_000 == 0 {
                producer.element(&[], &large, Marks::default()).unwrap();
            }
            while let Some(batch) = inlet.take() {
                gaps +=
                    batch.rows().iter().filter(|row| row.content == holdfast_ingest::Content::Gap).count();
                inlet.give_back(batch);
            }
        }
    });
    assert!(gaps > 10 && gaps <= 60, "{gaps} in 20 s");
    assert_eq!(allocated.count_total, 0);
}
