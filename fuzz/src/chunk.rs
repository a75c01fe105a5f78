//! A chunk by itself, as the journal has it, and a chunk directory.

use crate::world;
use holdfast_format::{Chunk, SectionKind, check_image, crc32c, decode_directory};

/// Reads the input as a chunk and as a directory, with and without their checksums put right.
pub fn run(data: &[u8]) {
    let _ = decode_directory(data, crc32c(data));
    count(data);
    let mut bytes = data.to_vec();
    let len = crate::sparse::u32_at(&bytes, 4);
    if let Some(chunk) = bytes.get(4..len) {
        let crc = crc32c(chunk);
        crate::sparse::put(&mut bytes, 0, &crc.to_le_bytes());
        count(&bytes);
    }
}

/// A sound chunk's rows add up to what it says of them.
fn count(bytes: &[u8]) {
    let Ok(chunk) = Chunk::decode(bytes) else { return };
    let (mut rows, mut payload) = (0, 0);
    for (row, at) in chunk.rows() {
        assert_eq!(u64::from(at), u64::from(chunk.payload_offset()) + payload);
        rows += 1;
        payload += row.payload() as u64;
    }
    assert_eq!((rows, payload), (chunk.len(), u64::from(chunk.payload_bytes())));
    assert_eq!(chunk.streams().map(|(_, rows)| rows).sum::<u32>(), rows);
}

/// Chunks and directories of slots.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for rows in [3, 60, 200] {
        let image = world::sealed_slot(1, 20, rows);
        let Ok((_, summary)) = check_image(&image, &world::key(), world::RING) else { continue };
        for kind in [SectionKind::Chunks, SectionKind::ChunkDirectory] {
            seeds.extend(summary.section(kind).map(|section| image[section.range()].to_vec()));
        }
    }
    seeds
}
