//! What arrives: a steady rate, and bursts that a token bucket of that rate and depth lets through.

/// Bursts, again and again: silence for as long as it takes to save one up, then all of it at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Bytes.
    pub bytes: f64,
    /// Seconds from one to the next.
    pub every: f64,
}

/// A source in time. Seconds and bytes.
#[derive(Clone, Debug)]
pub(super) struct Source {
    rate: f64,
    burst: Option<Burst>,
    /// When the next burst comes.
    next: f64,
    now: f64,
}

impl Source {
    pub(super) fn new(rate: f64, burst: Option<Burst>) -> Self {
        let burst = burst.filter(|burst| burst.bytes > 0.0);
        // It has been silent for ever: the first burst may come at once, on top of the rate.
        let next = burst.map_or(f64::INFINITY, |burst| burst.every / 2.0);
        Self { rate, burst, next, now: 0.0 }
    }

    /// When the silence before the next burst begins: as long as the rate takes to make up for it.
    fn silent_from(&self) -> f64 {
        self.burst.map_or(f64::INFINITY, |burst| self.next - burst.bytes / self.rate)
    }

    /// When so many more bytes will have arrived, or when a burst comes, whichever is earlier.
    pub(super) fn next_event(&self, bytes: f64) -> f64 {
        let filled = self.now + bytes / self.rate;
        if filled <= self.silent_from() { filled } else { self.next.max(self.now) }
    }

    /// Goes to `to`, which is not beyond the next event; what has arrived since.
    pub(super) fn advance(&mut self, to: f64) -> f64 {
        let mut bytes = (to.min(self.silent_from()) - self.now).max(0.0) * self.rate;
        self.now = to;
        if let Some(burst) = self.burst.filter(|_| to >= self.next) {
            bytes += burst.bytes;
            self.next += burst.every.max(2.0 * burst.bytes / self.rate);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What is admitted is a token bucket: no more than the burst beyond the rate in any window.
    #[test]
    fn no_window_has_more_than_the_rate_and_one_burst() {
        let burst = Burst { bytes: 500.0, every: 13.0 };
        let mut source = Source::new(100.0, Some(burst));
        let mut seen = vec![(0.0, 0.0)];
        let mut total = 0.0;
        while source.now < 200.0 {
            let to = source.next_event(77.0).min(source.now + 1.7);
            total += source.advance(to);
            seen.push((to, total));
        }
        for (at, (from, before)) in seen.iter().enumerate() {
            for (to, after) in &seen[at..] {
                assert!(after - before <= 100.0 * (to - from) + 500.0 + 1e-6, "from {from} to {to}");
            }
        }
        assert!(total > 100.0 * 200.0 * 0.97, "and all of the rate comes: {total}");
    }
}
