//! Audit log: acts that were dropped from it, and acts that were added to a file.

use serde::Serialize;

/// Acts that the audit log has dropped.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct DroppedActs {
    pub dropped_purges: u64,
    pub dropped_acts: u64,
}

/// Acts that were added to a file.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct AppendedActs {
    pub appended: u64,
    pub dropped: u64,
}
