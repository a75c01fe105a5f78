//! The books of a run: what was sent, what the recorder says of it, and what is really on the ring, byte by byte.

use crate::BenchError;
use holdfast_reader::{Item, RingReader, Selection};
use std::ops::ControlFlow;
use std::path::Path;

/// Bytes of an element by its number: uniform among all there are, each other than the others.
pub fn element(number: u64, into: &mut [u8]) {
    for (word, place) in into.chunks_mut(8).zip(0u64..) {
        let mut drawn = (number << 13 | place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        drawn = (drawn ^ drawn >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        drawn = (drawn ^ drawn >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word.copy_from_slice(&(drawn ^ drawn >> 31).to_le_bytes()[..word.len()]);
    }
}

/// What the recorder says at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Bytes recorded.
    pub bytes: u64,
    /// Bytes lost.
    pub lost: u64,
    /// Gaps.
    pub gaps: u64,
    /// Why, and how many elements each.
    pub causes: Vec<(String, u64)>,
}

impl Summary {
    /// Out of what it printed.
    pub fn of(said: &str) -> Option<Self> {
        let line = said.lines().find(|line| line.starts_with('{'))?;
        let json: serde_json::Value = serde_json::from_str(line).ok()?;
        let stream = &json["streams"][0];
        let causes = stream["lost"].as_object()?.iter();
        Some(Self {
            bytes: stream["bytes"].as_u64()?,
            lost: stream["lost_bytes"].as_u64()?,
            gaps: stream["gaps"].as_u64()?,
            causes: causes.map(|(cause, count)| (cause.clone(), count.as_u64().unwrap_or(0))).collect(),
        })
    }

    /// Whether all that was sent is recorded or lost, in elements of that size.
    pub fn balances(&self, sent: u64, element: u64) -> Result<(), BenchError> {
        let by_cause: u64 = self.causes.iter().map(|(_, count)| count * element).sum();
        if self.bytes + self.lost == sent && by_cause == self.lost && (self.lost > 0) == (self.gaps > 0) {
            return Ok(());
        }
        Err(BenchError::Accounting(format!("{sent} bytes were sent, and {self:?}")))
    }
}

/// What is on the ring: every element that was sent, from the oldest there on, is whole, or told of by a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingContents {
    /// Elements whose every byte is right.
    pub right: u64,
    /// Elements that gaps tell of.
    pub missing: u64,
}

impl RingContents {
    /// Reads the whole ring, without a recorder; `sent` elements of that size went there.
    pub fn on(device: &Path, sent: u64, size: usize) -> Result<Self, BenchError> {
        let mut reader = RingReader::open(device).map_err(BenchError::during("opening the ring"))?;
        let plan = reader.plan(&Selection::ALL).map_err(BenchError::during("planning"))?;
        let (mut found, mut next, mut wrong) = (Self::default(), None, None);
        let mut wanted = vec![0; size];
        let mut sink = |item: Item<'_>| {
            // Numbers follow one another, whatever they tell of.
            let mut follow = |ordinal: u64, count: u64| {
                if next.is_some_and(|next| next != ordinal) {
                    return Some(format!("element {ordinal} follows where {next:?} should"));
                }
                next = Some(ordinal + count);
                None
            };
            wrong = match item {
                Item::Element(one) => {
                    element(one.ordinal.0, &mut wanted);
                    found.right += 1;
                    let other = (one.data != wanted).then(|| format!("element {} is another", one.ordinal.0));
                    follow(one.ordinal.0, 1).or(other)
                }
                Item::Gap { ordinal, gap, .. } => {
                    found.missing += gap.ordinals;
                    let inexact = (gap.elements != Some(gap.ordinals)
                        || gap.bytes != Some(gap.ordinals * size as u64))
                    .then(|| format!("a gap is not exact: {gap:?}"));
                    follow(ordinal.0, gap.ordinals).or(inexact)
                }
                Item::Partial { ordinal, .. } if next.is_some() => {
                    Some(format!("element {} is not whole", ordinal.0))
                }
                Item::Damaged { sequence, place, .. } => {
                    Some(format!("sequence {} is damaged: {place}", sequence.0))
                }
                Item::Expired { from, .. } => Some(format!("sequence {} expired", from.0)),
                _ => None,
            };
            if wrong.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        reader.read(&plan, &mut sink).map_err(BenchError::during("reading"))?;
        match wrong {
            Some(wrong) => Err(BenchError::Accounting(format!("of {sent} elements, {wrong}"))),
            None if next == Some(sent) || sent == 0 => Ok(found),
            None => {
                Err(BenchError::Accounting(format!("{sent} elements were sent, the ring ends at {next:?}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn books_that_do_not_balance_are_told() {
        let said = "x\n{\"streams\":[{\"bytes\":131072,\"lost_bytes\":65536,\"gaps\":1,\"lost\":{\"no_buffer\":1}}]}\n";
        let summary = Summary::of(said).unwrap();
        assert_eq!(summary.causes, [("no_buffer".to_owned(), 1)]);
        assert!(summary.balances(196_608, 65_536).is_ok());
        assert!(summary.balances(196_609, 65_536).is_err());
        assert!(Summary { gaps: 0, ..summary.clone() }.balances(196_608, 65_536).is_err());
        assert!(Summary { causes: Vec::new(), ..summary }.balances(196_608, 65_536).is_err());
    }
}
