//! Notation of attributes on the command line: `NAME=VALUE` or `NAME=VALUE[UNIT]`.

use holdfast_catalog::{Attribute, Value};
use holdfast_remote::NewAttribute;
use std::str::FromStr;

/// Attribute as it was typed. Values are typed as conditions write them: a time, a number, a size with its unit, or a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AttributeText {
    attribute: Attribute,
    /// Value as it was typed, if an upload can carry it: it has no unit in brackets.
    plain: Option<String>,
}

impl AttributeText {
    /// Name of the attribute, of which there may be several.
    pub(crate) fn name(&self) -> &str {
        &self.attribute.name
    }

    /// Pair of an upload's metadata; `None` for an attribute that an upload cannot carry.
    pub(crate) fn metadata(&self) -> Option<(String, String)> {
        let plain = self.plain.clone()?;
        Some((format!("attribute.{}", self.attribute.name), plain))
    }

    /// Attribute of a request to the catalog.
    pub(crate) fn request(&self) -> NewAttribute {
        let Attribute { name, value, unit } = self.attribute.clone();
        let value = match value {
            Value::Text(text) => text.into(),
            Value::Integer(number) => number.into(),
            Value::Float(number) => number.get().into(),
            time @ Value::Time(_) => time.to_string().into(),
        };
        NewAttribute { name, value, unit }
    }
}

impl AttributeText {
    /// Attribute of a name with the text of its value, and perhaps its unit.
    pub(crate) fn read(name: &str, value: &str, unit: Option<&str>) -> Result<Self, String> {
        let (attribute, plain) = match unit {
            Some(unit) => (Attribute::new(name, Value::read(value)).with_unit(unit), None),
            None => (Attribute::read(name, value), Some(value.to_owned())),
        };
        attribute.check().map_err(|error| error.to_string())?;
        // A header of an upload separates keys and values by spaces, and pairs by commas.
        let is_key = name.chars().all(|c| c.is_ascii_graphic() && c != ',');
        Ok(Self { attribute, plain: plain.filter(|_| is_key) })
    }
}

impl FromStr for AttributeText {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no attribute: write NAME=VALUE or NAME=VALUE[UNIT]");
        let (name, value) = text.split_once('=').ok_or_else(wrong)?;
        match value.strip_suffix(']').and_then(|value| value.rsplit_once('[')) {
            Some((value, unit)) if !unit.is_empty() => Self::read(name, value, Some(unit)),
            _ => Self::read(name, value, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_typed_and_units_read() {
        let read = |text: &str| text.parse::<AttributeText>().unwrap();
        let wanted = |name: &str, value: serde_json::Value, unit: Option<&str>| NewAttribute {
            name: name.to_owned(),
            value,
            unit: unit.map(str::to_owned),
        };
        assert_eq!(read("target=m31").request(), wanted("target", "m31".into(), None));
        assert_eq!(read("run=12").request(), wanted("run", 12.into(), None));
        assert_eq!(read("exposure=1.5[s]").request(), wanted("exposure", 1.5.into(), Some("s")));
        assert_eq!(read("disk=2 GB").request(), wanted("disk", 2.into(), Some("GB")));
        assert_eq!(read("day=2026-11-20").request(), wanted("day", "2026-11-20T00:00:00Z".into(), None));
        assert_eq!(read("a=b=c").metadata(), Some(("attribute.a".to_owned(), "b=c".to_owned())));
        assert_eq!(read("exposure=1[s]").metadata(), None);
        assert_eq!(read("my name=1").metadata(), None);
        for bad in ["", "x", "=1", &format!("x={}", "y".repeat(3000))] {
            assert!(bad.parse::<AttributeText>().is_err(), "{bad}");
        }
    }
}
