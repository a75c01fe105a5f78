//! JSON attributes: all paths of a schema, read in one pass over the document.
//!
//! The paths are a tree; the walk (`walk.rs`) follows it down and remembers where values stand. Only when the whole document
//! has turned out to be one do they become cells (`convert.rs`). Strings, numbers and escapes are lexed by `hifijson`.

mod convert;
mod inference;
mod lookup;
mod walk;

pub use inference::Inference;
pub use lookup::{JsonLookup, JsonValue};

use crate::unit::TimeUnit;
use crate::{Attribute, Element, Outcome, Path, Step, Type};
use convert::{Converted, convert};
use holdfast_format::{CellBuffer, MAX_TEXT};
use walk::{Nesting, Walk};

/// What is read from documents.
#[derive(Clone, Debug)]
pub(crate) struct Json {
    /// The tree of all paths; the first is its root.
    nodes: Vec<Node>,
    columns: Vec<JsonColumn>,
    nesting: Nesting,
    /// Room for one text without its escapes.
    text: Box<[u8; MAX_TEXT]>,
}

/// A step that some path makes, or the root.
#[derive(Clone, Debug)]
struct Node {
    step: Option<Step>,
    child: Option<usize>,
    sibling: Option<usize>,
    /// Whether it was met in this document, and read. Of keys that are told twice the first counts, and all below it.
    met: bool,
    found: JsonSpan,
}

/// What stands there, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JsonSpan {
    /// Nothing at all, or `null`.
    Nothing,
    /// An object or an array, from where to where.
    Container(usize, usize),
    Bool(bool),
    /// From where to where; of a string what is between its quotes.
    Number(usize, usize),
    Text(usize, usize),
}

#[derive(Clone, Debug)]
struct JsonColumn {
    /// Its number in the schema.
    number: usize,
    node: usize,
    kind: Type,
    unit: TimeUnit,
}

impl Json {
    pub(crate) fn new(paths: &[(usize, &Attribute, &Path)]) -> Self {
        let mut json = Self {
            nodes: vec![Node::new(None)],
            columns: Vec::new(),
            nesting: Nesting::default(),
            text: Box::new([0; MAX_TEXT]),
        };
        for (number, attribute, path) in paths {
            let node = path.steps().iter().fold(0, |node, step| json.child(node, step));
            let (kind, unit) = (attribute.kind(), attribute.time_unit());
            json.columns.push(JsonColumn { number: *number, node, kind, unit });
        }
        json
    }

    /// The node one step below another, made if it is not there.
    fn child(&mut self, parent: usize, step: &Step) -> usize {
        let mut at = self.nodes[parent].child;
        while let Some(node) = at {
            if self.nodes[node].step.as_ref() == Some(step) {
                return node;
            }
            at = self.nodes[node].sibling;
        }
        let new = self.nodes.len();
        self.nodes.push(Node { sibling: self.nodes[parent].child, ..Node::new(Some(step.clone())) });
        self.nodes[parent].child = Some(new);
        new
    }

    /// One cell to each of its columns. Of a document that goes on behind what is looked at, what stands there whole is told; it
    /// is undecodable unless that is all that is asked for.
    pub(crate) fn extract(&mut self, element: &Element<'_>, cells: &mut [CellBuffer], outcome: &mut Outcome) {
        for node in &mut self.nodes {
            (node.met, node.found) = (false, JsonSpan::Nothing);
        }
        let cut = element.size > element.data.len() as u64;
        let data = match std::str::from_utf8(element.data) {
            Ok(text) => text.as_bytes(),
            Err(wrong) if cut => &element.data[..wrong.valid_up_to()],
            Err(_) => &[],
        };
        let whole = Walk::new(data, cut, &mut self.nodes, &mut self.nesting).document();
        let met = |column: &JsonColumn| self.nodes[column.node].met;
        outcome.undecodable |= !(whole || cut && self.columns.iter().all(met));
        for column in &self.columns {
            let Some(into) = cells.get_mut(column.number) else { continue };
            let found = if whole || cut { self.nodes[column.node].found } else { JsonSpan::Nothing };
            match convert(found, data, column.kind, column.unit, &mut self.text) {
                Converted::Cell(cell) => cell.push(into),
                Converted::Null => into.null(),
                Converted::Undecodable => {
                    outcome.undecodable = true;
                    into.null();
                }
                Converted::TooLong => {
                    outcome.too_long += 1;
                    into.null();
                }
            }
        }
    }
}

impl Node {
    fn new(step: Option<Step>) -> Self {
        Self { step, child: None, sibling: None, met: false, found: JsonSpan::Nothing }
    }
}
