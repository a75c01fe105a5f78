//! Delivery of elements by a producer on the same machine into a ring: through shared memory, TCP and a pipe, each element by
//! itself or gathered into large writes. One program in C delivers to a recorder whose ring is in memory, so that no disk counts;
//! all that was sent must be recorded.

use crate::program::{Program, holdfast};
use crate::report::Report;
use crate::rounds::{Rounds, Spread};
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use holdfast_base::ByteSize;
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

/// How elements get there, and bytes of a write that several of them share.
const WAYS: [(&str, Transport, u64); 5] = [
    ("shared memory", Transport::Shared, 0),
    ("TCP, a write each", Transport::Tcp, 0),
    ("TCP, gathered", Transport::Tcp, GATHERED),
    ("pipe, a write each", Transport::Pipe, 0),
    ("pipe, gathered", Transport::Pipe, GATHERED),
];
const GATHERED: u64 = 64 << 10;

/// Bytes of an element, and how many there are.
const LOADS: [(u64, u64); 4] = [(20, 10_000_000), (1500, 2_000_000), (64 << 10, 1 << 16), (1 << 20, 1 << 12)];

const GIB: f64 = 1_073_741_824.0;

#[derive(Clone, Copy, PartialEq)]
enum Transport {
    Shared,
    Tcp,
    Pipe,
}

/// What is the same for all of them.
struct DeliveryBench {
    place: WorkFolder,
    recorder: PathBuf,
    producer: PathBuf,
    scale: Scale,
}

/// Measures all ways of delivery.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let place = WorkFolder::in_memory(scale.pick(32 << 20, 2 << 30))?;
    let recorder = holdfast("holdfast-recorder", scale)?;
    let producer = place.file("producers");
    compile(&producer)?;
    let scene = DeliveryBench { place, recorder, producer, scale };
    let mut report = Report::new("producers", scale);
    let mut rows = vec![row!["element", "way", "M elements/s", "GiB/s", "to shared memory"]];
    for (size, count) in LOADS {
        let count = scale.pick((4 << 20) / size.max(1024), count);
        let rounds =
            Rounds::run(scale.pick(1, 5), WAYS.len(), |which| scene.deliver(WAYS[which], size, count))?;
        for (which, (name, ..)) in WAYS.iter().enumerate() {
            let Spread { median, least, most } = rounds.of(which);
            let bytes = Spread {
                median: median * size as f64 / GIB,
                least: least * size as f64 / GIB,
                most: most * size as f64 / GIB,
            };
            let ratio = rounds.ratio(which, 0);
            rows.push(row![
                ByteSize(size),
                name,
                format!("{:.3}", median / 1e6),
                bytes.show(2),
                ratio.show(2)
            ]);
        }
    }
    report.table(&rows);
    report.finish()
}

/// The producer of all ways, with the header as it is published.
fn compile(program: &Path) -> Result<(), BenchError> {
    tools::find("cc")
        .ok_or_else(|| BenchError::skipped("no C compiler here (scripts/need build installs it)"))?;
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = |path: PathBuf| path.display().to_string();
    let (include, source) =
        (format!("-I{}", text(here.join("../examples"))), text(here.join("src/cases/producers.c")));
    tools::output("cc", &["-O2", &include, "-o", &text(program.to_owned()), &source]).map(|_| ())
}

impl DeliveryBench {
    /// Elements a second, from the producer's start until all of them are packed.
    fn deliver(
        &self,
        (_, way, gather): (&str, Transport, u64),
        size: u64,
        count: u64,
    ) -> Result<f64, BenchError> {
        let (ring, log) = (self.place.file("ring"), self.place.file("recorder.txt"));
        let _ = std::fs::remove_file(&ring);
        let (source, target) = match way {
            Transport::Shared => {
                let socket = self.place.file("socket").display().to_string();
                (format!("shm:{socket}"), socket)
            }
            Transport::Tcp => {
                let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr());
                let port = free.map_err(BenchError::during("finding a free port"))?.port();
                (format!("tcp:127.0.0.1:{port}"), port.to_string())
            }
            Transport::Pipe => ("stdin".to_owned(), "-".to_owned()),
        };
        let (bytes, slot) = self.scale.pick(("16MiB", "1MiB"), ("1GiB", "16MiB"));
        let text = ring.display().to_string();
        let record = [
            &text, "--size", bytes, "--slot", slot, "--source", &source, "--name", "s", "--frame", "len32",
            "--json",
        ];
        let mut recorder = Program::start(&self.recorder, &record, Stdio::piped(), &log)?;
        let input = recorder.input();
        recorder.until("it records", |recorder| recorder.said().contains("; recording "))?;
        let found = holdfast_protocol::locate(&ring).map_err(BenchError::during("finding the recorder"))?;
        let connection =
            holdfast_protocol::find_recorder(&found).map_err(BenchError::during("finding the recorder"))?;
        let mut connection = connection.ok_or_else(|| BenchError::skipped("the recorder does not answer"))?;

        let kind = match way {
            Transport::Shared => "shm",
            Transport::Tcp => "tcp",
            Transport::Pipe => "pipe",
        };
        let arguments = [kind, &target, &size.to_string(), &count.to_string(), &gather.to_string()];
        let failed = |said: String| {
            let command = format!("{} {}", self.producer.display(), arguments.join(" "));
            BenchError::program(command, said)
        };
        let mut producer = tools::command(&self.producer);
        producer.args(arguments).stdin(Stdio::null());
        if let (Transport::Pipe, Some(input)) = (way, &input) {
            // The recorder's input stays open until all is recorded.
            producer
                .stdout(input.as_fd().try_clone_to_owned().map_err(BenchError::during("sharing a pipe"))?);
        }
        let start = Instant::now();
        let ended = producer.status().map_err(|cause| failed(cause.to_string()))?;
        if !ended.success() {
            return Err(failed(ended.to_string()));
        }
        recorder.until("all is recorded", |_| {
            let status = connection.status().ok().and_then(|status| status.recorder);
            status.is_some_and(|recorder| {
                recorder.sources.iter().map(|source| source.packed_elements).sum::<u64>() >= count
            })
        })?;
        let took = start.elapsed();
        drop((input, producer));
        recorder.interrupt();
        let said = recorder.end(&[0])?;
        let counted = summary(&said).ok_or_else(|| failed(said.clone()))?;
        if counted != (count, count * size, 0) {
            return Err(BenchError::Accounting(format!(
                "{count} elements of {size} bytes were sent, and {counted:?} recorded"
            )));
        }
        Ok(count as f64 / took.as_secs_f64())
    }
}

/// Elements, bytes and what was lost, from the summary that the recorder prints as JSON.
fn summary(said: &str) -> Option<(u64, u64, u64)> {
    let line = said.lines().find(|line| line.starts_with('{'))?;
    let json: serde_json::Value = serde_json::from_str(line).ok()?;
    let stream = &json["streams"][0];
    let number = |key: &str| stream[key].as_u64();
    Some((number("elements")?, number("bytes")?, number("lost_elements")?))
}
