//! A slot as a whole: part header, summary, checks, chunk directory, chunks, payload, footer.

use crate::{sparse, world};
use holdfast_base::{CHECK_BLOCK, SlotNo};
use holdfast_format::{
    Blocks, Chunk, Gap, Key, Kind, PartHeader, SectionKind, Summary, check_image, crc32c, decode_directory,
    restamp,
};
use holdfast_ring::{Depth, SlotCheck};

const BLOCK: usize = 4096;
const TAG_AT: usize = 4080;

/// A section of the summary, as its table lists it.
struct SectionEntry {
    at: usize,
    kind: usize,
    offset: usize,
    bytes: usize,
}

fn section_entries(image: &[u8]) -> Vec<SectionEntry> {
    let count = sparse::u16_at(image, BLOCK + 2).min(16);
    let entry = |n: usize| {
        let at = BLOCK + 64 + 32 * n;
        let (offset, bytes) = (sparse::u32_at(image, at + 8), sparse::u32_at(image, at + 12));
        SectionEntry { at, kind: sparse::u16_at(image, at), offset, bytes }
    };
    (0..count).map(entry).collect()
}

/// Puts the checks of the blocks of a column right.
fn blocks(image: &mut [u8], entry: &SectionEntry) {
    let mut at = entry.offset;
    while at < entry.offset.saturating_add(entry.bytes) {
        let len = sparse::u32_at(image, at + 4);
        let Some(block) = len.checked_sub(4).and_then(|len| sparse::piece(image, at + 4, len)) else {
            return;
        };
        let crc = crc32c(block);
        sparse::put(image, at, &crc.to_le_bytes());
        at += len;
    }
}

/// Puts the checks of a slot right from the inside out, except for those that `leave` names, so that damage reaches the
/// code behind each of them.
pub(crate) fn seal(image: &mut [u8], leave: u8, key: &Key) {
    let sections = section_entries(image);
    let offset_of =
        |kind| sections.iter().find(|entry| entry.kind == kind).map_or(usize::MAX / 2, |entry| entry.offset);
    if leave & 1 == 0 {
        let payload =
            sparse::piece(image, sparse::u32_at(image, 120), sparse::u32_at(image, 124)).unwrap_or_default();
        let checks: Vec<u8> =
            payload.chunks(CHECK_BLOCK).flat_map(|piece| crc32c(piece).to_le_bytes()).collect();
        sparse::put(image, offset_of(1), &checks);
    }
    if leave & 2 == 0 {
        let (directory, base) = (offset_of(2), offset_of(3));
        for n in 0..64 {
            let at = base + sparse::u32_at(image, directory + 64 * n);
            let len = sparse::u32_at(image, at + 4);
            if let Some(chunk) = len.checked_sub(4).and_then(|len| sparse::piece(image, at + 4, len)) {
                let crc = crc32c(chunk);
                sparse::put(image, at, &crc.to_le_bytes());
            }
        }
    }
    if leave & 2 == 0 {
        for entry in sections.iter().filter(|entry| entry.kind == 5) {
            blocks(image, entry);
        }
    }
    if leave & 4 == 0 {
        for entry in sections.iter().filter(|entry| ![3, 5].contains(&entry.kind)) {
            if let Some(section) = sparse::piece(image, entry.offset, entry.bytes) {
                let crc = crc32c(section);
                sparse::put(image, entry.at + 20, &crc.to_le_bytes());
            }
        }
    }
    if leave & 8 == 0
        && let Some(summary) = sparse::piece(image, BLOCK, sparse::u32_at(image, 112))
    {
        let crc = crc32c(summary);
        sparse::put(image, 116, &crc.to_le_bytes());
    }
    if leave & 16 == 0 && image.len() >= BLOCK {
        let tag = key.tag(&image[..TAG_AT]);
        sparse::put(image, TAG_AT, &tag);
    }
    let footer = sparse::u32_at(image, 136);
    if leave & 32 == 0 && image.len() >= BLOCK {
        let header = [&image[48..64], &image[TAG_AT..BLOCK]].concat();
        sparse::put(image, footer + 8, &header);
    }
    if leave & 64 == 0
        && let Some(block) = sparse::piece(image, footer, TAG_AT)
    {
        let tag = key.tag(block);
        sparse::put(image, footer + TAG_AT, &tag);
    }
}

/// Checks a slot in both ways that the product has: at once, and piece by piece as it is read from a disk. What passes
/// the first passes the second, and all its rows lie in its payload.
pub fn run(data: &[u8]) {
    let (mut image, leave) = sparse::expand(data);
    seal(&mut image, leave, &world::key());
    let sound = check_image(&image, &world::key(), world::RING);
    let slot = SlotNo(sparse::u32_at(&image, 12) as u32);
    let passed = in_pieces(slot, &image);
    if let Ok((header, summary)) = &sound {
        assert!(passed, "sound as a whole, but not piece by piece");
        rows_are_inside(header, summary, &image);
        let mut moved = image.clone();
        assert_eq!(restamp(&mut moved, &world::key(), SlotNo(9)), Ok(()));
        let other = check_image(&moved, &world::key(), world::RING);
        assert!(other.is_ok_and(|(header, _)| header.slot == SlotNo(9)));
    } else {
        let _ = restamp(&mut image, &world::key(), slot);
    }
}

fn in_pieces(slot: SlotNo, image: &[u8]) -> bool {
    let mut check = SlotCheck::new(slot, 0, Depth::Full);
    // Every piece goes forward, so that there are at most as many as blocks, and some for the parts.
    for _ in 0..image.len() / BLOCK + 64 + 16 * sparse::u16_at(image, BLOCK + 2) {
        let Some((offset, len)) = check.next_read() else { return true };
        assert!(len <= 512 << 20, "a check asks for {len} bytes at once");
        // Behind the end of what was written lies something else.
        let mut bytes = image.get(offset as usize..).unwrap_or_default().to_vec();
        bytes.resize(len.min(256 << 10), 0);
        if check.feed(&bytes, &world::key(), world::RING).is_err() {
            return false;
        }
    }
    panic!("the check of a slot does not end");
}

fn rows_are_inside(header: &PartHeader, summary: &Summary, image: &[u8]) {
    let (Some(directory), Some(chunks)) =
        (summary.section(SectionKind::ChunkDirectory), summary.section(SectionKind::Chunks))
    else {
        panic!("a sound slot without its sections");
    };
    let entries = decode_directory(&image[directory.range()], directory.crc).unwrap_or_default();
    let payload = &image[header.payload_offset as usize..][..header.payload_bytes as usize];
    let mut rows = 0;
    let mut whole = vec![0; summary.entries.len()];
    for entry in &entries {
        let bytes = &image[chunks.range()][entry.offset as usize..][..entry.bytes as usize];
        let Ok(chunk) = Chunk::decode_at(entry, header.sequence, bytes) else {
            panic!("a sound slot without a chunk")
        };
        for (row, at) in chunk.rows() {
            rows += 1;
            whole[usize::from(row.stream)] += usize::from(row.completes_element());
            let own = &payload[at as usize..][..row.payload()];
            if row.kind == Kind::Gap {
                let _ = Gap::decode(&own[usize::from(row.meta)..]);
            }
        }
    }
    assert_eq!(rows, header.rows);
    for (number, entry) in summary.entries.iter().enumerate() {
        for column in 0..entry.schema as u16 {
            let cells = summary.column(number as u16, column).map_or(0, |section| {
                let blocks = Blocks::new(section, &image[section.range()], header.sequence);
                blocks.flatten().filter_map(|block| Some(block.decode().ok()?.iter().count())).sum()
            });
            assert_eq!(cells, whole[number], "each element that ends has its cells");
        }
    }
}

/// A slot with rows of every kind in one chunk, one with many chunks, and an empty one.
pub fn seeds() -> Vec<Vec<u8>> {
    [40, 300, 0].iter().map(|rows| sparse::squeeze(&world::sealed_slot(1, 20, *rows))).collect()
}
