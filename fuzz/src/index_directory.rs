//! The head and a block of the directory of an index drive that is a device, as anybody may leave them there.

use holdfast_base::{BLOCK, RingId, Sequence};
use holdfast_format::{DriveEntry, DriveHead, crc32c};

/// See [`Target::run`](crate::Target::run).
pub fn run(data: &[u8]) {
    let (blocks, _) = data.as_chunks::<BLOCK>();
    let [front, block, ..] = blocks else { return };
    let Ok(head) = DriveHead::decode(&closed(front)) else { return };
    assert_eq!(DriveHead::decode(&head.encode()), Ok(head));
    let Ok(entries) = head.decode_block(&closed(block)) else { return };
    for entry in entries.iter().flatten() {
        assert!(head.first() <= entry.first && entry.end().is_some_and(|end| end <= head.end()));
    }
    assert_eq!(head.decode_block(&DriveHead::encode_block(&entries)), Ok(entries));
}

/// Put right, so that damage gets behind the checksum.
fn closed(block: &[u8; BLOCK]) -> [u8; BLOCK] {
    let mut block = *block;
    let crc = crc32c(&block[..BLOCK - 4]);
    block[BLOCK - 4..].copy_from_slice(&crc.to_le_bytes());
    block
}

/// See [`Target::seeds`](crate::Target::seeds).
pub fn seeds() -> Vec<Vec<u8>> {
    let Some(head) = DriveHead::of(1 << 30) else { return Vec::new() };
    let mut entries = [None; DriveHead::ENTRIES];
    for (number, entry) in (0u32..).zip(&mut entries).step_by(2) {
        let (ring, sequence) = (RingId([7; 16]), Sequence(number.into()));
        *entry = Some(DriveEntry { ring, sequence, first: head.first() + 9 * number, bytes: 5000 + number });
    }
    vec![[head.encode(), DriveHead::encode_block(&entries)].concat()]
}
