//! Attributes: typed values with optional units, and the keys by which conditions compare them.

use crate::condition::lexer;
use crate::ids::Nanos;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;

/// Longest attribute name or author, in bytes.
pub(crate) const MAX_LABEL_BYTES: usize = 255;

/// Longest text value, in bytes: with its name it fits an index entry of `PostgreSQL` (2704 bytes).
pub const MAX_TEXT_BYTES: usize = 2000;

/// Longest unit in bytes, enough for any written unit.
pub(crate) const MAX_UNIT_BYTES: usize = 64;

/// Refusal of an attribute, with its reason and remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use {noun} `{text}`: {reason}; {remedy}")]
pub struct ValueError {
    noun: &'static str,
    text: String,
    reason: &'static str,
    remedy: &'static str,
}

/// Checks a text against a limit of bytes. A NUL cannot be kept in `PostgreSQL`.
pub(crate) fn check_text(noun: &'static str, text: &str, limit: usize) -> Result<(), ValueError> {
    let refuse = |reason, remedy| {
        let text = text.chars().take(80).collect::<String>().escape_debug().to_string();
        Err(ValueError { noun, text, reason, remedy })
    };
    if text.contains('\0') {
        refuse("it contains a NUL character", "leave the NUL out")
    } else if text.len() > limit {
        refuse("it is too long", "shorten it, or store it as an object")
    } else {
        Ok(())
    }
}

/// Finite number in double precision. Negative zero becomes zero, so that equal numbers have equal bits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Finite(f64);

impl Finite {
    /// Checks a number: infinities and NaN are refused.
    pub fn new(number: f64) -> Result<Self, ValueError> {
        if number.is_finite() {
            return Ok(Self(number + 0.0));
        }
        let reason = "it is not a finite number";
        Err(ValueError {
            noun: "number",
            text: number.to_string(),
            reason,
            remedy: "leave the attribute out",
        })
    }

    /// Nearest number that is finite.
    fn clamped(number: f64) -> Self {
        Self(number.clamp(f64::MIN, f64::MAX) + 0.0)
    }

    /// Number as a primitive value.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Finite {
    type Error = ValueError;

    fn try_from(number: f64) -> Result<Self, ValueError> {
        Self::new(number)
    }
}

impl From<Finite> for f64 {
    fn from(number: Finite) -> Self {
        number.0
    }
}

impl PartialEq for Finite {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Finite {}

impl PartialOrd for Finite {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Finite {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Value of an attribute, in one of four types.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum Value {
    /// Text of at most [`MAX_TEXT_BYTES`] bytes.
    Text(String),
    /// Signed integer of 64 bits.
    Integer(i64),
    /// Finite number in double precision.
    Float(Finite),
    /// Time in nanoseconds since 1970 (UTC).
    Time(Nanos),
}

impl Value {
    /// Makes a floating-point value; infinities and NaN are refused.
    pub fn float(number: f64) -> Result<Self, ValueError> {
        Finite::new(number).map(Self::Float)
    }
}

impl Value {
    /// Reads a time as conditions write it, in UTC unless it has a zone.
    pub fn read_time(text: &str) -> Option<Self> {
        lexer::read_time(text).map(Self::Time)
    }

    /// Reads a text as conditions write values: a time or a number if it is one, else the text itself.
    pub fn read(text: &str) -> Self {
        let typed = Self::read_time(text).or_else(|| lexer::read_number(text));
        typed.unwrap_or_else(|| Self::Text(text.to_owned()))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

/// Times as RFC 3339, texts as they are.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(number) => number.fmt(f),
            Self::Float(number) => number.0.fmt(f),
            Self::Time(Nanos(nanos)) => match jiff::Timestamp::from_nanosecond(i128::from(*nanos)) {
                Ok(time) => time.fmt(f),
                Err(_) => write!(f, "{nanos} ns"),
            },
        }
    }
}

/// Attribute of an object or a collection: a triple of name, value and unit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Attribute {
    /// Name, such as `exposure`; an object may have several attributes of one name.
    pub name: String,
    /// Value in one of the four types.
    pub value: Value,
    /// Unit, such as `s` or `MiB`; units of size scale the value in comparisons.
    pub unit: Option<String>,
}

impl Attribute {
    /// Makes an attribute without a unit.
    pub fn new(name: impl Into<String>, value: impl Into<Value>) -> Self {
        Self { name: name.into(), value: value.into(), unit: None }
    }

    /// Makes an attribute of a text: a time, a number, a number with a unit of size such as `1.5 GB`, or the text itself.
    pub fn read(name: impl Into<String>, text: &str) -> Self {
        let split = text.find(|c: char| c == ' ' || c.is_ascii_alphabetic());
        let (number, unit) = text.split_at(split.unwrap_or(text.len()));
        let unit = unit.trim_start_matches(' ');
        match lexer::read_number(number) {
            Some(value) if size_factor(unit).is_some() => Self::new(name, value).with_unit(unit),
            _ => Self::new(name, Value::read(text)),
        }
    }

    /// Adds a unit to this attribute.
    #[must_use]
    pub fn with_unit(mut self, unit: impl Into<String>) -> Self {
        self.unit = Some(unit.into());
        self
    }

    /// Checks the lengths and characters of all parts.
    pub fn check(&self) -> Result<(), ValueError> {
        check_text("attribute name", &self.name, MAX_LABEL_BYTES)?;
        if self.name.is_empty() {
            let (reason, remedy) = ("it is empty", "give the attribute a name");
            return Err(ValueError { noun: "attribute name", text: String::new(), reason, remedy });
        }
        if let Value::Text(text) = &self.value {
            check_text("text", text, MAX_TEXT_BYTES)?;
        }
        self.unit.as_ref().map_or(Ok(()), |unit| check_text("unit", unit, MAX_UNIT_BYTES))
    }

    /// Value that comparisons use: a size in any unit counts in bytes.
    pub fn key(&self) -> Value {
        let factor = self.unit.as_deref().and_then(size_factor).unwrap_or(1);
        match &self.value {
            Value::Integer(number) if factor != 1 => number.checked_mul(factor).map_or_else(
                || Value::Float(Finite::clamped(*number as f64 * factor as f64)),
                Value::Integer,
            ),
            Value::Float(number) if factor != 1 => Value::Float(Finite::clamped(number.0 * factor as f64)),
            other => other.clone(),
        }
    }
}

/// Bytes in a unit of size, such as `kB` or `GiB`.
pub(crate) fn size_factor(unit: &str) -> Option<i64> {
    let (prefix, base) = match (unit.strip_suffix("iB"), unit.strip_suffix('B')) {
        (Some(prefix), _) => (prefix, 1024_i64),
        (None, Some(prefix)) => (prefix, 1000),
        (None, None) => return None,
    };
    let power = match prefix {
        "" if base == 1000 => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    Some(base.pow(power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_typed_attributes() {
        let read = |text| {
            let Attribute { value, unit, .. } = Attribute::read("a", text);
            (value, unit)
        };
        let float = |number| Value::float(number).unwrap();
        for (text, value) in [
            ("12", Value::Integer(12)),
            ("-1.5e3", float(-1500.0)),
            ("2026-11-20T10:05:00Z", Value::Time(Nanos(1_795_169_100_000_000_000))),
            ("2026-11-20T10:05:00", Value::Time(Nanos(1_795_169_100_000_000_000))),
        ] {
            assert_eq!(read(text), (value, None), "{text}");
        }
        assert_eq!(read("1.5 GB"), (float(1.5), Some("GB".to_owned())));
        assert_eq!(read("4KiB"), (Value::Integer(4), Some("KiB".to_owned())));
        for text in ["", "0012", "m31", "12 apples", "+5", "inf", "nan", "2026-99-99T", "-", "1e999", "5é"] {
            assert_eq!(read(text), (Value::from(text), None), "{text}");
        }
    }

    #[test]
    fn sizes_compare_in_bytes() {
        let key = |value, unit: &str| Attribute { name: "size".into(), value, unit: Some(unit.into()) }.key();
        assert_eq!(key(Value::Integer(3), "KiB"), Value::Integer(3072));
        assert_eq!(key(Value::Integer(3), "kB"), Value::Integer(3000));
        assert_eq!(key(Value::float(0.5).unwrap(), "MB"), Value::float(500_000.0).unwrap());
        assert_eq!(key(Value::Integer(i64::MAX), "kB"), Value::float(i64::MAX as f64 * 1000.0).unwrap());
        assert_eq!(key(Value::float(f64::MAX).unwrap(), "PB"), Value::float(f64::MAX).unwrap());
        assert_eq!(key(Value::Integer(3), "s"), Value::Integer(3));
        assert_eq!(size_factor("iB"), None);
    }

    #[test]
    fn numbers_are_finite_and_have_one_zero() {
        assert!(Value::float(f64::NAN).is_err());
        assert_eq!(Finite::new(-0.0).unwrap().get().to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn limits_are_checked() {
        assert!(Attribute::new("", 1).check().is_err());
        assert!(Attribute::new("a", "x\0").check().is_err());
        assert!(Attribute::new("a", "x".repeat(2001).as_str()).check().is_err());
        assert!(Attribute::new("a", "x".repeat(2000).as_str()).with_unit("m").check().is_ok());
    }
}
