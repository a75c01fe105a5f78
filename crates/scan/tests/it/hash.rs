//! Digests and statistics beside those over the whole contents at once (promise 5).

use crate::common::{options, scanned};
use holdfast_scan::{Algorithm, Hash, Statistics};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;

fn contents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let file = (any::<u8>(), 0_usize..60_000)
        .prop_map(|(seed, length)| (0..length).map(|at| (at * 31 % 251) as u8 ^ seed).collect());
    prop::collection::vec(file, 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_file_has_the_digest_of_its_contents(files in contents(), options in options()) {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = BTreeMap::new();
        for (number, bytes) in files.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::write(&path, bytes).unwrap();
            let digest = blake3::hash(bytes).to_hex().to_string();
            wanted.insert(path.display().to_string(), (bytes.len() as u64, digest));
        }
        let scanned = scanned(&Hash::new(&Algorithm::ALL), folder.path(), options);
        prop_assert_eq!(scanned.troubles, []);
        prop_assert_eq!(scanned.report.items(), files.len() as u64);
        let bytes: usize = files.iter().map(Vec::len).sum();
        prop_assert_eq!(scanned.report.bytes(), bytes as u64);
        let found: BTreeMap<_, _> = scanned
            .outputs
            .into_iter()
            .map(|hashes| (hashes.item.to_string(), (hashes.bytes, hashes.values[0].hex.clone())))
            .collect();
        prop_assert_eq!(found, wanted);
    }

    #[test]
    fn every_file_has_the_histogram_of_its_contents(files in contents(), options in options()) {
        let folder = tempfile::tempdir().unwrap();
        let mut wanted = BTreeMap::new();
        for (number, bytes) in files.iter().enumerate() {
            let path = folder.path().join(number.to_string());
            fs::write(&path, bytes).unwrap();
            let mut histogram = [0_u64; 256];
            for byte in bytes {
                histogram[usize::from(*byte)] += 1;
            }
            wanted.insert(path.display().to_string(), histogram);
        }
        let outputs = scanned(&Statistics, folder.path(), options).outputs;
        let found: BTreeMap<_, _> =
            outputs.into_iter().map(|row| (row.item.to_string(), *row.histogram)).collect();
        prop_assert_eq!(found, wanted);
    }
}

/// Test vectors of RFC 1321 (MD5), FIPS 180-4 (SHA-1, SHA-256) and BLAKE3.
#[test]
fn digests_of_published_vectors_are_right() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("abc"), "abc").unwrap();
    let outputs =
        scanned(&Hash::new(&Algorithm::ALL), folder.path(), holdfast_scan::Options::default()).outputs;
    let values: Vec<&str> = outputs[0].values.iter().map(|value| value.hex.as_str()).collect();
    assert_eq!(
        values,
        [
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
            "a9993e364706816aba3e25717850c26c9cd0d89d",
            "900150983cd24fb0d6963f7d28e17f72",
        ]
    );
}
