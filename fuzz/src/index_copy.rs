//! A copy of a slot's index, as anybody may leave it on an index drive.

use crate::world;
use holdfast_format::{IndexCopy, PartHeader, crc32c};

/// Ranges of a slot that are asked for.
const RANGES: [(usize, usize); 5] = [(0, 4096), (4096, 4097), (5000, 90_000), (70_000, 70_001), (9, 3)];

/// See [`Target::run`](crate::Target::run).
pub fn run(data: &[u8]) {
    let Some(front) = data.first_chunk() else { return };
    let Ok(start) = IndexCopy::start_of(front) else { return };
    let Some(bytes) = data.get(..start) else { return };
    // Put right first, so that damage gets behind it.
    let mut bytes = bytes.to_vec();
    let without = [&bytes[..IndexCopy::FRONT - 4], &bytes[IndexCopy::FRONT..]].concat();
    bytes[IndexCopy::FRONT - 4..IndexCopy::FRONT].copy_from_slice(&crc32c(&without).to_le_bytes());
    let Ok(copy) = IndexCopy::decode(&bytes) else { return };
    assert_eq!((copy.start(), copy.encode().len()), (start, start));
    for (from, to) in RANGES {
        if let Some(place) = copy.place(&(from..to)) {
            assert!(place.len() == to - from && place.end <= copy.slot_bytes());
        }
    }
    let _ = copy.is_sound(0, &data[start..]);
    let _ = copy.is_sound(usize::MAX, &data[start..]);
}

/// See [`Target::seeds`](crate::Target::seeds).
pub fn seeds() -> Vec<Vec<u8>> {
    let image = world::sealed_slot(1, 20, 300);
    let header =
        PartHeader { payload_offset: 4096, index_offset: 8192, index_bytes: 70_000, ..PartHeader::default() };
    let kept = [&image[..4096], &vec![7; 70_000]].concat();
    let copy = IndexCopy::new(&header, &kept).encode();
    vec![copy.clone(), [copy, kept].concat()]
}
