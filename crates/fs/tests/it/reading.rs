//! Reads through the advance buffer: whole, at random, by several readers, with little memory, and while the site is away.

use crate::world::{World, contents};
use holdfast_fs::{BufferMode, FileSystem, FsOptions, OpenMode, ROOT};
use rustix::io::Errno;
use std::sync::Arc;
use std::time::Duration;

/// Makes a project with a file, and returns the numbers of both.
async fn make(fs: &FileSystem, bytes: &[u8]) -> (u64, u64) {
    let project = fs.make_directory(ROOT, "lab").await.unwrap().ino;
    let (made, handle) = fs.create(project, "run.raw").await.unwrap();
    fs.write(handle, 0, bytes).unwrap();
    fs.sync(handle).await.unwrap();
    fs.release(handle);
    (project, made.ino)
}

#[test]
fn every_mode_gives_the_bytes_of_the_file() {
    let world = World::new();
    let bytes = contents(1, 9_000_001);
    world.run(async {
        let (_, ino) = make(&world.fs(world.options()), &bytes).await;
        assert!(ino >> 63 == 1);
        let modes = [BufferMode::Off, BufferMode::Fixed(1 << 20), BufferMode::Adaptive(4 << 20)];
        for (buffer, memory) in modes.into_iter().flat_map(|mode| [(mode, 64 << 20), (mode, 300_000)]) {
            let fs = world.fs(FsOptions { buffer, memory, ..world.options() });
            let project = fs.lookup(ROOT, "lab").await.unwrap().ino;
            let found = fs.lookup(project, "run.raw").await.unwrap();
            assert_eq!(found.size, bytes.len() as u64);
            let handle = fs.open(found.ino, OpenMode::default()).await.unwrap();
            for step in [100_000, 128 << 10, 3 << 20] {
                let mut at = 0;
                while at < bytes.len() {
                    let read = fs.read(handle, at as u64, step as u64).await.unwrap();
                    assert_eq!(read, &bytes[at..(at + step).min(bytes.len())], "{buffer:?} {at}");
                    at += read.len();
                }
            }
            assert!(fs.read(handle, bytes.len() as u64, 10).await.unwrap().is_empty());
            let places = contents(2, 400);
            for place in places.chunks(8) {
                let at = u64::from_le_bytes(place.try_into().unwrap()) % bytes.len() as u64;
                let read = fs.read(handle, at, 5000).await.unwrap();
                assert_eq!(read, &bytes[at as usize..(at as usize + 5000).min(bytes.len())]);
            }
            fs.release(handle);
            let closed = fs.read(handle, 0, 1).await.unwrap_err();
            assert_eq!(closed.errno, Errno::BADF);
        }
    });
}

#[test]
fn many_readers_share_little_memory() {
    let world = World::new();
    let bytes = Arc::new(contents(3, 3_000_000));
    world.run(async {
        let fs = world.fs(FsOptions { memory: 2 << 20, ..world.options() });
        let (_, ino) = make(&fs, &bytes).await;
        let reader = async |from: usize| {
            let handle = fs.open(ino, OpenMode::default()).await.unwrap();
            let mut at = from * 1000;
            while at < bytes.len() {
                let read = fs.read(handle, at as u64, 64 << 10).await.unwrap();
                assert_eq!(read, &bytes[at..at + read.len()]);
                at += read.len();
            }
            // The handle stays open, and its buffers are taken by others.
        };
        futures::future::join_all((0..30).map(reader)).await;
    });
}

#[test]
fn an_open_version_outlives_rename_replacement_and_deletion() {
    let world = World::new();
    let (first, second) = (contents(6, 3_000_000), contents(7, 1000));
    let fs = world.fs(FsOptions { buffer: BufferMode::Off, cache: Duration::ZERO, ..world.options() });
    world.run(async {
        let project = fs.make_directory(ROOT, "lab").await.unwrap().ino;
        let store = async |name: &str, bytes: &[u8]| {
            let (_, handle) = fs.create(project, name).await.unwrap();
            fs.write(handle, 0, bytes).unwrap();
            fs.sync(handle).await.unwrap();
            fs.release(handle);
        };
        // By this file system and by another machine.
        for by_others in [false, true] {
            let (file, moved, next) =
                (format!("run-{by_others}"), format!("moved-{by_others}"), format!("next-{by_others}"));
            store(&file, &first).await;
            let open = async |name: &str| {
                let found = fs.lookup(project, name).await.unwrap();
                (found.ino, fs.open(found.ino, OpenMode::default()).await.unwrap())
            };
            let check = async |(ino, handle): (u64, u64), what: &str| {
                let read = fs.read(handle, 2_000_000, 1000).await;
                assert_eq!(
                    read.unwrap_or_else(|error| panic!("{what}: {error}")),
                    &first[2_000_000..2_001_000]
                );
                let found = fs.attributes(ino).await.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(found.size, first.len() as u64, "{what}");
            };
            let site = world.site();
            let at = |name: &str| format!("/lab/{name}");
            let opened = open(&file).await;
            if by_others {
                site.move_entry(&at(&file), &at(&moved)).await.unwrap();
                let read = fs.read(opened.1, 0, 10).await.unwrap();
                assert_eq!(read, &first[..10], "renamed by another machine");
            } else {
                fs.rename((project, &file), (project, &moved), false).await.unwrap();
                check(opened, "renamed").await;
            }
            // Another file takes its place, as editors and `rsync` do it.
            let opened = open(&moved).await;
            store(&next, &second).await;
            if by_others {
                site.replace_entry(&at(&next), &at(&moved), true).await.unwrap();
            } else {
                fs.rename((project, &next), (project, &moved), false).await.unwrap();
            }
            check(opened, "replaced").await;
            let found = fs.lookup(project, &moved).await.unwrap();
            assert_eq!(found.size, second.len() as u64);
            // A new version does not disturb either.
            store(&file, &first).await;
            let opened = open(&file).await;
            if by_others {
                site.delete_entry(&at(&file), false).await.unwrap();
            } else {
                fs.unlink(project, &file).await.unwrap();
            }
            check(opened, "deleted").await;
            let gone = fs.lookup(project, &file).await.unwrap_err();
            assert_eq!(gone.errno, Errno::NOENT);
            fs.release(opened.1);
        }
    });
}

#[test]
fn operations_wait_for_a_site_that_comes_back() {
    let mut world = World::new();
    let bytes = contents(4, 2_000_000);
    let fs = world.fs(FsOptions { buffer: BufferMode::Off, ..world.options() });
    let (project, ino) = world.run(make(&fs, &bytes));
    let handle = world.run(fs.open(ino, OpenMode::default())).unwrap();
    let (_, writer) = world.run(fs.create(project, "second.raw")).unwrap();
    fs.write(writer, 0, &bytes).unwrap();
    world.stop();
    let (files, more) = (Arc::clone(&fs), Arc::clone(&fs));
    let reading = world.runtime.spawn(async move { files.read(handle, 1000, 100_000).await });
    let writing = world.runtime.spawn(async move { more.sync(writer).await });
    world.start();
    assert_eq!(world.run(reading).unwrap().unwrap(), &bytes[1000..101_000]);
    world.run(writing).unwrap().unwrap();
    fs.release(writer);
    let stored = world.run(world.site().catalog_stat("/lab/second.raw")).unwrap();
    assert_eq!(stored.versions[0].blake3, blake3::hash(&bytes).to_hex().as_str());
}

#[test]
fn bytes_that_the_site_did_not_take_are_kept() {
    let mut world = World::new();
    let fs = world.fs(FsOptions { patience: Duration::from_millis(10), ..world.options() });
    let (project, ino) = world.run(make(&fs, b"first"));
    let (_, writer) = world.run(fs.create(project, "lost.raw")).unwrap();
    fs.write(writer, 0, b"second").unwrap();
    let reader = world.run(fs.open(ino, OpenMode::default())).unwrap();
    world.stop();
    assert_eq!(world.run(fs.read(reader, 0, 5)).unwrap_err().errno, Errno::IO);
    assert_eq!(world.run(fs.sync(writer)).unwrap_err().errno, Errno::IO);
    fs.release(writer);
    let told = world.run(fs.finish());
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert!(told.starts_with("cannot write `/lab/lost.raw`: its bytes are kept in "), "{told}");
    let file = told.split("kept in ").nth(1).unwrap().split(';').next().unwrap();
    assert_eq!(std::fs::read(file).unwrap(), b"second");
}

#[test]
fn contiguous_writes_are_sent_before_the_close() {
    let world = World::new();
    let fs = world.fs(world.options());
    let bytes = contents(5, 30_000_001);
    world.run(async {
        let project = fs.make_directory(ROOT, "lab").await.unwrap().ino;
        let write = async |name: &str, change: Option<(usize, &[u8])>| {
            let (_, handle) = fs.create(project, name).await.unwrap();
            for (at, piece) in bytes.chunks(1 << 20).enumerate() {
                fs.write(handle, (at << 20) as u64, piece).unwrap();
                // The sender gets its turn.
                tokio::task::yield_now().await;
            }
            let mut wanted = bytes.clone();
            if let Some((offset, change)) = change {
                fs.write(handle, offset as u64, change).unwrap();
                wanted[offset..offset + change.len()].copy_from_slice(change);
            }
            fs.sync(handle).await.unwrap();
            fs.release(handle);
            let stat = world.site().catalog_stat(&format!("/lab/{name}")).await.unwrap();
            assert_eq!(stat.versions.len(), 1);
            assert_eq!(stat.versions[0].blake3, blake3::hash(&wanted).to_hex().as_str(), "{name}");
        };
        write("plain", None).await;
        // Bytes that were sent already change, and others.
        write("early", Some((10, b"changed"))).await;
        write("late", Some((29_999_000, b"changed"))).await;
        // A file that is made shorter than what was sent.
        let (_, handle) = fs.create(project, "short").await.unwrap();
        fs.write(handle, 0, &bytes).unwrap();
        tokio::task::yield_now().await;
        let found = fs.lookup(project, "short").await.unwrap();
        fs.set_size(found.ino, 5_000_000).await.unwrap();
        fs.write(handle, 5_000_000, b"end").unwrap();
        fs.sync(handle).await.unwrap();
        fs.release(handle);
        let wanted = [&bytes[..5_000_000], b"end"].concat();
        let stat = world.site().catalog_stat("/lab/short").await.unwrap();
        assert_eq!(stat.versions[0].blake3, blake3::hash(&wanted).to_hex().as_str());
    });
}
