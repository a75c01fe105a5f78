//! Promise 1 in a process without free descriptors: the recorder neither gives up nor spins while a client waits.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdfast_protocol::server::{Arrival, Listener};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::os::unix::net::UnixStream;

#[test]
fn a_client_for_whom_there_is_no_descriptor_waits_until_there_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = Listener::bind_at(path.clone()).unwrap();
    let waiting = UnixStream::connect(&path).unwrap();
    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).unwrap();
    let mut all = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        all.push(file);
    }
    for _ in 0..3 {
        assert!(matches!(listener.accept(|| true), Ok(Arrival::Later)));
    }
    drop(all);
    assert!(matches!(listener.accept(|| true), Ok(Arrival::Client(_))));
    assert!(matches!(listener.accept(|| true), Ok(Arrival::Nobody)));
    drop(waiting);
}
