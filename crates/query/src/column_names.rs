//! Names of the columns of a result. Columns of several tables may share a name; with the names of their
//! tables they differ, as keys of a JSON object must.

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use std::collections::HashSet;
use std::sync::Arc;

/// A result in which columns of the same name have that of their table in front.
pub(crate) fn with_unique_names(
    plan: &LogicalPlan,
    batches: SendableRecordBatchStream,
) -> SendableRecordBatchStream {
    let schema = batches.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let is_shared = |name: &str| names.iter().filter(|other| **other == name).count() > 1;
    if !names.iter().any(|name| is_shared(name)) || plan.schema().fields().len() != names.len() {
        return batches;
    }
    let mut taken: HashSet<String> =
        names.iter().filter(|name| !is_shared(name)).map(|name| (*name).to_owned()).collect();
    let fields: Vec<Arc<Field>> = (schema.fields().iter().zip(plan.schema().iter()))
        .map(|(field, (table, _))| {
            if !is_shared(field.name()) {
                return Arc::clone(field);
            }
            let with_table = table.map(|table| format!("{}.{}", table.table(), field.name()));
            let first = with_table.unwrap_or_else(|| field.name().clone());
            let more = (2..).map(|number| format!("{first} {number}"));
            let name = std::iter::once(first.clone()).chain(more).find(|name| taken.insert(name.clone()));
            Arc::new(field.as_ref().clone().with_name(name.unwrap_or(first)))
        })
        .collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let of_batch = Arc::clone(&schema);
    let batches = batches.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(Arc::clone(&of_batch), columns, &options)?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}
