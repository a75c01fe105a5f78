//! Damage of a file of which the rest can be saved.

/// Damage of a file: the first one in it, and the chunks that it costs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the first damaged record.
    pub at: u64,
    /// The check that failed.
    pub cause: String,
    /// Number of damaged chunks whose messages are lost.
    pub lost_chunks: u64,
}

impl Damage {
    /// Notes damage, and keeps that which was noted before.
    pub(crate) fn note(damage: &mut Option<Self>, at: u64, cause: String) -> &mut Self {
        damage.get_or_insert(Self { at, cause, lost_chunks: 0 })
    }
}
