//! Counters of a server and their text in the exposition format of Prometheus.

use crate::problem::ProblemKind;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the buckets of durations, in milliseconds.
const BOUNDS: [u64; 8] = [1, 5, 25, 100, 500, 2_500, 10_000, 60_000];

/// Counter that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Durations counted in buckets.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    buckets: [Counter; BOUNDS.len()],
    count: Counter,
    milliseconds: Counter,
}

impl Histogram {
    pub(crate) fn record(&self, duration: Duration) {
        let milliseconds = duration.as_millis() as u64;
        if let Some(bucket) = BOUNDS.iter().position(|bound| milliseconds <= *bound) {
            self.buckets[bucket].add(1);
        }
        self.count.add(1);
        self.milliseconds.add(milliseconds);
    }
}

/// Counters of one server since its start.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) uploads_created: Counter,
    pub(crate) uploads_finished: Counter,
    pub(crate) uploads_stored: Counter,
    pub(crate) uploads_failed: Counter,
    pub(crate) uploads_expired: Counter,
    pub(crate) delivery_retries: Counter,
    pub(crate) driver_successes: Counter,
    pub(crate) driver_failures: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) checksum_mismatches: Counter,
    pub(crate) damaged_reads: Counter,
    pub(crate) rejected_connections: Counter,
    pub(crate) requests: Histogram,
    pub(crate) deliveries: Histogram,
    rejected: [Counter; ProblemKind::ALL.len()],
}

impl Metrics {
    /// Counts a request that was answered by a problem.
    pub(crate) fn reject(&self, kind: ProblemKind) {
        self.rejected[kind as usize].add(1);
    }

    /// All counters in Prometheus' text format.
    pub(crate) fn text(&self, open_uploads: usize) -> String {
        let mut text = String::new();
        let counters = [
            ("uploads_created_total", "Uploads that were created.", &self.uploads_created),
            ("uploads_finished_total", "Uploads whose last byte became durable.", &self.uploads_finished),
            ("uploads_stored_total", "Uploads that the archive has stored.", &self.uploads_stored),
            ("uploads_failed_total", "Uploads that cannot be completed.", &self.uploads_failed),
            ("uploads_expired_total", "Uploads that expired unfinished.", &self.uploads_expired),
            ("delivery_retries_total", "Failed attempts to store in the archive.", &self.delivery_retries),
            ("driver_successes_total", "Runs of drivers that succeeded.", &self.driver_successes),
            ("driver_failures_total", "Runs of drivers that failed.", &self.driver_failures),
            ("received_bytes_total", "Bytes of uploads that were received.", &self.received_bytes),
            ("sent_bytes_total", "Bytes of contents that were sent.", &self.sent_bytes),
            ("checksum_mismatches_total", "Requests with a wrong checksum.", &self.checksum_mismatches),
            (
                "damaged_reads_total",
                "Answers that were cut because of damaged contents.",
                &self.damaged_reads,
            ),
            ("rejected_connections_total", "Connections beyond the limit.", &self.rejected_connections),
        ];
        gauge(&mut text, "uploads_open", "Uploads that are not settled.", open_uploads as u64);
        for (name, help, counter) in counters {
            head(&mut text, name, help, "counter");
            let _ = writeln!(text, "holdfast_{name} {}", counter.get());
        }
        head(&mut text, "rejected_requests_total", "Requests that were answered by a problem.", "counter");
        for (kind, counter) in ProblemKind::ALL.iter().zip(&self.rejected) {
            let (status, name, _) = kind.entry();
            let count = counter.get();
            let _ = writeln!(
                text,
                "holdfast_rejected_requests_total{{problem=\"{name}\",status=\"{status}\"}} {count}"
            );
        }
        histogram(&mut text, "request_duration_seconds", "Time until the head of an answer.", &self.requests);
        histogram(&mut text, "delivery_duration_seconds", "Time of one store operation.", &self.deliveries);
        text
    }
}

fn head(text: &mut String, name: &str, help: &str, kind: &str) {
    let _ = writeln!(text, "# HELP holdfast_{name} {help}\n# TYPE holdfast_{name} {kind}");
}

fn gauge(text: &mut String, name: &str, help: &str, value: u64) {
    head(text, name, help, "gauge");
    let _ = writeln!(text, "holdfast_{name} {value}");
}

fn histogram(text: &mut String, name: &str, help: &str, histogram: &Histogram) {
    head(text, name, help, "histogram");
    let mut total = 0;
    for (bound, bucket) in BOUNDS.iter().zip(&histogram.buckets) {
        total += bucket.get();
        let _ = writeln!(text, "holdfast_{name}_bucket{{le=\"{}\"}} {total}", *bound as f64 / 1000.0);
    }
    let count = histogram.count.get();
    let seconds = histogram.milliseconds.get() as f64 / 1000.0;
    let _ = writeln!(text, "holdfast_{name}_bucket{{le=\"+Inf\"}} {count}");
    let _ = writeln!(text, "holdfast_{name}_sum {seconds}\nholdfast_{name}_count {count}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative_and_every_line_is_a_sample_or_a_comment() {
        let metrics = Metrics::default();
        metrics.requests.record(Duration::from_millis(3));
        metrics.requests.record(Duration::from_mins(2));
        metrics.reject(ProblemKind::Locked);
        let text = metrics.text(7);
        assert!(text.contains("holdfast_uploads_open 7\n"));
        assert!(text.contains("holdfast_request_duration_seconds_bucket{le=\"0.005\"} 1\n"));
        assert!(text.contains("holdfast_request_duration_seconds_bucket{le=\"60\"} 1\n"));
        assert!(text.contains("holdfast_request_duration_seconds_bucket{le=\"+Inf\"} 2\n"));
        assert!(text.contains("problem=\"upload-locked\",status=\"423\"} 1\n"));
        assert!(text.lines().all(|line| line.starts_with("# ") || line.split(' ').count() == 2));
    }
}
