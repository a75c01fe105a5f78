//! Disks: the trait through which all bytes reach a medium, its kinds, and the buffers they move.
//!
//! Here belongs what touches a device: io_uring, plain files, memory, faults, locks, foreign signatures.
//! What the bytes mean does not: that is the `format` crate's.

mod arena;
mod buffer;
mod disk;
mod faulty;
mod image;
mod memory;
mod seed;

pub use buffer::{Buffer, BufferPool, Lock, PoolError, Region};
pub use disk::{Completion, Disk, DiskError, DiskInfo, Fault, Medium, Op, Request};
pub use faulty::{FaultPlan, FaultyDisk, Stall, Survival};
pub use image::Image;
pub use memory::MemoryDisk;
pub use seed::Seed;
