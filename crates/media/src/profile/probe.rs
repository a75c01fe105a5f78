//! Timed requests to a disk: the thin part between the survey and the medium. `survey` decides what is asked,
//! `fit` interprets the times.

use super::fit::Timing;
use super::plan::Piece;
use crate::{Buffer, BufferPool, Disk, DiskError, Fault, Lock, Op, PoolError, Region, Request, Seed};
use holdfast_base::{Clock, Timestamp};
use std::time::Duration;

/// Bytes of the largest request.
pub(super) const LARGE: usize = 8 << 20;
/// Bytes of the smaller ones: of those there may be many in flight.
pub(super) const SMALL: usize = 1 << 20;
/// Large requests in flight: one is at work while the next waits.
pub(super) const PAIR: usize = 2;
/// Small requests in flight, of either way.
pub(super) const MOST: usize = 8;
/// Requests in flight at most: as many of either way.
pub const PROFILE_DEPTH: usize = 2 * MOST;
/// A device that does not answer for so long will not.
const PATIENCE: Duration = Duration::from_mins(2);

/// Why a device could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It failed.
    #[error("{0}: a profile of a device that fails would be of no use; replace it, or leave that place out")]
    Disk(#[from] DiskError),
    /// It does not answer.
    #[error("{disk}: no answer for {PATIENCE:?}: check its cable and the kernel's log")]
    Silent {
        /// Its name.
        disk: String,
    },
    /// It is too small.
    #[error("{disk}: too small to be measured: at least 1 MiB is needed")]
    Small {
        /// Its name.
        disk: String,
    },
    /// What may be written lies in the wrong places.
    #[error(
        "{disk}: writing can be measured in {zones} of {all} zones only, and not towards the end: what may be written does not reach there"
    )]
    Places {
        /// Its name.
        disk: String,
        /// Zones with enough writable places.
        zones: usize,
        /// Zones.
        all: usize,
    },
    /// No memory for buffers.
    #[error(transparent)]
    Memory(#[from] PoolError),
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From the medium.
    Read,
    /// To the medium; done when they are there.
    Write,
}

/// The memory for a measurement. What is read never gets into what is written: it may be somebody's data.
/// Each way has the kind that a recorder has for it: slots, and what clients are answered in, whose pages are small and make a
/// fast device slower.
#[derive(Debug)]
pub struct ProfileBuffers {
    large: Pools,
    small: Pools,
}

#[derive(Debug)]
struct Pools {
    read: BufferPool,
    written: BufferPool,
}

impl Pools {
    fn new(count: usize, bytes: usize) -> Result<Self, PoolError> {
        let read = BufferPool::shared(count, bytes, Lock::Prefault)?;
        Ok(Self { read, written: BufferPool::new(count, bytes, Lock::Prefault)? })
    }
}

impl ProfileBuffers {
    /// Gets it: 48 MiB.
    pub fn new() -> Result<Self, PoolError> {
        Ok(Self { large: Pools::new(PAIR, LARGE)?, small: Pools::new(MOST, SMALL)? })
    }

    /// To be registered with the disk.
    pub fn regions(&self) -> [Region; 4] {
        let [large, small] = [&self.large, &self.small];
        [&large.read, &large.written, &small.read, &small.written].map(BufferPool::region)
    }
}

/// Buffers of one size.
struct Shelf {
    reads: Vec<Buffer>,
    writes: Vec<Buffer>,
}

impl Shelf {
    fn new(pools: &mut Pools, seed: &mut Seed) -> Self {
        let all = |pool: &mut BufferPool| std::iter::from_fn(|| pool.take()).collect::<Vec<Buffer>>();
        let (reads, mut writes) = (all(&mut pools.read), all(&mut pools.written));
        // What can be compressed looks too fast on some devices.
        for buffer in &mut writes {
            seed.fill(buffer);
        }
        Self { reads, writes }
    }
}

/// A request under way.
struct TimedRequest {
    tag: u64,
    way: Direction,
    large: bool,
    timing: Timing,
}

/// A disk, a clock, and buffers.
pub(super) struct Probe<'a> {
    disk: &'a mut dyn Disk,
    clock: &'a dyn Clock,
    large: Shelf,
    small: Shelf,
    flying: Vec<TimedRequest>,
    tags: u64,
    /// Reads that failed for their place.
    pub(super) unread: u32,
}

impl<'a> Probe<'a> {
    pub(super) fn new(disk: &'a mut dyn Disk, clock: &'a dyn Clock, mut buffers: ProfileBuffers) -> Self {
        let mut seed = Seed::new(clock.now().0 as u64);
        let large = Shelf::new(&mut buffers.large, &mut seed);
        let small = Shelf::new(&mut buffers.small, &mut seed);
        Self { disk, clock, large, small, flying: Vec::with_capacity(PROFILE_DEPTH), tags: 0, unread: 0 }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn name(&self) -> String {
        self.disk.info().name.clone()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.disk.info().bytes
    }

    fn shelf(&mut self, large: bool, way: Direction) -> &mut Vec<Buffer> {
        let kind = if large { &mut self.large } else { &mut self.small };
        if way == Direction::Read { &mut kind.reads } else { &mut kind.writes }
    }

    /// Hands a request over; whether that was possible now.
    pub(super) fn ask(&mut self, way: Direction, piece: Piece) -> bool {
        let large = piece.len > SMALL;
        let Some(buffer) = self.shelf(large, way).pop() else { return false };
        self.tags += 1;
        let (tag, Piece { offset, len, fresh }) = (self.tags, piece);
        let op = match way {
            Direction::Read => Op::Read { offset, buffer, len },
            Direction::Write => Op::Write { offset, buffer, len, durable: true },
        };
        let asked = self.now();
        match self.disk.submit(Request { tag, op }) {
            Ok(()) => {
                let timing = Timing { len: len as u64, fresh, asked, done: asked };
                self.flying.push(TimedRequest { tag, way, large, timing });
                true
            }
            Err(refused) => {
                if let Some(buffer) = refused.op.into_buffer() {
                    self.shelf(large, way).push(buffer);
                }
                false
            }
        }
    }

    /// Requests under way.
    pub(super) fn flying(&self, way: Direction) -> usize {
        self.flying.iter().filter(|flight| flight.way == way).count()
    }

    /// The next that is done; `None` when nothing is under way.
    pub(super) fn next(&mut self) -> Result<Option<(Direction, Timing)>, ProfileError> {
        let since = self.now();
        while !self.flying.is_empty() {
            let Some(done) = self.disk.complete(Duration::from_secs(1)) else {
                if self.now().since(since) > PATIENCE {
                    return Err(ProfileError::Silent { disk: self.name() });
                }
                continue;
            };
            let now = self.now();
            let Some(at) = self.flying.iter().position(|flight| flight.tag == done.tag) else { continue };
            let TimedRequest { way, large, timing, .. } = self.flying.remove(at);
            if let Some(buffer) = done.buffer {
                self.shelf(large, way).push(buffer);
            }
            match done.result {
                // A place that cannot be read says nothing of the others.
                Err(error) if way == Direction::Read && error.fault == Fault::Io => self.unread += 1,
                other => other?,
            }
            return Ok(Some((way, Timing { done: now, ..timing })));
        }
        Ok(None)
    }

    /// All of these, `depth` in flight; stops asking after `until`, but for the first four.
    pub(super) fn row(
        &mut self,
        way: Direction,
        pieces: &[Piece],
        depth: usize,
        until: Option<Timestamp>,
    ) -> Result<Vec<Timing>, ProfileError> {
        let (mut next, mut timings) = (0, Vec::with_capacity(pieces.len()));
        loop {
            let more = next < pieces.len() && (next < 4 || until.is_none_or(|until| self.now() < until));
            if more && self.flying.len() < depth && self.ask(way, pieces[next]) {
                next += 1;
                continue;
            }
            match self.next()? {
                Some((_, timing)) => timings.push(timing),
                None => return Ok(timings),
            }
        }
    }

    /// One request, alone.
    pub(super) fn one(&mut self, way: Direction, offset: u64, len: usize) -> Result<Timing, ProfileError> {
        let timings = self.row(way, &[Piece { offset, len, fresh: true }], 1, None)?;
        timings.first().copied().ok_or_else(|| ProfileError::Silent { disk: self.name() })
    }
}
