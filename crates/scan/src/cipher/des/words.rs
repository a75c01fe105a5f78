//! Triple DES of single blocks by tables, for serial chains and for inputs too short for bit slices.
//!
//! The tables join a substitution box with permutation P. Lookups depend on the key, so that this path is not free of
//! timing channels; the bit-sliced path is.

use super::schedule::{ROUNDS, RoundKeys};
use super::tables::{ROUND, substitute};

/// Outputs of the eight boxes after permutation P and the next expansion, by the byte of the box in an expanded half.
///
/// Three entries of four are unused: the byte of the expanded half is then an index as it stands.
static SPREAD: [[u64; 256]; 8] = spread();

const fn spread() -> [[u64; 256]; 8] {
    let mut all = [[0; 256]; 8];
    let mut number = 0;
    while number < 8 {
        let mut x = 0;
        while x < 64 {
            let joined = (substitute(number, x) as u32) << (28 - 4 * number);
            let mut half = 0;
            let mut bit = 0;
            while bit < 32 {
                half |= (joined >> (32 - ROUND[bit]) & 1) << (31 - bit);
                bit += 1;
            }
            all[number][x << 2] = expand(half);
            x += 1;
        }
        number += 1;
    }
    all
}

/// Expands a half: six bits for each box in the upper bits of its byte, even boxes in the upper word.
///
/// The expansion overlaps the groups of six bits: even groups are read from one rotation and odd ones from another. It is
/// linear, so that the rounds never leave this form.
const fn expand(half: u32) -> u64 {
    ((half.rotate_right(1) as u64) << 32 | half.rotate_left(3) as u64) & 0xfcfc_fcfc_fcfc_fcfc
}

/// Half of which `expanded` is the expansion.
const fn contract(expanded: u64) -> u32 {
    ((expanded >> 32) as u32).rotate_left(1) | (expanded as u32).rotate_right(3)
}

/// Pairs of index bits whose exchange, one after the other, is the initial permutation up to the order of the halves.
///
/// A position in the little-endian block word has the bits `b5 b4 b3 b2 b1 b0`. The permutation moves its content to the
/// position `!b0 b2 b1 b5 b4 b3`.
const EXCHANGES: [(u32, u32); 5] = [(0, 5), (0, 3), (1, 4), (2, 3), (3, 4)];

/// Exchanges bits `low` and `high` of the positions of all bits.
#[inline]
const fn exchange(word: u64, (low, high): (u32, u32)) -> u64 {
    let mut mask = 0;
    let mut position = 0;
    while position < 64 {
        if position >> low & 1 == 1 && position >> high & 1 == 0 {
            mask |= 1 << position;
        }
        position += 1;
    }
    let distance = (1 << high) - (1 << low);
    let differ = (word >> distance ^ word) & mask;
    word ^ differ ^ differ << distance
}

/// Initial permutation of a block to the word of the left half (high) and the right half.
#[inline]
fn initial(block: u64) -> u64 {
    EXCHANGES.into_iter().fold(block, exchange).rotate_left(32)
}

/// Inverse of the initial permutation.
#[inline]
fn inverse(word: u64) -> u64 {
    EXCHANGES.into_iter().rev().fold(word.rotate_left(32), exchange)
}

/// Round keys in the form of an expanded half.
#[derive(Clone)]
pub(super) struct WordKeys([u64; ROUNDS]);

impl WordKeys {
    pub(super) fn new(keys: &RoundKeys) -> Self {
        Self(keys.map(|key| {
            (0..8).fold(0, |word, number| {
                let six = key >> (42 - 6 * number) & 63;
                word | six << (2 + 8 * place(number))
            })
        }))
    }

    /// Transforms one block by table lookups.
    #[inline]
    pub(super) fn crypt(&self, block: u64) -> u64 {
        let word = initial(block);
        let (mut left, mut right) = (expand((word >> 32) as u32), expand(word as u32));
        for pass in self.0.chunks_exact(16) {
            for pair in pass.chunks_exact(2) {
                left ^= round(right ^ pair[0]);
                right ^= round(left ^ pair[1]);
            }
            // Each pass ends with an exchange of the halves; the permutations between the passes cancel out.
            (left, right) = (right, left);
        }
        inverse(u64::from(contract(left)) << 32 | u64::from(contract(right)))
    }
}

/// Byte of a box in an expanded half, from the least significant one.
const fn place(number: u64) -> u64 {
    if number.is_multiple_of(2) { 7 - number / 2 } else { 3 - number / 2 }
}

/// Round function of an expanded half with its round key, expanded for the next round.
///
/// The entries of different boxes have no bit in common, so that OR and XOR give the same. The mixture keeps the compiler
/// from joining all lookups to one chain, whose latency would set the rate.
#[inline]
fn round(keyed: u64) -> u64 {
    let [s8, s6, s4, s2, s7, s5, s3, s1] = keyed.to_le_bytes().map(usize::from);
    let first = (SPREAD[0][s1] ^ SPREAD[1][s2]) | (SPREAD[2][s3] ^ SPREAD[3][s4]);
    let second = (SPREAD[4][s5] ^ SPREAD[5][s6]) | (SPREAD[6][s7] ^ SPREAD[7][s8]);
    first ^ second
}

#[cfg(test)]
mod tests {
    use super::super::tables::INITIAL;
    use super::*;

    #[test]
    fn exchanges_are_the_initial_permutation_of_the_standard() {
        for (at, &bit) in INITIAL.iter().enumerate() {
            let bytes = (1_u64 << (64 - bit)).to_be_bytes();
            let block = u64::from_le_bytes(bytes);
            assert_eq!(initial(block), 1 << (63 - at), "bit {bit}");
            assert_eq!(inverse(initial(block)), block);
        }
    }
}
