//! JSON lines of an import: an object a line, whose member `path` names the entry, and every other one an attribute.

use super::lines::Lines;
use super::{LineError, Values};
use holdfast_catalog::{Attribute, Value as Typed};
use holdfast_remote::NewAttribute;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;
use std::io::BufRead;

/// Reader of JSON lines.
pub(super) struct JsonLines<R> {
    lines: Lines<R>,
}

impl<R: BufRead> JsonLines<R> {
    pub(super) fn new(lines: Lines<R>) -> Self {
        Self { lines }
    }

    /// Next line: its number, its bytes and its values.
    pub(super) fn next(&mut self) -> Result<Option<(u64, usize, Values)>, LineError> {
        loop {
            let Some(line) = self.lines.next()? else { return Ok(None) };
            if !line.trim().is_empty() {
                let values = read(&line).map_err(|reason| self.lines.error(reason))?;
                return Ok(Some((self.lines.number(), line.len(), values)));
            }
        }
    }
}

/// Members of an object in their order; a second one of the same name is an error.
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members: Vec<(String, Value)> = Vec::new();
                let mut names = std::collections::BTreeSet::new();
                while let Some((name, value)) = map.next_entry::<String, Value>()? {
                    if !names.insert(name.clone()) {
                        return Err(A::Error::custom(format_args!("the member `{name}` is there twice")));
                    }
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Read)
    }
}

/// Values of one line.
fn read(line: &str) -> Result<Values, String> {
    let Members(members) = serde_json::from_str(line).map_err(|error| {
        let text = error.to_string();
        // The text ends with a place in the line, whose own number is always 1.
        let (reason, _) = text.rsplit_once(" at line ").unwrap_or((&text, ""));
        format!("{reason} at column {}; write one object a line", error.column())
    })?;
    let mut values = Values { path: String::new(), added: Vec::new(), emptied: Vec::new() };
    let mut has_path = false;
    for (name, value) in members {
        match value {
            Value::String(path) if name == "path" => (values.path, has_path) = (path, true),
            Value::Null => values.emptied.push(name),
            Value::Array(all) => {
                if all.is_empty() {
                    values.emptied.push(name.clone());
                }
                for value in all {
                    values.added.push(attribute(&name, value)?);
                }
            }
            value => values.added.push(attribute(&name, value)?),
        }
    }
    if has_path { Ok(values) } else { Err("it has no text `path`; name the entry by it".to_owned()) }
}

/// Attribute of a member, whose value is a text, a number, a boolean, or one of these with a unit.
fn attribute(name: &str, value: Value) -> Result<NewAttribute, String> {
    let wrong = || {
        format!(
            "`{name}` has no value that an attribute can have; write a text, a number, a boolean, \
             {{\"value\": V, \"unit\": U}}, or a list of these"
        )
    };
    let (value, unit) = match value {
        Value::Object(mut parts) => {
            let (value, unit) = (parts.remove("value").ok_or_else(wrong)?, parts.remove("unit"));
            let unit = match unit {
                Some(Value::String(unit)) => Some(unit),
                None | Some(Value::Null) => None,
                Some(_) => return Err(wrong()),
            };
            if !parts.is_empty() {
                return Err(wrong());
            }
            (value, unit)
        }
        value => (value, None),
    };
    let text = match &value {
        Value::String(text) => text.as_str(),
        Value::Number(_) | Value::Bool(_) => "",
        Value::Null | Value::Array(_) | Value::Object(_) => return Err(wrong()),
    };
    let checked = Attribute { name: name.to_owned(), value: Typed::from(text), unit: unit.clone() };
    checked.check().map_err(|error| error.to_string())?;
    Ok(NewAttribute { name: name.to_owned(), value, unit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_become_attributes() {
        let values =
            read(r#"{"path":"/a/b","t":"x","n":[1,2.5],"u":{"value":3,"unit":"s"},"gone":null,"none":[]}"#)
                .unwrap();
        let new = |name: &str, value: Value, unit: Option<&str>| NewAttribute {
            name: name.to_owned(),
            value,
            unit: unit.map(str::to_owned),
        };
        let added = [
            new("t", "x".into(), None),
            new("n", 1.into(), None),
            new("n", 2.5.into(), None),
            new("u", 3.into(), Some("s")),
        ];
        assert_eq!((values.path.as_str(), values.added), ("/a/b", added.to_vec()));
        assert_eq!(values.emptied, ["gone", "none"]);
    }

    #[test]
    fn other_lines_are_refused_with_the_reason() {
        for (line, reason) in [
            ("{}", "has no text `path`"),
            (r#"{"path":1}"#, "has no text `path`"),
            (r#"{"path":"/a","x":{"v":1}}"#, "`x` has no value"),
            (r#"{"path":"/a","x":[[1]]}"#, "`x` has no value"),
            (r#"{"path":"/a","x":1,"x":2}"#, "the member `x` is there twice at column"),
            (r#"{"path":"/a","":1}"#, "is empty"),
            (r#"{"path":"/a""#, "at column 12"),
            ("[1]", "expected an object"),
        ] {
            let refused = read(line).unwrap_err();
            assert!(refused.contains(reason) && refused.contains("; "), "{line}: {refused}");
        }
    }
}
