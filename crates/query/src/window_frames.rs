//! Frames of windows by `range` over addresses, bytes and lengths of time. The engine has no ranges of such values,
//! though a frame without a distance needs none: it ends with the peers of a row, as a frame by `groups` does.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Analyzer rule that makes frames by `groups` of those by `range` where the engine has no ranges.
#[derive(Debug)]
pub(crate) struct WindowFrames;

/// A frame by `groups` with the same rows, if both ends need no distance.
fn by_groups(frame: &WindowFrame) -> Option<WindowFrame> {
    let end = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => Some(WindowFrameBound::CurrentRow),
        WindowFrameBound::Preceding(distance) if distance.is_null() => {
            Some(WindowFrameBound::Preceding(ScalarValue::UInt64(None)))
        }
        WindowFrameBound::Following(distance) if distance.is_null() => {
            Some(WindowFrameBound::Following(ScalarValue::UInt64(None)))
        }
        WindowFrameBound::Preceding(_) | WindowFrameBound::Following(_) => None,
    };
    Some(WindowFrame::new_bounds(WindowFrameUnits::Groups, end(&frame.start_bound)?, end(&frame.end_bound)?))
}

impl AnalyzerRule for WindowFrames {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let LogicalPlan::Window(window) = &plan else { return Ok(Transformed::no(plan)) };
            let schema = Arc::clone(window.input.schema());
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| {
                    let Expr::WindowFunction(mut window) = expr else { return Ok(Transformed::no(expr)) };
                    let params = &mut window.params;
                    let by =
                        params.order_by.first().map(|by| by.expr.get_type(schema.as_ref())).transpose()?;
                    let has_no_ranges = matches!(
                        by,
                        Some(
                            DataType::FixedSizeBinary(_)
                                | DataType::BinaryView
                                | DataType::Binary
                                | DataType::LargeBinary
                                | DataType::Interval(_)
                                | DataType::Duration(_)
                        )
                    );
                    let is_range = params.window_frame.units == WindowFrameUnits::Range;
                    let frame =
                        (has_no_ranges && is_range).then(|| by_groups(&params.window_frame)).flatten();
                    Ok(match frame {
                        Some(frame) => {
                            params.window_frame = frame;
                            Transformed::yes(Expr::WindowFunction(window))
                        }
                        None => Transformed::no(Expr::WindowFunction(window)),
                    })
                })?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "window frames"
    }
}
