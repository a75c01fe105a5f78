//! An attribute: name, type, origin, unit and description; its text form and parser.

use crate::cursor::Cursor;
use crate::schema::{EVENT_TIME, RESERVED};
use crate::unit::TimeUnit;
use crate::{From, Problem, SchemaError, Type};
use holdfast_base::MAX_NAME;
use std::fmt;
use std::str::FromStr;

/// Bytes of an attribute's text: what people read in one go, and few enough that 32 such fit a schema.
pub const MAX_ATTRIBUTE: usize = 512;

/// Bytes of a unit.
pub const MAX_UNIT: usize = 32;

/// Bytes of a comment.
pub const MAX_COMMENT: usize = 256;

/// One attribute of a stream's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute {
    name: String,
    kind: Type,
    from: From,
    unit: Option<String>,
    comment: Option<String>,
}

impl Attribute {
    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of which type its values are.
    pub fn kind(&self) -> Type {
        self.kind
    }

    /// Where they come from.
    pub fn from(&self) -> &From {
        &self.from
    }

    /// What they count. For a time that is read from a number: what that counts.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// What people are to know of it.
    pub fn comment(&self) -> Option<&str> {
        self.comment.as_deref()
    }

    /// What a number counts that is a time.
    pub(crate) fn time_unit(&self) -> TimeUnit {
        self.unit().and_then(TimeUnit::named).unwrap_or_default()
    }

    /// Bytes of its values where it is a number that no element of so many bytes lacks.
    pub(crate) fn bytes_in(&self, frame: u32) -> Option<usize> {
        match &self.from {
            From::At(place) if place.end() <= frame as usize => place.bytes_of(self.kind),
            _ => None,
        }
    }

    /// One that has only what it cannot do without.
    pub(crate) fn plain(name: &str, kind: Type, from: From) -> Self {
        Self { name: name.to_owned(), kind, from, unit: None, comment: None }
    }
}

/// The name at the start of an attribute.
fn name(cursor: &mut Cursor<'_>) -> Result<String, SchemaError> {
    let name = cursor.take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if name.is_empty() || name.len() > MAX_NAME || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(cursor.wrong_at(0, Problem::Name));
    }
    if RESERVED.contains(&name) {
        return Err(cursor.wrong_at(0, Problem::Reserved(name.to_owned())));
    }
    Ok(name.to_owned())
}

/// A unit or comment of at most so many bytes.
fn said(
    cursor: &mut Cursor<'_>,
    what: &'static str,
    most: usize,
    to: Option<char>,
) -> Result<String, SchemaError> {
    let at = cursor.at();
    let said = cursor.take_while(|c| Some(c) != to);
    if said.is_empty() {
        return Err(cursor.wrong(Problem::Wanted(what)));
    }
    if said.len() > most {
        return Err(cursor.wrong_at(at, Problem::TooLong { what, most }));
    }
    Ok(said.to_owned())
}

impl FromStr for Attribute {
    type Err = SchemaError;

    /// Reads `NAME:TYPE=FROM[,unit=U][,comment=TEXT]`.
    fn from_str(text: &str) -> Result<Self, SchemaError> {
        let mut cursor = Cursor::new(text);
        if text.len() > MAX_ATTRIBUTE {
            return Err(cursor.wrong(Problem::Attribute));
        }
        if let Some((at, _)) = text.char_indices().find(|(_, c)| c.is_control()) {
            return Err(cursor.wrong_at(at, Problem::Control));
        }
        let name = name(&mut cursor)?;
        cursor.expect(":", "`:` and a type, behind a name of a-z, 0-9 and _,")?;
        let at_type = cursor.at();
        let word = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        let kind = Type::named(word);
        let kind = kind.ok_or_else(|| cursor.wrong_at(at_type, Problem::Type(word.to_owned())))?;
        if name == EVENT_TIME && kind != Type::Time {
            return Err(cursor.wrong_at(at_type, Problem::EventTime));
        }
        cursor.expect("=", "`=` and where the value comes from")?;
        let at_from = cursor.at();
        let from = From::parse(&mut cursor)?;
        let gives = from.gives();
        if !gives.contains(&kind) {
            return Err(cursor.wrong_at(at_type, Problem::Gives { from: from.to_string(), gives, kind }));
        }
        let mut attribute = Self { name, kind, from, unit: None, comment: None };
        if cursor.eat(",unit=") {
            let at = cursor.at();
            let unit = said(&mut cursor, "a unit", MAX_UNIT, Some(','))?;
            if kind == Type::Time && !attribute.from.counts_time() {
                return Err(cursor.wrong_at(at_from, Problem::NoUnit(attribute.from.to_string())));
            }
            if kind == Type::Time && TimeUnit::named(&unit).is_none() {
                return Err(cursor.wrong_at(at, Problem::TimeUnit(unit)));
            }
            attribute.unit = Some(unit);
        }
        if cursor.eat(",comment=") {
            attribute.comment = Some(said(&mut cursor, "a comment", MAX_COMMENT, None)?);
        }
        if cursor.is_done() {
            return Ok(attribute);
        }
        Err(cursor.wrong(Problem::Wanted(match (&attribute.unit, &attribute.comment) {
            (None, None) => "`,unit=…`, `,comment=…` or the end",
            _ => "`,comment=…` or the end",
        })))
    }
}

impl fmt::Display for Attribute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}={}", self.name, self.kind, self.from)?;
        if let Some(unit) = &self.unit {
            write!(f, ",unit={unit}")?;
        }
        if let Some(comment) = &self.comment {
            write!(f, ",comment={comment}")?;
        }
        Ok(())
    }
}
