//! Commands that go on until they are stopped.

use super::{Deaf, MANY, stopped};
use crate::common::recording::PATIENCE;
use crate::common::site::Site;
use crate::common::{ends, folder, run};
use crate::vaults::held;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Instant;

pub(super) const COMMANDS: &[&str] =
    &["serve", "ship", "ship report", "ship status", "mount", "shell", "metrics"];

/// Address of this machine that nobody uses.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}

/// Repeats a question until it is answered by yes.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "{what}");
    }
}

/// Bytes that a server answers to a request for its metrics.
fn page(address: &str) -> String {
    let mut text = String::new();
    if let Ok(mut stream) = TcpStream::connect(address) {
        let _ = stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let _ = stream.read_to_string(&mut text);
    }
    text
}

fn can_mount() -> bool {
    rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists()
}

#[test]
fn servers_serve_though_nobody_reads_it() {
    let folder = folder();
    let dir = folder.path();
    let site = Site::start(dir, &[]);
    held(dir);
    fs::create_dir(dir.join("many")).unwrap();
    for at in 0..MANY {
        fs::write(dir.join(format!("many/file-{at:03}")), at.to_string()).unwrap();
    }
    let mut deaf = Deaf::new(&site);
    let address = free_address();
    let served = deaf.start(&format!("serve other --listen {address}"));
    until("the site does not answer", || {
        run(dir, &format!("touch /lab/one --site http://{address}")).code == Some(0)
    });
    assert_eq!(stopped(served), Some(0));

    deaf.run(&format!("ship many --to {}/lab --into shipped --state st --once --quiet 100ms", site.url()));
    assert_eq!(site.ends("ls /lab/shipped", 0).out.lines().count(), MANY);
    deaf.run("ship status st");
    deaf.run("ship report st -o report.html");
    assert!(dir.join("report.html").is_file());

    let address = free_address();
    let metrics = deaf.start(&format!("metrics r.hf --listen {address}"));
    until("no metrics", || page(&address).contains("holdfast_"));
    assert_eq!(stopped(metrics), Some(0));

    // A program that the shell starts has the closed output, too: it is told by what it leaves.
    let words =
        ["shell", "--", "sh", "-c", "cat /hf/lab/shipped/file-007 > seen"].map(str::to_owned).to_vec();
    assert_eq!(deaf.start_words(words).wait().unwrap().code(), Some(0));
    assert_eq!(fs::read(dir.join("seen")).unwrap(), b"7");
    if can_mount() {
        fs::create_dir(dir.join("mnt")).unwrap();
        let mounted = deaf.start("mount mnt");
        until("nothing is mounted", || dir.join("mnt/lab/shipped/file-007").is_file());
        assert_eq!(stopped(mounted), Some(0));
    } else {
        eprintln!("the mount is not tested: this is not root, or there is no /dev/fuse");
        deaf.tried.insert("mount".to_owned());
    }
    ends(dir, "status r.hf", 0);
    deaf.tried_all(COMMANDS);
}
