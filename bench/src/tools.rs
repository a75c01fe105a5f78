//! Other programs: whether they are there, what they print.

use crate::BenchError;
use std::ffi::OsStr;
use std::fmt::Display;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Variables that a measured program keeps, and beginnings of further ones. Settings of a peer, a proxy or a site of the
/// person who measures would change what is measured.
const KEPT: [&str; 7] = ["PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "LANG", "XDG_RUNTIME_DIR"];
const KEPT_PREFIXES: [&str; 3] = ["CARGO", "RUSTUP", "SSL_CERT"];

/// Command with a clean environment.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let kept = std::env::vars_os().filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            KEPT.contains(&name) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
    });
    let mut command = Command::new(program);
    command.env_clear().envs(kept);
    command
}

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
    let path = find(name).unwrap_or_else(|| name.into());
    run(command(path).args(arguments)).map(|(out, _)| out)
}

/// Runs a command to its end without input; what it printed, and its seconds.
pub fn run(command: &mut Command) -> Result<(String, f64), BenchError> {
    let shown = format!("{command:?}");
    let began = Instant::now();
    let done = command.stdin(Stdio::null()).output();
    let took = began.elapsed().as_secs_f64();
    let done = done.map_err(|cause| not_started(&shown, cause))?;
    if done.status.success() {
        return Ok((String::from_utf8_lossy(&done.stdout).into_owned(), took));
    }
    let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
    if is_not_started(done.status) {
        return Err(not_started(&shown, said));
    }
    Err(BenchError::program(shown, format!("{} {said}", done.status)))
}

/// True if a program, or what starts it, says that it cannot be started: a library or an interpreter is missing.
pub fn is_not_started(status: ExitStatus) -> bool {
    matches!(status.code(), Some(126 | 127))
}

/// Leaves a bench out, as a program is there but cannot be started.
pub fn not_started(command: &str, cause: impl Display) -> BenchError {
    BenchError::skipped(format!("`{command}` cannot be started: {cause}"))
}

/// Whether we may do what only root may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
