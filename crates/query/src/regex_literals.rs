//! Regular expressions that match every text. The engine takes `s ~ '.*'` for `s is not null`, so that null does not
//! match, where it is unknown; here an analyzer rule writes the pattern so that the engine does not recognise it.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, binary_expr, lit};
use datafusion::optimizer::AnalyzerRule;

/// Analyzer rule of patterns that match every text.
#[derive(Debug)]
pub(crate) struct RegexLiterals;

/// Pattern that the engine recognises.
const ANY: &str = ".*";
/// Beginning of a pattern that matches nothing more.
const EMPTY_GROUP: &str = "()";

/// The same pattern with an empty group before it, if the engine may recognise it.
fn unrecognised(pattern: Expr) -> Transformed<Expr> {
    match pattern {
        Expr::Literal(value, metadata) => {
            let is_any = value.try_as_str().flatten() == Some(ANY);
            let text = || Some(format!("{EMPTY_GROUP}{ANY}"));
            let value = match value {
                ScalarValue::Utf8(_) if is_any => ScalarValue::Utf8(text()),
                ScalarValue::Utf8View(_) if is_any => ScalarValue::Utf8View(text()),
                ScalarValue::LargeUtf8(_) if is_any => ScalarValue::LargeUtf8(text()),
                value => return Transformed::no(Expr::Literal(value, metadata)),
            };
            Transformed::yes(Expr::Literal(value, metadata))
        }
        Expr::Cast(Cast { expr, field }) => {
            unrecognised(*expr).update_data(|expr| Expr::Cast(Cast { expr: Box::new(expr), field }))
        }
        // The engine computes it before it looks at it.
        pattern if pattern.column_refs().is_empty() && !pattern.contains_outer() => {
            Transformed::yes(binary_expr(lit(EMPTY_GROUP), Operator::StringConcat, pattern))
        }
        pattern => Transformed::no(pattern),
    }
}

fn rewritten(expr: Expr) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if matches!(
                op,
                Operator::RegexMatch
                    | Operator::RegexIMatch
                    | Operator::RegexNotMatch
                    | Operator::RegexNotIMatch
            ) =>
        {
            unrecognised(*right)
                .update_data(|right| Expr::BinaryExpr(BinaryExpr { left, op, right: Box::new(right) }))
        }
        Expr::ScalarFunction(mut call) if call.func.name() == "regexp_like" && call.args.len() >= 2 => {
            let pattern = std::mem::replace(&mut call.args[1], lit(""));
            unrecognised(pattern).update_data(|pattern| {
                call.args[1] = pattern;
                Expr::ScalarFunction(call)
            })
        }
        expr => Transformed::no(expr),
    }
}

impl AnalyzerRule for RegexLiterals {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| Ok(rewritten(expr)))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "regular expressions"
    }
}
