//! Cutoff of a query that scans live streams several times: all its scans see the elements that existed
//! when the query began.

use super::reader_pool::ReaderPool;
use super::scan_spec::ScanSpec;
use super::table::StreamTable;
use crate::columns::CommonColumn;
use crate::nearest::NearestTable;
use crate::predicate::{IntervalSet, Predicate, ValueSet};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use holdfast_base::{Ordinal, StreamId};
use holdfast_reader::ReaderError;
use std::any::Any;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

/// By stream: the ordinal that its next element was to get.
#[derive(Debug)]
pub(crate) struct ScanCutoff(HashMap<StreamId, Ordinal>);

impl ScanCutoff {
    /// Now, for a question that looks at streams more than once.
    pub(crate) async fn of(scans: &StreamScans) -> Result<Option<Self>> {
        let StreamScans { readers: Some(readers), count: 2.. } = scans.clone() else { return Ok(None) };
        let external = |error: ReaderError| DataFusionError::External(Box::new(error));
        let streams = tokio::task::spawn_blocking(move || {
            let mut pooled = readers.take()?;
            let streams = pooled.reader.streams()?;
            readers.give(pooled);
            Ok(streams)
        });
        let streams =
            streams.await.map_err(|error| DataFusionError::External(Box::new(error)))?.map_err(external)?;
        Ok(Some(Self(streams.iter().map(|stream| (stream.id, stream.counters.next_ordinal)).collect())))
    }

    /// What of a search was there by then; nothing of a stream that was not.
    pub(super) fn bound(&self, spec: &ScanSpec) -> Option<StreamCutoff> {
        let next = self.0.get(&spec.stream).copied().unwrap_or_default();
        let place = spec.columns.arrow().index_of(CommonColumn::Ordinal.name()).ok()?;
        let before = ValueSet::Words(IntervalSet::between(Bound::Unbounded, Bound::Excluded(next.0)));
        let predicate = Predicate::all([spec.predicate.clone(), Predicate::Among(place, before)]);
        Some(StreamCutoff { next, spec: ScanSpec { predicate, ..spec.clone() } })
    }
}

/// A search of what was there at some moment.
#[derive(Clone, Debug)]
pub(super) struct StreamCutoff {
    /// The first ordinal that was not.
    pub(super) next: Ordinal,
    /// What is wanted of slots that may have that or more.
    pub(super) spec: ScanSpec,
}

/// How often a question looks at streams, and a way to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamScans {
    readers: Option<ReaderPool>,
    pub(super) count: usize,
}

impl StreamScans {
    /// Of a question.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut scans = Self::default();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                scans.count(&source_as_provider(&scan.source)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(scans)
    }

    fn count(&mut self, table: &Arc<dyn TableProvider>) {
        let table = table.as_ref() as &dyn Any;
        if let Some(stream) = table.downcast_ref::<StreamTable>() {
            self.readers = Some(stream.readers().clone());
            self.count += 1;
        } else if let Some(nearest) = table.downcast_ref::<NearestTable>() {
            nearest.sides().into_iter().for_each(|side| self.count(side));
        }
    }
}
