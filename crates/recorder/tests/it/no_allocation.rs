//! Test of promise 1: the capture thread does not allocate after the start: not per element, batch, slot or commit, nor
//! for requests of clients. (The lane's thread is tested in `media`, sources and the packer in `ingest`.)
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use allocation_counter::measure;
use holdfast_base::{Clock, Rate, RingId, Sequence, SlotNo, SystemClock, Timestamp};
use holdfast_format::{ConditionHold, Geometry, Key, StreamKind};
use holdfast_ingest::{Marks, Overload, Parker, Pressure, Producer, ProducerSettings, StopFlag, channel};
use holdfast_media::{
    Access, Buffer, BufferPool, Device, InflightLimiter, Lane, LaneOptions, Lock, PlainDisk, Prefill,
    RealDisk, create_file,
};
use holdfast_protocol::wire::OpenSlotProjection;
use holdfast_recorder::capture::{Answer, Ask, Capture, Stats, Stream};
use holdfast_ring::{
    BirdsEye, Config, Declared, DeviceState, Driver, DriverCounts, HoldRequest, NewRing, NewStream, Order,
    Range, Rates, create, is_slot_write, recover,
};
use std::sync::Arc;
use std::time::Duration;

const SLOT: u64 = 256 << 10;

const DECLARED: Declared = Declared { rate: Rate(1 << 20), elements: 100, ..Declared::NOTHING };

/// An order to keep what is open and on its way.
fn hold_from(sequence: Sequence) -> Order {
    Order::Hold(HoldRequest {
        streams: Vec::new(),
        range: Range::ALL,
        sequences: Some(vec![(sequence, Sequence(u64::MAX))]),
        reason: "kept".into(),
        owner: "somebody".into(),
        until: Timestamp::MAX,
        order: None,
        condition_hold: Some(ConditionHold {
            condition: "len > 9".into(),
            quota: 6,
            ..ConditionHold::default()
        }),
    })
}

/// The memory for figures.
fn stats(capture: &Capture<Lane>, now: Timestamp) -> Box<Stats> {
    Box::new(Stats {
        ring: capture.driver().ring().status("r.hf"),
        counts: DriverCounts::default(),
        buffers: (0, 0, 0),
        fewest_at: Timestamp(0),
        device: DeviceState::Well,
        margin: None,
        view: None,
        eldest: Duration::ZERO,
        away: capture.away(),
        last_error: String::with_capacity(512),
        feeds: Vec::with_capacity(4),
        counters: Vec::with_capacity(256),
        preambles: Vec::with_capacity(256),
        superblock: (1, capture.driver().superblock().encode()),
        now,
        slots_sealed: 0,
    })
}

/// Slowly enough for gains to be journaled: 20 MB/s.
fn feed(mut producer: Producer, stopped: &StopFlag) {
    let data = [7; 1000];
    let mut next = producer.stamp();
    while !stopped.is_stopped() {
        while producer.stamp() < next {
            std::thread::yield_now();
        }
        next = next + Duration::from_millis(1);
        for _ in 0..20 {
            producer.element(&[], &data, Marks::default()).unwrap();
        }
        producer.flush().unwrap();
    }
    producer.finish().unwrap();
}

#[test]
fn laps_commits_and_questions_allocate_nothing_in_the_capture_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.hf");
    let bytes = (1 << 20) + (4 + 40) * SLOT;
    let device = create_file(&path, bytes, Prefill::No).unwrap();
    let geometry = Geometry::for_lane(bytes, SLOT, Vec::new()).unwrap();
    let clock = Arc::new(SystemClock::new());
    let new = NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry);
    create(&mut PlainDisk::new(device, 1), new, clock.now()).unwrap();

    let mut pool = BufferPool::new(4, SLOT as usize, Lock::Prefault).unwrap();
    let device = Device::open(&path, Access::Own).unwrap();
    let mut disk = RealDisk::new(device, &[pool.region()], 16);
    disk.limit_inflight(InflightLimiter::new(is_slot_write, 1));
    let recovered = recover(&mut disk).unwrap();
    let mut parker = Parker::new();
    let waker = parker.waker();
    let lane = Lane::spawn(disk, "quiet", LaneOptions::default(), Box::new(move || waker.wake())).unwrap();
    let buffers = std::iter::from_fn(|| pool.take()).collect();
    // So short that commits of gains and snapshots come again and again.
    let flush = Duration::from_millis(2);
    let config = Config { buffers: 4, flush, writes: 2 };
    let mut driver = Driver::start(lane, recovered, buffers, config, clock.now(), clock.wall()).unwrap();
    driver.keep_view(BirdsEye::new(Buffer::aligned(44 << 10).unwrap(), 44));
    let new = NewStream {
        name: "s",
        kind: StreamKind::Bytes,
        framing: "whole",
        preamble: Some(b"head"),
        schema: None,
    };
    let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
    let pressure = Arc::new(Pressure::default());
    let streams = [Stream { entry, lost_since: None }];
    let settings = ProducerSettings::new(Overload::Block, entry.counters.next_ordinal);
    let shared = Arc::clone(&clock) as Arc<dyn Clock>;
    let (producer, inlet) = channel(&settings, shared, Arc::clone(&pressure), parker.waker());
    let mut capture = Capture::start(driver, &streams, vec![inlet], pressure, flush, &*clock).unwrap();
    capture.hold_to(Rates::new(&[None], &DECLARED, clock.now()));

    let (stop, stopped) = StopFlag::new().map(|stop| (stop.clone(), stop)).unwrap();
    let source = std::thread::spawn(move || feed(producer, &stopped));

    let mut stats = Some(stats(&capture, clock.now()));
    let mut values = Some(vec![7; 64]);
    let wanted = OpenSlotProjection { stream: None, rows: true, columns: vec![0, 1] };
    let (mut slots, mut index) = (Some(Vec::with_capacity(64)), Some((vec![0; 200 << 10], wanted)));
    // Two clients that pin all they can, one after the other.
    let mut pins: Vec<Vec<Sequence>> = (0..3).map(|_| Vec::with_capacity(64)).collect();
    // So many slots, and at least so many bytes of journal.
    let mut run = |capture: &mut Capture<Lane>, sealed: u64, journal: u64, parker: &mut Parker| {
        let end = (capture.slots_sealed() + sealed, capture.driver().counts().journal_bytes + journal);
        while capture.slots_sealed() < end.0 || capture.driver().counts().journal_bytes < end.1 {
            let now = clock.now();
            if !capture.step(now, Duration::ZERO).busy {
                parker.wait(Some(Duration::from_millis(1)));
            }
            if let Some(Answer::Figures(back)) = capture.ask(1, Ask::Figures(stats.take().unwrap()), now) {
                stats = Some(back);
            }
            if let Some(Answer::Slots(_, mut back)) =
                capture.ask(2, Ask::Slots(SlotNo(0), slots.take().unwrap()), now)
            {
                assert!(!back.is_empty());
                let mut wanted = pins.pop().unwrap();
                wanted.extend(back.iter().map(|slot| slot.sequence));
                if let Some(Answer::Pinned(_, memory)) =
                    capture.ask(4, Ask::Pin(capture.slots_sealed() % 2, wanted), now)
                {
                    // What it brought the first time stays: the ring has its list.
                    pins.push(if memory.capacity() > 0 { memory } else { Vec::with_capacity(64) });
                }
                back.clear();
                slots = Some(back);
            }
            let open = stats.as_ref().unwrap().ring.sequence;
            let stream = entry.stream;
            // Columns and rows of all that has come, and then of none.
            let (mut out, mut wanted) = index.take().unwrap();
            wanted.stream = Some(stream);
            for cursor in [0, u64::MAX] {
                out.resize(out.capacity(), 0);
                let asked = capture.ask(3, Ask::Index(open, cursor, wanted, out), now);
                let Some(Answer::Index(_, back, given)) = asked else { panic!("it is answered at once") };
                (out, wanted) = (back, given);
            }
            index = Some((out, wanted));
            if let Some(Answer::Outline(_, back)) =
                capture.ask(5, Ask::Outline(open, stream, 0, values.take().unwrap()), now)
            {
                values = Some(back);
            }
        }
    };
    // Two laps to warm up: what is made once is made. Holds and clock steps are for the snapshots to carry.
    run(&mut capture, 40, 0, &mut parker);
    for number in 0..3 {
        let (now, open) = (clock.now(), capture.driver().ring().status("r").sequence);
        assert!(capture.ask(9, Ask::Order(hold_from(open)), now).is_none());
        capture.look_at_clock(now, now + Duration::from_secs(number + 1));
        run(&mut capture, 10, 0, &mut parker);
    }
    run(&mut capture, 40, 0, &mut parker);
    // The journal is written round.
    let counted = measure(|| run(&mut capture, 80, 5 * SLOT, &mut parker));
    stop.stop();
    while !capture.step(clock.now(), Duration::from_millis(1)).done {}
    source.join().unwrap();
    assert_eq!(counted.count_total, 0, "{counted:?}");
}
