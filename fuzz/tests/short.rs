//! Every target on its seeds, on what once broke it, and on a fixed number of mutations of both: "bad input gets a
//! clear error", and never a panic.

use holdfast_fuzz::{Mutator, TARGETS};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Says which input it was when a target panics.
struct Witness<'a> {
    target: &'static str,
    data: &'a [u8],
}

impl Drop for Witness<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let hex = self.data.iter().take(4096).fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            eprintln!(
                "target {} broke on {} bytes; keep them in fuzz/found/{}/: {hex}",
                self.target,
                self.data.len(),
                self.target
            );
        }
    }
}

fn found(target: &str) -> std::io::Result<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("found").join(target);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}

#[test]
fn no_target_breaks_on_hostile_input() {
    for target in TARGETS {
        let run = |data: &[u8]| {
            let _witness = Witness { target: target.name, data };
            (target.run)(data);
        };
        let mut seeds = (target.seeds)();
        assert!(!seeds.is_empty(), "target {} has no seeds", target.name);
        seeds.extend(found(target.name).unwrap());
        for seed in &seeds {
            run(seed);
        }
        let mut mutator = Mutator::new(0x0048_6f6c_6466_6173);
        for _ in 0..target.mutations {
            run(&mutator.input(&seeds));
        }
    }
}

#[test]
fn every_target_has_its_entry_for_libfuzzer() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(here.join("Cargo.toml")).unwrap();
    for target in TARGETS {
        let entry = fs::read_to_string(here.join(format!("fuzz_targets/{}.rs", target.name))).unwrap();
        assert!(entry.contains(&format!("holdfast_fuzz::{}::run(data)", target.name)), "{}", target.name);
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{}.rs\"", target.name)), "{}", target.name);
    }
    assert_eq!(fs::read_dir(here.join("fuzz_targets")).unwrap().count(), TARGETS.len());
}
