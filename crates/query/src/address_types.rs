//! Inference of the address type of an expression. Arrow has no address types: the metadata of a field
//! names the type, and functions that return one of their arguments (`greatest`, `coalesce`) return its
//! type. Without metadata the number of bytes decides.

use crate::columns::{TYPE_KEY, address_type, declared_type};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{Column, DFSchema, ExprSchema};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::expr::{AggregateFunction, ScalarFunction};
use datafusion::logical_expr::{Distinct, Expr, ExprSchemable, LogicalPlan};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;
use holdfast_attributes::Type;
use std::sync::Arc;

/// Functions that give one of their arguments.
pub(crate) const ONE_OF: [&str; 6] = ["coalesce", "nullif", "greatest", "least", "nvl", "nvl2"];
/// Aggregates and window functions that give one of the values of their first argument, or all of them.
const OF_FIRST: [&str; 8] =
    ["min", "max", "first_value", "last_value", "nth_value", "array_agg", "lag", "lead"];

/// The type of the addresses that an expression is, if it is one.
pub(crate) fn address_type_of(expression: &Expr, schema: &DFSchema) -> Option<Type> {
    let find = |column: &Column| schema.field_from_column(column).ok().and_then(|field| declared_type(field));
    let said = said(expression, &find);
    match expression.get_type(schema) {
        Ok(kind @ DataType::FixedSizeBinary(_)) => said.or_else(|| address_type(&Field::new("", kind, true))),
        // A text may stand for an address there.
        Ok(DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8) | Err(_) => said,
        Ok(_) => None,
    }
}

/// What is said of an expression's values by the fields that they come from.
fn said(expression: &Expr, find: &dyn Fn(&Column) -> Option<Type>) -> Option<Type> {
    match expression {
        Expr::Column(column) => find(column),
        Expr::OuterReferenceColumn(field, _) => declared_type(field),
        Expr::Alias(alias) => said(&alias.expr, find),
        Expr::Case(case) => {
            let given = case.when_then_expr.iter().map(|(_, then)| then).chain(&case.else_expr);
            given.into_iter().find_map(|one| said(one, find))
        }
        Expr::ScalarFunction(ScalarFunction { func, args }) if ONE_OF.contains(&func.name()) => {
            args.iter().find_map(|one| said(one, find))
        }
        Expr::AggregateFunction(AggregateFunction { func, params }) if OF_FIRST.contains(&func.name()) => {
            params.args.first().and_then(|one| said(one, find))
        }
        Expr::WindowFunction(window) if OF_FIRST.contains(&window.fun.name()) => {
            window.params.args.first().and_then(|one| said(one, find))
        }
        Expr::ScalarSubquery(subquery) => declared_types(&subquery.subquery).into_iter().next().flatten(),
        _ => None,
    }
}

/// What is said of the columns that a question has.
fn declared_types(plan: &LogicalPlan) -> Vec<Option<Type>> {
    let of = |expressions: &[Expr], input: &LogicalPlan| -> Vec<Option<Type>> {
        let below = declared_types(input);
        let find = |column: &Column| {
            input.schema().maybe_index_of_column(column).and_then(|place| below.get(place).copied().flatten())
        };
        expressions.iter().map(|expression| said(expression, &find)).collect()
    };
    let from_below = match plan {
        LogicalPlan::Projection(projection) => of(&projection.expr, &projection.input),
        LogicalPlan::Aggregate(aggregate) => {
            let mut all = of(&aggregate.group_expr, &aggregate.input);
            all.extend(of(&aggregate.aggr_expr, &aggregate.input));
            all
        }
        LogicalPlan::Window(window) => {
            let mut all = declared_types(&window.input);
            all.extend(of(&window.window_expr, &window.input));
            all
        }
        LogicalPlan::Filter(filter) => declared_types(&filter.input),
        LogicalPlan::Sort(sort) => declared_types(&sort.input),
        LogicalPlan::Limit(limit) => declared_types(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => declared_types(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => declared_types(input),
        LogicalPlan::Union(union) => {
            union.inputs.first().map(|input| declared_types(input)).unwrap_or_default()
        }
        LogicalPlan::Join(join) => [declared_types(&join.left), declared_types(&join.right)].concat(),
        _ => Vec::new(),
    };
    let fields = plan.schema().fields();
    // Sets of groups, and joins that give one side, have other columns than what they are made of.
    let matches = from_below.len() == fields.len();
    let of_field = |(place, field): (usize, &Arc<Field>)| {
        declared_type(field).or_else(|| if matches { from_below[place] } else { None })
    };
    fields.iter().enumerate().map(of_field).collect()
}

/// The type of the addresses that a question's first column has.
pub(crate) fn address_type_of_first(plan: &LogicalPlan) -> Option<Type> {
    let field = plan.schema().fields().first()?;
    declared_types(plan).into_iter().next().flatten().or_else(|| address_type(field))
}

/// An answer whose fields say which addresses they are.
pub(crate) fn with_address_types(
    plan: &LogicalPlan,
    batches: SendableRecordBatchStream,
) -> SendableRecordBatchStream {
    let schema = batches.schema();
    let said = declared_types(plan);
    let say = |(place, field): (usize, &Arc<Field>)| {
        let kind = said.get(place).copied().flatten().or_else(|| address_type(field));
        match kind {
            Some(kind) if address_type(field).is_some() => {
                let mut metadata = field.metadata().clone();
                metadata.insert(TYPE_KEY.to_owned(), kind.name().to_owned());
                Arc::new(field.as_ref().clone().with_metadata(metadata))
            }
            _ => Arc::clone(field),
        }
    };
    let fields: Vec<Arc<Field>> = schema.fields().iter().enumerate().map(say).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let as_said = Arc::clone(&schema);
    let batches = batches.map(move |batch| {
        let batch = batch?;
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = batch.columns().to_vec();
        Ok(RecordBatch::try_new_with_options(Arc::clone(&as_said), columns, &options)?)
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}
