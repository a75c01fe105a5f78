//! Writer of the bird's-eye view: copies each data slot's pruning statistics into memory that clients map. A
//! slot that is being written is copied out of its buffer; a slot that was there before is read behind
//! capture, once it has been checked.
//!
//! A place counts for the sequence that it names, and nobody asks for one that is not in the slot table. The places are made to
//! agree with the table a few at a time; what a purge destroys is wiped before that is done. What a place looks like is
//! `format`'s.

use crate::driver::{Driver, EYE};
use crate::scan::SCAN_PAUSE;
use crate::table::State;
use holdfast_base::{BLOCK, ByteSize, Sequence, SlotNo, Timestamp};
use holdfast_format::{LEAST_PLACE, PartHeader, PlaceState, Superblock, ViewPlace, crc32c};
use holdfast_media::{Buffer, Disk, DiskError, Fault, Op, Request};

/// Places that are looked at before capture has its turn again.
const LOOKS: usize = 256;

/// The view, and how far it agrees with the table.
#[derive(Debug)]
pub struct BirdsEye {
    memory: Buffer,
    /// Bytes of a place.
    place: usize,
    /// The slot that is looked at next.
    next: u32,
    /// Up to where it has been read.
    from: usize,
    /// What the table's changes came to when the first one was looked at.
    seen: Option<u64>,
    /// Slots of data that have been found told, and how many that were when last all had been looked at.
    counted: u32,
    told: u32,
    reading: Option<ViewRead>,
    /// Not before this time: the device did not answer.
    after: Timestamp,
    /// Nothing is read any more.
    ended: bool,
}

/// A piece of a slot that is being read.
#[derive(Clone, Copy, Debug)]
struct ViewRead {
    slot: SlotNo,
    sequence: Sequence,
    offset: usize,
    len: usize,
}

impl BirdsEye {
    /// A view in this memory of a ring with so many slots.
    pub fn new(memory: Buffer, slots: u32) -> Self {
        let place = Self::place_bytes(memory.len(), slots);
        Self {
            memory,
            place,
            next: u32::MAX,
            from: 0,
            seen: None,
            counted: 0,
            told: 0,
            reading: None,
            after: Timestamp::MIN,
            ended: false,
        }
    }

    /// Bytes of a slot's place where so many slots share that much memory.
    pub fn place_bytes(memory: usize, slots: u32) -> usize {
        memory / (slots as usize).max(1) / 64 * 64
    }

    /// Memory that gives each slot at most a place of so many bytes, as few as make sense counted as none.
    pub fn memory(most: ByteSize, place: u64, slots: u32) -> ByteSize {
        let block = BLOCK as u64;
        let share = most.0 / block * block / u64::from(slots.max(1));
        let place = place.next_multiple_of(64).min(share / 64 * 64);
        let bytes = (place * u64::from(slots)).next_multiple_of(block);
        ByteSize(if place < LEAST_PLACE as u64 { 0 } else { bytes })
    }

    /// The place of a slot; a lane that has grown may have slots without one.
    fn place(&mut self, slot: SlotNo) -> Option<ViewPlace<'_>> {
        let at = (slot.0 as usize).checked_mul(self.place)?;
        ViewPlace::new(self.memory.get_mut(at..at.checked_add(self.place)?)?)
    }

    /// Tells of a slot that has been written.
    fn put(&mut self, slot: SlotNo, sequence: Sequence, image: &[u8]) {
        if let Some(mut place) = self.place(slot)
            && place.begin(sequence, image)
        {
            place.take(0, image);
            place.publish();
        }
    }

    /// Takes what was read of a slot; its head is believed if it is that of this slot.
    fn take(&mut self, read: ViewRead, bytes: &[u8], superblock: &Superblock) {
        let ViewRead { slot, sequence, offset, len } = read;
        self.from = offset + len;
        let Some(mut place) = self.place(slot) else { return };
        if place.told() == PlaceState::Begun(sequence) {
            place.take(offset, bytes);
        } else if is_head(bytes, slot, sequence, superblock) {
            place.begin(sequence, bytes);
            place.take(0, bytes);
        } else {
            place.give_up(sequence);
        }
    }
}

/// Whether these are the first bytes of that slot, to the end of its summary.
fn is_head(bytes: &[u8], slot: SlotNo, sequence: Sequence, superblock: &Superblock) -> bool {
    let Ok(header) = PartHeader::decode(bytes, &superblock.key, superblock.ring) else { return false };
    let summary = bytes.get(BLOCK..BLOCK + header.summary_bytes as usize);
    (header.slot, header.sequence) == (slot, sequence)
        && summary.is_some_and(|summary| crc32c(summary) == header.summary_crc)
}

impl<D: Disk> Driver<D> {
    /// Keeps this view from here on.
    pub fn keep_view(&mut self, view: BirdsEye) {
        self.view = Some(view);
    }

    /// Bytes of the view, and how many slots of data it told of when it was last looked through; nothing where none is kept.
    pub fn birds_eye(&self) -> Option<(ByteSize, u32)> {
        self.view.as_ref().map(|view| (ByteSize(view.memory.len() as u64), view.told))
    }

    /// Reads nothing for it any more.
    pub fn end_view(&mut self) {
        if let Some(view) = &mut self.view {
            view.ended = true;
        }
    }

    /// A slot has been written: it is told of if it is data now.
    pub(crate) fn see_written(&mut self, sequence: Sequence, image: &[u8]) {
        if let (Some(view), Some(slot)) = (&mut self.view, self.ring.ledger.table.find(sequence)) {
            view.put(slot, sequence, image);
        }
    }

    /// The check behind capture has read these bytes of a sound slot: its beginning need not be read again.
    pub(crate) fn see_head(&mut self, (slot, sequence): (SlotNo, Sequence), offset: u64, bytes: &[u8]) {
        let is_beginning = offset == self.ring.ledger.geometry.slot_offset(slot);
        let Self { view: Some(view), superblock, .. } = self else { return };
        let Some(mut place) = view.place(slot).filter(|_| is_beginning) else { return };
        if place.told() != PlaceState::All(sequence)
            && is_head(bytes, slot, sequence, superblock)
            && place.begin(sequence, bytes)
        {
            place.take(0, bytes);
            if place.wants(0).is_none() {
                place.publish();
            }
        }
    }

    /// Leaves nothing of what was told of a slot that is not data any more.
    pub(crate) fn unsee(&mut self, slot: SlotNo) {
        if self.ring.ledger.table.get(slot).state != State::Data
            && let Some(mut place) = self.view.as_mut().and_then(|view| view.place(slot))
        {
            place.wipe();
        }
    }

    /// Makes some more places agree with the table, and reads for one of them at a time.
    pub(crate) fn look_over(&mut self, now: Timestamp) {
        let Some(view) = &mut self.view else { return };
        let early = self.ring.unscanned > 0 || self.ring.is_starting() || now < view.after;
        if early || view.ended || view.reading.is_some() {
            return;
        }
        let table = &self.ring.ledger.table;
        for _ in 0..LOOKS {
            if view.next >= table.len() {
                view.told = view.counted;
                if view.seen == Some(table.changes()) {
                    return;
                }
                view.seen = Some(table.changes());
                (view.next, view.from, view.counted) = (0, 0, 0);
            }
            let slot = SlotNo(view.next);
            let here = table.get(slot);
            let is_data = here.state == State::Data;
            let (sequence, from) = (here.sequence, view.from);
            let Some(mut place) = view.place(slot) else {
                // Neither have those behind it.
                view.next = table.len();
                continue;
            };
            let told = place.told();
            let mut wanted = None;
            match told {
                PlaceState::Nothing if !is_data => {}
                _ if !is_data => {
                    place.wipe();
                    view.next += 1;
                    // One at a time: places may be large.
                    return;
                }
                PlaceState::All(of) if of == sequence => view.counted += 1,
                PlaceState::Never(of) if of == sequence => {}
                _ if here.damaged => {}
                PlaceState::Begun(of) if of == sequence => {
                    wanted = place.wants(from);
                    if wanted.is_none() {
                        place.publish();
                        continue;
                    }
                }
                // All of the head, whatever it comes to.
                _ => wanted = Some(0..BLOCK + self.superblock.geometry.summary_bytes()),
            }
            if let Some(range) = wanted {
                self.read_for_view(slot, sequence, range, now);
                return;
            }
            (view.next, view.from) = (view.next + 1, 0);
        }
    }

    /// Asks for a stretch of a slot, as much of it as is read at once.
    fn read_for_view(
        &mut self,
        slot: SlotNo,
        sequence: Sequence,
        range: std::ops::Range<usize>,
        now: Timestamp,
    ) {
        // The check behind capture has ended.
        let Some(buffer) = self.scan.lend() else { return };
        let geometry = &self.ring.ledger.geometry;
        let offset = range.start / BLOCK * BLOCK;
        let end = range.end.next_multiple_of(BLOCK).min(geometry.slot_bytes as usize);
        let len = end.saturating_sub(offset).min(buffer.len());
        let at = geometry.slot_offset(slot) + offset as u64;
        let Some(view) = self.view.as_mut().filter(|_| len > 0) else {
            self.scan.give_back(Some(buffer));
            return;
        };
        view.reading = Some(ViewRead { slot, sequence, offset, len });
        self.push_request(Request { tag: EYE, op: Op::Read { offset: at, buffer, len } }, now);
    }

    /// Takes what was asked for.
    pub(crate) fn view_read(
        &mut self,
        buffer: Option<Buffer>,
        result: Result<(), DiskError>,
        now: Timestamp,
    ) {
        let reading = self.view.as_mut().and_then(|view| view.reading.take());
        if let (Some(view), Some(read), Some(bytes)) = (&mut self.view, reading, &buffer) {
            let here = self.ring.ledger.table.get(read.slot);
            // What has become of it meanwhile is seen when it is looked at again.
            let still = here.state == State::Data && here.sequence == read.sequence;
            match result {
                Ok(()) if still => view.take(read, &bytes[..read.len], &self.superblock),
                Err(error) if !matches!(error.fault, Fault::Io | Fault::Misplaced) => {
                    view.after = now + SCAN_PAUSE;
                }
                Err(_) if still => {
                    if let Some(mut place) = view.place(read.slot) {
                        place.give_up(read.sequence);
                    }
                }
                _ => {}
            }
        }
        self.scan.give_back(buffer);
    }
}
