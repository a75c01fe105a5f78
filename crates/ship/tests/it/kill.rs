//! Kill -9 of real processes, shipper and archive, in the middle of a file: it arrives whole, and hardly a byte travels twice.
//!
//! `HOLDFAST_KILL_MEBIBYTES=N` takes a file of another size.

use crate::proxy::Proxy;
use crate::shipping::{noise, until};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

/// Times that each process is killed.
const KILLS: u64 = 10;

static SERVE: LazyLock<PathBuf> = LazyLock::new(|| example("serve"));
static SHIP: LazyLock<PathBuf> = LazyLock::new(|| example("ship"));

/// Process that is killed at the end.
struct Process(Child);

impl Process {
    fn serve(folder: &Path) -> (Self, SocketAddr) {
        let mut command = Command::new(&*SERVE);
        command.arg(folder).args(["--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening http://").unwrap().parse().unwrap();
        (Self(child), address)
    }

    fn ship(proxy: &Proxy, state: &Path, folder: &Path) -> Self {
        let mut command = Command::new(&*SHIP);
        command.args([&proxy.url(), "array"]).args([state, folder]).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Example program beside this test. It is built first: a test run of one test target does not build examples. It has the
/// features of the whole workspace, so that dependencies are not built once more.
fn example(name: &str) -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--workspace", "--example", name]);
    build.current_dir(env!("CARGO_MANIFEST_DIR"));
    // Build scripts depend on the variables of a package; those of this one would let them run again.
    let of_package = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars().filter(|(name, _)| of_package(name)) {
        build.env_remove(name);
    }
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success());
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(name)
}

/// Hash of the newest contents at the archive with their number of bytes; `None` while there are none.
fn archived(address: SocketAddr) -> Option<(blake3::Hash, u64)> {
    let endpoint = holdfast_remote::Endpoint::parse(&format!("http://{address}")).unwrap();
    let site = holdfast_remote::Site::connect(&endpoint).unwrap();
    let request = holdfast_remote::ReadRequest {
        project: "array".to_owned(),
        path: "run".to_owned(),
        ..Default::default()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut reader = site.read(&request).await.ok()?;
        reader.version.as_ref()?;
        let (mut hasher, mut length) = (blake3::Hasher::new(), 0);
        while let Some(chunk) = reader.chunk().await.ok()? {
            hasher.update(&chunk);
            length += chunk.len() as u64;
        }
        Some((hasher.finalize(), length))
    })
}

#[test]
fn kills_of_both_sides_lose_nothing() {
    let size = std::env::var("HOLDFAST_KILL_MEBIBYTES").map_or(48, |text| text.parse().unwrap()) << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("files")).unwrap();
    let mut hasher = blake3::Hasher::new();
    let mut file = File::create(path("files/run")).unwrap();
    for seed in 0..size >> 20 {
        let piece = noise(1 << 20, seed);
        hasher.update(&piece);
        file.write_all(&piece).unwrap();
    }
    drop(file);
    let (mut server, mut address) = Process::serve(&path("data"));
    let proxy = Proxy::start(address);
    let ship = || Process::ship(&proxy, &path("state"), &path("files"));
    let mut shipper = ship();
    for kill in 1..=2 * KILLS {
        // A mark is passed at another place within a block each time.
        let mark = size / (2 * KILLS + 2) * kill + kill * kill % 17 * 50_000;
        until("the next mark", || proxy.body_bytes() >= mark || archived(address).is_some());
        if kill % 2 == 0 {
            server.kill();
            (server, address) = Process::serve(&path("data"));
            proxy.set_archive(address);
        } else {
            shipper.kill();
            shipper = ship();
        }
    }
    until("the archive has the file", || archived(address).is_some());
    assert_eq!(archived(address), Some((hasher.finalize(), size)));
    let sent = proxy.body_bytes();
    println!("{sent} bytes were sent of {size}: {:.4}", sent as f64 / size as f64);
    // Each kill costs at most one window, here of two blocks and those that the latency of a busy machine adds.
    assert!(sent <= size + 2 * KILLS * (8 << 20), "{sent} bytes were sent of {size}");
}
