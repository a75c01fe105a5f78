//! Odd files: reported or passed over, never fatal, never waited for (promise 8).

use crate::common::scanned;
use holdfast_scan::{Algorithm, Hash, Options};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn pipes_links_and_holes_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink(folder.path(), path("loop")).unwrap();
    symlink("nowhere", path("dangling")).unwrap();
    fs::create_dir(path("deep")).unwrap();
    symlink("..", path("deep/up")).unwrap();
    File::create(path("hole")).unwrap().set_len(3 << 20).unwrap();
    fs::write(path("deep/text"), "text").unwrap();
    for small in [0, u64::MAX] {
        let scanned =
            scanned(&Hash::new(&[Algorithm::Blake3]), folder.path(), Options { small, ..Options::default() });
        let mut found: Vec<_> = scanned
            .outputs
            .iter()
            .map(|hashes| (hashes.item.to_string(), hashes.values[0].hex.clone()))
            .collect();
        found.sort();
        let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex().to_string();
        let name = |name: &str| path(name).display().to_string();
        let wanted = [(name("deep/text"), digest(b"text")), (name("hole"), digest(&vec![0; 3 << 20]))];
        assert_eq!(found, wanted);
        assert_eq!(scanned.report.passed_over, 4);
        assert_eq!(scanned.troubles, []);
    }
}

/// Files of /proc have contents, and say that they are empty.
#[test]
fn files_that_say_they_are_empty_are_read_to_their_end() {
    let scanned = scanned(&Hash::new(&[Algorithm::Sha256]), Path::new("/proc/version"), Options::default());
    assert_eq!(scanned.outputs[0].bytes, fs::read("/proc/version").unwrap().len() as u64);
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_the_rest_is_read() {
    // Reading this file fails, for whoever is there.
    let folder = tempfile::tempdir().unwrap();
    symlink("/proc/self/mem", folder.path().join("mem")).unwrap();
    let scanned = scanned(&Hash::new(&[Algorithm::Md5]), &folder.path().join("mem"), Options::default());
    assert_eq!(scanned.outputs, []);
    assert_eq!(scanned.report.troubles, 1);
    assert!(scanned.troubles[0].0.ends_with("/mem"), "{:?}", scanned.troubles);
}
