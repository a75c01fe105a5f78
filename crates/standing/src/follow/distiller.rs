//! Distiller of a hold: a pass over its due slots, together with other holds that keep the same slots.

use super::AGAIN;
use crate::retention_set::{self, Kept};
use crate::{distil_groups, tolerant_search};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Age, HoldId, Sequence};
use holdfast_client::Notices;
use holdfast_client::json::DistilledSlots;
use holdfast_client::orders;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::sql::Sql;
use holdfast_query::Limits;
use holdfast_query::stream::SkippedData;
use holdfast_ring::{DistilRequest, HoldStatus, Order, Original, Outcome, Refusal, SlotStatus, StreamStatus};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::PathBuf;

/// How far the hold is when a pass begins.
#[derive(Clone, Debug)]
pub(crate) struct Brief {
    pub(crate) standing: bool,
    /// Nothing more comes to it.
    pub(crate) last: bool,
    /// Before this slot all has been looked at.
    pub(crate) looked_before: Sequence,
    /// What was found and waits for room: few slots are distilled for it, too.
    pub(crate) waiting: Option<Vec<(Sequence, Sequence)>>,
}

/// What a pass came to.
#[derive(Debug)]
pub(crate) struct Passed {
    /// Slots that are free now.
    pub(crate) freed: u32,
    /// Whether something is left that may become due; whether some of it may be now.
    pub(crate) left: bool,
    pub(crate) may_go: bool,
    /// What came in the way of the first that could not be tried.
    pub(crate) trouble: Option<Failure>,
}

/// What became of a group.
enum Became {
    /// So many slots are free.
    Distilled(u32),
    /// Nothing came of these.
    Same(Vec<Sequence>),
    /// These stay whole: a copy would save nothing, or what is wanted of them cannot be told.
    Whole(Vec<Sequence>),
    /// Their turn has not come, another is at work, or a purge; or not all can be looked into.
    Later,
}

/// What there is to distil.
struct There<'a> {
    holds: &'a [HoldStatus],
    slots: &'a [SlotStatus],
    slot_bytes: u64,
    looked_before: Sequence,
    /// Slots with matches that are not held for lack of room.
    waiting: &'a [(Sequence, Sequence)],
}

/// Distils for one hold, and keeps in mind of what nothing came.
pub(crate) struct Distiller {
    path: PathBuf,
    id: HoldId,
    notices: Notices,
    /// With the streams that it knows.
    engine: Option<(Sql, Vec<StreamStatus>)>,
    /// Slots that stay whole as long as these holds keep them: a copy would save nothing, or what they want cannot be told.
    whole: HashMap<Sequence, Vec<HoldId>>,
    /// Slots of which nothing was distilled, and which one was open then.
    tried: HashMap<Sequence, Age>,
    /// Holds of which it was told that it cannot be told of all their slots what they want.
    untold: HashSet<HoldId>,
    /// Slots that could not be looked into, and stay whole.
    damaged: HashSet<Sequence>,
}

/// The holds that keep a slot.
fn holder_ids(holds: &[HoldStatus], sequence: Sequence) -> Vec<HoldId> {
    distil_groups::holders(holds, sequence).map(|hold| hold.id).collect()
}

impl Distiller {
    pub(crate) fn new(path: PathBuf, id: HoldId, notices: Notices) -> Self {
        Self {
            path,
            id,
            notices,
            engine: None,
            whole: HashMap::new(),
            tried: HashMap::new(),
            untold: HashSet::new(),
            damaged: HashSet::new(),
        }
    }

    /// Distils what is due, as long as nobody says that it is `over`; why there is no going on, if so.
    pub(crate) fn pass(
        &mut self,
        brief: &Brief,
        over: &dyn Fn() -> bool,
        tell: &dyn Fn(DistilledSlots),
    ) -> Result<ControlFlow<Failure, Passed>> {
        let mut reader = session::open(&self.path)?;
        let open = reader.status().map_err(|error| ring_failure(&error))?.ring;
        let (slot_bytes, open) = (open.slot_bytes.0, Age(open.sequence.0));
        let holds = reader.holds().map_err(|error| ring_failure(&error))?;
        reader.learn_times().map_err(|error| ring_failure(&error))?;
        let slots = reader.slots().map_err(|error| ring_failure(&error))?;
        // Others may have found something in streams that are new.
        self.learn(reader.streams().map_err(|error| ring_failure(&error))?)?;
        drop(reader);
        let Some(mine) = holds.iter().find(|hold| hold.id == self.id) else {
            // Whoever asks for more of it is told.
            return Ok(ControlFlow::Continue(Passed { freed: 0, left: false, may_go: true, trouble: None }));
        };
        let mut groups = distil_groups::groups(self.id, &holds, &slots, open);
        let again = |at: Age| at.0 + slots.len() as u64 / AGAIN <= open.0;
        self.tried.retain(|_, at| !again(*at));
        self.whole.retain(|sequence, then| *then == holder_ids(&holds, *sequence));
        for group in &mut groups {
            group.slots.retain(|slot| self.may_be_taken(slot.sequence, mine, brief));
        }
        let now = brief.last || brief.waiting.is_some();
        groups.retain(|group| group.is_due(mine, now, &self.tried));
        let waiting = brief.waiting.as_deref().unwrap_or_default();
        let looked_before = brief.looked_before;
        let there = There { holds: &holds, slots: &slots, slot_bytes, looked_before, waiting };
        let (mut freed, mut trouble) = (0, None);
        for group in &groups {
            if over() {
                break;
            }
            let became = match self.one(&there, &group.slots, tell) {
                Ok(ControlFlow::Continue(became)) => became,
                Ok(ControlFlow::Break(refused)) => return Ok(ControlFlow::Break(refused)),
                // Later again; others may be distilled all the same.
                Err(failure) => {
                    trouble.get_or_insert(failure);
                    continue;
                }
            };
            match became {
                Became::Distilled(slots) => freed += slots,
                Became::Later => {}
                // For a hold that grows no more nothing else will come to them.
                Became::Same(slots) if !brief.last => {
                    self.tried.extend(slots.into_iter().map(|sequence| (sequence, open)));
                }
                Became::Same(slots) | Became::Whole(slots) => {
                    let whole = slots.into_iter().map(|sequence| (sequence, holder_ids(&holds, sequence)));
                    self.whole.extend(whole);
                }
            }
        }
        let stays = |sequence| self.whole.contains_key(&sequence) || self.damaged.contains(&sequence);
        let is_stuck = |sequence| stays(sequence) || self.tried.contains_key(&sequence);
        let left = distil_groups::is_left(self.id, &holds, &slots, &stays);
        let may_go = distil_groups::is_left(self.id, &holds, &slots, &is_stuck);
        Ok(ControlFlow::Continue(Passed { freed, left, may_go, trouble }))
    }

    /// Sets the engine up anew where streams or their attributes have changed.
    fn learn(&mut self, streams: Vec<StreamStatus>) -> Result<()> {
        if self.engine.as_ref().is_none_or(|(_, known)| !tolerant_search::is_the_same(known, &streams)) {
            self.engine = Some((tolerant_search::engine(&self.path, &Limits::default())?, streams));
        }
        Ok(())
    }

    /// Whether a slot that holds keep may be distilled now.
    fn may_be_taken(&self, sequence: Sequence, mine: &HoldStatus, brief: &Brief) -> bool {
        if self.whole.contains_key(&sequence) || self.damaged.contains(&sequence) {
            return false;
        }
        // What nobody has looked at yet is not gone, nor is what waits for room: it would be taken for that.
        let is_looked_at = !brief.standing || sequence < brief.looked_before;
        match &brief.waiting {
            Some(waiting) if !distil_groups::keeps(mine, sequence) => {
                is_looked_at && !distil_groups::within(waiting, sequence)
            }
            Some(_) => true,
            None => is_looked_at,
        }
    }

    /// What of a group of all slots the holds keep that keep some of it.
    fn keep(&self, there: &There<'_>, group: &[SlotStatus]) -> Result<Kept> {
        let Some((sql, known)) = &self.engine else { return Ok(Kept::Unseen(BTreeSet::new())) };
        sql.engine.diagnostics.take();
        // How far others have looked is known to them.
        let shared = there.holds.iter().filter(|hold| distil_groups::keeps_of(hold, group)).count() > 1;
        let looked = if shared { Sequence(0) } else { there.looked_before };
        let going_on = distil_groups::going_on(group, there.slots, there.waiting, looked);
        let kept = retention_set::keep(sql, known, there.holds, (group, &going_on))?;
        let missed = sql.engine.diagnostics.take();
        Ok(if missed == SkippedData::default() { kept } else { Kept::Unseen(missed.slots) })
    }

    /// The slots of a group of which alone it cannot be told what a hold wants.
    fn untold(&self, hold: HoldId, there: &There<'_>, group: &[SlotStatus]) -> Result<Vec<Sequence>> {
        let of_hold = there.holds.iter().find(|other| other.id == hold);
        let mut untold = Vec::new();
        for slot in
            group.iter().filter(|slot| of_hold.is_some_and(|hold| distil_groups::keeps(hold, slot.sequence)))
        {
            if let Kept::Untold(..) = self.keep(there, std::slice::from_ref(slot))? {
                untold.push(slot.sequence);
            }
        }
        Ok(untold)
    }

    /// Says why slots do, of each hold once.
    fn stays_whole(&mut self, hold: HoldId, why: &Failure) {
        if self.untold.insert(hold) {
            self.notices.tell(format_args!(
                "what hold {hold} wants cannot be told of some slots that it keeps, and these stay whole: {why}"
            ));
        }
    }

    /// Distils a group of all slots.
    fn one(
        &mut self,
        there: &There<'_>,
        group: &[SlotStatus],
        tell: &dyn Fn(DistilledSlots),
    ) -> Result<ControlFlow<Failure, Became>> {
        let fewer = (group.len() > 1).then(|| &group[..group.len() / 2]);
        let of_group = || distil_groups::originals(group).collect();
        let (originals, bytes) = match self.keep(there, group)? {
            Kept::These(originals, bytes) => (originals, bytes),
            Kept::Unseen(damaged) => {
                for slot in damaged {
                    if self.damaged.insert(slot) {
                        self.notices.tell(format_args!(
                            "sequence {slot} is damaged and stays whole; `holdfast check` says where"
                        ));
                    }
                }
                return Ok(ControlFlow::Continue(Became::Later));
            }
            Kept::Untold(hold, why) => {
                let untold = self.untold(hold, there, group)?;
                // Of each alone it can be told, if not of all at once.
                if let Some(fewer) = fewer.filter(|_| untold.is_empty()) {
                    return self.one(there, fewer, tell);
                }
                self.stays_whole(hold, &why);
                return Ok(ControlFlow::Continue(Became::Whole(untold)));
            }
            // Of one it is too much for good.
            Kept::TooMuch(hold, why) => {
                if let Some(fewer) = fewer {
                    return self.one(there, fewer, tell);
                }
                self.stays_whole(hold, &why);
                return Ok(ControlFlow::Continue(Became::Whole(of_group())));
            }
        };
        if bytes > there.slot_bytes * group.len() as u64 / 10 * 8 {
            return Ok(ControlFlow::Continue(Became::Whole(of_group())));
        }
        let of = |originals: &[Original]| {
            Order::Distil(DistilRequest { hold: self.id, originals: originals.to_vec() })
        };
        let order = of(&retention_set::within_an_order(originals, &|originals| orders::fits(&of(originals))));
        let (originals, copies, elements, bytes) = match orders::ask(&self.path, &order, &self.notices)? {
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
            let later = session::open(&self.path)?.holds().map_err(|error| ring_failure(&error))?;
            let is_same = |slot: &SlotStatus| {
                holder_ids(&later, slot.sequence) == holder_ids(there.holds, slot.sequence)
            };
            let became = if group.iter().all(is_same) { Became::Same(of_group()) } else { Became::Later };
            return Ok(ControlFlow::Continue(became));
        }
        tell(DistilledSlots { id: self.id.0, at: session::now(), originals, copies, elements, bytes });
        Ok(ControlFlow::Continue(Became::Distilled(originals.saturating_sub(copies))))
    }
}
