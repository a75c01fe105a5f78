//! Catalog over HTTP: properties, lists, searches, attributes, and tokens of one project.

use crate::client::{Client, metadata};
use crate::databases::Place;
use crate::names::encoded;
use crate::world::World;
use holdfast_server::{CatalogSource, Scope};
use serde_json::json;

fn upload(client: &Client, pairs: &[(&str, &str)], contents: &[u8]) -> String {
    let (length, named) = (contents.len().to_string(), metadata(pairs));
    let headers = [("Upload-Length", length.as_str()), ("Upload-Metadata", named.as_str())];
    let created = client.tus("POST", "/files/", &headers, &[]).expect(201);
    let upload = created.header("location").unwrap().to_owned();
    client.patch(&upload, 0, &[], contents).expect(204);
    upload
}

fn paths(client: &Client, query: &str) -> Vec<String> {
    let page = client.get(&format!("/catalog/find?{query}")).expect(200).json();
    let entries = page["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

fn attributes_are_found(place: Option<Place>) {
    let world = World::with(|options| {
        if let Some(Place::Postgres { connection, schema }) = place {
            options.catalog = Some(CatalogSource::postgres(&connection, &schema));
        }
    });
    let client = world.client();
    for (path, target, gain) in [("d/a.raw", "m31", "2.5"), ("d/b.raw", "m33", "4"), ("c.txt", "m31", "0007")]
    {
        let pairs = [
            ("project", "lab"),
            ("path", path),
            ("attribute.target", target),
            ("attribute.gain", gain),
            ("attribute.at", "2026-11-20T10:05:00Z"),
            ("note", "not an attribute"),
        ];
        world.until_stored(&upload(&client, &pairs, path.as_bytes()));
    }
    let stat = client.get("/catalog/stat?path=/lab/d/a.raw").expect(200).json();
    assert_eq!((&stat["path"], &stat["kind"]), (&json!("/lab/d/a.raw"), &json!("object")));
    assert_eq!(stat["versions"].as_array().unwrap().len(), 1);
    assert_eq!(stat["versions"][0]["version"], stat["current"]);
    assert_eq!(stat["versions"][0]["size"], 7);
    assert_eq!(
        (&stat["replicas"][0]["vault"], &stat["replicas"][0]["state"]),
        (&json!("archive"), &json!("verified"))
    );
    let expected = json!([
        {"name": "at", "type": "time", "value": "2026-11-20T10:05:00Z", "unit": null},
        {"name": "gain", "type": "float", "value": 2.5, "unit": null},
        {"name": "target", "type": "text", "value": "m31", "unit": null},
    ]);
    assert_eq!(stat["attributes"], expected);
    let listing = client.get("/catalog/list?path=/lab").expect(200).json();
    let names: Vec<_> = listing["entries"].as_array().unwrap().iter().map(|e| e["name"].clone()).collect();
    assert_eq!(names, ["c.txt", "d"]);
    assert_eq!(listing["entries"][1]["version"], json!(null));
    let page = client.get("/catalog/list?path=/lab&count=1").expect(200).json();
    assert_eq!(page["next"], "c.txt");
    let page = client.get("/catalog/list?path=/lab&count=1&after=c.txt").expect(200).json();
    assert_eq!((&page["entries"][0]["name"], &page["next"]), (&json!("d"), &json!(null)));
    let search = |condition: &str| paths(&client, &format!("under=/lab&condition={}", encoded(condition)));
    assert_eq!(search("target = \"m31\""), ["/lab/d/a.raw", "/lab/c.txt"]);
    assert_eq!(search("gain > 2 and at >= 2026-11-20"), ["/lab/d/a.raw", "/lab/d/b.raw"]);
    assert_eq!(paths(&client, "name=*.raw"), ["/lab/d/a.raw", "/lab/d/b.raw"]);
    let first = client.get("/catalog/find?under=/lab&name=*.raw&count=1").expect(200).json();
    let after = first["next"].as_str().unwrap();
    assert_eq!(paths(&client, &format!("name=*.raw&after={after}")), ["/lab/d/b.raw"]);
    let bad = client.get(&format!("/catalog/find?condition={}", encoded("gain > 2 and"))).expect(400);
    assert!(bad.json()["detail"].as_str().unwrap().contains("at character 13"), "{}", bad.json());
    for bad in
        ["find?name=[", "find?after=x", "stat", "stat?path=lab", "list?path=/lab/c.txt", "list?path=/l%20b"]
    {
        client.get(&format!("/catalog/{bad}")).expect(400).problem();
    }
    for missing in ["stat?path=/lab/x", "list?path=/none", "find?under=/none"] {
        client.get(&format!("/catalog/{missing}")).expect(404).problem();
    }
    let change = |path: &str, body: serde_json::Value| {
        let json = ("Content-Type", "application/json");
        let address = format!("/catalog/attributes?path={path}");
        client.send("POST", &address, &[json], body.to_string().as_bytes())
    };
    let added = json!({"add": [{"name": "size", "value": 3, "unit": "GiB"}, {"name": "ok", "value": true}], "remove": ["gain", "at"]});
    let stat = change("/lab/c.txt", added).expect(200).json();
    let names: Vec<_> = stat["attributes"].as_array().unwrap().iter().map(|a| a["name"].clone()).collect();
    assert_eq!(names, ["ok", "size", "target"]);
    assert_eq!(search("size = 3221225472"), ["/lab/c.txt"]);
    change("/lab/d", json!({"add": [{"name": "kind", "value": "night"}]})).expect(200);
    assert_eq!(search("kind = \"night\""), ["/lab/d"]);
    for bad in [json!({"add": [{"name": "", "value": 1}]}), json!({"add": [{"name": "a", "value": null}]})] {
        change("/lab/c.txt", bad).expect(400).problem();
    }
    change("/lab/c.txt", json!({"other": 1})).expect(400).problem();
    change("/", json!({"add": [{"name": "a", "value": 1}]})).expect(400).problem();
    change("/lab/none", json!({})).expect(404).problem();
}

#[test]
fn attributes_are_found_with_sqlite() {
    attributes_are_found(None);
}

#[test]
fn attributes_are_found_with_postgres() {
    if let Some(place) = Place::postgres() {
        attributes_are_found(Some(place));
    }
}

#[test]
fn a_server_with_postgres_starts_and_stops_on_a_thread_of_a_runtime() {
    let Some(Place::Postgres { connection, schema }) = Place::postgres() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let world = World::with(|options| {
            options.catalog = Some(CatalogSource::postgres(&connection, &schema));
        });
        world.until_stored(&world.client().upload("x", b"x"));
    });
}

#[test]
fn a_token_of_one_project_sees_only_that() {
    let world = World::new();
    let client = world.client();
    for project in ["own", "other"] {
        let pairs = [("project", project), ("path", "x"), ("attribute.target", "m31")];
        world.until_stored(&upload(&client, &pairs, b"x"));
    }
    let (_, token) = world.token(&[Scope::Read, Scope::Write], Some("own"));
    let (_, all) = world.token(&[Scope::Read], None);
    let (own, all) = (client.with_token(&token), client.with_token(&all));
    let condition = format!("condition={}", encoded("target = \"m31\""));
    assert_eq!(paths(&all, &condition), ["/own/x", "/other/x"]);
    assert_eq!(paths(&own, &condition), ["/own/x"]);
    assert_eq!(paths(&own, &format!("under=/own&{condition}")), ["/own/x"]);
    let listing = own.get("/catalog/list").expect(200).json();
    assert_eq!(listing["entries"][0]["name"], "x");
    let listing = all.get("/catalog/list").expect(200).json();
    assert_eq!(listing["entries"].as_array().unwrap().len(), 2);
    for address in [
        "find?under=/",
        "find?under=/other",
        "list?path=/",
        "stat?path=/other/x",
        "stat?path=/",
        "list?path=/other",
    ] {
        own.get(&format!("/catalog/{address}")).expect(403).problem();
    }
    let json = ("Content-Type", "application/json");
    own.send("POST", "/catalog/attributes?path=/other/x", &[json], b"{}").expect(403);
    all.send("POST", "/catalog/attributes?path=/own/x", &[json], b"{}").expect(403);
    own.get("/drivers/runs").expect(403);
}
