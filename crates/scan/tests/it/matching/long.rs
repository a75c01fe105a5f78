//! Long queries of module `bio`, which are found by their seeds, beside naive dynamic programming.

use crate::matching::biology::{expected, opposite, plain};
use crate::matching::common::{Random, outputs};
use holdfast_scan::{Biology, BiologyOptions, Strand};

/// Copy of a pattern with edits, spread evenly so that as few pieces as possible are whole.
fn damaged(random: &mut Random, pattern: &[u8], edits: usize) -> Vec<u8> {
    let mut copy = Vec::new();
    let places: Vec<usize> = (0..edits).map(|edit| (2 * edit + 1) * pattern.len() / (2 * edits)).collect();
    for (at, letter) in pattern.iter().enumerate() {
        if !places.contains(&at) {
            copy.push(*letter);
            continue;
        }
        match random.below(3) {
            0 => {}
            1 => copy.extend([*letter, b"ACGT"[random.below(4)]]),
            _ => copy.push(b"CGTA"[b"ACGT".iter().position(|base| base == letter).unwrap()]),
        }
    }
    copy
}

#[test]
fn long_queries_lose_no_hit() {
    let mut random = Random(5);
    for round in 0..12 {
        let length = 257 + random.below(120);
        let most = random.below(length / 20 + 1);
        let pattern = random.letters(b"ACGT", length);
        let mut text = Vec::new();
        for copy in 0..6 {
            let noise = random.below(600);
            text.extend(random.letters(b"ACGT", noise));
            let edits = most.saturating_sub(copy % 3) + usize::from(copy == 5);
            let mut part = damaged(&mut random, &pattern, edits);
            // Unknown letters take part in matches, up to a share.
            let share = [0, 0, length / 10, length / 4, length / 2, 1][random.below(6)];
            for _ in 0..share {
                let at = random.below(part.len());
                part[at] = b'N';
            }
            text.extend(if copy % 2 == 0 { part } else { opposite(&part) });
        }
        text.extend(b"N".repeat(random.below(300)));
        text.extend(&pattern[..random.below(length)]);
        let second = random.letters(b"AC", 300);
        let patterns =
            if round % 2 == 0 { vec![pattern] } else { vec![pattern, second, b"ACGTRYACGT".to_vec()] };
        let distance = most.min(if round % 2 == 0 { most } else { 9 }) as u32;
        let options = BiologyOptions { patterns, distance, ..BiologyOptions::default() };
        let wanted = expected(&options, "", &text);
        let module = Biology::new(options).unwrap();
        assert_eq!(plain(outputs(&module, &text, &[])), wanted, "round {round}");
        assert_eq!(plain(outputs(&module, &text, &[731, 64])), wanted, "round {round}");
    }
}

#[test]
fn repeats_of_a_long_query_are_found() {
    let mut random = Random(9);
    let unit = random.letters(b"ACGT", 30);
    let pattern = unit.repeat(10);
    let text =
        [unit.repeat(40), random.letters(b"ACGT", 500), damaged(&mut random, &unit.repeat(12), 8)].concat();
    let options = BiologyOptions { patterns: vec![pattern], distance: 12, ..BiologyOptions::default() };
    let wanted = expected(&options, "", &text);
    assert!(wanted.len() > 30);
    let module = Biology::new(options).unwrap();
    assert_eq!(plain(outputs(&module, &text, &[])), wanted);
}

#[test]
fn a_long_query_of_one_letter_is_found() {
    let text = [&b"ACGT".repeat(100)[..], &b"A".repeat(700), b"CC", &b"A".repeat(300), b"GATTACA"].concat();
    let options =
        BiologyOptions { patterns: vec![b"A".repeat(500)], distance: 20, ..BiologyOptions::default() };
    let wanted = expected(&options, "", &text);
    assert!(!wanted.is_empty());
    assert_eq!(plain(outputs(&Biology::new(options).unwrap(), &text, &[])), wanted);
}

#[test]
fn a_query_of_the_greatest_length_is_found() {
    let mut random = Random(3);
    let pattern = random.letters(b"ACGT", 100_000);
    let copy = damaged(&mut random, &pattern, 4500);
    let noise = [1_000_000, 100_000].map(|count| random.letters(b"ACGT", count));
    let text = [&noise[0][..], &opposite(&copy), &noise[1]].concat();
    let options = BiologyOptions { patterns: vec![pattern], distance: 5000, ..BiologyOptions::default() };
    let hits = outputs(&Biology::new(options).unwrap(), &text, &[1 << 20]);
    let places: Vec<(Strand, u64, u64)> = hits.iter().map(|hit| (hit.strand, hit.start, hit.end)).collect();
    assert_eq!(places, [(Strand::Reverse, 1_000_000, 1_000_000 + copy.len() as u64)]);
    assert!(hits[0].distance <= 4500 && hits[0].text.len() == 1100);
}
