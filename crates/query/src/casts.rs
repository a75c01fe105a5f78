//! Conversions as `PostgreSQL` and `DuckDB` do them. The engine drops a fraction where they round; here an analyzer
//! rule rounds fractions that become whole numbers, and times with fewer digits of a second. It also makes texts of
//! addresses.

use crate::address_types::address_type_of;
use crate::functions::{Rounding, addr_text};
use crate::input_schema::input_schema;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, cast, try_cast};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Analyzer rule of conversions; before the rule that adds conversions of its own.
#[derive(Debug)]
pub(crate) struct Casts;

/// Operand of a conversion to a type, which is rounded where the type has no fraction.
fn operand(expr: Expr, to: &DataType, schema: &DFSchema, is_try: bool) -> Transformed<Expr> {
    let call = |rounding: Rounding, expr: Expr| {
        let function = Arc::new(rounding.function());
        Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, vec![expr])))
    };
    let Ok(from) = expr.get_type(schema) else { return Transformed::no(expr) };
    match (&from, to) {
        (DataType::Float64 | DataType::Float32, to) if to.is_integer() => {
            // A number with a point is a decimal to others.
            let rounding = if matches!(expr, Expr::Literal(..)) { Rounding::Away } else { Rounding::Even };
            call(rounding, expr)
        }
        (DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..), to)
            if to.is_integer() =>
        {
            Transformed::yes(cast(expr, DataType::Decimal128(38, 0)))
        }
        (DataType::Decimal256(..), to) if to.is_integer() => {
            Transformed::yes(cast(expr, DataType::Decimal256(76, 0)))
        }
        (DataType::Timestamp(from, _), DataType::Timestamp(to, _)) => match Rounding::between(*from, *to) {
            Some(rounding) => call(rounding, expr),
            None => Transformed::no(expr),
        },
        (from, DataType::Timestamp(to, _)) if from.is_string() => {
            match Rounding::between(TimeUnit::Nanosecond, *to) {
                Some(rounding) => {
                    let times = DataType::Timestamp(TimeUnit::Nanosecond, None);
                    call(rounding, if is_try { try_cast(expr, times) } else { cast(expr, times) })
                }
                None => Transformed::no(expr),
            }
        }
        (DataType::FixedSizeBinary(_), to) if to.is_string() && address_type_of(&expr, schema).is_some() => {
            Transformed::yes(addr_text().call(vec![expr]))
        }
        _ => Transformed::no(expr),
    }
}

fn rewritten(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::Cast(Cast { expr, field }) => {
            let operand = operand(*expr, field.data_type(), schema, false);
            operand.update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field }))
        }
        Expr::TryCast(TryCast { expr, field }) => {
            let operand = operand(*expr, field.data_type(), schema, true);
            operand.update_data(|expr| Expr::TryCast(TryCast { expr: Box::new(expr), field }))
        }
        expr => Transformed::no(expr),
    }
}

impl AnalyzerRule for Casts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let schema = input_schema(&plan);
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| Ok(rewritten(expr, &schema)))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "casts"
    }
}
