//! Servers that are absent, silent, or no servers of this kind.

use crate::world::{World, contents, run, upload};
use holdfast_remote::{Endpoint, RemoteErrorKind, Site};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn an_absent_server_is_unreachable_and_reachable_when_it_comes_back() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    run(async {
        let site = Site::connect(&Endpoint::parse(&format!("http://{address}")).unwrap()).unwrap();
        let error = site.create(&upload("f", Some(0), None)).await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::Unreachable);
        let start = format!("cannot ask for the abilities of http://{address}/files/: ");
        assert!(error.message.starts_with(&start) && error.message.contains("; check"), "{error}");
        let _world = World::with(|options| options.listen = address);
        site.create(&upload("f", Some(0), None)).await.unwrap();
    });
}

#[test]
fn a_silent_server_times_out() {
    // Connections wait in the queue of the listener and get no answer.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    endpoint.idle = Duration::from_millis(10);
    run(async {
        let site = Site::connect(&endpoint).unwrap();
        let error = site.abilities().await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::TimedOut, "{error}");
    });
}

/// Address of a server that gives each connection this answer.
pub(crate) fn canned(answer: &'static str) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    endpoint
}

#[test]
fn other_servers_are_recognised() {
    run(async {
        for (answer, expected) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                RemoteErrorKind::ServerFailed,
            ),
            (
                "HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
                RemoteErrorKind::NotFound,
            ),
            (
                "HTTP/1.1 302 Found\r\nLocation: http://x/\r\nConnection: close\r\n\r\n",
                RemoteErrorKind::Refused,
            ),
            ("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nConnection: close\r\n\r\n", RemoteErrorKind::Busy),
            ("HTTP/1.1 507 Full\r\nRetry-After: 60\r\nConnection: close\r\n\r\n", RemoteErrorKind::Full),
            ("HTTP/1.1 502 Bad\r\nConnection: close\r\n\r\n", RemoteErrorKind::ServerFailed),
            ("SSH-2.0-OpenSSH\r\n", RemoteErrorKind::Unreachable),
            ("", RemoteErrorKind::Unreachable),
        ] {
            let site = Site::connect(&canned(answer)).unwrap();
            let error = site.abilities().await.unwrap_err();
            assert_eq!(error.kind, expected, "{answer} {error}");
            let wait = answer.split("Retry-After: ").nth(1).and_then(|rest| rest.split('\r').next());
            assert_eq!(error.retry_after.map(|wait| wait.as_secs().to_string()).as_deref(), wait);
            let (start, rest) = error.message.split_once(": ").unwrap();
            assert!(start.starts_with("cannot ask for the abilities of http://"), "{error}");
            assert!(rest.contains("; "), "{error}");
        }
    });
}

#[test]
fn a_server_that_stops_is_unreachable() {
    let world = World::new();
    run(async {
        let site = world.site();
        let address = site.create(&upload("f", Some(10), None)).await.unwrap().address;
        drop(world);
        let error = site.progress(&address, None).await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::Unreachable);
        let segment = holdfast_remote::Segment { bytes: contents(1, 10), ..Default::default() };
        assert_eq!(site.append(&address, &segment).await.unwrap_err().kind, RemoteErrorKind::Unreachable);
    });
}
