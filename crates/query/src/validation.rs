//! Validation of SQL before planning: nesting depth, and clauses that the engine accepts but ignores.

use datafusion::common::{DFSchema, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::Expr;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{TableFactor, Visit, Visitor};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use std::ops::ControlFlow;

/// Operators in a row at most: the engine goes down from each to the one before it, and a stack has an end.
const MOST: usize = 1000;

/// Refuses what has more operators than the engine can go through.
pub(crate) fn too_long(sql: &str) -> Result<()> {
    // What is no SQL the parser tells, and where.
    let tokens = Tokenizer::new(&GenericDialect {}, sql).tokenize().unwrap_or_default();
    let joins = |token: &&Token| match token {
        Token::Word(word) => matches!(word.keyword, Keyword::AND | Keyword::OR),
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat => true,
        _ => false,
    };
    match tokens.iter().filter(joins).count() {
        count if count > MOST => plan_err!(
            "cannot plan the query: {count} operators exceed the limit of {MOST}; instead of `a = 1 or a = 2` write \
             `a in (1, 2)`, which has no limit"
        ),
        _ => Ok(()),
    }
}

/// A condition on rows with this schema.
pub(crate) fn condition(context: &SessionContext, sql: &str, schema: &DFSchema) -> Result<Expr> {
    too_long(sql)?;
    context.parse_sql_expr(sql, schema)
}

/// Refuses what the engine takes and does not heed.
pub(crate) fn unheeded(statement: &Statement) -> Result<()> {
    struct TableSampleVisitor;
    impl Visitor for TableSampleVisitor {
        type Break = ();

        fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
            match table {
                TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        }
    }
    match statement {
        Statement::Statement(statement) if statement.visit(&mut TableSampleVisitor).is_break() => plan_err!(
            "cannot sample a table: `tablesample` is not supported; use `where ordinal % 100 = 0` or a time range"
        ),
        Statement::Explain(explain) => unheeded(&explain.statement),
        _ => Ok(()),
    }
}
