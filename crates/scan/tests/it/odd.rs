//! Odd files: reported or passed over, never fatal, never waited for (promise 8).

use crate::common::scanned;
use holdfast_client::range::RangeOptions;
use holdfast_scan::{
    Algorithm, Block, Division, Flow, Hash, Item, Module, ModuleError, Options, Outputs, Pick, Sources, scan,
};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, File};
use std::ops::ControlFlow;
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

/// Module with a bug that shows at a byte of one file.
struct Buggy;

impl Module for Buggy {
    type Worker = ();
    type Partial = ();
    type State = ();
    type Output = ();

    fn division(&self) -> Division {
        Division::Serial
    }

    fn worker(&self) -> Result<(), ModuleError> {
        Ok(())
    }

    fn examine(&self, (): &mut (), block: &Block<'_>) -> Result<(), ModuleError> {
        assert!(!block.own_bytes().contains(&7), "the byte 7 was not foreseen");
        Ok(())
    }

    fn start(&self, _: &Item<'_>) -> Result<(), ModuleError> {
        Ok(())
    }

    fn fold(&self, (): &mut (), _: &Block<'_>, (): (), _: &mut Outputs<'_, ()>) -> Result<Flow, ModuleError> {
        Ok(Flow::Continue)
    }

    fn end(&self, _: &Item<'_>, (): (), _: &mut Outputs<'_, ()>) -> Result<(), ModuleError> {
        Ok(())
    }
}

#[test]
fn a_module_that_panics_ends_the_scan_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0_u8..20 {
        fs::write(folder.path().join(number.to_string()), vec![number; 100_000]).unwrap();
    }
    let places = [folder.path().to_owned()];
    let sources = Sources::new(&places, Pick::Files, Vec::new(), RangeOptions::default()).unwrap();
    for small in [0, u64::MAX] {
        let options = Options { small, block: 4096, ..Options::default() };
        let scanned = scan(&Buggy, &sources, options, &mut |_| ControlFlow::Continue(()), &mut |_, _| ());
        assert!(scanned.unwrap_err().to_string().contains("has a bug"));
    }
}
