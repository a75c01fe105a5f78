//! Cells as text for comparison in tests; nulls as `-`.

use holdfast_attributes::Schema;
use holdfast_format::{CellBuffer, MAX_TEXT};

/// Room for the cells of one element.
pub fn buffers(schema: &Schema) -> Vec<CellBuffer> {
    schema.classes().iter().map(|class| CellBuffer::new(class, 1, MAX_TEXT)).collect()
}

/// The cells number `at` of all columns.
pub fn cells_at(columns: &[CellBuffer], at: usize) -> Vec<String> {
    let cell = |column: &CellBuffer| {
        let cell = column.valid()[at].then(|| column.cells().at(at).unwrap());
        cell.map_or("-".to_owned(), |cell| format!("{cell:?}"))
    };
    columns.iter().map(cell).collect()
}

/// The cells of the one element that there is.
pub fn alone(columns: &[CellBuffer]) -> Vec<String> {
    assert!(columns.iter().all(|column| column.len() == 1), "one cell each");
    cells_at(columns, 0)
}
