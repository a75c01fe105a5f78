//! The recorder of a stage: the real program, with the built-in source at its standard input.

use crate::commands::record;
use crate::failure::{Failure, Result, reason};
use crate::orders;
use holdfast_base::{ByteSize, Rate};
use holdfast_link::client::Connection;
use holdfast_link::wire::{RecorderStatus, Status};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// The stream that is recorded.
pub(crate) const STREAM: &str = "prove";

/// A recorder that does not answer for so long after its start will not.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often it is looked whether it answers.
const LOOK: Duration = Duration::from_millis(20);

/// What a recorder is to record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes of an element.
    pub(crate) element: u64,
    /// Declared, where something is promised.
    pub(crate) declared: Option<(Rate, u64, ByteSize)>,
    pub(crate) realtime: bool,
}

/// A recorder at work.
pub(crate) struct Recording {
    child: Child,
    connection: Option<Connection>,
}

/// What it says at its end.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Summary {
    pub(crate) streams: Vec<StreamSummary>,
    pub(crate) disk_errors: u64,
    pub(crate) errors: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct StreamSummary {
    pub(crate) elements: u64,
    pub(crate) lost_elements: u64,
    pub(crate) gaps: u64,
    pub(crate) unknown_gaps: u64,
    /// Elements by cause.
    pub(crate) lost: BTreeMap<String, u64>,
}

impl Recording {
    /// Starts it; comes back when it answers.
    pub(crate) fn start(ring: &Path, load: &Load) -> Result<(Self, ChildStdin)> {
        let mut command = Command::new(record::recorder());
        command.arg0("holdfast record").arg(ring).args(["--source", "stdin", "--name", STREAM]);
        command.args(["--frame", &format!("fixed:{}", load.element), "--on-overload", "drop-newest"]);
        if let Some((rate, elements, burst)) = load.declared {
            command.arg(format!("--rate={}", rate.0)).arg(format!("--elements={elements}"));
            command.arg(format!("--burst={}", burst.0));
        }
        if load.realtime {
            command.arg("--realtime");
        }
        command.args(["--json", "--quiet"]);
        // A signal at the terminal is for the proof: it ends the recorder in order.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| {
            Failure::failed(format_args!("cannot run the recorder: {}", reason(&error)))
                .advice("install holdfast-recorder beside holdfast")
        })?;
        let stdin = child.stdin.take();
        let mut recording = Self { child, connection: None };
        let stdin = stdin.ok_or_else(|| Failure::failed("the recorder has no input"))?;
        let started = Instant::now();
        loop {
            // Until it has all its memory it has no socket, and who asks is told so.
            let answer = orders::recorder(ring);
            if let Ok(Some(connection)) = answer {
                recording.connection = Some(connection);
                return Ok((recording, stdin));
            }
            if recording.has_ended() || started.elapsed() > PATIENCE {
                drop(stdin);
                return Err(recording.failed("did not start"));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether its process is gone.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// How it does; `None` when it answers no more.
    pub(crate) fn status(&mut self) -> Option<(Status, RecorderStatus)> {
        let status = self.connection.as_mut()?.status().ok()?;
        let recorder = status.recorder.clone()?;
        Some((status, recorder))
    }

    /// Waits for its end, after its input has ended.
    pub(crate) fn end(mut self) -> Result<Summary> {
        self.connection = None;
        let mut said = String::new();
        if let Some(mut out) = self.child.stdout.take() {
            // What cannot be read is no summary.
            let _ = out.read_to_string(&mut said);
        }
        let summary: Option<Summary> = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
        match summary {
            Some(summary) if !summary.streams.is_empty() => Ok(summary),
            _ => Err(self.failed("ended without a summary")),
        }
    }

    /// Why it is not there any more, in its own words.
    pub(crate) fn failed(mut self, what: &str) -> Failure {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let mut said = String::new();
        if let Some(mut err) = self.child.stderr.take() {
            let _ = err.read_to_string(&mut said);
        }
        let said = said.trim().replace("holdfast record: ", "");
        let said = if said.is_empty() { "it said nothing".to_owned() } else { said };
        Failure::failed(format_args!("the recorder {what}: {said}"))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // One that has ended is only taken note of.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
