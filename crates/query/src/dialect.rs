//! SQL dialect of queries and conditions: the generic dialect of the parser with the operator precedence of
//! `PostgreSQL`. Chained comparisons and `^` are refused, since their meaning differs between databases.

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, ExprWithAlias, Ident, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::Token;
use std::any::TypeId;

/// Precedence of arithmetic signs, which bind more tightly than every binary operator on numbers.
const SIGN: u8 = 45;
const TIME_ZONE: u8 = 42;
const MULTIPLICATION: u8 = 40;
const ADDITION: u8 = 30;
/// Precedence of all operators that have no other: `||`, `&`, `|`, `<<`, `~` and so on.
const OTHER: u8 = 25;
/// Precedence of `BETWEEN`, `IN`, `LIKE` and its relatives.
const MATCH: u8 = 22;
const COMPARISON: u8 = 20;
const IS: u8 = 17;

/// Prefix of the lower end of a range whose ends may stand in any order; `ast` rewrites it.
pub(crate) const SYMMETRIC: &str = "symmetric";

/// The dialect of queries and conditions.
#[derive(Debug)]
pub struct RingDialect;

/// Parser of a text in the dialect, with the limits of a session.
fn parser<'a>(context: &SessionContext, sql: &'a str) -> Result<DFParser<'a>> {
    let limit = context.state().config().options().sql_parser.recursion_limit.get();
    DFParserBuilder::new(sql).with_dialect(&RingDialect).with_recursion_limit(limit).build()
}

/// Parses the one statement of a query.
pub(crate) fn statement(context: &SessionContext, sql: &str) -> Result<Statement> {
    let mut statements = parser(context, sql)?.parse_statements()?;
    match (statements.pop_front(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => plan_err!("No SQL statements were provided in the query string"),
        _ => plan_err!("The context currently only supports a single SQL statement"),
    }
}

/// Parses a condition on rows.
pub(crate) fn condition(context: &SessionContext, sql: &str) -> Result<ExprWithAlias> {
    parser(context, sql)?.parse_into_expr()
}

macro_rules! as_generic {
    ($($method:ident)*) => {
        $(fn $method(&self) -> bool {
            GenericDialect.$method()
        })*
    };
}

impl Dialect for RingDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        GenericDialect.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        GenericDialect.is_identifier_part(ch)
    }

    as_generic! {
        supports_unicode_string_literal supports_partition_by_after_order_by supports_array_join_syntax
        supports_group_by_expr supports_group_by_with_modifier supports_left_associative_joins_without_parens
        supports_connect_by supports_match_recognize supports_pipe_operator supports_start_transaction_modifier
        supports_window_function_null_treatment_arg supports_dictionary_syntax
        supports_window_clause_named_window_reference supports_parenthesized_set_variables
        supports_select_wildcard_except support_map_literal_syntax allow_extract_custom
        allow_extract_single_quotes supports_extract_comma_syntax supports_create_view_comment_syntax
        supports_parens_around_table_factor supports_values_as_table_factor supports_create_index_with_clause
        supports_explain_with_utility_options supports_limit_comma supports_update_order_by
        supports_from_first_select supports_projection_trailing_commas supports_asc_desc_in_column_definition
        supports_try_convert supports_bitwise_shift_operators supports_comment_on supports_load_extension
        supports_named_fn_args_with_assignment_operator supports_struct_literal supports_empty_projections
        supports_nested_comments supports_multiline_comment_hints supports_user_host_grantee
        supports_string_escape_constant supports_array_typedef_with_brackets supports_match_against
        supports_set_names supports_comma_separated_set_assignments supports_filter_during_aggregation
        supports_select_wildcard_exclude supports_data_type_signed_suffix supports_interval_options
        supports_quote_delimited_string supports_select_wildcard_replace supports_select_wildcard_ilike
        supports_select_wildcard_rename supports_optimize_table supports_install supports_detach
        supports_prewhere supports_with_fill supports_limit_by supports_interpolate supports_settings
        supports_select_format supports_comment_optimizer_hint supports_constraint_keyword_without_name
        supports_key_column_option supports_comma_separated_trim supports_cte_without_as
        supports_select_item_multi_column_alias supports_xml_expressions
    }

    // Without it, `select a notnull` is a column of that name.
    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => 100,
            Precedence::DoubleColon => 50,
            // The parser asks for it of signs alone; operators are below.
            Precedence::MulDivModOp => SIGN,
            Precedence::AtTz => TIME_ZONE,
            Precedence::PlusMinus => ADDITION,
            Precedence::Ampersand | Precedence::Caret | Precedence::Pipe | Precedence::PgOther => OTHER,
            Precedence::Colon => OTHER - 1,
            Precedence::Between | Precedence::Like => MATCH,
            Precedence::Eq => COMPARISON,
            Precedence::Is => IS,
            Precedence::UnaryNot => 15,
            Precedence::And => 10,
            Precedence::Xor => 7,
            Precedence::Or => 5,
        }
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let precedence = match &parser.peek_token_ref().token {
            Token::Mul | Token::Div | Token::Mod | Token::DuckIntDiv => MULTIPLICATION,
            Token::Word(word) if word.keyword == Keyword::DIV => MULTIPLICATION,
            Token::Word(word) if word.keyword == Keyword::OPERATOR => OTHER,
            Token::Word(word) if is_null_word(&word.value, word.quote_style) => IS,
            Token::StringConcat
            | Token::CaretAt
            | Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk => OTHER,
            _ => return None,
        };
        Some(Ok(precedence))
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        // The parser's own takes 30 for it: `~ a + b` would be `(~ a) + b`.
        if !parser.consume_token(&Token::Tilde) {
            return None;
        }
        let expr = parser.parse_subexpr(OTHER);
        Some(expr.map(|expr| Expr::UnaryOp { op: UnaryOperator::BitwiseNot, expr: Box::new(expr) }))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let token = parser.peek_token_ref();
        let place = token.span.start;
        let refused = |what: &str| Some(Err(ParserError::ParserError(format!("{what}{place}"))));
        if token.token == Token::Caret {
            return refused(
                "`^` is a power in some databases and an exclusive or in others; write power(a, b), or \
                 (a | b) - (a & b)",
            );
        }
        if ends_with(left) == Some(precedence) {
            return refused(
                "operators that compare cannot be chained; use parentheses, or `and` between two comparisons",
            );
        }
        if matches!(&token.token, Token::Word(word) if is_null_word(&word.value, word.quote_style)) {
            parser.advance_token();
            return Some(Ok(Expr::IsNull(Box::new(left.clone()))));
        }
        // The parser's own takes what stands behind an AND or OR, too.
        let right = |parser: &mut Parser<'_>| parser.parse_subexpr(precedence).map(Box::new);
        let left = || Box::new(left.clone());
        if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            return Some(right(parser).map(|right| Expr::IsDistinctFrom(left(), right)));
        }
        if parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM]) {
            return Some(right(parser).map(|right| Expr::IsNotDistinctFrom(left(), right)));
        }
        for (negated, words) in
            [(false, [Keyword::BETWEEN].as_slice()), (true, &[Keyword::NOT, Keyword::BETWEEN])]
        {
            for keyword in [Keyword::SYMMETRIC, Keyword::ASYMMETRIC] {
                if parser.parse_keywords(&[words, &[keyword]].concat()) {
                    return Some(range(parser, left(), negated, keyword == Keyword::SYMMETRIC));
                }
            }
        }
        None
    }
}

/// Parses the ends of a range, behind `between symmetric` or `between asymmetric`.
fn range(
    parser: &mut Parser<'_>,
    expr: Box<Expr>,
    negated: bool,
    is_symmetric: bool,
) -> Result<Expr, ParserError> {
    let mut low = Box::new(parser.parse_subexpr(MATCH)?);
    if is_symmetric {
        low = Box::new(Expr::Prefixed { prefix: Ident::new(SYMMETRIC), value: low });
    }
    parser.expect_keyword_is(Keyword::AND)?;
    let high = Box::new(parser.parse_subexpr(MATCH)?);
    Ok(Expr::Between { expr, negated, low, high })
}

/// Returns true for the operator `ISNULL`, which is no keyword of the parser.
fn is_null_word(word: &str, quote: Option<char>) -> bool {
    quote.is_none() && word.eq_ignore_ascii_case("isnull")
}

/// Precedence of the operator that is not associative and whose right side ends an expression.
fn ends_with(expr: &Expr) -> Option<u8> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq, Spaceship};
    match expr {
        Expr::BinaryOp { op: Eq | NotEq | Lt | LtEq | Gt | GtEq | Spaceship, .. } => Some(COMPARISON),
        Expr::Between { .. }
        | Expr::Like { .. }
        | Expr::ILike { .. }
        | Expr::SimilarTo { .. }
        | Expr::RLike { .. } => Some(MATCH),
        Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..) => Some(IS),
        _ => None,
    }
}
