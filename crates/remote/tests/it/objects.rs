//! Reads and listings of objects: ranges, versions, verification, and following a growing upload.

use crate::offline::canned;
use crate::uploads::{object, read_all, settled};
use crate::world::{World, contents, run, upload};
use futures::StreamExt as _;
use holdfast_remote::{ByteRange, ReadRequest, RemoteErrorKind, Segment, Site, UploadState};

#[test]
fn versions_and_ranges_are_read() {
    let world = World::new();
    run(async {
        let site = world.site();
        let versions = [contents(1, 2000), contents(2, 3000)];
        for bytes in &versions {
            let length = Some(bytes.len() as u64);
            let created = site.create(&upload("a/b", length, Some(bytes.clone()))).await.unwrap();
            assert_eq!(settled(&site, &created.address).await.state, UploadState::Stored);
        }
        let listed = site.versions("p", "a/b").await.unwrap();
        assert_eq!(listed.objects.iter().map(|object| object.size).collect::<Vec<_>>(), [2000, 3000]);
        for (bytes, listed) in versions.iter().zip(&listed.objects) {
            assert_eq!(listed.blake3, blake3::hash(bytes).to_hex().as_str());
            let read = ReadRequest { version: Some(listed.version.clone()), ..object("a/b") };
            let reader = site.read(&read).await.unwrap();
            assert_eq!(
                (reader.size, reader.version.as_ref()),
                (Some(bytes.len() as u64), Some(&listed.version))
            );
            assert_eq!((reader.state, reader.blake3), (Some(UploadState::Stored), Some(blake3::hash(bytes))));
            assert_eq!(read_all(&site, &read).await, *bytes);
        }
        let of = |first, last| ReadRequest { range: Some(ByteRange { first, last }), ..object("a/b") };
        let reader = site.read(&of(10, Some(19))).await.unwrap();
        assert_eq!(reader.size, Some(3000));
        let pieces: Vec<_> = reader.into_stream().map(Result::unwrap).collect().await;
        assert_eq!(pieces.concat(), versions[1][10..20]);
        assert_eq!(read_all(&site, &of(2990, None)).await, versions[1][2990..]);
        assert_eq!(site.read(&of(3000, None)).await.unwrap_err().kind, RemoteErrorKind::Refused);
        assert_eq!(site.read(&object("other")).await.unwrap_err().kind, RemoteErrorKind::NotFound);
        let all = site.list("p", None).await.unwrap();
        assert_eq!((all.objects.len(), all.next), (1, None));
        assert!(site.list("p", Some("a/b")).await.unwrap().objects.is_empty());
    });
}

#[test]
fn a_growing_object_is_listed_and_followed_to_its_end() {
    let world = World::new();
    run(async {
        let site = world.site();
        let bytes = contents(3, 5000);
        let first = bytes.slice(..1000);
        let created = site.create(&upload("growing", None, Some(first.clone()))).await.unwrap();
        let listed = site.list("p", None).await.unwrap();
        assert_eq!((listed.growing[0].path.as_str(), listed.growing[0].offset), ("growing", 1000));
        assert_eq!(listed.growing[0].state, UploadState::Receiving);
        assert_eq!(read_all(&site, &object("growing")).await, first);
        let mut reader = site.read(&ReadRequest { follow: true, ..object("growing") }).await.unwrap();
        assert_eq!((reader.state, reader.size), (Some(UploadState::Receiving), None));
        let mut followed = Vec::new();
        for end in [1000, 2500, 5000] {
            while followed.len() < end {
                followed.extend_from_slice(&reader.chunk().await.unwrap().expect("the answer ends early"));
            }
            if end < 5000 {
                let next = if end == 1000 { 2500 } else { 5000 };
                let segment = Segment {
                    offset: end as u64,
                    bytes: bytes.slice(end..next),
                    length: (next == 5000).then_some(5000),
                    ..Segment::default()
                };
                site.append(&created.address, &segment).await.unwrap();
            }
        }
        assert_eq!(reader.chunk().await.unwrap(), None);
        assert_eq!(followed, bytes);
    });
}

#[test]
fn damaged_contents_of_a_stored_version_are_an_error() {
    let answer = "HTTP/1.1 200 OK\r\nHoldfast-State: stored\r\nContent-Length: 5\r\nConnection: close\r\n\
                  ETag: \"0000000000000000000000000000000000000000000000000000000000000000\"\r\n\r\nhello";
    run(async {
        let mut reader = Site::connect(&canned(answer)).unwrap().read(&object("f")).await.unwrap();
        let error = loop {
            match reader.chunk().await {
                Ok(piece) => assert!(piece.is_some(), "the damage is not found"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind, RemoteErrorKind::ChecksumMismatch);
        assert!(
            error.message.starts_with("cannot read http://") && error.message.contains("; read again"),
            "{error}"
        );
    });
}
