//! Concatenation: order, repetition, progress, restarts, and parts that are in use or missing.

use crate::client::{Client, Response, contents, metadata};
use crate::world::World;

fn concatenate(client: &Client, path: &str, parts: &[&str]) -> Response {
    let list = format!("final;{}", parts.join(" "));
    let named = metadata(&[("path", path)]);
    client.tus("POST", "/files/", &[("Upload-Concat", &list), ("Upload-Metadata", &named)], &[])
}

#[test]
fn parts_become_one_file_and_a_repetition_the_same_one() {
    let mut world = World::with(|options| options.limits.sync_bytes = 1);
    let client = world.client();
    let bytes: Vec<_> = [3_000_000, 0, 1_500_001].into_iter().zip(1..).map(|(l, s)| contents(s, l)).collect();
    let parts: Vec<_> = bytes.iter().map(|bytes| client.partial(bytes)).collect();
    let absolute = format!("http://elsewhere{}", parts[2]);
    let order = [parts[0].as_str(), &parts[1], &absolute, &parts[0]];
    let first = concatenate(&client, "whole", &order).expect(201);
    let upload = first.header("location").unwrap();
    // The same request is the same upload, before and after it is complete, also from many clients at once.
    std::thread::scope(|scope| {
        let send =
            || concatenate(&client, "crowd", &order).expect(201).header("location").unwrap().to_owned();
        let crowd: Vec<_> = (0..8).map(|_| scope.spawn(send)).collect();
        let mut addresses: Vec<_> = crowd.into_iter().map(|thread| thread.join().unwrap()).collect();
        addresses.dedup();
        assert_eq!(addresses.len(), 1, "{addresses:?}");
    });
    assert_eq!(concatenate(&client, "whole", &order).expect(201).header("location"), Some(upload));
    let other = concatenate(&client, "other", &order).expect(201);
    let other = other.header("location").unwrap();
    assert_ne!(other, upload);
    let expected = [&bytes[0][..], &bytes[2], &bytes[0]].concat();
    crate::status::until(&client, || {
        let head = client.head(upload).expect(200);
        assert_eq!(head.header("upload-length"), Some(expected.len().to_string().as_str()));
        assert!(head.header("upload-concat").unwrap().starts_with("final;/files/"));
        match head.header("holdfast-state") {
            Some("assembling") => {
                let progress: usize = head.header("holdfast-progress").unwrap().parse().unwrap();
                assert!(progress <= expected.len() && head.header("upload-offset").is_none());
                false
            }
            _ => head.offset() == expected.len() as u64,
        }
    });
    assert_eq!(client.get(upload).expect(200).body, expected);
    let mut waiting = vec![upload.trim_start_matches("/files/"), other.trim_start_matches("/files/")];
    while !waiting.is_empty() {
        let stored = world.until(|event| match event {
            holdfast_server::Event::Stored { upload, .. } => Some(upload),
            _ => None,
        });
        waiting.retain(|id| *id != stored);
    }
    // The parts are removed when nobody needs them any more.
    let uploads = world.data().join("uploads");
    crate::status::until(&client, || std::fs::read_dir(&uploads).unwrap().count() == 0);
    let client = world.restart();
    assert_eq!(concatenate(&client, "whole", &order).status, 410);
    for path in ["whole", "other"] {
        assert_eq!(client.get(&format!("/projects/default/{path}")).expect(200).body, expected);
    }
    assert_eq!(client.patch(upload, expected.len() as u64, &[], b"").expect(403).problem(), "final-upload");
    client.head(&parts[0]).expect(410);
}

#[test]
fn a_concatenation_goes_on_after_a_restart() {
    let mut world = World::with(|options| options.limits.sync_bytes = 1);
    let client = world.client();
    let bytes: Vec<_> = (0..4).map(|seed| contents(seed, 1_700_000)).collect();
    let parts: Vec<_> = bytes.iter().map(|bytes| client.partial(bytes)).collect();
    let parts: Vec<_> = parts.iter().map(String::as_str).collect();
    let created = concatenate(&client, "whole", &parts).expect(201);
    let upload = created.header("location").unwrap();
    let client = world.restart();
    crate::status::until(&client, || client.head(upload).expect(200).header("upload-offset").is_some());
    assert_eq!(client.get("/projects/default/whole").expect(200).body, bytes.concat());
}

#[test]
fn unfinished_missing_and_whole_uploads_are_no_parts() {
    let world = World::new();
    let client = world.client();
    let good = client.partial(b"good");
    let headers = [("Upload-Length", "5"), ("Upload-Concat", "partial")];
    let unfinished = client.tus("POST", "/files/", &headers, &[]).expect(201);
    let unfinished = unfinished.header("location").unwrap();
    assert_eq!(client.head(unfinished).expect(200).header("upload-concat"), Some("partial"));
    let refused = concatenate(&client, "w", &[&good, unfinished]).expect(409);
    assert_eq!(refused.problem(), "part-unfinished");
    let whole = client.upload("whole", b"whole");
    world.until_stored(&whole);
    concatenate(&client, "w", &[&good, &whole]).expect(400);
    concatenate(&client, "w", &[&good, "/files/1"]).expect(404);
    concatenate(&client, "w", &[&good, "elsewhere"]).expect(404);
    let list = format!("final;{good}");
    let named = metadata(&[("path", "w")]);
    let final_headers =
        [("Upload-Concat", list.as_str()), ("Upload-Metadata", &named), ("Upload-Length", "4")];
    client.tus("POST", "/files/", &final_headers, &[]).expect(400);
    // A partial upload is no object.
    assert_eq!(client.get("/projects/default").expect(200).json()["growing"], serde_json::json!([]));
    client.tus("DELETE", &good, &[], &[]).expect(204);
    concatenate(&client, "w", &[&good]).expect(410);
}
