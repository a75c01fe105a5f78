//! Conditions over a sliding window: "a hundred of them within a second".

use super::column;
use crate::columns::Fixed;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::error::Result;
use datafusion::logical_expr::expr::{AggregateFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::{
    Expr, WindowFrame, WindowFrameBound, WindowFrameUnits, WindowFunctionDefinition,
};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use std::time::Duration;

/// Those elements of `frame` at which `when` holds: each of its aggregates is over what arrived in the time `back` before an
/// element, and with it.
pub(super) fn fires(
    context: &SessionContext,
    frame: DataFrame,
    when: &str,
    back: Duration,
) -> Result<DataFrame> {
    let condition = context.parse_sql_expr(when, frame.schema())?;
    let mut wanted: Vec<Expr> = [Fixed::Slot, Fixed::Time, Fixed::Ordinal].into_iter().map(column).collect();
    let own = wanted.len();
    let condition = condition.transform_up(|expr| {
        let Expr::AggregateFunction(aggregate) = expr else { return Ok(Transformed::no(expr)) };
        let name = format!("window {}", wanted.len());
        wanted.push(over(aggregate, back).alias(name.clone()));
        Ok(Transformed::yes(Expr::Column(Column::from_name(name))))
    })?;
    if wanted.len() == own {
        return plan_err!(
            "`{when}` asks nothing about several elements: say count(*), sum(size) or the like of them"
        );
    }
    // What else it speaks of is an element's own.
    for column in condition.data.column_refs() {
        let known = |expr: &Expr| expr.schema_name().to_string() == column.name;
        if !wanted.iter().any(known) {
            wanted.push(Expr::Column(column.clone()));
        }
    }
    frame.select(wanted)?.filter(condition.data)
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
            order_by: vec![column(Fixed::Time).sort(true, false)],
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
