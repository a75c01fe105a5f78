//! Rare values of a column: the hashes of values that occur in few blocks, and those blocks, so that a search
//! for one reads no other block. `bounds` stores them.

use crate::FormatError;
use crate::bytes::{FieldReader, SliceWriter, u32_at};

/// Blocks that are told of together: they are read in one go.
pub(crate) const STRETCH: usize = 8;

/// In fewer stretches nothing is looked for.
const LEAST_STRETCHES: usize = 3;

/// Bytes of what is told of a bucket: its number, and its stretch.
pub(crate) const TOLD_BYTES: usize = 6;

/// Where more than one bucket in so many is taken values share them too often, and most are of columns whose values are all
/// different: of these nothing is told, and their values cost nothing from there on.
const TAKEN: usize = 4;

/// A bucket with values of several stretches.
const SEVERAL: u16 = u16::MAX;

/// The bucket of a hash, of two to the power of `bits`.
#[inline]
fn bucket_of(hash: u64, bits: u32) -> usize {
    (hash >> (64 - bits)) as usize
}

/// Hashes of the values of an open slot's column, in buckets, each with the only stretch that has any of them. It allocates when
/// it is made.
#[derive(Debug)]
pub(crate) struct Stretches {
    /// 0: nothing yet; else a stretch's number and one, or [`SEVERAL`].
    buckets: Box<[u16]>,
    bits: u32,
    /// Buckets that have anything, and those of a single stretch.
    taken: usize,
    single: usize,
    /// More are not told of.
    most: usize,
    /// So many buckets are taken that more values would say nothing.
    full: bool,
}

impl Stretches {
    /// Of as many buckets as so many bytes have room for, of which at most so many are told of.
    pub(crate) fn new(bytes: usize, most: usize) -> Self {
        let bits = Self::bits(bytes);
        let buckets = vec![0; 1 << bits].into_boxed_slice();
        Self { buckets, bits, taken: 0, single: 0, most, full: false }
    }

    fn bits(bytes: usize) -> u32 {
        (bytes / size_of::<u16>()).max(2).ilog2()
    }

    /// Bytes of memory of one that is made for so many.
    pub(crate) fn memory(bytes: usize) -> usize {
        size_of::<u16>() << Self::bits(bytes)
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        if self.taken > 0 {
            self.buckets.fill(0);
        }
        (self.taken, self.single, self.full) = (0, 0, false);
    }

    /// Whether anything can come of more values.
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Takes note of a value of block number `block`.
    #[inline]
    pub(crate) fn add(&mut self, hash: u64, block: u32) {
        let stretch = (block as usize / STRETCH + 1) as u16;
        let bucket = &mut self.buckets[bucket_of(hash, self.bits)];
        if *bucket == 0 {
            *bucket = stretch;
            self.taken += 1;
            self.single += 1;
        } else if *bucket != stretch && *bucket != SEVERAL {
            *bucket = SEVERAL;
            self.single -= 1;
        }
    }

    /// Ends block number `block`.
    pub(crate) fn end_block(&mut self, block: u32) {
        // There are no more stretches than a bucket can tell.
        let last = (block as usize + 1) / STRETCH + 2 >= usize::from(SEVERAL);
        self.full |= last || TAKEN * self.taken > self.buckets.len();
    }

    /// Bytes that they take at most, when `more` values have come.
    pub(crate) fn most_bytes(&self, more: usize) -> usize {
        if self.full { 0 } else { TOLD_BYTES * (self.single + more).min(self.most) }
    }

    /// What is told of a column of so many blocks: bytes, and bits of a bucket's number; nothing where that says nothing, or too much.
    pub(crate) fn told(&self, blocks: u32) -> Option<(usize, u32)> {
        let pays = !self.full
            && (1..=self.most).contains(&self.single)
            && blocks as usize > (LEAST_STRETCHES - 1) * STRETCH;
        pays.then(|| (TOLD_BYTES * self.single, self.bits))
    }

    /// Writes that: numbers of buckets, then their stretches.
    pub(crate) fn put(&self, bytes: &mut [u8]) {
        let single =
            || self.buckets.iter().zip(0u32..).filter(|(stretch, _)| !matches!(**stretch, 0 | SEVERAL));
        let mut put = SliceWriter::new(bytes);
        for (_, bucket) in single() {
            put.u32(bucket);
        }
        for (stretch, _) in single() {
            put.u16(stretch - 1);
        }
    }
}

/// Buckets whose values are all in one stretch of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rare {
    bits: u32,
    /// In the order of their numbers, each with its stretch.
    buckets: Vec<(u32, u16)>,
}

impl Rare {
    /// Reads those of a column of so many blocks.
    pub(super) fn decode(
        get: &FieldReader<'_>,
        bytes: &[u8],
        bits: u32,
        blocks: usize,
    ) -> Result<Self, FormatError> {
        let count = bytes.len() / TOLD_BYTES;
        if !(1..=32).contains(&bits) || count == 0 || bytes.len() != count * TOLD_BYTES {
            return Err(get.malformed("a size that it cannot have"));
        }
        let (numbers, stretches) = bytes.split_at(4 * count);
        let numbers = numbers.chunks_exact(4).map(|four| u32_at(four, 0));
        let stretches = stretches.chunks_exact(2).map(|two| u16::from_le_bytes([two[0], two[1]]));
        let buckets: Vec<(u32, u16)> = numbers.zip(stretches).collect();
        let is_sound = buckets.is_sorted_by(|one, next| one.0 < next.0)
            && buckets.last().is_some_and(|(last, _)| u64::from(*last) < 1 << bits)
            && buckets.iter().all(|(_, stretch)| usize::from(*stretch) * STRETCH < blocks);
        if is_sound {
            Ok(Self { bits, buckets })
        } else {
            Err(get.malformed("values at a place that there is not"))
        }
    }

    /// Whether a block may have a value with that hash.
    pub(super) fn may_have(&self, block: usize, hash: u64) -> bool {
        let bucket = bucket_of(hash, self.bits) as u32;
        let known = self.buckets.binary_search_by_key(&bucket, |(number, _)| *number);
        known.map_or(true, |at| block / STRETCH == usize::from(self.buckets[at].1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use proptest::prelude::*;

    fn told(stretches: &Stretches, blocks: u32) -> Option<Rare> {
        let (len, bits) = stretches.told(blocks)?;
        let mut bytes = vec![0; len];
        stretches.put(&mut bytes);
        Some(Rare::decode(&FieldReader::new("test", &[]), &bytes, bits, blocks as usize).unwrap())
    }

    proptest! {
        // Promise 5: what is there is never denied, and promise 1: it takes no more room than was said.
        #[test]
        fn a_block_is_never_denied_what_it_has(
            blocks in proptest::collection::vec(proptest::collection::vec(0u64..600, 0..40), 1..120),
            bytes in 1usize..4000,
            most in 0usize..300,
        ) {
            let mut stretches = Stretches::new(bytes, most);
            prop_assert!(Stretches::memory(bytes) <= bytes.max(4));
            for again in 0..2 {
                for (number, block) in blocks.iter().enumerate() {
                    let kept = stretches.most_bytes(block.len());
                    if !stretches.is_full() {
                        for value in block {
                            stretches.add(Cell::Word(*value).hash(), number as u32);
                        }
                    }
                    stretches.end_block(number as u32);
                    let said = stretches.told(number as u32 + 1).map_or(0, |(bytes, _)| bytes);
                    prop_assert!(said <= kept && stretches.most_bytes(0) <= kept, "{} {}", said, again);
                }
                if let Some(rare) = told(&stretches, blocks.len() as u32) {
                    for (number, block) in blocks.iter().enumerate() {
                        prop_assert!(block.iter().all(|value| rare.may_have(number, Cell::Word(*value).hash())));
                    }
                }
                stretches.clear();
                prop_assert_eq!(stretches.told(100), None);
            }
        }
    }

    #[test]
    fn what_is_in_one_place_is_looked_for_there_alone() {
        let mut stretches = Stretches::new(1 << 16, 1000);
        for block in 0..64 {
            for value in 0..2000 {
                stretches.add(Cell::Word(value).hash(), block);
            }
            if block == 30 {
                for value in 5000..5100 {
                    stretches.add(Cell::Word(value).hash(), block);
                }
            }
            stretches.end_block(block);
        }
        let rare = told(&stretches, 64).unwrap();
        let places = |value| (0..64).filter(|block| rare.may_have(*block, Cell::Word(value).hash())).count();
        let alone = (5000..5100).filter(|value| places(*value) == STRETCH).count();
        assert!(alone > 85, "{alone} of 100");
        assert!((0..2000).all(|value| places(value) == 64), "what is everywhere");
        // With many more values than buckets it says nothing, and takes nothing.
        for value in 0..100_000 {
            stretches.add(Cell::Word(value).hash(), 63);
        }
        stretches.end_block(63);
        assert!(stretches.is_full() && stretches.told(64).is_none() && stretches.most_bytes(1000) == 0);
    }
}
