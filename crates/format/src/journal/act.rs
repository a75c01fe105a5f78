//! Audit records of acts: holds, their ends, and exports. A purge has a record of its own.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter};
use holdfast_base::{HoldId, Ordinal, StreamId, Timestamp};

/// What was done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Act {
    /// Something that this version does not know.
    #[default]
    Unknown = 0,
    /// A hold was given.
    Hold = 1,
    /// A hold was released.
    Release = 2,
    /// A hold ended by itself.
    End = 3,
    /// Data was exported.
    Export = 4,
}

impl Act {
    /// That of this number.
    pub fn from_byte(byte: u8) -> Self {
        match byte {
            1 => Self::Hold,
            2 => Self::Release,
            3 => Self::End,
            4 => Self::Export,
            _ => Self::Unknown,
        }
    }
}

/// What was done, when, to what, by whom, and why.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ActRecord {
    /// Acts are numbered from 1 on over the ring's life.
    pub number: u32,
    /// What.
    pub act: Act,
    /// When.
    pub at: Timestamp,
    /// Which hold; 0: none.
    pub hold: HoldId,
    /// Of which stream; `None`: all, or several.
    pub stream: Option<StreamId>,
    /// Slots that it was about, where that is known.
    pub slots: u32,
    /// The time range counts.
    pub by_time: bool,
    /// The ordinal range counts.
    pub by_ordinal: bool,
    /// The time range means event times.
    pub by_event: bool,
    /// First time of the range.
    pub from: Timestamp,
    /// Last time of the range.
    pub to: Timestamp,
    /// First ordinal of the range.
    pub first_ordinal: Ordinal,
    /// The ordinal behind the range.
    pub end_ordinal: Ordinal,
    /// Why.
    pub reason: String,
    /// Who.
    pub owner: String,
}

impl ActRecord {
    /// Bytes of its body, but for the texts.
    pub(super) const BYTES: usize = 64;

    pub(super) fn put(&self, put: &mut SliceWriter<'_>) {
        let which = u8::from(self.by_time) | u8::from(self.by_ordinal) << 1 | u8::from(self.by_event) << 2;
        put.u32(self.number).u8(self.act as u8).u8(which).zeros(2).time(self.at).u64(self.hold.0);
        put.u32(self.stream.map_or(u32::MAX, |stream| stream.0)).u32(self.slots);
        put.time(self.from).time(self.to).u64(self.first_ordinal.0).u64(self.end_ordinal.0);
        put.string(&self.reason).string(&self.owner);
    }

    pub(super) fn read(get: &mut FieldReader<'_>) -> Result<Self, FormatError> {
        let (number, act, which) = (get.u32()?, Act::from_byte(get.u8()?), get.u8()?);
        get.take(2)?;
        Ok(Self {
            number,
            act,
            at: get.time()?,
            hold: HoldId(get.u64()?),
            stream: Some(get.u32()?).filter(|id| *id != u32::MAX).map(StreamId),
            slots: get.u32()?,
            by_time: which & 1 != 0,
            by_ordinal: which & 2 != 0,
            by_event: which & 4 != 0,
            from: get.time()?,
            to: get.time()?,
            first_ordinal: Ordinal(get.u64()?),
            end_ordinal: Ordinal(get.u64()?),
            reason: get.string()?,
            owner: get.string()?,
        })
    }
}
