//! Execution of orders: the slots that a hold takes, the slots that a release frees, and when each is
//! acknowledged.

use crate::ages::Ages;
use crate::condition_hold;
use crate::event::{Action, OpenBrief};
use crate::hold_refcounts::MAX_HOLDS;
use crate::journal::Entry;
use crate::ranges::{joined, within};
use crate::snapshot::Item;
use crate::state::{Growing, Ring};
use crate::table::{Bounds, State};
use crate::{ExportRequest, HoldRequest, Order, OrderTag, Outcome, Refusal, ReleaseRequest};
use holdfast_base::{
    Age, ByteSize, HoldId, MAX_HOLD_RUNS, MAX_REASON, OrderId, Sequence, StreamId, Timestamp,
};
use holdfast_format::{Act, ActRecord, Cursor, Geometry, HoldRecord};
use holdfast_media::Fault;

/// An order whose record is durable, or not yet, and the data it waits for.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    order: OrderTag,
    outcome: Outcome,
    recorded: bool,
    /// Sequences that must be on the medium.
    sequences: Vec<Sequence>,
    /// How much of the open slot must be durable.
    open: Option<(Sequence, Cursor)>,
}

impl Waiting {
    /// For an order whose record is queued.
    pub(crate) fn new(
        order: OrderTag,
        outcome: Outcome,
        sequences: Vec<Sequence>,
        open: Option<(Sequence, Cursor)>,
    ) -> Self {
        Self { order, outcome, recorded: false, sequences, open }
    }
}

/// Which slots a hold takes.
enum Takes<'r> {
    /// Those that were found to have it.
    Named(Vec<(Sequence, Sequence)>),
    /// Those that the range touches, and what their streams have back to where elements began that end in them. What ends
    /// back there is not of the range.
    Ages(&'r HoldRequest, Ages),
}

impl<'r> Takes<'r> {
    fn new(request: &'r HoldRequest, contents: impl Iterator<Item = (Age, Bounds)>) -> Self {
        if let Some(named) = &request.sequences {
            return Self::Named(joined(named.iter().copied()));
        }
        let touched = contents.filter(|(_, bounds)| bounds.touches(&request.streams, &request.range));
        Self::Ages(request, touched.map(|(age, bounds)| (age, bounds.back)).collect())
    }

    fn has(&self, sequence: Sequence, age: Age, bounds: &Bounds) -> bool {
        match self {
            Self::Named(named) => within(named, sequence),
            Self::Ages(request, ages) => ages.has(age) && bounds.has(&request.streams),
        }
    }
}

/// Joins sequences to runs of first and last, as many as one hold may have.
pub(crate) fn runs(
    sequences: impl IntoIterator<Item = (Sequence, Sequence)>,
) -> Result<Vec<(Sequence, Sequence)>, Refusal> {
    let out = joined(sequences);
    if out.len() > MAX_HOLD_RUNS {
        return Err(Refusal::Scattered { runs: out.len() as u64, most: MAX_HOLD_RUNS as u64 });
    }
    Ok(out)
}

/// The only one of some streams.
fn only(streams: &[StreamId]) -> Option<StreamId> {
    match streams {
        [one] => Some(*one),
        _ => None,
    }
}

/// What is on record of something done to a hold.
fn act_on(hold: &HoldRecord, act: Act, at: Timestamp) -> ActRecord {
    ActRecord {
        act,
        at,
        hold: hold.id,
        stream: only(&hold.streams),
        from: hold.from,
        to: hold.to,
        first_ordinal: hold.first_ordinal,
        end_ordinal: hold.end_ordinal,
        by_time: hold.by_time,
        by_ordinal: hold.by_ordinal,
        by_event: hold.by_event,
        reason: condition_hold::reason(hold),
        owner: hold.owner.clone(),
        ..ActRecord::default()
    }
}

fn check_texts(reason: &str, owner: &str) -> Result<(), Refusal> {
    if reason.len() > MAX_REASON || owner.len() > MAX_REASON {
        return Err(Refusal::Wrong(format!("reason and owner have at most {MAX_REASON} bytes")));
    }
    Ok(())
}

/// Whether a hold keeps `sequence`.
pub(crate) fn keeps(hold: &HoldRecord, sequence: Sequence) -> bool {
    within(&hold.sequences, sequence)
}

impl Ring {
    /// Slots that may still be held by anybody: the rest keeps capture going, or is promised.
    pub(crate) fn holdable(&self) -> u32 {
        self.unheld().saturating_sub(self.promised())
    }

    /// Slots that may still be held, what is promised to holds by condition included: the rest keeps capture going.
    pub(crate) fn unheld(&self) -> u32 {
        let counts = self.ledger.table.counts();
        // Copies under way will be held, too, before their originals are free.
        let held_moving = (self.unwritten_refcounts.len() + self.jobs.copying.len()) as u32;
        let kept_free = self.superblock.reserve.max(self.runway_target() + self.config.buffers);
        (counts.total - counts.bad - counts.held).saturating_sub(held_moving + kept_free)
    }

    pub(crate) fn order(
        &mut self,
        id: OrderTag,
        order: Order,
        open: Option<OpenBrief>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        if let Order::Hold(request) = &order
            && self.repeats_hold(id, request, open)
        {
            return;
        }
        let needs_bounds = matches!(&order, Order::Hold(hold) if hold.sequences.is_none());
        if needs_bounds && self.unscanned > 0 {
            self.deferred.push((id, order, open));
            return;
        }
        let taken = match order {
            Order::Hold(request) => self.hold(id, request, open, now).map(|()| None),
            Order::Extend(request) => self.extend(id, request, open),
            Order::Release(request) => self.release(id, request, now).map(|()| None),
            Order::Export(request) => self.export(id, request, now).map(|()| None),
            Order::Grow(bytes) => self.grow(id, bytes).map(|()| None),
            // These are carried out step by step (`job`), never as one order.
            Order::Purge(_) => Err(Refusal::Busy("purge")),
            Order::Distil(_) => Err(Refusal::Busy("distilling")),
        };
        let at_once = taken.unwrap_or_else(|refusal| Some(Outcome::Refused(refusal)));
        out.extend(at_once.map(|outcome| Action::Reply(id, outcome)));
    }

    /// Answers a hold order whose hold stands already, once that and its data are durable; false for any other order.
    fn repeats_hold(&mut self, id: OrderTag, request: &HoldRequest, open: Option<OpenBrief>) -> bool {
        let Some(hold) = request.order.and_then(|order| self.ledger.hold_of(order)) else { return false };
        let slots = self.ledger.kept(hold, self.unwritten());
        let bytes = ByteSize(u64::from(slots) * self.ledger.geometry.slot_bytes);
        let outcome = Outcome::Held { id: hold.id, slots, bytes, expired_before: None };
        let (number, (moving, open)) = (hold.id, self.on_the_way(&hold.sequences, open));
        self.want_flush(open.is_some());
        self.waiting.push(Waiting::new(id, outcome, moving, open));
        self.journal.push(Item::Hold(number), Some(id));
        true
    }

    /// Whether such a hold can be given now, whatever it takes.
    fn may_be_given(&self, request: &HoldRequest, now: Timestamp) -> Result<(), Refusal> {
        if request.reason.is_empty() || request.reason.len() > MAX_REASON || request.owner.len() > MAX_REASON
        {
            return Err(Refusal::Wrong(format!(
                "a hold needs a reason, and reason and owner have at most {MAX_REASON} bytes"
            )));
        }
        if self.jobs.purging {
            return Err(Refusal::Busy("purge"));
        }
        if self.ledger.holds.len() + self.releasing.len() >= MAX_HOLDS {
            return Err(Refusal::Wrong(format!("the ring has {MAX_HOLDS} holds already: release one")));
        }
        if request.until <= now {
            return Err(Refusal::Wrong("the hold would have ended already".to_owned()));
        }
        if request.condition_hold.is_some() && request.sequences.is_none() {
            return Err(Refusal::Wrong("a hold by condition names what was found, be it nothing".to_owned()));
        }
        Ok(())
    }

    fn hold(
        &mut self,
        id: OrderTag,
        mut request: HoldRequest,
        open: Option<OpenBrief>,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        self.may_be_given(&request, now)?;
        let condition_hold =
            request.condition_hold.take().map(|condition_hold| self.checked(condition_hold)).transpose()?;
        // An order that had to wait may tell of a slot that has been sealed since: that one is among the others.
        let is_open = |sequence| self.open.is_some_and(|o| o.sequence == sequence);
        let open = open.filter(|o| is_open(o.sequence));
        let wanted = Takes::new(&request, self.contents(open.as_ref()));
        let mut sequences = Vec::new();
        let mut fresh = 0u32;
        let mut oldest: Option<Timestamp> = None;
        for (_, slot) in self.ledger.table.iter().filter(|(_, s)| s.state == State::Data) {
            if slot.bounds.first <= slot.bounds.last {
                oldest = Some(oldest.map_or(slot.bounds.first, |o| o.min(slot.bounds.first)));
            }
            if wanted.has(slot.sequence, slot.age, &slot.bounds) {
                sequences.push(slot.sequence);
                fresh += u32::from(slot.held == 0);
            }
        }
        let mut wait = Vec::new();
        let moving = self.unplaced.iter().chain(self.flying.iter().map(|f| &f.sealed));
        for sealed in moving {
            oldest = Some(oldest.map_or(sealed.bounds.first, |o| o.min(sealed.bounds.first)));
            if wanted.has(sealed.sequence, sealed.age, &sealed.bounds) {
                wait.push(sealed.sequence);
            }
        }
        let begun = open.map(|o| o.bounds).filter(|bounds| bounds.first <= bounds.last);
        oldest = oldest.into_iter().chain(begun.map(|bounds| bounds.first)).min();
        let open = open.filter(|o| wanted.has(o.sequence, Age(o.sequence.0), &o.bounds));
        let unwritten = wait.iter().copied().chain(open.map(|o| o.sequence));
        fresh += unwritten.clone().filter(|s| self.unwritten_refcounts.held(*s) == 0).count() as u32;
        sequences.extend(unwritten);
        if sequences.is_empty() && condition_hold.is_none() {
            return Err(Refusal::Nothing { oldest });
        }
        let slots = sequences.len() as u32;
        let quota = condition_hold.as_ref().map_or(0, |condition_hold| condition_hold.quota);
        if quota > 0 && slots > quota {
            return Err(Refusal::Quota { quota, wanted: slots });
        }
        // What it takes, and what it is promised beside that.
        let (wanted, free) = (fresh.saturating_add(quota.saturating_sub(slots)), self.holdable());
        if wanted > free {
            return Err(Refusal::NoRoom { wanted, free });
        }
        let record = HoldRecord {
            id: self.ledger.next_hold,
            created: now,
            until: request.until,
            from: request.range.from,
            to: request.range.to,
            first_ordinal: request.range.ordinals.map_or_else(Default::default, |o| o.0),
            end_ordinal: request.range.ordinals.map_or_else(Default::default, |o| o.1),
            by_time: request.range.is_timed(),
            by_ordinal: request.range.ordinals.is_some(),
            by_event: request.range.by_event,
            streams: request.streams,
            sequences: runs(sequences.into_iter().map(|sequence| (sequence, sequence)))?,
            reason: request.reason,
            owner: request.owner,
            condition_hold,
            order: request.order.filter(|order| *order != OrderId::default()),
        };
        let hold = record.id;
        let act = ActRecord { slots, ..act_on(&record, Act::Hold, now) };
        self.ledger.holds.push(record);
        let (bytes, budget) = (self.ledger.lasting_bytes(), self.ledger.geometry.control_budget());
        if bytes > budget {
            self.ledger.holds.pop();
            return Err(Refusal::JournalFull { bytes, budget });
        }
        self.ledger.next_hold = HoldId(hold.0 + 1);
        self.count_new_hold(wait.iter().copied().chain(open.map(|o| o.sequence)));
        // What came before the oldest data is gone, if the ring has ever given a slot away.
        let never_given = |slot: crate::table::Slot| slot.state == State::Free && !slot.purged;
        let lost_some = !self.ledger.table.iter().any(|(_, slot)| never_given(slot));
        let timed = request.range.from != Timestamp::MIN && !request.range.by_event;
        let expired_before = oldest.filter(|o| lost_some && timed && request.range.from < *o);
        let bytes = ByteSize(u64::from(slots) * self.ledger.geometry.slot_bytes);
        let outcome = Outcome::Held { id: hold, slots, bytes, expired_before };
        self.waiting.push(Waiting::new(id, outcome, wait, open.map(|o| (o.sequence, o.end))));
        self.want_flush(open.is_some());
        self.put_on_record(act);
        self.journal.push(Item::Hold(hold), Some(id));
        Ok(())
    }

    /// Records what is done, in front of the record that does it.
    fn put_on_record(&mut self, act: ActRecord) {
        let number = self.ledger.note_act(act);
        self.journal.push(Item::Act(number), None);
    }

    /// Everything that is there, by age: on the medium, on its way, and open.
    fn contents<'a>(&'a self, open: Option<&'a OpenBrief>) -> impl Iterator<Item = (Age, Bounds)> + use<'a> {
        let data = self.ledger.table.iter().filter(|(_, slot)| slot.state == State::Data);
        let moving = self.unplaced.iter().chain(self.flying.iter().map(|f| &f.sealed));
        data.map(|(_, slot)| (slot.age, slot.bounds))
            .chain(moving.map(|sealed| (sealed.age, sealed.bounds)))
            .chain(open.map(|open| (Age(open.sequence.0), open.bounds)))
    }

    fn release(&mut self, id: OrderTag, request: ReleaseRequest, now: Timestamp) -> Result<(), Refusal> {
        let ReleaseRequest { hold, reason, owner, order } = request;
        let order = order.filter(|order| *order != OrderId::default());
        if let Some(known) = order.and_then(|order| self.ledger.release_of(order)) {
            // Recorded once more, so that the answer waits until the first record is durable.
            self.journal.push(Item::Release(known.hold, known.at, order), Some(id));
            self.waiting.push(Waiting::new(id, Outcome::Released { slots: 0 }, Vec::new(), None));
            return Ok(());
        }
        check_texts(&reason, &owner)?;
        let Some(at) = self.ledger.holds.iter().position(|h| h.id == hold) else {
            return Err(Refusal::NoSuchHold(hold));
        };
        let released = self.ledger.holds.remove(at);
        self.put_on_record(ActRecord { reason, owner, ..act_on(&released, Act::Release, now) });
        self.releasing.push(released);
        if let Some(order) = order {
            self.ledger.note_release(hold, now, order);
            self.ledger.make_room();
        }
        self.journal.push(Item::Release(hold, now, order), Some(id));
        self.waiting.push(Waiting::new(id, Outcome::Released { slots: 0 }, Vec::new(), None));
        Ok(())
    }

    /// Ends holds whose time has come.
    pub(crate) fn expire_holds(&mut self, now: Timestamp) {
        while let Some(at) = self.ledger.holds.iter().position(|h| h.until <= now) {
            let hold = self.ledger.holds.remove(at);
            let nobody = ActRecord { owner: String::new(), ..act_on(&hold, Act::End, now) };
            self.put_on_record(nobody);
            self.journal.push(Item::Release(hold.id, now, None), None);
            self.releasing.push(hold);
        }
    }

    fn export(&mut self, id: OrderTag, request: ExportRequest, now: Timestamp) -> Result<(), Refusal> {
        let ExportRequest { streams, range, reason, owner } = request;
        check_texts(&reason, &owner)?;
        let number = self.ledger.note_act(ActRecord {
            act: Act::Export,
            at: now,
            stream: only(&streams),
            from: range.from,
            to: range.to,
            first_ordinal: range.ordinals.map_or_else(Default::default, |o| o.0),
            end_ordinal: range.ordinals.map_or_else(Default::default, |o| o.1),
            by_time: range.is_timed(),
            by_ordinal: range.ordinals.is_some(),
            by_event: range.by_event,
            reason,
            owner,
            ..ActRecord::default()
        });
        self.waiting.push(Waiting::new(id, Outcome::Noted, Vec::new(), None));
        self.journal.push(Item::Act(number), Some(id));
        Ok(())
    }

    /// What a lane of so many bytes would make of the ring; or why it would not do.
    pub(crate) fn grown(&self, bytes: ByteSize) -> Result<Geometry, Refusal> {
        if self.growing.is_some() {
            return Err(Refusal::Busy("growth"));
        }
        if self.superblock.terms.is_some() {
            return Err(Refusal::Geometry(format!(
                "the guarantee of this ring rests on what was measured of its {}, and on nothing beyond: make it anew, with a profile of all that it is to use",
                ByteSize(self.ledger.geometry.lane_bytes)
            )));
        }
        let grown = self.ledger.geometry.grown(bytes.0).map_err(|e| Refusal::Geometry(e.to_string()))?;
        if grown.slots <= self.ledger.geometry.slots {
            return Err(Refusal::Geometry(format!(
                "{bytes} make no further slot: the ring has {} of {}",
                self.ledger.geometry.slots,
                ByteSize(self.ledger.geometry.slot_bytes)
            )));
        }
        Ok(grown)
    }

    fn grow(&mut self, id: OrderTag, bytes: ByteSize) -> Result<(), Refusal> {
        let grown = self.grown(bytes)?;
        self.ledger.geometry = grown.clone();
        self.growing = Some(Growing { order: Some(id), geometry: grown, retry: false });
        self.journal.push(Item::Geometry, Some(id));
        Ok(())
    }

    pub(crate) fn superblock_written(
        &mut self,
        result: Result<(), Fault>,
        now: Timestamp,
        out: &mut Vec<Action>,
    ) {
        let Some(growing) = &mut self.growing else {
            return;
        };
        match result {
            Ok(()) => {
                let order = growing.order;
                self.growing = None;
                let grown = Outcome::Grown { slots: self.ledger.table.len() };
                out.extend(order.map(|order| Action::Reply(order, grown)));
            }
            // The journal has the geometry; the superblock follows when the device answers.
            Err(fault) => {
                growing.retry = true;
                if fault != Fault::Io {
                    self.absent(fault, now);
                }
            }
        }
    }

    /// An entry's commit is durable.
    pub(crate) fn recorded(&mut self, entry: &Entry, out: &mut Vec<Action>) {
        self.note_recorded(entry);
        match &entry.item {
            Item::Release(hold, ..) => {
                let freed = self.count_ended_hold(*hold);
                if let Some(waiting) = self.waiting.iter_mut().find(|w| Some(w.order) == entry.order) {
                    waiting.outcome = Outcome::Released { slots: freed };
                }
            }
            Item::Replaced { originals, .. } => self.replaced(originals),
            Item::Geometry => {
                if let Some(growing) = &self.growing {
                    self.ledger.table.grow(growing.geometry.slots);
                    out.push(Action::Superblock(growing.geometry.clone()));
                }
            }
            _ => {}
        }
        if let Some(waiting) = self.waiting.iter_mut().find(|w| Some(w.order) == entry.order) {
            waiting.recorded = true;
        }
    }

    /// Answers the orders that stand.
    pub(crate) fn settle(&mut self, out: &mut Vec<Action>) {
        let mut at = 0;
        while at < self.waiting.len() {
            if self.stands(&self.waiting[at]) {
                let waiting = self.waiting.remove(at);
                out.push(Action::Reply(waiting.order, waiting.outcome));
            } else {
                at += 1;
            }
        }
    }

    fn stands(&self, waiting: &Waiting) -> bool {
        let moving = |sequence: Sequence| {
            self.unplaced.iter().any(|s| s.sequence == sequence)
                || self.flying.iter().any(|f| f.sealed.sequence == sequence)
        };
        let open_durable = waiting.open.is_none_or(|(sequence, end)| match &self.open {
            Some(open) if open.sequence == sequence => {
                self.journal.open.payload >= end.payload && self.journal.open.rows >= end.rows
            }
            _ => !moving(sequence),
        });
        waiting.recorded && open_durable && !waiting.sequences.iter().any(|s| moving(*s))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::job_step::PlacedCopy;
    use crate::snapshot::Runway;
    use crate::table::{Slot, Table};
    use crate::{Config, NewRing, Range, create, recover};
    use holdfast_base::{MAX_STREAMS, RingId, SlotNo, StreamId};
    use holdfast_format::{CommitWriter, Key, MAX_COMMIT};
    use holdfast_media::{Disk as _, MemoryDisk};
    use std::time::Duration;

    const SLOT: u64 = 8 << 20;
    pub(crate) const NOW: Timestamp = Timestamp(10);

    /// A ring of slots of 8 MiB, every second of which, `held` of them, has something of stream 1, the others of stream 2.
    pub(crate) fn alternating(held: usize) -> Ring {
        let mut disk = MemoryDisk::new((1 << 20) + 24 * SLOT);
        let geometry = Geometry::for_lane(disk.info().bytes, SLOT, Vec::new()).unwrap();
        let new = NewRing::plain(RingId([1; 16]), Key([2; 32]), "r", geometry);
        create(&mut disk, new, NOW).unwrap();
        let mut recovered = recover(&mut disk).unwrap();
        let slots = 2 * held as u32 + 1000;
        let geometry = Geometry::for_lane((1 << 20) + u64::from(slots + 4) * SLOT, SLOT, Vec::new()).unwrap();
        (recovered.superblock.geometry, recovered.ledger.geometry) = (geometry.clone(), geometry);
        recovered.ledger.table = Table::new(slots);
        recovered.ledger.next = Sequence(2 * held as u64 + 1);
        for number in 0..2 * held as u32 {
            let sequence = Sequence(u64::from(number) + 1);
            let mut bounds = Bounds::NONE;
            bounds.add(StreamId(1 + number % 2), NOW, NOW, None);
            *recovered.ledger.table.get_mut(SlotNo(number)) =
                Slot { sequence, age: Age(sequence.0), bounds, state: State::Data, ..Slot::FREE };
        }
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 1 };
        Ring::start(recovered, config, NOW, NOW)
    }

    /// The largest order for all of stream 1.
    fn order(ring: &mut Ring) -> Vec<Action> {
        let request = HoldRequest {
            streams: vec![StreamId(1); MAX_STREAMS],
            range: Range::ALL,
            sequences: None,
            reason: "r".repeat(MAX_REASON),
            owner: "o".repeat(MAX_REASON),
            until: Timestamp::MAX,
            condition_hold: None,
            order: None,
        };
        let mut out = Vec::new();
        ring.order(OrderTag(1), Order::Hold(request), None, NOW, &mut out);
        out
    }

    /// Promises 4 and 8.
    #[test]
    fn a_hold_of_as_many_runs_as_there_may_be_fits_into_a_commit_and_takes_no_more() {
        let mut ring = alternating(MAX_HOLD_RUNS);
        assert_eq!(order(&mut ring), Vec::new(), "it is answered when it is durable");
        let hold = ring.ledger.holds[0].id;
        let mut bytes = vec![0; MAX_COMMIT];
        let runway = Runway { naming: Sequence(1), slots: &[], until: Sequence(2), tells: true };
        assert!(ring.ledger.emit(&mut Item::Hold(hold), &runway, &mut CommitWriter::new(&mut bytes)));
        let (sequence, preambles) = (Sequence(1 << 20), Vec::new());
        let of = vec![Sequence(1), Sequence(2)];
        let copy =
            [PlacedCopy { slot: SlotNo(0), sequence, age: Age(1), of, bounds: Bounds::NONE, preambles }];
        let too_many =
            |original, copies: &[PlacedCopy]| ring.too_many_runs(&[(SlotNo(0), Sequence(original))], copies);
        assert_eq!(too_many(1, &copy), Some(hold), "of its slots none may be copied");
        assert_eq!(too_many(2, &copy), None, "others may");
        assert_eq!(too_many(1, &[]), None, "or go as a whole");
    }

    /// Promise 8.
    #[test]
    fn a_hold_of_more_runs_is_refused_and_nothing_is_held() {
        let mut ring = alternating(MAX_HOLD_RUNS + 1);
        let (runs, most) = (MAX_HOLD_RUNS as u64 + 1, MAX_HOLD_RUNS as u64);
        let refused = Outcome::Refused(Refusal::Scattered { runs, most });
        assert_eq!(order(&mut ring), [Action::Reply(OrderTag(1), refused)]);
        assert!(ring.ledger.holds.is_empty() && ring.waiting.is_empty());
        assert_eq!(ring.ledger.table.counts().held, 0);
    }
}
