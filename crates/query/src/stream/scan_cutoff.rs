//! Cutoff of a query that scans growing streams several times: all its scans see the elements that existed when the
//! query began.

use super::scan_spec::ScanSpec;
use super::source::StreamSource;
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
use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

/// Next ordinals of all streams of one source.
type NextOrdinals = HashMap<StreamId, Ordinal>;

/// Cutoff of a query: the next ordinals of all streams, for each source that grows.
pub(crate) struct ScanCutoff(Vec<(Arc<dyn StreamSource>, NextOrdinals)>);

impl fmt::Debug for ScanCutoff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, ordinals)| ordinals)).finish()
    }
}

impl ScanCutoff {
    /// Takes the cutoff now, for a query with several scans.
    pub(crate) async fn of(scans: &StreamScans) -> Result<Option<Self>> {
        if scans.count < 2 {
            return Ok(None);
        }
        let sources = scans.sources.clone();
        let ordinals = tokio::task::spawn_blocking(move || {
            let mut all = Vec::with_capacity(sources.len());
            for source in sources {
                if let Some(next) = source.next_ordinals()? {
                    all.push((source, next));
                }
            }
            Ok(Self(all))
        });
        ordinals.await.map_err(|error| DataFusionError::External(Box::new(error)))?.map(Some)
    }

    /// Returns the cutoff for one scan of a source. A stream without a next ordinal did not exist: nothing of it is
    /// before its cutoff.
    pub(super) fn bound(&self, source: &Arc<dyn StreamSource>, spec: &ScanSpec) -> Option<StreamCutoff> {
        let (_, ordinals) = self.0.iter().find(|(other, _)| Arc::ptr_eq(other, source))?;
        let next = ordinals.get(&spec.stream).copied().unwrap_or_default();
        let place = spec.columns.arrow().index_of(CommonColumn::Ordinal.name()).ok()?;
        let before = ValueSet::Words(IntervalSet::between(Bound::Unbounded, Bound::Excluded(next.0)));
        let predicate = Predicate::all([spec.predicate.clone(), Predicate::Among(place, before)]);
        Some(StreamCutoff { next, spec: ScanSpec { predicate, ..spec.clone() } })
    }
}

/// Cutoff of one scan.
#[derive(Clone, Debug)]
pub struct StreamCutoff {
    /// Ordinal from which on elements are excluded.
    pub next: Ordinal,
    /// Specification for segments that may have elements from `next` on: its predicate excludes them.
    pub spec: ScanSpec,
}

/// Scans of a query: their number, and the sources that they read.
#[derive(Clone, Default)]
pub(crate) struct StreamScans {
    sources: Vec<Arc<dyn StreamSource>>,
    pub(super) count: usize,
}

impl StreamScans {
    /// Counts the scans in a plan.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut scans = Self::default();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                scans.add(&source_as_provider(&scan.source)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(scans)
    }

    fn add(&mut self, table: &Arc<dyn TableProvider>) {
        let table = table.as_ref() as &dyn Any;
        if let Some(stream) = table.downcast_ref::<StreamTable>() {
            self.count += 1;
            if !self.sources.iter().any(|source| Arc::ptr_eq(source, stream.source())) {
                self.sources.push(Arc::clone(stream.source()));
            }
        } else if let Some(nearest) = table.downcast_ref::<NearestTable>() {
            nearest.sides().into_iter().for_each(|side| self.add(side));
        }
    }
}
