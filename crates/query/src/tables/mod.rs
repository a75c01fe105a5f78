//! The tables that say something of the ring: `streams`, `slots`, `holds` and `gaps`. What they hold is asked for when a query
//! wants it, and not before.

mod lazy;
mod list;
mod rows;

pub use lazy::Lazy;
pub use rows::{gaps, holds, slots, streams};
