//! Servers of the tests, started by the project's script and killed by their own process ids.
#![allow(unreachable_pub, reason = "tests of several crates have it as a module")]

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time after which a server counts as not started.
const PATIENCE: Duration = Duration::from_mins(2);

/// Keys of the S3 server.
pub const KEYS: [&str; 2] = ["holdfast-key", "holdfast-secret-of-tests"];

/// Server, killed by its own process id when it is dropped.
pub struct Server {
    child: Child,
    pub port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn tools() -> Option<PathBuf> {
    let home = || Some(Path::new(&std::env::var_os("HOME")?).join(".cache/holdfast-tools"));
    std::env::var_os("HOLDFAST_TOOLS").map(Into::into).or_else(home)
}

/// Starts a server; `None`, and said, where it is not installed.
pub fn server(what: &str, installed: &str, folder: &Path) -> Option<Server> {
    if !tools()?.join(installed).exists() {
        eprintln!("{installed} is not installed (scripts/need test): vaults in {what} are not tested");
        return None;
    }
    // Started from a test of any crate.
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/serve");
    let port = free_port();
    let child = Command::new(script)
        .args([what.as_ref(), folder.as_os_str(), port.to_string().as_ref()])
        .env("AWS_ACCESS_KEY_ID", KEYS[0])
        .env("AWS_SECRET_ACCESS_KEY", KEYS[1])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut server = Server { child, port };
    let started = Instant::now();
    let is_ready = || match what {
        "s3" => TcpStream::connect(("127.0.0.1", port)).is_ok(),
        _ => folder.join("details.json").exists(),
    };
    while !is_ready() {
        assert!(started.elapsed() < PATIENCE, "the server for {what} does not start");
        assert!(server.child.try_wait().unwrap().is_none(), "the server for {what} has ended");
        std::thread::yield_now();
    }
    Some(server)
}
