//! Checksums of bodies: all algorithms, mismatches that keep nothing, and cut bodies that keep nothing either.

use crate::client::{contents, metadata};
use crate::world::World;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Digest as _;

pub(crate) fn checksum(algorithm: &str, bytes: &[u8]) -> String {
    let digest = match algorithm {
        "sha1" => sha1::Sha1::digest(bytes).to_vec(),
        "sha256" => sha2::Sha256::digest(bytes).to_vec(),
        _ => blake3::hash(bytes).as_bytes().to_vec(),
    };
    format!("{algorithm} {}", STANDARD.encode(digest))
}

#[test]
fn a_mismatch_keeps_nothing_and_a_match_keeps_all() {
    let world = World::with(|options| options.limits.sync_bytes = 1);
    let client = world.client();
    let bytes = contents(1, 2_500_000);
    let upload = client.create("sums", Some(bytes.len() as u64 * 3));
    let file = world.data().join("uploads").join(upload.trim_start_matches("/files/"));
    let mut offset = 0;
    for algorithm in ["sha1", "sha256", "blake3"] {
        let wrong = checksum(algorithm, b"other");
        let refused = client.patch(&upload, offset, &[("Upload-Checksum", &wrong)], &bytes).expect(460);
        assert_eq!((refused.problem().as_str(), refused.offset()), ("checksum-mismatch", offset));
        assert_eq!(client.settled_offset(&upload), offset);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), offset);
        let right = checksum(algorithm, &bytes);
        // A cut body cannot be checked, so that it keeps nothing.
        client.cut_patch(&upload, offset, &[("Upload-Checksum", &right)], &bytes, 2_000_000);
        assert_eq!(client.settled_offset(&upload), offset);
        offset = client.patch(&upload, offset, &[("Upload-Checksum", &right)], &bytes).expect(204).offset();
    }
    assert_eq!(client.get(&upload).expect(200).body, bytes.repeat(3));
    let blocks = client.get(&format!("{upload}/blocks")).expect(200).json();
    let whole = bytes.repeat(3);
    let expected: Vec<_> =
        whole.chunks_exact(1 << 20).map(|block| blake3::hash(block).to_hex().to_string()).collect();
    assert_eq!(blocks["blocks"], serde_json::json!(expected));
}

#[test]
fn unknown_algorithms_and_malformed_headers_are_refused() {
    let client_world = World::new();
    let client = client_world.client();
    let upload = client.create("sums", Some(5));
    for (header, problem) in [
        ("md5 XUFAKrxLKna5cZ2REBfFkg==", "unknown-checksum"),
        ("SHA1 qvTGHdzF6KLavt4PO0gs2a6pQ00=", "unknown-checksum"),
        ("sha1", "bad-request"),
        ("sha1 AAAA", "bad-request"),
        ("sha1 *", "bad-request"),
    ] {
        let refused = client.patch(&upload, 0, &[("Upload-Checksum", header)], b"hello").expect(400);
        assert_eq!(refused.problem(), problem, "{header}");
        assert_eq!(client.head(&upload).offset(), 0);
    }
    let example = "sha1 qvTGHdzF6KLavt4PO0gs2a6pQ00=";
    client.patch(&upload, 0, &[("Upload-Checksum", example)], b"hello").expect(204);
}

#[test]
fn a_creation_with_a_wrong_checksum_leaves_no_upload() {
    let world = World::new();
    let client = world.client();
    let named = metadata(&[("path", "sums")]);
    let send = |sum: &str| {
        let headers = [
            ("Upload-Length", "5"),
            ("Upload-Metadata", named.as_str()),
            ("Content-Type", "application/offset+octet-stream"),
            ("Upload-Checksum", sum),
        ];
        client.tus("POST", "/files/", &headers, b"hello")
    };
    send(&checksum("blake3", b"other")).expect(460);
    assert_eq!(std::fs::read_dir(world.data().join("uploads")).unwrap().count(), 0);
    assert_eq!(send(&checksum("blake3", b"hello")).expect(201).offset(), 5);
}
