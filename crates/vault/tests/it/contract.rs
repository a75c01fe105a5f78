//! Promises of a vault, the same over every store.

use crate::common::{Faults, in_folder, in_memory};
use crate::servers::{KEYS, server};
use holdfast_client::config::VaultEntry;
use holdfast_dataset::RangeRead as _;
use holdfast_vault::{Vault, sync};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

/// Bytes that do not repeat at the size of a part.
fn bytes(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(|_| next()).collect()
}

fn put(vault: &Arc<Vault>, path: &str, bytes: &[u8]) -> holdfast_base::failure::Result<()> {
    let mut upload = vault.upload(path)?;
    for piece in bytes.chunks(1_000_003) {
        upload.write_all(piece).unwrap();
    }
    let (_, stored) = upload.verify()?;
    assert_eq!(stored.blake3, blake3::hash(bytes).to_hex().to_string());
    upload.publish()
}

fn names(vault: &Vault, prefix: &str) -> Vec<String> {
    vault.list(prefix).unwrap().into_iter().map(|entry| entry.path).collect()
}

/// Puts, ranged gets, listing, create-only names, removal.
fn keeps_its_promises(vault: &Arc<Vault>, large: usize) {
    vault.check().unwrap();
    let (small, big) = (bytes(1000, 1), bytes(large, 2));
    put(vault, "run1.mcap", &small).unwrap();
    put(vault, "2026/11/big.mcap", &big).unwrap();
    put(vault, "2026/11/empty.mcap", b"").unwrap();
    put(vault, "2026/12 ü%/other.mcap", &small).unwrap();

    let object = vault.object("2026/11/big.mcap").unwrap();
    assert_eq!(object.size(), large as u64);
    assert!(object.read(0, large).unwrap() == big);
    for (offset, length) in [(0, 1), (large - 1, 1), (large / 3, large / 2), (7, 0), (large - 70_000, 70_000)]
    {
        assert!(object.read(offset as u64, length).unwrap() == big[offset..offset + length], "{offset}");
    }
    assert!(object.read(large as u64, 1).is_err());
    assert_eq!(vault.object("2026/11/empty.mcap").unwrap().size(), 0);

    let all = ["2026/11/big.mcap", "2026/11/empty.mcap", "2026/12 ü%/other.mcap", "run1.mcap"];
    assert_eq!(names(vault, ""), all);
    assert_eq!(names(vault, "2026/11/"), all[..2]);
    assert_eq!(names(vault, "run1.mcap"), all[3..]);
    assert_eq!(names(vault, "2026/*/*.mcap"), all[..3]);
    assert_eq!(names(vault, "2026/11/b*"), all[..1]);
    assert!(names(vault, "20").is_empty(), "prefixes end at names");

    // A name is never overwritten, and an upload that is not published leaves nothing.
    let taken = put(vault, "run1.mcap", &big).unwrap_err().to_string();
    assert!(taken.contains("there is an object of that name") && taken.contains("run1.mcap"), "{taken}");
    let mut upload = vault.upload("never.mcap").unwrap();
    upload.write_all(&big).unwrap();
    upload.verify().unwrap();
    assert!(!names(vault, "").contains(&"never.mcap".to_owned()), "it is not visible before it is published");
    drop(upload);
    assert_eq!(names(vault, ""), all);
    put(vault, "never.mcap", &small).unwrap();

    vault.remove("never.mcap").unwrap();
    assert_eq!(vault.remove("never.mcap").unwrap_err().number(), 3);
    assert_eq!(vault.object("never.mcap").unwrap_err().number(), 3);
    for wrong in ["", "/x", "a//b", "../x", "a/./b", ".holdfast/x", "a\nb"] {
        assert_eq!(vault.upload(wrong).err().map(|error| error.number()), Some(2), "{wrong:?}");
    }
}

#[test]
fn a_folder_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    keeps_its_promises(&in_folder(folder.path()), 3_000_000);
    let left = fs::read_dir(folder.path().join(".holdfast/uploads")).unwrap().count();
    assert_eq!(left, 0, "nothing is left of uploads");
}

#[test]
fn an_object_store_keeps_its_promises() {
    keeps_its_promises(&in_memory(Faults::default()).0, 40_000_000);
}

#[test]
fn s3_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server("s3", "bin/versitygw", folder.path()) else { return };
    fs::create_dir(folder.path().join("data/lab")).unwrap();
    let keys = folder.path().join("keys");
    fs::write(
        &keys,
        format!("[default]\naws_access_key_id = {}\naws_secret_access_key={}\n", KEYS[0], KEYS[1]),
    )
    .unwrap();
    let entry = VaultEntry {
        name: "s3".to_owned(),
        url: "s3://lab/some/prefix".to_owned(),
        endpoint: Some(format!("http://127.0.0.1:{}", server.port)),
        region: None,
        credentials: Some(keys.clone()),
    };
    // Others may read the keys.
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    let said = Vault::open(&entry).unwrap_err().to_string();
    assert!(said.contains("others may read the credentials") && said.contains("chmod 600"), "{said}");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).unwrap();
    let vault = Vault::open(&entry).unwrap();
    keeps_its_promises(&vault, 40_000_000);

    // No message shows a key.
    fs::write(&keys, format!("aws_access_key_id = {}\naws_secret_access_key=wrong-secret\n", KEYS[0]))
        .unwrap();
    let said = Vault::open(&entry).unwrap().check().unwrap_err().to_string();
    assert!(!said.contains("wrong-secret"), "{said}");
}

#[test]
fn hdfs_keeps_its_promises() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = server("hdfs", "hdfs/hadoop-client-api-3.4.2.jar", folder.path()) else { return };
    let url = format!("hdfs://127.0.0.1:{}/holdfast", server.port);
    let vault = Vault::open(&VaultEntry { name: "hdfs".to_owned(), ..VaultEntry::folder(&url) }).unwrap();
    keeps_its_promises(&vault, 20_000_000);
}

#[test]
fn a_vault_is_copied_to_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let (from, (to, _)) = (in_folder(folder.path()), in_memory(Faults::default()));
    let data = bytes(5_000_000, 3);
    for path in ["a/1.mcap", "a/2.mcap", "b.mcap"] {
        put(&from, path, &data).unwrap();
    }
    put(&to, "b.mcap", b"other").unwrap();
    let mut last = (0, 0);
    let report = sync(&from, &to, "", &mut |done, all| last = (done, all)).unwrap();
    assert_eq!((report.copied, report.copied_bytes, report.present), (2, 10_000_000, 0));
    assert_eq!(report.different, ["b.mcap"]);
    assert_eq!(last, (10_000_000, 10_000_000));
    assert!(to.object("a/2.mcap").unwrap().read(0, data.len()).unwrap() == data);
    let again = sync(&from, &to, "a", &mut |_, _| ()).unwrap();
    assert_eq!((again.copied, again.present), (0, 2));
}
