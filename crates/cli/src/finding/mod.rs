//! Holds of what a condition finds: in what is there, and as long as this runs in what arrives.
//!
//! `evaluator` looks, turn by turn, by what `ask` asks, `fit` says what of it has room, `distil` what is to be distilled, `wish` what is kept of that;
//! here a hold is given, and `follow` goes on with it. The ring keeps what was asked, so that another evaluator can go on.

mod args;
mod ask;
mod distil;
mod evaluator;
mod fit;
mod follow;
mod wish;

pub(crate) use args::FindArgs;

use crate::out::{Out, notices};
use evaluator::{Evaluator, OVER, Turn, Wanted};
use fit::Fit;
use follow::{Follow, Giving};
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, HoldId, Timestamp};
use holdfast_client::json;
use holdfast_client::orders;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::sql;
use holdfast_format::ConditionHold;
use holdfast_query::Limits;
use holdfast_query::condition_search::{Roll, Sample, Search};
use holdfast_reader::Selection;
use holdfast_ring::{HoldRequest, HoldStatus, Order, Outcome};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// What is asked of a hold beside what is to be found.
pub(crate) struct Asked {
    pub(crate) reason: String,
    pub(crate) owner: String,
    pub(crate) until: Timestamp,
    pub(crate) selection: Selection,
    /// Slots that the ring has.
    pub(crate) slots: u32,
}

/// What a turn came to, for scripts.
#[derive(Serialize)]
struct Shown {
    id: u64,
    #[serde(serialize_with = "json::time")]
    at: Timestamp,
    elements: u64,
    slots: u32,
    added: u32,
    missed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_left: Option<u32>,
}

/// What expired before anybody looked at it, for scripts.
#[derive(Serialize)]
struct ShownUnseen<'a> {
    id: u64,
    #[serde(serialize_with = "json::time")]
    at: Timestamp,
    stream: &'a str,
    /// The first, and the one behind the last.
    unseen_ordinals: (u64, u64),
}

/// Holds what is found.
pub(crate) fn run(path: &Path, args: &FindArgs, asked: Asked, out: &mut Out) -> Result<()> {
    let condition_hold = condition_hold(args, asked.slots);
    let wanted = wanted(&condition_hold);
    let span = (asked.selection.range.from, asked.selection.range.to);
    let roll = roll(&condition_hold);
    let streams = asked.selection.streams.clone();
    let mut evaluator = Evaluator::new(path.to_owned(), limits(), wanted, roll, streams, span, Vec::new());
    let mut turn = evaluator.turn(session::now())?;
    turn.trouble.take().map_or(Ok(()), Err)?;
    if turn.sequences.is_empty() && !condition_hold.standing {
        sql::told(&turn.missed)?;
        return Err(Failure::nothing("nothing of that is on the ring").at_path(path));
    }
    let (standing, distil) = (condition_hold.standing, condition_hold.distil);
    let quota = condition_hold.quota;
    let mut fit = Fit::all(&turn.sequences);
    let mut order = HoldRequest {
        streams: asked.selection.streams,
        range: asked.selection.range,
        sequences: None,
        reason: asked.reason,
        owner: asked.owner,
        until: asked.until,
        condition_hold: None,
        order: Some(orders::new_id()?),
    };
    let (id, slots, bytes) = loop {
        order.sequences = Some(orders::gathered(fit.wanted.clone()));
        order.condition_hold =
            Some(ConditionHold { watermarks: evaluator.watermarks(&fit), ..condition_hold.clone() });
        match orders::ask(path, &Order::Hold(order.clone()), &notices())? {
            Outcome::Held { id, slots, bytes, .. } => break (id, slots, bytes),
            // What has no room now may have it when the oldest is distilled.
            Outcome::Refused(refusal) if distil && fit.takes_less(&refusal, standing) => {
                if fit.wanted.is_empty() {
                    return Err(session::refused(&refusal));
                }
            }
            Outcome::Refused(refusal) => return Err(session::refused(&refusal)),
            other => return Err(orders::unexpected(&other)),
        }
    };
    let named: u64 = fit.wanted.iter().map(|(first, last)| last.0 - first.0 + 1).sum();
    let gone = u32::try_from(named.saturating_sub(slots.into())).unwrap_or(u32::MAX);
    if out.is_json() {
        let left = standing.then(|| quota.saturating_sub(slots));
        out.object(&Shown {
            id: id.0,
            at: session::now(),
            elements: turn.elements,
            slots,
            added: slots,
            missed: gone,
            quota_left: left,
        })?;
    } else {
        out.line(format_args!("hold {id}: {}", found(&turn, slots, bytes, gone)))?;
    }
    let missed = sql::told(&turn.missed);
    let mut follow = Follow::new(Giving::new(path, id), path, id, standing, distil)?;
    follow.begin(fit, (slots, quota.saturating_sub(slots)), gone.into(), &mut evaluator);
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
    let mut giving = Giving::new(path, id);
    giving.begin()?;
    match resumed(path, id)? {
        ControlFlow::Continue((condition_hold, evaluator)) => {
            Follow::new(giving, path, id, condition_hold.standing, condition_hold.distil)?.run(evaluator, out)
        }
        ControlFlow::Break(refused) => Err(refused),
    }
}

/// What a hold looks for, and who does from where it is; or why there is no going on with it.
fn resumed(path: &Path, id: HoldId) -> Result<ControlFlow<Failure, (ConditionHold, Evaluator)>> {
    let mut reader = session::open(path)?;
    let holds = reader.holds().map_err(|error| ring_failure(&error))?;
    let Some(hold) = holds.into_iter().find(|hold| hold.id == id) else {
        let failure = Failure::nothing(format_args!("there is no hold {id}"))
            .at_path(path)
            .advice("`holdfast holds RING` lists those there are");
        return Ok(ControlFlow::Break(failure));
    };
    let HoldStatus { streams, range, condition_hold, created, .. } = hold;
    let Some(condition_hold) =
        condition_hold.filter(|condition_hold| condition_hold.standing || condition_hold.distil)
    else {
        let failure = Failure::usage(format_args!(
            "hold {id} neither stands nor is to be distilled: there is nothing to go on with"
        ))
        .advice("give another with --where … --standing");
        return Ok(ControlFlow::Break(failure));
    };
    // What does not stand is of what was there when it was given.
    let to = if condition_hold.standing { range.to } else { range.to.min(created) };
    let is_over = !condition_hold.standing && condition_hold.watermarks.iter().all(|(_, next)| *next == OVER);
    let mut evaluator = Evaluator::new(
        path.to_owned(),
        limits(),
        wanted(&condition_hold),
        roll(&condition_hold),
        streams,
        (range.from, to),
        condition_hold.watermarks.clone(),
    );
    if is_over {
        evaluator.stop_looking();
    }
    Ok(ControlFlow::Continue((condition_hold, evaluator)))
}

/// Says what comes in the way, and goes on. Whoever does not listen misses nothing else.
fn warn(trouble: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "holdfast: {trouble}");
}

fn found(turn: &Turn, slots: u32, bytes: ByteSize, gone: u32) -> String {
    let mut text = format!("{} ({bytes}) kept from expiring", counted(slots.into(), "slot"));
    if turn.elements > 0 {
        text = format!("{} found, {text}", counted(turn.elements, "element"));
    }
    if gone > 0 {
        text = format!("{text}; {} expired before", counted(gone.into(), "slot"));
    }
    text
}

/// As it is kept with the hold.
fn condition_hold(args: &FindArgs, slots: u32) -> ConditionHold {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    ConditionHold {
        condition: args.condition.clone().unwrap_or_default(),
        before: nanos(args.before.unwrap_or_default()),
        after: nanos(args.after.unwrap_or_default()),
        standing: args.standing,
        distil: args.distil,
        sample: args.sample.map(|sample| (nanos(sample.length), nanos(sample.period))),
        when: args.when.clone().zip(args.within.map(nanos)),
        quota: args.quota.map_or(0, |quota| quota.of(slots)),
        watermarks: Vec::new(),
    }
}

fn wanted(condition_hold: &ConditionHold) -> Wanted {
    let span = Duration::from_nanos;
    match condition_hold.sample {
        Some((length, period)) => Wanted::Sample(Sample { length: span(length), period: span(period) }),
        None => Wanted::Found(Search {
            condition: condition_hold.condition.clone(),
            when: condition_hold.when.clone().map(|(condition, within)| (condition, span(within))),
        }),
    }
}

fn roll(condition_hold: &ConditionHold) -> Roll {
    Roll {
        before: Duration::from_nanos(condition_hold.before),
        after: Duration::from_nanos(condition_hold.after),
    }
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
