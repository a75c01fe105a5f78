//! Tests of the capture core over a faulty disk in virtual time. Promise 2: every element sent is recorded or in a gap,
//! exactly, through stalls, bad blocks and a device that goes away; promise 6: no ordinal is given twice over a crash.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use holdfast_base::{Clock, HoldId, ManualClock, RingId, Sequence, StreamId, Timestamp};
use holdfast_format::{Cause, Geometry, Key, StreamKind, check_image};
use holdfast_ingest::{Marks, Overload, Parker, Pressure, Producer, ProducerSettings, channel};
use holdfast_media::{Buffer, FaultPlan, FaultyDisk, Image, MemoryDisk, Seed, Stall, Survival};
use holdfast_protocol::wire::OpenSlotProjection;
use holdfast_reader::{Item, Missing, RingReader, Selection};
use holdfast_recorder::capture::{Answer, Ask, CRASH_STEP, Capture, NotRead, Phase, ReadOrigin, Stream};
use holdfast_ring::{
    Class, Config, Driver, HoldRequest, JobStep, NewRing, NewStream, Order, Outcome, Range, create, recover,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

const SLOT: u64 = 64 << 10;
const MS: Duration = Duration::from_millis(1);

/// A ring of `slots` slots.
fn made(slots: u64) -> Image {
    let bytes = (1 << 20) + 4 * SLOT + slots * SLOT;
    let mut disk = MemoryDisk::new(bytes);
    let geometry = Geometry::for_lane(bytes, SLOT, Vec::new()).unwrap();
    let new = NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry);
    create(&mut disk, new, Timestamp(1)).unwrap();
    disk.snapshot()
}

/// A recorder without threads: its one source is fed by hand.
struct Rig {
    capture: Capture<FaultyDisk>,
    producer: Option<Producer>,
    clock: ManualClock,
    /// By ordinal.
    sent: BTreeMap<u64, Vec<u8>>,
    seed: Seed,
}

impl Rig {
    fn start(image: Image, plan: FaultPlan, seed: u64, clock: &ManualClock, overload: Overload) -> Self {
        Self::start_with(image, plan, seed, clock, overload, 3)
    }

    fn start_with(
        image: Image,
        plan: FaultPlan,
        seed: u64,
        clock: &ManualClock,
        overload: Overload,
        buffers: usize,
    ) -> Self {
        let mut disk = FaultyDisk::new(image, FaultPlan::default(), seed, clock.clone());
        let recovered = recover(&mut disk).unwrap();
        *disk.plan_mut() = plan;
        let lost_since = recovered.after_crash().then_some(recovered.last_arrival).flatten();
        let known = !recovered.streams().is_empty();
        let pool = (0..buffers).map(|_| Buffer::aligned(SLOT as usize).unwrap()).collect();
        let flush = Duration::from_secs(1);
        let config = Config { buffers: buffers as u32, flush, writes: buffers + 1 };
        let mut driver = Driver::start(disk, recovered, pool, config, clock.now(), clock.wall()).unwrap();
        let new =
            NewStream { name: "s", kind: StreamKind::Bytes, framing: "whole", preamble: None, schema: None };
        let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
        let stream = Stream { entry, lost_since: lost_since.filter(|_| known) };
        let pressure = Arc::new(Pressure::default());
        let settings = ProducerSettings { batches: 4, ..ProducerSettings::new(overload, stream.next()) };
        let clock_of = Arc::new(clock.clone());
        let (producer, inlet) = channel(&settings, clock_of, Arc::clone(&pressure), Parker::new().waker());
        let capture = Capture::start(driver, &[stream], vec![inlet], pressure, flush, clock).unwrap();
        let (sent, seed) = (BTreeMap::new(), Seed::new(seed));
        Self { capture, producer: Some(producer), clock: clock.clone(), sent, seed }
    }

    fn step(&mut self) {
        self.capture.step(self.clock.now(), Duration::ZERO);
        self.clock.set(self.clock.now() + MS / 10);
    }

    /// One element of a size that chance gives.
    fn send(&mut self) {
        let len = self.seed.below(3000) as usize;
        let mut data = vec![0; len];
        self.seed.fill(&mut data);
        let producer = self.producer.as_mut().unwrap();
        producer.stamp();
        self.sent.insert(producer.next_ordinal().0, data.clone());
        producer.element(&[], &data, Marks::default()).unwrap();
        producer.idle().unwrap();
    }

    fn feed(&mut self, elements: usize) {
        for _ in 0..elements {
            self.send();
            self.step();
        }
    }

    fn ask_for_a_hold(&mut self) {
        let hold = HoldRequest {
            streams: Vec::new(),
            range: Range::ALL,
            sequences: None,
            reason: "test".into(),
            owner: "me".into(),
            until: Timestamp::MAX,
            condition_hold: None,
            order: None,
        };
        assert!(self.capture.ask(1, Ask::Order(Order::Hold(hold)), self.clock.now()).is_none());
    }

    fn answer(&mut self) -> Answer {
        for _ in 0..100_000 {
            if let Some((_, answer)) = self.capture.answer() {
                return answer;
            }
            self.step();
        }
        panic!("no answer: {:?}", self.capture.driver().ring().starved());
    }

    /// Ends the source and the run. What still waits for room is taken while we go.
    fn end(mut self) -> (Image, BTreeMap<u64, Vec<u8>>) {
        let mut producer = self.producer.take().unwrap();
        // At the end a source waits for room, whatever its policy: on a thread of its own.
        let finisher = std::thread::spawn(move || producer.finish());
        for _ in 0..1_000_000 {
            if self.capture.phase() == Phase::Done {
                finisher.join().unwrap().unwrap();
                return (self.capture.into_disk().seen(), self.sent);
            }
            self.step();
            std::thread::yield_now();
        }
        panic!("it does not end: {:?}", self.capture.driver().ring().starved());
    }
}

#[derive(Debug, Default)]
struct ReadBack {
    elements: BTreeMap<u64, Vec<u8>>,
    /// By first ordinal: ordinals, elements, bytes, cause.
    gaps: BTreeMap<u64, (u64, Option<u64>, Option<u64>, Cause)>,
    /// Elements of which only a part is there.
    cut: Vec<u64>,
}

fn read(image: Image) -> ReadBack {
    let mut reader = RingReader::over(Box::new(MemoryDisk::from_image(image))).unwrap();
    let plan = reader.plan(&Selection::ALL).unwrap();
    let mut found = ReadBack::default();
    reader
        .read(&plan, &mut |item| {
            match item {
                Item::Element(e) => {
                    assert!(
                        found.elements.insert(e.ordinal.0, e.data.to_vec()).is_none(),
                        "{} twice",
                        e.ordinal
                    );
                }
                Item::Gap { ordinal, gap, stream } => {
                    assert_eq!(stream, StreamId(1));
                    found.gaps.insert(ordinal.0, (gap.ordinals, gap.elements, gap.bytes, gap.cause));
                }
                Item::Damaged { place, .. } => panic!("damaged: {place}"),
                // Its beginning is in a slot that a crash has taken, or its end has not come.
                Item::Partial { ordinal, why: Missing::Unfinished | Missing::Expired, .. } => {
                    found.cut.push(ordinal.0);
                }
                Item::Partial { ordinal, why, .. } => panic!("element {ordinal}: {why}"),
                _ => {}
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

/// Sent = recorded + gaps, in elements and in bytes, with nothing twice and no hole.
fn account(sent: &BTreeMap<u64, Vec<u8>>, found: &ReadBack, causes: &[Cause]) {
    assert_eq!(found.cut, []);
    let mut lost = 0;
    for (first, (ordinals, elements, bytes, cause)) in &found.gaps {
        assert!(causes.contains(cause), "{cause:?}");
        assert_eq!(*elements, Some(*ordinals), "what Holdfast drops is exact");
        let gone: u64 = (*first..first + ordinals).map(|o| sent[&o].len() as u64).sum();
        assert_eq!(*bytes, Some(gone));
        assert!((*first..first + ordinals).all(|o| !found.elements.contains_key(&o)));
        lost += ordinals;
    }
    assert_eq!(found.elements.len() as u64 + lost, sent.len() as u64);
    assert!(found.elements.iter().all(|(ordinal, data)| sent[ordinal] == *data), "other bytes");
}

#[test]
fn through_stalls_what_was_sent_is_recorded_or_in_an_exact_gap() {
    let mut dropped = 0;
    for seed in 0..12 {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let plan = FaultPlan {
            latency: MS / 4,
            jitter: MS,
            reorder: true,
            stalls: vec![Stall { first: 20 * MS, length: 60 * MS, every: Some(150 * MS) }],
            ..FaultPlan::default()
        };
        let mut rig = Rig::start(made(200), plan, seed, &clock, Overload::DropNewest);
        rig.feed(4000);
        let (image, sent) = rig.end();
        let found = read(image);
        account(&sent, &found, &[Cause::NoBuffer]);
        dropped += found.gaps.len();
    }
    assert!(dropped > 0, "the stalls were to cost something");
}

// What is lost for want of a processor is told from what is lost for want of buffers.
#[test]
fn what_comes_while_capture_is_away_is_lost_for_want_of_a_processor() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let plan = FaultPlan { latency: MS / 4, ..FaultPlan::default() };
    let mut rig = Rig::start(made(200), plan, 1, &clock, Overload::DropNewest);
    rig.feed(100);
    assert!(rig.capture.away().longest <= MS, "{:?}", rig.capture.away());
    for _ in 0..1500 {
        rig.send();
    }
    clock.set(clock.now() + MS * 300);
    let back = clock.now();
    for _ in 0..10_000 {
        rig.step();
    }
    let away = rig.capture.away();
    assert!(away.longest >= MS * 300 && away.longest <= MS * 301 && away.since == back, "{away:?}");
    rig.feed(100);
    let (image, sent) = rig.end();
    let found = read(image);
    account(&sent, &found, &[Cause::NoProcessor]);
    assert_eq!(found.gaps.len(), 1);
}

#[test]
fn slots_that_overtake_each_other_never_starve_capture() {
    for seed in 0..6 {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let plan = FaultPlan { jitter: 60 * MS, reorder: true, ..FaultPlan::default() };
        let mut rig = Rig::start_with(made(60), plan, seed, &clock, Overload::DropNewest, 16);
        let (mut before, mut still) = (0, 0);
        for _ in 0..10_000 {
            rig.send();
            rig.step();
            let sealed = rig.capture.slots_sealed();
            still = if sealed == before { still + 1 } else { 0 };
            before = sealed;
            assert!(still < 2000, "seed {seed}: nothing was sealed any more after {sealed} slots");
        }
        assert!(before > 120, "{before} slots");
        drop(rig.end());
    }
}

#[test]
fn bad_places_cost_slots_and_nothing_else() {
    for seed in 0..6 {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let image = made(300);
        let first = (1 << 20) + 4 * SLOT;
        // Every fifth slot is unwritable.
        let unwritable = (0..60).map(|n| first + n * 5 * SLOT..first + (n * 5 + 1) * SLOT).collect();
        let plan = FaultPlan { unwritable, jitter: MS, ..FaultPlan::default() };
        let mut rig = Rig::start(image, plan, seed, &clock, Overload::DropNewest);
        rig.feed(6000);
        // Those in doubt are tried a third time one by one.
        let seen = rig.capture.driver().ring();
        let (bad, aside) = (seen.status("x").slots.bad as usize, seen.failed_writes());
        assert!(bad > 4 && bad + aside >= 20, "{bad} bad slots, {aside} in doubt");
        let (image, sent) = rig.end();
        account(&sent, &read(image), &[Cause::NoBuffer]);
    }
}

#[test]
fn a_device_that_goes_away_and_returns_costs_what_came_meanwhile_and_says_so() {
    let everything = 0..u64::MAX;
    for seed in 0..16 {
        // One that is gone, and one that answers every write with an error.
        let gone = seed < 8;
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let plan = FaultPlan { latency: MS / 4, ..FaultPlan::default() };
        let mut rig = Rig::start(made(200), plan, seed, &clock, Overload::DropNewest);
        rig.feed(1000);
        if gone {
            rig.capture.disk_mut().die();
        } else {
            rig.capture.disk_mut().plan_mut().unwritable.push(everything.clone());
        }
        rig.feed(1500);
        assert!(rig.capture.driver().ring().is_absent());
        rig.capture.disk_mut().come_back();
        rig.capture.disk_mut().plan_mut().unwritable.clear();
        // It is tried again every second.
        for _ in 0..20_000 {
            rig.step();
        }
        assert!(!rig.capture.driver().ring().is_absent());
        assert_eq!(rig.capture.driver().ring().status("x").slots.bad, 0, "nothing is held against the slots");
        rig.feed(500);
        let (image, sent) = rig.end();
        let found = read(image);
        account(&sent, &found, &[Cause::NoBuffer, Cause::DeviceAbsent]);
        assert!(found.gaps.values().any(|gap| gap.3 == Cause::DeviceAbsent), "{:?}", found.gaps);
        let last = *sent.keys().last().unwrap();
        assert!(found.elements.contains_key(&last), "it records again");
    }
}

#[test]
fn after_a_crash_ordinals_go_on_where_nobody_has_seen_one_and_a_gap_says_so() {
    for seed in 0..8 {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut image = made(200);
        let mut all = BTreeMap::new();
        for run in 0..4 {
            let plan = FaultPlan { latency: MS / 4, jitter: MS, ..FaultPlan::default() };
            let mut rig = Rig::start(image, plan, seed + 100 * run, &clock, Overload::Block);
            // Blocking sources cannot be fed by the thread that takes from them beyond the pool: little at a time.
            rig.feed(200 + 50 * seed as usize);
            clock.set(clock.now() + Duration::from_secs(1));
            let newest = *rig.sent.keys().last().unwrap();
            assert!(all.keys().last().is_none_or(|last| last < &newest));
            assert!(rig.sent.keys().all(|ordinal| !all.contains_key(ordinal)), "an ordinal is given twice");
            assert_eq!(rig.sent.keys().next().unwrap() % CRASH_STEP, 0);
            all.extend(rig.sent.clone());
            let mut disk = rig.capture.into_disk();
            image = disk.crash();
        }
        let clean = Rig::start(image, FaultPlan::default(), 1, &clock, Overload::Block);
        let (image, _) = clean.end();
        let found = read(image);
        assert!(found.elements.iter().all(|(ordinal, data)| all[ordinal] == *data));
        // Every hole in the ordinals is a gap that begins behind the last element that is kept.
        let kept: Vec<u64> = found.elements.keys().copied().collect();
        for pair in kept.windows(2).filter(|pair| pair[1] != pair[0] + 1) {
            let (first, (ordinals, elements, _, cause)) = found.gaps.range(pair[0] + 1..).next().unwrap();
            assert_eq!((*first, *elements, *cause), (pair[0] + 1, None, Cause::Crash));
            assert_eq!(first + ordinals, pair[1], "seed {seed}");
        }
        // What it cut off is the first that its gap counts.
        assert!(found.cut.iter().all(|cut| found.gaps.contains_key(cut)), "seed {seed}: {:?}", found.cut);
        // A run that ended well is followed by no gap.
        assert!(!recover(&mut MemoryDisk::from_image(made(30))).unwrap().after_crash());
    }
}

/// Promises 2 and 6: slots are written beside each other, and a crash may take one and leave a later one: or it takes one that was
/// waiting, and the journal has what came behind it.
#[test]
fn what_a_crash_takes_out_of_the_middle_is_told_in_a_gap() {
    let mut inside = 0;
    for seed in 0..80 {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let plan = FaultPlan { latency: MS, jitter: 90 * MS, reorder: true, ..FaultPlan::default() };
        let mut rig = Rig::start_with(made(400), plan, seed, &clock, Overload::Block, 6);
        for _ in 0..10 {
            rig.feed(20);
            for _ in 0..100 {
                rig.step();
            }
        }
        // Some slots are on their way.
        rig.feed(170);
        for _ in 0..seed % 3 {
            // Slow enough for the journal.
            clock.set(clock.now() + Duration::from_millis(700));
            rig.feed(1);
        }
        let sent = rig.sent.clone();
        // Of what was under way nothing is there; what overtook it is.
        let image = rig.capture.into_disk().crash_with(Survival::Nothing);
        let mut next = Rig::start(image, FaultPlan::default(), 1, &clock, Overload::Block);
        next.feed(3);
        let all: BTreeMap<u64, Vec<u8>> = sent.into_iter().chain(next.sent.clone()).collect();
        let (image, _) = next.end();
        let found = read(image);
        assert!(found.elements.iter().all(|(ordinal, data)| all[ordinal] == *data));
        let cut = found.cut.iter().filter(|cut| !found.gaps.contains_key(cut));
        let kept: BTreeSet<u64> = found.elements.keys().chain(cut).copied().collect();
        let kept: Vec<u64> = kept.into_iter().collect();
        let behind = std::iter::once(0).chain(kept.iter().map(|kept| kept + 1));
        let holes: Vec<(u64, u64)> = behind.zip(kept.iter().copied()).filter(|(a, b)| a != b).collect();
        for (first, next) in &holes {
            let (ordinals, elements, _, cause) = found.gaps[first];
            assert_eq!((elements, cause), (None, Cause::Crash), "seed {seed}");
            assert_eq!(first + ordinals, *next, "seed {seed}");
            inside += usize::from(next % CRASH_STEP != 0);
        }
        assert_eq!(found.gaps.len(), holes.len(), "seed {seed}: {:?}", found.gaps);
    }
    assert!(inside > 5, "{inside} holes in the middle");
}

/// A disk that stands still from then on, for ten seconds.
fn still_from(first: Duration) -> FaultPlan {
    let stall = Stall { first, length: Duration::from_secs(10), every: None };
    FaultPlan { stalls: vec![stall], ..FaultPlan::default() }
}

impl Rig {
    /// Feeds until a slot is on its way to a disk that stands still: which.
    fn feed_until_one_is_on_its_way(&mut self, since: Timestamp) -> Sequence {
        loop {
            self.feed(1);
            if let Some(first) = self.capture.driver().on_the_way().min()
                && self.clock.now() > since
            {
                return first;
            }
        }
    }

    fn read(&mut self, sequence: Sequence) -> Option<Answer> {
        let reader = ReadOrigin { class: Class::Search, client: 1 };
        let buffer = Buffer::aligned(SLOT as usize).unwrap();
        self.capture.ask(7, Ask::Read(sequence, 0, SLOT as u32, buffer, reader), self.clock.now())
    }

    fn wait_for(&mut self, sequence: Sequence) {
        self.clock.set(self.clock.now() + Duration::from_secs(11));
        while self.capture.driver().on_the_way().any(|moving| moving == sequence) {
            self.step();
        }
    }
}

/// Promise 1: between two steps of capture answers about the open slot are few; whoever asks for more asks again.
#[test]
fn questions_about_the_open_slot_leave_capture_its_turn() {
    const ROOM: usize = 192 << 10;
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut rig = Rig::start(made(30), FaultPlan::default(), 4, &clock, Overload::Block);
    rig.feed(5);
    let open = rig.capture.driver().ring().status("r").sequence;
    let told = |rig: &mut Rig| {
        let asked = Ask::Index(open, 0, OpenSlotProjection::ROWS, vec![0; ROOM]);
        match rig.capture.ask(8, asked, clock.now()) {
            Some(Answer::Index(Ok((_, end)), parts, _)) => {
                assert_eq!(end, !parts.is_empty());
                end
            }
            other => panic!("{other:?}"),
        }
    };
    for _ in 0..3 {
        let answered = (0..48).take_while(|_| told(&mut rig)).count();
        assert!((1..=(1 << 20) / ROOM + 1).contains(&answered), "{answered} in a row");
        assert!(!told(&mut rig));
        rig.step();
    }
    rig.end();
}

/// What came a moment ago is read however long the disk takes.
#[test]
fn a_slot_on_its_way_is_read_from_memory_and_is_the_same_on_the_medium() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let plan = still_from(50 * MS);
    let mut rig = Rig::start_with(made(30), plan, 3, &clock, Overload::DropNewest, 5);
    let first = rig.feed_until_one_is_on_its_way(clock.now() + 60 * MS);
    let Some(Answer::Read(early, len, Ok(()))) = rig.read(first) else { panic!("it was not read") };
    assert_eq!(u64::from(len), SLOT);
    // Capture has its turn before much is copied.
    let copied = (1..100).take_while(|_| matches!(rig.read(first), Some(Answer::Read(_, _, Ok(()))))).count();
    assert_eq!(copied as u64 + 1, (1 << 20) / SLOT);
    rig.step();
    assert!(matches!(rig.read(first), Some(Answer::Read(_, _, Ok(())))));
    rig.wait_for(first);
    assert!(rig.read(first).is_none(), "from the disk");
    let Answer::Read(late, _, Ok(())) = rig.answer() else { panic!("it was not read") };
    let bytes = early.iter().rposition(|byte| *byte != 0).unwrap();
    assert!(bytes > SLOT as usize * 9 / 10 && early[..bytes] == late[..bytes]);
    assert!(check_image(&early[..bytes.next_multiple_of(4096)], &Key([9; 32]), RingId([7; 16])).is_ok());
    rig.end();
}

/// Promise 6: an ordinal that somebody has seen is never given again, so nothing is shown that a second crash could take along with the
/// gap of the first.
#[test]
fn after_a_crash_nothing_is_shown_before_its_gaps_are_durable() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut rig = Rig::start(made(30), FaultPlan::default(), 4, &clock, Overload::Block);
    rig.feed(300);
    let image = rig.capture.into_disk().crash();
    // Before the first slot is full.
    let plan = still_from(2 * MS);
    let mut rig = Rig::start_with(image, plan, 5, &clock, Overload::DropNewest, 5);
    let first = rig.feed_until_one_is_on_its_way(clock.now() + 3 * MS);
    assert_eq!(rig.capture.slots_sealed(), 1);
    while !rig.capture.driver().on_the_way().any(|moving| moving > first) {
        rig.feed(1);
    }
    let open = rig.capture.driver().ring().status("r").sequence;
    let shown = |rig: &mut Rig| {
        let asked = Ask::Index(open, 0, OpenSlotProjection::ROWS, vec![0; 1 << 20]);
        matches!(rig.capture.ask(8, asked, clock.now()), Some(Answer::Index(Ok(_), ..)))
    };
    assert!(matches!(rig.read(first), Some(Answer::Read(_, _, Err(NotRead::Pending)))));
    assert!(!shown(&mut rig));
    rig.wait_for(first);
    assert!(rig.read(first).is_none(), "it is on the medium");
    assert!(shown(&mut rig));
    rig.end();
}

/// Promise 4: what the sources had handed over when a hold was given is in it, and survives a crash once it stands.
#[test]
fn a_hold_has_what_sources_handed_over_before_it() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut rig = Rig::start(made(60), FaultPlan::default(), 3, &clock, Overload::Block);
    rig.feed(50);
    // Three batches that nobody has taken yet.
    for _ in 0..3 {
        rig.send();
        rig.producer.as_mut().unwrap().flush().unwrap();
    }
    rig.ask_for_a_hold();
    let outcome = rig.answer();
    assert!(matches!(outcome, Answer::Outcome(Outcome::Held { .. })), "{outcome:?}");
    let found = read(rig.capture.into_disk().durable());
    assert_eq!(found.elements, rig.sent);
}

/// Promises 4 and 6: an order that was taken is carried out though the run ends; those that come then are refused, and so are the
/// steps of a job.
#[test]
fn orders_and_steps_that_come_while_the_run_ends_are_refused() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut rig = Rig::start(made(60), FaultPlan::default(), 3, &clock, Overload::Block);
    rig.feed(50);
    rig.ask_for_a_hold();
    rig.capture.drain();
    let now = clock.now();
    let release = || Ask::Order(Order::Release(HoldId(1).into()));
    assert!(matches!(rig.capture.ask(2, release(), now), Some(Answer::Ending)));
    assert!(rig.capture.ask(0, Ask::JobStep(JobStep::Pause), now).is_none());
    let mut answers = vec![rig.answer(), rig.answer()];
    answers.sort_by_key(|answer| matches!(answer, Answer::Ending));
    assert!(matches!(answers[..], [Answer::Outcome(Outcome::Held { .. }), Answer::Ending]), "{answers:?}");
    rig.end();
}

/// Promise 4: a hold waits for what arrived before it and is still with its source; but not for ever.
#[test]
fn a_hold_waits_for_what_arrived_before_it() {
    for hands_over in [true, false] {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut rig = Rig::start(made(60), FaultPlan::default(), 3, &clock, Overload::Block);
        rig.feed(50);
        // Just arrived: its batch is not handed over.
        let producer = rig.producer.as_mut().unwrap();
        producer.stamp();
        let ordinal = producer.next_ordinal().0;
        producer.element(&[], b"just now", Marks::default()).unwrap();
        rig.ask_for_a_hold();
        for _ in 0..100 {
            rig.step();
            assert!(rig.capture.answer().is_none());
        }
        if hands_over {
            rig.sent.insert(ordinal, b"just now".to_vec());
            rig.producer.as_mut().unwrap().idle().unwrap();
        }
        let asked = clock.now();
        let outcome = rig.answer();
        assert!(matches!(outcome, Answer::Outcome(Outcome::Held { .. })), "{outcome:?}");
        assert_eq!(clock.now().since(asked) > 100 * MS, !hands_over);
        let found = read(rig.capture.into_disk().durable());
        assert_eq!(found.elements, rig.sent);
    }
}
