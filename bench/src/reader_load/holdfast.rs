//! Holdfast: a recorder on a ring file, fed through its standard input; readers are its clients.

use super::{DeviceLatency, ELEMENT, EndReport, Load, ReadLoop, RecorderUnderLoad, VisibilityLag};
use crate::program::{Program, holdfast};
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, tools};
use holdfast_protocol::wire::LaneStatus;
use holdfast_reader::{Item, RingReader, Selection};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often it is asked what can be read.
const LOOK: Duration = Duration::from_millis(2);

/// Memory of a recorder that guarantees the rate, and its slots: a place that nothing is known of may take 7 s to give up a
/// read, and that long the rate fills buffers.
const MEMORY: &str = "4GiB";
const SLOT: &str = "128MiB";

/// Holdfast at work.
pub struct HoldfastRecorder {
    ring: PathBuf,
    /// The program of the commands.
    commands: PathBuf,
    program: Program,
    input: ChildStdin,
    stop: Arc<AtomicBool>,
    noted: Arc<Mutex<WorstCase>>,
    /// What its ring allows the device, where a rate is guaranteed.
    allowed: Option<DeviceLatency>,
    looker: JoinHandle<()>,
}

/// What was last seen of it.
#[derive(Clone, Copy, Debug, Default)]
struct WorstCase {
    slack: Option<Duration>,
    /// The longest write and read so far.
    worst: (Duration, Duration),
}

impl HoldfastRecorder {
    /// Begins; `guaranteed` on a ring that was made for the rate, from a profile of the place where it lies.
    pub fn begin(
        place: &WorkFolder,
        load: &Load,
        scale: Scale,
        guaranteed: bool,
        seen: Arc<VisibilityLag>,
    ) -> Result<Self, BenchError> {
        let ring = place.file("ring.hf");
        let commands = holdfast("holdfast", scale)?;
        // The journal, and the slots that are next to be overwritten, keep nothing.
        let size = (load.kept + load.kept / 8).to_string();
        let (name, slot) = (ring.display().to_string(), scale.pick("2MiB", "32MiB"));
        let frame = format!("fixed:{ELEMENT}");
        let mut arguments = vec![&name[..]];
        if !guaranteed {
            arguments.extend(["--size", &size, "--slot", slot]);
        }
        arguments.extend(["--source", "stdin", "--name", "elements", "--frame", &frame, "--json"]);
        let (rate, elements) = (load.rate.to_string(), (load.rate / ELEMENT as u64 + 1).to_string());
        if guaranteed {
            let terms = ["--rate", &rate, "--elements", &elements];
            make(&commands, &name, &size, &terms, &place.file("ring.profile.json"))?;
            arguments.extend(terms);
            arguments.extend(["--memory", MEMORY]);
        }
        let allowed = if guaranteed { Some(allowed(&commands, &name)?) } else { None };
        let path = holdfast("holdfast-recorder", scale)?;
        let mut program = Program::start(&path, &arguments, Stdio::piped(), &place.file("ours.said"))?;
        program.until("recording", |program| program.said().contains("recording "))?;
        let input = program.input().ok_or_else(|| BenchError::Accounting("no pipe".to_owned()))?;
        let mut reader = open(&ring)?;
        let (stop, noted) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::default()));
        let (over, last) = (Arc::clone(&stop), Arc::clone(&noted));
        let looker = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let Ok(status) = reader.status() else { return };
                let Some(recorder) = &status.recorder else { return };
                seen.visible(recorder.sources.iter().map(|source| source.packed_elements).sum());
                let worst = |of: fn(&LaneStatus) -> Duration| recorder.lanes.iter().map(of).max();
                let write = worst(|lane| lane.write_latency.worst).unwrap_or_default();
                let read = worst(|lane| lane.read_latency.worst).unwrap_or_default();
                let slack = recorder.margin.map(|margin| margin.least);
                *last.lock().unwrap_or_else(PoisonError::into_inner) =
                    WorstCase { slack, worst: (write, read) };
                std::thread::sleep(LOOK);
            }
        });
        Ok(Self { ring, commands, program, input, stop, noted, allowed, looker })
    }
}

/// Makes a ring whose every slot has been written once, measures it, and has the rate admitted.
fn make(commands: &Path, ring: &str, size: &str, terms: &[&str], profile: &Path) -> Result<(), BenchError> {
    let (commands, profile) = (commands.to_string_lossy(), profile.to_string_lossy());
    let shape = ["format", ring, "--size", size, "--slot", SLOT, "--prefill", "--force"];
    tools::output(&commands, &shape)?;
    tools::output(&commands, &["profile", ring, "--minutes", "2", "--zones", "4", "-o", &profile])?;
    let promise = ["--profile", &profile, "--memory", MEMORY];
    tools::output(&commands, &[&shape, terms, &promise].concat()).map(drop)
}

/// What requests may take at most on the device of a ring that guarantees a rate.
fn allowed(commands: &Path, ring: &str) -> Result<DeviceLatency, BenchError> {
    let said = tools::output(&commands.to_string_lossy(), &["status", ring, "--json"])?;
    let json: serde_json::Value = serde_json::from_str(&said).map_err(BenchError::during("its status"))?;
    let seconds = |what: &str| {
        let seconds = json["guarantee"][what].as_f64().map(Duration::from_secs_f64);
        seconds.ok_or_else(|| BenchError::Accounting(format!("no {what}: {said}")))
    };
    Ok(DeviceLatency {
        longest_write: seconds("longest_write_seconds")?,
        longest_read: seconds("longest_read_seconds")?,
        ..DeviceLatency::default()
    })
}

/// All of a stream that is kept, oldest first, into a pipe.
pub fn export(
    commands: &Path,
    ring: &Path,
    shape: [&'static str; 4],
    stop: &AtomicBool,
) -> Result<u64, BenchError> {
    let mut command = tools::command(commands);
    command.arg("read").arg(ring).args(shape).args(["-o", "-"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let failed = |cause| BenchError::program("holdfast read", format!("{cause}"));
    let mut child = command.spawn().map_err(failed)?;
    let (mut bytes, mut buffer) = (0, vec![0; 1 << 20]);
    if let Some(output) = &mut child.stdout {
        while let Ok(read @ 1..) = output.read(&mut buffer) {
            bytes += read as u64;
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
    }
    // It ends with its pipe.
    drop(child.stdout.take());
    child.wait().map_err(failed)?;
    Ok(bytes)
}

fn open(ring: &Path) -> Result<RingReader, BenchError> {
    RingReader::open(ring).map_err(BenchError::during("opening the ring"))
}

impl RecorderUnderLoad for HoldfastRecorder {
    fn take(&mut self, _: u64, element: &[u8]) -> Result<(), BenchError> {
        self.input.write_all(element).map_err(BenchError::file(&self.ring, "write to its recorder"))
    }

    fn reader(&self, _: u64) -> Result<ReadLoop, BenchError> {
        let mut reader = open(&self.ring)?;
        let stop = Arc::clone(&self.stop);
        Ok(Box::new(move || {
            let plan = reader.plan(&Selection::ALL).map_err(BenchError::during("planning"))?;
            let mut bytes = 0;
            // In pieces, so that a reader ends when the others do.
            let mut sink = |item: Item<'_>| {
                if let Item::Element(element) = item {
                    bytes += element.data.len() as u64;
                }
                let enough = bytes >= 256 << 20 || stop.load(Ordering::Relaxed);
                if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            reader.read(&plan, &mut sink).map_err(BenchError::during("reading"))?;
            Ok(bytes)
        }))
    }

    fn exporter(&self) -> Result<ReadLoop, BenchError> {
        let (ring, commands, stop) = (self.ring.clone(), self.commands.clone(), Arc::clone(&self.stop));
        Ok(Box::new(move || export(&commands, &ring, ["--stream", "elements", "--format", "raw"], &stop)))
    }

    fn end(self: Box<Self>) -> Result<EndReport, BenchError> {
        let Self { program, input, stop, noted, allowed, looker, .. } = *self;
        stop.store(true, Ordering::Relaxed);
        let _ = looker.join();
        drop(input);
        let said = program.end(&[0])?;
        let line = said.lines().rfind(|line| line.starts_with('{')).unwrap_or_default();
        let json: serde_json::Value =
            serde_json::from_str(line).map_err(BenchError::during("its summary"))?;
        let lost = json["streams"][0]["lost_elements"].as_u64();
        let lost = lost.ok_or_else(|| BenchError::Accounting(format!("no summary: {said}")))?;
        let WorstCase { slack, worst: (write, read) } = *noted.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(EndReport { lost, slack, device: allowed.map(|allowed| DeviceLatency { write, read, ..allowed }) })
    }

    fn tells(&self) -> bool {
        true
    }
}
