//! Sequence numbers of one sender: arrived, still possible, and missing.
//!
//! A number counts as missing when it is 64 behind the greatest (a quarter of a short cycle), or a quarter of a second after
//! the hole opened: elements that overtake each other on their way are no loss, nor are doubled ones. A number that is further
//! away is believed once another one near it comes, so that a single wrong header changes nothing. Then what lies between is
//! missing; or, if that is backwards or too far, the sender began anew, and nobody knows what was lost meanwhile.

use super::{Missing, PendingLosses};
use holdfast_attributes::Cycle;
use holdfast_base::Timestamp;
use std::time::Duration;

/// How far a late element may be behind the greatest number.
const WINDOW: i64 = 64;

/// How long a hole stays open while nothing comes that would close it.
const REST: Duration = Duration::from_millis(250);

/// Numbers that can be missing in one hole; beyond, the sender began anew.
const FAR: i64 = 1 << 24;

/// The same in seconds, where a counter begins anew with each: telescopes pause between what they look at.
const LONG: i64 = 30;

/// Elements that may come between the first number far away and the next one near it: those that were overtaken.
const BETWEEN: u8 = 16;

/// An element's number; in which second, where a counter begins anew with each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) second: u32,
    pub(super) number: u64,
}

/// A number that is far away.
#[derive(Clone, Copy, Debug)]
struct Stray {
    mark: Mark,
    at: Timestamp,
    /// Elements that have come since.
    since: u8,
    /// Others before it, each further on than the last and alone between losses: none of them is missing.
    passed: u64,
}

/// One sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flow {
    /// Which one it is.
    pub(super) key: u64,
    /// Whether it has sent anything since this was last set back; its first element does not count.
    pub(super) spoke: bool,
    /// The greatest number.
    head: Mark,
    /// Bit n: the n-th number before it has come, or is out of question.
    seen: u64,
    /// When the last element came.
    last: Timestamp,
    /// When the holes that are open began and ended.
    holes: Option<(Timestamp, Timestamp)>,
    stray: Option<Stray>,
    /// Whether no two elements have one number.
    alone: bool,
    /// The greatest number of all seconds, and whether the end of one has been seen.
    highest: u64,
    wrapped: bool,
}

impl Flow {
    /// With its first element, which is still to be counted. What was before it is out of question.
    pub(super) fn new(key: u64, head: Mark, at: Timestamp) -> Self {
        Self {
            key,
            spoke: false,
            head,
            seen: u64::MAX,
            last: at,
            holes: None,
            stray: None,
            alone: true,
            highest: head.number,
            wrapped: false,
        }
    }

    pub(super) fn has_holes(&self) -> bool {
        self.holes.is_some()
    }

    /// An element came.
    pub(super) fn count(
        &mut self,
        cycle: Cycle,
        mark: Mark,
        alone: bool,
        at: Timestamp,
        told: &mut PendingLosses,
    ) {
        self.alone &= alone;
        let window = window(cycle);
        let near = |away: &i64| (1 - window..=window).contains(away);
        if let Some(away) = self.away(cycle, self.head, mark).filter(near) {
            self.place(mark, away, window, at, told);
            self.last = at;
            self.stray = self.stray.filter(|stray| stray.since < BETWEEN);
            self.stray = self.stray.map(|stray| Stray { since: stray.since + 1, ..stray });
            return;
        }
        let away = |stray: &Stray| self.away(cycle, stray.mark, mark).filter(near);
        let (first, second, away, stray) = match self.stray.map(|stray| (stray, away(&stray))) {
            // The same number once more is a doubled element.
            Some((_, Some(0))) => return,
            Some((stray, Some(away))) if away > 0 => (stray.mark, mark, away, stray),
            Some((stray, Some(away))) => (mark, stray.mark, -away, stray),
            before => {
                let passed = before.map_or(0, |(stray, _)| self.passed(cycle, &stray, mark));
                self.stray = Some(Stray { mark, at, since: 0, passed });
                return;
            }
        };
        self.jump(cycle, first, &stray, told);
        self.place(second, away, window, at, told);
        self.last = at;
    }

    /// How many have come alone when `mark` comes, further away than `stray` was.
    fn passed(&self, cycle: Cycle, stray: &Stray, mark: Mark) -> u64 {
        let away = |mark| self.away(cycle, self.head, mark).filter(|away| (1..=far(cycle)).contains(away));
        match (away(stray.mark), away(mark)) {
            (Some(before), Some(now)) if before < now => stray.passed + 1,
            _ => 0,
        }
    }

    /// It goes on far away.
    fn jump(&mut self, cycle: Cycle, to: Mark, stray: &Stray, told: &mut PendingLosses) {
        self.give_up(told);
        let between = self.away(cycle, self.head, to).filter(|away| (1..=far(cycle)).contains(away));
        let missing = between.map(|away| (away as u64 - 1).saturating_sub(stray.passed));
        self.tell(missing, (self.last, stray.at), told);
        if between.is_none() {
            (self.highest, self.wrapped) = (0, false);
            self.head = to;
        }
        self.go_to(to);
        (self.stray, self.last) = (None, stray.at);
    }

    /// A number `away` from the head, which is near, has come.
    fn place(&mut self, mark: Mark, away: i64, window: i64, at: Timestamp, told: &mut PendingLosses) {
        if away > 0 {
            // Those that leave the window now did not come in time.
            let missing = (!self.seen >> (window - away)).count_ones();
            if missing > 0 {
                self.tell(Some(missing.into()), self.holes.unwrap_or((self.last, at)), told);
            }
            if away > 1 {
                let from = self.holes.map_or(self.last, |(from, _)| from);
                self.holes = Some((from, at));
            }
            let outside = u64::MAX.checked_shl(window as u32).unwrap_or(0);
            self.seen = self.seen.checked_shl(away as u32).unwrap_or(0) | 1 | outside;
            self.go_to(mark);
        } else {
            self.seen |= 1 << -away;
            self.highest = self.highest.max(mark.number);
        }
        if self.seen == u64::MAX {
            self.holes = None;
        }
    }

    fn go_to(&mut self, mark: Mark) {
        self.wrapped |= mark.second != self.head.second;
        self.highest = self.highest.max(mark.number);
        self.head = mark;
    }

    /// How far `to` is behind `from`; `None` if that is not known.
    fn away(&self, cycle: Cycle, from: Mark, to: Mark) -> Option<i64> {
        match cycle {
            Cycle::Bits(bits) => {
                let unused = 64_u32.saturating_sub(bits).min(63);
                Some((to.number.wrapping_sub(from.number) << unused) as i64 >> unused)
            }
            Cycle::Second => {
                let seconds = i64::from(to.second) - i64::from(from.second);
                let numbers = match seconds {
                    0 => 0,
                    _ if seconds.abs() > LONG => return None,
                    _ => seconds * self.a_second(from, to)? as i64,
                };
                Some(numbers + to.number as i64 - from.number as i64)
            }
        }
    }

    /// How many numbers a second has, as far as was seen; the first of which the end is heard is taken to be whole where the
    /// next one begins with its first number.
    fn a_second(&self, from: Mark, to: Mark) -> Option<u64> {
        let begins = from == self.head && to.second == from.second + 1 && to.number == 0;
        (self.wrapped || begins).then_some(self.highest + 1)
    }

    /// What has not come by now will not.
    pub(super) fn give_up(&mut self, told: &mut PendingLosses) {
        if let Some(times) = self.holes.take() {
            self.tell(Some((!self.seen).count_ones().into()), times, told);
        }
        self.seen = u64::MAX;
    }

    /// The same where the last hole has been open long enough. Whether there are holes that may still be filled.
    pub(super) fn rest(&mut self, now: Timestamp, told: &mut PendingLosses) -> bool {
        if self.holes.is_some_and(|(_, to)| now.since(to) >= REST) {
            self.give_up(told);
        }
        self.has_holes()
    }

    fn tell(&self, elements: Option<u64>, (from, to): (Timestamp, Timestamp), told: &mut PendingLosses) {
        if elements != Some(0) {
            told.add(Missing { elements: elements.filter(|_| self.alone), from, to: to.max(from) });
        }
    }
}

fn window(cycle: Cycle) -> i64 {
    match cycle {
        Cycle::Bits(bits) => WINDOW.min(1 << bits.saturating_sub(2).min(32)),
        Cycle::Second => WINDOW,
    }
}

/// The farthest that can be told from a number that went back.
fn far(cycle: Cycle) -> i64 {
    match cycle {
        Cycle::Bits(bits) => FAR.min((1 << bits.saturating_sub(1).min(32)) - 1),
        Cycle::Second => FAR,
    }
}
