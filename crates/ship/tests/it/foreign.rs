//! Shipping to a tus server of other people: tusd, as `scripts/need test` installs it.

use crate::proxy::Proxy;
use crate::shipping::{noise, until};
use holdfast_ship::settings::{FolderSettings, Settings};
use holdfast_ship::shipper::{Notice, Until, ship};
use std::collections::BTreeMap;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

struct Tusd(Child, SocketAddr);

impl Tusd {
    /// Starts a server; `None` if there is no program.
    fn start(folder: &Path) -> Option<Self> {
        let cache = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/holdfast-tools");
        let program = std::env::var_os("HOLDFAST_TOOLS").map_or_else(cache, PathBuf::from).join("bin/tusd");
        // The port is free, as nobody else asks for this one in between.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = Command::new(program);
        command.args(["-host", "127.0.0.1", "-port", &address.port().to_string(), "-upload-dir"]);
        command.arg(folder).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(child) => {
                until("tusd listens", || TcpStream::connect(address).is_ok());
                Some(Self(child, address))
            }
            Err(error) => {
                eprintln!("tusd is not installed, nothing is shipped to it: {error}");
                None
            }
        }
    }
}

impl Drop for Tusd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Contents at the server by the name in their metadata.
fn uploads(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "info") {
            let info: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            let name = info["MetaData"]["path"].as_str().unwrap().to_owned();
            found.insert(name, fs::read(path.with_extension("")).unwrap());
        }
    }
    found
}

#[test]
fn tusd_gets_verified_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("uploads")).unwrap();
    fs::create_dir_all(path("files/sub")).unwrap();
    let Some(tusd) = Tusd::start(&path("uploads")) else { return };
    let proxy = Proxy::start(tusd.1);
    let files = [("empty", 0), ("small", 1000), ("sub/block", 1 << 20), ("large", 7_000_001)];
    for (at, (name, length)) in files.iter().enumerate() {
        fs::write(path("files").join(name), noise(*length, at as u64)).unwrap();
    }
    let mut settings = Settings::new(&format!("{}/files/", proxy.url()), "array", path("state"));
    settings.folders = vec![FolderSettings::new(path("files"))];
    settings.folders[0].quiet = Duration::from_millis(100);
    // One cut on the way: the upload goes on at the server's offset.
    proxy.cut_in(5_000_000);
    let mut delivered = BTreeMap::new();
    let mut tell = |notice: &Notice| {
        if let Notice::Delivered { path, delivery } = notice {
            delivered.insert(path.clone(), *delivery);
        }
    };
    let status = ship(settings.clone(), Until::Shipped, &|| false, &mut tell).unwrap();
    assert_eq!((status.counts.delivered, status.totals.unverified), (4, 0));
    let found = uploads(&path("uploads"));
    for (at, (name, length)) in files.iter().enumerate() {
        assert!(found.contains_key(*name), "{name} of {:?}", found.keys());
        assert!(found[*name] == noise(*length, at as u64), "{name}");
        assert!(delivered[*name].is_verified, "{name}");
    }
    let status = ship(settings, Until::Shipped, &|| false, &mut |_| {}).unwrap();
    assert_eq!((status.counts.delivered, status.totals.sent_bytes), (4, 0));
}
