//! Holds by condition in the simulation: given to the ring, ordered to grow, and compared with the model.

use super::World;
use super::orders::Asked;
use crate::model::ModelHold;
use holdfast_base::{HoldId, Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::ConditionHold;
use holdfast_ring::{ExtendRequest, HoldStatus, Order, Outcome, Range, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A hold by condition that was ordered to grow.
#[derive(Clone, Debug)]
pub(crate) struct Extending {
    hold: u64,
    /// What was named and is there: sequences and the rows they had.
    named: Vec<(u64, usize)>,
    /// What the hold kept before: the same.
    kept: Vec<(u64, usize)>,
    /// Whether the answer means that all of it would survive a crash.
    durable: bool,
    /// The watermarks it has then.
    watermarks: Vec<(StreamId, Ordinal)>,
    /// Whether it has grown.
    grown: bool,
    /// Slots that it keeps then, how many it did not keep before, how many of them nobody kept, and names of what is gone.
    slots: u32,
    added: u32,
    fresh: u32,
    missed: u32,
    /// Slots that holds could take, what is promised to them included, and what is promised: least and most.
    free: (u32, u32),
    promised: (u32, u32),
    /// Damaged slots: a name may be of one.
    damaged: u32,
}

impl World {
    pub(super) fn find(
        &mut self,
        stream: u8,
        back: u16,
        count: u16,
        quota: u8,
        lasts: Option<Duration>,
    ) -> Result<(), String> {
        self.look()?;
        let ((first, end), sequences) = self.with_ordinals(stream, back, count);
        let id = self.stream(stream);
        let condition_hold = ConditionHold {
            condition: format!("len > {}", first.0),
            before: u64::from(back),
            standing: quota > 0,
            when: (count > 9).then(|| ("count(*) > 5".to_owned(), 7)),
            quota: quota.into(),
            watermarks: if count > 0 { vec![(id, end)] } else { Vec::new() },
            ..ConditionHold::default()
        };
        let until = lasts.map_or(Timestamp::MAX, |lasts| self.now() + lasts);
        self.hold_by(vec![id], Range::ALL, Some(sequences), until, Some(condition_hold), true)
    }

    pub(super) fn extend(
        &mut self,
        which: u8,
        stream: u8,
        (back, count): (u16, u16),
        wait: bool,
        durable: bool,
    ) -> Result<(), String> {
        self.look()?;
        let growing = |(_, hold): &(&u64, &ModelHold)| hold.condition_hold.is_some() && !hold.releasing;
        let all: Vec<u64> = self.model.holds.iter().filter(growing).map(|(id, _)| *id).collect();
        if all.is_empty() {
            return Ok(());
        }
        let number = all[usize::from(which) % all.len()];
        let ((_, end), mut sequences) = self.with_ordinals(stream, back, count);
        if back.is_multiple_of(5) {
            // What lies between, too, and what has long expired.
            sequences.extend(sequences.first().zip(sequences.last()).map(|(first, last)| (first.0, last.1)));
            sequences.push((Sequence(1), Sequence(1 + u64::from(back % 3))));
        }
        let ranges: Vec<_> = sequences.iter().map(|(a, b)| (a.0, b.0)).collect();
        let watermarks = vec![(self.stream(stream), end)];
        let extending = Extending { durable, ..self.extending(number, &ranges, &watermarks)? };
        let order = self.next_order();
        self.asked.insert(order, Asked::Extend(extending));
        let hold = HoldId(number);
        self.give(order, Order::Extend(ExtendRequest { hold, sequences, watermarks, durable }))?;
        if let Some(Asked::Extend(extending)) = self.asked.get_mut(&order) {
            // Neither refused nor to be seen: it had all that already.
            extending.grown = true;
        }
        self.wait_for(order, wait)
    }

    /// What must come of an order to grow.
    fn extending(
        &self,
        number: u64,
        ranges: &[(u64, u64)],
        later: &[(StreamId, Ordinal)],
    ) -> Result<Extending, String> {
        let hold = self.model.holds.get(&number).ok_or("no such hold")?;
        let named = self.model.named(ranges);
        let added = || named.iter().map(|(sequence, _)| *sequence).filter(|sequence| !hold.keeps(*sequence));
        let known = hold.condition_hold.iter().flat_map(|condition_hold| &condition_hold.watermarks);
        let mut watermarks: BTreeMap<StreamId, Ordinal> = known.copied().collect();
        for (stream, ordinal) in later {
            let mark = watermarks.entry(*stream).or_insert(*ordinal);
            *mark = (*mark).max(*ordinal);
        }
        let run = self.run.as_ref().ok_or("no recorder runs")?;
        let newest = run.driver.ring().status("").sequence.0 - u64::from(run.open().is_none());
        let asked: BTreeSet<u64> = ranges.iter().flat_map(|(a, b)| *a..=(*b).min(newest)).collect();
        let added_count = added().count() as u32;
        Ok(Extending {
            hold: number,
            watermarks: watermarks.into_iter().collect(),
            grown: false,
            kept: self.model.named(&hold.ranges),
            durable: true,
            slots: self.model.kept_by(hold) + added_count,
            added: added_count,
            fresh: added().filter(|sequence| !self.model.is_kept(*sequence)).count() as u32,
            missed: (asked.len() - named.len()) as u32,
            free: self.unheld(),
            promised: self.model.promised(),
            damaged: self.model.damaged(),
            named,
        })
    }

    /// A hold that has grown must have grown by what an order named, and by nothing else.
    pub(super) fn meet_growth(&mut self, shown: &HoldStatus) -> Result<(), String> {
        let id = shown.id.0;
        let purge = self.purge_under_way();
        let Some(hold) = self.model.holds.get_mut(&id) else { return Ok(()) };
        let ranges: Vec<(u64, u64)> = shown.sequences.iter().map(|(a, b)| (a.0, b.0)).collect();
        if hold.ranges == ranges && hold.condition_hold == shown.condition_hold {
            return Ok(());
        }
        if purge.is_some_and(|order| self.model.meets_swap(order, shown)) {
            return Ok(());
        }
        let Some(hold) = self.model.holds.get_mut(&id) else { return Ok(()) };
        let mine = self.asked.iter_mut().find_map(|(order, asked)| match asked {
            Asked::Extend(extending) if extending.hold == id && !extending.grown => Some((*order, extending)),
            _ => None,
        });
        let Some((order, extending)) = mine else {
            return Err(format!("hold {id} has changed to {ranges:?}, and nobody asked for that"));
        };
        let wanted: BTreeSet<u64> = hold
            .ranges
            .iter()
            .flat_map(|(a, b)| *a..=*b)
            .chain(extending.named.iter().map(|(sequence, _)| *sequence))
            .collect();
        let found: BTreeSet<u64> = ranges.iter().flat_map(|(a, b)| *a..=*b).collect();
        let damaged = |s: &u64| self.model.slots.get(s).is_some_and(|slot| slot.damaged);
        let wrong = found.symmetric_difference(&wanted).find(|s| wanted.contains(*s) || !damaged(s));
        if let Some(wrong) = wrong {
            return Err(format!("hold {id} has grown to {ranges:?}, not to {wanted:?}: {wrong}"));
        }
        let condition_hold = hold.condition_hold.clone();
        let condition_hold = condition_hold.map(|condition_hold| ConditionHold {
            watermarks: extending.watermarks.clone(),
            ..condition_hold
        });
        if condition_hold != shown.condition_hold {
            return Err(format!("hold {id} looks for {:?}, not {condition_hold:?}", shown.condition_hold));
        }
        hold.grow(order, ranges, condition_hold);
        extending.grown = true;
        Ok(())
    }

    /// What came of an order to grow.
    pub(super) fn extended(
        &mut self,
        order: u64,
        extending: &Extending,
        outcome: &Outcome,
    ) -> Result<(), String> {
        let Extending { slots, added, fresh, missed, free, promised, damaged, .. } = *extending;
        let now = self.now();
        let Some(hold) = self.model.holds.get_mut(&extending.hold) else {
            // It has ended meanwhile.
            let ended =
                matches!(outcome, Outcome::Extended { .. } | Outcome::Refused(Refusal::NoSuchHold(_)));
            return if ended { Ok(()) } else { Err("the hold is no more".to_owned()) };
        };
        let quota = hold.condition_hold.as_ref().map_or(0, |condition_hold| condition_hold.quota);
        match outcome {
            Outcome::Extended { added: a, slots: s, left, missed: m } => {
                let same = *a == added && *s == slots && *m == missed;
                let may_differ = *a >= added && *s >= slots && *m <= missed && *a - added <= damaged;
                let right = same || (damaged > 0 && may_differ);
                if !right {
                    return Err(format!("it adds {added}, keeps {slots}, and {missed} are gone"));
                }
                if quota > 0 && (*left != quota.saturating_sub(*s) || *s > quota) {
                    return Err(format!("its quota is {quota}"));
                }
                let most = if quota > 0 { free.1 } else { free.1.saturating_sub(promised.0) };
                if fresh > most {
                    return Err(format!("it takes {fresh} slots, and {most} may be held"));
                }
                if extending.named.iter().any(|(sequence, _)| !hold.keeps(*sequence)) {
                    return Err(format!("it keeps {:?}", hold.ranges));
                }
                self.extended += u64::from(added > 0);
                if !extending.durable {
                    self.taken += u64::from(added > 0);
                    return Ok(());
                }
                // Those before it are in the journal by now, too.
                hold.before.retain(|before| before.order > order);
                let all = extending.named.iter().chain(&extending.kept).copied();
                let all: Vec<_> = all.filter(|(sequence, _)| hold.keeps(*sequence)).collect();
                hold.covered.extend(all.iter().map(|(sequence, _)| *sequence));
                for (sequence, rows) in all {
                    if let Some(slot) = self.model.slots.get_mut(&sequence) {
                        slot.floor = slot.floor.max(rows);
                    }
                }
                Ok(())
            }
            Outcome::Refused(_) if extending.grown => Err("it has grown all the same".to_owned()),
            Outcome::Refused(Refusal::Quota { .. }) if quota > 0 && slots + damaged > quota => {
                self.spent += 1;
                Ok(())
            }
            Outcome::Refused(Refusal::NoRoom { .. }) => {
                let least = if quota > 0 { free.0 } else { free.0.saturating_sub(promised.1) };
                let room = fresh + damaged <= least;
                if room { Err(format!("it takes {fresh}, and {least} may be held")) } else { Ok(()) }
            }
            Outcome::Refused(Refusal::JournalFull { .. }) => Ok(()),
            Outcome::Refused(Refusal::NoSuchHold(_)) if hold.until <= now => Ok(()),
            _ => Err("that is no answer to it".to_owned()),
        }
    }
}
