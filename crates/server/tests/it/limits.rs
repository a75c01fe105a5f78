//! Limits: sizes of bodies and uploads, silence, connections, open uploads, and the stop of a server.

use crate::client::{contents, finish, metadata};
use crate::world::World;
use holdfast_server::Scope;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

#[test]
fn bodies_beyond_their_limits_are_refused() {
    let world = World::with(|options| {
        options.limits.request_body = 1000;
        options.limits.upload = 2000;
    });
    let client = world.client();
    let upload = client.create("a", Some(2000));
    assert_eq!(client.patch(&upload, 0, &[], &[1; 1001]).expect(413).problem(), "too-large");
    assert_eq!(client.patch(&upload, 0, &[], &[1; 1000]).expect(204).offset(), 1000);
    let named = metadata(&[("path", "b")]);
    let headers = [("Upload-Length", "2001"), ("Upload-Metadata", named.as_str())];
    client.tus("POST", "/files/", &headers, &[]).expect(413);
    let deferred = client.create("c", None);
    client.patch(&deferred, 0, &[("Upload-Length", "2001")], &[]).expect(413);
    client.patch(&deferred, 0, &[], &[1; 1000]).expect(204);
    client.patch(&deferred, 1000, &[], &[1; 1000]).expect(204);
    client.patch(&deferred, 2000, &[], &[1; 1]).expect(413);
    // A chunked body announces no length; its surplus is refused when it arrives.
    let chunked = client.create("d", Some(10));
    let headers = [
        ("Tus-Resumable", "1.0.0"),
        ("Content-Type", "application/offset+octet-stream"),
        ("Upload-Offset", "0"),
        ("Transfer-Encoding", "chunked"),
    ];
    let mut stream = client.start("PATCH", &chunked, &headers, None);
    stream.write_all(b"b\r\nhello world\r\n0\r\n\r\n").unwrap();
    assert_eq!(finish(stream).unwrap().expect(413).offset(), 0);
    let mut stream = client.start("PATCH", &chunked, &headers, None);
    stream.write_all(b"5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n").unwrap();
    assert_eq!(finish(stream).unwrap().expect(204).offset(), 10);
}

#[test]
fn a_silent_body_ends_and_its_bytes_count() {
    let world = World::with(|options| options.limits.body_idle = Duration::from_millis(100));
    let client = world.client();
    let upload = client.create("silent", Some(10));
    // On a busy machine the silence may seem to begin before the bytes; then nothing counts, and they are sent again.
    crate::status::until(&client, || {
        let ended = client.patch(&upload, 0, &[("Content-Length", "10")], b"12345").expect(408);
        assert_eq!(ended.problem(), "body-timeout");
        assert_eq!(client.settled_offset(&upload), ended.offset());
        ended.offset() == 5
    });
}

#[test]
fn connections_beyond_the_limit_are_told_so() {
    let world = World::with(|options| {
        options.limits.connections = 1;
        options.limits.strangers = Some(2);
    });
    let client = world.client();
    // An answered request shows that the first connection is being served.
    let mut first = client.start("GET", "/healthz", &[("Connection", "keep-alive")], None);
    let mut byte = [0; 1];
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        first.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    let refused = client.get("/openapi.json").expect(503);
    assert_eq!(refused.problem(), "too-many-connections");
    assert_eq!(refused.header("retry-after"), Some("5"));
    // Who watches the server is answered all the same, also if others never end the heads of their requests.
    let silent: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(client.address).unwrap();
            let _ = stream.write_all(b"GET /openapi.json HTTP/1.1\r\nX: ");
            stream
        })
        .collect();
    client.get("/healthz").expect(200);
    drop((first, silent));
    crate::status::until(&client, || {
        finish(client.start("GET", "/openapi.json", &[], None)).is_some_and(|answer| answer.status == 200)
    });
    // The silent connections count.
    let mut rejected = 0;
    crate::status::until(&client, || {
        let metrics = client.get("/metrics");
        let text = String::from_utf8_lossy(&metrics.body);
        let count = text.lines().find_map(|line| line.strip_prefix("holdfast_rejected_connections_total "));
        rejected = count.map_or(0, |count| count.parse().unwrap());
        metrics.status == 200
    });
    assert!(rejected >= 42, "{rejected}");
}

/// Connection from another address of this machine.
fn connect_from(address: &str, to: std::net::SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((address.parse::<std::net::Ipv4Addr>().unwrap(), 0).into()).unwrap();
        socket.connect(to).await.unwrap().into_std().unwrap()
    });
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Asks with a token, on a connection that stays open.
fn ask(stream: &mut TcpStream, token: &str) {
    let request = format!("HEAD /catalog/list HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let (mut head, mut byte) = (Vec::new(), [0; 1]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
}

#[test]
fn a_client_without_a_token_cannot_hold_all_connections() {
    let world = World::with(|options| {
        options.limits.connections = 20;
        options.limits.strangers = Some(4);
    });
    let (_, token) = world.token(&[Scope::Read], None);
    let client = world.client();
    // Heads that never end, and the body of a request that is refused.
    let dribbled: Vec<_> = (0..40)
        .map(|number| {
            let mut stream = TcpStream::connect(client.address).unwrap();
            let start: &[u8] = if number % 2 == 0 {
                b"GET /tokens HTTP/1.1\r\nHost: a\r\nX: "
            } else {
                b"PATCH /files/0 HTTP/1.1\r\nHost: a\r\nContent-Length: 9000000\r\n\r\na"
            };
            let _ = stream.write_all(start);
            stream
        })
        .collect();
    client.get("/healthz").expect(200);
    // Clients with a token find room, also behind the same address, and more of them than strangers are admitted.
    let mut kept = Vec::new();
    for address in ["127.0.0.1", "127.0.0.2"] {
        for _ in 0..6 {
            let mut stream = connect_from(address, client.address);
            ask(&mut stream, &token);
            kept.push(stream);
        }
    }
    // They keep it.
    for stream in &mut kept {
        ask(stream, &token);
    }
    drop((dribbled, kept));
}

#[test]
fn a_client_of_an_open_server_cannot_hold_all_connections() {
    let world = World::with(|options| {
        options.limits.connections = 8;
        options.limits.strangers = Some(4);
    });
    let client = world.client();
    let headers = [("Content-Type", "application/json"), ("Expect", "100-continue")];
    // Bodies that the server waits for.
    let held: Vec<_> = (0..12)
        .map(|_| {
            let mut stream = client.start("POST", "/tokens", &headers, Some(1000));
            let mut start = [0; 12];
            stream.read_exact(&mut start).unwrap();
            assert_eq!(&start, b"HTTP/1.1 100");
            stream
        })
        .collect();
    client.get("/catalog/list").expect(200);
    drop(held);
}

#[test]
fn the_body_of_a_request_without_a_token_ends_in_time() {
    let world = World::with(|options| options.limits.public_body_time = Duration::from_millis(100));
    world.token(&[Scope::Read], None);
    let json = ("Content-Type", "application/json");
    let mut slow = world.client().start("POST", "/login", &[json], Some(1000));
    slow.set_read_timeout(Some(crate::world::PATIENCE)).unwrap();
    slow.write_all(b"{").unwrap();
    assert_eq!(finish(slow).unwrap().expect(408).problem(), "body-timeout");
    let world = World::new();
    world.token(&[Scope::Read], None);
    let large = world.client().send("POST", "/login", &[json], &b" ".repeat(70_000));
    assert_eq!(large.expect(413).problem(), "too-large");
}

#[test]
fn open_uploads_beyond_the_limit_are_refused() {
    let world = World::with(|options| options.limits.open_uploads = 2);
    let client = world.client();
    let uploads: Vec<_> = (0..2).map(|_| client.create("a", Some(1))).collect();
    let named = metadata(&[("path", "a")]);
    let headers = [("Upload-Length", "1"), ("Upload-Metadata", named.as_str())];
    assert_eq!(client.tus("POST", "/files/", &headers, &[]).expect(503).problem(), "too-many-uploads");
    client.tus("DELETE", &uploads[0], &[], &[]).expect(204);
    client.create("a", Some(1));
}

#[test]
fn a_request_whose_client_goes_away_is_finished() {
    let world = World::new();
    let client = world.client();
    for _ in 0..20 {
        let upload = client.create("left", Some(5));
        let file = world.data().join("uploads").join(upload.trim_start_matches("/files/"));
        drop(client.start("DELETE", &upload, &[("Tus-Resumable", "1.0.0")], Some(0)));
        crate::status::until(&client, || client.head(&upload).status == 410 && !file.exists());
    }
    for number in 0..20 {
        let part = client.partial(b"part");
        let path = format!("left-{number}");
        let named = metadata(&[("path", &path)]);
        let list = format!("final;{part}");
        let headers = [("Tus-Resumable", "1.0.0"), ("Upload-Concat", &list), ("Upload-Metadata", &named)];
        drop(client.start("POST", "/files/", &headers, Some(0)));
        crate::status::until(&client, || client.get(&format!("/projects/default/{path}")).body == b"part");
    }
}

#[test]
fn a_server_starts_and_stops_on_a_thread_of_another_runtime() {
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let mut world = World::new();
        world.client().upload("a", b"1");
        assert_eq!(world.restart().get("/projects/default/a").expect(200).body, b"1");
        let mut options = world.options.clone();
        options.data = world.folder().join("other");
        options.listen = world.server().address();
        let error = holdfast_server::Server::start(options).unwrap_err().to_string();
        assert!(error.starts_with("cannot listen on 127.0.0.1:") && error.contains("in use; "), "{error}");
    });
}

#[test]
fn a_stop_waits_for_requests_and_then_cuts_them() {
    let mut world = World::with(|options| options.limits.sync_bytes = 1);
    let client = world.client();
    let bytes = contents(1, 10_000);
    let upload = client.create("stop", Some(10_000));
    let mut slow = client.start_patch(&upload, 0, &[], bytes.len());
    slow.write_all(&bytes[..5000]).unwrap();
    crate::status::until(&client, || client.head(&upload).expect(200).offset() == 5000);
    assert!(!world.take().shutdown(Duration::from_millis(50)));
    drop(slow);
    let client = world.restart();
    assert_eq!(client.settled_offset(&upload), 5000);
    // A server whose requests end in time stops in order.
    assert!(world.take().shutdown(Duration::from_mins(1)));
    let client = world.restart();
    client.patch(&upload, 5000, &[], &bytes[5000..]).expect(204);
    assert_eq!(client.get(&upload).expect(200).body, bytes);
}
