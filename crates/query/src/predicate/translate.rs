//! Translation of SQL expressions into predicates over cells. Expressions that a predicate cannot state are
//! left to the engine.

use super::{IntervalSet, Predicate, ValueSet};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::InList;
use datafusion::logical_expr::{Between, BinaryExpr, Expr, Operator};
use holdfast_attributes::{Cell, Type, Value};
use holdfast_base::Timestamp;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// The columns that have cells: by name, their places and types.
pub trait ColumnLookup {
    /// The place and the type of a column; `None`: it has no cells.
    fn find(&self, name: &str) -> Option<(usize, Type)>;
}

/// The condition that an expression is; `None` where cells cannot tell. It is exact: null counts as not fulfilled.
pub fn translate(expression: &Expr, columns: &impl ColumnLookup) -> Option<Predicate> {
    Translator { columns }.condition(expression, true)
}

/// A value that a column is compared with.
enum Literal {
    /// Nothing compares with it.
    Null,
    Cell(CellRange),
}

/// The cells that are equal to a value: from the first to the last. Most are one; of zero there are two.
enum CellRange {
    Words(u64, u64),
    Floats(u64, u64),
    Wide(u128),
    Bytes(Vec<u8>),
}

impl CellRange {
    fn wanted(self, operator: Operator) -> Option<ValueSet> {
        fn spans<K: Ord + Clone>(first: K, last: K, operator: Operator) -> Option<IntervalSet<K>> {
            Some(match operator {
                Operator::Eq | Operator::IsNotDistinctFrom => {
                    IntervalSet::between(Included(first), Included(last))
                }
                Operator::NotEq | Operator::IsDistinctFrom => {
                    IntervalSet::between(Included(first), Included(last)).complement()
                }
                Operator::Lt => IntervalSet::between(Unbounded, Excluded(first)),
                Operator::LtEq => IntervalSet::between(Unbounded, Included(last)),
                Operator::Gt => IntervalSet::between(Excluded(last), Unbounded),
                Operator::GtEq => IntervalSet::between(Included(first), Unbounded),
                _ => return None,
            })
        }
        Some(match self {
            Self::Words(first, last) => ValueSet::Words(spans(first, last, operator)?),
            Self::Floats(first, last) => ValueSet::Words(with_all_nan(&spans(first, last, operator)?)?),
            Self::Wide(value) => ValueSet::Wide(spans(value, value, operator)?),
            Self::Bytes(value) => ValueSet::Bytes(spans(value.clone(), value, operator)?),
        })
    }
}

/// The word of a float.
fn float_word(value: f64) -> Option<u64> {
    match Value::Float(value).cell() {
        Cell::Word(word) => Some(word),
        Cell::Wide(_) | Cell::Bytes(_) => None,
    }
}

/// A set of floats with all NaN, or none: those with a sign have words below all numbers, and to a query they are
/// equal to the others.
fn with_all_nan(floats: &IntervalSet<u64>) -> Option<IntervalSet<u64>> {
    let signed = IntervalSet::between(Unbounded, Excluded(float_word(f64::NEG_INFINITY)?));
    Some(if floats.meets(&u64::MAX, &u64::MAX) {
        floats.or(&signed)
    } else {
        floats.and(&signed.complement())
    })
}

struct Translator<'a, C> {
    columns: &'a C,
}

impl<C: ColumnLookup> Translator<'_, C> {
    /// The condition that `expression` is `is`.
    fn condition(&self, expression: &Expr, is: bool) -> Option<Predicate> {
        match expression {
            Expr::Literal(ScalarValue::Boolean(value), _) => Some(Predicate::Constant(*value == Some(is))),
            Expr::Alias(alias) => self.condition(&alias.expr, is),
            Expr::Not(inner) => self.condition(inner, !is),
            Expr::BinaryExpr(binary) => self.binary(binary, is),
            Expr::IsNull(inner) => self.null(inner, is),
            Expr::IsNotNull(inner) => self.null(inner, !is),
            Expr::IsTrue(inner) if is => self.condition(inner, true),
            Expr::IsFalse(inner) if is => self.condition(inner, false),
            Expr::InList(list) => self.list(list, is),
            Expr::Between(between) => self.between(between, is),
            Expr::Column(_) => {
                let (column, kind) = self.column(expression)?;
                let wanted = (kind == Type::Bool).then(|| ValueSet::Words(IntervalSet::point(u64::from(is))));
                wanted.map(|wanted| Predicate::Among(column, wanted))
            }
            _ => None,
        }
    }

    fn column(&self, expression: &Expr) -> Option<(usize, Type)> {
        match expression {
            Expr::Column(column) => self.columns.find(&column.name),
            _ => None,
        }
    }

    fn null(&self, inner: &Expr, is: bool) -> Option<Predicate> {
        let (column, _) = self.column(inner)?;
        Some(Predicate::Null(column, is))
    }

    fn binary(&self, binary: &BinaryExpr, is: bool) -> Option<Predicate> {
        let BinaryExpr { left, op, right } = binary;
        match op {
            Operator::And | Operator::Or => {
                let both = [self.condition(left, is)?, self.condition(right, is)?];
                // Not both is either not.
                Some(if (*op == Operator::And) == is { Predicate::all(both) } else { Predicate::any(both) })
            }
            _ => match (self.column(left), self.column(right)) {
                (Some(column), None) => compare(column, *op, right, is),
                (None, Some(column)) => compare(column, op.swap()?, left, is),
                _ => None,
            },
        }
    }

    fn list(&self, list: &InList, is: bool) -> Option<Predicate> {
        let (column, kind) = self.column(&list.expr)?;
        let wanted = list.negated != is;
        let mut any = Vec::with_capacity(list.list.len());
        for one in &list.list {
            match literal(one, kind)? {
                Literal::Cell(cell) => any.push(cell.wanted(Operator::Eq)?),
                Literal::Null if wanted => {}
                // Whatever it is, it might be that.
                Literal::Null => return Some(Predicate::Constant(false)),
            }
        }
        let Some(among) = ValueSet::any(any) else {
            return Some(if wanted { Predicate::Constant(false) } else { Predicate::Null(column, false) });
        };
        Some(Predicate::Among(column, if wanted { among } else { among.complement() }))
    }

    fn between(&self, between: &Between, is: bool) -> Option<Predicate> {
        let column = self.column(&between.expr)?;
        let low = compare(column, Operator::GtEq, &between.low, between.negated != is)?;
        let high = compare(column, Operator::LtEq, &between.high, between.negated != is)?;
        Some(if between.negated == is { Predicate::any([low, high]) } else { Predicate::all([low, high]) })
    }
}

/// A column compared with a literal.
fn compare((column, kind): (usize, Type), operator: Operator, with: &Expr, is: bool) -> Option<Predicate> {
    let null_safe = matches!(operator, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom);
    let operator = if is { operator } else { operator.negate()? };
    let cell = match literal(with, kind)? {
        Literal::Null if null_safe => {
            return Some(Predicate::Null(column, operator == Operator::IsNotDistinctFrom));
        }
        Literal::Null => return Some(Predicate::Constant(false)),
        Literal::Cell(cell) => cell,
    };
    let among = Predicate::Among(column, cell.wanted(operator)?);
    if operator == Operator::IsDistinctFrom {
        return Some(Predicate::any([among, Predicate::Null(column, true)]));
    }
    Some(among)
}

/// A literal as a cell of this type.
fn literal(expression: &Expr, kind: Type) -> Option<Literal> {
    let Expr::Literal(value, _) = expression else { return None };
    if value.is_null() {
        return Some(Literal::Null);
    }
    let value = match (kind, value) {
        (Type::Int, value) => Value::Int(integer(value)?.try_into().ok()?),
        (Type::Uint, value) => Value::Uint(integer(value)?.try_into().ok()?),
        (Type::Float, ScalarValue::Float64(Some(value))) => {
            // Both zeros are equal, and so are all NaN.
            let (first, last) = match *value {
                0.0 => (float_word(-0.0)?, float_word(0.0)?),
                value if value.is_nan() => (float_word(f64::INFINITY)? + 1, u64::MAX),
                value => (float_word(value)?, float_word(value)?),
            };
            return Some(Literal::Cell(CellRange::Floats(first, last)));
        }
        (Type::Bool, ScalarValue::Boolean(Some(value))) => Value::Bool(*value),
        (Type::Time, ScalarValue::TimestampNanosecond(Some(value), _)) => Value::Time(Timestamp(*value)),
        (
            Type::Text,
            ScalarValue::Utf8(Some(value))
            | ScalarValue::Utf8View(Some(value))
            | ScalarValue::LargeUtf8(Some(value)),
        ) => Value::Text(value),
        (
            Type::Binary,
            ScalarValue::Binary(Some(value))
            | ScalarValue::BinaryView(Some(value))
            | ScalarValue::LargeBinary(Some(value)),
        ) => Value::Binary(value),
        (Type::Ipv4 | Type::Mac | Type::Ipv6 | Type::Ip, ScalarValue::FixedSizeBinary(_, Some(value))) => {
            return address(kind, value).map(Literal::Cell);
        }
        _ => return None,
    };
    Some(Literal::Cell(match value.cell() {
        Cell::Word(word) => CellRange::Words(word, word),
        Cell::Wide(wide) => CellRange::Wide(wide),
        Cell::Bytes(bytes) => CellRange::Bytes(bytes.to_vec()),
    }))
}

/// The cell of an address that is given by its bytes.
fn address(kind: Type, bytes: &[u8]) -> Option<CellRange> {
    let number = |bytes: &[u8]| bytes.iter().fold(0u128, |number, byte| number << 8 | u128::from(*byte));
    match (kind, bytes.len()) {
        (Type::Ipv4, 4) | (Type::Mac, 6) => {
            let word = number(bytes) as u64;
            Some(CellRange::Words(word, word))
        }
        (Type::Ipv6 | Type::Ip, 16) => Some(CellRange::Wide(number(bytes))),
        _ => None,
    }
}

fn integer(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Int8(Some(value)) => Some((*value).into()),
        ScalarValue::Int16(Some(value)) => Some((*value).into()),
        ScalarValue::Int32(Some(value)) => Some((*value).into()),
        ScalarValue::Int64(Some(value)) => Some((*value).into()),
        ScalarValue::UInt8(Some(value)) => Some((*value).into()),
        ScalarValue::UInt16(Some(value)) => Some((*value).into()),
        ScalarValue::UInt32(Some(value)) => Some((*value).into()),
        ScalarValue::UInt64(Some(value)) => Some((*value).into()),
        _ => None,
    }
}
