//! Faulty disk in memory: it fails as planned, in virtual time, the same way for the same seed. For tests and
//! simulations; never in the product's path.

mod medium;
mod plan;

pub use medium::Survival;
pub use plan::{FaultPlan, Stall};

use crate::disk::{Completion, Disk, DiskInfo, Fault, Medium, Op, Request};
use crate::{Image, Seed};
use holdfast_base::{BLOCK, Clock, ManualClock, Timestamp};
use medium::{Contents, Loose};
use std::time::Duration;

/// Requests in flight at most.
const DEPTH: usize = 64;

/// A disk with faults.
///
/// A write takes effect when its completion is fetched; until then, and until a flush when it is not durable, a
/// crash may leave any part of it. [`Disk::complete`] moves the clock to the next event, but never past `wait`.
#[derive(Debug)]
pub struct FaultyDisk {
    info: DiskInfo,
    plan: FaultPlan,
    seed: Seed,
    clock: ManualClock,
    start: Timestamp,
    contents: Contents,
    flying: Vec<FaultyRequest>,
    /// Writes that were reported failed and are still to land.
    zombies: Vec<(Timestamp, Loose)>,
    /// Writes that were under way when the power went.
    cut: Vec<Loose>,
    busy: Timestamp,
    alive: bool,
    submissions: u64,
    cut_at: Option<u64>,
}

/// A request under way.
#[derive(Debug)]
struct FaultyRequest {
    request: Request,
    due: Timestamp,
    /// What the cache held at its submission, for a flush.
    mark: u64,
    /// Whether the power went meanwhile.
    doomed: bool,
}

impl FaultyDisk {
    /// A disk that holds `image` and fails by `plan`; all chance comes from `seed`, all time from `clock`.
    pub fn new(image: Image, plan: FaultPlan, seed: u64, clock: ManualClock) -> Self {
        let info = DiskInfo {
            name: format!("faulty disk (seed {seed})"),
            medium: Medium::Memory,
            bytes: image.bytes(),
            block: BLOCK,
            depth: DEPTH,
            direct: true,
        };
        let start = clock.now();
        Self {
            info,
            plan,
            seed: Seed::new(seed),
            clock,
            start,
            contents: Contents::new(image),
            flying: Vec::with_capacity(DEPTH),
            zombies: Vec::new(),
            cut: Vec::new(),
            busy: start,
            alive: true,
            submissions: 0,
            cut_at: None,
        }
    }

    /// The faults, to be switched at any time.
    pub fn plan_mut(&mut self) -> &mut FaultPlan {
        &mut self.plan
    }

    /// Writes and flushes submitted so far: the points at which a test may cut the power.
    pub fn submissions(&self) -> u64 {
        self.submissions
    }

    /// Lets the power go right after the `n`-th write or flush counted from now; `0` cuts it at once.
    /// That one and all in flight fail with [`Fault::Gone`], as does everything after.
    pub fn cut_after(&mut self, n: u64) {
        self.cut_at = Some(self.submissions + n);
        if n == 0 {
            self.die();
        }
    }

    /// Makes it longer, as somebody else does with a real one: it is noticed by an [`Op::Measure`].
    pub fn lengthen(&mut self, bytes: u64) {
        self.contents.grow(bytes);
    }

    /// Whether the disk answers.
    pub fn alive(&self) -> bool {
        self.alive
    }

    /// Sudden death: all in flight and all that comes fails with [`Fault::Gone`].
    pub fn die(&mut self) {
        if !std::mem::replace(&mut self.alive, false) {
            return;
        }
        let now = self.clock.now();
        for flight in self.flying.iter_mut().filter(|flight| !flight.doomed) {
            flight.doomed = true;
            flight.due = now;
            if let Op::Write { offset, buffer, len, .. } = &flight.request.op
                && self.info.check(&flight.request.op).is_ok()
            {
                self.cut.push(Loose { offset: *offset, data: buffer[..*len].to_vec() });
            }
        }
        self.cut.extend(self.zombies.drain(..).map(|(_, loose)| loose));
    }

    /// The dead disk returns; its cache is gone as in a crash.
    pub fn come_back(&mut self) {
        if self.alive {
            return;
        }
        let left = self.draw(Survival::Chance);
        self.contents = Contents::new(left);
        self.cut.clear();
        self.cut_at = None;
        self.busy = self.clock.now();
        self.alive = true;
    }

    /// Cuts the power (if it is still on) and tells what the medium may hold then. Every further call draws another
    /// outcome of the same crash.
    pub fn crash(&mut self) -> Image {
        self.crash_with(Survival::Chance)
    }

    /// As [`FaultyDisk::crash`], with the outcome chosen.
    pub fn crash_with(&mut self, survival: Survival) -> Image {
        self.land_zombies();
        self.die();
        self.draw(survival)
    }

    fn draw(&mut self, survival: Survival) -> Image {
        self.contents.crash(&self.cut, survival, self.plan.sector(), &mut self.seed)
    }

    /// What is certainly on the medium.
    pub fn durable(&self) -> Image {
        self.contents.durable().clone()
    }

    /// What reads would see.
    pub fn seen(&self) -> Image {
        self.contents.seen().clone()
    }

    /// Turns over the bits of `mask` in a byte, on the medium, without a sign.
    pub fn flip(&mut self, offset: u64, mask: u8) {
        self.contents.flip(offset, mask);
    }

    /// When the next request will be ready or the next late write lands.
    pub fn next_event(&self) -> Option<Timestamp> {
        let zombies = self.zombies.iter().map(|(due, _)| *due);
        self.flying.iter().map(|flight| flight.due).chain(zombies).min()
    }

    /// When a request of `len` bytes that is submitted now is done.
    fn due(&mut self, len: usize) -> Timestamp {
        let now = self.clock.now();
        let jitter = u64::try_from(self.plan.jitter.as_nanos()).unwrap_or(u64::MAX);
        let mut takes = self.plan.latency + Duration::from_nanos(self.seed.below(jitter.saturating_add(1)));
        let mut from = now;
        if let Some(rate) = self.plan.rate {
            takes += Duration::from_secs_f64(len as f64 / rate.0.max(1) as f64);
            from = from.max(self.busy);
        }
        let due = self.start + self.plan.after_stalls((from + takes).since(self.start));
        self.busy = due;
        due
    }

    fn land_zombies(&mut self) {
        let now = self.clock.now();
        let mut late: Vec<_> = self.zombies.extract_if(.., |(due, _)| *due <= now).collect();
        late.sort_by_key(|(due, _)| *due);
        for (_, loose) in late {
            self.contents.write_through(loose.offset, &loose.data);
        }
    }

    /// The request that is served next, if one is ready.
    fn ready(&mut self) -> Option<usize> {
        let now = self.clock.now();
        let ready = self.flying.iter().filter(|flight| flight.due <= now).count() as u64;
        if ready == 0 {
            return None;
        }
        if self.plan.reorder {
            let pick = self.seed.below(ready) as usize;
            let mut indices = (0..self.flying.len()).filter(|at| self.flying[*at].due <= now);
            return indices.nth(pick);
        }
        // The first of the earliest: `flying` is in the order of submission.
        (0..self.flying.len()).min_by_key(|at| self.flying[*at].due)
    }

    fn serve(&mut self, flight: FaultyRequest) -> Completion {
        let FaultyRequest { mut request, mark, doomed, .. } = flight;
        let (what, offset, len) = request.op.place();
        let result = self.info.check(&request.op).and_then(|()| {
            let outcome = match &mut request.op {
                _ if doomed => Err(Fault::Gone),
                Op::Write { buffer, durable, .. } => self.write(offset, &buffer[..len as usize], *durable),
                Op::Read { buffer, .. } => self.read(offset, &mut buffer[..len as usize]),
                Op::Flush => self.flush(mark),
                Op::Measure => {
                    self.info.bytes = self.contents.seen().bytes();
                    Ok(())
                }
            };
            outcome.map_err(|fault| self.info.error(what, offset, len, fault))
        });
        Completion { tag: request.tag, buffer: request.op.into_buffer(), result }
    }

    fn write(&mut self, offset: u64, data: &[u8], durable: bool) -> Result<(), Fault> {
        let len = data.len() as u64;
        // All chances are drawn, so that switching one off leaves the others where they are.
        let fails = self.seed.happens(self.plan.write_error);
        let zombie = self.seed.happens(self.plan.zombie);
        let phantom = self.seed.happens(self.plan.phantom);
        let flips = self.seed.happens(self.plan.flip_write);
        if self.plan.room.is_some_and(|room| offset + len > room) {
            return Err(Fault::NoSpace);
        }
        if zombie {
            let due = self.clock.now() + self.plan.zombie_after;
            self.zombies.push((due, Loose { offset, data: data.to_vec() }));
            return Err(Fault::Io);
        }
        if fails || plan::touches(&self.plan.unwritable, offset, len) {
            let loose = Loose { offset, data: data.to_vec() };
            self.contents.write_torn(&loose, self.plan.sector(), &mut self.seed);
            return Err(Fault::Io);
        }
        if phantom {
            return Ok(());
        }
        plan::remove(&mut self.plan.unreadable, offset, len);
        let mut wrong = Vec::new();
        if flips {
            let (at, bit) = (self.seed.below(len), self.seed.below(8));
            wrong.extend_from_slice(data);
            wrong[at as usize] ^= 1 << bit;
        }
        let data = if flips { &wrong } else { data };
        if durable {
            self.contents.write_through(offset, data);
        } else {
            self.contents.write(offset, data);
        }
        Ok(())
    }

    fn read(&mut self, offset: u64, into: &mut [u8]) -> Result<(), Fault> {
        let fails = self.seed.happens(self.plan.read_error);
        let flips = self.seed.happens(self.plan.flip_read);
        if fails || plan::touches(&self.plan.unreadable, offset, into.len() as u64) {
            return Err(Fault::Io);
        }
        self.contents.seen().read(offset, into);
        if flips {
            let (at, bit) = (self.seed.below(into.len() as u64), self.seed.below(8));
            into[at as usize] ^= 1 << bit;
        }
        Ok(())
    }

    fn flush(&mut self, mark: u64) -> Result<(), Fault> {
        if self.seed.happens(self.plan.flush_error) {
            self.contents.flush_badly(mark, self.plan.sector(), &mut self.seed);
            return Err(Fault::Io);
        }
        self.contents.flush(mark);
        Ok(())
    }
}

impl Disk for FaultyDisk {
    fn info(&self) -> &DiskInfo {
        &self.info
    }

    fn submit(&mut self, request: Request) -> Result<(), Request> {
        if self.flying.len() >= self.info.depth {
            return Err(request);
        }
        let (_, _, len) = request.op.place();
        let due = if self.alive { self.due(len as usize) } else { self.clock.now() };
        let counts = self.alive && !matches!(request.op, Op::Read { .. } | Op::Measure);
        self.flying.push(FaultyRequest { request, due, mark: self.contents.mark(), doomed: !self.alive });
        if counts {
            self.submissions += 1;
            if self.cut_at == Some(self.submissions) {
                self.die();
            }
        }
        Ok(())
    }

    fn complete(&mut self, wait: Duration) -> Option<Completion> {
        let deadline = self.clock.now() + wait;
        loop {
            self.land_zombies();
            if let Some(at) = self.ready() {
                let flight = self.flying.remove(at);
                return Some(self.serve(flight));
            }
            let now = self.clock.now();
            if now >= deadline {
                return None;
            }
            self.clock.set(self.next_event().map_or(deadline, |next| next.clamp(now, deadline)));
        }
    }
}
