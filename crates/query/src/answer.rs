//! Answers to questions, where slots may expire before they are searched, or be damaged. A list goes on without them: each of its
//! rows is right, and who asks is told at its end what is missing. What is computed over many rows would be wrong without some of
//! them, and so would be the first rows of an order: it ends instead.

use crate::asked::asked;
use crate::kinds::saying;
use crate::latest::latest;
use crate::nearest::NearestTable;
use crate::ring::Engine;
use crate::session::ask;
use crate::stream::Trouble;
use datafusion::common::tree_node::TreeNode;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::source_as_provider;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, Limit, LogicalPlan, SkipType, TableScan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use futures::stream::iter;
use holdfast_base::Sequence;
use std::any::Any;
use std::sync::Arc;

/// What an answer lacks that is computed over all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lacking {
    /// So many slots expired while the query was at work.
    #[error("slots that expired while the query was at work: {0}")]
    Expired(u64),
    /// Of so many elements that were found a part cannot be had.
    #[error("elements of which a part is not there: {0}")]
    Partial(u64),
    /// These are damaged, the first at this place.
    #[error("damaged slots: {}, the first is {first}", slots.len())]
    Damaged {
        /// Their sequences, in order.
        slots: Vec<Sequence>,
        /// What is wrong with the first that was come across.
        first: String,
    },
}

/// Asks; what comes is right as far as it comes. What a list lacks, [`Engine::trouble`] tells at its end.
pub async fn answer(engine: &Engine, sql: &str) -> Result<SendableRecordBatchStream> {
    let frame = ask(&engine.context, sql).await?;
    let (state, plan) = frame.into_parts();
    let is_list = is_list(&plan)?;
    let plan = latest(&state, &engine.trouble, plan).await?;
    let frame = DataFrame::new(state, plan.clone());
    let batches = saying(&plan, asked(frame, &engine.trouble).await?);
    Ok(if is_list { batches } else { whole(batches, &engine.trouble) })
}

/// What is computed over all: it ends with [`Lacking`] once some of it cannot be had, and be it behind the last row.
pub(crate) fn whole(batches: SendableRecordBatchStream, trouble: &Arc<Trouble>) -> SendableRecordBatchStream {
    fn all_there(trouble: &Trouble) -> Result<()> {
        match trouble.lacking() {
            None => Ok(()),
            Some(lacking) => Err(DataFusionError::External(Box::new(lacking))),
        }
    }
    let (schema, trouble, at_end) = (batches.schema(), Arc::clone(trouble), Arc::clone(trouble));
    let batches = batches.map(move |batch| batch.and_then(|batch| all_there(&trouble).map(|()| batch)));
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
        Ok(!is_row_by_row || node.expressions().iter().any(asks))
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

/// Whether an expression has a question in it.
pub(crate) fn asks(expr: &Expr) -> bool {
    let is_question = |expr: &Expr| {
        Ok(matches!(
            expr,
            Expr::InSubquery(_) | Expr::Exists(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_)
        ))
    };
    expr.exists(is_question).unwrap_or(true)
}
