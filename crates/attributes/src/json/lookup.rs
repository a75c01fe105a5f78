//! Lookup of the value at one path of a document, for searches. A document may be longer than what extraction looks at.

use super::convert::{decoded, whole_number};
use super::walk::{Nesting, Walk};
use super::{JsonSpan, Node};
use crate::Path;
use std::borrow::Cow;

/// Lookup of one path in many documents.
#[derive(Clone, Debug)]
pub struct JsonLookup {
    /// The root and one node for each step.
    nodes: Vec<Node>,
    nesting: Nesting,
}

/// A value in a document, as it is written there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonValue<'a> {
    /// The literal `true` or `false`.
    Bool(bool),
    /// A number as it is written.
    Number(&'a str),
    /// A string without its quotes, with its escapes.
    String(&'a str),
    /// An object or an array, whole.
    Container(&'a str),
}

impl JsonLookup {
    /// Lookup of the values at `path`.
    pub fn new(path: &Path) -> Self {
        let steps = path.steps().iter().map(|step| Node::new(Some(step.clone())));
        let mut nodes: Vec<Node> = std::iter::once(Node::new(None)).chain(steps).collect();
        let last = nodes.len() - 1;
        for (number, node) in nodes.iter_mut().enumerate().take(last) {
            node.child = Some(number + 1);
        }
        Self { nodes, nesting: Nesting::default() }
    }

    /// Finds the value. `None`: the bytes are no document, the path leads nowhere, or to `null`.
    pub fn find<'a>(&mut self, document: &'a [u8]) -> Option<JsonValue<'a>> {
        let text = std::str::from_utf8(document).ok()?;
        for node in &mut self.nodes {
            (node.met, node.found) = (false, JsonSpan::Nothing);
        }
        if !Walk::new(document, false, &mut self.nodes, &mut self.nesting).document() {
            return None;
        }
        match self.nodes.last()?.found {
            JsonSpan::Nothing => None,
            JsonSpan::Bool(truth) => Some(JsonValue::Bool(truth)),
            JsonSpan::Number(from, to) => text.get(from..to).map(JsonValue::Number),
            JsonSpan::Text(from, to) => text.get(from..to).map(JsonValue::String),
            JsonSpan::Container(from, to) => text.get(from..to).map(JsonValue::Container),
        }
    }
}

impl<'a> JsonValue<'a> {
    /// The text of any value: that of a string without quotes and escapes, others as they are written.
    pub fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Bool(truth) => Some(Cow::Borrowed(if truth { "true" } else { "false" })),
            Self::Number(text) | Self::Container(text) => Some(Cow::Borrowed(text)),
            Self::String(raw) => decoded(raw),
        }
    }

    /// The text of a string; other values have none.
    pub fn string(self) -> Option<Cow<'a, str>> {
        match self {
            Self::String(raw) => decoded(raw),
            _ => None,
        }
    }

    /// A whole number of 64 bits; `1e3` is one.
    pub fn int(self) -> Option<i64> {
        match self {
            Self::Number(text) => whole_number(text),
            _ => None,
        }
    }

    /// A number that is finite as a floating-point number.
    pub fn float(self) -> Option<f64> {
        match self {
            Self::Number(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }

    /// The literal `true` or `false`; other values are none.
    pub fn bool(self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(truth),
            _ => None,
        }
    }
}
