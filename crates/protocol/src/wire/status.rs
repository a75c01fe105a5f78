//! Status of a recorder as plain data; the ring's own status belongs to the crate `ring`.

use holdfast_base::{ByteSize, Rate, StreamId, Timestamp};
use holdfast_format::Cause;
use holdfast_ring::RingStatus;
use std::time::Duration;

/// Buckets of a latency histogram: bucket `n` counts what took from 2ⁿ⁻¹ up to 2ⁿ µs (bucket 0: under 1 µs), the last
/// one everything above: 2³⁰ µs is 18 minutes, far beyond any drive's error limit.
pub const LATENCY_BUCKETS: usize = 32;

/// A ring, and the recorder that owns it, if one runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The ring.
    pub ring: RingStatus,
    /// The recorder; `None` when the ring was opened without one.
    pub recorder: Option<RecorderStatus>,
}

/// A running recorder. All counts are since its start; a client that wants rates takes two and divides by the
/// difference of [`RecorderStatus::uptime`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecorderStatus {
    /// Its process.
    pub pid: u32,
    /// When it started.
    pub since: Timestamp,
    /// Arrival time now: its monotonic clock, anchored to UTC.
    pub now: Timestamp,
    /// Monotonic time since its start.
    pub uptime: Duration,
    /// How the device does.
    pub device: DeviceStatus,
    /// Its sources, in the order they were given.
    pub sources: Vec<SourceStatus>,
    /// Its lanes.
    pub lanes: Vec<LaneStatus>,
    /// Slot buffers.
    pub buffers: BufferStatus,
    /// How long capture was away.
    pub away: AwayStatus,
    /// What a person should know, such as memory that could not be locked.
    pub warnings: Vec<String>,
    /// How near it came to losing what it had promised to keep; `None` where it does its best.
    pub margin: Option<MarginStatus>,
    /// Its bird's-eye view, where it keeps one.
    pub view: Option<ViewStatus>,
    /// What came lately; `None` from a recorder that does not tell.
    pub recent: Option<RecentStatus>,
}

/// What came in the last minute or a little more, or since the start where that is less.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecentStatus {
    /// How long that is.
    pub span: Duration,
    /// Bytes of slots written in it.
    pub slot_bytes: u64,
    /// Bytes of journal written in it.
    pub journal_bytes: u64,
    /// The sources, in their order.
    pub sources: Vec<RecentSource>,
}

/// The same of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentSource {
    /// Elements received.
    pub elements: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Elements lost, here or before they came here.
    pub lost: u64,
    /// Losses of which nobody knows how much they were.
    pub unknown_losses: u64,
    /// When, since the start, it last lost anything, within a second or so.
    pub last_lost: Option<Timestamp>,
}

/// The bird's-eye view, by which searches pass over slots without reading them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewStatus {
    /// Bytes of memory.
    pub bytes: ByteSize,
    /// Bytes for each slot.
    pub place: ByteSize,
    /// Slots of data that it tells of.
    pub slots: u32,
}

/// The longest time since the start in which the capture thread did not look what its sources had: asleep, at work, or
/// without a processor. A guarantee counts on [`holdfast_base::MAX_AWAY`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AwayStatus {
    /// So long.
    pub longest: Duration,
    /// When it came back.
    pub since: Timestamp,
}

/// The margin of a guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarginStatus {
    /// Bytes a second, on the medium, that are promised.
    pub rate: Rate,
    /// The slack with which nothing but writing is begun any more: for the longest read, commit and pause, and a burst.
    pub kept: Duration,
    /// The least slack since the start: how long capture could have gone on without any write ending.
    pub least: Duration,
    /// When that was.
    pub since: Timestamp,
    /// The greatest age of data that was not durable yet, since the start: what a crash could have cost at worst.
    pub eldest: Duration,
}

/// Whether the lane's device answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceState {
    /// It answers.
    #[default]
    Ok,
    /// A request failed and is being tried again.
    Retrying,
    /// It is gone; it is tried again from time to time.
    Absent,
}

/// How a lane's device does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceStatus {
    /// Whether it answers.
    pub state: DeviceState,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// The last error, empty for none.
    pub error: String,
}

/// Losses of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// Why.
    pub cause: Cause,
    /// Elements.
    pub elements: u64,
    /// Their bytes; for causes outside Holdfast only what is known of them.
    pub bytes: u64,
}

/// Whether a source still delivers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceState {
    /// It delivers, or will.
    #[default]
    Running,
    /// Its input ended.
    Ended,
    /// It failed: see [`SourceStatus::error`].
    Failed,
}

/// One source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceStatus {
    /// Its stream.
    pub stream: StreamId,
    /// The stream's name.
    pub name: String,
    /// What was given on the command line.
    pub spec: String,
    /// Elements received.
    pub elements: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Elements that are in slots, or on their way into them.
    pub packed_elements: u64,
    /// Their bytes.
    pub packed_bytes: u64,
    /// What was lost, by cause; causes that never occurred are left out.
    pub dropped: Vec<Dropped>,
    /// Losses since the start of which nobody knows how much they were.
    pub unknown_losses: u64,
    /// What the kernel says it dropped between the interface and us.
    pub kernel_drops: u64,
    /// What the interface says it dropped before the kernel saw it.
    pub interface_drops: u64,
    /// What it counts as dropped somewhere: before we could take it, or behind us.
    pub perhaps_lost: u64,
    /// Elements that wait to be packed.
    pub waiting: u64,
    /// Elements that came beyond the rate that was declared for the stream, and were packed all the same.
    pub beyond_elements: u64,
    /// Their bytes.
    pub beyond_bytes: u64,
    /// Elements that are not what the stream's schema takes them for: kept, and what cannot be read of them is null.
    pub undecodable: u64,
    /// Texts that are longer than an attribute may be, and null.
    pub too_long: u64,
    /// Connections that are open now.
    pub connections: u32,
    /// Producers that were turned away, or put out, by the recorder: what they had to send is not there.
    pub refused: u64,
    /// Whether it still delivers.
    pub state: SourceState,
    /// Its last error, or why it delivers nothing while it runs; empty for none.
    pub error: String,
}

/// How long requests took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Requests by how long they took: see [`LATENCY_BUCKETS`].
    pub buckets: [u64; LATENCY_BUCKETS],
    /// The worst.
    pub worst: Duration,
    /// All together.
    pub total: Duration,
}

impl Latency {
    /// The bucket that counts what took `span`.
    pub fn bucket(span: Duration) -> usize {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        ((u64::BITS - micros.leading_zeros()) as usize).min(LATENCY_BUCKETS - 1)
    }

    /// Counts one request.
    pub fn add(&mut self, span: Duration) {
        self.buckets[Self::bucket(span)] += 1;
        self.worst = self.worst.max(span);
        self.total = self.total.saturating_add(span);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// One lane. Counts are of requests that have completed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaneStatus {
    /// Path of its device or file.
    pub path: String,
    /// Bytes of slots written.
    pub slot_bytes: u64,
    /// Bytes of journal written.
    pub journal_bytes: u64,
    /// Writes, of slots and journal.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Reads.
    pub reads: u64,
    /// Requests that failed.
    pub errors: u64,
    /// How long writes took.
    pub write_latency: Latency,
    /// How long reads took.
    pub read_latency: Latency,
}

/// Slot buffers, and the margin they show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferStatus {
    /// How many there are.
    pub count: u32,
    /// In use now.
    pub in_use: u32,
    /// In use at most.
    pub most_in_use: u32,
    /// When so many were in use for the first time.
    pub most_at: Timestamp,
}

impl BufferStatus {
    /// The margin: fewest free buffers seen.
    pub fn least_free(&self) -> u32 {
        self.count.saturating_sub(self.most_in_use)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_fall_into_powers_of_two() {
        for (micros, bucket) in [(0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (1 << 30, 31), (u64::MAX, 31)] {
            assert_eq!(Latency::bucket(Duration::from_micros(micros)), bucket, "{micros}");
        }
        let mut latency = Latency::default();
        latency.add(Duration::from_micros(5));
        latency.add(Duration::from_millis(5));
        assert_eq!((latency.count(), latency.worst), (2, Duration::from_millis(5)));
    }
}
