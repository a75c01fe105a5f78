//! Delivery to the archive: retries, panics, restarts, damage of a file, and recovery of a shortened one.

use crate::client::contents;
use crate::world::World;
use holdfast_server::{ArchiveError, Event, FolderStore, NamedStore, ObjectStore, OpenObject, Source};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Store that fails a number of times, then panics once, then works; it never works below zero.
struct Stubborn {
    inner: FolderStore,
    failures: AtomicI64,
}

impl Stubborn {
    fn new(folder: &Path, failures: i64) -> Arc<Self> {
        Arc::new(Self { inner: FolderStore::new(folder), failures: AtomicI64::new(failures) })
    }
}

impl ObjectStore for Stubborn {
    fn put(&self, key: &str, source: &Source<'_>) -> Result<(), ArchiveError> {
        match self.failures.fetch_sub(1, Ordering::SeqCst) {
            0 => panic!("the store panics"),
            left if left > 0 => Err(ArchiveError::new("cannot store the object: no reason; try again")),
            _ => self.inner.put(key, source),
        }
    }

    fn open(&self, key: &str) -> Result<OpenObject, ArchiveError> {
        self.inner.open(key)
    }

    fn file(&self, key: &str) -> Option<PathBuf> {
        self.inner.file(key)
    }

    fn remove(&self, key: &str) -> Result<(), ArchiveError> {
        self.inner.remove(key)
    }
}

fn vault(store: Arc<dyn ObjectStore>) -> Vec<NamedStore> {
    vec![NamedStore { name: "archive".to_owned(), store }]
}

#[test]
fn a_failing_archive_is_tried_again_until_it_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Stubborn::new(folder.path(), 5);
    let world = World::with(|options| options.stores = vault(archive));
    let client = world.client();
    let upload = client.upload("a", b"contents");
    for _ in 0..6 {
        world.until(|event| matches!(event, Event::DeliveryFailed { .. }).then_some(()));
    }
    world.until_stored(&upload);
    assert_eq!(client.get("/projects/default/a").expect(200).body, b"contents");
}

#[test]
fn a_delivery_goes_on_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Stubborn::new(folder.path(), i64::MAX);
    let world_archive = Arc::clone(&archive);
    let mut world = World::with(|options| options.stores = vault(world_archive));
    let client = world.client();
    let bytes = contents(1, 2_000_000);
    let upload = client.upload("a", &bytes);
    for _ in 0..3 {
        world.until(|event| matches!(event, Event::DeliveryFailed { .. }).then_some(()));
        assert_eq!(client.head(&upload).expect(200).header("holdfast-state"), Some("complete"));
        assert_eq!(client.get("/projects/default/a").expect(200).body, bytes);
    }
    archive.failures.store(-1, Ordering::SeqCst);
    let client = world.restart();
    world.until_stored(&upload);
    assert_eq!(client.get("/projects/default/a").expect(200).body, bytes);
    assert_eq!(std::fs::read_dir(world.data().join("uploads")).unwrap().count(), 0);
}

#[test]
fn a_damaged_file_is_never_stored() {
    let folder = tempfile::tempdir().unwrap();
    let archive = Stubborn::new(folder.path(), i64::MAX);
    let world_archive = Arc::clone(&archive);
    let mut world = World::with(|options| options.stores = vault(world_archive));
    let client = world.client();
    let upload = client.upload("a", &contents(1, 2_500_000));
    // An attempt that is running may have verified the file already.
    world.stop();
    let file = world.data().join("uploads").join(upload.trim_start_matches("/files/"));
    std::fs::File::options().write(true).open(&file).unwrap().write_all_at(b"rot", 1_500_000).unwrap();
    archive.failures.store(-1, Ordering::SeqCst);
    let client = world.restart();
    let reason = world.until(|event| match event {
        Event::UploadFailed { reason, .. } => Some(reason),
        Event::Stored { .. } => panic!("the archive got damaged bytes"),
        _ => None,
    });
    assert_eq!(reason, "block 1 of its file is not as it was received");
    assert_eq!(client.head(&upload).status, 409);
    assert_eq!(client.get(&upload).expect(409).problem(), "not-complete");
    client.get("/projects/default/a").expect(404);
    // Its bytes stay for a closer look, also over a restart, until it is terminated.
    let client = world.restart();
    assert!(file.exists());
    client.tus("DELETE", &upload, &[], &[]).expect(204);
    client.head(&upload).expect(410);
    assert!(!file.exists());
}

#[test]
fn a_shortened_file_lowers_the_offset_at_the_next_start() {
    let mut world = World::new();
    let client = world.client();
    let bytes = contents(1, 3_000_000);
    let upload = client.create("short", Some(4_000_000));
    client.patch(&upload, 0, &[], &bytes).expect(204);
    let lost = client.create("lost", Some(10));
    world.stop();
    let folder = world.data().join("uploads");
    let file = folder.join(upload.trim_start_matches("/files/"));
    std::fs::File::options().write(true).open(file).unwrap().set_len(1_700_000).unwrap();
    std::fs::remove_file(folder.join(lost.trim_start_matches("/files/"))).unwrap();
    std::fs::write(folder.join("f".repeat(32)), b"orphan").unwrap();
    let client = world.restart();
    assert_eq!(client.head(&upload).expect(200).offset(), 1_700_000);
    let blocks = client.get(&format!("{upload}/blocks")).expect(200).json();
    assert_eq!(blocks["blocks"].as_array().unwrap().len(), 1);
    client.patch(&upload, 1_700_000, &[], &bytes[1_700_000..]).expect(204);
    client.patch(&upload, 3_000_000, &[], &contents(2, 1_000_000)).expect(204);
    world.until_stored(&upload);
    assert_eq!(client.get("/projects/default/short").expect(200).body[..3_000_000], bytes);
    assert_eq!(client.head(&lost).status, 409);
    assert!(!folder.join("f".repeat(32)).exists());
}

#[test]
fn an_upload_is_copied_to_an_archive_on_another_file_system() {
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else {
        println!("skipped: there is no /dev/shm");
        return;
    };
    let archive = folder.path().to_owned();
    let world = World::with(|options| options.stores = vault(Arc::new(FolderStore::new(archive))));
    let client = world.client();
    let bytes = contents(1, 2_500_000);
    let upload = client.upload("a/b", &bytes);
    world.until_stored(&upload);
    assert_eq!(client.get("/projects/default/a/b").expect(200).body, bytes);
    let versions = folder.path().join("default/a/b/.holdfast");
    let names: Vec<_> =
        std::fs::read_dir(versions).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, [upload.trim_start_matches("/files/")]);
}

#[test]
fn a_second_server_is_kept_out_of_the_folder() {
    let world = World::new();
    let error = holdfast_server::Server::start(world.options.clone()).unwrap_err().to_string();
    assert!(error.contains("another server uses it"), "{error}");
}

#[test]
fn an_upload_below_an_object_is_refused_for_good() {
    let world = World::new();
    let client = world.client();
    world.until_stored(&client.upload("a", b"one"));
    let below = client.upload("a/b", b"two");
    let reason = world.until(|event| match event {
        Event::UploadFailed { reason, .. } => Some(reason),
        _ => None,
    });
    assert!(reason.contains("an object is in its way; choose another name"), "{reason}");
    assert_eq!(client.head(&below).status, 409);
    world.until_stored(&client.upload("c/d", b"three"));
    client.upload("c", b"four");
    let reason = world.until(|event| match event {
        Event::UploadFailed { reason, .. } => Some(reason),
        _ => None,
    });
    assert!(reason.contains("it is a collection; choose another name"), "{reason}");
    assert_eq!(crate::site::files(&world.data().join("archive")).len(), 2);
}
