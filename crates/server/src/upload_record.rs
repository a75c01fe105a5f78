//! Record of an upload: its target, length, durable offset and state. Storage of records is in `upload_table`.

use crate::archive::VersionId;
use crate::clock::Timestamp;
use crate::object_path::{ObjectPath, ProjectName};
use crate::upload_id::UploadId;

/// Size of the blocks whose hashes are kept with an upload.
pub const BLOCK_BYTES: u64 = 1 << 20;

/// Role of an upload in a concatenation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UploadKind {
    /// File of its own, handed to the archive when it is complete.
    Whole,
    /// Part of a later concatenation, without a target of its own.
    Partial,
    /// Concatenation of partial uploads, in this order.
    Final {
        /// Value of the header `Upload-Concat` as it was received.
        header: String,
        /// Partial uploads in their order; one may occur several times.
        parts: Vec<UploadId>,
    },
}

/// State of an upload in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UploadState {
    /// Bytes are missing, and clients send them.
    Receiving,
    /// Bytes are missing, and the server copies them from the parts.
    Assembling,
    /// All bytes are durable; the archive does not have them yet. Partial uploads stay in this state.
    Complete,
    /// The archive has the bytes as this version.
    Stored(VersionId),
    /// The upload cannot be completed, for this reason.
    Failed(String),
    /// A client terminated the upload, or it expired.
    Removed,
}

impl UploadState {
    /// Name of the state for clients.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Receiving => "receiving",
            Self::Assembling => "assembling",
            Self::Complete => "complete",
            Self::Stored(_) => "stored",
            Self::Failed(_) => "failed",
            Self::Removed => "removed",
        }
    }

    /// True while more bytes may come.
    pub(crate) fn is_growing(&self) -> bool {
        matches!(self, Self::Receiving | Self::Assembling)
    }

    /// True when the state will never change except by removal.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self, Self::Stored(_) | Self::Failed(_) | Self::Removed)
    }
}

/// Record of an upload as it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UploadRecord {
    /// Identity of the upload.
    pub(crate) id: UploadId,
    /// Role in a concatenation.
    pub(crate) kind: UploadKind,
    /// Project; `None` for partial uploads of clients that may use all projects.
    pub(crate) project: Option<ProjectName>,
    /// Path in the project; `None` only for partial uploads.
    pub(crate) path: Option<ObjectPath>,
    /// Value of the header `Upload-Metadata` as it was received.
    pub(crate) metadata: String,
    /// Length of the whole upload, once it is known.
    pub(crate) length: Option<u64>,
    /// Number of durable bytes.
    pub(crate) offset: u64,
    /// State in the upload's life.
    pub(crate) state: UploadState,
    /// BLAKE3 of the whole contents, once the archive has them.
    pub(crate) blake3: Option<blake3::Hash>,
    /// Time of the upload's creation.
    pub(crate) created: Timestamp,
    /// End of the record's life, renewed by every request that adds bytes.
    pub(crate) expires: Timestamp,
}

impl UploadRecord {
    /// State after the offset has reached `offset`.
    pub(crate) fn state_at(&self, offset: u64) -> UploadState {
        if self.state.is_growing() && self.length == Some(offset) {
            UploadState::Complete
        } else {
            self.state.clone()
        }
    }

    /// True for uploads that end by the passing of time, as long as nobody adds bytes.
    pub(crate) fn is_abandoned(&self, now: Timestamp) -> bool {
        let waits_for_clients = match self.state {
            UploadState::Receiving => true,
            UploadState::Complete => self.kind == UploadKind::Partial,
            _ => false,
        };
        waits_for_clients && self.expires <= now
    }

    /// Bytes that may still come; `most` is the limit of an upload whose length is unknown.
    pub(crate) fn room(&self, most: u64) -> u64 {
        self.length.unwrap_or(most).saturating_sub(self.offset)
    }
}
