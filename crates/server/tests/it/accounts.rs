//! Accounts over HTTP: administration, logging in, switching, rights on collections, and tokens of older files.

use crate::client::{Client, Response, metadata};
use crate::world::World;
use holdfast_catalog::{Catalog, SiteId, SqliteStore, SystemHost};
use holdfast_server::{AccountName, NewToken, Scope, Scopes};
use serde_json::{Value, json};
use std::time::Duration;

const PASSWORD: &str = "correct horse";

fn send(client: &Client, method: &str, path: &str, body: &Value) -> Response {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    client.send(method, path, &[("Content-Type", "application/json")], &body)
}

/// Token with an account, as an administrator makes it.
fn token_of(world: &World, account: &str, scopes: &[Scope]) -> Client {
    let new = NewToken {
        name: "test".to_owned(),
        scopes: Scopes::of(scopes),
        project: None,
        account: Some(AccountName::parse(account).unwrap()),
        expires: None,
    };
    world.client().with_token(&world.server().tokens().create(new).unwrap().1)
}

fn admin(world: &World) -> Client {
    world.client().with_token(&world.token(&[Scope::Admin], None).1)
}

fn add(admin: &Client, name: &str, kind: &str) {
    send(admin, "POST", "/accounts", &json!({"name": name, "kind": kind})).expect(201);
}

fn grant(client: &Client, path: &str, subject: &str, right: &str) -> Response {
    send(client, "PUT", &format!("/grants?path={path}"), &json!({"subject": subject, "right": right}))
}

fn put(world: &World, client: &Client, project: &str, path: &str) {
    let named = metadata(&[("path", path), ("project", project)]);
    let headers = [
        ("Upload-Length", "1"),
        ("Upload-Metadata", named.as_str()),
        ("Content-Type", "application/offset+octet-stream"),
    ];
    let created = client.tus("POST", "/files/", &headers, b"x").expect(201);
    world.until_stored(created.header("location").unwrap());
}

#[test]
fn accounts_and_groups_are_managed_and_hashes_stay_inside() {
    let mut world = World::new();
    let client = admin(&world);
    let new = json!({"name": "ann", "kind": "person", "password": PASSWORD});
    let made = send(&client, "POST", "/accounts", &new).expect(201).json();
    let ann = json!({"name": "ann", "kind": "person", "has_password": true, "disabled": false});
    assert_eq!(made, ann);
    assert_eq!(send(&client, "POST", "/accounts", &new).expect(409).problem(), "account-exists");
    add(&client, "m31", "project");
    send(&client, "PUT", "/groups/m31/ann", &Value::Null).expect(204);
    send(&client, "PUT", "/groups/staff/ann", &Value::Null).expect(204);
    send(&client, "PUT", "/groups/staff/bob", &Value::Null).expect(404);
    assert_eq!(send(&client, "PUT", "/groups/ann/m31", &Value::Null).expect(409).problem(), "account-exists");
    send(&client, "POST", "/accounts", &json!({"name": "staff", "kind": "person"})).expect(409);
    for (body, problem) in [
        (json!({"name": "everyone", "kind": "person"}), "bad-name"),
        (json!({"name": "a/b", "kind": "person"}), "bad-name"),
        (json!({"name": "bob", "kind": "person", "password": "short"}), "bad-request"),
        (json!({"name": "bob", "kind": "robot"}), "bad-request"),
        (json!({"name": "bob", "kind": "person", "hash": "x"}), "bad-request"),
    ] {
        assert_eq!(send(&client, "POST", "/accounts", &body).expect(400).problem(), problem, "{body}");
    }
    // The catalog has the accounts, so they outlive the server.
    world.restart();
    let client = Client { address: world.server().address(), ..client };
    let listed = client.get("/accounts").expect(200).json();
    assert_eq!((&listed["accounts"][0], &listed["next"]), (&ann, &Value::Null));
    assert_eq!(client.get("/accounts?after=ann").expect(200).json()["accounts"][0]["name"], "m31");
    let all = client.get("/groups").expect(200).json();
    assert_eq!(all, json!([{"group": "m31", "account": "ann"}, {"group": "staff", "account": "ann"}]));
    assert_eq!(client.get("/groups?group=staff").expect(200).json(), json!([all[1]]));
    send(&client, "DELETE", "/groups/staff/ann", &Value::Null).expect(204);
    send(&client, "DELETE", "/groups/staff/ann", &Value::Null).expect(404);
    let changed = send(&client, "PATCH", "/accounts/ann", &json!({"disabled": true})).expect(200).json();
    assert_eq!((&changed["disabled"], &changed["has_password"]), (&json!(true), &json!(true)));
    send(&client, "PATCH", "/accounts/bob", &json!({"disabled": true})).expect(404);
    send(&client, "DELETE", "/accounts/ann", &Value::Null).expect(204);
    send(&client, "DELETE", "/accounts/ann", &Value::Null).expect(404);
    assert_eq!(client.get("/groups").expect(200).json(), json!([]));
    let guest = world.client().with_token(&world.token(&[Scope::Read, Scope::Write], None).1);
    for (method, path) in [
        ("GET", "/accounts"),
        ("POST", "/accounts"),
        ("PATCH", "/accounts/ann"),
        ("DELETE", "/accounts/ann"),
        ("GET", "/groups"),
        ("PUT", "/groups/a/b"),
        ("DELETE", "/groups/a/b"),
        ("PUT", "/grants?path=/lab"),
        ("DELETE", "/grants?path=/lab&subject=ann"),
    ] {
        let body = match (method, path) {
            ("POST", _) => new.clone(),
            ("PUT", "/grants?path=/lab") => json!({"subject": "ann", "right": "own"}),
            _ => json!({}),
        };
        assert_eq!(send(&guest, method, path, &body).status, 403, "{method} {path}");
    }
}

#[test]
fn people_log_in_switch_and_log_out() {
    let world = World::new();
    let admin = admin(&world);
    let client = world.client();
    let log_in = |client: &Client, account: &str, password: Option<&str>| {
        send(client, "POST", "/login", &json!({"account": account, "password": password}))
    };
    let new = json!({"name": "ann", "kind": "person", "password": PASSWORD});
    send(&admin, "POST", "/accounts", &new).expect(201);
    add(&admin, "m31", "project");
    add(&admin, "m33", "project");
    send(&admin, "PUT", "/groups/m31/ann", &Value::Null).expect(204);

    let refused = log_in(&client, "ann", Some("wrong horse")).expect(401);
    assert_eq!(refused.problem(), "unauthorized");
    // Unknown names, bad names and accounts without a password are refused alike.
    for account in ["bob", "a/b", "m31"] {
        assert_eq!(log_in(&client, account, Some(PASSWORD)).expect(401).body, refused.body, "{account}");
    }
    log_in(&client, "m31", None).expect(401);
    let logged = log_in(&client, "ann", Some(PASSWORD)).expect(201).json();
    let end = world.clock.now().plus(Duration::from_hours(12));
    assert_eq!((&logged["account"], &logged["expires"]), (&json!("ann"), &json!(end.milliseconds())));
    let ann = client.with_token(logged["secret"].as_str().unwrap());
    ann.get("/catalog/list").expect(403);
    ann.get("/tokens").expect(403);

    let switched = log_in(&ann, "m31", None).expect(201).json();
    let m31 = client.with_token(switched["secret"].as_str().unwrap());
    let token = world.server().tokens().check(switched["secret"].as_str().unwrap()).unwrap();
    assert_eq!(token.account.unwrap().as_str(), "m31");
    for other in ["m33", "ann", "bob"] {
        log_in(&ann, other, None).expect(403).problem();
    }
    // The attempts of one address are counted, right ones as well.
    assert_eq!(log_in(&client, "ann", Some(PASSWORD)).expect(429).problem(), "too-many-requests");
    world.clock.advance(Duration::from_mins(1));

    let change =
        |current: &str, new: &str| send(&ann, "POST", "/password", &json!({"current": current, "new": new}));
    change("wrong horse", "battery staple").expect(401);
    change(PASSWORD, "short").expect(400);
    change(PASSWORD, "battery staple").expect(204);
    log_in(&client, "ann", Some(PASSWORD)).expect(401);
    log_in(&client, "ann", Some("battery staple")).expect(201);
    send(&admin, "POST", "/password", &json!({"current": "a", "new": "battery staple"})).expect(400);

    send(&m31, "DELETE", "/login", &Value::Null).expect(204);
    m31.get("/catalog/list").expect(401);
    send(&admin, "DELETE", "/login", &Value::Null).expect(400);
    // A disabled account has no access until it is enabled again; a removed one never.
    for (disabled, status) in [(true, 401), (false, 403)] {
        send(&admin, "PATCH", "/accounts/ann", &json!({"disabled": disabled})).expect(200);
        assert_eq!(ann.get("/catalog/list").status, status, "{disabled}");
    }
    send(&admin, "DELETE", "/accounts/ann", &Value::Null).expect(204);
    let refused = ann.get("/catalog/list").expect(401).json();
    assert!(refused["detail"].as_str().unwrap().contains("disabled or removed"), "{refused}");
    // Tokens of accounts leave the list some time after their end.
    let count = || world.server().tokens().list().unwrap().len();
    let before = count();
    world.clock.advance(Duration::from_hours(24 * 8));
    world.token(&[Scope::Read], None);
    assert_eq!(count(), before + 1 - 3);
}

/// Site with `/lab` of Ann, of which Bob may read `/lab/open/a`, and everyone may write `/lab/c`; and `/secret`.
struct Lab {
    world: World,
    admin: Client,
    ann: Client,
    bob: Client,
    eve: Client,
}

fn lab() -> Lab {
    let world = World::new();
    let admin = admin(&world);
    for account in ["ann", "bob", "eve"] {
        add(&admin, account, "person");
    }
    let made = send(&admin, "POST", "/catalog/collections?path=/lab&owner=ann", &Value::Null);
    made.expect(201);
    send(&admin, "POST", "/catalog/collections?path=/x&owner=nobody", &Value::Null).expect(404);
    for path in ["raw/1", "raw/2", "open/a/1", "top"] {
        put(&world, &admin, "lab", path);
    }
    put(&world, &admin, "secret", "1");
    let scopes = [Scope::Read, Scope::Write];
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|account| token_of(&world, account, &scopes));
    send(&ann, "POST", "/catalog/collections?path=/new", &Value::Null).expect(403);
    send(&ann, "POST", "/catalog/collections?path=/secret/new", &Value::Null).expect(403);
    send(&ann, "POST", "/catalog/collections?path=/lab/c", &Value::Null).expect(201);
    put(&world, &ann, "lab", "c/ann");

    // An owner grants; others do not.
    grant(&bob, "/lab/open/a", "bob", "read").expect(403);
    grant(&ann, "/lab/open/a", "nobody", "read").expect(404);
    grant(&ann, "/lab/none", "bob", "read").expect(404);
    grant(&ann, "/lab/open/a", "bob", "read").expect(204);
    grant(&ann, "/lab/c", "everyone", "write").expect(204);
    grant(&ann, "/secret", "ann", "read").expect(403);
    let grants = bob.get("/grants?path=/lab/open/a").expect(200).json();
    let own = json!({"subject": "ann", "right": "own", "path": "/lab"});
    assert_eq!(grants, json!([own, {"subject": "bob", "right": "read", "path": "/lab/open/a"}]));
    eve.get("/grants?path=/lab/open/a").expect(403);

    Lab { world, admin, ann, bob, eve }
}

/// Names in a collection, with spaces between.
fn listed(client: &Client, path: &str) -> String {
    let list = client.get(&format!("/catalog/list?path={path}")).expect(200).json();
    let names = list["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap());
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn lists_and_searches_show_what_can_be_read() {
    let Lab { admin, ann, bob, eve, world } = lab();
    // Lists show the way to what can be read, and nothing else.
    assert_eq!(listed(&bob, "/"), "lab");
    assert_eq!(listed(&bob, "/lab"), "c open");
    assert_eq!(listed(&bob, "/lab/open"), "a");
    assert_eq!(listed(&eve, "/lab"), "c");
    assert_eq!(listed(&ann, "/"), "lab");
    assert_eq!(listed(&ann, "/lab"), "c open raw top");
    bob.get("/catalog/list?path=/lab/raw").expect(403);
    bob.get("/catalog/list?path=/secret").expect(403);
    bob.get("/catalog/list?path=/nowhere").expect(403);
    let found = |client: &Client, path: &str| {
        let page = client.get(&format!("/catalog/find?under={path}")).expect(200).json();
        let mut paths: Vec<_> = page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|e| e["path"].as_str().unwrap().to_owned())
            .collect();
        paths.sort();
        paths.join(" ")
    };
    assert_eq!(found(&bob, "/"), "/lab/c /lab/c/ann /lab/open/a /lab/open/a/1");
    assert_eq!(found(&eve, "/lab"), "/lab/c /lab/c/ann");
    let objects = bob.get("/projects/lab").expect(200).json();
    let paths: Vec<_> = objects["objects"].as_array().unwrap().iter().map(|object| &object["path"]).collect();
    assert_eq!(paths, ["c/ann", "open/a/1"]);
    let replicas = bob.get("/catalog/replicas?path=/lab").expect(200).json();
    assert_eq!(replicas["entries"].as_array().unwrap().len(), 2);

    // Revoked rights are gone at once; an administrator's token has all of them.
    send(&ann, "DELETE", "/grants?path=/lab/c&subject=everyone", &Value::Null).expect(204);
    send(&ann, "DELETE", "/grants?path=/lab/c&subject=everyone", &Value::Null).expect(400);
    eve.get("/catalog/list").expect(403);
    token_of(&world, "eve", &[Scope::Admin]).get("/catalog/list?path=/secret").expect(200);
    for path in ["/metrics", "/sites"] {
        eve.get(path).expect(403);
    }
    grant(&admin, "/", "eve", "read").expect(204);
    assert_eq!(listed(&eve, "/"), "lab secret");
    eve.get("/metrics").expect(200);
}

#[test]
fn links_show_nothing_of_targets_that_cannot_be_read() {
    let Lab { mut world, admin, ann, eve, .. } = lab();
    world.stop();
    let store = SqliteStore::open(&world.data().join("catalog.db")).unwrap();
    let mut catalog = Catalog::open_own(store, SiteId::random(), Box::new(SystemHost)).unwrap();
    catalog.link(&"/secret/1".parse().unwrap(), &"/lab/c/link".parse().unwrap()).unwrap();
    catalog.link(&"/lab/raw/1".parse().unwrap(), &"/lab/c/raw".parse().unwrap()).unwrap();
    drop(catalog);
    world.restart();
    let address = world.server().address();
    let [admin, ann, eve] = [admin, ann, eve].map(|client| Client { address, ..client });
    assert_eq!(listed(&eve, "/lab/c"), "ann");
    assert_eq!(listed(&ann, "/lab/c"), "ann raw");
    assert_eq!(listed(&admin, "/lab/c"), "ann link raw");
    let found = eve.get("/catalog/find?under=/lab/c").expect(200).json();
    assert_eq!(found["entries"].as_array().unwrap().len(), 1);
    assert_eq!(eve.get("/projects/lab").expect(200).json()["objects"].as_array().unwrap().len(), 1);
    for path in ["/catalog/stat?path=/lab/c/link", "/projects/lab/c/link", "/projects/lab?versions=c/link"] {
        eve.get(path).expect(403);
        ann.get(path).expect(403);
        admin.get(path).expect(200);
    }
    ann.get("/projects/lab/c/raw").expect(200);
    // The copy of a link would be an object.
    for (client, status) in [(&ann, 403), (&admin, 201)] {
        let copy = "/catalog/copies?from=/lab/c&to=/lab/copy&recursive=true";
        assert_eq!(send(client, "POST", copy, &Value::Null).status, status);
    }
    let named = metadata(&[("path", "c/link"), ("project", "lab")]);
    let headers = [("Upload-Length", "5"), ("Upload-Metadata", named.as_str())];
    ann.tus("POST", "/files/", &headers, &[]).expect(403);
}

#[test]
fn every_route_asks_for_the_right_of_the_account() {
    let Lab { admin, bob, eve, world: _world, .. } = lab();
    // Every route asks for its right: reader, writer by everyone, and a stranger to the place.
    let json = json!({"add": [{"name": "a", "value": 1}]});
    for (method, path, body, reader, writer) in [
        ("GET", "/catalog/stat?path={}", Value::Null, 200, 200),
        ("GET", "/projects{}", Value::Null, 200, 200),
        ("POST", "/catalog/attributes?path={}", json, 403, 200),
        ("POST", "/catalog/copies?from={}&to={}-copy", Value::Null, 403, 201),
        ("POST", "/catalog/moves?from={}-copy&to={}-moved", Value::Null, 403, 204),
        ("DELETE", "/catalog/entries?path={}-moved", Value::Null, 403, 200),
        ("PUT", "/grants?path={}", json!({"subject": "eve", "right": "own"}), 403, 403),
        ("DELETE", "/grants?path={}&subject=eve", Value::Null, 403, 403),
    ] {
        let at = |place: &str| path.replace("{}", place);
        assert_eq!(send(&bob, method, &at("/lab/open/a/1"), &body).status, reader, "{method} {path}");
        assert_eq!(send(&eve, method, &at("/lab/c/ann"), &body).status, writer, "{method} {path}");
        assert_eq!(send(&eve, method, &at("/lab/raw/1"), &body).status, 403, "{method} {path}");
        assert_eq!(send(&eve, method, &at("/lab/raw/none"), &body).status, 403, "{method} {path}");
    }
    // A batch is refused by the right on one of its entries, and changes nothing then.
    let batch = |paths: &[&str]| {
        let entry = |path: &&str| json!({"path": path, "add": [{"name": "b", "value": 1}]});
        json!({"entries": paths.iter().map(entry).collect::<Vec<_>>()})
    };
    let route = "/catalog/attributes/batch";
    send(&eve, "POST", route, &batch(&["/lab/c/ann"])).expect(200);
    for (paths, place) in
        [(["/lab/c/ann", "/lab/raw/1"], 1), (["/lab/raw/none", "/lab/c/ann"], 0), (["/lab/c/ann", "/"], 1)]
    {
        let refused = send(&eve, "POST", route, &batch(&paths)).expect(403);
        assert_eq!((refused.problem().as_str(), &refused.json()["entry"]), ("forbidden", &json!(place)));
    }
    send(&bob, "POST", route, &batch(&["/lab/open/a/1"])).expect(403);
    let raw = admin.get("/catalog/stat?path=/lab/raw/1").expect(200).json();
    assert_eq!(raw["attributes"], json!([]));
    // The trash shows and gives back only what could be read and changed.
    let trash = eve.get("/catalog/trash").expect(200).json();
    let id = trash["entries"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(trash["entries"].as_array().unwrap().len(), 1);
    send(&admin, "DELETE", "/catalog/entries?path=/lab/open/a/1", &Value::Null).expect(200);
    let trash = bob.get("/catalog/trash").expect(200).json();
    assert_eq!(trash["entries"].as_array().unwrap().len(), 2);
    let hidden = trash["entries"].as_array().unwrap().iter().find(|entry| entry["path"] == "/lab/open/a/1");
    let hidden = hidden.unwrap()["id"].as_str().unwrap();
    send(&eve, "POST", &format!("/catalog/trash/{hidden}"), &Value::Null).expect(404);
    send(&bob, "POST", &format!("/catalog/trash/{hidden}"), &Value::Null).expect(403);
    send(&eve, "POST", &format!("/catalog/trash/{id}"), &Value::Null).expect(200);
}

#[test]
fn uploads_need_the_right_to_write_at_their_paths() {
    let Lab { ann, bob, eve, world: _world, .. } = lab();
    // Uploads go where the account may write, by their path from the start to the end.
    let named = metadata(&[("path", "raw/3"), ("project", "lab")]);
    let headers = [("Upload-Length", "5"), ("Upload-Metadata", named.as_str())];
    bob.tus("POST", "/files/", &headers, &[]).expect(403);
    let created = ann.tus("POST", "/files/", &headers, &[]).expect(201);
    let upload = created.header("location").unwrap();
    for client in [&bob, &eve] {
        client.head(upload).expect(403);
        client.get(upload).expect(403);
        client.patch(upload, 0, &[], b"abcde").expect(403);
        client.tus("DELETE", upload, &[], &[]).expect(403);
    }
    assert_eq!(bob.get("/projects/lab").expect(200).json()["growing"], json!([]));
    send(&ann, "POST", &format!("{upload}/path"), &json!({"path": "c/3"})).expect(204);
    eve.head(upload).expect(200);
    send(&eve, "POST", &format!("{upload}/path"), &json!({"path": "raw/3"})).expect(403);
    let part = [("Upload-Length", "5"), ("Upload-Concat", "partial"), ("Upload-Metadata", "project bGFi")];
    bob.tus("POST", "/files/", &part[..2], &[]).expect(201);
    let project = "project c2VjcmV0";
    bob.tus("POST", "/files/", &[part[0], part[1], ("Upload-Metadata", project)], &[]).expect(403);
}

#[test]
fn tokens_of_the_first_layout_are_kept() {
    let mut world = World::new();
    let (_, token) = world.token(&[Scope::Read], None);
    world.stop();
    let file = rusqlite::Connection::open(world.data().join("tokens.db")).unwrap();
    file.execute_batch("ALTER TABLE tokens DROP COLUMN account; PRAGMA user_version = 1").unwrap();
    drop(file);
    world.restart().with_token(&token).get("/catalog/list").expect(200);
    token_of(&world, "ann", &[Scope::Read]).get("/catalog/list").expect(401);
    let refused = NewToken {
        name: "x".to_owned(),
        scopes: Scopes::of(&[Scope::Replicate]),
        project: None,
        account: Some(AccountName::parse("ann").unwrap()),
        expires: None,
    };
    assert!(world.server().tokens().create(refused).unwrap_err().to_string().contains("replicate"));
}

#[test]
fn denied_requests_and_administrative_acts_are_recorded() {
    let mut world = World::new();
    let admin = admin(&world);
    let new = json!({"name": "ann", "kind": "person", "password": PASSWORD});
    send(&admin, "POST", "/accounts", &new).expect(201);
    send(&admin, "POST", "/catalog/collections?path=/lab&owner=ann", &Value::Null).expect(201);
    send(&admin, "PUT", "/groups/staff/ann", &Value::Null).expect(204);
    send(&admin, "PATCH", "/accounts/ann", &json!({"disabled": false, "password": "battery staple"}))
        .expect(200);
    let client = world.client();
    let wrong = json!({"account": "ann", "password": PASSWORD});
    send(&client, "POST", "/login", &wrong).expect(401);
    let right = json!({"account": "ann", "password": "battery staple"});
    let logged = send(&client, "POST", "/login", &right).expect(201).json();
    let ann = client.with_token(logged["secret"].as_str().unwrap());
    grant(&ann, "/lab", "staff", "read").expect(204);
    ann.get("/catalog/list?path=/other").expect(403);
    ann.get("/audit").expect(403);
    client.get("/accounts").expect(401);
    send(&ann, "DELETE", "/catalog/entries?path=/lab&recursive=true", &Value::Null).expect(200);
    let trash = ann.get("/catalog/trash").expect(200).json();
    let id = trash["entries"][0]["id"].as_str().unwrap();
    send(&ann, "POST", &format!("/catalog/trash/{id}"), &Value::Null).expect(200);
    send(&ann, "DELETE", "/grants?path=/lab&subject=staff", &Value::Null).expect(204);
    send(&admin, "DELETE", "/groups/staff/ann", &Value::Null).expect(204);
    send(&admin, "DELETE", "/accounts/ann", &Value::Null).expect(204);

    // The journal has the records, so they outlive the server; and nothing of a password.
    let acts = |client: &Client, query: &str| {
        let page = client.get(&format!("/audit?{query}")).expect(200).json();
        let records = page["records"].as_array().unwrap().clone();
        assert!(!page.to_string().contains("battery"), "{page}");
        records
    };
    world.restart();
    let admin = Client { address: world.server().address(), ..admin };
    let all = acts(&admin, "");
    let told: Vec<_> = all
        .iter()
        .rev()
        .map(|r| format!("{} {}", r["act"].as_str().unwrap(), r["object"].as_str().unwrap()))
        .collect();
    let expected = [
        "account add ann",
        "grant own on /lab to ann",
        "group add staff/ann",
        "account enable ann",
        "passwd ann",
        "login ann",
        "login ann",
        "grant read on /lab to staff",
        "GET /catalog/list?path=/other",
        "GET /audit",
        "GET /accounts",
        "trash restore /lab",
        "revoke /lab of staff",
        "group rm staff/ann",
        "account rm ann",
    ];
    assert_eq!(told, expected);
    let by_ann = |record: &&Value| record["account"] == "ann";
    assert_eq!(all.iter().filter(by_ann).count(), 5);
    assert!(all.iter().all(|record| record["peer"] == "127.0.0.1"), "{all:?}");
    let denied = acts(&admin, "denied=true");
    let told: Vec<_> = denied.iter().map(|record| &record["act"]).collect();
    assert_eq!(told, ["GET", "GET", "GET", "login"]);
    assert_eq!((&denied[0]["token"], &denied[1]["token"]), (&Value::Null, &logged["id"]));
    let page = admin.get("/audit?count=2").expect(200).json();
    let next = page["next"].as_i64().unwrap();
    assert_eq!(acts(&admin, &format!("count=3&before={next}")), all[2..5]);
    // Records end after 90 days, also for those that ask.
    world.clock.advance(Duration::from_hours(24 * 89));
    assert_eq!(acts(&admin, "").len(), expected.len());
    let since = world.clock.now().milliseconds() - 1000;
    assert_eq!(acts(&admin, &format!("since={since}")), Vec::<Value>::new());
    world.clock.advance(Duration::from_hours(25));
    assert_eq!(acts(&admin, ""), Vec::<Value>::new());
}
