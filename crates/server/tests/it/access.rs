//! Access: open access, the table of routes and scopes, expired and revoked tokens, projects, and the rate limit.

use crate::client::{Client, metadata};
use crate::world::World;
use holdfast_server::Scope;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

#[test]
fn access_is_open_on_loopback_until_the_first_token() {
    let world = World::new();
    let client = world.client();
    client.create("a", Some(1));
    client.get("/tokens").expect(200);
    // A page whose name points to the loopback address has no access.
    let rebound = client.send("GET", "/tokens", &[("Host", "evil.example:80")], &[]).expect(401);
    assert_eq!(rebound.problem(), "unauthorized");
    for host in ["localhost:1", "127.0.0.1", "[::1]:7"] {
        client.send("GET", "/tokens", &[("Host", host)], &[]).expect(200);
    }
    let (info, _) = world.token(&[Scope::Admin], None);
    let refused = client.get("/tokens").expect(401);
    assert_eq!(refused.header("www-authenticate"), Some("Bearer realm=\"holdfast\""));
    client.send("OPTIONS", "/files/", &[], &[]).expect(204);
    client.get("/healthz").expect(200);
    client.get("/openapi.json").expect(200);
    // Without its only token the server does not open again.
    assert!(world.server().tokens().revoke(info.id).unwrap());
    client.get("/tokens").expect(401);
}

#[test]
fn web_pages_of_other_origins_change_nothing_and_read_nothing() {
    let world = World::new();
    let client = world.client();
    let upload = client.upload("a", b"kept");
    world.until_stored(&upload);
    let foreign = ("Origin", "https://evil.example");
    for (method, path) in [
        ("DELETE", "/catalog/entries?path=/default/a"),
        ("POST", "/catalog/moves?from=/default/a&to=/default/b"),
        ("POST", "/catalog/copies?from=/default/a&to=/default/b"),
        ("POST", "/catalog/collections?path=/default/d"),
        ("POST", "/tokens"),
        ("POST", "/files/"),
        ("POST", "/login"),
    ] {
        for header in
            [foreign, ("Origin", "null"), ("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Site", "same-site")]
        {
            let refused = client.send(method, path, &[header], &[]).expect(403);
            assert_eq!(refused.problem(), "forbidden", "{method} {path} {header:?}");
        }
    }
    let by_name = [("X-HTTP-Method-Override", "DELETE"), foreign];
    client.send("GET", "/catalog/entries?path=/default/a", &by_name, &[]).expect(403);
    let read = client.send("GET", "/projects/default/a", &[foreign], &[]).expect(200);
    assert!(read.headers.iter().all(|(name, _)| !name.starts_with("access-control-")), "{:?}", read.headers);
    assert_eq!(read.header("cross-origin-resource-policy"), Some("same-origin"));
    // Its own pages, programs, and programs in browsers that have a token may change things.
    let own = format!("http://{}", client.address);
    client.send("POST", "/catalog/collections?path=/default/own", &[("Origin", &own)], &[]).expect(201);
    let (_, token) = world.token(&[Scope::Admin], None);
    let client = client.with_token(&token);
    client.send("DELETE", "/catalog/entries?path=/default/a", &[foreign], &[]).expect(200);
}

#[test]
fn new_files_are_private_whatever_the_umask_is() {
    rustix::process::umask(rustix::fs::Mode::empty());
    let world = World::new();
    let stored = world.client().upload("a", b"stored");
    world.until_stored(&stored);
    world.client().create("b", Some(9));
    let mut folders = vec![world.data().to_owned()];
    let mut found = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let (path, about) = entry.map(|entry| (entry.path(), entry.metadata().unwrap())).unwrap();
            assert_eq!(about.permissions().mode() & 0o077, 0, "{}", path.display());
            if about.is_dir() {
                folders.push(path);
            } else {
                found += 1;
            }
        }
    }
    assert!(found >= 8, "{found} files");
    assert_eq!(std::fs::metadata(world.data()).unwrap().permissions().mode() & 0o077, 0);
}

#[test]
fn a_refused_client_may_send_its_body_before_it_reads_the_answer() {
    let world = World::new();
    let upload = world.client().create("a", None);
    world.token(&[Scope::Admin], None);
    // More than the buffers of the sockets hold.
    let body = crate::client::contents(1, 7 << 20);
    let refused = world.client().patch(&upload, 0, &[], &body).expect(401);
    assert_eq!(refused.problem(), "unauthorized");
}

#[test]
fn a_server_open_to_the_network_is_closed_without_tokens() {
    let world = World::with(|options| {
        options.listen.set_ip("0.0.0.0".parse().unwrap());
        options.transport = holdfast_server::Transport::Plain;
    });
    let address = ([127, 0, 0, 1], world.server().address().port()).into();
    let client = Client { address, token: None };
    client.get("/metrics").expect(401);
    let (_, token) = world.token(&[Scope::Read], None);
    client.with_token(&token).get("/metrics").expect(200);
}

/// Row of the table: method, path, headers, scopes.
type Route = (&'static str, String, Vec<(&'static str, String)>, &'static [Scope]);

/// Routes with the scopes that open them, besides that of administrators.
fn routes(upload: &str) -> Vec<Route> {
    let tus = ("Tus-Resumable", "1.0.0".to_owned());
    let file = ("Upload-Metadata", metadata(&[("path", "a"), ("project", "own")]));
    let stream = ("Content-Type", "application/offset+octet-stream".to_owned());
    let length = ("Upload-Length", "9".to_owned());
    let json = ("Content-Type", "application/json".to_owned());
    vec![
        ("POST", "/files/".to_owned(), vec![tus.clone(), file.clone(), length.clone()], &[Scope::Write]),
        ("POST", "/files".to_owned(), vec![tus.clone(), file, length], &[Scope::Write]),
        ("HEAD", upload.to_owned(), vec![tus.clone()], &[Scope::Read, Scope::Write]),
        (
            "PATCH",
            upload.to_owned(),
            vec![tus.clone(), stream, ("Upload-Offset", "0".to_owned())],
            &[Scope::Write],
        ),
        ("GET", upload.to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", format!("{upload}/blocks"), Vec::new(), &[Scope::Read, Scope::Write]),
        (
            "POST",
            format!("{upload}/path"),
            vec![("Content-Type", "application/json".to_owned())],
            &[Scope::Write],
        ),
        ("GET", "/projects/own".to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", "/projects/own/a".to_owned(), Vec::new(), &[Scope::Read]),
        ("HEAD", "/projects/own/a".to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", "/catalog/stat?path=/own/a".to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", "/catalog/list?path=/own".to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", "/catalog/find?under=/own".to_owned(), Vec::new(), &[Scope::Read]),
        ("POST", "/catalog/attributes?path=/own/a".to_owned(), vec![json.clone()], &[Scope::Write]),
        ("POST", "/catalog/attributes/batch".to_owned(), vec![json.clone()], &[Scope::Write]),
        ("POST", "/catalog/collections?path=/own/d&parents=true".to_owned(), Vec::new(), &[Scope::Write]),
        ("POST", "/catalog/copies?from=/own/d/x&to=/own/d/y".to_owned(), Vec::new(), &[Scope::Write]),
        ("POST", "/catalog/moves?from=/own/d/x&to=/own/d/y".to_owned(), Vec::new(), &[Scope::Write]),
        ("DELETE", "/catalog/entries?path=/own/d/x".to_owned(), Vec::new(), &[Scope::Write]),
        ("GET", "/catalog/trash?path=/own".to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", "/catalog/replicas?path=/own".to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", "/drivers/runs?project=own".to_owned(), Vec::new(), &[]),
        ("GET", "/metrics".to_owned(), Vec::new(), &[Scope::Read]),
        ("GET", "/tokens".to_owned(), Vec::new(), &[]),
        ("POST", "/tokens".to_owned(), vec![json], &[]),
        ("DELETE", "/tokens/0000000000000000".to_owned(), Vec::new(), &[]),
        ("DELETE", upload.to_owned(), vec![tus], &[Scope::Write]),
    ]
}

#[test]
fn every_route_requires_its_scopes() {
    let world = World::new();
    let (_, admin) = world.token(&[Scope::Admin], None);
    let admin = world.client().with_token(&admin);
    for scope in Scope::ALL {
        let (_, all) = world.token(&[scope], None);
        let (_, own) = world.token(&[scope], Some("own"));
        let (_, other) = world.token(&[scope], Some("other"));
        let named = metadata(&[("path", "a"), ("project", "own")]);
        let headers = [("Upload-Length", "5"), ("Upload-Metadata", named.as_str())];
        let created = admin.tus("POST", "/files/", &headers, &[]).expect(201);
        let upload = created.header("location").unwrap();
        for (method, path, headers, scopes) in routes(upload) {
            let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let body: &[u8] = if path == "/tokens" && method == "POST" {
                b"{\"name\":\"n\",\"scopes\":[\"read\"],\"project\":\"own\"}"
            } else if path.ends_with("/path") {
                b"{\"path\":\"a\"}"
            } else if path.ends_with("/batch") {
                b"{\"entries\":[{\"path\":\"/own/a\"}]}"
            } else if path.starts_with("/catalog/attributes") {
                b"{}"
            } else {
                b""
            };
            let may = scope == Scope::Admin || scopes.contains(&scope);
            let send =
                |token: &str| world.client().with_token(token).send(method, &path, &headers, body).status;
            let what = format!("{method} {path} with {scope:?}");
            let no_token = world.client().send(method, &path, &headers, body).status;
            assert_eq!(no_token, 401, "{what}");
            // The metrics are those of all projects; every project's administrator has its own list of tokens.
            let is_global = path == "/metrics";
            let is_listing = path == "/tokens" && method == "GET" || path.starts_with("/tokens/");
            assert_eq!(
                send(&other),
                if may && is_listing { send(&own) } else { 403 },
                "{what} of another project"
            );
            let own_status = send(&own);
            assert_eq!(own_status == 403, !may || is_global, "{what} of its project: {own_status}");
            let status = send(&all);
            assert_eq!(status == 403, !may, "{what} of all projects: {status}");
        }
    }
}

#[test]
fn expired_revoked_and_unknown_tokens_are_refused() {
    let mut world = World::new();
    let now = world.clock.now();
    let (_, expiring) = world.token_until(&[Scope::Read], None, Some(now.plus(Duration::from_mins(1))));
    let (revoked_info, revoked) = world.token(&[Scope::Read], None);
    let get = |client: Client, token: &str| client.with_token(token).get("/metrics");
    for token in [&expiring, &revoked] {
        get(world.client(), token).expect(200);
    }
    // The last use is written behind the answer.
    crate::status::until(&world.client(), || {
        world.server().tokens().list().unwrap().iter().all(|token| token.last_use == Some(now))
    });
    world.clock.advance(Duration::from_mins(1));
    world.server().tokens().revoke(revoked_info.id).unwrap();
    let client = world.restart();
    for (token, reason) in [
        (expiring.as_str(), "the token has expired"),
        (revoked.as_str(), "the token was revoked"),
        (&format!("hft_{}_{}", revoked_info.id, "0".repeat(64)), "the token is unknown"),
        (&format!("hft_{}_{}", "0".repeat(16), "0".repeat(64)), "the token is unknown"),
        ("nonsense", "the token is unknown"),
    ] {
        let refused = get(client.clone(), token).expect(401);
        assert!(refused.json()["detail"].as_str().unwrap().contains(reason), "{token}");
        let challenge = refused.header("www-authenticate").unwrap();
        assert!(challenge.contains("invalid_token"), "{challenge}");
    }
    client.send("GET", "/metrics", &[("Authorization", "Basic YTpi")], &[]).expect(401);
    // Neither a secret nor its hash in digits is in the file.
    let secret = expiring.rsplit('_').next().unwrap();
    let stored = std::fs::read(world.data().join("tokens.db")).unwrap();
    assert!(!stored.windows(secret.len()).any(|window| window == secret.as_bytes()));
}

#[test]
fn tokens_are_managed_over_http() {
    let world = World::new();
    let client = world.client();
    let json = ("Content-Type", "application/json");
    let create = |client: &Client, body: &str| client.send("POST", "/tokens", &[json], body.as_bytes());
    let root = create(&client, "{\"name\":\"root\",\"scopes\":[\"admin\"]}").expect(201).json();
    let root = client.with_token(root["secret"].as_str().unwrap());
    let wanted = "{\"name\":\"lab\",\"scopes\":[\"admin\"],\"project\":\"lab\",\"valid_seconds\":60}";
    let lab = create(&root, wanted).expect(201).json();
    let lab_client = client.with_token(lab["secret"].as_str().unwrap());
    let own = lab_client.get("/tokens").expect(200).json();
    assert_eq!(own.as_array().unwrap().len(), 1);
    assert_eq!((&own[0]["name"], &own[0]["project"]), (&"lab".into(), &"lab".into()));
    assert!(!own.to_string().contains(lab["secret"].as_str().unwrap()));
    create(&lab_client, "{\"name\":\"x\",\"scopes\":[\"read\"]}").expect(403);
    create(&lab_client, "{\"name\":\"x\",\"scopes\":[\"read\"],\"project\":\"lab\"}").expect(201);
    let tokens = root.get("/tokens").expect(200).json();
    let root_id =
        tokens.as_array().unwrap().iter().find(|token| token["name"] == "root").unwrap()["id"].clone();
    let root_id = root_id.as_str().unwrap();
    lab_client.send("DELETE", &format!("/tokens/{root_id}"), &[], &[]).expect(404);
    for (body, status) in [
        ("{\"name\":\"\",\"scopes\":[\"read\"]}", 400),
        ("{\"name\":\"x\",\"scopes\":[]}", 400),
        ("{\"name\":\"x\",\"scopes\":[\"root\"]}", 400),
        ("{\"name\":\"x\",\"scopes\":[\"read\"],\"project\":\"../x\"}", 400),
        ("{\"name\":\"x\",\"scopes\":[\"read\"],\"extra\":1}", 400),
        ("{", 400),
    ] {
        create(&root, body).expect(status).problem();
    }
    root.send("POST", "/tokens", &[], b"{}").expect(415).problem();
    let id = lab["token"]["id"].as_str().unwrap();
    root.send("DELETE", &format!("/tokens/{id}"), &[], &[]).expect(204);
    lab_client.get("/tokens").expect(401);
}

#[test]
fn uploads_go_to_the_project_of_the_token() {
    let world = World::new();
    let (_, lab) = world.token(&[Scope::Write, Scope::Read], Some("lab"));
    let lab = world.client().with_token(&lab);
    let part = lab.partial(b"part");
    let upload = lab.upload("a", b"lab");
    assert_eq!(lab.get("/projects/lab/a").expect(200).body, b"lab");
    let (_, other) = world.token(&[Scope::Write, Scope::Read], Some("other"));
    let other = world.client().with_token(&other);
    for path in [&upload, &part] {
        other.head(path).expect(403);
    }
    let named = metadata(&[("path", "w")]);
    let list = format!("final;{part}");
    let headers = [("Upload-Concat", list.as_str()), ("Upload-Metadata", &named)];
    other.tus("POST", "/files/", &headers, &[]).expect(403);
    let created = lab.tus("POST", "/files/", &headers, &[]).expect(201);
    lab.head(created.header("location").unwrap()).expect(200);
}

#[test]
fn too_many_requests_of_one_token_are_refused_for_a_while() {
    let world = World::with(|options| {
        options.limits.requests_per_second = 1;
        options.limits.request_burst = 5;
    });
    let tokens: Vec<_> = (0..2).map(|_| world.token(&[Scope::Read], None).1).collect();
    let client = world.client().with_token(&tokens[0]);
    for _ in 0..5 {
        client.get("/metrics").expect(200);
    }
    let refused = client.get("/metrics").expect(429);
    assert_eq!((refused.problem().as_str(), refused.header("retry-after")), ("too-many-requests", Some("1")));
    world.client().with_token(&tokens[1]).get("/metrics").expect(200);
    world.clock.advance(Duration::from_secs(1));
    client.get("/metrics").expect(200);
    client.get("/metrics").expect(429);
    client.get("/healthz").expect(200);
}
