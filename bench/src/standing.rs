//! A standing hold at work beside a recorder, and how long it takes until it has what arrives.

use crate::Trouble;
use crate::undo::{Noted, Undo, note};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What it looks for: nobody else sends so much.
const FIRST: u64 = 1_000_000;

/// Whoever looks for what it keeps; ended when dropped.
#[derive(Debug)]
pub struct Standing {
    child: Child,
    said: BufReader<ChildStdout>,
    #[allow(dead_code, reason = "for a signal")]
    noted: Noted,
}

impl Standing {
    /// Of a stream of JSON lines with an attribute `n`.
    pub fn begin(program: &Path, ring: &Path, stream: &str) -> Result<Self, Trouble> {
        let mut command = Command::new(program);
        let condition = format!("n >= {FIRST}");
        command.arg("hold").arg(ring).args(["--stream", stream, "--where", &condition]);
        command.args(["--standing", "--quota", "20%", "--reason", "bench", "--json"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|cause| trouble(&cause))?;
        let noted = note(Undo::Program(child.id()));
        let said = child.stdout.take().ok_or_else(|| Trouble::skipped("no pipe from `holdfast hold`"))?;
        let mut standing = Self { child, said: BufReader::new(said), noted };
        standing.found()?;
        Ok(standing)
    }

    /// How many elements it has found since it said so last.
    fn found(&mut self) -> Result<u64, Trouble> {
        let mut line = String::new();
        self.said.read_line(&mut line).map_err(|cause| trouble(&cause))?;
        let said: Option<serde_json::Value> = serde_json::from_str(&line).ok();
        said.and_then(|said| said["elements"].as_u64())
            .ok_or_else(|| Trouble::Accounting(format!("`holdfast hold --standing` says {line:?}")))
    }

    /// Seconds from when an element is given to the recorder until the hold counts it, of so many of them, at all times between
    /// two looks.
    pub fn holds_within(&mut self, mut elements: impl Write, count: u64) -> Result<Vec<f64>, Trouble> {
        let mut took = Vec::new();
        for number in 0..count {
            std::thread::sleep(Duration::from_millis(number * 37 % 250));
            let start = Instant::now();
            writeln!(elements, "{{\"n\":{}}}", FIRST + number).map_err(|cause| trouble(&cause))?;
            let found = self.found()?;
            took.push(start.elapsed().as_secs_f64());
            if found != 1 {
                return Err(Trouble::Accounting(format!(
                    "a standing hold finds {found} elements, and one was sent"
                )));
            }
        }
        Ok(took)
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn trouble(cause: &io::Error) -> Trouble {
    Trouble::Program { command: "holdfast hold --standing".to_owned(), said: cause.to_string() }
}
