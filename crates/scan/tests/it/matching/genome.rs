//! Genome of E. coli (from `HOLDFAST_TEST_DATA`): pieces of the sequence are found again, damaged and on both strands.

use crate::matching::biology::{opposite, plain};
use crate::matching::common::{Random, outputs};
use flate2::read::MultiGzDecoder;
use holdfast_scan::{Biology, BiologyOptions, Strand};
use std::io::Read as _;
use std::path::PathBuf;

/// Compressed file and its sequence; `None` without test data.
fn genome() -> Option<(Vec<u8>, Vec<u8>)> {
    let Some(folder) = std::env::var_os("HOLDFAST_TEST_DATA") else {
        println!("skipped: HOLDFAST_TEST_DATA is not set");
        return None;
    };
    let path = PathBuf::from(folder).join("genome/ecoli_k12_mg1655.fna.gz");
    let file = std::fs::read(path).unwrap();
    let mut text = String::new();
    MultiGzDecoder::new(file.as_slice()).read_to_string(&mut text).unwrap();
    let sequence: String = text.lines().filter(|line| !line.starts_with('>')).collect();
    Some((file, sequence.into_bytes()))
}

const PLACES: [usize; 5] = [0, 1_000_000, (1 << 20) - 15, 3_333_333, 4_641_622];

#[test]
fn pieces_of_a_genome_are_found_on_both_strands() {
    let Some((file, sequence)) = genome() else { return };
    assert_eq!(sequence.len(), 4_641_652);
    for edits in [0, 2] {
        let mut random = Random(1);
        let mut patterns: Vec<Vec<u8>> = PLACES.map(|place| sequence[place..place + 30].to_vec()).to_vec();
        for pattern in &mut patterns {
            for edit in 0..edits {
                // Apart from each other and from the ends, so that the place stays the best one.
                let at = 8 + 10 * edit + random.below(4);
                pattern[at] = if pattern[at] == b'A' { b'C' } else { b'A' };
            }
        }
        let reverse: Vec<Vec<u8>> = patterns.iter().map(|pattern| opposite(pattern)).collect();
        patterns.extend(reverse);
        let options = BiologyOptions { patterns, distance: edits as u32, ..BiologyOptions::default() };
        let hits = plain(outputs(&Biology::new(options).unwrap(), &file, &[300_007]));
        for (number, place) in PLACES.into_iter().enumerate() {
            let (start, text) = (place as u64, sequence[place..place + 30].to_vec());
            for (pattern, strand) in [(number, Strand::Forward), (number + PLACES.len(), Strand::Reverse)] {
                let record = "NC_000913.3".to_owned();
                let wanted = (record, pattern, strand, start, start + 30, edits as u32, text.clone());
                assert!(hits.contains(&wanted), "{wanted:?} is not among {hits:?}");
            }
        }
    }
}

#[test]
fn a_gene_is_found_by_its_seeds() {
    let Some((file, sequence)) = genome() else { return };
    let mut gene = sequence[2_000_000..2_003_000].to_vec();
    for at in (10..3000).step_by(100) {
        gene[at] = if gene[at] == b'A' { b'C' } else { b'A' };
    }
    let options =
        BiologyOptions { patterns: vec![opposite(&gene)], distance: 100, ..BiologyOptions::default() };
    let hits = outputs(&Biology::new(options).unwrap(), &file, &[]);
    let places: Vec<_> = hits.iter().map(|hit| (hit.strand, hit.start, hit.end, hit.distance)).collect();
    assert_eq!(places, [(Strand::Reverse, 2_000_000, 2_003_000, 30)]);
}
