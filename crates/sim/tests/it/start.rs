//! Bounds on the reads of a restart before capture may begin, on a large ring of which every slot has been
//! written, and with slots larger than those of the other tests. Promise 6: a bound on counts, not on time.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{BLOCK, Clock, ManualClock, Ordinal, RingId, SlotNo, Timestamp};
use holdfast_format::{Geometry, Key, Kind, Row, SlotFlags, StreamKind, commit_len};
use holdfast_media::Disk;
use holdfast_ring::{Config, NewRing, NewStream, SlotLook, create, recover};
use holdfast_sim::{Recorder, SparseDisk};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);
const MIB: u64 = 1 << 20;

struct Run {
    recorder: Recorder<SparseDisk>,
    clock: ManualClock,
    next: u64,
}

fn made(slot_bytes: u64, slots: u64) -> SparseDisk {
    let bytes = MIB + (4 + slots) * slot_bytes;
    let mut disk = SparseDisk::new(bytes);
    let geometry = Geometry::for_lane(bytes, slot_bytes, Vec::new()).unwrap();
    let new = NewRing::plain(RingId([7; 16]), Key([9; 32]), "r", geometry);
    create(&mut disk, new, Timestamp(1)).unwrap();
    disk
}

impl Run {
    fn start(mut disk: SparseDisk, clock: &ManualClock, preamble: &[u8]) -> Self {
        let recovered = recover(&mut disk).unwrap();
        let config = Config { buffers: 3, flush: Duration::from_secs(1), writes: 2 };
        let mut recorder = Recorder::start(disk, recovered, config, clock);
        let new = NewStream {
            name: "s",
            kind: StreamKind::Bytes,
            framing: "",
            preamble: Some(preamble),
            schema: None,
        };
        let entry = recorder.add_stream(&new).unwrap();
        let next = recorder.entries[usize::from(entry)].counters.next_ordinal.0;
        let mut run = Self { recorder, clock: clock.clone(), next };
        run.until("starting", |run| !run.recorder.driver.is_starting());
        run
    }

    fn until(&mut self, what: &str, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..10_000 {
            if done(self) {
                return;
            }
            self.clock.set(self.clock.now() + MS);
            self.recorder.poll();
        }
        panic!("{what} is stuck");
    }

    fn element(&mut self) {
        if self.recorder.open().is_none() {
            self.until("opening", |run| run.recorder.open_slot().is_some());
        }
        let (now, ordinal) = (self.clock.now(), Ordinal(self.next));
        let bytes = self.next.to_le_bytes().repeat(12);
        let row = Row { kind: Kind::Element, len: 96, ordinal, arrival: now, ..Row::default() };
        self.recorder.push(&row, &bytes);
        self.next += 1;
    }

    /// One slot with one element.
    fn slot(&mut self) {
        self.element();
        self.recorder.seal(SlotFlags::SHORT);
        self.clock.set(self.clock.now() + MS);
        self.recorder.poll();
    }

    fn live(&self) -> usize {
        let looks = self.recorder.driver.ring().slot_looks(SlotNo(0), u32::MAX);
        looks.filter(|s| s.look == SlotLook::Live).count()
    }
}

#[test]
fn a_restart_reads_journal_superblocks_and_the_last_runway_before_capture_begins() {
    const SLOTS: u64 = 16_384;
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut run = Run::start(made(MIB, SLOTS), &clock, b"preamble");
    for _ in 0..SLOTS + 500 {
        run.slot();
    }
    // What fills slowly is in the journal; then the power goes.
    for _ in 0..20 {
        run.element();
        for _ in 0..13 {
            clock.set(clock.now() + 100 * MS);
            run.recorder.poll();
        }
    }
    let live = run.live();
    let mut disk = run.recorder.into_disk().copy();

    let recovered = recover(&mut disk).unwrap();
    let journal = 2 * recovered.superblock.geometry.extent_bytes();
    let first_slot = recovered.superblock.geometry.first_slot();
    let (of_slots, of_head): (Vec<_>, Vec<_>) = disk.reads.iter().partition(|(at, _)| *at >= first_slot);
    let bytes = |reads: &[&(u64, usize)]| reads.iter().map(|(_, len)| *len as u64).sum::<u64>();
    assert!(of_head.len() <= 16, "{} reads of superblocks and journal", of_head.len());
    assert!(bytes(&of_head) <= 3 * journal + 16 * BLOCK as u64, "{} bytes of them", bytes(&of_head));
    // Header and footer of each slot of the runway and of those in flight, and summaries of what was written.
    let named = u64::from(recovered.status("").slots.runway) + 24;
    assert!(of_slots.len() as u64 <= 3 * named, "{} reads of slots", of_slots.len());
    assert!(bytes(&of_slots) <= 4 * named * BLOCK as u64, "{} bytes of slots", bytes(&of_slots));
    assert_eq!(recovered.data().count(), live);
    assert_eq!(recovered.rebuilt.len(), 1);

    let (reads, writes) = (disk.reads.len(), disk.writes);
    let mut run = Run::start(disk, &clock, b"preamble");
    let disk = run.recorder.driver.disk();
    assert!(disk.writes - writes <= 4, "{} writes before capture", disk.writes - writes);
    // The first looks behind capture are among them.
    assert!(disk.reads.len() - reads <= reads + 8, "{} reads before capture", disk.reads.len() - reads);
    run.element();
    // Behind capture every slot is looked at, with few small reads each.
    let before = run.recorder.driver.disk().reads.len();
    for _ in 0..4 * SLOTS {
        if run.recorder.driver.ring().status("").scanned {
            break;
        }
        run.recorder.poll();
    }
    let reads = &run.recorder.driver.disk().reads[before..];
    assert!(run.recorder.driver.ring().status("").scanned, "the table is known");
    assert!(reads.len() as u64 <= 3 * SLOTS + 64, "{} reads", reads.len());
    assert!(reads.iter().map(|(_, len)| *len as u64).sum::<u64>() <= 4 * SLOTS * BLOCK as u64);
}

/// Records pieces of 1 MiB, slowly enough for the journal to have them all, until a slot is nearly full for the `slots`-th time.
fn fill_slowly(run: &mut Run, slot_bytes: u64, slots: u64) {
    let piece = vec![7; 1 << 20];
    for number in 0..slots * (slot_bytes / MIB - 8) - 8 {
        if run.recorder.open().is_some() && run.recorder.room() < 7 << 20 {
            run.recorder.seal(SlotFlags::default());
        }
        if run.recorder.open().is_none() {
            run.until("opening", |run| run.recorder.open_slot().is_some());
        }
        let (now, ordinal) = (run.clock.now(), Ordinal(number));
        let row = Row { kind: Kind::Element, len: 1 << 20, ordinal, arrival: now, ..Row::default() };
        run.recorder.push(&row, &piece);
        for _ in 0..3 {
            run.clock.set(now + 600 * MS);
            run.recorder.poll();
            run.clock.set(now + 1200 * MS);
            run.recorder.poll();
        }
    }
}

#[test]
fn with_the_largest_slots_a_restart_reads_little_more_than_what_the_open_slot_has() {
    const SLOT: u64 = 256 * MIB;
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut run = Run::start(made(SLOT, 16), &clock, b"preamble");
    fill_slowly(&mut run, SLOT, 2);
    let mut disk = run.recorder.into_disk().copy();
    let recovered = recover(&mut disk).unwrap();
    assert_eq!(recovered.rebuilt.len(), 1);
    let open = recovered.rebuilt[0].sealed.bytes as u64;
    assert!(open > SLOT - 32 * MIB);
    let first_slot = recovered.superblock.geometry.first_slot();
    let of_head = disk.reads.iter().filter(|(at, _)| *at < first_slot);
    let bytes: u64 = of_head.map(|(_, len)| *len as u64).sum();
    assert!(bytes <= open + open / 4 + 32 * MIB, "{bytes} read for {open} of the open slot");
}

#[test]
fn after_a_clean_end_no_slot_is_read_to_be_sure_of_it() {
    const SLOT: u64 = 32 * MIB;
    let read_of_slots = |clean: bool| {
        let clock = ManualClock::new(Timestamp(1_000_000_000));
        let mut run = Run::start(made(SLOT, 16), &clock, b"preamble");
        fill_slowly(&mut run, SLOT, 1);
        run.recorder.seal(SlotFlags::SHORT);
        run.until("the last slot", |run| run.recorder.driver.is_idle());
        if clean {
            run.recorder.driver.ring_mut().end(clock.now());
            run.until("the end", |run| run.recorder.driver.is_idle());
        }
        let mut disk = run.recorder.into_disk().copy();
        let recovered = recover(&mut disk).unwrap();
        assert_eq!((recovered.data().count(), recovered.rebuilt.len()), (1, 0));
        let first_slot = recovered.superblock.geometry.first_slot();
        let of_slots = disk.reads.iter().filter(|(at, _)| *at >= first_slot);
        of_slots.map(|(_, len)| *len as u64).sum::<u64>()
    };
    assert!(read_of_slots(true) <= 32 * BLOCK as u64);
    assert!(read_of_slots(false) >= 16 * MIB, "what may have been in flight is read in full");
}

#[test]
fn the_check_behind_capture_reads_several_heads_at_once_and_one_beside_a_write() {
    const SLOTS: u64 = 400;
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut run = Run::start(made(64 << 10, SLOTS), &clock, b"preamble");
    for _ in 0..SLOTS + 50 {
        run.slot();
    }
    let disk = run.recorder.into_disk().copy();
    for writing in [false, true] {
        let mut run = Run::start(disk.copy(), &clock, b"preamble");
        let disk = run.recorder.driver.disk_mut();
        (disk.lag, disk.reads_at_once) = (3, [0; 2]);
        let before = disk.reads.len();
        for _ in 0..20 * SLOTS {
            if run.recorder.driver.ring().status("").scanned {
                break;
            }
            if writing {
                run.slot();
            }
            run.recorder.poll();
        }
        assert!(run.recorder.driver.ring().status("").scanned, "the table is known");
        let disk = run.recorder.driver.disk();
        let [alone, beside] = disk.reads_at_once;
        assert!(disk.reads.len() - before >= SLOTS as usize / 4, "too few to tell");
        if writing {
            assert_eq!(beside, 1, "capture waits for one read at most");
        } else {
            assert_eq!(alone, 4, "a drive is kept busy");
        }
    }
}

#[test]
fn slots_that_are_written_while_a_snapshot_takes_several_commits_are_not_forgotten() {
    // A preamble that takes several commits stands between table and end of every snapshot.
    let preamble = vec![7; 1_900_000];
    let clock = ManualClock::new(Timestamp(1_000_000_000));
    let mut run = Run::start(made(8 * MIB, 64), &clock, &preamble);
    // Slots stay in flight while commits are made.
    run.recorder.driver.disk_mut().lag = 2;
    let first = generation(&run);
    let (mut generations, mut looks) = (first, 0);
    for number in 0..2_000 {
        // Many records fill the extent.
        let now = clock.now();
        for _ in 0..1_000 {
            run.recorder.driver.ring_mut().note_clock_step(now, now, now + MS);
        }
        run.slot();
        if generation(&run) > generations {
            (generations, looks) = (generation(&run), 12);
        }
        if looks > 0 {
            // As after a power cut at this moment: all that is shown is there.
            looks -= 1;
            let shown = data(&run);
            let recovered = recover(&mut run.recorder.driver.disk().copy()).unwrap();
            let found: Vec<u64> = recovered.data().map(|(_, sequence, _)| sequence.0).collect();
            let lost: Vec<_> = shown.iter().filter(|s| !found.contains(s)).collect();
            assert!(lost.is_empty(), "after {number} slots: {lost:?} of {shown:?} are lost");
        }
    }
    assert!(generation(&run) > first, "no snapshot was taken while slots were written");
}

/// The generation of the newest extent that has begun.
fn generation(run: &Run) -> u64 {
    let superblock = run.recorder.driver.superblock();
    let heads = (0..2).filter_map(|extent| {
        let at = superblock.geometry.extent_offset(extent);
        let block = run.recorder.driver.disk().range(at, BLOCK);
        commit_len(&block, &superblock.key, superblock.ring).ok()?;
        block[32..40].try_into().ok().map(u64::from_le_bytes)
    });
    heads.max().unwrap_or(0)
}

fn data(run: &Run) -> Vec<u64> {
    let looks = run.recorder.driver.ring().slot_looks(SlotNo(0), u32::MAX);
    looks.filter(|s| s.look == SlotLook::Live).map(|s| s.sequence.0).collect()
}

#[test]
fn what_a_disk_gives_back_is_what_was_put_there() {
    let disk = made(64 << 10, 16);
    assert_eq!(disk.info().bytes, MIB + 20 * (64 << 10));
    assert!(recover(&mut disk.copy()).is_ok());
}
