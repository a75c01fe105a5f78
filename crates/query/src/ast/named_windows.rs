//! Resolution of named windows: `over w` and `over (w order by n)` become the specifications that `window w as (…)`
//! gives. The engine alone resolves `over w` in the select list only, and ignores the name in brackets.

use super::{normalized, step};
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderBy, Query, Select, SetExpr, VisitMut,
    VisitorMut, WindowSpec, WindowType,
};
use std::ops::ControlFlow;

/// Visitor that resolves the windows of each query.
pub(super) struct NamedWindows;

impl VisitorMut for NamedWindows {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<DataFusionError> {
        step(resolve_body(&mut query.body, query.order_by.as_mut()))
    }
}

/// Resolves the windows of all selects of a query, and in its order if it has one select.
fn resolve_body(body: &mut SetExpr, order_by: Option<&mut OrderBy>) -> Result<()> {
    match body {
        SetExpr::Select(select) => resolve(select, order_by),
        SetExpr::SetOperation { left, right, .. } => {
            resolve_body(left, None)?;
            resolve_body(right, None)
        }
        _ => Ok(()),
    }
}

fn resolve(select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
    let mut windows = Windows { known: Vec::new(), depth: 0 };
    for NamedWindowDefinition(name, definition) in std::mem::take(&mut select.named_window) {
        let spec = match definition {
            NamedWindowExpr::NamedWindow(name) => windows.named(&name)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => windows.complete(spec)?,
        };
        let key = normalized(&name);
        if windows.known.iter().any(|(known, _)| *known == key) {
            return plan_err!("cannot define window `{name}` twice; give each window a name of its own");
        }
        windows.known.push((key, spec));
    }
    let apply = |flow: ControlFlow<DataFusionError>| super::finished(flow);
    apply(select.projection.visit(&mut windows))?;
    apply(select.qualify.visit(&mut windows))?;
    if let Some(Distinct::On(on)) = &mut select.distinct {
        apply(on.visit(&mut windows))?;
    }
    match order_by {
        Some(order_by) => apply(order_by.visit(&mut windows)),
        None => Ok(()),
    }
}

/// Windows of a select by their names, and the visitor that puts them into its expressions.
struct Windows {
    known: Vec<(String, WindowSpec)>,
    /// Queries around an expression, within the select.
    depth: usize,
}

impl Windows {
    fn named(&self, name: &Ident) -> Result<&WindowSpec> {
        let key = normalized(name);
        let Some((_, spec)) = self.known.iter().find(|(known, _)| *known == key) else {
            return plan_err!(
                "cannot find window `{name}`: the query does not define it, or defines it later; add `window {name} as (…)`"
            );
        };
        Ok(spec)
    }

    /// The specification together with the window that it names.
    fn complete(&self, spec: WindowSpec) -> Result<WindowSpec> {
        let WindowSpec { window_name, partition_by, order_by, window_frame } = spec;
        let Some(name) = window_name else {
            return Ok(WindowSpec { window_name, partition_by, order_by, window_frame });
        };
        let base = self.named(&name)?;
        if !partition_by.is_empty() {
            return plan_err!("cannot override `partition by` of window `{name}`; leave one of the two out");
        }
        if !order_by.is_empty() && !base.order_by.is_empty() {
            return plan_err!("cannot override `order by` of window `{name}`; leave one of the two out");
        }
        if base.window_frame.is_some() {
            return plan_err!(
                "cannot build on window `{name}`: it has a frame; write `over {name}` without parentheses"
            );
        }
        Ok(WindowSpec {
            window_name: None,
            partition_by: base.partition_by.clone(),
            order_by: if order_by.is_empty() { base.order_by.clone() } else { order_by },
            window_frame,
        })
    }
}

impl VisitorMut for Windows {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<DataFusionError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<DataFusionError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<DataFusionError> {
        let Expr::Function(function) = expr else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let resolved = match function.over.take() {
            Some(WindowType::NamedWindow(name)) => self.named(&name).cloned().map(Some),
            Some(WindowType::WindowSpec(spec)) => self.complete(spec).map(Some),
            None => Ok(None),
        };
        step(resolved.map(|spec| function.over = spec.map(WindowType::WindowSpec)))
    }
}
