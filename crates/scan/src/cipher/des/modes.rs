//! Modes of operation on whole blocks of a buffer, in place: ECB, CTR, CBC decryption, and serial CBC encryption.

use super::slices::{TILE, Tile};
use super::triple::TripleDes;
use crate::cipher::{BLOCK_LEN, Iv};

/// Bytes of a tile in a file.
const TILE_BYTES: usize = TILE * BLOCK_LEN;

/// Word of a block of exactly eight bytes.
#[inline]
pub(super) fn load(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Copies whole blocks of `bytes` into a tile and returns their number.
fn fill(tile: &mut Tile, bytes: &[u8]) -> usize {
    for (block, bytes) in tile.0.iter_mut().zip(bytes.chunks_exact(BLOCK_LEN)) {
        *block = load(bytes);
    }
    bytes.len() / BLOCK_LEN
}

/// Transforms every block by itself. The length is a multiple of the block.
pub(in super::super) fn ecb(des: &TripleDes, bytes: &mut [u8]) {
    let mut tile = Tile([0; TILE]);
    for part in bytes.chunks_mut(TILE_BYTES) {
        let used = fill(&mut tile, part);
        des.crypt_tile(&mut tile, used);
        for (bytes, block) in part.chunks_exact_mut(BLOCK_LEN).zip(&tile.0) {
            bytes.copy_from_slice(&block.to_le_bytes());
        }
    }
}

/// Adds the key stream that begins at block `first` of the file. The length is arbitrary.
pub(in super::super) fn ctr(des: &TripleDes, iv: Iv, first: u64, bytes: &mut [u8]) {
    let mut tile = Tile([0; TILE]);
    let mut counter = u64::from_be_bytes(iv).wrapping_add(first);
    for part in bytes.chunks_mut(TILE_BYTES) {
        let used = part.len().div_ceil(BLOCK_LEN);
        for block in &mut tile.0[..used] {
            *block = counter.swap_bytes();
            counter = counter.wrapping_add(1);
        }
        des.crypt_tile(&mut tile, used);
        let mut blocks = part.chunks_exact_mut(BLOCK_LEN);
        for (bytes, block) in blocks.by_ref().zip(&tile.0) {
            let sum = load(bytes) ^ block;
            bytes.copy_from_slice(&sum.to_le_bytes());
        }
        let end = tile.0[used - 1].to_le_bytes();
        blocks.into_remainder().iter_mut().zip(end).for_each(|(byte, key)| *byte ^= key);
    }
}

/// Decrypts chained blocks; `before` is the ciphertext block before them. The length is a multiple of the block.
pub(in super::super) fn cbc_decrypt(des: &TripleDes, before: Iv, bytes: &mut [u8]) {
    let mut tile = Tile([0; TILE]);
    let mut previous = u64::from_le_bytes(before);
    for part in bytes.chunks_mut(TILE_BYTES) {
        let used = fill(&mut tile, part);
        des.crypt_tile(&mut tile, used);
        for (bytes, block) in part.chunks_exact_mut(BLOCK_LEN).zip(&tile.0) {
            let cipher = load(bytes);
            bytes.copy_from_slice(&(block ^ previous).to_le_bytes());
            previous = cipher;
        }
    }
}

/// Encrypts blocks in a chain and returns the last ciphertext block. The length is a multiple of the block.
pub(in super::super) fn cbc_encrypt(des: &TripleDes, before: Iv, bytes: &mut [u8]) -> Iv {
    let mut previous = u64::from_le_bytes(before);
    for bytes in bytes.chunks_exact_mut(BLOCK_LEN) {
        previous = des.crypt_block(load(bytes) ^ previous);
        bytes.copy_from_slice(&previous.to_le_bytes());
    }
    previous.to_le_bytes()
}
