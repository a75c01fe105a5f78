//! Seeded random numbers for tests and simulations: the same seed gives the same run, on every machine and
//! version. Not for secrets.

/// A small generator (splitmix64 by Guy Steele and others, "Fast splittable pseudorandom number generators").
#[derive(Clone, Debug)]
pub struct Seed(u64);

impl Seed {
    /// Starts at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64
    }

    /// True in a share `chance` (0 to 1) of all cases.
    pub fn happens(&mut self, chance: f64) -> bool {
        // Always draws, so that switching a fault off does not shift everything after it.
        let drawn = (self.bits() >> 11) as f64 / (1u64 << 53) as f64;
        drawn < chance
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for piece in bytes.chunks_mut(8) {
            piece.copy_from_slice(&self.bits().to_le_bytes()[..piece.len()]);
        }
    }

    /// Another generator, independent of what this one gives later.
    #[must_use]
    pub fn split(&mut self) -> Self {
        Self(self.bits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_never_changes() {
        let mut seed = Seed::new(1_234_567);
        // Published test values of splitmix64.
        assert_eq!(seed.bits(), 6_457_827_717_110_365_317);
        assert_eq!(seed.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn chances_and_bounds_are_kept() {
        let mut seed = Seed::new(7);
        assert!((0..1000).all(|_| seed.below(3) < 3));
        assert_eq!(seed.below(0), 0);
        assert!(!seed.happens(0.0) && seed.happens(1.0));
        let hits = (0..10_000).filter(|_| seed.happens(0.25)).count();
        assert!((2_000..3_000).contains(&hits), "{hits}");
    }
}
