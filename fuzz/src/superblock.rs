//! The superblock.

use crate::{sparse, world};
use holdfast_format::{Superblock, crc32c};

/// Where the checksum stands.
const CHECK_AT: usize = 4092;

/// Reads a superblock; one that is sound must say the same when it is written and read again.
pub fn run(data: &[u8]) {
    let (mut image, leave) = sparse::expand(data);
    image.resize(4096, 0);
    if leave & 1 == 0 {
        let crc = crc32c(&image[..CHECK_AT]);
        sparse::put(&mut image, CHECK_AT, &crc.to_le_bytes());
    }
    let Ok(read) = Superblock::decode(&image) else { return };
    assert_eq!(Superblock::decode(&read.encode()).as_ref(), Ok(&read));
    // What a recovery string does not carry is made up; the rest must come back.
    let again = Superblock::from_recovery_string(&read.to_recovery_string());
    let again = again.map(|again| (again.ring, again.key, again.geometry, again.name));
    assert_eq!(again, Ok((read.ring, read.key, read.geometry, read.name)));
}

/// A plain one, and one that is full.
pub fn seeds() -> Vec<Vec<u8>> {
    let plain = world::superblock();
    let mut full = plain.clone();
    full.name = "n".repeat(64);
    full.prefilled = true;
    full.geometry.lane_bytes += 3 << 20;
    [plain, full].iter().map(|block| sparse::squeeze(&block.encode())).collect()
}
