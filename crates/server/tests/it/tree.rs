//! Tree of the catalog over HTTP: collections, moves, copies, the trash, replicas, and tokens of one project.

use crate::client::{Client, Response};
use crate::names::encoded;
use crate::world::World;
use holdfast_server::Scope;
use serde_json::{Value, json};

fn store(world: &World, client: &Client, path: &str, contents: &[u8]) {
    let (project, path) = path[1..].split_once('/').unwrap();
    let pairs = crate::client::metadata(&[("project", project), ("path", path)]);
    let length = contents.len().to_string();
    let headers = [("Upload-Length", length.as_str()), ("Upload-Metadata", pairs.as_str())];
    let created = client.tus("POST", "/files/", &headers, &[]).expect(201);
    let upload = created.header("location").unwrap().to_owned();
    client.patch(&upload, 0, &[], contents).expect(204);
    world.until_stored(&upload);
}

fn post(client: &Client, address: &str) -> Response {
    client.send("POST", &format!("/catalog/{address}"), &[], &[])
}

fn delete(client: &Client, query: &str) -> Response {
    client.send("DELETE", &format!("/catalog/entries?{query}"), &[], &[])
}

fn entries(client: &Client, address: &str) -> Vec<Value> {
    let page = client.get(&format!("/catalog/{address}")).expect(200).json();
    page["entries"].as_array().unwrap().clone()
}

fn names(client: &Client, path: &str) -> Vec<String> {
    let entries = entries(client, &format!("list?path={path}"));
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn collections_are_made_and_entries_moved() {
    let world = World::new();
    let client = world.client();
    let made = post(&client, "collections?path=/lab").expect(201).json();
    assert_eq!(made["id"], client.get("/catalog/stat?path=/lab").json()["id"]);
    assert_eq!(post(&client, "collections?path=/lab").expect(409).problem(), "name-taken");
    assert_eq!(post(&client, "collections?path=/lab/a/b").expect(400).problem(), "bad-request");
    let made = post(&client, "collections?path=/lab/a/b&parents=true").expect(201).json();
    assert_eq!(post(&client, "collections?path=/lab/a/b&parents=true").expect(201).json(), made);
    store(&world, &client, "/lab/x", b"x");
    post(&client, "moves?from=/lab/x&to=/lab/a/y").expect(204);
    assert_eq!(
        (names(&client, "/lab"), names(&client, "/lab/a")),
        (vec!["a".into()], vec!["b".into(), "y".into()])
    );
    assert_eq!(client.get("/projects/lab/a/y").expect(200).body, b"x");
    assert_eq!(post(&client, "moves?from=/lab/a/y&to=/lab/a/b").expect(409).problem(), "name-taken");
    for (address, status) in [
        ("moves?from=/lab/q&to=/lab/z", 404),
        ("moves?from=/lab/a/y&to=/lab/q/z", 404),
        ("moves?from=/lab/a&to=/lab/a/b/c", 400),
        ("moves?from=/lab/a/y&to=/y", 400),
        ("moves?from=/lab/a/y&to=/lab/.holdfast", 400),
        ("moves?from=/lab/a/y&to=lab", 400),
        ("moves?from=/lab/a/y", 400),
        ("collections?path=/l%20b", 400),
        ("collections?path=/lab/a/y/z&parents=true", 400),
        ("collections?path=/lab/%0a", 400),
    ] {
        post(&client, address).expect(status).problem();
    }
}

#[test]
fn copies_share_the_bytes() {
    let world = World::new();
    let client = world.client();
    store(&world, &client, "/lab/a/x", b"old");
    store(&world, &client, "/lab/a/x", b"new!");
    store(&world, &client, "/lab/a/b/y", b"y");
    let copied = post(&client, "copies?from=/lab/a/x&to=/lab/z").expect(201).json();
    assert_eq!(copied, json!({"objects": 1, "collections": 0, "bytes": 4, "next": null}));
    assert_eq!(client.get("/projects/lab/z").expect(200).body, b"new!");
    let stat = |path: &str| client.get(&format!("/catalog/stat?path={path}")).expect(200).json();
    assert_eq!(
        (
            stat("/lab/z")["versions"].as_array().unwrap().len(),
            stat("/lab/z")["replicas"].as_array().unwrap().len()
        ),
        (1, 1)
    );
    let copied = post(&client, "copies?from=/lab/a&to=/other&recursive=true").expect(201).json();
    assert_eq!(copied, json!({"objects": 2, "collections": 2, "bytes": 5, "next": null}));
    // A copy outlives the original.
    delete(&client, "path=/lab/a&recursive=true").expect(200);
    assert_eq!(client.get("/projects/other/b/y").expect(200).body, b"y");
    for (address, status) in [
        ("copies?from=/other&to=/third", 400),
        ("copies?from=/other&to=/other/c&recursive=true", 400),
        ("copies?from=/other/x&to=/x", 400),
        ("copies?from=/other/x&to=/other/b", 409),
        ("copies?from=/other/q&to=/other/r", 404),
        ("copies?from=/other/x&to=/q/r", 404),
    ] {
        post(&client, address).expect(status).problem();
    }
}

#[test]
fn a_large_collection_is_copied_in_parts() {
    let world = World::new();
    let client = world.client();
    for number in 0..1100 {
        post(&client, &format!("collections?path=/lab/c/{number:04}&parents=true")).expect(201);
    }
    let first = post(&client, "copies?from=/lab&to=/copy&recursive=true").expect(201).json();
    let after = encoded(first["next"].as_str().unwrap());
    let rest =
        post(&client, &format!("copies?from=/lab&to=/copy&recursive=true&after={after}")).expect(201).json();
    let made = first["collections"].as_u64().unwrap() + rest["collections"].as_u64().unwrap();
    assert_eq!((made, &rest["next"]), (1102, &Value::Null));
    assert_eq!(
        client.get("/catalog/list?path=/copy/c&after=0999").expect(200).json()["entries"]
            .as_array()
            .unwrap()
            .len(),
        100
    );
}

#[test]
fn deleted_entries_are_listed_and_restored() {
    let world = World::new();
    let client = world.client();
    store(&world, &client, "/lab/d/x", b"x");
    store(&world, &client, "/lab/y", b"y");
    assert!(
        delete(&client, "path=/lab/d").expect(400).json()["detail"].as_str().unwrap().contains("recursively")
    );
    let x = delete(&client, "path=/lab/d/x").expect(200).json();
    let d = delete(&client, "path=/lab/d&recursive=true").expect(200).json();
    client.get("/projects/lab/d/x").expect(404);
    delete(&client, "path=/lab/d").expect(404);
    delete(&client, "path=/").expect(400);
    let mut trash = entries(&client, "trash");
    trash.sort_by_key(|entry| entry["path"].to_string().len());
    let paths: Vec<_> = trash.iter().map(|entry| (&entry["path"], &entry["id"], &entry["kind"])).collect();
    let (object, collection) = (json!("object"), json!("collection"));
    assert_eq!(paths, [(&json!("/lab/d"), &d["id"], &collection), (&json!("/lab/d/x"), &x["id"], &object)]);
    assert_eq!(entries(&client, "trash?path=/lab/d/x").len(), 1);
    assert_eq!(entries(&client, "trash?path=/lab/y").len(), 0);
    let page = client.get("/catalog/trash?count=1").expect(200).json();
    assert_eq!(entries(&client, &format!("trash?after={}", page["next"].as_str().unwrap())).len(), 1);
    let restore = |entry: &Value, query: &str| {
        post(&client, &format!("trash/{}{query}", entry["id"].as_str().unwrap()))
    };
    // The collection above it is in the trash.
    restore(&x, "").expect(400).problem();
    assert_eq!(restore(&x, "?to=/lab/y").expect(409).problem(), "name-taken");
    restore(&x, "?to=/x").expect(400).problem();
    assert_eq!(restore(&x, "?to=/lab/z").expect(200).json()["path"], "/lab/z");
    assert_eq!(client.get("/projects/lab/z").expect(200).body, b"x");
    post(&client, "collections?path=/lab/d").expect(201);
    assert_eq!(restore(&d, "").expect(200).json(), json!({"path": "/lab/d_1", "id": d["id"]}));
    restore(&d, "").expect(404).problem();
    post(&client, "trash/x").expect(400).problem();
    client.get("/catalog/trash?after=x").expect(400).problem();
}

#[test]
fn replicas_are_listed_by_place() {
    let world = World::new();
    let client = world.client();
    store(&world, &client, "/lab/d/x", b"x");
    store(&world, &client, "/lab/y", b"y");
    let paths = |address: &str| {
        let entries = entries(&client, address);
        entries.iter().map(|entry| entry["path"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    let (x, y) = (Some("/lab/d/x".to_owned()), Some("/lab/y".to_owned()));
    assert_eq!(paths("replicas"), [x.clone(), y.clone()]);
    assert_eq!(paths("replicas?path=/lab/y"), [y]);
    let replica = entries(&client, "replicas?path=/lab/d&only_here=true").remove(0);
    assert_eq!((&replica["state"], &replica["vault"]), (&json!("verified"), &json!("archive")));
    delete(&client, "path=/lab/y").expect(200);
    // The trash would be lost, too.
    assert_eq!(paths("replicas?only_here=true"), [x.clone(), None]);
    assert_eq!(paths("replicas?only_here=true&path=/lab"), std::slice::from_ref(&x));
    assert_eq!(paths("replicas"), [x]);
    client.get("/catalog/replicas?path=/q").expect(404).problem();
    client.get("/catalog/replicas?path=/q&only_here=true").expect(404).problem();
    client.get("/catalog/replicas?after=x").expect(400).problem();
}

#[test]
fn a_token_of_one_project_changes_only_that() {
    let world = World::new();
    let client = world.client();
    for project in ["own", "other"] {
        store(&world, &client, &format!("/{project}/x"), b"x");
        store(&world, &client, &format!("/{project}/y"), b"y");
    }
    let (_, token) = world.token(&[Scope::Read, Scope::Write], Some("own"));
    let (_, all) = world.token(&[Scope::Read, Scope::Write], None);
    let (own, all) = (client.with_token(&token), client.with_token(&all));
    for address in [
        "moves?from=/own/x&to=/other/z",
        "moves?from=/other/x&to=/own/z",
        "copies?from=/other/x&to=/own/z",
        "copies?from=/own/x&to=/other/z",
        "collections?path=/third",
    ] {
        post(&own, address).expect(403).problem();
    }
    delete(&own, "path=/other/x").expect(403);
    delete(&own, "path=/own/x").expect(200);
    let foreign = delete(&all, "path=/other/x").expect(200).json();
    let foreign = foreign["id"].as_str().unwrap();
    assert_eq!((entries(&own, "trash").len(), entries(&all, "trash").len()), (1, 2));
    own.get("/catalog/trash?path=/other").expect(403);
    post(&own, &format!("trash/{foreign}?to=/own/z")).expect(404).problem();
    let mine = entries(&own, "trash")[0]["id"].as_str().unwrap().to_owned();
    post(&own, &format!("trash/{mine}?to=/other/z")).expect(403).problem();
    let (_, reader) = world.token(&[Scope::Read], Some("own"));
    post(&client.with_token(&reader), &format!("trash/{mine}")).expect(403).problem();
    post(&own, &format!("trash/{mine}")).expect(200);
    assert_eq!(entries(&own, "replicas").len(), 2);
    assert_eq!(entries(&own, "replicas?only_here=true").len(), 2);
    own.get("/catalog/replicas?path=/").expect(403);
}

#[test]
fn a_link_shows_the_versions_of_its_object() {
    let world = World::new();
    let client = world.client();
    store(&world, &client, "/lab/a/x.raw", b"one");
    post(&client, "links?from=/lab/a/x.raw&to=/lab/y.raw").expect(201);
    store(&world, &client, "/lab/a/x.raw", b"three");
    let list = entries(&client, "list?path=/lab");
    assert_eq!((&list[1]["kind"], &list[1]["version"]["size"]), (&json!("link"), &json!(5)));
    assert_eq!(client.get("/projects/lab/y.raw").expect(200).body, b"three");
    let copied = post(&client, "copies?from=/lab/y.raw&to=/lab/z.raw").expect(201).json();
    assert_eq!((&copied["objects"], &copied["bytes"]), (&json!(1), &json!(5)));
    assert_eq!(client.get("/projects/lab/z.raw").expect(200).body, b"three");
    for (query, status) in [
        ("from=/lab/a&to=/lab/b", 400),
        ("from=/lab/none&to=/lab/b", 404),
        ("from=/lab/y.raw&to=/lab/z.raw", 409),
        ("from=/lab/y.raw&to=/b", 400),
    ] {
        post(&client, &format!("links?{query}")).expect(status).problem();
    }
    delete(&client, "path=/lab/y.raw");
    assert_eq!(client.get("/projects/lab/a/x.raw").expect(200).body, b"three");
}
