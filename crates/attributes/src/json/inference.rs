//! Inference of a schema from the first documents of a stream: their fields, and types that hold their values.
//!
//! A pure function of the documents, in order. When enough of them were seen is decided elsewhere.

use super::JsonSpan;
use super::convert::decoded;
use super::walk::{Nesting, Walk};
use crate::schema::RESERVED;
use crate::{Attribute, EVENT_TIME, From, MAX_DATA, Path, Schema, Type};
use holdfast_base::MAX_NAME;

/// Fields that are remembered at most: more than a schema may have, since some have no type yet.
const MAX_FIELDS: usize = 256;
/// Bytes of a path that is remembered: an attribute may not be much longer.
const MAX_PATH: usize = 256;

/// Names of fields that are told at most.
const MAX_TOLD: usize = 16;

/// Fields of the documents seen so far.
#[derive(Clone, Debug, Default)]
pub struct Inference {
    fields: Vec<Field>,
    /// True if documents had further fields, or fields with longer paths, than are remembered.
    forgot: bool,
    nesting: Nesting,
}

/// A scalar field of some document.
#[derive(Clone, Debug)]
struct Field {
    keys: Vec<String>,
    /// The type that holds all its values; `None` while all are null.
    kind: Option<Type>,
}

impl Inference {
    /// Takes the fields of a document into account. False if the bytes are no JSON object; an element of more than
    /// [`MAX_DATA`] bytes is none, either.
    pub fn look(&mut self, document: &[u8]) -> bool {
        if document.len() > MAX_DATA {
            return false;
        }
        let Ok(text) = std::str::from_utf8(document) else { return false };
        let mut seen: Vec<(Vec<String>, Option<Type>)> = Vec::new();
        let mut forgot = false;
        let mut visit = |keys: &[&[u8]], found: JsonSpan| {
            let kind = match found {
                JsonSpan::Nothing | JsonSpan::Container(..) => None,
                JsonSpan::Bool(_) => Some(Type::Bool),
                JsonSpan::Number(from, to) => text.get(from..to).map(number_type),
                JsonSpan::Text(..) => Some(Type::Text),
            };
            let bytes: usize = keys.iter().map(|key| key.len()).sum();
            if bytes <= MAX_PATH && seen.len() < MAX_FIELDS {
                let key = |key: &&[u8]| Some(decoded(std::str::from_utf8(key).ok()?)?.into_owned());
                seen.extend(keys.iter().map(key).collect::<Option<Vec<_>>>().map(|keys| (keys, kind)));
            } else {
                forgot = true;
            }
        };
        if !Walk::new(document, false, &mut [], &mut self.nesting).fields(&mut visit) {
            return false;
        }
        for (keys, kind) in seen {
            if let Some(field) = self.fields.iter_mut().find(|field| field.keys == keys) {
                field.kind = common_type(field.kind, kind);
            } else if self.fields.len() < MAX_FIELDS {
                self.fields.push(Field { keys, kind });
            } else {
                forgot = true;
            }
        }
        self.forgot |= forgot;
        true
    }

    /// True while there is no field with a value.
    pub fn is_empty(&self) -> bool {
        self.fields.iter().all(|field| field.kind.is_none())
    }

    /// The schema that begins with `explicit` and goes on with the fields, in the order of their first appearance, as long
    /// as `fits`. A field that `explicit` reads already is not repeated.
    pub fn schema(&self, explicit: &Schema, fits: impl Fn(&Schema) -> bool) -> Schema {
        let mut schema = explicit.clone();
        for field in &self.fields {
            let Some(kind) = field.kind else { continue };
            let from = From::Json(Path::of_keys(&field.keys));
            if explicit.attributes().iter().any(|attribute| *attribute.from() == from) {
                continue;
            }
            let is_taken = |name: &str| {
                RESERVED.contains(&name)
                    || name == EVENT_TIME
                    || schema.attributes().iter().any(|attribute| attribute.name() == name)
            };
            let attribute = Attribute::plain(&name_of(&field.keys, is_taken), kind, from);
            let text = attribute.to_string();
            // A key may have characters that no attribute has.
            if text.parse().ok() != Some(attribute.clone()) {
                continue;
            }
            let mut longer = schema.clone();
            if longer.push(attribute, &text).is_err() || !fits(&longer) {
                break;
            }
            schema = longer;
        }
        schema
    }
}

impl Inference {
    /// Fields with a value that a schema inferred from them does not read, in words; `None` if it reads all. They have no room in
    /// it, or keys that no attribute can have.
    pub fn left_out(&self, schema: &Schema) -> Option<String> {
        let is_read = |path: &Path| {
            let reads = |attribute: &Attribute| matches!(attribute.from(), From::Json(read) if read == path);
            schema.attributes().iter().any(reads)
        };
        let valued = self.fields.iter().filter(|field| field.kind.is_some());
        let paths: Vec<Path> =
            valued.map(|field| Path::of_keys(&field.keys)).filter(|path| !is_read(path)).collect();
        let visible = |path: &Path| {
            let shown = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
            path.to_string().chars().map(shown).collect::<String>()
        };
        let mut told: Vec<String> = paths.iter().take(MAX_TOLD).map(visible).collect();
        match (paths.len().checked_sub(MAX_TOLD).filter(|more| *more > 0), self.forgot) {
            (None, false) => {}
            (Some(more), false) => told.push(format!("{more} more")),
            (_, true) => told.push("further ones".to_owned()),
        }
        (!told.is_empty()).then(|| told.join(", "))
    }
}

/// The type of a number, by how it is written: a later `2.5` must fit where `2.0` was first.
fn number_type(text: &str) -> Type {
    if text.parse::<i64>().is_ok() { Type::Int } else { Type::Float }
}

/// The type that holds the values of both; text for those that have none in common.
fn common_type(one: Option<Type>, other: Option<Type>) -> Option<Type> {
    match (one, other) {
        (None, kind) | (kind, None) => kind,
        (Some(one), Some(other)) if one == other => Some(one),
        (Some(Type::Int | Type::Float), Some(Type::Int | Type::Float)) => Some(Type::Float),
        _ => Some(Type::Text),
    }
}

/// The name of a field: its keys joined by `_`, in small letters, each other character as `_`; with a number where the
/// name is taken.
fn name_of(keys: &[String], is_taken: impl Fn(&str) -> bool) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let mut name: String = keys.join("_").chars().map(plain).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name.truncate(MAX_NAME);
    let base = name.clone();
    let mut number = 2;
    while is_taken(&name) {
        let suffix = format!("_{number}");
        name = base[..base.len().min(MAX_NAME - suffix.len())].to_owned() + &suffix;
        number += 1;
    }
    name
}
