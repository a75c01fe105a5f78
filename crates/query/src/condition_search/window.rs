//! Conditions over a sliding window, such as "a hundred matches within a second".

use super::column;
use crate::columns::CommonColumn;
use crate::validation;
use datafusion::arrow::array::{RecordBatch, new_null_array};
use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
    WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition, cast, when as case_when,
};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use std::sync::Arc;
use std::time::Duration;

/// Whether such a condition can be asked of elements like those of `frame` that meet another: every aggregate of it must be one that can forget
/// what has left its window.
pub(super) async fn check(
    context: &SessionContext,
    frame: DataFrame,
    met: &Expr,
    when: &str,
    back: Duration,
) -> Result<()> {
    let WindowCondition { aggregates, .. } = parsed(context, &frame, when)?;
    fires(context, frame.clone(), met, when, back)?;
    // The engine says so only when it begins to compute: here with an element of which nothing is known.
    let schema = frame.schema().as_arrow();
    let fields: Vec<FieldRef> =
        schema.fields().iter().map(|field| Arc::new(field.as_ref().clone().with_nullable(true))).collect();
    let columns = fields.iter().map(|field| new_null_array(field.data_type(), 1)).collect();
    let element = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)?;
    for aggregate in aggregates {
        let name = Expr::AggregateFunction(aggregate.clone()).schema_name().to_string();
        let tried = over(aggregate, back).transform_up(|expr| match expr {
            Expr::Column(column) => Ok(Transformed::yes(Expr::Column(Column::from_name(column.name)))),
            other => Ok(Transformed::no(other)),
        })?;
        let tried = context.read_batch(element.clone())?.select(vec![tried.data])?;
        match tried.collect().await {
            Err(DataFusionError::NotImplemented(_)) => {
                return plan_err!(
                    "cannot compute `{name}` over a sliding window: it cannot remove elements; use count, \
                     count(distinct …), sum, avg, min, max, median, stddev, var, or another of docs/search.md"
                );
            }
            tried => drop(tried?),
        }
    }
    Ok(())
}

/// A condition over a window, its aggregates taken out of it.
struct WindowCondition {
    /// With a column of the name that [`place`] gives in the place of each aggregate.
    condition: Expr,
    aggregates: Vec<AggregateFunction>,
}

fn place(at: usize) -> String {
    format!("window {at}")
}

fn parsed(context: &SessionContext, frame: &DataFrame, when: &str) -> Result<WindowCondition> {
    let mut aggregates = Vec::new();
    let condition = validation::condition(context, when, frame.schema())?.transform_up(|expr| {
        let Expr::AggregateFunction(aggregate) = expr else { return Ok(Transformed::no(expr)) };
        aggregates.push(aggregate);
        Ok(Transformed::yes(Expr::Column(Column::from_name(place(aggregates.len())))))
    })?;
    if aggregates.is_empty() {
        return plan_err!(
            "cannot use `{when}` as a window condition: it has no aggregate; use one such as count(*) or sum(size)"
        );
    }
    Ok(WindowCondition { condition: condition.data, aggregates })
}

/// Those elements of `frame` that meet a condition at which `when` holds: each of its aggregates is over those that arrived in the
/// time `back` before an element, and with it.
pub(super) fn fires(
    context: &SessionContext,
    frame: DataFrame,
    met: &Expr,
    when: &str,
    back: Duration,
) -> Result<DataFrame> {
    let WindowCondition { condition, aggregates } = parsed(context, &frame, when)?;
    let frame = with_values(frame.filter(met.clone())?, met, &aggregates)?;
    let mut wanted: Vec<Expr> =
        [CommonColumn::Slot, CommonColumn::Time, CommonColumn::Ordinal].into_iter().map(column).collect();
    let windows = aggregates.into_iter().zip(1..);
    wanted.extend(windows.map(|(aggregate, at)| over(aggregate, back).alias(place(at))));
    // What else it speaks of is an element's own.
    for column in condition.column_refs() {
        let known = |expr: &Expr| expr.schema_name().to_string() == column.name;
        if !wanted.iter().any(known) {
            wanted.push(Expr::Column(column.clone()));
        }
    }
    frame.select(wanted)?.filter(condition)
}

/// Of elements that meet a condition those that have what the aggregates are over: where that fails of one, the filter here does,
/// which can pass over it.
fn with_values(frame: DataFrame, met: &Expr, aggregates: &[AggregateFunction]) -> Result<DataFrame> {
    let over = aggregates
        .iter()
        .flat_map(|AggregateFunction { params, .. }| params.args.iter().chain(params.filter.as_deref()));
    let mut values = Vec::new();
    for expr in over.filter(|expr| !expr.column_refs().is_empty()) {
        let is_bool = expr.get_type(frame.schema())? == DataType::Boolean;
        let value = if is_bool { cast(expr.clone(), DataType::Int8) } else { expr.clone() };
        // Of no others: the engine asks both filters at once, and what is true or false here it would ask of all.
        values.push(case_when(met.clone(), value).end()?);
    }
    if values.is_empty() {
        return Ok(frame);
    }
    let has_values = ScalarUDF::from(HasValues { signature: Signature::variadic_any(Volatility::Immutable) });
    frame.filter(has_values.call(values))
}

/// Whether some values can be told, which is asked by asking for them.
#[derive(Debug, PartialEq, Eq, Hash)]
struct HasValues {
    signature: Signature,
}

impl ScalarUDFImpl for HasValues {
    fn name(&self) -> &'static str {
        "has_values"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }
}

/// An aggregate over the last so long of what arrived.
fn over(aggregate: AggregateFunction, back: Duration) -> Expr {
    let nanos = i64::try_from(back.as_nanos()).unwrap_or(i64::MAX);
    let start = WindowFrameBound::Preceding(ScalarValue::new_interval_mdn(0, 0, nanos));
    let params = aggregate.params;
    Expr::from(WindowFunction {
        fun: WindowFunctionDefinition::AggregateUDF(aggregate.func),
        params: WindowFunctionParams {
            args: params.args,
            partition_by: Vec::new(),
            order_by: vec![column(CommonColumn::Time).sort(true, false)],
            window_frame: WindowFrame::new_bounds(
                WindowFrameUnits::Range,
                start,
                WindowFrameBound::CurrentRow,
            ),
            filter: params.filter,
            null_treatment: params.null_treatment,
            distinct: params.distinct,
        },
    })
}
