//! Allow list over the parsed statement. Every clause that the engine takes and ignores is refused. Structs of the
//! parser are taken apart without `..`: a field that a new version adds fails to compile until somebody decides on it.

use super::{expressions, function_calls, step};
use datafusion::common::{not_impl_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast::{
    Cte, Expr, FunctionArg, FunctionArgExpr, GroupByExpr, Join, JoinConstraint, JoinOperator, LimitClause,
    OrderBy, OrderByExpr, OrderByKind, Query, Select, SelectFlavor, SelectItem,
    SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableAliasColumnDef, TableFactor,
    TableFunctionArgs, TableWithJoins, Values, Visitor, WildcardAdditionalOptions, With,
};
use std::ops::ControlFlow;

/// Visitor that refuses all that it does not know.
pub(super) struct AllowList<'a> {
    pub(super) state: &'a SessionState,
}

impl Visitor for AllowList<'_> {
    type Break = DataFusionError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<DataFusionError> {
        step(allowed_query(query))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<DataFusionError> {
        step(allowed_select(select))
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<DataFusionError> {
        step(allowed_table(table))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<DataFusionError> {
        step(match expr {
            Expr::Function(call) => function_calls::allowed(self.state, call),
            _ => expressions::allowed(self.state, expr),
        })
    }
}

/// Refuses a clause that is there and would be ignored.
pub(super) fn ignored(is_there: bool, clause: &str, remedy: &str) -> Result<()> {
    if is_there { plan_err!("cannot use {clause}: it would have no effect; {remedy}") } else { Ok(()) }
}

const LEAVE_OUT: &str = "leave it out";

fn allowed_query(query: &Query) -> Result<()> {
    let Query {
        with,
        body,
        order_by,
        limit_clause,
        fetch,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    ignored(fetch.is_some(), "`fetch`", "use `limit`")?;
    ignored(!locks.is_empty(), "`for update` or `for share`", LEAVE_OUT)?;
    ignored(for_clause.is_some(), "`for xml`, `for json` or `for browse`", "use --format")?;
    ignored(settings.is_some(), "`settings`", LEAVE_OUT)?;
    ignored(format_clause.is_some(), "`format`", "use --format")?;
    if let Some(first) = pipe_operators.first() {
        return plan_err!("cannot use `|> {first}`: pipes are not supported; put the query into a `with`");
    }
    if let Some(With { with_token: _, recursive, cte_tables }) = with {
        cte_tables.iter().try_for_each(|table| allowed_with_table(table, *recursive))?;
    }
    allowed_body(body)?;
    if let Some(OrderBy { kind, interpolate }) = order_by {
        ignored(interpolate.is_some(), "`interpolate`", LEAVE_OUT)?;
        match kind {
            OrderByKind::All(_) => {
                let is_ignored = !matches!(**body, SetExpr::Select(_));
                ignored(is_ignored, "`order by all` behind a set operation", "name the columns")?;
            }
            OrderByKind::Expressions(keys) => keys.iter().try_for_each(allowed_key)?,
        }
    }
    match limit_clause {
        Some(LimitClause::LimitOffset { limit: _, offset: _, limit_by }) => ignored(
            !limit_by.is_empty(),
            "`limit … by`",
            "compare `row_number() over (partition by …)` with it",
        ),
        Some(LimitClause::OffsetCommaLimit { offset: _, limit: _ }) | None => Ok(()),
    }
}

fn allowed_with_table(table: &Cte, is_recursive: bool) -> Result<()> {
    let Cte { alias, query, from, materialized: _, closing_paren_token: _ } = table;
    allowed_alias(alias)?;
    ignored(from.is_some(), "`from` behind a query of `with`", LEAVE_OUT)?;
    if is_recursive && matches!(*query.body, SetExpr::SetOperation { .. }) {
        let is_there = query.with.is_some() || query.order_by.is_some() || query.limit_clause.is_some();
        ignored(
            is_there,
            "`with`, `order by`, `limit` or `offset` of a recursive query",
            "put it into the query that reads the result",
        )?;
    }
    Ok(())
}

fn allowed_body(body: &SetExpr) -> Result<()> {
    match body {
        // Visited by themselves.
        SetExpr::Select(_) | SetExpr::Query(_) => Ok(()),
        SetExpr::SetOperation { left, op: _, set_quantifier: _, right } => {
            allowed_body(left)?;
            allowed_body(right)
        }
        SetExpr::Values(Values { explicit_row: _, value_keyword, rows: _ }) => {
            if *value_keyword {
                plan_err!("cannot use `value`: it is not supported; write `values`")
            } else {
                Ok(())
            }
        }
        SetExpr::Table(_) => {
            plan_err!("cannot use `table NAME`: it is not supported; write `select * from NAME`")
        }
        // An order; told as that of a statement.
        other => not_impl_err!("Query {other} not implemented yet"),
    }
}

fn allowed_select(select: &Select) -> Result<()> {
    let Select {
        select_token: _,
        // Hints are comments.
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    ignored(select_modifiers.is_some(), "a modifier behind `select`", LEAVE_OUT)?;
    ignored(top.is_some(), "`top`", "use `limit`")?;
    ignored(exclude.is_some(), "`exclude` behind a select list", "write `* exclude (…)`")?;
    ignored(into.is_some(), "`into`", "use --output")?;
    ignored(!lateral_views.is_empty(), "`lateral view`", "use `unnest` in a subquery")?;
    ignored(prewhere.is_some(), "`prewhere`", "use `where`")?;
    ignored(!connect_by.is_empty(), "`connect by` or `start with`", "use `with recursive`")?;
    ignored(!cluster_by.is_empty(), "`cluster by`", LEAVE_OUT)?;
    ignored(!distribute_by.is_empty(), "`distribute by`", LEAVE_OUT)?;
    ignored(!sort_by.is_empty(), "`sort by`", "use `order by`")?;
    ignored(!named_window.is_empty(), "`window`", "write the window behind `over`")?;
    ignored(value_table_mode.is_some(), "`as value` or `as struct`", LEAVE_OUT)?;
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    ignored(
        !modifiers.is_empty(),
        "`with rollup`, `with cube` or `with totals`",
        "write `group by rollup(…)` or `cube(…)`",
    )?;
    match flavor {
        SelectFlavor::Standard | SelectFlavor::FromFirst => {}
        SelectFlavor::FromFirstNoSelect => {
            return plan_err!(
                "cannot use `from` without `select`: no columns are named; write `select * from …`"
            );
        }
    }
    projection.iter().try_for_each(allowed_item)?;
    from.iter().try_for_each(|table| {
        let TableWithJoins { relation: _, joins } = table;
        joins.iter().try_for_each(allowed_join)
    })
}

fn allowed_item(item: &SelectItem) -> Result<()> {
    match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { expr: _, alias: _ } => Ok(()),
        SelectItem::Wildcard(options)
        | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), options) => {
            let WildcardAdditionalOptions {
                wildcard_token: _,
                opt_ilike: _,
                opt_exclude: _,
                opt_except: _,
                opt_replace: _,
                opt_rename,
                opt_alias,
            } = options;
            ignored(opt_rename.is_some(), "`rename` behind `*`", "name the columns")?;
            ignored(opt_alias.is_some(), "an alias of `*`", LEAVE_OUT)
        }
        other => plan_err!("cannot select `{other}`: it is not supported; name each column"),
    }
}

pub(super) fn allowed_key(key: &OrderByExpr) -> Result<()> {
    let OrderByExpr { expr: _, options: _, with_fill } = key;
    ignored(with_fill.is_some(), "`with fill`", LEAVE_OUT)
}

fn allowed_alias(alias: &TableAlias) -> Result<()> {
    let TableAlias { explicit: _, name, columns, at } = alias;
    ignored(at.is_some(), "`at` behind an alias", LEAVE_OUT)?;
    columns.iter().try_for_each(|column| {
        let TableAliasColumnDef { name: column, data_type } = column;
        ignored(
            data_type.is_some(),
            &format!("the type of column `{column}` of alias `{name}`"),
            "cast the column in the select list",
        )
    })
}

fn allowed_table(table: &TableFactor) -> Result<()> {
    const SAMPLE: &str = "cannot sample a table: `tablesample` is not supported; use `where ordinal % 100 = 0` or a time range";
    const ORDINALITY: &str = "`with ordinality` or `with offset`";
    const NUMBERED: &str = "use `row_number() over ()` in a query around";
    let alias = match table {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            if sample.is_some() {
                return plan_err!("{SAMPLE}");
            }
            ignored(!with_hints.is_empty(), "`with (…)` behind a table", LEAVE_OUT)?;
            ignored(version.is_some(), "a version of a table", "use a condition on `time` or `ordinal`")?;
            ignored(*with_ordinality, ORDINALITY, NUMBERED)?;
            ignored(!partitions.is_empty(), "`partition` of a table", "use a condition on `slot` or `time`")?;
            ignored(json_path.is_some(), "a path behind a table", "use json_get(payload, 'PATH')")?;
            ignored(!index_hints.is_empty(), "an index hint", LEAVE_OUT)?;
            if let Some(TableFunctionArgs { args, settings }) = args {
                ignored(settings.is_some(), "`settings`", LEAVE_OUT)?;
                args.iter().try_for_each(allowed_table_argument)?;
            }
            alias
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            if sample.is_some() {
                return plan_err!("{SAMPLE}");
            }
            alias
        }
        TableFactor::Function { lateral: _, name: _, args, with_ordinality, alias } => {
            ignored(*with_ordinality, ORDINALITY, NUMBERED)?;
            args.iter().try_for_each(allowed_table_argument)?;
            alias
        }
        TableFactor::UNNEST { alias, array_exprs: _, with_offset, with_offset_alias, with_ordinality } => {
            let is_numbered = *with_offset || with_offset_alias.is_some() || *with_ordinality;
            ignored(is_numbered, ORDINALITY, NUMBERED)?;
            alias
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            let TableWithJoins { relation: _, joins } = &**table_with_joins;
            joins.iter().try_for_each(allowed_join)?;
            alias
        }
        other => {
            return plan_err!(
                "cannot read `{other}`: this kind of table is not supported; use a stream or a subquery"
            );
        }
    };
    alias.as_ref().map_or(Ok(()), allowed_alias)
}

fn allowed_table_argument(argument: &FunctionArg) -> Result<()> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(_)) => Ok(()),
        other => plan_err!(
            "cannot pass `{other}` to a table function: only values are supported; leave out the name"
        ),
    }
}

fn allowed_join(join: &Join) -> Result<()> {
    let Join { relation: _, global, join_operator } = join;
    ignored(*global, "`global` of a join", LEAVE_OUT)?;
    match join_operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::LeftSemi(on)
        | JoinOperator::RightSemi(on)
        | JoinOperator::LeftAnti(on)
        | JoinOperator::RightAnti(on) => match on {
            JoinConstraint::On(_) | JoinConstraint::Using(_) | JoinConstraint::Natural => Ok(()),
            JoinConstraint::None => no_condition(),
        },
        JoinOperator::Right(on) | JoinOperator::RightOuter(on) | JoinOperator::FullOuter(on) => match on {
            JoinConstraint::On(_) => Ok(()),
            // The engine takes the value of the left side, which is null where that has no row.
            JoinConstraint::Using(_) | JoinConstraint::Natural => plan_err!(
                "cannot use `using` or `natural` in a right or full join; write `on a.w = b.w`, and coalesce(a.w, b.w) \
                 for the shared column"
            ),
            JoinConstraint::None => no_condition(),
        },
        JoinOperator::CrossJoin(JoinConstraint::None) => Ok(()),
        JoinOperator::CrossJoin(_) => {
            plan_err!("cannot use a condition in a cross join; write `join … on …`")
        }
        _ => plan_err!("cannot join in this way: it is not supported; write `join … on …` or `cross join`"),
    }
}

fn no_condition() -> Result<()> {
    plan_err!("cannot join without a condition; add `on …`, or write `cross join`")
}
