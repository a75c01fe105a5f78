//! Gaps of a ring that was cut off.

use serde::Serialize;

/// End of a list of gaps: the last run was cut off, and may have lost more.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CutOffRun {
    pub cut_off: bool,
}
