//! Seeded mutation of inputs: the same seed gives the same inputs on every machine, so that a test that failed
//! fails again.

/// Values that parsers trip over when they stand in a length, a count or an offset.
const EDGES: [u64; 10] = [0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 63, u64::MAX];

/// Longest input that is made: long enough for several blocks of every format.
const MOST_BYTES: usize = 256 << 10;

/// A source of mutated inputs.
pub struct Mutator(u64);

impl Mutator {
    /// One that gives the inputs of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// `SplitMix64`: any seed will do, and it is four lines.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// An input out of `seeds`, changed in one to eight places.
    pub fn input(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut data = seeds.get(self.below(seeds.len())).cloned().unwrap_or_default();
        for _ in 0..=self.below(8) {
            self.change(&mut data, seeds);
        }
        data.truncate(MOST_BYTES);
        data
    }

    fn change(&mut self, data: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.below(data.len());
        match self.below(8) {
            0 => data.truncate(at),
            1 => data.insert(at, self.next() as u8),
            2 => {
                let end = at + self.below((data.len() - at).min(64));
                data.drain(at..end);
            }
            3 => {
                let end = at + self.below((data.len() - at).min(64));
                let copy = data[at..end].to_vec();
                data.splice(at..at, copy);
            }
            4 => {
                let other = seeds.get(self.below(seeds.len())).map(Vec::as_slice).unwrap_or_default();
                data.truncate(at);
                data.extend_from_slice(&other[self.below(other.len())..]);
            }
            5 | 6 => self.overwrite(data, at),
            _ => {
                if let Some(byte) = data.get_mut(at) {
                    *byte ^= 1 << self.below(8);
                }
            }
        }
    }

    /// An edge value, or one near what stood there, in 1, 2, 4 or 8 bytes of either order.
    fn overwrite(&mut self, data: &mut [u8], at: usize) {
        let width = 1 << self.below(4);
        let Some(place) = data.get_mut(at..at + width) else { return };
        let mut bytes = [0; 8];
        bytes[..width].copy_from_slice(place);
        let value = match self.below(3) {
            0 => u64::from_le_bytes(bytes).wrapping_add(self.next() % 33).wrapping_sub(16),
            _ => EDGES[self.below(EDGES.len())],
        };
        place.copy_from_slice(&value.to_le_bytes()[..width]);
        if self.below(2) == 0 {
            place.reverse();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_inputs_and_another_gives_others() {
        let seeds = [b"abcdefghijklmnop".to_vec(), b"0123456789".to_vec()];
        let inputs = |seed| {
            let mut mutator = Mutator::new(seed);
            (0..1000).map(|_| mutator.input(&seeds)).collect::<Vec<_>>()
        };
        assert_eq!(inputs(1), inputs(1));
        assert_ne!(inputs(1), inputs(2));
        let distinct: std::collections::BTreeSet<_> = inputs(1).into_iter().collect();
        assert!(distinct.len() > 700, "{}", distinct.len());
    }

    #[test]
    fn nothing_to_start_from_is_no_trouble() {
        let mut mutator = Mutator::new(1);
        assert!((0..1000).any(|_| !mutator.input(&[]).is_empty()));
    }
}
