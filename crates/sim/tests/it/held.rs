//! Tests of held ranges: a read of a range when its hold is acknowledged and a read when everything else has
//! expired are equal. Elements that lie across slots are whole (promise 4), and of no other element does the
//! read say anything worse than that a part of it has expired (promise 2).
//!
//! One seed again: `HOLDFAST_SEED=123 cargo test -p holdfast-sim --test it held`. More seeds: `HOLDFAST_SEEDS=20` (times as many).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{Clock, ManualClock, Ordinal, RingId, Sequence, StreamId, Timestamp};
use holdfast_format::{Flags, Geometry, Key, Kind, Row, SlotFlags, StreamKind};
use holdfast_media::{MemoryDisk, Seed};
use holdfast_reader::{Item, Missing, RingReader, Selection};
use holdfast_ring::{
    Config, HoldRequest, NewRing, NewStream, Order, OrderTag, Outcome, Range, Refusal, create, recover,
};
use holdfast_sim::{Content, Recorder, seeds};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

const SLOT: u64 = 64 << 10;
const SLOTS: u64 = 48;
const STREAMS: usize = 3;

/// An element, as far as it has come.
#[derive(Clone, Debug)]
struct Recorded {
    stream: usize,
    ordinal: u64,
    len: usize,
    content: Content,
    event: Option<Timestamp>,
    /// Bytes that have come, in how many fragments, when the last of them did, and in which slots they are.
    there: usize,
    number: u32,
    arrival: Timestamp,
    slots: BTreeSet<u64>,
}

impl Recorded {
    fn is_in(&self, selection: &Selection, ids: &[StreamId]) -> bool {
        let range = &selection.range;
        let time = if range.by_event { self.event } else { Some(self.arrival) };
        self.there == self.len
            && selection.wants(ids[self.stream])
            && (!range.is_timed() || time.is_some_and(|time| range.from <= time && time <= range.to))
            && range.ordinals.is_none_or(|(first, end)| (first.0..end.0).contains(&self.ordinal))
    }
}

struct Run {
    recorder: Recorder<MemoryDisk>,
    clock: ManualClock,
    seed: Seed,
    ids: Vec<StreamId>,
    next: [u64; STREAMS],
    /// The element of each stream that is not complete.
    open: [Option<Recorded>; STREAMS],
    whole: Vec<Recorded>,
}

impl Run {
    fn start(seed: u64) -> Self {
        let clock = ManualClock::new(Timestamp(1_000_000_000_000));
        let lane = (1 << 20) + (4 + SLOTS) * SLOT;
        let mut disk = MemoryDisk::new(lane);
        let geometry = Geometry::for_lane(lane, SLOT, Vec::new()).unwrap();
        let new = NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry);
        create(&mut disk, new, Timestamp(1)).unwrap();
        let recovered = recover(&mut disk).unwrap();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 2 };
        let mut recorder = Recorder::start(disk, recovered, config, &clock);
        let mut ids = Vec::new();
        for name in ["a", "b", "c"] {
            let new = NewStream { name, kind: StreamKind::Bytes, framing: "", preamble: None, schema: None };
            let entry = recorder.add_stream(&new).unwrap();
            ids.push(recorder.entries[usize::from(entry)].stream);
        }
        let open = [const { None }; STREAMS];
        Self { recorder, clock, seed: Seed::new(seed), ids, next: [0; STREAMS], open, whole: Vec::new() }
    }

    fn poll(&mut self) {
        self.clock.set(self.clock.now() + Duration::from_millis(1));
        self.recorder.poll();
    }

    /// Makes sure that a slot is open that has `room`.
    fn room(&mut self, room: usize) -> Sequence {
        if self.recorder.open().is_some() && self.recorder.room() < room {
            self.recorder.seal(SlotFlags::default());
        }
        while self.recorder.open().is_none() {
            self.poll();
            self.recorder.open_slot();
        }
        self.recorder.open().unwrap()
    }

    /// A piece of at most `most` bytes of a stream's element, of the next one where none is open.
    fn piece(&mut self, stream: usize, most: usize) {
        self.poll();
        let mut element = self.open[stream].take().unwrap_or_else(|| {
            let len = match self.seed.below(16) {
                0..8 => self.seed.below(300),
                8..12 => self.seed.below(9_000),
                12..15 => self.seed.below(40_000),
                _ => self.seed.below(200_000),
            };
            let event = self.seed.happens(0.7).then(|| Timestamp(self.clock.now().0 / 2));
            let ordinal = self.next[stream];
            self.next[stream] += 1;
            Recorded {
                stream,
                ordinal,
                len: len as usize,
                content: Content::Salt(self.seed.bits()),
                event,
                there: 0,
                number: 0,
                arrival: Timestamp(0),
                slots: BTreeSet::new(),
            }
        });
        let slot = self.room(1);
        let left = element.len - element.there;
        let len = left.min(most).min(SLOT as usize / 8).min(self.recorder.room());
        let (last, whole) = (len == left, len == element.len && element.number == 0);
        let mut row = Row {
            stream: stream as u16,
            kind: if whole { Kind::Element } else { Kind::Fragment },
            len: len as u32,
            number: element.number,
            offset: element.there as u64,
            ordinal: Ordinal(element.ordinal),
            arrival: self.clock.now(),
            ..Row::default()
        };
        if last && !whole {
            row.flags = row.flags | Flags::LAST;
        }
        if let Some(event) = element.event {
            (row.flags, row.event) = (row.flags | Flags::EVENT, event);
        }
        self.recorder.push(&row, &element.content.range(element.there as u64, len));
        (element.there, element.number, element.arrival) =
            (element.there + len, element.number + 1, row.arrival);
        element.slots.insert(slot.0);
        if last {
            self.whole.push(element);
        } else {
            self.open[stream] = Some(element);
        }
    }

    /// Fills some slots with pieces of all streams, some larger than others, some streams seldom.
    fn fill(&mut self, slots: u64) {
        let until = self.room(1).0 + slots;
        let often = [0; STREAMS].map(|_| 1 + self.seed.below(8));
        while self.room(1).0 < until {
            let mut drawn = self.seed.below(often.iter().sum());
            let stream = often
                .iter()
                .position(|share| {
                    drawn < *share || {
                        drawn -= share;
                        false
                    }
                })
                .unwrap();
            let most = [64, 1_000, 9_000][self.seed.below(3) as usize];
            self.piece(stream, most);
            if self.seed.happens(0.01) {
                self.recorder.seal(SlotFlags::default());
            }
        }
    }

    /// Seals, and waits until all is on the medium.
    fn settle(&mut self) {
        self.recorder.seal(SlotFlags::SHORT);
        while !self.recorder.driver.is_idle() {
            self.poll();
        }
    }

    /// Whether all of an element is there.
    fn is_there(&self, element: &Recorded) -> bool {
        let driver = &self.recorder.driver;
        let there = |slot: u64| {
            driver.ring().holds_sequence(Sequence(slot))
                || driver.on_the_way().any(|moving| moving.0 == slot)
                || self.recorder.open() == Some(Sequence(slot))
        };
        element.slots.iter().all(|slot| there(*slot))
    }

    /// A range of one kind or another that begins with an element, and whether its slots are to be looked up by a reader.
    fn selection(&mut self) -> (Selection, bool) {
        let across: Vec<&Recorded> = self.whole.iter().filter(|element| element.slots.len() > 1).collect();
        let all: Vec<&Recorded> = self.whole.iter().collect();
        let among = if across.is_empty() || self.seed.happens(0.5) { all } else { across };
        let one = among[self.seed.below(among.len() as u64) as usize];
        let share = self.seed.below(1 + (self.clock.now().0 - one.arrival.0) as u64 / 4) as i64;
        let times = |by_event: bool| {
            let (from, share) = match one.event {
                Some(event) if by_event => (event, share / 2),
                _ => (one.arrival, share),
            };
            Range { from, to: Timestamp(from.0 + share), by_event, ordinals: None }
        };
        let first = one.ordinal.saturating_sub(self.seed.below(3));
        let ordinals = Some((Ordinal(first), Ordinal(one.ordinal + 1 + self.seed.below(3))));
        let (range, looked_up) = match self.seed.below(5) {
            0 => (Range { ordinals, ..Range::ALL }, true),
            1 => (Range { ordinals, ..times(false) }, true),
            2 => (times(true), true),
            3 => (times(true), false),
            _ => (times(false), false),
        };
        let one_stream = range.ordinals.is_some() || self.seed.happens(0.5);
        let streams = if one_stream { vec![self.ids[one.stream]] } else { Vec::new() };
        (Selection { streams, range }, looked_up)
    }

    /// Holds a range, and waits until that is acknowledged; `false` if there was nothing, or too much.
    fn hold(&mut self, selection: &Selection, sequences: Option<Vec<(Sequence, Sequence)>>) -> bool {
        let order = Order::Hold(HoldRequest {
            streams: selection.streams.clone(),
            range: selection.range.clone(),
            sequences,
            reason: "r".to_owned(),
            owner: "o".to_owned(),
            until: Timestamp::MAX,
            condition_hold: None,
            order: None,
        });
        let (brief, now) = (self.recorder.brief(), self.clock.now());
        self.recorder.driver.order(OrderTag(1), order, brief, now);
        loop {
            self.poll();
            match self.recorder.driver.reply() {
                None => {}
                Some((_, Outcome::Held { .. })) => return true,
                Some((_, Outcome::Refused(Refusal::Nothing { .. } | Refusal::NoRoom { .. }))) => {
                    return false;
                }
                Some((_, other)) => panic!("{other:?}"),
            }
        }
    }

    /// A reader of what is on the medium now.
    fn reader(&mut self) -> RingReader {
        let image = self.recorder.driver.disk_mut().snapshot();
        RingReader::over(Box::new(MemoryDisk::from_image(image))).unwrap()
    }
}

/// What a read gives: elements by stream and ordinal, and why others are not whole.
type Given = (BTreeMap<(StreamId, u64), Vec<u8>>, Vec<(StreamId, u64, Missing)>);

fn read(reader: &mut RingReader, selection: &Selection) -> Given {
    let (mut elements, mut partial) = (BTreeMap::new(), Vec::new());
    let plan = reader.plan(selection).unwrap();
    let report = reader.read(&plan, &mut |item| {
        match item {
            Item::Element(element) => {
                elements.insert((element.stream, element.ordinal.0), element.data.to_vec());
            }
            Item::Partial { stream, ordinal, why } => partial.push((stream, ordinal.0, why)),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    assert_eq!(report.unwrap().damaged, 0);
    (elements, partial)
}

#[test]
fn a_read_of_a_held_range_gives_what_it_gave_when_it_was_held() {
    let (mut held, mut across) = (0, 0);
    for seed in seeds(150) {
        let mut run = Run::start(seed);
        let slots = 8 + run.seed.below(SLOTS);
        run.fill(slots);
        if run.whole.is_empty() {
            continue;
        }
        let (selection, looked_up) = run.selection();
        let sequences = looked_up.then(|| {
            run.settle();
            run.reader().sequences(&selection).unwrap()
        });
        let wanted: Vec<Recorded> =
            run.whole.iter().filter(|e| e.is_in(&selection, &run.ids) && run.is_there(e)).cloned().collect();
        if sequences.as_ref().is_some_and(Vec::is_empty) || !run.hold(&selection, sequences) {
            continue;
        }
        held += wanted.len();
        across += wanted.iter().filter(|element| element.slots.len() > 1).count();
        run.fill(2 * SLOTS);
        // Whatever is left over then has lost something to expiry.
        while let Some(stream) = run.open.iter().position(Option::is_some) {
            run.piece(stream, 9_000);
        }
        run.settle();
        let mut reader = run.reader();
        let (elements, _) = read(&mut reader, &selection);
        for element in &wanted {
            let found = elements.get(&(run.ids[element.stream], element.ordinal));
            let bytes = element.content.range(0, element.len);
            assert!(found == Some(&bytes), "seed {seed}: {selection:?} does not give {element:?}");
        }
        let (elements, partial) = read(&mut reader, &Selection::ALL);
        let whole: BTreeMap<_, _> = run.whole.iter().map(|e| ((run.ids[e.stream], e.ordinal), e)).collect();
        for ((stream, ordinal), bytes) in &elements {
            let element = whole[&(*stream, *ordinal)];
            assert!(*bytes == element.content.range(0, element.len), "seed {seed}: {element:?} reads wrong");
        }
        for (stream, ordinal, why) in partial {
            let element = whole[&(stream, ordinal)];
            assert_eq!(why, Missing::Expired, "seed {seed}: {element:?}");
            assert!(!run.is_there(element), "seed {seed}: {element:?} is all there");
        }
    }
    assert!(std::env::var_os("HOLDFAST_SEED").is_some() || (held > 300 && across > 80), "{held} {across}");
}
