//! Rates and forecasts out of what a recorder says: pure functions of one or two statuses.

use holdfast_base::{ByteSize, Rate, Timestamp};
use holdfast_protocol::wire::{LaneStatus, RecorderStatus, Status};
use holdfast_ring::{SlotLook, SlotStatus};
use std::time::Duration;

/// Below this many slots the bytes of whole slots say little about a rate.
const ENOUGH_SLOTS: u64 = 4;

/// What flows, between two looks or on average since the recorder started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// Payload that comes in.
    pub payload: Rate,
    /// Number of elements a second.
    pub elements: u64,
    /// Onto the medium, journal included.
    pub disk: Rate,
    /// Slots that fill, in bytes a second: what makes data expire.
    pub slots: Rate,
    /// Per source: payload, elements a second.
    pub sources: Vec<(Rate, u64)>,
    /// Per source: what of it is beyond the rate that was declared, and recorded.
    pub beyond: Vec<Rate>,
    /// The time over which they were taken.
    pub span: Duration,
}

/// The average since the recorder started; `None` without one.
pub fn average(status: &Status) -> Option<Rates> {
    status.recorder.as_ref().map(|now| between(status.ring.slot_bytes, None, now))
}

/// What the recorder tells of the last minute or so; the average since its start where it does not tell, or is younger.
pub fn lately(status: &Status) -> Option<Rates> {
    let now = status.recorder.as_ref()?;
    let Some(lately) = now.recent.as_ref().filter(|lately| lately.span < now.uptime) else {
        return average(status);
    };
    let mut before = now.clone();
    before.uptime -= lately.span;
    for (source, lately) in before.sources.iter_mut().zip(&lately.sources) {
        source.elements = source.elements.saturating_sub(lately.elements);
        source.bytes = source.bytes.saturating_sub(lately.bytes);
    }
    // One lane: what is told of all is its own.
    for lane in before.lanes.iter_mut().take(1) {
        lane.slot_bytes = lane.slot_bytes.saturating_sub(lately.slot_bytes);
        lane.journal_bytes = lane.journal_bytes.saturating_sub(lately.journal_bytes);
    }
    Some(between(status.ring.slot_bytes, Some(&before), now))
}

/// What happened between two looks at the same recorder.
pub fn recent(before: &Status, now: &Status) -> Option<Rates> {
    let (first, last) = (before.recorder.as_ref()?, now.recorder.as_ref()?);
    let same =
        first.pid == last.pid && first.uptime < last.uptime && first.sources.len() == last.sources.len();
    same.then(|| between(now.ring.slot_bytes, Some(first), last))
}

fn between(slot: ByteSize, before: Option<&RecorderStatus>, now: &RecorderStatus) -> Rates {
    let span = now.uptime.saturating_sub(before.map_or(Duration::ZERO, |before| before.uptime));
    let count = |now: u64, before: Option<u64>| Rate::of(now.saturating_sub(before.unwrap_or(0)), span);
    let old = |at: usize| before.and_then(|before| before.sources.get(at));
    let (sources, beyond): (Vec<_>, Vec<_>) = now
        .sources
        .iter()
        .enumerate()
        .map(|(at, source)| {
            let old = old(at);
            let payload = count(source.bytes, old.map(|old| old.bytes));
            let elements = count(source.elements, old.map(|old| old.elements)).0;
            ((payload, elements), count(source.beyond_bytes, old.map(|old| old.beyond_bytes)))
        })
        .unzip();
    let lanes =
        |recorder: &RecorderStatus, bytes: fn(&LaneStatus) -> u64| recorder.lanes.iter().map(bytes).sum();
    let written = |bytes: fn(&LaneStatus) -> u64| -> u64 {
        let old: u64 = before.map_or(0, |before| lanes(before, bytes));
        let new: u64 = lanes(now, bytes);
        new.saturating_sub(old)
    };
    let payload = Rate(sources.iter().map(|(rate, _)| rate.0).sum());
    let slots = written(|lane| lane.slot_bytes);
    Rates {
        payload,
        elements: sources.iter().map(|(_, elements)| elements).sum(),
        disk: Rate::of(written(|lane| lane.slot_bytes + lane.journal_bytes), span),
        slots: if slots >= ENOUGH_SLOTS * slot.0 { Rate::of(slots, span) } else { payload },
        sources,
        beyond,
        span,
    }
}

/// How far back one can go, and what becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The oldest data that is not held.
    pub oldest: Timestamp,
    /// From there to now.
    pub back: Duration,
    /// When the oldest data expires at this rate; `None` when nothing comes in.
    pub expires_in: Option<Duration>,
    /// How far back one can go at this rate once the ring has wrapped.
    pub when_full: Option<Duration>,
}

/// The oldest data that will expire in its turn: what is held may be much older, with nothing between.
pub fn oldest_live(status: &Status, slots: &[SlotStatus]) -> Option<Timestamp> {
    let live = slots
        .iter()
        .filter(|slot| matches!(slot.look, SlotLook::Live | SlotLook::Pinned | SlotLook::Damaged));
    let oldest = live.filter_map(|slot| slot.first).min();
    // With nothing on the medium but what is held, only the open slot is left.
    oldest.or(status.ring.oldest.filter(|_| status.ring.slots.held == 0))
}

/// The reach of a ring back to `oldest`, at a rate of filling slots; `None` when it is empty.
pub fn reach(status: &Status, oldest: Option<Timestamp>, slots: Rate) -> Option<Reach> {
    let ring = &status.ring;
    let oldest = oldest?;
    // Without a recorder nothing gets older than it was: the machine's clock tells how long ago.
    let now = status.recorder.as_ref().map_or_else(crate::session::now, |recorder| recorder.now);
    let counts = &ring.slots;
    let at_rate = |slot_count: u32| {
        (slots.0 > 0).then(|| {
            Duration::from_secs_f64(f64::from(slot_count) * ring.slot_bytes.0 as f64 / slots.0 as f64)
        })
    };
    // What is in the runway counts as expired; the next runway is named when half of it is used, and takes free slots
    // first.
    let before_oldest = counts.free + counts.runway.div_ceil(2);
    let circulating = counts.total.saturating_sub(counts.held + counts.bad + counts.runway.div_ceil(2));
    Some(Reach {
        oldest,
        back: now.since(oldest),
        expires_in: at_rate(before_oldest),
        when_full: at_rate(circulating),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sim::samples as sample;

    #[test]
    fn rates_are_what_came_between_two_looks() {
        let before = sample::status();
        let mut now = sample::status();
        assert_eq!(recent(&before, &now), None, "no time has passed");
        let recorder = now.recorder.as_mut().unwrap();
        recorder.uptime += Duration::from_secs(2);
        recorder.sources[1].bytes += 6 << 20;
        recorder.sources[1].elements += 50;
        recorder.sources[1].beyond_bytes += 2 << 20;
        recorder.lanes[0].journal_bytes += 4 << 20;
        let rates = recent(&before, &now).unwrap();
        assert_eq!((rates.payload, rates.elements, rates.disk), (Rate(3 << 20), 25, Rate(2 << 20)));
        assert_eq!(rates.slots, rates.payload, "too few slots were filled to tell");
        assert_eq!(rates.sources, [(Rate(0), 0), (Rate(3 << 20), 25)]);
        assert_eq!(rates.beyond, [Rate(0), Rate(1 << 20)]);
        recorder_of(&mut now).lanes[0].slot_bytes += 10 << 20;
        assert_eq!(recent(&before, &now).unwrap().slots, Rate(5 << 20));
        recorder_of(&mut now).pid += 1;
        assert_eq!(recent(&before, &now), None, "another recorder counts from 0 again");
    }

    #[test]
    fn rates_of_the_last_minute_are_told_and_of_the_whole_run_while_that_is_less() {
        let mut status = sample::status();
        assert_eq!(lately(&status).unwrap().payload, average(&status).unwrap().payload, "it was always so");
        // A hundred days later; nothing has changed in the last minute, and everything before was idle.
        recorder_of(&mut status).uptime += Duration::from_hours(2400);
        let rates = lately(&status).unwrap();
        assert_eq!((rates.payload, rates.elements, rates.slots), (Rate(1 << 20), 1010, Rate(1 << 20)));
        assert_eq!((rates.disk, rates.span), (Rate(63 * (1 << 20) / 60), Duration::from_mins(1)));
        assert_eq!(rates.sources, [(Rate(1 << 19), 1000), (Rate(1 << 19), 10)]);
        assert!(average(&status).unwrap().payload < Rate(100));
        // A young one, and one that does not tell.
        recorder_of(&mut status).uptime = Duration::from_mins(1);
        assert_eq!(lately(&status), average(&status));
        recorder_of(&mut status).uptime = Duration::from_mins(10);
        recorder_of(&mut status).recent = None;
        assert_eq!(lately(&status), average(&status));
    }

    fn recorder_of(status: &mut Status) -> &mut RecorderStatus {
        status.recorder.as_mut().unwrap()
    }

    #[test]
    fn the_oldest_expires_when_the_free_slots_and_half_the_runway_are_used() {
        let status = sample::status();
        let oldest = status.ring.oldest;
        let reach = reach(&status, oldest, Rate(1 << 20)).unwrap();
        assert_eq!(reach.back, Duration::from_mins(10));
        assert_eq!(reach.expires_in, Some(Duration::from_secs(308)));
        assert_eq!(reach.when_full, Some(Duration::from_secs(1019 - 100 - 1 - 8)));
        let idle = super::reach(&status, oldest, Rate(0)).unwrap();
        assert_eq!((idle.expires_in, idle.when_full), (None, None));
        assert_eq!(super::reach(&status, None, Rate(1)), None);
    }

    #[test]
    fn what_is_held_does_not_lengthen_the_reach() {
        let mut status = sample::status();
        let mut slots = sample::slots();
        for (at, slot) in slots.iter_mut().enumerate() {
            slot.first = Some(Timestamp(at as i64 + 100));
        }
        slots.reverse();
        assert_eq!(oldest_live(&status, &slots), Some(Timestamp(100)));
        slots.retain(|slot| slot.look != SlotLook::Live);
        assert_eq!(oldest_live(&status, &slots), Some(Timestamp(818)), "the damaged one");
        slots.retain(|slot| slot.look == SlotLook::Held);
        assert_eq!(oldest_live(&status, &slots), None);
        status.ring.slots.held = 0;
        assert_eq!(oldest_live(&status, &[]), status.ring.oldest);
    }
}
