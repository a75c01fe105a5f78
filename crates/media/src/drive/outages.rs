//! Outages: times at which a drive does nothing, looked up in the order of time. The model lists them.

use super::Nanos;
use crate::Stall;
use std::time::Duration;

/// The stalls of a drive and the one that comes next.
#[derive(Clone, Debug)]
pub(super) struct Outages {
    stalls: Vec<Stall>,
    /// The first that ends after all that was asked about; far away when there is none.
    next: (Nanos, Nanos),
}

const NEVER: (Nanos, Nanos) = (Nanos::MAX, Nanos::MAX);

fn whole(span: Duration) -> Nanos {
    Nanos::try_from(span.as_nanos()).unwrap_or(Nanos::MAX)
}

/// The first window of a stall that ends after `now`.
fn window(stall: &Stall, now: Nanos) -> (Nanos, Nanos) {
    let (first, length) = (whole(stall.first), whole(stall.length));
    if length <= 0 {
        return NEVER;
    }
    // One that returns before it is over leaves the drive a thousandth of the time, not none.
    let every = stall.every.map(|every| whole(every).max(length.saturating_add(length / 1000 + 1)));
    let gone = match every {
        Some(every) => now.saturating_sub(first).saturating_sub(length).max(-1).div_euclid(every) + 1,
        None => 0,
    };
    let begin = first.saturating_add(every.unwrap_or(0).saturating_mul(gone));
    let end = begin.saturating_add(length);
    if end > now { (begin, end) } else { NEVER }
}

impl Outages {
    pub(super) fn new(stalls: &[Stall]) -> Self {
        let mut outages = Self { stalls: stalls.to_vec(), next: NEVER };
        outages.seek(Nanos::MIN / 2);
        outages
    }

    fn seek(&mut self, now: Nanos) {
        self.next = self.stalls.iter().map(|stall| window(stall, now)).min().unwrap_or(NEVER);
    }

    /// One more, which begins at `from`; nothing earlier is asked for any more.
    pub(super) fn add(&mut self, from: Nanos, length: Duration) {
        self.stalls.retain(|stall| window(stall, from) != NEVER);
        let first = Duration::from_nanos(from.max(0) as u64);
        self.stalls.push(Stall { first, length, every: None });
        self.seek(from);
    }

    /// `now`, or the end of the stall that it lies in. Never asked for an earlier time than before.
    pub(super) fn clear(&mut self, mut now: Nanos) -> Nanos {
        while now >= self.next.0 {
            now = now.max(self.next.1);
            self.seek(now);
        }
        now
    }

    /// How much later work from `began` (which is clear) to `done` ends, for the stalls that begin meanwhile.
    pub(super) fn delay(&mut self, done: Nanos) -> Nanos {
        let (mut late, mut up_to) = (0, Nanos::MIN);
        while self.next.0 < done.saturating_add(late) {
            let (begin, end) = self.next;
            late = late.saturating_add(end - begin.max(up_to));
            up_to = end;
            self.seek(end);
        }
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(first: u64, length: u64, every: Option<u64>) -> Stall {
        let nanos = Duration::from_nanos;
        Stall { first: nanos(first), length: nanos(length), every: every.map(nanos) }
    }

    #[test]
    fn work_waits_for_the_end_of_a_stall_and_for_those_that_begin_meanwhile() {
        let mut outages = Outages::new(&[stall(100, 20, Some(50)), stall(160, 10, None)]);
        assert_eq!(outages.clear(0), 0);
        // 100..120 and 150..170, in which lies the other one.
        assert_eq!(outages.delay(135), 20 + 20);
        assert_eq!(outages.clear(175), 175);
        assert_eq!(outages.clear(205), 220);
        assert_eq!(outages.delay(249), 0);
        assert_eq!(outages.delay(251), 20);
    }

    #[test]
    fn one_that_never_ends_before_it_returns_leaves_a_little_time() {
        let mut outages = Outages::new(&[stall(0, 1000, Some(10))]);
        assert_eq!(outages.clear(0), 1000);
        assert_eq!(outages.delay(1003), 1000);
        assert_eq!(Outages::new(&[]).delay(Nanos::MAX), 0);
    }
}
