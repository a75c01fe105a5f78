//! Helpers of the tests: extraction of single elements, and values read back from buffers.
#![allow(dead_code, missing_docs, unreachable_pub, reason = "not every test needs all of it")]

pub mod packets;

use holdfast_attributes::{Cell, Element, Extractor, Outcome, Schema, Type, Value};
use holdfast_base::Timestamp;
use holdfast_format::{CellBuffer, Cells, MAX_TEXT};
use std::net::IpAddr;
use std::path::PathBuf;

pub fn schema(texts: &[&str]) -> Schema {
    Schema::typed(texts).unwrap_or_else(|error| panic!("{error}"))
}

pub fn buffers(schema: &Schema, cells: usize) -> Vec<CellBuffer> {
    schema.classes().iter().map(|class| CellBuffer::new(class, cells, cells * MAX_TEXT)).collect()
}

/// The cell number `at`, if it is none.
pub fn cell(buffer: &CellBuffer, at: usize) -> Option<Cell<'_>> {
    buffer.valid()[at].then(|| match buffer.cells() {
        Cells::Words(words) => Cell::Word(words[at]),
        Cells::Wide(wide) => Cell::Wide(wide[at]),
        Cells::Bytes(ends, bytes) => {
            let start = if at == 0 { 0 } else { ends[at - 1] as usize };
            Cell::Bytes(&bytes[start..ends[at] as usize])
        }
    })
}

/// A value as people would write it; nothing for a null.
pub fn shown(kind: Type, cell: Option<Cell<'_>>) -> String {
    let Some(cell) = cell else { return String::new() };
    match Value::from_cell(kind, cell).unwrap_or_else(|| panic!("{cell:?} is no {kind}")) {
        Value::Int(value) | Value::Time(Timestamp(value)) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Text(value) => value.to_owned(),
        Value::Binary(value) => format!("{value:02x?}"),
        Value::Mac(value) => value.map(|byte| format!("{byte:02x}")).join(":"),
        Value::Ipv4(value) | Value::Ip(IpAddr::V4(value)) => value.to_string(),
        Value::Ipv6(value) | Value::Ip(IpAddr::V6(value)) => value.to_string(),
    }
}

/// All attributes of one element, and what came of it.
pub fn read(schema: &Schema, element: &Element<'_>) -> (Vec<String>, Outcome) {
    let mut cells = buffers(schema, 1);
    let outcome = Extractor::new(schema).extract(element, &mut cells);
    let values = schema.attributes().iter().zip(&cells).map(|(attribute, buffer)| {
        assert_eq!(buffer.len(), 1, "{attribute}");
        shown(attribute.kind(), cell(buffer, 0))
    });
    (values.collect(), outcome)
}

/// A real file, where there are such.
pub fn real(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("HOLDFAST_TEST_DATA").map(|data| PathBuf::from(data).join(name));
    let path = path.filter(|path| path.exists());
    if path.is_none() {
        eprintln!("SKIPPED: there is no {name} in HOLDFAST_TEST_DATA");
    }
    path
}
