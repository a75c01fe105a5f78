//! Comparison of a running ring with the model: what is visible, what expired, what is held.

use crate::model::{Model, ModelSlot, Stage};
use crate::view::{SeenSlot, read_slot};
use holdfast_base::{SlotNo, Timestamp};
use holdfast_format::Superblock;
use holdfast_media::Image;
use holdfast_ring::{HoldStatus, SlotLook, SlotStatus};
use std::collections::{BTreeMap, BTreeSet};

/// What a ring shows at one moment.
#[derive(Debug)]
pub struct RingSnapshot {
    /// Its slots.
    pub slots: Vec<SlotStatus>,
    /// Its holds.
    pub holds: Vec<HoldStatus>,
    /// Sequences that are sealed and not on the medium.
    pub on_the_way: BTreeSet<u64>,
    /// Sequences on the medium that are still to be looked at in full, and that the journal has a part of.
    pub doubted: BTreeSet<u64>,
    /// Length of a full runway, by the design's rule.
    pub runway: u32,
    /// How much longer it may be after a crash.
    pub on_top: u32,
    /// Whether nothing is on its way.
    pub idle: bool,
    /// Whether the disk does everything at once, so that nothing waits for a place that is not named.
    pub prompt: bool,
    /// Whether the ring has grown since the last look.
    pub grew: bool,
}

/// The rows of a slot that was read whole are exactly those that were pushed.
pub fn same_rows(sequence: u64, model: &ModelSlot, seen: &SeenSlot) -> Result<(), String> {
    let rows = prefix(sequence, model, seen)?;
    if rows == model.rows.len() {
        Ok(())
    } else {
        Err(format!("slot of sequence {sequence} has {rows} rows of {}", model.rows.len()))
    }
}

/// The rows that were read are the first of those that were pushed; how many.
pub fn prefix(sequence: u64, model: &ModelSlot, seen: &SeenSlot) -> Result<usize, String> {
    if seen.header.sequence.0 != sequence || seen.header.age.0 != model.age {
        let (found, age) = (seen.header.sequence, seen.header.age);
        return Err(format!(
            "header of {sequence} says sequence {found}, age {age}, wanted age {}",
            model.age
        ));
    }
    if seen.rows.len() > model.rows.len() {
        return Err(format!("{sequence} has {} rows, {} were pushed", seen.rows.len(), model.rows.len()));
    }
    for (at, (row, pushed)) in seen.rows.iter().zip(&model.rows).enumerate() {
        if !pushed.is(row) {
            return Err(format!("row {at} of {sequence} is wrong: {row:?} instead of {pushed:?}"));
        }
    }
    Ok(seen.rows.len())
}

impl Model {
    /// Takes in what the ring shows now, or says which promise it breaks. How many slots have stayed though younger ones expired,
    /// because they are pinned.
    pub fn observe(
        &mut self,
        shown: &RingSnapshot,
        image: &Image,
        superblock: &Superblock,
        now: Timestamp,
    ) -> Result<u64, String> {
        self.observe_holds(&shown.holds, now)?;
        let before = std::mem::take(&mut self.kept);
        let could_be = std::mem::take(&mut self.may_be);
        let all = || self.slots.keys().copied();
        let kept: BTreeSet<u64> = all().filter(|sequence| self.is_kept(*sequence)).collect();
        let may_be: BTreeSet<u64> = all().filter(|sequence| self.may_be_kept(*sequence)).collect();
        let written = |slot: &ModelSlot| matches!(slot.stage, Stage::Written(_));
        let there: BTreeSet<u64> =
            self.slots.iter().filter(|(_, slot)| written(slot)).map(|(s, _)| *s).collect();
        let (mut visible, mut pinned) = (BTreeMap::new(), BTreeSet::new());
        let mut counts = (0, 0, 0);
        for look in &shown.slots {
            match look.look {
                SlotLook::Free => counts.0 += 1,
                SlotLook::Runway => counts.1 += 1,
                SlotLook::Writing => {}
                SlotLook::Pinned if !look.has_data() => {}
                SlotLook::Bad => counts.2 += 1,
                // It may be torn, and what the journal has then be on its way.
                _ if shown.doubted.contains(&look.sequence.0)
                    && self.slots.get(&look.sequence.0).is_some_and(|s| s.stage == Stage::Moving) => {}
                SlotLook::Live | SlotLook::Held | SlotLook::Pinned | SlotLook::Damaged => {
                    if visible.insert(look.sequence.0, look.slot).is_some() {
                        return Err(format!("sequence {} is in two slots", look.sequence));
                    }
                    self.observe_data(look, image, superblock)?;
                    let is_pinned = look.look == SlotLook::Pinned && !self.locked.contains(&look.sequence.0);
                    pinned.extend(is_pinned.then_some(look.sequence.0));
                }
            }
        }
        self.observe_pins(&pinned, shown.slots.len())?;
        let (free, runway, bad) = counts;
        self.bad = bad;
        let expired = self.expire(&visible, &shown.on_the_way);
        self.check_expired(&expired, &there, [&before, &kept, &could_be], &pinned)?;
        let passed_over = self.check_pinned(&expired, &there, &could_be, &pinned, shown.prompt)?;
        if !expired.is_empty() && free > 0 && !shown.grew {
            return Err(format!("{expired:?} expired while {free} slots were free"));
        }
        if runway > shown.runway + shown.on_top {
            return Err(format!("{runway} slots are named, {} at most", shown.runway));
        }
        let may_go =
            self.alive().any(|(s, slot)| matches!(slot.stage, Stage::Written(_)) && !self.may_be_kept(s));
        if shown.idle && runway <= shown.runway / 2 && (free > 0 || may_go) {
            return Err(format!("only {runway} slots are named and there are victims"));
        }
        (self.kept, self.may_be, self.pinned) = (kept, may_be, pinned);
        Ok(passed_over)
    }

    /// Pinned is what somebody pins, and no more than there may be.
    fn observe_pins(&self, pinned: &BTreeSet<u64>, slots: usize) -> Result<(), String> {
        let budget = (slots / 20).max(1);
        if pinned.len() > budget {
            return Err(format!("{pinned:?} are pinned, {budget} slots at most"));
        }
        match pinned.iter().find(|s| self.pins.values().all(|named| !named.contains(s))) {
            Some(sequence) => Err(format!("sequence {sequence} is pinned by nobody")),
            None => Ok(()),
        }
    }

    /// Pinned slots of what was `there` have gone only where nothing else was left to go; how many have stayed longer than
    /// they would have otherwise.
    fn check_pinned(
        &self,
        expired: &[u64],
        there: &BTreeSet<u64>,
        could_be: &BTreeSet<u64>,
        pinned: &BTreeSet<u64>,
        prompt: bool,
    ) -> Result<u64, String> {
        let lost = expired.iter().find(|sequence| self.pinned.contains(sequence));
        let mut others = self.alive().map(|(sequence, _)| sequence).filter(|sequence| {
            let may_go = !could_be.contains(sequence) && !self.may_be_kept(*sequence);
            there.contains(sequence)
                && may_go
                && !pinned.contains(sequence)
                && !self.locked.contains(sequence)
        });
        if let (Some(lost), Some(other), true) = (lost, others.next(), prompt) {
            return Err(format!("sequence {lost} is pinned and has expired, and {other} was free to go"));
        }
        let age = |sequence: &u64| self.slots.get(sequence).map_or(0, |slot| slot.age);
        let youngest = expired.iter().map(age).max().unwrap_or(0);
        Ok(pinned.iter().filter(|sequence| there.contains(sequence) && age(sequence) < youngest).count()
            as u64)
    }

    fn observe_data(
        &mut self,
        look: &SlotStatus,
        image: &Image,
        superblock: &Superblock,
    ) -> Result<(), String> {
        let sequence = look.sequence.0;
        let at = format!("slot {} shows sequence {sequence}", look.slot);
        let (kept, may_be_kept) = (self.is_kept(sequence), self.may_be_kept(sequence));
        let Some(slot) = self.slots.get_mut(&sequence) else {
            return Err(format!("{at}, which was never pushed or is gone for good"));
        };
        if look.age.0 != slot.age {
            return Err(format!("{at} with age {} instead of {}", look.age, slot.age));
        }
        match look.look {
            SlotLook::Damaged if !slot.damaged => return Err(format!("{at} as damaged")),
            SlotLook::Held if !may_be_kept => return Err(format!("{at} as held, and nothing holds it")),
            SlotLook::Live | SlotLook::Pinned if kept => {
                return Err(format!("{at} as live, though a hold keeps it"));
            }
            _ => {}
        }
        match slot.stage {
            Stage::Written(place) if place == look.slot => {}
            Stage::Moving => {
                slot.stage = Stage::Written(look.slot);
                slot.floor = slot.rows.len();
                if !slot.damaged {
                    let bytes = image.range(
                        superblock.geometry.slot_offset(look.slot),
                        superblock.geometry.slot_bytes as usize,
                    );
                    let seen = read_slot(&bytes, superblock).map_err(|e| format!("{at}: {e}"))?;
                    same_rows(sequence, slot, &seen)?;
                }
            }
            stage => return Err(format!("{at}, which is {stage:?}")),
        }
        let place = look.slot;
        self.slots.retain(|other, slot| *other == sequence || slot.stage != Stage::Expired(Some(place)));
        Ok(())
    }

    /// What is not visible any more has expired.
    fn expire(&mut self, visible: &BTreeMap<u64, SlotNo>, on_the_way: &BTreeSet<u64>) -> Vec<u64> {
        let mut expired = Vec::new();
        for (sequence, slot) in &mut self.slots {
            let place = match slot.stage {
                Stage::Written(place) if !visible.contains_key(sequence) => Some(place),
                // Written and named again between two looks.
                Stage::Moving if !on_the_way.contains(sequence) => None,
                _ => continue,
            };
            slot.stage = Stage::Expired(place);
            expired.push(*sequence);
        }
        expired
    }

    /// Oldest first of what was `there` and is not pinned, and nothing that is held.
    fn check_expired(
        &self,
        expired: &[u64],
        there: &BTreeSet<u64>,
        [before, kept, could_be]: [&BTreeSet<u64>; 3],
        pinned: &BTreeSet<u64>,
    ) -> Result<(), String> {
        let age = |sequence: &u64| self.slots.get(sequence).map_or(0, |slot| slot.age);
        if let Some(sequence) = expired.iter().find(|s| before.contains(s) && kept.contains(s)) {
            return Err(format!("sequence {sequence} expired, though a hold keeps it"));
        }
        let Some(youngest) = expired.iter().map(age).max() else {
            return Ok(());
        };
        for (sequence, slot) in self.alive().filter(|(sequence, _)| there.contains(sequence)) {
            let free_to_go = !could_be.contains(&sequence) && !self.may_be_kept(sequence);
            let stays = pinned.contains(&sequence) || self.locked.contains(&sequence);
            if free_to_go && !stays && slot.age < youngest {
                return Err(format!("age {youngest} expired before age {} ({sequence})", slot.age));
            }
        }
        Ok(())
    }

    fn observe_holds(&mut self, shown: &[HoldStatus], now: Timestamp) -> Result<(), String> {
        for hold in shown {
            let id = hold.id.0;
            let ranges: Vec<(u64, u64)> = hold.sequences.iter().map(|(a, b)| (a.0, b.0)).collect();
            match self.holds.get(&id) {
                Some(known) if known.releasing => {
                    return Err(format!("hold {id} is shown after its release was ordered"));
                }
                Some(known) if known.ranges != ranges => {
                    return Err(format!("hold {id} keeps {ranges:?} instead of {:?}", known.ranges));
                }
                Some(known) if known.condition_hold != hold.condition_hold => {
                    return Err(format!(
                        "hold {id} looks for {:?}, not {:?}",
                        hold.condition_hold, known.condition_hold
                    ));
                }
                Some(known) if self.kept_by(known) != hold.slots => {
                    return Err(format!("hold {id} keeps {} slots, not {}", hold.slots, self.kept_by(known)));
                }
                Some(_) => {}
                None => return Err(format!("hold {id} is shown, and nobody ordered it")),
            }
        }
        let ids: BTreeSet<u64> = shown.iter().map(|h| h.id.0).collect();
        let over: Vec<u64> = self
            .holds
            .iter()
            .filter(|(id, hold)| !hold.releasing && !ids.contains(id))
            .map(|(id, _)| *id)
            .collect();
        for id in over {
            if let Some(hold) = self.holds.remove(&id) {
                if hold.until > now {
                    return Err(format!("hold {id} is gone, and nobody released it"));
                }
                self.ended.push(hold);
            }
        }
        Ok(())
    }
}
