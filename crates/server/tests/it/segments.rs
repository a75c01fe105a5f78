//! Segments ahead of an upload's offset: order, damage, repetition, distance, memory, and the end of waiting.

use crate::checksums::checksum;
use crate::client::{Client, contents, finish};
use crate::status::until;
use crate::world::World;
use proptest::prelude::*;
use std::io::Write as _;
use std::time::Duration;

const AHEAD: (&str, &str) = ("Holdfast-Ahead", "1");

/// Segment of a generated upload.
#[derive(Clone, Debug)]
struct Segment {
    length: usize,
    /// Sent with other bytes than those of its checksum before it is sent whole.
    damaged: bool,
    /// Sent over two connections at the same time.
    twice: bool,
    /// Place in the random order of sending.
    order: u32,
}

fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let length = prop_oneof![1_usize..3000, 1_usize..400_000];
    let segment = (length, prop::bool::weighted(0.2), prop::bool::weighted(0.1), any::<u32>());
    let segment =
        segment.prop_map(|(length, damaged, twice, order)| Segment { length, damaged, twice, order });
    prop::collection::vec(segment, 1..10)
}

fn send(client: &Client, upload: &str, start: usize, bytes: &[u8], segment: &Segment) {
    if segment.damaged {
        let sum = checksum("blake3", bytes);
        let mut other = bytes.to_vec();
        other[segment.length / 2] ^= 1;
        let headers = [AHEAD, ("Upload-Checksum", sum.as_str())];
        client.patch(upload, start as u64, &headers, &other).expect(460);
    }
    let first = client.patch_ahead(upload, start as u64, bytes);
    assert!(first.status == 204 || segment.twice && first.status == 409, "{first:?}");
    assert!(first.offset() >= (start + bytes.len()) as u64, "{first:?}");
}

fn run(seed: u64, segments: &[Segment], deferred: bool) {
    let world = World::new();
    let client = world.client();
    let bytes = contents(seed, segments.iter().map(|segment| segment.length).sum());
    let upload = client.create("s", (!deferred).then_some(bytes.len() as u64));
    let mut start = 0;
    let mut placed = Vec::new();
    for segment in segments {
        placed.push((start, segment));
        start += segment.length;
    }
    placed.sort_by_key(|(_, segment)| segment.order);
    std::thread::scope(|scope| {
        for (start, segment) in placed {
            let bytes = &bytes[start..start + segment.length];
            for _ in 0..=usize::from(segment.twice) {
                let (client, upload) = (&client, &upload);
                scope.spawn(move || send(client, upload, start, bytes, segment));
            }
        }
    });
    if deferred {
        let length = bytes.len().to_string();
        client.patch(&upload, bytes.len() as u64, &[("Upload-Length", &length)], &[]).expect(204);
    }
    world.until_stored(&upload);
    assert!(client.get("/projects/default/s").expect(200).body == bytes);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 100, ..ProptestConfig::default() })]

    #[test]
    fn segments_in_any_order_assemble_to_the_file(
        seed in 0_u64..1000,
        segments in segments(),
        deferred in any::<bool>(),
    ) {
        run(seed, &segments, deferred);
    }
}

#[test]
fn a_segment_waits_for_a_plain_request_that_holds_the_lock() {
    let world = World::with(|options| options.limits.sync_bytes = 1);
    let client = world.client();
    let bytes = contents(1, 100_000);
    let upload = client.create("w", Some(100_000));
    let mut plain = client.start_patch(&upload, 0, &[], 50_000);
    plain.write_all(&bytes[..20_000]).unwrap();
    until(&client, || client.head(&upload).expect(200).offset() == 20_000);
    std::thread::scope(|scope| {
        // A segment at the offset waits for the lock; when its turn comes, the offset has passed it.
        let equal = scope.spawn(|| client.patch_ahead(&upload, 20_000, &bytes[20_000..30_000]));
        let next = scope.spawn(|| client.patch_ahead(&upload, 50_000, &bytes[50_000..]));
        // Both have arrived when the server has received their bytes.
        let received = |line: &str| line == "holdfast_received_bytes_total 80000";
        until(&client, || {
            let text = client.get("/metrics").expect(200).body;
            String::from_utf8(text).unwrap().lines().any(received)
        });
        plain.write_all(&bytes[20_000..50_000]).unwrap();
        assert_eq!(finish(plain).unwrap().expect(204).offset(), 50_000);
        let passed = equal.join().unwrap().expect(409);
        assert_eq!(passed.problem(), "offset-mismatch");
        assert!(passed.offset() >= 50_000);
        let next = next.join().unwrap().expect(204);
        assert_eq!(next.offset(), 100_000);
        let timing = next.header("server-timing").unwrap();
        let names: Vec<_> = timing.split(", ").map(|part| part.split_once(";dur=").unwrap().0).collect();
        assert_eq!(names, ["receive", "wait", "store"]);
    });
    assert_eq!(client.get(&upload).expect(200).body, bytes);
}

#[test]
fn segments_are_refused_beyond_their_bounds() {
    let world = World::new();
    let client = world.client();
    let upload = client.create("b", Some(100 << 20));
    client.patch_ahead(&upload, 0, b"12345").expect(204);
    let no_sum = client.patch(&upload, 5, &[AHEAD], b"6").expect(400);
    assert_eq!(no_sum.problem(), "bad-request");
    let below = client.patch_ahead(&upload, 4, b"5").expect(409);
    assert_eq!((below.problem().as_str(), below.offset()), ("offset-mismatch", 5));
    let above = client.patch_ahead(&upload, (64 << 20) + 6, b"x").expect(409);
    assert_eq!((above.problem().as_str(), above.offset()), ("offset-mismatch", 5));
    let long = vec![0; (8 << 20) + 1];
    assert_eq!(client.patch_ahead(&upload, 5, &long).expect(413).problem(), "too-large");
    let short = client.create("c", Some(10));
    client.patch_ahead(&short, 5, b"678901").expect(413);
    client.patch_ahead(&short, 11, b"").expect(413);
    // A chunked body announces no length; it is refused when it passes the upload's end.
    let sum = checksum("sha1", b"hello world");
    let headers = [
        ("Tus-Resumable", "1.0.0"),
        ("Content-Type", "application/offset+octet-stream"),
        ("Upload-Offset", "0"),
        ("Transfer-Encoding", "chunked"),
        ("Upload-Checksum", &sum),
        AHEAD,
    ];
    let mut stream = client.start("PATCH", &short, &headers, None);
    stream.write_all(b"b\r\nhello world\r\n0\r\n\r\n").unwrap();
    assert_eq!(finish(stream).unwrap().expect(413).offset(), 0);
    assert_eq!(client.settled_offset(&upload), 5);
    assert_eq!(client.patch_ahead(&upload, 5, &long[1..]).expect(204).offset(), 5 + (8 << 20));
}

#[test]
fn a_segment_whose_turn_does_not_come_is_refused() {
    let world = World::with(|options| options.limits.body_idle = Duration::from_millis(20));
    let client = world.client();
    let upload = client.create("late", Some(10));
    until(&client, || {
        let late = client.patch_ahead(&upload, 5, b"67890");
        assert_eq!(late.offset(), 0);
        // On a busy machine the body may seem to be silent.
        late.status == 409 && late.problem() == "offset-mismatch" || late.expect(408).status == 409
    });
    assert_eq!(client.settled_offset(&upload), 0);
}

#[test]
fn waiting_ends_when_the_upload_is_terminated() {
    let world = World::new();
    let client = world.client();
    let upload = client.create("t", Some(10));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.patch_ahead(&upload, 5, b"67890"));
        until(&client, || {
            let text = String::from_utf8(client.get("/metrics").expect(200).body).unwrap();
            text.contains("holdfast_received_bytes_total 5\n")
        });
        client.tus("DELETE", &upload, &[], &[]).expect(204);
        assert_eq!(waiting.join().unwrap().expect(410).problem(), "gone");
    });
}

#[test]
fn the_memory_of_waiting_segments_is_bounded() {
    let world = World::with(|options| options.limits.ahead_bytes = 1000);
    let client = world.client();
    let bytes = contents(1, 2000);
    let upload = client.create("m", Some(2000));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| client.patch_ahead(&upload, 500, &bytes[500..1400]));
        until(&client, || {
            let text = String::from_utf8(client.get("/metrics").expect(200).body).unwrap();
            text.contains("holdfast_received_bytes_total 900\n")
        });
        let refused = client.patch_ahead(&upload, 1400, &bytes[1400..]).expect(503);
        assert_eq!((refused.problem().as_str(), refused.header("retry-after")), ("busy", Some("1")));
        // The segment for which all others wait needs no memory.
        client.patch_ahead(&upload, 0, &bytes[..500]).expect(204);
        waiting.join().unwrap().expect(204);
    });
    // The memory is free again.
    client.patch_ahead(&upload, 1400, &bytes[1400..]).expect(204);
    assert_eq!(client.get(&upload).expect(200).body, bytes);
}

#[test]
fn the_last_segment_may_set_the_length() {
    let world = World::new();
    let client = world.client();
    let upload = client.create("l", None);
    let sum = checksum("sha256", b"67890");
    let headers = [AHEAD, ("Upload-Checksum", sum.as_str()), ("Upload-Length", "10")];
    std::thread::scope(|scope| {
        let last = scope.spawn(|| client.patch(&upload, 5, &headers, b"67890"));
        client.patch_ahead(&upload, 0, b"12345").expect(204);
        assert_eq!(last.join().unwrap().expect(204).offset(), 10);
    });
    world.until_stored(&upload);
    assert_eq!(client.get("/projects/default/l").expect(200).body, b"1234567890");
}
