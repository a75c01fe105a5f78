//! Translation of conditions into parameterised SQL. No text of a condition ever becomes part of a statement.
//!
//! A comparison becomes one or two range tests, each on one `key_…` column and so on one index.

use super::{Dialect, SqlValue};
use crate::condition::{Condition, Operator, Pattern};
use crate::value::{Finite, Value};

/// Most index searches that together drive a query; more of them are tested row by row.
const MAX_DRIVERS: usize = 64;

/// Parameters of a statement under construction.
#[derive(Debug, Default)]
pub(crate) struct Parameters(pub(crate) Vec<SqlValue>);

impl Parameters {
    /// Adds a value and returns its mark.
    pub(crate) fn bind(&mut self, value: impl Into<SqlValue>) -> String {
        self.0.push(value.into());
        format!("?{}", self.0.len())
    }
}

/// Range test on one key column: all comparisons hold. Without comparisons the column only has a value.
#[derive(Clone, PartialEq, Debug)]
struct RangeTest {
    column: &'static str,
    comparisons: Vec<(&'static str, SqlValue)>,
}

impl RangeTest {
    fn one(column: &'static str, operator: Operator, value: SqlValue) -> Self {
        Self { column, comparisons: vec![(operator_sql(operator), value)] }
    }

    fn is_equality(&self) -> bool {
        matches!(self.comparisons[..], [("=", _)])
    }

    /// Test of a row `a`. `mark` stands before the column.
    fn sql(&self, mark: &str, parameters: &mut Parameters) -> String {
        let column = format!("{mark}a.{}", self.column);
        if self.comparisons.is_empty() {
            return format!("{column} IS NOT NULL");
        }
        let all = self.comparisons.iter();
        let all =
            all.map(|(operator, value)| format!("{column} {operator} {}", parameters.bind(value.clone())));
        all.collect::<Vec<_>>().join(" AND ")
    }
}

const fn operator_sql(operator: Operator) -> &'static str {
    match operator {
        Operator::Different => "<>",
        other => other.text(),
    }
}

/// Test of integer keys against a fraction: `None` never holds, an empty list always.
fn integer_test(operator: Operator, number: Finite) -> Option<Vec<(&'static str, SqlValue)>> {
    use Operator::{AtLeast, AtMost, Different, Equal, Greater, Less};
    let floor = number.get().floor();
    let always = |holds: bool| holds.then(Vec::new);
    if floor >= 9_223_372_036_854_775_808.0 {
        return always(matches!(operator, Less | AtMost | Different));
    }
    if floor < -9_223_372_036_854_775_808.0 {
        return always(matches!(operator, Greater | AtLeast | Different));
    }
    let is_fraction = floor < number.get();
    let operator = match operator {
        Equal if is_fraction => return None,
        Different if is_fraction => return always(true),
        Less | AtMost if is_fraction => AtMost,
        Greater | AtLeast if is_fraction => Greater,
        other => other,
    };
    Some(vec![(operator_sql(operator), SqlValue::Integer(floor as i64))])
}

/// Range tests of which at least one holds for a matching attribute; nothing for `not`, `and`, `or`.
fn range_tests(condition: &Condition, dialect: Dialect) -> Option<(&str, Vec<RangeTest>)> {
    match condition {
        Condition::Compare { attribute, operator, literal } => {
            let one = |column, value| RangeTest::one(column, *operator, value);
            let tests = match literal {
                Value::Text(text) => vec![one("key_text", text.as_str().into())],
                Value::Time(time) => vec![one("key_time", SqlValue::Integer(time.0))],
                Value::Integer(number) => vec![
                    one("key_integer", SqlValue::Integer(*number)),
                    one("key_float", SqlValue::Float(*number as f64)),
                ],
                Value::Float(number) => {
                    let integers = integer_test(*operator, *number);
                    let integers =
                        integers.map(|comparisons| RangeTest { column: "key_integer", comparisons });
                    integers.into_iter().chain([one("key_float", SqlValue::Float(number.get()))]).collect()
                }
            };
            Some((attribute, tests))
        }
        Condition::Like { attribute, pattern } => Some((attribute, vec![pattern_test(pattern, dialect)])),
        _ => None,
    }
}

/// Test of texts against a pattern, with the range of its literal beginning.
fn pattern_test(pattern: &Pattern, dialect: Dialect) -> RangeTest {
    let column = "key_text";
    let first = pattern.pieces.first().map_or("", String::as_str);
    if pattern.pieces.len() < 2 {
        return RangeTest::one(column, Operator::Equal, first.into());
    }
    let mut comparisons = Vec::new();
    if !first.is_empty() {
        comparisons.push((">=", first.into()));
        comparisons.extend(successor(first).map(|end| ("<", SqlValue::Text(end))));
    }
    if pattern.pieces[1..] != [""] {
        let (operator, star) = match dialect {
            Dialect::Sqlite => ("GLOB", "*"),
            Dialect::Postgres => ("LIKE", "%"),
        };
        let pieces: Vec<String> = pattern.pieces.iter().map(|piece| escape(piece, dialect)).collect();
        comparisons.push((operator, SqlValue::Text(pieces.join(star))));
    }
    RangeTest { column, comparisons }
}

/// Least text that is greater than all texts with a beginning.
fn successor(beginning: &str) -> Option<String> {
    let mut chars: Vec<char> = beginning.chars().collect();
    while let Some(last) = chars.pop() {
        // The code points of surrogates are skipped: no text contains them.
        let next = (u32::from(last) + 1..=u32::from(char::MAX)).find_map(char::from_u32);
        if let Some(next) = next {
            return Some(chars.into_iter().chain([next]).collect());
        }
    }
    None
}

/// Takes the meaning from the special characters of GLOB or LIKE.
fn escape(piece: &str, dialect: Dialect) -> String {
    let mut escaped = String::with_capacity(piece.len());
    for c in piece.chars() {
        match (dialect, c) {
            (Dialect::Sqlite, '*' | '?' | '[') => escaped.extend(['[', c, ']']),
            (Dialect::Postgres, '%' | '_' | '\\') => escaped.extend(['\\', c]),
            _ => escaped.push(c),
        }
    }
    escaped
}

/// Objects that are tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tested {
    /// Column with the id of the object, such as `n.id`.
    pub(crate) id: &'static str,
    /// True for so many objects that a scan of all matching attributes may be faster than a look-up for each.
    pub(crate) are_many: bool,
}

/// Boolean expression over the attributes of objects.
pub(crate) fn predicate(
    condition: &Condition,
    tested: Tested,
    dialect: Dialect,
    parameters: &mut Parameters,
) -> String {
    let mut join = |parts: &[Condition], word: &str| {
        let parts: Vec<String> =
            parts.iter().map(|part| predicate(part, tested, dialect, parameters)).collect();
        format!("({})", parts.join(word))
    };
    match condition {
        Condition::All(all) => join(all, " AND "),
        Condition::Any(any) => join(any, " OR "),
        Condition::Not(inner) => format!("NOT {}", predicate(inner, tested, dialect, parameters)),
        leaf => {
            let (attribute, tests) = range_tests(leaf, dialect).unwrap_or_default();
            let name = parameters.bind(attribute);
            // Without statistics SQLite would scan the range of the key for each object. A sign keeps it from that index.
            let mark =
                |test: &RangeTest| if dialect == Dialect::Sqlite && !test.is_equality() { "+" } else { "" };
            let tests = tests.iter().map(|test| format!("({})", test.sql(mark(test), parameters)));
            let tests: Vec<String> = tests.collect();
            // OFFSET keeps PostgreSQL from turning the test of few candidates into a join with all attributes.
            let end = if tested.are_many && dialect == Dialect::Postgres { "" } else { " LIMIT 1 OFFSET 0" };
            let (object, tests) = (tested.id, tests.join(" OR "));
            format!(
                "EXISTS (SELECT 1 FROM attributes a WHERE a.object = {object} AND a.name = {name} AND ({tests}){end})"
            )
        }
    }
}

/// Parts of a condition by which a search can start: each lists exactly the objects that match it.
pub(crate) fn drivers(condition: &Condition) -> Vec<&Condition> {
    match condition {
        Condition::All(all) => all.iter().filter(|part| is_driver(part)).collect(),
        part if is_driver(part) => vec![part],
        _ => Vec::new(),
    }
}

fn is_driver(condition: &Condition) -> bool {
    match condition {
        Condition::Compare { .. } | Condition::Like { .. } => true,
        Condition::Any(any) => any.len() * 2 <= MAX_DRIVERS && any.iter().all(is_driver),
        _ => false,
    }
}

/// Index searches, one for each range test, that list the objects after `after` matching a driver.
pub(crate) fn searches(
    driver: &Condition,
    dialect: Dialect,
    after: &SqlValue,
    parameters: &mut Parameters,
) -> Vec<String> {
    if let Condition::Any(any) = driver {
        return any.iter().flat_map(|part| searches(part, dialect, after, parameters)).collect();
    }
    let (attribute, tests) = range_tests(driver, dialect).unwrap_or_default();
    let (name, after) = (parameters.bind(attribute), parameters.bind(after.clone()));
    let search = |test: &RangeTest| {
        format!(
            "SELECT a.object FROM attributes a WHERE a.name = {name} AND {} AND a.object > {after}",
            test.sql("", parameters)
        )
    };
    tests.iter().map(search).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(condition: &str, dialect: Dialect) -> (String, Vec<SqlValue>) {
        let mut parameters = Parameters::default();
        let sql = predicate(
            &condition.parse().unwrap(),
            Tested { id: "n.id", are_many: false },
            dialect,
            &mut parameters,
        );
        (sql, parameters.0)
    }

    #[test]
    fn texts_become_parameters_only() {
        let (sql, values) = translated("[x'; DROP TABLE log] = \"'; DELETE FROM log; --\"", Dialect::Sqlite);
        assert!(!sql.contains("DROP") && !sql.contains("DELETE"), "{sql}");
        assert_eq!(values, ["x'; DROP TABLE log".into(), "'; DELETE FROM log; --".into()]);
    }

    #[test]
    fn patterns_are_escaped_for_each_dialect() {
        let last = |dialect| translated(r#"a like "50%_*[x\*?""#, dialect).1.pop().unwrap();
        assert_eq!(last(Dialect::Sqlite), "50%_*[[]x[*][?]".into());
        assert_eq!(last(Dialect::Postgres), "50\\%\\_%[x*?".into());
        let (sql, values) = translated("a like \"m*\"", Dialect::Sqlite);
        assert!(!sql.contains("GLOB"), "{sql}");
        assert_eq!(values[1..], ["m".into(), "n".into()]);
    }

    #[test]
    fn the_successor_skips_surrogates_and_carries() {
        assert_eq!(successor("a\u{d7ff}").as_deref(), Some("a\u{e000}"));
        assert_eq!(successor("a\u{10ffff}").as_deref(), Some("b"));
        assert_eq!(successor("\u{10ffff}"), None);
    }

    #[test]
    fn fractions_become_exact_tests_of_integers() {
        let test = |operator, number| integer_test(operator, Finite::new(number).unwrap());
        assert_eq!(test(Operator::Less, 2.5), Some(vec![("<=", SqlValue::Integer(2))]));
        assert_eq!(test(Operator::AtLeast, -2.5), Some(vec![(">", SqlValue::Integer(-3))]));
        assert_eq!(test(Operator::Equal, 2.5), None);
        assert_eq!(test(Operator::Less, 1e300), Some(vec![]));
        assert_eq!(test(Operator::AtMost, 3.0), Some(vec![("<=", SqlValue::Integer(3))]));
    }
}
