//! Names of result columns. SQL permits one name for several columns (`select a.id, b.id`); JSON objects,
//! data frames and most readers of files do not, so such columns are qualified.

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::common::DFSchema;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Result batches whose columns have distinct names. `columns` is the schema of the query with its qualifiers.
pub(crate) fn with_distinct_names(
    columns: &DFSchema,
    batches: SendableRecordBatchStream,
) -> SendableRecordBatchStream {
    let schema = batches.schema();
    let qualified: Vec<(Option<String>, &str)> = columns
        .iter()
        .map(|(table, field)| (table.map(ToString::to_string), field.name().as_str()))
        .collect();
    let names = distinct(&qualified);
    if names.len() != schema.fields().len() || names.iter().eq(schema.fields().iter().map(|f| f.name())) {
        return batches;
    }
    let rename = |(field, name): (&Arc<Field>, String)| Arc::new(field.as_ref().clone().with_name(name));
    let fields: Vec<Arc<Field>> = schema.fields().iter().zip(names).map(rename).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let renamed = Arc::clone(&schema);
    let batches = batches.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(Arc::clone(&renamed), columns, &options)?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

/// Distinct names of columns, each given as its table and its name. A name of several columns is qualified by
/// the table; a name that is still taken gets a number.
fn distinct(columns: &[(Option<String>, &str)]) -> Vec<String> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for (_, name) in columns {
        *counts.entry(name).or_default() += 1;
    }
    let is_shared = |name: &str| counts.get(name).is_some_and(|count| *count > 1);
    let single = columns.iter().filter(|(_, name)| !is_shared(name));
    let mut taken: HashSet<String> = single.map(|(_, name)| (*name).to_owned()).collect();
    let mut choose = |(table, name): &(Option<String>, &str)| {
        if !is_shared(name) {
            return (*name).to_owned();
        }
        let base = table.as_ref().map_or((*name).to_owned(), |table| format!("{table}.{name}"));
        let mut chosen = base.clone();
        let mut number = 2;
        while !taken.insert(chosen.clone()) {
            chosen = format!("{base}_{number}");
            number += 1;
        }
        chosen
    };
    columns.iter().map(&mut choose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(columns: &[(&str, &'static str)]) -> Vec<String> {
        let table = |table: &str| Some(table.to_owned()).filter(|table| !table.is_empty());
        let columns: Vec<_> = columns.iter().map(|(of, name)| (table(of), *name)).collect();
        distinct(&columns)
    }

    #[test]
    fn names_of_several_columns_are_qualified_by_their_table() {
        assert_eq!(names(&[("a", "id"), ("b", "id"), ("a", "z")]), ["a.id", "b.id", "z"]);
        assert_eq!(names(&[("a", "id"), ("", "x")]), ["id", "x"]);
    }

    #[test]
    fn names_that_are_still_taken_get_a_number() {
        assert_eq!(names(&[("", "id"), ("", "id"), ("", "id")]), ["id", "id_2", "id_3"]);
        assert_eq!(names(&[("a", "id"), ("b", "id"), ("", "a.id")]), ["a.id_2", "b.id", "a.id"]);
        assert_eq!(names(&[("", "id"), ("", "id_2"), ("", "id")]), ["id", "id_2", "id_3"]);
    }
}
