//! SQL text of a predicate, with column names and values, for `EXPLAIN`.

use super::{IntervalSet, Predicate, ValueSet};
use crate::address;
use crate::columns::Columns;
use datafusion::arrow::temporal_conversions::timestamp_ns_to_datetime;
use holdfast_attributes::{Cell, Type, Value};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

/// Values of a column that are told one by one: behind them stands how many more there are.
const TOLD: usize = 8;
/// Characters of a text, and bytes of what is none.
const SHORT: usize = 40;

impl Predicate {
    /// In the words of SQL.
    pub(crate) fn shown(&self, columns: &Columns) -> String {
        match self {
            Self::Constant(is) => is.to_string(),
            Self::Null(column, is) => {
                format!("{} is {}null", name(columns, *column), if *is { "" } else { "not " })
            }
            Self::Among(column, wanted) => {
                let (name, kind) = (name(columns, *column), kind(columns, *column));
                match wanted {
                    ValueSet::Words(spans) if kind == Type::Float => {
                        among(&name, &without_signed_nan(spans), |word| value(kind, Cell::Word(*word)))
                    }
                    ValueSet::Words(spans) => among(&name, spans, |word| value(kind, Cell::Word(*word))),
                    ValueSet::Wide(spans) => among(&name, spans, |wide| value(kind, Cell::Wide(*wide))),
                    ValueSet::Bytes(spans) => among(&name, spans, |bytes| value(kind, Cell::Bytes(bytes))),
                }
            }
            Self::All(parts) => joined(parts, " and ", columns),
            Self::Any(parts) => joined(parts, " or ", columns),
        }
    }
}

fn joined(parts: &[Predicate], word: &str, columns: &Columns) -> String {
    let part = |part: &Predicate| {
        let shown = part.shown(columns);
        if shown.contains(" or ") || shown.contains(" and ") { format!("({shown})") } else { shown }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(word)
}

fn name(columns: &Columns, place: usize) -> String {
    let fields = columns.arrow().fields();
    fields.get(place).map_or_else(|| format!("column {place}"), |field| field.name().clone())
}

fn kind(columns: &Columns, place: usize) -> Type {
    columns.at(place).map_or(Type::Binary, |(_, kind)| kind)
}

/// Spans of floats as one would write them: the words of NaN with a sign, below all numbers, go with the others.
fn without_signed_nan(spans: &IntervalSet<u64>) -> IntervalSet<u64> {
    let Cell::Word(least) = Value::Float(f64::NEG_INFINITY).cell() else { return spans.clone() };
    let signed = IntervalSet::between(Unbounded, Excluded(least));
    if spans.meets(&least, &least) { spans.or(&signed) } else { spans.and(&signed.complement()) }
}

/// The values of a column that are wanted.
fn among<K: Ord + Clone>(name: &str, spans: &IntervalSet<K>, show: impl Fn(&K) -> String) -> String {
    let shown = |spans: &IntervalSet<K>| -> Vec<(Bound<String>, Bound<String>)> {
        spans.iter().map(|(low, high)| (low.as_ref().map(&show), high.as_ref().map(&show))).collect()
    };
    let only = |(low, high): &(Bound<String>, Bound<String>)| match (low, high) {
        (Included(low), Included(high)) if low == high => Some(low.clone()),
        _ => None,
    };
    let (is, is_not) = (shown(spans), shown(&spans.complement()));
    for (spans, equal, within) in [(&is, "=", "in"), (&is_not, "<>", "not in")] {
        match spans.iter().map(only).collect::<Option<Vec<_>>>().as_deref() {
            None | Some([]) => {}
            Some([one]) => return format!("{name} {equal} {one}"),
            Some(all) => return format!("{name} {within} ({})", some(all, ", ")),
        }
    }
    let span = |(low, high): &(Bound<String>, Bound<String>)| match (low, high) {
        (Unbounded, Unbounded) => format!("{name} is not null"),
        (Included(low), Included(high)) if low == high => format!("{name} = {low}"),
        (Included(low), Included(high)) => format!("{name} between {low} and {high}"),
        (low, high) => {
            let low = match low {
                Included(low) => Some(format!("{name} >= {low}")),
                Excluded(low) => Some(format!("{name} > {low}")),
                Unbounded => None,
            };
            let high = match high {
                Included(high) => Some(format!("{name} <= {high}")),
                Excluded(high) => Some(format!("{name} < {high}")),
                Unbounded => None,
            };
            low.into_iter().chain(high).collect::<Vec<_>>().join(" and ")
        }
    };
    match is.as_slice() {
        [] => "false".to_owned(),
        all => some(&all.iter().map(span).collect::<Vec<_>>(), " or "),
    }
}

/// The first of them, and how many there are beside.
fn some(all: &[String], between: &str) -> String {
    let (told, rest) = all.split_at(all.len().min(TOLD));
    let rest = (!rest.is_empty()).then(|| format!("{} more", rest.len()));
    told.iter().cloned().chain(rest).collect::<Vec<_>>().join(between)
}

/// A cell as a literal.
fn value(kind: Type, cell: Cell<'_>) -> String {
    let hex = |bytes: &[u8]| {
        let more = if bytes.len() > SHORT { "…" } else { "" };
        format!("x'{}{more}'", address::show(Type::Binary, &bytes[..bytes.len().min(SHORT)]))
    };
    match (Value::from_cell(kind, cell), cell) {
        (Some(Value::Int(number)), _) => number.to_string(),
        (Some(Value::Uint(number)), _) => number.to_string(),
        // To the engine both zeros are one.
        (Some(Value::Float(number)), _) => (number + 0.0).to_string(),
        (Some(Value::Bool(is)), _) => is.to_string(),
        (Some(Value::Time(time)), _) => {
            timestamp_ns_to_datetime(time.0).map_or_else(|| time.0.to_string(), |time| format!("'{time:?}Z'"))
        }
        (Some(Value::Text(text)), _) => {
            let more = if text.chars().nth(SHORT).is_some() { "…" } else { "" };
            let text: String = text.chars().take(SHORT).flat_map(plain).collect();
            format!("'{}{more}'", text.replace('\'', "''"))
        }
        (Some(Value::Ipv4(address)), _) => format!("'{address}'"),
        (Some(Value::Mac(octets)), _) => format!("'{}'", address::show(Type::Mac, &octets)),
        (Some(Value::Ipv6(address)), _) => format!("'{address}'"),
        (Some(Value::Ip(address)), _) => format!("'{}'", address.to_canonical()),
        (None, Cell::Word(word)) => word.to_string(),
        (None, Cell::Wide(wide)) => wide.to_string(),
        (Some(Value::Binary(bytes)), _) | (None, Cell::Bytes(bytes)) => hex(bytes),
    }
}

/// A character that moves no cursor.
fn plain(character: char) -> Vec<char> {
    if character.is_control() { character.escape_default().collect() } else { vec![character] }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::predicate::translate;
    use datafusion::common::{Column, ScalarValue};
    use datafusion::logical_expr::{Expr, lit};
    use holdfast_attributes::Schema;

    fn column(name: &str) -> Expr {
        Expr::Column(Column::from_name(name))
    }

    #[test]
    fn conditions_are_shown_with_names_and_values() {
        let texts =
            ["port:uint=json:p", "temp:float=json:t", "up:bool=json:u", "src:ip=json:s", "host:text=json:h"];
        let columns = Columns::new(&Schema::parse(&texts.join("\n")).unwrap());
        let time = ScalarValue::TimestampNanosecond(Some(1_795_169_100_250_000_000), Some("UTC".into()));
        let address = |last: u8| {
            let bytes = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, last];
            lit(ScalarValue::FixedSizeBinary(16, Some(bytes.to_vec())))
        };
        for (expression, shown) in [
            (column("port").eq(lit(443u64)), "port = 443"),
            (column("port").not_eq(lit(443u64)), "port <> 443"),
            (column("port").gt(lit(13_846u64)), "port > 13846"),
            (column("port").between(lit(5u64), lit(9u64)), "port between 5 and 9"),
            (column("port").in_list(vec![lit(80u64), lit(443u64)], false), "port in (80, 443)"),
            (column("port").in_list(vec![lit(80u64), lit(443u64)], true), "port not in (80, 443)"),
            (
                column("port").in_list((0..20u64).map(|port| lit(port * 2)).collect(), false),
                "port in (0, 2, 4, 6, 8, 10, 12, 14, 12 more)",
            ),
            (column("temp").eq(lit(0.0)), "temp = 0"),
            (column("temp").lt_eq(lit(-2.5)), "temp <= -2.5"),
            (column("temp").gt(lit(-2.5)), "temp > -2.5"),
            (column("temp").not_eq(lit(-2.5)), "temp <> -2.5"),
            (column("temp").eq(lit(f64::NAN)), "temp = NaN"),
            (column("up").is_true(), "up = true"),
            (column("host").eq(lit("o'clock\n")), "host = 'o''clock\\n'"),
            (column("host").is_null(), "host is null"),
            (column("src").between(address(0), address(255)), "src between '10.0.0.0' and '10.0.0.255'"),
            (column("time").gt_eq(lit(time)), "time >= '2026-11-20T10:05:00.250Z'"),
            (
                column("port").gt(lit(1u64)).and(column("host").eq(lit("a")).or(column("up").is_true())),
                "port > 1 and (host = 'a' or up = true)",
            ),
            (lit(false), "false"),
        ] {
            assert_eq!(translate(&expression, &columns).unwrap().shown(&columns), shown);
        }
    }
}
