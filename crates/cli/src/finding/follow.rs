//! A hold that goes on: turn by turn it is extended by what was found, and what is due is distilled.

use super::evaluator::Evaluator;
use super::fit::{Fit, Full, Runs, without};
use super::wish::Kept;
use super::{Shown, distil, warn, wish};
use crate::failure::{Failure, Result};
use crate::out::{Out, counted};
use crate::session::{self, link};
use crate::{orders, show, sql, times};
use holdfast_base::{Age, ByteSize, HoldId, Sequence, Timestamp};
use holdfast_ring::{
    DistilRequest, ExtendRequest, HoldStatus, Order, Original, Outcome, Refusal, SlotStatus,
};
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
    sent: Runs,
    /// When it was put on record last up to where streams have been looked through.
    said: Instant,
    /// When slots were looked at last for what can be distilled.
    looked: Option<Instant>,
    /// Slots that stay whole, since a copy would save nothing as long as these holds keep them.
    dense: HashMap<Sequence, Vec<HoldId>>,
    /// Slots of which nothing was distilled, and which one was open then.
    tried: HashMap<Sequence, Age>,
    /// Holds of which nobody can tell what they want: what they keep stays whole.
    untold: HashSet<HoldId>,
    /// Slots that could not be looked into, and stay whole.
    damaged: HashSet<Sequence>,
    /// What was found and has no room, until it does: nothing else is looked for meanwhile.
    waiting: Option<Waiting>,
    /// What is said of that.
    room: Room,
    /// Slots of what was found that expired before they were held.
    missed: u64,
    /// Elements that were found and are not told yet.
    found: u64,
    /// Slots that it keeps, and that it may still take, where that is known.
    keeps: Option<(u32, u32)>,
}

/// Whether there is room for all that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Room {
    Enough,
    /// Not for all, since something was last held in full: that was told.
    Short,
    /// Nothing is left to be distilled, and what waits has got no room since. Others may have distilled what is in the way, and so it
    /// is asked for once more.
    None,
}

/// What waits for slots of its hold to be distilled.
struct Waiting {
    sequences: Runs,
    full: Full,
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
    fit: Fit,
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
            dense: HashMap::new(),
            tried: HashMap::new(),
            untold: HashSet::new(),
            damaged: HashSet::new(),
            waiting: None,
            room: Room::Enough,
            missed: 0,
            found: 0,
            keeps: None,
        }
    }

    /// So much of what was found is held, and so many slots of it were gone; the rest waits.
    pub(super) fn begin(
        &mut self,
        fit: Fit,
        (slots, left): (u32, u32),
        missed: u64,
        evaluator: &mut Evaluator,
    ) {
        self.missed += missed;
        self.keeps = Some((slots, left));
        self.settle(fit, evaluator);
    }

    /// Until it is interrupted, or all that was to come has come.
    pub(super) fn run(mut self, mut evaluator: Evaluator, out: &mut Out) -> Result<()> {
        let end = session::interruption()?;
        let mut trouble: Option<Failure> = None;
        let mut undistilled = self.distil;
        while self.standing || !evaluator.is_done() || undistilled {
            out.flush().map_err(|failure| self.unheard(failure))?;
            std::thread::sleep(TURN);
            let ending = end.load(Ordering::Relaxed);
            let turned = self.turn(&mut evaluator, ending, out);
            let turned = match turned {
                Ok(ControlFlow::Continue(())) if self.distil && !ending => {
                    self.distil(&mut evaluator, out).map(|done| done.map_continue(|left| undistilled = left))
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
                if self.standing || undistilled || evaluator.is_done() {
                    return Ok(());
                }
                return Err(Failure::failed(
                    "it was interrupted before all had arrived that --after asks for: what came until then is held",
                )
                .at_path(self.path));
            }
        }
        if self.distil {
            // Without it whoever goes on looks once more for what there is.
            let _ = self.extend(&evaluator, &[]);
        }
        if self.missed > 0 {
            return Err(Failure::failed(format_args!(
                "{} with something that was found expired before there was room to hold them",
                counted(self.missed, "slot")
            ))
            .at_path(self.path));
        }
        Ok(())
    }

    /// Whoever has closed the output of a hold that goes on may take it for one that does.
    fn unheard(&self, failure: Failure) -> Failure {
        if failure.number() != 0 {
            return failure;
        }
        let (id, ring) = (self.id, self.path.display());
        let failure = Failure::failed(format_args!(
            "nobody reads what is said of hold {id} any more, and so it is not gone on with"
        ));
        if !self.standing && !self.distil {
            // There is no going on with such a one.
            return failure;
        }
        failure
            .advice(format_args!("`holdfast hold {ring} --resume {id}` does, with its output somewhere else"))
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
        // It waits on until there is an answer.
        let sequences = if let Some(waiting) = &self.waiting {
            waiting.sequences.clone()
        } else {
            let turn = evaluator.turn(session::now())?;
            if !self.standing {
                evaluator.stop_looking();
            }
            if let Err(failure) = sql::told(&turn.missed) {
                warn(&failure);
            }
            for unseen in &turn.unseen {
                warn(unseen);
            }
            self.found += turn.elements;
            turn.sequences
        };
        let news = self.waiting.is_some() || (sequences != self.sent && !sequences.is_empty());
        // What is in slots that it keeps already takes no order.
        if !news
            && !ending
            && self.said.elapsed() < MARK
            && let Some((slots, left)) = self.keeps
        {
            self.tell(&Extended { added: 0, slots, left, missed: 0 }, out)?;
            evaluator.is_held();
            return Ok(ControlFlow::Continue(()));
        }
        let Fitted { extended, fit } = match self.extend(evaluator, &sequences)? {
            ControlFlow::Continue(fitted) => fitted,
            ControlFlow::Break(refused) => return Ok(ControlFlow::Break(refused)),
        };
        if let Some(extended) = &extended {
            self.said = Instant::now();
            self.missed += u64::from(extended.missed);
            if extended.added > 0 && self.room == Room::None {
                self.room = Room::Short;
            }
            self.keeps = Some((extended.slots, extended.left));
            self.tell(extended, out)?;
        }
        if let Some(full) = fit.full.filter(|_| !self.distil) {
            return Ok(ControlFlow::Break(self.spent(full)));
        }
        self.settle(fit, evaluator);
        Ok(ControlFlow::Continue(()))
    }

    /// What has room is held, and what has none waits.
    fn settle(&mut self, fit: Fit, evaluator: &mut Evaluator) {
        let Some(full) = fit.full else {
            evaluator.is_held();
            (self.sent, self.waiting) = (fit.wanted, None);
            // What expired while it waited has got no room.
            if self.room == Room::Short {
                self.room = Room::Enough;
            }
            return;
        };
        evaluator.are_held(&fit.wanted);
        if self.room == Room::Enough {
            (self.looked, self.room) = (None, Room::Short);
            let (id, others) =
                (self.id, "waits until slots of the hold are distilled, when their turn to expire has come");
            let why = match full {
                Full::Quota(quota) => {
                    format!("the quota of hold {id} ({}) is spent", counted(quota.into(), "slot"))
                }
                Full::Ring => format!("there is no room for all of hold {id}"),
            };
            warn(&format_args!("{why}: what else is found {others}; what expires before that is told"));
        }
        self.waiting = Some(Waiting { sequences: fit.rest, full, asked: true });
    }

    /// Extends the hold by what is there of these slots. Where there is no room for all of them it takes the oldest, if there may
    /// be room for the others later.
    fn extend(
        &self,
        evaluator: &Evaluator,
        sequences: &[(Sequence, Sequence)],
    ) -> Result<ControlFlow<Failure, Fitted>> {
        let mut fit = Fit::all(sequences);
        loop {
            let order = Order::Extend(ExtendRequest {
                hold: self.id,
                // What it keeps already may have been distilled since it was looked at, and is not missed.
                sequences: orders::gathered(without(&fit.wanted, &self.sent)),
                watermarks: evaluator.watermarks(&fit),
            });
            match orders::ask(self.path, &order)? {
                Outcome::Extended { added, slots, left, missed } => {
                    let extended = Some(Extended { added, slots, left, missed });
                    return Ok(ControlFlow::Continue(Fitted { extended, fit }));
                }
                Outcome::Refused(refusal)
                    if (self.distil || matches!(refusal, Refusal::Quota { .. }))
                        && fit.takes_less(&refusal, self.standing) =>
                {
                    if fit.wanted.is_empty() {
                        return Ok(ControlFlow::Continue(Fitted { extended: None, fit }));
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

    /// Why a hold ends that has no room, and how to go on.
    fn spent(&self, full: Full) -> Failure {
        let (id, ring) = (self.id, self.path.display());
        let why = match full {
            Full::Quota(quota) => {
                format!("the quota of hold {id} ({}) is spent", counted(quota.into(), "slot"))
            }
            Full::Ring => format!("there is no room for all that was found for hold {id}"),
        };
        let (more, or) = if self.distil {
            (", and nothing more of it can be distilled", "")
        } else {
            ("", " or with --distil")
        };
        let failure = Failure::failed(format_args!("{why}{more}")).at_path(self.path);
        match full {
            Full::Quota(_) => failure.advice(format_args!(
                "what it keeps stays held; to go on, hold the same with a larger --quota (such as 20%){or}, then \
                 `holdfast release {ring} {id}`"
            )),
            Full::Ring => failure.advice(format_args!(
                "what it keeps stays held; release another hold or grow the ring, and go on with `holdfast hold {ring} \
                 --resume {id}`"
            )),
        }
    }

    /// Says what came to be held, if there is anything to say.
    fn tell(&mut self, extended: &Extended, out: &mut Out) -> Result<()> {
        let Extended { added, slots, left, missed } = *extended;
        let elements = std::mem::take(&mut self.found);
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

/// The holds that keep a slot.
fn holder_ids(holds: &[HoldStatus], sequence: Sequence) -> Vec<HoldId> {
    distil::holders(holds, sequence).map(|hold| hold.id).collect()
}

/// What became of a group.
enum Became {
    /// So many slots are free.
    Distilled(u32),
    /// Nothing came of it.
    Same,
    /// A copy would save nothing.
    Dense,
    /// Their turn has not come, another is at work, or a purge; or not all can be looked into.
    Later,
}

impl Follow<'_> {
    /// Distils what is due; whether something is left that may become due, or why there is no going on. Where something waits few
    /// slots are distilled, too.
    fn distil(&mut self, evaluator: &mut Evaluator, out: &mut Out) -> Result<ControlFlow<Failure, bool>> {
        if self.looked.is_some_and(|looked| looked.elapsed() < DISTIL) {
            return Ok(ControlFlow::Continue(true));
        }
        self.looked = Some(Instant::now());
        let mut reader = session::open(self.path)?;
        let open = reader.status().map_err(|error| link(&error))?.ring;
        let (slot_bytes, open) = (open.slot_bytes.0, Age(open.sequence.0));
        let mut holds = reader.holds().map_err(|error| link(&error))?;
        for hold in holds.iter_mut().filter(|hold| self.untold.contains(&hold.id)) {
            hold.finding = None;
        }
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
        let (originals, bytes) = match evaluator.keep(self.id, holds, group, slots)? {
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
                        "what hold {hold} wants cannot be told, and slots that it keeps stay whole: {why}"
                    ));
                }
                return Ok(ControlFlow::Continue(Became::Later));
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
