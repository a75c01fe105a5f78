//! Uploads: creation, segments, resuming, checksums, concatenation, termination and the errors of each.

use crate::world::{World, contents, run, upload};
use bytes::Bytes;
use holdfast_remote::{
    Extension, NewUpload, Progress, ReadRequest, RemoteErrorKind, Segment, Site, SiteExtension,
    UploadAddress, UploadState,
};
use std::time::Duration;

/// Progress of an upload after it is stored or has failed.
pub(crate) async fn settled(site: &Site, address: &UploadAddress) -> Progress {
    loop {
        let progress = site.progress(address, Some(Duration::from_secs(30))).await.unwrap();
        if matches!(progress.state, UploadState::Stored | UploadState::Failed) {
            return progress;
        }
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn read_all(site: &Site, read: &ReadRequest) -> Vec<u8> {
    let mut reader = site.read(read).await.unwrap();
    let mut all = Vec::new();
    while let Some(piece) = reader.chunk().await.unwrap() {
        all.extend_from_slice(&piece);
    }
    all
}

fn segment(offset: u64, bytes: &Bytes) -> Segment {
    Segment { offset, bytes: bytes.clone(), ..Segment::default() }
}

pub(crate) fn object(path: &str) -> ReadRequest {
    ReadRequest { project: "p".to_owned(), path: path.to_owned(), ..ReadRequest::default() }
}

#[test]
fn a_file_is_created_appended_resumed_and_stored() {
    let world = World::new();
    run(async {
        let site = world.site();
        let abilities = site.abilities().await.unwrap();
        assert!(abilities.has(Extension::CreationWithUpload) && abilities.has(Extension::Checksum));
        assert!(abilities.max_size.is_some_and(|size| size > 1 << 40));
        let bytes = contents(1, 3_500_000);
        let first = bytes.slice(..1_000_000);
        let created = site.create(&upload("a b/ü%?#.dat", None, Some(first))).await.unwrap();
        assert_eq!(created.offset, 1_000_000);
        // The address survives as text, as a ledger keeps it.
        let address: UploadAddress = created.address.to_string().parse().unwrap();
        let progress = site.progress(&address, None).await.unwrap();
        assert_eq!(
            (progress.state, progress.offset, progress.length),
            (UploadState::Receiving, 1_000_000, None)
        );
        let appended = site.append(&address, &segment(1_000_000, &bytes.slice(1_000_000..3_000_000))).await;
        let appended = appended.unwrap();
        assert_eq!((appended.offset, appended.wire_bytes), (3_000_000, 2_000_000));
        assert!(appended.timings.total > Duration::ZERO);
        // Another client of the same address resumes from the hashes.
        let site = world.site();
        let page = site.blocks(&address, 1).await.unwrap();
        assert_eq!((page.offset, page.first, page.next, page.block_bytes), (3_000_000, 1, None, 1 << 20));
        assert_eq!(page.blocks, [blake3::hash(&bytes[1 << 20..2 << 20])]);
        if site.abilities().await.unwrap().has_site(SiteExtension::Tail) {
            assert_eq!(page.tail, Some(blake3::hash(&bytes[2 << 20..3_000_000])));
        }
        let last = Segment {
            length: Some(bytes.len() as u64),
            compress: true,
            ..segment(3_000_000, &bytes.slice(3_000_000..))
        };
        assert_eq!(site.append(&address, &last).await.unwrap().offset, bytes.len() as u64);
        let progress = settled(&site, &address).await;
        assert_eq!((progress.state, progress.offset), (UploadState::Stored, bytes.len() as u64));
        assert!(progress.version.is_some());
        if abilities.has_site(SiteExtension::Wait) {
            assert_eq!(progress.blake3, Some(blake3::hash(&bytes)));
        }
        assert_eq!(read_all(&site, &object("a b/ü%?#.dat")).await, bytes);
    });
}

#[test]
fn errors_tell_the_kind_and_the_offset() {
    let world = World::new();
    run(async {
        let site = world.site();
        let bytes = contents(2, 1000);
        let created = site.create(&upload("f", Some(1000), Some(bytes.slice(..400)))).await.unwrap();
        let address = created.address;
        let error = site.append(&address, &segment(300, &bytes.slice(300..))).await.unwrap_err();
        assert_eq!((error.kind, error.offset), (RemoteErrorKind::OffsetMismatch, Some(400)));
        assert_eq!(
            error.message,
            format!(
                "cannot append to {address}: it has 400 bytes, the request begins at 300; ask HEAD for the offset"
            )
        );
        let error = site.append(&address, &segment(400, &contents(3, 601))).await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::TooLarge);
        site.terminate(&address).await.unwrap();
        let error = site.append(&address, &segment(400, &bytes.slice(400..))).await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::Gone);
        assert_eq!(site.progress(&address, None).await.unwrap_err().kind, RemoteErrorKind::Gone);
        let error = site.create(&upload("../f", Some(0), None)).await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::Refused);
        let address = format!("{}/files/00000000000000000000000000000000", world.server.url());
        let error = site.progress(&address.parse().unwrap(), None).await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::NotFound);
    });
}

#[test]
fn a_token_grants_its_project_only() {
    use holdfast_server::{NewToken, ProjectName, Scope, Scopes};
    let world = World::new();
    let new = NewToken {
        account: None,
        name: "test".to_owned(),
        scopes: Scopes::of(&[Scope::Write]),
        project: Some(ProjectName::parse("p").unwrap()),
        expires: None,
    };
    let (_, token) = world.server.tokens().create(new).unwrap();
    run(async {
        let of = |token: Option<&str>| {
            let endpoint = holdfast_remote::Endpoint { token: token.map(str::to_owned), ..world.endpoint() };
            Site::connect(&endpoint).unwrap()
        };
        for bad in [None, Some("hft_0000000000000000_00"), Some("nonsense")] {
            let error = of(bad).create(&upload("f", Some(0), None)).await.unwrap_err();
            assert_eq!(error.kind, RemoteErrorKind::Unauthorized, "{bad:?}");
            assert!(!error.message.contains("hft_0"), "{error}");
        }
        let site = of(Some(&format!("{token}\n")));
        site.create(&upload("f", Some(0), None)).await.unwrap();
        let other = NewUpload { project: Some("other".to_owned()), ..upload("f", Some(0), None) };
        assert_eq!(site.create(&other).await.unwrap_err().kind, RemoteErrorKind::Forbidden);
        assert_eq!(site.list("p", None).await.unwrap_err().kind, RemoteErrorKind::Forbidden);
    });
}

#[test]
fn partial_uploads_are_concatenated() {
    let world = World::new();
    run(async {
        let site = world.site();
        let bytes = contents(4, 2_000_000);
        let mut parts = Vec::new();
        for part in [bytes.slice(..1_200_000), bytes.slice(1_200_000..)] {
            let created = site.create_partial(part.len() as u64, Some(&part)).await.unwrap();
            assert_eq!(created.offset, part.len() as u64);
            parts.push(created.address);
        }
        let whole = site.concatenate(&parts, &upload("whole", None, None)).await.unwrap();
        assert_eq!(settled(&site, &whole.address).await.state, UploadState::Stored);
        assert_eq!(read_all(&site, &object("whole")).await, bytes);
    });
}

#[test]
fn segments_ahead_and_renames_need_a_site_that_has_them() {
    let world = World::new();
    run(async {
        let site = world.site();
        let abilities = site.abilities().await.unwrap();
        let bytes = contents(5, 3000);
        let address = site.create(&upload("old", Some(3000), None)).await.unwrap().address;
        let ahead = |start: usize| Segment {
            ahead: true,
            ..segment(start as u64, &bytes.slice(start..start + 1000))
        };
        if abilities.has_site(SiteExtension::Ahead) {
            let (last, middle, first) = (ahead(2000), ahead(1000), ahead(0));
            let results = tokio::join!(
                site.append(&address, &last),
                site.append(&address, &middle),
                site.append(&address, &first)
            );
            assert_eq!(results.0.unwrap().offset, 3000);
            assert_eq!((results.1.unwrap().offset, results.2.unwrap().offset), (2000, 1000));
            settled(&site, &address).await;
            assert_eq!(read_all(&site, &object("old")).await, bytes);
        } else {
            let error = site.append(&address, &ahead(1000)).await.unwrap_err();
            assert_eq!(error.kind, RemoteErrorKind::Unsupported);
        }
        if abilities.has_site(SiteExtension::Path) {
            let address = site.create(&upload("old2", Some(3000), None)).await.unwrap().address;
            site.rename(&address, "new").await.unwrap();
            site.append(&address, &segment(0, &bytes)).await.unwrap();
            settled(&site, &address).await;
            assert_eq!(read_all(&site, &object("new")).await, bytes);
        }
    });
}

#[test]
fn compressible_segments_are_shorter_on_the_wire() {
    let world = World::new();
    run(async {
        let site = world.site();
        let has_zstd = site.abilities().await.unwrap().has_site(SiteExtension::Zstd);
        let bytes = Bytes::from(vec![7; 100_000]);
        let address = site.create(&upload("zeros", Some(100_000), None)).await.unwrap().address;
        let compressed = Segment { compress: true, ..segment(0, &bytes) };
        let appended = site.append(&address, &compressed).await.unwrap();
        assert_eq!((appended.offset, appended.wire_bytes < 1000), (100_000, has_zstd));
        settled(&site, &address).await;
        assert_eq!(read_all(&site, &object("zeros")).await, bytes);
    });
}

#[test]
fn a_failed_upload_tells_its_reason() {
    let world = World::new();
    run(async {
        let site = world.site();
        let part = contents(6, 2 << 20);
        let created = site.create_partial(part.len() as u64, Some(&part)).await.unwrap();
        // The disk of the server changes a byte of the part.
        let id = created.address.to_string().rsplit('/').next().unwrap().to_owned();
        let files =
            std::fs::read_dir(world.data().join("uploads")).unwrap().map(|entry| entry.unwrap().path());
        let file = files.into_iter().find(|path| path.to_str().unwrap().contains(&id)).unwrap();
        let file = std::fs::File::options().write(true).open(file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[part[0] ^ 1], 0).unwrap();
        let whole = site.concatenate(&[created.address], &upload("whole", None, None)).await.unwrap();
        let progress = settled(&site, &whole.address).await;
        assert_eq!(progress.state, UploadState::Failed);
        assert!(progress.reason.as_ref().unwrap().contains("block 0 of its part"), "{progress:?}");
    });
}
