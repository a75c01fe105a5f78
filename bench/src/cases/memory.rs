//! Memory and restarts: the most memory that a recorder ever has with all kinds of input, against what is configured;
//! and a ring file whose slots all carry real headers, cut off without a farewell: how long until capture begins
//! again, how long until all its slots are known, by how many reads.

use crate::counting_disk::CountingDisk;
use crate::fio::Job;
use crate::link::{Traffic, VirtualLink};
use crate::miniature::{self, MemoryElements, MiniatureRecorder, MiniatureSetup};
use crate::program::{Program, holdfast};
use crate::report::{Goal, Report};
use crate::rounds::{Rounds, Spread};
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use holdfast_base::{ByteSize, Clock, HEAD, SystemClock};
use holdfast_format::SlotFlags;
use holdfast_ingest::Batch;
use holdfast_media::{Access, BufferPool, Device, Lock, RealDisk};
use holdfast_ring::SCAN_READS;
use std::fs::File;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What a recorder may take beside its buffers and its table.
const BASE: u64 = 64 << 20;
/// Of each slot in its table.
const OF_A_SLOT: u64 = 64;
const MIB: f64 = 1_048_576.0;

/// Measures the memory of recorders with all inputs, and a restart.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let mut report = Report::new("memory", scale);
    match holdfast("holdfast-recorder", scale) {
        Ok(program) => resident(&program, scale, &mut report)?,
        Err(why) => println!("{why}"),
    }
    restart(scale, &mut report)?;
    report.finish()
}

/// What is fed to a recorder.
enum Input {
    /// Bytes through a pipe, cut by a framing, again and again.
    Pipe(&'static str, Vec<u8>),
    /// Datagrams of so many bytes.
    Datagrams(usize),
    /// Packets over a virtual link, into so many rings of the kernel.
    Packets(VirtualLink, &'static str),
    /// A file of packets of so many bytes, replayed as fast as can be.
    Replay(usize),
    /// So many connections, all of which stop within an element again and again.
    Connections(usize),
}

/// Memory that packet rings take beside all else.
const RINGS: u64 = 2 * (64 << 20);

/// The most memory with each kind of input.
fn resident(program: &Path, scale: Scale, report: &mut Report) -> Result<(), BenchError> {
    let pipe = Input::Pipe;
    let mut inputs = vec![
        ("20 B elements", pipe("fixed:20", vec![7; 1_000_000])),
        ("60 MiB elements", pipe("fixed:62914560", vec![7; 60 << 20])),
        ("short lines", pipe("lines", b"one line\n".repeat(100_000))),
        ("a line without end", pipe("lines", vec![7; 1 << 20])),
        ("empty lines", pipe("lines", vec![b'\n'; 1 << 20])),
        ("empty datagrams (udp)", Input::Datagrams(0)),
        ("datagrams of 60 KiB (udp)", Input::Datagrams(60 << 10)),
        ("packets of 60 B (replay)", Input::Replay(60)),
        ("packets of 60 KiB (replay)", Input::Replay(60 << 10)),
        ("packets of 40 MiB (replay)", Input::Replay(40 << 20)),
        ("pieces of elements (tcp)", Input::Connections(scale.pick(50, 900))),
    ];
    match VirtualLink::make() {
        Ok(link) => inputs.push(("packets from two rings (iface)", Input::Packets(link, "2"))),
        Err(why) => println!("{why}"),
    }
    let mut rows = vec![row!["input", "configured", "allowed MiB", "most MiB", "verdict"]];
    for memory in scale.pick(&[64u64 << 20][..], &[128 << 20, 512 << 20][..]) {
        for (name, input) in &inputs {
            let memory = if matches!(input, Input::Packets(..)) { memory + RINGS } else { *memory };
            let (most, slots) = most_memory(program, scale, (name, input), memory)?;
            let allowed = memory + OF_A_SLOT * slots + BASE;
            let show = |bytes: u64| format!("{:.0}", bytes as f64 / MIB);
            let verdict = Goal::AtMost(1.0).verdict(&Spread::of([most as f64 / allowed as f64]));
            let verdict = verdict.replace(" (≤ 1)", "");
            rows.push(row![name, ByteSize(memory), show(allowed), show(most), verdict]);
        }
    }
    report.table(&rows);
    Ok(())
}

/// The most memory that a recorder had with one input, and the slots of its ring.
fn most_memory(
    program: &Path,
    scale: Scale,
    (name, input): (&str, &Input),
    memory: u64,
) -> Result<(u64, u64), BenchError> {
    let (size, slot, slots): (u64, u64, u64) = scale.pick((32 << 20, 1 << 20, 27), (2 << 30, 8 << 20, 252));
    let place = WorkFolder::with_room(size)?;
    let total = scale.pick(8 << 20, 1 << 30);
    let text = |bytes: u64| format!("{}KiB", bytes >> 10);
    let mut arguments: Vec<String> = vec![place.file("ring").display().to_string()];
    arguments
        .extend(["--size", &text(size), "--slot", &text(slot), "--memory", &text(memory)].map(str::to_owned));
    let (source, more): (String, Vec<&str>) = match input {
        Input::Pipe(framing, _) => ("stdin".into(), vec!["--frame", framing]),
        Input::Datagrams(_) => (format!("udp:127.0.0.1:{}", free_port()?), vec![]),
        Input::Connections(_) => (format!("tcp:127.0.0.1:{}", free_port()?), vec!["--frame", "fixed:8000"]),
        Input::Packets(link, rings) => (format!("iface:{}", link.near()), vec!["--rings", rings]),
        Input::Replay(packet) => {
            let file = place.file("packets.pcap");
            write_packets(&file, *packet, total)?;
            (format!("replay:{}", file.display()), vec!["--speed", "max"])
        }
    };
    arguments.extend(["--json", "--source", &source, "--name", "s"].map(str::to_owned));
    arguments.extend(more.into_iter().map(str::to_owned));
    let mut recorder = Program::start(program, &arguments, Stdio::piped(), &place.file("said"))?;
    let mut pipe = recorder.input();
    let mut given = 0;
    match input {
        Input::Pipe(_, piece) => {
            // A recorder that ends early tells why itself.
            while given < total && pipe.as_mut().is_some_and(|pipe| pipe.write_all(piece).is_ok()) {
                given += piece.len() as u64;
            }
        }
        Input::Datagrams(bytes) => {
            recorder.until("recording", |recorder| recorder.said().contains("; recording "))?;
            given = send_datagrams(source.trim_start_matches("udp:"), *bytes, total)?;
        }
        Input::Connections(count) => {
            recorder.until("recording", |recorder| recorder.said().contains("; recording "))?;
            given = send_pieces(source.trim_start_matches("tcp:"), *count, total)?;
        }
        Input::Packets(link, _) => {
            recorder.until("recording", |recorder| recorder.said().contains("; recording "))?;
            let most = total / 1400;
            let traffic = Traffic { frame: 1400, rate: None, time: Duration::from_mins(1), most };
            given = link.send(traffic)?.frames * 1400 + 1400;
        }
        Input::Replay(_) => given = total,
    }
    // All of it is taken in while it still runs.
    std::thread::sleep(Duration::from_millis(scale.pick(50, 300)));
    let most = if matches!(input, Input::Replay(_)) {
        // It ends by itself: what it had at most is looked at until then.
        let mut most = 0;
        while let Some(now) = recorder.most_memory() {
            most = now.max(most);
            std::thread::sleep(Duration::from_millis(1));
        }
        most
    } else {
        recorder.most_memory().unwrap_or(0)
    };
    drop(pipe);
    if matches!(input, Input::Datagrams(_) | Input::Packets(..) | Input::Connections(_)) {
        recorder.interrupt();
    }
    // The line without end is cut by the end of the input, which is told by exit code 1.
    let said = recorder.end(&[0, 1])?;
    if !said.contains("\"elements\"")
        || said.contains("\"elements\":0,\"bytes\":0,\"lost_elements\":0")
        || given < total
    {
        return Err(BenchError::Accounting(format!("after {given} bytes of {name} it said {said}")));
    }
    Ok((most, slots))
}

/// A port that nobody listens to.
fn free_port() -> Result<u16, BenchError> {
    let socket = UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    socket.map(|address| address.port()).map_err(BenchError::during("looking for a free port"))
}

/// As fast as they go; those that nobody took are counted by the recorder.
fn send_datagrams(address: &str, bytes: usize, total: u64) -> Result<u64, BenchError> {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(BenchError::during("sending datagrams"))?;
    let data = vec![7; bytes];
    let mut given = 0;
    while given < total {
        socket.send_to(&data, address).map_err(BenchError::during("sending datagrams"))?;
        // An empty one takes as much on its way as others of some size. So many of them are more than all buffers hold,
        // and do not take minutes to send.
        given += bytes.max(256) as u64;
    }
    Ok(given)
}

/// Over all connections in turn, so that each waits in the middle of an element while others deliver.
fn send_pieces(address: &str, count: usize, total: u64) -> Result<u64, BenchError> {
    let connect = |_| TcpStream::connect(address);
    let connections: Result<Vec<TcpStream>, _> = (0..count).map(connect).collect();
    let mut connections = connections.map_err(BenchError::during("sending over TCP"))?;
    let piece = vec![7; 7000];
    let mut given = 0;
    while given < total {
        for connection in &mut connections {
            connection.write_all(&piece).map_err(BenchError::during("sending over TCP"))?;
            given += piece.len() as u64;
        }
    }
    Ok(given)
}

/// A capture file of so many bytes, all of the same packet.
fn write_packets(path: &Path, packet: usize, total: u64) -> Result<(), BenchError> {
    let mut file = Vec::with_capacity(total as usize + packet + 64);
    // Magic of nanoseconds, version 2.4, no zone, any length, Ethernet.
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    let mut second = 1_700_000_000u32;
    while (file.len() as u64) < total {
        for word in [second, 0, packet as u32, packet as u32] {
            file.extend(word.to_le_bytes());
        }
        file.resize(file.len() + packet, 7);
        second += 1;
    }
    std::fs::write(path, file).map_err(BenchError::file(path, "write it"))
}

/// Capturing again on a full ring.
fn restart(scale: Scale, report: &mut Report) -> Result<(), BenchError> {
    let (slot_bytes, slots): (u64, u64) = scale.pick((64 << 10, 256), (1 << 20, 16_384));
    let place = WorkFolder::with_room(slots * 24 * 1024 + (8 << 20))?;
    let path = place.file("sparse");
    let file = File::create(&path).map_err(BenchError::file(&path, "make it"))?;
    file.set_len(HEAD + (4 + slots) * slot_bytes).map_err(BenchError::file(&path, "make it long"))?;
    drop(file);
    let geometry = miniature::make(&path, slot_bytes)?;
    fill(&path, slot_bytes, slots)?;
    let mut begins = Vec::new();
    let mut reads = crate::counting_disk::ReadCounts::default();
    let measured = scale == Scale::Real && tools::find("fio").is_some();
    let area = slots * slot_bytes;
    let rounds = Rounds::run(scale.pick(1, 5), if measured { 2 } else { 1 }, |who| {
        if who == 0 {
            let began = begin(&path, slot_bytes, slots)?;
            begins.push(began.capturing.as_secs_f64());
            reads = began.reads;
            return Ok(began.known.as_secs_f64());
        }
        let block = (reads.bytes / reads.count.max(1) / 4096 * 4096).max(4096);
        let total = slots * block;
        // At the heads of slots: elsewhere there are holes, which cost nothing to read.
        let job = Job {
            kind: "randread",
            path: &path,
            offset: geometry.first_slot(),
            size: area,
            total,
            block,
            depth: SCAN_READS,
            align: Some(slot_bytes),
        };
        Ok(total as f64 / job.run()?)
    })?;
    let begins = Spread::of(begins);
    let each = reads.count as f64 / slots as f64;
    let each = Spread::of([each]);
    let millis = |spread: Spread| {
        let Spread { median, least, most } = spread;
        Spread { median: median * 1e3, least: least * 1e3, most: most * 1e3 }.show(0)
    };
    let mut rows = vec![row!["of a restart on a full ring", "figure", "verdict"]];
    rows.push(row!["slots", slots, ""]);
    rows.push(row!["capturing again after, s", begins.show(3), Goal::AtMost(5.0).verdict(&begins)]);
    rows.push(row!["all slots known after, ms", millis(rounds.of(0)), ""]);
    let small = ByteSize(reads.bytes / reads.count.max(1));
    rows.push(row![
        format!("reads a slot (of {small} on average)"),
        each.show(3),
        Goal::AtMost(1.05).verdict(&each)
    ]);
    if measured {
        let ratio = rounds.ratio(0, 1);
        let verdict = Goal::AtMost(1.1).verdict(&ratio);
        rows.push(row![
            format!("time of one such read of every slot by fio, {SCAN_READS} at once, ms"),
            millis(rounds.of(1)),
            ""
        ]);
        rows.push(row!["time to know all slots, to fio's", ratio.show(2), verdict]);
    }
    report.table(&rows);
    Ok(())
}

/// A run that goes once around the ring with slots of one small element, and is cut off.
fn fill(path: &Path, slot_bytes: u64, slots: u64) -> Result<(), BenchError> {
    let setup = MiniatureSetup { slot_bytes, buffers: 8, writes: 8 };
    let mut pool = BufferPool::new(8, slot_bytes as usize, Lock::Prefault)
        .map_err(BenchError::during("getting buffers"))?;
    let device = Device::open(path, Access::Own).map_err(BenchError::during("opening the lane"))?;
    let disk = CountingDisk::hasty(RealDisk::new(device, &[pool.region()], 16));
    let buffers = std::iter::from_fn(|| pool.take()).collect();
    let mut recorder = MiniatureRecorder::over(disk, buffers, setup)?;
    let clock = SystemClock::new();
    let batches = vec![Batch::new(ByteSize::kib(128), 16)];
    let mut elements = MemoryElements::new(1000, batches, recorder.next_ordinal());
    for _ in 0..slots + slots / 8 {
        recorder.take(elements.next(clock.now(), 1))?;
        recorder.seal(SlotFlags::SHORT);
    }
    recorder.settle();
    Ok(())
}

/// How a run began.
struct RestartFigures {
    capturing: Duration,
    known: Duration,
    reads: crate::counting_disk::ReadCounts,
}

fn begin(path: &Path, slot_bytes: u64, slots: u64) -> Result<RestartFigures, BenchError> {
    let setup = MiniatureSetup { slot_bytes, buffers: 4, writes: 2 };
    let mut pool = BufferPool::new(4, slot_bytes as usize, Lock::Prefault)
        .map_err(BenchError::during("getting buffers"))?;
    let device = Device::open(path, Access::Own).map_err(BenchError::during("opening the lane"))?;
    let disk = CountingDisk::counting(RealDisk::new(device, &[pool.region()], 16));
    let buffers = std::iter::from_fn(|| pool.take()).collect();
    let start = Instant::now();
    let mut recorder = MiniatureRecorder::over(disk, buffers, setup)?;
    let capturing = start.elapsed();
    while !recorder.driver().ring().status("").scanned {
        // Many looks at once: the status is made for people, and costs more than a look.
        for _ in 0..64 {
            recorder.poll(Duration::from_millis(1));
        }
    }
    let known = start.elapsed();
    let reads = recorder.driver().disk().reads();
    let data = recorder.driver().ring().status("").slots;
    if reads.count < slots / 2 {
        return Err(BenchError::Accounting(format!(
            "{} reads cannot tell {slots} slots: {data:?}",
            reads.count
        )));
    }
    Ok(RestartFigures { capturing, known, reads })
}
