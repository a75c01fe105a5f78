//! Pattern of the bytes that a proof sends: bytes that follow from a seed and the element's ordinal alone, so that every element can be checked
//! by itself, wherever and whenever it is read. No word of it comes twice: what stands at another place, or in another
//! element, is seen as well as a flipped bit. Pure.

/// Bytes of a word: pieces of an element begin at multiples of it.
pub(crate) const WORD: usize = 8;

/// Words that are compared before it is looked whether they differ.
const BLOCK: usize = 4096;

/// From one state of the generator to the next (`SplitMix64`: Steele, Lea and Flood, “Fast Splittable Pseudorandom Number
/// Generators”, section 4).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The bytes of every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    seed: u64,
}

fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Pattern {
    /// Of that seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The state before the word at `from`, a multiple of [`WORD`].
    fn state(self, ordinal: u64, from: usize) -> u64 {
        let key = mixed(self.seed ^ mixed(ordinal.wrapping_add(STEP)));
        key.wrapping_add(STEP.wrapping_mul((from / WORD) as u64))
    }

    /// Writes the bytes of an element from `from` on, a multiple of [`WORD`].
    pub(crate) fn fill(self, ordinal: u64, from: usize, into: &mut [u8]) {
        let mut state = self.state(ordinal, from);
        let mut next = || {
            state = state.wrapping_add(STEP);
            mixed(state).to_le_bytes()
        };
        let (words, rest) = into.as_chunks_mut::<WORD>();
        for word in words {
            *word = next();
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&next()[..rest.len()]);
        }
    }

    /// The first byte of an element that is not as it was sent.
    pub(crate) fn first_wrong(self, ordinal: u64, data: &[u8]) -> Option<usize> {
        for (number, block) in data.chunks(BLOCK).enumerate() {
            let from = number * BLOCK;
            let mut state = self.state(ordinal, from);
            let (words, rest) = block.as_chunks::<WORD>();
            let mut wrong = 0;
            for word in words {
                state = state.wrapping_add(STEP);
                wrong |= mixed(state) ^ u64::from_le_bytes(*word);
            }
            let last = mixed(state.wrapping_add(STEP)).to_le_bytes();
            if wrong != 0 || rest != &last[..rest.len()] {
                let mut wanted = vec![0; block.len()];
                self.fill(ordinal, from, &mut wanted);
                let at = wanted.iter().zip(block).position(|(wanted, found)| wanted != found);
                return at.map(|at| from + at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn element(pattern: Pattern, ordinal: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        pattern.fill(ordinal, 0, &mut bytes);
        bytes
    }

    // Promise 5: a proof sees every wrong byte.
    proptest! {
        #[test]
        fn a_flipped_bit_is_found_where_it_is(
            seed: u64, ordinal: u64, len in 1usize..10_000, at: prop::sample::Index, bit in 0u8..8,
        ) {
            let pattern = Pattern::new(seed);
            let mut bytes = element(pattern, ordinal, len);
            prop_assert_eq!(pattern.first_wrong(ordinal, &bytes), None);
            let at = at.index(len);
            bytes[at] ^= 1 << bit;
            prop_assert_eq!(pattern.first_wrong(ordinal, &bytes), Some(at));
        }

        #[test]
        fn pieces_make_up_the_element(seed: u64, ordinal: u64, words in 1usize..900, rest in 0usize..8, cut: prop::sample::Index) {
            let pattern = Pattern::new(seed);
            let len = words * WORD + rest;
            let at = cut.index(words + 1) * WORD;
            let mut bytes = vec![0; len];
            let (head, tail) = bytes.split_at_mut(at);
            pattern.fill(ordinal, 0, head);
            pattern.fill(ordinal, at, tail);
            prop_assert_eq!(bytes, element(pattern, ordinal, len));
        }

        #[test]
        fn another_element_and_another_place_of_the_same_one_are_told_from_it(
            seed: u64, ordinal in 0u64..1 << 48, other in 0u64..1 << 48, block in 1usize..4,
        ) {
            prop_assume!(ordinal != other);
            let pattern = Pattern::new(seed);
            let bytes = element(pattern, ordinal, 16 << 10);
            prop_assert!(pattern.first_wrong(other, &bytes).is_some_and(|at| at < WORD));
            let mut moved = bytes.clone();
            moved.copy_within(block * 4096..(block + 1) * 4096 - 1, 0);
            prop_assert!(pattern.first_wrong(ordinal, &moved).is_some_and(|at| at < WORD));
        }
    }
}
