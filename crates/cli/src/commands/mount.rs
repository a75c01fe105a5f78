//! `holdfast mount`: the name space of a site as a file system.

use crate::args::{SiteArgs, TreeArgs, check_written};
use crate::folders;
use crate::interruption::interruption;
use crate::out::{Out, notices};
use crate::site::Session;
use holdfast_base::clean;
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_client::json::MountEvent;
use holdfast_fs::{MountOptions, detach, mount};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Pause between two looks at the mount and at signals.
const LOOK: Duration = Duration::from_millis(100);

/// Show the name space of a site as a file system
#[derive(clap::Args, Debug)]
#[command(
    after_help = "Runs until it is interrupted or DIR is unmounted (fusermount3 -u DIR). A file is stored at the site\n\
    when it is closed or synchronised; bytes that the site does not take are kept in a file here.\n\
    The rings of the configuration file are below DIR/rings, as files by time.\n\
    Extended attributes user.NAME are the metadata of an entry. Wants FUSE; without root also fusermount3.\n\n\
    Examples:\n  holdfast mount /mnt/lab --daemon\n  holdfast mount /mnt/lab --path /lab --read-only --daemon"
)]
pub(crate) struct Args {
    /// Empty folder on which the tree appears
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Return when the tree is there, and go on in the background
    #[arg(long, conflicts_with = "foreground")]
    daemon: bool,
    /// Stay in the foreground, as without this flag
    #[arg(long)]
    foreground: bool,
    /// Let all users of this machine use the mount
    #[arg(long)]
    allow_other: bool,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast mount`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let folder = place(&args.folder)?;
    if args.daemon {
        return in_background(&folder, out);
    }
    let session = args.site.session()?;
    let (fs, runtime) = args.tree.open(&session)?;
    let stop = interruption()?;
    let mounted = mount(
        Arc::clone(&fs),
        &folder,
        MountOptions { allow_other: args.allow_other },
        runtime.handle().clone(),
    );
    let mounted = mounted.map_err(|error| {
        Failure::failed(format_args!("cannot mount: {}", reason(&error)))
            .at_path(&folder)
            .advice("as an ordinary user it wants fusermount3 (package fuse3) and access to /dev/fuse")
    })?;
    told(&session, &folder, out)?;
    while !stop.load(Ordering::Relaxed) && !mounted.is_over() {
        std::thread::park_timeout(LOOK);
    }
    let unwritten = runtime.block_on(fs.finish());
    let unmounted = mounted.unmount();
    check_written(&unwritten)?;
    let is_used = unmounted.map_err(|error| {
        Failure::failed(format_args!("cannot unmount: {}", reason(&error)))
            .at_path(&folder)
            .advice("run `fusermount3 -uz` on it")
    })?;
    if is_used {
        notices().tell(format_args!(
            "programs still use {}: their next call fails with ENOTCONN",
            folder.display()
        ));
    }
    Ok(())
}

/// Folder of the mount. A mount that a killed process left is removed.
fn place(folder: &Path) -> Result<PathBuf> {
    let folder =
        std::path::absolute(folder).map_err(|error| Failure::io("cannot find the folder", folder, &error))?;
    match std::fs::metadata(&folder) {
        Ok(found) if found.is_dir() => Ok(folder),
        Ok(_) => Err(Failure::usage("this is no folder").at_path(&folder).advice("give an empty folder")),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOTCONN.raw_os_error()) => {
            detach(&folder).map_err(|error| {
                Failure::failed(format_args!(
                    "cannot remove the mount of a killed process: {}",
                    reason(&error)
                ))
                .at_path(&folder)
                .advice("run `fusermount3 -uz` on it")
            })?;
            Ok(folder)
        }
        Err(error) => Err(Failure::io("cannot mount", &folder, &error)),
    }
}

fn told(session: &Session, folder: &Path, out: &mut Out) -> Result<()> {
    if out.is_json() {
        out.object(&MountEvent { event: "mounted", path: folder, site: session.address() })?;
    } else {
        out.line(format_args!("mounted {} on {}", clean(session.address()), folder.display()))?;
    }
    out.flush()
}

/// Starts the same command in the background, and waits until it has mounted.
fn in_background(folder: &Path, out: &mut Out) -> Result<()> {
    let cannot = |error: &std::io::Error| {
        Failure::failed(format_args!("cannot go into the background: {}", reason(error)))
    };
    let program = std::env::current_exe().map_err(|error| cannot(&error))?;
    let arguments = std::env::args_os()
        .skip(1)
        .map(|argument| if argument == "--daemon" { "--foreground".into() } else { argument });
    let log = folders::state().join("mount.log");
    let errors =
        log.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::File::create(&log));
    let errors = errors.map_err(|error| Failure::io("cannot write the log", &log, &error))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors).process_group(0);
    let mut child = command.spawn().map_err(|error| cannot(&error))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    if line.is_empty() {
        let _ = child.wait();
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let said = said.trim().trim_start_matches("holdfast: ");
        return Err(
            Failure::failed(if said.is_empty() { "the mount ended at once" } else { said }).at_path(folder)
        );
    }
    out.line(format_args!("{}", line.trim_end()))
}
