//! Lengths of time compared by their lengths. The engine compares intervals field by field, so that a day differs from
//! 24 hours; here an analyzer rule compares and sorts their nanoseconds, and takes their parts exactly. Clauses that
//! would group by the fields are refused.

use crate::functions::{LengthOrder, PartOfLength, is_length};
use crate::input_schema::input_schema;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue, plan_err};
use datafusion::logical_expr::expr::{Case, Cast, InList, InSubquery, ScalarFunction, Sort as SortExpr};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Between, BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator, Projection, ScalarUDF, Sort,
    Subquery, when,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Functions of lists that compare nothing.
const MOVING: [&str; 8] = [
    "array_element",
    "array_slice",
    "array_length",
    "array_append",
    "array_prepend",
    "array_concat",
    "array_reverse",
    "array_to_string",
];

/// Analyzer rule of lengths of time; behind the rule that gives operands their types.
#[derive(Debug)]
pub(crate) struct TimeLengths {
    order: Arc<ScalarUDF>,
}

impl Default for TimeLengths {
    fn default() -> Self {
        Self { order: Arc::new(LengthOrder::function()) }
    }
}

/// Returns true for intervals, and for lists of them.
fn has_intervals(kind: &DataType) -> bool {
    match kind {
        DataType::Interval(_) => true,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            has_intervals(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_intervals(field.data_type())),
        _ => false,
    }
}

fn is_interval(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Interval(_)))
}

fn compares(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

fn refused<T>(what: &str) -> Result<T> {
    plan_err!(
        "cannot use an interval in {what}: the engine compares its fields, not its length; use extract(epoch from …) of it"
    )
}

impl TimeLengths {
    /// Length as a number, whose order is that of lengths.
    fn key(&self, expr: Expr, schema: &DFSchema) -> Expr {
        let expr = match expr {
            // A difference of times needs no conversion.
            Expr::Cast(Cast { expr, field }) if matches!(field.data_type(), DataType::Interval(_)) => {
                match expr.get_type(schema) {
                    Ok(DataType::Duration(_)) => *expr,
                    _ => Expr::Cast(Cast { expr, field }),
                }
            }
            expr => expr,
        };
        Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&self.order), vec![expr]))
    }

    fn boxed(&self, expr: Expr, schema: &DFSchema) -> Box<Expr> {
        Box::new(self.key(expr, schema))
    }

    fn keys(&self, sort: Vec<SortExpr>, schema: &DFSchema) -> Vec<SortExpr> {
        let key = |sort: SortExpr| {
            if is_interval(&sort.expr, schema) {
                SortExpr { expr: self.key(sort.expr, schema), ..sort }
            } else {
                sort
            }
        };
        sort.into_iter().map(key).collect()
    }

    fn expression(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let key = |expr: Box<Expr>| self.boxed(*expr, schema);
        Ok(match expr {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if compares(op) && (is_interval(&left, schema) || is_interval(&right, schema)) =>
            {
                Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(key(left), op, key(right))))
            }
            Expr::Between(Between { expr, negated, low, high }) if is_interval(&expr, schema) => {
                Transformed::yes(Expr::Between(Between::new(key(expr), negated, key(low), key(high))))
            }
            Expr::InList(InList { expr, list, negated }) if is_interval(&expr, schema) => {
                let list = list.into_iter().map(|item| self.key(item, schema)).collect();
                Transformed::yes(Expr::InList(InList::new(key(expr), list, negated)))
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) if is_interval(&expr, schema) => {
                let subquery = self.lengths(subquery)?;
                Transformed::yes(Expr::InSubquery(InSubquery::new(key(expr), subquery, negated)))
            }
            Expr::SetComparison(comparison) if is_interval(&comparison.expr, schema) => {
                return refused("`any` or `all`");
            }
            Expr::Case(Case { expr: Some(value), when_then_expr, else_expr })
                if is_interval(&value, schema) =>
            {
                let branches = when_then_expr.into_iter().map(|(when, then)| (key(when), then)).collect();
                Transformed::yes(Expr::Case(Case::new(Some(key(value)), branches, else_expr)))
            }
            Expr::ScalarFunction(call) => return self.function(call, schema),
            Expr::AggregateFunction(mut function) => {
                let params = &mut function.params;
                let name = function.func.name();
                params.order_by = self.keys(std::mem::take(&mut params.order_by), schema);
                let has = params.args.iter().any(|arg| is_interval(arg, schema));
                if has && params.distinct && name == "count" {
                    let args = std::mem::take(&mut params.args).into_iter();
                    let key = |arg: Expr| if is_interval(&arg, schema) { self.key(arg, schema) } else { arg };
                    params.args = args.map(key).collect();
                } else if has
                    && (params.distinct || matches!(name, "min" | "max" | "approx_distinct" | "median"))
                {
                    return refused(&format!("`{name}`"));
                }
                Transformed::yes(Expr::AggregateFunction(function))
            }
            Expr::WindowFunction(mut window) => {
                let name = window.fun.name().to_owned();
                let params = &mut window.params;
                let has = params.args.iter().any(|arg| is_interval(arg, schema));
                if has && (params.distinct || matches!(name.as_str(), "min" | "max" | "median")) {
                    return refused(&format!("`{name}`"));
                }
                let partition = std::mem::take(&mut params.partition_by).into_iter();
                let key = |arg: Expr| if is_interval(&arg, schema) { self.key(arg, schema) } else { arg };
                params.partition_by = partition.map(key).collect();
                params.order_by = self.keys(std::mem::take(&mut params.order_by), schema);
                Transformed::yes(Expr::WindowFunction(window))
            }
            expr => Transformed::no(expr),
        })
    }

    fn function(&self, call: ScalarFunction, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let name = call.func.name().to_owned();
        let is_part = name == "date_part"
            && call.args.get(1).is_some_and(|of| of.get_type(schema).is_ok_and(|kind| is_length(&kind)));
        if is_part {
            let to = Expr::ScalarFunction(call.clone()).get_type(schema)?;
            let function = Arc::new(PartOfLength::function(to));
            return Ok(Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(function, call.args))));
        }
        let has = |args: &[Expr]| {
            args.iter().any(|arg| arg.get_type(schema).is_ok_and(|kind| has_intervals(&kind)))
        };
        let compares = matches!(name.as_str(), "greatest" | "least")
            || name.starts_with("array_") && !MOVING.contains(&name.as_str());
        if compares && has(&call.args) {
            return refused(&format!("`{name}`"));
        }
        if name == "nullif" && call.args.len() == 2 && is_interval(&call.args[0], schema) {
            let [value, other] = [call.args[0].clone(), call.args[1].clone()];
            let null = Expr::Literal(ScalarValue::try_from(&value.get_type(schema)?)?, None);
            let is_equal = self.key(value.clone(), schema).eq(self.key(other, schema));
            return Ok(Transformed::yes(when(is_equal, null).otherwise(value)?));
        }
        Ok(Transformed::no(Expr::ScalarFunction(call)))
    }

    /// Subquery whose only column is a length, as a number.
    fn lengths(&self, subquery: Subquery) -> Result<Subquery> {
        let Some(column) = subquery.subquery.schema().columns().into_iter().next() else {
            return Ok(subquery);
        };
        let schema = Arc::clone(subquery.subquery.schema());
        let name = column.name.clone();
        let key = self.key(Expr::Column(column), &schema).alias(name);
        let projection = Projection::try_new(vec![key], Arc::clone(&subquery.subquery))?;
        Ok(subquery.with_plan(Arc::new(LogicalPlan::Projection(projection))))
    }

    /// Rewrites a node beside its expressions, or refuses it.
    fn node(&self, plan: LogicalPlan, schema: &DFSchema) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Sort(Sort { expr, input, fetch }) => {
                let expr = self.keys(expr, schema);
                Ok(Transformed::yes(LogicalPlan::Sort(Sort { expr, input, fetch })))
            }
            LogicalPlan::Join(mut join) => {
                let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
                let has = |(one, other): &(Expr, Expr)| is_interval(one, &left) || is_interval(other, &right);
                if !join.on.iter().any(has) {
                    return Ok(Transformed::no(LogicalPlan::Join(join)));
                }
                let keys = std::mem::take(&mut join.on).into_iter();
                let key = |pair: (Expr, Expr)| {
                    if has(&pair) { (self.key(pair.0, &left), self.key(pair.1, &right)) } else { pair }
                };
                join.on = keys.map(key).collect();
                Ok(Transformed::yes(LogicalPlan::Join(join)))
            }
            LogicalPlan::Distinct(distinct) => {
                let has = match &distinct {
                    Distinct::All(input) => {
                        input.schema().fields().iter().any(|field| has_intervals(field.data_type()))
                    }
                    Distinct::On(on) => on.on_expr.iter().any(|expr| is_interval(expr, schema)),
                };
                if has {
                    return refused("`distinct`, or in `union`, `intersect` or `except` without `all`");
                }
                Ok(Transformed::no(LogicalPlan::Distinct(distinct)))
            }
            LogicalPlan::Aggregate(aggregate) => {
                let groups = aggregate.group_expr_len()?;
                let fields = aggregate.schema.fields().iter().take(groups);
                if fields.into_iter().any(|field| has_intervals(field.data_type())) {
                    return refused("`group by`, `distinct`, `intersect` or `except`");
                }
                Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)))
            }
            plan => Ok(Transformed::no(plan)),
        }
    }
}

impl AnalyzerRule for TimeLengths {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let schema = input_schema(&plan);
            let names = NamePreserver::new(&plan);
            let rewritten = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = expr.transform_up(|expr| self.expression(expr, &schema))?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })?;
            rewritten.transform_data(|plan| self.node(plan, &schema))
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "time lengths"
    }
}
