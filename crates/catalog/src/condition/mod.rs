//! Conditions of searches over attributes: `size > 1GB and (project = "m31" or not target like "ngc*")`.
//!
//! | form | meaning |
//! |---|---|
//! | `name OP value` | a value compares so; OP is `=` `!=` `<` `<=` `>` `>=` |
//! | `name like "a*b"` | a text value of the attribute matches; `*` is any text, `\*` a star |
//! | `not C`, `C and D`, `C or D`, `( C )` | `not` binds strongest, then `and`, then `or` |
//! | `name` | letters, digits and `_ . : -`, or any characters in brackets: `[my name]` |
//! | `"text"` or `'text'` | text, with `\" \' \\ \n \t` |
//! | `-1.5e3`, `1.5GB`, `4 KiB` | number, or size in bytes |
//! | `2026-11-20T10:05:00Z`, `2026-11-20` | time, in UTC unless it has a zone |
//!
//! A comparison holds if some value of the attribute satisfies it, so `a != 1` means "some value of `a` differs".
//! Numbers compare with integers and floats, texts with texts, times with times; another type never matches.
//! Integers compare exactly, also with fractions. Text order is the order of bytes. Attributes with a unit of size
//! compare in bytes.

mod evaluate;
pub(crate) mod lexer;
mod parser;

use crate::value::Value;
use std::fmt;
use std::str::FromStr;

/// Longest condition in bytes: bounds the work of the parser.
pub(crate) const MAX_CONDITION_BYTES: usize = 64 << 10;

/// Most comparisons in one condition: bounds the number of SQL parameters.
pub(crate) const MAX_COMPARISONS: usize = 256;

/// Deepest nesting of parentheses and `not`: bounds the stack, and the depth of SQL expressions.
pub(crate) const MAX_NESTING: usize = 64;

/// Comparison operator of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operator {
    /// Equality of values, written `=`.
    Equal,
    /// Difference of values, written `!=`.
    Different,
    /// Strictly less than, written `<`.
    Less,
    /// Less or equal, written `<=`.
    AtMost,
    /// Strictly greater than, written `>`.
    Greater,
    /// Greater or equal, written `>=`.
    AtLeast,
}

impl Operator {
    /// Operator as it is written in conditions.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Different => "!=",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

/// Pattern of `like`: literal pieces with any text between two of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pattern {
    /// Pieces between the stars, at least one; the first and the last are anchored.
    pub pieces: Vec<String>,
}

/// Condition over the attributes of one object or collection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Condition {
    /// Some value of an attribute compares with a literal.
    Compare {
        /// Name of the attribute.
        attribute: String,
        /// Comparison between value and literal.
        operator: Operator,
        /// Literal on the right side.
        literal: Value,
    },
    /// Some text value of an attribute matches a pattern.
    Like {
        /// Name of the attribute.
        attribute: String,
        /// Pattern that the whole text matches.
        pattern: Pattern,
    },
    /// The condition does not hold.
    Not(Box<Condition>),
    /// All of the conditions hold.
    All(Vec<Condition>),
    /// At least one condition holds.
    Any(Vec<Condition>),
}

/// Text that is not a condition, with the place of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read the condition at character {place} (`{near}`): {reason}; {remedy}")]
pub struct ConditionError {
    /// Character at which reading stopped, counted from 1.
    pub place: usize,
    /// Text from that character on, shortened.
    pub near: String,
    /// Rule that the text breaks.
    pub reason: String,
    /// Advice to the reader.
    pub remedy: &'static str,
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        parser::parse(text)
    }
}

/// Writes a text in double quotes, with escapes.
fn quote(f: &mut fmt::Formatter<'_>, text: &str, escape_stars: bool) -> fmt::Result {
    for c in text.chars() {
        match c {
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '*' if escape_stars => f.write_str("\\*")?,
            other => write!(f, "{other}")?,
        }
    }
    Ok(())
}

/// Writes an attribute name, in brackets if it is not a plain word.
fn write_name(f: &mut fmt::Formatter<'_>, name: &str) -> fmt::Result {
    if lexer::is_plain_name(name) {
        return f.write_str(name);
    }
    f.write_str("[")?;
    for c in name.chars() {
        if matches!(c, ']' | '\\') {
            f.write_str("\\")?;
        }
        write!(f, "{c}")?;
    }
    f.write_str("]")
}

/// Canonical form, which reads back as the same condition.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |f: &mut fmt::Formatter<'_>, all: &[Self], word: &str| {
            for (place, part) in all.iter().enumerate() {
                write!(f, "{}({part})", if place == 0 { "" } else { word })?;
            }
            Ok(())
        };
        match self {
            Self::Compare { attribute, operator, literal } => {
                write_name(f, attribute)?;
                write!(f, " {} ", operator.text())?;
                match literal {
                    Value::Text(text) => {
                        f.write_str("\"")?;
                        quote(f, text, false)?;
                        f.write_str("\"")
                    }
                    Value::Float(number) => write!(f, "{:e}", number.get()),
                    other => other.fmt(f),
                }
            }
            Self::Like { attribute, pattern } => {
                write_name(f, attribute)?;
                f.write_str(" like \"")?;
                for (place, piece) in pattern.pieces.iter().enumerate() {
                    f.write_str(if place == 0 { "" } else { "*" })?;
                    quote(f, piece, true)?;
                }
                f.write_str("\"")
            }
            Self::Not(inner) => write!(f, "not ({inner})"),
            Self::All(all) => join(f, all, " and "),
            Self::Any(any) => join(f, any, " or "),
        }
    }
}
