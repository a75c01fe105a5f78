//! Tests of an index drive's directory: read back as it was written, and never with a copy outside of the
//! drive (promise 5).

use crate::golden::golden;
use crate::world::RING;
use holdfast_base::{BLOCK, Sequence};
use holdfast_format::{DriveBlock, DriveEntry, DriveHead};

const BYTES: u64 = 100 << 20;

fn entries(head: &DriveHead) -> DriveBlock {
    let mut entries: DriveBlock = [None; DriveHead::ENTRIES];
    for (number, entry) in entries.iter_mut().enumerate().filter(|(number, _)| number % 3 > 0) {
        let (first, bytes) = (head.first() + 7 * number as u32, 9000 + 100 * number as u32);
        *entry = Some(DriveEntry { ring: RING, sequence: Sequence(1000 + number as u64), first, bytes });
    }
    entries[3] =
        Some(DriveEntry { ring: RING, sequence: Sequence(3), first: head.end() - 1, bytes: BLOCK as u32 });
    entries
}

#[test]
fn a_directory_is_read_as_it_was_written() {
    let head = DriveHead::of(BYTES + 17).unwrap();
    let bytes = head.encode();
    golden("index-drive-head.bin", &bytes);
    assert_eq!(DriveHead::decode(&bytes), Ok(head));
    // An entry for every 256 KiB, and nothing over its end.
    assert!(head.blocks as usize * DriveHead::ENTRIES >= 400 && head.first() == 1 + head.blocks);
    assert_eq!(u64::from(head.end()), BYTES / BLOCK as u64);
    let block = entries(&head);
    let bytes = DriveHead::encode_block(&block);
    golden("index-drive-directory.bin", &bytes);
    assert_eq!(head.decode_block(&bytes), Ok(block));
    let empty = [None; DriveHead::ENTRIES];
    assert_eq!(head.decode_block(&DriveHead::encode_block(&empty)), Ok(empty));
    for few in [0, 1, BLOCK as u64, 3 * BLOCK as u64 - 1] {
        assert_eq!(DriveHead::of(few), None, "{few}");
    }
}

#[test]
fn what_was_changed_or_makes_no_sense_is_noticed() {
    let head = DriveHead::of(BYTES).unwrap();
    let (front, block) = (head.encode(), DriveHead::encode_block(&entries(&head)));
    for at in 0..BLOCK {
        for bit in [1, 0x80] {
            let (mut front, mut block) = (front, block);
            front[at] ^= bit;
            block[at] ^= bit;
            assert!(DriveHead::decode(&front).is_err(), "{at}");
            assert!(head.decode_block(&block).is_err(), "{at}");
        }
    }
    assert!(DriveHead::decode(&[0; BLOCK]).is_err() && head.decode_block(&[0; BLOCK]).is_err());
    // In another's directory, behind its end, over all there can be.
    let smaller = DriveHead::of(BYTES / 2).unwrap();
    assert!(smaller.decode_block(&block).is_err());
    for (first, bytes) in
        [(0, 1), (head.blocks, 1), (head.end(), 1), (head.end() - 1, 4097), (u32::MAX, u32::MAX)]
    {
        let mut entries: DriveBlock = [None; DriveHead::ENTRIES];
        entries[126] = Some(DriveEntry { ring: RING, sequence: Sequence(1), first, bytes });
        assert!(head.decode_block(&DriveHead::encode_block(&entries)).is_err(), "{first} {bytes}");
    }
    let wrong = DriveHead { blocks: head.blocks + 1, ..head };
    assert!(DriveHead::decode(&wrong.encode()).is_err());
}
