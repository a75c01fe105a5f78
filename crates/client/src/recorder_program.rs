//! Recorder program: where `holdfast-recorder` is installed.

use std::path::PathBuf;

const RECORDER: &str = "holdfast-recorder";

/// Path of the recorder program: beside the running program, otherwise wherever the shell would find it.
pub fn path() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| own.parent().map(|dir| dir.join(RECORDER)));
    beside.filter(|path| path.is_file()).unwrap_or_else(|| PathBuf::from(RECORDER))
}
