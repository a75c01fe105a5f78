//! `holdfast hold`: keep a range from expiring.

use crate::args::FindArgs;
use crate::args::RangeArgs;
use crate::args::{RingArg, SiteArgs, SiteRing};
use crate::commands::holds::order_line;
use crate::interruption::interruption;
use crate::out::{Out, notices};
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{ByteSize, HoldId, Ordinal, Timestamp};
use holdfast_base::{clean, counted};
use holdfast_client::attribution::current_user;
use holdfast_client::json::{HoldProgress, NewHold};
use holdfast_client::orders;
use holdfast_client::session::{self, ring_failure};
use holdfast_client::times::{self, When};
use holdfast_client::words;
use holdfast_reader::{RingReader, Selection};
use holdfast_remote::NewHoldOrder;
use holdfast_ring::{HoldRequest, Order, Outcome, Range};
use holdfast_standing::{self as standing, Event, Observer};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Keep a range of streams from expiring until it is released
#[derive(clap::Args, Debug)]
#[command(after_help = format!("{}\n\n\
    Without a range, everything on the ring is held. A hold keeps whole slots.\n\n\
    With --where, the command holds elements that match an SQL condition, as `holdfast query` would\n\
    find them, and their context of --before and --after, in all streams or in those of --stream. It\n\
    ends when the context of --after has arrived. With --standing it continues until it is\n\
    interrupted, and --resume continues it later. With --distil it continues until only matches and\n\
    context are left, in dense slots.\n\n\
    A ring of a site, hf://SITE/rings/RING, is held through the site that is asked (--site): the order\n\
    reaches its recorder also after that was away; `holdfast holds hf://` shows the state of orders.\n\n\
    Examples:\n  holdfast hold lab.hf --last 30s --reason \"door alarm\"\n  \
    holdfast hold lab.hf --stream eth0 --from -5m --to -2m --reason \"outage 4711\" --until +90d\n  \
    holdfast hold lab.hf --where \"size > 500\" --last 5m --before 10s --reason \"large ones\"\n  \
    holdfast hold lab.hf --sample 30s/10m --last 1h --reason \"what is normal\"\n  \
    holdfast hold /dev/sdb --where \"snr > 12\" --after 1s --standing --quota 20% --reason \"bursts\"\n  \
    holdfast hold hf://ams/rings/lab --last 5m --reason \"burst seen at gva\"", times::HELP))]
pub(crate) struct Args {
    #[command(flatten)]
    ring: RingArg,
    /// Only this stream (may be repeated; default: all)
    #[arg(long = "stream", value_name = "S")]
    streams: Vec<String>,
    #[command(flatten)]
    range: RangeArgs,
    #[command(flatten)]
    find: FindArgs,
    /// Reason of the hold
    #[arg(long, value_name = "TEXT", required_unless_present = "resume")]
    reason: Option<String>,
    /// Owner of the hold (default: you)
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// End of the hold: a time, or a time from now (+7d)
    #[arg(long, value_name = "T", allow_hyphen_values = true, value_parser = times::when)]
    until: Option<When>,
    #[command(flatten)]
    site: SiteArgs,
}

/// Orders a hold of a ring of any site, by the site that is asked.
fn order(args: &Args, ring: SiteRing, now: Timestamp, until: Timestamp, out: &mut Out) -> Result<()> {
    let options = args.range.options();
    if args.find.is_some() || args.find.resume.is_some() || options.ordinals.is_some() {
        return Err(Failure::usage("a ring of a site is held by times and streams only")
            .advice("give --from, --to or --last, and --stream"));
    }
    if ring.site.is_empty() || ring.ring.is_empty() {
        return Err(Failure::usage("the ring of a site is missing").advice("write hf://SITE/rings/RING"));
    }
    let range = options.resolve(now, 0)?;
    let bound = |time: Timestamp| (![Timestamp::MIN, Timestamp::MAX].contains(&time)).then_some(time.0);
    let order = NewHoldOrder {
        site: Some(ring.site),
        ring: ring.ring,
        streams: args.streams.clone(),
        from: bound(range.from),
        to: bound(range.to),
        by_event: range.by_event,
        reason: args.reason.clone().unwrap_or_default(),
        owner: args.owner.clone().unwrap_or_else(current_user),
        until: bound(until),
    };
    let session = args.site.session()?;
    let ordered = session.request(session.site().order_hold(&order))?;
    if out.is_json() {
        return out.object(&order_line(&ordered));
    }
    let (site, ring) = (clean(&ordered.site), clean(&ordered.ring));
    out.line(format_args!(
        "order {}: {} on hf://{site}/rings/{ring}",
        clean(&ordered.id),
        clean(&ordered.state)
    ))
}

/// Does it.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let now = session::now();
    let until = args.until.map_or(Timestamp::MAX, |until| until.resolve(now));
    if until <= now {
        return Err(Failure::usage("the hold would have ended already")
            .at(format_args!("--until {}", times::rfc3339(until)))
            .advice("give a time to come, such as +7d"));
    }
    if let Some(ring) = args.ring.site_ring()? {
        return order(args, ring, now, until, out);
    }
    let (path, mut reader) = args.ring.open()?;
    if let Some(id) = args.find.resume {
        return standing::resume(&path, HoldId(id), &notices(), &mut Progress { out });
    }
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let selection = session::selection(&streams, &args.streams, &args.range.options())?;
    let reason = args.reason.clone().unwrap_or_default();
    let owner = args.owner.clone().unwrap_or_else(current_user);
    if args.find.is_some() {
        drop(reader);
        let options = args.find.options(selection, reason, owner, until);
        return standing::hold(&path, options, &notices(), &mut Progress { out });
    }
    if let Some(option) = args.find.only_for_condition_hold() {
        return Err(Failure::usage(format_args!(
            "{option} is about what is found, and nothing is looked for"
        ))
        .advice("say what with --where or --sample"));
    }
    // Arrival times of slots are known to the ring itself, in one step with expiry. Ordinals and event times have to
    // be looked up in the slots first.
    let expired = Expired::look(&mut reader, &selection)?;
    let mut sequences = None;
    if selection.range.ordinals.is_some() || (selection.range.by_event && selection.range.is_timed()) {
        let found = reader.sequences(&selection).map_err(|error| ring_failure(&error))?;
        if found.is_empty() {
            return Err(Failure::nothing("nothing in that range is on the ring")
                .at_path(&path)
                .advice("`holdfast streams` and `holdfast slots` show what is there"));
        }
        sequences = Some(orders::gathered(found));
    }
    drop(reader);
    let from = selection.range.from;
    let order = Order::Hold(HoldRequest {
        streams: selection.streams,
        range: selection.range,
        sequences,
        reason,
        owner,
        until,
        condition_hold: None,
        order: Some(orders::new_id()?),
    });
    let outcome = orders::give(&path, &order, &notices()).map_err(|failure| match failure.number() {
        3 if from > now => ahead(from).at_path(&path),
        _ => failure,
    })?;
    let Outcome::Held { id, slots, bytes, expired_before } = outcome else {
        return Err(orders::unexpected(&outcome));
    };
    // The ring knows best how much had expired when the hold came, but not whether anything had.
    let expired_before = expired_before.filter(|_| expired.arrival.is_some());
    if out.is_json() {
        let head = expired.ordinals.iter().find(|(from, _)| *from == expired.first);
        let expired_before_ordinal = head.map(|(_, end)| end.0);
        let expired_ordinals = expired.ordinals.iter().map(|(from, end)| (from.0, end.0)).collect();
        let expired_before = expired_before.or(expired.arrival);
        return out.object(&NewHold {
            id: id.0,
            slots,
            bytes: bytes.0,
            expired_before,
            expired_before_ordinal,
            expired_ordinals,
            until,
        });
    }
    out.line(format_args!("hold {id}: {} kept from expiring", in_slots(slots, bytes)))?;
    if let Some(oldest) = expired_before {
        out.line(format_args!("what was before {} had expired already", times::rfc3339(oldest)))?;
    } else if let Some(oldest) = expired.arrival {
        out.line(format_args!("what arrived before {} had expired already", times::rfc3339(oldest)))?;
    }
    if let Some(first) = expired.begins {
        out.line(format_args!("the ring begins at {}", times::rfc3339(first)))?;
    }
    for (from, end) in &expired.ordinals {
        out.line(format_args!("{}", words::expired_ordinals(expired.first, *from, *end)))?;
    }
    if until != Timestamp::MAX {
        out.line(format_args!("it ends by itself at {}", times::to_the_second(until)))?;
    }
    Ok(())
}

/// What of a range was gone before the hold, where the ring itself does not tell: the oldest arrival that is left, and the
/// ordinals.
#[derive(Default)]
struct Expired {
    arrival: Option<Timestamp>,
    /// Where the range of ordinals begins, and what of it is gone.
    first: Ordinal,
    ordinals: Vec<(Ordinal, Ordinal)>,
    /// Nothing was: the first that was recorded came later than the range begins.
    begins: Option<Timestamp>,
}

impl Expired {
    fn look(reader: &mut RingReader, selection: &Selection) -> Result<Self> {
        let plan = reader.plan(selection).map_err(|error| ring_failure(&error))?;
        // Ordinals are of one stream.
        let first = selection.range.ordinals.map_or_else(Ordinal::default, |(first, _)| first);
        let ordinals = plan.expired_ordinals.iter().map(|(_, from, end)| (*from, *end)).collect();
        let mut arrival = plan.expired_before;
        if selection.range.by_event && selection.range.is_timed() {
            // What happened in the range arrived later than its beginning: some of it before the oldest that is left.
            let arrived = Range { by_event: false, ordinals: None, ..selection.range };
            let arrived = Selection { range: arrived, ..selection.clone() };
            arrival = reader.plan(&arrived).map_err(|error| ring_failure(&error))?.expired_before;
        }
        Ok(Self { arrival, first, ordinals, begins: plan.begins })
    }
}

/// Nothing is there of what is still to come.
fn ahead(from: Timestamp) -> Failure {
    let from = times::rfc3339(from);
    Failure::nothing(format_args!("the range begins in the future, at {from}, and nothing of it is there"))
        .advice("hold it when it is over, or what a condition finds from now on: `--where … --standing`")
}

fn in_slots(slots: u32, bytes: ByteSize) -> String {
    format!("{} ({bytes})", counted(slots.into(), "slot"))
}

/// Printer of the progress of a condition hold.
struct Progress<'o> {
    out: &'o mut Out,
}

impl Observer for Progress<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<()> {
        let out = &mut *self.out;
        match event {
            Event::Held { progress, .. } | Event::Extended(progress) if out.is_json() => out.object(progress),
            Event::Unseen(unseen) if out.is_json() => out.object(unseen),
            Event::Distilled(distilled) if out.is_json() => out.object(distilled),
            Event::Held { progress, bytes } => {
                out.line(format_args!("hold {}: {}", progress.id, held(progress, *bytes)))
            }
            Event::Extended(progress) => out.line(extended(progress)),
            Event::Distilled(distilled) => out.line(format_args!(
                "{}: {} distilled into {}: {} ({})",
                times::to_the_second(distilled.at),
                counted(distilled.originals.into(), "slot"),
                distilled.copies,
                counted(distilled.elements, "element"),
                ByteSize(distilled.bytes)
            )),
            Event::Left { id, ring } if !out.is_json() => out.line(format_args!(
                "hold {id} stands; `holdfast hold {} --resume {id}` goes on with it",
                ring.display()
            )),
            Event::Unseen(_) | Event::Left { .. } => Ok(()),
        }
    }

    fn flush(&mut self) -> Result<()> {
        self.out.flush()
    }

    fn interruption(&mut self) -> Result<Arc<AtomicBool>> {
        interruption()
    }
}

/// The slots that a new condition hold keeps, in words.
fn held(progress: &HoldProgress, bytes: ByteSize) -> String {
    let mut text = format!("{} kept from expiring", in_slots(progress.slots, bytes));
    if progress.elements > 0 {
        text = format!("{} found, {text}", counted(progress.elements, "element"));
    }
    if progress.missed > 0 {
        text = format!("{text}; {} expired before", counted(progress.missed.into(), "slot"));
    }
    text
}

/// The growth of a condition hold, in words.
fn extended(progress: &HoldProgress) -> String {
    let HoldProgress { at, elements, slots, added, missed, quota_left, .. } = *progress;
    let left = quota_left.map_or_else(String::new, |left| format!(", {left} of the quota left"));
    let gone = match missed {
        0 => String::new(),
        missed => format!("; {} expired before", counted(missed.into(), "slot")),
    };
    format!(
        "{}: {} found, {} more held, {slots} in all{left}{gone}",
        times::to_the_second(at),
        counted(elements, "element"),
        counted(added.into(), "slot"),
    )
}
