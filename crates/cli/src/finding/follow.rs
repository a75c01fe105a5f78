//! A hold that goes on: turn by turn it is extended by what was found, and what is due is distilled.

use super::distil::Group;
use super::evaluator::{Evaluator, Turn};
use super::{Shown, distil, warn};
use crate::failure::{Failure, Result};
use crate::out::{Out, counted};
use crate::session::{self, link};
use crate::{orders, show, sql, times};
use holdfast_base::{Age, ByteSize, HoldId, Sequence, Timestamp};
use holdfast_ring::{DistilRequest, ExtendRequest, HoldStatus, Order, Outcome, Refusal, SlotStatus};
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// From one turn to the next.
const TURN: Duration = Duration::from_millis(250);
/// How often slots are looked at for what can be distilled.
const DISTIL: Duration = Duration::from_secs(2);
/// How long what was looked through may be looked through again after a restart.
const MARK: Duration = Duration::from_secs(10);
/// What brought nothing is tried again when such a part of all slots has been written: something else may have been in the way.
const AGAIN: u64 = 8;

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

/// A hold that goes on being extended.
pub(super) struct Follow<'a> {
    path: &'a Path,
    id: HoldId,
    standing: bool,
    distil: bool,
    /// What is held of all that is not finished with.
    sent: Vec<(Sequence, Sequence)>,
    /// When it was put on record last up to where streams have been looked through.
    said: Instant,
    /// When slots were looked at last for what can be distilled.
    looked: Option<Instant>,
    /// Slots that stay whole: a copy would save nothing.
    dense: HashSet<Sequence>,
    /// Groups of which nothing was distilled, and which slot was open then.
    tried: HashMap<Vec<Sequence>, Age>,
    /// What was found and does not fit into the quota, until it does: nothing else is looked for meanwhile.
    waiting: Option<Waiting>,
    /// Whether something has waited since all that was found was held.
    has_waited: bool,
}

/// What waits for slots of its hold to be distilled.
struct Waiting {
    turn: Turn,
    quota: u32,
    /// Nothing was distilled since it was asked for.
    asked: bool,
}

/// What a hold came to keep.
struct Extended {
    added: u32,
    slots: u32,
    left: u32,
    missed: u32,
}

/// What of it had room.
struct Fitted {
    extended: Option<Extended>,
    /// The quota, where it had no room for all.
    full: Option<u32>,
}

impl<'a> Follow<'a> {
    pub(super) fn new(path: &'a Path, id: HoldId, standing: bool, distil: bool) -> Self {
        Self {
            path,
            id,
            standing,
            distil,
            sent: Vec::new(),
            said: Instant::now(),
            looked: None,
            dense: HashSet::new(),
            tried: HashMap::new(),
            waiting: None,
            has_waited: false,
        }
    }

    /// Of which these are held.
    pub(super) fn with(self, sent: Vec<(Sequence, Sequence)>) -> Self {
        Self { sent, ..self }
    }

    /// Until it is interrupted, or all that was to come has come.
    pub(super) fn run(mut self, mut evaluator: Evaluator, out: &mut Out) -> Result<()> {
        let end = session::interruption()?;
        let mut trouble: Option<Failure> = None;
        let mut undistilled = self.distil;
        while self.standing || !evaluator.is_done() || undistilled {
            out.flush()?;
            std::thread::sleep(TURN);
            let ending = end.load(Ordering::Relaxed);
            let turned = self.turn(&mut evaluator, ending, out);
            let turned = match turned {
                Ok(ControlFlow::Continue(())) if self.distil && !ending => {
                    self.distil(&evaluator, out).map(|done| done.map_continue(|left| undistilled = left))
                }
                turned => turned,
            };
            match turned {
                Ok(ControlFlow::Continue(())) => trouble = None,
                Ok(ControlFlow::Break(refused)) => return Err(refused),
                Err(failure) if ending => return Err(failure),
                // The recorder ends, or another begins.
                Err(failure) => {
                    if trouble.as_ref() != Some(&failure) {
                        warn(&failure);
                    }
                    trouble = Some(failure);
                }
            }
            if ending {
                if (self.standing || undistilled) && !out.is_json() {
                    let (id, ring) = (self.id, self.path.display());
                    out.line(format_args!(
                        "hold {id} stands; `holdfast hold {ring} --resume {id}` goes on with it"
                    ))?;
                }
                return Ok(());
            }
        }
        Ok(())
    }

    /// One turn; why it was the last, if it was.
    fn turn(
        &mut self,
        evaluator: &mut Evaluator,
        ending: bool,
        out: &mut Out,
    ) -> Result<ControlFlow<Failure>> {
        if self.waiting.as_ref().is_some_and(|waiting| waiting.asked || ending) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut turn = if let Some(waiting) = self.waiting.take() {
            waiting.turn
        } else {
            let turn = evaluator.turn(session::now())?;
            if let Err(failure) = sql::told(&turn.missed) {
                warn(&failure);
            }
            turn.unseen.iter().for_each(|unseen| warn(unseen));
            turn
        };
        let news = turn.sequences != self.sent && !turn.sequences.is_empty();
        if !news && !ending && self.said.elapsed() < MARK {
            evaluator.is_held();
            return Ok(ControlFlow::Continue(()));
        }
        let Fitted { extended, full } = match self.extend(evaluator, &turn.sequences)? {
            ControlFlow::Continue(fitted) => fitted,
            ControlFlow::Break(refused) => return Ok(ControlFlow::Break(refused)),
        };
        if let Some(extended) = &extended {
            self.said = Instant::now();
            self.tell(turn.elements, extended, out)?;
            turn.elements = 0;
        }
        let Some(quota) = full else {
            evaluator.is_held();
            self.sent = turn.sequences;
            self.has_waited = false;
            return Ok(ControlFlow::Continue(()));
        };
        if !std::mem::replace(&mut self.has_waited, true) {
            self.looked = None;
            warn(&format_args!(
                "the quota of hold {} ({}) is spent: what else is found waits until slots of the hold are distilled, when \
                 their turn to expire has come; what expires before that is told",
                self.id,
                counted(quota.into(), "slot")
            ));
        }
        self.waiting = Some(Waiting { turn, quota, asked: true });
        Ok(ControlFlow::Continue(()))
    }

    /// Extends the hold by what is there of these slots. Where its quota has no room for all of them it takes the oldest, if
    /// there may be room for the others later.
    fn extend(
        &self,
        evaluator: &Evaluator,
        sequences: &[(Sequence, Sequence)],
    ) -> Result<ControlFlow<Failure, Fitted>> {
        let (mut wanted, mut full) = (sequences.to_vec(), None);
        loop {
            let order = Order::Extend(ExtendRequest {
                hold: self.id,
                sequences: orders::gathered(wanted.clone()),
                watermarks: evaluator.watermarks(),
            });
            match orders::ask(self.path, &order)? {
                Outcome::Extended { added, slots, left, missed } => {
                    let extended = Extended { added, slots, left, missed };
                    return Ok(ControlFlow::Continue(Fitted { extended: Some(extended), full }));
                }
                Outcome::Refused(Refusal::Quota { quota, wanted: slots }) => {
                    if !self.distil {
                        return Ok(ControlFlow::Break(self.spent(quota)));
                    }
                    full = Some(quota);
                    without_last(&mut wanted, slots.saturating_sub(quota).max(1).into());
                    if wanted.is_empty() {
                        return Ok(ControlFlow::Continue(Fitted { extended: None, full }));
                    }
                }
                // A purge or copies under way: it is asked for again.
                Outcome::Refused(refusal @ (Refusal::Busy(_) | Refusal::NoRoom { .. })) => {
                    return Err(session::refused(&refusal));
                }
                Outcome::Refused(refusal) => return Ok(ControlFlow::Break(session::refused(&refusal))),
                other => return Ok(ControlFlow::Break(orders::unexpected(&other))),
            }
        }
    }

    /// Why a hold ends whose quota has no room, and how to go on.
    fn spent(&self, quota: u32) -> Failure {
        let (id, slots) = (self.id, counted(quota.into(), "slot"));
        let (what, or) = if self.distil {
            (
                format!("the quota of hold {id} ({slots}) is spent, and nothing more of it can be distilled"),
                "",
            )
        } else {
            (format!("the quota of hold {id} ({slots}) is spent"), " or with --distil")
        };
        Failure::failed(what).at_path(self.path).advice(format_args!(
            "what it keeps stays held; to go on, hold the same with a larger --quota (such as 20%){or}, then \
             `holdfast release {} {id}`",
            self.path.display()
        ))
    }

    /// Says what came to be held, if there is anything to say.
    fn tell(&self, elements: u64, extended: &Extended, out: &mut Out) -> Result<()> {
        let Extended { added, slots, left, missed } = *extended;
        if added == 0 && elements == 0 && missed == 0 {
            return Ok(());
        }
        let at = session::now();
        let left = self.standing.then_some(left);
        if out.is_json() {
            let id = self.id.0;
            return out.object(&Shown { id, at, elements, slots, added, missed, quota_left: left });
        }
        let left = left.map_or_else(String::new, |left| format!(", {left} of the quota left"));
        let gone = match missed {
            0 => String::new(),
            missed => format!("; {} expired before", counted(missed.into(), "slot")),
        };
        out.line(format_args!(
            "{}: {} found, {} more held, {slots} in all{left}{gone}",
            times::to_the_second(at),
            counted(elements, "element"),
            counted(added.into(), "slot"),
        ))
    }
}

/// What became of a group.
enum Became {
    /// So many slots are free.
    Distilled(u32),
    /// Nothing came of it.
    Same,
    /// A copy would save nothing.
    Dense,
    /// Another is at work, or a purge; or not all can be looked into.
    Later,
}

impl Follow<'_> {
    /// Distils what is due; whether something is left that may become due, or why there is no going on. Where the quota is spent
    /// few slots are distilled, too.
    fn distil(&mut self, evaluator: &Evaluator, out: &mut Out) -> Result<ControlFlow<Failure, bool>> {
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
        drop(reader);
        let last = !self.standing && evaluator.is_done();
        let (mut freed, mut stuck) = (0, HashSet::new());
        let mut groups = distil::groups(self.id, &holds, &slots, open);
        for group in &mut groups {
            group.slots.retain(|slot| !self.dense.contains(&slot.sequence));
        }
        let again = |at: &Age| at.0 + slots.len() as u64 / AGAIN <= open.0;
        let known: HashSet<Vec<Sequence>> = groups.iter().map(Group::sequences).collect();
        self.tried.retain(|group, at| known.contains(group) && !again(at));
        for group in groups.iter().filter(|group| group.is_due(last || self.waiting.is_some())) {
            let sequences = group.sequences();
            if self.tried.contains_key(&sequences) {
                stuck.extend(sequences);
                continue;
            }
            match self.one(evaluator, &group.slots, slot_bytes, out)? {
                ControlFlow::Break(refused) => return Ok(ControlFlow::Break(refused)),
                ControlFlow::Continue(Became::Distilled(slots)) => freed += slots,
                ControlFlow::Continue(Became::Later) => {}
                // For a hold that grows no more nothing else will come to them.
                ControlFlow::Continue(Became::Same) if !last => {
                    stuck.extend(sequences.iter().copied());
                    self.tried.insert(sequences, open);
                }
                ControlFlow::Continue(Became::Same | Became::Dense) => self.dense.extend(sequences),
            }
        }
        let mine = holds.iter().find(|hold| hold.id == self.id);
        let others: Vec<&HoldStatus> = holds.iter().filter(|hold| hold.id != self.id).collect();
        let left = |whole: &HashSet<Sequence>| {
            mine.is_some_and(|hold| distil::is_left(hold, &others, &slots, whole))
        };
        if let Some(waiting) = &mut self.waiting {
            stuck.extend(&self.dense);
            if freed == 0 && !left(&stuck) {
                let quota = waiting.quota;
                return Ok(ControlFlow::Break(self.spent(quota)));
            }
            waiting.asked = false;
        }
        Ok(ControlFlow::Continue(left(&self.dense)))
    }

    /// Distils a group.
    fn one(
        &self,
        evaluator: &Evaluator,
        group: &[SlotStatus],
        slot_bytes: u64,
        out: &mut Out,
    ) -> Result<ControlFlow<Failure, Became>> {
        let Some((originals, bytes)) = evaluator.keep(group)? else {
            return Ok(ControlFlow::Continue(Became::Later));
        };
        if bytes > slot_bytes * group.len() as u64 / 10 * 8 {
            return Ok(ControlFlow::Continue(Became::Dense));
        }
        let order = Order::Distil(DistilRequest { hold: self.id, originals });
        let (originals, copies, elements, bytes) = match orders::ask(self.path, &order)? {
            Outcome::Distilled { originals, copies, elements, bytes } => (originals, copies, elements, bytes),
            Outcome::Refused(Refusal::Busy(_)) => return Ok(ControlFlow::Continue(Became::Later)),
            Outcome::Refused(refusal) => return Ok(ControlFlow::Break(session::refused(&refusal))),
            other => return Ok(ControlFlow::Break(orders::unexpected(&other))),
        };
        if originals == 0 {
            return Ok(ControlFlow::Continue(Became::Same));
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

/// Takes so many of the youngest slots away.
fn without_last(sequences: &mut Vec<(Sequence, Sequence)>, mut count: u64) {
    while let Some((first, last)) = sequences.last_mut().filter(|_| count > 0) {
        let slots = last.0 - first.0 + 1;
        if slots > count {
            last.0 -= count;
            return;
        }
        count -= slots;
        sequences.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_the_youngest() {
        let without = |count| {
            let mut sequences =
                vec![(Sequence(3), Sequence(5)), (Sequence(9), Sequence(9)), (Sequence(20), Sequence(23))];
            without_last(&mut sequences, count);
            sequences.iter().map(|(first, last)| (first.0, last.0)).collect::<Vec<_>>()
        };
        assert_eq!(without(0), [(3, 5), (9, 9), (20, 23)]);
        assert_eq!(without(1), [(3, 5), (9, 9), (20, 22)]);
        assert_eq!(without(4), [(3, 5), (9, 9)]);
        assert_eq!(without(6), [(3, 4)]);
        assert_eq!(without(8), []);
        assert_eq!(without(9), []);
    }
}
