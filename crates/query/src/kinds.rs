//! Which addresses an expression gives. Arrow has no types of their own for them: a column's field says it, and what gives one of its
//! arguments (the greatest, the first that is not null) gives addresses of its argument's type. Of what nobody says it, the
//! number of bytes does.

use crate::columns::{TYPE_KEY, address_type, said_type};
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
pub(crate) fn kind_of(expression: &Expr, schema: &DFSchema) -> Option<Type> {
    let find = |column: &Column| schema.field_from_column(column).ok().and_then(|field| said_type(field));
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
        Expr::OuterReferenceColumn(field, _) => said_type(field),
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
        Expr::ScalarSubquery(subquery) => said_of(&subquery.subquery).into_iter().next().flatten(),
        _ => None,
    }
}

/// What is said of the columns that a question has.
fn said_of(plan: &LogicalPlan) -> Vec<Option<Type>> {
    let of = |expressions: &[Expr], input: &LogicalPlan| -> Vec<Option<Type>> {
        let below = said_of(input);
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
            let mut all = said_of(&window.input);
            all.extend(of(&window.window_expr, &window.input));
            all
        }
        LogicalPlan::Filter(filter) => said_of(&filter.input),
        LogicalPlan::Sort(sort) => said_of(&sort.input),
        LogicalPlan::Limit(limit) => said_of(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => said_of(&alias.input),
        LogicalPlan::Distinct(Distinct::All(input)) => said_of(input),
        LogicalPlan::Union(union) => union.inputs.first().map(|input| said_of(input)).unwrap_or_default(),
        LogicalPlan::Join(join) => [said_of(&join.left), said_of(&join.right)].concat(),
        _ => Vec::new(),
    };
    let fields = plan.schema().fields();
    // Sets of groups, and joins that give one side, have other columns than what they are made of.
    let matches = from_below.len() == fields.len();
    let of_field = |(place, field): (usize, &Arc<Field>)| {
        said_type(field).or_else(|| if matches { from_below[place] } else { None })
    };
    fields.iter().enumerate().map(of_field).collect()
}

/// The type of the addresses that a question's first column has.
pub(crate) fn kind_of_first(plan: &LogicalPlan) -> Option<Type> {
    let field = plan.schema().fields().first()?;
    said_of(plan).into_iter().next().flatten().or_else(|| address_type(field))
}

/// An answer whose fields say which addresses they are.
pub(crate) fn saying(plan: &LogicalPlan, batches: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = batches.schema();
    let said = said_of(plan);
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
