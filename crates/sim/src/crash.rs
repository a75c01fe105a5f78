//! Comparison of a restart after a crash with the model: nothing is missing but what was younger than
//! *durable after*, no hold is lost, and nothing is there that was not pushed.

use crate::model::{Model, ModelHold, Preambles, Stage, Swap};
use crate::observe::prefix;
use crate::view::{SeenSlot, Survey};
use holdfast_base::{StreamId, Timestamp};
use std::collections::BTreeSet;

/// What must be there after a crash, beside what the model knows.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// What arrived until then must be there.
    pub durable: Timestamp,
    /// The time of the crash.
    pub now: Timestamp,
}

impl Model {
    /// Whether `survey` is a state that a crash may leave.
    pub fn allows(&self, survey: &Survey, bound: Bound) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for found in &survey.found {
            let sequence = found.sequence.0;
            if !seen.insert(sequence) {
                return Err(format!("sequence {sequence} is found twice"));
            }
            let Some(slot) = self.slots.get(&sequence) else {
                return Err(format!(
                    "sequence {sequence} is found, and is gone for good or was never pushed"
                ));
            };
            if found.age != slot.age {
                return Err(format!("sequence {sequence} is found with age {}", found.age));
            }
            let need = self.needed(sequence, bound);
            let whole = matches!(slot.stage, Stage::Written(_) | Stage::Expired(_));
            match (&found.slot, slot.stage) {
                (Ok(read), Stage::Written(place))
                    if found.place != Some(place)
                        && !(self.outages && read.rows.len() == slot.rows.len()) =>
                {
                    return Err(format!(
                        "sequence {sequence} is found at {:?} instead of {place}",
                        found.place
                    ));
                }
                (Ok(read), _) => {
                    let rows = prefix(sequence, slot, read)?;
                    let least = if whole { slot.rows.len() } else { need };
                    if rows < least {
                        return Err(format!(
                            "sequence {sequence} has {rows} of {} rows, and must have {least}",
                            slot.rows.len()
                        ));
                    }
                    has_preambles(&slot.preambles, survey, read)?;
                }
                // Torn, and nobody was told that it was there.
                (Err(_), Stage::Moving | Stage::Open) if need == 0 => {}
                (Err(_), _) if slot.damaged => {}
                (Err(_), Stage::Expired(_)) if self.outages => {}
                (Err(error), stage) => return Err(format!("sequence {sequence} ({stage:?}): {error}")),
            }
        }
        for (sequence, slot) in &self.slots {
            let need = self.needed(*sequence, bound);
            if need > 0 && !slot.damaged && !seen.contains(sequence) {
                return Err(format!("sequence {sequence} ({:?}) is lost with {need} rows", slot.stage));
            }
        }
        self.allows_swaps(survey, &seen)?;
        self.allows_holds(survey, bound, &seen)?;
        self.allows_numbers(survey)
    }

    /// Of what a purge was replacing the original is there or the copies are, whole. Purges that were acknowledged are on record.
    fn allows_swaps(&self, survey: &Survey, seen: &BTreeSet<u64>) -> Result<(), String> {
        for Swap { original, copies, .. } in self.swaps.iter().filter(|swap| !swap.durable) {
            // A copy may be the next to go as soon as it counts.
            let gone = |copy| self.slots.get(copy).is_none_or(|slot| matches!(slot.stage, Stage::Expired(_)));
            let copied = copies.iter().all(|copy| seen.contains(copy) || gone(copy));
            let both = seen.contains(original) && copies.iter().any(|copy| seen.contains(copy));
            if both || !(copied || seen.contains(original)) {
                return Err(format!("of {original} and its copies {copies:?} this is there: {seen:?}"));
            }
        }
        let (acts, dropped) = (survey.recovered.act_looks(), survey.recovered.acts_dropped());
        let on_record: BTreeSet<String> = acts.map(|act| act.reason).collect();
        match self.purges.iter().find(|reason| dropped.purges == 0 && !on_record.contains(*reason)) {
            Some(reason) => Err(format!("the purge of {reason} was acknowledged and is not on record")),
            None => Ok(()),
        }
    }

    /// Rows of a slot that must survive.
    fn needed(&self, sequence: u64, bound: Bound) -> usize {
        if self.swaps.iter().any(|swap| !swap.durable && swap.copies.contains(&sequence)) {
            // The original may be there instead.
            return 0;
        }
        let Some(slot) = self.slots.get(&sequence) else {
            return 0;
        };
        let old = slot.rows.iter().take_while(|r| r.arrival <= bound.durable).count();
        match slot.stage {
            Stage::Expired(_) => 0,
            Stage::Written(_) => slot.rows.len(),
            Stage::Moving | Stage::Open => slot.floor.max(old),
        }
    }

    fn allows_holds(&self, survey: &Survey, bound: Bound, seen: &BTreeSet<u64>) -> Result<(), String> {
        let holds = survey.recovered.holds();
        for hold in holds {
            let id = hold.id.0;
            let ranges: Vec<(u64, u64)> = hold.sequences.iter().map(|(a, b)| (a.0, b.0)).collect();
            match self.holds.get(&id) {
                Some(known) if known.may_be(&ranges, hold.condition_hold.as_ref()) => {}
                Some(known) => return Err(format!("hold {id} is found as {hold:?}, not as {known:?}")),
                None if self.ended.iter().any(|e| e.may_be(&ranges, hold.condition_hold.as_ref())) => {}
                None => return Err(format!("hold {id} is found, and it was released or never given")),
            }
        }
        for (id, hold) in &self.holds {
            let found = holds.iter().any(|h| h.id.0 == *id);
            if let Some(gone) = hold.covered.iter().find(|s| found && !seen.contains(s)) {
                return Err(format!("hold {id} stands, and sequence {gone} is not there"));
            }
            if hold.acked && !hold.releasing && hold.until > bound.now && !found {
                return Err(format!("hold {id} was acknowledged and is lost"));
            }
        }
        Ok(())
    }

    fn allows_numbers(&self, survey: &Survey) -> Result<(), String> {
        let status = survey.recovered.status("");
        if status.sequence.0 <= self.newest {
            return Err(format!("sequence {} would be given again", status.sequence));
        }
        if status.slots.total != self.total && Some(status.slots.total) != self.growing {
            return Err(format!("{} slots instead of {}", status.slots.total, self.total));
        }
        for found in &survey.found {
            let Ok(slot) = &found.slot else { continue };
            for entry in &slot.summary.entries {
                let Some(stream) = survey.recovered.streams().iter().find(|s| s.id == entry.stream) else {
                    return Err(format!("stream {} has data and is forgotten", entry.stream));
                };
                if stream.counters.next_ordinal < entry.counters.next_ordinal {
                    return Err(format!(
                        "stream {} would give ordinal {} again: {} has come to {}",
                        entry.stream,
                        stream.counters.next_ordinal,
                        found.sequence,
                        entry.counters.next_ordinal
                    ));
                }
            }
        }
        Ok(())
    }

    /// Goes on from what was found, which was allowed.
    pub fn adopt(&mut self, survey: &Survey) {
        let old = std::mem::take(&mut self.slots);
        for (sequence, mut slot) in old {
            let Some(found) = survey.found.iter().find(|f| f.sequence.0 == sequence) else {
                continue;
            };
            match &found.slot {
                Ok(read) => slot.rows.truncate(read.rows.len()),
                Err(_) => slot.damaged = true,
            }
            slot.floor = slot.rows.len();
            slot.stage = found.place.map_or(Stage::Moving, Stage::Written);
            self.slots.insert(sequence, slot);
        }
        let holds = survey.recovered.holds();
        let mut left = std::mem::take(&mut self.holds);
        for hold in holds {
            let ranges: Vec<(u64, u64)> = hold.sequences.iter().map(|(a, b)| (a.0, b.0)).collect();
            let ended =
                || self.ended.iter().find(|e| e.may_be(&ranges, hold.condition_hold.as_ref())).cloned();
            if let Some(known) = left.remove(&hold.id.0).or_else(ended) {
                let (condition_hold, before) = (hold.condition_hold.clone(), Vec::new());
                let known =
                    ModelHold { acked: true, releasing: false, ranges, condition_hold, before, ..known };
                self.holds.insert(hold.id.0, known);
            }
        }
        (self.total, self.growing) = (survey.recovered.status("").slots.total, None);
        self.ended.clear();
        self.kept.clear();
        self.may_be.clear();
        self.pinned.clear();
        self.swaps.clear();
        self.locked.clear();
    }

    /// The ordinal that a stream goes on with: what is there is never numbered again.
    pub fn next_ordinal(&self, stream: StreamId, counted: u64) -> u64 {
        counted.max(self.last_ordinal(stream).map_or(0, |last| last + 1))
    }
}

/// Every stream of a slot has the preamble that it had.
fn has_preambles(wanted: &Preambles, survey: &Survey, slot: &SeenSlot) -> Result<(), String> {
    for entry in &slot.summary.entries {
        let wanted = wanted.get(&(entry.stream.0, entry.preamble)).map(Vec::as_slice);
        let found = survey.recovered.preamble(entry.stream, entry.preamble);
        if wanted != found {
            let (found, wanted) = (found.map(<[u8]>::len), wanted.map(<[u8]>::len));
            let (stream, version) = (entry.stream, entry.preamble);
            return Err(format!("preamble {version} of stream {stream}: {found:?} instead of {wanted:?}"));
        }
    }
    Ok(())
}
