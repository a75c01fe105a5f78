//! Patterns of sequences, checked and brought to canonical letters, one lane for each strand.

use crate::module::approximate::check_pattern;
use crate::module::biology::Strand;
use crate::module::biology::alphabet::{Alphabet, BLANK, reverse_complement};

/// Letters of a pattern that is searched in one pass over the text.
pub(super) const MOST_SHORT: usize = 256;

/// Nucleotides of a long pattern at most: it needs some memory and time for each seed.
const MOST_LONG: usize = 100_000;

/// Letters of a protein pattern at most.
const MOST_PROTEIN: usize = 1000;

/// Letters of a long pattern for each edit: seeds of fewer letters occur by chance too often.
const LETTERS_AN_EDIT: usize = 20;

/// Pattern in the direction of one strand.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// Number of the pattern.
    pub(super) pattern: usize,
    /// Strand of its hits.
    pub(super) strand: Strand,
    /// Canonical letters that are searched in the forward text.
    pub(super) letters: Vec<u8>,
}

impl Lane {
    /// True if the pattern is found by its seeds.
    pub(super) fn is_long(&self, alphabet: Alphabet) -> bool {
        alphabet == Alphabet::Dna && self.letters.len() > MOST_SHORT
    }
}

/// Makes the lanes of a pattern. A pattern that is its own reverse complement has the forward lane only.
pub(super) fn lanes(
    number: usize,
    pattern: &[u8],
    alphabet: Alphabet,
    distance: u32,
) -> Result<Vec<Lane>, String> {
    let table = alphabet.canonical();
    let letters: Vec<u8> =
        pattern.iter().map(|byte| table[usize::from(*byte)]).filter(|letter| *letter != BLANK).collect();
    let (most, unit) = match alphabet {
        Alphabet::Dna => (MOST_LONG, "bases"),
        Alphabet::Protein => (MOST_PROTEIN, "amino acids"),
    };
    check_pattern(number, letters.len(), most, unit, distance)?;
    let name = number + 1;
    if let Some(wrong) = pattern.iter().find(|byte| {
        let letter = table[usize::from(**byte)];
        letter != BLANK && alphabet.mask(letter) == 0
    }) {
        let codes = match alphabet {
            Alphabet::Dna => "the IUPAC codes ACGTURYSWKMBDHVN",
            Alphabet::Protein => "the letters A to Z of amino acids",
        };
        return Err(format!(
            "cannot search pattern {name}: `{}` is no code; use {codes}",
            wrong.escape_ascii()
        ));
    }
    let forward = Lane { pattern: number, strand: Strand::Forward, letters };
    if forward.is_long(alphabet) {
        check_long(name, &forward.letters, alphabet, distance)?;
    }
    if alphabet == Alphabet::Protein {
        return Ok(vec![forward]);
    }
    let letters = reverse_complement(&forward.letters);
    if letters == forward.letters {
        return Ok(vec![forward]);
    }
    Ok(vec![forward, Lane { pattern: number, strand: Strand::Reverse, letters }])
}

fn check_long(name: usize, letters: &[u8], alphabet: Alphabet, distance: u32) -> Result<(), String> {
    if let Some(code) = letters.iter().find(|letter| !alphabet.is_exact(**letter)) {
        return Err(format!(
            "cannot search pattern {name}: it has the ambiguity code `{}` and more than {MOST_SHORT} bases; \
             use A, C, G and T only, or a shorter pattern",
            code.escape_ascii()
        ));
    }
    let most = letters.len() / LETTERS_AN_EDIT;
    if distance as usize > most {
        return Err(format!(
            "cannot search pattern {name}: {distance} edits exceed 5 % of its {} bases; give at most {most} edits",
            letters.len()
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Alphabet, lanes};

    #[test]
    fn lanes_hold_both_strands_in_canonical_letters() {
        let both = lanes(3, b"acgu nR\n", Alphabet::Dna, 2).unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(both[0].letters, b"ACGTNR");
        assert_eq!(both[1].letters, b"YNACGT");
        assert_eq!(lanes(0, b"ACGT", Alphabet::Dna, 0).unwrap().len(), 1);
        assert_eq!(lanes(0, b"ACGA", Alphabet::Protein, 0).unwrap().len(), 1);
    }

    #[test]
    fn errors_name_the_pattern_and_the_remedy() {
        let error = |pattern: &[u8], alphabet, distance| lanes(1, pattern, alphabet, distance).unwrap_err();
        assert_eq!(
            error(b"AC-T", Alphabet::Dna, 0),
            "cannot search pattern 2: `-` is no code; use the IUPAC codes ACGTURYSWKMBDHVN"
        );
        assert!(error(b"", Alphabet::Dna, 0).contains("give 1 to 100000 bases"));
        assert!(error(&[b'L'; 1001], Alphabet::Protein, 0).contains("give 1 to 1000 amino acids"));
        assert!(error(b"ACG", Alphabet::Dna, 3).contains("give a distance of at most 2"));
        assert!(error(&b"ACGTN".repeat(60), Alphabet::Dna, 3).contains("ambiguity code `N`"));
        assert!(error(&b"ACGTT".repeat(60), Alphabet::Dna, 16).contains("give at most 15 edits"));
    }
}
