//! A ring's life on a memory disk: made, written for several laps, held, released, restarted. Promises 3, 4 and 6.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use holdfast_base::{
    Clock, HoldId, LaneNo, ManualClock, Ordinal, RingId, Sequence, SlotNo, StreamId, Timestamp,
};
use holdfast_format::{
    Builder, Cause, Chunk, Counters, Cursor, Entry, Flags, Gap, Geometry, Key, Kind, Row, SectionKind,
    SlotFlags, SlotId, StreamKind, Superblock, check_image, decode_directory,
};
use holdfast_media::{Buffer, Disk as _, Image, MemoryDisk};
use holdfast_ring::{
    Bounds, Chore, ChoreReply, Config, Driver, HoldRequest, NewRing, NewStream, OpenBrief, Order, OrderId,
    Outcome, PurgeError, PurgeRequest, Range, Refusal, SealedSlot, SlotLook, create, find_superblock,
    order_once, read_superblock, recover, write_superblocks,
};
use std::time::Duration;

const SLOT: u64 = 64 << 10;
const SLOTS: u64 = 24;

/// A recorder in miniature: one stream, one element after the other.
struct Recorder {
    driver: Driver<MemoryDisk>,
    entries: Vec<Entry>,
    builder: Builder,
    open: Option<Buffer>,
    clock: ManualClock,
    next: u64,
}

fn made() -> MemoryDisk {
    let mut disk = MemoryDisk::new((1 << 20) + 4 * SLOT + SLOTS * SLOT);
    let superblock = make(&mut disk, 7, SLOT);
    assert_eq!(u64::from(superblock.geometry.slots), SLOTS);
    disk
}

/// A new ring on all of a disk, whatever was there.
fn make(disk: &mut MemoryDisk, id: u8, slot_bytes: u64) -> Superblock {
    let geometry = Geometry::for_lane(disk.info().bytes, slot_bytes, Vec::new()).unwrap();
    let (ring, key) = (RingId([id; 16]), Key([9; 32]));
    let new = NewRing { ring, key, name: "r".into(), geometry, prefilled: false };
    create(disk, new, Timestamp(1)).unwrap()
}

impl Recorder {
    fn start(mut disk: MemoryDisk, clock: &ManualClock) -> Self {
        let recovered = recover(&mut disk).unwrap();
        let buffers = (0..3).map(|_| Buffer::aligned(SLOT as usize).unwrap()).collect();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 1 };
        let mut driver = Driver::start(disk, recovered, buffers, config, clock.now(), clock.wall()).unwrap();
        let new =
            NewStream { name: "s", kind: StreamKind::Bytes, framing: "fixed:1000", preamble: Some(b"head") };
        let entry = driver.ring_mut().add_stream(&new, clock.now()).unwrap();
        let next = entry.counters.next_ordinal.0;
        let mut recorder = Self {
            driver,
            entries: vec![entry],
            builder: Builder::new(SLOT, 4),
            open: None,
            clock: clock.clone(),
            next,
        };
        for _ in 0..50 {
            recorder.poll();
        }
        assert!(!recorder.driver.is_starting());
        recorder
    }

    fn brief(&self) -> Option<OpenBrief> {
        self.open.as_ref()?;
        let mut bounds = Bounds::NONE;
        for summary in self.builder.summaries() {
            if let Some((first, last)) = summary.arrivals {
                bounds.add(summary.stream, first, last, None);
            }
        }
        let end = self.builder.cursor();
        Some(OpenBrief { sequence: self.builder.sequence(), bounds, end, room: self.builder.room() as u64 })
    }

    fn poll(&mut self) {
        let brief = self.brief();
        let (builder, open) = (&self.builder, &self.open);
        self.driver.poll(self.clock.now(), Duration::ZERO, brief, &mut |from, writer| {
            let Some(buffer) = open else { return (from, true) };
            if from == Cursor::default() && !writer.push(&builder.open_record()) {
                return (from, false);
            }
            builder.gains(buffer, from, writer)
        });
        assert_eq!(self.driver.ring().miscounts(), None);
    }

    /// Records one element of 1000 bytes that repeat its ordinal.
    fn element(&mut self) {
        let payload = self.next.to_le_bytes().repeat(125);
        self.row(Row { kind: Kind::Element, ordinal: Ordinal(self.next), ..Row::default() }, &payload);
        self.next += 1;
    }

    /// Records a row of such data.
    fn row(&mut self, row: Row, data: &[u8]) {
        self.clock.set(self.clock.now() + Duration::from_millis(1));
        if self.open.is_some() && self.builder.room() < data.len().max(1) {
            self.seal(SlotFlags::default());
        }
        if self.open.is_none() {
            let sequence = loop {
                if let Some(sequence) = self.driver.ring_mut().open_next(self.clock.now()) {
                    break sequence;
                }
                self.poll();
            };
            let mut buffer = loop {
                if let Some(buffer) = self.driver.take_buffer() {
                    break buffer;
                }
                self.poll();
            };
            let superblock = self.driver.superblock();
            let id = SlotId {
                ring: superblock.ring,
                group: superblock.group,
                lane: LaneNo(0),
                sequence,
                epoch: self.driver.ring().epoch(),
                age: holdfast_base::Age(sequence.0),
            };
            self.builder.open(&mut buffer, id, self.clock.now(), &self.entries).unwrap();
            self.open = Some(buffer);
        }
        let buffer = self.open.as_mut().unwrap();
        self.builder.write(buffer, data);
        self.builder.row(buffer, &Row { len: data.len() as u32, arrival: self.clock.now(), ..row });
        self.poll();
    }

    fn seal(&mut self, flags: SlotFlags) {
        let Some(mut buffer) = self.open.take() else { return };
        let bounds = {
            let mut bounds = Bounds::NONE;
            for summary in self.builder.summaries() {
                let (first, last) = summary.arrivals.unwrap();
                bounds.add(summary.stream, first, last, None);
            }
            bounds
        };
        let key = self.driver.key().clone();
        let sealed = self.builder.seal(&mut buffer, &key, SlotNo(0), self.clock.now(), flags);
        let counters = self.builder.counters(0);
        self.entries[0].counters = counters;
        let sequence = sealed.sequence;
        let slot = SealedSlot { sequence, age: holdfast_base::Age(sequence.0), bytes: sealed.bytes, bounds };
        let streams: [(StreamId, u32, Counters); 1] =
            [(self.entries[0].stream, self.entries[0].preamble, counters)];
        self.driver.sealed(buffer, slot, &streams, self.clock.now());
    }

    fn order(&mut self, order: Order) -> Outcome {
        let brief = self.brief();
        self.driver.order(OrderId(1), order, brief, self.clock.now());
        for _ in 0..1000 {
            if let Some((_, outcome)) = self.driver.reply() {
                return outcome;
            }
            self.poll();
        }
        panic!("no reply");
    }

    fn stop(mut self) -> MemoryDisk {
        self.seal(SlotFlags::SHORT);
        while !self.driver.is_idle() {
            self.poll();
        }
        self.driver.ring_mut().end(self.clock.now());
        self.poll();
        while !self.driver.is_idle() {
            self.poll();
        }
        self.driver.into_disk()
    }
}

/// Ordinals that are on the disk, slot by slot in order of age; every byte checked.
fn ordinals(disk: &MemoryDisk) -> Vec<u64> {
    let mut copy = MemoryDisk::from_image(disk.snapshot());
    let recovered = recover(&mut copy).unwrap();
    let image = disk.snapshot();
    let mut found = Vec::new();
    let mut slots: Vec<_> = recovered.data().map(|(no, sequence, age)| (age, sequence, no)).collect();
    slots.sort_unstable();
    let mut images: Vec<(Sequence, Vec<u8>)> = slots
        .iter()
        .map(|(_, sequence, no)| {
            let at = recovered.superblock.geometry.slot_offset(*no);
            (*sequence, image.range(at, SLOT as usize))
        })
        .collect();
    images.extend(recovered.rebuilt.iter().map(|r| (r.sealed.sequence, r.image.to_vec())));
    for (sequence, bytes) in images {
        let (header, summary) =
            check_image(&bytes, &recovered.superblock.key, recovered.superblock.ring).unwrap();
        assert_eq!(header.sequence, sequence);
        let (first, last) = summary.entries[0].ordinals.unwrap();
        let payload = &bytes[header.payload_offset as usize..][..header.payload_bytes as usize];
        for (element, ordinal) in payload.chunks(1000).zip(first.0..=last.0) {
            assert_eq!(element, ordinal.to_le_bytes().repeat(125));
            found.push(ordinal);
        }
    }
    found
}

fn hold_last(clock: &ManualClock, span: Duration) -> Order {
    Order::Hold(HoldRequest {
        streams: Vec::new(),
        range: Range { from: clock.now() - span, to: clock.now(), by_event: false, ordinals: None },
        sequences: None,
        reason: "test".into(),
        owner: "me".into(),
        until: Timestamp::MAX,
    })
}

#[test]
fn the_oldest_expires_and_the_newest_stays_over_many_laps() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..10_000 {
        recorder.element();
    }
    let found = ordinals(&recorder.stop());
    assert_eq!(*found.last().unwrap(), 9_999);
    assert!(found.windows(2).all(|w| w[1] == w[0] + 1), "a hole in {found:?}");
    assert!(found.len() as u64 > (SLOTS - 8) * 50, "{} elements are left", found.len());
}

#[test]
fn a_held_range_outlives_laps_and_restarts_until_it_is_released() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..1_000 {
        recorder.element();
    }
    let Outcome::Held { id, slots, .. } = recorder.order(hold_last(&clock, Duration::from_millis(200)))
    else {
        panic!("refused");
    };
    assert!((4..=5).contains(&slots), "{slots} slots");
    for _ in 0..5_000 {
        recorder.element();
    }
    let disk = recorder.stop();
    let mut recorder = Recorder::start(disk, &clock);
    assert!(!recorder.driver.ring().after_crash());
    for _ in 0..5_000 {
        recorder.element();
    }
    let disk = recorder.stop();
    let found = ordinals(&disk);
    assert!((801..=999).all(|o| found.contains(&o)), "held elements are gone: {found:?}");

    let outcome = order_once(disk, Order::Release(id), &clock, &mut || true).unwrap();
    assert_eq!(outcome, Outcome::Released { slots });
}

#[test]
fn what_the_journal_has_survives_a_crash_that_takes_the_open_slot() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..10 {
        recorder.element();
        clock.set(clock.now() + Duration::from_secs(1));
        recorder.poll();
        clock.set(clock.now() + Duration::from_secs(1));
        recorder.poll();
        recorder.poll();
    }
    let disk = recorder.driver.into_disk();
    assert_eq!(ordinals(&disk), (0..10).collect::<Vec<_>>());
    let mut recorder = Recorder::start(disk, &clock);
    assert!(recorder.driver.ring().after_crash());
    assert_eq!(recorder.next, 10);
    recorder.element();
    let found = ordinals(&recorder.stop());
    assert_eq!(found, (0..11).collect::<Vec<_>>());
}

#[test]
fn a_hold_on_the_open_slot_is_acknowledged_when_its_data_is_durable() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..5 {
        recorder.element();
    }
    let outcome = recorder.order(hold_last(&clock, Duration::from_secs(1)));
    assert!(matches!(outcome, Outcome::Held { slots: 1, .. }), "{outcome:?}");
    let disk = recorder.driver.into_disk();
    assert_eq!(ordinals(&disk), (0..5).collect::<Vec<_>>());
}

#[test]
fn pinned_slots_are_shown_and_outlive_laps() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..500 {
        recorder.element();
    }
    let ring = recorder.driver.ring();
    let live = ring.slot_looks(SlotNo(0), 99).find(|s| s.look == SlotLook::Live).unwrap();
    recorder.driver.chore(Chore::Pin(live.slot), clock.now());
    assert!(matches!(recorder.driver.chore_reply(), Some(ChoreReply::Done)));
    for _ in 0..5_000 {
        recorder.element();
    }
    let ring = recorder.driver.ring();
    let pinned = ring.slot_looks(live.slot, 1).next().unwrap();
    assert_eq!((pinned.look, pinned.sequence, pinned.has_data()), (SlotLook::Pinned, live.sequence, true));
    assert_eq!(ring.status("lane").slots.pinned, 1);
    recorder.driver.chore(Chore::Unpin(live.slot), clock.now());
    for _ in 0..2_000 {
        recorder.element();
    }
    let now = recorder.driver.ring().slot_looks(live.slot, 1).next().unwrap();
    assert!(now.sequence > live.sequence || now.look == SlotLook::Runway, "{now:?}");
}

#[test]
fn sequences_that_nothing_was_written_under_do_not_stop_capture() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..120 {
        recorder.element();
    }
    recorder.seal(SlotFlags::SHORT);
    for _ in 0..20 {
        recorder.poll();
    }
    // A job takes sequences for copies until there are none, and makes no copy; the runway stays as long as it was.
    let mut taken = 0;
    loop {
        recorder.driver.chore(Chore::NewCopy, clock.now());
        match recorder.driver.chore_reply() {
            Some(ChoreReply::Copy { buffer, .. }) => {
                taken += 1;
                recorder.driver.chore(Chore::GiveBack(buffer), clock.now());
                recorder.driver.chore_reply();
            }
            other => break assert!(matches!(other, Some(ChoreReply::Later(None))), "{other:?}"),
        }
    }
    assert!(taken > 2, "{taken}");
    for _ in 0..20 {
        recorder.poll();
    }
    let sequence = recorder.driver.ring_mut().open_next(clock.now());
    assert!(sequence.is_some(), "the ring stands still with buffers and slots");
}

#[test]
fn a_release_gives_back_as_many_slots_as_the_hold_took() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..300 {
        recorder.element();
    }
    let outcome = recorder.order(hold_last(&clock, Duration::from_hours(1)));
    let Outcome::Held { id, slots, .. } = outcome else { panic!("{outcome:?}") };
    let written = recorder.driver.ring().status("lane").slots.held;
    assert_eq!(written + 1, slots, "the open one is among them");
    let outcome = recorder.order(Order::Release(id));
    assert!(matches!(outcome, Outcome::Released { slots: freed } if freed == slots), "{outcome:?}");
}

#[test]
fn holds_never_take_what_capture_needs() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..2_000 {
        recorder.element();
    }
    let outcome = recorder.order(hold_last(&clock, Duration::from_hours(1)));
    assert!(matches!(outcome, Outcome::Refused(_)), "{outcome:?}");
    let held = recorder.driver.ring().slot_looks(SlotNo(0), 99).filter(|s| s.look == SlotLook::Held).count();
    assert_eq!(held, 0);
}

/// Ordinals of the elements that are on the disk, read row by row, gaps left out.
fn payloads(disk: &MemoryDisk) -> Vec<u64> {
    let elements = rows(disk).into_iter().filter(|(row, _)| row.kind == Kind::Element);
    elements
        .map(|(row, data)| {
            assert_eq!(data, row.ordinal.0.to_le_bytes().repeat(125));
            row.ordinal.0
        })
        .collect()
}

/// The rows that are on the disk, with their data, slot by slot in order of age.
fn rows(disk: &MemoryDisk) -> Vec<(Row, Vec<u8>)> {
    let mut copy = MemoryDisk::from_image(disk.snapshot());
    let recovered = recover(&mut copy).unwrap();
    let image = disk.snapshot();
    let mut slots: Vec<_> = recovered.data().map(|(no, _, age)| (age, no)).collect();
    slots.sort_unstable();
    let mut found = Vec::new();
    for (_, no) in slots {
        let bytes = image.range(recovered.superblock.geometry.slot_offset(no), SLOT as usize);
        let (header, summary) =
            check_image(&bytes, &recovered.superblock.key, recovered.superblock.ring).unwrap();
        let directory = summary.section(SectionKind::ChunkDirectory).unwrap();
        let base = summary.section(SectionKind::Chunks).unwrap().range().start;
        for entry in decode_directory(&bytes[directory.range()], directory.crc).unwrap() {
            let chunk = &bytes[base + entry.offset as usize..][..entry.bytes as usize];
            for (row, at) in Chunk::decode(chunk).unwrap().rows() {
                let at = header.payload_offset as usize + at as usize;
                found.push((row, bytes[at..at + row.len as usize].to_vec()));
            }
        }
    }
    found
}

/// Ordinals of which any trace of the payload is left anywhere on the medium.
fn traces(disk: &MemoryDisk) -> Vec<u64> {
    let image = disk.snapshot();
    let bytes = image.range(0, image.bytes() as usize);
    let mut found = std::collections::BTreeSet::new();
    let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    for window in words.windows(3).filter(|w| w[0] == w[1] && w[1] == w[2]) {
        if (1..1 << 20).contains(&window[0]) {
            found.insert(window[0]);
        }
    }
    found.into_iter().collect()
}

fn purge(first: u64, end: u64, held: bool) -> Order {
    let range = Range { ordinals: Some((Ordinal(first), Ordinal(end))), ..Range::ALL };
    Order::Purge(PurgeRequest { streams: Vec::new(), range, held, reason: "law".into(), owner: "me".into() })
}

#[test]
fn a_purge_leaves_no_trace_and_takes_nothing_else() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for at in 0..700 {
        recorder.element();
        if at % 20 == 0 {
            // Slowly enough for the journal to have some of every slot.
            clock.set(clock.now() + Duration::from_secs(2));
            recorder.poll();
            clock.set(clock.now() + Duration::from_secs(1));
            recorder.poll();
        }
    }
    let mut disk = recorder.stop();
    let before = ordinals(&disk);
    // Late enough for the journal to have some of it.
    let (first, end) = (before[before.len() - 200], before[before.len() - 40]);
    assert!((first..end).all(|o| traces(&disk).contains(&o)));
    let outcome = order_once(&mut disk, purge(first, end, false), &clock, &mut || true).unwrap();
    let Outcome::Purged { elements, bytes, slots } = outcome else { panic!("{outcome:?}") };
    assert_eq!((elements, bytes), (160, 160_000));
    assert!(slots >= 3, "{slots}");
    let left = traces(&disk);
    assert!(!left.iter().any(|o| (first..end).contains(o)), "traces of {left:?}");
    let expected: Vec<u64> = before.iter().copied().filter(|o| !(first..end).contains(o)).collect();
    assert_eq!(payloads(&disk), expected);
    // What was there still is after the next run has written over every free slot.
    let mut recorder = Recorder::start(disk, &clock);
    assert_eq!(recorder.next, 700);
    recorder.element();
    assert_eq!(payloads(&recorder.stop()).last(), Some(&700));
}

/// Promise 2: of elements in fragments, too, those that were given up and those that were received, every byte that came
/// is in an element that is there or in one gap, whatever is purged.
#[test]
fn a_purge_of_fragments_counts_no_byte_that_another_gap_counts() {
    for (first, end) in [(1, 2), (2, 3), (1, 3), (0, 4)] {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut recorder = Recorder::start(made(), &clock);
        let fragment = |ordinal, number, offset, flags| {
            let ordinal = Ordinal(ordinal);
            Row { kind: Kind::Fragment, ordinal, number, offset, flags, ..Row::default() }
        };
        recorder.element();
        // Given up after 800 bytes, and 100 that were never packed.
        recorder.row(fragment(1, 0, 0, Flags::default()), &[1; 500]);
        recorder.row(fragment(1, 1, 500, Flags::default()), &[1; 300]);
        recorder.row(Row { kind: Kind::Abort, ordinal: Ordinal(1), ..Row::default() }, &[]);
        let (first_time, last) = (clock.now(), clock.now());
        let (elements, bytes, cause) = (Some(1), Some(900), Cause::Aborted);
        let lost = Gap { ordinals: 1, elements, bytes, first: first_time, last, cause, note: 0 };
        recorder.row(Row { kind: Kind::Gap, ordinal: Ordinal(1), ..Row::default() }, &lost.encode());
        recorder.row(fragment(2, 0, 0, Flags::default()), &[2; 400]);
        recorder.row(fragment(2, 1, 400, Flags::LAST), &[2; 600]);
        recorder.next = 3;
        recorder.element();
        let mut disk = recorder.stop();
        let outcome = order_once(&mut disk, purge(first, end, false), &clock, &mut || true).unwrap();
        let Outcome::Purged { bytes, .. } = outcome else { panic!("{outcome:?}") };
        let destroyed: u64 = [1000, 800, 1000, 1000][first as usize..end as usize].iter().sum();
        assert_eq!(bytes, destroyed, "{first}..{end}");
        let (mut kept, mut gone) = (Counters::default(), (0, 0));
        for (row, data) in rows(&disk) {
            if row.kind == Kind::Gap {
                let gap = Gap::decode(&data).unwrap();
                gone = (gone.0 + gap.elements.unwrap(), gone.1 + gap.bytes.unwrap());
            } else {
                kept.count(&row, None);
            }
        }
        let stream = recover(&mut disk).unwrap().streams()[0].counters;
        assert_eq!((stream.received, stream.received_bytes, stream.lost_bytes), (3, 3000, 900));
        assert_eq!(kept.received + gone.0, stream.received + stream.lost, "{first}..{end}: elements");
        assert_eq!(
            kept.received_bytes + gone.1,
            stream.received_bytes + stream.lost_bytes,
            "{first}..{end}: bytes"
        );
    }
}

#[test]
fn held_data_is_purged_only_when_that_is_said() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..300 {
        recorder.element();
    }
    let held = recorder.order(hold_last(&clock, Duration::from_millis(100)));
    assert!(matches!(held, Outcome::Held { .. }));
    let mut disk = recorder.stop();
    let refused = order_once(&mut disk, purge(250, 260, false), &clock, &mut || true).unwrap();
    assert!(matches!(refused, Outcome::Refused(Refusal::Held(_))), "{refused:?}");
    let outcome = order_once(&mut disk, purge(250, 260, true), &clock, &mut || true).unwrap();
    assert!(matches!(outcome, Outcome::Purged { elements: 10, .. }), "{outcome:?}");
}

#[test]
fn a_lost_superblock_is_found_in_the_journal() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..300 {
        recorder.element();
    }
    let mut disk = recorder.stop();
    let before = read_superblock(&mut disk).unwrap();
    let held = ordinals(&disk);
    let mut image = disk.snapshot();
    for offset in Superblock::OFFSETS {
        image.write(offset, &[0; 4096]);
    }
    let mut lost = MemoryDisk::from_image(image);
    assert!(read_superblock(&mut lost).is_err());
    let found = find_superblock(&mut lost).unwrap().unwrap();
    assert_eq!((found.ring, &found.key.0, &found.geometry), (before.ring, &before.key.0, &before.geometry));
    write_superblocks(&mut lost, &found).unwrap();
    assert_eq!(ordinals(&lost), held);
}

#[test]
fn of_several_rings_that_a_lane_was_the_last_is_found() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    // A run writes to the other extent than the one that the ring was made with.
    let mut disk = Recorder::start(made(), &clock).stop();
    let last = make(&mut disk, 8, 2 * SLOT);
    assert!(u64::from(last.geometry.slots) < SLOTS);
    let mut image = disk.snapshot();
    for offset in Superblock::OFFSETS {
        image.write(offset, &[0; 4096]);
    }
    let found = |image: &Image| find_superblock(&mut MemoryDisk::from_image(image.clone())).unwrap();
    assert_eq!(found(&image).unwrap().ring, last.ring);
    // Where nothing is left of the last, one of whose snapshots something was overwritten is none either.
    let extent = last.geometry.extent_offset(0);
    image.write(extent, &[0; 4096]);
    assert_eq!(found(&image).map(|s| s.ring), Some(RingId([7; 16])));
    image.write(extent + 2 * SLOT, &[0; 4096]);
    assert_eq!(found(&image).map(|s| s.ring), None);
}

#[test]
fn a_purge_that_fails_keeps_nothing_from_expiring() {
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut recorder = Recorder::start(made(), &clock);
    for _ in 0..600 {
        recorder.element();
    }
    let mut disk = recorder.stop();
    let recovered = recover(&mut disk).unwrap();
    // Not one of the last, of which recovery would say that they were never whole.
    let (no, ..) = recovered.data().min_by_key(|(_, sequence, _)| sequence.0).unwrap();
    let mut image = disk.snapshot();
    image.write(recovered.superblock.geometry.slot_offset(no), &[0xee; 4096]);

    // The job runs beside a recorder, step by step.
    let mut recorder = Recorder::start(MemoryDisk::from_image(image), &clock);
    for _ in 0..200 {
        recorder.poll();
    }
    let superblock = recorder.driver.superblock().clone();
    let run = |recorder: &mut Recorder, order: Order| {
        let Order::Purge(request) = order else { unreachable!() };
        holdfast_ring::purge(&request, &superblock, clock.now(), &mut |chore| {
            recorder.driver.chore(chore, clock.now());
            loop {
                if let Some(reply) = recorder.driver.chore_reply() {
                    return Some(reply);
                }
                if recorder.driver.ring().wants_seal() {
                    recorder.seal(SlotFlags::SHORT);
                }
                clock.set(clock.now() + Duration::from_millis(1));
                recorder.poll();
            }
        })
    };
    let failed = run(&mut recorder, purge(0, 1 << 40, false));
    assert!(matches!(failed, Err(PurgeError::Damaged { slot, .. }) if slot == no), "{failed:?}");
    let last = recorder.next - 1;
    for _ in 0..3_000 {
        recorder.element();
    }
    let left = recorder.driver.ring().slot_looks(SlotNo(0), 99).filter(|s| s.look == SlotLook::Live).count();
    assert!(left > 10, "{left}");
    // Two holds keep some of what is purged, the rest of it is kept on.
    for _ in 0..2 {
        let held = recorder.order(hold_last(&clock, Duration::from_millis(200)));
        assert!(matches!(held, Outcome::Held { .. }), "{held:?}");
    }
    let some = purge(recorder.next - 150, recorder.next - 100, true);
    let done = run(&mut recorder, some).unwrap();
    assert!(matches!(done, Outcome::Purged { elements: 50, .. }), "{done:?}");
    for id in [1, 2] {
        assert!(recorder.driver.ring().hold_looks().any(|h| h.id.0 == id && h.slots >= 3));
        let released = recorder.order(Order::Release(HoldId(id)));
        assert!(matches!(released, Outcome::Released { slots } if (slots > 0) == (id == 2)), "{released:?}");
    }
    let done = run(&mut recorder, purge(0, 1 << 40, false)).unwrap();
    assert!(matches!(done, Outcome::Purged { elements, .. } if elements > 500), "{done:?}");
    let disk = recorder.stop();
    assert_eq!(payloads(&disk), Vec::<u64>::new());
    assert_eq!(traces(&disk), Vec::<u64>::new(), "what was recorded up to {last} and after is gone");
}
