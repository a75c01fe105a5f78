//! Geometry of a lane: extents, slots, skipped regions, and the limits that follow from the slot size.

use crate::FormatError;
use holdfast_base::{BLOCK, HEAD, MAX_SLOT, MIN_SLOT, SlotNo};

/// Most skipped regions of a lane: they have a fixed place in the superblock.
pub(crate) const MAX_SKIPPED: usize = 128;

/// Fewest slots of a lane: one written, one next, one held, one read.
const MIN_SLOTS: u64 = 4;

/// A stretch of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Region {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

impl Region {
    fn end(&self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

/// How a lane is divided.
///
/// ```text
/// 0             superblock copies     1 MiB
/// 1 MiB         journal extent 0      2·C
/// 1 MiB + 2·C   journal extent 1      2·C
/// 1 MiB + 4·C   slots                 C each, moved past every skipped region that one would touch
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Bytes of the lane that the ring uses.
    pub lane_bytes: u64,
    /// Slot size, C.
    pub slot_bytes: u64,
    /// How many slots there are.
    pub slots: u32,
    /// Stretches without slots, in rising order.
    pub skipped: Vec<Region>,
}

impl Geometry {
    /// The geometry of a lane of `lane_bytes` with slots of `slot_bytes`.
    pub fn for_lane(lane_bytes: u64, slot_bytes: u64, skipped: Vec<Region>) -> Result<Self, FormatError> {
        check_slot_size(slot_bytes)?;
        let mut geometry = Self { lane_bytes, slot_bytes, slots: 0, skipped };
        geometry.check_skipped()?;
        let slots = geometry.fitting();
        if slots < MIN_SLOTS {
            let lost: u64 =
                geometry.skipped.iter().map(|region| region.bytes.saturating_add(slot_bytes)).sum();
            let least = Self::smallest_lane(slot_bytes).saturating_add(lost);
            return Err(FormatError::TooSmall { lane_bytes, slot_bytes, least });
        }
        let limit = slot_bytes / 64;
        if slots > limit {
            let enough = (slot_bytes.trailing_zeros()..=MAX_SLOT.trailing_zeros())
                .map(|log2| 1 << log2)
                .find(|size| lane_bytes / size <= size / 64);
            return Err(FormatError::TooManySlots { lane_bytes, slot_bytes, slots, limit, enough });
        }
        geometry.slots = slots as u32;
        Ok(geometry)
    }

    /// The slot size for a lane of `lane_bytes` when nobody chose one.
    pub fn default_slot(lane_bytes: u64) -> u64 {
        let share = (lane_bytes / 64).max(1);
        (1 << share.ilog2()).clamp(1 << 20, MAX_SLOT)
    }

    /// Bytes of the smallest lane that slots of `slot_bytes` can be on.
    pub fn smallest_lane(slot_bytes: u64) -> u64 {
        Self::lane_for(slot_bytes, MIN_SLOTS)
    }

    /// Bytes of the smallest lane with so many slots.
    pub fn lane_for(slot_bytes: u64, slots: u64) -> u64 {
        HEAD.saturating_add(slot_bytes.saturating_mul(slots.saturating_add(4)))
    }

    /// The same lane, grown to `lane_bytes`. What is there stays where it is.
    pub fn grown(&self, lane_bytes: u64) -> Result<Self, FormatError> {
        if lane_bytes < self.lane_bytes {
            return Err(FormatError::Shrink { lane_bytes: self.lane_bytes, wanted: lane_bytes });
        }
        let grown = Self::for_lane(lane_bytes, self.slot_bytes, self.skipped.clone());
        let mut grown = grown.map_err(|error| match error {
            // Its slots keep their size.
            FormatError::TooManySlots { lane_bytes, slot_bytes, slots, limit, .. } => {
                FormatError::TooManySlots { lane_bytes, slot_bytes, slots, limit, enough: None }
            }
            other => other,
        })?;
        grown.slots = grown.slots.max(self.slots);
        Ok(grown)
    }

    /// Bytes of a journal extent.
    pub fn extent_bytes(&self) -> u64 {
        2 * self.slot_bytes
    }

    /// Where journal extent 0 or 1 begins.
    pub fn extent_offset(&self, extent: usize) -> u64 {
        HEAD + (extent as u64 & 1) * self.extent_bytes()
    }

    /// Where slot 0 would begin if nothing were skipped.
    pub fn first_slot(&self) -> u64 {
        HEAD + 4 * self.slot_bytes
    }

    /// Where a slot begins.
    pub fn slot_offset(&self, slot: SlotNo) -> u64 {
        let mut before = u64::from(slot.0);
        let mut from = self.first_slot();
        for region in &self.skipped {
            let here = region.offset.saturating_sub(from) / self.slot_bytes;
            if before < here {
                break;
            }
            before -= here;
            from = region.end();
        }
        from.saturating_add(before * self.slot_bytes)
    }

    /// Most bytes of a commit, padding included.
    pub fn commit_bytes(&self) -> usize {
        self.slot_bytes.min(crate::MAX_COMMIT as u64) as usize
    }

    /// Most rows of a chunk.
    pub fn chunk_rows(&self) -> usize {
        crate::slot::chunk_rows(self.slot_bytes)
    }

    /// Bytes that all live control records together may take.
    pub fn control_budget(&self) -> u64 {
        self.slot_bytes / 4
    }

    /// Most streams that a ring with these slots may have: their dictionary takes at most an eighth of a slot.
    pub fn max_streams(&self) -> usize {
        crate::slot::max_entries(self.slot_bytes)
    }

    /// Most attributes that all streams of a ring with these slots may have together.
    pub fn max_columns(&self) -> usize {
        crate::slot::max_columns(self.slot_bytes)
    }

    /// Most bytes of a slot's summary.
    pub fn summary_bytes(&self) -> usize {
        crate::slot::most_summary(self.slot_bytes)
    }

    /// Checks what came from a superblock or a recovery string.
    pub(crate) fn check(&self) -> Result<(), FormatError> {
        let fitting = Self::for_lane(self.lane_bytes, self.slot_bytes, self.skipped.clone())?;
        if self.slots > fitting.slots || u64::from(self.slots) < MIN_SLOTS {
            return Err(FormatError::Malformed {
                structure: "geometry",
                at: 0,
                what: "the number of slots does not match the size of the lane",
            });
        }
        Ok(())
    }

    fn check_skipped(&self) -> Result<(), FormatError> {
        let count = self.skipped.len();
        if count > MAX_SKIPPED {
            let limit = MAX_SKIPPED as u64;
            return Err(FormatError::TooMany { what: "skipped regions", count: count as u64, limit });
        }
        let mut from = self.first_slot();
        for (number, region) in self.skipped.iter().enumerate() {
            let aligned = (region.offset | region.bytes).is_multiple_of(BLOCK as u64);
            if !aligned || region.bytes == 0 || region.offset < from || region.end() > self.lane_bytes {
                return Err(FormatError::Malformed {
                    structure: "skipped regions",
                    at: 16 * number as u64,
                    what: "regions must lie behind the journal and inside the lane, in rising order without \
                           overlaps, in whole blocks of 4 KiB",
                });
            }
            from = region.end();
        }
        Ok(())
    }

    /// How many slots fit.
    fn fitting(&self) -> u64 {
        let mut from = self.first_slot();
        let mut slots = 0;
        for region in &self.skipped {
            slots += region.offset.saturating_sub(from) / self.slot_bytes;
            from = region.end();
        }
        slots + self.lane_bytes.saturating_sub(from) / self.slot_bytes
    }
}

/// A slot is a power of two between the limits.
pub(crate) fn check_slot_size(slot_bytes: u64) -> Result<(), FormatError> {
    if slot_bytes.is_power_of_two() && (MIN_SLOT..=MAX_SLOT).contains(&slot_bytes) {
        Ok(())
    } else {
        Err(FormatError::SlotSize { slot_bytes })
    }
}
