//! Losses, merged from the gaps that record their pieces.

use holdfast_base::{Ordinal, StreamId};
use holdfast_format::Gap;
use std::collections::BTreeMap;

/// A loss that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Of which stream.
    pub stream: StreamId,
    /// The first lost ordinal.
    pub ordinal: Ordinal,
    /// What was lost.
    pub gap: Gap,
}

/// Puts the gaps of a loss together that was written down in pieces (chunk by chunk, or slot by slot).
#[derive(Debug, Default)]
pub struct LossMerger(BTreeMap<StreamId, Loss>);

impl LossMerger {
    /// Takes the next gap, and gives a loss of its stream that it does not go on.
    pub fn push(&mut self, gap: Loss) -> Option<Loss> {
        let before = self.0.insert(gap.stream, gap)?;
        let Some(both) = joined(&before, &gap) else { return Some(before) };
        self.0.insert(gap.stream, both);
        None
    }

    /// What is left when there are no more.
    pub fn finish(self) -> impl Iterator<Item = Loss> {
        self.0.into_values()
    }
}

/// Two gaps of a stream as one: the second begins where the first ends, for the same reason.
fn joined(earlier: &Loss, later: &Loss) -> Option<Loss> {
    let (Loss { stream, ordinal, gap: one }, next) = (*earlier, later.gap);
    let goes_on = ordinal.0.checked_add(one.ordinals) == Some(later.ordinal.0)
        && (one.cause, one.note) == (next.cause, next.note)
        && one.elements.is_some() == next.elements.is_some()
        && one.bytes.is_some() == next.bytes.is_some();
    let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.saturating_add(b));
    goes_on.then(|| Loss {
        stream,
        ordinal,
        gap: Gap {
            ordinals: one.ordinals.saturating_add(next.ordinals),
            elements: sum(one.elements, next.elements),
            bytes: sum(one.bytes, next.bytes),
            first: one.first.min(next.first),
            last: one.last.max(next.last),
            ..one
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_base::Timestamp;
    use holdfast_format::Cause;

    fn loss(ordinal: u64, ordinals: u64, elements: Option<u64>, first: i64) -> Loss {
        let (first, last) = (Timestamp(first), Timestamp(first + 5));
        let gap = Gap { ordinals, elements, bytes: Some(10), first, last, cause: Cause::Purged, note: 0 };
        Loss { stream: StreamId(1), ordinal: Ordinal(ordinal), gap }
    }

    #[test]
    fn only_what_adjoins_for_the_same_reason_is_one_loss() {
        let one = loss(20, 4, Some(4), 100);
        let with = |change: fn(&mut Loss)| -> (Option<Loss>, Vec<Loss>) {
            let mut next = loss(24, 3, Some(2), 110);
            change(&mut next);
            let mut losses = LossMerger::default();
            let first = losses.push(one).or(losses.push(next));
            (first, losses.finish().collect::<Vec<_>>())
        };
        let mut both = loss(20, 7, Some(6), 100);
        (both.gap.bytes, both.gap.last) = (Some(20), Timestamp(115));
        assert_eq!(with(|_| ()), (None, vec![both]));
        for other in [
            (|next: &mut Loss| next.ordinal = Ordinal(25)) as fn(&mut Loss),
            |next| next.gap.elements = None,
            |next| next.gap.cause = Cause::NoBuffer,
            |next| next.gap.note = 1,
        ] {
            let (first, rest) = with(other);
            assert_eq!((first, rest.len()), (Some(one), 1));
        }
        // Of another stream.
        let (first, rest) = with(|next| next.stream = StreamId(2));
        assert_eq!((first, rest.len()), (None, 2));
    }
}
