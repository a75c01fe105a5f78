//! Index of an open slot: parts from a recorder, assembled by a reader.

use crate::world;
use holdfast_format::{OpenCursor, OpenIndex, OpenSlotQuery, PartHeader, SlotId, Summary};

/// The columns that are asked for.
const COLUMNS: [u16; 4] = [0, 1, 2, 3];

/// Takes the input twice, as two replies. What comes of it has a head that is sound, and is as long as it says.
pub fn run(data: &[u8]) {
    let mut index = OpenIndex::new(world::SLOT, &COLUMNS);
    if index.take(data).is_err() {
        return;
    }
    let _ = index.begin();
    if index.take(data).is_err() {
        return;
    }
    let id = SlotId { ring: world::RING, ..SlotId::default() };
    let Ok(image) = index.image(id, &world::key()) else { return };
    let mut bytes = vec![0; world::SLOT as usize];
    image.copy(0, &mut bytes);
    let Ok(header) = PartHeader::decode(&bytes, &world::key(), world::RING) else {
        panic!("the head of what was put together is not sound");
    };
    let summary = Summary::decode(&header, &bytes[PartHeader::SUMMARY_AT as usize..]);
    assert!(summary.is_ok(), "its summary is not sound");
    assert!(header.bytes() <= bytes.len() && image.payload().end == header.index_offset as usize);
}

/// All of a slot in one reply, and the first piece of it.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for rows in [0, 3, 60, 200] {
        for (entry, has_rows, columns) in
            [(None, true, &[][..]), (Some(1), true, &COLUMNS), (Some(1), false, &[2]), (None, false, &[])]
        {
            let (mut builder, buffer) = world::open_slot(5, rows);
            let ask = OpenSlotQuery { entry, rows: has_rows, columns };
            for room in [world::SLOT as usize, 6000] {
                let mut parts = vec![0; room];
                let told = builder.write_open_slot(&buffer, OpenCursor::default(), &ask, &mut parts);
                parts.truncate(told.bytes);
                seeds.push(parts);
            }
        }
    }
    seeds
}
