//! Bit-sliced Triple DES: one vector holds the same bit of many blocks, and the rounds are logic on vectors.
//!
//! A tile is transposed by a network of recursive exchanges, runs through the 48 rounds and is transposed back. The vector
//! width is the one of the machine: 512 blocks with AVX-512, 256 with AVX2, 128 with NEON, 64 otherwise.
#![allow(
    clippy::inline_always,
    reason = "the instruction set of the caller must reach every vector operation"
)]

use super::sboxes;
use super::tables::{INITIAL, ROUND};
use pulp::{Arch, Simd, WithSimd};

/// Number of blocks of a tile: the widest vectors take it in one pass.
pub(super) const TILE: usize = 512;

/// Blocks as little-endian words, aligned for whole vectors.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Tile(pub(super) [u64; TILE]);

/// Position of box output bits in the round function: the inverse of permutation P.
const TARGETS: [usize; 32] = {
    let mut targets = [0; 32];
    let mut at = 0;
    while at < 32 {
        targets[ROUND[at] as usize - 1] = at;
        at += 1;
    }
    targets
};

/// Transforms the first `used` blocks of a tile; the blocks after them become arbitrary.
pub(super) fn crypt(arch: Arch, masks: &[[u64; 48]], tile: &mut Tile, used: usize) {
    arch.dispatch(Kernel { masks, tile, used });
}

struct Kernel<'a> {
    masks: &'a [[u64; 48]],
    tile: &'a mut Tile,
    used: usize,
}

impl WithSimd for Kernel<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let blocks = 64 * S::U64_LANES;
        for part in self.tile.0.chunks_exact_mut(blocks).take(self.used.div_ceil(blocks)) {
            transpose(part, S::U64_LANES);
            let (vectors, _) = S::as_mut_simd_u64s(part);
            if let Ok(vectors) = <&mut [S::u64s; 64]>::try_from(vectors) {
                rounds(simd, self.masks, vectors);
            }
            transpose(part, S::U64_LANES);
        }
    }
}

/// Transposes 64 by 64 bits in each lane of 64 vectors.
///
/// The trait of the vectors has no shifts by bits. The compiler makes vector code of these loops.
#[inline(always)]
fn transpose(words: &mut [u64], lanes: usize) {
    exchange_twice::<16>(words, lanes);
    exchange_twice::<4>(words, lanes);
    exchange_twice::<1>(words, lanes);
}

/// Exchanges the off-diagonal quarters of all squares of `4 * SIZE` bits, then of `2 * SIZE` bits: one pass over memory.
#[inline(always)]
fn exchange_twice<const SIZE: usize>(words: &mut [u64], lanes: usize) {
    for square in words.chunks_exact_mut(4 * SIZE * lanes) {
        let (upper, lower) = square.split_at_mut(2 * SIZE * lanes);
        let (first, second) = upper.split_at_mut(SIZE * lanes);
        let (third, fourth) = lower.split_at_mut(SIZE * lanes);
        for (((first, second), third), fourth) in first.iter_mut().zip(second).zip(third).zip(fourth) {
            let (a, c) = exchange(*first, *third, 2 * SIZE);
            let (b, d) = exchange(*second, *fourth, 2 * SIZE);
            (*first, *second) = exchange(a, b, SIZE);
            (*third, *fourth) = exchange(c, d, SIZE);
        }
    }
}

/// Exchanges the upper bits of each group of `2 * size` bits of one row with the lower bits of another row.
#[inline(always)]
fn exchange(upper: u64, lower: u64, size: usize) -> (u64, u64) {
    let mask = u64::MAX / ((1 << size) + 1);
    let differ = (upper >> size ^ lower) & mask;
    (upper ^ differ << size, lower ^ differ)
}

/// Vector index of a block bit of the standard: bits count from the most significant one of each byte.
const fn index(bit: u8) -> usize {
    (bit as usize - 1) ^ 7
}

/// Runs the three passes over the transposed tile. The permutations are only choices of vectors.
#[inline(always)]
fn rounds<S: Simd>(simd: S, masks: &[[u64; 48]], vectors: &mut [S::u64s; 64]) {
    let mut left: [S::u64s; 32] = std::array::from_fn(|at| vectors[index(INITIAL[at])]);
    let mut right: [S::u64s; 32] = std::array::from_fn(|at| vectors[index(INITIAL[32 + at])]);
    for pass in masks.chunks_exact(16) {
        for pair in pass.chunks_exact(2) {
            round(simd, &pair[0], &right, &mut left);
            round(simd, &pair[1], &left, &mut right);
        }
        // Each pass ends with an exchange of the halves; the permutations between the passes cancel out.
        std::mem::swap(&mut left, &mut right);
    }
    for at in 0..32 {
        vectors[index(INITIAL[at])] = left[at];
        vectors[index(INITIAL[32 + at])] = right[at];
    }
}

/// Adds the round function of one half to the other half.
///
/// The circuits are called by name: a call through `FnOnce` would lose the instruction set of the caller.
#[inline(always)]
fn round<S: Simd>(simd: S, masks: &[u64; 48], from: &[S::u64s; 32], to: &mut [S::u64s; 32]) {
    add::<S, 0>(simd, to, sboxes::s1(simd, inputs::<S, 0>(simd, masks, from)));
    add::<S, 1>(simd, to, sboxes::s2(simd, inputs::<S, 1>(simd, masks, from)));
    add::<S, 2>(simd, to, sboxes::s3(simd, inputs::<S, 2>(simd, masks, from)));
    add::<S, 3>(simd, to, sboxes::s4(simd, inputs::<S, 3>(simd, masks, from)));
    add::<S, 4>(simd, to, sboxes::s5(simd, inputs::<S, 4>(simd, masks, from)));
    add::<S, 5>(simd, to, sboxes::s6(simd, inputs::<S, 5>(simd, masks, from)));
    add::<S, 6>(simd, to, sboxes::s7(simd, inputs::<S, 6>(simd, masks, from)));
    add::<S, 7>(simd, to, sboxes::s8(simd, inputs::<S, 7>(simd, masks, from)));
}

/// Inputs of box `BOX`: six neighbouring bits of a half, with the round key.
#[inline(always)]
fn inputs<S: Simd, const BOX: usize>(simd: S, masks: &[u64; 48], from: &[S::u64s; 32]) -> [S::u64s; 6] {
    let mut inputs = [simd.splat_u64s(0); 6];
    for (at, input) in inputs.iter_mut().enumerate() {
        *input = simd.xor_u64s(from[(4 * BOX + at + 31) % 32], simd.splat_u64s(masks[6 * BOX + at]));
    }
    inputs
}

/// Adds the outputs of box `BOX` at the places that permutation P gives them.
#[inline(always)]
fn add<S: Simd, const BOX: usize>(simd: S, to: &mut [S::u64s; 32], outputs: [S::u64s; 4]) {
    for (at, output) in outputs.into_iter().enumerate() {
        let target = TARGETS[4 * BOX + at];
        to[target] = simd.xor_u64s(to[target], output);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tables;
    use super::*;
    use pulp::Scalar;

    /// Bit `x` of input slice `bit` is bit `bit` of `x`, so that one evaluation covers all inputs.
    fn check(number: usize, circuit: impl FnOnce(Scalar, [u64; 6]) -> [u64; 4]) {
        let inputs = std::array::from_fn(|bit| {
            (0..64).filter(|x| x >> (5 - bit) & 1 == 1).fold(0, |slice, x| slice | 1_u64 << x)
        });
        let outputs = circuit(Scalar::new(), inputs);
        for x in 0..64 {
            let found = outputs.iter().fold(0, |value, slice| value << 1 | (slice >> x & 1) as u8);
            assert_eq!(found, tables::substitute(number, x), "S{} of {x}", number + 1);
        }
    }

    #[test]
    fn circuits_equal_the_tables_of_the_standard() {
        check(0, sboxes::s1);
        check(1, sboxes::s2);
        check(2, sboxes::s3);
        check(3, sboxes::s4);
        check(4, sboxes::s5);
        check(5, sboxes::s6);
        check(6, sboxes::s7);
        check(7, sboxes::s8);
    }

    #[test]
    fn transposition_moves_every_bit_to_its_place() {
        for (row, column) in [(0, 0), (0, 63), (63, 0), (5, 40), (33, 31), (62, 61)] {
            let mut vectors = [0_u64; 64];
            vectors[row] = 1 << column;
            transpose(&mut vectors, 1);
            let expected: [u64; 64] = std::array::from_fn(|at| if at == column { 1 << row } else { 0 });
            assert_eq!(vectors, expected);
        }
    }
}
