//! Gaps that a crash left between slots: ordinals of a slot that was being written and is missing, though a
//! later one is present. Losses at the end are not known here, because nothing tells how many there were.
//! Pure.

use holdfast_base::{Ordinal, Sequence, StreamId, Timestamp};
use holdfast_format::{EntrySummary, PurgeRecord, StreamRecord};
use std::collections::BTreeMap;

/// Ordinals of a stream that are in no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashGap {
    /// Whose.
    pub stream: StreamId,
    /// The first.
    pub first: Ordinal,
    /// The one behind the last.
    pub end: Ordinal,
    /// What is lost arrived after this, ...
    pub from: Timestamp,
    /// ... and before that, if anything later is there.
    pub to: Option<Timestamp>,
}

/// What a slot has of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StreamExtent {
    stream: StreamId,
    first: Ordinal,
    /// What the stream had come to with it.
    end: Ordinal,
    arrivals: Option<(Timestamp, Timestamp)>,
}

impl From<&EntrySummary> for StreamExtent {
    fn from(entry: &EntrySummary) -> Self {
        let end = entry.counters.next_ordinal;
        let first = entry.ordinals.map_or(end, |(first, _)| first);
        Self { stream: entry.stream, first, end, arrivals: entry.arrivals }
    }
}

/// A slot that a restart has found.
#[derive(Clone, Debug)]
pub(crate) struct FoundSlot {
    pub(crate) sequence: Sequence,
    pub(crate) found: FoundAs,
    pub(crate) spans: Vec<StreamExtent>,
}

/// What it was found as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundAs {
    /// As it was sealed.
    Whole,
    /// The beginning of it, which the journal had.
    Beginning,
    /// A copy of older slots.
    Copy,
}

/// The gaps between the slots that were found: where a sequence is missing that was still to be written when the runway was
/// `named` last, or where only the beginning of a slot is there. Of those `freed` a copy tells, or nothing is to be there.
pub(crate) fn crash_gaps(
    mut told: Vec<FoundSlot>,
    named: Sequence,
    freed: &[Sequence],
    streams: &[StreamRecord],
    purges: &[PurgeRecord],
) -> Vec<CrashGap> {
    told.sort_by_key(|told| (told.sequence, told.found != FoundAs::Whole));
    told.dedup_by_key(|told| told.sequence);
    let mut come_to: BTreeMap<StreamId, (Ordinal, Timestamp)> = BTreeMap::new();
    let (mut crash_gaps, mut before) = (Vec::new(), (Sequence(named.0.saturating_sub(1)), true));
    for FoundSlot { sequence, found, spans } in &told {
        let (behind, whole) = before;
        let missing =
            || (behind.0.saturating_add(1).max(named.0)..sequence.0).any(|m| !freed.contains(&Sequence(m)));
        let may_lack = *found != FoundAs::Copy && (!whole || missing());
        for span in spans {
            let known = come_to.get(&span.stream).copied().or_else(|| {
                let stream = streams.iter().find(|stream| stream.id == span.stream)?;
                Some((stream.counters.next_ordinal, stream.created))
            });
            let (end, since) = known.unwrap_or((span.first, Timestamp::MIN));
            if may_lack && end < span.first {
                let to = span.arrivals.map(|(first, _)| first);
                crash_gaps.push(CrashGap {
                    stream: span.stream,
                    first: end,
                    end: span.first,
                    from: since,
                    to,
                });
            }
            let since = span.arrivals.map_or(since, |(_, last)| last.max(since));
            let end = come_to.get(&span.stream).map_or(span.end, |(end, _)| span.end.max(*end));
            come_to.insert(span.stream, (end, since));
        }
        if *found != FoundAs::Copy {
            before = (*sequence, *found == FoundAs::Whole);
        }
    }
    // What was purged since the last of them is in no slot either.
    let last = come_to.values().map(|(_, since)| *since).max().unwrap_or(Timestamp::MAX);
    if purges.iter().all(|purge| purge.at < last) {
        crash_gaps.extend(behind(&come_to, streams));
    }
    crash_gaps
}

/// What was counted, in a snapshot, of a slot behind all that were found.
fn behind<'a>(
    come_to: &'a BTreeMap<StreamId, (Ordinal, Timestamp)>,
    streams: &'a [StreamRecord],
) -> impl Iterator<Item = CrashGap> + 'a {
    streams.iter().filter_map(|stream| {
        let (end, since) = *come_to.get(&stream.id)?;
        let counted = stream.counters.next_ordinal;
        (end < counted).then_some(CrashGap {
            stream: stream.id,
            first: end,
            end: counted,
            from: since,
            to: None,
        })
    })
}

/// What is lost where of a slot only the beginning turned out to be there.
pub(crate) fn rest(whole: &[StreamExtent], beginning: &[StreamExtent]) -> Vec<CrashGap> {
    let gap = |span: &StreamExtent| {
        let there = beginning.iter().find(|there| there.stream == span.stream);
        let first = there.map_or(span.first, |there| there.end);
        let (start, last) = span.arrivals?;
        let from = there.and_then(|there| there.arrivals).map_or(start, |(_, last)| last);
        (first < span.end).then_some(CrashGap {
            stream: span.stream,
            first,
            end: span.end,
            from,
            to: Some(last),
        })
    };
    whole.iter().filter_map(gap).collect()
}
