//! Status of a recorder as plain data, and the tables of its figures; the ring's own status belongs to the crate `ring`.

use crate::wire::figures::{counter, figures, gauge, slots_in, written};
use holdfast_base::{ByteSize, Rate, StreamId, Timestamp};
use holdfast_format::Cause;
use holdfast_ring::{RingStatus, SlotCounts};
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

figures! {
    /// The bird's-eye view, by which searches pass over slots without reading them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct ViewStatus {
        /// Memory of the bird's-eye view.
        bytes: ByteSize = wire, "bytes", Some(gauge("birds_eye_bytes"));
        /// Bytes for each slot.
        place: ByteSize = wire, "bytes_per_slot", None;
        /// Slots of data that the bird's-eye view tells of.
        slots: u32 = wire, "slots", Some(gauge("birds_eye_slots"));
    } and {}
}

figures! {
    /// The longest time since the start in which the capture thread did not poll its sources: asleep, at work, or
    /// without a processor. A guarantee counts on [`holdfast_base::MAX_AWAY`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct AwayStatus {
        /// The longest time since the recorder started in which capture did not look what its sources had.
        longest: Duration = wire, "away_worst_seconds", Some(gauge("away_worst_seconds"));
        /// When it came back.
        since: Timestamp = wire, "away_worst_at", None;
    } and {}
}

figures! {
    /// The margin of a guarantee.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct MarginStatus {
        /// Bytes a second on the medium that are guaranteed here and now.
        rate: Rate = wire, "medium_bytes_per_second", Some(gauge("guaranteed_bytes_per_second"));
        /// The slack with which nothing but writing is begun any more.
        kept: Duration = wire, "slack_kept_seconds", Some(gauge("slack_kept_seconds"));
        /// The least slack since the recorder started: how long capture could have gone on without any write ending.
        least: Duration = wire, "slack_least_seconds", Some(gauge("slack_least_seconds"));
        /// When that was, Unix time.
        since: Timestamp = wire, "slack_least_at", Some(gauge("slack_least_time_seconds"));
        /// The greatest age of data that was not durable yet, since the recorder started.
        eldest: Duration = wire, "durable_after_worst_seconds", Some(gauge("durable_after_worst_seconds"));
    } and {}
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

figures! {
    /// One source.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct SourceStatus {
        /// Elements received.
        elements: u64 = wire, "elements", Some(counter("stream_received_elements_total"));
        /// Bytes received.
        bytes: u64 = wire, "bytes", Some(counter("stream_received_bytes_total"));
        /// Elements packed into slots.
        packed_elements: u64 = wire, "packed_elements", Some(counter("stream_written_elements_total"));
        /// Bytes packed into slots.
        packed_bytes: u64 = wire, "packed_bytes", Some(counter("stream_written_bytes_total"));
        /// Losses of which nobody knows how much they were.
        unknown_losses: u64 = wire, "unknown_losses", Some(counter("stream_unknown_losses_total"));
        /// Elements the kernel dropped before they reached the recorder.
        kernel_drops: u64 = wire, "kernel_drops", Some(counter("stream_kernel_drops_total"));
        /// Packets the interface dropped before the kernel saw them.
        interface_drops: u64 = wire, "interface_drops", Some(counter("stream_interface_drops_total"));
        /// Packets that the kernel counts as dropped, before the recorder could take them or behind it.
        perhaps_lost: u64 = appended, "interface_perhaps_lost", Some(counter("stream_interface_perhaps_lost_total"));
        /// Elements that wait to be packed.
        waiting: u64 = wire, "waiting", Some(gauge("stream_waiting_elements"));
        /// Elements that came beyond the rate declared for the stream and were recorded all the same.
        beyond_elements: u64 = wire, "beyond_rate_elements", Some(counter("stream_beyond_rate_elements_total"));
        /// Bytes that came beyond the rate declared for the stream and were recorded all the same.
        beyond_bytes: u64 = wire, "beyond_rate_bytes", Some(counter("stream_beyond_rate_bytes_total"));
        /// Elements that are not what the stream's schema takes them for: kept, with null attributes.
        undecodable: u64 = wire, "undecodable_elements", Some(counter("stream_undecodable_elements_total"));
        /// Texts that are longer than an attribute may be, and null.
        too_long: u64 = wire, "too_long_texts", Some(counter("stream_too_long_texts_total"));
        /// Producers that are connected now.
        connections: u32 = wire, "connections", Some(gauge("stream_connections"));
        /// Producers that were turned away or put out by the recorder.
        refused: u64 = wire, "refused_producers", Some(counter("stream_refused_producers_total"));
    } and {
        /// Its stream.
        stream: StreamId,
        /// The stream's name.
        name: String,
        /// The specification on the command line.
        spec: String,
        /// Losses by cause; causes that never occurred are left out.
        dropped: Vec<Dropped>,
        /// Whether it still delivers.
        state: SourceState,
        /// Its last error, or why it delivers nothing while it runs; empty for none.
        error: String,
    }
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

figures! {
    /// One lane. Counts are of requests that have completed.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct LaneStatus {
        /// Bytes of slots written.
        slot_bytes: u64 = wire, "slot_bytes_written", Some(written("slots"));
        /// Bytes of journal written.
        journal_bytes: u64 = wire, "journal_bytes_written", Some(written("journal"));
        /// Writes, of slots and journal.
        writes: u64 = wire, "writes", None;
        /// Bytes read from the lane.
        read_bytes: u64 = wire, "read_bytes", Some(counter("lane_read_bytes_total"));
        /// Reads.
        reads: u64 = wire, "reads", None;
        /// Requests that failed.
        errors: u64 = wire, "errors", Some(counter("lane_errors_total"));
    } and {
        /// Path of its device or file.
        path: String,
        /// Latency of writes.
        write_latency: Latency,
        /// Latency of reads.
        read_latency: Latency,
    }
}

figures! {
    /// Slot buffers, and the margin they show.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct BufferStatus {
        /// Slot buffers there are.
        count: u32 = wire, "buffers", Some(gauge("buffers"));
        /// Slot buffers in use now.
        in_use: u32 = wire, "buffers_in_use", Some(gauge("buffers_in_use"));
        /// Slot buffers in use at most since the recorder started: what is left to the number of buffers is the margin.
        most_in_use: u32 = wire, "buffers_most_in_use", Some(gauge("buffers_most_in_use"));
        /// When so many were in use for the first time, Unix time.
        most_at: Timestamp = wire, "buffers_most_in_use_at", Some(gauge("buffers_most_in_use_time_seconds"));
    } and {}
}

figures! {
    impl SlotCounts {
        /// All slots of the ring.
        total: u32 = wire, "total", None;
        /// Slots that were never written, or were given back.
        free: u32 = wire, "free", Some(slots_in("free"));
        /// Slots of data that will expire.
        live: u32 = wire, "live", Some(slots_in("live"));
        /// Slots of data that a hold keeps.
        held: u32 = wire, "held", Some(slots_in("held"));
        /// Slots that are overwritten next.
        runway: u32 = wire, "runway", Some(slots_in("runway"));
        /// Slots that are being written.
        writing: u32 = wire, "writing", Some(slots_in("writing"));
        /// Slots of data that did not pass its check.
        damaged: u32 = wire, "damaged", Some(slots_in("damaged"));
        /// Slots that cannot be used.
        bad: u32 = wire, "bad", Some(slots_in("bad"));
        /// More slots that may be held.
        holdable: u32 = wire, "holdable", Some(gauge("slots_holdable"));
        /// Slots that background work or queries keep from expiring.
        pinned: u32 = wire, "pinned", Some(slots_in("pinned"));
        /// Slots for which a file has no place on its device yet.
        unwritten: u32 = wire, "unwritten", None;
        /// Slots set aside for what holds by condition are still to find.
        promised: u32 = wire, "promised", Some(gauge("slots_promised"));
    }
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
