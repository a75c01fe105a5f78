//! Lanes: bring the examined batches of one item, or of one stream, back into their order, and fold them.

use crate::batch::{Batch, Contents, LaneId, Ticket};
use crate::module::{Flow, Module, ModuleError, Outputs};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Batch that has been examined.
pub(crate) struct Examined<M: Module> {
    pub(crate) batch: Batch,
    /// Result over the part that the batch has; `None` where it has whole items.
    pub(crate) partial: Option<Result<M::Partial, ModuleError>>,
    /// Results over whole items.
    pub(crate) results: Vec<M::Output>,
}

/// Batch whose results are complete.
pub(crate) struct Folded<M: Module> {
    pub(crate) batch: Batch,
    pub(crate) results: Vec<M::Output>,
    /// Limits of the module that its item met.
    pub(crate) warnings: Vec<String>,
    /// Reason why its item was given up.
    pub(crate) error: Option<ModuleError>,
    /// Seconds that the output took meanwhile.
    pub(crate) seconds: f64,
}

struct Lane<M: Module> {
    next: u64,
    pending: BTreeMap<u64, Examined<M>>,
    busy: bool,
    /// State of the item of which a part was folded last; `None` in between, or when the item was given up.
    state: Option<M::State>,
}

/// Lane, and the event that its next batch has been folded.
struct Turning<M: Module> {
    lane: Mutex<Lane<M>>,
    turned: Condvar,
}

/// Lanes with batches under way.
pub(crate) struct Lanes<M: Module> {
    lanes: Mutex<HashMap<u64, Arc<Turning<M>>>>,
    /// True once a worker has left without its batch.
    is_broken: AtomicBool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Module> Lanes<M> {
    pub(crate) fn new() -> Self {
        Self { lanes: Mutex::default(), is_broken: AtomicBool::new(false) }
    }

    fn lane(&self, id: u64) -> Arc<Turning<M>> {
        let begun = || {
            let lane = Lane { next: 0, pending: BTreeMap::new(), busy: false, state: None };
            Arc::new(Turning { lane: Mutex::new(lane), turned: Condvar::new() })
        };
        Arc::clone(locked(&self.lanes).entry(id).or_insert_with(begun))
    }

    /// Waits until all batches in front of one are folded.
    ///
    /// Only for batches of lanes that have a single reader: their batches are taken in order, so that the worker of the first
    /// one never waits.
    pub(crate) fn wait(&self, ticket: &Ticket) {
        let turning = self.lane(ticket.lane.id);
        let mut lane = locked(&turning.lane);
        while (lane.next < ticket.number || lane.busy) && !self.is_broken.load(Ordering::Relaxed) {
            lane = turning.turned.wait(lane).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes all that wait for a batch that will never come.
    pub(crate) fn give_up(&self) {
        self.is_broken.store(true, Ordering::Relaxed);
        for turning in locked(&self.lanes).values() {
            drop(locked(&turning.lane));
            turning.turned.notify_all();
        }
    }

    /// Takes an examined batch, and folds all that are next in its lane. Only one thread folds a lane at a time: others leave
    /// their batch to it.
    pub(crate) fn submit(
        &self,
        module: &M,
        examined: Examined<M>,
        way: &dyn Fn(Vec<M::Output>),
        emit: &mut dyn FnMut(Folded<M>),
    ) {
        let Some(ticket) = examined.batch.ticket.clone() else { return };
        let turning = self.lane(ticket.lane.id);
        let lane = &turning.lane;
        let mut held = locked(lane);
        held.pending.insert(ticket.number, examined);
        if held.busy {
            return;
        }
        held.busy = true;
        loop {
            let next = held.next;
            let Some(examined) = held.pending.remove(&next) else { break };
            held.next += 1;
            let mut state = held.state.take();
            drop(held);
            let (folded, is_last) = fold(module, &mut state, examined, &ticket.lane, way);
            emit(folded);
            held = locked(lane);
            held.state = state;
            if is_last {
                locked(&self.lanes).remove(&ticket.lane.id);
            }
        }
        held.busy = false;
        drop(held);
        turning.turned.notify_all();
    }
}

/// Folds a batch; true if it is the last of its lane.
fn fold<M: Module>(
    module: &M,
    state: &mut Option<M::State>,
    examined: Examined<M>,
    lane: &LaneId,
    way: &dyn Fn(Vec<M::Output>),
) -> (Folded<M>, bool) {
    let Examined { batch, partial, results } = examined;
    let Contents::Part(part) = &batch.contents else {
        return (Folded { batch, results, warnings: Vec::new(), error: None, seconds: 0.0 }, false);
    };
    let mut outputs = Outputs::leaving(way);
    let block = part.block(&batch.buffer);
    let step = || -> Result<(), ModuleError> {
        if let Some(failed) = &part.failed {
            *state = None;
            return Err(ModuleError(failed.clone()));
        }
        if part.first {
            *state = Some(module.start(&block.item)?);
        }
        let Some(mut present) = state.take() else { return Ok(()) };
        let partial = partial.unwrap_or_else(|| Err(ModuleError("the block was not examined".to_owned())))?;
        let flow = module.fold(&mut present, &block, partial, &mut outputs)?;
        if part.last || flow == Flow::Enough {
            lane.skip();
            return module.end(&block.item, present, &mut outputs);
        }
        *state = Some(present);
        Ok(())
    };
    let error = step().err();
    if error.is_some() {
        lane.skip();
    }
    let is_last = part.last && lane.is_single;
    let Outputs { results, warnings, seconds, .. } = outputs;
    (Folded { batch, results, warnings, error, seconds }, is_last)
}
