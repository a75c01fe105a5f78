//! Alphabets of sequences: letters, ambiguity codes, complements, and the comparison of two letters.
//!
//! Two letters are the same if one residue exists that both stand for: `R` (A or G) is the same as `A`, and as `N`.

use sassy::profiles::Profile;
use wide::u8x32;

/// Alphabet of patterns and sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alphabet {
    /// Nucleotides with the IUPAC codes `RYSWKMBDHVN`; `U` is read as `T`.
    #[default]
    Dna,
    /// Amino acids with the codes `B` (D or N), `Z` (E or Q), `J` (I or L) and `X` (any).
    Protein,
}

/// Letter of a text that is no code of the alphabet: it is the same as no letter.
const FOREIGN_BASE: u8 = b'X';

/// Byte of a protein that is no letter, such as the stop codon `*`: it is the same as no letter.
const FOREIGN_RESIDUE: u8 = b'*';

/// Mark of bytes that are no part of a sequence: line ends and blanks.
pub(super) const BLANK: u8 = 0;

/// Letters of nucleotide codes, and their masks of the bases A, C, G and T.
const BASES: [(u8, u8); 15] = [
    (b'A', 0b0001),
    (b'C', 0b0010),
    (b'G', 0b0100),
    (b'T', 0b1000),
    (b'R', 0b0101),
    (b'Y', 0b1010),
    (b'S', 0b0110),
    (b'W', 0b1001),
    (b'K', 0b1100),
    (b'M', 0b0011),
    (b'B', 0b1110),
    (b'D', 0b1101),
    (b'H', 0b1011),
    (b'V', 0b0111),
    (b'N', 0b1111),
];

impl Alphabet {
    /// Letter of unknown residues, of which a hit may hold a limited share.
    pub(super) const fn unknown(self) -> u8 {
        match self {
            Self::Dna => b'N',
            Self::Protein => b'X',
        }
    }

    /// Canonical form of each byte of a text: upper case, `T` for `U`, a foreign letter for other bytes, or `BLANK`.
    pub(super) fn canonical(self) -> [u8; 256] {
        let mut table = [BLANK; 256];
        for (byte, slot) in (0_u8..=255).zip(&mut table) {
            let letter = if self == Self::Dna && matches!(byte, b'U' | b'u') {
                b'T'
            } else {
                byte.to_ascii_uppercase()
            };
            *slot = match self {
                _ if is_blank(byte) => BLANK,
                _ if self.mask(letter) != 0 => letter,
                Self::Dna => FOREIGN_BASE,
                Self::Protein => FOREIGN_RESIDUE,
            };
        }
        table
    }

    /// Set of the residues that a canonical letter stands for, one bit each; zero for a foreign letter.
    pub(super) const fn mask(self, letter: u8) -> u32 {
        match self {
            Self::Dna => {
                let mut at = 0;
                while at < BASES.len() {
                    if BASES[at].0 == letter {
                        return BASES[at].1 as u32;
                    }
                    at += 1;
                }
                0
            }
            Self::Protein => match letter {
                b'X' => (1 << 26) - 1,
                b'B' => residue(b'D') | residue(b'N') | residue(b'B'),
                b'Z' => residue(b'E') | residue(b'Q') | residue(b'Z'),
                b'J' => residue(b'I') | residue(b'L') | residue(b'J'),
                b'A'..=b'Z' => residue(letter),
                _ => 0,
            },
        }
    }

    /// Masks of all bytes, for fast comparison.
    pub(super) fn masks(self) -> [u32; 256] {
        let mut masks = [0; 256];
        for (letter, mask) in (0_u8..=255).zip(&mut masks) {
            *mask = self.mask(letter);
        }
        masks
    }

    /// True if a canonical letter stands for one residue only.
    pub(super) const fn is_exact(self, letter: u8) -> bool {
        match self {
            Self::Dna => matches!(letter, b'A' | b'C' | b'G' | b'T'),
            Self::Protein => letter.is_ascii_uppercase() && !matches!(letter, b'B' | b'J' | b'X' | b'Z'),
        }
    }
}

/// True for line ends and blanks, which are no part of a sequence.
pub(super) const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

const fn residue(letter: u8) -> u32 {
    1 << (letter - b'A')
}

/// Reverse complement of canonical nucleotides.
pub(super) fn reverse_complement(letters: &[u8]) -> Vec<u8> {
    let complement = |letter: &u8| match *letter {
        b'A' => b'T',
        b'T' => b'A',
        b'C' => b'G',
        b'G' => b'C',
        b'R' => b'Y',
        b'Y' => b'R',
        b'K' => b'M',
        b'M' => b'K',
        b'B' => b'V',
        b'V' => b'B',
        b'D' => b'H',
        b'H' => b'D',
        // S, W and N are their own complements.
        other => other,
    };
    letters.iter().rev().map(complement).collect()
}

/// Profile of amino acids for `sassy`, which has none: each letter of a pattern is the set of the letters that it is the same as.
#[derive(Clone, Debug)]
pub(super) struct ProteinProfile {
    /// Letters of a text that are the same as a letter of the pattern, for each different letter of the pattern.
    members: Vec<Vec<u8>>,
}

impl Profile for ProteinProfile {
    type A = usize;
    type B = [u64; 32];
    const N_CHARS: usize = 32;

    fn encode_pattern(pattern: &[u8]) -> (Self, Vec<usize>) {
        let mut letters = Vec::new();
        let mut encoded = Vec::with_capacity(pattern.len());
        for letter in pattern {
            let slot = letters.iter().position(|known| known == letter).unwrap_or_else(|| {
                letters.push(*letter);
                letters.len() - 1
            });
            encoded.push(slot);
        }
        let members = |letter: &u8| (b'A'..=b'Z').filter(|other| Self::is_match(*letter, *other)).collect();
        (Self { members: letters.iter().map(members).collect() }, encoded)
    }

    fn encode_char(letter: u8) -> u8 {
        letter & 31
    }

    fn encode_ref(&self, text: &[u8; 64], out: &mut [u64; 32]) {
        let (low, high) = text.split_at(32);
        let (low, high) = (u8x32::from(low), u8x32::from(high));
        for (members, bits) in self.members.iter().zip(out) {
            let (mut in_low, mut in_high) = (u8x32::splat(0), u8x32::splat(0));
            for member in members {
                let member = u8x32::splat(*member);
                in_low |= low.simd_eq(member);
                in_high |= high.simd_eq(member);
            }
            *bits = u64::from(in_low.to_bitmask()) | (u64::from(in_high.to_bitmask()) << 32);
        }
    }

    #[inline]
    fn eq(letter: &usize, text: &[u64; 32]) -> u64 {
        text[letter & 31]
    }

    fn alloc_out() -> [u64; 32] {
        [0; 32]
    }

    fn n_bases(&self) -> usize {
        self.members.len()
    }

    fn valid_seq(_: &[u8]) -> bool {
        true
    }

    fn is_match(one: u8, other: u8) -> bool {
        Alphabet::Protein.mask(one) & Alphabet::Protein.mask(other) != 0
    }

    fn supports_overhang() -> bool {
        false
    }
}
