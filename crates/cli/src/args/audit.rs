//! `--reason` and `--owner`: attribution of an act in the audit log.

use holdfast_client::attribution::Attribution;

/// Who does something, and why.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct AuditArgs {
    /// Reason, for the audit log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Owner, for the audit log (default: you)
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

impl AuditArgs {
    /// The attribution.
    pub(crate) fn attribution(&self) -> Attribution {
        Attribution { reason: self.reason.clone(), owner: self.owner.clone() }
    }
}
