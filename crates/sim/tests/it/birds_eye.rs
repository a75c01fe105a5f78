//! Tests of the bird's-eye view beside a ring that is crashed, grown, held and written round and round: an
//! entry is always that of a slot under the ring's own key, and in the end every data slot has one, and
//! nothing else has. Promise 5.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{BLOCK, Sequence, SlotNo};
use holdfast_format::{Glance, PartHeader, Summary};
use holdfast_media::{BufferPool, Lock};
use holdfast_ring::{BirdsEye, SlotLook, SlotStatus};
use holdfast_sim::{Diet, Setup, World, ops};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

/// A view as clients have it: the memory file, and bytes of a place.
struct View {
    file: File,
    bytes: usize,
    place: usize,
}

impl View {
    /// Gives the recorder at work one, unless it has one.
    fn keep(world: &mut World, slots: u32, before: Option<Self>) -> Self {
        let driver = &mut world.recorder().unwrap().driver;
        if let (Some(_), Some(view)) = (driver.birds_eye(), before) {
            return view;
        }
        let mut pool = BufferPool::shared(1, 2048 * slots as usize, Lock::No).unwrap();
        let memory = pool.take().unwrap();
        let view = Self {
            file: File::from(pool.fd().unwrap().try_clone_to_owned().unwrap()),
            bytes: memory.len(),
            place: BirdsEye::place_bytes(memory.len(), slots),
        };
        driver.keep_view(BirdsEye::new(memory, slots));
        view
    }

    fn place(&self, slot: SlotNo) -> Option<Vec<u8>> {
        let at = slot.0 as usize * self.place;
        let mut bytes = vec![0; self.place];
        (at + self.place <= self.bytes).then(|| self.file.read_exact_at(&mut bytes, at as u64).unwrap())?;
        Some(bytes)
    }

    /// Which sequence a slot's place tells of; what it tells is sound.
    fn told(&self, world: &World, slot: SlotNo) -> Option<Sequence> {
        let place = self.place(slot)?;
        let sequence = Sequence(u64::from_le_bytes(*place.first_chunk().unwrap()));
        let bytes = Glance::bytes(place.first_chunk().unwrap(), sequence, place.len())?;
        let head = Glance::new(place[..bytes].to_vec(), place.len()).unwrap().head();
        let superblock = world.superblock();
        let header = PartHeader::decode(&head, &superblock.key, superblock.ring).unwrap();
        assert_eq!((header.slot, header.sequence), (slot, sequence));
        Summary::decode(&header, &head[BLOCK..]).unwrap();
        Some(sequence)
    }
}

fn run(seed: u64) -> (usize, usize) {
    let mut world = World::new(Setup::draw(seed)).unwrap();
    let slots = world.setup.slots;
    let mut view = View::keep(&mut world, slots, None);
    for op in ops(seed, Diet::Crashes, 60) {
        world.run(&op).unwrap_or_else(|error| panic!("seed {seed}, {op:?}: {error}"));
        view = View::keep(&mut world, slots, Some(view));
        for slot in 0..slots {
            view.told(&world, SlotNo(slot));
        }
    }
    world.pass(Duration::from_mins(3)).unwrap();
    let all: Vec<SlotStatus> =
        world.recorder().unwrap().driver.ring().slot_looks(SlotNo(0), u32::MAX).collect();
    let (mut told, mut empty) = (0, 0);
    for slot in all.iter().filter(|slot| slot.slot.0 < slots) {
        if slot.has_data() {
            // One that was found to be damaged since it was told of may still be: who searches it finds that, too.
            let is_told = view.told(&world, slot.slot);
            let is_damaged = slot.look == SlotLook::Damaged && is_told.is_none();
            assert!(is_damaged || is_told == Some(slot.sequence), "seed {seed}: {slot:?} {is_told:?}");
            told += usize::from(is_told.is_some());
        } else {
            let place = view.place(slot.slot).unwrap();
            assert!(place.iter().all(|byte| *byte == 0), "seed {seed}: {slot:?}");
            empty += 1;
        }
    }
    let (_, counted) = world.recorder().unwrap().driver.birds_eye().unwrap();
    assert_eq!(counted as usize, told, "seed {seed}");
    (told, empty)
}

#[test]
fn in_the_end_every_slot_of_data_is_told_and_nothing_else() {
    let (mut told, mut empty) = (0, 0);
    for seed in 0..40 {
        let (some, others) = run(seed);
        told += some;
        empty += others;
    }
    assert!(told > 200 && empty > 50, "{told} {empty}");
}
