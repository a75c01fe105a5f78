//! A standing hold at work beside a recorder, and how long it takes until it has what arrives.

use crate::Trouble;
use crate::beside::tally::Tally;
use crate::disturbers::play::joined;
use crate::undo::{Noted, Undo, note};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What it looks for: nobody else sends so much.
const FIRST: u64 = 1_000_000;

/// Whoever looks for what it keeps; ended when dropped.
#[derive(Debug)]
pub struct Standing {
    child: Child,
    said: BufReader<ChildStdout>,
    /// What was there when it began.
    first: u64,
    #[allow(dead_code, reason = "for a signal")]
    noted: Noted,
}

impl Standing {
    /// Of a stream of JSON lines with an attribute `n`.
    pub fn begin(program: &Path, ring: &Path, stream: &str) -> Result<Self, Trouble> {
        Self::of(program, ring, stream, &format!("n >= {FIRST}"), "20%")
    }

    fn of(program: &Path, ring: &Path, stream: &str, condition: &str, quota: &str) -> Result<Self, Trouble> {
        let mut command = Command::new(program);
        command.arg("hold").arg(ring).args(["--stream", stream, "--where", condition]);
        command.args(["--standing", "--quota", quota, "--reason", "bench", "--json"]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(|cause| trouble(&cause))?;
        let noted = note(Undo::Program(child.id()));
        let said = child.stdout.take().ok_or_else(|| Trouble::skipped("no pipe from `holdfast hold`"))?;
        let mut standing = Self { child, said: BufReader::new(said), first: 0, noted };
        standing.first = standing.found()?;
        Ok(standing)
    }

    /// How many elements it has found since it said so last. Anything else is wrong, such as what expired unseen.
    fn found(&mut self) -> Result<u64, Trouble> {
        self.next().and_then(|found| {
            found.ok_or_else(|| Trouble::Accounting("`holdfast hold --standing` has ended".to_owned()))
        })
    }

    /// The same; none at its end.
    fn next(&mut self) -> Result<Option<u64>, Trouble> {
        let mut line = String::new();
        if self.said.read_line(&mut line).map_err(|cause| trouble(&cause))? == 0 {
            return Ok(None);
        }
        let said: Option<serde_json::Value> = serde_json::from_str(&line).ok();
        said.and_then(|said| said["elements"].as_u64())
            .map(Some)
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

/// Seconds from the arrival of every so manyth element of a stream until a hold has it that stands until the time is over.
pub fn held_after(
    program: &Path,
    ring: &Path,
    stream: &str,
    every: u64,
    tally: &Tally,
) -> Result<Vec<f64>, Trouble> {
    let condition = format!("ordinal % {every} = {}", every / 2);
    let mut standing = Standing::of(program, ring, stream, &condition, "40%")?;
    let pid = rustix::process::Pid::from_child(&standing.child);
    let held = std::thread::scope(|scope| {
        let held = scope.spawn(|| {
            let mut held = Vec::new();
            while let Some(found) = standing.next()? {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
                held.extend((0..found).map(|_| now));
            }
            Ok::<_, Trouble>(held)
        });
        tally.wait(|| false);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        joined(held)
    })?;
    let ended = standing.child.wait().map_err(|cause| trouble(&cause))?;
    if !ended.success() {
        return Err(Trouble::Accounting(format!("`holdfast hold --standing` ended with {ended}")));
    }
    let question = format!("select cast(time as bigint) from {stream} where {condition} order by ordinal");
    let times = Command::new(program).arg("query").arg(ring).args([&question, "--format", "csv"]).output();
    let times = String::from_utf8_lossy(&times.map_err(|cause| trouble(&cause))?.stdout).into_owned();
    let times: Vec<f64> =
        times.lines().skip(1).filter_map(|time| Some(time.parse::<i64>().ok()? as f64 / 1e9)).collect();
    // The last one may have come too late.
    if standing.first as usize + held.len() + 1 < times.len() {
        return Err(Trouble::Accounting(format!("{} are there, and {} were held", times.len(), held.len())));
    }
    Ok(times.iter().skip(standing.first as usize).zip(&held).map(|(came, held)| held - came).collect())
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
