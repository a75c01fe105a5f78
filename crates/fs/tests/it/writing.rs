//! Writes: each byte goes to the site once, and no upload stays there that nobody ends.

use crate::world::{World, contents};
use holdfast_fs::{FileSystem, FsOptions, OpenMode, ROOT};
use rustix::io::Errno;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// Writes a file at full speed, as `cp` does.
async fn write(fs: &FileSystem, project: u64, name: &str, bytes: &[u8]) -> u64 {
    let (_, handle) = fs.create(project, name).await.unwrap();
    for (at, piece) in bytes.chunks(MIB).enumerate() {
        fs.write(handle, (at * MIB) as u64, piece).unwrap();
    }
    handle
}

/// Reads a file, so that everything that the file system does by itself gets its turn.
async fn read(fs: &FileSystem, project: u64, name: &str) -> Vec<u8> {
    let found = fs.lookup(project, name).await.unwrap();
    let handle = fs.open(found.ino, OpenMode::default()).await.unwrap();
    let bytes = fs.read(handle, 0, found.size).await.unwrap();
    fs.release(handle);
    bytes.to_vec()
}

#[test]
fn each_byte_is_sent_once() {
    let world = World::new();
    let fs = world.fs(world.options());
    let bytes = contents(21, 40 * MIB + 5);
    world.run(async {
        let project = fs.make_directory(ROOT, "lab").await.unwrap().ino;
        let mut sent = 0;
        for length in [3 * MIB, 4 * MIB, 4 * MIB + 1, 16 * MIB, 40 * MIB + 5] {
            let name = format!("file-{length}");
            let handle = write(&fs, project, &name, &bytes[..length]).await;
            fs.sync(handle).await.unwrap();
            // The spool is still there, as between the flush and the release of a close.
            assert!(read(&fs, project, &name).await == bytes[..length]);
            fs.release(handle);
            sent += length;
            assert_eq!(world.metric("received_bytes_total"), sent as u64, "{length}");
            assert_eq!(world.metric("uploads_open"), 0, "{length}");
        }
        // A shell closes a copy of the descriptor before its program writes.
        let (_, handle) = fs.create(project, "redirected").await.unwrap();
        fs.sync(handle).await.unwrap();
        for (at, piece) in bytes[..20 * MIB].chunks(MIB).enumerate() {
            fs.write(handle, (at * MIB) as u64, piece).unwrap();
        }
        fs.sync(handle).await.unwrap();
        assert!(read(&fs, project, "redirected").await == bytes[..20 * MIB]);
        fs.release(handle);
        assert_eq!(world.metric("received_bytes_total"), (sent + 20 * MIB) as u64);
        assert_eq!(world.metric("uploads_open"), 0);
    });
}

#[test]
fn no_upload_stays_of_bytes_that_changed_or_were_deleted() {
    let world = World::new();
    let fs = world.fs(world.options());
    let bytes = contents(22, 20 * MIB);
    world.run(async {
        let project = fs.make_directory(ROOT, "lab").await.unwrap().ino;
        // Bytes that were sent change.
        let handle = write(&fs, project, "changed", &bytes).await;
        world.until_received(4 * MIB as u64).await;
        fs.write(handle, 0, b"changed").unwrap();
        fs.sync(handle).await.unwrap();
        fs.release(handle);
        assert_eq!(world.metric("uploads_open"), 0);
        assert_eq!(&read(&fs, project, "changed").await[..7], b"changed");
        // A file is deleted while it is written.
        let before = world.metric("received_bytes_total");
        let handle = write(&fs, project, "deleted", &bytes).await;
        world.until_received(before + 4 * MIB as u64).await;
        fs.unlink(project, "deleted").await.unwrap();
        fs.sync(handle).await.unwrap();
        fs.release(handle);
        assert_eq!(world.metric("uploads_open"), 0);
        assert_eq!(fs.lookup(project, "deleted").await.unwrap_err().errno, Errno::NOENT);
        assert_eq!(fs.finish().await, Vec::<String>::new());
    });
}

#[test]
fn bytes_of_a_file_that_others_replaced_are_stored() {
    let world = World::new();
    let fs = || world.fs(FsOptions { cache: Duration::ZERO, ..world.options() });
    let (others, site) = (fs(), world.site());
    world.run(async {
        let theirs = others.make_directory(ROOT, "lab").await.unwrap().ino;
        // A file that is new has another kind of number than one that was stored before.
        for is_new in [true, false] {
            let (fs, name) = (fs(), format!("run-{is_new}"));
            let path = format!("/lab/{name}");
            let store = async |bytes: &[u8]| {
                let handle = write(&others, theirs, &name, bytes).await;
                others.sync(handle).await.unwrap();
                others.release(handle);
            };
            let project = fs.lookup(ROOT, "lab").await.unwrap().ino;
            let (ino, handle) = if is_new {
                let (made, handle) = fs.create(project, &name).await.unwrap();
                (made.ino, handle)
            } else {
                store(b"start").await;
                let found = fs.lookup(project, &name).await.unwrap();
                let mode = OpenMode { write: true, truncate: false };
                (found.ino, fs.open(found.ino, mode).await.unwrap())
            };
            let sync = async |bytes: &[u8]| {
                fs.write(handle, 0, bytes).unwrap();
                fs.sync(handle).await.unwrap();
                let stat = site.catalog_stat(&path).await.unwrap();
                let current =
                    stat.versions.iter().find(|version| Some(&version.version) == stat.current.as_ref());
                assert_eq!(current.unwrap().blake3, blake3::hash(bytes).to_hex().as_str(), "{path}");
                stat.versions.len()
            };
            sync(b"first").await;
            assert_eq!(fs.lookup(project, &name).await.unwrap().ino, ino);
            // The site makes another object for the next version.
            site.delete_entry(&path, false).await.unwrap();
            assert_eq!(sync(b"again").await, 1);
            // A program that looks at the name learns that object.
            let found = fs.lookup(project, &name).await;
            assert!(!is_new || found.unwrap().ino == ino);
            assert_eq!(sync(b"third").await, 2);
            // An object of others has the name.
            site.delete_entry(&path, false).await.unwrap();
            store(b"other").await;
            let _ = fs.lookup(project, &name).await;
            assert_eq!(sync(b"last!").await, 2);
            fs.release(handle);
            assert_eq!(fs.finish().await, Vec::<String>::new());
        }
    });
}
