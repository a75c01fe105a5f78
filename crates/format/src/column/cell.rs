//! A cell: its rank, which bounds are made of, and its hash, which filters are made of. `docs/format.md` has
//! both with examples: they are on the medium.

use super::Class;

/// A cell that is not null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell<'a> {
    /// See [`Class::Word`].
    Word(u64),
    /// See [`Class::Wide`].
    Wide(u128),
    /// See [`Class::Bytes`].
    Bytes(&'a [u8]),
}

impl Cell<'_> {
    /// What it is.
    pub fn class(self) -> Class {
        match self {
            Self::Word(_) => Class::Word,
            Self::Wide(_) => Class::Wide,
            Self::Bytes(_) => Class::Bytes,
        }
    }

    /// A number that orders cells as they are ordered themselves. Texts that begin with the same 16 bytes have the same.
    #[inline]
    pub fn rank(self) -> u128 {
        match self {
            Self::Word(word) => word.into(),
            Self::Wide(wide) => wide,
            Self::Bytes(bytes) => match bytes.first_chunk() {
                Some(first) => u128::from_be_bytes(*first),
                None => bytes
                    .iter()
                    .enumerate()
                    .fold(0, |rank, (at, byte)| rank | u128::from(*byte) << (120 - 8 * at)),
            },
        }
    }

    /// The hash that filters know it by.
    #[inline]
    pub fn hash(self) -> u64 {
        match self {
            Self::Word(word) => mix(word),
            Self::Wide(wide) => mix(wide as u64 ^ mix((wide >> 64) as u64)),
            Self::Bytes(bytes) => {
                let (words, rest) = bytes.as_chunks::<8>();
                let mut hash = mix(bytes.len() as u64);
                for word in words {
                    hash = mix(hash ^ u64::from_le_bytes(*word));
                }
                if !rest.is_empty() {
                    let mut last = [0; 8];
                    last[..rest.len()].copy_from_slice(rest);
                    hash = mix(hash ^ u64::from_le_bytes(last));
                }
                hash
            }
        }
    }
}

/// What `SplitMix64` makes of a seed: every bit of the word decides about every bit of it.
#[inline]
fn mix(word: u64) -> u64 {
    let z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hashes_are_those_of_the_format() {
        // The first is what others have `SplitMix64` make of the seeds 0 and 1234567.
        for (word, hash) in [
            (0, 0xe220_a839_7b1d_cdaf),
            (1_234_567, 0x599e_d017_fb08_fc85),
            (u64::MAX, 0xe4d9_7177_1b65_2c20),
        ] {
            assert_eq!(Cell::Word(word).hash(), hash, "{word}");
        }
        let mapped = 0xffff_0a00_0001;
        for (wide, hash) in [
            (0, 0xa706_dd2f_4d19_7e6f),
            (mapped, 0x9f64_8f19_34c1_e424),
            (0x2001_0db8 << 96 | 1, 0x4de8_97d9_54fd_23d5),
        ] {
            assert_eq!(Cell::Wide(wide).hash(), hash, "{wide:x}");
        }
        for (text, hash) in [
            ("", 0xe220_a839_7b1d_cdaf),
            ("a", 0x5e02_5f9a_de9e_af3e),
            ("holdfast", 0x3138_5378_6e2b_5975),
            ("a flight recorder", 0xf0f5_2e82_6b8b_064d),
        ] {
            assert_eq!(Cell::Bytes(text.as_bytes()).hash(), hash, "{text}");
        }
        assert_ne!(Cell::Bytes(b"a").hash(), Cell::Bytes(b"a\0").hash());
    }

    proptest! {
        #[test]
        fn ranks_order_as_texts_do(a in proptest::collection::vec(0..4u8, 0..24), b in proptest::collection::vec(0..4u8, 0..24)) {
            let (low, high) = if a <= b { (&a, &b) } else { (&b, &a) };
            prop_assert!(Cell::Bytes(low).rank() <= Cell::Bytes(high).rank());
            if low[..low.len().min(16)] == high[..high.len().min(16)] {
                prop_assert_eq!(Cell::Bytes(low).rank(), Cell::Bytes(high).rank());
            }
        }
    }
}
