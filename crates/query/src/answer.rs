//! Execution of a query over slots that may expire or be damaged before they are read. A list goes on
//! without them, and the diagnostics name them at its end. An aggregate, or the first rows of an order,
//! would be wrong without them and ends with an error.

use crate::address_types::with_address_types;
use crate::engine::Engine;
use crate::latest_elements::latest;
use crate::nearest::NearestTable;
use crate::result_names::with_distinct_names;
use crate::retry_smaller;
use crate::session::ask;
use crate::stream::ScanDiagnostics;
use crate::subqueries::has_subquery;
use datafusion::common::tree_node::TreeNode;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Limit, LogicalPlan, SkipType, TableScan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use futures::stream::iter;
use std::any::Any;
use std::sync::Arc;

/// Asks; what comes is right as far as it comes. What a list lacks, [`Engine::diagnostics`] tells at its end.
pub async fn answer(engine: &Engine, sql: &str) -> Result<SendableRecordBatchStream> {
    let frame = ask(&engine.context, sql).await?;
    let (state, plan) = frame.into_parts();
    let is_list = is_list(&plan)?;
    let plan = latest(&state, &engine.diagnostics, plan).await?;
    let frame = DataFrame::new(state, plan.clone());
    let batches = with_address_types(&plan, retry_smaller::execute(frame, &engine.diagnostics).await?);
    let batches = with_distinct_names(plan.schema(), batches);
    Ok(if is_list { batches } else { whole(batches, &engine.diagnostics) })
}

/// What is computed over all: it ends with [`IncompleteAnswer`] once some of it cannot be had, and be it behind the last row.
pub(crate) fn whole(
    batches: SendableRecordBatchStream,
    diagnostics: &Arc<ScanDiagnostics>,
) -> SendableRecordBatchStream {
    fn all_there(diagnostics: &ScanDiagnostics) -> Result<()> {
        match diagnostics.lacking() {
            None => Ok(()),
            Some(lacking) => Err(DataFusionError::External(Box::new(lacking))),
        }
    }
    let (schema, diagnostics, at_end) = (batches.schema(), Arc::clone(diagnostics), Arc::clone(diagnostics));
    let batches = batches.map(move |batch| batch.and_then(|batch| all_there(&diagnostics).map(|()| batch)));
    let end = iter([()]).filter_map(move |()| std::future::ready(all_there(&at_end).err().map(Err)));
    Box::pin(RecordBatchStreamAdapter::new(schema, batches.chain(end)))
}

/// Whether each row of an answer stands for itself: it is what it is whatever other rows there are.
pub(crate) fn is_list(plan: &LogicalPlan) -> Result<bool> {
    if matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_)) {
        return Ok(true);
    }
    let computed = plan.exists(|node| {
        let is_row_by_row = matches!(
            node,
            LogicalPlan::Projection(_)
                | LogicalPlan::Filter(_)
                | LogicalPlan::SubqueryAlias(_)
                | LogicalPlan::Union(_)
                | LogicalPlan::Values(_)
                | LogicalPlan::EmptyRelation(_)
        ) || match node {
            LogicalPlan::TableScan(scan) => !is_joined(scan),
            LogicalPlan::Sort(sort) => sort.fetch.is_none(),
            LogicalPlan::Limit(limit) => !counts_places(limit)?,
            _ => false,
        };
        Ok(!is_row_by_row || node.expressions().iter().any(has_subquery))
    })?;
    Ok(!computed)
}

/// Whether which rows a limit leaves depends on others: on those that come first in an order, or those that are passed over.
fn counts_places(limit: &Limit) -> Result<bool> {
    let is_sorted = limit.input.exists(|node| Ok(matches!(node, LogicalPlan::Sort(_))))?;
    Ok(is_sorted || !matches!(limit.get_skip_type()?, SkipType::Literal(0)))
}

/// Whether a table puts rows of others together.
fn is_joined(scan: &TableScan) -> bool {
    let table = source_as_provider(&scan.source);
    table.is_ok_and(|table| (table.as_ref() as &dyn Any).is::<NearestTable>())
}
