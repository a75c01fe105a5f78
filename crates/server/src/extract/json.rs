//! Attributes as JSON: an object whose values are strings, numbers, booleans, or `{"value": …, "unit": "s"}`.

use super::accept;
use holdfast_catalog::{Attribute, Value};
use serde_json::Value as Json;

/// Reads the object that a program of the driver `source` has printed. The error is the reason of the failure.
pub(crate) fn read_json(source: &str, bytes: &[u8]) -> Result<Vec<Attribute>, String> {
    let refuse = |reason: &str| {
        Err(format!("cannot read the attributes: the program's output {reason}; print one JSON object"))
    };
    let Ok(json) = serde_json::from_slice(bytes) else { return refuse("is no JSON") };
    let Json::Object(entries) = json else { return refuse("is no object") };
    let mut attributes = Vec::new();
    for (name, entry) in entries {
        let (value, unit) = match &entry {
            Json::Object(parts) => (parts.get("value").and_then(read_value), parts.get("unit")),
            plain => (read_value(plain), None),
        };
        let unit = unit.filter(|unit| !unit.is_null());
        let Some(value) = value.filter(|_| unit.is_none_or(Json::is_string)) else {
            let name = name.escape_debug();
            return refuse(&format!("has no string, number or boolean as the value of '{name}'"));
        };
        let attribute = Attribute::new(name, value);
        attributes.push(match unit.and_then(Json::as_str) {
            Some(unit) => attribute.with_unit(unit),
            None => attribute,
        });
    }
    Ok(accept(source, attributes))
}

/// Typed value of JSON: strings that are RFC 3339 times become times, booleans become texts.
pub(crate) fn read_value(json: &Json) -> Option<Value> {
    match json {
        Json::String(text) => {
            let time = Value::read_time(text).filter(|_| text.len() > 10);
            Some(time.unwrap_or_else(|| Value::from(text.as_str())))
        }
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Some(Value::Integer(integer)),
            None => Value::float(number.as_f64()?).ok(),
        },
        Json::Bool(flag) => Some(Value::from(if *flag { "true" } else { "false" })),
        Json::Null | Json::Array(_) | Json::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_typed_and_others_refused() {
        let json = br#"{"a": 1, "b": 2.5, "c": "m31", "d": true, "T": "2026-11-20T10:05:00Z",
            "e": {"value": 3, "unit": "GiB"}, "f": {"value": "x", "unit": null}}"#;
        let mut expected = [
            Attribute::new("x.a", 1),
            Attribute::new("x.b", Value::float(2.5).unwrap()),
            Attribute::new("x.c", "m31"),
            Attribute::new("x.d", "true"),
            Attribute::new("x.t", Value::read_time("2026-11-20T10:05:00Z").unwrap()),
            Attribute::new("x.e", 3).with_unit("GiB"),
            Attribute::new("x.f", "x"),
        ];
        let mut read = read_json("x", json).unwrap();
        read.sort();
        expected.sort();
        assert_eq!(read, expected);
        let bad = [
            "",
            "[]",
            "1",
            r#"{"a": null}"#,
            r#"{"a": [1]}"#,
            r#"{"a": {}}"#,
            r#"{"a": {"value": 1, "unit": 2}}"#,
        ];
        for bad in bad {
            assert!(read_json("x", bad.as_bytes()).is_err(), "{bad}");
        }
    }
}
