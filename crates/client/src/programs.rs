//! Programs of Holdfast beside the running one: the recorder, and the host of WebAssembly modules.

use std::path::PathBuf;

/// Path of `holdfast-recorder`: beside the running program, otherwise wherever the shell would find it.
pub fn recorder() -> PathBuf {
    beside("holdfast-recorder")
}

/// Path of `holdfast-module`, which runs the modules of scans.
pub fn module() -> PathBuf {
    beside("holdfast-module")
}

fn beside(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(|dir| dir.join(name)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(name))
}
