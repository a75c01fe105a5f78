//! One ring, one disk, one clock, one model; steps are carried out on all of them and the model has its say after each.
//! Orders are in `orders`, holds by condition in `condition_hold`, pins in `pins`, purges in `purge`, crashes and restarts in
//! `power`.

mod condition_hold;
mod orders;
mod pins;
mod power;
mod purge;

use crate::content::Content;
use crate::crash::Bound;
use crate::model::{Model, Pushed};
use crate::observe::RingSnapshot;
use crate::op::Op;
use crate::recorder::Recorder;
use holdfast_base::{Clock, ManualClock, Ordinal, RingId, SlotNo, StreamId, Timestamp};
use holdfast_format::{Cause, Flags, Geometry, Key, Kind, Row, SlotFlags, Superblock};
use holdfast_media::{FaultPlan, FaultyDisk, Image, MemoryDisk, Seed, Stall};
use holdfast_ring::{ActKind, ActNumbers, Config, NewRing, create};
pub(crate) use orders::Asked;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Slot size of the worlds that are drawn: the smallest, so that laps are short.
const SLOT: u64 = 64 << 10;

/// Slots that a ring of the larger kind has more than others.
const LARGE: u32 = 60;

/// How long what a disk kept waiting takes once it is well, in virtual time.
const PATIENCE: Duration = Duration::from_mins(1);

/// How long anything may take then: with the check behind capture, which reads every slot piece by piece on a slow disk.
const LONGEST: Duration = Duration::from_mins(5);

/// What a world is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Source of all chance.
    pub seed: u64,
    /// Slot size.
    pub slot_bytes: u64,
    /// Slots.
    pub slots: u32,
    /// What the recorder decides for itself.
    pub config: Config,
    /// How the disk behaves.
    pub plan: FaultPlan,
    /// Bytes of the preambles.
    pub preamble: usize,
    /// Other preambles that a source comes back with, at most.
    pub preambles: u64,
    /// Whether one of the streams has attributes.
    pub attributes: bool,
}

impl Setup {
    /// A plain ring of 16 slots on a disk that answers at once.
    pub fn plain() -> Self {
        Self {
            seed: 1,
            slot_bytes: SLOT,
            slots: 16,
            config: Config { buffers: 3, flush: Duration::from_secs(1), writes: 1 },
            plan: FaultPlan::default(),
            preamble: 20,
            preambles: 1,
            attributes: false,
        }
    }

    /// A ring and a disk of any kind.
    pub fn draw(seed: u64) -> Self {
        let chance = &mut Seed::new(seed ^ 0x5e70);
        let slow = chance.below(3);
        let plan = FaultPlan {
            latency: Duration::from_micros([0, 300, 20_000][slow as usize]),
            jitter: Duration::from_micros([0, 2_000, 200_000][slow as usize]),
            reorder: chance.below(2) == 0,
            sector: [512, 4096][chance.below(2) as usize],
            ..FaultPlan::default()
        };
        Self {
            seed,
            slot_bytes: SLOT,
            // Some are so large that several slots may be pinned.
            slots: 8 + chance.below(20) as u32 + if seed.is_multiple_of(4) { LARGE } else { 0 },
            config: Config {
                buffers: 2 + chance.below(3) as u32,
                flush: Duration::from_secs(1),
                writes: 1 + chance.below(3) as usize,
            },
            plan,
            preambles: u64::MAX,
            preamble: chance.below(2) as usize * chance.below(800) as usize,
            attributes: chance.below(2) == 0,
        }
    }

    fn lane(&self, slots: u32) -> u64 {
        (1 << 20) + (4 + u64::from(slots)) * self.slot_bytes
    }
}

/// A stream of the world.
#[derive(Clone, Debug)]
struct WorldStream {
    id: StreamId,
    entry: u16,
    next: u64,
}

/// What became of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Power {
    /// It is there.
    On,
    /// It is gone, and will come back.
    Away,
    /// The power went as planned, and nobody has looked at what is left yet.
    Cut,
}

/// The world.
#[derive(Debug)]
pub struct World {
    /// What it was made of.
    pub setup: Setup,
    /// What must be.
    pub model: Model,
    clock: ManualClock,
    seed: Seed,
    run: Option<Recorder<FaultyDisk>>,
    superblock: Superblock,
    sources: Vec<WorldStream>,
    asked: BTreeMap<u64, Asked>,
    orders: u64,
    given: Vec<orders::Given>,
    runs: u64,
    power: Power,
    disk_start: Timestamp,
    /// Something was wrong with the disk between these times.
    trouble: Option<(Timestamp, Timestamp)>,
    errors_until: Option<Timestamp>,
    grew: bool,
    /// Slots that were in flight at a crash may be in the runway on top of its length.
    crashed: bool,
    /// Slots that were set aside in earlier runs: they are in the runway on top of its length, too.
    left_aside: usize,
    /// The same, with those of this run.
    set_aside: usize,
    /// What the next element has inside, instead of chance.
    pub next_content: Option<Content>,
    /// Elements that found no place.
    pub refused: u64,
    /// Orders by which a hold by condition came to keep more.
    pub extended: u64,
    /// How many of them were told so before that was durable.
    pub taken: u64,
    /// Such orders that were refused because its quota was spent.
    pub spent: u64,
    /// Orders that were given again and answered with what had come of them.
    pub repeated: u64,
    /// Slots that stayed though younger ones expired, because they were pinned.
    pub passed_over: u64,
    /// Purges that destroyed something and came to their end.
    pub purged: u64,
    /// Purges in the middle of which the power went.
    pub torn: u64,
    purging: Option<purge::Purging>,
}

/// The reason that the world gives for its `order`-th order.
pub(crate) fn reason(order: u64) -> String {
    format!("order {order}")
}

impl World {
    /// Formats a ring and starts recording.
    pub fn new(setup: Setup) -> Result<Self, String> {
        let clock = ManualClock::new(Timestamp(1_000_000_000_000));
        let mut disk = MemoryDisk::new(setup.lane(setup.slots));
        let geometry = Geometry::for_lane(setup.lane(setup.slots), setup.slot_bytes, Vec::new());
        let mut bytes = [0; 48];
        Seed::new(setup.seed).fill(&mut bytes);
        let (id, key) = bytes.split_at(16);
        let ring = RingId(id.try_into().map_err(|_| "id")?);
        let key = Key(key.try_into().map_err(|_| "key")?);
        let new = NewRing::plain(ring, key, "world", geometry.map_err(|e| e.to_string())?);
        let superblock = create(&mut disk, new, clock.now()).map_err(|e| e.to_string())?;
        let disk = FaultyDisk::new(disk.snapshot(), setup.plan.clone(), setup.seed, clock.clone());
        let mut world = Self {
            model: Model { total: setup.slots, ..Model::default() },
            seed: Seed::new(setup.seed),
            setup,
            clock: clock.clone(),
            run: None,
            superblock,
            sources: Vec::new(),
            asked: BTreeMap::new(),
            orders: 0,
            given: Vec::new(),
            runs: 0,
            power: Power::On,
            disk_start: clock.now(),
            trouble: None,
            errors_until: None,
            grew: false,
            crashed: false,
            left_aside: 0,
            set_aside: 0,
            next_content: None,
            refused: 0,
            extended: 0,
            taken: 0,
            spent: 0,
            repeated: 0,
            passed_over: 0,
            purged: 0,
            torn: 0,
            purging: None,
        };
        world.start(disk)?;
        Ok(world)
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The recorder at work.
    pub fn recorder(&mut self) -> Result<&mut Recorder<FaultyDisk>, String> {
        self.run.as_mut().ok_or_else(|| "no recorder runs".to_owned())
    }

    /// The disk.
    pub fn disk(&mut self) -> Result<&mut FaultyDisk, String> {
        Ok(self.recorder()?.driver.disk_mut())
    }

    /// The superblock in force.
    pub fn superblock(&self) -> &Superblock {
        &self.superblock
    }

    /// Whether the power went.
    pub fn is_dead(&self) -> bool {
        self.power == Power::Cut
    }

    /// Carries out one step and compares.
    pub fn run(&mut self, op: &Op) -> Result<(), String> {
        if self.is_dead() {
            return Ok(());
        }
        match op {
            Op::Write { stream, count, bytes, every, event } => {
                self.write(*stream, *count, *bytes, *every, *event)?;
            }
            Op::Pass(span) => self.pass(*span)?,
            Op::Seal => self.seal(SlotFlags::SHORT)?,
            Op::Hold { stream, back, span, by_event, lasts, wait } => {
                self.hold_time(*stream, *back, *span, *by_event, *lasts, *wait)?;
            }
            Op::HoldOrdinals { stream, back, count } => self.hold_ordinals(*stream, *back, *count)?,
            Op::Find { stream, back, count, quota, lasts } => {
                self.find(*stream, *back, *count, *quota, *lasts)?;
            }
            Op::Extend { which, stream, back, count, wait, durable } => {
                self.extend(*which, *stream, (*back, *count), *wait, *durable)?;
            }
            Op::Release(n) => self.release(*n)?,
            Op::Repeat(n) => self.repeat(*n)?,
            Op::Read(n) => self.read(*n)?,
            Op::Pin { client, skip, count } => {
                self.pin((*client).into(), (*skip).into(), (*count).into())?;
            }
            Op::Purge { stream, doom, held, cut } => {
                if let Some((after, _)) = cut.filter(|(after, _)| *after > 0) {
                    self.disk()?.cut_after(u64::from(after));
                }
                self.purge(*stream, *doom, *held)?;
                if let Some((_, draw)) = cut {
                    self.after_cut(*draw, None)?;
                }
            }
            Op::Restart => self.restart()?,
            Op::Crash { after, draw } => self.crash(*after, *draw)?,
            Op::CrashTwice { after, draw } => self.crash_twice(*after, *draw)?,
            Op::Grow(slots) => self.grow(*slots)?,
            Op::ClockStep(millis) => {
                let (now, after) = (self.now(), Timestamp(self.now().0 + i64::from(*millis) * 1_000_000));
                self.recorder()?.driver.ring_mut().note_clock_step(now, now, after);
            }
            Op::WriteErrors { one_in, lasts } => {
                self.disk()?.plan_mut().write_error = 1.0 / f64::from((*one_in).max(2));
                self.errors_until = Some(self.now() + *lasts);
                self.note_trouble(*lasts);
            }
            Op::Stall(span) => {
                let first = self.now().since(self.disk_start);
                self.note_trouble(*span);
                self.disk()?.plan_mut().stalls.push(Stall { first, length: *span, every: None });
            }
            Op::Death(span) => self.death(*span)?,
            Op::Outage(span) => self.outage(*span)?,
        }
        self.look()
    }

    /// Compares what the ring shows with the model.
    pub fn look(&mut self) -> Result<(), String> {
        let Some(run) = &self.run else { return Ok(()) };
        let (ring, driver) = (run.driver.ring(), &run.driver);
        let slots: Vec<_> = ring.slot_looks(SlotNo(0), u32::MAX).collect();
        let torn = if self.crashed { self.setup.config.writes } else { 0 };
        self.set_aside = self.set_aside.max(self.left_aside + ring.failed_writes());
        let on_top = (torn + self.set_aside) as u32;
        let doubted = || slots.iter().map(|look| look.sequence).filter(|s| ring.is_doubted(*s));
        let shown = RingSnapshot {
            holds: ring.hold_looks().collect(),
            on_the_way: driver.on_the_way().chain(doubted()).map(|s| s.0).collect(),
            doubted: doubted().map(|s| s.0).collect(),
            runway: (2 * self.setup.config.buffers).max(16).min(slots.len() as u32 / 4).max(2),
            on_top,
            // A purge takes slots from the runway, and gives slots back that are free then.
            idle: driver.is_idle() && self.purging.is_none(),
            prompt: self.setup.plan.latency.is_zero() && self.is_well(),
            grew: std::mem::take(&mut self.grew) || self.purging.is_some(),
            slots,
        };
        let (image, now) = (driver.disk().seen(), self.clock.now());
        let promised = ring.status("").slots.promised;
        let on_record: BTreeSet<(bool, u64)> = ring
            .act_looks(ActNumbers::default())
            .filter_map(|act| act.hold.map(|hold| (act.kind == ActKind::Release, hold.0)))
            .collect();
        let (missing, dropped) = (self.model.acts.difference(&on_record).count(), ring.acts_dropped());
        if missing as u64 > dropped.others {
            return Err(format!("{missing} orders are not on record, and {} were dropped", dropped.others));
        }
        self.meet_swap(&shown.slots);
        self.meet_holds(&shown.holds)?;
        self.passed_over += self.model.observe(&shown, &image, &self.superblock, now)?;
        let (least, most) = self.model.promised();
        if promised < least || promised > most {
            return Err(format!("{promised} slots are promised, {least} to {most} by what holds keep"));
        }
        Ok(())
    }

    fn note_trouble(&mut self, span: Duration) {
        let now = self.now();
        let first = self.trouble.filter(|(_, end)| *end + PATIENCE > now).map_or(now, |(first, _)| first);
        self.trouble = Some((first, now + span));
    }

    /// Whether the disk is well, and has been for long enough to have caught up.
    fn is_well(&self) -> bool {
        self.trouble.is_none_or(|(_, end)| end + PATIENCE < self.now())
    }

    /// Lets the recorder work for a moment, at this time.
    pub fn step(&mut self) -> Result<(), String> {
        let now = self.now();
        if self.errors_until.is_some_and(|until| until <= now) {
            self.errors_until = None;
            self.disk()?.plan_mut().write_error = 0.0;
        }
        let Some(run) = &mut self.run else { return Ok(()) };
        run.poll();
        let miscounts = run.driver.ring().miscounts();
        if self.power == Power::On && !run.driver.disk().alive() {
            self.power = Power::Cut;
        }
        miscounts.map_or(Ok(()), Err)?;
        self.replies()
    }

    /// Lets time pass, the recorder at work.
    pub fn pass(&mut self, span: Duration) -> Result<(), String> {
        let end = self.now() + span;
        loop {
            self.step()?;
            let now = self.now();
            if now >= end || self.is_dead() {
                return Ok(());
            }
            let next = self.run.as_ref().and_then(|run| run.driver.disk().next_event());
            let next = next.unwrap_or(end).min(now + Duration::from_millis(200)).min(end);
            self.clock.set(next.max(now + Duration::from_nanos(1)));
        }
    }

    /// Lets time pass until `done`, or the power goes. Too long is an error, unless the disk has not been well.
    fn wait(&mut self, what: &str, done: &mut dyn FnMut(&mut Self) -> bool) -> Result<bool, String> {
        let begin = self.now();
        while !self.is_dead() {
            if done(self) {
                return Ok(true);
            }
            if self.is_well() && self.now().since(begin) > LONGEST {
                return Err(format!("{what} is stuck: {}", self.state()));
            }
            self.pass(Duration::from_millis(20))?;
        }
        Ok(false)
    }

    fn state(&self) -> String {
        let Some(run) = &self.run else { return String::new() };
        let driver = &run.driver;
        let status = driver.ring().status("");
        format!(
            "{:?}, starting {}, device {:?}, starved {:?}, buffers {:?}, on the way {:?}, last error {:?}",
            status.slots,
            driver.is_starting(),
            driver.ring().device(),
            driver.ring().starved(),
            driver.buffers(),
            driver.on_the_way().map(|s| s.0).collect::<Vec<_>>(),
            driver.last_error()
        )
    }

    fn write(
        &mut self,
        stream: u8,
        count: u16,
        bytes: u32,
        every: Duration,
        event: bool,
    ) -> Result<(), String> {
        for number in 0..count {
            if every >= Duration::from_millis(1) {
                self.pass(every)?;
            } else {
                self.clock.set(self.now() + every);
                if number % 8 == 0 {
                    self.step()?;
                }
            }
            if self.is_dead() || !self.element(stream, bytes, event)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Records one element; `false` if there was no place for it.
    pub fn element(&mut self, stream: u8, bytes: u32, event: bool) -> Result<bool, String> {
        let source = usize::from(stream) % self.sources.len();
        let content = self.next_content.take().unwrap_or(Content::Salt(self.seed.bits()));
        let most = (self.setup.slot_bytes / 8) as usize;
        let (len, mut offset, mut number) = (bytes as usize, 0, 0);
        let whole = len <= most;
        loop {
            let piece = (len - offset).min(most);
            // A place for a piece that is worth it; the rest goes to the next slot.
            if !self.room(if whole { piece } else { piece.min(512) })? {
                self.refused += 1;
                // What is there of it keeps its ordinal.
                self.sources[source].next += u64::from(number > 0);
                return Ok(false);
            }
            let piece = piece.min(self.recorder()?.room());
            let piece = if offset + piece < len { piece / 8 * 8 } else { piece };
            let last = offset + piece == len;
            let now = self.now();
            let WorldStream { id, entry, next, .. } = self.sources[source];
            let event = event.then(|| Timestamp(now.0 / 2 + i64::from(number)));
            let mut row = Row {
                stream: entry,
                kind: if whole { Kind::Element } else { Kind::Fragment },
                len: piece as u32,
                number,
                offset: offset as u64,
                ordinal: Ordinal(next),
                arrival: now,
                ..Row::default()
            };
            if let Some(event) = event {
                (row.flags, row.event) = (row.flags | Flags::EVENT, event);
            }
            if last && !whole {
                row.flags = row.flags | Flags::LAST;
            }
            let run = self.recorder()?;
            let Some(open) = run.open() else { return Err("no slot is open".to_owned()) };
            run.push(&row, &content.range(offset as u64, piece));
            let pushed = Pushed {
                stream: id,
                kind: row.kind,
                last: last && !whole,
                ordinal: next,
                number,
                offset: offset as u64,
                len: piece,
                arrival: now,
                event,
                content: content.clone(),
            };
            self.model.push(open.0, pushed);
            offset += piece;
            number += 1;
            if last {
                self.sources[source].next += 1;
                return Ok(true);
            }
        }
    }

    /// Makes room for `bytes` in the open slot; `false` if there is none to be had.
    fn room(&mut self, bytes: usize) -> Result<bool, String> {
        if self.recorder()?.open().is_some() {
            if self.recorder()?.room() >= bytes.max(1) {
                return Ok(true);
            }
            self.seal(SlotFlags::default())?;
        }
        let mut opened = None;
        let mut full = 0;
        self.wait("opening a slot", &mut |world| {
            let Some(run) = &mut world.run else { return true };
            opened = run.open_slot();
            full += u32::from(run.driver.ring().starved() == Some(Cause::NoSlot));
            opened.is_some() || full > 50
        })?;
        let Some(sequence) = opened else {
            if full > 50 && self.model.bad == 0 {
                return Err(format!("holds have taken all slots from capture: {}", self.state()));
            }
            return Ok(false);
        };
        self.model.open(sequence.0)?;
        Ok(true)
    }

    /// Seals the open slot.
    pub fn seal(&mut self, flags: SlotFlags) -> Result<(), String> {
        if let Some(sequence) = self.recorder()?.seal(flags) {
            self.model.seal(sequence.0);
        }
        self.step()?;
        if self.is_dead() { Ok(()) } else { self.look() }
    }

    /// Ends the run and looks at everything once more.
    pub fn finish(&mut self) -> Result<(), String> {
        if self.is_dead() {
            return Ok(());
        }
        self.restart()?;
        self.look()
    }

    /// What must be durable now, by what the ring publishes.
    pub fn bound(&self) -> Bound {
        let now = self.now();
        let published = self.run.as_ref().map(|run| run.driver.ring().status("").durable_after);
        let mut durable = now - published.unwrap_or_default();
        if let Some((first, end)) = self.trouble
            && end + PATIENCE > now
        {
            // A disk that does not do its work makes nothing durable.
            durable = durable.min(first - published.unwrap_or_default());
        }
        Bound { durable, now }
    }

    /// What the medium may hold if the power went now.
    pub fn power_cut(&mut self) -> Result<Image, String> {
        Ok(self.disk()?.crash())
    }
}
