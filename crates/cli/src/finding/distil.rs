//! Which slots of a hold are to be distilled now, and what is kept of them. What other holds keep, too, is distilled with it,
//! where all of them want just what they have found: they share the copies.

use super::evaluator::Wanted;
use super::{roll, wanted};
use crate::complaint;
use crate::failure::Result;
use crate::orders;
use crate::sql::Sql;
use holdfast_base::{Age, HoldId, Ordinal, Sequence, Timestamp};
use holdfast_query::find::{Among, Keep, Roll, Search, Span, last_of_slot, merged};
use holdfast_ring::{HoldStatus, Original, SlotLook, SlotStatus, StreamStatus};
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

/// Originals that are distilled together at most.
const MOST: usize = 256;
/// Originals that are waited for while more are to come: every copy that is not full yet is written again with them.
const ENOUGH: usize = 8;
/// Runs of ordinals of one original in an order: what lies between the closest is kept, too, if there are more.
const MOST_RUNS: usize = 4096;

/// All of a stream.
const ALL: (Ordinal, Ordinal) = (Ordinal(0), Ordinal(u64::MAX));

/// Slots that follow each other and may be distilled together.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) slots: Vec<SlotStatus>,
    /// Nothing more can come to it: what comes next is kept by a hold that wants it whole.
    closed: bool,
}

impl Group {
    /// Whether it is time to distil it; at the latest `now`.
    pub(super) fn is_due(&self, now: bool) -> bool {
        let originals = self.slots.iter().filter(|slot| !is_copy(slot)).count();
        originals >= if now || self.closed { 1 } else { ENOUGH }
    }

    /// What it is known by.
    pub(super) fn sequences(&self) -> Vec<Sequence> {
        self.slots.iter().map(|slot| slot.sequence).collect()
    }
}

/// What may be distilled, where this hold keeps some of it: kept by holds alone that are distilled, and there only because of them,
/// since all that no hold keeps is younger.
pub(super) fn groups(hold: HoldId, holds: &[HoldStatus], slots: &[SlotStatus], open: Age) -> Vec<Group> {
    // Where a slot is left that was never given nothing has expired yet.
    if open.0 <= slots.len() as u64 {
        return Vec::new();
    }
    let mine = holds.iter().find(|other| other.id == hold);
    let is_mine = |slot: &SlotStatus| mine.is_some_and(|hold| keeps(hold, slot.sequence));
    let mut all: Vec<SlotStatus> = slots.iter().filter(|slot| slot.has_data()).copied().collect();
    all.sort_unstable_by_key(|slot| (slot.age, slot.sequence));
    let expiring = all.iter().find(|slot| slot.look != SlotLook::Held).map_or(open, |slot| slot.age);
    let (mut groups, mut group) = (Vec::new(), Group::default());
    for slot in all.into_iter().take_while(|slot| slot.age < expiring) {
        let may_go = may_be_distilled(holds, slot.sequence);
        if !may_go || group.slots.len() == MOST {
            groups.push(Group { closed: true, ..std::mem::take(&mut group) });
        }
        group.slots.extend(may_go.then_some(slot));
    }
    groups.push(group);
    for Group { slots, .. } in &mut groups {
        // Of copies that follow each other only the last may have room.
        let copies = slots.iter().take_while(|slot| is_copy(slot)).count();
        slots.drain(..copies.saturating_sub(1));
    }
    groups.retain(|group| group.slots.iter().any(is_mine));
    groups
}

fn keeps(hold: &HoldStatus, sequence: Sequence) -> bool {
    within(&hold.sequences, sequence)
}

/// Whether it keeps some of a group.
pub(super) fn keeps_of(hold: &HoldStatus, group: &[SlotStatus]) -> bool {
    group.iter().any(|slot| keeps(hold, slot.sequence))
}

/// Those that keep a slot.
fn holders(holds: &[HoldStatus], sequence: Sequence) -> impl Iterator<Item = &HoldStatus> {
    holds.iter().filter(move |hold| keeps(hold, sequence))
}

/// Whether all that keep a slot want just what they have found of it.
fn may_be_distilled(holds: &[HoldStatus], sequence: Sequence) -> bool {
    let whole = |hold: &HoldStatus| !hold.finding.as_ref().is_some_and(|finding| finding.distil);
    holders(holds, sequence).next().is_some() && !holders(holds, sequence).any(whole)
}

/// Those of a group behind which comes what is not distilled with them, but is kept, or has not been looked at: what begins in them may
/// end there. `slots` are all there are, and before `looked` all has been looked at.
pub(super) fn going_on(group: &[SlotStatus], slots: &[SlotStatus], looked: Sequence) -> HashSet<Sequence> {
    let order = |slot: &SlotStatus| (slot.age, slot.sequence);
    let behind = |slot: &SlotStatus| {
        let later = slots.iter().filter(|other| other.has_data() && order(other) > order(slot));
        later.min_by_key(|other| order(other))
    };
    let may_end = |other: &SlotStatus| {
        let is_kept = other.look == SlotLook::Held || other.sequence >= looked;
        is_kept && group.iter().all(|slot| slot.sequence != other.sequence)
    };
    group.iter().filter(|slot| behind(slot).is_none_or(may_end)).map(|slot| slot.sequence).collect()
}

/// Whether a sequence is in one of these runs, which come in order.
pub(super) fn within(runs: &[(Sequence, Sequence)], sequence: Sequence) -> bool {
    let at = runs.partition_point(|(_, last)| *last < sequence);
    runs.get(at).is_some_and(|(first, _)| *first <= sequence)
}

/// Whether a slot is a copy already.
fn is_copy(slot: &SlotStatus) -> bool {
    slot.age.0 != slot.sequence.0
}

/// Whether a hold keeps slots that may still be distilled: no copies, not `dense`, and kept by no hold that wants them whole.
pub(super) fn is_left(
    hold: HoldId,
    holds: &[HoldStatus],
    slots: &[SlotStatus],
    dense: &HashSet<Sequence>,
) -> bool {
    let whole = |slot: &&SlotStatus| slot.has_data() && !is_copy(slot) && !dense.contains(&slot.sequence);
    let is_mine = |slot: &SlotStatus| holders(holds, slot.sequence).any(|holder| holder.id == hold);
    slots.iter().filter(whole).any(|slot| is_mine(slot) && may_be_distilled(holds, slot.sequence))
}

/// What is kept of a group of which all has been looked at, by all that keep some of it, and how many bytes that is at least;
/// `None` where nobody can tell. `known` are the streams there are.
pub(super) fn keep(
    sql: &Sql,
    known: &[StreamStatus],
    holds: &[HoldStatus],
    (group, going_on): (&[SlotStatus], &HashSet<Sequence>),
) -> Result<Option<(Vec<Original>, u64)>> {
    let original = |slot: &SlotStatus| Original {
        sequence: slot.sequence,
        holds: holders(holds, slot.sequence).map(|hold| hold.id).collect(),
        keep: Vec::new(),
    };
    let (mut originals, mut least): (Vec<Original>, u64) = (group.iter().map(original).collect(), 0);
    for hold in holds.iter().filter(|hold| keeps_of(hold, group)) {
        let Some(wish) = Wish::of(sql, known, hold) else { return Ok(None) };
        // Some of it others may want, too.
        least = least.max(wish.add_to(&mut originals, sql, group, going_on)?);
    }
    Ok(Some((originals, least)))
}

/// What a hold wants.
struct Wish<'h> {
    hold: &'h HoldStatus,
    wanted: Wanted,
    roll: Roll,
    /// In which time.
    range: Span,
    /// The streams that it holds, and whether they are searched.
    streams: Vec<(&'h StreamStatus, bool)>,
}

impl<'h> Wish<'h> {
    /// `None` where no stream can be asked for it.
    fn of(sql: &Sql, known: &'h [StreamStatus], hold: &'h HoldStatus) -> Option<Self> {
        let finding = hold.finding.as_ref()?;
        let wanted = wanted(finding);
        let can_be_searched = |stream: &StreamStatus| match &wanted {
            Wanted::Sample(_) => false,
            Wanted::Found(search) => {
                let check = async {
                    search.check(&sql.engine.context, &stream.name).await?;
                    search.check_when(&sql.engine.context, &stream.name).await
                };
                sql.runtime.block_on(check).is_ok()
            }
        };
        let is_held = |stream: &&StreamStatus| hold.streams.is_empty() || hold.streams.contains(&stream.id);
        let streams: Vec<_> =
            known.iter().filter(is_held).map(|stream| (stream, can_be_searched(stream))).collect();
        let can_be = matches!(wanted, Wanted::Sample(_)) || streams.iter().any(|(_, searched)| *searched);
        let range = (hold.range.from, hold.range.to);
        can_be.then_some(Self { hold, wanted, roll: roll(finding), range, streams })
    }

    /// Adds what it wants of a group's slots to what is kept of them; how many bytes that is about.
    fn add_to(
        &self,
        originals: &mut [Original],
        sql: &Sql,
        group: &[SlotStatus],
        going_on: &HashSet<Sequence>,
    ) -> Result<u64> {
        let own = || group.iter().filter(|slot| keeps(self.hold, slot.sequence));
        let bounds = own().filter_map(|slot| slot.first.zip(slot.last));
        let times =
            bounds.fold((Timestamp::MAX, Timestamp::MIN), |all, one| (all.0.min(one.0), all.1.max(one.1)));
        let sequences = own().map(|slot| slot.sequence);
        let slots = (sequences.clone().min().unwrap_or_default(), sequences.max().unwrap_or_default());
        // What was found itself, or all that is around it.
        let condition = match &self.wanted {
            Wanted::Found(search) if self.roll.is_none() => Some(search.condition.as_str()),
            _ => None,
        };
        let has_when = matches!(&self.wanted, Wanted::Found(search) if search.when.is_some());
        let needs_spans = condition.is_none() || has_when;
        let (times, spans) = if needs_spans {
            (times, self.spans(sql, times)?)
        } else {
            (common(times, self.range), Vec::new())
        };
        let keep = Keep { slots, times, condition, spans: needs_spans.then_some(&spans) };
        let mut bytes = 0;
        for (stream, searched) in &self.streams {
            let (found, size) = if condition.is_some() && !searched {
                (Vec::new(), 0)
            } else {
                let elements = keep.elements(&sql.engine.context, &stream.name);
                sql.runtime
                    .block_on(elements)
                    .map_err(|error| complaint::failure(&error, condition.unwrap_or(""), &[]))?
            };
            bytes += size;
            let mut by_slot: BTreeMap<Sequence, Vec<Ordinal>> = BTreeMap::new();
            for (slot, ordinal) in found {
                by_slot.entry(slot).or_default().push(ordinal);
            }
            // Of an element that ends in a later slot, fragments may be in this one: the next that is kept behind it.
            let mut next: Option<Ordinal> = None;
            for (slot, original) in group.iter().zip(originals.iter_mut()).rev() {
                let found = by_slot.remove(&slot.sequence).filter(|_| keeps(self.hold, slot.sequence));
                let mut own = found.unwrap_or_default();
                let first = own.first().copied().or(next);
                own.extend(next);
                next = first;
                let mut runs = if is_copy(slot) { vec![ALL] } else { runs(&own) };
                if !is_copy(slot) && going_on.contains(&slot.sequence) {
                    // What is behind the last that ends here is all of one.
                    let last = last_of_slot(&sql.engine.context, &stream.name, slot.sequence);
                    let last =
                        sql.runtime.block_on(last).map_err(|error| complaint::failure(&error, "", &[]))?;
                    runs.push(last.map_or(ALL, |last| (Ordinal(last.0.saturating_add(1)), ALL.1)));
                }
                // A stream that is named keeps its gaps; no element has that number.
                let none = runs.is_empty().then_some((Ordinal(u64::MAX - 1), Ordinal(u64::MAX)));
                original
                    .keep
                    .extend(runs.into_iter().chain(none).map(|(first, end)| (stream.id, first, end)));
            }
        }
        Ok(bytes)
    }

    /// The stretches of time that are kept of slots with these times.
    fn spans(&self, sql: &Sql, times: Span) -> Result<Vec<Span>> {
        let search: &Search = match &self.wanted {
            Wanted::Sample(sample) => {
                let times = common(times, self.range);
                return Ok(merged(sample.spans(times).map(|span| common(span, times)).collect()));
            }
            Wanted::Found(search) => search,
        };
        let mut spans = Vec::new();
        // What was found before or after them reaches into them, as far as a window looks back.
        let back = search.when.as_ref().map_or(Duration::ZERO, |(_, within)| *within);
        let around = (times.0 - self.roll.after, times.1 + self.roll.before + back);
        let among = Among { times: common(around, self.range), ..Among::ALL };
        for (stream, _) in self.streams.iter().filter(|(_, searched)| *searched) {
            let found = search.spans(&sql.engine.context, &stream.name, &among, self.roll);
            spans.extend(
                sql.runtime
                    .block_on(found)
                    .map_err(|error| complaint::failure(&error, &search.condition, &[]))?,
            );
        }
        Ok(merged(spans))
    }
}

/// What two stretches of time have in common.
fn common(one: Span, other: Span) -> Span {
    (one.0.max(other.0), one.1.min(other.1))
}

/// Rising ordinals as runs of first and end.
fn runs(ordinals: &[Ordinal]) -> Vec<(Ordinal, Ordinal)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for Ordinal(ordinal) in ordinals {
        let end = ordinal.saturating_add(1);
        match runs.last_mut() {
            Some((_, last)) if ordinal <= last => *last = end.max(*last),
            _ => runs.push((*ordinal, end)),
        }
    }
    orders::fewer(runs, MOST_RUNS).into_iter().map(|(first, end)| (Ordinal(first), Ordinal(end))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::SlotNo;
    use holdfast_format::Finding;

    fn slot(age: u64, sequence: u64, look: SlotLook) -> SlotStatus {
        let (sequence, age) = (Sequence(sequence), Age(age));
        SlotStatus { slot: SlotNo(age.0 as u32), look, sequence, age, first: None, last: None }
    }

    /// One that is distilled.
    fn hold(id: u64, sequences: &[(u64, u64)]) -> HoldStatus {
        let finding = Some(Finding { distil: true, ..Finding::default() });
        HoldStatus { finding, ..plain(id, sequences) }
    }

    fn plain(id: u64, sequences: &[(u64, u64)]) -> HoldStatus {
        let sequences = sequences.iter().map(|(first, last)| (Sequence(*first), Sequence(*last))).collect();
        HoldStatus {
            id: HoldId(id),
            created: Timestamp(0),
            until: Timestamp::MAX,
            reason: String::new(),
            owner: String::new(),
            streams: Vec::new(),
            range: holdfast_ring::Range::ALL,
            slots: 0,
            sequences,
            finding: None,
        }
    }

    #[test]
    fn only_what_would_have_expired_and_nobody_wants_whole_is_distilled() {
        use SlotLook::{Held, Live};
        let mut holds = [hold(1, &[(1, 5), (7, 8), (11, 12), (30, 30)]), plain(2, &[(3, 3), (9, 9)])];
        let groups = |holds: &[HoldStatus; 2], slots: &[SlotStatus]| -> Vec<Vec<u64>> {
            let groups = groups(HoldId(1), holds, slots, Age(40));
            groups.iter().map(|group| group.slots.iter().map(|slot| slot.sequence.0).collect()).collect()
        };
        let mut slots: Vec<SlotStatus> = [12, 11, 9, 8, 7, 5, 3, 2, 1].map(|at| slot(at, at, Held)).to_vec();
        // 30 is a copy, of the age of 4.
        slots.push(slot(4, 30, Held));
        // Another hold keeps 3 and 9: what is on either side does not come together.
        assert_eq!(groups(&holds, &slots), [vec![1, 2], vec![30, 5, 7, 8], vec![11, 12]]);
        slots.push(slot(10, 10, Live));
        assert_eq!(groups(&holds, &slots), [vec![1, 2], vec![30, 5, 7, 8]]);
        // Where that one is distilled, too, what it keeps alone goes with the others.
        holds[1] = hold(2, &[(3, 3), (9, 9)]);
        assert_eq!(groups(&holds, &slots), [vec![1, 2, 3, 30, 5, 7, 8, 9]]);
        holds[0].sequences = vec![(Sequence(12), Sequence(12))];
        assert_eq!(groups(&holds, &slots), Vec::<Vec<u64>>::new(), "nothing of it is this hold's");
        slots.push(slot(0, 6, Live));
        assert_eq!(groups(&holds, &slots), Vec::<Vec<u64>>::new());
    }

    #[test]
    fn few_slots_are_distilled_where_no_more_can_come_to_them() {
        let held = |at: u64| slot(at, at, SlotLook::Held);
        let holds = [hold(1, &[(1, 2), (4, 12)]), plain(2, &[(3, 3)])];
        let due = |ages: std::ops::RangeInclusive<u64>, now| -> Vec<bool> {
            let slots: Vec<SlotStatus> = ages.map(held).collect();
            groups(HoldId(1), &holds, &slots, Age(40)).iter().map(|group| group.is_due(now)).collect()
        };
        // Behind 2 comes one that another hold keeps; behind 10 there may come more.
        assert_eq!(due(1..=10, false), [true, false]);
        assert_eq!(due(1..=11, false), [true, true]);
        assert_eq!(due(1..=10, true), [true, true]);
        assert_eq!(due(1..=2, false), [false]);
        // A copy alone is distilled already.
        assert!(!Group { slots: vec![slot(4, 30, SlotLook::Held)], closed: true }.is_due(true));
    }

    #[test]
    fn nothing_is_due_before_every_slot_was_given() {
        let slots: Vec<SlotStatus> = (1..=9).map(|at| slot(at, at, SlotLook::Held)).collect();
        let count = |open| groups(HoldId(1), &[hold(1, &[(1, 9)])], &slots, Age(open)).len();
        assert_eq!((count(9), count(10)), (0, 1));
    }

    #[test]
    fn ordinals_come_in_runs() {
        let runs = |ordinals: &[u64]| -> Vec<(u64, u64)> {
            let ordinals: Vec<Ordinal> = ordinals.iter().map(|at| Ordinal(*at)).collect();
            runs(&ordinals).iter().map(|(first, end)| (first.0, end.0)).collect()
        };
        assert_eq!(runs(&[]), []);
        assert_eq!(runs(&[1, 2, 3, 7, 9, 9, 10]), [(1, 4), (7, 8), (9, 11)]);
        assert_eq!(runs(&[u64::MAX]), [(u64::MAX, u64::MAX)]);
        let many: Vec<u64> = (0..2 * MOST_RUNS as u64).map(|at| at * 2).collect();
        assert_eq!(runs(&many).len(), MOST_RUNS);
    }
}
