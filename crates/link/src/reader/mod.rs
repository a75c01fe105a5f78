//! The one reader of rings, for all commands: the same results with a recorder and without.

mod item;

pub use item::{Element, Item, Missing, Plan, PlannedSlot, ReadReport, Selection};

use crate::LinkError;
use crate::wire::Status;
use holdfast_base::{Sequence, StreamId};
use holdfast_format::Superblock;
use holdfast_ring::{HoldStatus, SlotStatus, StreamStatus};
use std::ops::ControlFlow;
use std::path::Path;

/// Reads a ring: through its recorder where one runs, otherwise straight from its lane, read-only.
#[derive(Debug)]
pub struct RingReader {}

impl RingReader {
    /// Opens the ring whose lane is at `path`.
    pub fn open(path: &Path) -> Result<Self, LinkError>;
    /// Whether a recorder answers.
    pub fn is_live(&self) -> bool;
    /// The recorder's process.
    pub fn pid(&self) -> Option<u32>;
    /// The ring's superblock.
    pub fn superblock(&self) -> &Superblock;
    /// How the ring does.
    pub fn status(&mut self) -> Result<Status, LinkError>;
    /// Its streams, in the order of their ids.
    pub fn streams(&mut self) -> Result<Vec<StreamStatus>, LinkError>;
    /// Its slots, by place.
    pub fn slots(&mut self) -> Result<Vec<SlotStatus>, LinkError>;
    /// Its holds.
    pub fn holds(&mut self) -> Result<Vec<HoldStatus>, LinkError>;
    /// A preamble.
    pub fn preamble(&mut self, stream: StreamId, version: u32) -> Result<Option<Vec<u8>>, LinkError>;
    /// Which slots may have something of `selection`.
    pub fn plan(&mut self, selection: &Selection) -> Result<Plan, LinkError>;
    /// Gives everything that a plan leads to, in order.
    pub fn read(
        &mut self,
        plan: &Plan,
        sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<ReadReport, LinkError>;
    /// Gives only gaps (and what is damaged or expired): slots that have none are skipped.
    pub fn gaps(
        &mut self,
        selection: &Selection,
        sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    ) -> Result<ReadReport, LinkError>;
    /// Which slots have something of a selection, first and last sequences, for holds.
    pub fn sequences(&mut self, selection: &Selection) -> Result<Vec<(Sequence, Sequence)>, LinkError>;
}
