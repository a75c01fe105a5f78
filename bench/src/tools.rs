//! Other programs: whether they are there, what they print.

use crate::BenchError;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where a program is.
pub fn find(name: &str) -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    std::env::split_paths(&paths).chain(more).map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// As [`find`], with the reason why something is left out.
pub fn need(name: &str) -> Result<PathBuf, BenchError> {
    find(name).ok_or_else(|| BenchError::skipped(format!("no {name} here (scripts/need bench installs it)")))
}

/// Runs a program to its end; what it printed.
pub fn output(name: &str, arguments: &[&str]) -> Result<String, BenchError> {
    let command = || format!("{name} {}", arguments.join(" "));
    let path = find(name).unwrap_or_else(|| name.into());
    let done = Command::new(path).args(arguments).stdin(Stdio::null()).output();
    let done = done.map_err(|cause| BenchError::program(command(), cause))?;
    if done.status.success() {
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    } else {
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        Err(BenchError::program(command(), format!("{} {said}", done.status)))
    }
}

/// Whether we may do what only root may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
