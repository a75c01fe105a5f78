//! Slots rebuilt from the journal during a restart, each once: reading the journal takes most of a restart's
//! time. `recover` decides which are needed.

use crate::crash_gaps::StreamExtent;
use crate::event::SealedSlot;
use crate::ledger::Ledger;
use crate::recover::RecoverError;
use crate::table::Bounds;
use holdfast_base::{Sequence, SlotNo, StreamId};
use holdfast_format::{
    Builder, Classes, Counters, Entry, EntrySummary, Name, OpenSlot, Rebuild, Record, SlotFlags, SlotId,
    Superblock,
};
use holdfast_media::{Buffer, PoolError};

/// More than a run can leave behind means a forged or broken journal.
const MOST: usize = 64;

/// A slot that only the journal had, sealed anew.
#[derive(Debug)]
pub struct Rebuilt {
    /// What it is.
    pub sealed: SealedSlot,
    /// Its bytes; the slot number in its header is to be stamped when it gets its place.
    pub image: Buffer,
    /// What its streams had come to.
    pub counters: Vec<(StreamId, u32, Counters)>,
    /// What it has of them.
    pub(crate) spans: Vec<StreamExtent>,
}

/// A slot with a header and a footer that may have been in flight, so that its middle may be torn.
#[derive(Debug)]
pub(crate) struct Doubt {
    pub(crate) slot: SlotNo,
    /// What takes its place if it is.
    pub(crate) rebuilt: Rebuilt,
    /// What it says that it has of its streams.
    pub(crate) spans: Vec<StreamExtent>,
}

/// What the journal has of slots that may not be on the medium.
#[derive(Default)]
pub(crate) struct Candidates {
    /// Memory is touched only as far as there is something in it.
    slots: Vec<(Rebuild, Buffer)>,
    /// Those for which there was no memory.
    failed: Vec<(Sequence, PoolError)>,
}

impl Candidates {
    /// Takes note of a record, before the ledger does.
    pub(crate) fn note(&mut self, record: &Record<'_>, superblock: &Superblock, ledger: &Ledger) {
        match record {
            Record::Runway { naming, .. } => {
                // What is below is on the medium.
                self.slots.retain(|(slot, _)| slot.sequence() >= *naming);
                self.failed.retain(|(sequence, _)| sequence >= naming);
            }
            // It was, and is gone on purpose.
            Record::Replaced { originals: gone, .. } | Record::Freed { sequences: gone } => {
                self.slots.retain(|(slot, _)| !gone.contains(&slot.sequence()));
                self.failed.retain(|(sequence, _)| !gone.contains(sequence));
            }
            Record::CleanEnd { .. } => {
                // All of it is.
                self.slots.clear();
                self.failed.clear();
            }
            Record::OpenSlot(open) => {
                let known = self.slots.iter().any(|(slot, _)| slot.sequence() == open.sequence);
                if known || self.slots.len() == MOST {
                    return;
                }
                match Buffer::aligned(superblock.geometry.slot_bytes as usize) {
                    Ok(mut image) => {
                        let begun = begin_rebuild(&mut image, superblock, ledger, open);
                        self.slots.extend(begun.map(|slot| (slot, image)));
                    }
                    Err(error) => self.failed.push((open.sequence, error)),
                }
            }
            Record::OpenPayload { .. } | Record::OpenRows { .. } => {
                for (slot, image) in &mut self.slots {
                    // A piece that does not fit the slot is left out: what follows it then has a hole before it.
                    drop(slot.apply(image, record));
                }
            }
            _ => {}
        }
    }

    /// All of them, oldest first, without those that are empty.
    pub(crate) fn sealed(self, superblock: &Superblock) -> Result<Vec<Rebuilt>, RecoverError> {
        if let Some((_, error)) = self.failed.into_iter().next() {
            return Err(error.into());
        }
        let mut slots = self.slots;
        slots.sort_unstable_by_key(|(slot, _)| slot.sequence());
        Ok(slots.into_iter().filter_map(|(slot, image)| seal_rebuilt(slot, image, superblock)).collect())
    }
}

fn begin_rebuild(
    image: &mut Buffer,
    superblock: &Superblock,
    ledger: &Ledger,
    open: &OpenSlot<'_>,
) -> Option<Rebuild> {
    let entries: Option<Vec<Entry>> = open
        .entries
        .iter()
        .map(|entry| {
            let stream = ledger.stream(entry.stream)?;
            Some(Entry {
                stream: entry.stream,
                kind: stream.kind,
                name: Name::new(&stream.name).ok()?,
                preamble: entry.preamble,
                classes: Classes::default(),
                counters: entry.counters,
                began: entry.began(open.age),
            })
        })
        .collect();
    let entries = entries?;
    let id = SlotId {
        ring: superblock.ring,
        group: superblock.group,
        lane: superblock.lane,
        sequence: open.sequence,
        epoch: open.epoch,
        age: open.age,
    };
    let builder = Builder::new(superblock.geometry.slot_bytes, entries.len().max(1));
    Rebuild::open(builder, image, id, open.opened, &entries).ok()
}

fn seal_rebuilt(rebuild: Rebuild, mut image: Buffer, superblock: &Superblock) -> Option<Rebuilt> {
    let mut builder = rebuild.finish(&mut image);
    if builder.is_empty() {
        return None;
    }
    let (id, opened) = (builder.id(), builder.opened());
    let flags = SlotFlags::SHORT | SlotFlags::REBUILT;
    let summaries: Vec<EntrySummary> = builder.summaries().collect();
    let bounds = Bounds::of(summaries.iter().copied());
    let sealed = builder.seal(&mut image, &superblock.key, SlotNo(0), bounds.last.max(opened), flags);
    let counters = summaries.iter().map(|e| (e.stream, e.preamble, e.counters)).collect();
    let sealed = SealedSlot { sequence: id.sequence, age: id.age, bytes: sealed.bytes, bounds };
    let spans = summaries.iter().map(StreamExtent::from).collect();
    Some(Rebuilt { sealed, image, counters, spans })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewRing, create};
    use holdfast_base::{Age, Epoch, RingId, Timestamp};
    use holdfast_format::{CopyRecord, Geometry, Key};
    use holdfast_media::MemoryDisk;

    /// What there is to put together of slots 5 to 7 when this has followed on them.
    fn left(then: &Record<'_>) -> Vec<u64> {
        let geometry = Geometry::for_lane(8 << 20, 64 << 10, Vec::new()).unwrap();
        let new = NewRing::plain(RingId([1; 16]), Key([2; 32]), "r", geometry.clone());
        let superblock = create(&mut MemoryDisk::new(8 << 20), new, Timestamp(1)).unwrap();
        let open = |number| {
            let (ring, group, lane) = (superblock.ring, superblock.group, superblock.lane);
            let (sequence, age, epoch) = (Sequence(number), Age(number), Epoch(1));
            let id = SlotId { ring, group, lane, sequence, epoch, age };
            let mut image = Buffer::aligned(64 << 10).unwrap();
            let builder = Builder::new(64 << 10, 1);
            (Rebuild::open(builder, &mut image, id, Timestamp(1), &[Entry::default()]).unwrap(), image)
        };
        let mut candidates = Candidates { slots: (5..8).map(open).collect(), failed: Vec::new() };
        candidates.note(then, &superblock, &Ledger::empty(geometry));
        candidates.slots.iter().map(|(slot, _)| slot.sequence().0).collect()
    }

    #[test]
    fn what_is_on_the_medium_or_was_to_go_from_there_is_not_put_together() {
        let copy = CopyRecord { slot: SlotNo(9), sequence: Sequence(11), age: Age(6) };
        let gone = || vec![Sequence(6), Sequence(4)];
        assert_eq!(left(&Record::Replaced { originals: gone(), copies: vec![copy] }), [5, 7]);
        assert_eq!(left(&Record::Freed { sequences: gone() }), [5, 7]);
        assert_eq!(left(&Record::Runway { naming: Sequence(7), slots: Vec::new() }), [7]);
        assert_eq!(left(&Record::CleanEnd { arrival: Timestamp(2) }), [] as [u64; 0]);
    }
}
