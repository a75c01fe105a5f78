//! The producer's accounting (promise 2): whatever the framing, the sizes of reads and the pace of the capture
//! side, every element that arrived is recorded byte for byte or counted in a gap, in order.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::{Collector, Element};
use holdfast_base::{ByteSize, ManualClock, Ordinal, Timestamp};
use holdfast_ingest::{
    Carry, Cause, Cutter, Framing, Inlet, Marks, Overload, Parker, Pressure, Producer, ProducerSettings,
    Tail, channel,
};
use proptest::prelude::*;
use std::sync::Arc;
use std::time::Duration;

fn small(overload: Overload) -> (Producer, Inlet, ManualClock, Arc<Pressure>) {
    let clock = ManualClock::new(Timestamp(1_000));
    let pressure = Arc::new(Pressure::default());
    let settings = ProducerSettings {
        batches: 4,
        batch_bytes: ByteSize(0),
        batch_rows: 40,
        overload,
        next: Ordinal(0),
        leads: false,
        extraction: None,
        inference: None,
        counter: None,
    };
    let (producer, inlet) =
        channel(&settings, Arc::new(clock.clone()), Arc::clone(&pressure), Parker::new().waker());
    (producer, inlet, clock, pressure)
}

/// What the capture side does between two reads of the source.
#[derive(Clone, Copy, Debug)]
enum Pace {
    Drain,
    Hold,
    LetGo(usize),
    Flush,
    Idle,
    Later,
    Kernel(u64),
}

fn pace() -> impl Strategy<Value = Pace> {
    prop_oneof![
        3 => Just(Pace::Drain),
        6 => Just(Pace::Hold),
        3 => (1usize..4).prop_map(Pace::LetGo),
        2 => Just(Pace::Flush),
        1 => Just(Pace::Idle),
        1 => Just(Pace::Later),
        1 => (1u64..50).prop_map(Pace::Kernel),
    ]
}

fn framing() -> impl Strategy<Value = Framing> {
    prop_oneof![
        (1u64..30).prop_map(Framing::Fixed),
        (1000u64..400_000).prop_map(Framing::Fixed),
        (1u64..200_000).prop_map(Framing::Blocks),
        Just(Framing::Lines),
        Just(Framing::Len32),
        Just(Framing::Len32Be),
        Just(Framing::Attr32),
        Just(Framing::Syslog),
    ]
}

struct World {
    producer: Producer,
    inlet: Inlet,
    clock: ManualClock,
    collector: Collector,
    now: i64,
    kernel: u64,
}

impl World {
    fn act(&mut self, pace: Pace, between_elements: bool) {
        match pace {
            Pace::Drain => {
                self.collector.drain(&mut self.inlet, false);
            }
            Pace::Hold => {
                self.collector.drain(&mut self.inlet, true);
            }
            Pace::LetGo(n) => self.collector.let_go(&mut self.inlet, n),
            Pace::Flush => self.producer.flush().unwrap(),
            Pace::Idle => {
                self.producer.idle().unwrap();
            }
            Pace::Later => self.now += 10_000_000,
            Pace::Kernel(n) if between_elements => {
                self.kernel += n;
                self.producer.lost_before(n, Timestamp(self.now));
            }
            Pace::Kernel(_) => {}
        }
        self.now += 1;
        self.clock.set(Timestamp(self.now));
    }

    /// Without a thread on the capture side nobody could end a wait.
    fn make_room(&mut self, overload: Overload) {
        if overload == Overload::Block {
            self.collector.drain(&mut self.inlet, false);
            self.collector.let_go(&mut self.inlet, usize::MAX);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    #[test]
    fn every_element_of_a_stream_is_recorded_or_counted(
        framing in framing(),
        sizes in prop::collection::vec(prop_oneof![5 => 0usize..50, 2 => 0usize..6000, 1 => 0usize..300_000], 1..120),
        reads in prop::collection::vec(prop_oneof![1usize..100, 1usize..9000, 1usize..200_000], 1..6),
        paces in prop::collection::vec(pace(), 1..20),
        block in any::<bool>(),
    ) {
        let overload = if block { Overload::Block } else { Overload::DropNewest };
        let mut stream = Vec::new();
        for (n, size) in sizes.iter().enumerate() {
            let size = if let Framing::Fixed(n) = framing { n as usize } else { *size };
            let payload: Vec<u8> = (0..size).map(|at| b'a' + ((at * 7 + n * 13) % 26) as u8).collect();
            let header = framing.has_header().then(|| vec![n as u8; (n * 797) % 8192]);
            framing.restore(&mut stream, header.as_deref(), &payload, 0);
        }
        // What a cutter that never loses anything makes of it.
        let (mut expected, mut cutter, mut rest) = (Vec::new(), Cutter::new(framing), &stream[..]);
        let (mut open, mut header) = (Vec::new(), 0);
        while !rest.is_empty() {
            let step = cutter.step(rest);
            open.extend_from_slice(&rest[step.lead..step.lead + step.take]);
            if step.begins {
                header = step.header.unwrap_or(0);
            }
            if step.ends {
                let data = open.split_off(header);
                expected.push((std::mem::take(&mut open), data));
            }
            rest = &rest[step.lead + step.take + step.trail..];
        }
        if let Tail::Ends(_) = cutter.finish() {
            expected.push((Vec::new(), open));
        }

        let (producer, inlet, clock, _) = small(overload);
        let mut world = World { producer, inlet, clock, collector: Collector::default(), now: 1_000, kernel: 0 };
        let mut cutter = Cutter::new(framing);
        let (mut reads, mut paces) = (reads.iter().cycle(), paces.iter().cycle());
        let mut rest = &stream[..];
        while !rest.is_empty() {
            world.make_room(overload);
            let space = world.producer.space(&cutter).unwrap();
            let n = space.len().min(rest.len()).min(*reads.next().unwrap());
            space[..n].copy_from_slice(&rest[..n]);
            rest = &rest[n..];
            world.producer.feed(n, &mut cutter).unwrap();
            world.producer.settle().unwrap();
            let between = !world.producer.in_element();
            world.act(*paces.next().unwrap(), between);
        }
        world.make_room(overload);
        if let Tail::Ends(tag) = cutter.finish() {
            world.producer.end_element(tag).unwrap();
        }
        world.collector.drain(&mut world.inlet, false);
        world.collector.let_go(&mut world.inlet, usize::MAX);
        world.producer.finish().unwrap();
        world.collector.drain(&mut world.inlet, false);

        let collected = &world.collector;
        prop_assert_eq!(collected.next, world.producer.next_ordinal().0);
        let arrived = expected.len() as u64;
        prop_assert_eq!(collected.elements.len() as u64 + collected.all_lost(), arrived + world.kernel);
        prop_assert_eq!(collected.lost(Cause::Kernel as u8), world.kernel);
        let bytes: u64 = expected.iter().map(|(_, data)| data.len() as u64).sum();
        prop_assert_eq!(collected.recorded_bytes() + collected.lost_bytes(), bytes);
        if overload == Overload::Block {
            prop_assert_eq!(collected.lost(Cause::NoBuffer as u8), 0);
        }
        // What is recorded is a subsequence of what arrived, byte for byte. Without the kernel's losses, whose
        // place is not known, the ordinal says which.
        let counters = world.producer.counters();
        let count = |n: &std::sync::atomic::AtomicU64| n.load(std::sync::atomic::Ordering::Relaxed);
        prop_assert_eq!(count(&counters.elements), arrived);
        prop_assert_eq!(count(&counters.bytes), bytes);
        prop_assert_eq!(counters.all_dropped(), collected.all_lost());
        prop_assert_eq!(counters.all_dropped_bytes(), collected.lost_bytes());
        let mut left = expected.iter().enumerate();
        for element in &collected.elements {
            let found = left.find(|(n, (meta, data))| {
                *meta == element.meta && *data == element.data && (world.kernel > 0 || *n as u64 == element.ordinal)
            });
            prop_assert!(found.is_some(), "element {} is none that arrived", element.ordinal);
        }
    }

    #[test]
    fn every_single_element_is_recorded_or_counted(
        sizes in prop::collection::vec(
            (prop_oneof![Just(0usize), 1usize..500], prop_oneof![5 => 0usize..2000, 1 => 0usize..300_000]),
            1..100,
        ),
        paces in prop::collection::vec(pace(), 1..20),
        block in any::<bool>(),
    ) {
        let overload = if block { Overload::Block } else { Overload::DropNewest };
        let (producer, inlet, clock, pressure) = small(overload);
        let mut world = World { producer, inlet, clock, collector: Collector::default(), now: 1_000, kernel: 0 };
        let mut paces = paces.iter().cycle();
        pressure.no_slot();
        let mut sent = Vec::new();
        for (n, (meta, data)) in sizes.iter().enumerate() {
            world.make_room(overload);
            let meta = vec![b'm'; *meta];
            let data: Vec<u8> = (0..*data).map(|at| (at * 31 + n) as u8).collect();
            world.producer.stamp();
            let marks =
                Marks { tag: n as u16, event: (n % 2 == 0).then_some(Timestamp(n as i64)), ..Marks::default() };
            let ordinal = world.producer.next_ordinal().0;
            world.producer.element(&meta, &data, marks).unwrap();
            sent.push((ordinal, meta, data, n));
            world.act(*paces.next().unwrap(), true);
        }
        world.collector.drain(&mut world.inlet, false);
        world.collector.let_go(&mut world.inlet, usize::MAX);
        world.producer.finish().unwrap();
        world.collector.drain(&mut world.inlet, false);
        let collected = &world.collector;
        prop_assert_eq!(collected.next, world.producer.next_ordinal().0);
        prop_assert_eq!(collected.elements.len() as u64 + collected.all_lost(), sent.len() as u64 + world.kernel);
        let bytes: u64 = sent.iter().map(|(_, _, data, _)| data.len() as u64).sum();
        prop_assert_eq!(collected.recorded_bytes() + collected.lost_bytes(), bytes);
        prop_assert_eq!(collected.lost(Cause::NoBuffer as u8), 0, "the capture thread said: no slot");
        let mut left = sent.iter();
        for element in &collected.elements {
            let found = left.find(|(_, meta, data, n)| {
                *meta == element.meta
                    && *data == element.data
                    && element.tag == *n as u16
                    && element.event == (n % 2 == 0).then_some(*n as i64)
            });
            prop_assert!(found.is_some());
        }
    }
}

#[test]
fn an_element_that_is_given_up_leaves_its_pieces_an_abort_and_a_gap() {
    let (mut producer, mut inlet, _, _) = small(Overload::Block);
    let mut cutter = Cutter::new(Framing::Fixed(1000));
    let space = producer.space(&cutter).unwrap();
    space[..1300].fill(7);
    producer.feed(1300, &mut cutter).unwrap();
    producer.flush().unwrap();
    producer.space(&cutter).unwrap()[..17].fill(7);
    producer.feed(17, &mut cutter).unwrap();
    assert_eq!(cutter.finish(), Tail::Cut { have: 317, want: Some(1000) });
    producer.abort_element(Cause::Aborted);
    producer.finish().unwrap();
    let mut collector = Collector::default();
    collector.drain(&mut inlet, false);
    assert_eq!((collector.elements.len(), collector.aborted_bytes, collector.lost_bytes()), (1, 300, 317));
    assert_eq!((collector.aborts, collector.lost(Cause::Aborted as u8), collector.next), (1, 1, 2));
}

#[test]
fn when_no_batch_is_left_small_elements_are_recorded_whole_or_counted_and_none_in_part() {
    for (framing, size) in [
        (Framing::Fixed(1000), 1000),
        (Framing::Len32, 700),
        (Framing::Attr32, 700),
        (Framing::Lines, 333),
        (Framing::Fixed(30_000), 30_000),
    ] {
        // As a pipe gives them: ends of reads are not ends of elements.
        for read in [1, 700, 1500, 4097, 65_536] {
            let (mut producer, mut inlet, _, _) = small(Overload::DropNewest);
            let mut stream = Vec::new();
            for n in 0..2_000_000 / size {
                let header = framing.has_header().then(|| vec![b'h'; n % 90]);
                framing.restore(&mut stream, header.as_deref(), &vec![b'a' + (n % 26) as u8; size], 0);
            }
            let (mut cutter, mut collector) = (Cutter::new(framing), Collector::default());
            let mut rest = &stream[..];
            while !rest.is_empty() {
                let space = producer.space(&cutter).unwrap();
                // Single bytes only where it may matter.
                let n =
                    space.len().min(rest.len()).min(if space.len() > 9_000 { read.max(1500) } else { read });
                space[..n].copy_from_slice(&rest[..n]);
                rest = &rest[n..];
                producer.feed(n, &mut cutter).unwrap();
                collector.drain(&mut inlet, true);
            }
            assert_eq!(collector.held.len(), 4, "all batches are out");
            collector.let_go(&mut inlet, usize::MAX);
            producer.finish().unwrap();
            collector.drain(&mut inlet, false);
            let at = format!("{framing:?}, reads of {read}");
            assert_eq!((collector.aborts, collector.aborted_bytes), (0, 0), "{at}");
            assert!(collector.all_lost() > 0, "{at}");
            let whole = collector.elements.len() as u64;
            assert_eq!(whole + collector.all_lost(), (2_000_000 / size) as u64, "{at}");
            for Element { ordinal, data, .. } in &collector.elements {
                assert!(
                    data.len() == size && data.iter().all(|b| u64::from(*b - b'a') == ordinal % 26),
                    "{at}"
                );
            }
        }
    }
}

// Promise 2: a syslog message with a malformed count is counted, in elements and bytes, and those around it are recorded.
#[test]
fn a_malformed_count_costs_one_message_and_is_a_gap() {
    for most in [1, 3, 100] {
        let (mut producer, mut inlet, _, _) = small(Overload::Block);
        let (mut collector, mut cutter) = (Collector::default(), Cutter::new(Framing::Syslog));
        for piece in b"6 <1>one12x lost\n<2>two\n3 end".chunks(most) {
            producer.space(&cutter).unwrap()[..piece.len()].copy_from_slice(piece);
            producer.feed(piece.len(), &mut cutter).unwrap();
        }
        producer.finish().unwrap();
        collector.drain(&mut inlet, false);
        let seen: Vec<_> = collector.elements.iter().map(|e| (e.ordinal, &e.data[..])).collect();
        assert_eq!(seen, [(0, &b"<1>one"[..]), (2, b"<2>two"), (3, b"end")]);
        assert_eq!((collector.lost(Cause::Aborted as u8), collector.lost_bytes()), (1, 6));
    }
}

#[test]
fn an_oversized_element_is_counted_and_what_follows_is_recorded() {
    let (mut producer, mut inlet, _, _) = small(Overload::Block);
    let mut collector = Collector::default();
    let mut cutter = Cutter::new(Framing::Len32);
    let size = (1u32 << 30) + 5;
    let (mut lead, mut left) = (size.to_le_bytes().to_vec(), u64::from(size));
    while left > 0 {
        let space = producer.space(&cutter).unwrap();
        space[..lead.len()].copy_from_slice(&lead);
        let n = ((space.len() - lead.len()) as u64).min(left) as usize;
        left -= n as u64;
        let n = n + lead.len();
        lead.clear();
        producer.feed(n, &mut cutter).unwrap();
        collector.drain(&mut inlet, false);
    }
    producer.space(&cutter).unwrap()[..6].copy_from_slice(&[2, 0, 0, 0, b'o', b'k']);
    producer.feed(6, &mut cutter).unwrap();
    producer.finish().unwrap();
    collector.drain(&mut inlet, false);
    assert_eq!(collector.lost(Cause::Oversized as u8), 1);
    assert_eq!(collector.lost_bytes(), u64::from(size));
    assert_eq!((collector.elements[0].ordinal, &collector.elements[0].data[..]), (1, &b"ok"[..]));
}

#[test]
fn what_is_set_aside_is_continued_whatever_came_between() {
    let (mut producer, mut inlet, _, _) = small(Overload::Block);
    let mut first = (Cutter::new(Framing::Lines), Carry::new(100));
    let mut second = (Cutter::new(Framing::Lines), Carry::new(100));
    let mut give = |(cutter, carry): &mut (Cutter, Carry), bytes: &[u8]| {
        producer.resume(carry).unwrap();
        producer.space(cutter).unwrap()[..bytes.len()].copy_from_slice(bytes);
        producer.feed(bytes.len(), cutter).unwrap();
        assert!(producer.set_aside(carry));
    };
    give(&mut first, b"one\ntw");
    give(&mut second, b"uno\ndue\ntr");
    give(&mut first, b"o\nthr");
    give(&mut second, b"e\n");
    give(&mut first, b"ee\n");
    producer.finish().unwrap();
    let mut collector = Collector::default();
    collector.drain(&mut inlet, false);
    let lines: Vec<_> =
        collector.elements.iter().map(|e| String::from_utf8(e.data.clone()).unwrap()).collect();
    assert_eq!(lines, ["one", "uno", "due", "two", "tre", "three"]);
    assert_eq!(collector.gaps, []);
}

#[test]
fn what_is_set_aside_in_its_header_has_all_of_it_when_it_is_whole() {
    let (mut producer, mut inlet, _, _) = small(Overload::Block);
    let mut of = [0, 1].map(|_| (Cutter::new(Framing::Attr32), Carry::new(100)));
    let frame = |text: &str| {
        let mut frame = Vec::new();
        Framing::Attr32.restore(&mut frame, Some(&text.as_bytes()[..5]), text.as_bytes(), 0);
        frame
    };
    let frames = [frame("the first one"), frame("and the second")];
    // Byte for byte, in turn.
    for at in 0..frames[1].len() {
        for (frame, (cutter, carry)) in frames.iter().zip(&mut of) {
            let Some(byte) = frame.get(at) else { continue };
            producer.resume(carry).unwrap();
            producer.space(cutter).unwrap()[0] = *byte;
            producer.feed(1, cutter).unwrap();
            assert!(producer.set_aside(carry));
        }
    }
    producer.finish().unwrap();
    let mut collector = Collector::default();
    collector.drain(&mut inlet, false);
    let kept: Vec<_> = collector.elements.iter().map(|e| (e.header().unwrap(), &e.data[..])).collect();
    assert_eq!(kept, [(&b"the f"[..], &b"the first one"[..]), (b"and t", b"and the second")]);
}

#[test]
fn who_waits_for_a_place_of_each_element_loses_none_of_them() {
    let (mut producer, mut inlet, _clock, _) = small(Overload::DropNewest);
    let mut collector = Collector::default();
    let (mut sent, mut waits) = (0u64, 0);
    while waits < 3 {
        if producer.await_place(3000, Duration::ZERO).unwrap() {
            producer.element(&[], &[sent as u8; 3000], Marks::default()).unwrap();
            sent += 1;
        } else {
            waits += 1;
            collector.drain(&mut inlet, true);
            assert!(!producer.await_place(3000, Duration::ZERO).unwrap(), "all batches are held");
            collector.let_go(&mut inlet, 1);
        }
    }
    producer.finish().unwrap();
    collector.let_go(&mut inlet, usize::MAX);
    collector.drain(&mut inlet, false);
    assert!(sent > 10, "{sent}");
    assert_eq!((collector.elements.len() as u64, collector.gaps.len()), (sent, 0));
}
