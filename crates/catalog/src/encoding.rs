//! Byte form of operations, for the log and the wire. The version byte leads; golden files keep every version.
//!
//! ```text
//! offset 0  u8   format version, 1
//! offset 1       postcard: site (varint), seq (varint), time (varint), after (count, then site and seq each),
//!                under (count, then 16 bytes each), changes (count, then variant number and fields each)
//! ```
//!
//! Integers are LEB128 varints, signed ones zigzag; texts are a length and UTF-8; ids and hashes are bare bytes.
//! New kinds of changes are appended to the enum; any other change of layout needs a new version byte.

use crate::hlc::HlcTime;
use crate::ids::{ObjectId, OpId, SiteId};
use crate::operation::{Change, InvalidOperation, Operation};
use crate::vector::VersionVector;
use serde::{Deserialize, Serialize};

/// Version of the byte form that is written.
pub const FORMAT_VERSION: u8 = 1;

/// Longest encoded operation in bytes: bounds the memory of a reader.
pub const MAX_OPERATION_BYTES: usize = 4 << 20;

/// Bytes that are no operation, or none that this version reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Operation written by newer software.
    #[error(
        "cannot decode an operation: it has format version {0}, and this software reads version \
         {FORMAT_VERSION}; update the software"
    )]
    Version(u8),
    /// Bytes cut short, altered, or followed by others.
    #[error("cannot decode an operation of {length} bytes: {reason}; fetch it again from its site")]
    Damaged {
        /// Number of bytes that were given.
        length: usize,
        /// Rule that the bytes break.
        reason: String,
    },
    /// Operation longer than [`MAX_OPERATION_BYTES`].
    #[error("cannot encode an operation: it has {0} bytes, more than {MAX_OPERATION_BYTES}; split it")]
    TooLong(usize),
    /// Operation that breaks a rule.
    #[error(transparent)]
    Invalid(#[from] InvalidOperation),
}

/// Body of format version 1, borrowed for writing.
#[derive(Serialize)]
struct BodyRef<'a> {
    site: SiteId,
    seq: u64,
    time: HlcTime,
    after: &'a VersionVector,
    under: &'a [ObjectId],
    changes: &'a [Change],
}

/// Body of format version 1, as it is read.
#[derive(Deserialize)]
struct Body {
    site: SiteId,
    seq: u64,
    time: HlcTime,
    after: VersionVector,
    under: Vec<ObjectId>,
    changes: Vec<Change>,
}

/// Encodes a checked operation.
pub fn encode(operation: &Operation) -> Result<Vec<u8>, DecodeError> {
    operation.check()?;
    let Operation { id, time, after, under, changes } = operation;
    let body = BodyRef { site: id.site, seq: id.seq, time: *time, after, under, changes };
    let encoded = postcard::to_extend(&body, vec![FORMAT_VERSION]);
    let bytes = encoded.map_err(|error| DecodeError::Damaged { length: 0, reason: error.to_string() })?;
    if bytes.len() > MAX_OPERATION_BYTES { Err(DecodeError::TooLong(bytes.len())) } else { Ok(bytes) }
}

/// Decodes one operation and checks it. All bytes must belong to it.
pub fn decode(bytes: &[u8]) -> Result<Operation, DecodeError> {
    let damaged = |reason: String| DecodeError::Damaged { length: bytes.len(), reason };
    if bytes.len() > MAX_OPERATION_BYTES {
        return Err(DecodeError::TooLong(bytes.len()));
    }
    let body = match bytes.split_first() {
        Some((&FORMAT_VERSION, body)) => body,
        Some((version, _)) => return Err(DecodeError::Version(*version)),
        None => return Err(damaged("it is empty".into())),
    };
    let (body, rest) = postcard::take_from_bytes::<Body>(body).map_err(|error| damaged(error.to_string()))?;
    if !rest.is_empty() {
        return Err(damaged(format!("{} bytes follow it", rest.len())));
    }
    let Body { site, seq, time, after, under, changes } = body;
    let operation = Operation { id: OpId { site, seq }, time, after, under, changes };
    operation.check()?;
    Ok(operation)
}
