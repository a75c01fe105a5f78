//! Fixture of the attribute targets: all cells of an element, and that there is one of each attribute.

use holdfast_attributes::{Element, Extractor, Schema, Value};
use holdfast_format::{CellBuffer, Cells, MAX_TEXT};

/// A schema of such attributes.
pub(crate) fn schema(texts: &[&str]) -> Schema {
    Schema::typed(texts).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads an element; every attribute has one cell, and that is a value of its type or none. Whether it is undecodable.
pub(crate) fn check(schema: &Schema, element: &Element<'_>) -> bool {
    let buffer = |class| CellBuffer::new(class, 1, MAX_TEXT);
    let mut buffers: Vec<CellBuffer> = schema.classes().iter().map(buffer).collect();
    let outcome = Extractor::new(schema).extract(element, &mut buffers);
    for (attribute, buffer) in schema.attributes().iter().zip(&buffers) {
        assert_eq!(buffer.len(), 1, "{attribute}");
        let cell = match buffer.cells() {
            Cells::Words(words) => holdfast_attributes::Cell::Word(words[0]),
            Cells::Wide(wide) => holdfast_attributes::Cell::Wide(wide[0]),
            Cells::Bytes(_, bytes) => holdfast_attributes::Cell::Bytes(bytes),
        };
        let value = Value::from_cell(attribute.kind(), cell);
        assert!(buffer.valid() == [false] || value.is_some(), "{attribute}: {cell:?}");
    }
    let event = schema.event_time().is_some_and(|at| buffers[at].valid() == [true]);
    assert_eq!(outcome.event_time.is_some(), event);
    outcome.undecodable
}
