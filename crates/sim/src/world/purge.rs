//! Purges of the simulation: carried out step by step while the recorder goes on, compared with the naive
//! rule slot by slot, and interrupted by power cuts. `crash` says what a crash may leave of one.

use super::{PATIENCE, World, reason};
use crate::content::Content;
use crate::model::{Model, Pushed, Stage, Swap};
use crate::op::Doom;
use crate::view::{SeenRow, read_slot};
use holdfast_base::Timestamp;
use holdfast_format::{Cause, Gap, Kind, SlotFlags};
use holdfast_ring::{
    HoldStatus, JobError, JobStep, Order, Outcome, PlacedCopy, PurgeRequest, Range, Refusal, SlotStatus,
    StepReply, Work,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Copies that a purge which did not come to its end may have given back to the runway.
const GIVEN_BACK: usize = 3;

/// A purge under way.
#[derive(Clone, Debug)]
pub(crate) struct Purging {
    order: u64,
    request: PurgeRequest,
    /// The step under way is to put copies in an original's place.
    coming: Option<Swap>,
    /// What went, with what is on record: elements, and bytes of data.
    gone: (u64, u64),
}

/// Whether a row is to go.
fn goes(row: &Pushed, request: &PurgeRequest) -> bool {
    let range = &request.range;
    let named = request.streams.is_empty() || request.streams.contains(&row.stream);
    let time = if range.by_event { row.event } else { Some(row.arrival) };
    let timed = time.is_some_and(|time| range.from <= time && time <= range.to);
    let numbered = range.ordinals.is_none_or(|(first, end)| first.0 <= row.ordinal && row.ordinal < end.0);
    matches!(row.kind, Kind::Element | Kind::Fragment) && named && timed && numbered
}

/// Elements and bytes that a gap has to count for rows that went: an element in fragments with its last, whole.
fn counts<'r>(rows: impl Iterator<Item = &'r Pushed>) -> (u64, u64) {
    let ends = rows.filter(|row| row.kind == Kind::Element || row.last);
    ends.fold((0, 0), |(elements, bytes), row| (elements + 1, bytes + row.offset + row.len as u64))
}

/// The copies have what was to stay of an original, in order, and gaps that tell of the rest: their rows.
fn taken_over(
    original: &[Pushed],
    request: &PurgeRequest,
    copies: &[Vec<SeenRow>],
) -> Result<Vec<Vec<Pushed>>, String> {
    let mut stays = original.iter().filter(|row| !goes(row, request)).peekable();
    // By stream and by how many of its rows stay before it: what the gaps there say.
    let mut told: BTreeMap<(u32, usize), Vec<(u64, Gap)>> = BTreeMap::new();
    let mut before: BTreeMap<u32, usize> = BTreeMap::new();
    let mut all = Vec::new();
    for rows in copies {
        let mut of_copy = Vec::new();
        for row in rows {
            if let Some(same) = stays.next_if(|pushed| pushed.is(row)) {
                *before.entry(row.stream.0).or_default() += 1;
                of_copy.push(same.clone());
                continue;
            }
            let gap = Gap::decode(&row.bytes)
                .ok()
                .filter(|gap| row.kind == Kind::Gap && gap.cause == Cause::Purged);
            let Some(gap) = gap else {
                return Err(format!("{row:?} is neither {:?} nor tells of what went", stays.peek()));
            };
            let place = (row.stream.0, before.get(&row.stream.0).copied().unwrap_or(0));
            told.entry(place).or_default().push((row.ordinal, gap));
            of_copy.push(Pushed {
                stream: row.stream,
                kind: row.kind,
                last: row.last,
                ordinal: row.ordinal,
                number: row.number,
                offset: row.offset,
                len: row.bytes.len(),
                arrival: row.arrival,
                event: row.event,
                content: Content::Bytes(row.bytes.clone().into()),
            });
        }
        all.push(of_copy);
    }
    if let Some(lost) = stays.next() {
        return Err(format!("{lost:?} was to stay"));
    }
    let mut wanted: BTreeMap<(u32, usize), Vec<&Pushed>> = BTreeMap::new();
    let mut before: BTreeMap<u32, usize> = BTreeMap::new();
    for row in original {
        let kept = before.entry(row.stream.0).or_default();
        if goes(row, request) {
            wanted.entry((row.stream.0, *kept)).or_default().push(row);
        } else {
            *kept += 1;
        }
    }
    if !wanted.keys().eq(told.keys()) {
        return Err(format!("gaps at {:?} tell of what went at {:?}", told.keys(), wanted.keys()));
    }
    for (rows, gaps) in wanted.values().zip(told.values()) {
        let sum = |of: fn(&Gap) -> Option<u64>| gaps.iter().map(|(_, gap)| of(gap)).sum::<Option<u64>>();
        let (elements, bytes) = counts(rows.iter().copied());
        let first = rows.iter().map(|row| row.arrival).min();
        let last = rows.iter().map(|row| row.arrival).max();
        let right = gaps[0].0 == rows[0].ordinal
            && gaps.iter().map(|(_, gap)| gap.ordinals).sum::<u64>() == elements
            && sum(|gap| gap.elements) == Some(elements)
            && sum(|gap| gap.bytes) == Some(bytes)
            && gaps.iter().map(|(_, gap)| gap.first).min() == first
            && gaps.iter().map(|(_, gap)| gap.last).max() == last;
        if !right {
            return Err(format!("{gaps:?} are to tell of {elements} elements, {bytes} bytes: {rows:?}"));
        }
    }
    Ok(all)
}

impl Model {
    /// Sequences of what is there up to `newest` and has something that is to go.
    fn doomed<'m>(&'m self, request: &'m PurgeRequest, newest: u64) -> impl Iterator<Item = u64> + 'm {
        let sound = self.alive().filter(move |(sequence, slot)| *sequence <= newest && !slot.damaged);
        sound.filter(|(_, slot)| slot.rows.iter().any(|row| goes(row, request))).map(|(sequence, _)| sequence)
    }

    /// The copies count from now on, if the power does not go.
    fn swap(&mut self, mut swap: Swap) {
        for (id, hold) in self.holds.iter_mut().filter(|(_, hold)| hold.keeps(swap.original)) {
            hold.covered.retain(|sequence| *sequence != swap.original);
            swap.kept_by.insert(*id);
        }
        if let Some(slot) = self.slots.get_mut(&swap.original)
            && let Stage::Written(place) = slot.stage
        {
            slot.stage = Stage::Expired(Some(place));
        }
        self.slots.extend(std::mem::take(&mut swap.slots));
        self.swaps.push(swap);
    }

    /// That is durable now: what went never comes back.
    fn swapped(&mut self) {
        for swap in self.swaps.iter_mut().filter(|swap| !swap.durable) {
            swap.durable = true;
            self.slots.remove(&swap.original);
            for hold in self.holds.values_mut() {
                let kept = swap.copies.iter().copied().filter(|copy| hold.keeps(*copy));
                let kept: Vec<u64> = kept.collect();
                hold.covered.extend(kept);
            }
        }
    }

    /// Whether a hold that is shown keeps other sequences than before only because copies took the place of originals. If so
    /// it is taken over.
    pub(crate) fn meets_swap(&mut self, order: u64, shown: &HoldStatus) -> bool {
        let id = shown.id.0;
        let ranges: Vec<(u64, u64)> = shown.sequences.iter().map(|(a, b)| (a.0, b.0)).collect();
        let Some(hold) = self.holds.get_mut(&id).filter(|hold| hold.condition_hold == shown.condition_hold)
        else {
            return false;
        };
        let keeps = |sequence: u64| ranges.iter().any(|(a, b)| *a <= sequence && sequence <= *b);
        let swap_of = |sequence: u64| self.swaps.iter().find(|swap| swap.copies.contains(&sequence));
        let there = self.slots.iter().filter(|(_, slot)| !matches!(slot.stage, Stage::Expired(_)));
        let same = there.map(|(sequence, _)| *sequence).all(|sequence| {
            let wanted =
                swap_of(sequence).map_or_else(|| hold.keeps(sequence), |swap| swap.kept_by.contains(&id));
            keeps(sequence) == wanted
        });
        // Nothing beside: what never was, or is to come.
        let known = |s: &u64| hold.keeps(*s) || swap_of(*s).is_some();
        let same = same && ranges.iter().flat_map(|(a, b)| *a..=*b).all(|s| known(&s));
        if same {
            let condition_hold = hold.condition_hold.clone();
            hold.grow(order, ranges, condition_hold);
        }
        same
    }
}

impl World {
    /// Destroys a range while the recorder goes on, and compares.
    pub(super) fn purge(&mut self, stream: Option<u8>, doom: Doom, held: bool) -> Result<(), String> {
        // What is asked of the ring meanwhile is for other tests.
        if !self.wait("orders before a purge", &mut |world| world.asked.is_empty())? {
            return Ok(());
        }
        self.look()?;
        let range = match doom {
            Doom::Ordinals { back, count } => {
                let (ordinals, _) = self.with_ordinals(stream.unwrap_or(0), back, count);
                Range { ordinals: Some(ordinals), ..Range::ALL }
            }
            Doom::Time { back, span, by_event } => {
                let (from, to) = (self.now() - back, self.now() - back + span);
                let halved = |time: Timestamp| if by_event { Timestamp(time.0 / 2) } else { time };
                Range { from: halved(from), to: halved(to), by_event, ordinals: None }
            }
        };
        let streams = stream.map(|s| self.stream(s)).into_iter().collect();
        let order = self.next_order();
        let request = PurgeRequest { streams, range, held, reason: reason(order), owner: "world".to_owned() };
        let Some(work) = Work::of(&Order::Purge(request.clone())) else { return Err("no work".to_owned()) };
        let (newest, now) = (self.model.newest, self.now());
        let superblock = self.superblock.clone();
        self.purging = Some(Purging { order, request: request.clone(), coming: None, gone: (0, 0) });
        let mut wrong = None;
        let mut port = |step: JobStep| {
            let reply = self.job_step(step);
            reply.unwrap_or_else(|why| {
                wrong = Some(why);
                None
            })
        };
        let outcome = work.run(&superblock, now, &mut port, &|| false);
        if let Some(wrong) = wrong {
            return Err(format!("a purge: {wrong}"));
        }
        if self.is_dead() {
            self.torn += 1;
            return Ok(());
        }
        self.look()?;
        let gone = self.purging.take().map_or((0, 0), |purging| purging.gone);
        self.model.locked.clear();
        self.purged(order, &request, newest, gone, &outcome)
            .map_err(|why| format!("a purge came to {outcome:?}: {why}"))?;
        self.look()
    }

    fn purged(
        &mut self,
        order: u64,
        request: &PurgeRequest,
        newest: u64,
        gone: (u64, u64),
        outcome: &Result<Outcome, JobError>,
    ) -> Result<(), String> {
        let damaged = self.model.damaged() > 0;
        let left: Vec<u64> = self.model.doomed(request, newest).collect();
        match outcome {
            Ok(Outcome::Purged { elements, bytes, .. }) => {
                if !left.is_empty() {
                    return Err(format!("there is more in {left:?}"));
                }
                if (*elements, *bytes) != gone {
                    return Err(format!("{gone:?} elements and bytes went"));
                }
                // What had expired cannot come back either.
                let back = |slot: &crate::ModelSlot| {
                    matches!(slot.stage, Stage::Expired(_)) && slot.rows.iter().any(|row| goes(row, request))
                };
                self.model.slots.retain(|sequence, slot| *sequence > newest || !back(slot));
                self.model.swaps.clear();
                for hold in self.model.holds.values_mut() {
                    hold.before.retain(|before| before.order > order);
                }
                self.model.purges.insert(request.reason.clone());
                self.purged += u64::from(gone.0 > 0);
                Ok(())
            }
            Ok(Outcome::Refused(Refusal::Nothing { .. })) if left.is_empty() && gone == (0, 0) => Ok(()),
            Ok(Outcome::Refused(Refusal::Held(hold))) if !request.held && gone == (0, 0) => {
                let holds = || self.model.holds.get(&hold.0).into_iter().chain(&self.model.ended);
                let named = holds().any(|hold| left.iter().any(|sequence| hold.keeps(*sequence)));
                if named || damaged { Ok(()) } else { Err("it keeps nothing of that".to_owned()) }
            }
            Err(why) => {
                // What was done until then is done.
                self.model.swapped();
                self.left_aside += GIVEN_BACK;
                match why {
                    JobError::NoRoom | JobError::NoRoomIn(_) => Ok(()),
                    JobError::Damaged { .. } if damaged => Ok(()),
                    JobError::Disk(_) | JobError::Unsound { .. } if !self.is_well() => Ok(()),
                    _ => Err("that was not to be".to_owned()),
                }
            }
            Ok(_) => Err("that is no answer to it".to_owned()),
        }
    }

    /// Carries out a step of a purge while the recorder goes on; nothing once the power is gone.
    fn job_step(&mut self, step: JobStep) -> Result<Option<StepReply>, String> {
        let now = self.now();
        let (mut locks, mut unlocks, mut replaces) = (None, None, false);
        let copies = matches!(step, JobStep::NewCopy);
        match &step {
            JobStep::Lock(no) => locks = Some(*no),
            JobStep::Unlock(no) => unlocks = Some(*no),
            JobStep::Replace { originals, copies, .. } => {
                replaces = true;
                let coming = self.coming(&originals.iter().map(|(_, s)| s.0).collect::<Vec<_>>(), copies)?;
                if let Some(purging) = &mut self.purging {
                    purging.coming = Some(coming);
                }
            }
            _ => {}
        }
        // Between two looks a slot may be let go and expire.
        if let Some(no) = unlocks {
            let at = |sequence: &u64| {
                self.model.slots.get(sequence).is_some_and(|s| s.stage == Stage::Written(no))
            };
            let letting: BTreeSet<u64> = self.model.locked.iter().copied().filter(at).collect();
            if !letting.is_empty() {
                self.look()?;
                self.model.locked.retain(|sequence| !letting.contains(sequence));
            }
        }
        if locks.is_some() {
            // What has come to be there is known then.
            self.look()?;
        }
        self.recorder()?.driver.step(step, now);
        if replaces {
            self.look()?;
        }
        let begin = self.now();
        loop {
            if self.is_dead() {
                return Ok(None);
            }
            if let Some(reply) = self.run.as_mut().and_then(|run| run.driver.step_reply()) {
                match (&reply, locks) {
                    (StepReply::Done, Some(no)) => {
                        let at = self.model.slots.iter().filter(|(_, slot)| slot.stage == Stage::Written(no));
                        let sequences: Vec<u64> = at.map(|(sequence, _)| *sequence).collect();
                        self.model.locked.extend(sequences);
                    }
                    (StepReply::Copy { sequence, .. }, _) if copies => {
                        if sequence.0 <= self.model.newest {
                            return Err(format!("sequence {sequence} is given again, to a copy"));
                        }
                        self.model.newest = sequence.0;
                    }
                    _ => {}
                }
                if replaces {
                    self.look()?;
                    let refused =
                        self.purging.as_mut().is_some_and(|purging| purging.coming.take().is_some());
                    if refused == matches!(reply, StepReply::Done) {
                        return Err(format!("copies are in an original's place: {}, {reply:?}", !refused));
                    }
                    self.model.swapped();
                    self.look()?;
                }
                return Ok(Some(reply));
            }
            if self.is_well() && self.now().since(begin) > PATIENCE {
                return Err(format!("a step is stuck: {}", self.state()));
            }
            if self.recorder()?.driver.ring().wants_seal() {
                self.seal(SlotFlags::SHORT)?;
            }
            if !self.is_dead() && self.seed.below(6) == 0 {
                let (stream, bytes) = (self.seed.below(3) as u8, self.seed.below(8_000) as u32);
                self.offer(stream, bytes)?;
            }
            if !self.is_dead() {
                self.pass(Duration::from_millis(1))?;
            }
        }
    }

    /// What is to come of an original: copies with what the naive rule leaves of it.
    fn coming(&mut self, originals: &[u64], copies: &[PlacedCopy]) -> Result<Swap, String> {
        let image = self.disk()?.seen();
        let request = self.purging.as_ref().map(|purging| purging.request.clone()).ok_or("no purge")?;
        let [original] = *originals else { return Err(format!("{originals:?} are replaced together")) };
        self.look()?;
        let slot = self.model.slots.get(&original).cloned().ok_or(format!("{original} is not there"))?;
        if self.model.is_kept(original) && !request.held {
            return Err(format!("{original} is held"));
        }
        let mut rows = Vec::new();
        for copy in copies {
            let at = self.superblock.geometry.slot_offset(copy.slot);
            let bytes = image.range(at, self.superblock.geometry.slot_bytes as usize);
            let seen =
                read_slot(&bytes, &self.superblock).map_err(|e| format!("copy {}: {e}", copy.sequence))?;
            if seen.header.sequence != copy.sequence || seen.header.age.0 != slot.age {
                return Err(format!("{:?} is no copy of {original}, of age {}", seen.header, slot.age));
            }
            rows.push(seen.rows);
        }
        let rows = taken_over(&slot.rows, &request, &rows).map_err(|why| format!("{original}: {why}"))?;
        if rows.iter().any(Vec::is_empty) {
            return Err(format!("a copy of {original} has nothing"));
        }
        let made = copies.iter().zip(rows).map(|(copy, rows)| {
            let (floor, stage) = (rows.len(), Stage::Written(copy.slot));
            (copy.sequence.0, crate::ModelSlot { rows, stage, floor, damaged: false, ..slot.clone() })
        });
        let slots: BTreeMap<u64, crate::ModelSlot> = made.collect();
        let went: Vec<&Pushed> = slot.rows.iter().filter(|row| goes(row, &request)).collect();
        let bytes: u64 = went.iter().map(|row| row.len as u64).sum();
        let elements = counts(went.into_iter()).0;
        Ok(Swap {
            original,
            copies: slots.keys().copied().collect(),
            kept_by: BTreeSet::new(),
            durable: false,
            gone: (elements, bytes),
            slots,
        })
    }

    /// The order of the purge under way.
    pub(super) fn purge_under_way(&self) -> Option<u64> {
        self.purging.as_ref().map(|purging| purging.order)
    }

    /// Takes in that copies are in the place of an original, where that is to be seen.
    pub(super) fn meet_swap(&mut self, slots: &[SlotStatus]) {
        let Some(purging) = &mut self.purging else { return };
        let there = |sequence: u64| slots.iter().any(|look| look.has_data() && look.sequence.0 == sequence);
        if let Some(swap) = purging.coming.take_if(|swap| !there(swap.original)) {
            purging.gone = (purging.gone.0 + swap.gone.0, purging.gone.1 + swap.gone.1);
            self.model.swap(swap);
        }
    }
}
