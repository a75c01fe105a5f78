//! Triple DES with one key and one direction: choice between the bit-sliced path and the table path.

use super::schedule::{Direction, expand, masks};
use super::slices::{self, Tile};
use super::words::WordKeys;
use pulp::Arch;

/// Number of blocks below which single blocks by tables take less time than a tile.
pub(super) const FEW: usize = 20;

/// Expanded key for one direction.
pub(in super::super) struct TripleDes {
    arch: Arch,
    masks: Vec<[u64; 48]>,
    words: WordKeys,
}

impl TripleDes {
    /// Expands a key of 16 or 24 bytes.
    pub(in super::super) fn new(key: &[u8], direction: Direction) -> Self {
        let keys = expand(key, direction);
        Self { arch: Arch::new(), masks: masks(&keys), words: WordKeys::new(&keys) }
    }

    /// Transforms one block by tables.
    #[inline]
    pub(super) fn crypt_block(&self, block: u64) -> u64 {
        self.words.crypt(block)
    }

    /// Transforms the first `used` blocks of a tile; the blocks after them become arbitrary.
    pub(super) fn crypt_tile(&self, tile: &mut Tile, used: usize) {
        if used < FEW {
            tile.0[..used].iter_mut().for_each(|block| *block = self.words.crypt(*block));
        } else {
            slices::crypt(self.arch, &self.masks, tile, used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::slices::TILE;
    use super::*;

    /// Vector widths that this machine has.
    fn widths() -> Vec<Arch> {
        let mut all = vec![Arch::Scalar, Arch::new()];
        #[cfg(target_arch = "x86_64")]
        all.extend(pulp::x86::V3::try_new().map(Arch::V3));
        all
    }

    #[test]
    fn slices_of_every_width_equal_the_tables() {
        let key: Vec<u8> = (0..24_u8).map(|at| at.wrapping_mul(11)).collect();
        for direction in [Direction::Encrypt, Direction::Decrypt] {
            let des = TripleDes::new(&key, direction);
            let blocks: [u64; TILE] =
                std::array::from_fn(|at| (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let expected = blocks.map(|block| des.crypt_block(block));
            for arch in widths() {
                for used in [1, 64, 65, 300, TILE] {
                    let mut tile = Tile(blocks);
                    slices::crypt(arch, &des.masks, &mut tile, used);
                    assert_eq!(tile.0[..used], expected[..used], "{arch:?} {used} {direction:?}");
                }
            }
        }
    }
}
