//! Condition of a hold: the optional part of a hold's record behind its other fields.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use holdfast_base::{MAX_CONDITION, MAX_STREAMS, Ordinal, StreamId};

/// Bytes of the fields of fixed size, and of a watermark.
const FIXED: usize = 48;
const WATERMARK: usize = 12;

const THERE: u8 = 1;
const STANDING: u8 = 2;
const DISTIL: u8 = 4;
const SAMPLE: u8 = 8;
const WHEN: u8 = 16;

/// What a hold by condition looks for: kept for whoever lists holds, and for an evaluator that goes on after a restart.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConditionHold {
    /// The condition as SQL, at most [`MAX_CONDITION`] bytes; empty where samples are taken.
    pub condition: String,
    /// What is held in front of a hit, in ns.
    pub before: u64,
    /// What is held behind a hit, in ns.
    pub after: u64,
    /// It keeps applying to what arrives.
    pub standing: bool,
    /// What it keeps is distilled: of the slots only the hits are left, and what is held around them.
    pub distil: bool,
    /// A regular sample: so many ns are held, of every so many.
    pub sample: Option<(u64, u64)>,
    /// Hits count only while this holds of those in a sliding window: SQL, and the window in ns.
    pub when: Option<(String, u64)>,
    /// Slots that it may keep, promised for as long as it stands; 0: none are promised, and it takes what may be held by
    /// then.
    pub quota: u32,
    /// Evaluated up to here: the next ordinal to look at, by stream.
    pub watermarks: Vec<(StreamId, Ordinal)>,
}

impl ConditionHold {
    /// Most bytes that it takes in a hold's record.
    pub(super) const MOST: usize = FIXED + WATERMARK * MAX_STREAMS + 2 * (2 + MAX_CONDITION);

    /// Bytes that it takes in a hold's record.
    pub fn bytes(&self) -> usize {
        let when = self.when.as_ref().map_or(0, |(condition, _)| condition.len());
        FIXED + WATERMARK * self.watermarks.len() + 2 + self.condition.len() + 2 + when
    }

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) -> bool {
        let Ok(watermarks) = u16::try_from(self.watermarks.len()) else { return false };
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let which = THERE
            | flag(self.standing, STANDING)
            | flag(self.distil, DISTIL)
            | flag(self.sample.is_some(), SAMPLE)
            | flag(self.when.is_some(), WHEN);
        let (held, every) = self.sample.unwrap_or_default();
        let (when, within) = self.when.as_ref().map_or(("", 0), |(when, within)| (when, *within));
        put.u8(which).u8(0).u16(watermarks).u32(self.quota).u64(self.before).u64(self.after);
        put.u64(held).u64(every).u64(within);
        for (stream, ordinal) in &self.watermarks {
            put.u32(stream.0).u64(ordinal.0);
        }
        put.string(&self.condition).string(when);
        true
    }

    /// Reads what follows the other fields of a hold: there may be none.
    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Option<Self>, FormatError> {
        let which = if get.is_more() { get.u8()? } else { 0 };
        if which & THERE == 0 {
            return Ok(None);
        }
        get.take(1)?;
        let (count, quota) = (usize::from(get.u16()?), get.u32()?);
        let (before, after) = (get.u64()?, get.u64()?);
        let (sample, within) = ((get.u64()?, get.u64()?), get.u64()?);
        if count > MAX_STREAMS {
            return Err(get.malformed("more watermarks than there can be streams"));
        }
        let mut watermarks = Vec::new();
        for _ in 0..count {
            watermarks.push((StreamId(get.u32()?), Ordinal(get.u64()?)));
        }
        let (condition, when) = (get.string()?, get.string()?);
        if condition.len().max(when.len()) > MAX_CONDITION {
            return Err(get.malformed("a condition that is too long"));
        }
        Ok(Some(Self {
            condition,
            before,
            after,
            standing: which & STANDING != 0,
            distil: which & DISTIL != 0,
            sample: (which & SAMPLE != 0).then_some(sample),
            when: (which & WHEN != 0).then_some((when, within)),
            quota,
            watermarks,
        }))
    }
}
