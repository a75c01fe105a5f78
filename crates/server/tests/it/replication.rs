//! Replication between servers over HTTP: pushes, pulls, forwarding, cuts, tokens, and the state of peers.

use crate::client::{Client, metadata};
use crate::databases::Place;
use crate::world::World;
use holdfast_server::{CatalogSource, Event, Scope};
use serde_json::{Value, json};

pub(crate) fn put(world: &World, path: &str, contents: &[u8]) {
    let length = contents.len().to_string();
    let named = metadata(&[("project", "lab"), ("path", path)]);
    let headers = [("Upload-Length", length.as_str()), ("Upload-Metadata", named.as_str())];
    let client = world.client();
    let created = client.tus("POST", "/files/", &headers, &[]).expect(201);
    let upload = created.header("location").unwrap().to_owned();
    client.patch(&upload, 0, &[], contents).expect(204);
    world.until_stored(&upload);
}

pub(crate) fn join(world: &World, name: &str, peer: &World) -> Value {
    let change = json!({"url": peer.server().url(), "interval_milliseconds": 100});
    set(&world.client(), name, &change)
}

pub(crate) fn set(client: &Client, name: &str, change: &Value) -> Value {
    let headers = [("Content-Type", "application/json")];
    let body = change.to_string();
    client.send("PATCH", &format!("/sites/{name}"), &headers, body.as_bytes()).expect(200).json()
}

/// Asks until the answer is there; a peer applies operations in its own time.
#[track_caller]
pub(crate) fn until<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    let end = std::time::Instant::now() + crate::world::PATIENCE;
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(std::time::Instant::now() < end, "the answer did not come");
        std::thread::yield_now();
    }
}

#[track_caller]
pub(crate) fn until_there(world: &World, path: &str) -> Value {
    until(|| {
        let stat = world.client().get(&format!("/catalog/stat?path={path}"));
        (stat.status == 200).then(|| stat.json())
    })
}

pub(crate) fn peer(world: &World) -> Value {
    world.client().get("/sites").expect(200).json()[0].clone()
}

fn peer_named(world: &World, name: &str) -> Value {
    let peers = world.client().get("/sites").expect(200).json();
    peers.as_array().unwrap().iter().find(|peer| peer["name"] == name).unwrap().clone()
}

fn vector(world: &World) -> String {
    world.client().get("/replication").expect(200).json()["vector"].as_str().unwrap().to_owned()
}

#[track_caller]
fn until_equal(worlds: &[&World]) {
    until(|| {
        let vectors: Vec<_> = worlds.iter().map(|world| vector(world)).collect();
        vectors.iter().all(|one| *one == vectors[0]).then_some(())
    });
}

fn catalog_of(place: Option<Place>) -> World {
    World::with(|options| {
        if let Some(Place::Postgres { connection, schema }) = place {
            options.catalog = Some(CatalogSource::postgres(&connection, &schema));
        }
    })
}

#[test]
fn an_object_of_one_site_is_in_the_catalog_of_the_other() {
    let (a, b) = (catalog_of(None), catalog_of(Place::postgres()));
    put(&a, "before.raw", b"one");
    join(&a, "b", &b);
    let stat = until_there(&b, "/lab/before.raw");
    assert_eq!(stat["versions"][0]["size"], 3);
    put(&a, "after.raw", b"four");
    until_there(&b, "/lab/after.raw");
    // A alone knows B: it pulls what B writes.
    put(&b, "back.raw", b"12345");
    until_there(&a, "/lab/back.raw");
    until_equal(&[&a, &b]);
    let known = until(|| Some(peer(&a)).filter(|peer| peer["queue"] == 0));
    assert_eq!((&known["name"], &known["state"]), (&json!("b"), &json!("connected")));
    assert!(known["site"].is_string() && known["lag_milliseconds"] == 0 && known["error"].is_null());
}

#[test]
fn bytes_are_read_from_the_site_that_has_them() {
    let (a, b) = (World::new(), World::new());
    join(&a, "b", &b);
    join(&b, "a", &a);
    let large: Vec<u8> = (0..9_000_000_u32).map(|n| (n / 3) as u8).collect();
    put(&a, "large.raw", &large);
    put(&a, "empty.raw", b"");
    until_there(&b, "/lab/empty.raw");
    until(|| peer(&b)["site"].is_string().then_some(()));
    let got = b.client().get("/projects/lab/large.raw").expect(200);
    assert!(got.body == large);
    let range = [("Range", "bytes=4194300-4194309")];
    let part = b.client().send("GET", "/projects/lab/large.raw", &range, &[]).expect(206);
    assert_eq!(part.body, large[4_194_300..4_194_310]);
    assert_eq!(b.client().get("/projects/lab/empty.raw").expect(200).body, b"");
}

#[test]
fn sites_in_a_chain_forward_operations() {
    let (a, b, c) = (World::new(), World::new(), World::new());
    join(&a, "b", &b);
    join(&b, "c", &c);
    put(&a, "far.raw", b"x");
    until_there(&c, "/lab/far.raw");
    put(&c, "near.raw", b"y");
    until_there(&a, "/lab/near.raw");
    until_equal(&[&a, &b, &c]);
}

#[test]
fn both_sites_write_while_the_link_is_cut_and_the_conflict_is_told() {
    let (a, b) = (World::new(), World::new());
    put(&a, "first.raw", b"1");
    join(&a, "b", &b);
    until_there(&b, "/lab/first.raw");
    let paused = set(&a.client(), "b", &json!({"paused": true}));
    assert_eq!(paused["state"], "paused");
    put(&a, "same.raw", b"of a");
    put(&b, "same.raw", b"of b");
    assert!(peer(&a)["queue"].as_u64().unwrap() > 0);
    set(&a.client(), "b", &json!({"paused": false}));
    for world in [&a, &b] {
        let (one, other) = (until_there(world, "/lab/same.raw"), until_there(world, "/lab/same.raw_1"));
        assert_ne!(one["versions"][0]["blake3"], other["versions"][0]["blake3"]);
    }
    let kind = b.until(|event| match event {
        Event::Conflict { kind, .. } => Some(kind),
        _ => None,
    });
    assert_eq!(kind, "same_name");
    until_equal(&[&a, &b]);
    let list =
        |world: &World| world.client().get("/conflicts?group=names").expect(200).json()["conflicts"].clone();
    let (conflicts, before) = (list(&a), until_there(&a, "/lab/same.raw"));
    assert_eq!(conflicts, list(&b));
    let conflict = &conflicts[0];
    assert_eq!(
        (&conflict["kind"], &conflict["path"], &conflict["won"]["value"]),
        (&json!("same_name"), &json!("/lab/same.raw_1"), &json!("/lab/same.raw"))
    );
    settle(&a, conflict, "flip").expect(204);
    until_equal(&[&a, &b]);
    for world in [&a, &b] {
        assert_eq!(list(world), json!([]));
        let after = until_there(world, "/lab/same.raw_1");
        assert_eq!(after["id"], before["id"]);
    }
    assert_eq!(settle(&a, conflict, "keep").expect(400).problem(), "bad-request");
}

fn settle(world: &World, conflict: &Value, choice: &str) -> crate::client::Response {
    let path = format!("/conflicts/{}", conflict["id"].as_str().unwrap());
    let body = json!({ "choice": choice }).to_string();
    world.client().send("POST", &path, &[("Content-Type", "application/json")], body.as_bytes())
}

#[test]
fn contents_written_at_two_sites_are_decided_by_the_home_site() {
    let (a, b) = (World::new(), World::new());
    put(&a, "x.raw", b"first");
    join(&a, "b", &b);
    until_there(&b, "/lab/x.raw");
    set(&a.client(), "b", &json!({"paused": true}));
    put(&a, "x.raw", b"of a");
    put(&b, "x.raw", b"of b, later");
    set(&a.client(), "b", &json!({"paused": false}));
    let recorded = |world: &World| {
        let found = world.client().get("/conflicts").expect(200).json()["conflicts"][0].clone();
        (found["state"] == "settled").then_some(found)
    };
    let conflict = until(|| recorded(&b));
    assert_eq!((&conflict["kind"], &conflict["choice"]), (&json!("contents"), &json!("keep")));
    let current = |world: &World| until_there(world, "/lab/x.raw")["current"].clone();
    assert_eq!(current(&b), conflict["won"]["value"]);
    // All three versions stay, and the rejected one can be chosen.
    assert_eq!(until_there(&b, "/lab/x.raw")["versions"].as_array().unwrap().len(), 3);
    settle(&b, &conflict, "flip").expect(204);
    until(|| (current(&a) == conflict["lost"]["value"]).then_some(()));
    until_equal(&[&a, &b]);
}

#[test]
fn a_peer_that_stops_is_told_and_caught_up_when_it_is_back() {
    let (a, mut b) = (World::new(), World::new());
    join(&a, "b", &b);
    put(&a, "one.raw", b"1");
    until_there(&b, "/lab/one.raw");
    let address = b.server().address();
    b.stop();
    let lost = |event| match event {
        Event::PeerLost { peer, reason } => Some((peer, reason)),
        _ => None,
    };
    let (name, reason) = a.until(lost);
    assert!(name == "b" && reason.starts_with("cannot "), "{reason}");
    put(&a, "two.raw", b"2");
    let known = peer(&a);
    assert_eq!((&known["state"], known["queue"].as_u64()), (&json!("lost"), Some(1)));
    b.options.listen = address;
    b.restart();
    until_there(&b, "/lab/two.raw");
    a.until(|event| matches!(event, Event::PeerBack { .. }).then_some(()));
    let removed = a.client().send("DELETE", "/sites/b", &[], &[]);
    removed.expect(204);
    assert_eq!(a.client().get("/sites").expect(200).json(), json!([]));
    assert_eq!(a.client().send("DELETE", "/sites/b", &[], &[]).expect(404).problem(), "not-found");
}

#[test]
fn peers_outlive_a_restart_and_a_site_is_no_peer_of_itself() {
    let (mut a, b) = (World::new(), World::new());
    join(&a, "b", &b);
    let url = a.server().url();
    set(&a.client(), "self", &json!({"url": url}));
    let lost = |event| match event {
        Event::PeerLost { peer, reason } if peer == "self" => Some(reason),
        _ => None,
    };
    assert!(a.until(lost).contains("it is this one"));
    a.client().send("DELETE", "/sites/self", &[], &[]).expect(204);
    a.restart();
    put(&a, "later.raw", b"1");
    until_there(&b, "/lab/later.raw");
}

#[test]
fn replication_needs_a_token_of_its_scope() {
    let (a, b) = (World::new(), World::new());
    let (_, reader) = b.token(&[Scope::Read, Scope::Write], None);
    let (_, replicator) = b.token(&[Scope::Replicate], None);
    let (_, bound) = b.token(&[Scope::Replicate], Some("lab"));
    for token in [&reader, &bound] {
        let refused = b.client().with_token(token).get("/replication").expect(403);
        assert_eq!(refused.problem(), "forbidden");
    }
    b.client().with_token(&replicator).get("/catalog/list").expect(403);
    set(&a.client(), "b", &json!({"url": b.server().url(), "token": reader, "interval_milliseconds": 100}));
    a.until(|event| matches!(event, Event::PeerLost { .. }).then_some(()));
    put(&a, "x.raw", b"1");
    set(&a.client(), "b", &json!({"token": replicator}));
    let (_, reads) = b.token(&[Scope::Read], None);
    let client = b.client().with_token(&reads);
    until(|| (client.get("/catalog/stat?path=/lab/x.raw").status == 200).then_some(()));
    let shown = a.client().get("/sites").expect(200);
    assert!(!String::from_utf8_lossy(&shown.body).contains(&replicator), "the token is shown");
}

#[test]
fn bad_settings_and_batches_are_refused() {
    let world = World::new();
    let client = world.client();
    let headers = [("Content-Type", "application/json")];
    for (name, body) in [
        ("b", json!({})),
        ("b", json!({"url": "ftp://x"})),
        ("b", json!({"url": "http://x", "interval_milliseconds": 1})),
        ("b", json!({"url": "http://x", "fingerprint": "zz"})),
        ("b", json!({"url": "http://x", "other": 1})),
        ("a%20b", json!({"url": "http://x"})),
    ] {
        let refused = client.send("PATCH", &format!("/sites/{name}"), &headers, body.to_string().as_bytes());
        assert!((400..500).contains(&refused.status), "{body} {refused:?}");
        refused.problem();
    }
    assert_eq!(client.get("/sites").expect(200).json(), json!([]));
    for batch in [&b"abc"[..], &[255; 4], &[4, 0, 0, 0, 1, 2, 3, 4]] {
        client.send("POST", "/replication/operations", &[], batch).expect(400).problem();
    }
    client.get("/replication/operations?beyond=x").expect(400).problem();
    client.get("/replication/operations").expect(200);
}

#[test]
fn a_new_site_starts_from_a_snapshot_when_the_log_is_gone() {
    let care = |options: &mut holdfast_server::ServerOptions| {
        options.limits.acknowledge_time = std::time::Duration::from_millis(50);
        options.limits.log_age = std::time::Duration::ZERO;
    };
    let (a, b, c) = (World::with(care), World::with(care), World::new());
    // Each keeps its log until it knows the other, however late that is.
    join(&a, "b", &b);
    join(&b, "a", &a);
    for number in 0..5 {
        put(&a, &format!("{number}.raw"), b"x");
    }
    until_there(&b, "/lab/4.raw");
    let gone =
        until(|| Some(a.client().get("/replication/operations")).filter(|answer| answer.status == 410));
    assert_eq!(gone.problem(), "compacted");
    join(&a, "c", &c);
    let refused = until(|| peer_named(&a, "c")["error"].as_str().map(str::to_owned));
    assert!(refused.contains("import a snapshot"), "{refused}");
    join(&c, "a", &a);
    c.until(|event| matches!(event, Event::SnapshotImported { .. }).then_some(()));
    until_there(&c, "/lab/0.raw");
    put(&c, "of-c.raw", b"y");
    until_there(&a, "/lab/of-c.raw");
    until_there(&b, "/lab/of-c.raw");
}
