//! Health, metrics and the description of the interface; and waiting for a state without a clock.

use crate::client::{Client, contents};
use crate::world::{PATIENCE, World};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::time::Instant;

/// Repeats a question until its answer is yes; `PATIENCE` ends a failing test.
#[track_caller]
pub(crate) fn until(client: &Client, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if is_true() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("the state did not come: {:?}", client.get("/healthz"));
}

#[test]
fn health_is_told_to_everybody() {
    let world = World::new();
    assert_eq!(world.client().get("/healthz").expect(200).json()["status"], "ok");
    let missing = world.client().get("/nothing").expect(404);
    assert_eq!(missing.problem(), "not-found");
}

#[test]
fn metrics_count_uploads_bytes_and_rejections() {
    let world = World::new();
    let client = world.client();
    let bytes = contents(3, 10_000);
    let upload = client.upload("m", &bytes);
    world.until_stored(&upload);
    let open = client.create("open", Some(5));
    let wrong = format!("sha1 {}", STANDARD.encode([0; 20]));
    client.patch(&open, 0, &[("Upload-Checksum", &wrong)], b"12345").expect(460);
    client.get(&upload).expect(200);
    let text = String::from_utf8(client.get("/metrics").expect(200).body).unwrap();
    for line in [
        "holdfast_uploads_open 1",
        "holdfast_uploads_created_total 2",
        "holdfast_uploads_finished_total 1",
        "holdfast_uploads_stored_total 1",
        "holdfast_uploads_failed_total 0",
        "holdfast_received_bytes_total 10005",
        "holdfast_sent_bytes_total 10000",
        "holdfast_checksum_mismatches_total 1",
        "holdfast_rejected_requests_total{problem=\"checksum-mismatch\",status=\"460\"} 1",
        "holdfast_delivery_duration_seconds_count 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_description_names_every_route() {
    let world = World::new();
    let json = world.client().get("/openapi.json").expect(200).json();
    assert!(json["openapi"].as_str().unwrap().starts_with("3."));
    for (path, methods) in [
        ("/files/", &["post", "options"][..]),
        ("/files/{id}", &["get", "head", "patch", "delete"]),
        ("/files/{id}/blocks", &["get"]),
        ("/files/{id}/path", &["post"]),
        ("/projects/{project}", &["get"]),
        ("/projects/{project}/{path}", &["get"]),
        ("/catalog/stat", &["get"]),
        ("/catalog/list", &["get"]),
        ("/catalog/find", &["get"]),
        ("/catalog/attributes", &["post"]),
        ("/catalog/attributes/batch", &["post"]),
        ("/drivers/runs", &["get"]),
        ("/tokens", &["get", "post"]),
        ("/tokens/{id}", &["delete"]),
        ("/metrics", &["get"]),
        ("/healthz", &["get"]),
        ("/openapi.json", &["get"]),
    ] {
        for method in methods {
            assert!(json["paths"][path][method].is_object(), "{method} {path} in {:#}", json["paths"]);
        }
    }
    assert!(json["components"]["schemas"]["Problem"]["properties"]["detail"].is_object());
    assert_eq!(serde_json::to_value(holdfast_server::openapi()).unwrap(), json);
}
