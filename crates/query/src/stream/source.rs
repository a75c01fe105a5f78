//! Seam between a stream as a table and the recording that has its elements: a ring, later a dataset.
//!
//! A [`StreamSource`] plans a scan, a [`SegmentScan`] shares its segments among threads, a [`SegmentReader`]
//! prunes and reads them, and a [`Chunk`] gives columns and payloads of the elements in it. Dispatch is dynamic
//! per segment, chunk and column, never per element. Segments are pruned with [`crate::predicate`].

use super::column_builder::ColumnBuilder;
use super::pruning_report::PruningReport;
use super::scan_spec::{ScanSpec, StreamCutoff};
use datafusion::arrow::error::ArrowError;
use datafusion::error::{DataFusionError, Result};
use holdfast_base::{Ordinal, StreamId, Timestamp};
use holdfast_format::{OwnCells, Packed};
use std::collections::HashMap;

/// Recording whose streams can be scanned. Its methods may block.
pub trait StreamSource: Send + Sync {
    /// Plans a scan: finds the segments that may hold wanted elements.
    fn plan(&self, request: ScanRequest) -> Result<ScanPlan>;

    /// Surveys the segments of a stream that may hold elements from an ordinal on.
    fn survey(&self, stream: StreamId, from: Ordinal) -> Result<StreamSurvey>;

    /// Returns the ordinals that the next elements of all streams get, at one instant; `None` if no stream grows.
    fn next_ordinals(&self) -> Result<Option<HashMap<StreamId, Ordinal>>>;
}

/// Scan to plan, and the query that it belongs to.
#[derive(Clone, Debug)]
pub struct ScanRequest {
    /// Wanted elements and columns.
    pub spec: ScanSpec,
    /// Cutoff of the query, which replaces `spec` in segments that reach beyond it.
    pub cutoff: Option<StreamCutoff>,
    /// Number of scans in the query, which may all run at once.
    pub scans: usize,
    /// True if the query is explained, not executed.
    pub explain: bool,
}

/// Planned scan.
pub struct ScanPlan {
    /// Segments, shared by the threads of the scan.
    pub scan: Box<dyn SegmentScan>,
    /// Pruning figures for `EXPLAIN`.
    pub report: PruningReport,
    /// Maximum number of threads, at most one per segment.
    pub threads: usize,
    /// Average payload bytes of an element, if payloads are wanted; else 0.
    pub payload: u64,
}

/// Segments of a scan, each of which is read by one of its threads.
pub trait SegmentScan: Send + Sync {
    /// Opens the reader of one of `threads` threads.
    fn reader(&self, threads: usize) -> Result<Box<dyn SegmentReader + '_>>;

    /// Returns a scan of the same segments, from the first one on.
    fn again(&self) -> Box<dyn SegmentScan>;
}

/// Consumer of the chunks of a segment, given the specification that applies to them.
pub type ChunkSink<'a> = dyn FnMut(&ScanSpec, &mut dyn Chunk) -> Result<(), ScanStop> + 'a;

/// Reader of segments in one thread of a scan.
pub trait SegmentReader {
    /// Reads the next segment: skips it if statistics exclude it, else gives its chunks that may hold wanted elements
    /// to `sink`. Returns false if no segment is left, or if the sink has enough.
    fn next(&mut self, sink: &mut ChunkSink<'_>) -> Result<bool>;

    /// Returns the work done so far.
    fn counters(&self) -> ScanCounters;
}

/// Some elements of a segment. Columns are named by their place in the table.
pub trait Chunk {
    /// Returns for each element whether it is complete; others are no results.
    fn complete(&self) -> Vec<bool>;

    /// Returns the cells of a column without nulls as they are packed, if a predicate can be evaluated on them.
    fn packed(&self, place: usize) -> Result<Option<Packed<'_>>, ScanStop>;

    /// Decodes a column other than the payload; `None` if all its values are null. Called once per column.
    fn column(&self, place: usize) -> Result<Option<DecodedColumn>, ScanStop>;

    /// Returns the payload bytes of each element.
    fn payload_sizes(&self) -> Vec<u64>;

    /// Appends the payloads of the picked elements.
    fn payloads(&mut self, picked: &[bool], payloads: &mut ColumnBuilder) -> Result<(), ScanStop>;

    /// Returns the work of the thread so far, that for this chunk included.
    fn counters(&self) -> ScanCounters;
}

/// Cells of one column of a chunk, and which of them are null (`None`: not any).
pub type DecodedColumn = (OwnCells, Option<Vec<bool>>);

/// Reason for which the rest of a segment is not read.
#[derive(Debug)]
pub enum ScanStop {
    /// The segment has expired.
    Expired,
    /// The segment did not pass a check: place and cause.
    Damaged(String),
    /// The query ends with this error.
    Failed(DataFusionError),
    /// No more elements are wanted.
    Enough,
}

impl From<ArrowError> for ScanStop {
    fn from(error: ArrowError) -> Self {
        Self::Failed(error.into())
    }
}

/// Work of one thread of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanCounters {
    /// Segments that bounds and filters excluded.
    pub pruned: u64,
    /// Excluded segments of which nothing was read: statistics in memory sufficed.
    pub unread: u64,
    /// Segments that were read.
    pub searched: u64,
    /// Bytes read from the recording.
    pub bytes: u64,
    /// Bytes read from copies on an index drive.
    pub copied: u64,
}

/// Surveys report the ends of a stream only if it has more segments: fewer are scanned as fast as surveyed.
pub const FEW_SEGMENTS: usize = 16;

/// Extent of a stream from an ordinal on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSurvey {
    /// Segments that may hold elements from the ordinal on.
    pub segments: usize,
    /// Segments of the recording, of any stream.
    pub all: usize,
    /// Ends of the stream in these segments; `None` if they are unknown, or if there are at most [`FEW_SEGMENTS`].
    pub ends: Option<StreamEnds>,
}

/// Ends of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamEnds {
    /// Arrival of the oldest element.
    pub oldest: Timestamp,
    /// Arrival of the newest element.
    pub newest: Timestamp,
    /// Ordinal of the next element, if segments can be excluded by ordinals without I/O.
    pub next: Option<Ordinal>,
}
