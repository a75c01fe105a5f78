//! What is due of a hold that goes on is distilled, together with others that keep the same slots.

use super::{AGAIN, DISTIL, Follow, Room};
use crate::failure::{Failure, Result};
use crate::finding::evaluator::Evaluator;
use crate::finding::wish::Kept;
use crate::finding::{distil, warn, wish};
use crate::out::{Out, counted};
use crate::session::{self, link};
use crate::{orders, show, times};
use holdfast_base::{Age, ByteSize, HoldId, Sequence, Timestamp};
use holdfast_ring::{DistilRequest, HoldStatus, Order, Original, Outcome, Refusal, SlotStatus};
use serde::Serialize;
use std::ops::ControlFlow;
use std::time::Instant;

/// What was distilled, for scripts.
#[derive(Serialize)]
struct Distilled {
    id: u64,
    #[serde(serialize_with = "show::time")]
    at: Timestamp,
    originals: u32,
    copies: u32,
    elements: u64,
    bytes: u64,
}

/// The holds that keep a slot.
fn holder_ids(holds: &[HoldStatus], sequence: Sequence) -> Vec<HoldId> {
    distil::holders(holds, sequence).map(|hold| hold.id).collect()
}

/// The slots of a group of which alone it cannot be told what a hold wants; all, if it can be told of each.
fn untold(
    evaluator: &Evaluator,
    hold: HoldId,
    holds: &[HoldStatus],
    (group, slots): (&[SlotStatus], &[SlotStatus]),
) -> Result<Vec<Sequence>> {
    let of_hold = holds.iter().find(|other| other.id == hold);
    let mut untold = Vec::new();
    for slot in group.iter().filter(|slot| of_hold.is_some_and(|hold| distil::keeps(hold, slot.sequence))) {
        if let Kept::Untold(..) = evaluator.keep(holds, std::slice::from_ref(slot), slots)? {
            untold.push(slot.sequence);
        }
    }
    if untold.is_empty() {
        untold.extend(group.iter().map(|slot| slot.sequence));
    }
    Ok(untold)
}

/// What became of a group.
enum Became {
    /// So many slots are free.
    Distilled(u32),
    /// Nothing came of it.
    Same,
    /// A copy would save nothing.
    Dense,
    /// What is wanted of these cannot be told.
    Untold(Vec<Sequence>),
    /// Their turn has not come, another is at work, or a purge; or not all can be looked into.
    Later,
}

impl Follow<'_> {
    /// Distils what is due; whether something is left that may become due, or why there is no going on. Where something waits few
    /// slots are distilled, too.
    pub(super) fn distil(
        &mut self,
        evaluator: &mut Evaluator,
        out: &mut Out,
    ) -> Result<ControlFlow<Failure, bool>> {
        if self.looked.is_some_and(|looked| looked.elapsed() < DISTIL) {
            return Ok(ControlFlow::Continue(true));
        }
        self.looked = Some(Instant::now());
        let mut reader = session::open(self.path)?;
        let open = reader.status().map_err(|error| link(&error))?.ring;
        let (slot_bytes, open) = (open.slot_bytes.0, Age(open.sequence.0));
        let holds = reader.holds().map_err(|error| link(&error))?;
        reader.learn_times().map_err(|error| link(&error))?;
        let slots = reader.slots().map_err(|error| link(&error))?;
        // Others may have found something in streams that are new.
        evaluator.learn(&reader.streams().map_err(|error| link(&error))?)?;
        drop(reader);
        let Some(mine) = holds.iter().find(|hold| hold.id == self.id) else {
            // Whoever asks for more of it is told.
            if let Some(waiting) = &mut self.waiting {
                waiting.asked = false;
            }
            return Ok(ControlFlow::Continue(false));
        };
        let last = !self.standing && evaluator.is_done();
        let mut groups = distil::groups(self.id, &holds, &slots, open);
        let again = |at: Age| at.0 + slots.len() as u64 / AGAIN <= open.0;
        self.tried.retain(|_, at| !again(*at));
        self.dense.retain(|sequence, then| *then == holder_ids(&holds, *sequence));
        for group in &mut groups {
            group.slots.retain(|slot| self.may_be_taken(slot.sequence, mine, evaluator));
        }
        let mut freed = 0;
        let now = last || self.waiting.is_some();
        groups.retain(|group| group.is_due(mine, now, &self.tried));
        for group in &groups {
            match self.one(evaluator, &holds, (&group.slots, &slots), slot_bytes, out)? {
                ControlFlow::Break(refused) => return Ok(ControlFlow::Break(refused)),
                ControlFlow::Continue(Became::Distilled(slots)) => {
                    freed += slots;
                    // Not all of them may be of this hold.
                    self.keeps = None;
                }
                ControlFlow::Continue(Became::Later) => {}
                // For a hold that grows no more nothing else will come to them.
                ControlFlow::Continue(Became::Same) if !last => {
                    self.tried.extend(group.originals().map(|sequence| (sequence, open)));
                }
                ControlFlow::Continue(Became::Same | Became::Dense) => {
                    let dense = group.originals().map(|sequence| (sequence, holder_ids(&holds, sequence)));
                    self.dense.extend(dense);
                }
                ControlFlow::Continue(Became::Untold(slots)) => {
                    let whole = slots.into_iter().map(|sequence| (sequence, holder_ids(&holds, sequence)));
                    self.dense.extend(whole);
                }
            }
        }
        let stays = |sequence| self.dense.contains_key(&sequence) || self.damaged.contains(&sequence);
        let is_stuck = |sequence| stays(sequence) || self.tried.contains_key(&sequence);
        let left = distil::is_left(self.id, &holds, &slots, &stays);
        let may_go = distil::is_left(self.id, &holds, &slots, &is_stuck);
        if let Some(waiting) = &mut self.waiting {
            let nothing_left = freed == 0 && !may_go;
            if nothing_left && self.room == Room::None {
                let full = waiting.full;
                return Ok(ControlFlow::Break(self.spent(full)));
            }
            (waiting.asked, self.room) = (false, if nothing_left { Room::None } else { Room::Short });
            // There may be room by now, and what waits has no time to lose.
            self.looked = self.looked.filter(|_| freed == 0 && !nothing_left);
        }
        Ok(ControlFlow::Continue(left))
    }

    /// Whether a slot that holds keep may be distilled now.
    fn may_be_taken(&self, sequence: Sequence, mine: &HoldStatus, evaluator: &Evaluator) -> bool {
        if self.dense.contains_key(&sequence) || self.damaged.contains(&sequence) {
            return false;
        }
        // What nobody has looked at yet is not gone, nor is what waits for room: it would be taken for that.
        let is_looked_at = !self.standing || sequence < evaluator.looked_before();
        match &self.waiting {
            Some(waiting) if !distil::keeps(mine, sequence) => {
                is_looked_at && !distil::within(&waiting.sequences, sequence)
            }
            Some(_) => true,
            None => is_looked_at,
        }
    }

    /// Distils a group of all slots.
    fn one(
        &mut self,
        evaluator: &Evaluator,
        holds: &[HoldStatus],
        (group, slots): (&[SlotStatus], &[SlotStatus]),
        slot_bytes: u64,
        out: &mut Out,
    ) -> Result<ControlFlow<Failure, Became>> {
        let (originals, bytes) = match evaluator.keep(holds, group, slots)? {
            Kept::These(originals, bytes) => (originals, bytes),
            Kept::Unseen(damaged) => {
                for slot in damaged {
                    if self.damaged.insert(slot) {
                        warn(&format_args!(
                            "sequence {slot} is damaged and stays whole; `holdfast check` says where"
                        ));
                    }
                }
                return Ok(ControlFlow::Continue(Became::Later));
            }
            Kept::Untold(hold, why) => {
                if self.untold.insert(hold) {
                    warn(&format_args!(
                        "what hold {hold} wants cannot be told of some slots that it keeps, and these stay whole: {why}"
                    ));
                }
                let untold = untold(evaluator, hold, holds, (group, slots))?;
                return Ok(ControlFlow::Continue(Became::Untold(untold)));
            }
        };
        if bytes > slot_bytes * group.len() as u64 / 10 * 8 {
            return Ok(ControlFlow::Continue(Became::Dense));
        }
        let of = |originals: &[Original]| {
            Order::Distil(DistilRequest { hold: self.id, originals: originals.to_vec() })
        };
        let order = of(&wish::within_an_order(originals, &|originals| orders::fits(&of(originals))));
        let (originals, copies, elements, bytes) = match orders::ask(self.path, &order)? {
            Outcome::Distilled { due: 0, .. } | Outcome::Refused(Refusal::Busy(_)) => {
                return Ok(ControlFlow::Continue(Became::Later));
            }
            Outcome::Distilled { originals, copies, elements, bytes, .. } => {
                (originals, copies, elements, bytes)
            }
            Outcome::Refused(refusal) => return Ok(ControlFlow::Break(session::refused(&refusal))),
            other => return Ok(ControlFlow::Break(orders::unexpected(&other))),
        };
        if originals == 0 {
            // Where others have come to keep some of them meanwhile it was not all that was asked for.
            let later = session::open(self.path)?.holds().map_err(|error| link(&error))?;
            let is_same =
                |slot: &SlotStatus| holder_ids(&later, slot.sequence) == holder_ids(holds, slot.sequence);
            let became = if group.iter().all(is_same) { Became::Same } else { Became::Later };
            return Ok(ControlFlow::Continue(became));
        }
        let (id, at) = (self.id.0, session::now());
        if out.is_json() {
            out.object(&Distilled { id, at, originals, copies, elements, bytes })?;
        } else {
            out.line(format_args!(
                "{}: {} distilled into {copies}: {} ({})",
                times::to_the_second(at),
                counted(originals.into(), "slot"),
                counted(elements, "element"),
                ByteSize(bytes)
            ))?;
        }
        Ok(ControlFlow::Continue(Became::Distilled(originals.saturating_sub(copies))))
    }
}
