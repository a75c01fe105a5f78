//! Programs that run for a while: started, watched, told to end. And where Holdfast's own are.

use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::{BenchError, Scale, tools};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take to start or to end.
const PATIENCE: Duration = Duration::from_mins(1);

/// Holdfast's programs: those beside this one, which a real run builds anew first, or those in the folder that
/// `HOLDFAST_BENCH_BIN` names.
pub fn holdfast(name: &str, scale: Scale) -> Result<PathBuf, BenchError> {
    static BUILT: std::sync::OnceLock<()> = std::sync::OnceLock::new();
    if let Some(folder) = std::env::var_os("HOLDFAST_BENCH_BIN") {
        return Ok(Path::new(&folder).join(name));
    }
    let here = std::env::current_exe().map_err(BenchError::file(Path::new("."), "find this program"))?;
    let folder = here.parent().and_then(Path::parent).unwrap_or(Path::new("."));
    if scale == Scale::Real && BUILT.get().is_none() {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let target = folder.parent().unwrap_or(folder).display().to_string();
        let build = ["build", "--quiet", "--release", "--locked", "--bins", "--target-dir", &target];
        // As `make build` does: with others beside them their dependencies may have other features, and be built once more.
        for packages in [&["-p", "holdfast-cli", "-p", "holdfast-recorder"][..], &["-p", "holdfast-emulate"]]
        {
            tools::output(&cargo, &[&build[..], packages].concat())?;
        }
        let _ = BUILT.set(());
    }
    let path = folder.join(name);
    if path.is_file() {
        Ok(path)
    } else {
        Err(BenchError::skipped(format!("{} is not built", path.display())))
    }
}

/// A program that runs; killed when dropped.
#[derive(Debug)]
pub struct Program {
    child: Child,
    command: String,
    output: PathBuf,
    #[allow(dead_code, reason = "for a signal")]
    noted: CleanupGuard,
}

impl Program {
    /// Starts it; what it prints, to either side, goes to the file `output`.
    pub fn start(
        path: &Path,
        arguments: &[impl AsRef<OsStr>],
        input: Stdio,
        output: &Path,
    ) -> Result<Self, BenchError> {
        Self::start_apart(path, arguments, input, output, output)
    }

    /// As [`Program::start`], with its standard output elsewhere.
    pub fn start_apart(
        path: &Path,
        arguments: &[impl AsRef<OsStr>],
        input: Stdio,
        out: &Path,
        output: &Path,
    ) -> Result<Self, BenchError> {
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            file.map_err(BenchError::file(path, "open it"))
        };
        let _ = std::fs::remove_file(output);
        let (out, err) = (open(out)?, open(output)?);
        let mut command = tools::command(path);
        command.args(arguments).stdin(input).stdout(out).stderr(err);
        let command_text = format!("{command:?}");
        let child = command.spawn();
        let child = child.map_err(|cause| tools::not_started(&command_text, cause))?;
        let noted = register(Cleanup::Program(child.id()));
        Ok(Self { child, command: command_text, output: output.to_owned(), noted })
    }

    /// Whether it is over.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its end of a pipe, if it was started with one.
    pub fn input(&mut self) -> Option<std::process::ChildStdin> {
        self.child.stdin.take()
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        std::fs::read(&self.output)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .unwrap_or_default()
    }

    fn failed(&self, said: &str) -> BenchError {
        BenchError::program(self.command.clone(), format!("{said}\n{}", self.said()))
    }

    /// Waits until `ready` says so.
    pub fn until(&mut self, what: &str, mut ready: impl FnMut(&Self) -> bool) -> Result<(), BenchError> {
        let start = Instant::now();
        while !ready(self) {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) if tools::is_not_started(status) => {
                    return Err(tools::not_started(&self.command, self.said()));
                }
                _ => return Err(self.failed(&format!("it ended before {what}"))),
            }
            if start.elapsed() > PATIENCE {
                return Err(self.failed(&format!("no {what} within {PATIENCE:?}")));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Whether it is still there.
    pub fn runs(&mut self) -> Result<(), BenchError> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            _ => Err(self.failed("it ended")),
        }
    }

    /// The most memory it ever had, in bytes.
    pub fn most_memory(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib << 10)
    }

    /// Tells it to end.
    pub fn interrupt(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::INT);
        }
    }

    /// Waits for its end; what it said. Exit codes in `good` are no failure.
    pub fn end(self, good: &[i32]) -> Result<String, BenchError> {
        self.end_within(PATIENCE, good)
    }

    /// Waits for the end of a program that may work for so long, as [`Program::end`].
    pub fn end_within(mut self, patience: Duration, good: &[i32]) -> Result<String, BenchError> {
        let start = Instant::now();
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.code().is_some_and(|code| good.contains(&code)) => {
                    return Ok(self.said());
                }
                Ok(None) if start.elapsed() < patience => std::thread::sleep(Duration::from_millis(5)),
                Ok(Some(status)) => return Err(self.failed(&status.to_string())),
                _ => return Err(self.failed("it does not end")),
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
