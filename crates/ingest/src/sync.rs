//! The primitives the queues stand on, in one place, so that a test can put a model checker's in theirs.
//!
//! `tests/it/queue_shuttle.rs` compiles `queue.rs` a second time against shuttle's versions of these names.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard};
