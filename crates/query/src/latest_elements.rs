//! Rewriting of queries for the latest elements (`order by time desc limit 10`): the search begins with the
//! youngest slots and widens until enough elements match. The engine alone would scan the whole stream.

use crate::column_origin::origin;
use crate::columns::CommonColumn;
use crate::stream::{ScanDiagnostics, StreamEnds, StreamSource, StreamSurvey, StreamTable, takes_payload};
use crate::subqueries::has_subquery;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, ScalarValue};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::{
    Analyze, Expr, FetchType, Filter, LogicalPlan, LogicalPlanBuilder, SkipType, TableScan, lit,
};
use holdfast_base::{Ordinal, StreamId, Timestamp};
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// First span to search, and the factor by which it grows: all searches together cost little beside the last.
const SECOND: Duration = Duration::from_secs(1);
const FARTHER: u32 = 16;
/// At most one part in so many of all segments is searched: beyond that a scan of all takes as long.
const LITTLE: i64 = 2;
/// Maximum number of searches before all segments are scanned.
const TIMES: u32 = 5;

/// Query for the latest elements of a stream.
struct LatestQuery {
    stream: StreamId,
    source: Arc<dyn StreamSource>,
    /// Order of the query: by arrival or by ordinal.
    by: CommonColumn,
    /// Number of rows in the result.
    rows: usize,
    /// Number of rows, with those that `offset` skips.
    with_skipped: usize,
}

impl LatestQuery {
    fn of(plan: &LogicalPlan) -> Option<Self> {
        let (mut node, mut limit) = (plan, None);
        let sort = loop {
            node = match node {
                LogicalPlan::Projection(projection) => &projection.input,
                LogicalPlan::SubqueryAlias(alias) => &alias.input,
                LogicalPlan::Limit(some) if limit.is_none() => {
                    let (FetchType::Literal(Some(fetch)), SkipType::Literal(skip)) =
                        (some.get_fetch_type().ok()?, some.get_skip_type().ok()?)
                    else {
                        return None;
                    };
                    limit = Some((fetch, skip));
                    &some.input
                }
                LogicalPlan::Sort(sort) => break sort,
                _ => return None,
            };
        };
        let (rows, skipped) = limit.filter(|(rows, _)| *rows > 0)?;
        let first = sort.expr.first().filter(|first| !first.asc)?;
        let Expr::Column(column) = &first.expr else { return None };
        let place = sort.input.schema().maybe_index_of_column(column)?;
        let (scan, name) = origin(&sort.input, place)?;
        let by =
            [CommonColumn::Time, CommonColumn::Ordinal].into_iter().find(|fixed| fixed.name() == name)?;
        // Each row below is independent of others, and no condition needs payloads, which each search would read.
        let is_other = |node: &LogicalPlan| {
            let chooses = matches!(node, LogicalPlan::Limit(_) | LogicalPlan::Sort(_));
            let is_other = |expr: &Expr| has_subquery(expr) || expr.is_volatile();
            let by_payload = matches!(node, LogicalPlan::Filter(filter) if takes_payload(&filter.predicate));
            Ok(chooses || by_payload || node.expressions().iter().any(is_other))
        };
        if sort.input.exists(is_other).unwrap_or(true) {
            return None;
        }
        let table = source_as_provider(&scan.source).ok()?;
        let table = (table.as_ref() as &dyn Any).downcast_ref::<StreamTable>()?;
        let (stream, source) = (table.stream(), Arc::clone(table.source()));
        Some(Self { stream, source, by, rows, with_skipped: rows.saturating_add(skipped) })
    }

    /// Returns the bounds from which on to search, one after the other; none if there are few segments.
    async fn since(&self) -> Result<Vec<ScalarValue>> {
        let Some(StreamEnds { oldest, newest, next }) = self.survey(Ordinal(0)).await?.ends else {
            return Ok(Vec::new());
        };
        let farther = (0..TIMES).map(|time| FARTHER.pow(time));
        if self.by == CommonColumn::Time {
            let all = newest.0.saturating_sub(oldest.0);
            let spans =
                farther.map(|times| SECOND * times).filter(|span| span.as_nanos() as i64 <= all / LITTLE);
            let since = spans.map(|span| newest - span);
            let instant =
                |since: Timestamp| ScalarValue::TimestampNanosecond(Some(since.0), Some("UTC".into()));
            return Ok(since.map(instant).collect());
        }
        let back = |times: u32| (self.with_skipped as u64).saturating_mul(2 * u64::from(times));
        let since = farther.map_while(|times| next?.0.checked_sub(back(times)));
        Ok(since.map(|since| ScalarValue::UInt64(Some(since))).collect())
    }

    /// Returns true if few segments have elements from a bound on; [`Self::since`] checks this for times.
    async fn is_little(&self, since: &ScalarValue) -> Result<bool> {
        let ScalarValue::UInt64(Some(since)) = *since else { return Ok(true) };
        let StreamSurvey { segments, all, .. } = self.survey(Ordinal(since)).await?;
        Ok(segments * LITTLE as usize <= all)
    }

    async fn survey(&self, from: Ordinal) -> Result<StreamSurvey> {
        let (source, stream) = (Arc::clone(&self.source), self.stream);
        let survey = tokio::task::spawn_blocking(move || source.survey(stream, from));
        survey.await.map_err(|error| DataFusionError::External(Box::new(error)))?
    }
}

/// Narrows a query for the latest elements to young ones, if these are enough. Other queries stay as they are.
pub(crate) async fn latest(
    state: &SessionState,
    diagnostics: &Arc<ScanDiagnostics>,
    plan: LogicalPlan,
) -> Result<LogicalPlan> {
    if let LogicalPlan::Analyze(analyze) = &plan {
        let input = narrowed(state, diagnostics, analyze.input.as_ref().clone()).await?;
        return Ok(LogicalPlan::Analyze(Analyze { input: Arc::new(input), ..analyze.clone() }));
    }
    narrowed(state, diagnostics, plan).await
}

async fn narrowed(
    state: &SessionState,
    diagnostics: &Arc<ScanDiagnostics>,
    plan: LogicalPlan,
) -> Result<LogicalPlan> {
    let Some(last) = LatestQuery::of(&plan) else { return Ok(plan) };
    for (looks, since) in last.since().await?.into_iter().enumerate() {
        if looks > 0 && !last.is_little(&since).await? {
            break;
        }
        let young = within(&plan, last.by, &since)?;
        let counted =
            LogicalPlanBuilder::from(young.clone()).aggregate(Vec::<Expr>::new(), [count(lit(1))])?;
        let counted = DataFrame::new(state.clone(), counted.build()?).collect().await;
        // What that could not look into is not what the question lacks.
        diagnostics.take();
        // What is wrong with it is told where all is asked.
        let Ok(counted) = counted else { return Ok(plan) };
        let found =
            counted.iter().map(|batch| batch.column(0).as_primitive::<Int64Type>().value(0)).sum::<i64>();
        if usize::try_from(found).is_ok_and(|found| found >= last.rows) {
            return Ok(young);
        }
    }
    Ok(plan)
}

/// The same of what is not before that.
fn within(plan: &LogicalPlan, by: CommonColumn, since: &ScalarValue) -> Result<LogicalPlan> {
    let narrow = |node: LogicalPlan| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let condition = column(scan, by)?.gt_eq(lit(since.clone()));
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::try_new(condition, Arc::new(node))?)))
    };
    plan.clone().transform_up(narrow).map(|plan| plan.data)
}

fn column(scan: &TableScan, by: CommonColumn) -> Result<Expr> {
    let place = scan.projected_schema.index_of_column(&Column::from_name(by.name()))?;
    Ok(Expr::Column(Column::from(scan.projected_schema.qualified_field(place))))
}
