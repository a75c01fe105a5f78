//! The recorder of a stage: the real program, with the built-in source at its standard input.

use holdfast_base::failure::{Failure, Result, reason};
use holdfast_base::{ByteSize, Rate};
use holdfast_client::orders;
use holdfast_client::programs;
use holdfast_format::{ElementLoad, MAX_TEXT};
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{RecorderStatus, Status};
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
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Bytes of an element.
    pub(crate) element: u64,
    /// Declared, where something is promised.
    pub(crate) declared: Option<(Rate, u64, ByteSize)>,
    /// As `--attr` has them.
    pub(crate) attributes: Vec<String>,
    pub(crate) realtime: bool,
}

/// Attributes of elements of so many bytes that take as much as was promised, read from their first bytes.
pub(crate) fn attributes(promised: ElementLoad, element: u64) -> Vec<String> {
    let ElementLoad { frame, columns, texts, bytes, text_bytes } = promised.of_size(element);
    let numbers = u32::from(columns.saturating_sub(texts));
    let texts_of =
        |each: u32| (numbers..columns.into()).map(move |number| format!("c{number}:binary=at:0:bytes{each}"));
    // A text takes 3 beside its own, a number 9, and an address 8 more.
    let addresses = bytes.saturating_sub(3 * u32::from(texts) + 9 * numbers) / 8;
    let each = text_bytes.checked_div(texts.into()).unwrap_or(0).clamp(1, MAX_TEXT as u32);
    let of_bytes = |(number, bytes): (usize, u32)| match bytes {
        16 => format!("c{number}:ipv6=at:0:ipv6"),
        1 => format!("c{number}:uint=at:0:u8"),
        bytes => format!("c{number}:uint=at:0:u{}le", 8 * bytes),
    };
    let sizes = match frame {
        // None of these is null, and a number takes no more than it has.
        Some(_) => sizes(bytes.saturating_sub(3 * u32::from(texts)), numbers as usize),
        None => (0..numbers).map(|number| if number < addresses { 16 } else { 8 }).collect(),
    };
    sizes.into_iter().enumerate().map(of_bytes).chain(texts_of(each)).collect()
}

/// So many powers of two up to 16 that are so many bytes, or the largest of more; the greatest of them is as small as may be.
fn sizes(bytes: u32, count: usize) -> Vec<u32> {
    let rest = [8, 4, 2, 1].into_iter().filter(|bit| bytes & bit != 0);
    let mut sizes: Vec<u32> = std::iter::repeat_n(16, bytes as usize / 16).chain(rest).take(count).collect();
    while sizes.len() < count {
        sizes.sort_unstable();
        let Some(half) = sizes.last().map(|greatest| greatest / 2).filter(|half| *half > 0) else { break };
        sizes.pop();
        sizes.extend([half, half]);
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdfast_attributes::Schema;

    #[test]
    fn a_ring_is_proved_with_as_many_cells_as_it_promised() {
        let four = ["a:uint=at:0:u64le", "b:uint=at:8:u64le", "c:uint=at:0:u32le", "d:uint=at:16:u32le"];
        let some = [
            "a:ip=at:0:ipv4",
            "m:mac=at:4:mac",
            "k:uint=at:10:u16be",
            "f:bool=at:12:u8:bits0..3",
            "s:int=at:13:i8",
        ];
        for (typed, frame) in [
            (vec!["packets"], None),
            (vec!["packets:src,dst,dst_port"], None),
            (vec!["t:text=json:a", "n:uint=json:b"], None),
            (vec!["none"], None),
            (vec!["none"], Some(20)),
            (four.to_vec(), Some(100)),
            (some.to_vec(), Some(100)),
            ([&some[..], &["t:text=at:0:text9"]].concat(), Some(1500)),
        ] {
            let load = Schema::typed(&typed).unwrap().load(frame);
            for size in [100, 1500] {
                let made = Schema::typed(attributes(load, size)).unwrap().load(frame);
                let wanted = load.of_size(size);
                assert_eq!(
                    (made.columns, made.texts, made.bytes),
                    (wanted.columns, wanted.texts, wanted.bytes),
                    "{typed:?}"
                );
                assert!(wanted.text_bytes - made.text_bytes <= u32::from(wanted.texts), "{typed:?} {size}");
            }
        }
    }
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
        let mut command = Command::new(programs::recorder());
        command.arg0("holdfast record").arg(ring).args(["--source", "stdin", "--name", STREAM]);
        command.args(["--frame", &format!("fixed:{}", load.element), "--on-overload", "drop-newest"]);
        if let Some((rate, elements, burst)) = load.declared {
            command.arg(format!("--rate={}", rate.0)).arg(format!("--elements={elements}"));
            command.arg(format!("--burst={}", burst.0));
        }
        // As many cells as were promised; nothing is read where nothing was.
        for attribute in &load.attributes {
            command.args(["--attr", attribute]);
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
