//! Stores that fail: what they say is survived or reported, and never believed.

use crate::common::{Faults, in_folder, in_memory};
use holdfast_dataset::RangeRead as _;
use object_store::multipart::MultipartStore as _;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore as _, ObjectStoreExt as _};
use std::fs;
use std::io::Write as _;

fn data() -> Vec<u8> {
    (0..50_000_000_u32).map(|at| (at ^ (at >> 9)) as u8).collect()
}

#[test]
fn a_store_that_fails_now_and_then_is_survived() {
    for faults in [
        Faults { error: 3, ..Faults::default() },
        Faults { truncate: 3, ..Faults::default() },
        Faults { error: 4, truncate: 5, ..Faults::default() },
    ] {
        let (vault, _) = in_memory(faults);
        let data = data();
        let mut upload = vault.upload("run.mcap").unwrap();
        upload.write_all(&data).unwrap();
        upload.verify().unwrap();
        upload.publish().unwrap();
        let object = vault.object("run.mcap").unwrap();
        assert!(object.read(0, data.len()).unwrap() == data, "{faults:?}");
        assert_eq!(vault.list("").unwrap().len(), 1, "{faults:?}");
    }
}

#[test]
fn a_store_that_fails_always_is_reported_and_leaves_nothing() {
    let (vault, store) = in_memory(Faults { error: 1, ..Faults::default() });
    let said = vault.upload("run.mcap").err().unwrap().to_string();
    assert!(said.contains("503 Slow Down") && said.contains("holdfast vault check memory"), "{said}");
    assert!(store.inner.is_empty_now());
}

#[test]
fn an_answer_that_is_lost_after_the_work_was_done_is_survived() {
    let (vault, _) = in_memory(Faults { late: 1, ..Faults::default() });
    let mut upload = vault.upload("run.mcap").unwrap();
    upload.write_all(b"all of it").unwrap();
    upload.verify().unwrap();
    upload.publish().unwrap();
    assert_eq!(vault.object("run.mcap").unwrap().read(0, 9).unwrap(), &b"all of it"[..]);
}

#[test]
fn a_store_that_spoils_bytes_is_not_believed() {
    for faults in [Faults { spoil: 2, ..Faults::default() }, Faults { flip: 2, ..Faults::default() }] {
        let (vault, _) = in_memory(faults);
        let mut upload = vault.upload("run.mcap").unwrap();
        upload.write_all(&data()).unwrap();
        let said = upload.verify().unwrap_err().to_string();
        assert!(said.contains("the bytes read back are not those that were written"), "{said}");
        drop(upload);
        assert!(vault.list("").unwrap().is_empty(), "{faults:?}");
    }
}

/// The state that a process leaves which is killed before it published.
#[test]
fn uploads_of_killed_processes_are_removed_by_the_next_one() {
    let (vault, store) = in_memory(Faults::default());
    let gone = "0000000000000000-1-1-0";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let target = ObjectPath::from("root/lost.mcap");
        let id = store.create_multipart(&target).await.unwrap();
        let lock = format!("{{\"upload\": \"{id}\", \"owner\": \"{gone}\", \"replace\": false}}");
        let at = ObjectPath::from("root/.holdfast/uploads/lost.mcap.lock");
        store.inner.put(&at, lock.into()).await.unwrap();
        // It had completed its parts, and had not read them back.
        store.inner.put(&target, "unverified".into()).await.unwrap();
    });
    assert!(vault.list("").unwrap().is_empty(), "an object that was not verified is not visible");
    let said = vault.upload("lost.mcap").err().map(|error| error.to_string());
    // The process is of another machine, and may go on.
    assert!(said.is_some(), "its lock is heeded");

    let folder = tempfile::tempdir().unwrap();
    let vault = in_folder(folder.path());
    let uploads = folder.path().join(".holdfast/uploads");
    drop(vault.upload("a.mcap").unwrap());
    let mine = {
        let upload = vault.upload("a.mcap").unwrap();
        let name = fs::read_dir(&uploads).unwrap().next().unwrap().unwrap().file_name();
        drop(upload);
        name.into_string().unwrap()
    };
    // The same machine, a process that is not there.
    let parts: Vec<&str> = mine.split('-').collect();
    let left = uploads.join(format!("{}-{}-{}-0", parts[0], u32::MAX, 1));
    fs::write(&left, "half of it").unwrap();
    fs::write(uploads.join("somebody's"), "else").unwrap();
    drop(in_folder(folder.path()).upload("b.mcap").unwrap());
    assert!(!left.exists());
    assert!(uploads.join("somebody's").exists());
}

trait IsEmpty {
    fn is_empty_now(&self) -> bool;
}

impl IsEmpty for object_store::memory::InMemory {
    fn is_empty_now(&self) -> bool {
        use futures::StreamExt as _;
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.list(None).next()).is_none()
    }
}
