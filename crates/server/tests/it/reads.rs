//! Reads of finished and growing contents: ranges, entity tags, following, and block hashes.

use crate::client::{Client, contents, finish};
use crate::world::World;
use std::io::{Read as _, Write as _};

#[test]
fn ranges_of_a_stored_object_are_those_of_rfc_9110() {
    let world = World::new();
    let client = world.client();
    let bytes = contents(1, 700_000);
    world.until_stored(&client.upload("r", &bytes));
    let path = "/projects/default/r";
    let whole = client.get(path).expect(200);
    assert_eq!(whole.header("content-length"), Some("700000"));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    assert_eq!(whole.header("holdfast-state"), Some("stored"));
    let etag = whole.header("etag").unwrap().to_owned();
    assert_eq!(etag, format!("\"{}\"", blake3::hash(&bytes).to_hex()));
    for (range, expected, described) in [
        ("bytes=0-0", &bytes[..1], "bytes 0-0/700000"),
        ("bytes=5-9", &bytes[5..10], "bytes 5-9/700000"),
        ("bytes=699990-", &bytes[699_990..], "bytes 699990-699999/700000"),
        ("bytes=-7", &bytes[699_993..], "bytes 699993-699999/700000"),
        ("bytes=1-999999999", &bytes[1..], "bytes 1-699999/700000"),
    ] {
        let part = client.send("GET", path, &[("Range", range)], &[]).expect(206);
        assert_eq!(
            (part.body.as_slice(), part.header("content-range")),
            (expected, Some(described)),
            "{range}"
        );
    }
    for range in ["bytes=700000-", "bytes=-0"] {
        let none = client.send("GET", path, &[("Range", range)], &[]).expect(416);
        assert_eq!(none.header("content-range"), Some("bytes */700000"), "{range}");
        none.problem();
    }
    for range in ["bytes=0-1,3-4", "bytes=9-5", "lines=1-2", "bytes=x"] {
        assert_eq!(client.send("GET", path, &[("Range", range)], &[]).expect(200).body, bytes, "{range}");
    }
    let first = ("Range", "bytes=0-9");
    client.send("GET", path, &[first, ("If-Range", &etag)], &[]).expect(206);
    client.send("GET", path, &[first, ("If-Range", "\"other\"")], &[]).expect(200);
    let known = client.send("GET", path, &[("If-None-Match", &etag)], &[]).expect(304);
    assert!(known.body.is_empty());
    let head = client.send("HEAD", path, &[], &[]).expect(200);
    assert_eq!((head.header("content-length"), head.body.len()), (Some("700000"), 0));
    client.upload("empty", b"");
    crate::status::until(&client, || client.get("/projects/default/empty").status == 200);
    assert!(client.get("/projects/default/empty").expect(200).body.is_empty());
}

#[test]
fn a_growing_upload_is_read_as_far_as_it_is_durable() {
    let world = World::new();
    let client = world.client();
    let bytes = contents(2, 3000);
    let upload = client.create("g", None);
    client.patch(&upload, 0, &[], &bytes[..1000]).expect(204);
    for path in [upload.as_str(), "/projects/default/g"] {
        let grown = client.get(path).expect(200);
        assert_eq!(
            (grown.body.as_slice(), grown.header("holdfast-state")),
            (&bytes[..1000], Some("receiving"))
        );
        assert_eq!(grown.header("cache-control"), Some("no-store"));
        let part = client.send("GET", path, &[("Range", "bytes=990-1999")], &[]).expect(206);
        assert_eq!(
            (part.body.as_slice(), part.header("content-range")),
            (&bytes[990..1000], Some("bytes 990-999/*"))
        );
        let none = client.send("GET", path, &[("Range", "bytes=1000-")], &[]).expect(416);
        assert_eq!(none.header("content-range"), Some("bytes */1000"));
    }
    client.patch(&upload, 1000, &[("Upload-Length", "3000")], &bytes[1000..2000]).expect(204);
    let part = client.send("GET", &upload, &[("Range", "bytes=-5")], &[]).expect(206);
    assert_eq!(part.header("content-range"), Some("bytes 1995-1999/3000"));
    let listing = client.get("/projects/default").expect(200).json();
    assert_eq!(listing["growing"][0]["offset"], 2000);
    assert_eq!(listing["growing"][0]["upload"], upload.trim_start_matches("/files/"));
    client.patch(&upload, 2000, &[], &bytes[2000..]).expect(204);
    assert_eq!(client.get("/projects/default/g").expect(200).body, bytes);
}

/// Reads the head of an answer and the first `count` bytes of a body with known length, and returns the stream.
fn follow(client: &Client, path: &str, headers: &[(&str, &str)]) -> std::net::TcpStream {
    client.start("GET", path, headers, None)
}

#[test]
fn a_follower_gets_all_bytes_until_the_upload_is_complete() {
    let mut world = World::with(|options| options.limits.sync_bytes = 1);
    let client = world.client();
    let bytes = contents(3, 900_000);
    for known in [true, false] {
        let name = format!("follow-{known}");
        let upload = client.create(&name, known.then_some(bytes.len() as u64));
        client.patch(&upload, 0, &[], &bytes[..300_000]).expect(204);
        let by_path = follow(&client, &format!("/projects/default/{name}?follow"), &[]);
        let by_id = follow(&client, &format!("{upload}?follow=true"), &[]);
        let part = follow(&client, &format!("{upload}?follow"), &[("Range", "bytes=250000-")]);
        let ahead = follow(&client, &format!("{upload}?follow"), &[("Range", "bytes=800000-")]);
        let readers: Vec<_> = [by_path, by_id, part, ahead]
            .into_iter()
            .map(|stream| std::thread::spawn(move || finish(stream).unwrap()))
            .collect();
        client.cut_patch(&upload, 300_000, &[], &bytes[300_000..], 100_000);
        let offset = client.settled_offset(&upload) as usize;
        client.patch(&upload, offset as u64, &[("Upload-Length", "900000")], &bytes[offset..]).expect(204);
        let answers: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        for (answer, start) in answers.iter().zip([0, 0, 250_000, 800_000]) {
            assert_eq!(answer.body, &bytes[start..], "{known} {start}");
        }
        assert_eq!((answers[0].status, answers[2].status), (200, 206));
        let described = answers[2].header("content-range").unwrap();
        let expected = if known { "bytes 250000-899999/900000" } else { "bytes 250000-9007199254740990/*" };
        assert_eq!(described, expected);
        world.until_stored(&upload);
        assert_eq!(client.get(&format!("/projects/default/{name}?follow")).expect(200).body, bytes);
    }
    world.stop();
}

#[test]
fn a_follower_sees_that_an_upload_was_given_up() {
    let world = World::new();
    let client = world.client();
    let upload = client.create("given-up", Some(10));
    client.patch(&upload, 0, &[], b"12345").expect(204);
    let mut stream = follow(&client, &format!("{upload}?follow"), &[]);
    let mut answer = Vec::new();
    let mut byte = [0; 1];
    while !answer.ends_with(b"12345") {
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    client.tus("DELETE", &upload, &[], &[]).expect(204);
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    // The announced length was 10, so that the client knows that the contents are not complete.
    assert!(rest.is_empty());
    assert!(String::from_utf8_lossy(&answer).to_lowercase().contains("content-length: 10\r\n"));
}

#[test]
fn a_slow_body_is_visible_before_it_ends() {
    let world = World::with(|options| options.limits.sync_time = std::time::Duration::from_millis(1));
    let client = world.client();
    let upload = client.create("slow", Some(10));
    let mut slow = client.start_patch(&upload, 0, &[], 10);
    slow.write_all(b"12345").unwrap();
    crate::status::until(&client, || client.head(&upload).expect(200).offset() == 5);
    assert_eq!(client.get(&upload).expect(200).body, b"12345");
    slow.write_all(b"67890").unwrap();
    finish(slow).unwrap().expect(204);
}

#[test]
fn block_hashes_tell_a_changed_prefix() {
    let mut world = World::new();
    let client = world.client();
    let bytes = contents(4, (5 << 20) + 123);
    let upload = client.create("blocks", None);
    client.patch(&upload, 0, &[], &bytes[..3_000_000]).expect(204);
    let client = world.restart();
    client.patch(&upload, 3_000_000, &[], &bytes[3_000_000..]).expect(204);
    let json = client.get(&format!("{upload}/blocks")).expect(200).json();
    let hashes: Vec<_> =
        bytes.chunks_exact(1 << 20).map(|block| blake3::hash(block).to_hex().to_string()).collect();
    assert_eq!(json["blocks"], serde_json::json!(hashes));
    assert_eq!((&json["block_bytes"], &json["offset"]), (&(1 << 20).into(), &bytes.len().into()));
    assert_eq!((&json["length"], &json["next"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let page = client.get(&format!("{upload}/blocks?first=1&count=2")).expect(200).json();
    assert_eq!(page["blocks"], serde_json::json!(hashes[1..3]));
    assert_eq!((&page["first"], &page["next"]), (&1.into(), &3.into()));
    client.get(&format!("{upload}/blocks?first=x")).expect(400).problem();
    assert_eq!(
        client.get(&format!("{upload}/blocks?first=99")).expect(200).json()["blocks"],
        serde_json::json!([])
    );
}
