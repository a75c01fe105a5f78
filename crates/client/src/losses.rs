//! Losses of this run and of the ring, in figures and in words, and whether they go on. Pure functions of a recorder's
//! answers. Counters of a stream alone never show that nothing was lost: they leave out losses upstream.

use crate::times;
use crate::words;
use holdfast_base::{StreamId, Timestamp};
use holdfast_base::{clean, counted};
use holdfast_protocol::wire::{RecorderStatus, SourceStatus, Status};
use holdfast_ring::StreamStatus;

/// Losses of a source in this run of its recorder, of every cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceLosses {
    /// Elements known to be lost, here, upstream or in the interface.
    pub elements: u64,
    /// Losses of unknown size.
    pub unknown: u64,
}

impl SourceLosses {
    /// The losses of a source.
    pub fn of(source: &SourceStatus) -> Self {
        let dropped: u64 = source.dropped.iter().map(|dropped| dropped.elements).sum();
        // A frame is an element that never came.
        Self { elements: dropped + source.interface_drops, unknown: source.unknown_losses }
    }

    /// Returns true if there is a loss.
    pub const fn is_any(self) -> bool {
        self.elements > 0 || self.unknown > 0
    }
}

/// Whether this run of the recorder has lost anything.
pub fn losing(status: &Status) -> bool {
    let sources = status.recorder.iter().flat_map(|recorder| &recorder.sources);
    sources.map(SourceLosses::of).any(SourceLosses::is_any)
}

/// Whether it lost anything in the last minute or so; of a recorder that does not tell, whether it ever did.
pub fn losing_now(status: &Status) -> bool {
    let Some(lately) = status.recorder.as_ref().and_then(|recorder| recorder.recent.as_ref()) else {
        return losing(status);
    };
    lately.sources.iter().any(|source| source.lost > 0 || source.unknown_losses > 0)
}

/// Sources of these streams whose interface lost frames, or perhaps lost some, in this run: losses without a gap.
pub fn without_gap<'a>(status: &'a Status, streams: &[StreamId]) -> Vec<&'a SourceStatus> {
    let sources = status.recorder.iter().flat_map(|recorder| &recorder.sources);
    let lost = |source: &&SourceStatus| source.interface_drops > 0 || source.perhaps_lost > 0;
    sources.filter(lost).filter(|source| streams.contains(&source.stream)).collect()
}

/// When a recorder last lost anything.
fn last_lost(recorder: &RecorderStatus) -> Option<Timestamp> {
    recorder.recent.as_ref()?.sources.iter().filter_map(|source| source.last_lost).max()
}

/// Whether something is being lost, and what this run has lost, in words.
pub fn lost(status: &Status) -> String {
    let Some(recorder) = &status.recorder else { return "nothing is being recorded".to_owned() };
    let (mut texts, mut perhaps) = (Vec::new(), Vec::new());
    for source in &recorder.sources {
        if source.perhaps_lost > 0 {
            perhaps.push(format!("{} {}", clean(&source.name), counted(source.perhaps_lost, "frame")));
        }
        for dropped in source.dropped.iter().filter(|dropped| dropped.elements > 0) {
            texts.push(format!(
                "{} {} ({})",
                clean(&source.name),
                counted(dropped.elements, "element"),
                words::cause_in_words(dropped.cause)
            ));
        }
        if source.interface_drops > 0 {
            let frames = counted(source.interface_drops, "frame");
            texts.push(format!("{} {frames} (by the interface)", clean(&source.name)));
        }
        if source.unknown_losses > 0 {
            texts.push(format!("{} an unknown number", clean(&source.name)));
        }
    }
    let perhaps = if perhaps.is_empty() {
        String::new()
    } else {
        format!("; perhaps {} (dropped by the kernel, before or behind the recorder)", perhaps.join(", "))
    };
    if texts.is_empty() {
        let known = if perhaps.is_empty() { "" } else { " known" };
        return format!("nothing{known} since the recorder started{perhaps}");
    }
    let texts = texts.join("; ");
    match last_lost(recorder).map(|at| (times::spoken(recorder.now.since(at)), times::to_the_second(at))) {
        Some((ago, _)) if losing_now(status) => format!("yes, the last {ago} ago: {texts}{perhaps}"),
        Some((ago, at)) => format!("nothing for {ago}; before that {texts}, the last at {at}{perhaps}"),
        None => format!("yes: {texts}{perhaps}"),
    }
}

/// Losses of the ring's life that its counters know, in words. Losses upstream are not among them: where none is known, and no
/// recorder tells of its run, that is said. `None` for none otherwise.
pub fn ever_lost(status: &Status, streams: &[StreamStatus]) -> Option<String> {
    let gaps: u64 = streams.iter().map(|stream| stream.counters.gaps).sum();
    let lost: u64 = streams.iter().map(|stream| stream.counters.lost).sum();
    let unknown: u64 = streams.iter().map(|stream| stream.counters.unknown_gaps).sum();
    if gaps == 0 {
        let silent = status.recorder.is_none() && !streams.is_empty();
        return silent.then(|| "losses upstream are not counted here; see `holdfast gaps`".to_owned());
    }
    let what = match (lost, unknown) {
        (lost, 0) => counted(lost, "element"),
        (0, _) => "an unknown number".to_owned(),
        (lost, _) => format!("{} and an unknown number", counted(lost, "element")),
    };
    let gaps = counted(gaps, "gap");
    Some(format!("{what} in {gaps}, losses upstream not counted; see `holdfast gaps`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_sim::samples as sample;
    use std::time::Duration;

    // Promise 2: what was lost before it came to us is lost all the same.
    #[test]
    fn what_only_the_interface_lost_is_being_lost() {
        let mut status = sample::status();
        let recorder = status.recorder.as_mut().unwrap();
        recorder.sources.truncate(1);
        recorder.sources[0].dropped.clear();
        recorder.sources[0].perhaps_lost = 0;
        let said = "yes, the last 3.0 s ago: eth0 7 frames (by the interface)";
        assert_eq!((losing(&status), &lost(&status)[..]), (true, said));
        let ids = |streams: &[StreamId]| without_gap(&status, streams).len();
        assert_eq!((ids(&[StreamId(1), StreamId(2)]), ids(&[StreamId(2)])), (1, 0));
        status.recorder.as_mut().unwrap().sources[0].interface_drops = 0;
        assert_eq!(without_gap(&status, &[StreamId(1)]).len(), 0);
        assert_eq!((losing(&status), &lost(&status)[..]), (false, "nothing since the recorder started"));
    }

    // Promise 2: a loss is told for as long as the recorder runs, and not for ever as one that goes on.
    #[test]
    fn what_was_lost_long_ago_is_told_and_is_not_being_lost() {
        let mut status = sample::status();
        let recorder = status.recorder.as_mut().unwrap();
        recorder.sources.truncate(1);
        (recorder.sources[0].interface_drops, recorder.sources[0].perhaps_lost) = (0, 0);
        recorder.now = recorder.now + Duration::from_hours(72);
        recorder.uptime += Duration::from_hours(72);
        let lately = recorder.recent.as_mut().unwrap();
        lately.sources.truncate(1);
        lately.sources[0].lost = 0;
        let said = "nothing for 3 d; before that eth0 1 234 elements (dropped by the kernel), the last at 2026-11-20T10:04:57Z";
        assert_eq!((losing(&status), losing_now(&status), &lost(&status)[..]), (true, false, said));
        // One of unknown size, just now.
        let recorder = status.recorder.as_mut().unwrap();
        let source = &mut recorder.recent.as_mut().unwrap().sources[0];
        (source.unknown_losses, source.last_lost) = (1, Some(recorder.now - Duration::from_secs(2)));
        assert!(losing_now(&status) && lost(&status).starts_with("yes, the last 2.0 s ago"));
        // A recorder that does not tell.
        status.recorder.as_mut().unwrap().recent = None;
        assert!(losing_now(&status));
        assert_eq!(lost(&status), "yes: eth0 1 234 elements (dropped by the kernel)");
    }

    // Promise 2: where all losses were upstream, and no recorder tells of them, nobody takes the ring for one without any.
    #[test]
    fn a_ring_at_rest_says_what_its_counters_leave_out() {
        let (mut status, mut streams) = (sample::status(), sample::streams());
        let known = ever_lost(&status, &streams).unwrap();
        assert!(known.contains("in 3 gaps, losses upstream not counted"), "{known}");
        for stream in &mut streams {
            (stream.counters.gaps, stream.counters.lost, stream.counters.unknown_gaps) = (0, 0, 0);
        }
        assert_eq!(ever_lost(&status, &streams), None);
        status.recorder = None;
        let said = "losses upstream are not counted here; see `holdfast gaps`";
        assert_eq!(ever_lost(&status, &streams).as_deref(), Some(said));
        assert_eq!(ever_lost(&status, &[]), None);
    }

    // Promise 2: what may be recorded is no known loss, and is not kept silent about.
    #[test]
    fn what_is_perhaps_lost_is_told_and_is_not_being_lost() {
        let mut status = sample::status();
        let recorder = status.recorder.as_mut().unwrap();
        recorder.sources.truncate(1);
        recorder.sources[0].dropped.clear();
        recorder.sources[0].interface_drops = 0;
        let said = "nothing known since the recorder started; perhaps eth0 50 frames (dropped by the kernel, before or behind the recorder)";
        assert_eq!((losing(&status), &lost(&status)[..]), (false, said));
    }
}
