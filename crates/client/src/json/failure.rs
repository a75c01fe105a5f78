//! Failure of a command.

use serde::Serialize;

/// Error of a command, and its exit code.
#[expect(missing_docs, reason = "docs/commands.md lists the fields")]
#[derive(Serialize)]
pub struct ErrorMessage {
    pub error: String,
    pub exit: u8,
}
