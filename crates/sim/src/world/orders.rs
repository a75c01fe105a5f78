//! Orders and reads of the simulation: given to the ring, expected of it, compared when it answers.

use super::condition_hold::Extending;
use super::{World, reason};
use crate::model::ModelHold;
use crate::observe::same_rows;
use crate::view::read_slot;
use holdfast_base::{ByteSize, HoldId, OrderId, Ordinal, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::ConditionHold;
use holdfast_media::Buffer;
use holdfast_ring::{
    Class, HoldRequest, HoldStatus, Order, OrderTag, Outcome, Range, Refusal, ReleaseRequest, SlotRead,
    SlotStatus,
};
use std::collections::BTreeSet;
use std::time::Duration;

/// A range of ordinals, and slots one by one.
pub(super) type Named = ((Ordinal, Ordinal), Vec<(Sequence, Sequence)>);

/// Most slots that worlds grow to: laps stay short.
const MOST_SLOTS: u32 = 40;

/// An order that was given and not answered yet.
#[derive(Clone, Debug)]
pub(crate) enum Asked {
    Hold {
        /// What it takes: sequences and the rows they had.
        candidates: Vec<(u64, usize)>,
        until: Timestamp,
        /// The ring does not know its slots well enough yet.
        deferred: bool,
        /// Slots that could still be held, by the design's rule: least and most.
        free: (u32, u32),
        /// Slots it takes of them, with what is promised to it.
        fresh: u32,
        condition_hold: Option<ConditionHold>,
    },
    Extend(Extending),
    Release(u64),
    /// A hold that stands is ordered again.
    HoldAgain {
        /// The order that gave it.
        first: u64,
        until: Timestamp,
        /// Kept sequences, and the rows they had.
        kept: Vec<(u64, usize)>,
    },
    /// The release of a hold is ordered again.
    ReleaseAgain {
        hold: u64,
        /// True if the release was acknowledged.
        done: bool,
    },
    Grow(u32),
}

/// A hold or release order that a client may repeat.
#[derive(Clone, Debug)]
pub(super) struct Given {
    order: u64,
    id: OrderId,
    request: Order,
}

/// Orders that clients may repeat, the newest ones: fewer than the ring remembers releases.
const REMEMBERED: usize = 8;

/// The UUID of the world's `order`-th order.
fn order_id(order: u64) -> OrderId {
    OrderId((u128::from(order) << 64 | 0xfeed).to_le_bytes())
}

impl World {
    pub(super) fn hold_time(
        &mut self,
        stream: Option<u8>,
        back: Duration,
        span: Duration,
        by_event: bool,
        lasts: Option<Duration>,
        wait: bool,
    ) -> Result<(), String> {
        let now = self.now();
        let (mut from, mut to) = (now - back, now - back + span);
        if by_event {
            (from, to) = (Timestamp(from.0 / 2), Timestamp(to.0 / 2));
        }
        let streams = stream.map(|s| self.stream(s)).into_iter().collect();
        let range = Range { from, to, by_event, ordinals: None };
        let until = lasts.map_or(Timestamp::MAX, |l| now + l);
        self.hold(streams, range, None, until, wait)
    }

    pub(super) fn hold_ordinals(&mut self, stream: u8, back: u16, count: u16) -> Result<(), String> {
        self.look()?;
        let (ordinals, sequences) = self.with_ordinals(stream, back, count);
        let range = Range { ordinals: Some(ordinals), ..Range::ALL };
        self.hold(vec![self.stream(stream)], range, Some(sequences), Timestamp::MAX, true)
    }

    /// A range of a stream's ordinals, counted back from the newest, and the slots that have it, one by one.
    pub(super) fn with_ordinals(&self, stream: u8, back: u16, count: u16) -> Named {
        let next = self.sources[usize::from(stream) % self.sources.len()].next;
        let first = next.saturating_sub(u64::from(back));
        let end = first + u64::from(count);
        let found = self.model.with_ordinals(self.stream(stream), first, end);
        let sequences = found.into_iter().map(|s| (Sequence(s), Sequence(s))).collect();
        ((Ordinal(first), Ordinal(end)), sequences)
    }

    pub(super) fn stream(&self, number: u8) -> StreamId {
        self.sources[usize::from(number) % self.sources.len()].id
    }

    /// Gives a hold, and waits for its answer if `wait`.
    pub fn hold(
        &mut self,
        streams: Vec<StreamId>,
        range: Range,
        sequences: Option<Vec<(Sequence, Sequence)>>,
        until: Timestamp,
        wait: bool,
    ) -> Result<(), String> {
        self.hold_by(streams, range, sequences, until, None, wait)
    }

    pub(super) fn hold_by(
        &mut self,
        streams: Vec<StreamId>,
        range: Range,
        sequences: Option<Vec<(Sequence, Sequence)>>,
        until: Timestamp,
        condition_hold: Option<ConditionHold>,
        wait: bool,
    ) -> Result<(), String> {
        let id = order_id(self.orders + 1);
        self.hold_with(id, streams, range, sequences, until, condition_hold, wait)
    }

    /// The same, by an order with this UUID.
    #[allow(clippy::too_many_arguments, reason = "the fields of a request")]
    fn hold_with(
        &mut self,
        id: OrderId,
        streams: Vec<StreamId>,
        range: Range,
        sequences: Option<Vec<(Sequence, Sequence)>>,
        until: Timestamp,
        condition_hold: Option<ConditionHold>,
        wait: bool,
    ) -> Result<(), String> {
        self.look()?;
        let order = self.next_order();
        let candidates = match &sequences {
            Some(ranges) => {
                let ranges: Vec<_> = ranges.iter().map(|(a, b)| (a.0, b.0)).collect();
                self.model.named(&ranges)
            }
            None => self.model.candidates(&streams, &range),
        };
        let fresh = candidates.iter().filter(|(s, _)| !self.model.is_kept(*s)).count() as u32;
        let quota = condition_hold.as_ref().map_or(0, |condition_hold| condition_hold.quota);
        let fresh = fresh + quota.saturating_sub(candidates.len() as u32);
        let ((least, most), promised) = (self.unheld(), self.model.promised());
        let free = (least.saturating_sub(promised.1), most.saturating_sub(promised.0));
        let asked = Asked::Hold {
            candidates,
            until,
            deferred: false,
            free,
            fresh,
            condition_hold: condition_hold.clone(),
        };
        self.asked.insert(order, asked);
        let (reason, owner) = (reason(order), "world".to_owned());
        let request =
            HoldRequest { streams, range, sequences, reason, owner, until, condition_hold, order: Some(id) };
        self.remember(Given { order, id, request: Order::Hold(request.clone()) });
        self.give(order, Order::Hold(request))?;
        if let Some(Asked::Hold { deferred, .. }) = self.asked.get_mut(&order) {
            // Neither refused nor there: it waits for the table.
            *deferred = !self.model.holds.values().any(|h| h.order == order);
        }
        self.wait_for(order, wait)
    }

    pub(super) fn next_order(&mut self) -> u64 {
        self.orders += 1;
        self.orders
    }

    pub(super) fn give(&mut self, order: u64, what: Order) -> Result<(), String> {
        let now = self.now();
        let run = self.recorder()?;
        let brief = run.brief();
        run.driver.order(OrderTag(order), what, brief, now);
        self.look()?;
        self.replies()?;
        self.look()
    }

    pub(super) fn wait_for(&mut self, order: u64, wait: bool) -> Result<(), String> {
        if wait {
            self.wait("an order", &mut |world| !world.asked.contains_key(&order))?;
        }
        Ok(())
    }

    /// Slots that may still be held, what is promised included: what holds have now may be counted either way while one ends.
    pub(super) fn unheld(&self) -> (u32, u32) {
        let Some(run) = &self.run else { return (0, 0) };
        let slots = run.driver.ring().status("").slots;
        let target = (2 * self.setup.config.buffers).max(16).min(slots.total / 4).max(2);
        let kept_free = self.superblock.reserve.max(target + self.setup.config.buffers);
        let usable = slots.total - slots.bad;
        let held = |may: bool| {
            let kept = |s: u64| if may { self.model.may_be_kept(s) } else { self.model.is_kept(s) };
            self.model.alive().filter(|(s, _)| kept(*s)).count() as u32
        };
        (usable.saturating_sub(held(true) + kept_free), usable.saturating_sub(held(false) + kept_free))
    }

    /// Sequences that the ring has at this moment.
    fn present(&self) -> BTreeSet<u64> {
        let Some(run) = &self.run else { return BTreeSet::new() };
        let slots = run
            .driver
            .ring()
            .slot_looks(SlotNo(0), u32::MAX)
            .filter(SlotStatus::has_data)
            .map(|look| look.sequence);
        slots.chain(run.driver.on_the_way()).chain(run.open()).map(|s| s.0).collect()
    }

    /// Holds that the ring shows for the first time must be what was asked for.
    pub(super) fn meet_holds(&mut self, shown: &[HoldStatus]) -> Result<(), String> {
        for hold in shown {
            let id = hold.id.0;
            if self.model.holds.contains_key(&id) {
                self.meet_growth(hold)?;
                continue;
            }
            let mine = self.asked.iter().find(|(order, _)| reason(**order) == hold.reason);
            let Some((order, Asked::Hold { candidates, until, deferred, condition_hold, .. })) = mine else {
                return Err(format!("hold {id} ({}) is shown, and nobody asked for it", hold.reason));
            };
            if self.model.hold_ids.contains(&id) {
                return Err(format!("hold id {id} is given again"));
            }
            let ranges: Vec<(u64, u64)> = hold.sequences.iter().map(|(a, b)| (a.0, b.0)).collect();
            let new = ModelHold {
                order: *order,
                ranges,
                acked: false,
                covered: Vec::new(),
                releasing: false,
                until: *until,
                condition_hold: condition_hold.clone(),
                before: Vec::new(),
            };
            // What has expired while the hold waited, it cannot take.
            let present = self.present();
            let wanted: Vec<u64> =
                candidates.iter().map(|(s, _)| *s).filter(|s| present.contains(s)).collect();
            let damaged = |s: &u64| self.model.slots.get(s).is_some_and(|slot| slot.damaged);
            let all = new.ranges.iter().flat_map(|(a, b)| *a..=*b);
            let extra: Vec<u64> = all.filter(|s| !wanted.contains(s) && !damaged(s)).collect();
            if let Some(left_out) = wanted.iter().find(|s| !new.keeps(**s)) {
                return Err(format!("hold {id} leaves out {left_out}: {:?} for {wanted:?}", new.ranges));
            }
            if !deferred && !extra.is_empty() {
                return Err(format!("hold {id} takes {extra:?} beside {wanted:?}"));
            }
            self.model.holds.insert(id, new);
        }
        Ok(())
    }

    pub(super) fn release(&mut self, n: u8) -> Result<(), String> {
        let standing: Vec<u64> =
            self.model.holds.iter().filter(|(_, h)| h.acked && !h.releasing).map(|(id, _)| *id).collect();
        if standing.is_empty() {
            return Ok(());
        }
        let id = standing[usize::from(n) % standing.len()];
        self.look()?;
        let order = self.next_order();
        self.asked.insert(order, Asked::Release(id));
        if let Some(hold) = self.model.holds.get_mut(&id) {
            hold.releasing = true;
        }
        let given = order_id(order);
        let request = ReleaseRequest { order: Some(given), ..HoldId(id).into() };
        self.remember(Given { order, id: given, request: Order::Release(request.clone()) });
        self.give(order, Order::Release(request))?;
        self.wait_for(order, true)
    }

    /// Keeps an order, so that a client may repeat it; one with the same UUID takes the place of the one before.
    fn remember(&mut self, given: Given) {
        self.given.retain(|other| other.id != given.id);
        if self.given.len() == REMEMBERED {
            self.given.remove(0);
        }
        self.given.push(given);
    }

    /// Gives the n-th of the remembered orders again, with its UUID, as a client does that has lost the answer.
    pub(super) fn repeat(&mut self, n: u8) -> Result<(), String> {
        self.look()?;
        if self.given.is_empty() {
            return Ok(());
        }
        let given = self.given[usize::from(n) % self.given.len()].clone();
        match given.request {
            Order::Hold(request) => self.repeat_hold(given.order, given.id, request),
            Order::Release(request) => self.repeat_release(request),
            _ => Ok(()),
        }
    }

    fn repeat_hold(&mut self, first: u64, id: OrderId, request: HoldRequest) -> Result<(), String> {
        let Some(hold) = self.model.holds.values().find(|hold| hold.order == first) else {
            if self.asked.contains_key(&first) {
                // It waits for the table: what comes of it is not known yet.
                return Ok(());
            }
            // It was refused, is lost, or has ended: it is a new order.
            let HoldRequest { streams, range, sequences, until, condition_hold, .. } = request;
            return self.hold_with(id, streams, range, sequences, until, condition_hold, true);
        };
        if hold.releasing {
            return Ok(());
        }
        let kept = self.model.alive().filter(|(sequence, _)| hold.keeps(*sequence));
        let kept = kept.map(|(sequence, slot)| (sequence, slot.rows.len())).collect();
        let asked = Asked::HoldAgain { first, until: hold.until, kept };
        let order = self.next_order();
        self.asked.insert(order, asked);
        self.give(order, Order::Hold(request))?;
        self.wait_for(order, true)
    }

    fn repeat_release(&mut self, request: ReleaseRequest) -> Result<(), String> {
        let hold = request.hold.0;
        let order = self.next_order();
        self.asked.insert(order, Asked::ReleaseAgain { hold, done: self.model.acts.contains(&(true, hold)) });
        if let Some(hold) = self.model.holds.get_mut(&hold) {
            hold.releasing = true;
        }
        self.give(order, Order::Release(request))?;
        self.wait_for(order, true)
    }

    pub(super) fn grow(&mut self, slots: u8) -> Result<(), String> {
        let total = self.model.total + u32::from(slots);
        if slots == 0 || total > MOST_SLOTS {
            return Ok(());
        }
        let order = self.next_order();
        self.asked.insert(order, Asked::Grow(total));
        self.grew = true;
        self.model.growing = Some(total);
        let bytes = self.setup.lane(total);
        self.disk()?.lengthen(bytes);
        self.give(order, Order::Grow(ByteSize(bytes)))?;
        self.wait_for(order, true)?;
        self.grew = true;
        Ok(())
    }

    /// Takes in what the ring answered.
    pub(super) fn replies(&mut self) -> Result<(), String> {
        while let Some((OrderTag(order), outcome)) = self.run.as_mut().and_then(|r| r.driver.reply()) {
            let Some(asked) = self.asked.get(&order).cloned() else {
                return Err(format!("order {order} is answered twice, or was never given: {outcome:?}"));
            };
            self.answered(order, asked, &outcome)
                .map_err(|why| format!("order {order} was answered {outcome:?}: {why}"))?;
            self.asked.remove(&order);
        }
        Ok(())
    }

    /// Takes in the answer to a repeated order.
    fn answered_again(&mut self, asked: Asked, outcome: &Outcome) -> Result<(), String> {
        let now = self.now();
        match (asked, outcome) {
            (Asked::HoldAgain { first, until, kept }, Outcome::Held { id, .. }) => {
                self.repeated += 1;
                let Some(hold) = self.model.holds.get_mut(&id.0) else {
                    return if until > now { Err("it is not there".to_owned()) } else { Ok(()) };
                };
                if hold.order != first {
                    return Err(format!("it is the hold of order {}, not of {first}", hold.order));
                }
                hold.acked = true;
                hold.covered.extend(kept.iter().map(|(sequence, _)| *sequence));
                self.model.hold_ids.insert(id.0);
                self.model.acts.insert((false, id.0));
                for (sequence, rows) in kept {
                    if let Some(slot) = self.model.slots.get_mut(&sequence) {
                        slot.floor = slot.floor.max(rows);
                    }
                }
                Ok(())
            }
            (Asked::HoldAgain { until, .. }, Outcome::Refused(Refusal::Wrong(_))) if until <= now => Ok(()),
            (Asked::ReleaseAgain { hold, done }, Outcome::Released { .. }) => {
                self.repeated += u64::from(done);
                self.model.holds.remove(&hold);
                self.model.acts.insert((true, hold));
                Ok(())
            }
            (Asked::ReleaseAgain { hold, done: false }, Outcome::Refused(Refusal::NoSuchHold(_))) => {
                match self.model.holds.remove(&hold) {
                    Some(hold) if hold.until > now => Err("the hold stands".to_owned()),
                    _ => Ok(()),
                }
            }
            _ => Err("that is no answer to a repeated order".to_owned()),
        }
    }

    fn answered(&mut self, order: u64, asked: Asked, outcome: &Outcome) -> Result<(), String> {
        let now = self.now();
        match (asked, outcome) {
            (Asked::Extend(extending), outcome) => self.extended(order, &extending, outcome),
            (
                Asked::Hold { candidates, until, deferred, free, fresh, condition_hold },
                Outcome::Held { id, .. },
            ) => {
                if let Some(run) = &self.run {
                    let shown: Vec<_> = run.driver.ring().hold_looks().collect();
                    self.meet_holds(&shown)?;
                }
                if !deferred && fresh > free.1 {
                    return Err(format!("it takes {fresh} more slots, and only {} may be held", free.1));
                }
                let Some(hold) = self.model.holds.get_mut(&id.0) else {
                    if until > now {
                        return Err("it is not there".to_owned());
                    }
                    // It came and went while the answer was under way.
                    let ranges = candidates.iter().map(|(s, _)| (*s, *s)).collect();
                    let gone = ModelHold {
                        order,
                        ranges,
                        acked: true,
                        covered: Vec::new(),
                        releasing: false,
                        until,
                        condition_hold,
                        before: Vec::new(),
                    };
                    self.model.ended.push(gone);
                    return Ok(());
                };
                if hold.order != order {
                    return Err(format!("it is the hold of order {}", hold.order));
                }
                hold.acked = true;
                self.model.hold_ids.insert(id.0);
                self.model.acts.insert((false, id.0));
                let kept = candidates.iter().map(|(s, _)| *s).filter(|s| hold.keeps(*s));
                hold.covered = kept.collect();
                let hold = hold.clone();
                for (sequence, rows) in candidates.into_iter().filter(|(s, _)| hold.keeps(*s)) {
                    if let Some(slot) = self.model.slots.get_mut(&sequence) {
                        slot.floor = slot.floor.max(rows);
                    }
                }
                Ok(())
            }
            (
                Asked::Hold { candidates, until, deferred, free, fresh, condition_hold },
                Outcome::Refused(why),
            ) => match why {
                Refusal::Nothing { .. }
                    if condition_hold.is_none() && (deferred || candidates.is_empty()) =>
                {
                    Ok(())
                }
                Refusal::Quota { quota, .. } if candidates.len() as u32 + self.model.damaged() > *quota => {
                    Ok(())
                }
                Refusal::NoRoom { .. } if deferred || fresh + self.model.damaged() > free.0 => Ok(()),
                Refusal::NoRoom { .. } => Err(format!("{fresh} more slots are wanted, {} are free", free.0)),
                Refusal::JournalFull { .. } => Ok(()),
                Refusal::Wrong(_) if until <= now => Ok(()),
                _ => Err(format!("it takes {candidates:?}")),
            },
            (asked @ (Asked::HoldAgain { .. } | Asked::ReleaseAgain { .. }), outcome) => {
                self.answered_again(asked, outcome)
            }
            (Asked::Release(id), Outcome::Released { .. }) => {
                self.model.holds.remove(&id);
                self.model.acts.insert((true, id));
                Ok(())
            }
            (Asked::Release(id), Outcome::Refused(Refusal::NoSuchHold(_))) => {
                match self.model.holds.remove(&id) {
                    Some(hold) if hold.until > now => return Err("the hold stands".to_owned()),
                    // Its end may not be durable yet.
                    hold => self.model.ended.extend(hold),
                }
                Ok(())
            }
            (Asked::Grow(slots), Outcome::Grown { slots: found }) if slots == *found => {
                (self.model.total, self.model.growing) = (slots, None);
                self.setup.slots = slots;
                if let Some(run) = &self.run {
                    self.superblock = run.driver.superblock().clone();
                }
                Ok(())
            }
            _ => Err("that is no answer to it".to_owned()),
        }
    }

    /// Reads the n-th visible slot through the driver, beside capture.
    pub(super) fn read(&mut self, n: u8) -> Result<(), String> {
        self.look()?;
        let written = |slot: &crate::model::ModelSlot| matches!(slot.stage, crate::model::Stage::Written(_));
        let visible: Vec<u64> =
            self.model.alive().filter(|(_, slot)| written(slot)).map(|(s, _)| s).collect();
        if visible.is_empty() {
            return Ok(());
        }
        let sequence = visible[usize::from(n) % visible.len()];
        let len = self.setup.slot_bytes as usize;
        let buffer = Buffer::aligned(len).map_err(|e| e.to_string())?;
        let id = self.next_order();
        let now = self.now();
        let sequence_no = Sequence(sequence);
        let wanted = SlotRead { id, class: Class::Export, client: 1, sequence: sequence_no, offset: 0, len };
        let asked = self.recorder()?.driver.read(&wanted, buffer, now);
        if asked.is_err() {
            return Err(format!("sequence {sequence} is shown and cannot be read"));
        }
        let mut done = None;
        self.wait("a read", &mut |world| {
            done = world.run.as_mut().and_then(|run| run.driver.read_done());
            done.is_some()
        })?;
        let Some(done) = done else { return Ok(()) };
        let Some(slot) = self.model.slots.get(&sequence).cloned() else { return Ok(()) };
        match done.result {
            Some(Ok(())) => match read_slot(&done.buffer, &self.superblock) {
                Ok(seen) => same_rows(sequence, &slot, &seen),
                Err(_) if slot.damaged => Ok(()),
                Err(error) => Err(format!("sequence {sequence} reads as {error}")),
            },
            Some(Err(error)) if self.is_well() => Err(error.to_string()),
            Some(Err(_)) => Ok(()),
            None => {
                self.look()?;
                let gone = self.model.slots.get(&sequence).is_none_or(|slot| !written(slot));
                if gone { Ok(()) } else { Err(format!("sequence {sequence} reads as expired, and is not")) }
            }
        }
    }
}
