//! Metrics of a recorder: those of the tables of figures, and those that are computed. `page` writes them.

use super::page::Page;
use holdfast_base::Timestamp;
use holdfast_format::Superblock;
use holdfast_protocol::wire::{DeviceState, LATENCY_BUCKETS, Latency, SourceState, Status};
use holdfast_ring::RingStatus;
use std::time::Duration;

/// The page. `oldest_live` is the oldest data that nothing holds, as `status` tells it. What the run was admitted for is
/// told where that is guaranteed, and only there.
pub(crate) fn page(status: &Status, oldest_live: Option<Timestamp>, guaranteed: bool) -> Page {
    let ring = &status.ring;
    let mut page = Page::new(ring_label(ring));
    page.recorder(status, oldest_live, guaranteed);
    page.figures(&[(None, &ring.slots)]);
    page.streams(status);
    page.lanes(status);
    page
}

/// The page of a ring without a recorder.
pub(crate) fn absent(superblock: &Superblock) -> Page {
    let label =
        if superblock.name.is_empty() { superblock.ring.to_string() } else { superblock.name.clone() };
    let mut page = Page::new(label);
    page.up(false);
    page
}

fn ring_label(ring: &RingStatus) -> String {
    if ring.name.is_empty() { ring.ring.to_string() } else { ring.name.clone() }
}

impl Page {
    fn up(&mut self, up: bool) {
        self.single("recorder_up", "gauge", "1 while a recorder owns the ring.", u8::from(up));
    }

    fn recorder(&mut self, status: &Status, oldest_live: Option<Timestamp>, guaranteed: bool) {
        let ring = &status.ring;
        self.up(status.recorder.is_some());
        self.single("holds", "gauge", "Holds that stand.", ring.holds);
        self.single("slot_bytes", "gauge", "Bytes of a slot.", ring.slot_bytes.0);
        self.single(
            "durable_after_seconds",
            "gauge",
            "Bound on the age of data that a crash can cost.",
            ring.durable_after.as_secs_f64(),
        );
        if let Some(oldest) = ring.oldest {
            let now = status.recorder.as_ref().map_or(ring.newest.unwrap_or(oldest), |recorder| recorder.now);
            // With nothing but held data one goes back no time at all: an alert on too little must fire.
            self.single(
                "oldest_data_age_seconds",
                "gauge",
                "Age of the oldest data that is neither expired nor held: how far back one can go. 0 where all is held.",
                now.since(oldest_live.unwrap_or(now)).as_secs_f64(),
            );
            self.single(
                "oldest_kept_age_seconds",
                "gauge",
                "Age of the oldest data of all, held data included.",
                now.since(oldest).as_secs_f64(),
            );
        }
        let Some(recorder) = &status.recorder else { return };
        self.single(
            "recorder_start_time_seconds",
            "gauge",
            "When the recorder started, Unix time.",
            seconds(recorder.since),
        );
        let ok = u8::from(recorder.device.state == DeviceState::Ok);
        self.single("device_up", "gauge", "1 while the device answers.", ok);
        self.figures(&[(None, &recorder.buffers)]);
        self.figures(&[(None, &recorder.away)]);
        if let Some(view) = &recorder.view {
            self.figures(&[(None, view)]);
        }
        match &recorder.margin {
            Some(margin) if guaranteed => self.figures(&[(None, margin)]),
            Some(margin) => self.figures_without(margin, "guaranteed_bytes_per_second"),
            None => {}
        }
    }

    fn streams(&mut self, status: &Status) {
        let Some(recorder) = &status.recorder else { return };
        let sources = &recorder.sources;
        let labelled: Vec<_> =
            sources.iter().map(|source| (Some(("stream", source.name.as_str())), source)).collect();
        self.figures(&labelled);
        self.family("stream_dropped_elements_total", "counter", "Elements lost, by cause.");
        for source in sources {
            for dropped in &source.dropped {
                let labels = [("stream", source.name.as_str()), ("cause", dropped.cause.name())];
                self.sample("stream_dropped_elements_total", &labels, dropped.elements);
            }
        }
        self.family(
            "stream_dropped_bytes_total",
            "counter",
            "Bytes lost, by cause, as far as they are known.",
        );
        for source in sources {
            for dropped in &source.dropped {
                let labels = [("stream", source.name.as_str()), ("cause", dropped.cause.name())];
                self.sample("stream_dropped_bytes_total", &labels, dropped.bytes);
            }
        }
        self.family(
            "stream_up",
            "gauge",
            "1 while the source delivers, 0 when it has ended or failed, or its interface is down.",
        );
        for source in sources {
            let up = u8::from(source.state == SourceState::Running && source.error.is_empty());
            self.sample("stream_up", &[("stream", &source.name)], up);
        }
    }

    fn lanes(&mut self, status: &Status) {
        let Some(recorder) = &status.recorder else { return };
        let labelled: Vec<_> =
            recorder.lanes.iter().map(|lane| (Some(("lane", lane.path.as_str())), lane)).collect();
        self.figures(&labelled);
        let worst = ["lane_write_worst_seconds", "lane_read_worst_seconds"];
        let histogram = ["lane_write_seconds", "lane_read_seconds"];
        let help = ["How long writes took.", "How long reads took."];
        for which in 0..2 {
            self.family(histogram[which], "histogram", help[which]);
            for lane in &recorder.lanes {
                let latency = [&lane.write_latency, &lane.read_latency][which];
                self.histogram(histogram[which], &lane.path, latency);
            }
            self.family(worst[which], "gauge", "The longest of them since the recorder started.");
            for lane in &recorder.lanes {
                let latency = [&lane.write_latency, &lane.read_latency][which];
                self.sample(worst[which], &[("lane", &lane.path)], latency.worst.as_secs_f64());
            }
        }
    }

    fn histogram(&mut self, name: &str, lane: &str, latency: &Latency) {
        let mut below = 0;
        for (at, count) in latency.buckets.iter().enumerate().take(LATENCY_BUCKETS - 1) {
            below += count;
            let end = Duration::from_micros(1 << at).as_secs_f64().to_string();
            self.sample(&format!("{name}_bucket"), &[("lane", lane), ("le", &end)], below);
        }
        self.sample(&format!("{name}_bucket"), &[("lane", lane), ("le", "+Inf")], latency.count());
        self.sample(&format!("{name}_sum"), &[("lane", lane)], latency.total.as_secs_f64());
        self.sample(&format!("{name}_count"), &[("lane", lane)], latency.count());
    }
}

fn seconds(time: Timestamp) -> f64 {
    time.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sim::samples as sample;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn every_metric_has_a_help_a_type_and_one_sample_per_label_set() {
        let page = page(&sample::status(), None, true).to_string();
        let (mut helped, mut typed, mut seen) = (BTreeSet::new(), BTreeMap::new(), BTreeSet::new());
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(!help.is_empty() && helped.insert(name), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(matches!(kind, "gauge" | "counter" | "histogram"), "{line}");
                typed.insert(name, kind);
            } else {
                let (key, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().unwrap() >= 0.0, "{line}");
                assert!(seen.insert(key), "twice: {line}");
                let name = key.split('{').next().unwrap();
                let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
                let known = |name: &str| helped.contains(name) && typed.contains_key(name);
                assert!(known(name) || family.is_some_and(known), "{line}");
            }
        }
    }

    #[test]
    fn the_manual_lists_every_metric() {
        let manual = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations.md");
        let manual = std::fs::read_to_string(manual).unwrap();
        let page = page(&sample::status(), None, true).to_string();
        for name in page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
            assert!(manual.contains(&format!("`{name}`")), "docs/operations.md does not list {name}");
        }
    }

    #[test]
    fn the_figures_are_those_of_the_recorder() {
        let status = sample::status();
        let page = page(&status, status.ring.oldest, true).to_string();
        let ring = r#"{ring="lab \"one\"""#;
        for wanted in [
            format!("holdfast_recorder_up{ring}}} 1"),
            format!("holdfast_oldest_data_age_seconds{ring}}} 600"),
            format!("holdfast_oldest_kept_age_seconds{ring}}} 600"),
            format!("holdfast_slots{ring},state=\"held\"}} 100"),
            format!("holdfast_slots{ring},state=\"free\"}} 300"),
            format!("holdfast_slots_holdable{ring}}} 500"),
            format!("holdfast_slots_promised{ring}}} 40"),
            format!("holdfast_stream_received_elements_total{ring},stream=\"eth0\"}} 600000"),
            format!("holdfast_stream_written_elements_total{ring},stream=\"eth0\"}} 598766"),
            format!("holdfast_stream_beyond_rate_elements_total{ring},stream=\"adc\"}} 60"),
            format!("holdfast_stream_beyond_rate_bytes_total{ring},stream=\"adc\"}} 3145728"),
            format!("holdfast_stream_undecodable_elements_total{ring},stream=\"adc\"}} 17"),
            format!("holdfast_stream_too_long_texts_total{ring},stream=\"adc\"}} 2"),
            format!("holdfast_stream_unknown_losses_total{ring},stream=\"adc\"}} 1"),
            format!("holdfast_stream_refused_producers_total{ring},stream=\"adc\"}} 3"),
            format!("holdfast_stream_dropped_elements_total{ring},stream=\"eth0\",cause=\"kernel\"}} 1234"),
            format!("holdfast_stream_interface_drops_total{ring},stream=\"eth0\"}} 7"),
            format!("holdfast_stream_interface_perhaps_lost_total{ring},stream=\"eth0\"}} 50"),
            format!(
                "holdfast_lane_written_bytes_total{ring},lane=\"/data/lab.hf\",kind=\"slots\"}} 629145600"
            ),
            format!("holdfast_lane_write_seconds_bucket{ring},lane=\"/data/lab.hf\",le=\"0.000512\"}} 0"),
            format!("holdfast_lane_write_seconds_bucket{ring},lane=\"/data/lab.hf\",le=\"0.001024\"}} 99"),
            format!("holdfast_lane_write_seconds_bucket{ring},lane=\"/data/lab.hf\",le=\"+Inf\"}} 100"),
            format!("holdfast_lane_write_worst_seconds{ring},lane=\"/data/lab.hf\"}} 0.07"),
            format!("holdfast_buffers_most_in_use{ring}}} 5"),
            format!("holdfast_buffers_most_in_use_time_seconds{ring}}} 1795168800"),
            format!("holdfast_slack_least_time_seconds{ring}}} 1795169100"),
            format!("holdfast_away_worst_seconds{ring}}} 0.31"),
            format!("holdfast_birds_eye_bytes{ring}}} 67108864"),
            format!("holdfast_birds_eye_slots{ring}}} 600"),
            format!("holdfast_guaranteed_bytes_per_second{ring}}} 62914560"),
            format!("holdfast_slack_least_seconds{ring}}} 4.2"),
            format!("holdfast_slack_kept_seconds{ring}}} 9"),
            format!("holdfast_durable_after_worst_seconds{ring}}} 8.3"),
        ] {
            assert!(page.lines().any(|line| line == wanted), "{wanted} is not in\n{page}");
        }
    }

    #[test]
    fn what_is_held_does_not_lengthen_how_far_back_one_can_go() {
        let status = sample::status();
        let told = |oldest_live| {
            let page = page(&status, oldest_live, true).to_string();
            let figure = |name: &str| {
                let line = page.lines().find(|line| line.starts_with(&format!("holdfast_{name}{{")));
                line.and_then(|line| line.rsplit(' ').next()).unwrap().to_owned()
            };
            (figure("oldest_data_age_seconds"), figure("oldest_kept_age_seconds"))
        };
        let ages = |live: &str, kept: &str| (live.to_owned(), kept.to_owned());
        assert_eq!(told(Some(sample::NOW - Duration::from_secs(90))), ages("90", "600"));
        assert_eq!(told(None), ages("0", "600"), "all is held");
    }

    #[test]
    fn a_source_whose_interface_is_down_is_not_up() {
        let mut status = sample::status();
        status.recorder.as_mut().unwrap().sources[0].error = "the interface is down".to_owned();
        let page = page(&status, None, true).to_string();
        let up = |name: &str| {
            let sample = format!("stream=\"{name}\"}} ");
            let found =
                page.lines().find(|line| line.starts_with("holdfast_stream_up{") && line.contains(&sample));
            found.and_then(|line| line.rsplit(' ').next())
        };
        assert_eq!((up("eth0"), up("adc")), (Some("0"), Some("1")), "{page}");
    }

    // Promise 1: no rate is told as guaranteed where the ring does its best; how near it came to losing something is.
    #[test]
    fn what_is_not_guaranteed_yet_is_not_told_as_such() {
        let page = page(&sample::status(), None, false).to_string();
        assert!(!page.contains("guaranteed_bytes_per_second"), "{page}");
        assert!(page.contains("holdfast_slack_least_seconds"), "{page}");
    }
}
