//! Groups of numbers of 32 bits, as IPv4 addresses are, found by a hash. A number and its group lie in one word, so that a look takes
//! one place of memory where they are many.

use std::hash::{BuildHasher, RandomState};
use std::hint::black_box;

/// Words at least.
const LEAST: usize = 1 << 10;
/// There are so many times as many words as numbers at least.
const ROOM: usize = 2;

/// See the module.
#[derive(Debug)]
pub(super) struct Scattered {
    /// A number, scattered, above one more than its group; 0: none. A power of two of them, or none.
    words: Vec<u64>,
    len: usize,
    /// Drawn, and odd: nobody who chooses the numbers knows where they go.
    factor: u32,
}

impl Scattered {
    pub(super) fn new() -> Self {
        Self { words: Vec::new(), len: 0, factor: RandomState::new().hash_one(0) as u32 | 1 }
    }

    /// Bytes of memory.
    pub(super) fn size(&self) -> usize {
        self.words.len() * size_of::<u64>()
    }

    /// The group of a number; `next`, if it has none yet.
    #[inline]
    pub(super) fn group(&mut self, number: u32, next: u32) -> u32 {
        if ROOM * self.len >= self.words.len() {
            self.grow();
        }
        let scattered = self.scatter(number);
        let mut at = place(scattered, self.words.len());
        loop {
            let word = self.words[at];
            // Most are known, and where they are looked for first.
            if word >> 32 == u64::from(scattered) && word != 0 {
                return word as u32 - 1;
            }
            if word == 0 {
                self.words[at] = u64::from(scattered) << 32 | u64::from(next + 1);
                self.len += 1;
                return next;
            }
            at = (at + 1) & (self.words.len() - 1);
        }
    }

    /// Looks at where these numbers are looked for first, one beside the other: a processor waits for memory once then, and not for each of
    /// them.
    pub(super) fn look_ahead(&self, numbers: impl Iterator<Item = u32>) {
        let count = self.words.len();
        if count > 0 {
            black_box(numbers.fold(0, |all, number| all ^ self.words[place(self.scatter(number), count)]));
        }
    }

    /// Another number for each: products with odd numbers, and what folds the upper bits of a number onto the lower ones, can be undone.
    #[inline]
    fn scatter(&self, number: u32) -> u32 {
        let product = number.wrapping_mul(self.factor);
        (product ^ product >> 15).wrapping_mul(0x9e37_79b1)
    }

    fn grow(&mut self) {
        let count = (2 * self.words.len()).max(LEAST);
        let old = std::mem::replace(&mut self.words, written(count));
        for word in old.into_iter().filter(|word| *word != 0) {
            let mut at = place((word >> 32) as u32, count);
            while self.words[at] != 0 {
                at = (at + 1) & (count - 1);
            }
            self.words[at] = word;
        }
    }
}

/// So many zeros, which were written: memory that is read before it is written is mapped twice, and all processors wait for that.
pub(super) fn written<T: Copy + Default>(count: usize) -> Vec<T> {
    let mut zeros = Vec::with_capacity(count);
    zeros.resize(count, T::default());
    zeros
}

/// Where a scattered number is looked for first, among so many words: its upper bits.
#[inline]
fn place(scattered: u32, count: usize) -> usize {
    ((u64::from(scattered) * count as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn each_number_has_a_group_of_its_own(
            numbers in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..64, Just(u32::MAX)], 0..5000),
        ) {
            let (mut scattered, mut known) = (Scattered::new(), HashMap::new());
            for number in numbers {
                let next = known.len() as u32;
                let group = *known.entry(number).or_insert(next);
                prop_assert_eq!(scattered.group(number, next), group);
            }
            prop_assert!(scattered.len == known.len() && scattered.words.len() >= ROOM * known.len());
        }
    }
}
