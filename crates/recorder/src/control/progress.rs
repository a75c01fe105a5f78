//! Progress output on standard error: a line renewed every second, and each problem once.

use super::figures::{Figures, Watched, watched};
use crate::capture::Stats;
use crate::voice::{complain, mention, say};
use holdfast_base::{Rate, Timestamp, many};
use holdfast_media::Fault;
use holdfast_ring::{DeviceState, Margin};
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How often the line is renewed.
const EVERY: Duration = Duration::from_secs(1);

/// The line.
#[derive(Debug)]
pub(super) struct Progress {
    shown: bool,
    quiet: bool,
    asked: Option<Instant>,
    last: Option<(Instant, Watched)>,
    /// Characters of the line on the screen.
    length: usize,
    device: DeviceState,
    /// The least slack that was told of.
    told: Option<Duration>,
    /// Sources of which it was told that they refuse producers.
    refusing: Vec<usize>,
    /// Sources of which it was told that their inferred attributes leave out fields.
    narrowed: Vec<usize>,
}

impl Progress {
    pub(super) fn new(shown: bool, quiet: bool) -> Self {
        Self {
            shown,
            quiet,
            asked: None,
            last: None,
            length: 0,
            device: DeviceState::Well,
            told: None,
            refusing: Vec::new(),
            narrowed: Vec::new(),
        }
    }

    /// Whether figures are wanted for it: always about once a second, for a device that goes away is told in any case.
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = self.asked.is_none_or(|asked| now.duration_since(asked) >= EVERY);
        if due {
            self.asked = Some(now);
        }
        due
    }

    /// Renews the line, and tells of a device that went or came back.
    pub(super) fn show(&mut self, stats: &Stats, figures: &Figures, now: Instant) {
        let absent = |state: &DeviceState| matches!(state, DeviceState::Absent { .. });
        match (absent(&self.device), absent(&stats.device)) {
            (false, true) if stats.last_error.ends_with(&Fault::NoSpace.to_string()) => self.error(&format!(
                "{}: the device does not answer: its file system is full ({}); free space there; received data is \
                 lost once the buffers are full; the recorder retries every second",
                stats.ring.lane, stats.last_error
            )),
            (false, true) => self.error(&format!(
                "{}: the device does not answer ({}): received data is lost once the buffers are full; the recorder retries every second",
                stats.ring.lane, stats.last_error
            )),
            (true, false) => self.say(&format!("{}: the device answers again", stats.ring.lane)),
            _ => {}
        }
        self.device = stats.device;
        self.tell_of_margin(stats);
        self.tell_of_refused(figures);
        self.tell_of_left_out(figures);
        let seen = watched(stats, figures.sources());
        let Some((before, last)) = self.last else {
            self.last = Some((now, seen));
            return;
        };
        let span = now.duration_since(before);
        if !self.shown || span < EVERY / 2 {
            return;
        }
        self.last = Some((now, seen));
        let elements = Rate::of(seen.elements.saturating_sub(last.elements), span).0;
        let reach = stats.ring.oldest.map_or(Duration::ZERO, |oldest| Timestamp::since(stats.now, oldest));
        let mut line = format!(
            "{}  in {}  {elements} el/s  disk {}  back {}",
            span_text(figures.uptime()),
            Rate::of(seen.bytes.saturating_sub(last.bytes), span),
            Rate::of(seen.written.saturating_sub(last.written), span),
            span_text(reach),
        );
        if stats.ring.slots.held > 0 {
            let _ = write!(line, "  held {}/{}", stats.ring.slots.held, stats.ring.slots.total);
        }
        if seen.lost > 0 {
            let _ = write!(line, "  LOST {}", many(seen.lost, "element"));
        }
        if seen.unknown > 0 {
            line.push_str(if seen.lost > 0 { " and an unknown number" } else { "  LOST an unknown number" });
        }
        let pad = self.length.saturating_sub(line.chars().count());
        self.length = line.chars().count();
        mention(&format!("\r{line}{:pad$}", ""));
    }

    /// Says once that the margin has become small, and again when it is half of that.
    fn tell_of_margin(&mut self, stats: &Stats) {
        let Some(margin) = stats.margin else { return };
        if let Some(text) = small(&margin, self.told) {
            self.told = Some(margin.least);
            self.error(&format!("{}: {text}", stats.ring.lane));
        }
    }

    /// Says once of each source which fields its inferred attributes leave out.
    pub(super) fn tell_of_left_out(&mut self, figures: &Figures) {
        for (at, source) in figures.sources().iter().enumerate() {
            if let Some(fields) = source.counters.left_out.get()
                && !self.narrowed.contains(&at)
            {
                self.narrowed.push(at);
                self.say(&format!(
                    "{}: --attr auto leaves out {fields}: there is no room, or no attribute has such a key; give those that \
                     you need first, as --attr NAME:TYPE=json:PATH",
                    source.name
                ));
            }
        }
    }

    /// Says once of each source that producers find no place there: what they go on to send is nowhere counted.
    pub(super) fn tell_of_refused(&mut self, figures: &Figures) {
        for (at, source) in figures.sources().iter().enumerate() {
            if source.counters.refused.load(Ordering::Relaxed) > 0 && !self.refusing.contains(&at) {
                self.refusing.push(at);
                self.error(&format!(
                    "{} ({}): a producer was rejected or disconnected: {}; `holdfast status` counts them",
                    source.name,
                    source.spec,
                    why_refused(&source.spec)
                ));
            }
        }
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if self.length > 0 {
            mention(&format!("\r{:1$}\r", "", self.length));
            self.length = 0;
        }
    }

    /// Says something that a person wants to know, unless it was to be quiet.
    pub(super) fn say(&mut self, text: &str) {
        if !self.quiet {
            self.clear();
            say(&format!("{text}\n"));
        }
    }

    /// Says that something went wrong.
    pub(super) fn error(&mut self, text: &str) {
        self.clear();
        complain(text);
    }
}

/// For what a kind of source turns producers away.
fn why_refused(spec: &str) -> &'static str {
    if spec.starts_with("shm:") {
        "the source accepts one producer at a time, which must keep to the protocol, and needs memory for its area"
    } else {
        "the source accepts 1024 producers at a time, each needs a file descriptor (ulimit -n), and none may fall silent in \
         a large element while others wait"
    }
}

/// What is to be said of a margin that is below half of what is kept, or of what was told of last.
fn small(margin: &Margin, told: Option<Duration>) -> Option<String> {
    let Margin { least, kept, .. } = *margin;
    (least < told.unwrap_or(kept) / 2).then(|| {
        format!(
            "capture could have continued for only {:.2} s without a write: {:.2} s are kept for the longest read and pause \
             of the device; if this recurs, measure the device again (`holdfast profile`), or use more --memory",
            least.as_secs_f64(),
            kept.as_secs_f64()
        )
    })
}

/// A span as `1:02:03`, `2:03` or `3.4 s`.
pub(crate) fn span_text(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", span.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{}:{:02}", seconds / 60, seconds % 60),
        _ => format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Promise 1: who reads the log knows before something is lost.
    #[test]
    fn a_margin_is_told_of_when_it_is_small_and_again_when_it_is_half_of_that() {
        let seconds = Duration::from_secs;
        let mut told = None;
        let mut after = |least: u64| {
            let margin =
                Margin { rate: Rate(1), kept: seconds(8), least: seconds(least), since: Timestamp(0) };
            let text = small(&margin, told);
            if text.is_some() {
                told = Some(margin.least);
            }
            text
        };
        assert_eq!([9, 4].map(&mut after), [None, None]);
        let text = after(3).unwrap();
        assert!(text.contains("for only 3.00 s") && text.contains("8.00 s are kept"), "{text}");
        assert_eq!([3, 2].map(&mut after), [None, None], "once");
        assert!(after(1).is_some() && after(1).is_none() && after(0).is_some());
    }
}
