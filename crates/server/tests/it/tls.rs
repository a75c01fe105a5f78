//! TLS: a self-signed certificate, its fingerprint over restarts, and the client that pins it.

use crate::client::Response;
use crate::world::World;
use holdfast_remote::{Fingerprint, pinned};
use holdfast_server::{Event, Transport};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

fn get(address: SocketAddr, fingerprint: Fingerprint, path: &str) -> io::Result<Response> {
    let config = Arc::new(pinned(fingerprint).unwrap());
    let name = ServerName::try_from("holdfast.example").unwrap();
    let connection = ClientConnection::new(config, name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address)?);
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Response::parse(&bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

#[test]
fn a_pinned_certificate_is_accepted_and_any_other_refused() {
    let mut world = World::with(|options| options.transport = Transport::SelfSigned);
    let fingerprint = world.server().fingerprint().unwrap();
    let printed = world.until(|event| match event {
        Event::Started { url, fingerprint } => {
            assert!(url.starts_with("https://"));
            fingerprint
        }
        _ => None,
    });
    assert_eq!(printed.parse(), Ok(fingerprint));
    get(world.server().address(), fingerprint, "/healthz").unwrap().expect(200);
    let other = "00".repeat(32).parse().unwrap();
    let refused = get(world.server().address(), other, "/healthz").unwrap_err();
    assert!(refused.to_string().contains("certificate"), "{refused}");
    world.restart();
    assert_eq!(world.server().fingerprint(), Some(fingerprint));
    get(world.server().address(), fingerprint, "/metrics").unwrap().expect(200);
}

#[test]
fn certificates_come_from_files() {
    let first = World::with(|options| options.transport = Transport::SelfSigned);
    let certificate = first.data().join("certificate.pem");
    let key = first.data().join("key.pem");
    let files = Transport::Files { certificate: certificate.clone(), key: key.clone() };
    let second = World::with(|options| options.transport = files);
    let fingerprint = second.server().fingerprint().unwrap();
    assert_eq!(Some(fingerprint), first.server().fingerprint());
    get(second.server().address(), fingerprint, "/healthz").unwrap().expect(200);
    let mut options = second.options.clone();
    options.data = second.folder().join("third");
    options.transport = Transport::Files { certificate: key, key: certificate };
    let error = holdfast_server::Server::start(options).unwrap_err();
    assert_eq!(error.kind(), holdfast_server::ErrorKind::Usage);
    assert!(error.to_string().contains("it contains no certificate"), "{error}");
}
