//! Write-behind policy of the open slot: journal its newest rows now, or wait until the slot itself is
//! written. Pure.

use holdfast_base::Timestamp;
use std::time::Duration;

/// Times at which it is remembered how far an open slot was: an age is told to an eighth of the longest that gains wait.
const MARKS: usize = 16;
const MARKS_APART: u32 = 8;

/// How an open slot fills, and since when it has what the journal has not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    opened: Timestamp,
    /// Since when there are gains that the journal has not.
    gaining_since: Option<Timestamp>,
    /// When gains were last looked at, and how much payload there was.
    looked: (Timestamp, u32),
    /// When there was how much payload, the oldest first: so many of them.
    marks: [(Timestamp, u32); MARKS],
    marked: usize,
}

/// How long gains wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waits {
    /// The flush interval: so long wait those of a slot that fills slowly.
    pub(crate) flush: Duration,
    /// A slot that will be full within this skips the journal.
    pub(crate) soon: Duration,
    /// Nothing waits for longer.
    pub(crate) hard: Duration,
}

impl Waits {
    /// On a ring that does its best.
    pub(crate) fn plain(flush: Duration) -> Self {
        Self { flush, soon: flush * 2, hard: flush * 2 }
    }
}

/// What is in the open slot.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    /// Bytes of payload.
    pub(crate) payload: u32,
    /// Bytes of payload it could still take.
    pub(crate) room: u64,
    /// Whether the journal has it all.
    pub(crate) journaled: bool,
}

impl Filling {
    /// Of a slot that is opened now.
    pub(crate) fn opened(now: Timestamp) -> Self {
        let start = (now, 0);
        Self { opened: now, gaining_since: None, looked: start, marks: [start; MARKS], marked: 0 }
    }

    /// Remembers how far the slot is now.
    fn mark(&mut self, now: Timestamp, payload: u32, apart: Duration) {
        let last = self.marked.checked_sub(1).map(|last| self.marks[last]);
        if last.is_some_and(|(at, was)| was == payload || now.since(at) < apart) {
            return;
        }
        if self.marked == MARKS {
            // Every other one says nearly as much.
            for at in 0..MARKS / 2 {
                self.marks[at] = self.marks[2 * at];
            }
            self.marked = MARKS / 2;
        }
        self.marks[self.marked] = (now, payload);
        self.marked += 1;
    }

    /// Since when there are gains that the journal has not.
    pub(crate) fn gaining_since(&self) -> Option<Timestamp> {
        self.gaining_since
    }

    /// The journal has all that was there at that time; what came since is that old already.
    pub(crate) fn journaled(&mut self, filled: Timestamp) {
        self.gaining_since = Some(filled);
    }

    /// The journal has so many bytes of payload of those that were there; what comes behind them is as old as it is.
    pub(crate) fn journaled_to(&mut self, payload: u32) {
        let marks = &self.marks[..self.marked];
        let behind = marks.iter().take_while(|(_, was)| *was <= payload).last().map(|(at, _)| *at);
        self.gaining_since = self.gaining_since.max(behind);
    }

    /// Whether to journal the gains now. `flush` is the flush interval. To be called often: what is new counts from
    /// the first call after it came.
    ///
    /// A slot that is expected to be full within two intervals skips the journal (its own write makes it durable as
    /// soon), but nothing waits for more than two intervals, whatever was expected: so data is on its way at an age of
    /// at most three intervals, which is what [`durable_after`] publishes.
    ///
    /// A stream that comes in bursts is silent most of the time when it is looked at: so the rate is that of late, or
    /// that since the slot was opened, whichever is higher. Wrong expectations cost one interval of age, within the
    /// bound; too low ones cost the disk a second copy of everything.
    ///
    /// On a ring with a guarantee the two intervals are others: see [`Waits`].
    pub(crate) fn due(&mut self, filled: Filled, waits: Waits, now: Timestamp) -> bool {
        let Waits { flush, soon, hard } = waits;
        self.mark(now, filled.payload, hard / MARKS_APART);
        let due = if filled.journaled {
            self.gaining_since = None;
            false
        } else {
            let oldest = now.since(*self.gaining_since.get_or_insert(now));
            let lately = rate(now.since(self.looked.0), filled.payload.saturating_sub(self.looked.1));
            let mean = rate(now.since(self.opened), filled.payload);
            let fills_in = filled.room as f64 / lately.max(mean).max(1e-9);
            oldest >= hard || (oldest >= flush && fills_in > soon.as_secs_f64())
        };
        if now.since(self.looked.0) >= flush / 2 {
            self.looked = (now, filled.payload);
        }
        due
    }
}

/// Bytes a second.
fn rate(span: Duration, bytes: u32) -> f64 {
    f64::from(bytes) / span.as_secs_f64().max(1e-9)
}

/// The bound on the age of data that a crash can cost on a ring without a profile: three flush intervals, and the
/// time `write` that the medium was seen to take for a slot at worst.
pub fn durable_after(flush: Duration, write: Duration) -> Duration {
    flush * 3 + write
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FLUSH: Duration = Duration::from_secs(1);
    const MIB: u64 = 1 << 20;

    fn at(ms: u64) -> Timestamp {
        Timestamp(ms as i64 * 1_000_000)
    }

    /// Whether gains are due that came at `came` ms into a slot with so much room for as much again, and are looked at
    /// every 10 ms until `now`.
    fn due(came: u64, bytes: u32, room: u64, now: u64) -> bool {
        let mut filling = Filling::opened(at(0));
        let look = |payload| Filled { payload, room, journaled: payload == 0 };
        let early = (0..now).step_by(10).any(|ms| {
            let payload = if ms < came { 0 } else { bytes };
            filling.due(look(payload), Waits::plain(FLUSH), at(ms))
        });
        assert!(!early);
        filling.due(look(bytes), Waits::plain(FLUSH), at(now))
    }

    #[test]
    fn slow_gains_are_journaled_after_one_interval() {
        assert!(!due(0, 10, 1000, 990));
        assert!(due(0, 10, 1000, 1000));
        assert!(due(500, 10, 1000, 1500));
    }

    #[test]
    fn fast_gains_wait_for_their_slot_but_never_longer_than_two_intervals() {
        assert!(!due(0, 900, 1000, 1800));
        assert!(due(0, 900, 100, 2000));
    }

    #[test]
    fn what_the_journal_has_is_not_due() {
        let mut filling = Filling::opened(at(0));
        for ms in (0..10_000).step_by(10) {
            assert!(!filling.due(
                Filled { payload: 10, room: 1000, journaled: true },
                Waits::plain(FLUSH),
                at(ms)
            ));
        }
    }

    /// Bytes that came, those that went to the journal, and the greatest age of what was not on its way.
    #[derive(Debug, Default, PartialEq)]
    struct Run {
        came: u64,
        journaled: u64,
        oldest: Duration,
    }

    /// Slots of 16 MiB that take what comes (at which ms, how many bytes), and are looked at every `tick` ms.
    fn run(arrivals: &[(u64, u64)], tick: u64) -> Run {
        let whole = 16 * MIB - (64 << 10);
        let mut run = Run::default();
        let mut arrivals = arrivals.iter().copied().peekable();
        let (mut filling, mut payload, mut journaled) = (Filling::opened(at(0)), 0, 0);
        // Since when there is something that is not on its way.
        let mut waits: Option<u64> = None;
        let end = 4000 + arrivals.clone().last().map_or(0, |(ms, _)| ms);
        for now in (0..end).step_by(tick as usize) {
            while let Some((ms, mut bytes)) = arrivals.next_if(|(ms, _)| *ms <= now) {
                run.came += bytes;
                while bytes > 0 {
                    if payload == whole {
                        // Sealed: on its way, and the next one is opened.
                        (filling, payload, journaled, waits) = (Filling::opened(at(now)), 0, 0, None);
                    }
                    let here = bytes.min(whole - payload);
                    (payload, bytes) = (payload + here, bytes - here);
                    waits = waits.or(Some(ms));
                }
            }
            let filled =
                Filled { payload: payload as u32, room: whole - payload, journaled: payload == journaled };
            if payload == whole {
                waits = None;
            } else if filling.due(filled, Waits::plain(FLUSH), at(now)) {
                run.journaled += payload - journaled;
                (journaled, waits) = (payload, None);
                filling.journaled(at(now));
            }
            run.oldest = run.oldest.max(Duration::from_millis(waits.map_or(0, |ms| now - ms)));
        }
        run
    }

    /// A burst of 8 MiB every second, each within `length` ms and up to `jitter` ms late.
    fn bursts(length: u64, jitter: u64) -> Vec<(u64, u64)> {
        let pieces = length / 10 + 1;
        let late = |second: u64| second * 7919 % (jitter + 1);
        let burst =
            |second| (0..pieces).map(move |n| (1000 * second + late(second) + 10 * n, 8 * MIB / pieces));
        (0..600).flat_map(burst).collect()
    }

    /// Two bursts fill a slot. Where one is late, two intervals may pass before the second one is there: then the first
    /// has to go to the journal, and does.
    #[test]
    fn a_stream_that_comes_in_bursts_skips_the_journal_where_its_slots_fill_in_time() {
        for (length, jitter, most) in [(0, 0, 0.01), (100, 0, 0.01), (500, 0, 0.01), (100, 50, 0.5)] {
            let run = run(&bursts(length, jitter), 20);
            let share = run.journaled as f64 / run.came as f64;
            assert!(share < most, "bursts of {length} ms, {jitter} ms late: {share:.3} of {run:?}");
        }
    }

    proptest! {
        /// Promise 6: whatever comes when, it is on its way within two intervals and the time between two looks.
        #[test]
        fn nothing_waits_longer_than_two_intervals(
            steps in prop::collection::vec((0..2500u64, prop_oneof![0..4096u64, 0..40 * MIB]), 0..60),
            tick in 1..250u64,
        ) {
            let mut now = 0;
            let arrivals: Vec<_> = steps.into_iter().map(|(step, bytes)| { now += step; (now, bytes) }).collect();
            let run = run(&arrivals, tick);
            prop_assert!(run.oldest <= FLUSH * 2 + Duration::from_millis(tick), "{run:?}");
        }
    }
}
