//! Lanes: bring the examined batches of one item, or of one stream, back into their order, and fold them.

use crate::batch::{Batch, Contents, LaneId};
use crate::module::{Flow, Module, ModuleError, Outputs};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Batch that has been examined.
pub(crate) struct Examined<M: Module> {
    pub(crate) batch: Batch,
    /// Result over the part that the batch has; `None` where it has whole items.
    pub(crate) partial: Option<Result<M::Partial, ModuleError>>,
    /// Results over whole items.
    pub(crate) outputs: Outputs<M::Output>,
}

/// Batch whose results are complete.
pub(crate) struct Folded<M: Module> {
    pub(crate) batch: Batch,
    pub(crate) outputs: Outputs<M::Output>,
    /// Reason why its item was given up.
    pub(crate) error: Option<ModuleError>,
}

struct Lane<M: Module> {
    next: u64,
    pending: BTreeMap<u64, Examined<M>>,
    busy: bool,
    /// State of the item of which a part was folded last; `None` in between, or when the item was given up.
    state: Option<M::State>,
}

/// Lanes with batches under way.
pub(crate) struct Lanes<M: Module> {
    lanes: Mutex<HashMap<u64, Arc<Mutex<Lane<M>>>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: Module> Lanes<M> {
    pub(crate) fn new() -> Self {
        Self { lanes: Mutex::default() }
    }

    /// Takes an examined batch, and folds all that are next in its lane. Only one thread folds a lane at a time: others leave
    /// their batch to it.
    pub(crate) fn submit(&self, module: &M, examined: Examined<M>, emit: &mut dyn FnMut(Folded<M>)) {
        let Some(ticket) = examined.batch.ticket.clone() else { return };
        let lane = Arc::clone(locked(&self.lanes).entry(ticket.lane.id).or_insert_with(|| {
            let state = None;
            Arc::new(Mutex::new(Lane { next: 0, pending: BTreeMap::new(), busy: false, state }))
        }));
        let mut held = locked(&lane);
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
            let (folded, is_last) = fold(module, &mut state, examined, &ticket.lane);
            emit(folded);
            held = locked(&lane);
            held.state = state;
            if is_last {
                locked(&self.lanes).remove(&ticket.lane.id);
            }
        }
        held.busy = false;
    }
}

/// Folds a batch; true if it is the last of its lane.
fn fold<M: Module>(
    module: &M,
    state: &mut Option<M::State>,
    examined: Examined<M>,
    lane: &LaneId,
) -> (Folded<M>, bool) {
    let Examined { batch, partial, mut outputs } = examined;
    let Contents::Part(part) = &batch.contents else {
        return (Folded { batch, outputs, error: None }, false);
    };
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
    (Folded { batch, outputs, error }, is_last)
}
