//! `Stenographer`, with its index: it starts `stenotype` on an interface, and is asked over HTTPS, as its own tools do.

use crate::program::Program;
use crate::work_folder::WorkFolder;
use crate::{BenchError, tools};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Seconds after which it begins another file: what is in one that it still writes is not found.
const FILE_SECONDS: u32 = 5;

/// One that records.
pub struct Stenographer {
    program: Program,
    folder: PathBuf,
    port: u16,
}

impl Stenographer {
    /// Begins on an interface; left out where it is not installed.
    pub fn begin(place: &WorkFolder, interface: &str) -> Result<Self, BenchError> {
        let (server, stenotype) = (tools::need("stenographer")?, tools::need("stenotype")?);
        tools::need("curl")?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.map_err(BenchError::during("finding a port"))?.port();
        let folder = place.file("stenographer");
        let _ = fs::remove_dir_all(&folder);
        for part in ["packets", "index", "certificates"].map(|part| folder.join(part)) {
            fs::create_dir_all(&part).map_err(BenchError::file(&part, "make it"))?;
        }
        certify(&folder.join("certificates"))?;
        let age = format!("--fileage_sec={FILE_SECONDS}");
        // It would become `nobody`, who may not write here.
        let flags = [
            "--uid=root",
            "--gid=root",
            "--seccomp=none",
            "--no_watchdogs",
            "--blocks=256",
            "--blockage_sec=1",
            &age,
        ];
        let config = serde_json::json!({
            "Threads": [{
                "PacketsDirectory": folder.join("packets"),
                "IndexDirectory": folder.join("index"),
                "MaxDirectoryFiles": 30_000,
                "DiskFreePercentage": 1,
            }],
            "StenotypePath": stenotype,
            "Interface": interface,
            "Port": port,
            "Host": "127.0.0.1",
            "Flags": flags,
            "CertPath": folder.join("certificates"),
        });
        let path = folder.join("config");
        fs::write(&path, config.to_string()).map_err(BenchError::file(&path, "write it"))?;
        let words = ["-syslog=false".to_owned(), format!("-config={}", path.display())];
        let mut program = Program::start(&server, &words, Stdio::null(), &folder.join("said"))?;
        program.until("its port", |_| TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(Self { program, folder, port })
    }

    /// Packets that are in files of which there is an index.
    pub fn packets(&mut self) -> Result<u64, BenchError> {
        self.program.runs()?;
        let (packets, index) = (self.folder.join("packets"), self.folder.join("index"));
        let indexed = fs::read_dir(&index).map_err(BenchError::file(&index, "read it"))?;
        let mut count = 0;
        for file in indexed.flatten() {
            let path = packets.join(file.file_name());
            if path.is_file() && !file.file_name().as_encoded_bytes().starts_with(b".") {
                count += crate::packet_recorders::count_in_blocks(&path)
                    .map_err(BenchError::file(&path, "read it"))?;
            }
        }
        Ok(count)
    }

    /// What it answers to a question: a capture file.
    pub fn ask(&self, question: &str) -> Result<Vec<u8>, BenchError> {
        let file = |name: &str| self.folder.join("certificates").join(name);
        let mut command = tools::command("curl");
        command.args(["--silent", "--show-error", "--fail", "--insecure", "--data", question, "--cert"]);
        command.arg(file("client_cert.pem")).arg("--key").arg(file("client_key.pem"));
        command.arg(format!("https://127.0.0.1:{}/query", self.port));
        let done =
            command.stdin(Stdio::null()).output().map_err(BenchError::during("asking stenographer"))?;
        if done.status.success() {
            return Ok(done.stdout);
        }
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        Err(BenchError::program(format!("{command:?}"), said))
    }
}

impl Drop for Stenographer {
    /// It leaves what it has started behind.
    fn drop(&mut self) {
        let parent = self.program.pid().to_string();
        let is_ours = |pid: &i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Behind the name in brackets: the state, the parent.
            stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)) == Some(&parent)
        };
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for pid in pids.filter(is_ours).filter_map(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Makes an authority, and what it certifies: it answers only whom it knows by that.
fn certify(folder: &Path) -> Result<(), BenchError> {
    tools::need("openssl")?;
    let file = |name: &str| folder.join(name).display().to_string();
    let (ca, ca_key) = (file("ca_cert.pem"), file("ca_key.pem"));
    let key = ["-newkey", "rsa:2048", "-nodes"];
    let own =
        ["req", "-x509", "-subj", "/O=Holdfast/CN=bench", "-days", "2", "-out", &ca, "-keyout", &ca_key];
    tools::output("openssl", &[&own[..], &key[..]].concat())?;
    for who in ["server", "client"] {
        let [cert, own_key, asked] = ["cert.pem", "key.pem", "csr"].map(|end| file(&format!("{who}_{end}")));
        let ask = ["req", "-subj", "/O=Holdfast/CN=127.0.0.1", "-out", &asked, "-keyout", &own_key];
        tools::output("openssl", &[&ask[..], &key[..]].concat())?;
        let sign = ["x509", "-req", "-in", &asked, "-out", &cert, "-days", "2"];
        let by = ["-CA", &ca, "-CAkey", &ca_key, "-CAcreateserial"];
        tools::output("openssl", &[&sign[..], &by[..]].concat())?;
    }
    Ok(())
}
