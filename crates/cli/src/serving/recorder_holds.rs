//! Giver of ordered holds to the recorders of this machine, by the names of rings in the configuration file.
//!
//! A ring without a recorder takes the order itself; the order's UUID keeps a repeated one from making a second hold.

use holdfast_base::failure::{Failure, Kind, Result};
use holdfast_base::{OrderId, Timestamp};
use holdfast_client::config::RingEntry;
use holdfast_client::range::RangeOptions;
use holdfast_client::times::{self, When};
use holdfast_client::{Notices, config, orders, session};
use holdfast_ring::{HoldRequest, Order, Outcome};
use holdfast_server::{HoldOutcome, HoldTaker, OrderedHold};
use std::path::Path;

/// Rings of the configuration file.
pub(crate) struct RecorderHolds;

impl HoldTaker for RecorderHolds {
    fn take(&self, order: &OrderedHold) -> HoldOutcome {
        match take(order) {
            Ok(outcome) => outcome,
            Err(failure) if failure.number() == Kind::Nothing as u8 => {
                HoldOutcome::Expired(failure.to_string())
            }
            Err(failure) if failure.number() == Kind::Usage as u8 => {
                HoldOutcome::Refused(failure.to_string())
            }
            Err(failure) => HoldOutcome::Away(failure.to_string()),
        }
    }
}

fn take(order: &OrderedHold) -> Result<HoldOutcome> {
    let path = ring(&order.ring)?.path;
    let mut reader = session::open(&path)?;
    let streams = reader.streams().map_err(|error| session::ring_failure(&error))?;
    let when = |time: Option<i64>| time.map(|time| When::At(Timestamp(time)));
    let range = RangeOptions {
        from: when(order.from),
        to: when(order.to),
        last: None,
        ordinals: None,
        event: order.by_event,
    };
    let selection = session::selection(&streams, &order.streams, &range)?;
    let mut sequences = None;
    if selection.range.by_event && selection.range.is_timed() {
        let found = reader.sequences(&selection).map_err(|error| session::ring_failure(&error))?;
        if found.is_empty() {
            return Err(Failure::nothing("nothing in that range is on the ring").at_path(&path));
        }
        sequences = Some(orders::gathered(found));
    }
    drop(reader);
    let request = Order::Hold(HoldRequest {
        streams: selection.streams,
        range: selection.range,
        sequences,
        reason: order.reason.clone(),
        owner: order.owner.clone(),
        until: order.until.map_or(Timestamp::MAX, Timestamp),
        condition_hold: None,
        order: Some(OrderId(order.id.0)),
    });
    let outcome = orders::give(&path, &request, &Notices::default())?;
    let Outcome::Held { id, slots, bytes, expired_before } = outcome else {
        return Err(orders::unexpected(&outcome));
    };
    let expired = expired_before.filter(|oldest| order.from.is_none_or(|from| Timestamp(from) < *oldest));
    let expired = expired.map(|oldest| format!("what was before {} had expired", times::rfc3339(oldest)));
    Ok(HoldOutcome::Applied { hold: id.0, slots: slots.into(), bytes: bytes.0, expired })
}

/// Entry of a ring by its name in the configuration file. Other sites give names, never paths.
pub(super) fn ring(name: &str) -> Result<RingEntry> {
    let unknown = || {
        Failure::usage(format_args!("no ring is named `{name}` at this site"))
            .advice("write [rings.NAME] into the configuration file of the site's server")
    };
    if name.is_empty() || name.contains('/') {
        return Err(unknown());
    }
    let entry = config::ring(Path::new(name))?;
    if entry.path == Path::new(name) { Err(unknown()) } else { Ok(entry) }
}
