//! Holds of what a condition finds: in what is there, and as long as this runs in what arrives.
//!
//! `evaluator` looks, turn by turn, `distil` says what is to be distilled; here this becomes orders. The ring keeps what was asked, so that another evaluator
//! can go on.

mod args;
mod distil;
mod evaluator;

pub(crate) use args::FindArgs;

use crate::failure::{Failure, Result};
use crate::out::{Out, counted};
use crate::session::{self, link};
use crate::{orders, show, sql, times};
use evaluator::{Evaluator, Turn, Wanted};
use holdfast_base::{Age, ByteSize, HoldId, Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::Finding;
use holdfast_link::{RingReader, Selection};
use holdfast_query::Limits;
use holdfast_query::find::{Roll, Sample, Search};
use holdfast_ring::{
    DistilRequest, ExtendRequest, HoldRequest, HoldStatus, Order, Outcome, Refusal, SlotStatus,
};
use serde::Serialize;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
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

/// What is asked of a hold beside what is to be found.
pub(crate) struct Asked {
    pub(crate) reason: String,
    pub(crate) owner: String,
    pub(crate) until: Timestamp,
    pub(crate) selection: Selection,
}

/// What a turn came to, for scripts.
#[derive(Serialize)]
struct Shown {
    id: u64,
    #[serde(serialize_with = "show::time")]
    at: Timestamp,
    elements: u64,
    slots: u32,
    added: u32,
    missed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_left: Option<u32>,
}

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

/// Holds what is found.
pub(crate) fn run(path: &Path, args: &FindArgs, asked: Asked, out: &mut Out) -> Result<()> {
    let finding = finding(args);
    let wanted = wanted(&finding);
    let span = (asked.selection.range.from, asked.selection.range.to);
    let roll = roll(&finding);
    let streams = asked.selection.streams.clone();
    let mut evaluator = Evaluator::new(path.to_owned(), limits(), wanted, roll, streams, span, Vec::new());
    let turn = evaluator.turn(session::now())?;
    if turn.sequences.is_empty() && !finding.standing {
        sql::told(&turn.missed)?;
        return Err(Failure::nothing("nothing of that is on the ring").at_path(path));
    }
    let (standing, distil) = (finding.standing, finding.distil);
    let quota = finding.quota;
    let order = Order::Hold(HoldRequest {
        streams: asked.selection.streams,
        range: asked.selection.range,
        sequences: Some(orders::gathered(turn.sequences.clone())),
        reason: asked.reason,
        owner: asked.owner,
        until: asked.until,
        finding: Some(Finding { watermarks: evaluator.watermarks(), ..finding }),
    });
    let outcome = orders::give(path, &order)?;
    let Outcome::Held { id, slots, bytes, .. } = outcome else {
        return Err(orders::unexpected(&outcome));
    };
    if out.is_json() {
        let left = standing.then(|| quota.saturating_sub(slots));
        out.object(&Shown {
            id: id.0,
            at: session::now(),
            elements: turn.elements,
            slots,
            added: slots,
            missed: 0,
            quota_left: left,
        })?;
    } else {
        out.line(format_args!("hold {id}: {}", found(&turn, slots, bytes)))?;
    }
    let follow = Follow { sent: turn.sequences, ..Follow::new(path, id, standing, distil) };
    evaluator.is_held();
    let missed = sql::told(&turn.missed);
    if !standing {
        evaluator.stop_looking();
        // What could not be looked into is told when all that was found is held.
        return follow.run(evaluator, out).and(missed);
    }
    if let Err(failure) = missed {
        warn(&failure);
    }
    follow.run(evaluator, out)
}

/// Goes on with a hold.
pub(crate) fn resume(path: &Path, id: HoldId, out: &mut Out) -> Result<()> {
    let mut reader = session::open(path)?;
    let holds = reader.holds().map_err(|error| link(&error))?;
    let hold = holds.into_iter().find(|hold| hold.id == id).ok_or_else(|| {
        Failure::nothing(format_args!("there is no hold {id}"))
            .at_path(path)
            .advice("`holdfast holds RING` lists those there are")
    })?;
    let HoldStatus { streams, range, finding, .. } = hold;
    let finding = finding.filter(|finding| finding.standing || finding.distil).ok_or_else(|| {
        Failure::usage(format_args!(
            "hold {id} neither stands nor is to be distilled: there is nothing to go on with"
        ))
        .advice("give another with --where … --standing")
    })?;
    expired(&mut reader, &finding.watermarks)?;
    drop(reader);
    let mut evaluator = Evaluator::new(
        path.to_owned(),
        limits(),
        wanted(&finding),
        roll(&finding),
        streams,
        (range.from, range.to),
        finding.watermarks,
    );
    if !finding.standing {
        evaluator.stop_looking();
    }
    Follow::new(path, id, finding.standing, finding.distil).run(evaluator, out)
}

/// Tells of what has expired before anybody looked at it.
fn expired(reader: &mut RingReader, watermarks: &[(StreamId, Ordinal)]) -> Result<()> {
    let known = reader.streams().map_err(|error| link(&error))?;
    for (stream, next) in watermarks {
        let range =
            holdfast_ring::Range { ordinals: Some((*next, Ordinal(u64::MAX))), ..holdfast_ring::Range::ALL };
        let plan = reader.plan(&Selection { streams: vec![*stream], range }).map_err(|error| link(&error))?;
        for (_, from, end) in plan.expired_ordinals {
            let name = session::stream_name(&known, *stream);
            let elements = counted(end.0 - from.0, "element");
            warn(&format_args!(
                "{elements} of {name} expired before they were looked at ({from} up to {end})"
            ));
        }
    }
    Ok(())
}

/// A hold that goes on being extended.
struct Follow<'a> {
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
}

impl<'a> Follow<'a> {
    fn new(path: &'a Path, id: HoldId, standing: bool, distil: bool) -> Self {
        let (said, looked) = (Instant::now(), None);
        Self { path, id, standing, distil, sent: Vec::new(), said, looked, dense: HashSet::new() }
    }

    /// Until it is interrupted, or all that was to come has come.
    fn run(mut self, mut evaluator: Evaluator, out: &mut Out) -> Result<()> {
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
        let turn = evaluator.turn(session::now())?;
        if let Err(failure) = sql::told(&turn.missed) {
            warn(&failure);
        }
        let news = turn.sequences != self.sent && !turn.sequences.is_empty();
        if !news && !ending && self.said.elapsed() < MARK {
            evaluator.is_held();
            return Ok(ControlFlow::Continue(()));
        }
        let order = Order::Extend(ExtendRequest {
            hold: self.id,
            sequences: orders::gathered(turn.sequences.clone()),
            watermarks: evaluator.watermarks(),
        });
        let (added, slots, left, missed) = match orders::ask(self.path, &order)? {
            Outcome::Extended { added, slots, left, missed } => (added, slots, left, missed),
            // A purge or copies under way: it is asked for again.
            Outcome::Refused(refusal @ (Refusal::Busy(_) | Refusal::NoRoom { .. })) => {
                return Err(session::refused(&refusal));
            }
            Outcome::Refused(refusal) => return Ok(ControlFlow::Break(session::refused(&refusal))),
            other => return Ok(ControlFlow::Break(orders::unexpected(&other))),
        };
        evaluator.is_held();
        (self.sent, self.said) = (turn.sequences, Instant::now());
        if added == 0 && turn.elements == 0 && missed == 0 {
            return Ok(ControlFlow::Continue(()));
        }
        let at = session::now();
        let left = self.standing.then_some(left);
        if out.is_json() {
            let (id, elements) = (self.id.0, turn.elements);
            out.object(&Shown { id, at, elements, slots, added, missed, quota_left: left })?;
            return Ok(ControlFlow::Continue(()));
        }
        let left = left.map_or_else(String::new, |left| format!(", {left} of the quota left"));
        let gone = match missed {
            0 => String::new(),
            missed => format!("; {} expired before", counted(missed.into(), "slot")),
        };
        out.line(format_args!(
            "{}: {} found, {} more held, {slots} in all{left}{gone}",
            times::to_the_second(at),
            counted(turn.elements, "element"),
            counted(added.into(), "slot"),
        ))?;
        Ok(ControlFlow::Continue(()))
    }
}

impl Follow<'_> {
    /// Distils what is due; whether something is left that may become due, or why there is no going on.
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
        for group in distil::groups(self.id, &holds, &slots, open) {
            let mut group: Vec<SlotStatus> = group;
            group.retain(|slot| !self.dense.contains(&slot.sequence));
            if !distil::is_due(&group, last) {
                continue;
            }
            let Some((originals, bytes)) = evaluator.keep(&group)? else { continue };
            if bytes > slot_bytes * group.len() as u64 / 10 * 8 {
                self.dense.extend(group.iter().map(|slot| slot.sequence));
                continue;
            }
            let order = Order::Distil(DistilRequest { hold: self.id, originals });
            let (originals, copies, elements, bytes) = match orders::ask(self.path, &order)? {
                Outcome::Distilled { originals, copies, elements, bytes } => {
                    (originals, copies, elements, bytes)
                }
                // Another is at work, or a purge.
                Outcome::Refused(Refusal::Busy(_)) => return Ok(ControlFlow::Continue(true)),
                Outcome::Refused(refusal) => return Ok(ControlFlow::Break(session::refused(&refusal))),
                other => return Ok(ControlFlow::Break(orders::unexpected(&other))),
            };
            if originals == 0 {
                // For a hold that grows no more nothing else will come to them.
                if last {
                    self.dense.extend(group.iter().map(|slot| slot.sequence));
                }
                continue;
            }
            if out.is_json() {
                out.object(&Distilled {
                    id: self.id.0,
                    at: session::now(),
                    originals,
                    copies,
                    elements,
                    bytes,
                })?;
            } else {
                out.line(format_args!(
                    "{}: {} distilled into {copies}: {} ({})",
                    times::to_the_second(session::now()),
                    counted(originals.into(), "slot"),
                    counted(elements, "element"),
                    ByteSize(bytes)
                ))?;
            }
        }
        let mine = holds.iter().find(|hold| hold.id == self.id);
        let others: Vec<&HoldStatus> = holds.iter().filter(|hold| hold.id != self.id).collect();
        let left = mine.is_some_and(|hold| distil::is_left(hold, &others, &slots, &self.dense));
        Ok(ControlFlow::Continue(left))
    }
}

/// Says what comes in the way, and goes on. Whoever does not listen misses nothing else.
fn warn(trouble: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "holdfast: {trouble}");
}

fn found(turn: &Turn, slots: u32, bytes: ByteSize) -> String {
    let slots = format!("{} ({bytes}) kept from expiring", counted(slots.into(), "slot"));
    if turn.elements == 0 { slots } else { format!("{} found, {slots}", counted(turn.elements, "element")) }
}

/// As it is kept with the hold.
fn finding(args: &FindArgs) -> Finding {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Finding {
        condition: args.condition.clone().unwrap_or_default(),
        before: nanos(args.before.unwrap_or_default()),
        after: nanos(args.after.unwrap_or_default()),
        standing: args.standing,
        distil: args.distil,
        sample: args.sample.map(|sample| (nanos(sample.length), nanos(sample.period))),
        when: args.when.clone().zip(args.within.map(nanos)),
        quota: args.quota.unwrap_or(0),
        watermarks: Vec::new(),
    }
}

fn wanted(finding: &Finding) -> Wanted {
    let span = Duration::from_nanos;
    match finding.sample {
        Some((length, period)) => Wanted::Sample(Sample { length: span(length), period: span(period) }),
        None => Wanted::Found(Search {
            condition: finding.condition.clone(),
            when: finding.when.clone().map(|(condition, within)| (condition, span(within))),
        }),
    }
}

fn roll(finding: &Finding) -> Roll {
    Roll { before: Duration::from_nanos(finding.before), after: Duration::from_nanos(finding.after) }
}

/// What looking may take of the machine.
fn limits() -> Limits {
    Limits {
        memory: ByteSize::mib(256),
        spill: None,
        spill_bytes: ByteSize::mib(4096),
        threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
    }
}
