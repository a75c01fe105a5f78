//! Ordinals of the elements that a query selects, for queries of which each row is one element. Export
//! reads the elements themselves.

use crate::answer::{is_list, whole};
use crate::column_origin::origin;
use crate::columns::CommonColumn;
use crate::engine::Engine;
use crate::latest_elements::latest;
use crate::retry_smaller;
use crate::session::ask;
use crate::stream::StreamTable;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::UInt64Type;
use datafusion::common::plan_err;
use datafusion::dataframe::DataFrame;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr, LogicalPlan};
use futures::StreamExt;
use holdfast_base::{Ordinal, StreamId};
use std::any::Any;

/// Elements that a question finds.
pub struct Hits {
    /// Their stream.
    pub stream: StreamId,
    ordinals: SendableRecordBatchStream,
}

impl Hits {
    /// The next of their ordinals, which rise; one may come again.
    pub async fn next(&mut self) -> Option<Result<Vec<Ordinal>>> {
        let batch = self.ordinals.next().await?;
        let ordinals = |batch: &datafusion::arrow::array::RecordBatch| {
            batch
                .column(0)
                .as_primitive::<UInt64Type>()
                .values()
                .iter()
                .map(|ordinal| Ordinal(*ordinal))
                .collect()
        };
        Some(batch.map(|batch| ordinals(&batch)))
    }
}

/// Asks a question of which each row is an element of one stream. What slots that expired or are damaged may have made wrong ends
/// with [`IncompleteAnswer`](crate::IncompleteAnswer), as an [`answer`](crate::answer) does.
pub async fn hits(engine: &Engine, sql: &str) -> Result<Hits> {
    let frame = ask(&engine.context, sql).await?;
    let columns = frame.schema().columns();
    let Some(place) = columns.iter().position(|column| column.name() == CommonColumn::Ordinal.name()) else {
        return plan_err!("cannot export elements: the result has no column `ordinal`; select it");
    };
    let Some(stream) = stream(frame.logical_plan(), place) else {
        return plan_err!(
            "cannot export elements: a row of the result is not an element of a single stream; remove joins, groups \
             and unions (`where … in (select …)` is allowed)"
        );
    };
    let is_list = is_list(frame.logical_plan())?;
    let (state, plan) = frame.into_parts();
    let plan = latest(&state, &engine.diagnostics, plan).await?;
    let frame = DataFrame::new(state, plan);
    let ordinal = Expr::Column(columns[place].clone());
    let sorted = frame.select(vec![ordinal.clone()])?.sort(vec![ordinal.sort(true, true)])?;
    let ordinals = retry_smaller::execute(sorted, &engine.diagnostics).await?;
    Ok(Hits { stream, ordinals: if is_list { ordinals } else { whole(ordinals, &engine.diagnostics) } })
}

/// The stream of which a plan's column is the ordinal of the element that the row is.
fn stream(plan: &LogicalPlan, place: usize) -> Option<StreamId> {
    let (scan, name) = origin(plan, place)?;
    let table = source_as_provider(&scan.source).ok()?;
    let table = (table.as_ref() as &dyn Any).downcast_ref::<StreamTable>()?;
    (name == CommonColumn::Ordinal.name()).then_some(table.stream())
}
