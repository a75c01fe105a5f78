//! Foreign tus servers: only what they announce is used, and damaged bodies are refused by the checksum.

use crate::offline::canned;
use crate::world::{World, contents, run, upload};
use holdfast_remote::{Endpoint, RemoteErrorKind, Segment, Site, UploadAddress, UploadState};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

#[test]
fn missing_extensions_are_named() {
    let endpoint = canned(
        "HTTP/1.1 204 No Content\r\nTus-Version: 1.0.0,0.2.2\r\nTus-Extension: creation\r\nConnection: close\r\n\r\n",
    );
    run(async {
        let site = Site::connect(&endpoint).unwrap();
        for error in [
            site.create(&upload("f", None, None)).await.unwrap_err(),
            site.create_partial(5, None).await.unwrap_err(),
            site.append(
                &"http://host/files/1".parse().unwrap(),
                &Segment { ahead: true, ..Segment::default() },
            )
            .await
            .unwrap_err(),
        ] {
            assert_eq!(error.kind, RemoteErrorKind::Unsupported, "{error}");
        }
    });
}

#[test]
fn a_finished_upload_of_a_foreign_server_is_complete() {
    let endpoint = canned(
        "HTTP/1.1 200 OK\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: 5\r\nUpload-Length: 5\r\nConnection: close\r\n\r\n",
    );
    run(async {
        let site = Site::connect(&endpoint).unwrap();
        let address: UploadAddress = format!("{}files/1", endpoint.url).parse().unwrap();
        let progress = site.progress(&address, None).await.unwrap();
        assert_eq!((progress.state, progress.offset), (UploadState::Complete, 5));
    });
}

/// Proxy that changes the last byte of every request which has a body.
fn damaging_proxy(server: SocketAddr) -> Endpoint {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let Ok(mut server) = TcpStream::connect(server) else { return };
            let (mut from_server, mut to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
            std::thread::spawn(move || {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(length @ 1..) = client.read(&mut buffer) {
                    if !buffer[..length].ends_with(b"\r\n") {
                        buffer[length - 1] ^= 1;
                    }
                    if server.write_all(&buffer[..length]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    endpoint
}

#[test]
fn a_damaged_body_is_refused_and_can_be_sent_again() {
    let world = World::new();
    run(async {
        let site = world.site();
        let damaging = Site::connect(&damaging_proxy(world.server.address())).unwrap();
        let bytes = contents(9, 1000);
        let error = damaging.create(&upload("f", Some(1000), Some(bytes.clone()))).await.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::ChecksumMismatch);
        let address = site.create(&upload("f", Some(1000), None)).await.unwrap().address;
        let id = address.to_string().rsplit('/').next().unwrap().to_owned();
        let segment = Segment { bytes, ..Segment::default() };
        // The damage hits the last byte that passes, so the whole request is one piece.
        let through: UploadAddress =
            format!("{}files/{id}", damaging_proxy(world.server.address()).url).parse().unwrap();
        let error = damaging.append(&through, &segment).await.unwrap_err();
        assert_eq!((error.kind, error.offset), (RemoteErrorKind::ChecksumMismatch, Some(0)));
        assert_eq!(site.append(&address, &segment).await.unwrap().offset, 1000);
    });
}
