//! Clients of other people: tuspy (Python) and tus-js-client (Node), as `scripts/need test` installs them.

use crate::client::contents;
use crate::world::World;
use std::path::PathBuf;
use std::process::Command;

/// Bytes that each client uploads; `HOLDFAST_FOREIGN_BYTES` sets another number.
fn size() -> usize {
    std::env::var("HOLDFAST_FOREIGN_BYTES").map_or(20_000_000, |text| text.parse().unwrap())
}

/// Folder of the project's tools.
fn tools() -> PathBuf {
    let cache = || PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/holdfast-tools");
    std::env::var_os("HOLDFAST_TOOLS").map_or_else(cache, PathBuf::from)
}

const TUSPY: &str = "
import sys
from tusclient import client
url, path = sys.argv[1:]
c = client.TusClient(url)
u = c.uploader(path, chunk_size=3_000_000, metadata={'filename': 'from tuspy'})
u.upload_chunk()
# A second uploader resumes at the address of the first.
u = c.uploader(path, chunk_size=4_000_000, url=u.url, upload_checksum=True)
assert u.offset == 3_000_000, u.offset
u.upload()
print(u.url)
";

#[test]
fn tuspy_uploads_and_resumes() {
    let python = tools().join("python/bin/python");
    let is_installed = Command::new(&python).args(["-c", "import tusclient"]).output();
    if !is_installed.is_ok_and(|output| output.status.success()) {
        eprintln!("the Python package tuspy is not installed: it uploads nothing");
        return;
    }
    let world = World::new();
    let bytes = contents(1, size());
    let file = world.folder().join("file");
    std::fs::write(&file, &bytes).unwrap();
    let output = Command::new(&python)
        .args(["-c", TUSPY, &format!("{}/files/", world.server().url())])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(world.client().get("/projects/default/from%20tuspy").expect(200).body == bytes);
}

const TUS_JS: &str = "
const tus = require('tus-js-client');
const fs = require('fs');
const { PassThrough } = require('stream');
const [url, path] = process.argv.slice(2);
function send(name, options) {
  return new Promise((resolve, reject) => {
    // Parallel uploads need random access; deferred lengths need a stream that is no file.
    let source = options.parallelUploads ? fs.readFileSync(path) : fs.createReadStream(path);
    if (options.uploadLengthDeferred) source = source.pipe(new PassThrough());
    new tus.Upload(source, {
      endpoint: url, chunkSize: 6e6, retryDelays: null, metadata: { filename: name },
      onError: reject, onSuccess: resolve, ...options,
    }).start();
  });
}
(async () => {
  await send('js plain', {});
  await send('js first bytes', { uploadDataDuringCreation: true });
  await send('js override', { overridePatchMethod: true });
  await send('js parallel', { parallelUploads: 3, chunkSize: Infinity });
  await send('js deferred', { uploadLengthDeferred: true });
})().catch((error) => { console.error(error); process.exit(1); });
";

#[test]
fn tus_js_client_uploads_in_all_its_ways() {
    let modules = tools().join("node/node_modules");
    if !modules.join("tus-js-client").exists() {
        eprintln!("the package tus-js-client of Node is not installed: it uploads nothing");
        return;
    }
    let world = World::new();
    let bytes = contents(2, size());
    let file = world.folder().join("file");
    std::fs::write(&file, &bytes).unwrap();
    let script = world.folder().join("upload.cjs");
    std::fs::write(&script, TUS_JS).unwrap();
    let mut node = Command::new("node");
    node.env("NODE_PATH", &modules).arg(&script).arg(format!("{}/files/", world.server().url())).arg(&file);
    let output = node.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let client = world.client();
    for name in ["plain", "first%20bytes", "override", "parallel", "deferred"] {
        let path = format!("/projects/default/js%20{name}");
        crate::status::until(&client, || {
            let head = client.send("HEAD", &path, &[], &[]);
            head.status == 200 && head.header("holdfast-state") != Some("assembling")
        });
        assert!(client.get(&path).expect(200).body == bytes, "{name}");
    }
}
