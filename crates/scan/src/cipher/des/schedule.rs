//! Key schedule of Triple DES: 48 round keys, as words for the tables and as masks for the bit slices.

use super::tables::{CHOICE_1, CHOICE_2, ROTATIONS};

/// Number of rounds of the three passes of DES.
pub(super) const ROUNDS: usize = 48;

/// Direction in which blocks are transformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Direction {
    Encrypt,
    Decrypt,
}

/// Round keys of 48 bits in the order of use; the first bit is bit 47.
pub(super) type RoundKeys = [u64; ROUNDS];

/// Expands a key of 24 bytes, or of 16 bytes with the first part used twice.
pub(super) fn expand(key: &[u8], direction: Direction) -> RoundKeys {
    let mut parts =
        key.chunks_exact(8).map(|part| part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
    let first = parts.next().unwrap_or_default();
    let second = parts.next().unwrap_or(first);
    let third = parts.next().unwrap_or(first);
    let mut all = [0; ROUNDS];
    all[..16].copy_from_slice(&single(first));
    all[16..32].copy_from_slice(&single(second));
    // The middle pass decrypts: its round keys are reversed.
    all[16..32].reverse();
    all[32..].copy_from_slice(&single(third));
    if direction == Direction::Decrypt {
        all.reverse();
    }
    all
}

/// Round keys of one pass of DES for the big-endian key word.
fn single(key: u64) -> [u64; 16] {
    const HALF: u64 = (1 << 28) - 1;
    let choose = |word: u64, width: u32, choice: &[u8]| {
        choice.iter().fold(0, |chosen, &bit| chosen << 1 | (word >> (width - u32::from(bit)) & 1))
    };
    let chosen = choose(key, 64, &CHOICE_1);
    let (mut c, mut d) = (chosen >> 28, chosen & HALF);
    ROTATIONS.map(|count| {
        let rotate = |half: u64| (half << count | half >> (28 - count)) & HALF;
        (c, d) = (rotate(c), rotate(d));
        choose(c << 28 | d, 56, &CHOICE_2)
    })
}

/// Masks of the round keys: all ones for a key bit that is set, in the order of the box inputs.
pub(super) fn masks(keys: &RoundKeys) -> Vec<[u64; 48]> {
    let mask = |key: u64, at: usize| 0_u64.wrapping_sub(key >> (47 - at) & 1);
    keys.iter().map(|&key| std::array::from_fn(|at| mask(key, at))).collect()
}
