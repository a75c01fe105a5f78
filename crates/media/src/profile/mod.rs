//! Measured profile of a device. Plain data; the files beside this one measure it, the `ring` crate draws the
//! conclusions.

mod describe;
mod fit;
mod measure;
mod plan;
mod probe;
mod sct;
mod survey;

pub use describe::{Described, describe};
pub use measure::{ProfileProgress, Subject, profile};
pub use plan::MAX_ZONES;
pub use probe::{PROFILE_DEPTH, ProfileBuffers, ProfileError};

use holdfast_base::{ByteSize, Rate, Timestamp};
use std::time::Duration;

/// What was found out about a device. Everything in it was measured, but for what says otherwise.
#[derive(Clone, PartialEq, Debug)]
pub struct Profile {
    /// Which device.
    pub device: Identity,
    /// When.
    pub at: Timestamp,
    /// Stretches in rising order, without holes, from the first to the last byte.
    pub zones: Vec<Zone>,
    /// Repositioning.
    pub reposition: Reposition,
    /// What a write costs beyond its bytes to be on the medium: a flush, or FUA; the worst that was seen.
    pub commit: Duration,
    /// How long the drive tries before it gives a read up.
    pub read_error: ReadError,
    /// How it stands still at times.
    pub stalls: Stalls,
    /// Sequential writing by size of request, one at a time.
    pub by_block: Vec<BySize>,
    /// Sequential writing and reading by requests in flight, at the device's beginning.
    pub by_depth: Vec<(u16, Rate, Rate)>,
    /// Requests that it serves at once to advantage: 1 for a drive with a head.
    pub parallel: u16,
    /// Writing, a MiB at a time, while as many reads of a MiB anywhere as `parallel` says are under way. With a head that is
    /// mostly going to and fro, which a ring avoids by writing whole slots: nothing follows from it there.
    pub write_beside_reads: Rate,
    /// Whether what is written stays in a volatile cache until it is flushed; `None` where the device does not say.
    pub write_cache: Option<bool>,
    /// Whether the device can be told that places are free (discard).
    pub discard: bool,
    /// Whether every place had been written before it was measured; without that a flash device looks too fast.
    pub preconditioned: bool,
    /// Elements a second that the packer manages on this machine, of 20 bytes, on one core.
    pub packer_elements: u64,
    /// Cells of attributes a second that it manages; 0: that was not measured.
    pub packer_cells: u64,
    /// Bytes a second that it manages with elements of 1 MiB.
    pub packer_bytes: Rate,
    /// What a person should know before relying on it.
    pub remarks: Vec<String>,
}

/// Which device was measured.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// The path that it was opened by.
    pub path: String,
    /// Maker's name of it, where it says one.
    pub model: String,
    /// Its serial number, where it says one.
    pub serial: String,
    /// `device`, `file` or `memory`.
    pub medium: String,
    /// Its length.
    pub bytes: ByteSize,
    /// Whether it turns, where that is known.
    pub rotational: Option<bool>,
}

/// A stretch of a device with one profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Zone {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
    /// Sequential durable writing: the slowest that was seen within a write.
    pub write_worst: Rate,
    /// Sequential durable writing: the mean.
    pub write_mean: Rate,
    /// Sequential reading: the slowest.
    pub read_worst: Rate,
    /// Sequential reading: the mean.
    pub read_mean: Rate,
}

/// Sequential writing by requests of a size, one at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BySize {
    /// Of each.
    pub bytes: ByteSize,
    /// At the beginning of what may be written.
    pub write: Rate,
    /// At its end; `None` in profiles from before that was measured.
    pub write_at_end: Option<Rate>,
}

/// What it takes to get from one place to another and to begin there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reposition {
    /// To a place nearby: the mean.
    pub near: Duration,
    /// To any place: the mean.
    pub mean: Duration,
    /// The worst that was seen, from one end to the other.
    pub worst: Duration,
    /// From writing to reading at the same place, or back: the mean.
    pub turnaround: Duration,
}

/// How long a drive tries to read a bad place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// It says so itself (SCT error recovery control).
    Limited(Duration),
    /// It does not say: this is assumed.
    Assumed(Duration),
}

impl ReadError {
    /// The time.
    pub fn limit(self) -> Duration {
        match self {
            Self::Limited(limit) | Self::Assumed(limit) => limit,
        }
    }
}

/// In any window of length Δ the device stands still for at most `sigma` + `rho`·Δ.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stalls {
    /// The longest at once, and what adds up before the long run.
    pub sigma: Duration,
    /// The share of time in the long run, in millionths.
    pub rho: u32,
    /// How many were seen.
    pub count: u32,
    /// How long was watched.
    pub watched: Duration,
}
