//! Holds of what a condition finds: in what is there, and as long as this runs in what arrives.
//!
//! `evaluator` looks, turn by turn, `distil` says what is to be distilled; here a hold is given, and `follow` goes on with it. The
//! ring keeps what was asked, so that another evaluator can go on.

mod args;
mod distil;
mod evaluator;
mod follow;

pub(crate) use args::FindArgs;

use crate::failure::{Failure, Result};
use crate::out::{Out, counted};
use crate::session::{self, link};
use crate::{orders, show, sql};
use evaluator::{Evaluator, Turn, Wanted};
use follow::Follow;
use holdfast_base::{ByteSize, HoldId, Timestamp};
use holdfast_format::Finding;
use holdfast_link::Selection;
use holdfast_query::Limits;
use holdfast_query::find::{Roll, Sample, Search};
use holdfast_ring::{HoldRequest, HoldStatus, Order, Outcome};
use serde::Serialize;
use std::fmt;
use std::io::{self, Write as _};
use std::num::NonZeroUsize;
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
    #[serde(serialize_with = "show::time")]
    at: Timestamp,
    elements: u64,
    slots: u32,
    added: u32,
    missed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    quota_left: Option<u32>,
}

/// Holds what is found.
pub(crate) fn run(path: &Path, args: &FindArgs, asked: Asked, out: &mut Out) -> Result<()> {
    let finding = finding(args, asked.slots);
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
    let follow = Follow::new(path, id, standing, distil).with(turn.sequences);
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

/// Says what comes in the way, and goes on. Whoever does not listen misses nothing else.
fn warn(trouble: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "holdfast: {trouble}");
}

fn found(turn: &Turn, slots: u32, bytes: ByteSize) -> String {
    let slots = format!("{} ({bytes}) kept from expiring", counted(slots.into(), "slot"));
    if turn.elements == 0 { slots } else { format!("{} found, {slots}", counted(turn.elements, "element")) }
}

/// As it is kept with the hold.
fn finding(args: &FindArgs, slots: u32) -> Finding {
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    Finding {
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
