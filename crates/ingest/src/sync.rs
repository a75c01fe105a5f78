//! Synchronisation primitives of the queues, in one place so that a test can substitute a model checker's.
//!
//! `tests/it/queue_shuttle.rs` compiles `queue.rs` a second time against shuttle's versions of these names.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
