//! Bodies with `Content-Encoding: zstd`: offsets and checksums of the decoded bytes, bombs, and damaged frames.

use crate::checksums::checksum;
use crate::client::{contents, metadata};
use crate::world::World;

const ZSTD: (&str, &str) = ("Content-Encoding", "zstd");

fn encode(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn encoded_bodies_are_decoded_before_they_count() {
    let world = World::new();
    let client = world.client();
    let bytes = [contents(1, 100_000), vec![7; 200_000], contents(2, 10)].concat();
    let named = metadata(&[("path", "z")]);
    let sum = checksum("blake3", &bytes[..100_000]);
    let headers = [
        ("Upload-Length", "300010"),
        ("Upload-Metadata", named.as_str()),
        ("Content-Type", "application/offset+octet-stream"),
        ("Upload-Checksum", &sum),
        ZSTD,
    ];
    let created = client.tus("POST", "/files/", &headers, &encode(&bytes[..100_000])).expect(201);
    assert_eq!(created.offset(), 100_000);
    let upload = created.header("location").unwrap();
    // The same body with another checksum leaves no upload behind.
    let mut other = headers;
    let wrong = checksum("blake3", b"other");
    other[3].1 = &wrong;
    client.tus("POST", "/files/", &other, &encode(&bytes[..100_000])).expect(460);
    assert_eq!(std::fs::read_dir(world.data().join("uploads")).unwrap().count(), 1);

    let body = encode(&bytes[100_000..200_000]);
    assert!(body.len() < 1000);
    client.patch(upload, 100_000, &[ZSTD, ("Upload-Checksum", &wrong)], &body).expect(460);
    let sum = checksum("sha1", &bytes[100_000..200_000]);
    let patched = client.patch(upload, 100_000, &[ZSTD, ("Upload-Checksum", &sum)], &body).expect(204);
    assert_eq!(patched.offset(), 200_000);
    // An encoded segment ahead, and one whose encoded form is longer than its bytes.
    let sum = checksum("blake3", &bytes[300_000..]);
    let ahead = [ZSTD, ("Holdfast-Ahead", "1"), ("Upload-Checksum", sum.as_str())];
    std::thread::scope(|scope| {
        let last = scope.spawn(|| client.patch(upload, 300_000, &ahead, &encode(&bytes[300_000..])));
        client.patch(upload, 200_000, &[ZSTD], &encode(&bytes[200_000..300_000])).expect(204);
        last.join().unwrap().expect(204);
    });
    assert_eq!(client.get(upload).expect(200).body, bytes);
}

#[test]
fn bombs_damaged_frames_and_other_encodings_keep_nothing() {
    let world = World::new();
    let client = world.client();
    let upload = client.create("z", Some(100 << 20));
    let refuse = |encoding: &str, body: &[u8], status: u16, problem: &str| {
        let refused = client.patch(&upload, 0, &[("Content-Encoding", encoding)], body).expect(status);
        assert_eq!(refused.problem(), problem);
        assert_eq!(client.settled_offset(&upload), 0);
        refused
    };
    refuse("zstd", &encode(&vec![0; (8 << 20) + 1]), 413, "too-large");
    refuse("zstd", &contents(1, (8 << 20) + 100_000), 413, "too-large");
    let frame = encode(&contents(1, 10_000));
    refuse("zstd", &frame[..frame.len() - 1], 400, "bad-request");
    refuse("zstd", b"no frame at all", 400, "bad-request");
    for other in ["gzip", "zstd, zstd", "br"] {
        let refused = refuse(other, b"x", 415, "wrong-media-type");
        assert_eq!(refused.header("accept-encoding"), Some("zstd"));
    }
    let short = client.create("s", Some(5));
    assert_eq!(client.patch(&short, 0, &[ZSTD], &encode(b"123456")).expect(413).offset(), 0);
    client.patch(&short, 0, &[("Content-Encoding", "identity")], b"12345").expect(204);
    let most = vec![1; 8 << 20];
    assert_eq!(client.patch(&upload, 0, &[ZSTD], &encode(&most)).expect(204).offset(), 8 << 20);
    // A cut body keeps nothing, unlike one that is not encoded.
    client.cut_patch(&upload, 8 << 20, &[ZSTD], &frame, frame.len() / 2);
    assert_eq!(client.settled_offset(&upload), 8 << 20);
}
