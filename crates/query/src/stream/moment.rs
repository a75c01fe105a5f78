//! The moment of a question. Where it looks more than once at what is being recorded, later looks would see what came after
//! the first; so all of them see the elements that were there when it was asked.

use super::table::StreamTable;
use super::wants::Wants;
use super::ways::Ways;
use crate::columns::Fixed;
use crate::nearest::NearestTable;
use crate::predicate::{Predicate, Spans, Wanted};
use datafusion::catalog::TableProvider;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use holdfast_base::{Ordinal, StreamId};
use holdfast_protocol::LinkError;
use std::any::Any;
use std::collections::HashMap;
use std::ops::Bound;
use std::sync::Arc;

/// By stream: the ordinal that its next element was to get.
#[derive(Debug)]
pub(crate) struct Moment(HashMap<StreamId, Ordinal>);

impl Moment {
    /// Now, for a question that looks at streams more than once.
    pub(crate) async fn of(looks: &Looks) -> Result<Option<Self>> {
        let Looks { ways: Some(ways), count: 2.. } = looks.clone() else { return Ok(None) };
        let external = |error: LinkError| DataFusionError::External(Box::new(error));
        let streams = tokio::task::spawn_blocking(move || {
            let mut way = ways.take()?;
            let streams = way.reader.streams()?;
            ways.give(way);
            Ok(streams)
        });
        let streams =
            streams.await.map_err(|error| DataFusionError::External(Box::new(error)))?.map_err(external)?;
        Ok(Some(Self(streams.iter().map(|stream| (stream.id, stream.counters.next_ordinal)).collect())))
    }

    /// What of a search was there by then; nothing of a stream that was not.
    pub(super) fn bound(&self, wants: &Wants) -> Option<Until> {
        let next = self.0.get(&wants.stream).copied().unwrap_or_default();
        let place = wants.columns.arrow().index_of(Fixed::Ordinal.name()).ok()?;
        let before = Wanted::Words(Spans::between(Bound::Unbounded, Bound::Excluded(next.0)));
        let predicate = Predicate::all([wants.predicate.clone(), Predicate::Among(place, before)]);
        Some(Until { next, wants: Wants { predicate, ..wants.clone() } })
    }
}

/// A search of what was there at some moment.
#[derive(Clone, Debug)]
pub(super) struct Until {
    /// The first ordinal that was not.
    pub(super) next: Ordinal,
    /// What is wanted of slots that may have that or more.
    pub(super) wants: Wants,
}

/// How often a question looks at streams, and a way to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Looks {
    ways: Option<Ways>,
    pub(super) count: usize,
}

impl Looks {
    /// Of a question.
    pub(crate) fn of(plan: &LogicalPlan) -> Result<Self> {
        let mut looks = Self::default();
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::TableScan(scan) = node {
                looks.count(&source_as_provider(&scan.source)?);
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(looks)
    }

    fn count(&mut self, table: &Arc<dyn TableProvider>) {
        let table = table.as_ref() as &dyn Any;
        if let Some(stream) = table.downcast_ref::<StreamTable>() {
            self.ways = Some(stream.ways().clone());
            self.count += 1;
        } else if let Some(nearest) = table.downcast_ref::<NearestTable>() {
            nearest.sides().into_iter().for_each(|side| self.count(side));
        }
    }
}
