//! Commands: a program with arguments in a process group of its own, bounded in time and in output. There is no shell.

use super::options::CommandOptions;
use super::placeholder::{Template, Values};
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::Stdio;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Bytes of error output that become part of a message.
const MOST_ERRORS: usize = 4 << 10;

/// Piece in which output is read.
const PIECE: usize = 16 << 10;

/// Output of a command that has ended with exit code 0.
#[derive(Debug)]
pub(crate) struct Output {
    /// First bytes of the standard output, up to the limit.
    pub(crate) bytes: Vec<u8>,
    /// True if the command has printed more.
    pub(crate) is_cut: bool,
}

/// Process group of a command, killed when this value is dropped before `disarm`.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| Pid::from_raw(id as i32)))
    }

    /// Lets the group live: its leader has ended, and its number may be used again.
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs a command until it ends, or kills it after its time. The error is the reason of the failure.
pub(crate) async fn run(
    options: &CommandOptions,
    values: &Values<'_>,
    most_output: usize,
) -> Result<Output, String> {
    let program = &options.program;
    let mut command = Command::new(program);
    for argument in &options.arguments {
        let template = Template::parse(argument);
        command.arg(template.map_err(|name| format!("the placeholder {{{name}}} is unknown"))?.fill(values));
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let failed = |verb: &str, error: std::io::Error| {
        let why = crate::error::reason(&error);
        format!("cannot {verb} the program '{program}': {why}; check its path and its permissions")
    };
    let mut child = command.spawn().map_err(|error| failed("start", error))?;
    let group = Group::of(&child);
    let (output, errors) = (child.stdout.take(), child.stderr.take());
    let ended = timeout(options.timeout(), async {
        let (output, errors) = tokio::join!(read(output, most_output), read(errors, MOST_ERRORS));
        (child.wait().await, output, errors)
    });
    let Ok((status, output, errors)) = ended.await else {
        drop(group);
        let _ = child.wait().await;
        let seconds = options.timeout_seconds;
        return Err(format!(
            "cannot complete the program '{program}': it took more than {seconds} s; raise timeout_seconds"
        ));
    };
    let status = status.map_err(|error| failed("wait for", error))?;
    group.disarm();
    if status.success() {
        return Ok(output);
    }
    let errors = String::from_utf8_lossy(&errors.bytes);
    let errors = errors.trim();
    Err(format!("cannot complete the program '{program}': {status}; see its errors: {errors}"))
}

/// First bytes of a stream. The rest is read and dropped, so that the program does not wait.
async fn read(stream: Option<impl AsyncRead + Unpin>, most: usize) -> Output {
    let mut output = Output { bytes: Vec::new(), is_cut: false };
    let Some(mut stream) = stream else { return output };
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        let kept = length.min(most - output.bytes.len());
        output.bytes.extend_from_slice(&piece[..kept]);
        output.is_cut |= kept < length;
    }
    output
}
