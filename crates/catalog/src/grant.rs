//! Grants: rights of a subject on an entry and all below it. The decision for a request is not here (`server`).

use crate::hlc::Hlc;
use crate::ids::ObjectId;
use serde::{Deserialize, Serialize};

/// Right on an entry; each one includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Right {
    /// Reading of entries and contents.
    Read,
    /// Making, changing and deleting of entries.
    Write,
    /// Granting and revoking of rights, and settling of conflicts.
    Own,
}

/// Register of the right of a subject on an entry. A revoked one stays as a tombstone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Entry that the right is for, which may be the root; entries below inherit the right.
    pub object: ObjectId,
    /// Name of an account or a group.
    pub subject: String,
    /// Right of the subject; nothing once it is revoked.
    pub right: Option<Right>,
    /// Stamp of the operation that set the register.
    pub set: Hlc,
}
