//! Module `bio` beside naive dynamic programming, over plain sequence text.

use crate::matching::common::{Random, outputs, sizes, text_around};
use crate::matching::naive::edit_hits;
use holdfast_scan::{Alphabet, Biology, BiologyHit, BiologyOptions, Strand};
use proptest::prelude::*;

/// Record, pattern, strand, start, end, distance and text of a hit.
pub(crate) type Plain = (String, usize, Strand, u64, u64, u32, Vec<u8>);

pub(crate) fn plain(hits: Vec<BiologyHit>) -> Vec<Plain> {
    let plain = hits
        .into_iter()
        .map(|hit| (hit.record, hit.pattern, hit.strand, hit.start, hit.end, hit.distance, hit.text));
    plain.collect()
}

/// Bases that a code stands for.
fn bases(code: u8) -> &'static [u8] {
    match code.to_ascii_uppercase() {
        b'A' => b"A",
        b'C' => b"C",
        b'G' => b"G",
        b'T' | b'U' => b"T",
        b'R' => b"AG",
        b'Y' => b"CT",
        b'S' => b"CG",
        b'W' => b"AT",
        b'K' => b"GT",
        b'M' => b"AC",
        b'B' => b"CGT",
        b'D' => b"AGT",
        b'H' => b"ACT",
        b'V' => b"ACG",
        b'N' => b"ACGT",
        _ => b"",
    }
}

/// Amino acids that a code stands for.
fn residues(code: u8) -> Vec<u8> {
    match code.to_ascii_uppercase() {
        b'X' => (b'A'..=b'Z').collect(),
        b'B' => b"BDN".to_vec(),
        b'Z' => b"ZEQ".to_vec(),
        b'J' => b"JIL".to_vec(),
        code if code.is_ascii_uppercase() => vec![code],
        _ => Vec::new(),
    }
}

fn same_base(one: u8, other: u8) -> bool {
    bases(one).iter().any(|base| bases(other).contains(base))
}

fn same_residue(one: u8, other: u8) -> bool {
    residues(one).iter().any(|residue| residues(other).contains(residue))
}

/// Reverse complement by the sets of bases.
pub(crate) fn opposite(pattern: &[u8]) -> Vec<u8> {
    let complement = |code: &u8| {
        let mut wanted: Vec<u8> = bases(*code)
            .iter()
            .map(|base| b"TGCA"[b"ACGT".iter().position(|other| other == base).unwrap()])
            .collect();
        wanted.sort_unstable();
        *b"ACGTRYSWKMBDHVN".iter().find(|code| bases(**code) == wanted).unwrap()
    };
    pattern.iter().rev().map(complement).collect()
}

/// Hits of one record.
pub(crate) fn expected(options: &BiologyOptions, record: &str, sequence: &[u8]) -> Vec<Plain> {
    let is_dna = options.alphabet == Alphabet::Dna;
    let (unknown, foreign) = if is_dna { (b'N', b'X') } else { (b'X', b'*') };
    let text: Vec<u8> = sequence
        .iter()
        .map(u8::to_ascii_uppercase)
        .map(|byte| if is_dna && byte == b'U' { b'T' } else { byte })
        .map(
            |byte| if is_dna && bases(byte).is_empty() || residues(byte).is_empty() { foreign } else { byte },
        )
        .collect();
    let keep = |text: &[u8]| {
        let count: usize = text.iter().map(|letter| usize::from(*letter == unknown)).sum();
        count as f64 <= options.most_unknown * text.len() as f64
    };
    let same = if is_dna { same_base } else { same_residue };
    let mut found = Vec::new();
    for (number, pattern) in options.patterns.iter().enumerate() {
        let mut strands = vec![(Strand::Forward, pattern.to_ascii_uppercase())];
        if is_dna && opposite(pattern) != opposite(&opposite(pattern)) {
            strands.push((Strand::Reverse, opposite(pattern)));
        }
        for (strand, pattern) in strands {
            let hits = edit_hits(&pattern, options.distance, &text, same, keep);
            found.extend(hits.into_iter().map(|hit| (hit.last, number, strand, hit)));
        }
    }
    found.sort_by_key(|(last, number, strand, _)| (*last, *number, *strand));
    let hits = found.into_iter().map(|(_, number, strand, hit)| {
        let shown = text[hit.start..hit.end.min(hit.start + 1100)].to_vec();
        (record.to_owned(), number, strand, hit.start as u64, hit.end as u64, hit.distance, shown)
    });
    hits.collect()
}

fn search(
    alphabet: Alphabet,
    codes: &'static [u8],
    letters: &'static [u8],
) -> impl Strategy<Value = (BiologyOptions, Vec<u8>)> {
    let short = prop::collection::vec(prop::sample::select(codes), 1..12);
    let long = prop::collection::vec(prop::sample::select(codes), 60..200);
    let patterns = prop::collection::vec(prop_oneof![4 => short, 1 => long], 1..3);
    let share = prop::sample::select(vec![0.0, 0.2, 0.5, 1.0]);
    (patterns, share, 0_u32..5, 10_usize..300).prop_flat_map(
        move |(patterns, most_unknown, distance, length)| {
            let shortest = patterns.iter().map(Vec::len).min().unwrap_or(1);
            let distance = distance.min(shortest as u32 - 1);
            let text = text_around(patterns[0].clone(), letters, length);
            (Just(BiologyOptions { patterns, alphabet, distance, most_unknown, most: None }), text)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn hits_are_those_of_dynamic_programming_for_each_division(
        (options, text) in prop_oneof![
            search(Alphabet::Dna, b"ACGT", b"ACGT"),
            search(Alphabet::Dna, b"AC", b"acN"),
            search(Alphabet::Dna, b"ACGTRYSWKMBDHVN", b"ACGTUacgtu"),
            search(Alphabet::Dna, b"ACGTRN", b"ACGTNNNNNRYSWKMBDHVXxn-*z1"),
            search(Alphabet::Protein, b"LIVA", b"LIVA"),
            search(Alphabet::Protein, b"DNEQILABZJXUO", b"DNEQILABZJXUOdneqxxxx*-1"),
        ],
        sizes in sizes(),
    ) {
        let wanted = expected(&options, "", &text);
        let module = Biology::new(options).unwrap();
        prop_assert_eq!(&plain(outputs(&module, &text, &[])), &wanted);
        prop_assert_eq!(&plain(outputs(&module, &text, &sizes)), &wanted);
    }
}

#[test]
fn large_records_are_searched_in_pieces() {
    let mut random = Random(11);
    let mut text = random.letters(b"ACGT", 2_300_000);
    let pattern = random.letters(b"ACGT", 40);
    let reverse = opposite(&pattern);
    for place in [0, (1 << 20) - 21, (1 << 20) - 61, (2 << 20) - 40, 1_500_000, 2_300_000 - 40] {
        text[place..place + 40].copy_from_slice(if place % 2 == 0 { &pattern } else { &reverse });
        text[place + 5] = b'X';
    }
    // A run of unknown letters over the border of two pieces.
    text[(1 << 20) + 1000..(1 << 20) + 60_000].fill(b'N');
    text[(2 << 20) - 5000..(2 << 20) - 40].fill(b'N');
    let options = BiologyOptions { patterns: vec![pattern], distance: 3, ..BiologyOptions::default() };
    let wanted = expected(&options, "", &text);
    assert!(wanted.len() >= 6);
    let module = Biology::new(options).unwrap();
    assert_eq!(plain(outputs(&module, &text, &[])), wanted);
    assert_eq!(plain(outputs(&module, &text, &[100_003, 65_536])), wanted);
}

#[test]
fn wanted_hits_end_an_item() {
    let patterns = vec![b"GATTACA".to_vec()];
    let options = BiologyOptions { patterns, most: Some(3), ..BiologyOptions::default() };
    let module = Biology::new(options).unwrap();
    // Behind the third hit the text is no FASTQ, which nobody reads any more.
    let text = b"@r\nGATTACACGATTACACGATTACACGATTACA\n+\nI\n@".to_vec();
    for sizes in [&[][..], &[1], &[5]] {
        assert_eq!(outputs(&module, &text, sizes).len(), 3);
    }
}

#[test]
fn errors_name_the_option() {
    let error = |options| Biology::new(options).unwrap_err();
    assert!(error(BiologyOptions::default()).contains("there are 0 patterns"));
    let patterns = vec![b"ACGT".to_vec()];
    let options = BiologyOptions { patterns, most_unknown: f64::NAN, ..BiologyOptions::default() };
    assert!(error(options).contains("give a number from 0 to 1"));
}
