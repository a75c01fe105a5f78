//! Recorded traffic that contains slot headers, commits and superblocks, at every alignment: of another ring, of this ring
//! without its key, and of this ring as it is. Recovery is not fooled by any. Promises 5 and 6.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use holdfast_base::{BLOCK, SlotNo};
use holdfast_format::Superblock;
use holdfast_media::Image;
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
