//! Conditions with lists (`x in (1, 2)`) in forms that the engine does not simplify wrongly. Its simplification of two
//! lists of one value forgets nulls, and takes columns in a list for distinct values. Here columns and nulls are
//! taken out of lists, and lists of one value joined by `and` or `or` become one.

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{HashSet, Result, ScalarValue};
use datafusion::logical_expr::expr::{Cast, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{conjunction, disjunction};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator, lit};
use datafusion::optimizer::AnalyzerRule;

/// Analyzer rule that rewrites conditions with lists.
#[derive(Debug)]
pub(crate) struct ListConditions;

fn null() -> Expr {
    lit(ScalarValue::Boolean(None))
}

/// Value of a literal, with the conversion that the engine puts over it.
pub(crate) fn literal(item: &Expr) -> Option<ScalarValue> {
    match item {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Cast(Cast { expr, field }) => match expr.as_ref() {
            Expr::Literal(value, _) => value.cast_to(field.data_type()).ok(),
            _ => None,
        },
        _ => None,
    }
}

/// Conditions as a tree that is no deeper than it must be.
fn balanced(mut all: Vec<Expr>, operator: Operator) -> Option<Expr> {
    let other = all.split_off(all.len().div_ceil(2));
    if other.is_empty() {
        return all.pop();
    }
    let (left, right) = (balanced(all, operator)?, balanced(other, operator)?);
    Some(Expr::BinaryExpr(BinaryExpr::new(Box::new(left), operator, Box::new(right))))
}

/// A list as one of literals without null, and comparisons with everything else in it.
fn split(InList { expr, list, negated }: InList) -> Transformed<Expr> {
    let is_plain = |item: &Expr| literal(item).is_some_and(|value| !value.is_null());
    if list.iter().all(is_plain) {
        return Transformed::no(Expr::InList(InList { expr, list, negated }));
    }
    let (mut values, mut parts, mut has_null) = (Vec::new(), Vec::new(), false);
    let (operator, compare) =
        if negated { (Operator::And, Operator::NotEq) } else { (Operator::Or, Operator::Eq) };
    for item in list {
        match literal(&item) {
            Some(value) if value.is_null() => has_null = true,
            Some(value) => values.push(lit(value)),
            None => {
                let right = Box::new(item);
                parts.push(Expr::BinaryExpr(BinaryExpr::new(expr.clone(), compare, right)));
            }
        }
    }
    if !values.is_empty() {
        parts.push(Expr::InList(InList { expr, list: values, negated }));
    }
    if has_null {
        parts.push(null());
    }
    Transformed::yes(balanced(parts, operator).unwrap_or_else(null))
}

/// Operands of a chain of one operator.
fn operands(expr: &Expr, operator: Operator) -> Vec<&Expr> {
    let (mut all, mut left) = (Vec::new(), vec![expr]);
    while let Some(expr) = left.pop() {
        match expr {
            Expr::BinaryExpr(BinaryExpr { left: one, op, right: other }) if *op == operator => {
                left.push(other);
                left.push(one);
            }
            other => all.push(other),
        }
    }
    all
}

/// Lists of one value in a chain, by their places.
struct SameValue<'a> {
    expr: &'a Expr,
    places: Vec<usize>,
}

fn list_of(expr: &Expr) -> Option<&InList> {
    match expr {
        Expr::InList(list) => Some(list),
        _ => None,
    }
}

/// Joins the lists of one value in a chain of `and` or `or`, if the engine would join them wrongly.
fn joined(expr: &Expr) -> Option<Expr> {
    let operator = match expr {
        Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => *op,
        _ => return None,
    };
    let all = operands(expr, operator);
    let mut same: Vec<SameValue<'_>> = Vec::new();
    for (place, list) in all.iter().enumerate().filter_map(|(place, one)| Some((place, list_of(one)?))) {
        match same.iter_mut().find(|same| *same.expr == *list.expr) {
            Some(same) => same.places.push(place),
            None => same.push(SameValue { expr: &list.expr, places: vec![place] }),
        }
    }
    let mut rest: Vec<Option<Expr>> = all.iter().map(|one| Some((*one).clone())).collect();
    let mut is_other = false;
    for SameValue { expr, places } in same {
        let lists: Vec<&InList> = places.iter().filter_map(|place| list_of(all[*place])).collect();
        let Some(one) = one_list(expr, &lists, operator) else { continue };
        is_other = true;
        for place in &places {
            rest[*place] = None;
        }
        rest[places[0]] = Some(one);
    }
    let rest = rest.into_iter().flatten();
    let chain = if operator == Operator::And { conjunction(rest) } else { disjunction(rest) };
    chain.filter(|_| is_other)
}

/// One list in the place of several of one value; `None` if the engine joins them rightly.
fn one_list(expr: &Expr, lists: &[&InList], operator: Operator) -> Option<Expr> {
    let is_and = operator == Operator::And;
    // `or` joins lists of excluded values as `and` joins lists of values.
    let narrows = |list: &&&InList| list.negated != is_and;
    let first = lists.iter().position(|list| narrows(&list))?;
    if lists.len() < 2 {
        return None;
    }
    let items = |list: &InList| list.list.iter().filter_map(literal).collect::<HashSet<ScalarValue>>();
    let mut left: Vec<ScalarValue> = lists[first].list.iter().filter_map(literal).collect();
    for (at, list) in lists.iter().enumerate().filter(|(at, _)| *at != first) {
        let (items, narrows) = (items(list), narrows(&&lists[at]));
        left.retain(|value| items.contains(value) == narrows);
    }
    Some(match (left.is_empty(), is_and) {
        (false, _) => {
            let list = left.into_iter().map(lit).collect();
            Expr::InList(InList { expr: Box::new(expr.clone()), list, negated: !is_and })
        }
        (true, true) => expr.clone().is_null().and(null()),
        (true, false) => expr.clone().is_not_null().or(null()),
    })
}

fn rewrite(expr: Expr) -> Result<Transformed<Expr>> {
    let split = expr.transform_up(|expr| {
        Ok(match expr {
            Expr::InList(list) => split(list),
            Expr::Not(inner) => match *inner {
                Expr::InList(list) => {
                    Transformed::yes(Expr::InList(InList { negated: !list.negated, ..list }))
                }
                inner => Transformed::no(Expr::Not(Box::new(inner))),
            },
            other => Transformed::no(other),
        })
    })?;
    split.transform_data(|expr| {
        expr.transform_down(|expr| match joined(&expr) {
            Some(one) => Ok(Transformed::yes(one)),
            None => Ok(Transformed::no(expr)),
        })
    })
}

impl AnalyzerRule for ListConditions {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let rewritten = plan.transform_up_with_subqueries(|plan| {
            let names = NamePreserver::new(&plan);
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                Ok(rewrite(expr)?.update_data(|expr| name.restore(expr)))
            })
        });
        rewritten.map(|plan| plan.data)
    }

    fn name(&self) -> &'static str {
        "list conditions"
    }
}
