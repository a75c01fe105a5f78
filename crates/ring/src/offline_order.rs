//! Orders on a ring without a recorder: open it, carry one order out, wait until it is durable, close it.

use crate::driver::Driver;
use crate::event::Config;
use crate::job_step::JobStep;
use crate::{ExtendRequest, JobError, Order, OrderTag, Outcome, RecoverError, Work, recover};
use holdfast_base::Clock;
use holdfast_format::Cursor;
use holdfast_media::{Disk, PoolError};
use std::time::Duration;

/// Buffers that a later recorder is assumed to have, for what must stay free of holds.
pub(crate) const BUFFERS: u32 = 4;

/// Why an order could not be given.
#[derive(Debug, thiserror::Error)]
pub enum OfflineOrderError {
    /// The ring could not be opened.
    #[error(transparent)]
    Recover(#[from] RecoverError),
    /// No memory for buffers.
    #[error(transparent)]
    Memory(#[from] PoolError),
    /// What takes many steps stopped on its way.
    #[error(transparent)]
    Stopped(#[from] JobError),
    /// It gave way to somebody else before it was carried out, or half-way; given again, it goes on from there.
    #[error("the order gave way to a recorder that starts: give it again")]
    GaveWay {
        /// Elements that a purge destroyed until then.
        elements: u64,
        /// Bytes of those elements.
        bytes: u64,
        /// Slots that it overwrote. Given again, it may find nothing more.
        slots: u32,
    },
    /// The disk failed meanwhile.
    #[error("{0}: nothing was acknowledged")]
    Failed(String),
}

/// Carries out one order, durably. The disk must be owned exclusively. `patient` is asked now and then whether to go on
/// waiting for a device that does not answer.
pub fn order_offline<D: Disk>(
    disk: D,
    order: Order,
    clock: &dyn Clock,
    patient: &mut dyn FnMut() -> bool,
) -> Result<Outcome, OfflineOrderError> {
    order_giving_way(disk, order, clock, patient, &|| false)
}

/// The same, but stops with [`OfflineOrderError::GaveWay`] once `gives_way` says so: before anything is written, or where
/// an order that takes many steps can stop. An order that is one commit is finished once it has begun.
pub fn order_giving_way<D: Disk>(
    mut disk: D,
    order: Order,
    clock: &dyn Clock,
    patient: &mut dyn FnMut() -> bool,
    gives_way: &dyn Fn() -> bool,
) -> Result<Outcome, OfflineOrderError> {
    let recovered = recover(&mut disk)?;
    if gives_way() {
        return Err(OfflineOrderError::GaveWay { elements: 0, bytes: 0, slots: 0 });
    }
    let clean = !recovered.after_crash();
    let config = Config { buffers: BUFFERS, flush: Duration::from_secs(1), writes: 1 };
    let mut driver = Driver::start(disk, recovered, Vec::new(), config, clock.now(), clock.wall())?;
    let mut until = |driver: &mut Driver<D>, done: &mut dyn FnMut(&mut Driver<D>) -> bool| {
        while !done(driver) {
            driver.poll(clock.now(), Duration::from_millis(100), None, &mut |_, _| (Cursor::default(), true));
            if driver.ring().is_absent() && !patient() {
                return Err(OfflineOrderError::Failed(
                    driver.last_error().unwrap_or("the device does not answer").to_owned(),
                ));
            }
        }
        Ok(())
    };
    until(&mut driver, &mut |d| !d.is_starting())?;
    let outcome = if let Some(work) = Work::of(&order) {
        let superblock = driver.superblock().clone();
        let mut failed = None;
        let (mut gave_way, mut destroyed) = (false, (0, 0, 0));
        let mut port = |step: JobStep| {
            if can_stop(&work, &step) && gives_way() {
                gave_way = true;
                return None;
            }
            let step = match step {
                // What was destroyed until then is on record before anybody else has the ring.
                JobStep::End { record, slots, .. } if gave_way => {
                    destroyed = (record.elements, record.bytes, slots);
                    JobStep::End { record, slots, complete: true }
                }
                step => step,
            };
            driver.step(step, clock.now());
            let mut reply = None;
            let waited = until(&mut driver, &mut |d| {
                reply = reply.take().or(d.step_reply());
                reply.is_some()
            });
            failed = failed.take().or(waited.err());
            reply
        };
        let done = work.run(&superblock, clock.now(), &mut port, &|| false);
        match (done, failed) {
            (Ok(outcome), None) => Ok(outcome),
            (_, Some(error)) => return Err(error),
            (Err(JobError::Closed), None) if gave_way => {
                let (elements, bytes, slots) = destroyed;
                Err(OfflineOrderError::GaveWay { elements, bytes, slots })
            }
            (Err(error), None) => return Err(OfflineOrderError::Stopped(error)),
        }
    } else {
        let order = match order {
            // Nobody is there to keep it in mind.
            Order::Extend(extend) => Order::Extend(ExtendRequest { durable: true, ..extend }),
            order => order,
        };
        driver.order(OrderTag(1), order, None, clock.now());
        let mut outcome = None;
        until(&mut driver, &mut |d| {
            outcome = outcome.take().or(d.reply());
            outcome.is_some()
        })?;
        Ok(outcome
            .map(|(_, outcome)| outcome)
            .ok_or_else(|| OfflineOrderError::Failed("no outcome".to_owned()))?)
    };
    if clean {
        driver.ring_mut().end(clock.now());
    }
    until(&mut driver, &mut |d| d.is_idle())?;
    outcome
}

/// Returns true before a step at which work can stop: nothing is half overwritten then. Between two of them a purge goes through
/// one slot at most, or both journal extents at the end. What closes the work, and gives slots and buffers back, always goes on.
fn can_stop(work: &Work, step: &JobStep) -> bool {
    match step {
        JobStep::Lock(_) | JobStep::NewCopy | JobStep::Pause => true,
        JobStep::Due { .. } | JobStep::Read { .. } => matches!(work, Work::Distil(_)),
        _ => false,
    }
}
