//! Damage of stored versions: whole contents are never sent wrong without a sign.

use crate::client::{contents, finish};
use crate::world::World;
use holdfast_server::Event;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

/// File of the only version of an object in the default archive.
fn file_of(world: &World, path: &str) -> PathBuf {
    let folder = world.data().join("archive/default").join(path).join(".holdfast");
    let mut files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let only = files.next().unwrap();
    assert_eq!(files.next(), None);
    only
}

#[test]
fn a_read_of_damaged_contents_is_cut_and_reported() {
    let world = World::new();
    let client = world.client();
    for (size, at) in [(1_500_000, 3), (1_500_000, 1_499_999), (10, 5)] {
        let bytes = contents(1, size);
        let name = format!("d{size}-{at}");
        let path = format!("/projects/default/{name}");
        let upload = client.upload(&name, &bytes);
        let version = world.until_stored(&upload);
        assert_eq!(client.get(&path).expect(200).body, bytes);
        let file = File::options().write(true).open(file_of(&world, &name)).unwrap();
        file.write_all_at(&[!bytes[at]], at as u64).unwrap();
        let whole = format!("bytes=0-{}", size - 1);
        for (address, range) in [(&path, None), (&upload, None), (&path, Some(("Range", whole.as_str())))] {
            // A connection may be cut before the head of its answer is sent.
            if let Some(cut) = finish(client.start("GET", address, range.as_slice(), None)) {
                assert_eq!(cut.header("content-length"), Some(size.to_string().as_str()));
                assert!(cut.body.len() < size, "{size} {at}");
            }
            let reported = world.until(|event| match event {
                Event::DamagedRead { project, path, version, .. } => Some((project, path, version)),
                _ => None,
            });
            assert_eq!(reported, ("default".to_owned(), name.clone(), version.clone()));
        }
        // Ranges are not verified.
        client.send("GET", &path, &[("Range", "bytes=1-8")], &[]).expect(206);
    }
    let text = String::from_utf8(client.get("/metrics").expect(200).body).unwrap();
    assert!(text.contains("holdfast_damaged_reads_total 9\n"), "{text}");
}

#[test]
fn contents_that_are_lost_wholly_are_an_error() {
    let world = World::new();
    let client = world.client();
    let upload = client.upload("lost", b"contents");
    world.until_stored(&upload);
    File::options().write(true).open(file_of(&world, "lost")).unwrap().set_len(0).unwrap();
    assert_eq!(client.get("/projects/default/lost").expect(500).problem(), "internal");
}
