//! The single measurements: zones, repositioning, sizes and numbers of requests, stalls. Each is bounded in time and
//! bytes. In which order, and what becomes of it, is in `measure`.

use super::fit::{Stretch, Timing, repositioning, stretch};
use super::plan::{Piece, Places, apart, floor};
use super::probe::{Direction, LARGE, MOST, PAIR, Probe, ProfileError, SMALL};
use super::{BySize, Zone};
use crate::Seed;
use holdfast_base::{BLOCK, ByteSize, Rate, Timestamp};
use std::ops::Range;
use std::time::Duration;

/// Sizes of request that are tried.
const BLOCKS: [usize; 5] = [64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20];
/// Numbers of requests in flight that are tried.
const DEPTHS: [u16; 4] = [1, 2, 4, 8];
/// Bytes of the requests of which several are in flight.
const TOGETHER: usize = 256 << 10;
/// Bytes of scattered reads.
const SCATTERED: usize = 16 << 10;
/// Bytes of a stretch at which the rate of a zone is taken, at most: about as much as a slot.
const SAMPLE: u64 = 64 << 20;
/// Writes of so much cost about as much for each byte as slots do.
const ENOUGH: usize = 4 << 20;
/// Where in a zone: at its ends, since rates rise or fall within it, and in the middle.
const WHERE: [f64; 3] = [0.0, 0.5, 1.0];
/// A device that takes longer than this to get anywhere has a head.
const HEAD: Duration = Duration::from_millis(1);
/// And than this, has one whatever the system says: it knows nothing of what is behind a loop device or a USB bridge.
const SURELY_HEAD: Duration = Duration::from_millis(5);

/// A zone and what was measured in it, from its beginning to its end.
#[derive(Clone, Debug)]
pub(super) struct Sampled {
    pub(super) zone: Range<u64>,
    pub(super) write: Vec<Rate>,
    pub(super) read: Vec<Rate>,
}

/// What was found out about getting from place to place.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SeekTimes {
    pub(super) near: Duration,
    pub(super) mean: Duration,
    pub(super) worst: Duration,
    pub(super) turnaround: Duration,
}

/// The measurements: what may be written, and what stood still meanwhile.
pub(super) struct Survey<'a> {
    pub(super) probe: Probe<'a>,
    pub(super) bytes: u64,
    /// All of it: reading is allowed anywhere.
    whole: Places,
    pub(super) writable: Places,
    seed: Seed,
    /// Stalls of sequential writing.
    pub(super) stalls: Vec<(Timestamp, Duration)>,
    /// How long that was watched.
    pub(super) watched: Duration,
    /// The smallest writes by which a zone was measured, where that was for want of time.
    pub(super) hurried: Option<usize>,
}

impl<'a> Survey<'a> {
    pub(super) fn new(probe: Probe<'a>, writable: &[Range<u64>]) -> Self {
        let bytes = floor(probe.bytes());
        let whole = Places::new(&[Range { start: 0, end: bytes }], bytes);
        let writable = Places::new(writable, bytes);
        let seed = Seed::new(probe.now().0 as u64 ^ 0x0070_726f_6669_6c65);
        Self {
            probe,
            bytes,
            whole,
            writable,
            seed,
            stalls: Vec::new(),
            watched: Duration::ZERO,
            hurried: None,
        }
    }

    fn soon(&self, span: Duration) -> Timestamp {
        self.probe.now() + span
    }

    /// A row of sequential writes; what stood still is noted.
    fn written(&mut self, pieces: &[Piece]) -> Result<Stretch, ProfileError> {
        let found = stretch(&self.probe.row(Direction::Write, pieces, PAIR, None)?, PAIR);
        self.stalls.extend_from_slice(&found.stalls);
        self.watched += found.lasted;
        Ok(found)
    }

    /// Roughly how fast it is: so many pieces at the beginning of what may be written.
    pub(super) fn rough(&mut self, span: Duration) -> Result<Rate, ProfileError> {
        let (want, until) = (SAMPLE.min(self.writable.bytes() / 4), self.soon(span));
        let pieces = self.writable.at(0.0, want, SMALL);
        Ok(stretch(&self.probe.row(Direction::Write, &pieces, PAIR, Some(until))?, PAIR).rate)
    }

    /// Sequential rates of every zone, one way, in about `span`; none for a zone with no room.
    pub(super) fn zones(
        &mut self,
        way: Direction,
        zones: &mut [Sampled],
        rough: Rate,
        span: Duration,
        told: &mut dyn FnMut(Timestamp),
    ) -> Result<(), ProfileError> {
        let each = span / (zones.len() * WHERE.len()) as u32;
        let affordable = (rough.0 as f64 * each.as_secs_f64()) as u64;
        for sampled in zones {
            let places =
                if way == Direction::Write { &self.writable } else { &self.whole }.within(&sampled.zone);
            if !places.enough() {
                continue;
            }
            let room = places.bytes().min(SAMPLE);
            let want = affordable.clamp(1 << 20, SAMPLE).min(room);
            let piece = (floor(want / 8) as usize).clamp(64 << 10, LARGE);
            if way == Direction::Write && want < room && piece < ENOUGH {
                self.hurried = Some(self.hurried.map_or(piece, |least| least.min(piece)));
            }
            for at in WHERE {
                let pieces = places.at(at, want, piece);
                let found = match way {
                    Direction::Write => self.written(&pieces)?,
                    // One after the other, as a ring reads: what a reader gets does not rest on a second one that is queued.
                    Direction::Read => stretch(&self.probe.row(Direction::Read, &pieces, 1, None)?, 1),
                };
                if way == Direction::Write { &mut sampled.write } else { &mut sampled.read }.push(found.rate);
                told(self.probe.now());
            }
        }
        Ok(())
    }

    /// Getting from place to place: up to `count` samples of each kind, in about `span`.
    pub(super) fn ways(&mut self, count: usize, span: Duration) -> Result<SeekTimes, ProfileError> {
        let until = self.probe.now() + span;
        // Far apart, but spread over many tracks, so that every angle of the platter comes.
        let end = (self.bytes / 256).max(1 << 20);
        let (bytes, writable) = (self.bytes, self.writable.bytes());
        let low = |all: u64| 0..end.min(all);
        let high = |all: u64| all.saturating_sub(end)..all;
        let [read, write] = [Direction::Read, Direction::Write];
        let mut worst = Duration::ZERO;
        for (first, second) in [(read, read), (write, write), (write, read), (read, write)] {
            let mut samples = [Vec::with_capacity(count), Vec::with_capacity(count)];
            for n in 0..2 * count {
                if n >= 16 && self.probe.now() > until {
                    break;
                }
                let (way, inner) = if n % 2 == 0 { (first, false) } else { (second, true) };
                let all = if way == read { bytes } else { writable };
                let took = self.somewhere(way, if inner { high(all) } else { low(all) }, BLOCK)?;
                // The first comes from anywhere.
                if n > 0 {
                    samples[n % 2].push(took);
                }
            }
            worst = samples.iter().map(|samples| repositioning(samples).1).fold(worst, Duration::max);
        }
        let mut any = Vec::with_capacity(count);
        for _ in 0..count {
            any.push(self.somewhere(read, 0..bytes, BLOCK)?);
        }
        let step = (bytes / 1024).clamp(1 << 20, 1 << 30);
        let (mut near, mut turned) = (Vec::with_capacity(count), Vec::with_capacity(2 * count));
        let mut at = self.seed.below(bytes);
        self.somewhere(read, at..at + 1, BLOCK)?;
        for _ in 0..count {
            at = (at + step + self.seed.below(step)) % bytes;
            near.push(self.somewhere(read, at..at + 1, BLOCK)?);
        }
        for _ in 0..count {
            if let Some(offset) = self.writable.any(0..writable, BLOCK, &mut self.seed) {
                self.probe.one(write, offset, BLOCK)?;
                turned.push(self.probe.one(read, offset, BLOCK)?.took());
                turned.push(self.probe.one(write, offset, BLOCK)?.took());
            }
        }
        let mean = |samples: &[Duration]| repositioning(samples).0;
        Ok(SeekTimes { near: mean(&near), mean: mean(&any), worst, turnaround: mean(&turned) })
    }

    /// One request at any place within a part of what may be read, or written.
    fn somewhere(
        &mut self,
        way: Direction,
        within: Range<u64>,
        len: usize,
    ) -> Result<Duration, ProfileError> {
        let places = if way == Direction::Write { &self.writable } else { &self.whole };
        let offset = places.any(within, len, &mut self.seed).unwrap_or(0);
        Ok(self.probe.one(way, offset, len)?.took())
    }

    /// Sequential writing by size of request, one at a time, at the beginning and at the end; and what each write of 1 MiB
    /// costs beyond its bytes at `rate`, which is that of the beginning.
    pub(super) fn blocks(
        &mut self,
        rate: Rate,
        span: Duration,
    ) -> Result<(Vec<BySize>, Duration), ProfileError> {
        let (mut found, mut commit) = (Vec::new(), Duration::ZERO);
        for block in BLOCKS {
            let mut row = |at| {
                let pieces = self.writable.at(at, SAMPLE.max(8 * block as u64), block);
                let until = self.soon(span / (2 * BLOCKS.len()) as u32);
                self.probe.row(Direction::Write, &pieces, 1, Some(until))
            };
            let (first, last) = (row(0.0)?, row(1.0)?);
            let [write, at_end] = [&first, &last].map(|timings| stretch(timings, 1).rate);
            found.push(BySize { bytes: ByteSize(block as u64), write, write_at_end: Some(at_end) });
            if block == SMALL {
                commit = beyond(&first, rate);
            }
        }
        Ok((found, commit))
    }

    /// Sequential writing and reading by requests in flight, at the beginning: what a queue saves with each request does not
    /// depend on its place.
    pub(super) fn depths(&mut self, span: Duration) -> Result<Vec<(u16, Rate, Rate)>, ProfileError> {
        let each = span / (2 * DEPTHS.len()) as u32;
        let mut found = Vec::new();
        for depth in DEPTHS {
            let writes = self.writable.at(0.0, SAMPLE, TOGETHER);
            let (deep, until) = (usize::from(depth), self.soon(each));
            let write = stretch(&self.probe.row(Direction::Write, &writes, deep, Some(until))?, deep).rate;
            let (reads, until) = (self.whole.at(0.0, SAMPLE, TOGETHER), self.soon(each));
            let read = stretch(&self.probe.row(Direction::Read, &reads, deep, Some(until))?, deep).rate;
            found.push((depth, write, read));
        }
        Ok(found)
    }

    /// Whether it has a head, as far as times tell.
    pub(super) fn has_head(rotational: Option<bool>, ways: &SeekTimes) -> bool {
        rotational.unwrap_or(ways.mean > HEAD) || ways.mean > SURELY_HEAD
    }

    /// The fewest scattered reads in flight that come within a tenth of what more bring.
    pub(super) fn parallel(&mut self, span: Duration) -> Result<u16, ProfileError> {
        let each = span / DEPTHS.len() as u32;
        let mut rates = Vec::new();
        for depth in DEPTHS {
            let place = |seed: &mut Seed| self.whole.any(0..self.bytes, SCATTERED, seed).unwrap_or(0);
            let pieces: Vec<Piece> = (0..2000)
                .map(|_| Piece { offset: place(&mut self.seed), len: SCATTERED, fresh: false })
                .collect();
            let until = self.soon(each);
            let timings = self.probe.row(Direction::Read, &pieces, depth.into(), Some(until))?;
            rates.push((depth, stretch(&timings, depth.into()).rate.0));
        }
        let best = rates.iter().map(|(_, rate)| *rate).max().unwrap_or(0);
        let enough = rates.iter().find(|(_, rate)| *rate >= best - best / 10);
        Ok(enough.map_or(1, |(depth, _)| *depth))
    }

    /// Sequential writing with as many writes as reads in flight, `parallel` of either, the reads scattered.
    pub(super) fn beside(&mut self, parallel: u16, span: Duration) -> Result<Rate, ProfileError> {
        let deep = usize::from(parallel).min(MOST);
        let until = self.probe.now() + span;
        let pieces = self.writable.at(0.0, 16 * SAMPLE, SMALL);
        let (mut next, mut timings): (usize, Vec<Timing>) = (0, Vec::new());
        while next < pieces.len() && (timings.len() < 8 || self.probe.now() < until) {
            while self.probe.flying(Direction::Read) < deep {
                let offset = self.whole.any(0..self.bytes, SMALL, &mut self.seed).unwrap_or(0);
                let len = SMALL.min(self.bytes as usize);
                if !self.probe.ask(Direction::Read, Piece { offset, len, fresh: true }) {
                    break;
                }
            }
            while next < pieces.len() && self.probe.flying(Direction::Write) < deep {
                if !self.probe.ask(Direction::Write, pieces[next]) {
                    break;
                }
                next += 1;
            }
            if let Some((Direction::Write, timing)) = self.probe.next()? {
                timings.push(timing);
            }
        }
        while self.probe.next()?.is_some() {}
        Ok(rate_in_lots(&timings))
    }

    /// Writes zone after zone until then, to see stalls, and how slow a zone may get.
    pub(super) fn watch(
        &mut self,
        zones: &mut [Sampled],
        until: Timestamp,
        told: &mut dyn FnMut(Timestamp),
    ) -> Result<(), ProfileError> {
        let count = zones.len() as u32;
        for (n, sampled) in zones.iter_mut().enumerate() {
            let places = self.writable.within(&sampled.zone);
            let left = until.since(self.probe.now()) / (count - n as u32);
            let stop = self.probe.now() + left;
            if !places.enough() {
                continue;
            }
            let piece = (floor(places.bytes() / 8) as usize).clamp(64 << 10, LARGE);
            let lot = (16 * piece as u64).min(places.bytes());
            let mut at = 0;
            while self.probe.now() < stop {
                let pieces = places.pieces(at, lot, piece);
                at = if at + 2 * lot > places.bytes() { 0 } else { at + lot };
                let found = self.written(&pieces)?;
                if let Some(slowest) = sampled.write.iter_mut().min() {
                    *slowest = (*slowest).min(found.rate);
                }
                told(self.probe.now());
            }
        }
        Ok(())
    }
}

/// What writes took beyond their bytes at a rate: the worst.
fn beyond(timings: &[Timing], rate: Rate) -> Duration {
    let more = |timing: &Timing| {
        let bytes = Duration::from_secs_f64(timing.len as f64 / (rate.0 as f64).max(1.0));
        timing.took().saturating_sub(bytes)
    };
    // The first has come from elsewhere.
    let samples: Vec<Duration> = timings.iter().skip(1).filter(|timing| !timing.fresh).map(more).collect();
    let (_, worst) = repositioning(&samples);
    // Less than a microsecond is rounding.
    if worst < Duration::from_micros(1) { Duration::ZERO } else { worst }
}

/// The rate of requests that finish irregularly, as those that share a device with others: by lots, stalls left out.
fn rate_in_lots(timings: &[Timing]) -> Rate {
    let lot = |lot: &[Timing]| {
        let (first, last) = (lot.first()?, lot.last()?);
        let bytes = lot.iter().map(|timing| timing.len).sum::<u64>() - first.len;
        Some(Rate::of(bytes, last.done.since(first.done)))
    };
    let mut rates: Vec<Rate> = timings.chunks(17).filter(|lot| lot.len() > 4).filter_map(lot).collect();
    rates.sort_unstable();
    // Of a few all together is all there is.
    rates.get(rates.len() / 2).copied().unwrap_or_else(|| stretch(timings, 1).rate)
}

impl Sampled {
    pub(super) fn new(zone: Range<u64>) -> Self {
        Self { zone, write: Vec::new(), read: Vec::new() }
    }

    /// In two, where rates differ within it; with what was measured in either.
    pub(super) fn split(self) -> Vec<Self> {
        let differ = |rates: &[Rate]| match rates {
            [first, .., last] => apart(first.0, last.0),
            _ => false,
        };
        let Self { zone, write, read } = &self;
        let middle = floor(zone.start + (zone.end - zone.start) / 2);
        if !(differ(write) || differ(read)) || write.len() < 3 || read.len() < 3 || middle <= zone.start {
            return vec![self];
        }
        vec![
            Self { zone: zone.start..middle, write: write[..2].to_vec(), read: read[..2].to_vec() },
            Self { zone: middle..zone.end, write: write[1..].to_vec(), read: read[1..].to_vec() },
        ]
    }

    /// As it stands in a profile.
    pub(super) fn zone(&self) -> Zone {
        let least = |rates: &[Rate]| rates.iter().copied().min().unwrap_or_default();
        let mean =
            |rates: &[Rate]| Rate(rates.iter().map(|r| r.0).sum::<u64>() / (rates.len() as u64).max(1));
        Zone {
            offset: self.zone.start,
            bytes: self.zone.end - self.zone.start,
            write_worst: least(&self.write),
            write_mean: mean(&self.write),
            read_worst: least(&self.read),
            read_mean: mean(&self.read),
        }
    }
}
