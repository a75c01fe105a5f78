//! Simulated sources: streams, each at a steady rate or in bursts that a token bucket of that rate and depth
//! lets through.

/// Bursts, again and again: silence for as long as it takes to save one up, then all of it at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// Bytes.
    pub bytes: f64,
    /// Seconds from one to the next.
    pub every: f64,
    /// When the first one comes.
    pub first: f64,
}

/// Times at which a stream brings less than it declared, again and again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lull {
    /// What it brings then, of its rate; 0: it is silent.
    pub share: f64,
    /// Seconds.
    pub lasts: f64,
    /// Seconds from one to the next, longer than one lasts.
    pub every: f64,
    /// When the first one begins.
    pub first: f64,
}

impl Lull {
    /// Whether it is on, and when that changes next.
    fn look(&self, now: f64) -> (bool, f64) {
        let round = ((now - self.first) / self.every).floor();
        let begins = self.first + round * self.every;
        match (round < 0.0, now < begins + self.lasts) {
            (true, _) => (false, self.first),
            (false, true) => (true, begins + self.lasts),
            (false, false) => (false, begins + self.every),
        }
    }
}

/// One stream, on the medium.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Bytes a second.
    pub rate: f64,
    /// How they come, if not evenly.
    pub burst: Option<Burst>,
    /// When less comes, if ever.
    pub lull: Option<Lull>,
}

/// A stream in time. Seconds and bytes.
#[derive(Clone, Debug)]
struct StreamRate {
    rate: f64,
    burst: Option<Burst>,
    /// When the next burst comes.
    next: f64,
    /// When the silence before it begins: as long as the rate takes to make up for it.
    silent: f64,
    lull: Option<Lull>,
    /// What it brings now, of its rate.
    share: f64,
}

/// All streams in time.
#[derive(Clone, Debug)]
pub(super) struct Source {
    flows: Vec<StreamRate>,
    now: f64,
    /// When a stream begins or ends its silence next, and what all bring together until then.
    change: f64,
    rate: f64,
}

impl Source {
    pub(super) fn new(streams: &[Stream]) -> Self {
        let flow = |stream: &Stream| {
            let burst = stream.burst.filter(|burst| burst.bytes > 0.0);
            // It has been silent for ever: the first burst may come at once, on top of the rate.
            let next = burst.map_or(f64::INFINITY, |burst| burst.first);
            let silent = burst.map_or(f64::INFINITY, |burst| next - burst.bytes / stream.rate);
            StreamRate { rate: stream.rate, burst, next, silent, lull: stream.lull, share: 1.0 }
        };
        let mut source = Self { flows: streams.iter().map(flow).collect(), now: 0.0, change: 0.0, rate: 0.0 };
        source.look_ahead();
        source
    }

    fn look_ahead(&mut self) {
        (self.change, self.rate) = (f64::INFINITY, 0.0);
        for flow in &mut self.flows {
            let silent = self.now >= flow.silent;
            self.change = self.change.min(if silent { flow.next } else { flow.silent });
            if let Some(lull) = &flow.lull {
                let (on, until) = lull.look(self.now);
                flow.share = if on { lull.share } else { 1.0 };
                // What rounding leaves is no time.
                self.change = self.change.min(until.max(self.now + 1e-6));
            }
            self.rate += if silent { 0.0 } else { flow.rate * flow.share };
        }
    }

    /// When so many more bytes will have arrived, or when a stream begins or ends its silence, whichever is earlier.
    pub(super) fn next_event(&self, bytes: f64) -> f64 {
        (self.now + bytes / self.rate).min(self.change).max(self.now)
    }

    /// Goes to `to`, which is not much beyond the next event; what has arrived since, and when the first of it did.
    pub(super) fn advance(&mut self, to: f64) -> (f64, f64) {
        let first = if self.rate > 0.0 { self.now } else { to };
        if to < self.change {
            let bytes = (to - self.now) * self.rate;
            self.now = to;
            return (bytes, first);
        }
        let mut bytes = 0.0;
        for flow in &mut self.flows {
            bytes += (to.min(flow.silent) - self.now).max(0.0) * flow.rate * flow.share;
            if let Some(burst) = flow.burst.filter(|_| to >= flow.next) {
                bytes += burst.bytes;
                flow.next += burst.every.max(2.0 * burst.bytes / flow.rate);
                flow.silent = flow.next - burst.bytes / flow.rate;
            }
        }
        self.now = to;
        self.look_ahead();
        (bytes, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // What is admitted is a token bucket: no more than the bursts beyond the rate in any window.
    #[test]
    fn no_window_has_more_than_the_rate_and_a_burst_of_each_stream() {
        let stream = |rate, bytes, every, first| Stream {
            rate,
            burst: Some(Burst { bytes, every, first }),
            lull: None,
        };
        let streams = [
            stream(60.0, 300.0, 13.0, 4.0),
            stream(30.0, 200.0, 17.0, 9.0),
            Stream { rate: 10.0, burst: None, lull: None },
        ];
        let mut source = Source::new(&streams);
        let mut seen = vec![(0.0, 0.0)];
        let mut total = 0.0;
        while source.now < 200.0 {
            let to = source.next_event(77.0).min(source.now + 1.7).max(source.now + 1e-6);
            total += source.advance(to).0;
            seen.push((to, total));
        }
        for (at, (from, before)) in seen.iter().enumerate() {
            for (to, after) in &seen[at..] {
                assert!(after - before <= 100.0 * (to - from) + 500.0 + 1e-3, "from {from} to {to}");
            }
        }
        assert!(total > 100.0 * 200.0 * 0.97, "and all of the rate comes: {total}");
    }
}
