//! TLS: pinned certificates, and fingerprints that agree with those of the server.

use crate::world::{World, run};
use holdfast_remote::{Endpoint, Fingerprint, RemoteErrorKind, Site};
use holdfast_server::Transport;

#[test]
fn only_the_pinned_certificate_is_trusted() {
    let world = World::with(|options| options.transport = Transport::SelfSigned);
    let fingerprint = world.server.fingerprint().unwrap();
    let right: Fingerprint = fingerprint.to_string().parse().unwrap();
    assert_eq!(right.to_string(), fingerprint.to_string());
    run(async {
        let site = |fingerprint| Site::connect(&Endpoint { fingerprint, ..world.endpoint() }).unwrap();
        site(Some(right)).abilities().await.unwrap();
        for wrong in [Some(Fingerprint::of(b"other")), None] {
            let error = site(wrong).abilities().await.unwrap_err();
            assert_eq!(error.kind, RemoteErrorKind::Untrusted, "{error}");
            assert!(error.message.contains("certificate is not trusted"), "{error}");
        }
        let plain = Endpoint { fingerprint: Some(right), ..Endpoint::parse("http://host").unwrap() };
        assert_eq!(Site::connect(&plain).unwrap_err().kind, RemoteErrorKind::Refused);
    });
}
