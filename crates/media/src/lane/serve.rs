//! I/O thread of a lane: orders in, completions out, asleep in between.

use super::queue::{Receiver, Sender};
use super::sync::{Arc, AtomicBool, Ordering, Waker};
use crate::disk::{Completion, Disk, Request};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What the I/O thread answers.
pub(super) struct Answer {
    pub(super) done: Completion,
    /// The bytes that the disk has now.
    pub(super) bytes: u64,
}

/// The I/O thread's side of a lane.
pub(super) struct Ports {
    pub(super) orders: Receiver<Request>,
    pub(super) answers: Sender<Answer>,
    pub(super) waker: Arc<Waker>,
    pub(super) stop: Arc<AtomicBool>,
    /// Called after an answer was put into the queue.
    pub(super) notify: Box<dyn Fn() + Send>,
}

/// How often a disk is asked that cannot tell when it is ready.
const TICK: Duration = Duration::from_millis(1);

/// Serves until told to stop. The queues have room for all that can be under way, so neither is ever full.
pub(super) fn serve<D: Disk>(disk: &mut D, ready: impl Fn(&D) -> Option<BorrowedFd<'_>>, ports: &mut Ports) {
    let mut flying = 0usize;
    let mut held: Option<Request> = None;
    while !ports.stop.load(Ordering::Acquire) {
        while let Some(request) = held.take().or_else(|| ports.orders.pop()) {
            match disk.submit(request) {
                Ok(()) => flying += 1,
                Err(request) => {
                    held = Some(request);
                    break;
                }
            }
        }
        let mut answered = false;
        let blind = flying > 0 && ready(disk).is_none();
        while let Some(done) = disk.complete(if blind && !answered { TICK } else { Duration::ZERO }) {
            flying = flying.saturating_sub(1);
            answered |= ports.answers.push(Answer { done, bytes: disk.info().bytes }).is_ok();
        }
        if answered {
            (ports.notify)();
        }
        // A disk that holds requests back, or cannot tell when it is ready, is looked after without sleeping.
        if held.is_none() && (flying == 0 || ready(disk).is_some()) {
            ports.waker.wait(ready(disk));
        }
    }
}
