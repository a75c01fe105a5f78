//! Datasets, vaults, and files that are written.

use super::{Deaf, MANY};
use crate::common::folder;
use crate::common::site::Site;
use crate::vaults::configure;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

pub(super) const COMMANDS: &[&str] = &[
    "dataset pack",
    "dataset unpack",
    "dataset convert",
    "dataset recover",
    "dataset verify",
    "vault check",
    "vault sync",
    "vault scrub",
    "vault rm",
    "concat",
    "encrypt",
    "decrypt",
];

#[test]
fn datasets_are_made_copied_and_repaired_though_nobody_reads_it() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    for name in ["many", "a", "b"] {
        fs::create_dir(dir.join(name)).unwrap();
    }
    for at in 0..MANY {
        fs::write(dir.join(format!("many/file-{at:03}")), format!("contents {at}\n")).unwrap();
    }
    let vault = |name: &str| format!("url = \"{}\"", dir.join(name).display());
    configure(dir, &[("a", vault("a")), ("b", vault("b"))]);
    let is_unpacked = |to: &str| (0..MANY).all(|at| fs::read(dir.join(format!("{to}/file-{at:03}"))).is_ok());

    let mut deaf = Deaf::new(&site);
    deaf.run("dataset pack many -o packed.mcap");
    deaf.run("dataset verify packed.mcap");
    deaf.run("dataset unpack packed.mcap unpacked");
    assert!(is_unpacked("unpacked"));
    deaf.run("concat many -o a:concat.mcap --json");
    deaf.run("vault check a");
    deaf.run("vault sync a: b:");
    let copy = dir.join("b/concat.mcap");
    assert!(copy.is_file());
    let whole = fs::read(&copy).unwrap();

    // Damage is found and repaired, and the exit code of a check tells of it.
    let mut damaged = whole.clone();
    damaged[whole.len() / 3] ^= 1;
    fs::write(&copy, &damaged).unwrap();
    fs::write(dir.join("damaged.mcap"), &damaged).unwrap();
    deaf.ends("dataset verify damaged.mcap", 1);
    deaf.ends("vault scrub b", 1);
    deaf.run("vault scrub b --repair-from a --restart");
    site.ends("dataset verify b:concat.mcap", 0);
    deaf.run("dataset recover packed.mcap -o recovered.mcap");
    assert!(dir.join("recovered.mcap").is_file());
    deaf.run("vault rm b:concat.mcap");
    assert!(!copy.exists());

    fs::write(dir.join("net.pcap"), crate::common::made::pcap()).unwrap();
    deaf.run("dataset convert net.pcap -o net.mcap --stream net");
    site.ends("dataset verify net.mcap", 0);
    fs::write(dir.join("key"), [7; 32]).unwrap();
    fs::set_permissions(dir.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
    deaf.run("encrypt many -o secret --key-file key");
    deaf.run("decrypt secret -o clear --key-file key --json");
    assert!(is_unpacked("clear/many") || is_unpacked("clear"));
    deaf.tried_all(COMMANDS);
}
