//! Rewriting of queries for the latest elements (`order by time desc limit 10`): the search begins with the
//! youngest slots and widens until enough elements match. The engine alone would scan the whole stream.

use crate::answer::asks;
use crate::columns::CommonColumn;
use crate::hits::origin;
use crate::stream::{ScanDiagnostics, StreamTable, takes_payload};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::catalog::TableProvider;
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
use holdfast_reader::ReaderError;
use holdfast_reader::{Plan, PlannedSlot, RingReader, Selection};
use holdfast_ring::Range;
use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

/// Fewer slots are looked at as fast as it is asked where to look.
const FEW: usize = 16;
/// How far back it is looked first, and how much farther each time: all of these together are little beside the last.
const SECOND: Duration = Duration::from_secs(1);
const FARTHER: u32 = 16;
/// Of all there is one part in so many at most: to look at more takes as long as to look at all.
const LITTLE: i64 = 2;
/// How often, before all is looked at.
const TIMES: u32 = 5;

/// What a question wants of a stream that is last.
struct LatestQuery {
    stream: StreamId,
    table: Arc<dyn TableProvider>,
    /// By arrival or by ordinal.
    by: CommonColumn,
    /// So many rows.
    rows: usize,
    /// The same with those that are passed over before them.
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
        // Each row below stands for itself, whoever asks, and no condition takes payloads, which would be read for each look.
        let is_other = |node: &LogicalPlan| {
            let chooses = matches!(node, LogicalPlan::Limit(_) | LogicalPlan::Sort(_));
            let is_other = |expr: &Expr| asks(expr) || expr.is_volatile();
            let by_payload = matches!(node, LogicalPlan::Filter(filter) if takes_payload(&filter.predicate));
            Ok(chooses || by_payload || node.expressions().iter().any(is_other))
        };
        if sort.input.exists(is_other).unwrap_or(true) {
            return None;
        }
        let table = source_as_provider(&scan.source).ok()?;
        let stream = (table.as_ref() as &dyn Any).downcast_ref::<StreamTable>()?.stream();
        Some(Self { stream, table, by, rows, with_skipped: rows.saturating_add(skipped) })
    }

    /// From where on it is looked, one after the other; nothing where there is little to look at.
    async fn since(&self) -> Result<Vec<ScalarValue>> {
        let stream = self.stream;
        let Some(Some(StreamExtent { newest, oldest, next })) =
            self.read(move |reader| StreamExtent::read(reader, stream)).await?
        else {
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

    /// Whether little has ordinals from there on; of times that is known.
    async fn is_little(&self, since: &ScalarValue) -> Result<bool> {
        let ScalarValue::UInt64(Some(since)) = *since else { return Ok(true) };
        let range = Range { ordinals: Some((Ordinal(since), Ordinal(u64::MAX))), ..Range::ALL };
        let selection = Selection { streams: vec![self.stream], range };
        let is_little = move |reader: &mut RingReader| {
            let Plan { slots, of, .. } = reader.plan(&selection)?;
            Ok(slots.len() * LITTLE as usize <= of)
        };
        Ok(self.read(is_little).await? == Some(true))
    }

    /// What is read of the ring.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&mut RingReader) -> Result<T, ReaderError> + Send + 'static,
    ) -> Result<Option<T>> {
        let table = Arc::clone(&self.table);
        let read = tokio::task::spawn_blocking(move || {
            let Some(table) = (table.as_ref() as &dyn Any).downcast_ref::<StreamTable>() else {
                return Ok(None);
            };
            let mut pooled = table.readers().take()?;
            let read = read(&mut pooled.reader);
            table.readers().give(pooled);
            read.map(Some)
        });
        let external = |error: ReaderError| DataFusionError::External(Box::new(error));
        read.await.map_err(|error| DataFusionError::External(Box::new(error)))?.map_err(external)
    }
}

/// Where a stream ends.
struct StreamExtent {
    newest: Timestamp,
    oldest: Timestamp,
    /// Where slots can be passed over by their ordinals without a read.
    next: Option<Ordinal>,
}

impl StreamExtent {
    /// Nothing of a stream that has few slots.
    fn read(reader: &mut RingReader, stream: StreamId) -> Result<Option<Self>, ReaderError> {
        let slots = reader.plan(&Selection { streams: vec![stream], range: Range::ALL })?.slots;
        let Some(youngest) = slots.iter().max_by_key(|slot| slot.age).filter(|_| slots.len() > FEW) else {
            return Ok(None);
        };
        // What is still open is younger: there is no end to what is looked at.
        let known = || slots.iter().filter_map(|slot| slot.first.zip(slot.last));
        let ends = known().map(|(first, _)| first).min().zip(known().map(|(_, last)| last).max());
        if reader.is_live() {
            let streams = reader.streams()?;
            let next = streams.iter().find(|status| status.id == stream);
            let next = next.map(|status| status.counters.next_ordinal);
            return Ok(ends.map(|(oldest, newest)| Self { newest, oldest, next }));
        }
        let first = slots.iter().min_by_key(|slot| slot.age).and_then(|slot| arrivals(reader, slot));
        let ends = first.zip(arrivals(reader, youngest));
        Ok(ends.map(|((oldest, _), (_, newest))| Self { newest, oldest, next: None }))
    }
}

/// When what is in a slot arrived. Whoever finds out what is the matter with it tells it.
fn arrivals(reader: &mut RingReader, slot: &PlannedSlot) -> Option<(Timestamp, Timestamp)> {
    let view = reader.look_into(slot).ok()?;
    let all = || view.summary().entries.iter().filter_map(|entry| entry.arrivals);
    all().map(|(first, _)| first).min().zip(all().map(|(_, last)| last).max())
}

/// A question as it is asked where it is about the last elements: of what is youngest, where that has as many. Others stay as they are.
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
