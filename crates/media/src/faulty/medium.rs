//! Contents of a faulty disk: on the medium, in its volatile cache, and what of that a crash leaves. No
//! requests, no time.

use crate::{Image, Seed};

/// Which writes outlive a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Only what was durable.
    Nothing,
    /// All that was ever handed over, in flight included.
    Everything,
    /// Any subset, each write whole or torn: drawn from the disk's seed.
    Chance,
}

/// A write that is not on the medium.
#[derive(Clone, Debug)]
pub(super) struct Loose {
    pub(super) offset: u64,
    pub(super) data: Vec<u8>,
}

/// Contents, durable and not.
#[derive(Debug)]
pub(super) struct Contents {
    durable: Image,
    /// What reads see: the medium with the cache in front.
    seen: Image,
    cache: Vec<(u64, Loose)>,
    next: u64,
}

impl Contents {
    pub(super) fn new(image: Image) -> Self {
        Self { durable: image.clone(), seen: image, cache: Vec::new(), next: 0 }
    }

    pub(super) fn durable(&self) -> &Image {
        &self.durable
    }

    pub(super) fn seen(&self) -> &Image {
        &self.seen
    }

    pub(super) fn grow(&mut self, bytes: u64) {
        self.durable.grow(bytes);
        self.seen.grow(bytes);
    }

    /// Puts bytes into the cache.
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        self.seen.write(offset, data);
        self.cache.push((self.next, Loose { offset, data: data.to_vec() }));
        self.next += 1;
    }

    /// Puts bytes on the medium. Older ones in the cache are void there: a drive never lets them come later.
    pub(super) fn write_through(&mut self, offset: u64, data: &[u8]) {
        self.durable.write(offset, data);
        self.seen.write(offset, data);
        let end = offset + data.len() as u64;
        if self.cache.iter().all(|(_, loose)| loose.end() <= offset || end <= loose.offset) {
            return;
        }
        let old = std::mem::take(&mut self.cache);
        for (number, loose) in old {
            self.cache.extend(loose.without(offset, end).map(|rest| (number, rest)));
        }
    }

    /// Turns over bits of a byte on the medium, unseen by everybody.
    pub(super) fn flip(&mut self, offset: u64, mask: u8) {
        self.durable.flip(offset, mask);
        self.seen.flip(offset, mask);
    }

    /// Names all that is in the cache now, for a later flush.
    pub(super) fn mark(&self) -> u64 {
        self.next
    }

    /// Brings what was in the cache at `mark` to the medium.
    pub(super) fn flush(&mut self, mark: u64) {
        for (_, loose) in self.cache.extract_if(.., |(number, _)| *number < mark) {
            self.durable.write(loose.offset, &loose.data);
        }
    }

    /// As [`Contents::flush`], but any of it is lost, as a kernel forgets dirty pages after a failed sync.
    pub(super) fn flush_badly(&mut self, mark: u64, sector: usize, seed: &mut Seed) {
        for (_, loose) in self.cache.extract_if(.., |(number, _)| *number < mark) {
            loose.tear(sector, seed, |offset, data| self.durable.write(offset, data));
        }
    }

    /// Writes a torn version straight through.
    pub(super) fn write_torn(&mut self, loose: &Loose, sector: usize, seed: &mut Seed) {
        let mut kept = Vec::new();
        loose.tear(sector, seed, |offset, data| kept.push((offset, data.to_vec())));
        for (offset, data) in kept {
            self.write_through(offset, &data);
        }
    }

    /// What is left after a crash with `flying` under way. A sector ends as it was on the medium, or as any write
    /// since then wanted it.
    pub(super) fn crash(
        &self,
        flying: &[Loose],
        survival: Survival,
        sector: usize,
        seed: &mut Seed,
    ) -> Image {
        let mut image = self.durable.clone();
        let mut order: Vec<&Loose> = flying.iter().collect();
        if survival == Survival::Chance {
            for at in (1..order.len()).rev() {
                order.swap(at, seed.below(at as u64 + 1) as usize);
            }
        }
        for loose in self.cache.iter().map(|(_, loose)| loose).chain(order) {
            match survival {
                Survival::Nothing => {}
                Survival::Everything => image.write(loose.offset, &loose.data),
                Survival::Chance => loose.tear(sector, seed, |offset, data| image.write(offset, data)),
            }
        }
        image
    }
}

impl Loose {
    fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }

    /// What is left of it outside `start..end`.
    fn without(self, start: u64, end: u64) -> impl Iterator<Item = Self> {
        let len = self.data.len() as u64;
        let left = start.saturating_sub(self.offset).min(len) as usize;
        let right = end.saturating_sub(self.offset).min(len) as usize;
        let after = (right < self.data.len())
            .then(|| Self { offset: self.offset + right as u64, data: self.data[right..].to_vec() });
        let mut front = self;
        front.data.truncate(left);
        [(left > 0).then_some(front), after].into_iter().flatten()
    }

    /// Hands the sectors that survive to `land`: none, all, a head, a tail, all but a middle, all but one, or any.
    fn tear(&self, sector: usize, seed: &mut Seed, mut land: impl FnMut(u64, &[u8])) {
        let count = self.data.len().div_ceil(sector) as u64;
        let kind = seed.below(7);
        let (a, b) = (seed.below(count + 1), seed.below(count + 1));
        let (low, high) = (a.min(b), a.max(b));
        for (number, data) in self.data.chunks(sector).enumerate() {
            let at = number as u64;
            let survives = match kind {
                0 => false,
                1 => true,
                2 => at < a,
                3 => at >= a,
                4 => at < low || at >= high,
                5 => at != a,
                _ => seed.happens(0.5),
            };
            if survives {
                land(self.offset + (number * sector) as u64, data);
            }
        }
    }
}
