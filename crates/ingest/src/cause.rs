//! Why something was lost.

/// Causes of gaps, numbered as on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// No slot was free.
    NoSlot = 1,
    /// No empty batch.
    NoBuffer = 2,
    /// The kernel dropped it.
    Kernel = 3,
    /// A crash.
    Crash = 4,
    /// The ring's device was away.
    DeviceAbsent = 5,
    /// The source failed.
    SourceFailed = 6,
    /// Purged.
    Purged = 7,
    /// Given up in the middle.
    Aborted = 8,
    /// Larger than an element may be.
    Oversized = 9,
}
