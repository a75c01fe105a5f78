//! Index copies of a ring.

use serde::Serialize;

/// Index copies after a round of copying.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CopiedIndex {
    pub slots: u64,
    pub bytes: u64,
    pub copied: u64,
    pub removed: u64,
    pub left: u64,
}
