//! A place of the bird's-eye view: whatever bytes a client copies, and whatever a slot is that a place is filled with.

use crate::world;
use holdfast_base::Sequence;
use holdfast_format::{Glance, Outline, PartHeader, PlaceState, SectionKind, Summary, ViewPlace, crc32c};

const BLOCK: usize = 4096;
const SEQUENCE: Sequence = Sequence(20);

/// Bytes of the places of the seeds: with room for everything, for bounds, and for a summary.
const PLACES: [usize; 3] = [16 << 10, 2 << 10, 1 << 10];

/// See [`Target::run`](crate::Target::run).
pub fn run(data: &[u8]) {
    look(data);
    fill(data);
}

/// Looks at the place as a client does; its checksum is put right first, so that damage gets behind it.
fn look(data: &[u8]) {
    let mut place = data.to_vec();
    let Some(front) = place.first_chunk::<{ Glance::FRONT }>() else { return };
    let Some(bytes) = Glance::bytes(front, SEQUENCE, place.len()) else { return };
    let check = crc32c(&place[Glance::FRONT..bytes]);
    place[12..16].copy_from_slice(&check.to_le_bytes());
    let Some(glance) = Glance::new(place[..bytes].to_vec(), place.len()) else { return };
    let head = glance.head();
    let summary = &head[BLOCK..];
    // A slot in which all sections are inside.
    let header = PartHeader {
        summary_bytes: summary.len() as u32,
        summary_crc: crc32c(summary),
        footer_offset: u32::MAX,
        ..PartHeader::default()
    };
    let Ok(summary) = Summary::decode(&header, summary) else { return };
    for section in summary.sections.iter().filter(|section| section.kind == SectionKind::Filter) {
        let copy = |offset: usize, into: &mut [u8]| {
            into.copy_from_slice(&place[offset..offset + into.len()]);
            true
        };
        if let Some((found, bytes)) = glance.section(section, copy) {
            assert_eq!(bytes.len(), found.bytes as usize);
            assert_eq!(crc32c(&bytes), found.crc);
            let _ = Outline::decode(&bytes, &found);
        }
    }
}

/// Fills places from what may be a slot, and looks at them.
fn fill(data: &[u8]) {
    for bytes in PLACES {
        let mut memory = vec![0; bytes];
        let Some(mut place) = ViewPlace::new(&mut memory) else { continue };
        if !place.begin(SEQUENCE, data) {
            assert_eq!(place.told(), PlaceState::Never(SEQUENCE));
            continue;
        }
        let (mut from, mut turns) = (0, 0);
        while let Some(range) = place.wants(from) {
            assert!(from <= range.start && range.start < range.end && turns < 1000);
            place.take(range.start, data.get(range.clone()).unwrap_or_default());
            (from, turns) = (range.end, turns + 1);
        }
        place.publish();
        assert_eq!(place.told(), PlaceState::All(SEQUENCE));
        let told = Glance::bytes(memory.first_chunk().unwrap_or(&[0; 16]), SEQUENCE, bytes).unwrap_or(0);
        assert!(Glance::new(memory[..told].to_vec(), bytes).is_some());
        look(&memory);
    }
}

/// See [`Target::seeds`](crate::Target::seeds).
pub fn seeds() -> Vec<Vec<u8>> {
    let image = world::sealed_slot(1, SEQUENCE.0, 300);
    let mut all = vec![image.clone()];
    for bytes in PLACES {
        let mut memory = vec![0; bytes];
        if let Some(mut place) = ViewPlace::new(&mut memory)
            && place.begin(SEQUENCE, &image)
        {
            place.take(0, &image);
            place.publish();
        }
        all.push(memory);
    }
    all
}
