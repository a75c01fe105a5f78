//! Pending losses: gaps that are not written yet, merged as long as no information is lost.
//!
//! Deciding that something is lost is the producer's; the bytes of a gap are the format's.

use crate::Cause;
use holdfast_base::{Ordinal, Timestamp};
use holdfast_format::Gap;

/// Bytes of a gap in a batch and in a slot.
pub(crate) const GAP_BYTES: usize = Gap::BYTES;

/// Losses of different causes that may wait for room at once; the cause changes seldom, and past this the last
/// one takes the rest, so that counts stay exact and only a cause may be blurred.
const MOST: usize = 16;

/// One loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) first: Ordinal,
    /// Ordinals it covers.
    pub(crate) skipped: u64,
    /// Elements, where they are known.
    pub(crate) elements: Option<u64>,
    /// Bytes, where they are known.
    pub(crate) bytes: Option<u64>,
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    pub(crate) cause: Cause,
}

impl Loss {
    fn continues(&self, next: &Loss) -> bool {
        self.cause == next.cause
            && self.elements.is_some() == next.elements.is_some()
            && self.bytes.is_some() == next.bytes.is_some()
    }

    fn absorb(&mut self, next: &Loss) {
        self.skipped += next.skipped;
        self.elements = self.elements.zip(next.elements).map(|(a, b)| a + b);
        self.bytes = self.bytes.zip(next.bytes).map(|(a, b)| a + b);
        self.from = self.from.min(next.from);
        self.to = self.to.max(next.to);
    }
}

impl Loss {
    /// The gap's bytes, as in a slot.
    pub(crate) fn encode(&self) -> [u8; GAP_BYTES] {
        let gap = Gap {
            ordinals: self.skipped,
            elements: self.elements,
            bytes: self.bytes,
            first: self.from,
            last: self.to,
            cause: self.cause,
            note: 0,
        };
        gap.encode()
    }
}

/// Losses in the order of their ordinals, without a hole between them.
#[derive(Debug)]
pub(crate) struct Losses {
    waiting: Vec<Loss>,
    /// What the kernel dropped has no place in the order but "before the next element": kept apart, so that
    /// alternating with our own losses does not fill the list.
    kernel: Option<Loss>,
}

impl Losses {
    pub(crate) fn new() -> Self {
        Self { waiting: Vec::with_capacity(MOST), kernel: None }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.kernel.is_none()
    }

    /// Adds a loss whose first ordinal follows the last one's.
    pub(crate) fn add(&mut self, loss: Loss) {
        let full = self.waiting.len() == MOST;
        match self.waiting.last_mut() {
            Some(last) if full || last.continues(&loss) => last.absorb(&loss),
            _ => self.waiting.push(loss),
        }
    }

    /// Adds elements that the kernel dropped; they get their ordinals when they are taken.
    pub(crate) fn add_kernel(&mut self, elements: u64, from: Timestamp, to: Timestamp) {
        let loss = Loss {
            first: Ordinal(0),
            skipped: elements,
            elements: Some(elements),
            bytes: None,
            from,
            to,
            cause: Cause::Kernel,
        };
        match &mut self.kernel {
            Some(before) => before.absorb(&loss),
            none => *none = Some(loss),
        }
    }

    /// The next loss to write; the kernel's come last and take their ordinals from `next`.
    pub(crate) fn peek(&self, next: Ordinal) -> Option<Loss> {
        self.waiting.first().copied().or_else(|| self.kernel.map(|loss| Loss { first: next, ..loss }))
    }

    /// Takes what `peek` showed.
    pub(crate) fn pop(&mut self) {
        if self.waiting.is_empty() {
            self.kernel = None;
        } else {
            self.waiting.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(first: u64, cause: Cause) -> Loss {
        let (from, to) = (Timestamp(first as i64), Timestamp(first as i64 + 1));
        Loss { first: Ordinal(first), skipped: 1, elements: Some(1), bytes: Some(10), from, to, cause }
    }

    #[test]
    fn losses_of_one_cause_merge_and_none_is_forgotten_when_causes_alternate() {
        let mut losses = Losses::new();
        for n in 0..100 {
            losses.add(loss(n, if n % 2 == 0 { Cause::NoBuffer } else { Cause::NoSlot }));
            losses.add_kernel(3, Timestamp(0), Timestamp(n as i64));
        }
        let (mut next, mut elements, mut bytes, mut count) = (0, 0, 0, 0);
        while let Some(loss) = losses.peek(Ordinal(next)) {
            assert_eq!(loss.first, Ordinal(next), "no hole and no overlap");
            next += loss.skipped;
            elements += loss.elements.unwrap();
            bytes += loss.bytes.unwrap_or(0);
            count += 1;
            losses.pop();
        }
        assert_eq!((next, elements, bytes, count), (400, 400, 1000, MOST + 1));
    }
}
