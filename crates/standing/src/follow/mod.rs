//! Follow-up of a condition hold: turn by turn it is extended by what was found, and what is due is distilled.

mod background;
mod distiller;
mod extensions;

pub(crate) use extensions::Extensions;

use crate::condition_hold::resumed;
use crate::evaluator::Evaluator;
use crate::fit::{Fit, Full, Runs, without};
use crate::observer::{Event, Observer};
use crate::tolerant_search::Failing;
use background::Background;
use distiller::Distiller;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{HoldId, Ordinal, Sequence, StreamId};
use holdfast_client::Notices;
use holdfast_client::json::{HoldProgress, UnseenElements};
use holdfast_client::orders;
use holdfast_client::session;
use holdfast_client::sql;
use holdfast_ring::{ExtendRequest, Order, Outcome, Refusal};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// From one turn to the next.
const TURN: Duration = Duration::from_millis(250);
/// How often slots are looked at for what can be distilled.
const DISTIL: Duration = Duration::from_secs(2);
/// How long what was looked through may be looked through again after a restart.
const MARK: Duration = Duration::from_secs(10);
/// What brought nothing is tried again when such a part of all slots has been written: something else may have been in the way.
const AGAIN: u64 = 8;

/// A hold that goes on being extended.
pub(crate) struct Follow<'a> {
    path: &'a Path,
    id: HoldId,
    standing: bool,
    notices: &'a Notices,
    /// Whether it has been interrupted.
    end: Arc<AtomicBool>,
    /// Whoever distils, where that is wanted.
    background: Option<Background>,
    /// What is found is given to whoever records.
    extensions: Extensions<'a>,
    /// Elements that were found, of whose slots it is not known yet whether they can be kept.
    found: u64,
    /// What is to be told when it would survive a crash, and what before that, of which this was asked.
    untold: News,
    unsure: News,
    /// Up to where all that was found in streams has been told.
    told_to: Vec<(StreamId, Ordinal)>,
    /// What is kept from expiring of all that is not finished with.
    sent: Runs,
    /// When it was put on record last up to where streams have been looked through.
    said: Instant,
    /// What was found and has no room, until it does: nothing else is looked for meanwhile.
    waiting: Option<Waiting>,
    /// What is said of that.
    room: Room,
    /// Slots of what was found that expired before they were held.
    missed: u64,
    /// What the condition failed of and is not told yet; when that was told last.
    failing: Vec<Failing>,
    told: Option<Instant>,
    /// Slots that it keeps, and that it may still take, where that is known; how many were told last.
    keeps: Option<(u32, u32)>,
    shown: Option<u32>,
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

/// What is to be told of turns.
#[derive(Clone, Debug, Default)]
struct News {
    /// Elements that were found.
    elements: u64,
    /// Slots that came to be held, and that were gone.
    added: u32,
    missed: u32,
    /// How far streams were looked through.
    to: Vec<(StreamId, Ordinal)>,
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
    /// By what is given over.
    pub(crate) fn new(
        extensions: Extensions<'a>,
        path: &'a Path,
        id: HoldId,
        (standing, distil): (bool, bool),
        notices: &'a Notices,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        let end = observer.interruption()?;
        let background = distil.then(|| {
            Background::begin(Distiller::new(path.to_owned(), id, notices.clone()), Arc::clone(&end))
        });
        Ok(Self {
            path,
            id,
            standing,
            notices,
            end,
            background,
            extensions,
            found: 0,
            untold: News::default(),
            unsure: News::default(),
            told_to: Vec::new(),
            sent: Vec::new(),
            said: Instant::now(),
            waiting: None,
            room: Room::Enough,
            missed: 0,
            failing: Vec::new(),
            told: None,
            keeps: None,
            shown: None,
        })
    }

    /// So much of what was found is held, and so many slots of it were gone; the rest waits.
    pub(crate) fn begin(
        &mut self,
        fit: Fit,
        (slots, left): (u32, u32),
        missed: u64,
        evaluator: &mut Evaluator,
    ) {
        self.missed += missed;
        (self.keeps, self.shown) = (Some((slots, left)), Some(slots));
        self.settle(fit, evaluator);
    }

    /// Until it is interrupted, or all that was to come has come.
    pub(crate) fn run(mut self, mut evaluator: Evaluator, observer: &mut dyn Observer) -> Result<()> {
        evaluator.pass_failing();
        self.told_to = evaluator.looked();
        let mut ended = self.go_on(&mut evaluator, observer);
        if ended.is_err() {
            // What was taken before may be told all the same.
            let _ = self.outlast(observer);
        }
        // What is begun is not left half done.
        ended = ended.and(self.distil(&evaluator, true, observer).map(drop));
        self.fails_of(Vec::new(), true);
        ended
    }

    fn go_on(&mut self, evaluator: &mut Evaluator, observer: &mut dyn Observer) -> Result<()> {
        let mut trouble: Option<Failure> = None;
        let distils = self.background.is_some();
        let mut undistilled = distils;
        while self.standing || !evaluator.is_done() || undistilled {
            let rested = self.rest(observer)?;
            let ending = self.end.load(Ordering::Relaxed);
            let mut turned = match rested {
                Ok(ControlFlow::Continue(())) => self.turn(evaluator, ending, observer),
                rested => rested,
            };
            // What has not been looked at again counts as not looked at.
            if distils && !self.extensions.is_lost() && !matches!(turned, Ok(ControlFlow::Break(_))) {
                let distilled = self.distil(evaluator, ending, observer);
                let distilled = distilled.map(|done| done.map_continue(|left| undistilled = left));
                turned = match distilled {
                    Ok(ControlFlow::Continue(())) => turned,
                    _ if turned.is_err() => turned,
                    distilled => distilled,
                };
            }
            match turned {
                Ok(ControlFlow::Continue(())) => trouble = None,
                Ok(ControlFlow::Break(refused)) => return Err(refused),
                Err(failure) if ending => return Err(failure),
                // The recorder ends, or another begins.
                Err(failure) => {
                    if trouble.as_ref() != Some(&failure) {
                        self.notices.tell(&failure);
                    }
                    trouble = Some(failure);
                }
            }
            if ending {
                if let ControlFlow::Break(refused) = self.outlast(observer)? {
                    return Err(refused);
                }
                if self.standing || undistilled {
                    observer.event(&Event::Left { id: self.id.0, ring: self.path })?;
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
        if distils {
            // Without it whoever goes on looks once more for what there is.
            let _ = self.extend(evaluator, &[]);
        }
        if let ControlFlow::Break(refused) = self.outlast(observer)? {
            return Err(refused);
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

    /// Until the next turn; what is heard meanwhile is told at once.
    fn rest(&mut self, observer: &mut dyn Observer) -> Result<Result<ControlFlow<Failure>>> {
        let begun = Instant::now();
        observer.flush()?;
        let heard = self.hear(TURN, observer);
        observer.flush()?;
        std::thread::sleep(TURN.saturating_sub(begun.elapsed()));
        Ok(heard)
    }

    /// Tells what would survive a crash by now, if that is heard within some time.
    fn hear(&mut self, within: Duration, observer: &mut dyn Observer) -> Result<ControlFlow<Failure>> {
        let Some(outcome) = self.extensions.hear(within)? else { return Ok(ControlFlow::Continue(())) };
        match outcome {
            Outcome::Extended { slots, left, .. } => {
                let news = std::mem::take(&mut self.unsure);
                if self.waiting.is_some() {
                    // No order tells until there is room.
                    self.keeps.get_or_insert((slots, left));
                }
                self.tell(news, (slots, left), observer)?;
                self.tell_or_ask(observer).map(ControlFlow::Continue)
            }
            Outcome::Refused(refusal) => Ok(ControlFlow::Break(session::refused(&refusal))),
            other => Ok(ControlFlow::Break(orders::unexpected(&other))),
        }
    }

    /// Tells what would survive a crash, and asks when the rest would.
    fn tell_or_ask(&mut self, observer: &mut dyn Observer) -> Result<()> {
        if self.extensions.is_lost() {
            // Nobody knows what of it would.
            return Ok(());
        }
        if self.extensions.ask()? {
            self.unsure = std::mem::take(&mut self.untold);
        }
        if self.extensions.is_sure()
            && let Some(keeps) = self.keeps
        {
            let news = std::mem::take(&mut self.untold);
            self.tell(news, keeps, observer)?;
        }
        Ok(())
    }

    /// Waits until all that was taken would survive a crash, and tells of it.
    fn outlast(&mut self, observer: &mut dyn Observer) -> Result<ControlFlow<Failure>> {
        let mut ended = ControlFlow::Continue(());
        self.tell_or_ask(observer)?;
        while !self.extensions.is_lost() && !self.extensions.is_sure() && ended.is_continue() {
            ended = self.hear(TURN, observer)?;
        }
        observer.flush()?;
        Ok(ended)
    }

    /// Looks again from where the hold is, for what a recorder had taken that may have ended with it; what was told is not told again.
    fn look_again(&mut self, evaluator: &mut Evaluator) -> Result<ControlFlow<Failure>> {
        (self.found, self.untold, self.unsure, self.keeps) = (0, News::default(), News::default(), None);
        self.extensions.begin()?;
        let mut again = match resumed(self.path, self.id)? {
            ControlFlow::Continue((_, again)) => again,
            ControlFlow::Break(gone) => return Ok(ControlFlow::Break(gone)),
        };
        again.pass_failing();
        again.follow(&self.told_to, evaluator);
        *evaluator = again;
        self.extensions.has_found();
        (self.waiting, self.room) = (None, Room::Enough);
        self.sent.clear();
        Ok(ControlFlow::Continue(()))
    }

    /// One turn; why it was the last, if it was.
    fn turn(
        &mut self,
        evaluator: &mut Evaluator,
        ending: bool,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<Failure>> {
        if self.extensions.is_lost()
            && let ControlFlow::Break(gone) = self.look_again(evaluator)?
        {
            return Ok(ControlFlow::Break(gone));
        }
        self.tell_or_ask(observer)?;
        if self.waiting.as_ref().is_some_and(|waiting| waiting.asked || ending) {
            return Ok(ControlFlow::Continue(()));
        }
        let mut trouble = None;
        // It waits on until there is an answer.
        let sequences = if let Some(waiting) = &self.waiting {
            waiting.sequences.clone()
        } else {
            let turn = evaluator.turn(session::now())?;
            trouble = turn.trouble;
            if !self.standing && trouble.is_none() {
                evaluator.stop_looking();
            }
            if let Err(failure) = sql::told(&turn.missed) {
                self.notices.tell(&failure);
            }
            for unseen in &turn.unseen {
                self.notices.tell(unseen);
                let ((from, end), stream) = (unseen.ordinals, &*unseen.stream);
                let unseen_ordinals = (from.0, end.0);
                let at = session::now();
                let unseen = UnseenElements { id: self.id.0, at, stream, unseen_ordinals };
                observer.event(&Event::Unseen(unseen))?;
            }
            self.fails_of(turn.failing, ending);
            self.found += turn.elements;
            turn.sequences
        };
        let news = self.waiting.is_some() || (sequences != self.sent && !sequences.is_empty());
        // What is in slots that it keeps already takes no order, but may be durable later than these.
        if !news && !ending && self.said.elapsed() < MARK && self.keeps.is_some() {
            if self.standing && self.found > 0 {
                self.extensions.owe()?;
            }
            evaluator.is_held();
            self.note(0, 0, evaluator);
            self.tell_or_ask(observer)?;
            return trouble.map_or(Ok(ControlFlow::Continue(())), Err);
        }
        let Fitted { extended, fit } = match self.extend(evaluator, &sequences)? {
            ControlFlow::Continue(fitted) => fitted,
            ControlFlow::Break(refused) => return Ok(ControlFlow::Break(refused)),
        };
        if let Some(Extended { added, slots, left, missed }) = extended {
            self.said = Instant::now();
            self.missed += u64::from(missed);
            if added > 0 && self.room == Room::None {
                self.room = Room::Short;
            }
            self.keeps = Some((slots, left));
            self.note(added, missed, evaluator);
        }
        if let Some(full) = fit.full.filter(|_| self.background.is_none()) {
            return Ok(ControlFlow::Break(self.spent(full)));
        }
        self.settle(fit, evaluator);
        self.tell_or_ask(observer)?;
        trouble.map_or(Ok(ControlFlow::Continue(())), Err)
    }

    /// What is to be told of a turn.
    fn note(&mut self, added: u32, missed: u32, evaluator: &Evaluator) {
        self.untold.elements += std::mem::take(&mut self.found);
        self.untold.added += added;
        self.untold.missed += missed;
        self.untold.to = evaluator.looked();
    }

    /// Says of what the condition fails: at once, and then no more often than anybody reads it.
    fn fails_of(&mut self, failing: Vec<Failing>, ending: bool) {
        for one in failing {
            match self.failing.iter_mut().find(|other| other.stream == one.stream) {
                Some(other) => other.with(&one),
                None => self.failing.push(one),
            }
        }
        if ending || self.told.is_none_or(|told| told.elapsed() >= MARK) {
            for failing in self.failing.drain(..) {
                self.notices.tell(&failing);
                self.told = Some(Instant::now());
            }
        }
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
            self.room = Room::Short;
            if let Some(background) = &mut self.background {
                background.hurry();
            }
            let (id, others) =
                (self.id, "waits until slots of the hold are distilled, when their turn to expire has come");
            let why = match full {
                Full::Quota(quota) => {
                    format!("the quota of hold {id} ({}) is spent", counted(quota.into(), "slot"))
                }
                Full::Ring => format!("there is no room for all of hold {id}"),
            };
            self.notices
                .tell(format_args!("{why}: what else is found {others}; what expires before that is told"));
        }
        self.waiting = Some(Waiting { sequences: fit.rest, full, asked: true });
    }

    /// Extends the hold by what is there of these slots. Where there is no room for all of them it takes the oldest, if there may
    /// be room for the others later.
    fn extend(
        &mut self,
        evaluator: &Evaluator,
        sequences: &[(Sequence, Sequence)],
    ) -> Result<ControlFlow<Failure, Fitted>> {
        let mut fit = Fit::all(sequences);
        loop {
            let request = ExtendRequest {
                hold: self.id,
                // What it keeps already may have been distilled since it was looked at, and is not missed.
                sequences: orders::gathered(without(&fit.wanted, &self.sent)),
                watermarks: evaluator.watermarks(&fit),
                // What stands does not wait for that: more arrives meanwhile.
                durable: !self.standing,
            };
            let outcome = if self.standing {
                self.extensions.give(&request)?
            } else {
                orders::ask(self.path, &Order::Extend(request), self.notices)?
            };
            match outcome {
                Outcome::Extended { added, slots, left, missed } => {
                    let extended = Some(Extended { added, slots, left, missed });
                    return Ok(ControlFlow::Continue(Fitted { extended, fit }));
                }
                Outcome::Refused(refusal)
                    if (self.background.is_some() || matches!(refusal, Refusal::Quota { .. }))
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
        let (more, or) = if self.background.is_some() {
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
    fn tell(&mut self, news: News, (slots, left): (u32, u32), observer: &mut dyn Observer) -> Result<()> {
        let News { elements, added, missed, to } = news;
        if !to.is_empty() {
            self.told_to = to;
        }
        let before = self.shown.replace(slots);
        // What was taken before a recorder ended is not added again.
        let grew = before.is_some_and(|before| before < slots);
        if added == 0 && elements == 0 && missed == 0 && !grew {
            return Ok(());
        }
        observer.event(&Event::Extended(HoldProgress {
            id: self.id.0,
            at: session::now(),
            elements,
            slots,
            added,
            missed,
            quota_left: self.standing.then_some(left),
        }))
    }
}
