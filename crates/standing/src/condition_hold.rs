//! Condition hold: a hold of the elements that a condition finds, in what is there and, as long as this runs, in what arrives.
//!
//! `evaluator` searches turn by turn with `tolerant_search`, `fit` says what of the matches has room, `distil_groups` what is to be
//! distilled, `retention_set` what is kept of that. Here the hold is given; `follow` goes on with it. The ring keeps the condition,
//! so that another evaluator can go on.

use crate::evaluator::{Evaluator, OVER, Wanted};
use crate::fit::Fit;
use crate::follow::{Extensions, Follow};
use crate::observer::{Event, Observer};
use crate::options::Options;
use holdfast_base::HoldId;
use holdfast_base::failure::{Failure, Result};
use holdfast_client::Notices;
use holdfast_client::json::HoldProgress;
use holdfast_client::orders;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::sql;
use holdfast_format::ConditionHold;
use holdfast_query::Limits;
use holdfast_query::condition_search::{Roll, Sample, Search};
use holdfast_ring::{HoldRequest, HoldStatus, Order, Outcome};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Gives a condition hold on the ring at a path, and goes on with it until all has arrived that it asks for, or until it is
/// interrupted.
pub fn hold(path: &Path, asked: Options, notices: &Notices, observer: &mut dyn Observer) -> Result<()> {
    let slots = session::open(path)?.status().map_err(|error| ring_failure(&error))?.ring.slots.total;
    let condition_hold = condition_hold(&asked, slots);
    let wanted = wanted(&condition_hold);
    let span = (asked.selection.range.from, asked.selection.range.to);
    let roll = roll(&condition_hold);
    let streams = asked.selection.streams.clone();
    let mut evaluator =
        Evaluator::new(path.to_owned(), Limits::default(), wanted, roll, streams, span, Vec::new());
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
        match orders::ask(path, &Order::Hold(order.clone()), notices)? {
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
    let progress = HoldProgress {
        id: id.0,
        at: session::now(),
        elements: turn.elements,
        slots,
        added: slots,
        missed: gone,
        quota_left: standing.then(|| quota.saturating_sub(slots)),
    };
    let missed = sql::told(&turn.missed);
    // Before the hold is told: whoever knows of it may ask for the end.
    let mut follow =
        Follow::new(Extensions::new(path, id, notices), path, id, (standing, distil), notices, observer)?;
    observer.event(&Event::Held { progress, bytes })?;
    follow.begin(fit, (slots, quota.saturating_sub(slots)), gone.into(), &mut evaluator);
    if !standing {
        evaluator.stop_looking();
        // What could not be looked into is told when all that was found is held.
        return follow.run(evaluator, observer).and(missed);
    }
    if let Err(failure) = missed {
        notices.tell(&failure);
    }
    follow.run(evaluator, observer)
}

/// Goes on with a condition hold, from where it was left.
pub fn resume(path: &Path, id: HoldId, notices: &Notices, observer: &mut dyn Observer) -> Result<()> {
    let mut extensions = Extensions::new(path, id, notices);
    extensions.begin()?;
    match resumed(path, id)? {
        ControlFlow::Continue((condition_hold, evaluator)) => {
            let does = (condition_hold.standing, condition_hold.distil);
            Follow::new(extensions, path, id, does, notices, observer)?.run(evaluator, observer)
        }
        ControlFlow::Break(refused) => Err(refused),
    }
}

/// What a hold looks for, and who does from where it is; or why there is no going on with it.
pub(crate) fn resumed(path: &Path, id: HoldId) -> Result<ControlFlow<Failure, (ConditionHold, Evaluator)>> {
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
        Limits::default(),
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

/// As it is kept with the hold.
fn condition_hold(args: &Options, slots: u32) -> ConditionHold {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    ConditionHold {
        condition: args.condition.clone().unwrap_or_default(),
        before: nanos(args.before.unwrap_or_default()),
        after: nanos(args.after.unwrap_or_default()),
        standing: args.standing,
        distil: args.distil,
        sample: args.sample.map(|sample| (nanos(sample.length), nanos(sample.period))),
        when: args.when.clone().map(|(when, within)| (when, nanos(within))),
        quota: args.quota.map_or(0, |quota| quota.of(slots)),
        watermarks: Vec::new(),
    }
}

pub(crate) fn wanted(condition_hold: &ConditionHold) -> Wanted {
    let span = Duration::from_nanos;
    match condition_hold.sample {
        Some((length, period)) => Wanted::Sample(Sample { length: span(length), period: span(period) }),
        None => Wanted::Found(Search {
            condition: condition_hold.condition.clone(),
            when: condition_hold.when.clone().map(|(condition, within)| (condition, span(within))),
        }),
    }
}

pub(crate) fn roll(condition_hold: &ConditionHold) -> Roll {
    Roll {
        before: Duration::from_nanos(condition_hold.before),
        after: Duration::from_nanos(condition_hold.after),
    }
}
