//! A stream as a table: pruned by bounds and filters, read by index columns, payloads last. The recording is behind
//! [`StreamSource`].

mod chunk_scan;
mod column_builder;
mod exec;
mod pruning_report;
mod residual_filter;
mod scan_cutoff;
mod scan_diagnostics;
mod scan_spec;
mod source;
mod table;
mod union;

pub(crate) use chunk_scan::{DecodedColumns, pick};
pub use column_builder::ColumnBuilder;
pub(crate) use exec::{BatchFold, StreamExec};
pub(crate) use pruning_report::ExplainOnly;
pub use pruning_report::PruningReport;
pub(crate) use residual_filter::takes_payload;
pub(crate) use scan_cutoff::{ScanCutoff, StreamScans};
pub use scan_diagnostics::{IncompleteAnswer, ScanDiagnostics, SkippedData};
pub use scan_spec::{ScanSpec, StreamCutoff};
pub use source::{
    Chunk, ChunkSink, DecodedColumn, FEW_SEGMENTS, ScanCounters, ScanPlan, ScanRequest, ScanStop,
    SegmentReader, SegmentScan, StreamEnds, StreamSource, StreamSurvey,
};
pub use table::StreamTable;
pub use union::{OrdinalRuns, UnionMember, UnionSource};
