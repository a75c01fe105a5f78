//! Union of sources that have the same stream: a ring and datasets of it. Each element is given once.

use super::column_builder::ColumnBuilder;
use super::pruning_report::PruningReport;
use super::scan_spec::ScanSpec;
use super::source::{
    Chunk, ChunkSink, DecodedColumn, ScanCounters, ScanPlan, ScanRequest, ScanStop, SegmentReader,
    SegmentScan, StreamSource, StreamSurvey,
};
use crate::columns::CommonColumn;
use datafusion::error::{DataFusionError, Result};
use holdfast_base::{Ordinal, StreamId};
use holdfast_format::{Cells, Packed};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// Set of ordinals as runs of first and last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrdinalRuns(Vec<(u64, u64)>);

impl OrdinalRuns {
    /// Set of the ordinals in these runs, which may overlap.
    pub fn new(mut runs: Vec<(u64, u64)>) -> Self {
        runs.sort_unstable();
        runs.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1.saturating_add(1);
            kept.1 = if touches { kept.1.max(next.1) } else { kept.1 };
            touches
        });
        Self(runs)
    }

    /// Union with another set.
    #[must_use]
    pub fn with(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied().collect())
    }

    /// Returns true if an ordinal is in the set.
    pub fn contains(&self, ordinal: u64) -> bool {
        let at = self.0.partition_point(|(_, last)| *last < ordinal);
        self.0.get(at).is_some_and(|(first, _)| *first <= ordinal)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Stream of one of the sources in a union.
#[derive(Clone)]
pub struct UnionMember {
    /// Recording that has the stream.
    pub source: Arc<dyn StreamSource>,
    /// Number of the stream in the source.
    pub stream: StreamId,
    /// Ordinals that other members give.
    pub elsewhere: Arc<OrdinalRuns>,
}

/// Union of several sources as one.
#[derive(Default)]
pub struct UnionSource {
    streams: HashMap<StreamId, Vec<UnionMember>>,
}

impl UnionSource {
    /// Creates a union: the members of each stream, by the number that the stream has in the union.
    pub fn new(streams: HashMap<StreamId, Vec<UnionMember>>) -> Self {
        Self { streams }
    }

    fn members(&self, stream: StreamId) -> &[UnionMember] {
        self.streams.get(&stream).map_or(&[], Vec::as_slice)
    }
}

impl StreamSource for UnionSource {
    fn plan(&self, request: ScanRequest) -> Result<ScanPlan> {
        let ScanRequest { spec, cutoff, scans, explain } = request;
        let members = self.members(spec.stream);
        let (mut parts, mut report, mut threads, mut payload) = (Vec::new(), PruningReport::default(), 0, 0);
        for UnionMember { source, stream, elsewhere } in members {
            let place = spec.columns.arrow().index_of(CommonColumn::Ordinal.name())?;
            let own = |spec: &ScanSpec| {
                let mut spec = ScanSpec { stream: *stream, ..spec.clone() };
                // Ordinals are read, too, where some are left to others.
                if !elsewhere.is_empty() && !spec.projection.contains(&place) {
                    spec.projection.push(place);
                }
                spec
            };
            let mut cutoff = cutoff.clone();
            if let Some(cutoff) = &mut cutoff {
                cutoff.spec = own(&cutoff.spec);
            }
            let request = ScanRequest { spec: own(&spec), cutoff, scans: scans * members.len(), explain };
            let plan = source.plan(request)?;
            report.all += plan.report.all;
            report.by_time += plan.report.by_time;
            report.by_view = match (report.by_view, plan.report.by_view) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            };
            threads += plan.threads;
            payload = payload.max(plan.payload);
            parts.push((plan.scan, Arc::clone(elsewhere)));
        }
        let scan = UnionScan { parts, projection: spec.projection };
        Ok(ScanPlan { scan: Box::new(scan), report, threads, payload })
    }

    fn survey(&self, stream: StreamId, from: Ordinal) -> Result<StreamSurvey> {
        let mut sum = StreamSurvey { segments: 0, all: 0, ends: None };
        for member in self.members(stream) {
            let survey = member.source.survey(member.stream, from)?;
            sum.segments += survey.segments;
            sum.all += survey.all;
        }
        Ok(sum)
    }

    fn next_ordinals(&self) -> Result<Option<HashMap<StreamId, Ordinal>>> {
        let mut all: HashMap<StreamId, Ordinal> = HashMap::new();
        for (stream, members) in &self.streams {
            for member in members {
                // A source that does not grow sets no limit.
                if let Some(next) = member.source.next_ordinals()?
                    && let Some(next) = next.get(&member.stream)
                {
                    all.insert(*stream, *next);
                }
            }
        }
        Ok((!all.is_empty()).then_some(all))
    }
}

/// Scans of the members, one after the other, and the ordinals that each leaves to others.
struct UnionScan {
    parts: Vec<(Box<dyn SegmentScan>, Arc<OrdinalRuns>)>,
    /// Places of the columns in the result.
    projection: Vec<usize>,
}

impl SegmentScan for UnionScan {
    fn reader(&self, threads: usize) -> Result<Box<dyn SegmentReader + '_>> {
        let readers = self.parts.iter().map(|(scan, elsewhere)| Ok((scan.reader(threads)?, &**elsewhere)));
        let readers = readers.collect::<Result<_>>()?;
        Ok(Box::new(UnionReader { readers, at: 0, projection: &self.projection }))
    }

    fn again(&self) -> Box<dyn SegmentScan> {
        let parts = self.parts.iter().map(|(scan, elsewhere)| (scan.again(), Arc::clone(elsewhere)));
        Box::new(Self { parts: parts.collect(), projection: self.projection.clone() })
    }
}

struct UnionReader<'a> {
    readers: Vec<(Box<dyn SegmentReader + 'a>, &'a OrdinalRuns)>,
    at: usize,
    projection: &'a [usize],
}

impl SegmentReader for UnionReader<'_> {
    fn next(&mut self, sink: &mut ChunkSink<'_>) -> Result<bool> {
        let mut has_enough = false;
        while let Some((reader, elsewhere)) = self.readers.get_mut(self.at) {
            let mut passing = |spec: &ScanSpec, chunk: &mut dyn Chunk| {
                let result = if elsewhere.is_empty() {
                    sink(spec, chunk)
                } else {
                    let spec = ScanSpec { projection: self.projection.to_vec(), ..spec.clone() };
                    OwnChunk::new(chunk, &spec, elsewhere).and_then(|mut chunk| sink(&spec, &mut chunk))
                };
                has_enough |= matches!(result, Err(ScanStop::Enough));
                result
            };
            if reader.next(&mut passing)? {
                return Ok(true);
            }
            if has_enough {
                return Ok(false);
            }
            self.at += 1;
        }
        Ok(false)
    }

    fn counters(&self) -> ScanCounters {
        let mut sum = ScanCounters::default();
        for (reader, _) in &self.readers {
            let counters = reader.counters();
            sum.pruned += counters.pruned;
            sum.unread += counters.unread;
            sum.searched += counters.searched;
            sum.bytes += counters.bytes;
            sum.copied += counters.copied;
        }
        sum
    }
}

/// Chunk without the elements that another member gives.
struct OwnChunk<'c> {
    chunk: &'c mut dyn Chunk,
    /// Complete elements that no other member gives.
    complete: Vec<bool>,
    /// Place of the ordinals, which are decoded already: a column is decoded once.
    place: usize,
    ordinals: RefCell<Option<DecodedColumn>>,
}

impl<'c> OwnChunk<'c> {
    fn new(chunk: &'c mut dyn Chunk, spec: &ScanSpec, elsewhere: &OrdinalRuns) -> Result<Self, ScanStop> {
        let place = spec.columns.arrow().index_of(CommonColumn::Ordinal.name())?;
        let mut complete = chunk.complete();
        let ordinals = chunk.column(place)?;
        let Some(Cells::Words(words)) = ordinals.as_ref().map(|(cells, _)| cells.lent()) else {
            let cause = "a source does not give the ordinals of its elements".to_owned();
            return Err(ScanStop::Failed(DataFusionError::Internal(cause)));
        };
        for (complete, ordinal) in complete.iter_mut().zip(words) {
            *complete &= !elsewhere.contains(*ordinal);
        }
        Ok(Self { chunk, complete, place, ordinals: RefCell::new(ordinals) })
    }
}

impl Chunk for OwnChunk<'_> {
    fn complete(&self) -> Vec<bool> {
        self.complete.clone()
    }

    fn packed(&self, place: usize) -> Result<Option<Packed<'_>>, ScanStop> {
        self.chunk.packed(place)
    }

    fn column(&self, place: usize) -> Result<Option<DecodedColumn>, ScanStop> {
        if place == self.place
            && let Some(column) = self.ordinals.borrow_mut().take()
        {
            return Ok(Some(column));
        }
        self.chunk.column(place)
    }

    fn payload_sizes(&self) -> Vec<u64> {
        self.chunk.payload_sizes()
    }

    fn payloads(&mut self, picked: &[bool], payloads: &mut ColumnBuilder) -> Result<(), ScanStop> {
        self.chunk.payloads(picked, payloads)
    }

    fn counters(&self) -> ScanCounters {
        self.chunk.counters()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn runs_have_the_ordinals_of_a_naive_set(
            runs in prop::collection::vec((0u64..50, 0u64..6), 0..12),
            more in prop::collection::vec((0u64..50, 0u64..6), 0..4),
        ) {
            let ends = |runs: &[(u64, u64)]| -> Vec<(u64, u64)> {
                runs.iter().map(|(first, length)| (*first, first + length)).collect()
            };
            let (runs, more) = (ends(&runs), ends(&more));
            let naive: BTreeSet<u64> = runs.iter().chain(&more).flat_map(|(first, last)| *first..=*last).collect();
            let set = OrdinalRuns::new(runs).with(&OrdinalRuns::new(more));
            for ordinal in 0..60 {
                prop_assert_eq!(set.contains(ordinal), naive.contains(&ordinal));
            }
            prop_assert!(set.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
        }
    }
}
