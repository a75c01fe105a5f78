//! Preparation of the parsed statement: forms of standard SQL that the engine lacks or computes wrongly are rewritten,
//! and clauses that it takes without effect are refused.
//!
//! Queries and conditions of holds take the same way, [`prepare`]. Does not belong here: rewriting that needs types
//! or plans (analyzer rules, `subqueries`).

mod allow_list;
mod expressions;
mod function_calls;
mod named_windows;
mod row_subqueries;
mod row_values;
mod similar_pattern;
mod standard_forms;

pub(crate) use row_subqueries::ROWS;

use crate::address_literals::as_operators_in;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::Volatility;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, Ident, ObjectName, Value, Visit, VisitMut, visit_expressions,
};
use std::ops::ControlFlow;

/// Rewrites a part of a statement for the engine, or refuses it.
pub(crate) fn prepare<V: Visit + VisitMut>(context: &SessionContext, part: &mut V) -> Result<()> {
    let state = context.state();
    finished(part.visit(&mut named_windows::NamedWindows))?;
    finished(part.visit(&mut standard_forms::StandardForms))?;
    finished(Visit::visit(part, &mut allow_list::AllowList { state: &state }))?;
    finished(part.visit(&mut row_values::RowValues { state: &state }))?;
    finished(Visit::visit(part, &mut row_values::NoRowValues))?;
    as_operators_in(part);
    Ok(())
}

/// Rewrites a statement for the engine, or refuses it.
pub(crate) fn prepare_statement(context: &SessionContext, statement: &mut Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => prepare(context, &mut **statement),
        Statement::Explain(explain) => prepare_statement(context, &mut explain.statement),
        // Orders, which are refused by their plans.
        Statement::CreateExternalTable(_) | Statement::CopyTo(_) | Statement::Reset(_) => Ok(()),
    }
}

fn finished(flow: ControlFlow<DataFusionError>) -> Result<()> {
    match flow {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// Stops a visitor at an error.
fn step(result: Result<()>) -> ControlFlow<DataFusionError> {
    match result {
        Err(error) => ControlFlow::Break(error),
        Ok(()) => ControlFlow::Continue(()),
    }
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

/// Takes an expression out of its place.
fn take(expr: &mut Expr) -> Expr {
    std::mem::replace(expr, null())
}

fn nested(expr: Expr) -> Expr {
    Expr::Nested(Box::new(expr))
}

/// The name by which the engine finds a thing: unquoted names are lowered.
fn normalized(name: &Ident) -> String {
    match name.quote_style {
        None => name.value.to_lowercase(),
        Some(_) => name.value.clone(),
    }
}

/// Name of a function; a qualified one as it is written.
fn function_name(name: &ObjectName) -> String {
    match name.0.as_slice() {
        [part] => part.as_ident().map_or_else(|| name.to_string(), normalized),
        _ => name.to_string(),
    }
}

/// Returns true if an expression has a function with another value at each call.
fn is_volatile(state: &SessionState, expr: &Expr) -> bool {
    let is_volatile = |function: &Function| {
        let known = state.scalar_functions().get(&function_name(&function.name));
        known.is_some_and(|known| known.signature().volatility == Volatility::Volatile)
    };
    visit_expressions(expr, |expr: &Expr| match expr {
        Expr::Function(function) if is_volatile(function) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}
