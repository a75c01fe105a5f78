//! Tables about the ring itself: `streams`, `slots`, `holds` and `gaps`, read from the ring when a query
//! scans them.

mod lazy_table;
mod rows;
mod table_builder;

pub use lazy_table::LazyTable;
pub use rows::{gaps, holds, slots, streams};

use datafusion::catalog::TableProvider;
use std::sync::Arc;

/// Tables and their names.
pub type Tables = Vec<(String, Arc<dyn TableProvider>)>;
