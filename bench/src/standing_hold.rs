//! A standing hold at work beside a recorder, and how long it takes until it has what arrives.

use crate::cleanup::{Cleanup, CleanupGuard, register};
use crate::comparison::tally::Tally;
use crate::disturbers::runner::joined;
use crate::{BenchError, tools};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What it looks for: nobody else sends so much.
const FIRST: u64 = 1_000_000;

/// How often the recorder is asked what it keeps.
const LOOK: Duration = Duration::from_millis(20);

/// Whoever looks for what it keeps; ended when dropped.
#[derive(Debug)]
pub struct StandingHold {
    child: Child,
    said: BufReader<ChildStdout>,
    /// What was there when it began, and when that was.
    first: u64,
    began: f64,
    #[allow(dead_code, reason = "for a signal")]
    noted: CleanupGuard,
}

impl StandingHold {
    /// Of a stream of JSON lines with an attribute `n`.
    pub fn begin(program: &Path, ring: &Path, stream: &str) -> Result<Self, BenchError> {
        Self::of(program, ring, stream, &format!("n >= {FIRST}"), "20%")
    }

    fn of(
        program: &Path,
        ring: &Path,
        stream: &str,
        condition: &str,
        quota: &str,
    ) -> Result<Self, BenchError> {
        let mut command = tools::command(program);
        command.arg("hold").arg(ring).args(["--stream", stream, "--where", condition]);
        command.args(["--standing", "--quota", quota, "--reason", "bench", "--json"]);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|cause| program_error(&cause))?;
        let noted = register(Cleanup::Program(child.id()));
        let said = child.stdout.take().ok_or_else(|| BenchError::skipped("no pipe from `holdfast hold`"))?;
        let mut standing = Self { child, said: BufReader::new(said), first: 0, began: 0.0, noted };
        (standing.first, standing.began) = (standing.found()?, now());
        Ok(standing)
    }

    /// How many elements it has found since it said so last. Anything else is wrong, such as what expired unseen.
    fn found(&mut self) -> Result<u64, BenchError> {
        self.next().and_then(|found| {
            found.ok_or_else(|| BenchError::Accounting("`holdfast hold --standing` has ended".to_owned()))
        })
    }

    /// The same; none at its end.
    fn next(&mut self) -> Result<Option<u64>, BenchError> {
        let mut line = String::new();
        if self.said.read_line(&mut line).map_err(|cause| program_error(&cause))? == 0 {
            return Ok(None);
        }
        let said: Option<serde_json::Value> = serde_json::from_str(&line).ok();
        said.and_then(|said| said["elements"].as_u64())
            .map(Some)
            .ok_or_else(|| BenchError::Accounting(format!("`holdfast hold --standing` says {line:?}")))
    }

    /// Seconds from when an element is given to the recorder until the hold counts it, of so many of them, at all times between
    /// two looks.
    pub fn holds_within(&mut self, mut elements: impl Write, count: u64) -> Result<Vec<f64>, BenchError> {
        let mut took = Vec::new();
        for number in 0..count {
            std::thread::sleep(Duration::from_millis(number * 37 % 250));
            let start = Instant::now();
            writeln!(elements, "{{\"n\":{}}}", FIRST + number).map_err(|cause| program_error(&cause))?;
            let found = self.found()?;
            took.push(start.elapsed().as_secs_f64());
            if found != 1 {
                return Err(BenchError::Accounting(format!(
                    "a standing hold finds {found} elements, and one was sent"
                )));
            }
        }
        Ok(took)
    }
}

/// Seconds from the arrival of elements.
#[derive(Debug, Default)]
pub struct HoldLatencies {
    /// Until the recorder keeps their slots from expiring, of the first in each.
    pub kept: Vec<f64>,
    /// Until it is told that this would survive a crash.
    pub told: Vec<f64>,
}

/// When every so manyth element of a stream comes to be held by a hold that stands until the time is over.
pub fn held_after(
    program: &Path,
    ring: &Path,
    stream: &str,
    every: u64,
    tally: &Tally,
) -> Result<HoldLatencies, BenchError> {
    let condition = format!("ordinal % {every} = {}", every / 2);
    let mut standing = StandingHold::of(program, ring, stream, &condition, "40%")?;
    let pid = rustix::process::Pid::from_child(&standing.child);
    let (told, kept) = std::thread::scope(|scope| {
        let told = scope.spawn(|| {
            let mut told = Vec::new();
            while let Some(found) = standing.next()? {
                told.extend((0..found).map(|_| now()));
            }
            Ok::<_, BenchError>(told)
        });
        let kept = scope.spawn(|| kept(ring, tally));
        tally.wait(|| false);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        Ok::<_, BenchError>((joined(told)?, joined(kept)?))
    })?;
    let ended = standing.child.wait().map_err(|cause| program_error(&cause))?;
    if !ended.success() {
        return Err(BenchError::Accounting(format!("`holdfast hold --standing` ended with {ended}")));
    }
    let question =
        format!("select cast(time as bigint), slot from {stream} where {condition} order by ordinal");
    let came = tools::command(program).arg("query").arg(ring).args([&question, "--format", "csv"]).output();
    let came = String::from_utf8_lossy(&came.map_err(|cause| program_error(&cause))?.stdout).into_owned();
    let came = came.lines().skip(1).filter_map(|line| {
        let (time, slot) = line.split_once(',')?;
        Some((time.parse::<i64>().ok()? as f64 / 1e9, slot.parse::<u64>().ok()?))
    });
    let came: Vec<(f64, u64)> = came.skip(standing.first as usize).collect();
    // The last one may have come too late.
    if told.len() + 1 < came.len() {
        return Err(BenchError::Accounting(format!("{} came, and {} were held", came.len(), told.len())));
    }
    let (mut after, mut known) = (HoldLatencies::default(), HashSet::new());
    // What came while the hold was given is caught up with.
    for ((time, slot), told) in came.iter().zip(&told) {
        // Others in a slot are kept with the first.
        let is_first = known.insert(*slot);
        if *time > standing.began {
            after.told.push(told - time);
            after.kept.extend(kept.get(slot).filter(|_| is_first).map(|kept| kept - time));
        }
    }
    Ok(after)
}

/// Looks at the last hold until the time is over: when each of its slots was first among those that the recorder keeps.
fn kept(ring: &Path, tally: &Tally) -> Result<BTreeMap<u64, f64>, BenchError> {
    let gone = |what: &dyn Display| BenchError::Accounting(format!("the holds cannot be seen: {what}"));
    let place = holdfast_protocol::locate(ring).map_err(|error| gone(&error))?;
    let recorder = holdfast_protocol::find_recorder(&place).map_err(|error| gone(&error))?;
    let mut recorder = recorder.ok_or_else(|| gone(&"no recorder runs"))?;
    let mut kept = BTreeMap::new();
    let (mut wrong, mut looked) = (None, Instant::now());
    tally.wait(|| {
        if looked.elapsed() < LOOK {
            return false;
        }
        looked = Instant::now();
        match recorder.holds() {
            Ok(holds) => {
                let now = now();
                let runs = holds.last().into_iter().flat_map(|hold| &hold.sequences);
                for sequence in runs.flat_map(|(first, last)| first.0..=last.0) {
                    kept.entry(sequence).or_insert(now);
                }
            }
            Err(error) => wrong = Some(gone(&error)),
        }
        wrong.is_some()
    });
    wrong.map_or(Ok(kept), Err)
}

/// Seconds.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

impl Drop for StandingHold {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn program_error(cause: &io::Error) -> BenchError {
    BenchError::program("holdfast hold --standing", cause)
}
