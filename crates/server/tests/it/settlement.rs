//! End of an upload as a shipper sees it: hash, waiting, failure, timing, the unfinished block, and renames.

use crate::client::{Client, contents, metadata};
use crate::world::World;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;

fn hex(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

#[test]
fn a_stored_upload_has_the_hash_of_its_contents() {
    let mut world = World::new();
    let client = world.client();
    let bytes = contents(1, 1_500_000);
    let upload = client.create("h", Some(bytes.len() as u64));
    let head = client.head(&upload).expect(200);
    assert_eq!(head.header("holdfast-blake3"), None);
    client.patch(&upload, 0, &[], &bytes).expect(204);
    let waited = client.tus("HEAD", &format!("{upload}?wait=30"), &[], &[]).expect(200);
    assert_eq!(waited.header("holdfast-state"), Some("stored"));
    assert_eq!(waited.header("holdfast-blake3"), Some(hex(&bytes).as_str()));
    let client = world.restart();
    for answer in [client.head(&upload).expect(200), client.patch(&upload, 1_500_000, &[], &[]).expect(204)] {
        assert_eq!(answer.header("holdfast-blake3"), Some(hex(&bytes).as_str()));
    }
    let empty = client.upload("empty", b"");
    let waited = client.tus("HEAD", &format!("{empty}?wait=30"), &[], &[]).expect(200);
    assert_eq!(waited.header("holdfast-blake3"), Some(hex(b"").as_str()));
}

#[test]
fn waiting_ends_with_its_time_a_failure_or_a_termination() {
    let world = World::new();
    let client = world.client();
    let upload = client.create("w", Some(2_000_000));
    let wait =
        |upload: &str, seconds: &str| client.tus("HEAD", &format!("{upload}?wait={seconds}"), &[], &[]);
    assert_eq!(wait(&upload, "0").expect(200).header("holdfast-state"), Some("receiving"));
    assert_eq!(wait(&upload, "x").status, 400);
    // A partial upload is at its end when it is complete.
    assert_eq!(wait(&client.partial(b"part"), "30").expect(200).header("holdfast-state"), Some("complete"));
    let gone = client.create("g", Some(5));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&gone, "30"));
        client.tus("DELETE", &gone, &[], &[]).expect(204);
        assert_eq!(waiting.join().unwrap().status, 410);
    });
    client.patch(&upload, 0, &[], &contents(1, 1_999_999)).expect(204);
    let file = world.data().join("uploads").join(upload.trim_start_matches("/files/"));
    std::fs::File::options().write(true).open(&file).unwrap().write_all_at(b"rot", 500).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| wait(&upload, "30"));
        client.patch(&upload, 1_999_999, &[], b"x").expect(204);
        let failed = waiting.join().unwrap().expect(409);
        assert_eq!(failed.header("holdfast-state"), Some("failed"));
        let reason = "block 0 of its file is not as it was received";
        assert_eq!(failed.header("holdfast-reason"), Some(reason));
        let json = client.get(&upload).expect(409).json();
        assert!(json["detail"].as_str().unwrap().contains(reason), "{json}");
    });
}

#[test]
fn answers_to_bodies_have_the_times_of_the_server() {
    let world = World::new();
    let client = world.client();
    let named = metadata(&[("path", "t")]);
    let headers = [
        ("Upload-Length", "10"),
        ("Upload-Metadata", named.as_str()),
        ("Content-Type", "application/offset+octet-stream"),
    ];
    let created = client.tus("POST", "/files/", &headers, b"12345").expect(201);
    let upload = created.header("location").unwrap();
    let patched = client.patch(upload, 5, &[], b"67").expect(204);
    for answer in [&created, &patched] {
        let timing = answer.header("server-timing").unwrap();
        let parts: Vec<_> = timing.split(", ").map(|part| part.split_once(";dur=").unwrap()).collect();
        assert_eq!((parts[0].0, parts[1].0, parts.len()), ("receive", "store", 2));
        for (_, milliseconds) in parts {
            assert!(milliseconds.parse::<f64>().is_ok_and(|time| time >= 0.0), "{timing}");
            assert_eq!(milliseconds.split_once('.').map(|(_, decimals)| decimals.len()), Some(3), "{timing}");
        }
    }
    assert_eq!(client.patch(upload, 7, &[], b"").expect(204).header("server-timing"), None);
}

#[test]
fn the_unfinished_block_has_a_hash_in_every_state() {
    let mut world = World::new();
    let client = world.client();
    let bytes = contents(1, (2 << 20) + 777);
    let upload = client.create("b", Some(bytes.len() as u64));
    let tail =
        |client: &Client| client.get(&format!("{upload}/blocks")).expect(200).json()["tail_blake3"].clone();
    assert_eq!(tail(&client), serde_json::Value::Null);
    for cut in [1000, 1 << 20, (1 << 20) + 1, 1_900_000] {
        let offset = client.head(&upload).expect(200).offset() as usize;
        client.patch(&upload, offset as u64, &[], &bytes[offset..cut]).expect(204);
        let rest = &bytes[cut - cut % (1 << 20)..cut];
        let expected = if rest.is_empty() { serde_json::Value::Null } else { hex(rest).into() };
        assert_eq!(tail(&client), expected, "{cut}");
    }
    let client = world.restart();
    assert_eq!(tail(&client), hex(&bytes[1 << 20..1_900_000]));
    client.patch(&upload, 1_900_000, &[], &bytes[1_900_000..]).expect(204);
    assert_eq!(tail(&client), hex(&bytes[2 << 20..]));
    world.until_stored(&upload);
    assert_eq!(tail(&client), hex(&bytes[2 << 20..]));
}

fn rename(client: &Client, upload: &str, body: &str) -> crate::client::Response {
    let json = [("Content-Type", "application/json")];
    client.send("POST", &format!("{upload}/path"), &json, body.as_bytes())
}

#[test]
fn an_unfinished_upload_is_renamed_durably() {
    let mut world = World::new();
    let client = world.client();
    let upload = client.create("old", Some(10));
    client.patch(&upload, 0, &[], b"12345").expect(204);
    for (body, status) in [
        ("{\"path\":\"../x\"}", 400),
        ("{\"path\":\"x\",\"project\":\"y\"}", 400),
        ("{}", 400),
        ("", 400),
        ("{\"path\":\"new/name\"}", 204),
    ] {
        assert_eq!(rename(&client, &upload, body).status, status, "{body}");
    }
    let client = world.restart();
    client.get("/projects/default/old").expect(404);
    assert_eq!(client.get("/projects/default/new/name").expect(200).body, b"12345");
    // A rename waits for the request that holds the lock.
    let mut slow = client.start_patch(&upload, 5, &[], 5);
    slow.write_all(b"6").unwrap();
    std::thread::scope(|scope| {
        let renamed = scope.spawn(|| rename(&client, &upload, "{\"path\":\"newer\"}"));
        slow.shutdown(std::net::Shutdown::Write).unwrap();
        drop(crate::client::finish(slow));
        renamed.join().unwrap().expect(204);
    });
    let offset = client.settled_offset(&upload);
    client.patch(&upload, offset, &[], &b"1234567890"[offset as usize..]).expect(204);
    world.until_stored(&upload);
    assert_eq!(client.get("/projects/default/newer").expect(200).body, b"1234567890");
    let refused = rename(&client, &upload, "{\"path\":\"late\"}").expect(409);
    assert_eq!(refused.problem(), "already-complete");
    rename(&client, &client.partial(b"part"), "{\"path\":\"x\"}").expect(400).problem();
    client.tus("DELETE", &upload, &[], &[]).expect(204);
    rename(&client, &upload, "{\"path\":\"x\"}").expect(410);
    rename(&client, "/files/0", "{\"path\":\"x\"}").expect(404);
}
