//! Views of remote files as local ones, in which scripts are timed.

use super::s3::{BUCKET, KEY};
use crate::program::Program;
use crate::work_folder::WorkFolder;
use crate::{BenchError, tools};
use rustix::mount::{UnmountFlags, unmount};
use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Seconds after which a script is given up.
const DEADLINE: u64 = 900;

/// Space for spools, caches and output beside the contents.
const ROOM: u64 = 64 << 20;

/// Project at the site.
pub const PROJECT: &str = "p";

/// Way in which a view shows files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// `holdfast mount`, with further options.
    Mount(Vec<String>),
    /// `holdfast shell` by the way of this name, with further options.
    Shell(&'static str, Vec<String>),
    /// `rclone mount` with a mode of its cache.
    Rclone(&'static str),
    /// `s3fs` as it comes.
    S3fs,
}

impl Way {
    /// Name in a table.
    pub fn name(&self) -> String {
        match self {
            Self::Mount(_) => "mount".to_owned(),
            Self::Shell(way, _) => format!("shell, {way}"),
            Self::Rclone(mode) => format!("rclone mount, cache {mode}"),
            Self::S3fs => "s3fs".to_owned(),
        }
    }

    /// True for a view of the S3 server.
    pub fn is_s3(&self) -> bool {
        matches!(self, Self::Rclone(_) | Self::S3fs)
    }
}

/// Program of a mount, which is unmounted when this is dropped.
#[derive(Debug)]
struct Mounted {
    program: Program,
    folder: PathBuf,
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Bytes that are still cached are of no interest.
        self.program.interrupt();
        let _ = unmount(&self.folder, UnmountFlags::DETACH);
    }
}

/// View of remote files.
#[derive(Debug)]
pub struct View {
    // Dropped in this order: the mount ends before its folder is removed.
    #[allow(dead_code, reason = "is mounted until it is dropped")]
    mounted: Option<Mounted>,
    /// Words before a script.
    prefix: Vec<String>,
    root: PathBuf,
    work: WorkFolder,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

impl View {
    /// Shows the files behind an address.
    pub fn start(holdfast: &Path, way: &Way, address: SocketAddr) -> Result<Self, BenchError> {
        let work = WorkFolder::in_memory(ROOM)?;
        let (root, home) = (work.file("mnt"), format!("HOME={}", work.path().display()));
        fs::create_dir(&root).map_err(BenchError::file(&root, "make it"))?;
        let at = root.display().to_string();
        let program = holdfast.display().to_string();
        let site = format!("http://{address}");
        let words = match way {
            Way::Shell(way, more) => {
                let mut prefix = words(&[&home, &program, "shell", "--site", &site, "--way", way]);
                prefix.extend(more.iter().cloned().chain(["--".to_owned()]));
                let root = PathBuf::from("/hf").join(PROJECT);
                return Ok(Self { mounted: None, prefix, root, work });
            }
            Way::Mount(more) => {
                let mut words = words(&[&home, &program, "mount", &at, "--site", &site, "--path"]);
                words.extend([format!("/{PROJECT}")].into_iter().chain(more.iter().cloned()));
                words
            }
            Way::Rclone(mode) => {
                let (path, cache) = (tools::need("rclone")?.display().to_string(), work.file("cache"));
                let remote = format!(":s3:{BUCKET}");
                let mut words = words(&[&home, &path, "mount", &remote, &at, "--s3-provider", "Other"]);
                for (name, value) in [
                    ("endpoint", site.as_str()),
                    ("access-key-id", KEY),
                    ("secret-access-key", KEY),
                    ("region", "us-east-1"),
                    ("force-path-style", "true"),
                ] {
                    words.push(format!("--s3-{name}={value}"));
                }
                words.push(format!("--vfs-cache-mode={mode}"));
                words.push(format!("--cache-dir={}", cache.display()));
                words
            }
            Way::S3fs => {
                let (path, secret) = (tools::need("s3fs")?.display().to_string(), work.file("secret"));
                let written = fs::write(&secret, format!("{KEY}:{KEY}"))
                    .and_then(|()| fs::set_permissions(&secret, Permissions::from_mode(0o600)));
                written.map_err(BenchError::file(&secret, "write it"))?;
                let options = format!(
                    "url={site},use_path_request_style,passwd_file={},tmpdir={}",
                    secret.display(),
                    work.path().display()
                );
                words(&[&home, &path, BUCKET, &at, "-f", "-o", &options])
            }
        };
        let before = device(&root)?;
        let mut program =
            Program::start(Path::new("/usr/bin/env"), &words, Stdio::null(), &work.file("said"))?;
        program.until("the mount", |_| device(&root).is_ok_and(|now| now != before))?;
        let mounted = Some(Mounted { program, folder: root.clone() });
        Ok(Self { mounted, prefix: Vec::new(), root, work })
    }

    /// Runs a script of bash in the view, with `$F` for the folder of the files. Returns its seconds.
    pub fn time(&self, script: &str) -> Result<f64, BenchError> {
        let during = BenchError::during("timing a script in a view");
        let script = format!(
            "F={}\ns=$EPOCHREALTIME\n{script}\ne=$EPOCHREALTIME\necho \"time $s $e\"",
            self.root.display()
        );
        let mut command = tools::command("/usr/bin/env");
        command.args(&self.prefix).args(["timeout", &DEADLINE.to_string(), "bash", "-ec", &script]);
        command.current_dir(self.work.path()).stdin(Stdio::null());
        let done = command.output().map_err(|error| BenchError::program("bash", error))?;
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        let seconds = said.lines().find_map(|line| {
            let (start, end) = line.strip_prefix("time ")?.split_once(' ')?;
            Some(end.parse::<f64>().ok()? - start.parse::<f64>().ok()?)
        });
        match seconds.filter(|_| done.status.success()) {
            Some(seconds) => Ok(seconds),
            None => {
                Err(during(format!("{script}: {}: {}", done.status, String::from_utf8_lossy(&done.stderr))))
            }
        }
    }
}

fn device(folder: &Path) -> Result<u64, BenchError> {
    Ok(fs::metadata(folder).map_err(BenchError::file(folder, "look at it"))?.dev())
}
