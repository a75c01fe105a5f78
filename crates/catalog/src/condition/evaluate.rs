//! Evaluation of conditions in memory: the definition that searches in databases are compared with.

use super::{Condition, Operator, Pattern};
use crate::value::{Attribute, Finite, Value};
use std::cmp::Ordering;

impl Condition {
    /// True if the attributes of an object satisfy the condition.
    pub fn matches(&self, attributes: &[Attribute]) -> bool {
        let some = |name: &str, accepts: &dyn Fn(&Value) -> bool| {
            attributes.iter().any(|attribute| attribute.name == name && accepts(&attribute.key()))
        };
        match self {
            Self::Compare { attribute, operator, literal } => {
                some(attribute, &|key| compare(key, literal).is_some_and(|order| operator.accepts(order)))
            }
            Self::Like { attribute, pattern } => {
                some(attribute, &|key| matches!(key, Value::Text(text) if pattern.matches(text)))
            }
            Self::Not(inner) => !inner.matches(attributes),
            Self::All(all) => all.iter().all(|part| part.matches(attributes)),
            Self::Any(any) => any.iter().any(|part| part.matches(attributes)),
        }
    }
}

impl Operator {
    /// True if values in this order satisfy the operator.
    pub fn accepts(self, order: Ordering) -> bool {
        match self {
            Self::Equal => order.is_eq(),
            Self::Different => order.is_ne(),
            Self::Less => order.is_lt(),
            Self::AtMost => order.is_le(),
            Self::Greater => order.is_gt(),
            Self::AtLeast => order.is_ge(),
        }
    }
}

/// Order of a key and a literal; nothing for types that do not compare.
fn compare(key: &Value, literal: &Value) -> Option<Ordering> {
    match (key, literal) {
        (Value::Text(a), Value::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        (Value::Time(a), Value::Time(b)) => Some(a.cmp(b)),
        (Value::Integer(a), Value::Integer(b)) => Some(a.cmp(b)),
        (Value::Integer(a), Value::Float(b)) => Some(compare_exactly(*a, *b)),
        (Value::Float(a), Value::Integer(b)) => a.get().partial_cmp(&(*b as f64)),
        (Value::Float(a), Value::Float(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Order of an integer and a float as exact numbers.
fn compare_exactly(integer: i64, float: Finite) -> Ordering {
    let floor = float.get().floor();
    // Both bounds are powers of two, which floats hold exactly.
    if floor >= 9_223_372_036_854_775_808.0 {
        return Ordering::Less;
    }
    if floor < -9_223_372_036_854_775_808.0 {
        return Ordering::Greater;
    }
    let is_fraction = floor < float.get();
    integer.cmp(&(floor as i64)).then(if is_fraction { Ordering::Less } else { Ordering::Equal })
}

impl Pattern {
    /// True if the whole text matches.
    pub fn matches(&self, text: &str) -> bool {
        let [first, middle @ .., last] = self.pieces.as_slice() else {
            return self.pieces.first().is_some_and(|only| only == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
        for piece in middle {
            match rest.split_once(piece.as_str()) {
                Some((_, after)) => rest = after,
                None => return false,
            }
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn holds(condition: &str, attributes: &[Attribute]) -> bool {
        condition.parse::<Condition>().unwrap().matches(attributes)
    }

    #[test]
    fn comparisons_hold_for_some_value() {
        let both = [Attribute::new("a", 1), Attribute::new("a", 2)];
        assert!(holds("a = 1 and a = 2 and a != 1", &both));
        assert!(!holds("not a = 1", &both));
        assert!(holds("not b = 1", &both));
        assert!(!holds("b != 1", &both));
    }

    #[test]
    fn other_types_never_match() {
        let text = [Attribute::new("a", "5")];
        assert!(!holds("a = 5 or a != 5 or a < 5 or a > 5", &text));
        assert!(holds("a = '5'", &text));
    }

    #[test]
    fn integers_compare_exactly_with_fractions_and_sizes() {
        assert!(holds("a > 1.5 and a < 2.5 and a = 2.0", &[Attribute::new("a", 2)]));
        assert!(!holds("a >= 9223372036854775808", &[Attribute::new("a", i64::MAX)]));
        assert!(holds("a > 1GB", &[Attribute::new("a", 1).with_unit("GiB")]));
        assert_eq!(compare_exactly(i64::MAX, Finite::new(i64::MAX as f64).unwrap()), Ordering::Less);
    }

    #[test]
    fn patterns_match_whole_texts() {
        let matches =
            |pattern: &str, text: &str| holds(&format!("a like \"{pattern}\""), &[Attribute::new("a", text)]);
        assert!(
            matches("m*", "m31") && matches("*31", "m31") && matches("m*3*1", "m3331") && matches("*", "")
        );
        assert!(
            !matches("m*", "M31") && !matches("m", "m31") && !matches("ab*ba", "aba") && !matches("*x*", "m")
        );
    }

    proptest! {
        #[test]
        fn integers_and_floats_compare_like_exact_numbers(integer in any::<i64>(), near in -3_i32..4, half in any::<bool>()) {
            let float = Finite::new(integer as f64 + f64::from(near) + if half { 0.5 } else { 0.0 }).unwrap();
            // Twice the value is an integer that fits 128 bits.
            let twice = (float.get() * 2.0) as i128;
            prop_assert_eq!(compare_exactly(integer, float), (i128::from(integer) * 2).cmp(&twice));
        }

        #[test]
        fn parsing_never_panics(text in "[a-c=<>!()\\[\\]\"'\\\\*0-9.eE+TZ: -]{0,40}") {
            let _ = text.parse::<Condition>();
        }
    }
}
