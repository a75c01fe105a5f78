//! Outputs are as private as their sources: exports, conversions, packed folders, decrypted files. Index copies and the file
//! of acts are their user's alone.

use crate::common::{ends, folder};
use crate::vaults::{configure, held};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
        & 0o777
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn outputs_are_never_wider_than_their_sources() {
    let folder = folder();
    let dir = folder.path();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    held(dir);
    fs::create_dir(dir.join("vault")).unwrap();
    configure(dir, &[("v", format!("url = \"{}\"", dir.join("vault").display()))]);
    fs::create_dir_all(dir.join("tree/deep")).unwrap();
    fs::write(dir.join("tree/deep/file"), "secret").unwrap();
    fs::write(dir.join("key"), [7; 32]).unwrap();
    set(&dir.join("key"), 0o600);
    for wanted in [0o600, 0o644] {
        set(&dir.join("r.hf"), wanted);
        set(&dir.join("tree/deep/file"), wanted);
        set(&dir.join("tree/deep"), if wanted == 0o600 { 0o700 } else { 0o755 });
        // Command line, its output, and the source of what follows.
        for (line, output) in [
            ("evacuate r.hf 1 --to OUT.mcap", "OUT.mcap"),
            ("evacuate r.hf 1 --to v:OUT.mcap", "vault/OUT.mcap"),
            ("read r.hf --stream log -o OUT.raw", "OUT.raw"),
            ("read OUT.mcap -o OUT.jsonl --format jsonl", "OUT.jsonl"),
            ("read v:OUT.mcap -o OUT-v.jsonl --format jsonl", "OUT-v.jsonl"),
            ("query r.hf select_count(*)_from_log -o OUT-q.jsonl --format jsonl", "OUT-q.jsonl"),
            ("query OUT.mcap select_count(*)_from_log -o OUT-d.jsonl --format jsonl", "OUT-d.jsonl"),
            ("query r.hf select_*_from_log_limit_5 -o OUT-e.mcap --format mcap", "OUT-e.mcap"),
            ("dataset convert OUT.mcap -o OUT-c.raw", "OUT-c.raw"),
            ("dataset convert OUT.mcap -o OUT-c.parquet", "OUT-c.parquet"),
            ("dataset recover OUT.mcap -o OUT-r.mcap", "OUT-r.mcap"),
            ("dataset pack tree -o OUT-p.mcap", "OUT-p.mcap"),
            ("encrypt tree -o OUT-enc --key-file key", "OUT-enc/deep/file.enc"),
            ("decrypt OUT-enc -o OUT-dec --key-file key", "OUT-dec/deep/file"),
            ("encrypt tree/deep/file -o v:OUT-enc --key-file key", "vault/OUT-enc/file.enc"),
        ] {
            let named = |text: &str| text.replace("OUT", &format!("out{wanted:o}"));
            ends(dir, &named(line), 0);
            assert_eq!(mode(&dir.join(named(output))), wanted, "{line}");
        }
        let folder = dir.join(format!("out{wanted:o}-dec/deep"));
        assert_eq!(mode(&folder), if wanted == 0o600 { 0o700 } else { 0o755 });
    }
    // A file that others may read stays so for them only as far as the new contents allow it.
    set(&dir.join("r.hf"), 0o600);
    ends(dir, "read r.hf --stream log -o out644.raw --force", 0);
    assert_eq!(mode(&dir.join("out644.raw")), 0o600);
}

#[test]
fn index_copies_and_the_file_of_acts_are_for_their_user_alone() {
    let folder = folder();
    let dir = folder.path();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    held(dir);
    ends(dir, "index r.hf --index ssd/drive --once", 0);
    ends(dir, "audit r.hf --append acts.jsonl", 0);
    assert_eq!(mode(&dir.join("acts.jsonl")), 0o600);
    let drive = dir.join("ssd/drive");
    let ring = fs::read_dir(&drive).unwrap().next().unwrap().unwrap().path();
    assert_eq!([&dir.join("ssd"), &drive, &ring].map(|folder| mode(folder)), [0o700; 3]);
    let files: Vec<_> = fs::read_dir(&ring).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 1, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    // Outputs that others were given stay theirs.
    set(&dir.join("acts.jsonl"), 0o644);
    ends(dir, "audit r.hf --append acts.jsonl", 0);
    assert_eq!(mode(&dir.join("acts.jsonl")), 0o644);
}
