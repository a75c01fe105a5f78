//! Pace of sending: the number of segments on their way, and the choice of compression. Pure: measurements in, choices out.

use crate::settings::Compress;
use std::time::Duration;

/// Weight of a new measurement in a mean, as one in this many.
const MEMORY: f64 = 8.0;

/// Segments beside the usual two until something is measured.
const UNMEASURED: usize = 1;

/// Segments between two probes of compression while it is off.
const PROBE_EVERY: u64 = 32;

/// Measurement of one segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SegmentTimes {
    /// Bytes of the segment.
    pub(super) bytes: u64,
    /// Bytes of its body on the network.
    pub(super) wire_bytes: u64,
    /// Time from the start of the request to its answer.
    pub(super) total: Duration,
    /// Time of compressing before the request, zero if it was not compressed.
    pub(super) compressing: Duration,
    /// Time from the first to the last byte of the body at the archive.
    pub(super) receive: Option<Duration>,
    /// Time of waiting for the turn and of storing at the archive.
    pub(super) archive: Duration,
}

/// Pace of one link.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    most: usize,
    compress: Compress,
    has_ahead: bool,
    /// Shortest time of the body on the network for a whole segment, in seconds.
    transfer: Option<f64>,
    /// Mean time in which neither the body is transferred nor the archive works, in seconds.
    latency: Option<f64>,
    /// Mean seconds of network time for each byte on the network.
    network_per_byte: Option<f64>,
    /// Mean seconds of compressing for each byte.
    compress_per_byte: Option<f64>,
    /// Mean share of the bytes that compression leaves.
    ratio: Option<f64>,
    segments: u64,
}

fn mean(mean: &mut Option<f64>, new: f64) {
    *mean = Some(mean.map_or(new, |old| old + (new - old) / MEMORY));
}

impl Pace {
    /// Pace with at most `most` segments of one upload on their way.
    pub(super) fn new(most: usize, compress: Compress) -> Self {
        Self {
            most: most.max(1),
            compress,
            has_ahead: false,
            transfer: None,
            latency: None,
            network_per_byte: None,
            compress_per_byte: None,
            ratio: None,
            segments: 0,
        }
    }

    /// Tells that the archive takes segments before their turn.
    pub(super) fn allow_ahead(&mut self) {
        self.has_ahead = true;
    }

    /// Takes the measurement of a segment.
    pub(super) fn take(&mut self, times: &SegmentTimes) {
        if times.bytes == 0 {
            return;
        }
        let network = times.total.saturating_sub(times.archive);
        if let Some(receive) = times.receive {
            let receive = receive.as_secs_f64();
            mean(&mut self.latency, (network.as_secs_f64() - receive).max(0.0));
            // Segments that are on their way together share the link.
            let receive = receive / self.window() as f64;
            // The shortest transfer is that of a segment which had the link for itself.
            let kept =
                self.transfer.map_or(receive, |old| old.min(receive) * 0.95 + receive.min(old * 4.0) * 0.05);
            self.transfer = Some(kept);
        }
        let wire = times.wire_bytes.max(1) as f64;
        mean(&mut self.network_per_byte, network.as_secs_f64() / wire);
        if !times.compressing.is_zero() {
            let bytes = times.bytes as f64;
            mean(&mut self.compress_per_byte, times.compressing.as_secs_f64() / bytes);
            mean(&mut self.ratio, wire / bytes);
        }
    }

    /// Segments of one upload that may be on their way: one is transferred, one is being stored, and as many as the latency
    /// has room for.
    pub(super) fn window(&self) -> usize {
        if !self.has_ahead {
            return 1;
        }
        let in_latency = match (self.latency, self.transfer) {
            (Some(latency), Some(transfer)) => (latency / transfer.max(1e-5)) as usize,
            _ => UNMEASURED,
        };
        in_latency.saturating_add(2).min(self.most)
    }

    /// Chooses compression for the next segment: when it saves more time on the network than it takes.
    pub(super) fn compresses(&mut self) -> bool {
        match self.compress {
            Compress::Always => true,
            Compress::Never => false,
            Compress::Auto => {
                self.segments += 1;
                let is_gain = match (self.network_per_byte, self.compress_per_byte, self.ratio) {
                    (Some(network), Some(compress), Some(ratio)) => network * (1.0 - ratio) > compress,
                    (Some(_), _, _) => true,
                    (None, _, _) => false,
                };
                is_gain || self.segments.is_multiple_of(PROBE_EVERY)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(latency_ms: u64, receive_ms: u64) -> SegmentTimes {
        SegmentTimes {
            bytes: 1 << 20,
            wire_bytes: 1 << 20,
            total: Duration::from_millis(latency_ms + receive_ms + 5),
            compressing: Duration::ZERO,
            receive: Some(Duration::from_millis(receive_ms)),
            archive: Duration::from_millis(5),
        }
    }

    #[test]
    fn window_covers_the_latency() {
        for (latency, receive, expected) in [(0, 1, 2), (50, 8, 8), (200, 840, 2), (200, 84, 4), (500, 1, 16)]
        {
            let mut pace = Pace::new(16, Compress::Never);
            pace.take(&times(latency, receive));
            assert_eq!(pace.window(), 1, "servers that only append get one segment");
            pace.allow_ahead();
            assert_eq!(pace.window(), expected, "{latency} ms, {receive} ms");
        }
    }

    #[test]
    fn compression_is_used_where_the_link_is_the_limit() {
        let compressed = |network_ms: u64| SegmentTimes {
            wire_bytes: 1 << 19,
            compressing: Duration::from_millis(3),
            total: Duration::from_millis(network_ms + 5),
            ..times(0, 0)
        };
        let mut slow = Pace::new(8, Compress::Auto);
        slow.take(&compressed(400));
        assert!(slow.compresses());
        let mut fast = Pace::new(8, Compress::Auto);
        fast.take(&compressed(1));
        assert_eq!((0..64).filter(|_| fast.compresses()).count(), 2, "only probes");
        assert!(!Pace::new(8, Compress::Never).compresses());
        assert!(Pace::new(8, Compress::Always).compresses());
    }
}
