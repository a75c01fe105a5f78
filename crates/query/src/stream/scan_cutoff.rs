//! Cutoff of a query that scans growing streams several times: all its scans see the elements that existed when the
//! query began.

use super::scan_spec::{ScanSpec, StreamCutoff};
use super::source::StreamSource;
use crate::columns::CommonColumn;
use crate::predicate::{IntervalSet, Predicate, ValueSet};
use datafusion::error::{DataFusionError, Result};
use holdfast_base::{Ordinal, StreamId};
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

/// Scans of a query: their number, and the sources that they read.
#[derive(Clone, Default)]
pub(crate) struct StreamScans {
    sources: Vec<Arc<dyn StreamSource>>,
    pub(super) count: usize,
}

impl StreamScans {
    /// Adds a scan of a source.
    pub(crate) fn add(&mut self, source: &Arc<dyn StreamSource>) {
        self.count += 1;
        if !self.sources.iter().any(|other| Arc::ptr_eq(other, source)) {
            self.sources.push(Arc::clone(source));
        }
    }
}
