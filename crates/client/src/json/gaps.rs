//! Lines behind the gaps of a ring: losses that are not gaps.

use serde::Serialize;

/// End of a list of gaps: the last run was cut off, and may have lost more.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct CutOffRun {
    pub cut_off: bool,
}

/// Frames that an interface lost in this run before the recorder could see them: a loss without a gap.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct InterfaceLoss<'a> {
    pub stream: &'a str,
    pub interface_drops: u64,
    pub interface_perhaps_lost: u64,
}
