//! Bloom filters of cell hashes, split-block (F. Putze, P. Sanders, J. Singler, "Cache-, hash- and
//! space-efficient Bloom filters", 2007). A filter is filled at its largest size, and folded to the size that
//! its values need when the slot is sealed.

/// Bytes of a block: eight words, in each of which a value has one bit.
pub(crate) const BLOCK_BYTES: usize = 32;

/// Odd numbers that choose the bit in each word; the ones that others use too.
const SALTS: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];

/// A filter is not made smaller than that for a value that is in it, and not kept with fewer than the least: more than half
/// of what is not there would then seem to be.
const BITS_A_VALUE: usize = 8;
const LEAST_BITS_A_VALUE: usize = 3;

/// Values that are put in at once.
const AT_ONCE: usize = 64;

/// Two words of a block in one, the first one low.
type Pair = u64;

/// The bits of a value in its block.
#[inline]
fn bits(hash: u64) -> [Pair; 4] {
    let bit = |salt: u32| (hash as u32).wrapping_mul(salt) >> 27;
    std::array::from_fn(|at| (1 << bit(SALTS[2 * at])) | (1 << (32 + bit(SALTS[2 * at + 1]))))
}

/// The block of a value, of a power of two of them.
#[inline]
fn block_of(hash: u64, blocks: usize) -> usize {
    (hash >> 32) as usize & (blocks - 1)
}

/// Whether a value with that hash may be in the filter with these bytes: a power of two of blocks, or none, which excludes
/// nothing.
pub(crate) fn may_have(filter: &[u8], hash: u64) -> bool {
    let (blocks, _) = filter.as_chunks::<BLOCK_BYTES>();
    if !blocks.len().is_power_of_two() {
        return true;
    }
    let (pairs, _) = blocks[block_of(hash, blocks.len())].as_chunks::<8>();
    pairs.iter().zip(bits(hash)).all(|(pair, bits)| u64::from_le_bytes(*pair) & bits == bits)
}

/// A filter that is being filled. It allocates when it is made.
#[derive(Debug)]
pub(crate) struct Filter {
    blocks: Box<[[Pair; 4]]>,
    /// Blocks in use: all of them until it is folded.
    used: usize,
    /// How often something was put in, which bounds how many values there are.
    inserted: usize,
    /// Bits that are set in the first words of all blocks: each value has one there.
    first: usize,
}

impl Filter {
    /// An empty one of so many bytes, or what of them is a power of two of blocks.
    pub(crate) fn new(bytes: usize) -> Self {
        let used = 1 << (bytes / BLOCK_BYTES).max(1).ilog2();
        Self { blocks: vec![[0; 4]; used].into_boxed_slice(), used, inserted: 0, first: 0 }
    }

    /// Bytes of memory of one that is made for so many.
    pub(crate) fn memory(bytes: usize) -> usize {
        BLOCK_BYTES << (bytes / BLOCK_BYTES).max(1).ilog2()
    }

    /// Forgets all.
    pub(crate) fn clear(&mut self) {
        if self.inserted > 0 {
            self.blocks.fill([0; 4]);
        }
        (self.used, self.inserted, self.first) = (self.blocks.len(), 0, 0);
    }

    /// Puts in values by their hashes. Blocks are asked for some at a time: each may have to come from memory, and they come
    /// together.
    #[inline]
    pub(crate) fn insert(&mut self, mut hashes: impl Iterator<Item = u64>) {
        let (mut some, all) = ([0; AT_ONCE], self.blocks.len());
        loop {
            let mut count = 0;
            for (place, hash) in some.iter_mut().zip(&mut hashes) {
                *place = hash;
                count += 1;
            }
            let some = &some[..count];
            if some.is_empty() {
                return;
            }
            std::hint::black_box(some.iter().fold(0, |any, hash| any ^ self.blocks[block_of(*hash, all)][0]));
            for hash in some {
                let (block, bits) = (&mut self.blocks[block_of(*hash, all)], bits(*hash));
                let first = bits[0] & u64::from(u32::MAX);
                self.first += usize::from(block[0] & first == 0);
                for (pair, bits) in block.iter_mut().zip(bits) {
                    *pair |= bits;
                }
            }
            self.inserted += count;
        }
    }

    /// Whether a value with that hash may be in it, while it is being filled.
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let block = self.blocks[block_of(hash, self.blocks.len())];
        block.iter().zip(bits(hash)).all(|(pair, bits)| pair & bits == bits)
    }

    /// How many values are in it, told by the bits that are set: each value has one of the 32 of a block's first word. That is
    /// exact to a hundredth where the filter is not far too small.
    pub(crate) fn values(&self) -> usize {
        let all = (self.blocks.len() * 32) as f64;
        let values = -all * (1.0 - self.first as f64 / all).ln();
        // All of them may be set: then there are as many as were put in, for all that is known.
        (values.ceil() as usize).min(self.inserted)
    }

    /// Bytes that it has at most when it is folded with so many values.
    #[inline]
    pub(crate) fn bytes_for(&self, values: usize) -> usize {
        let bytes = (values * BITS_A_VALUE / 8).next_power_of_two();
        bytes.clamp(BLOCK_BYTES, self.blocks.len() * BLOCK_BYTES)
    }

    /// Ends it with [`BITS_A_VALUE`] to twice as many bits a value, or fewer where it is too small for that; its bytes then.
    /// None where there is nothing in it, or it would exclude little.
    pub(crate) fn fold(&mut self) -> usize {
        let values = self.values();
        if values == 0 || self.blocks.len() * BLOCK_BYTES * 8 < values * LEAST_BITS_A_VALUE {
            self.used = 0;
            return 0;
        }
        let bytes = self.bytes_for(values);
        while self.used * BLOCK_BYTES > bytes {
            self.used /= 2;
            let (low, high) = self.blocks[..2 * self.used].split_at_mut(self.used);
            for (pair, other) in low.iter_mut().flatten().zip(high.iter().flatten()) {
                *pair |= other;
            }
        }
        bytes
    }

    /// Its blocks, once it is folded.
    pub(crate) fn put(&self, put: &mut crate::bytes::SliceWriter<'_>) {
        for pair in self.blocks[..self.used].iter().flatten() {
            put.u64(*pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cell;
    use crate::bytes::SliceWriter;
    use proptest::prelude::*;

    fn folded(filter: &mut Filter) -> Vec<u8> {
        let mut bytes = vec![0; filter.fold()];
        filter.put(&mut SliceWriter::new(&mut bytes));
        bytes
    }

    fn hash(word: u64) -> u64 {
        Cell::Word(word).hash()
    }

    proptest! {
        // Promise 5: a filter never denies what is there, however it was folded.
        #[test]
        fn what_was_put_in_is_never_denied(
            values in proptest::collection::vec(any::<u64>(), 0..3000),
            size in 0..12u32,
            again in 1..4usize,
        ) {
            let mut filter = Filter::new(BLOCK_BYTES << size);
            for _ in 0..again {
                filter.insert(values.iter().map(|value| hash(*value)));
            }
            prop_assert!(values.iter().all(|value| filter.may_have(hash(*value))));
            let most = filter.bytes_for(filter.values());
            let bytes = folded(&mut filter);
            prop_assert!(bytes.len() <= most);
            prop_assert!(bytes.is_empty() || (bytes.len() / BLOCK_BYTES).is_power_of_two());
            prop_assert!(values.iter().all(|value| may_have(&bytes, hash(*value))));
            filter.clear();
            prop_assert_eq!(folded(&mut filter), Vec::<u8>::new());
        }
    }

    proptest! {
        // Promise 1: room is kept for what a filter may come to with the cells that are pending, and that is enough.
        #[test]
        fn a_filter_never_grows_by_more_than_was_said(
            pieces in proptest::collection::vec((0..2000u64, 0..16_384u64), 1..20),
            size in 0..10u32,
        ) {
            let mut filter = Filter::new(BLOCK_BYTES << size);
            for (count, from) in pieces {
                let most = filter.bytes_for(filter.values() + 2 * (count as usize + 1));
                filter.insert((from..from + count).map(hash));
                prop_assert!(filter.bytes_for(filter.values()) <= most);
            }
        }
    }

    /// How many of what is not there seem to be, in thousandths, and the bits a value.
    fn seeming(values: u64, bytes: usize) -> (u64, usize) {
        let mut filter = Filter::new(bytes);
        filter.insert((0..values).map(hash));
        let bytes = folded(&mut filter);
        let tries = 100_000;
        let seem = (0..tries).filter(|n| may_have(&bytes, hash(1 << 40 | n))).count() as u64;
        (seem * 1000 / tries, bytes.len() * 8 / values as usize)
    }

    #[test]
    fn most_of_what_is_not_there_is_denied() {
        for values in [30, 1000, 1025, 30_000, 70_000] {
            let (seem, bits) = seeming(values, 1 << 20);
            assert!((8..=17).contains(&bits), "{bits} bits for each of {values}");
            assert!(
                seem <= if bits >= 12 { 8 } else { 45 },
                "{seem} thousandths with {bits} bits for each of {values}"
            );
        }
        // One that is too small is coarser, and one that would say nothing is not there.
        assert_eq!(seeming(1 << 14, 8 << 10).1, 4);
        assert_eq!(seeming(1 << 16, 8 << 10), (1000, 0));
    }

    #[test]
    fn values_that_come_again_do_not_make_it_larger() {
        let mut filter = Filter::new(64 << 10);
        for _ in 0..1000 {
            filter.insert((0..100).map(hash));
        }
        assert_eq!(folded(&mut filter).len(), 128);
    }
}
