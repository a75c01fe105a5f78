//! Remote files as local ones: `holdfast mount` and `holdfast shell` beside `get` and `put`, `rclone mount` and `s3fs`, over links
//! with latency (table 6 and figure 9 of the paper on `PetaShare`).

use crate::access::paper::TABLE;
use crate::access::s3::S3Server;
use crate::access::view::{PROJECT, View, Way};
use crate::plot::{Line, Plot, Style};
use crate::program::holdfast;
use crate::report::{Goal, Report};
use crate::rounds::Spread;
use crate::shipping::archive_site::ArchiveSite;
use crate::shipping::shaped_proxy::{LinkShape, ShapedProxy};
use crate::shipping::stand::Source;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Rate of the link in each direction.
const MEGABITS: u32 = 1000;

/// Round-trip times of the link in milliseconds.
const LATENCIES: [u64; 3] = [0, 10, 50];

/// Fixed buffer sizes of figure 9 in bytes, 0 for none.
const BUFFERS: [u64; 8] = [0, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20, 64 << 20];

/// Bytes of a read of `cat`.
const READ: u64 = 128 << 10;

/// Part of the large file's bytes that is written.
const WRITTEN: u64 = 4;

/// Bytes of a small file.
const SMALL: u64 = 10_000;

/// Programs, files and servers of a run.
struct Stand {
    holdfast: PathBuf,
    scale: Scale,
    /// Bytes of the large file.
    large: u64,
    source: Source,
    /// File that is written.
    written: Source,
    small: Source,
    /// Entries of the long list.
    entries: u64,
    site: ArchiveSite,
    s3: Option<S3Server>,
    /// Number of names that were given to written files.
    names: AtomicUsize,
}

/// Work that is timed in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Read,
    Write,
    ReadSmall,
    WriteSmall,
    List,
}

impl Task {
    const ALL: [Self; 5] = [Self::Read, Self::Write, Self::ReadSmall, Self::WriteSmall, Self::List];
}

fn mount(more: &[&str]) -> Way {
    Way::Mount(more.iter().map(|word| (*word).to_owned()).collect())
}

fn shell(way: &'static str) -> Way {
    Way::Shell(way, Vec::new())
}

/// Script that reads blocks of a file one after the other. `dd` and redirections would copy the descriptor, and `head` reads small
/// pieces.
fn reads(path: &str, block: u64, count: u64) -> String {
    format!("perl -e 'open F, \"<\", $ARGV[0] or die; sysread F, $b, {block} for 1..{count}' {path}")
}

/// Seconds of a command.
fn timed(command: &mut Command) -> Result<f64, BenchError> {
    tools::run(command).map(|(_, seconds)| seconds)
}

/// Link with a round-trip time in front of a server.
fn link(target: SocketAddr, latency: u64) -> Result<ShapedProxy, BenchError> {
    let shape =
        LinkShape { megabits: Some(MEGABITS), round_trip: Duration::from_millis(latency), flip_after: None };
    ShapedProxy::start(target, shape)
}

impl Stand {
    /// Round-trip times in milliseconds.
    fn latencies(&self) -> &'static [u64] {
        self.scale.pick(&LATENCIES[..1], &LATENCIES)
    }

    /// Fixed sizes of buffers in bytes.
    fn buffers(&self) -> &'static [u64] {
        self.scale.pick(&BUFFERS[..1], &BUFFERS)
    }

    fn start(scale: Scale) -> Result<Self, BenchError> {
        let holdfast = holdfast("holdfast", scale)?;
        tools::need("perl")?;
        if !tools::is_root() || !Path::new("/dev/fuse").exists() {
            return Err(BenchError::skipped("a mount wants root and /dev/fuse"));
        }
        let large = scale.pick(1 << 20, 1 << 30);
        let (count, entries) = scale.pick((5, 5), (200, 1000));
        let (source, small) = (Source::make(1, large)?, Source::make(count, SMALL)?);
        let written = Source::make(1, large / WRITTEN)?;
        // Each view writes its own copies.
        let space = source.space() + 20 * (written.space() + small.space()) + entries * 4096;
        let site = ArchiveSite::start(&holdfast, space)?;
        let s3 = match S3Server::start(space) {
            Ok(server) => Some(server),
            Err(BenchError::Skipped { .. }) => None,
            Err(error) => return Err(error),
        };
        let names = AtomicUsize::new(0);
        let stand = Self { holdfast, scale, large, source, written, small, entries, site, s3, names };
        stand.fill()?;
        Ok(stand)
    }

    /// Stores the files at both servers.
    fn fill(&self) -> Result<(), BenchError> {
        let many = Source::make(self.entries, 1)?;
        for (source, name) in [(&self.small, "small"), (&many, "many")] {
            let mut command = tools::command(&self.holdfast);
            command.args(["put", "-r", "--site", &format!("http://{}", self.site.address())]);
            timed(command.arg(source.folder()).arg(format!("/{PROJECT}/{name}")))?;
        }
        self.put(&self.source, self.site.address(), "large")?;
        let Some(s3) = &self.s3 else { return Ok(()) };
        for (source, name) in [(&self.small, "small"), (&many, "many")] {
            timed(tools::command("cp").arg("-r").arg(source.folder()).arg(s3.file(name)))?;
        }
        timed(tools::command("cp").arg(self.source.file(0)).arg(s3.file("large"))).map(drop)
    }

    fn put(&self, source: &Source, address: SocketAddr, name: &str) -> Result<f64, BenchError> {
        let mut command = tools::command(&self.holdfast);
        command.args(["put", "--site", &format!("http://{address}")]);
        timed(command.arg(source.file(0)).arg(format!("/{PROJECT}/{name}")))
    }

    fn get(&self, address: SocketAddr) -> Result<f64, BenchError> {
        let place = WorkFolder::in_memory(self.large)?;
        let mut command = tools::command(&self.holdfast);
        command.args(["get", "--site", &format!("http://{address}"), &format!("/{PROJECT}/large")]);
        timed(command.arg(place.file("got")))
    }

    fn server(&self, way: &Way) -> Result<SocketAddr, BenchError> {
        if !way.is_s3() {
            return Ok(self.site.address());
        }
        let server = self.s3.as_ref().map(S3Server::address);
        server.ok_or_else(|| BenchError::skipped("there is no S3 server (scripts/need bench installs it)"))
    }

    /// Seconds of a task in a new view behind a link.
    fn task(&self, way: &Way, latency: u64, task: Task) -> Result<f64, BenchError> {
        let proxy = link(self.server(way)?, latency)?;
        let view = View::start(&self.holdfast, way, proxy.address())?;
        let name = format!("new{}", self.names.fetch_add(1, Ordering::Relaxed));
        let script = match task {
            Task::Read => "cat $F/large > /dev/null".to_owned(),
            Task::Write => format!("cp {} $F/{name}", self.written.file(0).display()),
            Task::ReadSmall => "cat $F/small/* > /dev/null".to_owned(),
            Task::WriteSmall => format!("cp -r {} $F/{name}", self.small.folder().display()),
            Task::List => "ls -lR $F/many > /dev/null".to_owned(),
        };
        let took = view.time(&script)?;
        if !way.is_s3() || !matches!(task, Task::Write | Task::WriteSmall) {
            return Ok(took);
        }
        // The peers may answer before the server has the bytes.
        let began = Instant::now();
        while !self.has_all(&name, task) {
            if began.elapsed() > Duration::from_mins(10) {
                return Err(BenchError::accounting(format!("{} does not store {name}", way.name())));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let stored = took + began.elapsed().as_secs_f64();
        drop(view);
        if let Some(s3) = &self.s3 {
            timed(tools::command("rm").arg("-rf").arg(s3.file(&name)))?;
        }
        Ok(stored)
    }

    /// True when the S3 server has what a task wrote.
    fn has_all(&self, name: &str, task: Task) -> bool {
        let Some(s3) = &self.s3 else { return true };
        let size = |name: &str| fs::metadata(s3.file(name)).map_or(0, |found| found.len());
        match task {
            Task::Write => size(name) == self.written.bytes,
            _ => (0..self.small.files).all(|number| size(&format!("{name}/file{number}")) == SMALL),
        }
    }

    fn megabits(&self, task: Task, seconds: f64) -> f64 {
        let bytes = if task == Task::Read { self.large } else { self.written.bytes };
        bytes as f64 * 8.0 / 1e6 / seconds
    }
}

/// Measures table 6: the large file through all clients.
fn clients(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    report.say(&format!(
        "Clients (table 6): Mbit/s of reading (`cat`) a file of {} MB and of writing (`cp`) one of {} MB through a link of \
         {MEGABITS} Mbit/s, and in brackets the ratio to `get` or `put`.",
        stand.large / 1_000_000,
        stand.written.bytes / 1_000_000
    ));
    let mut rows = vec![row![
        "direction",
        "round trip",
        "get, put",
        "mount",
        "shell, fuse",
        "shell, seccomp",
        "verdict"
    ]];
    for (task, goal) in [(Task::Read, 0.9), (Task::Write, 0.9)] {
        for &latency in stand.latencies() {
            let proxy = link(stand.site.address(), latency)?;
            let commands = match task {
                Task::Read => stand.get(proxy.address())?,
                _ => stand.put(&stand.written, proxy.address(), "put")?,
            };
            let ways = [mount(&[]), shell("fuse"), shell("seccomp")];
            let mut seconds = Vec::new();
            for way in &ways {
                seconds.push(stand.task(way, latency, task)?);
            }
            let ratio = |seconds: f64| commands / seconds;
            let shown =
                |seconds: f64| format!("{:.0} ({:.2})", stand.megabits(task, seconds), ratio(seconds));
            let shells = ratio(seconds[1]).min(ratio(seconds[2]));
            let verdict = format!(
                "mount {}, shell {}",
                Goal::AtLeast(goal).verdict(&Spread::of([ratio(seconds[0])])),
                Goal::AtLeast(0.7).verdict(&Spread::of([shells]))
            );
            rows.push(row![
                if task == Task::Read { "read" } else { "write" },
                format!("{latency} ms"),
                format!("{:.0}", stand.megabits(task, commands)),
                shown(seconds[0]),
                shown(seconds[1]),
                shown(seconds[2]),
                verdict
            ]);
        }
    }
    for paper in TABLE {
        let ratio = |rate: f64| format!("{rate} ({:.2})", rate / paper.commands);
        rows.push(row![
            format!("paper: {}", paper.name),
            "",
            format!("{}", paper.commands),
            paper.mount.map_or_else(String::new, ratio),
            "",
            ratio(paper.shell),
            ""
        ]);
    }
    report.table(&rows);
    Ok(())
}

/// Measures figure 9: rates of reading by buffer size.
fn buffers(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    report.say(
        "Buffer sizes (figure 9): MB/s of reads of 128 KiB on the large file, as much of it as 200 buffers, by the fixed size of the buffer \
         and with the adaptive one. The verdict compares the adaptive one with the best size.",
    );
    let mut head = row!["client", "round trip"];
    head.extend(BUFFERS.iter().map(|size| match size >> 10 {
        0 => "none".to_owned(),
        kib if kib < 1024 => format!("{kib} KiB"),
        kib => format!("{} MiB", kib >> 10),
    }));
    head.extend(["adaptive".to_owned(), "verdict".to_owned()]);
    let mut rows = vec![head];
    for (client, way) in [("mount", None), ("shell", Some("seccomp"))] {
        let mut lines = Vec::new();
        for (colour, &latency) in stand.latencies().iter().enumerate() {
            let proxy = link(stand.site.address(), latency)?;
            let rate = |size: Option<u64>| -> Result<f64, BenchError> {
                let bytes = size.map_or(stand.large, |size| stand.large.min(200 * size.max(READ)));
                let more = size.map(|size| ["--buffer-size".to_owned(), format!("{size}B")]);
                let more: Vec<String> = more.into_iter().flatten().collect();
                let way = way.map_or_else(|| Way::Mount(more.clone()), |way| Way::Shell(way, more.clone()));
                let view = View::start(&stand.holdfast, &way, proxy.address())?;
                let (blocks, block) = (bytes / READ, READ);
                let took = view.time(&reads("$F/large", block, blocks))?;
                Ok((blocks * block) as f64 / 1e6 / took)
            };
            let fixed =
                stand.buffers().iter().map(|size| rate(Some(*size))).collect::<Result<Vec<_>, _>>()?;
            let adaptive = rate(None)?;
            let best = fixed.iter().copied().fold(0.0, f64::max);
            let verdict = Goal::AtLeast(0.95).verdict(&Spread::of([adaptive / best]));
            let mut cells = row![client, format!("{latency} ms")];
            cells.extend(fixed.iter().chain([&adaptive]).map(|rate| format!("{rate:.1}")));
            cells.push(format!("{:.2} {verdict}", adaptive / best));
            rows.push(cells);
            let power = |size: u64| (size.max(READ) as f64 / 1024.0).log2();
            let points = BUFFERS.iter().zip(&fixed).map(|(size, rate)| (power(*size), *rate)).collect();
            let drawn = |name: String, style, points| Line { name, colour, style, points };
            lines.push(drawn(format!("{latency} ms, fixed"), Style::Ours, points));
            let ends = [power(0), power(BUFFERS[BUFFERS.len() - 1])];
            let points = ends.map(|at| (at, adaptive)).to_vec();
            lines.push(drawn(format!("{latency} ms, adaptive"), Style::Theirs, points));
        }
        let plot = Plot {
            title: format!("Reading through the {client} by buffer size"),
            across: "buffer size: power of 2 of KiB".to_owned(),
            up: "MB/s".to_owned(),
            lines,
        };
        report.figure(&format!("buffers-{client}"), &plot)?;
    }
    report.table(&rows);
    Ok(())
}

/// Measures how much faster `cat` is than without a buffer.
fn without_buffer(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let latency = LATENCIES[LATENCIES.len() - 1];
    let proxy = link(stand.site.address(), latency)?;
    let part = stand.large / 16;
    let rate = |more: &[&str], bytes: u64| -> Result<f64, BenchError> {
        let view = View::start(&stand.holdfast, &mount(more), proxy.address())?;
        let took = view.time(&reads("$F/large", READ, bytes / READ))?;
        Ok(bytes as f64 / 1e6 / took)
    };
    let (with, without) = (rate(&[], stand.large)?, rate(&["--buffer-size", "0"], part)?);
    report.say(&format!(
        "`cat` of {} MB at a round trip of {latency} ms: {with:.1} MB/s; with `--buffer-size 0` {without:.1} MB/s (of the first {} MB). \
         Ratio {:.0}: {}.",
        stand.large / 1_000_000,
        part / 1_000_000,
        with / without,
        Goal::AtLeast(10.0).verdict(&Spread::of([with / without]))
    ));
    Ok(())
}

/// Measures other programs that mount remote files.
fn peers(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    report.say(&format!(
        "Mounts of others over an S3 server (versitygw) in memory, and those of Holdfast over its server, through a link of \
         {MEGABITS} Mbit/s: seconds of reading a file of {} MB and of writing one of {} MB, of reading and writing {} files of \
         {} KB, and of `ls -lR` of {} entries. A write ends when the server has the bytes. The verdict compares the mount with \
         the best of the others.",
        stand.large / 1_000_000,
        stand.written.bytes / 1_000_000,
        stand.small.files,
        SMALL / 1000,
        stand.entries
    ));
    let tasks = stand.scale.pick(&Task::ALL[..2], &Task::ALL).iter().copied();
    let ways = [mount(&[]), shell("seccomp"), Way::Rclone("off"), Way::Rclone("full"), Way::S3fs];
    let mut rows = vec![row!["round trip", "view", "read", "write", "read small", "write small", "ls -lR"]];
    for &latency in stand.latencies() {
        let mut all = Vec::new();
        for way in &ways {
            let mut seconds = [f64::NAN; Task::ALL.len()];
            for (of, task) in seconds.iter_mut().zip(tasks.clone()) {
                match stand.task(way, latency, task) {
                    Ok(seconds) => *of = seconds,
                    Err(error) if !way.is_s3() => return Err(error),
                    // A peer that is absent or cannot be started is left out.
                    Err(error @ BenchError::Skipped { .. }) => {
                        report.say(&format!("without {}: {error}", way.name()));
                        break;
                    }
                    Err(error) if stand.scale == Scale::Tiny => return Err(error),
                    // One that fails has no figure.
                    Err(error) => report.say(&format!("{} at {latency} ms, {task:?}: {error}", way.name())),
                }
            }
            let cells = seconds.iter().map(|seconds| format!("{seconds:.2}"));
            rows.push([format!("{latency} ms"), way.name()].into_iter().chain(cells).collect());
            all.push(seconds);
        }
        let verdicts = (0..Task::ALL.len()).map(|at| {
            let best = all[2..].iter().map(|of| of[at]).filter(|of| of.is_finite()).fold(f64::MAX, f64::min);
            let ratio = best / all[0][at];
            format!("{ratio:.2} {}", Goal::AtLeast(1.0).verdict(&Spread::of([ratio])))
        });
        rows.push(
            [format!("{latency} ms"), "best of others / mount".to_owned()]
                .into_iter()
                .chain(verdicts)
                .collect(),
        );
    }
    report.table(&rows);
    Ok(())
}

/// Measures the cost of a call of a program in a shell.
fn calls(stand: &Stand, report: &mut Report) -> Result<(), BenchError> {
    let count: u64 = stand.scale.pick(10, 20_000);
    let proxy = link(stand.site.address(), 0)?;
    let check = |path: &str| format!("for ((i = 0; i < {count}; i++)); do [ -e {path} ]; done");
    let read = |path: &str| reads(path, 4096, count);
    let local = stand.source.file(0).display().to_string();
    let time = |way: &Way, script: &str| -> Result<f64, BenchError> {
        View::start(&stand.holdfast, way, proxy.address())?.time(script)
    };
    let outside = timed(tools::command("bash").args(["-c", &check("/etc/hostname")]))?;
    let microseconds = |seconds: f64| format!("{:.1} µs", seconds / count as f64 * 1e6);
    let mut rows =
        vec![row!["way", "path outside", "path inside", "read of 4 KiB outside", "read of 4 KiB inside"]];
    for way in ["seccomp", "fuse"] {
        let way = shell(way);
        rows.push(row![
            way.name(),
            microseconds((time(&way, &check("/etc/hostname"))? - outside).max(0.0)),
            microseconds(time(&way, &check("$F/large"))?),
            microseconds(time(&way, &read(&local))?),
            microseconds(time(&way, &read("$F/large"))?)
        ]);
    }
    report.say(
        "Time of a call of a program in a shell: of asking for a path (outside of the tree: what it costs more than without a \
         shell), and of a read of 4 KiB.",
    );
    report.table(&rows);
    Ok(())
}

/// Measures remote files as local ones.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let stand = Stand::start(scale)?;
    let mut report = Report::new("mount", scale);
    clients(&stand, &mut report)?;
    buffers(&stand, &mut report)?;
    without_buffer(&stand, &mut report)?;
    calls(&stand, &mut report)?;
    report.finish()
}

/// Measures the mounts of other programs beside those of Holdfast.
pub fn bench_peers(scale: Scale) -> Result<(), BenchError> {
    let stand = Stand::start(scale)?;
    let mut report = Report::new("mount_peers", scale);
    peers(&stand, &mut report)?;
    report.finish()
}
