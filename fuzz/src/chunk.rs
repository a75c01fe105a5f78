//! A chunk by itself, as the journal has it, a chunk directory, and what a slot has of an attribute: a block of cells, and what
//! tells of them in short.

use crate::world;
use holdfast_format::{
    Block, BlockBounds, Cell, Chunk, FormatError, Outline, Section, SectionKind, check_image, crc32c,
    decode_directory,
};

/// Most cells of a block, and most bytes of their texts.
const MOST: (usize, usize) = (4096, 1 << 20);

/// Reads the input as each of them, with and without its checksum put right.
pub fn run(data: &[u8]) {
    let _ = decode_directory(data, crc32c(data));
    outline(data);
    count(data);
    cells(data);
    let mut bytes = data.to_vec();
    let len = crate::sparse::u32_at(&bytes, 4);
    if let Some(chunk) = bytes.get(4..len) {
        let crc = crc32c(chunk);
        crate::sparse::put(&mut bytes, 0, &crc.to_le_bytes());
        count(&bytes);
        cells(&bytes);
    }
}

/// A block that is read has as many cells as it says, and no more than a block may have.
fn cells(bytes: &[u8]) {
    let Ok(block) = Block::read(bytes) else { return };
    assert!(block.bytes() <= bytes.len() && block.nulls() <= block.cells());
    let Ok(column) = block.decode() else { return };
    let nulls = column.iter().filter(Option::is_none).count();
    let text: usize =
        column.iter().flatten().map(|cell| if let Cell::Bytes(text) = cell { text.len() } else { 0 }).sum();
    assert_eq!((column.iter().count(), nulls), (block.cells(), block.nulls()));
    assert!(block.cells() <= MOST.0 && text <= MOST.1.max(bytes.len()));
}

/// What is told in short never denies by a filter that excludes nothing.
fn outline(bytes: &[u8]) {
    let count = (bytes.len().saturating_sub(48) / 32) as u32;
    let section = Section {
        kind: SectionKind::Filter,
        column: 0,
        entry: 0,
        encoding: 0,
        offset: 0,
        bytes: bytes.len() as u32,
        count,
        crc: crc32c(bytes),
    };
    // Of bounds as wide as that, all of it, and three quarters of it before what is told of values.
    for (encoding, part) in
        [0, 1, 2, 4, 8, 16].into_iter().flat_map(|width| [(width, 4), (width | 17 << 8, 3)])
    {
        let front = bytes.len() * part / 4;
        let count = (front.saturating_sub(16) / (4 + 2 * usize::from(encoding & 0xff))) as u32;
        let last =
            bytes.get(12 + 4 * count as usize..16 + 4 * count as usize).and_then(|four| four.try_into().ok());
        let column = Section { bytes: last.map_or(0, u32::from_le_bytes), count, ..section };
        let section = Section { encoding, count, ..section };
        bounds(BlockBounds::decode(bytes, &section, &column), &column);
    }
    let Ok(outline) = Outline::decode(bytes, &section) else { return };
    for word in [0, 1, u64::MAX] {
        let _ = outline.may_have(Cell::Word(word)) | outline.may_have(Cell::Wide(word.into()));
    }
    let _ = outline.may_have(Cell::Bytes(b"text"));
}

/// The blocks that are told of lie one behind the other, and are all of their column.
fn bounds(told: Result<BlockBounds, FormatError>, column: &Section) {
    let Ok(told) = told else { return };
    assert_eq!(told.count(), column.count as usize);
    let mut at = 0;
    for block in 0..told.count() {
        let range = told.range(block).unwrap_or_default();
        assert!(range.start == at && range.end > at);
        assert!(told.bounds(block).flatten().is_none_or(|(least, greatest)| least <= greatest));
        at = range.end;
    }
    assert_eq!(at, column.bytes as usize);
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
        let all = [
            SectionKind::Chunks,
            SectionKind::ChunkDirectory,
            SectionKind::Filter,
            SectionKind::Attribute,
            SectionKind::Bounds,
        ];
        let parts = summary.sections.iter().filter(|section| all.contains(&section.kind));
        seeds.extend(parts.map(|section| image[section.range()].to_vec()));
    }
    seeds
}
