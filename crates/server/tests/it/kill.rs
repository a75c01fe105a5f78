//! Kill -9 of a real server process in the middle of an upload, a concatenation and deliveries: nothing acknowledged is lost,
//! and the work goes on at the next start.

use crate::client::{Client, contents, metadata};
use crate::status::until;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

/// Times that the server is killed.
const KILLS: usize = 10;

/// Program that is killed.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(example);

struct Process {
    child: Child,
    client: Client,
}

impl Process {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(&*PROGRAM)
            .arg(folder)
            .args(["--port", "0", "--sync-bytes", "200000"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening http://").unwrap().parse().unwrap();
        Self { child, client: Client { address, token: None } }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Kills the server and starts it again on the same folder.
    fn restart(&mut self, folder: &Path) {
        self.kill();
        *self = Self::start(folder);
    }

    fn is_stored(&self, upload: &str) -> bool {
        self.client.head(upload).expect(200).header("holdfast-state") == Some("stored")
    }

    /// Waits until an upload is stored, and checks that its contents are the only version of its object.
    fn check_stored(&self, upload: &str, path: &str, bytes: &[u8]) {
        until(&self.client, || self.is_stored(upload));
        let hash = blake3::hash(bytes).to_hex();
        assert_eq!(self.client.head(upload).expect(200).header("holdfast-blake3"), Some(hash.as_str()));
        let body = self.client.get(&format!("/projects/default/{path}")).expect(200).body;
        assert_eq!(blake3::hash(&body).to_hex(), hash);
        let listing = self.client.get(&format!("/projects/default?versions={path}")).expect(200).json();
        let versions: Vec<_> =
            listing["objects"].as_array().unwrap().iter().map(|version| version["blake3"].clone()).collect();
        assert_eq!(versions, [hash.as_str()]);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Example program beside this test. It is built first: a test run of one test target does not build examples. It has the
/// features of the whole workspace, so that dependencies are not built once more.
fn example() -> PathBuf {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut build = Command::new(cargo);
    build
        .args(["build", "--quiet", "--workspace", "--example", "serve"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
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
    test.parent().unwrap().parent().unwrap().join("examples/serve")
}

#[test]
fn an_upload_survives_ten_kills() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = contents(1, 24 << 20);
    let mut server = Process::start(folder.path());
    let upload = server.client.create("killed", Some(bytes.len() as u64));
    let mut acknowledged = 0;
    let mut offset = 0;
    for kill in 0..KILLS {
        // A small part is acknowledged, then a long request is interrupted at another place each time.
        let small = &bytes[offset..offset + 10_000];
        acknowledged = server.client.patch(&upload, offset as u64, &[], small).expect(204).offset();
        offset = acknowledged as usize;
        let mut long = server.client.start_patch(&upload, acknowledged, &[], bytes.len() - offset);
        let length = 300_000 * kill + 77_777 * (kill * kill % 7);
        let _ = long.write_all(&bytes[offset..offset + length]);
        server.restart(folder.path());
        let found = server.client.settled_offset(&upload);
        assert!(found >= acknowledged, "{found} after {acknowledged} were acknowledged");
        assert!(found <= (offset + length) as u64, "{found} of {} were sent", offset + length);
        offset = found as usize;
        let json = server.client.get(&format!("{upload}/blocks")).expect(200).json();
        let hashes: Vec<_> = bytes[..offset]
            .chunks_exact(1 << 20)
            .map(|block| blake3::hash(block).to_hex().to_string())
            .collect();
        assert_eq!(json["blocks"], serde_json::json!(hashes));
        assert!(server.client.get(&upload).expect(200).body == bytes[..offset]);
    }
    assert!(acknowledged > 0);
    server.client.patch(&upload, offset as u64, &[], &bytes[offset..]).expect(204);
    server.kill();
    let server = Process::start(folder.path());
    let body = server.client.get("/projects/default/killed").expect(200).body;
    assert_eq!(blake3::hash(&body), blake3::hash(&bytes));
}

#[test]
fn a_concatenation_survives_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::start(folder.path());
    let bytes: Vec<_> = (0..3).map(|seed| contents(seed, 4_000_001)).collect();
    let parts: Vec<_> = bytes.iter().map(|bytes| server.client.partial(bytes)).collect();
    let list = format!("final;{}", parts.join(" "));
    let named = metadata(&[("path", "whole")]);
    let headers = [("Upload-Concat", list.as_str()), ("Upload-Metadata", &named)];
    let created = server.client.tus("POST", "/files/", &headers, &[]).expect(201);
    let upload = created.header("location").unwrap();
    let mut progress = 0;
    let mut is_assembled = false;
    for _ in 0..KILLS {
        // The server is killed whenever it has got further.
        until(&server.client, || {
            let head = server.client.head(upload).expect(200);
            let found = head.header("holdfast-progress").map(|found| found.parse::<u64>().unwrap());
            is_assembled = found.is_none();
            let has_grown = found.is_some_and(|found| found > progress);
            assert!(is_assembled || found >= Some(progress), "{found:?} after {progress}");
            progress = found.unwrap_or(progress);
            is_assembled || has_grown
        });
        server.restart(folder.path());
        if is_assembled {
            break;
        }
    }
    server.check_stored(upload, "whole", &bytes.concat());
    // The parts are removed when nobody needs them any more.
    until(&server.client, || parts.iter().all(|part| server.client.head(part).status == 410));
}

#[test]
fn deliveries_survive_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Process::start(folder.path());
    let bytes: Vec<_> = (0..12).map(|seed| contents(seed, 200_000 + 300_000 * (seed as usize % 4))).collect();
    let path = |at: usize| format!("d/{at}");
    let upload = |(at, bytes): (usize, &Vec<u8>)| server.client.upload(&path(at), bytes);
    let uploads: Vec<_> = bytes.iter().enumerate().map(upload).collect();
    let mut stored = 0;
    for _ in 0..KILLS {
        server.restart(folder.path());
        // The next kill hits the deliveries that follow the next one that has ended.
        let count = |server: &Process| uploads.iter().filter(|upload| server.is_stored(upload)).count();
        let mut found = 0;
        until(&server.client, || {
            found = count(&server);
            assert!(found >= stored, "{found} after {stored} were stored");
            found > stored || found == uploads.len()
        });
        stored = found;
    }
    server.restart(folder.path());
    for (at, (upload, bytes)) in uploads.iter().zip(&bytes).enumerate() {
        server.check_stored(upload, &path(at), bytes);
    }
    assert_eq!(std::fs::read_dir(folder.path().join("uploads")).unwrap().count(), 0);
}
