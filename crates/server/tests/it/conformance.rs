//! Conformance to tus 1.0.0: a table of requests with the status and headers that the specification demands.

use crate::client::{Client, Response, contents, metadata};
use crate::world::World;

const OFFSET_STREAM: (&str, &str) = ("Content-Type", "application/offset+octet-stream");

#[test]
fn options_lists_the_abilities_and_ignores_the_version() {
    let world = World::new();
    for headers in [&[][..], &[("Tus-Resumable", "0.2.2")][..]] {
        for path in ["/files/", "/files"] {
            let response = world.client().send("OPTIONS", path, headers, &[]).expect(204);
            assert_eq!(response.header("tus-resumable"), Some("1.0.0"));
            assert_eq!(response.header("tus-version"), Some("1.0.0"));
            assert_eq!(response.header("tus-max-size"), Some((8_u64 << 40).to_string().as_str()));
            assert_eq!(response.header("tus-checksum-algorithm"), Some("sha1,sha256,blake3"));
            assert_eq!(response.header("holdfast-extensions"), Some("ahead,zstd,tail,path,wait"));
            let extensions: Vec<_> = response.header("tus-extension").unwrap().split(',').collect();
            for extension in [
                "creation",
                "creation-with-upload",
                "creation-defer-length",
                "concatenation",
                "checksum",
                "expiration",
                "termination",
            ] {
                assert!(extensions.contains(&extension), "{extension}");
            }
        }
    }
}

/// Row of the table: name, method, headers, body, status, problem.
type Row<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'a [u8], u16, Option<&'a str>);

fn check(client: &Client, path: &str, rows: &[Row<'_>]) {
    for (name, method, headers, body, status, problem) in rows {
        let response: Response = client.send(method, path, headers, body);
        assert_eq!(response.status, *status, "{name}: {}", String::from_utf8_lossy(&response.body));
        assert_eq!(response.header("tus-resumable"), Some("1.0.0"), "{name}");
        if *status == 412 {
            assert_eq!(response.header("tus-version"), Some("1.0.0"), "{name}");
        }
        if let Some(problem) = problem {
            assert_eq!(response.problem(), *problem, "{name}");
        }
    }
}

#[test]
fn creation_answers_by_the_table() {
    let world = World::new();
    let tus = ("Tus-Resumable", "1.0.0");
    let named = metadata(&[("path", "a/b")]);
    let file = ("Upload-Metadata", named.as_str());
    let length = ("Upload-Length", "5");
    let too_long = ((8_u64 << 40) + 1).to_string();
    let bad = Some("bad-request");
    let final_missing = format!("final;/files/{}", "0".repeat(32));
    let rows: Vec<Row<'_>> = vec![
        ("plain", "POST", vec![tus, length, file], b"", 201, None),
        ("deferred", "POST", vec![tus, ("Upload-Defer-Length", "1"), file], b"", 201, None),
        ("empty file", "POST", vec![tus, ("Upload-Length", "0"), file], b"", 201, None),
        ("partial without name", "POST", vec![tus, length, ("Upload-Concat", "partial")], b"", 201, None),
        ("with bytes", "POST", vec![tus, length, file, OFFSET_STREAM], b"12345", 201, None),
        ("no version", "POST", vec![length, file], b"", 412, Some("wrong-version")),
        (
            "old version",
            "POST",
            vec![("Tus-Resumable", "0.2.2"), length, file],
            b"",
            412,
            Some("wrong-version"),
        ),
        ("no length", "POST", vec![tus, file], b"", 400, bad),
        ("two lengths", "POST", vec![tus, length, ("Upload-Defer-Length", "1"), file], b"", 400, bad),
        ("deferred 2", "POST", vec![tus, ("Upload-Defer-Length", "2"), file], b"", 400, bad),
        ("negative", "POST", vec![tus, ("Upload-Length", "-1"), file], b"", 400, bad),
        (
            "no number",
            "POST",
            vec![tus, ("Upload-Length", "5 "), ("Upload-Length", "6"), file],
            b"",
            400,
            bad,
        ),
        ("plus sign", "POST", vec![tus, ("Upload-Length", "+5"), file], b"", 400, bad),
        ("too long", "POST", vec![tus, ("Upload-Length", &too_long), file], b"", 413, Some("too-large")),
        ("bad metadata", "POST", vec![tus, length, ("Upload-Metadata", "path ?")], b"", 400, bad),
        ("other type", "POST", vec![tus, length, file, ("Content-Type", "text/plain")], b"1", 415, None),
        ("too many bytes", "POST", vec![tus, length, file, OFFSET_STREAM], b"123456", 413, Some("too-large")),
        ("bad concat", "POST", vec![tus, length, file, ("Upload-Concat", "whole")], b"", 400, bad),
        ("no parts", "POST", vec![tus, file, ("Upload-Concat", "final;")], b"", 400, bad),
        (
            "missing part",
            "POST",
            vec![tus, file, ("Upload-Concat", &final_missing)],
            b"",
            404,
            Some("not-found"),
        ),
        ("other method", "PUT", vec![tus], b"", 405, Some("method-not-allowed")),
    ];
    check(&world.client(), "/files/", &rows);
    let plain = world.client().tus("POST", "/files", &[length, file], b"").expect(201);
    assert!(plain.header("location").unwrap().starts_with("/files/"));
    assert!(plain.header("upload-expires").unwrap().ends_with(" GMT"));
}

#[test]
fn continuation_answers_by_the_table() {
    let world = World::new();
    let client = world.client();
    let tus = ("Tus-Resumable", "1.0.0");
    let at = |offset| ("Upload-Offset", offset);
    let upload = client.create("a", Some(10));
    let rows: Vec<Row<'_>> = vec![
        ("no version", "PATCH", vec![OFFSET_STREAM, at("0")], b"x", 412, Some("wrong-version")),
        ("no type", "PATCH", vec![tus, at("0")], b"x", 415, Some("wrong-media-type")),
        ("other type", "PATCH", vec![tus, ("Content-Type", "text/plain"), at("0")], b"x", 415, None),
        ("no offset", "PATCH", vec![tus, OFFSET_STREAM], b"x", 400, Some("bad-request")),
        ("bad offset", "PATCH", vec![tus, OFFSET_STREAM, at("x")], b"x", 400, Some("bad-request")),
        ("gap", "PATCH", vec![tus, OFFSET_STREAM, at("1")], b"x", 409, Some("offset-mismatch")),
        ("first", "PATCH", vec![tus, OFFSET_STREAM, at("0")], b"123", 204, None),
        ("again", "PATCH", vec![tus, OFFSET_STREAM, at("0")], b"123", 409, Some("offset-mismatch")),
        ("too many", "PATCH", vec![tus, OFFSET_STREAM, at("3")], b"12345678", 413, Some("too-large")),
        ("other length", "PATCH", vec![tus, OFFSET_STREAM, at("3"), ("Upload-Length", "9")], b"1", 400, None),
        ("empty", "PATCH", vec![tus, OFFSET_STREAM, at("3")], b"", 204, None),
        (
            "override",
            "POST",
            vec![tus, OFFSET_STREAM, at("3"), ("X-HTTP-Method-Override", "PATCH")],
            b"4567",
            204,
            None,
        ),
        (
            "same length",
            "PATCH",
            vec![tus, OFFSET_STREAM, at("7"), ("Upload-Length", "10")],
            b"890",
            204,
            None,
        ),
        ("after the end", "PATCH", vec![tus, OFFSET_STREAM, at("10")], b"", 204, None),
        ("beyond the end", "PATCH", vec![tus, OFFSET_STREAM, at("10")], b"x", 413, Some("too-large")),
    ];
    check(&client, &upload, &rows);
    assert_eq!(client.get(&upload).expect(200).body, b"1234567890");
    for missing in ["/files/0", &format!("/files/{}", "0".repeat(32)), "/files/%2e%2e", "/files/%ff"] {
        let response = client.patch(missing, 0, &[], b"x");
        assert!(matches!(response.status, 404 | 400), "{missing} {}", response.status);
        response.problem();
    }
}

#[test]
fn head_describes_an_upload() {
    let world = World::new();
    let client = world.client();
    let named = metadata(&[("filename", "x y"), ("note", "é")]);
    let headers = [("Upload-Defer-Length", "1"), ("Upload-Metadata", named.as_str())];
    let created = client.tus("POST", "/files/", &headers, b"").expect(201);
    let upload = created.header("location").unwrap();
    let before = client.head(upload).expect(200);
    assert_eq!(before.offset(), 0);
    assert_eq!(before.header("upload-defer-length"), Some("1"));
    assert_eq!(before.header("upload-length"), None);
    assert_eq!(before.header("upload-metadata"), Some(named.as_str()));
    assert_eq!(before.header("cache-control"), Some("no-store"));
    assert_eq!(before.header("tus-resumable"), Some("1.0.0"));
    assert_eq!(before.header("holdfast-state"), Some("receiving"));
    assert!(before.header("upload-expires").is_some());
    assert!(before.body.is_empty());

    let patched = client.patch(upload, 0, &[], b"abc").expect(204);
    assert_eq!(patched.offset(), 3);
    assert!(patched.header("upload-expires").is_some());
    client.patch(upload, 3, &[("Upload-Length", "2")], b"").expect(400);
    client.patch(upload, 3, &[("Upload-Length", "5")], b"").expect(204);
    let after = client.head(upload).expect(200);
    assert_eq!((after.header("upload-length"), after.header("upload-defer-length")), (Some("5"), None));
    client.patch(upload, 3, &[("Upload-Length", "6")], b"").expect(400);
    client.patch(upload, 3, &[], b"de").expect(204);
    world.until_stored(upload);
    let stored = client.head(upload).expect(200);
    assert_eq!((stored.offset(), stored.header("holdfast-state")), (5, Some("stored")));
    assert!(stored.header("holdfast-version").is_some());
    assert_eq!(client.get("/projects/default/x%20y").expect(200).body, b"abcde");
    client.send("HEAD", upload, &[], b"").expect(412);
}

#[test]
fn creation_takes_first_bytes_and_tells_the_offset() {
    let world = World::new();
    let client = world.client();
    let named = metadata(&[("path", "first")]);
    let file = ("Upload-Metadata", named.as_str());
    let created =
        client.tus("POST", "/files/", &[("Upload-Length", "11"), file, OFFSET_STREAM], b"hello").expect(201);
    assert_eq!(created.offset(), 5);
    let upload = created.header("location").unwrap();
    client.patch(upload, 5, &[], b" world").expect(204);
    assert_eq!(client.get(upload).expect(200).body, b"hello world");
}

#[test]
fn the_server_asks_for_the_body_only_after_it_has_accepted_the_head() {
    use std::io::{Read as _, Write as _};
    let world = World::new();
    let client = world.client();
    let upload = client.create("expect", Some(4));
    let mut stream = client.start_patch(&upload, 0, &[("Expect", "100-continue")], 4);
    let mut answer = [0; 25];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"1234").unwrap();
    crate::client::finish(stream).unwrap().expect(204);
}

#[test]
fn termination_frees_an_upload() {
    let mut world = World::new();
    let client = world.client();
    let upload = client.create("gone", Some(10));
    client.patch(&upload, 0, &[], b"123").expect(204);
    let file = world.data().join("uploads").join(upload.trim_start_matches("/files/"));
    assert!(file.exists());
    client.send("DELETE", &upload, &[], b"").expect(412);
    client.tus("DELETE", &upload, &[], b"").expect(204);
    assert!(!file.exists());
    let client = world.restart();
    for method in ["HEAD", "DELETE", "GET"] {
        client.tus(method, &upload, &[], b"").expect(410);
    }
    assert_eq!(client.patch(&upload, 3, &[], b"4").expect(410).problem(), "gone");
    // A stored version stays when its upload is terminated.
    let upload = client.upload("stays", b"here");
    world.until_stored(&upload);
    client.tus("DELETE", &upload, &[], b"").expect(204);
    client.head(&upload).expect(410);
    assert_eq!(client.get("/projects/default/stays").expect(200).body, b"here");
}

#[test]
fn abandoned_uploads_expire_and_active_ones_do_not() {
    let mut world = World::new();
    let client = world.client();
    let life = world.options.limits.upload_lifetime;
    let (abandoned, active) = (client.create("abandoned", Some(10)), client.create("active", Some(10)));
    let file = world.data().join("uploads").join(abandoned.trim_start_matches("/files/"));
    world.clock.advance(life / 2);
    client.patch(&active, 0, &[], b"12345").expect(204);
    world.clock.advance(life / 2);
    for method in ["HEAD", "DELETE"] {
        client.tus(method, &abandoned, &[], b"").expect(410);
    }
    client.patch(&abandoned, 0, &[], b"x").expect(410);
    assert!(file.exists());
    let client = world.restart();
    world.until(|event| matches!(event, holdfast_server::Event::Expired { uploads: 1 }).then_some(()));
    assert!(!file.exists());
    assert_eq!(client.head(&active).expect(200).offset(), 5);
    // A tombstone is forgotten after another life.
    client.head(&abandoned).expect(410);
    client.patch(&active, 5, &[], b"67890").expect(204);
    world.until_stored(&active);
    world.clock.advance(life + life);
    world.restart();
    let client = world.client();
    crate::status::until(&client, || client.head(&abandoned).status == 404);
    assert_eq!(client.get("/projects/default/active").expect(200).body, b"1234567890");
}

#[test]
fn one_request_at_a_time_changes_an_upload() {
    use std::io::Write as _;
    let world = World::with(|options| options.limits.sync_bytes = 1);
    let client = world.client();
    let bytes = contents(1, 100_000);
    let upload = client.create("busy", Some(100_000));
    let mut first = client.start_patch(&upload, 0, &[], bytes.len());
    first.write_all(&bytes[..50_000]).unwrap();
    crate::status::until(&client, || client.head(&upload).expect(200).offset() == 50_000);
    let second = client.patch(&upload, 50_000, &[], &bytes[50_000..]).expect(423);
    assert_eq!((second.problem().as_str(), second.header("retry-after")), ("upload-locked", Some("1")));
    client.tus("DELETE", &upload, &[], b"").expect(423);
    first.write_all(&bytes[50_000..]).unwrap();
    assert_eq!(crate::client::finish(first).unwrap().expect(204).offset(), 100_000);
    assert_eq!(client.get(&upload).expect(200).body, bytes);
}
