//! Attribute columns: one cell (`cell`), the cells of elements in memory (`cells`), the blocks that they become in a slot
//! (`block` reads, `write` and `dictionary` make them, `planes` packs numbers), what a slot can be passed over by (`filter`, `outline`), and
//! which blocks of it (`bounds`, and `rare`). What a cell means, and where it comes from, is the schema's.

mod block;
mod bounds;
mod cell;
mod cells;
mod dictionary;
mod filter;
mod outline;
mod planes;
mod rare;
mod write;

pub use block::{Bits, Block, Blocks, BlocksComing, Packed};
pub use bounds::BlockBounds;
pub use cell::Cell;
pub use cells::{CellBuffer, Cells, Class, Classes, Column, MAX_COLUMNS, MAX_TEXT, OwnCells};
pub use outline::{OpenOutline, Outline};

pub(crate) use block::{bounds_of, place_of};
pub(crate) use bounds::{Shape, Spread, most_bytes, put_bounds};
pub(crate) use filter::{BLOCK_BYTES, Filter};
pub(crate) use outline::{OUTLINE_BYTES, put_outline};
pub(crate) use rare::{Stretches, TOLD_BYTES};
pub(crate) use write::{BESIDE, BlockAddress, ColumnWriter, cell_bytes};
