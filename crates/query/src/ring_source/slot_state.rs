//! State of the scan of one slot, which its parts share: the scan itself, its chunks, and payload access.

use super::attribute_reads::LinkTypes;
use crate::stream::{ScanCounters, ScanDiagnostics, ScanSpec, StreamCutoff};
use holdfast_base::Ordinal;
use holdfast_reader::{PlannedSlot, SlotView};
use std::sync::Arc;

/// Scan of one slot.
pub(super) struct SlotScan<'a, 'r> {
    pub(super) view: &'a mut SlotView<'r>,
    /// True if the rows of the slot are available.
    pub(super) has_rows: bool,
    pub(super) spec: &'a ScanSpec,
    /// Cutoff of the query, for a slot that reaches beyond it.
    pub(super) cutoff: Option<&'a StreamCutoff>,
    pub(super) link_types: &'a LinkTypes,
    /// Slots of the whole scan.
    pub(super) planned: &'a [PlannedSlot],
    pub(super) diagnostics: &'a ScanDiagnostics,
    pub(super) counters: &'a mut ScanCounters,
    /// Bytes to report instead of those read, for an open slot: it is in the recorder's memory.
    pub(super) unread_bytes: Option<u64>,
    /// Maximum number of ages by which an element began before the slot that it ends in.
    pub(super) back: &'a mut u64,
    /// Elements that end here and whose beginning has expired: they are incomplete.
    pub(super) torn: Arc<[Ordinal]>,
    pub(super) recorded: RecordedState,
}

/// State of a stream when a slot was recorded.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RecordedState {
    /// Version of its preamble.
    pub(super) preamble: u32,
    /// Number of its attributes.
    pub(super) attributes: u32,
    /// Number of ages by which the first element that ends in the slot began before it.
    pub(super) back: u64,
}
