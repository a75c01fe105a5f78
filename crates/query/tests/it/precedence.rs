//! Test of operator precedence: every pair of operators, with signs and NOT between them, has the parse tree of
//! the text with the parentheses of `PostgreSQL`, or is refused.

use datafusion::sql::sqlparser::ast::{Expr, visit_expressions_mut};
use datafusion::sql::sqlparser::parser::Parser;
use holdfast_query::RingDialect;
use std::ops::ControlFlow;

/// An operator between two operands, and its precedence in `PostgreSQL`.
type Infix = (&'static str, u8);

const CAST: u8 = 11;
const SIGN: u8 = 10;
const ZONE: u8 = 9;
const OTHER: u8 = 6;
const MATCH: u8 = 5;
const COMPARISON: u8 = 4;
const IS: u8 = 3;
const NOT: u8 = 2;

const INFIX: [Infix; 38] = [
    ("at time zone", ZONE),
    ("*", 8),
    ("/", 8),
    ("%", 8),
    ("+", 7),
    ("-", 7),
    ("||", OTHER),
    ("&", OTHER),
    ("|", OTHER),
    ("<<", OTHER),
    (">>", OTHER),
    ("~", OTHER),
    ("~*", OTHER),
    ("!~", OTHER),
    ("!~*", OTHER),
    ("~~", OTHER),
    ("!~~", OTHER),
    ("->", OTHER),
    ("@>", OTHER),
    ("like", MATCH),
    ("not like", MATCH),
    ("ilike", MATCH),
    ("not ilike", MATCH),
    ("similar to", MATCH),
    ("not similar to", MATCH),
    ("between x and", MATCH),
    ("not between x + y and", MATCH),
    ("=", COMPARISON),
    ("<>", COMPARISON),
    ("!=", COMPARISON),
    ("<", COMPARISON),
    ("<=", COMPARISON),
    (">", COMPARISON),
    (">=", COMPARISON),
    ("is distinct from", IS),
    ("is not distinct from", IS),
    ("and", 1),
    ("or", 0),
];

/// Operators that stand behind their operand.
const POSTFIX: [Infix; 14] = [
    ("::text", CAST),
    ("[1]", CAST),
    ("in (x, y)", MATCH),
    ("not in (x, y)", MATCH),
    ("is null", IS),
    ("is not null", IS),
    ("isnull", IS),
    ("notnull", IS),
    ("is true", IS),
    ("is not true", IS),
    ("is false", IS),
    ("is not false", IS),
    ("is unknown", IS),
    ("is not unknown", IS),
];

const PREFIX: [Infix; 4] = [("-", SIGN), ("+", SIGN), ("~", OTHER), ("not", NOT)];

/// Returns true if the left one of two operators binds first; `None` if they do not associate.
fn left_first((_, left): Infix, (_, right): Infix) -> Option<bool> {
    match left.cmp(&right) {
        std::cmp::Ordering::Equal if [MATCH, COMPARISON, IS].contains(&left) => None,
        order => Some(order.is_ge()),
    }
}

fn parsed(text: &str) -> Result<Expr, String> {
    let mut parser = Parser::new(&RingDialect).try_with_sql(text).map_err(|error| error.to_string())?;
    let mut expr = parser.parse_expr().map_err(|error| error.to_string())?;
    let rest = parser.peek_token().to_string();
    if rest != "EOF" {
        return Err(format!("unread: {rest}"));
    }
    let _ = visit_expressions_mut(&mut expr, |expr| {
        while let Expr::Nested(inner) = expr {
            *expr = (**inner).clone();
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(expr)
}

fn same(text: &str, right: &str) {
    let (text_tree, right_tree) = (parsed(text), parsed(right));
    assert!(right_tree.is_ok(), "{right}: {right_tree:?}");
    assert_eq!(text_tree, right_tree, "{text}\n{right}");
}

fn refused(text: &str) {
    let error = parsed(text).expect_err(text);
    assert!(error.contains("cannot be chained; use parentheses"), "{text}: {error}");
}

#[test]
fn each_pair_of_operators_is_parsed_as_postgresql_parses_it() {
    for first @ (one, _) in INFIX {
        for second @ (other, _) in INFIX {
            let text = format!("a {one} b {other} c");
            match left_first(first, second) {
                Some(true) => same(&text, &format!("(a {one} b) {other} c")),
                Some(false) => same(&text, &format!("a {one} (b {other} c)")),
                None => refused(&text),
            }
        }
        for second @ (other, _) in POSTFIX {
            let text = format!("a {one} b {other}");
            match left_first(first, second) {
                Some(true) => same(&text, &format!("(a {one} b) {other}")),
                Some(false) => same(&text, &format!("a {one} (b {other})")),
                None => refused(&text),
            }
            // What stands behind its operand is complete.
            same(&format!("a {other} {one} b"), &format!("(a {other}) {one} b"));
        }
    }
    for (one, _) in POSTFIX {
        for (other, _) in POSTFIX {
            // A bracket stands behind a name alone: behind a cast it is a part of the type.
            if other != "[1]" {
                same(&format!("a {one} {other}"), &format!("(a {one}) {other}"));
            }
        }
    }
}

#[test]
fn signs_and_not_bind_as_in_postgresql() {
    for prefix @ (sign, _) in PREFIX {
        for infix @ (operator, _) in INFIX {
            let right = match left_first(prefix, infix) {
                Some(true) => format!("({sign} a) {operator} b"),
                _ => format!("{sign} (a {operator} b)"),
            };
            same(&format!("{sign} a {operator} b"), &right);
            same(&format!("a {operator} {sign} b"), &format!("a {operator} ({sign} b)"));
            for next @ (other, _) in INFIX {
                let text = format!("a {operator} {sign} b {other} c");
                if left_first(prefix, next) != Some(true) {
                    same(&text, &format!("a {operator} ({sign} (b {other} c))"));
                    continue;
                }
                match left_first(infix, next) {
                    Some(true) => same(&text, &format!("(a {operator} ({sign} b)) {other} c")),
                    Some(false) => same(&text, &format!("a {operator} (({sign} b) {other} c)")),
                    None => refused(&text),
                }
            }
        }
        for postfix @ (operator, _) in POSTFIX {
            let right = match left_first(prefix, postfix) {
                Some(true) => format!("({sign} a) {operator}"),
                _ => format!("{sign} (a {operator})"),
            };
            same(&format!("{sign} a {operator}"), &right);
        }
        for (other, _) in PREFIX {
            same(&format!("{sign} {other} a"), &format!("{sign} ({other} a)"));
        }
    }
    // NOT EXISTS is one expression, as EXISTS is.
    same("not exists (select 1) and a", "(not exists (select 1)) and a");
}

#[test]
fn a_caret_is_refused() {
    for text in ["a ^ b", "2 * a ^ b", "- a ^ b = c"] {
        let error = parsed(text).expect_err(text);
        assert!(error.contains("write power(a, b)"), "{text}: {error}");
    }
}
