//! Attribute columns: the cells of elements (`cells`), and the blocks that they become in a slot (`block`). What a cell
//! means, and where it comes from, is the schema's.

mod block;
mod cells;

pub use block::{Column, ColumnWriter, OwnCells};
pub use cells::{CellBuffer, Cells, Class, Classes, MAX_COLUMNS, MAX_TEXT};
