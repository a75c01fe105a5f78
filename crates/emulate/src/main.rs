//! Program `holdfast-drive`: an emulated drive as a file, in real time, for benches and trials. This module mounts and
//! unmounts it; the product does not depend on it.
#![forbid(unsafe_code)]

mod command;
mod folder;
mod lateness;
mod options;
mod reply_timer;
mod schedule;

use clap::Parser as _;
use command::Command;
use folder::Folder;
use fuser::{Config, MountOption, Session, SessionACL};
use holdfast_base::ByteSize;
use holdfast_media::Drive;
use options::Options;
use reply_timer::ReplyTimer;
use rustix::mount::{UnmountFlags, unmount};
use schedule::RequestSchedule;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Once};
use std::time::SystemTime;

/// The machine was too slow: nothing that was measured counts.
const TOO_SLOW: u8 = 3;

/// Why there is no drive.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// The kernel's side is missing.
    #[error(
        "cannot open /dev/fuse: {0}; load the fuse module (modprobe fuse), and run as root or with access to it"
    )]
    NoFuse(std::io::Error),
    /// There is nowhere to mount it.
    #[error("cannot mount on {}: {cause}; use an existing folder, and run as root", path.display())]
    Mount { path: PathBuf, cause: std::io::Error },
    /// Its bytes find no memory.
    #[error("cannot allocate {0} for the drive's bytes: {1}")]
    Memory(ByteSize, holdfast_media::PoolError),
    /// The drive would be too large or too small.
    #[error("cannot emulate a drive of {0}: use --bytes from 1MiB to 1TiB")]
    Size(ByteSize),
    /// A thread or a signal.
    #[error("{0}: {1}")]
    System(&'static str, std::io::Error),
}

fn warn(text: &str) {
    eprintln!("holdfast-drive: {text}");
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(timer) => ExitCode::from(end(&timer, &options)),
        Err(failure) => {
            warn(&failure.to_string());
            ExitCode::FAILURE
        }
    }
}

/// Serves until it is unmounted.
fn run(options: &Options) -> Result<Arc<ReplyTimer>, Failure> {
    let bytes = ByteSize(options.bytes.0.next_multiple_of(4096));
    if !(ByteSize::mib(1)..=ByteSize::gib(1024)).contains(&bytes) {
        return Err(Failure::Size(options.bytes));
    }
    std::fs::File::options().read(true).write(true).open("/dev/fuse").map_err(Failure::NoFuse)?;
    let path = &options.mountpoint;
    let failed = |cause| Failure::Mount { path: path.clone(), cause };
    let path = std::fs::canonicalize(path).map_err(failed)?;
    let model = options.drive();
    let name = model.name;
    let schedule = RequestSchedule::new(Drive::new(model, options.seed), options.late);
    let timer = ReplyTimer::new(schedule, bytes, options.realtime, warn);
    let timer = Arc::new(timer.map_err(|cause| Failure::Memory(bytes, cause))?);
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let folder = Folder {
        timer: Arc::clone(&timer),
        born: SystemTime::now(),
        owner: (user.as_raw(), group.as_raw()),
        hurried: Once::new(),
        warn,
    };
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("holdfast-drive".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    config.acl = if user.is_root() { SessionACL::All } else { SessionACL::Owner };
    let answering = Arc::clone(&timer);
    let thread = std::thread::Builder::new().name("replies".to_owned()).spawn(move || {
        if let Err(cause) = answering.hurry() {
            warn(&format!("cannot send replies with real-time priority: {cause}; run as root"));
        }
        answering.serve();
    });
    thread.map_err(|cause| Failure::System("cannot start the thread of the replies", cause))?;
    let session = Session::new(folder, &path, &config).map_err(failed)?;
    install_handlers(&timer, path.clone(), options)?;
    println!(
        "{} ({name}, {bytes}); commands and counters in {}",
        path.join("drive").display(),
        path.join("control").display()
    );
    session.run().map_err(|cause| Failure::System("the mount failed", cause))?;
    Ok(timer)
}

/// SIGTERM, SIGINT and SIGHUP unmount; while somebody uses the drive the first only says so, and the second pulls the
/// plug.
fn install_handlers(timer: &Arc<ReplyTimer>, path: PathBuf, options: &Options) -> Result<(), Failure> {
    let failed = |cause| Failure::System("cannot handle signals", cause);
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(failed)?;
    let (timer, log) = (Arc::clone(timer), options.log.clone());
    let handle = move || {
        let mut told = false;
        for _ in signals.forever() {
            let Err(cause) = unmount(path.as_path(), UnmountFlags::empty()) else { continue };
            if !told {
                warn(&format!(
                    "{} is in use: {cause}; stop its user first, or signal again to force the unmount",
                    path.display()
                ));
                told = true;
                continue;
            }
            timer.with_schedule(|schedule, now| schedule.command(now, Command::Vanish));
            let _ = unmount(path.as_path(), UnmountFlags::DETACH);
            std::process::exit(tell(&timer, log.as_deref()).into());
        }
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(handle).map_err(failed)?;
    Ok(())
}

fn end(timer: &ReplyTimer, options: &Options) -> u8 {
    tell(timer, options.log.as_deref())
}

/// The last words; the exit code.
fn tell(timer: &ReplyTimer, log: Option<&Path>) -> u8 {
    let (report, too_slow) = timer.with_schedule(|schedule, _| (schedule.report(), schedule.too_slow()));
    print!("{report}");
    if let Some(path) = log {
        let file = std::fs::File::options().create(true).append(true).open(path);
        if let Err(cause) = file.and_then(|mut file| file.write_all(report.as_bytes())) {
            warn(&format!("cannot write {}: {cause}", path.display()));
        }
    }
    if too_slow {
        warn("the machine was too slow for the model: discard what was measured");
    }
    if too_slow { TOO_SLOW } else { 0 }
}
