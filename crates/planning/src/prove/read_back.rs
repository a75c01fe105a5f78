//! Reads back what a proof has sent, from the medium: no recorder runs meanwhile.

use super::drive::interrupted;
use super::readers::ordinals;
use super::recording::STREAM;
use super::tally::{Begins, Sent, Tally};
use holdfast_base::failure::{Failure, Result};
use holdfast_client::session::{self, ring_failure};
use holdfast_reader::{Item, RingReader};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Reads the elements from `sent.from` to `sent.to`, and those from before that are known to be held. `told` is told how much
/// of it is done.
pub(crate) fn read_back(
    ring: &Path,
    sent: Sent,
    held: &[(u64, u64)],
    stop: &AtomicBool,
    told: &mut dyn FnMut(f64),
) -> Result<Tally> {
    let mut reader = session::open(ring)?;
    let status = reader.status().map_err(|error| ring_failure(&error))?;
    // What is free goes first: as long as there is some, nothing has expired.
    let begins = if status.ring.slots.free > 0 { Begins::AtFirst } else { Begins::Anywhere };
    // Behind something that is held data may have expired: also where nobody came to read what he held.
    let tally = read(&mut reader, sent, begins, status.ring.holds > 0, stop, told)?;
    let mut all = tally.finish();
    for (from, to) in held.iter().filter(|(from, _)| *from < sent.from) {
        let part = Sent { from: *from, to: *to, ..sent };
        let held = read(&mut reader, part, Begins::AtFirst, false, stop, &mut |_| ())?.finish();
        all.wrong += held.wrong;
        all.faults.extend(held.faults.into_iter().map(|fault| format!("what is held: {fault}")));
    }
    Ok(all)
}

fn read(
    reader: &mut RingReader,
    sent: Sent,
    begins: Begins,
    held: bool,
    stop: &AtomicBool,
    told: &mut dyn FnMut(f64),
) -> Result<Tally> {
    let streams = reader.streams().map_err(|error| ring_failure(&error))?;
    let stream = streams.iter().find(|stream| stream.name == STREAM).map(|stream| stream.id);
    let stream = stream.ok_or_else(|| Failure::failed("the stream that was recorded is not on the ring"))?;
    let plan = reader.plan(&ordinals(stream, sent.from, sent.to)).map_err(|error| ring_failure(&error))?;
    let expired = plan.expired_ordinals.iter().map(|(_, from, to)| (from.0, to.0));
    let mut tally = Tally::new(sent, begins);
    if held {
        tally = tally.without(expired.collect());
    }
    let report = reader.read(&plan, &mut |item| {
        tally.take(&item);
        if let Item::Progress { bytes } = item {
            told(bytes as f64 / plan.bytes.max(1) as f64);
        }
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let report = report.map_err(|error| ring_failure(&error))?;
    if report.stopped { Err(interrupted()) } else { Ok(tally) }
}
