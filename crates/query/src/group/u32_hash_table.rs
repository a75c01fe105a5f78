//! Hash table from 32-bit numbers, such as IPv4 addresses, to group numbers. Key and group share one word,
//! so that a lookup touches one place in memory.

use std::hash::{BuildHasher, RandomState};

/// Words at least.
const LEAST: usize = 1 << 10;
/// There are so many times as many words as numbers at least.
const ROOM: usize = 2;

/// Numbers that are looked for at once.
pub(super) const AT_ONCE: usize = 64;

/// See the module.
#[derive(Debug)]
pub(super) struct U32HashTable {
    /// A number, scattered, above one more than its group; 0: none. A power of two of them, or none.
    words: Vec<u64>,
    len: usize,
    /// Drawn, and odd: nobody who chooses the numbers knows where they go.
    factor: u32,
}

impl U32HashTable {
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

    /// One more than the group of each of these numbers, as far as they lie at the first or second place where they are looked for; 0 for
    /// others. All are looked for side by side: a processor waits for memory once then, and guesses nothing.
    pub(super) fn known(&self, numbers: &[u32; AT_ONCE]) -> [u32; AT_ONCE] {
        let (mut scattered, mut pairs) = (*numbers, [(0, 0); AT_ONCE]);
        let (words, count) = (&self.words[..], self.words.len());
        if words.is_empty() {
            return [0; AT_ONCE];
        }
        for number in &mut scattered {
            *number = self.scatter(*number);
        }
        for (pair, scattered) in pairs.iter_mut().zip(&scattered) {
            let at = place(*scattered, count);
            *pair = (words[at & (count - 1)], words[(at + 1) & (count - 1)]);
        }
        let mut known = [0; AT_ONCE];
        for ((known, (first, second)), scattered) in known.iter_mut().zip(&pairs).zip(&scattered) {
            let mine = |word: u64| word as u32 & u32::from((word >> 32) as u32 == *scattered).wrapping_neg();
            *known = mine(*first) | mine(*second);
        }
        known
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

/// Where a scattered number is looked for first, among so many words, a power of two: its upper bits.
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
            let (mut scattered, mut known) = (U32HashTable::new(), HashMap::new());
            for number in &numbers {
                let next = known.len() as u32;
                let group = *known.entry(*number).or_insert(next);
                prop_assert_eq!(scattered.group(*number, next), group);
            }
            let mut found = 0;
            for some in numbers.chunks(AT_ONCE) {
                let all: [u32; AT_ONCE] = std::array::from_fn(|at| some.get(at).copied().unwrap_or(0));
                for (number, group) in some.iter().zip(scattered.known(&all)) {
                    prop_assert!(group == 0 || group == known[number] + 1);
                    found += usize::from(group > 0);
                }
            }
            prop_assert!(found * 2 >= numbers.len(), "{} of {}", found, numbers.len());
            let others = std::array::from_fn(|at| at as u32 + 1_000_000);
            for (group, other) in scattered.known(&others).iter().zip(others) {
                prop_assert!(*group == 0 || known.get(&other) == Some(&(group - 1)));
            }
            prop_assert!(scattered.len == known.len() && scattered.words.len() >= ROOM * known.len());
        }
    }
}
