//! Function calls of the allow list. The engine ignores all clauses of scalar functions, and some of the others.

use super::allow_list::{allowed_key, ignored};
use super::{function_name, is_volatile};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::AggregateUDF;
use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, WindowSpec, WindowType,
};
use std::sync::Arc;

/// Functions that the engine writes as a `case` in which their arguments occur more than once.
const REPEATED: [&str; 5] = ["coalesce", "ifnull", "nullif", "nvl", "nvl2"];

/// Window functions that heed `ignore nulls`.
const STEPS: [&str; 5] = ["first_value", "last_value", "nth_value", "lag", "lead"];

/// Aggregates that the engine replaces by window functions of the same name.
const REPLACED: [&str; 3] = ["first_value", "last_value", "nth_value"];

const OVER: &str = "over";
const FILTER: &str = "filter";
const NULLS: &str = "ignore nulls";

enum Kind<'a> {
    Scalar,
    Aggregate(&'a Arc<AggregateUDF>),
    Window,
    /// The engine finds no such function.
    Unknown,
}

impl<'a> Kind<'a> {
    fn of(state: &'a SessionState, name: &str, has_window: bool) -> Self {
        let is_window = state.window_functions().contains_key(name);
        if state.scalar_functions().contains_key(name) || name == "unnest" {
            return Self::Scalar;
        }
        match state.aggregate_functions().get(name) {
            Some(function) if !(has_window && is_window && REPLACED.contains(&function.name())) => {
                Self::Aggregate(function)
            }
            _ if is_window => Self::Window,
            _ => Self::Unknown,
        }
    }
}

/// Refuses a call with a clause that the engine ignores.
pub(super) fn allowed(state: &SessionState, call: &Function) -> Result<()> {
    let Function { name, uses_odbc_syntax: _, parameters, args, filter, null_treatment, over, within_group } =
        call;
    let name = function_name(name);
    if !matches!(parameters, FunctionArguments::None) {
        return plan_err!(
            "cannot call `{name}` with two lists: the first one would have no effect; write one list of arguments"
        );
    }
    // Clauses that are there, by their words.
    let mut clauses = Vec::new();
    let known = [
        (over.is_some(), OVER),
        (filter.is_some(), FILTER),
        (!within_group.is_empty(), "within group"),
        (null_treatment.is_some(), NULLS),
    ];
    clauses.extend(known.into_iter().filter_map(|(is_there, clause)| is_there.then_some(clause)));
    within_group.iter().try_for_each(allowed_key)?;
    if let Some(over) = over {
        allowed_window(over)?;
    }
    match args {
        FunctionArguments::None => {}
        FunctionArguments::Subquery(_) => {
            return plan_err!(
                "cannot pass a query to `{name}`: it would have no effect; put it into parentheses of its own"
            );
        }
        FunctionArguments::List(list) => allowed_arguments(state, &name, list, &mut clauses)?,
    }
    let (kind, ignored) = match Kind::of(state, &name, over.is_some()) {
        Kind::Scalar => ("a function of one row", clauses.first()),
        Kind::Aggregate(function) if over.is_some() && !function.supports_null_handling_clause() => {
            ("this aggregate", clauses.iter().find(|clause| **clause == NULLS))
        }
        Kind::Window => {
            let heeds_nulls = STEPS.contains(&name.as_str());
            let is_ignored = |clause: &&&str| **clause != OVER && !(heeds_nulls && **clause == NULLS);
            ("a window function", clauses.iter().find(is_ignored))
        }
        Kind::Unknown if matches!(args, FunctionArguments::None) => ("a column", clauses.first()),
        Kind::Aggregate(_) | Kind::Unknown => return Ok(()),
    };
    match ignored {
        Some(clause) => {
            plan_err!("cannot use `{clause}` with `{name}`: it would have no effect on {kind}; leave it out")
        }
        None => Ok(()),
    }
}

fn allowed_window(over: &WindowType) -> Result<()> {
    match over {
        WindowType::NamedWindow(name) => no_window(name),
        WindowType::WindowSpec(WindowSpec { window_name, partition_by: _, order_by, window_frame: _ }) => {
            order_by.iter().try_for_each(allowed_key)?;
            window_name.as_ref().map_or(Ok(()), no_window)
        }
    }
}

/// A name that is left is in a place without window functions.
fn no_window(name: &impl std::fmt::Display) -> Result<()> {
    plan_err!(
        "cannot use window `{name}` in this place: window functions belong into the select list, `qualify` or \
         `order by`; compute it in a subquery"
    )
}

fn allowed_arguments(
    state: &SessionState,
    name: &str,
    list: &FunctionArgumentList,
    clauses: &mut Vec<&'static str>,
) -> Result<()> {
    let FunctionArgumentList { duplicate_treatment, args, clauses: others } = list;
    let is_distinct = match duplicate_treatment {
        Some(DuplicateTreatment::Distinct) => true,
        Some(DuplicateTreatment::All) | None => false,
    };
    if is_distinct {
        clauses.push("distinct");
    }
    for clause in others {
        match clause {
            FunctionArgumentClause::IgnoreOrRespectNulls(_) => clauses.push(NULLS),
            FunctionArgumentClause::OrderBy(keys) => {
                clauses.push("order by");
                keys.iter().try_for_each(allowed_key)?;
            }
            other => ignored(true, &format!("`{other}` in a call of `{name}`"), "leave it out")?,
        }
    }
    args.iter().try_for_each(|argument| {
        let value = match argument {
            FunctionArg::Unnamed(value) | FunctionArg::Named { name: _, arg: value, operator: _ } => value,
            FunctionArg::ExprNamed { .. } => {
                return plan_err!(
                    "cannot pass `{argument}` to `{name}`: it is not supported; leave out the name"
                );
            }
        };
        match value {
            FunctionArgExpr::Expr(value) => allowed_argument(state, name, value),
            FunctionArgExpr::Wildcard if name == "count" && !is_distinct => Ok(()),
            other => {
                plan_err!("cannot pass `{other}` to `{name}`: only count(*) takes all columns; name a column")
            }
        }
    })
}

fn allowed_argument(state: &SessionState, name: &str, value: &Expr) -> Result<()> {
    if REPEATED.contains(&name) && is_volatile(state, value) {
        plan_err!(
            "cannot use a function with another value at each call in `{name}`: it would be called more than once; \
             compute it in a subquery"
        )
    } else {
        Ok(())
    }
}
