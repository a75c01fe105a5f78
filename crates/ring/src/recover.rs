//! Recovery: the superblock, the newest whole snapshot, later records, the slots of the runway that were
//! written, and slots that only the journal has.
//!
//! It reads the journal, the superblocks and the headers of the last runway, so that capture can start in seconds on a
//! ring of any size; everything else is checked behind capture. It writes nothing.

use crate::blocking::Blocking;
use crate::check::{Depth, check_slot};
use crate::crash_gaps::{self, CrashGap, FoundAs, FoundSlot, StreamExtent};
use crate::journal::JournalEnd;
use crate::ledger::{Ledger, Preamble};
use crate::rebuild::{Candidates, Doubt, Rebuilt};
use crate::runway_replay::RunwayReplay;
use crate::table::{Bounds, Slot, State};
use crate::walk::{self, WINDOW};
use holdfast_base::{Age, BLOCK, HEAD, MAX_SLOT, MIN_SLOT, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    FormatError, Geometry, HoldRecord, PartHeader, Record, SlotFlags, StreamRecord, Summary, Superblock,
    find_recovery, footer_binds, read_commit,
};
use holdfast_media::{Disk, DiskError, PoolError};

/// Why a ring could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum RecoverError {
    /// The disk said no.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// No memory for a buffer.
    #[error(transparent)]
    Memory(#[from] PoolError),
    /// No copy of the superblock is valid.
    #[error(
        "{disk} has no valid superblock ({why}): if it was a ring, `holdfast check --geometry STRING` rebuilds it from the recovery string that `format` printed"
    )]
    NoSuperblock {
        /// The disk.
        disk: String,
        /// What the best copy says.
        why: FormatError,
    },
    /// The superblock or the journal speaks of a longer lane.
    #[error("{disk} has {has} bytes, but the ring on it has {wants}: is it the whole device or file?")]
    TooShort {
        /// The disk.
        disk: String,
        /// Bytes there are.
        has: u64,
        /// Bytes there should be.
        wants: u64,
    },
    /// Neither extent has a whole snapshot.
    #[error("{disk}: neither journal extent has a whole snapshot: the journal is damaged")]
    NoSnapshot {
        /// The disk.
        disk: String,
    },
}

/// What recovery found.
#[derive(Debug)]
pub struct Recovered {
    /// The superblock that counts.
    pub superblock: Superblock,
    pub(crate) ledger: Ledger,
    /// Named slots that were not written, in order.
    pub(crate) runway: Vec<SlotNo>,
    pub(crate) journal: JournalEnd,
    /// Slots that only the journal has, to be written before anything else.
    pub rebuilt: Vec<Rebuilt>,
    /// Slots that look whole, and what the journal has of them should they turn out not to be.
    pub(crate) doubts: Vec<Doubt>,
    /// Written slots that may have been in flight when the run was cut off: to be checked in full.
    pub(crate) suspects: Vec<SlotNo>,
    /// The latest arrival that is known to be kept.
    pub last_arrival: Option<Timestamp>,
    /// What a crash has taken out of the middle.
    pub(crate) crash_gaps: Vec<CrashGap>,
}

impl Recovered {
    /// Streams there are.
    pub fn streams(&self) -> &[StreamRecord] {
        &self.ledger.streams
    }

    /// Holds that stand.
    pub fn holds(&self) -> &[HoldRecord] {
        &self.ledger.holds
    }

    /// A preamble.
    pub fn preamble(&self, stream: StreamId, version: u32) -> Option<&[u8]> {
        self.ledger.preamble(stream, version).map(|p| p.bytes.as_slice())
    }

    /// A stream's schema as text; empty for none.
    pub fn schema(&self, stream: StreamId) -> &str {
        self.ledger.schema(stream)
    }

    /// All preambles.
    pub fn preambles(&self) -> &[Preamble] {
        &self.ledger.preambles
    }

    /// Slots that hold data: place, sequence and age, as far as the journal knows.
    pub fn data(&self) -> impl Iterator<Item = (SlotNo, Sequence, Age)> {
        let data = self.ledger.table.iter().filter(|(_, s)| s.state == State::Data);
        data.map(|(no, slot)| (no, slot.sequence, slot.age))
    }

    /// The same for another reader; `None` where slots were built anew: they are large.
    pub fn twin(&self) -> Option<Self> {
        let is_small = self.rebuilt.is_empty() && self.doubts.is_empty();
        is_small.then(|| Self {
            superblock: self.superblock.clone(),
            ledger: self.ledger.clone(),
            runway: self.runway.clone(),
            journal: self.journal,
            rebuilt: Vec::new(),
            doubts: Vec::new(),
            suspects: self.suspects.clone(),
            last_arrival: self.last_arrival,
            crash_gaps: self.crash_gaps.clone(),
        })
    }

    /// Ordinals that are in no slot though later ones are: what a crash has taken out of the middle.
    pub fn crash_gaps(&self) -> &[CrashGap] {
        &self.crash_gaps
    }

    /// Whether the last run was cut off.
    pub fn after_crash(&self) -> bool {
        self.ledger.unclean
    }
}

/// Reads the superblock copies and takes the newest valid one.
pub fn read_superblock(disk: &mut dyn Disk) -> Result<Superblock, RecoverError> {
    let name = disk.info().name.clone();
    let bytes = disk.info().bytes;
    let mut window = Blocking::new(disk, BLOCK)?;
    let mut copies = Vec::new();
    for offset in Superblock::OFFSETS {
        if offset + BLOCK as u64 <= bytes
            && let Ok(block) = window.read(offset, BLOCK)
        {
            copies.push(Superblock::decode(block));
        }
    }
    match Superblock::newest(&copies) {
        Ok(newest) => Ok(newest.clone()),
        Err(why) => Err(RecoverError::NoSuperblock { disk: name, why }),
    }
}

/// A recovery string that was found at the head of an extent.
struct FoundSuperblock {
    superblock: Superblock,
    offset: u64,
    generation: u64,
    /// When the run that wrote it began.
    wall: Timestamp,
}

/// Looks for the recovery string that every snapshot repeats, where no copy of the superblock is left: at every place
/// where an extent of any slot size begins. The lane may have been another ring before, of which extents are left.
pub fn find_superblock(disk: &mut dyn Disk) -> Result<Option<Superblock>, RecoverError> {
    let bytes = disk.info().bytes;
    let mut window = Blocking::new(disk, WINDOW)?;
    let sizes =
        std::iter::successors(Some(MIN_SLOT), |size| Some(size * 2)).take_while(|size| *size <= MAX_SLOT);
    let mut all: Vec<FoundSuperblock> = Vec::new();
    for offset in std::iter::once(HEAD).chain(sizes.map(|size| HEAD + 2 * size)) {
        let len = bytes.saturating_sub(offset).min(1 << 20) as usize / BLOCK * BLOCK;
        let Ok(head) = window.read(offset, len) else { continue };
        let Some(superblock) = find_recovery(head).filter(|s| s.geometry.lane_bytes <= bytes) else {
            continue;
        };
        let Ok((commit, records, _)) = read_commit(head, &superblock.key, superblock.ring) else { continue };
        let wall = records.flatten().find_map(|record| match record {
            Record::Epoch { wall, .. } => Some(wall),
            _ => None,
        });
        let found = FoundSuperblock {
            offset,
            generation: commit.generation,
            wall: wall.unwrap_or(Timestamp::MIN),
            superblock,
        };
        let placed = (0..2).any(|extent| found.superblock.geometry.extent_offset(extent) == offset);
        // Of a ring that was overwritten no snapshot may be whole.
        if placed && matches!(newest_snapshot(&mut window, &found.superblock, false), Ok(Some(_))) {
            all.push(found);
        }
    }
    // Every ring begins with its first extent, at the same place: what is there is of the last that was made here.
    let last_made = all.iter().find(|found| found.offset == HEAD).map(|found| found.superblock.ring);
    let newest = all
        .into_iter()
        .max_by_key(|found| (Some(found.superblock.ring) == last_made, found.wall, found.generation));
    Ok(newest.map(|found| found.superblock))
}

/// The superblock as the journal has it: the ring may have grown since it was told so.
pub fn as_journaled(disk: &mut dyn Disk, superblock: &Superblock) -> Result<Superblock, RecoverError> {
    let (name, has) = (disk.info().name.clone(), disk.info().bytes);
    let mut window = Blocking::new(disk, WINDOW.max(superblock.geometry.commit_bytes()))?;
    let found = newest_snapshot(&mut window, superblock, false)?;
    let Some(ledger) =
        found.map(|found| found.ledger).filter(|l| l.geometry.slots > superblock.geometry.slots)
    else {
        return Ok(superblock.clone());
    };
    long_enough(&name, has, ledger.geometry.lane_bytes)?;
    let generation = superblock.generation + 1;
    Ok(Superblock { geometry: ledger.geometry, generation, ..superblock.clone() })
}

fn long_enough(disk: &str, has: u64, wants: u64) -> Result<(), RecoverError> {
    let disk = disk.to_owned();
    if has < wants { Err(RecoverError::TooShort { disk, has, wants }) } else { Ok(()) }
}

/// Opens a ring for reading, or for a run that has time: what was being written when the last run was cut off is read in
/// full.
pub fn recover(disk: &mut dyn Disk) -> Result<Recovered, RecoverError> {
    let mut recovered = recover_for_capture(disk)?;
    let doubts = std::mem::take(&mut recovered.doubts);
    if doubts.is_empty() {
        return Ok(recovered);
    }
    let superblock = recovered.superblock.clone();
    let mut window = Blocking::new(disk, WINDOW)?;
    let mut headers = Headers { window: &mut window, superblock: &superblock };
    for Doubt { slot, rebuilt, spans } in doubts {
        let sequence = rebuilt.sealed.sequence;
        if headers.is_whole(slot, sequence) {
            continue;
        }
        recovered.crash_gaps.extend(crash_gaps::rest(&spans, &rebuilt.spans));
        // Torn: what the journal has of it takes its place.
        *recovered.ledger.table.get_mut(slot) = Slot::FREE;
        recovered.suspects.retain(|no| *no != slot);
        recovered.rebuilt.push(rebuilt);
    }
    recovered.rebuilt.sort_unstable_by_key(|slot| slot.sealed.sequence);
    Ok(recovered)
}

/// Opens a ring for a run that is to begin at once. What was being written when the last run was cut off, and looks whole, is
/// for the check behind capture; what the journal has of it is kept until then.
pub fn recover_for_capture(disk: &mut dyn Disk) -> Result<Recovered, RecoverError> {
    let superblock = read_superblock(disk)?;
    let info = disk.info();
    let name = info.name.clone();
    let has = info.bytes;
    long_enough(&name, has, superblock.geometry.lane_bytes)?;
    let mut window = Blocking::new(disk, WINDOW.max(superblock.geometry.commit_bytes()))?;
    let found = newest_snapshot(&mut window, &superblock, true)?;
    let Some(Replayed { mut ledger, runway_replay, end: journal, candidates }) = found else {
        return Err(RecoverError::NoSnapshot { disk: name });
    };
    long_enough(&name, has, ledger.geometry.lane_bytes)?;
    if ledger.geometry.lane_bytes < superblock.geometry.lane_bytes {
        // The superblock is written after the journal, so this is a rebuilt one; it knows better.
        ledger.table.grow(superblock.geometry.slots);
        ledger.geometry = superblock.geometry.clone();
    }

    let mut headers = Headers { window: &mut window, superblock: &superblock };
    let mut written = runway_replay.settle(&mut headers, &mut ledger);
    ledger.next = ledger.next.max(Sequence(runway_replay.naming.0 + runway_replay.last.len() as u64 + 1));
    let cut_in_snapshot = journal.highest > journal.generation;
    let torn = if cut_in_snapshot {
        runway_replay.settle_unnamed(&mut headers, &mut ledger, &mut written)
    } else {
        Vec::new()
    };

    let suspects: Vec<SlotNo> = written.iter().map(|(no, _)| *no).chain(torn).collect();
    let mut last_arrival = None;
    // As the journal has them, before slots are looked into.
    let counted = ledger.streams.clone();
    let mut told = note_newest(&mut headers, &mut ledger, &written, &mut last_arrival);
    let runway = runway_replay
        .last
        .iter()
        .copied()
        .filter(|no| no.0 < ledger.table.len() && ledger.table.get(*no).state == State::Free)
        .collect::<Vec<_>>();
    for no in &runway {
        ledger.table.get_mut(*no).state = State::Runway;
    }

    let (mut rebuilt, mut doubts) = (Vec::new(), Vec::new());
    for slot in candidates.sealed(&superblock)? {
        let sequence = slot.sealed.sequence;
        let on_medium = written.iter().find(|(_, header)| header.sequence == sequence);
        match on_medium {
            Some((no, _)) => {
                let found = told.iter().find(|told| told.sequence == sequence);
                let spans = found.map(|told| told.spans.clone()).unwrap_or_default();
                doubts.push(Doubt { slot: *no, rebuilt: slot, spans });
            }
            None if ledger.table.find(sequence).is_some() => {}
            None => rebuilt.push(slot),
        }
    }
    for slot in rebuilt.iter().chain(doubts.iter().map(|doubt| &doubt.rebuilt)) {
        last_arrival = last_arrival.max(Some(slot.sealed.bounds.last));
        for (stream, _, counters) in &slot.counters {
            if let Some(known) = ledger.stream_mut(*stream)
                && known.counters.next_ordinal <= counters.next_ordinal
            {
                known.counters = *counters;
            }
        }
    }
    ledger.count_holds();
    let beginnings = rebuilt.iter().map(|slot| FoundSlot {
        sequence: slot.sealed.sequence,
        found: FoundAs::Beginning,
        spans: slot.spans.clone(),
    });
    told.extend(beginnings);
    let crash_gaps = if ledger.unclean {
        crash_gaps::crash_gaps(told, runway_replay.naming, runway_replay.freed(), &counted, &ledger.purges)
    } else {
        Vec::new()
    };
    Ok(Recovered { superblock, ledger, runway, journal, rebuilt, doubts, suspects, last_arrival, crash_gaps })
}

/// What the extent with the newest whole snapshot says.
struct Replayed {
    ledger: Ledger,
    /// What was named since.
    runway_replay: RunwayReplay,
    end: JournalEnd,
    /// What it has of slots that may not be on the medium.
    candidates: Candidates,
}

/// Replays the extent with the newest whole snapshot, and builds open slots anew where `images` are wanted.
fn newest_snapshot(
    window: &mut Blocking<'_>,
    superblock: &Superblock,
    images: bool,
) -> Result<Option<Replayed>, RecoverError> {
    let (key, ring) = (superblock.key.clone(), superblock.ring);
    let mut heads = Vec::new();
    for extent in 0..2 {
        if let Some(head) = walk::peek(window, &superblock.geometry, extent, &key, ring)? {
            heads.push((head.generation, extent));
        }
    }
    heads.sort_unstable();
    let highest = heads.last().map_or(0, |(generation, _)| *generation);
    while let Some((generation, extent)) = heads.pop() {
        let mut ledger = Ledger::empty(superblock.geometry.clone());
        let mut runway_replay = RunwayReplay::default();
        let mut candidates = Candidates::default();
        let walked =
            walk::walk(window, &superblock.geometry, extent, &key, ring, u64::MAX, &mut |head, records| {
                for record in records.flatten() {
                    if images {
                        candidates.note(&record, superblock, &ledger);
                    }
                    ledger.apply(&record);
                    runway_replay.note(&record, head.part, &mut ledger);
                }
            })?;
        if let Some(walked) = walked.filter(|w| w.whole) {
            let end = JournalEnd { extent, at: walked.end, generation, highest, number: walked.last.number };
            return Ok(Some(Replayed { ledger, runway_replay, end, candidates }));
        }
    }
    Ok(None)
}

/// Reads part headers, footers and summaries.
pub(crate) struct Headers<'a, 'd> {
    window: &'a mut Blocking<'d>,
    superblock: &'a Superblock,
}

impl Headers<'_, '_> {
    /// The header of what a slot holds, if header and footer are bound to each other.
    pub(crate) fn read(&mut self, geometry: &Geometry, no: SlotNo) -> Result<Option<PartHeader>, DiskError> {
        let offset = geometry.slot_offset(no);
        let block = self.window.read(offset, BLOCK)?;
        let header = PartHeader::decode(block, &self.superblock.key, self.superblock.ring).ok();
        let Some(header) = header.filter(|h| h.slot == no) else {
            return Ok(None);
        };
        let footer = self.window.read(offset + u64::from(header.footer_offset), BLOCK)?;
        Ok(footer_binds(&header, footer, &self.superblock.key).is_ok().then_some(header))
    }

    fn summary(&mut self, no: SlotNo, header: &PartHeader) -> Option<Summary> {
        let offset = self.superblock.geometry.slot_offset(no) + BLOCK as u64;
        let len = (header.summary_bytes as usize).next_multiple_of(BLOCK);
        let bytes = self.window.read(offset, len).ok()?;
        Summary::decode(header, bytes.get(..header.summary_bytes as usize)?).ok()
    }

    pub(crate) fn is_whole(&mut self, no: SlotNo, sequence: Sequence) -> bool {
        let check = check_slot(self.window, self.superblock, no, Depth::Full);
        check.is_ok_and(|c| c.sound().is_some_and(|(found, ..)| found.sequence == sequence))
    }
}

/// Takes the streams' counters from the newest slot that has them. What those say that were looked into.
fn note_newest(
    headers: &mut Headers<'_, '_>,
    ledger: &mut Ledger,
    written: &[(SlotNo, PartHeader)],
    last_arrival: &mut Option<Timestamp>,
) -> Vec<FoundSlot> {
    let geometry = ledger.geometry.clone();
    // The newest of all may be torn, so that its summary says nothing.
    let older = ledger.table.iter().filter(|(no, _)| written.iter().all(|(w, _)| w != no));
    let older = older.filter(|(_, s)| s.state == State::Data).map(|(no, slot)| (slot, no));
    // The newest of all, and if that is a copy of older ones, the newest that is none.
    let newest = |of: &mut dyn Iterator<Item = (Slot, SlotNo)>| of.max_by_key(|(slot, _)| slot.sequence);
    let all: Vec<(Slot, SlotNo)> = older.collect();
    let originals = all.iter().copied().filter(|(slot, _)| slot.age.0 == slot.sequence.0);
    let (own, any) = (newest(&mut originals.clone()), newest(&mut all.iter().copied()));
    let mut older: Vec<SlotNo> = own.into_iter().chain(any).map(|(_, no)| no).collect();
    older.dedup();
    let older: Vec<(SlotNo, PartHeader)> = older
        .into_iter()
        .filter_map(|no| headers.read(&geometry, no).ok().flatten().map(|header| (no, header)))
        .collect();
    let mut told = Vec::new();
    for (no, header) in older.iter().chain(written) {
        let Some(summary) = headers.summary(*no, header) else {
            continue;
        };
        let found = if header.flags.has(SlotFlags::DISTILLED) { FoundAs::Copy } else { FoundAs::Whole };
        let spans = summary.entries.iter().map(StreamExtent::from).collect();
        told.push(FoundSlot { sequence: header.sequence, found, spans });
        let bounds = Bounds::of(summary.entries.iter().copied());
        if bounds.first <= bounds.last {
            *last_arrival = (*last_arrival).max(Some(bounds.last));
        }
        for entry in &summary.entries {
            if let Some(known) = ledger.stream_mut(entry.stream)
                && known.counters.next_ordinal <= entry.counters.next_ordinal
            {
                known.counters = entry.counters;
            }
        }
    }
    told
}
