//! The emulated drive as a mounted file, for a bench that measures on it: started, given orders, asked whether it kept
//! up with its model, and unmounted at the end.

use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::program::{Program, holdfast};
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, tools};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A mounted drive; unmounted when dropped. Whatever uses it must be dropped before.
#[derive(Debug)]
pub struct Emulated {
    folder: PathBuf,
    program: Program,
    #[allow(dead_code, reason = "for a signal")]
    noted: CleanupGuard,
}

impl Emulated {
    /// Mounts one below `place`, with arguments as `holdfast-drive` takes them. A real run gives it priority.
    pub fn mount(place: &WorkFolder, arguments: &[&str], scale: Scale) -> Result<Self, BenchError> {
        if let Err(cause) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
            return Err(BenchError::skipped(format!("/dev/fuse cannot be opened ({cause})")));
        }
        let path = holdfast("holdfast-drive", scale)?;
        let folder = place.file("emulated");
        std::fs::create_dir_all(&folder).map_err(BenchError::file(&folder, "make it"))?;
        let mut all = vec![folder.display().to_string()];
        all.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        all.extend(scale.pick(None, Some("--realtime".to_owned())));
        let program = Program::start(&path, &all, Stdio::null(), &place.file("emulated.said"))?;
        let noted = register(Cleanup::Mount(folder.clone()));
        let mut mounted = Self { folder, program, noted };
        mounted.program.until("the mount", |program| program.said().contains("commands and counters in"))?;
        Ok(mounted)
    }

    /// The drive.
    pub fn path(&self) -> PathBuf {
        self.folder.join("drive")
    }

    fn control(&self) -> PathBuf {
        self.folder.join("control")
    }

    /// `ok`, `fast`, `eio`, `hang`, `vanish`, `stall 3s` or `reset`.
    pub fn order(&self, order: &str) -> Result<(), BenchError> {
        let path = self.control();
        std::fs::write(&path, order).map_err(BenchError::file(&path, "write to it"))
    }

    /// Its counters, a line each.
    pub fn report(&self) -> Result<String, BenchError> {
        let path = self.control();
        std::fs::read_to_string(&path).map_err(BenchError::file(&path, "read it"))
    }

    /// One of them.
    pub fn figure(&self, name: &str) -> Result<f64, BenchError> {
        figure(&self.report()?, name)
    }

    /// Whether the machine was too slow for the model since the last `reset`: then nothing that was measured counts.
    pub fn too_slow(&self) -> Result<bool, BenchError> {
        Ok(self.report()?.lines().any(|line| line == "too_slow yes"))
    }
}

/// One of the counters of a report.
pub fn figure(report: &str, name: &str) -> Result<f64, BenchError> {
    let value = report.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    value
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| BenchError::Accounting(format!("the drive does not tell `{name}`: {report}")))
}

/// Takes a mount away, whoever still uses it.
pub(crate) fn unmount(folder: &Path) {
    let _ = tools::output("umount", &["--lazy", &folder.to_string_lossy()]);
}

impl Drop for Emulated {
    fn drop(&mut self) {
        // The program goes after it: it has nobody any more who could ask it something.
        unmount(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_found_by_their_whole_name() {
        let report = "late 3\nlate_share 0.25\ntoo_slow no\n";
        assert_eq!((figure(report, "late").unwrap(), figure(report, "late_share").unwrap()), (3.0, 0.25));
        assert!(figure(report, "share").is_err() && figure(report, "too_slow").is_err());
    }
}
