//! A stream as a table: pruned by bounds and filters, read by index columns, payloads last.

mod arrays;
mod blocks;
mod chosen;
mod exec;
mod few;
mod known;
mod list;
mod moment;
mod needs;
mod open;
mod payload;
mod rest;
mod rows;
mod slot;
mod table;
mod trouble;
mod wants;
mod ways;

pub use arrays::Column as ArrayColumn;
pub(crate) use chosen::Explained;
pub(crate) use exec::{Fold, StreamExec};
pub(crate) use moment::{Looks, Moment};
pub(crate) use rest::takes_payload;
pub use table::StreamTable;
pub use trouble::{Missed, Trouble};
pub use wants::LinkTypes;
pub use ways::{OpenRing, Ways};
