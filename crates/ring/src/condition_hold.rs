//! Holds by condition: their limits, their growth, and the slots that they are promised. An evaluator outside
//! the recorder interprets the condition and finds the hits.

use crate::event::OpenBrief;
use crate::ledger::Ledger;
use crate::orders::{Waiting, keeps, runs};
use crate::ranges::{count, joined, within};
use crate::replace::gets;
use crate::snapshot::Item;
use crate::state::Ring;
use crate::{ExtendRequest, OrderTag, Outcome, PlacedCopy, Refusal};
use holdfast_base::{HoldId, MAX_CONDITION, MAX_REASON, Ordinal, Sequence, SlotNo, StreamId};
use holdfast_format::{ConditionHold, Cursor, HoldRecord};
use std::collections::BTreeMap;
use std::time::Duration;

/// Slots that copies may take a hold beyond its quota which it shares with others: one record has no more of them.
const SHARED: u32 = 4;

/// The slots of a hold by condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotQuota {
    pub(crate) hold: HoldId,
    /// As many as it may keep; 0: none are promised.
    quota: u32,
    /// As many as it keeps.
    kept: u32,
}

/// Slots that are set aside for what is still to be found.
pub(crate) fn promised<'p>(promises: impl IntoIterator<Item = &'p SlotQuota>) -> u32 {
    let left = promises.into_iter().map(|promise| promise.quota.saturating_sub(promise.kept));
    left.fold(0, u32::saturating_add)
}

/// What is there of the slots that somebody names for a hold.
struct NamedSlots {
    there: u64,
    /// Those that the hold does not keep yet.
    added: Vec<Sequence>,
    /// How many of these no hold keeps.
    fresh: u32,
    /// Those that are not on the medium.
    unwritten: Vec<Sequence>,
}

/// Whether it makes sense as far as the ring can tell.
fn check(condition_hold: &ConditionHold) -> Result<(), Refusal> {
    let wrong = |what: &str| Err(Refusal::Wrong(what.to_owned()));
    let when = condition_hold.when.as_ref().map(|(when, within)| (when.len(), *within));
    if condition_hold.condition.len() > MAX_CONDITION || when.is_some_and(|(len, _)| len > MAX_CONDITION) {
        return Err(Refusal::Wrong(format!("a condition has at most {MAX_CONDITION} bytes")));
    }
    if condition_hold.condition.is_empty() == condition_hold.sample.is_none() {
        return wrong("a hold looks for a condition, or takes samples");
    }
    if condition_hold.sample.is_some_and(|(held, every)| held == 0 || every <= held) {
        return wrong("a sample is a part of a span of time, neither nothing nor all of it");
    }
    if when.is_some_and(|(len, within)| len == 0 || within == 0) {
        return wrong("a condition over a window needs both, a condition and a window");
    }
    if condition_hold.standing && condition_hold.quota == 0 {
        return wrong("a standing hold needs a quota: as many slots as it may keep");
    }
    Ok(())
}

/// What a hold is for, as it goes on record: its reason, and what it looks for behind that, cut where it is too long.
pub(crate) fn reason(hold: &HoldRecord) -> String {
    let Some(condition_hold) = &hold.condition_hold else { return hold.reason.clone() };
    let span = Duration::from_nanos;
    let mut what = match condition_hold.sample {
        Some((each, every)) => vec![format!("{:?} of every {:?}", span(each), span(every))],
        None => vec![format!("what `{}` finds", condition_hold.condition)],
    };
    let when = condition_hold.when.iter();
    what.extend(when.map(|(when, within)| format!("when `{when}` within {:?}", span(*within))));
    let around = [(condition_hold.before, "before"), (condition_hold.after, "after")].into_iter();
    what.extend(around.filter(|(len, _)| *len > 0).map(|(len, side)| format!("{:?} {side}", span(len))));
    let mut text = format!("{} ({})", hold.reason, what.join(", "));
    if text.len() > MAX_REASON {
        text.truncate(text.floor_char_boundary(MAX_REASON - CUT.len()));
        text.push_str(CUT);
    }
    text
}

/// Stands for the rest of a text.
const CUT: &str = "…";

impl Ledger {
    /// How many slots a hold keeps: those on the medium, and of `unwritten` those that it names.
    pub(crate) fn kept(&self, hold: &HoldRecord, unwritten: impl Iterator<Item = Sequence>) -> u32 {
        let unwritten = unwritten.filter(|sequence| keeps(hold, *sequence)).count();
        (self.table.among(&hold.sequences).len() + unwritten) as u32
    }

    /// The slots of a hold, if it is one by condition.
    pub(crate) fn promise(
        &self,
        hold: &HoldRecord,
        unwritten: impl Iterator<Item = Sequence>,
    ) -> Option<SlotQuota> {
        let quota = hold.condition_hold.as_ref()?.quota;
        Some(SlotQuota { hold: hold.id, quota, kept: self.kept(hold, unwritten) })
    }
}

impl Ring {
    /// Slots that are set aside for what holds by condition are still to find.
    pub(crate) fn promised(&self) -> u32 {
        promised(&self.promises)
    }

    /// Copies that a hold may still get beside others; `None` where it has no quota. It may be a few slots beyond that by them:
    /// otherwise two whose quotas are spent would keep each other from being distilled.
    pub(crate) fn left_of(&self, hold: HoldId) -> Option<u32> {
        let promise = self.promises.iter().find(|promise| promise.hold == hold && promise.quota > 0)?;
        Some((promise.quota + SHARED).saturating_sub(promise.kept))
    }

    /// What a new hold looks for, if that makes sense; its watermarks in order.
    pub(crate) fn checked(&self, condition_hold: ConditionHold) -> Result<ConditionHold, Refusal> {
        check(&condition_hold)?;
        let watermarks = self.watermarks(&[], &condition_hold.watermarks)?;
        Ok(ConditionHold { watermarks, ..condition_hold })
    }

    /// Watermarks with later ones put over them. None ever goes back: two evaluators of one hold do no harm.
    fn watermarks(
        &self,
        known: &[(StreamId, Ordinal)],
        later: &[(StreamId, Ordinal)],
    ) -> Result<Vec<(StreamId, Ordinal)>, Refusal> {
        let mut all: BTreeMap<StreamId, Ordinal> = known.iter().copied().collect();
        for (stream, ordinal) in later {
            if self.ledger.stream(*stream).is_none() {
                return Err(Refusal::Wrong(format!("the ring has no stream {stream} to evaluate")));
            }
            let mark = all.entry(*stream).or_default();
            *mark = (*mark).max(*ordinal);
        }
        Ok(all.into_iter().collect())
    }

    /// A slot that the journal alone has is on its way to the medium: holds keep one more.
    pub(crate) fn note_rebuilt(&mut self, sequence: Sequence) {
        for promise in &mut self.promises {
            let hold = self.ledger.hold(promise.hold);
            promise.kept += u32::from(hold.is_some_and(|hold| keeps(hold, sequence)));
        }
    }

    /// Copies have taken the place of slots, in holds that stand; others that kept one have lost it.
    pub(crate) fn note_replaced(&mut self, originals: &[(SlotNo, Sequence)], copies: &[PlacedCopy]) {
        for promise in &mut self.promises {
            let stands = self.ledger.hold(promise.hold);
            let hold = stands.or_else(|| self.releasing.iter().find(|hold| hold.id == promise.hold));
            let kept = |sequence| hold.is_some_and(|hold| keeps(hold, sequence));
            let gone = originals.iter().filter(|(_, sequence)| kept(*sequence)).count() as u32;
            let come =
                copies.iter().filter(|copy| stands.is_some_and(|hold| gets(hold, copy))).count() as u32;
            promise.kept = (promise.kept + come).saturating_sub(gone);
        }
    }

    /// What of these slots is on its way to the medium; the open one if it is among them, and how much of it there is.
    pub(crate) fn on_the_way(
        &self,
        ranges: &[(Sequence, Sequence)],
        open: Option<OpenBrief>,
    ) -> (Vec<Sequence>, Option<(Sequence, Cursor)>) {
        let is_open = |sequence| self.open.is_some_and(|open| open.sequence == sequence);
        let open = open.filter(|open| is_open(open.sequence) && within(ranges, open.sequence));
        let moving = self.unplaced.iter().chain(self.flying.iter().map(|flying| &flying.sealed));
        let moving = moving.map(|sealed| sealed.sequence).filter(|sequence| within(ranges, *sequence));
        (moving.collect(), open.map(|open| (open.sequence, open.end)))
    }

    /// What is there of the slots that somebody names for a hold.
    fn named(
        &self,
        hold: &HoldRecord,
        ranges: &[(Sequence, Sequence)],
        open: Option<OpenBrief>,
    ) -> NamedSlots {
        let (mut unwritten, open) = self.on_the_way(ranges, open);
        unwritten.extend(open.map(|(sequence, _)| sequence));
        let table = &self.ledger.table;
        let written = table.among(ranges).into_iter().map(|no| (table.get(no).sequence, table.get(no).held));
        let coming = unwritten.iter().map(|sequence| (*sequence, self.unwritten_refcounts.held(*sequence)));
        let (mut there, mut added, mut fresh) = (0, Vec::new(), 0);
        for (sequence, held) in written.chain(coming) {
            there += 1;
            if !keeps(hold, sequence) {
                added.push(sequence);
                fresh += u32::from(held == 0);
            }
        }
        NamedSlots { there, added, fresh, unwritten }
    }

    /// Makes a hold by condition keep what was found: what is there of it. What it takes comes out of its own promise. What there is to
    /// answer at once.
    pub(crate) fn extend(
        &mut self,
        id: OrderTag,
        request: ExtendRequest,
        open: Option<OpenBrief>,
    ) -> Result<Option<Outcome>, Refusal> {
        let number = request.hold;
        let found = self.ledger.holds.binary_search_by_key(&number, |hold| hold.id);
        let at = found.map_err(|_| Refusal::NoSuchHold(number))?;
        let hold = &self.ledger.holds[at];
        let (Some(condition_hold), Some(promise)) =
            (&hold.condition_hold, self.promises.iter().position(|promise| promise.hold == number))
        else {
            return Err(Refusal::Wrong(format!(
                "hold {number} looks for nothing: one by condition can grow"
            )));
        };
        if self.jobs.purging && !request.sequences.is_empty() {
            return Err(Refusal::Busy("purge"));
        }
        let ranges = joined(request.sequences);
        let named = self.named(hold, &ranges, open);
        let SlotQuota { quota, kept, .. } = self.promises[promise];
        let slots = kept + named.added.len() as u32;
        if quota > 0 && slots > quota && !named.added.is_empty() {
            return Err(Refusal::Quota { quota, wanted: slots });
        }
        // Bad slots, or more buffers than there were, may have taken from what is promised: then capture goes first.
        let free = if quota > 0 { self.unheld() } else { self.holdable() };
        if named.fresh > free {
            return Err(Refusal::NoRoom { wanted: named.fresh, free });
        }
        let watermarks = self.watermarks(&condition_hold.watermarks, &request.watermarks)?;
        let added = named.added.iter().map(|sequence| (*sequence, *sequence));
        let grown = HoldRecord {
            sequences: runs(hold.sequences.iter().copied().chain(added.clone()))?,
            condition_hold: Some(ConditionHold { watermarks, ..condition_hold.clone() }),
            ..hold.clone()
        };
        let before = self.ledger.lasting_bytes();
        let smaller = std::mem::replace(&mut self.ledger.holds[at], grown);
        let (bytes, budget) = (self.ledger.lasting_bytes(), self.ledger.geometry.control_budget());
        if bytes > budget && bytes > before {
            self.ledger.holds[at] = smaller;
            return Err(Refusal::JournalFull { bytes, budget });
        }
        self.ledger.make_room();
        self.promises[promise].kept = slots;
        self.ledger.table.count_hold(&added.collect::<Vec<_>>(), true);
        for sequence in named.unwritten.iter().filter(|sequence| named.added.contains(sequence)) {
            self.unwritten_refcounts.add(*sequence, 1);
        }
        // Of those that were ever given.
        let newest = Sequence(self.ledger.next.0.saturating_sub(1));
        let ever = ranges.iter().map(|(first, last)| ((*first).max(Sequence(1)), (*last).min(newest)));
        let missed = count(&joined(ever)).saturating_sub(named.there);
        let outcome = Outcome::Extended {
            added: named.added.len() as u32,
            slots,
            left: if quota > 0 { quota.saturating_sub(slots) } else { self.holdable() },
            missed: u32::try_from(missed).unwrap_or(u32::MAX),
        };
        if !request.durable {
            self.journal.push_lazily(Item::Hold(number));
            return Ok(Some(outcome));
        }
        let (moving, open) = self.on_the_way(&self.ledger.holds[at].sequences, open);
        self.want_flush(open.is_some());
        self.waiting.push(Waiting::new(id, outcome, moving, open));
        self.journal.push(Item::Hold(number), Some(id));
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Action;
    use crate::orders::tests::{NOW, alternating};
    use crate::snapshot::Runway;
    use crate::{HoldRequest, Order, Range};
    use holdfast_base::{Age, MAX_HOLD_RUNS, MAX_STREAMS, Timestamp};
    use holdfast_format::{CommitWriter, MAX_COMMIT, StreamRecord};

    /// Every second sequence, so many.
    fn apart(count: usize) -> Vec<(Sequence, Sequence)> {
        (0..count as u64).map(|number| (Sequence(2 * number + 1), Sequence(2 * number + 1))).collect()
    }

    /// A hold that looks for as much as there can be, and has found nothing.
    fn largest(ring: &mut Ring) -> HoldId {
        let streams = (0..MAX_STREAMS as u32).map(StreamId);
        ring.ledger.streams =
            streams.clone().map(|id| StreamRecord { id, ..StreamRecord::default() }).collect();
        let condition_hold = ConditionHold {
            condition: "c".repeat(MAX_CONDITION),
            when: Some(("w".repeat(MAX_CONDITION), 1)),
            watermarks: streams.clone().map(|stream| (stream, Ordinal(1))).collect(),
            ..ConditionHold::default()
        };
        let request = HoldRequest {
            streams: streams.collect(),
            range: Range::ALL,
            sequences: Some(Vec::new()),
            reason: "r".repeat(MAX_REASON),
            owner: "o".repeat(MAX_REASON),
            until: Timestamp::MAX,
            condition_hold: Some(condition_hold),
            order: None,
        };
        assert_eq!(give(ring, Order::Hold(request)), Vec::new(), "it is answered when it is durable");
        ring.ledger.holds.last().unwrap().id
    }

    fn give(ring: &mut Ring, order: Order) -> Vec<Action> {
        let mut out = Vec::new();
        ring.order(OrderTag(1), order, None, NOW, &mut out);
        out
    }

    fn extend(ring: &mut Ring, hold: HoldId, sequences: Vec<(Sequence, Sequence)>) -> Vec<Action> {
        give(ring, Order::Extend(ExtendRequest { hold, sequences, watermarks: Vec::new(), durable: true }))
    }

    fn refused(refusal: Refusal) -> Vec<Action> {
        vec![Action::Reply(OrderTag(1), Outcome::Refused(refusal))]
    }

    // Promises 4 and 8.
    #[test]
    fn the_largest_hold_by_condition_fits_into_a_commit_and_grows_no_more() {
        let mut ring = alternating(MAX_HOLD_RUNS + 1);
        let hold = largest(&mut ring);
        assert_eq!(extend(&mut ring, hold, apart(MAX_HOLD_RUNS)), Vec::new());
        let mut bytes = vec![0; MAX_COMMIT];
        let runway = Runway { naming: Sequence(1), slots: &[], until: Sequence(2), tells: true };
        assert!(ring.ledger.emit(&mut Item::Hold(hold), &runway, &mut CommitWriter::new(&mut bytes)));
        let before = (ring.ledger.holds.clone(), ring.waiting.len(), ring.ledger.table.counts());
        let (runs, most) = (MAX_HOLD_RUNS as u64 + 1, MAX_HOLD_RUNS as u64);
        let all = extend(&mut ring, hold, apart(MAX_HOLD_RUNS + 1));
        assert_eq!(all, refused(Refusal::Scattered { runs, most }));
        assert_eq!((ring.ledger.holds.clone(), ring.waiting.len(), ring.ledger.table.counts()), before);
        assert_eq!(ring.miscounts(), None);
        // What lies between joins what is there.
        assert_eq!(extend(&mut ring, hold, vec![(Sequence(1), Sequence(4))]), Vec::new());
        assert_eq!(ring.ledger.holds[0].sequences.len(), MAX_HOLD_RUNS - 2);
        assert_eq!(ring.ledger.table.counts().held, MAX_HOLD_RUNS as u32 + 2);
    }

    // What is held by whom and why is on record: also what was looked for.
    #[test]
    fn what_a_hold_looks_for_goes_on_record_as_far_as_there_is_room() {
        let hold = |reason: &str, condition_hold: Option<ConditionHold>| {
            super::reason(&HoldRecord { reason: reason.to_owned(), condition_hold, ..HoldRecord::default() })
        };
        let second = 1_000_000_000;
        assert_eq!(hold("why", None), "why");
        let condition = ConditionHold {
            condition: "size > 9".to_owned(),
            when: Some(("count(*) > 5".to_owned(), second)),
            before: 20_000_000,
            after: 5 * second,
            ..ConditionHold::default()
        };
        let said = "why (what `size > 9` finds, when `count(*) > 5` within 1s, 20ms before, 5s after)";
        assert_eq!(hold("why", Some(condition.clone())), said);
        let sample = ConditionHold { sample: Some((30 * second, 3600 * second)), ..ConditionHold::default() };
        assert_eq!(hold("usual", Some(sample)), "usual (30s of every 3600s)");
        let long = ConditionHold { condition: "é".repeat(MAX_CONDITION / 2), ..condition };
        let said = hold("why", Some(long));
        assert!(said.len() <= MAX_REASON && said.len() > MAX_REASON - 4 && said.ends_with("é…"), "{said}");
    }

    /// Of a hold of which there is room for two.
    const RUNS: usize = 60_000;

    // Promise 8.
    #[test]
    fn holds_grow_as_far_as_a_snapshot_has_room_and_one_that_may_not_is_as_it_was() {
        let mut ring = alternating(RUNS);
        let holds = [largest(&mut ring), largest(&mut ring), largest(&mut ring)];
        for hold in &holds[..2] {
            assert_eq!(extend(&mut ring, *hold, apart(RUNS)), Vec::new());
        }
        let before = (ring.ledger.holds.clone(), ring.waiting.len(), ring.ledger.table.counts());
        let out = extend(&mut ring, holds[2], apart(RUNS));
        let full = |action: &Action| matches!(action, Action::Reply(_, Outcome::Refused(Refusal::JournalFull { bytes, budget })) if bytes > budget);
        assert!(out.len() == 1 && full(&out[0]), "{out:?}");
        assert_eq!((ring.ledger.holds.clone(), ring.waiting.len(), ring.ledger.table.counts()), before);
        assert_eq!(ring.miscounts(), None);
        assert_eq!(extend(&mut ring, holds[2], apart(9)), Vec::new());
    }

    // What a job puts in the place of a slot may be less than it, or more.
    #[test]
    fn copies_count_as_what_they_stand_for_in_holds_that_stand() {
        let mut ring = alternating(9);
        let holds = [largest(&mut ring), largest(&mut ring)];
        for hold in holds {
            assert_eq!(extend(&mut ring, hold, apart(3)), Vec::new());
        }
        assert_eq!(give(&mut ring, Order::Release(holds[1].into())), Vec::new());
        let copy = |slot: u32| {
            let (sequence, bounds) = (Sequence(u64::from(100 + slot)), crate::Bounds::NONE);
            let of = vec![Sequence(3)];
            PlacedCopy { slot: SlotNo(slot), sequence, age: Age(1), of, bounds, preambles: Vec::new() }
        };
        for (original, copies, kept) in [(1, vec![], 2), (3, vec![copy(900), copy(901)], 3)] {
            let originals = [(SlotNo(original - 1), Sequence(u64::from(original)))];
            ring.replace(&originals, &copies);
            let promise = ring.promises.iter().find(|promise| promise.hold == holds[0]).unwrap();
            assert_eq!(promise.kept, kept);
            let miscounted = ring.miscounts().filter(|what| what.contains("SlotQuota"));
            assert_eq!(miscounted, None);
        }
    }

    // Whoever destroys says what holds keep meanwhile; that it would survive may be asked at any time.
    #[test]
    fn beside_a_purge_a_hold_does_not_grow_and_what_it_has_may_be_asked_for() {
        let mut ring = alternating(9);
        let hold = largest(&mut ring);
        ring.jobs.purging = true;
        assert_eq!(extend(&mut ring, hold, apart(1)), refused(Refusal::Busy("purge")));
        assert_eq!(extend(&mut ring, hold, Vec::new()), Vec::new(), "it is answered when it is durable");
    }

    // One that keeps little of what is distilled together may come to keep more slots, but not many more than it may.
    #[test]
    fn copies_take_a_hold_little_beyond_its_quota() {
        let mut ring = alternating(9);
        for kept in [3, 1] {
            let hold = largest(&mut ring);
            assert_eq!(extend(&mut ring, hold, apart(kept)), Vec::new());
        }
        let originals = [1u64, 3, 5].map(|sequence| (SlotNo(sequence as u32 - 1), Sequence(sequence)));
        let copy = |slot: u32, of: &[u64]| {
            let (sequence, bounds) = (Sequence(u64::from(100 + slot)), crate::Bounds::NONE);
            let of = of.iter().copied().map(Sequence).collect();
            PlacedCopy { slot: SlotNo(slot), sequence, age: Age(1), of, bounds, preambles: Vec::new() }
        };
        let two = [copy(900, &[1]), copy(901, &[1, 3, 5])];
        for (quota, kept, is_beyond) in
            [(9, 9, false), (9, 9 + SHARED - 1, false), (9, 9 + SHARED, true), (0, 99, false)]
        {
            for promise in &mut ring.promises {
                (promise.quota, promise.kept) = (quota, kept);
            }
            assert_eq!(ring.is_beyond_quota(&originals, &two), is_beyond, "{kept} of {quota}");
        }
        let one_for_one = [copy(900, &[1, 3]), copy(901, &[5])];
        for promise in &mut ring.promises {
            (promise.quota, promise.kept) = (9, 99);
        }
        assert!(!ring.is_beyond_quota(&originals, &one_for_one));
    }
}
