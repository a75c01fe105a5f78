//! Sliding window over the counters: amounts of the last minute, and the time of the last loss. Time is passed in; the
//! control thread decides how often to sample.

use holdfast_base::Timestamp;
use holdfast_protocol::wire::{RecentSource, RecentStatus};
use std::collections::VecDeque;
use std::time::Duration;

/// What is told reaches back so far, and less than [`APART`] farther; less where the run is younger.
pub(super) const BACK: Duration = Duration::from_mins(1);

/// Between two looks that are kept: there are never more than eight, a few words a source each.
const APART: Duration = Duration::from_secs(10);

/// What a source has come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SourceCounts {
    pub(super) elements: u64,
    pub(super) bytes: u64,
    /// Elements that are known to be lost, here or before they came here.
    pub(super) lost: u64,
    /// Losses of which nobody knows how much they were.
    pub(super) unknown: u64,
}

impl SourceCounts {
    fn has_lost_more(&self, than: &Self) -> bool {
        self.lost > than.lost || self.unknown > than.unknown
    }
}

/// All counts at one time since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct CounterSample {
    pub(super) at: Duration,
    pub(super) slot_bytes: u64,
    pub(super) journal_bytes: u64,
    pub(super) sources: Vec<SourceCounts>,
}

/// The looks of the last minute.
#[derive(Debug)]
pub(super) struct RateWindow {
    /// Never empty; the first is as old as what is told reaches back.
    kept: VecDeque<CounterSample>,
    /// What the last look saw of each source, and when it had last lost something by then.
    sources: Vec<(SourceCounts, Option<Timestamp>)>,
}

impl RateWindow {
    /// At the start of a run, at which all counts are zero.
    pub(super) fn new(sources: usize) -> Self {
        let start =
            CounterSample { sources: vec![SourceCounts::default(); sources], ..CounterSample::default() };
        Self { kept: VecDeque::from([start]), sources: vec![(SourceCounts::default(), None); sources] }
    }

    /// Takes note of a look, at `now` by the arrival clock.
    pub(super) fn look(&mut self, look: CounterSample, now: Timestamp) {
        for ((seen, lost_at), count) in self.sources.iter_mut().zip(&look.sources) {
            if count.has_lost_more(seen) {
                *lost_at = Some(now);
            }
            *seen = *count;
        }
        let newest = self.kept.back().map_or(Duration::ZERO, |last| last.at);
        if look.at.saturating_sub(newest) >= APART {
            while self.kept.get(1).is_some_and(|next| next.at + BACK <= look.at) {
                self.kept.pop_front();
            }
            self.kept.push_back(look);
        }
    }

    /// What came since, as of a look at `now` that need not be taken note of.
    pub(super) fn told(&self, look: &CounterSample, now: Timestamp) -> RecentStatus {
        let old_enough = |kept: &&CounterSample| kept.at + BACK <= look.at;
        let before =
            self.kept.iter().rev().find(old_enough).or(self.kept.front()).cloned().unwrap_or_default();
        let sources = look.sources.iter().enumerate().map(|(at, count)| {
            let before = before.sources.get(at).copied().unwrap_or_default();
            let (seen, lost_at) = self.sources.get(at).copied().unwrap_or_default();
            RecentSource {
                elements: count.elements.saturating_sub(before.elements),
                bytes: count.bytes.saturating_sub(before.bytes),
                lost: count.lost.saturating_sub(before.lost),
                unknown_losses: count.unknown.saturating_sub(before.unknown),
                last_lost: if count.has_lost_more(&seen) { Some(now) } else { lost_at },
            }
        });
        RecentStatus {
            span: look.at.saturating_sub(before.at),
            slot_bytes: look.slot_bytes.saturating_sub(before.slot_bytes),
            journal_bytes: look.journal_bytes.saturating_sub(before.journal_bytes),
            sources: sources.collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second is an element of two bytes; nothing is lost.
    fn look(second: u64) -> CounterSample {
        let count = SourceCounts { elements: second, bytes: 2 * second, ..SourceCounts::default() };
        let (at, slot_bytes) = (Duration::from_secs(second), 4 * second);
        CounterSample { at, slot_bytes, journal_bytes: second, sources: vec![count] }
    }

    fn with_losses(second: u64, lost: u64, unknown: u64) -> CounterSample {
        let mut look = look(second);
        (look.sources[0].lost, look.sources[0].unknown) = (lost, unknown);
        look
    }

    fn at(second: u64) -> Timestamp {
        Timestamp(1_000_000_000 * second as i64)
    }

    #[test]
    fn what_is_told_reaches_back_a_minute_and_less_than_a_look_more() {
        let mut window = RateWindow::new(1);
        for second in 0..1000 {
            let told = window.told(&look(second), at(second));
            let span = told.span.as_secs();
            assert!(
                span == second.min(span) && (span == second || (60..70).contains(&span)),
                "{second}: {span}"
            );
            assert!(second < 60 || span >= 60, "{second}: {span}");
            assert_eq!((told.slot_bytes, told.journal_bytes), (4 * span, span));
            let source = &told.sources[0];
            assert_eq!(
                (source.elements, source.bytes, source.lost, source.last_lost),
                (span, 2 * span, 0, None)
            );
            window.look(look(second), at(second));
            assert!(window.kept.len() <= 8, "a limit on everything");
        }
        // Nobody looked for an hour, as on a machine that slept.
        let told = window.told(&look(4600), at(4600));
        assert_eq!((told.span.as_secs(), told.sources[0].elements), (4600 - 990, 4600 - 990));
    }

    // Promise 2: when something was last lost is told for as long as the recorder runs.
    #[test]
    fn a_loss_is_lately_for_a_minute_and_the_last_one_for_ever() {
        let mut window = RateWindow::new(1);
        let (mut lost, mut unknown) = (0, 0);
        for second in 0..500 {
            lost += if second == 100 { 7 } else { 0 };
            unknown += u64::from(second == 300);
            let now = with_losses(second, lost, unknown);
            let told = window.told(&now, at(second)).sources.remove(0);
            window.look(now, at(second));
            let wanted = match second {
                0..100 => None,
                100..300 => Some(at(100)),
                _ => Some(at(300)),
            };
            assert_eq!(told.last_lost, wanted, "{second}");
            match second {
                100..160 => assert_eq!((told.lost, told.unknown_losses), (7, 0), "{second}"),
                300..360 => assert_eq!((told.lost, told.unknown_losses), (0, 1), "{second}"),
                0..100 | 170..300 | 370.. => assert_eq!((told.lost, told.unknown_losses), (0, 0), "{second}"),
                _ => {}
            }
        }
    }
}
