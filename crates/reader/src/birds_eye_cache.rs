//! Cache of slot heads in the recorder's bird's-eye view.
//!
//! Its contents pass the same checks as bytes of the medium. A slot that fails them is read from the medium.

use super::access::Access;
use super::item::PlannedSlot;
use super::slot_head::SlotHead;
use holdfast_base::SlotNo;
use holdfast_format::{Glance, Section, Superblock};

/// A slot that the view tells of.
#[derive(Clone, Debug)]
pub(crate) struct CachedSlot {
    slot: SlotNo,
    glance: Glance,
    pub(crate) head: SlotHead,
}

impl CachedSlot {
    /// What the view has of a slot, where there is a view and it tells of it.
    pub(crate) fn of(access: &Access, superblock: &Superblock, planned: &PlannedSlot) -> Option<Self> {
        let (slot, (area, place)) = (planned.slot?, access.view()?);
        let at = u64::from(slot.0) * place as u64;
        let mut front = [0; Glance::FRONT];
        area.copy(at, &mut front).then_some(())?;
        let mut bytes = vec![0; Glance::bytes(&front, planned.sequence, place)?];
        area.copy(at, &mut bytes).then_some(())?;
        let glance = Glance::new(bytes, place)?;
        let head = SlotHead::decode(&glance.head(), superblock, Some(slot), planned.sequence).ok()?;
        Some(Self { slot, glance, head })
    }

    /// What the view has of a filter section: all of it, or one in its place that has no filter, only bounds.
    pub(crate) fn section(&self, access: &Access, section: &Section) -> Option<(Section, Vec<u8>)> {
        let (area, place) = access.view()?;
        let at = u64::from(self.slot.0) * place as u64;
        self.glance.section(section, |offset, into| area.copy(at + offset as u64, into))
    }
}
