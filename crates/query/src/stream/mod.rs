//! A stream as a table: pruned by bounds and filters, read by index columns, payloads last.

mod block_selection;
mod column_blocks;
mod column_builder;
mod exec;
mod open_slot;
mod payload;
mod pruning_report;
mod pruning_stats;
mod read_plan;
mod reader_pool;
mod residual_filter;
mod rows;
mod scan_cutoff;
mod scan_diagnostics;
mod scan_spec;
mod slot_queue;
mod slot_scan;
mod table;

pub use column_builder::ColumnBuilder;
pub(crate) use exec::{BatchFold, StreamExec};
pub(crate) use pruning_report::ExplainOnly;
pub use reader_pool::{OpenRing, ReaderPool};
pub(crate) use residual_filter::takes_payload;
pub(crate) use scan_cutoff::{ScanCutoff, StreamScans};
pub use scan_diagnostics::{ScanDiagnostics, SkippedData};
pub use scan_spec::LinkTypes;
pub use table::StreamTable;
