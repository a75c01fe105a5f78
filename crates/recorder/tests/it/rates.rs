//! Tests of promises 1 and 2 for several streams: on a ring that was admitted for their declared rates, a stream that
//! keeps to its rate loses nothing, whatever others send, readers want, or the drive cannot read; a stream that exceeds
//! its rate loses only the excess, and all of it is accounted for. The capture core over an emulated drive, in virtual
//! time.
#![allow(clippy::unwrap_used)] // helpers of tests are tests too

use crate::slow_drive;

use holdfast_base::{Clock, ManualClock, Ordinal, Rate, RingId, Timestamp};
use holdfast_format::{Cause, Counters, Geometry, Key, StreamKind};
use holdfast_ingest::{Marks, Overload, Parker, Pressure, Producer, ProducerSettings, channel};
use holdfast_media::drive::Payload;
use holdfast_media::{Buffer, Disk, EmulatedDisk, Image, Seed};
use holdfast_recorder::capture::{Answer, Capture, Stream};
use holdfast_ring::{
    Config, Declared, Driver, NewRing, NewStream, Rates, Shape, admit, create, figures, load, recover,
};
use proptest::prelude::*;
use slow_drive::{QUANTUM, SLOT, ask, drive, measured};
use std::sync::Arc;
use std::time::Duration;

const SLOTS: u64 = 40;
const FLUSH: Duration = Duration::from_secs(1);

/// What a stream is, and what it does.
#[derive(Clone, Debug)]
struct Habit {
    /// Its part of what is admitted, in thousandths; 0: it declares nothing.
    share: u64,
    /// Bytes of an element.
    element: usize,
    /// How many times its rate it brings, and in which tenths of the time; else it keeps to its rate.
    times: f64,
    wild: [bool; 10],
}

impl Habit {
    fn tame(share: u64, element: usize) -> Self {
        Self { share, element, times: 1.0, wild: [false; 10] }
    }

    fn keeps_to_it(&self) -> bool {
        self.share > 0 && (self.times <= 1.0 || self.wild == [false; 10])
    }
}

/// One stream in time.
struct Source {
    habit: Habit,
    producer: Producer,
    /// Bytes a second that it may bring.
    rate: f64,
    next: Timestamp,
    sent: u64,
    bytes: u64,
}

/// A recorder without threads, at what it was admitted for.
struct Rig {
    capture: Capture<EmulatedDisk>,
    sources: Vec<Source>,
    clock: ManualClock,
    began: Timestamp,
    seed: Seed,
    readers: Vec<Buffer>,
    read: u64,
}

impl Rig {
    fn start(habits: &[Habit], gather: u16, readers: usize, held: bool) -> Self {
        let drive = drive(SLOTS);
        let measured = measured(&drive);
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let kept = Payload::Kept(Image::new(drive.bytes));
        let mut disk = EmulatedDisk::new(drive, kept, 1, clock.clone());
        let geometry = Geometry::for_lane(disk.info().bytes, SLOT.0, Vec::new()).unwrap();
        create(&mut disk, NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry), clock.now()).unwrap();
        let recovered = recover(&mut disk).unwrap();

        let shape = |buffers| Shape { slot: SLOT, flush: FLUSH, gather, quantum: QUANTUM as u32, buffers };
        let declared = |habit: &Habit, all: u64| {
            let rate = all * habit.share / 1000;
            let elements = rate / habit.element as u64 + 1;
            (rate > 0).then_some(Declared { rate: Rate(rate), elements, ..Declared::NOTHING })
        };
        let all = |all: u64| habits.iter().map(|habit| declared(habit, all)).collect::<Vec<_>>();
        let medium = |rate| load(&all(rate).into_iter().flatten().collect::<Vec<_>>(), SLOT);
        // As fast as is admitted.
        let most = figures(&measured, &medium(1 << 20), &shape(u32::MAX)).with_reads.0;
        let rate = (0..most).rev().step_by(4096).find(|rate| medium(*rate).rate.0 <= most).unwrap();
        let load = medium(rate);
        // And in no more memory than it takes.
        let buffers = admit(&measured, &load, &shape(u32::MAX)).unwrap().buffers;
        let pool = (0..buffers).map(|_| Buffer::aligned(SLOT.0 as usize).unwrap()).collect();
        let config = Config { buffers, flush: FLUSH, writes: 3 };
        let mut driver = Driver::start(disk, recovered, pool, config, clock.now(), clock.wall()).unwrap();
        driver.promise(&measured, &load, &shape(buffers)).unwrap();

        let (mut streams, mut inlets, mut sources) = (Vec::new(), Vec::new(), Vec::new());
        let pressure = Arc::new(Pressure::default());
        for (at, habit) in habits.iter().enumerate() {
            let name = format!("s{at}");
            let new = NewStream {
                name: &name,
                kind: StreamKind::Bytes,
                framing: "whole",
                preamble: None,
                schema: None,
            };
            let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
            streams.push(Stream { entry, lost_since: None });
            let settings = ProducerSettings::new(Overload::DropNewest, Ordinal(0));
            let (producer, inlet) =
                channel(&settings, Arc::new(clock.clone()), Arc::clone(&pressure), Parker::new().waker());
            inlets.push(inlet);
            let declared = all(rate)[at].map_or(1 << 20, |declared| declared.rate.0) as f64;
            let next = clock.now();
            sources.push(Source { habit: habit.clone(), producer, rate: declared, next, sent: 0, bytes: 0 });
        }
        let mut capture = Capture::start(driver, &streams, inlets, pressure, FLUSH, &clock).unwrap();
        while capture.driver().is_starting() {
            capture.step(clock.now(), Duration::from_millis(10));
        }
        let began = clock.now();
        if held {
            let rest = Declared::NOTHING;
            capture.hold_to(Rates::new(&all(rate), &rest, began));
        }
        for source in &mut sources {
            source.next = began;
        }
        let readers = (0..readers).map(|_| Buffer::aligned(QUANTUM).unwrap()).collect();
        Self { capture, sources, clock, began, seed: Seed::new(3), readers, read: 0 }
    }

    /// Lets all streams come for so long, and the lane work and be read from.
    fn run(&mut self, lasts: Duration) {
        let end = self.began + lasts;
        loop {
            let at = (0..self.sources.len()).min_by_key(|at| self.sources[*at].next).unwrap();
            let next = self.sources[at].next;
            if next >= end {
                return;
            }
            self.wait(next);
            let tenth = (next.since(self.began).as_nanos() * 10 / lasts.as_nanos()) as usize;
            let source = &mut self.sources[at];
            let times = if source.habit.wild[tenth.min(9)] { source.habit.times } else { 1.0 };
            source.producer.stamp();
            source.producer.element(&[], &vec![7; source.habit.element], Marks::default()).unwrap();
            source.producer.idle().unwrap();
            source.sent += 1;
            source.bytes += source.habit.element as u64;
            // A little slower than it may: so many elements are not exactly its rate.
            let pace = source.habit.element as f64 / (source.rate * times);
            source.next = source.next + Duration::from_secs_f64(pace);
            self.capture.step(self.clock.now(), Duration::ZERO);
        }
    }

    fn wait(&mut self, until: Timestamp) {
        loop {
            let now = self.clock.now();
            ask(&mut self.capture, &mut self.readers, &mut self.seed, now);
            let wait = until.since(now);
            if wait.is_zero() {
                return;
            }
            self.capture.step(now, wait.min(Duration::from_millis(20)));
            if self.clock.now() == now {
                self.clock.set(until.min(now + Duration::from_millis(20)));
            }
            while let Some((_, answer)) = self.capture.answer() {
                let Answer::Read(buffer, len, result) = answer else { panic!("{answer:?}") };
                self.read += if result.is_ok() { u64::from(len) } else { 0 };
                self.readers.push(buffer);
            }
        }
    }

    /// Ends all streams; by stream, what was sent and what became of it.
    fn end(mut self) -> Vec<Account> {
        self.readers.clear();
        while self.capture.unpacked_batches() > 0 {
            self.wait(self.clock.now() + Duration::from_millis(20));
        }
        for source in &mut self.sources {
            source.producer.finish().unwrap();
        }
        let source = |source: Source| {
            let over_rate = source.producer.counters().dropped(Cause::OverRate);
            (source.habit, source.sent, source.bytes, over_rate)
        };
        let sources: Vec<_> = self.sources.drain(..).map(source).collect();
        loop {
            let now = self.clock.now();
            if self.capture.step(now, Duration::from_millis(20)).done {
                break;
            }
            if self.clock.now() == now {
                self.clock.set(now + Duration::from_millis(1));
            }
        }
        let account = |(at, (habit, sent, bytes, over_rate))| {
            let counters = self.capture.counters(at);
            Account { habit, sent, bytes, over_rate, counters }
        };
        sources.into_iter().enumerate().map(account).collect()
    }
}

#[derive(Debug)]
struct Account {
    habit: Habit,
    sent: u64,
    bytes: u64,
    /// Elements that were dropped with this cause.
    over_rate: u64,
    counters: Counters,
}

/// What is wrong with an account.
fn wrong(account: &Account) -> Option<String> {
    let Account { habit, sent, bytes, over_rate, counters } = account;
    if counters.received + counters.lost != *sent || counters.received_bytes + counters.lost_bytes != *bytes {
        return Some(format!("something is not accounted for: {account:?}"));
    }
    if counters.unknown_gaps > 0 || *over_rate * 2 < counters.lost {
        return Some(format!("a loss of another kind: {account:?}"));
    }
    (habit.keeps_to_it() && counters.gaps > 0).then(|| format!("it kept to its rate: {account:?}"))
}

fn rogue(share: u64, times: f64) -> Habit {
    Habit { times, wild: [true; 10], ..Habit::tame(share, 32 << 10) }
}

#[test]
fn who_comes_too_fast_loses_what_is_beyond_and_nobody_else_anything() {
    let habits = [Habit::tame(500, 64 << 10), rogue(300, 5.0), Habit::tame(200, 1400)];
    let mut rig = Rig::start(&habits, 4, 6, true);
    rig.run(Duration::from_mins(2));
    assert!(rig.read > 16 << 20, "readers get their turns all the same: {} bytes", rig.read);
    let accounts = rig.end();
    let wrong: Vec<String> = accounts.iter().filter_map(wrong).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let beyond = &accounts[1];
    assert!(beyond.counters.lost > beyond.sent / 2, "a fifth of it is within its rate: {beyond:?}");
    assert!(beyond.counters.received * 5 > beyond.sent * 9 / 10, "and that is kept: {beyond:?}");
}

// So that the test above can fail.
#[test]
fn without_being_held_it_would_cost_the_others_theirs() {
    let habits = [Habit::tame(500, 64 << 10), rogue(300, 5.0), Habit::tame(200, 1400)];
    let mut rig = Rig::start(&habits, 4, 6, false);
    rig.run(Duration::from_mins(2));
    let accounts = rig.end();
    assert!(accounts[0].counters.lost > 0, "{accounts:?}");
}

#[test]
fn where_there_is_room_everything_is_recorded() {
    // A tenth is declared by who is silent but for an element now and then.
    let silent = Habit { times: 0.01, wild: [true; 10], ..Habit::tame(900, 64 << 10) };
    let nobody = Habit { times: 4.0, wild: [true; 10], ..Habit::tame(0, 32 << 10) };
    let mut rig = Rig::start(&[silent, rogue(100, 3.0), nobody], 2, 0, true);
    rig.run(Duration::from_mins(1));
    let excess = rig.capture.excess(1);
    for account in rig.end() {
        assert_eq!((account.counters.lost, account.counters.received), (0, account.sent), "{account:?}");
    }
    assert!(excess.bytes > 10 << 20, "two thirds of it were beyond its rate: {excess:?}");
}

fn habits() -> impl Strategy<Value = Vec<Habit>> {
    let element = prop::sample::select(vec![200usize, 1400, 9000, 64 << 10, 200 << 10]);
    let wild = prop::array::uniform10(any::<bool>());
    let habit = (1u64..10, element, prop::option::of(1.5f64..10.0), wild);
    prop::collection::vec(habit, 2..5).prop_map(|all| {
        let total: u64 = all.iter().map(|habit| habit.0).sum();
        let mut habits: Vec<Habit> = all
            .into_iter()
            .map(|(part, element, times, wild)| Habit {
                times: times.unwrap_or(1.0),
                wild,
                ..Habit::tame(part * 1000 / total, element)
            })
            .collect();
        // Somebody behaves, and sometimes somebody has declared nothing.
        habits[0].times = 1.0;
        if habits.len() == 4 {
            habits[3].share = 0;
        }
        habits
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    // Against the naive model: what a stream sent within its rate is there, all of it.
    #[test]
    fn whoever_keeps_to_its_rate_loses_nothing(habits in habits(), gather in 1u16..5, readers in 0usize..7) {
        let mut rig = Rig::start(&habits, gather, readers, true);
        rig.run(Duration::from_secs(40));
        let wrong: Vec<String> = rig.end().iter().filter_map(wrong).collect();
        prop_assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
