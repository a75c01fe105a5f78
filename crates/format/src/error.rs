//! Errors of decoding: bytes that claim to be of the format and are not. Nothing about devices or I/O.

use holdfast_base::{ByteSize, RingId};

/// Why bytes were not taken for what they should be: which structure, at which byte inside it, what is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// The structure does not begin with its magic number: something else, or nothing, was written there.
    #[error("{structure}: the magic number is missing, so it was never written here or was overwritten")]
    BadMagic {
        /// Which structure was expected.
        structure: &'static str,
    },
    /// Written by a version of the format that this program does not know.
    #[error(
        "{structure}: written in format version {version}, this program reads version 1; use a newer one"
    )]
    Version {
        /// Which structure.
        structure: &'static str,
        /// The version it claims.
        version: u32,
    },
    /// The keyed tag does not hold: torn, damaged, or forged by whoever sent the recorded traffic.
    #[error("{structure}: the tag at byte {at} does not hold: torn, damaged or forged")]
    BadTag {
        /// Which structure.
        structure: &'static str,
        /// Where its tag is.
        at: u64,
    },
    /// A CRC32C does not hold.
    #[error("{structure}: the checksum for byte {at} does not hold: damaged")]
    BadChecksum {
        /// Which structure.
        structure: &'static str,
        /// Where the bytes begin that the checksum covers.
        at: u64,
    },
    /// It belongs to another ring.
    #[error("{structure}: belongs to ring {ring}")]
    Foreign {
        /// Which structure.
        structure: &'static str,
        /// The ring that it names. Not to be trusted: the tag was not looked at.
        ring: RingId,
    },
    /// A length or offset points outside, or the bytes end too early.
    #[error("{structure}: {what} at byte {at} reaches outside")]
    OutOfBounds {
        /// Which structure.
        structure: &'static str,
        /// Byte inside it.
        at: u64,
        /// Which field.
        what: &'static str,
    },
    /// A value that this version does not know.
    #[error("{structure}: byte {at}: unknown {what} {value}")]
    Unknown {
        /// The structure with the value.
        structure: &'static str,
        /// Byte behind the value.
        at: u64,
        /// The name of the field.
        what: &'static str,
        /// The value as a number.
        value: u64,
    },
    /// A value that the format does not allow.
    #[error("{structure}: byte {at}: {what}")]
    Malformed {
        /// Which structure.
        structure: &'static str,
        /// Byte inside it.
        at: u64,
        /// What is wrong.
        what: &'static str,
    },
    /// Slots of this size do not exist.
    #[error("slots of {} do not exist: give a power of two from 64 KiB to 256 MiB", ByteSize(*slot_bytes))]
    SlotSize {
        /// The size asked for.
        slot_bytes: u64,
    },
    /// The lane is too short for journal and four slots.
    #[error(
        "a lane of {} is too small for slots of {}: give at least {}, or smaller slots",
        ByteSize(*lane_bytes), ByteSize(*slot_bytes), ByteSize(*least).shown_up()
    )]
    TooSmall {
        /// Bytes of the lane.
        lane_bytes: u64,
        /// Bytes of a slot.
        slot_bytes: u64,
        /// Bytes that would do.
        least: u64,
    },
    /// More slots than a snapshot can list.
    #[error(
        "a lane of {} makes {slots} slots of {}, and {limit} is the most: {}",
        ByteSize(*lane_bytes), ByteSize(*slot_bytes), advice(*enough, slot_bytes * limit)
    )]
    TooManySlots {
        /// Bytes of the lane.
        lane_bytes: u64,
        /// Bytes of a slot.
        slot_bytes: u64,
        /// Slots that would fit.
        slots: u64,
        /// Slots that are allowed.
        limit: u64,
        /// The slot size that would do, if there is one, and the ring may still have another.
        enough: Option<u64>,
    },
    /// A lane never shrinks.
    #[error("the lane has {} and cannot shrink to {}", ByteSize(*lane_bytes), ByteSize(*wanted))]
    Shrink {
        /// Bytes in use now.
        lane_bytes: u64,
        /// Bytes asked for.
        wanted: u64,
    },
    /// More than the format has a place for.
    #[error("{count} {what}, and {limit} is the most")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: u64,
        /// How many there may be.
        limit: u64,
    },
}

/// What to do about a lane with too many slots.
fn advice(enough: Option<u64>, most: u64) -> String {
    match enough {
        Some(slot) => format!("give slots of {}", ByteSize(slot)),
        None => format!("give at most {}", ByteSize(most)),
    }
}
