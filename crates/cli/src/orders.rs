//! How an order reaches a ring: through its recorder where one runs, otherwise by taking the ring for one commit.

use crate::failure::{Failure, Result};
use crate::session::{link, refused};
use holdfast_base::SystemClock;
use holdfast_link::client::Connection;
use holdfast_media::{Access, Device, OpenError, RealDisk};
use holdfast_ring::{Order, Outcome, order_once};
use std::path::Path;
use std::time::{Duration, Instant};

/// A recorder that starts or ends just now is met once more after this.
const AGAIN: Duration = Duration::from_millis(200);
/// So often.
const TRIES: u32 = 10;
/// Requests in flight when no recorder runs.
const DEPTH: usize = 8;
/// A device that does not answer so long will not.
const PATIENCE: Duration = Duration::from_mins(1);

/// The recorder of the ring at `lane`; `None` when none runs.
pub(crate) fn recorder(lane: &Path) -> Result<Option<Connection>> {
    let place = holdfast_link::place(lane).map_err(|error| link(&error))?;
    holdfast_link::recorder(&place).map_err(|error| link(&error))
}

/// Gives an order and waits until it is durable.
pub(crate) fn give(lane: &Path, order: &Order) -> Result<Outcome> {
    let mut tries = 0;
    let outcome = loop {
        if let Some(mut recorder) = recorder(lane)? {
            break recorder.order(order.clone()).map_err(|error| link(&error))?;
        }
        match Device::open(lane, Access::Own) {
            Ok(device) => break alone(device, order.clone(), lane)?,
            Err(OpenError::InUse { .. }) if tries < TRIES => {
                tries += 1;
                std::thread::sleep(AGAIN);
            }
            Err(error) => return Err(Failure::failed(error)),
        }
    };
    match outcome {
        Outcome::Refused(refusal) => Err(refused(&refusal)),
        done => Ok(done),
    }
}

/// Takes the ring for one order.
fn alone(device: Device, order: Order, lane: &Path) -> Result<Outcome> {
    let started = Instant::now();
    let disk = RealDisk::new(device, &[], DEPTH);
    order_once(disk, order, &SystemClock::new(), &mut || started.elapsed() < PATIENCE)
        .map_err(|error| Failure::failed(error).at_path(lane))
}

/// An outcome of another kind than the order's.
pub(crate) fn unexpected(outcome: &Outcome) -> Failure {
    Failure::failed(format_args!("the ring answered with something else than was asked: {outcome:?}"))
        .advice("use the commands of the recorder's release")
}
