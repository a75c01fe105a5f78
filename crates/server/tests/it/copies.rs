//! Copies at sites: policies that are carried out while sites come and go, staging, and purges that remove the bytes everywhere.

use crate::client::Response;
use crate::replication::{join, peer, put, set, until, until_there};
use crate::world::World;
use serde_json::{Value, json};
use std::time::Duration;

fn world(name: &str) -> World {
    World::with(|options| {
        name.clone_into(&mut options.name);
        options.limits.acknowledge_time = Duration::from_millis(50);
    })
}

/// Two sites that know each other.
fn pair() -> (World, World) {
    let (a, b) = (world("a"), world("b"));
    join(&a, "b", &b);
    join(&b, "a", &a);
    until(|| (peer(&a)["site"].is_string() && peer(&b)["site"].is_string()).then_some(()));
    (a, b)
}

fn send(world: &World, method: &str, path: &str, body: &Value) -> Response {
    world.client().send(method, path, &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

/// Verified replicas of an object, as a site knows them.
fn replicas(world: &World, path: &str) -> usize {
    let stat = until_there(world, path);
    stat["replicas"].as_array().unwrap().iter().filter(|replica| replica["state"] == "verified").count()
}

fn files(world: &World) -> usize {
    fn count(folder: &std::path::Path) -> usize {
        // The first object makes the folder.
        let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
        let entries = entries.map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { count(&path) } else { 1 }).sum()
    }
    count(&world.data().join("archive"))
}

#[test]
fn a_policy_is_carried_out_by_the_sites_that_it_names() {
    let (a, mut b) = pair();
    put(&a, "before.raw", b"before");
    until_there(&b, "/lab/before.raw");
    let policy = json!({"copies": 2, "sites": ["a", "b"], "priority": 3});
    until(|| (send(&a, "PUT", "/policies?path=/lab", &policy).status == 200).then_some(()));
    put(&a, "after.raw", b"after");
    for path in ["/lab/before.raw", "/lab/after.raw"] {
        until(|| (replicas(&a, path) == 2).then_some(()));
    }
    assert_eq!(files(&b), 2);
    let listed = b.client().get("/policies").expect(200).json();
    assert_eq!(listed, json!([{"path": "/lab", "copies": 2, "sites": ["a", "b"], "priority": 3}]));
    let done = |job: &Value| job["state"] == "done" && job["reason"] == "policy";
    until(|| {
        let jobs = b.client().get("/jobs").expect(200).json();
        let jobs = jobs.as_array().unwrap();
        (jobs.len() == 2 && jobs.iter().all(done)).then_some(())
    });
    // The bytes are read at B while A is away.
    set(&b.client(), "a", &json!({"paused": true}));
    assert_eq!(b.client().get("/projects/lab/after.raw").expect(200).body, b"after");
    // B fetches later what was put while it was away.
    let address = b.server().address();
    b.stop();
    put(&a, "absent.raw", b"absent");
    b.options.listen = address;
    b.restart();
    set(&b.client(), "a", &json!({"paused": false}));
    until(|| (replicas(&a, "/lab/absent.raw") == 2).then_some(()));
    send(&a, "DELETE", "/policies?path=/lab", &json!(null)).expect(204);
    assert_eq!(send(&a, "DELETE", "/policies?path=/lab", &json!(null)).expect(404).problem(), "not-found");
    for (path, body) in [
        ("/lab", json!({"copies": 0, "sites": ["a"]})),
        ("/lab", json!({"copies": 2, "sites": ["a"]})),
        ("/lab", json!({"copies": 1, "sites": ["nobody"]})),
        ("/lab", json!({"copies": 1, "sites": ["a", "a"]})),
        ("/lab/after.raw", json!({"copies": 1, "sites": ["a"]})),
    ] {
        send(&a, "PUT", &format!("/policies?path={path}"), &body).expect(400).problem();
    }
    send(&a, "PUT", "/policies?path=/none", &json!({"copies": 1, "sites": ["a"]})).expect(404).problem();
}

#[test]
fn a_collection_is_staged_at_another_site() {
    let (a, b) = pair();
    for number in 0..3 {
        put(&a, &format!("run/{number}.raw"), b"x");
        until_there(&b, &format!("/lab/run/{number}.raw"));
    }
    let staged = send(&a, "POST", "/jobs?path=/lab/run&near=b", &json!(null)).expect(200).json();
    assert_eq!(staged["fetching"], 3);
    until(|| (replicas(&a, "/lab/run/2.raw") == 2 && files(&b) == 3).then_some(()));
    let again = send(&a, "POST", "/jobs?path=/lab/run&near=b", &json!(null)).expect(200).json();
    assert_eq!(again["fetching"], 0);
    send(&a, "POST", "/jobs?path=/lab/run&near=c", &json!(null)).expect(400).problem();
    send(&a, "POST", "/jobs?path=/lab/none", &json!(null)).expect(404).problem();
}

#[test]
fn a_restart_goes_on_with_what_is_staged() {
    let (mut a, mut b) = pair();
    put(&a, "one.raw", b"one");
    until_there(&b, "/lab/one.raw");
    // The other site is away: the bytes cannot come.
    a.stop();
    assert_eq!(b.client().send("POST", "/jobs?path=/lab", &[], b"").expect(200).json()["fetching"], 1);
    b.restart();
    let job = until(|| Some(b.client().get("/jobs").expect(200).json()[0].clone()).filter(Value::is_object));
    assert_eq!((&job["path"], &job["reason"]), (&json!("/lab/one.raw"), &json!("stage")));
    // The other site comes back at another address.
    a.restart();
    join(&b, "a", &a);
    until(|| peer(&b)["site"].is_string().then_some(()));
    until(|| {
        // An attempt that has failed is repeated at a time of the clock.
        b.clock.advance(Duration::from_secs(1));
        (b.client().get("/jobs").expect(200).json()[0]["state"] == "done").then_some(())
    });
    assert_eq!(b.client().get("/projects/lab/one.raw").expect(200).body, b"one");
    assert_eq!(files(&b), 1);
    // A finished order is not given again.
    until(|| std::fs::read(b.data().join("staged")).unwrap().is_empty().then_some(()));
    b.restart();
    assert_eq!(b.client().get("/jobs").expect(200).json(), json!([]));
}

#[test]
fn a_purge_waits_for_all_sites_and_removes_the_bytes_at_all() {
    let (a, b) = pair();
    put(&a, "gone.raw", b"gone");
    put(&a, "kept.raw", b"kept");
    until_there(&b, "/lab/kept.raw");
    send(&a, "POST", "/jobs?path=/lab&near=b", &json!(null)).expect(200);
    until(|| (files(&b) == 2).then_some(()));
    // A copy has the same bytes, so they stay until it is purged too.
    send(&a, "POST", "/catalog/copies?from=/lab/kept.raw&to=/lab/twin.raw", &json!(null)).expect(201);
    let purge = |path: &str| {
        let id = until_there(&a, path)["id"].as_str().unwrap().to_owned();
        send(&a, "DELETE", &format!("/catalog/entries?path={path}"), &json!(null)).expect(200);
        let purge = || send(&a, "DELETE", &format!("/catalog/trash/{id}"), &json!(null));
        until(|| {
            let answer = purge();
            assert!(answer.status == 204 || answer.problem() == "unacknowledged", "{answer:?}");
            (answer.status == 204).then_some(())
        });
        assert_eq!(purge().expect(404).problem(), "not-found");
    };
    purge("/lab/gone.raw");
    until(|| (files(&a) == 1 && files(&b) == 1).then_some(()));
    purge("/lab/twin.raw");
    assert_eq!(b.client().get("/projects/lab/kept.raw").expect(200).body, b"kept");
    purge("/lab/kept.raw");
    until(|| (files(&a) == 0 && files(&b) == 0).then_some(()));
}
