//! Synchronisation primitives of the queues between threads. The tests put shuttle's versions in this place,
//! to try the orders in which threads may run (see `shuttled`).

pub(super) use super::waker::Waker;
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use std::sync::{Arc, Mutex, PoisonError};
