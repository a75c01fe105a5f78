//! A recorder in miniature whose held slots are distilled while it records, beside a naive copy of its rows by arrival time.
#![allow(clippy::unwrap_used, clippy::expect_used)]

pub(crate) mod drawn;

use holdfast_base::{
    Clock as _, HoldId, ManualClock, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp,
};
use holdfast_format::{
    Cause, ConditionHold, Flags, Gap, Geometry, Key, Kind, Row, SectionKind, SlotFlags, StreamKind,
};
use holdfast_media::{FaultPlan, FaultyDisk, Image, MemoryDisk, Seed};
use holdfast_ring::{
    Config, DistilRequest, HoldRequest, JobError, JobStep, NewRing, NewStream, Order, OrderTag, Original,
    Outcome, Range, SlotLook, SlotStatus, StepReply, Work, create, recover,
};
use holdfast_sim::{Content, Pushed, Recorder, SeenRow, SeenSlot, SurveyedSlot, schema, survey};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub(crate) const SLOT: u64 = 64 << 10;
pub(crate) const STREAMS: usize = 3;

/// What is there of an element that goes on.
#[derive(Clone, Debug)]
struct Open {
    ordinal: u64,
    len: usize,
    there: usize,
    number: u32,
    content: Content,
}

pub(crate) struct Run {
    pub(crate) recorder: Recorder<FaultyDisk>,
    pub(crate) clock: ManualClock,
    pub(crate) seed: Seed,
    pub(crate) ids: Vec<StreamId>,
    pub(crate) next: [u64; STREAMS],
    open: [Option<Open>; STREAMS],
    /// Every row that was pushed, by its arrival.
    pub(crate) rows: BTreeMap<i64, Pushed>,
    /// The rows of every slot that is known, by its sequence.
    pub(crate) contents: BTreeMap<u64, Vec<i64>>,
    /// The ages of copies.
    ages: BTreeMap<u64, u64>,
    orders: u64,
    /// What the work of a job is interrupted by, at most: so many more orders.
    pub(crate) disturbances: u32,
    /// Holds that were released while a job was at work.
    pub(crate) released: BTreeSet<u64>,
}

/// What an order has done, as the medium has it.
#[derive(Debug, Default)]
pub(crate) struct Change {
    pub(crate) gone: Vec<u64>,
    pub(crate) copies: Vec<u64>,
    /// Columns that these have.
    pub(crate) columns: usize,
    pub(crate) elements: u64,
    pub(crate) bytes: u64,
}

/// Whether a row is what was pushed. A note's ordinal is that of whatever comes next.
fn same(pushed: &Pushed, seen: &SeenRow) -> bool {
    if pushed.kind == Kind::Note {
        let same = (pushed.stream, pushed.kind, pushed.arrival) == (seen.stream, seen.kind, seen.arrival);
        return same && pushed.content.range(0, pushed.len) == seen.bytes;
    }
    pushed.is(seen)
}

/// Whether an original is named with that element.
fn names(original: &Original, row: &Pushed) -> bool {
    let named = |keep: &(StreamId, Ordinal, Ordinal)| {
        keep.0 == row.stream && keep.1.0 <= row.ordinal && row.ordinal < keep.2.0
    };
    original.keep.iter().any(named)
}

fn slot(found: &SurveyedSlot) -> &SeenSlot {
    found.slot.as_ref().unwrap_or_else(|error| panic!("{}: {error}", found.sequence))
}

pub(crate) fn arrivals(found: &SurveyedSlot) -> Vec<i64> {
    slot(found).rows.iter().map(|row| row.arrival.0).collect()
}

impl Run {
    pub(crate) fn start(seed: u64, slots: u64) -> Self {
        let clock = ManualClock::new(Timestamp(1_000_000_000_000));
        let lane = (1 << 20) + (4 + slots) * SLOT;
        let mut disk = MemoryDisk::new(lane);
        let geometry = Geometry::for_lane(lane, SLOT, Vec::new()).unwrap();
        let new = NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry);
        create(&mut disk, new, Timestamp(1)).unwrap();
        let image = disk.snapshot();
        Self::over(image, clock, Seed::new(seed), b"first")
    }

    /// Begins a run on a medium.
    fn over(image: Image, clock: ManualClock, mut seed: Seed, preamble: &[u8]) -> Self {
        let plan = FaultPlan { latency: Duration::from_micros(300), ..FaultPlan::default() };
        let mut disk = FaultyDisk::new(image, plan, seed.bits(), clock.clone());
        let recovered = recover(&mut disk).unwrap();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 2 };
        let mut recorder = Recorder::start(disk, recovered, config, &clock);
        let (mut ids, mut next) = (Vec::new(), [0; STREAMS]);
        for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
            let preamble = (at == 0).then_some(preamble);
            let schema = (at != 1).then(schema);
            let new = NewStream { name, kind: StreamKind::Bytes, framing: "", preamble, schema };
            let entry = recorder.add_stream(&new).unwrap();
            let entry = recorder.entries[usize::from(entry)];
            ids.push(entry.stream);
            next[at] = entry.counters.next_ordinal.0;
        }
        let mut run = Self {
            recorder,
            clock,
            seed,
            ids,
            next,
            open: [const { None }; STREAMS],
            rows: BTreeMap::new(),
            contents: BTreeMap::new(),
            ages: BTreeMap::new(),
            orders: 0,
            disturbances: 0,
            released: BTreeSet::new(),
        };
        while run.recorder.driver.is_starting() {
            run.poll();
        }
        run
    }

    /// Goes on with a medium as it was found, under another preamble perhaps.
    pub(crate) fn again(self, image: Image, preamble: &[u8]) -> Self {
        let mut run = Self::over(image, self.clock, self.seed, preamble);
        for (at, next) in self.next.into_iter().enumerate() {
            // What was under way is given up.
            run.next[at] = run.next[at].max(next + 1);
        }
        (run.rows, run.contents, run.ages, run.orders) = (self.rows, self.contents, self.ages, self.orders);
        run
    }

    pub(crate) fn is_dead(&self) -> bool {
        !self.recorder.driver.disk().alive()
    }

    pub(crate) fn poll(&mut self) {
        self.clock.set(self.clock.now() + Duration::from_millis(1));
        self.recorder.poll();
        assert_eq!(self.recorder.driver.ring().miscounts(), None);
    }

    /// Makes sure that a slot is open that has `room`; `None` where the power has gone.
    fn room(&mut self, room: usize) -> Option<u64> {
        if self.recorder.open().is_some() && self.recorder.room() < room {
            self.recorder.seal(SlotFlags::default());
        }
        while self.recorder.open().is_none() {
            if self.is_dead() {
                return None;
            }
            self.poll();
            if let Some(sequence) = self.recorder.open_slot() {
                self.contents.insert(sequence.0, Vec::new());
            }
        }
        self.recorder.open().map(|sequence| sequence.0)
    }

    /// Pushes a row, for which there is room.
    fn push(&mut self, stream: usize, row: Row, content: Content) {
        let arrival = self.clock.now();
        let row = Row { stream: stream as u16, arrival, ..row };
        self.recorder.push(&row, &content.range(row.offset, row.len as usize));
        let pushed = Pushed {
            stream: self.ids[stream],
            kind: row.kind,
            last: row.flags.has(Flags::LAST),
            ordinal: row.ordinal.0,
            number: row.number,
            offset: row.offset,
            len: row.len as usize,
            arrival,
            event: row.flags.has(Flags::EVENT).then_some(row.event),
            content,
        };
        assert!(self.rows.insert(arrival.0, pushed).is_none(), "no two rows arrive at once");
        let sequence = self.recorder.open().unwrap().0;
        self.contents.entry(sequence).or_default().push(arrival.0);
    }

    fn content(&mut self) -> Content {
        Content::Salt(self.seed.bits())
    }

    /// A whole element of that length.
    pub(crate) fn element(&mut self, stream: usize, len: usize) -> bool {
        self.poll();
        if self.room(len.max(1)).is_none() {
            return false;
        }
        let ordinal = Ordinal(self.next[stream]);
        self.next[stream] += 1;
        let content = self.content();
        self.push(stream, Row { kind: Kind::Element, ordinal, len: len as u32, ..Row::default() }, content);
        true
    }

    fn gap(&mut self, stream: usize, ordinals: u64, cause: Cause) {
        self.poll();
        if self.room(Gap::BYTES).is_none() {
            return;
        }
        let now = self.clock.now();
        let (elements, bytes) = (Some(ordinals), Some(100 * ordinals));
        let gap = Gap { ordinals, elements, bytes, first: now, last: now, cause, note: 0 };
        let row = Row {
            kind: Kind::Gap,
            ordinal: Ordinal(self.next[stream]),
            len: Gap::BYTES as u32,
            ..Row::default()
        };
        self.next[stream] += ordinals;
        self.push(stream, row, Content::Bytes(gap.encode().to_vec().into()));
    }

    /// Something of a stream: an element, or a piece of one, or its end; a gap; a note.
    pub(crate) fn piece(&mut self) {
        let stream = [0, 0, 0, 0, 1, 1, 2][self.seed.below(7) as usize];
        self.poll();
        if self.open[stream].is_none() && self.seed.happens(0.04) {
            let lost = 1 + self.seed.below(4);
            return self.gap(stream, lost, Cause::NoSlot);
        }
        if self.room(16).is_none() {
            return;
        }
        if self.seed.happens(0.03) {
            let content = self.content();
            return self.push(stream, Row { kind: Kind::Note, len: 16, ..Row::default() }, content);
        }
        if let Some(open) = self.open[stream].take_if(|_| self.seed.happens(0.05)) {
            let row = Row { kind: Kind::Abort, ordinal: Ordinal(open.ordinal), ..Row::default() };
            self.push(stream, row, Content::Bytes([].into()));
            return self.gap(stream, 1, Cause::Aborted);
        }
        let len = match self.seed.below(16) {
            0..9 => self.seed.below(900),
            9..14 => self.seed.below(6_000),
            _ => self.seed.below(60_000),
        };
        let fresh = Open {
            ordinal: self.next[stream],
            len: len as usize,
            there: 0,
            number: 0,
            content: Content::Salt(self.seed.bits()),
        };
        let mut open = self.open[stream].take().unwrap_or(fresh);
        let left = open.len - open.there;
        let len = left.min(SLOT as usize / 8).min(self.recorder.room());
        // Fragments begin where words do.
        let len = if len < left { len / 8 * 8 } else { len };
        let (last, whole) = (len == left, len == open.len && open.number == 0);
        let mut row = Row {
            kind: if whole { Kind::Element } else { Kind::Fragment },
            len: len as u32,
            number: open.number,
            offset: open.there as u64,
            ordinal: Ordinal(open.ordinal),
            ..Row::default()
        };
        if last && !whole {
            row.flags = row.flags | Flags::LAST;
        }
        if self.seed.happens(0.2) {
            (row.flags, row.event) = (row.flags | Flags::EVENT, Timestamp(self.clock.now().0 / 2));
        }
        self.push(stream, row, open.content.clone());
        (open.there, open.number) = (open.there + len, open.number + 1);
        if last {
            self.next[stream] += 1;
        } else {
            self.open[stream] = Some(open);
        }
    }

    /// Fills so many slots, more or less.
    pub(crate) fn fill(&mut self, slots: u64) {
        let Some(open) = self.room(1) else { return };
        while !self.is_dead() && self.recorder.open().is_none_or(|sequence| sequence.0 < open + slots) {
            self.piece();
            if self.seed.happens(0.01) {
                self.recorder.seal(SlotFlags::default());
            }
        }
    }

    /// Seals, and waits until all is on the medium.
    pub(crate) fn settle(&mut self) {
        self.recorder.seal(SlotFlags::SHORT);
        while !self.recorder.driver.is_idle() && !self.is_dead() {
            self.poll();
        }
    }

    fn give(&mut self, order: Order) {
        self.orders += 1;
        let (brief, now) = (self.recorder.brief(), self.clock.now());
        self.recorder.driver.order(OrderTag(self.orders), order, brief, now);
    }

    pub(crate) fn order(&mut self, order: Order) -> Outcome {
        self.give(order);
        loop {
            assert!(!self.is_dead());
            match self.recorder.driver.reply() {
                Some((OrderTag(id), outcome)) if id == self.orders => return outcome,
                _ => self.poll(),
            }
        }
    }

    /// Of a hold by condition: what it keeps is counted all the while.
    fn hold_order(sequences: &[u64]) -> Order {
        let condition_hold = || ConditionHold { condition: "wanted".to_owned(), ..ConditionHold::default() };
        Order::Hold(HoldRequest {
            streams: Vec::new(),
            range: Range::ALL,
            sequences: Some(sequences.iter().map(|s| (Sequence(*s), Sequence(*s))).collect()),
            reason: "r".to_owned(),
            owner: "o".to_owned(),
            until: Timestamp::MAX,
            order: None,
            condition_hold: (!sequences.is_empty()).then(condition_hold),
        })
    }

    /// Holds slots; `None` if that is refused.
    pub(crate) fn hold(&mut self, sequences: &[u64]) -> Option<HoldId> {
        match self.order(Self::hold_order(sequences)) {
            Outcome::Held { id, .. } => Some(id),
            Outcome::Refused(_) => None,
            other => panic!("{other:?}"),
        }
    }

    /// The sequences on the medium, oldest first.
    pub(crate) fn present(&self) -> Vec<u64> {
        let looks = self.recorder.driver.ring().slot_looks(SlotNo(0), u32::MAX);
        let mut all: Vec<_> = looks.filter(SlotStatus::has_data).map(|s| (s.age, s.sequence.0)).collect();
        all.sort_unstable();
        all.into_iter().map(|(_, sequence)| sequence).collect()
    }

    /// What a hold keeps of what is on the medium.
    pub(crate) fn kept_by(&self, hold: HoldId) -> BTreeSet<u64> {
        let looks: Vec<_> = self.recorder.driver.ring().hold_looks().collect();
        let kept = looks.iter().filter(|look| look.id == hold).flat_map(|look| &look.sequences);
        let kept: Vec<_> = kept.collect();
        let has = |s: &u64| kept.iter().any(|(first, last)| first.0 <= *s && *s <= last.0);
        self.present().into_iter().filter(has).collect()
    }

    /// The naive rule: what may be taken of an order now.
    pub(crate) fn may_go(&self, hold: HoldId, order: &[Original]) -> BTreeSet<u64> {
        let ring = self.recorder.driver.ring();
        let looks: Vec<_> = ring.slot_looks(SlotNo(0), u32::MAX).collect();
        let counts = ring.status("").slots;
        if counts.unwritten > counts.runway + counts.writing {
            // There is a place that nothing was ever put in: nothing had to go yet.
            return BTreeSet::new();
        }
        let oldest = looks.iter().filter(|s| s.look == SlotLook::Live).map(|s| s.age).min();
        let kept: Vec<(HoldId, BTreeSet<u64>)> =
            ring.hold_looks().map(|look| (look.id, self.kept_by(look.id))).collect();
        let holders = |s: u64| -> Vec<HoldId> {
            kept.iter().filter(|(_, kept)| kept.contains(&s)).map(|(id, _)| *id).collect()
        };
        let age: BTreeMap<u64, _> = looks.iter().map(|s| (s.sequence.0, s.age)).collect();
        let all = Self::held(hold, order);
        let mut may_go = BTreeSet::new();
        for original in &all {
            let (s, holders) = (original.sequence.0, holders(original.sequence.0));
            let named = |holder: &HoldId| {
                all.iter().filter(|o| o.sequence.0 == s).any(|original| original.holds.contains(holder))
            };
            if !holders.is_empty()
                && holders.iter().all(named)
                && oldest.is_none_or(|oldest| age[&s] < oldest)
            {
                may_go.insert(s);
            }
        }
        may_go
    }

    /// Originals of which nothing else is said are kept by this hold.
    pub(crate) fn held(hold: HoldId, order: &[Original]) -> Vec<Original> {
        let mut order = order.to_vec();
        order.iter_mut().filter(|original| original.holds.is_empty()).for_each(|o| o.holds.push(hold));
        order
    }

    /// Carries an order out while the recorder goes on.
    pub(crate) fn distil(
        &mut self,
        hold: HoldId,
        originals: &[Original],
        busy: f64,
    ) -> Result<Outcome, JobError> {
        let originals = Self::held(hold, originals);
        let work = Work::of(&Order::Distil(DistilRequest { hold, originals })).unwrap();
        let superblock = self.recorder.driver.superblock().clone();
        let now = self.clock.now();
        let mut port = |step: JobStep| self.step(step, hold, busy);
        work.run(&superblock, now, &mut port, &|| false)
    }

    pub(crate) fn step(&mut self, step: JobStep, hold: HoldId, busy: f64) -> Option<StepReply> {
        let now = self.clock.now();
        let leaving: BTreeSet<Sequence> = match &step {
            JobStep::Replace { originals, .. } => originals.iter().map(|(_, sequence)| *sequence).collect(),
            _ => BTreeSet::new(),
        };
        let places: Vec<SlotNo> = match &step {
            JobStep::Replace { originals, .. } => originals.iter().map(|(slot, _)| *slot).collect(),
            _ => Vec::new(),
        };
        self.recorder.driver.step(step, now);
        loop {
            if self.is_dead() {
                return None;
            }
            if let Some(reply) = self.recorder.driver.step_reply() {
                return Some(reply);
            }
            // Until it is on record what was there is kept as it is, whatever the table says.
            for slot in &places {
                let look = self.recorder.driver.ring().slot_looks(*slot, 1).next().unwrap();
                assert!(look.look == SlotLook::Pinned || leaving.contains(&look.sequence), "{look:?}");
            }
            if self.recorder.driver.ring().wants_seal() {
                self.recorder.seal(SlotFlags::SHORT);
            }
            while self.seed.happens(busy) && !self.is_dead() {
                self.piece();
            }
            if self.disturbances > 0 && self.seed.happens(0.02) {
                self.disturbances -= 1;
                self.disturb(hold);
            }
            while self.recorder.driver.reply().is_some() {}
            self.poll();
        }
    }

    /// Another hold comes, or goes; now and then it is the one that is distilled.
    fn disturb(&mut self, hold: HoldId) {
        let ids: Vec<HoldId> = self.recorder.driver.ring().hold_looks().map(|look| look.id).collect();
        if self.seed.below(3) < 2 {
            let present = self.present();
            let some: Vec<u64> = present.into_iter().filter(|_| self.seed.happens(0.1)).take(3).collect();
            self.give(Self::hold_order(&some));
        } else if let Some(id) = ids.get(self.seed.below(ids.len().max(1) as u64) as usize)
            && (*id != hold || self.seed.happens(0.2))
        {
            self.released.insert(id.0);
            self.give(Order::Release((*id).into()));
        }
    }

    /// Whether an order wants a row of an original, the naive way.
    fn wants(&self, order: &[Original], may_go: &BTreeSet<u64>, of: u64, row: &Pushed) -> bool {
        let here = || order.iter().filter(|original| original.sequence.0 == of);
        let pieces = |slot: u64| -> Vec<&Pushed> {
            let rows = self.contents.get(&slot).into_iter().flatten().map(|at| &self.rows[at]);
            let piece = |r: &&Pushed| matches!(r.kind, Kind::Fragment | Kind::Abort);
            rows.filter(piece).filter(|r| (r.stream, r.ordinal) == (row.stream, row.ordinal)).collect()
        };
        match row.kind {
            Kind::Element => here().any(|original| names(original, row)),
            Kind::Gap | Kind::Note => {
                here().any(|original| original.keep.iter().any(|keep| keep.0 == row.stream))
            }
            Kind::Fragment | Kind::Abort => {
                let mine = pieces(of);
                let begins = mine.iter().any(|r| r.kind == Kind::Fragment && r.number == 0);
                let ends = mine.iter().any(|r| r.kind == Kind::Abort || r.last);
                let across = |original: &Original| {
                    let slot = original.sequence.0;
                    !(begins && ends || may_go.contains(&slot) && pieces(slot).is_empty())
                };
                let counts = |original: &&Original| original.sequence.0 == of || across(original);
                order.iter().filter(counts).any(|original| names(original, row))
            }
        }
    }

    /// What a restart would find.
    pub(crate) fn found(image: &Image) -> Vec<SurveyedSlot> {
        let mut found = survey(image).unwrap().found;
        found.sort_unstable_by_key(|found| (found.age, found.sequence));
        found
    }

    /// Looks at what a restart would find: what was there is as it was, or, of those that may go by an order, what is wanted of
    /// it is in copies; every row once, and the rows of each stream in their order.
    ///
    /// `fixed` must be there as they were; after a crash others may have lost their ends.
    pub(crate) fn look(
        &self,
        found: &[SurveyedSlot],
        order: &[Original],
        may_go: &BTreeSet<u64>,
        fixed: &BTreeSet<u64>,
        crashed: bool,
    ) -> Change {
        let mut change = Change::default();
        let mut copied = Vec::new();
        let mut last: BTreeMap<StreamId, (u64, u32)> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        // Nobody was told that it was there, or it was torn already when the run began.
        let torn = |found: &&SurveyedSlot| {
            let known = self.contents.contains_key(&found.sequence.0);
            found.slot.is_err() && !fixed.contains(&found.sequence.0) && (crashed || !known)
        };
        for found in found.iter().filter(|found| !torn(found)) {
            let here = arrivals(found);
            for row in &slot(found).rows {
                let pushed = &self.rows[&row.arrival.0];
                assert!(same(pushed, row), "{}: {row:?} instead of {pushed:?}", found.sequence);
                assert!(seen.insert(row.arrival), "{} has {row:?}, which is there twice", found.sequence);
                if matches!(row.kind, Kind::Element | Kind::Fragment) {
                    let at = (row.ordinal, row.number);
                    let before = last.insert(row.stream, at);
                    let (sequence, age) = (found.sequence, found.age);
                    let rises = before.is_none_or(|before| before < at);
                    assert!(rises, "{before:?} before {at:?} in {sequence} of age {age}");
                }
            }
            let header = &slot(found).header;
            assert_eq!(header.age.0, found.age);
            match self.contents.get(&found.sequence.0) {
                Some(known) if crashed && !fixed.contains(&found.sequence.0) => {
                    assert!(known.starts_with(&here), "{} is not as it was", found.sequence);
                }
                Some(known) => assert_eq!(known, &here, "{} is not as it was", found.sequence),
                None => {
                    assert!(header.flags.has(SlotFlags::DISTILLED), "{} is new", found.sequence);
                    change.copies.push(found.sequence.0);
                    let sections = &slot(found).summary.sections;
                    change.columns += sections.iter().filter(|s| s.kind == SectionKind::Attribute).count();
                    copied.extend(here);
                }
            }
        }
        let there: BTreeSet<u64> = found.iter().map(|found| found.sequence.0).collect();
        if let Some(lost) = fixed.iter().find(|s| !there.contains(s)) {
            assert!(may_go.contains(lost), "{lost} is gone");
        }
        // In the order of their arrival: copies come in the order of their ages, and so do originals.
        change.gone = may_go.iter().copied().filter(|s| !there.contains(s)).collect();
        let gone = change.gone.iter().flat_map(|s| self.contents[s].iter().map(move |at| (*s, *at)));
        let mut wanted: Vec<i64> =
            gone.filter(|(s, at)| self.wants(order, may_go, *s, &self.rows[at])).map(|(_, at)| at).collect();
        wanted.sort_unstable();
        assert_eq!(copied, wanted, "what is wanted of {:?} in {:?}", change.gone, change.copies);
        for copy in found.iter().filter(|found| change.copies.contains(&found.sequence.0)) {
            let youngest = *arrivals(copy).last().unwrap();
            let of = change.gone.iter().find(|s| self.contents[s].contains(&youngest)).unwrap();
            let age = self.ages.get(of).unwrap_or(of);
            assert_eq!(copy.age, *age, "the age of {} is that of its youngest original, {of}", copy.sequence);
        }
        for row in wanted.iter().map(|at| &self.rows[at]) {
            change.elements += u64::from(row.kind == Kind::Element || row.last);
            let data = matches!(row.kind, Kind::Element | Kind::Fragment);
            change.bytes += if data { row.len as u64 } else { 0 };
        }
        change
    }

    /// From here on what was found is what there is.
    pub(crate) fn adopt(&mut self, found: &[SurveyedSlot]) {
        let sound = found.iter().filter(|found| found.slot.is_ok());
        self.ages = found.iter().map(|found| (found.sequence.0, found.age)).collect();
        self.contents = sound.map(|found| (found.sequence.0, arrivals(found))).collect();
    }

    pub(crate) fn image(&mut self) -> Image {
        self.recorder.driver.disk_mut().seen()
    }
}
