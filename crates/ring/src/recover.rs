//! What a restart concludes: superblock, newest whole snapshot, what was recorded since, which slots of the runway
//! were written, and slots of which only the journal has a part.
//!
//! It reads the journal, the superblocks and the headers of the last runway, so that capture can start in seconds on a
//! ring of any size; everything else is checked behind capture. It writes nothing.

use crate::blocking::Blocking;
use crate::check::{Depth, check_slot};
use crate::event::SealedSlot;
use crate::journal::JournalEnd;
use crate::ledger::{Ledger, Preamble};
use crate::named::Named;
use crate::table::{Bounds, Slot, State};
use crate::walk::{self, WINDOW};
use holdfast_base::{Age, BLOCK, HEAD, MAX_SLOT, MIN_SLOT, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{
    Builder, Counters, Entry, EntrySummary, FormatError, Geometry, HoldRecord, Name, OpenSlot, PartHeader,
    Rebuild, Record, SlotFlags, SlotId, StreamRecord, Summary, Superblock, find_recovery, footer_binds,
    read_commit,
};
use holdfast_media::{Buffer, Disk, DiskError, PoolError};

/// Slots of which only the journal has a part: more than a run can leave behind means a forged or broken journal.
const MAX_REBUILT: usize = 64;

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
    /// The superblock speaks of a longer lane.
    #[error("{disk} has {has} bytes, but its superblock says {wants}: is it the whole device?")]
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

/// A slot that only the journal had, sealed anew.
#[derive(Debug)]
pub struct Rebuilt {
    /// What it is.
    pub sealed: SealedSlot,
    /// Its bytes; the slot number in its header is to be stamped when it gets its place.
    pub image: Buffer,
    /// What its streams had come to.
    pub counters: Vec<(StreamId, u32, Counters)>,
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
    /// Slots to be written before anything else.
    pub rebuilt: Vec<Rebuilt>,
    /// Written slots that may have been in flight when the run was cut off: to be checked in full.
    pub(crate) suspects: Vec<SlotNo>,
    /// The latest arrival that is known to be kept.
    pub last_arrival: Option<Timestamp>,
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

    /// All preambles.
    pub fn preambles(&self) -> &[Preamble] {
        &self.ledger.preambles
    }

    /// Slots that hold data: place, sequence and age, as far as the journal knows.
    pub fn data(&self) -> impl Iterator<Item = (SlotNo, Sequence, Age)> {
        let data = self.ledger.table.iter().filter(|(_, s)| s.state == State::Data);
        data.map(|(no, slot)| (no, slot.sequence, slot.age))
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

/// What a slot's summary says in short.
pub(crate) fn bounds_of(entries: &[EntrySummary]) -> Bounds {
    let mut bounds = Bounds::NONE;
    for entry in entries {
        if let Some((first, last)) = entry.arrivals {
            bounds.add(entry.stream, first, last, entry.events);
        }
    }
    bounds
}

/// A recovery string that was found at the head of an extent.
struct Found {
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
    let mut all: Vec<Found> = Vec::new();
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
        let found =
            Found { offset, generation: commit.generation, wall: wall.unwrap_or(Timestamp::MIN), superblock };
        let placed = (0..2).any(|extent| found.superblock.geometry.extent_offset(extent) == offset);
        // Of a ring that was overwritten no snapshot may be whole.
        if placed && matches!(newest_snapshot(&mut window, &found.superblock), Ok(Some(_))) {
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

/// Opens a ring for reading or for a new run.
pub fn recover(disk: &mut dyn Disk) -> Result<Recovered, RecoverError> {
    let superblock = read_superblock(disk)?;
    let info = disk.info();
    let name = info.name.clone();
    if info.bytes < superblock.geometry.lane_bytes {
        return Err(RecoverError::TooShort {
            disk: name,
            has: info.bytes,
            wants: superblock.geometry.lane_bytes,
        });
    }
    let mut window = Blocking::new(disk, WINDOW.max(superblock.geometry.commit_bytes()))?;
    let found = newest_snapshot(&mut window, &superblock)?;
    let Some(Replayed { mut ledger, named, end: journal, newest }) = found else {
        return Err(RecoverError::NoSnapshot { disk: name });
    };
    if ledger.geometry.lane_bytes < superblock.geometry.lane_bytes {
        // The superblock is written after the journal, so this is a rebuilt one; it knows better.
        ledger.table.grow(superblock.geometry.slots);
        ledger.geometry = superblock.geometry.clone();
    }

    let mut headers = Headers { window: &mut window, superblock: &superblock };
    let mut written = named.settle(&mut headers, &mut ledger);
    ledger.next = ledger.next.max(Sequence(named.naming.0 + named.last.len() as u64 + 1));
    let cut_in_snapshot = journal.highest > journal.generation;
    let torn = if cut_in_snapshot {
        named.settle_unnamed(&mut headers, &mut ledger, &mut written)
    } else {
        Vec::new()
    };

    let suspects: Vec<SlotNo> = written.iter().map(|(no, _)| *no).chain(torn).collect();
    let mut last_arrival = None;
    note_newest(&mut headers, &mut ledger, &written, &mut last_arrival);
    let runway = named
        .last
        .iter()
        .copied()
        .filter(|no| no.0 < ledger.table.len() && ledger.table.get(*no).state == State::Free)
        .collect::<Vec<_>>();
    for no in &runway {
        ledger.table.get_mut(*no).state = State::Runway;
    }

    let mut wanted = Vec::new();
    for sequence in named.journaled.iter().copied().filter(|s| *s >= named.naming) {
        let on_medium = written.iter().find(|(_, header)| header.sequence == sequence);
        let whole = match on_medium {
            Some((no, header)) => headers.is_whole(*no, header.sequence),
            None => ledger.table.find(sequence).is_some(),
        };
        if !whole {
            if let Some((no, _)) = on_medium {
                // Torn: what the journal has of it takes its place.
                *ledger.table.get_mut(*no) = Slot { state: State::Free, ..Slot::FREE };
            }
            wanted.push(sequence);
        }
    }
    wanted.truncate(MAX_REBUILT);
    let rebuilt = rebuild(&mut window, &superblock, &ledger, &journal, &wanted, newest)?;
    for slot in &rebuilt {
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
    Ok(Recovered { superblock, ledger, runway, journal, rebuilt, suspects, last_arrival })
}

/// What the extent with the newest whole snapshot says.
struct Replayed {
    ledger: Ledger,
    /// What was named since.
    named: Named,
    end: JournalEnd,
    newest: Newest,
}

/// The slot that was open last, built anew while its extent is read: as a rule nothing else is wanted of the journal, and
/// it need not be read twice.
#[derive(Default)]
struct Newest {
    slot: Option<Rebuild>,
    image: Option<Buffer>,
}

impl Newest {
    fn note(&mut self, record: &Record<'_>, superblock: &Superblock, ledger: &Ledger) {
        match (record, &mut self.slot, &mut self.image) {
            (Record::OpenSlot(open), slot, image) => {
                if slot.as_ref().is_some_and(|slot| slot.sequence() == open.sequence) {
                    return;
                }
                // Without memory the second walk says so, if it comes to that.
                let taken =
                    image.take().or_else(|| Buffer::aligned(superblock.geometry.slot_bytes as usize).ok());
                *slot = taken.and_then(|mut fresh| {
                    let begun = begin_rebuild(&mut fresh, superblock, ledger, open);
                    *image = Some(fresh);
                    begun
                });
            }
            (_, Some(slot), Some(image)) => drop(slot.apply(image, record)),
            _ => {}
        }
    }
}

/// Replays the extent with the newest whole snapshot.
fn newest_snapshot(
    window: &mut Blocking<'_>,
    superblock: &Superblock,
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
        let mut named = Named::default();
        let mut newest = Newest::default();
        let walked =
            walk::walk(window, &superblock.geometry, extent, &key, ring, u64::MAX, &mut |head, records| {
                for record in records.flatten() {
                    newest.note(&record, superblock, &ledger);
                    ledger.apply(&record);
                    named.note(&record, head.part, &mut ledger);
                }
            })?;
        if let Some(walked) = walked.filter(|w| w.whole) {
            let end = JournalEnd { extent, at: walked.end, generation, highest, number: walked.last.number };
            return Ok(Some(Replayed { ledger, named, end, newest }));
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

/// Takes the streams' counters from the newest slot that has them.
fn note_newest(
    headers: &mut Headers<'_, '_>,
    ledger: &mut Ledger,
    written: &[(SlotNo, PartHeader)],
    last_arrival: &mut Option<Timestamp>,
) {
    let geometry = ledger.geometry.clone();
    // The newest of all may be torn, so that its summary says nothing.
    let older = ledger.table.iter().filter(|(no, _)| written.iter().all(|(w, _)| w != no));
    let older = older.filter(|(_, s)| s.state == State::Data).max_by_key(|(_, s)| s.sequence);
    let older = older.map(|(no, _)| no);
    let older = older.and_then(|no| headers.read(&geometry, no).ok().flatten().map(|h| (no, h)));
    for (no, header) in older.iter().chain(written) {
        let Some(summary) = headers.summary(*no, header) else {
            continue;
        };
        let bounds = bounds_of(&summary.entries);
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
}

/// Builds the wanted slots anew from what the journal has of them: in one more walk over it, unless only the newest is.
fn rebuild(
    window: &mut Blocking<'_>,
    superblock: &Superblock,
    ledger: &Ledger,
    journal: &JournalEnd,
    wanted: &[Sequence],
    newest: Newest,
) -> Result<Vec<Rebuilt>, RecoverError> {
    let mut found: Vec<(Buffer, Rebuild)> = Vec::new();
    found.extend(newest.image.zip(newest.slot).filter(|(_, slot)| wanted.contains(&slot.sequence())));
    if wanted.iter().all(|sequence| found.iter().any(|(_, slot)| slot.sequence() == *sequence)) {
        return Ok(found
            .into_iter()
            .filter_map(|(image, slot)| seal_rebuilt(slot, image, superblock))
            .collect());
    }
    found.clear();
    let mut no_memory = None;
    walk::walk(
        window,
        &superblock.geometry,
        journal.extent,
        &superblock.key,
        superblock.ring,
        u64::MAX,
        &mut |_, records| {
            for record in records.flatten() {
                if let Record::OpenSlot(open) = &record {
                    let known = found.iter().any(|(_, slot)| slot.sequence() == open.sequence);
                    if known || !wanted.contains(&open.sequence) {
                        continue;
                    }
                    match Buffer::aligned(superblock.geometry.slot_bytes as usize) {
                        Ok(mut image) => {
                            let begun = begin_rebuild(&mut image, superblock, ledger, open);
                            found.extend(begun.map(|slot| (image, slot)));
                        }
                        Err(error) => no_memory = Some(error),
                    }
                    continue;
                }
                for (image, slot) in &mut found {
                    // A piece that does not fit the slot is left out: what follows it then has a hole before it.
                    drop(slot.apply(image, &record));
                }
            }
        },
    )?;
    if let Some(error) = no_memory {
        return Err(error.into());
    }
    found.sort_by_key(|(_, slot)| slot.sequence());
    Ok(found.into_iter().filter_map(|(image, slot)| seal_rebuilt(slot, image, superblock)).collect())
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
                schema: stream.schema,
                counters: entry.counters,
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
    let bounds = bounds_of(&summaries);
    let sealed = builder.seal(&mut image, &superblock.key, SlotNo(0), bounds.last.max(opened), flags);
    let counters = summaries.iter().map(|e| (e.stream, e.preamble, e.counters)).collect();
    let sealed = SealedSlot { sequence: id.sequence, age: id.age, bytes: sealed.bytes, bounds };
    Some(Rebuilt { sealed, image, counters })
}
