//! Disks: the trait through which all bytes reach a medium, its kinds, and the buffers they move.
//!
//! Here belongs what touches a device: `io_uring`, plain files, memory, faults, emulated drives, locks, foreign
//! signatures; and memory that is shared with other processes, with the sockets at which they get it.
//! What the bytes mean does not: that is the `format` crate's.
#![deny(unsafe_code)]

mod arena;
mod buffer;
mod device;
mod disk;
pub mod drive;
mod fault;
mod faulty;
mod file;
mod image;
mod inflight_limiter;
mod lane;
mod memory;
mod plain;
mod priority;
mod privilege;
mod profile;
mod real;
mod seed;
mod share;
mod uring;

pub use arena::vector;
pub use buffer::{Buffer, BufferPool, Lock, Peek, PoolError, Region};
pub use device::{
    Access, CreateError, Device, Footing, Foreign, Holder, OpenError, Prefill, create_file, extend_file,
    owner, signature, wipe,
};
pub use disk::{Completion, Disk, DiskError, DiskInfo, Fault, Medium, Op, Request};
pub use drive::{Drive, DriveModel, EmulatedDisk};
pub use faulty::{FaultPlan, FaultyDisk, Stall, Survival};
pub use file::FileDisk;
pub use image::Image;
pub use inflight_limiter::InflightLimiter;
pub use lane::Lane;
pub use memory::MemoryDisk;
pub use plain::PlainDisk;
pub use priority::{LaneOptions, run_first};
pub use privilege::drop_privileges;
pub use profile::{
    BySize, Described, Identity, MAX_ZONES, PROFILE_DEPTH, Profile, ProfileBuffers, ProfileError,
    ProfileProgress, ReadError, Reposition, Stalls, Subject, Zone, describe, profile,
};
pub use real::RealDisk;
pub use seed::Seed;
pub use share::{CommonMemory, FdListener, FdListenerError, copy_out};
pub use uring::{MAX_DEPTH, UringDisk};
