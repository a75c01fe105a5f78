//! One order of floats in all clauses: all NaN are equal and greater than all numbers, and both zeros are equal.
//! The engine compares NaN by their bits, and sorts -0.0 before 0.0. Here an analyzer rule gives each computed
//! float that may be NaN the bits of one NaN, and sorts and partitions by floats with one zero.

use crate::input_schema::input_schema;
use crate::list_conditions::literal;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, NullEquality, Result, ScalarValue, exec_err, plan_err};
use datafusion::logical_expr::expr::{Case, Cast, InList, ScalarFunction, Sort as SortExpr, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, Projection, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Sort, Volatility, lit, when,
};
use datafusion::optimizer::AnalyzerRule;
use std::sync::Arc;

/// Functions whose result is one of their arguments, or made of them without a new NaN.
const PASSING: [&str; 10] =
    ["coalesce", "nvl", "nvl2", "nullif", "greatest", "least", "abs", ONE_NAN, SORT_KEY, "array_element"];
/// Aggregates and window functions whose result is one of their arguments.
const PICKING: [&str; 9] =
    ["min", "max", "first_value", "last_value", "nth_value", "lag", "lead", "percent_rank", "cume_dist"];

const ONE_NAN: &str = "one_nan";
const SORT_KEY: &str = "float_sort_key";

/// Analyzer rule that puts floats into one order.
#[derive(Debug)]
pub(crate) struct FloatOrder {
    one_nan: Arc<ScalarUDF>,
    sort_key: Arc<ScalarUDF>,
}

impl Default for FloatOrder {
    fn default() -> Self {
        let function = |name, one_zero| {
            let signature = Signature::any(1, Volatility::Immutable);
            Arc::new(ScalarUDF::from(Canonical { name, one_zero, signature }))
        };
        Self { one_nan: function(ONE_NAN, false), sort_key: function(SORT_KEY, true) }
    }
}

fn is_float(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(expr.get_type(schema), Ok(DataType::Float32 | DataType::Float64))
}

/// Returns true for a literal that compares by bits as it does by value: neither zero.
fn is_number(expr: &Expr) -> bool {
    match literal(expr) {
        Some(ScalarValue::Float64(value)) => value != Some(0.0),
        Some(ScalarValue::Float32(value)) => value != Some(0.0),
        _ => false,
    }
}

impl FloatOrder {
    /// Wraps an expression that may have made a NaN.
    fn computed(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let makes = match &expr {
            Expr::BinaryExpr(BinaryExpr { op, .. }) => {
                matches!(
                    op,
                    Operator::Plus
                        | Operator::Minus
                        | Operator::Multiply
                        | Operator::Divide
                        | Operator::Modulo
                )
            }
            Expr::Negative(_) => true,
            Expr::Cast(Cast { expr, .. }) | Expr::TryCast(TryCast { expr, .. }) => {
                expr.get_type(schema).is_ok_and(|of| of.is_string())
            }
            Expr::ScalarFunction(ScalarFunction { func, .. }) => !PASSING.contains(&func.name()),
            _ => false,
        };
        if makes && is_float(&expr, schema) {
            Transformed::yes(Expr::ScalarFunction(ScalarFunction::new_udf(
                Arc::clone(&self.one_nan),
                vec![expr],
            )))
        } else {
            Transformed::no(expr)
        }
    }

    /// Rewrites what the engine compares by bits, with zeros of two signs: `nullif`, `case … when`, lists,
    /// `is distinct from`, distinct arguments and the order of an aggregate.
    fn compared(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        Ok(match expr {
            Expr::ScalarFunction(ScalarFunction { func, mut args })
                if func.name() == "nullif" && args.len() == 2 && is_float(&args[0], schema) =>
            {
                let (other, value) = (args.remove(1), args.remove(0));
                let null = Expr::Literal(ScalarValue::try_from(&value.get_type(schema)?)?, None);
                Transformed::yes(when(value.clone().eq(other), null).otherwise(value)?)
            }
            Expr::Case(Case { expr: Some(value), when_then_expr, else_expr }) if is_float(&value, schema) => {
                let key = |expr: Box<Expr>| Box::new(self.key(*expr, schema));
                let branches = when_then_expr.into_iter().map(|(when, then)| (key(when), then)).collect();
                Transformed::yes(Expr::Case(Case::new(Some(key(value)), branches, else_expr)))
            }
            Expr::InList(list) if is_float(&list.expr, schema) => {
                Transformed::yes(Expr::InList(Self::listed(list)))
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if matches!(op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom)
                    && is_float(&left, schema)
                    && !is_number(&left)
                    && !is_number(&right) =>
            {
                let (left, right) = (Box::new(self.key(*left, schema)), Box::new(self.key(*right, schema)));
                Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right }))
            }
            Expr::AggregateFunction(mut function) => {
                let params = &mut function.params;
                params.order_by = self.keys(std::mem::take(&mut params.order_by), schema);
                if params.distinct {
                    let args = std::mem::take(&mut params.args).into_iter();
                    params.args = args.map(|arg| self.key(arg, schema)).collect();
                }
                Transformed::yes(Expr::AggregateFunction(function))
            }
            expr => Transformed::no(expr),
        })
    }

    /// A list of literals with both zeros, if it has one of them.
    fn listed(list: InList) -> InList {
        let zeros = |item: &Expr| match literal(item) {
            Some(ScalarValue::Float64(Some(0.0))) => Some([0.0, -0.0].map(|zero: f64| lit(zero))),
            Some(ScalarValue::Float32(Some(0.0))) => Some([0.0, -0.0].map(|zero: f32| lit(zero))),
            _ => None,
        };
        let items = list.list.into_iter();
        let items = items.flat_map(|item| zeros(&item).map_or_else(|| vec![item], |zeros| zeros.to_vec()));
        InList { list: items.collect(), ..list }
    }

    /// Wraps a key of a sort or of a partition.
    fn key(&self, expr: Expr, schema: &DFSchema) -> Expr {
        if is_float(&expr, schema) {
            return Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&self.sort_key), vec![expr]));
        }
        expr
    }

    fn keys(&self, sort: Vec<SortExpr>, schema: &DFSchema) -> Vec<SortExpr> {
        sort.into_iter().map(|sort| SortExpr { expr: self.key(sort.expr, schema), ..sort }).collect()
    }

    fn expression(&self, expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        expr.transform_up(|expr| {
            let Transformed { data: expr, transformed, .. } =
                self.compared(expr, schema)?.transform_data(|expr| Ok(self.computed(expr, schema)))?;
            Ok(match expr {
                Expr::WindowFunction(mut window) => {
                    let params = &mut window.params;
                    let keys = std::mem::take(&mut params.partition_by).into_iter();
                    params.partition_by = keys.map(|key| self.key(key, schema)).collect();
                    params.order_by = self.keys(std::mem::take(&mut params.order_by), schema);
                    Transformed::yes(Expr::WindowFunction(window))
                }
                expr if transformed => Transformed::yes(expr),
                expr => Transformed::no(expr),
            })
        })
    }

    /// Puts a projection over an aggregate or a window whose functions may have made a NaN.
    fn results(&self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let own = match &plan {
            LogicalPlan::Aggregate(aggregate) => &aggregate.aggr_expr,
            LogicalPlan::Window(window) => &window.window_expr,
            _ => return Ok(Transformed::no(plan)),
        };
        let makes = |expr: &Expr| {
            let name = match expr.clone().unalias() {
                Expr::AggregateFunction(function) => function.func.name().to_owned(),
                Expr::WindowFunction(function) => function.fun.name().to_owned(),
                _ => return true,
            };
            !PICKING.contains(&name.as_str())
        };
        let schema = Arc::clone(plan.schema());
        let first = schema.fields().len() - own.len();
        let wrapped = |at: usize| {
            let is_float = matches!(schema.field(at).data_type(), DataType::Float32 | DataType::Float64);
            at >= first && is_float && makes(&own[at - first])
        };
        if !(0..schema.fields().len()).any(wrapped) {
            return Ok(Transformed::no(plan));
        }
        let columns = schema.columns().into_iter().enumerate().map(|(at, column)| {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            let column = Expr::Column(column);
            if !wrapped(at) {
                return column;
            }
            let one = Expr::ScalarFunction(ScalarFunction::new_udf(Arc::clone(&self.one_nan), vec![column]));
            one.alias_qualified(relation, name)
        });
        let projection = Projection::try_new(columns.collect(), Arc::new(plan))?;
        Ok(Transformed::yes(LogicalPlan::Projection(projection)))
    }
}

impl AnalyzerRule for FloatOrder {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let schema = input_schema(&plan);
            let names = NamePreserver::new(&plan);
            let rewritten = plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let rewritten = self.expression(expr, &schema)?;
                Ok(rewritten.update_data(|expr| name.restore(expr)))
            })?;
            rewritten.transform_data(|plan| match plan {
                LogicalPlan::Sort(Sort { expr, input, fetch }) => {
                    let expr = self.keys(expr, &schema);
                    Ok(Transformed::yes(LogicalPlan::Sort(Sort { expr, input, fetch })))
                }
                // Rows that are equal with null are compared by bits, too.
                LogicalPlan::Join(mut join) if join.null_equality == NullEquality::NullEqualsNull => {
                    let (left, right) = (Arc::clone(join.left.schema()), Arc::clone(join.right.schema()));
                    let keys = std::mem::take(&mut join.on).into_iter();
                    join.on =
                        keys.map(|(one, other)| (self.key(one, &left), self.key(other, &right))).collect();
                    Ok(Transformed::yes(LogicalPlan::Join(join)))
                }
                plan => self.results(plan),
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "float order"
    }
}

/// Function that gives all NaN the same bits, and both zeros if they are to be one.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Canonical {
    name: &'static str,
    one_zero: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Canonical {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [float @ (DataType::Float32 | DataType::Float64)] = types else {
            return plan_err!("cannot call {}: it takes a float", self.name);
        };
        Ok(float.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = args.args.as_slice() else {
            return exec_err!("cannot call {}: it takes one argument", self.name);
        };
        // The sum of -0.0 and 0.0 is 0.0.
        let zero = if self.one_zero { 0.0 } else { -0.0 };
        let double = |value: f64| if value.is_nan() { f64::NAN } else { value + zero };
        let single = |value: f32| if value.is_nan() { f32::NAN } else { value + zero as f32 };
        Ok(match value {
            ColumnarValue::Scalar(ScalarValue::Float64(value)) => {
                ColumnarValue::Scalar(ScalarValue::Float64(value.map(double)))
            }
            ColumnarValue::Scalar(ScalarValue::Float32(value)) => {
                ColumnarValue::Scalar(ScalarValue::Float32(value.map(single)))
            }
            ColumnarValue::Array(array) if *array.data_type() == DataType::Float64 => ColumnarValue::Array(
                Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(double)),
            ),
            ColumnarValue::Array(array) if *array.data_type() == DataType::Float32 => ColumnarValue::Array(
                Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(single)),
            ),
            _ => return exec_err!("cannot call {}: it takes a float", self.name),
        })
    }
}
