//! Synchronisation primitives between the writers and their disk. The tests put shuttle's versions in this
//! place, to try the orders in which threads may run (see `shuttled`).

pub(super) use super::signal::Signal;
pub(super) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
