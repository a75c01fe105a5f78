//! Texts that stand for addresses: `src = '10.0.0.1'` means the address, as people write it. Two places, for the engine looks
//! at the types of a comparison while it is parsed, and at those of a list or range later.

use crate::address;
use crate::columns::address_type;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, ExprSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::AnalyzerRule;
use datafusion::sql::sqlparser::ast::BinaryOperator;
use holdfast_attributes::Type;

/// Makes addresses of texts that are compared with addresses.
#[derive(Debug)]
pub(crate) struct Literals;

/// The type of the addresses that an expression is, if it is a column of them.
fn type_of(expression: &Expr, schema: &DFSchema) -> Option<Type> {
    match expression {
        Expr::Column(column) => schema.field_from_column(column).ok().and_then(|field| address_type(field)),
        Expr::Alias(alias) => type_of(&alias.expr, schema),
        _ => None,
    }
}

/// The text of a literal.
pub(crate) fn text_of(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Literal(
            ScalarValue::Utf8(Some(text))
            | ScalarValue::Utf8View(Some(text))
            | ScalarValue::LargeUtf8(Some(text)),
            _,
        ) => Some(text),
        _ => None,
    }
}

/// An address as a literal.
pub(crate) fn literal(bytes: Vec<u8>) -> Expr {
    Expr::Literal(ScalarValue::FixedSizeBinary(bytes.len() as i32, Some(bytes)), None)
}

/// The address that a text stands for, where it is one; other expressions as they are.
fn addressed(expression: Expr, kind: Type) -> Result<Expr> {
    match text_of(&expression) {
        Some(text) => {
            let bytes =
                address::parse(kind, text).map_err(|error| DataFusionError::Plan(error.to_string()))?;
            Ok(literal(bytes))
        }
        None => Ok(expression),
    }
}

fn both(left: Expr, right: Expr, schema: &DFSchema) -> Result<(Expr, Expr)> {
    Ok(match (type_of(&left, schema), type_of(&right, schema)) {
        (Some(kind), None) => (left, addressed(right, kind)?),
        (None, Some(kind)) => (addressed(left, kind)?, right),
        _ => (left, right),
    })
}

impl ExprPlanner for Literals {
    fn plan_binary_op(&self, expr: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let compares = matches!(
            expr.op,
            BinaryOperator::Eq
                | BinaryOperator::NotEq
                | BinaryOperator::Lt
                | BinaryOperator::LtEq
                | BinaryOperator::Gt
                | BinaryOperator::GtEq
                | BinaryOperator::Spaceship
        );
        if !compares {
            return Ok(PlannerResult::Original(expr));
        }
        let RawBinaryExpr { op, left, right } = expr;
        let (left, right) = both(left, right, schema)?;
        Ok(PlannerResult::Original(RawBinaryExpr { op, left, right }))
    }
}

fn rewrite(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::InList(InList { expr, list, negated }) => match type_of(&expr, schema) {
            Some(kind) => {
                let list = list.into_iter().map(|one| addressed(one, kind)).collect::<Result<_>>()?;
                Transformed::yes(Expr::InList(InList { expr, list, negated }))
            }
            None => Transformed::no(Expr::InList(InList { expr, list, negated })),
        },
        Expr::Between(Between { expr, negated, low, high }) => match type_of(&expr, schema) {
            Some(kind) => {
                let (low, high) = (addressed(*low, kind)?, addressed(*high, kind)?);
                Transformed::yes(Expr::Between(Between::new(expr, negated, Box::new(low), Box::new(high))))
            }
            None => Transformed::no(Expr::Between(Between { expr, negated, low, high })),
        },
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::IsDistinctFrom | Operator::IsNotDistinctFrom),
            right,
        }) => {
            let (left, right) = both(*left, *right, schema)?;
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right))))
        }
        other => Transformed::no(other),
    })
}

impl AnalyzerRule for Literals {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let mut schema = DFSchema::empty();
            for input in plan.inputs() {
                schema.merge(input.schema());
            }
            if let LogicalPlan::TableScan(scan) = &plan {
                schema.merge(&scan.projected_schema);
            }
            // What lies above knows an expression by its name, which has the literal in it.
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expression| {
                let name = names.save(&expression);
                let rewritten = expression.transform_up(|expression| rewrite(expression, &schema))?;
                Ok(rewritten.update_data(|expression| name.restore(expression)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "addresses"
    }
}
