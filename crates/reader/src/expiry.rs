//! Expiry of data between two evaluations of a search that runs again and again.

use super::RingReader;
use super::item::Selection;
use super::slot_ages::missing_between;
use crate::ReaderError;
use holdfast_base::{Age, Ordinal, Sequence, StreamId};
use holdfast_ring::Range;
use std::collections::BTreeSet;

/// What has become of what came since somebody looked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expiry {
    /// What has expired, by stream: the first and the one behind the last.
    pub expired: Vec<(StreamId, Ordinal, Ordinal)>,
    /// The slots that are there, the open one among them.
    pub there: Vec<Sequence>,
}

impl RingReader {
    /// Of these elements of streams, from the first and without the second, what has expired. None of them ends in a slot before
    /// `slot`: where all slots from that one on are there, it takes no read to know that nothing has.
    pub fn expired_since(
        &mut self,
        slot: Sequence,
        wanted: &[(StreamId, Ordinal, Ordinal)],
    ) -> Result<Expiry, ReaderError> {
        let mut candidates = self.candidates()?;
        let newest = candidates.iter().map(|slot| slot.age).max().unwrap_or_default();
        let is_whole = !missing_between(&candidates, Age(slot.0.saturating_sub(1)), newest);
        candidates.retain(|planned| planned.sequence >= slot);
        let mut expired = Vec::new();
        for (stream, first, end) in wanted.iter().filter(|_| !is_whole) {
            let range = Range { ordinals: Some((*first, *end)), ..Range::ALL };
            let selection = Selection { streams: vec![*stream], range };
            // However rare the stream is: who asks looks at all of these slots next.
            expired.extend(self.expired_ordinals(&candidates, &selection, usize::MAX)?);
        }
        Ok(Expiry { expired, there: candidates.iter().map(|planned| planned.sequence).collect() })
    }

    /// Which of these slots are not there any more.
    pub fn gone(&mut self, slots: &[Sequence]) -> Result<Vec<Sequence>, ReaderError> {
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        let there: BTreeSet<Sequence> = self.candidates()?.iter().map(|planned| planned.sequence).collect();
        Ok(slots.iter().filter(|slot| !there.contains(slot)).copied().collect())
    }
}
