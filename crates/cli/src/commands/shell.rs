//! `holdfast shell`: a program that sees the name space of a site as files, without any privilege.

use crate::args::{SiteArgs, TreeArgs, check_written};
use crate::interruption::handled;
use crate::out::{Out, say};
use holdfast_base::failure::{Failure, Result, reason};
use holdfast_client::json::{RefusedWay, ShellWays};
use holdfast_fs::{FileSystem, Shell, ShellError, ShellWay, check, start};
use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitStatus, exit};

/// Exit codes of a program that cannot be started, as in other shells.
const NOT_EXECUTABLE: i32 = 126;
const NOT_FOUND: i32 = 127;

/// Way in which the program sees the tree.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// The first of the others that this system allows
    Auto,
    /// FUSE mount in name spaces of the program
    Fuse,
    /// System calls of the program are answered by holdfast
    Seccomp,
}

/// Run a program that sees the name space of a site as files
#[derive(clap::Args, Debug)]
#[command(
    after_help = "PROGRAM and all programs that it starts see the tree of the site below /hf; nobody else does.\n\
    No privilege is needed. A file is stored at the site when it is closed.\n\
    The exit status is that of PROGRAM; 126 and 127 tell that it cannot be run.\n\n\
    Examples:\n  holdfast shell -- ls -l /hf/lab\n  holdfast shell --read-only -- tar cf lab.tar -C /hf lab\n  holdfast shell --how"
)]
pub(crate) struct Args {
    /// Program with its arguments [default: $SHELL]
    #[arg(value_name = "PROGRAM", trailing_var_arg = true, allow_hyphen_values = true)]
    program: Vec<OsString>,
    /// Tell which way is taken and why, and run nothing
    #[arg(long, conflicts_with = "program")]
    how: bool,
    /// Way in which the program sees the tree
    #[arg(long, value_enum, value_name = "WAY", default_value_t = Way::Auto)]
    way: Way,
    /// Folder below which the tree appears; it need not exist
    #[arg(long, value_name = "DIR", default_value = "/hf")]
    at: PathBuf,
    #[command(flatten)]
    tree: TreeArgs,
    #[command(flatten)]
    site: SiteArgs,
}

/// Runs the command `holdfast shell`.
pub(crate) fn run(args: &Args, out: &mut Out) -> Result<()> {
    let folder = absolute(&args.at)?;
    let session = args.site.session()?;
    let (fs, runtime) = args.tree.open(&session)?;
    let (way, refusals) = choose(args.way, &fs, folder)?;
    if args.how {
        return tell(way, &refusals, out);
    }
    let mut words = args.program.iter().cloned();
    let program = words.next().unwrap_or_else(shell);
    let mut command = Command::new(&program);
    command.args(words);
    // A signal may come as soon as the program runs.
    let signals = Signals::new(handled(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2]));
    let signals = signals
        .map_err(|error| Failure::failed(format_args!("cannot wait for signals: {}", reason(&error))))?;
    // Programs that go into the background stay descendants, whose calls may be answered.
    let _ = set_child_subreaper(Some(getpid()));
    let started = start(way, &fs, folder, command, runtime.handle());
    let mut shell = started.map_err(|error| unstarted(&program, &error))?;
    let status = wait(&mut shell, signals)?;
    drop(shell);
    let unwritten = runtime.block_on(fs.finish());
    let written = check_written(&unwritten);
    if status.success() {
        return written;
    }
    if let Err(failure) = written {
        say(&failure.to_string());
    }
    end(status)
}

/// First way that is possible, with the reasons against those before it.
fn choose(wanted: Way, fs: &FileSystem, folder: &Path) -> Result<(ShellWay, Vec<(ShellWay, String)>)> {
    let ways: &[ShellWay] = match wanted {
        Way::Auto => &[ShellWay::Fuse, ShellWay::Calls],
        Way::Fuse => &[ShellWay::Fuse],
        Way::Seccomp => &[ShellWay::Calls],
    };
    let mut refusals = Vec::new();
    for way in ways {
        match check(*way, fs, folder) {
            Ok(()) => return Ok((*way, refusals)),
            Err(error) => refusals.push((*way, reason(&error))),
        }
    }
    let all: Vec<String> = refusals.iter().map(|(way, why)| format!("{}: {why}", name(*way))).collect();
    Err(Failure::failed(format_args!("this system lets no program see the tree: {}", all.join("; ")))
        .advice("it takes FUSE with name spaces of users, or Linux 5.19 with seccomp"))
}

fn name(way: ShellWay) -> &'static str {
    match way {
        ShellWay::Fuse => "fuse",
        ShellWay::Calls => "seccomp",
    }
}

fn tell(way: ShellWay, refusals: &[(ShellWay, String)], out: &mut Out) -> Result<()> {
    if out.is_json() {
        let refusals = refusals.iter();
        let refused = refusals.map(|(way, reason)| RefusedWay { way: name(*way), reason: reason.clone() });
        return out.object(&ShellWays { way: name(way), refused: refused.collect() });
    }
    for (way, why) in refusals {
        out.line(format_args!("not {}: {why}", name(*way)))?;
    }
    out.line(format_args!("{}", name(way)))
}

fn shell() -> OsString {
    std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| "/bin/sh".into())
}

/// Folder below which the tree appears.
fn absolute(folder: &Path) -> Result<&Path> {
    let is_plain = folder.components().all(|part| match part {
        Component::Normal(name) => name.to_str().is_some(),
        Component::RootDir => true,
        Component::CurDir | Component::ParentDir | Component::Prefix(_) => false,
    });
    if is_plain && folder.is_absolute() && folder.parent().is_some() {
        return Ok(folder);
    }
    Err(Failure::usage("the tree needs an absolute path without `..`")
        .at("--at")
        .advice("give one such as /hf"))
}

/// Failure of a program that was not started. The process ends here if the program is to blame.
fn unstarted(program: &OsString, error: &ShellError) -> Failure {
    match error {
        ShellError::Program(error) => {
            say(&format!("cannot run `{}`: {}", program.display(), reason(error)));
            exit(if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE })
        }
        ShellError::Way(error) => Failure::failed(format_args!("cannot start the shell: {}", reason(error)))
            .advice("`holdfast shell --how` tells what this system allows"),
    }
}

/// Waits for the program, and passes signals on to it meanwhile.
fn wait(shell: &mut Shell, mut signals: Signals) -> Result<ExitStatus> {
    let handle = signals.handle();
    let program = Pid::from_child(&shell.program);
    // A terminal sends its signals to the program too.
    let has_terminal = std::io::stdin().is_terminal();
    let passes = std::thread::spawn(move || {
        for signal in signals.forever() {
            if has_terminal && [SIGINT, SIGQUIT].contains(&signal) {
                continue;
            }
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process(program, signal);
            }
        }
    });
    let status = shell.program.wait();
    handle.close();
    let _ = passes.join();
    status.map_err(|error| Failure::failed(format_args!("cannot wait for the program: {}", reason(&error))))
}

/// Ends as the program ended.
fn end(status: ExitStatus) -> ! {
    if let Some(signal) = status.signal() {
        let _ = emulate_default_handler(signal);
    }
    exit(status.code().unwrap_or(1))
}
