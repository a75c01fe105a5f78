//! Disks: the trait through which all bytes reach a medium, its kinds, and the buffers they move.
//!
//! Here belongs what touches a device: io_uring, plain files, memory, faults, locks, foreign signatures.
//! What the bytes mean does not: that is the `format` crate's.

mod buffer;
mod disk;

pub use buffer::{Buffer, BufferPool};
pub use disk::{Completion, Disk, DiskError, DiskInfo, Fault, Medium, Op, Request};
