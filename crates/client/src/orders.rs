//! Orders to a ring: given through its recorder where one runs, otherwise by taking the ring for one commit.

use crate::notices::Notices;
use crate::random;
use crate::session::{protocol_failure, refused};
use crate::times;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Clock as _, OrderId, Sequence, SystemClock};
use holdfast_media::{Access, Device, OpenError, RealDisk};
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{DeviceState, DeviceStatus, MAX_RANGES, MAX_REQUEST, Request, Status};
use holdfast_ring::{OfflineOrderError, Order, Outcome, Refusal, order_giving_way};
use std::path::Path;
use std::time::{Duration, Instant};

/// A recorder that starts or ends just now is met once more after this.
const AGAIN: Duration = Duration::from_millis(200);
/// A recorder that is starting is met again after this.
const SOON: Duration = Duration::from_millis(20);
/// So often.
const TRIES: u32 = 10;
/// Requests in flight when no recorder runs.
const DEPTH: usize = 8;
/// A device that does not answer so long will not.
const PATIENCE: Duration = Duration::from_mins(1);

/// The recorder of the ring at `lane`; `None` when none runs.
pub fn recorder(lane: &Path) -> Result<Option<Connection>> {
    let place = holdfast_protocol::locate(lane).map_err(|error| protocol_failure(&error))?;
    holdfast_protocol::find_recorder(&place).map_err(|error| protocol_failure(&error))
}

/// A new UUID for a hold or release order. A client that loses the answer repeats the order with the same UUID.
pub fn new_id() -> Result<OrderId> {
    Ok(OrderId::new(SystemClock::new().wall(), random::bytes()?))
}

/// Gives an order and waits until it is durable.
pub fn give(lane: &Path, order: &Order, notices: &Notices) -> Result<Outcome> {
    match ask(lane, order, notices)? {
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        done => Ok(done),
    }
}

/// The same; that it is refused is an outcome, too.
pub fn ask(lane: &Path, order: &Order, notices: &Notices) -> Result<Outcome> {
    let mut before = Destroyed::default();
    let last = ask_on(lane, order, &mut before, notices)?;
    Ok(before.and(last))
}

/// Elements, bytes and slots that a purge destroyed before it gave way.
#[derive(Clone, Copy, Debug, Default)]
struct Destroyed {
    elements: u64,
    bytes: u64,
    slots: u32,
}

impl Destroyed {
    /// All that the order came to, whose last part came to `last`.
    fn and(self, last: Outcome) -> Outcome {
        let Self { elements, bytes, slots } = self;
        match last {
            Outcome::Purged { elements: more, bytes: more_bytes, slots: more_slots } => Outcome::Purged {
                elements: elements + more,
                bytes: bytes + more_bytes,
                slots: slots + more_slots,
            },
            // It had destroyed all.
            Outcome::Refused(Refusal::Nothing { .. }) if slots > 0 => {
                Outcome::Purged { elements, bytes, slots }
            }
            other => other,
        }
    }
}

/// Gives an order, again where it gave way; what it destroyed until then is added to `before`.
fn ask_on(lane: &Path, order: &Order, before: &mut Destroyed, notices: &Notices) -> Result<Outcome> {
    let (mut tries, mut waited) = (0, None::<Instant>);
    loop {
        let place = holdfast_protocol::locate(lane).map_err(|error| protocol_failure(&error))?;
        let starts = || holdfast_protocol::recorder_starts(&place);
        let find =
            if starts() { holdfast_protocol::find_recorder_now } else { holdfast_protocol::find_recorder };
        if let Some(mut recorder) = find(&place).map_err(|error| protocol_failure(&error))? {
            let mut said = false;
            let mut meanwhile = |status: &Status| say_why(lane, status, &mut said, notices);
            return recorder
                .order_watched(order.clone(), &mut meanwhile)
                .map_err(|error| protocol_failure(&error));
        }
        if starts() {
            // The ring is for the recorder, and so is the order, once it answers.
            if waited.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                return Err(Failure::failed(
                    "cannot give the order: a recorder has been starting for a minute",
                )
                .at_path(lane)
                .advice("look what keeps the recorder, and give the order again"));
            }
            std::thread::sleep(SOON);
            continue;
        }
        match Device::open(lane, Access::Own) {
            Ok(device) => match alone(device, order.clone(), &starts) {
                Err(OfflineOrderError::GaveWay { elements, bytes, slots }) => {
                    before.elements += elements;
                    before.bytes += bytes;
                    before.slots += slots;
                    notices.tell(format_args!(
                        "{}: the order gave way to a recorder that starts, and is given to it; what was done of it \
                         stays done",
                        lane.display()
                    ));
                }
                done => return done.map_err(|error| Failure::failed(error).at_path(lane)),
            },
            Err(OpenError::InUse { .. }) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(AGAIN);
            }
            Err(error) => return Err(Failure::failed(error)),
        }
    }
}

/// Says what keeps an order waiting, where it is the device, if that was not said.
pub fn say_why(lane: &Path, status: &Status, said: &mut bool, notices: &Notices) {
    let device = status.recorder.as_ref().map(|recorder| &recorder.device);
    if let Some(text) = device.and_then(|device| waits_for(lane, device))
        && !std::mem::replace(said, true)
    {
        notices.tell(text);
    }
}

/// What keeps an order waiting, where it is the device.
fn waits_for(lane: &Path, device: &DeviceStatus) -> Option<String> {
    let (lane, since) = (lane.display(), times::to_the_second(device.since));
    let error = if device.error.is_empty() { String::new() } else { format!(" ({})", clean(&device.error)) };
    (device.state != DeviceState::Ok).then(|| {
        format!(
            "{lane}: waiting for the device, which has taken nothing since {since}{error}: when it answers, the \
             recorder carries the order out, even if this command has ended by then"
        )
    })
}

/// Takes the ring for one order, unless a recorder `starts`.
fn alone(
    device: Device,
    order: Order,
    starts: &dyn Fn() -> bool,
) -> std::result::Result<Outcome, OfflineOrderError> {
    let started = Instant::now();
    let disk = RealDisk::new(device, &[], DEPTH);
    let mut patient = || started.elapsed() < PATIENCE;
    order_giving_way(disk, order, &SystemClock::new(), &mut patient, starts)
}

/// Whether an order is no larger than a recorder takes.
pub fn fits(order: &Order) -> bool {
    Request::Order(order.clone()).encode(0).len() <= MAX_REQUEST
}

/// At most as many runs of sequences as an order takes.
pub fn gathered(runs: Vec<(Sequence, Sequence)>) -> Vec<(Sequence, Sequence)> {
    let runs = runs.into_iter().map(|(first, last)| (first.0, last.0)).collect();
    fewer(runs, MAX_RANGES).into_iter().map(|(first, last)| (Sequence(first), Sequence(last))).collect()
}

/// At most so many runs: those with the least between them become one.
pub fn fewer(mut runs: Vec<(u64, u64)>, most: usize) -> Vec<(u64, u64)> {
    if runs.len() <= most {
        return runs;
    }
    let between = |at: usize, runs: &[(u64, u64)]| runs[at].0 - runs[at - 1].1;
    let mut order: Vec<usize> = (1..runs.len()).collect();
    order.sort_by_key(|at| (between(*at, &runs), *at));
    let mut joined = vec![false; runs.len()];
    for at in &order[..runs.len() - most] {
        joined[*at] = true;
    }
    let mut at = 0;
    runs.dedup_by(|next, kept| {
        at += 1;
        if joined[at] {
            kept.1 = next.1;
        }
        joined[at]
    });
    runs
}

/// An outcome of another kind than the order's.
pub fn unexpected(outcome: &Outcome) -> Failure {
    Failure::failed(format_args!("the ring answered with something else than was asked: {outcome:?}"))
        .advice("use the commands of the recorder's release")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_waits_for_the_device_says_so() {
        let said = |state, error: &str| {
            let device = DeviceStatus { state, since: holdfast_base::Timestamp(0), error: error.to_owned() };
            waits_for(Path::new("/dev/sdb"), &device)
        };
        assert_eq!(said(DeviceState::Ok, "an old one"), None);
        let text = said(DeviceState::Absent, "I/O error").unwrap();
        assert!(text.starts_with("/dev/sdb: waiting for the device"), "{text}");
        assert!(text.contains("since 1970-01-01T00:00:00Z (I/O error)"), "{text}");
        assert!(said(DeviceState::Retrying, "").unwrap().contains("00Z: when it answers"));
    }

    // Promise 5: what was destroyed is told, whoever destroyed it.
    #[test]
    fn a_purge_in_parts_comes_to_all_of_them() {
        let purged = |elements, bytes, slots| Outcome::Purged { elements, bytes, slots };
        let nothing = || Outcome::Refused(Refusal::Nothing { oldest: None });
        let before = Destroyed { elements: 3, bytes: 30, slots: 1 };
        assert_eq!(before.and(purged(4, 40, 2)), purged(7, 70, 3));
        assert_eq!(before.and(nothing()), purged(3, 30, 1));
        assert_eq!(Destroyed::default().and(nothing()), nothing());
    }

    #[test]
    fn too_many_runs_are_gathered_where_least_is_between_them() {
        let run = |at: u64| (Sequence(at * 10), Sequence(at * 10 + 1));
        let few: Vec<_> = (1..=100).map(run).collect();
        assert_eq!(gathered(few.clone()), few);
        let mut many: Vec<_> = (1..=MAX_RANGES as u64 + 2).map(run).collect();
        many[5].1 = Sequence(many[6].0.0 - 2);
        many[900].1 = Sequence(many[901].0.0 - 3);
        let less = gathered(many.clone());
        assert_eq!(less.len(), MAX_RANGES);
        assert_eq!(less[5], (many[5].0, many[6].1));
        assert_eq!(less[899], (many[900].0, many[901].1));
        assert_eq!((less[0], less[MAX_RANGES - 1]), (many[0], many[MAX_RANGES + 1]));
    }
}
