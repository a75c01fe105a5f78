//! Table provider of a stream: filter push-down, and the plan of a scan.

use super::exec::{ScanWork, StreamExec};
use super::pruning_report::{ExplainOnly, PruningReport};
use super::residual_filter::{self, ResidualFilter};
use super::scan_cutoff::{ScanCutoff, StreamScans};
use super::scan_spec::ScanSpec;
use super::source::{ScanRequest, StreamSource};
use crate::columns::Columns;
use crate::predicate::{Predicate, translate};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use holdfast_attributes::Schema;
use holdfast_base::StreamId;
use std::fmt;
use std::sync::Arc;

/// A stream as a table.
pub struct StreamTable {
    name: String,
    stream: StreamId,
    schema: Schema,
    columns: Columns,
    source: Arc<dyn StreamSource>,
}

impl fmt::Debug for StreamTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamTable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl StreamTable {
    /// Creates the table of a stream of `source`, with the columns of its schema.
    pub fn new(name: &str, stream: StreamId, schema: Schema, source: Arc<dyn StreamSource>) -> Self {
        let columns = Columns::new(&schema);
        Self { name: name.to_owned(), stream, schema, columns, source }
    }

    /// Returns the stream.
    pub(crate) fn stream(&self) -> StreamId {
        self.stream
    }

    /// Returns the recording that has the stream.
    pub(crate) fn source(&self) -> &Arc<dyn StreamSource> {
        &self.source
    }
}

#[async_trait::async_trait]
impl TableProvider for StreamTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.columns.arrow())
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match translate(filter, &self.columns) {
            Some(_) => TableProviderFilterPushDown::Exact,
            None if residual_filter::may_be_asked(filter) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let conditions = filters.iter().filter_map(|filter| translate(filter, &self.columns));
        let predicate = Predicate::all(conditions);
        let all = || (0..self.columns.arrow().fields().len()).collect();
        let mut spec = ScanSpec {
            stream: self.stream,
            schema: self.schema.clone(),
            columns: self.columns.clone(),
            projection: projection.cloned().unwrap_or_else(all),
            limit,
            predicate,
            residual: None,
        };
        if spec.payload() {
            let residual = filters.iter().filter(|filter| translate(filter, &self.columns).is_none());
            let residual = ResidualFilter::of(state, &self.columns, residual.cloned().collect());
            let is_there = |residual: &ResidualFilter| {
                residual.columns.iter().all(|(place, _)| spec.projection.contains(place))
            };
            spec.residual = residual.filter(is_there);
        }
        let config = state.config();
        if spec.predicate == Predicate::Constant(false) {
            let work = ScanWork { spec, scan: None, report: PruningReport::default(), payload: 0 };
            return Ok(Arc::new(StreamExec::new(&self.name, work, 1)?));
        }
        let request = ScanRequest {
            spec: spec.clone(),
            cutoff: config.get_extension::<ScanCutoff>().and_then(|cutoff| cutoff.bound(&self.source, &spec)),
            scans: config.get_extension::<StreamScans>().map_or(1, |scans| scans.count.max(1)),
            explain: config.get_extension::<ExplainOnly>().is_some(),
        };
        let source = Arc::clone(&self.source);
        let plan = tokio::task::spawn_blocking(move || source.plan(request));
        let plan = plan.await.map_err(|error| DataFusionError::External(Box::new(error)))??;
        let work = ScanWork { spec, scan: Some(plan.scan), report: plan.report, payload: plan.payload };
        let threads = config.target_partitions().min(plan.threads);
        Ok(Arc::new(StreamExec::new(&self.name, work, threads)?))
    }
}
