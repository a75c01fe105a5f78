//! Tests of forged structures in recorded traffic: slot headers, commits and superblocks, at every alignment;
//! of another ring, of this ring without its key, and of this ring as it is. Recovery is not fooled by any.
//! Promises 5 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{BLOCK, HoldId, Sequence, SlotNo, Timestamp};
use holdfast_format::{
    Builder, CommitHead, CommitWriter, Entry, Key, Record, Row, SlotFlags, SlotId, Superblock, read_commit,
};
use holdfast_media::{Image, Survival};
use holdfast_ring::{Range, SlotLook};
use holdfast_sim::{Content, Op, Setup, World};
use std::sync::Arc;
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

/// Where the tag of each kind of block is: a forger without the key cannot make it.
const TAGS: [usize; 2] = [4080, 96];

fn write(stream: u8, count: u16, bytes: u32, every: Duration) -> Op {
    Op::Write { stream, count, bytes, every, event: false }
}

/// A ring that has recorded something slowly and something fast, so that it has all kinds of blocks.
fn recorded(seed: u64) -> World {
    let mut world = World::new(Setup { seed, ..Setup::plain() }).unwrap();
    for op in [write(0, 20, 2_000, 700 * MS), write(1, 80, 4_000, MS), write(2, 5, 50, 900 * MS)] {
        world.run(&op).unwrap();
    }
    world
}

/// Every block of a lane that begins something: superblocks, commits, headers, footers.
fn blocks(image: &Image, superblock: &Superblock) -> Vec<Vec<u8>> {
    let block = |at: u64| image.range(at, BLOCK);
    let mut all: Vec<Vec<u8>> = Superblock::OFFSETS.iter().map(|at| block(*at)).collect();
    let geometry = &superblock.geometry;
    let (journal, slots) = (geometry.extent_offset(0), geometry.first_slot());
    let end = geometry.slot_offset(SlotNo(geometry.slots));
    let magic = |at: &u64| {
        let start = image.range(*at, 8);
        [b"HFJRNL01", b"HFSLOT01", b"HFFOOT01"].iter().any(|magic| start == **magic)
    };
    all.extend((journal..slots.max(end)).step_by(BLOCK).filter(magic).map(block));
    all
}

/// The same blocks as one could send them who knows everything but the key.
fn without_key(blocks: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let forge = |block: &Vec<u8>| {
        let mut block = block.clone();
        let slotlike = block.starts_with(b"HFSLOT01") || block.starts_with(b"HFFOOT01");
        let tag = TAGS[usize::from(!slotlike)];
        block[tag..tag + 16].fill(0x5a);
        if block.starts_with(b"HFSLOT01") {
            // A sequence that would win against every real one.
            block[48..56].copy_from_slice(&u64::MAX.to_le_bytes()[..8]);
        }
        block
    };
    blocks.iter().map(forge).collect()
}

/// Payload that is full of such blocks, each beginning `shift` bytes behind a multiple of a block.
fn payload(blocks: &[Vec<u8>], shift: usize) -> Content {
    let mut bytes = vec![0xee; shift];
    for block in blocks {
        bytes.extend_from_slice(block);
    }
    bytes.truncate(40 * BLOCK);
    Content::Bytes(Arc::from(bytes))
}

/// Records such payload slowly (through the journal) and fast, cutting the power in between.
fn record(what: &str, traffic: &[Vec<u8>], seed: u64) {
    // The payload of a slot and of a journal record begin at different places: so every alignment is met in steps of 8.
    for shift in (0..BLOCK).step_by(136) {
        let at = format!("{what}, shifted by {shift}");
        let mut world = recorded(seed);
        for round in 0..4u64 {
            let Content::Bytes(bytes) = payload(traffic, shift) else { unreachable!() };
            let len = bytes.len() as u32;
            world.next_content = Some(Content::Bytes(bytes));
            world.element(0, len, false).expect(&at);
            world.pass(1_500 * MS).expect(&at);
            let half = payload(&traffic[traffic.len() / 2..], shift);
            let Content::Bytes(bytes) = half else { unreachable!() };
            let len = bytes.len().min(8_000) as u32;
            world.next_content = Some(Content::Bytes(bytes));
            world.element(1, len, false).expect(&at);
            world.pass(1_200 * MS).expect(&at);
            let after = (round * 2 + shift as u64 % 3) as u8;
            world.run(&Op::Crash { after, draw: round << 20 | shift as u64 }).expect(&at);
        }
        world.finish().expect(&at);
    }
}

#[test]
fn blocks_of_another_ring_fool_nobody() {
    let mut other = recorded(99);
    let image = other.disk().unwrap().seen();
    record("another ring", &blocks(&image, other.superblock()), 1);
}

#[test]
fn blocks_of_this_ring_without_its_key_fool_nobody() {
    // The same seed makes the same ring: these are the very blocks that stand on its medium.
    let mut same = recorded(1);
    let image = same.disk().unwrap().seen();
    record("without key", &without_key(&blocks(&image, same.superblock())), 1);
}

#[test]
fn blocks_of_this_ring_as_they_are_fool_nobody() {
    let mut same = recorded(1);
    let image = same.disk().unwrap().seen();
    record("as they are", &blocks(&image, same.superblock()), 1);
}

/// The hold that a forger would like to end, and what was recorded while it stood; `content` is in every element.
fn held_and_recorded(content: &dyn Fn(&Superblock) -> Content) -> World {
    let mut world = World::new(Setup::plain()).unwrap();
    world.run(&write(2, 20, 500, MS)).unwrap();
    let range = Range { from: Timestamp(0), ..Range::ALL };
    world.hold(Vec::new(), range, None, Timestamp::MAX, true).unwrap();
    let superblock = world.superblock().clone();
    for _ in 0..70 {
        world.next_content = Some(content(&superblock));
        world.element(0, 7_000, false).unwrap();
        world.pass(1_100 * MS).unwrap();
    }
    // A short commit: the journal's end is in the middle of what was a long one.
    world.element(0, 40, false).unwrap();
    world.pass(1_500 * MS).unwrap();
    world
}

/// Where the journal ends: generation and number of the last commit.
fn journal_end(world: &mut World) -> (u64, u64) {
    let image = world.disk().unwrap().seen();
    let superblock = world.superblock();
    let mut end = (0, 0);
    for extent in 0..2 {
        let at = superblock.geometry.extent_offset(extent);
        let bytes = image.range(at, superblock.geometry.extent_bytes() as usize);
        let (mut at, mut generation) = (0, None);
        while let Ok((head, _, len)) = read_commit(&bytes[at..], &superblock.key, superblock.ring) {
            if *generation.get_or_insert(head.generation) != head.generation {
                break;
            }
            end = end.max((head.generation, head.number));
            at += len;
        }
    }
    end
}

#[test]
fn a_commit_that_continues_the_journal_counts_only_with_the_key() {
    // What a lap of the journal leaves behind its end is payload of an older lap, and the end can be foreseen.
    let zeros: Arc<[u8]> = Arc::from(vec![0; 7_000]);
    let mut world = held_and_recorded(&|_| Content::Bytes(zeros.clone()));
    let (generation, number) = journal_end(&mut world);
    assert!(generation >= 4, "the journal has wrapped: {generation}");
    let mut met = 0;
    for shift in (0..256).step_by(8) {
        let forged = |superblock: &Superblock| {
            let mut block = vec![0; BLOCK];
            let mut writer = CommitWriter::new(&mut block);
            writer.push(&Record::Release { hold: HoldId(1), at: Timestamp(7), order: None });
            let head =
                CommitHead { ring: superblock.ring, generation, number: number + 1, ..CommitHead::default() };
            writer.finish(&Key([1; 32]), &head);
            let mut bytes = vec![0; shift];
            while bytes.len() < 7_000 {
                bytes.extend_from_slice(&block[..256]);
            }
            bytes.truncate(7_000);
            Content::Bytes(Arc::from(bytes))
        };
        let mut world = held_and_recorded(&forged);
        assert_eq!(journal_end(&mut world), (generation, number));
        let bound = world.mourn().unwrap();
        let image = world.disk().unwrap().crash_with(Survival::Everything);
        met += u32::from(stands_at_the_end(&world, &image, number));
        world.inspect(&image, bound).unwrap_or_else(|e| panic!("shifted by {shift}: {e}"));
    }
    assert!(met > 0, "no forged commit stands at the journal's end");
}

/// Whether the block behind the journal's last commit begins with the next commit, but for the tag.
fn stands_at_the_end(world: &World, image: &Image, last: u64) -> bool {
    let geometry = &world.superblock().geometry;
    let blocks = (geometry.extent_offset(0)..geometry.first_slot()).step_by(BLOCK);
    let number = |at: u64| {
        let block = image.range(at, 48);
        let number = block[40..48].try_into().map(u64::from_le_bytes);
        block.starts_with(b"HFJRNL01").then_some(number.unwrap_or(0))
    };
    let mut ends = blocks.filter(|at| number(*at) == Some(last));
    // The last commit here takes one block.
    ends.any(|at| number(at + BLOCK as u64) == Some(last + 1))
}

#[test]
fn a_whole_slot_counts_only_with_the_key() {
    let mut world = recorded(1);
    let bound = world.mourn().unwrap();
    let mut image = world.disk().unwrap().crash_with(Survival::Everything);
    let superblock = world.superblock().clone();
    let looks: Vec<_> = world.recorder().unwrap().driver.ring().slot_looks(SlotNo(0), 99).collect();
    let named = looks.iter().filter(|s| s.look == SlotLook::Runway).map(|s| s.slot);
    for (number, slot) in named.enumerate() {
        let mut builder = Builder::new(superblock.geometry.slot_bytes, 1);
        let mut bytes = vec![0; superblock.geometry.slot_bytes as usize];
        let sequence = Sequence(world.model.newest + 1 + number as u64);
        let id = SlotId { ring: superblock.ring, group: superblock.group, sequence, ..SlotId::default() };
        builder.open(&mut bytes, id, bound.now, &[Entry::default()]).unwrap();
        builder.row(&mut bytes, &Row { arrival: bound.now, ..Row::default() });
        let sealed = builder.seal(&mut bytes, &Key([1; 32]), slot, bound.now, SlotFlags::default());
        image.write(superblock.geometry.slot_offset(slot), &bytes[..sealed.bytes]);
    }
    world.inspect(&image, bound).unwrap();
    world.resume(image, bound, None).unwrap();
    world.finish().unwrap();
}
