//! Atomic files: written under another name, renamed when they are whole, removed when they are given up, and on signals. Their
//! contents are not known here.

use holdfast_base::failure::{Failure, Result, reason};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::{fs, io};

/// Names that are tried for one file, where others are making files of that name.
const MOST_NAMES: u32 = 1000;

/// What a signal finds.
#[derive(Default)]
struct Watched {
    files: Vec<PathBuf>,
    /// Number of files that have got their names.
    complete: u64,
    /// Whoever ends tidily at the first one.
    tidy: Vec<Arc<AtomicBool>>,
}

static WATCHED: Mutex<Watched> = Mutex::new(Watched { files: Vec::new(), complete: 0, tidy: Vec::new() });

fn watched() -> MutexGuard<'static, Watched> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Printer of notices, of the program that wants signals handled.
static NOTICES: OnceLock<fn(&str)> = OnceLock::new();

/// Has SIGINT and SIGTERM handled from the first unfinished file on: unfinished files are removed, `notice` is told, and the
/// process exits with 130. Without this call signals are left to the program.
pub fn handle_signals(notice: fn(&str)) {
    let _ = NOTICES.set(notice);
}

/// Waits for signals from here on: the first goes to who ends tidily, where somebody does.
fn watch() -> Result<()> {
    static STARTED: OnceLock<Result<(), String>> = OnceLock::new();
    if NOTICES.get().is_none() {
        return Ok(());
    }
    let started = STARTED.get_or_init(|| {
        let signals = Signals::new([SIGINT, SIGTERM]);
        let started = signals.and_then(|mut signals| {
            let waits = std::thread::Builder::new().name("signals".to_owned());
            waits.spawn(move || signals.forever().for_each(|_| interrupted())).map(drop)
        });
        started.map_err(|error| reason(&error))
    });
    started.clone().map_err(|why| Failure::failed(format_args!("cannot wait for signals: {why}")))
}

fn interrupted() {
    let mut watched = watched();
    if !watched.tidy.is_empty() {
        watched.tidy.drain(..).for_each(|stop| stop.store(true, Ordering::Relaxed));
        return;
    }
    let removed = watched.files.drain(..).filter(|file| fs::remove_file(file).is_ok()).count() as u64;
    if let Some(notice) = NOTICES.get() {
        notice(&interruption(watched.complete, removed));
    }
    // With the lock: a file that is being finished meanwhile gets no name.
    std::process::exit(130);
}

/// Message of an interruption after which so many outputs are complete, and so many unfinished files were removed.
fn interruption(complete: u64, removed: u64) -> String {
    let removed = match removed {
        0 => String::new(),
        1 => "; 1 unfinished file was removed".to_owned(),
        removed => format!("; {removed} unfinished files were removed"),
    };
    match complete {
        0 => format!("interrupted: no output is complete{removed}"),
        1 => format!("interrupted: 1 output is complete, others are missing{removed}"),
        complete => format!("interrupted: {complete} outputs are complete, others are missing{removed}"),
    }
}

/// Counts an output that is complete and no atomic file, for the message of an interruption. Signals are handled from here on.
pub fn note_complete() -> Result<()> {
    watched().complete += 1;
    watch()
}

/// From here on the first signal sets the flag; a second one ends all at once, and what is unfinished is gone.
pub(crate) fn ends_tidily() -> Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    watched().tidy.push(Arc::clone(&stop));
    watch()?;
    Ok(stop)
}

/// A file in the making, under a name of its own beside the one that it is for.
pub struct AtomicFile(PathBuf);

impl AtomicFile {
    /// Makes it with `create`, which must refuse a name that is taken with an error for which `is_taken` holds.
    pub fn beside<T, E>(
        path: &Path,
        mut create: impl FnMut(&Path) -> Result<T, E>,
        is_taken: impl Fn(&E) -> bool,
    ) -> Result<Result<(Self, T), E>> {
        watch()?;
        let mut number = 0;
        loop {
            let part = name(path, number);
            // Known before it is there, so that a signal finds it; one that is somebody else's is forgotten at once.
            let mut known = watched();
            if part.symlink_metadata().is_ok() && number < MOST_NAMES {
                number += 1;
                continue;
            }
            known.files.push(part.clone());
            drop(known);
            let unfinished = Self(part);
            match create(&unfinished.0) {
                Ok(made) => return Ok(Ok((unfinished, made))),
                Err(error) => {
                    let taken = is_taken(&error);
                    unfinished.forget();
                    if !taken || number >= MOST_NAMES {
                        return Ok(Err(error));
                    }
                    number += 1;
                }
            }
        }
    }

    /// Path of the file until it has its name.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Gives it its name; until then a signal ends it. Another may have that name by now: it is replaced only by force.
    pub fn named(self, path: &Path, force: bool) -> io::Result<()> {
        let mut known = watched();
        let named = rename(&self.0, path, force);
        if named.is_ok() {
            known.files.retain(|file| *file != self.0);
            known.complete += 1;
        }
        drop(known);
        if named.is_ok() {
            std::mem::forget(self);
        }
        named
    }

    /// It was never made.
    fn forget(self) {
        watched().files.retain(|file| *file != self.0);
        std::mem::forget(self);
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        let mut known = watched();
        known.files.retain(|file| *file != self.0);
        let _ = fs::remove_file(&self.0);
    }
}

fn rename(part: &Path, path: &Path, force: bool) -> io::Result<()> {
    if !force {
        match renameat_with(CWD, part, CWD, path, RenameFlags::NOREPLACE) {
            // A file system that cannot tell.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            done => return Ok(done?),
        }
    }
    fs::rename(part, path)
}

fn name(path: &Path, number: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    let id = std::process::id();
    name.push(if number == 0 { format!(".{id}.part") } else { format!(".{id}-{number}.part") });
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interruption_tells_what_is_there_and_what_is_gone() {
        for (complete, removed, message) in [
            (0, 0, "interrupted: no output is complete"),
            (0, 1, "interrupted: no output is complete; 1 unfinished file was removed"),
            (1, 0, "interrupted: 1 output is complete, others are missing"),
            (
                3,
                2,
                "interrupted: 3 outputs are complete, others are missing; 2 unfinished files were removed",
            ),
        ] {
            assert_eq!(interruption(complete, removed), message);
        }
    }
}
