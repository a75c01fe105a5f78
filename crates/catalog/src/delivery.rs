//! Causal delivery: an operation is applied after all operations that its site had applied before it.

use crate::ids::OpId;
use crate::operation::Operation;
use crate::record::SiteProgress;
use crate::vector::VersionVector;

/// Place of an operation relative to those already applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// The operation is applied already.
    Duplicate,
    /// The operation is next.
    Ready,
    /// An earlier operation, the given one, must be applied first.
    Waiting(OpId),
}

/// Compares an operation with the operations that are applied.
pub fn readiness(op: &Operation, applied: &VersionVector) -> Readiness {
    let next = applied.get(op.id.site) + 1;
    if op.id.seq < next {
        return Readiness::Duplicate;
    }
    if op.id.seq > next {
        return Readiness::Waiting(OpId { site: op.id.site, seq: next });
    }
    let missing = op.after.iter().find(|(site, seq)| *seq > applied.get(*site));
    missing.map_or(Readiness::Ready, |(site, seq)| Readiness::Waiting(OpId { site, seq }))
}

/// Progress of the operation's site after the operation.
pub(crate) fn advance(before: Option<SiteProgress>, op: &Operation) -> SiteProgress {
    let mut seen = before.map(|before| before.seen).unwrap_or_default();
    seen.merge(&op.after);
    SiteProgress { site: op.id.site, applied: op.id.seq, seen }
}

/// Operations of other sites that were applied since the site's last operation.
pub(crate) fn since_last(
    own: Option<&SiteProgress>,
    site: crate::ids::SiteId,
    applied: &VersionVector,
) -> VersionVector {
    let known = own.map(|own| own.seen.clone()).unwrap_or_default();
    applied.iter().filter(|(other, seq)| *other != site && *seq > known.get(*other)).collect()
}
