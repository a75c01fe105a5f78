//! Limits that more than one crate relies on, each with its reason.

use std::time::Duration;

/// Unit of alignment on the medium: the largest logical block of ordinary disks, and the page that direct I/O wants.
pub const BLOCK: usize = 4096;

/// Bytes at the head of a lane that hold the four superblock copies.
pub const HEAD: u64 = 1 << 20;

/// Smallest slot: below it the headers cost more than a tenth of the medium.
pub const MIN_SLOT: u64 = 64 << 10;

/// Largest slot: offsets inside a slot fit in 32 bits with room, and a snapshot can still be read in seconds.
pub const MAX_SLOT: u64 = 256 << 20;

/// Below this slot size repositioning costs too much of a drive for any guarantee. The same for every device.
pub const MIN_GUARANTEED_SLOT: u64 = 8 << 20;

/// How long what packs elements may be away from its queues, in a recorder that promises a rate: sources have room for what
/// comes meanwhile. Longer than a system lets a thread wait that has a core's fair share.
pub const MAX_AWAY: Duration = Duration::from_millis(250);

/// Shortest and longest flush interval: below, the journal takes the disk from capture; above, a crash costs too much.
pub const FLUSH_LIMITS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_hours(1));

/// Streams of one ring: each has an entry in every slot's summary, which is read at every restart.
pub const MAX_STREAMS: usize = 256;

/// Bytes of a stream's or ring's name: it has a fixed place in summaries and the superblock.
pub const MAX_NAME: usize = 64;

/// Largest element: it must pass through slots of at most 256 MiB as a handful of fragments.
pub const MAX_ELEMENT: u64 = 1 << 30;

/// Bytes of payload that one checksum covers, so that verifying a small hit reads kilobytes.
pub const CHECK_BLOCK: usize = 64 << 10;

/// Bytes of metadata (packet options) that one element may carry beside its payload.
pub const MAX_META: usize = 65_535;

/// Bytes of a hold's reason and of its owner.
pub const MAX_REASON: usize = 1024;

/// Bytes of a condition that a hold looks for, as SQL: a hold has two of them at most, in a record that fits a commit.
pub const MAX_CONDITION: usize = 1024;

/// Runs of slots that follow each other which one hold may keep: its record, 16 bytes a run, goes into one commit of the
/// journal, which has at most 1 MiB, together with as many streams as there can be, its reason, its owner, and what it
/// looks for.
pub const MAX_HOLD_RUNS: usize = 65_000;

/// Release orders that a ring remembers, the newest ones: a repetition of one of them is answered as done. A client repeats an
/// order within seconds or minutes after it has lost the answer. They take 40 bytes each of a snapshot; where slots are
/// small, the ring remembers fewer, for they give way to what lasts.
pub const MAX_RELEASES: usize = 256;
