//! Correlated conditions of a subquery, moved from its inner parts to its top. The engine moves them, too, but loses
//! columns of derived tables, limits beside them and rows of aggregates on the way; from the top it has none to go.
//! Subqueries without a right plan of this form are refused.

use super::{is_one_row, leaves_one};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::DataFusionError;
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprFunctionExt, FetchType, Filter, Join, JoinType, Limit,
    LogicalPlan, LogicalPlanBuilder, Operator, Projection, SkipType, SortExpr, SubqueryAlias, lit,
};
use std::cell::Cell;
use std::sync::Arc;

/// The use of a subquery's rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// One value for each row.
    Scalar,
    /// Existence: how often a row occurs does not count.
    Set,
    /// All rows, each as often as it occurs.
    Rows,
}

/// Reason for which a plan is not hoisted.
pub(super) enum Unhoisted {
    /// The part of the subquery over which its outer columns cannot be taken out.
    Part(&'static str),
    Failed(DataFusionError),
}

impl From<DataFusionError> for Unhoisted {
    fn from(error: DataFusionError) -> Self {
        Self::Failed(error)
    }
}

type Result<T> = std::result::Result<T, Unhoisted>;

fn refused<T>(part: &'static str) -> Result<T> {
    Err(Unhoisted::Part(part))
}

/// Names of columns that correlated conditions compare, distinct within a query.
#[derive(Debug, Default)]
pub(super) struct Keys(Cell<usize>);

/// A plan with its former columns and more, and the correlated conditions on its rows.
struct Hoisted {
    plan: LogicalPlan,
    conditions: Vec<Expr>,
}

pub(super) fn is_correlated(plan: &LogicalPlan) -> bool {
    !plan.all_out_ref_exprs().is_empty()
}

impl Keys {
    /// The subquery with its correlated conditions above all other parts.
    pub(super) fn hoisted(&self, plan: &LogicalPlan, of: Use) -> Result<LogicalPlan> {
        let columns = columns(plan);
        let is_limited = of == Use::Scalar && is_one_of_each(plan);
        let hoisted = self.part(plan, of)?;
        if hoisted.conditions.is_empty() {
            return Ok(hoisted.plan);
        }
        let plan = self.filtered(hoisted, &columns)?;
        if is_limited && let [value] = columns.as_slice() {
            // The engine takes one value from an aggregate alone.
            let first = first_value(value.clone(), Vec::new());
            let column = Expr::Column(Column::from_name(first.schema_name().to_string()));
            let column = column.alias(value.qualified_name().1);
            let plan = LogicalPlanBuilder::from(plan).aggregate(Vec::<Expr>::new(), [first])?;
            return Ok(plan.project([column])?.build()?);
        }
        Ok(plan)
    }

    /// Some columns of the rows that meet the conditions.
    fn filtered(&self, hoisted: Hoisted, columns: &[Expr]) -> Result<LogicalPlan> {
        // No column has the name of an outer one beside the conditions: the engine takes both for the same.
        let (mut within, mut above) = (Vec::new(), Vec::new());
        for column in columns {
            let name = format!("column {} of a subquery", within.len());
            let (relation, former) = column.qualified_name();
            within.push(column.clone().alias(name.clone()));
            above.push(Expr::Column(Column::from_name(name)).alias_qualified(relation, former));
        }
        let Hoisted { plan, conditions } = self.exposed(hoisted, within)?;
        let mut plan = LogicalPlanBuilder::from(plan);
        if let Some(condition) = conjunction(conditions) {
            plan = LogicalPlanBuilder::from(LogicalPlan::Filter(Filter::try_new(
                condition,
                plan.build()?.into(),
            )?));
        }
        Ok(plan.project(above)?.build()?)
    }

    fn part(&self, plan: &LogicalPlan, of: Use) -> Result<Hoisted> {
        if !is_correlated(plan) {
            return Ok(Hoisted { plan: plan.clone(), conditions: Vec::new() });
        }
        match plan {
            LogicalPlan::Filter(filter) => self.filter(filter, of),
            LogicalPlan::Projection(projection) => {
                if projection.expr.iter().any(Expr::contains_outer) {
                    return refused("its own list of columns");
                }
                let input = self.part(&projection.input, of)?;
                self.exposed(input, projection.expr.clone())
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.part(&alias.input, of)?;
                let Hoisted { plan, conditions } = self.exposed(input, columns(&alias.input))?;
                let alias = SubqueryAlias::try_new(Arc::new(plan), alias.alias.clone())?;
                let conditions = renamed(conditions, |column| {
                    Column::new(Some(alias.alias.clone()), column.name.clone())
                })?;
                Ok(Hoisted { plan: LogicalPlan::SubqueryAlias(alias), conditions })
            }
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let input = self.part(input, if of == Use::Scalar { Use::Rows } else { of })?;
                if of != Use::Set {
                    all_have_groups(&input.conditions)?;
                }
                let plan = LogicalPlan::Distinct(Distinct::All(Arc::new(input.plan)));
                Ok(Hoisted { plan, conditions: input.conditions })
            }
            LogicalPlan::Aggregate(aggregate) => self.aggregate(aggregate, of),
            // Rows of a subquery have no order.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.part(&sort.input, of),
            LogicalPlan::Limit(limit) if is_one_row(&limit.input) && leaves_one(limit) => {
                self.part(&limit.input, of)
            }
            LogicalPlan::Limit(limit) => self.limit(limit, of),
            LogicalPlan::Window(_) => refused("a window function"),
            LogicalPlan::Union(_) => refused("an outer join or a union"),
            LogicalPlan::Subquery(_) => refused("`lateral`"),
            _ => refused("this clause"),
        }
    }

    fn filter(&self, filter: &Filter, of: Use) -> Result<Hoisted> {
        if is_one_row(&filter.input) && is_correlated(&filter.input) {
            return refused("`having`, or a condition on an aggregate");
        }
        let input = self.part(&filter.input, if of == Use::Scalar { Use::Rows } else { of })?;
        let (outer, own) = parted(filter.predicate.clone())?;
        let plan = match conjunction(own) {
            Some(own) => LogicalPlan::Filter(Filter::try_new(own, Arc::new(input.plan))?),
            None => input.plan,
        };
        Ok(Hoisted { plan, conditions: input.conditions.into_iter().chain(outer).collect() })
    }

    fn join(&self, join: &Join) -> Result<Hoisted> {
        let keeps_left = matches!(join.join_type, JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti);
        if join.join_type != JoinType::Inner && (!keeps_left || is_correlated(&join.right)) {
            return refused("an outer join or a union");
        }
        let (outer, own) = match &join.filter {
            Some(filter) => parted(filter.clone())?,
            None => (Vec::new(), Vec::new()),
        };
        let mut sides = join.on.iter().flat_map(|(left, right)| [left, right]);
        if sides.any(Expr::contains_outer) || (join.join_type != JoinType::Inner && !outer.is_empty()) {
            return refused("the condition of a join");
        }
        // An aggregate below a join is not the whole.
        let (left, right) = (self.part(&join.left, Use::Rows)?, self.part(&join.right, Use::Rows)?);
        let plan = Join::try_new(
            Arc::new(left.plan),
            Arc::new(right.plan),
            join.on.clone(),
            conjunction(own),
            join.join_type,
            join.join_constraint,
            join.null_equality,
            join.null_aware,
        )?;
        let conditions = left.conditions.into_iter().chain(right.conditions).chain(outer).collect();
        Ok(Hoisted { plan: LogicalPlan::Join(plan), conditions })
    }

    fn aggregate(&self, aggregate: &Aggregate, of: Use) -> Result<Hoisted> {
        // The engine adds the outer columns to each set, and the empty set has no row any more.
        if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
            return refused("`rollup`, `cube` or `grouping sets`");
        }
        if aggregate.group_expr.iter().chain(&aggregate.aggr_expr).any(Expr::contains_outer) {
            return refused("an aggregate");
        }
        let input = self.part(&aggregate.input, Use::Rows)?;
        all_have_groups(&input.conditions)?;
        if aggregate.group_expr.is_empty() {
            if of != Use::Scalar {
                // It has a row where a join has none.
                return refused("an aggregate without groups");
            }
            let input = self.filtered(input, &columns(&aggregate.input))?;
            let whole = Aggregate::try_new(Arc::new(input), Vec::new(), aggregate.aggr_expr.clone())?;
            return Ok(Hoisted { plan: LogicalPlan::Aggregate(whole), conditions: Vec::new() });
        }
        let mut groups = aggregate.group_expr.clone();
        for key in own_columns(&input.conditions) {
            let key = Expr::Column(key);
            if !groups.contains(&key) {
                groups.push(key);
            }
        }
        let plan = Aggregate::try_new(Arc::new(input.plan), groups, aggregate.aggr_expr.clone())?;
        Ok(Hoisted { plan: LogicalPlan::Aggregate(plan), conditions: input.conditions })
    }

    /// The first rows of each group, by their numbers.
    fn limit(&self, limit: &Limit, of: Use) -> Result<Hoisted> {
        if let LogicalPlan::Projection(projection) = limit.input.as_ref() {
            // The order of rows is below their list of columns.
            let input = Arc::clone(&projection.input);
            let below = Limit { skip: limit.skip.clone(), fetch: limit.fetch.clone(), input };
            let projection = Projection::try_new(projection.expr.clone(), LogicalPlan::Limit(below).into())?;
            return self.part(&LogicalPlan::Projection(projection), of);
        }
        let (Ok(SkipType::Literal(skip)), Ok(FetchType::Literal(fetch))) =
            (limit.get_skip_type(), limit.get_fetch_type())
        else {
            return refused("`limit` or `offset`");
        };
        let (order, input): (Vec<SortExpr>, _) = match limit.input.as_ref() {
            LogicalPlan::Sort(sort) => (sort.expr.clone(), &sort.input),
            _ => (Vec::new(), &limit.input),
        };
        let columns = columns(input);
        let input = self.part(input, Use::Rows)?;
        if input.conditions.is_empty() {
            return refused("`limit` or `offset`");
        }
        all_have_groups(&input.conditions)?;
        let keys: Vec<Expr> = own_columns(&input.conditions).into_iter().map(Expr::Column).collect();
        let number = row_number().partition_by(keys).order_by(order).build()?;
        let name = Expr::Column(Column::from_name(number.schema_name().to_string()));
        let mut numbered = LogicalPlanBuilder::from(input.plan).window([number])?;
        if skip > 0 {
            numbered = numbered.filter(name.clone().gt(lit(skip as u64)))?;
        }
        if let Some(fetch) = fetch {
            numbered = numbered.filter(name.lt_eq(lit(skip.saturating_add(fetch) as u64)))?;
        }
        self.exposed(Hoisted { plan: numbered.build()?, conditions: input.conditions }, columns)
    }

    /// A projection to some expressions and to the columns that the conditions compare.
    fn exposed(&self, input: Hoisted, mut exprs: Vec<Expr>) -> Result<Hoisted> {
        let mut names = Vec::new();
        for column in own_columns(&input.conditions) {
            self.0.set(self.0.get() + 1);
            let name = format!("key {} of a subquery", self.0.get());
            exprs.push(Expr::Column(column.clone()).alias(name.clone()));
            names.push((column, Column::from_name(name)));
        }
        let conditions = renamed(input.conditions, |column| {
            let name = names.iter().find(|(one, _)| one == column);
            name.map_or_else(|| column.clone(), |(_, name)| name.clone())
        })?;
        let plan = LogicalPlan::Projection(Projection::try_new(exprs, Arc::new(input.plan))?);
        Ok(Hoisted { plan, conditions })
    }
}

/// Returns true for a plan of at most one row for each group of its rows.
fn is_one_of_each(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_one_of_each(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_of_each(&alias.input),
        LogicalPlan::Limit(limit) => matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1)))),
        _ => false,
    }
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

/// The parts of a condition with outer columns, and those without.
fn parted(condition: Expr) -> Result<(Vec<Expr>, Vec<Expr>)> {
    let (outer, own): (Vec<Expr>, Vec<Expr>) =
        split_conjunction_owned(condition).into_iter().partition(Expr::contains_outer);
    if outer.iter().any(super::has_subquery) {
        return refused("a condition with another subquery");
    }
    Ok((outer, own))
}

/// The columns of the subquery itself that some conditions compare, each once.
fn own_columns(conditions: &[Expr]) -> Vec<Column> {
    let mut all: Vec<Column> = Vec::new();
    for condition in conditions {
        let mut of_one: Vec<&Column> = condition.column_refs().into_iter().collect();
        of_one.sort();
        for column in of_one {
            if !all.contains(column) {
                all.push(column.clone());
            }
        }
    }
    all
}

fn renamed(conditions: Vec<Expr>, name: impl Fn(&Column) -> Column) -> Result<Vec<Expr>> {
    let renamed = |condition: Expr| {
        let condition = condition.transform_up(|expr| {
            Ok(match expr {
                Expr::Column(column) => Transformed::yes(Expr::Column(name(&column))),
                other => Transformed::no(other),
            })
        })?;
        Ok(condition.data)
    };
    conditions.into_iter().map(renamed).collect()
}

/// Refuses conditions other than equalities of a column with outer columns: the rows that meet one of those for one
/// outer row are a group.
fn all_have_groups(conditions: &[Expr]) -> Result<()> {
    let is_pair = |one: &Expr, other: &Expr| matches!(one, Expr::Column(_)) && !other.any_column_refs();
    let has_a_group = |condition: &Expr| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            is_pair(left, right) || is_pair(right, left)
        }
        _ => false,
    };
    if conditions.iter().all(has_a_group) {
        return Ok(());
    }
    refused("an aggregate, `distinct` or `limit`, unless it is equal to one of its columns")
}
