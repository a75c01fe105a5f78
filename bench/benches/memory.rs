//! Memory and restarts: the most memory that a recorder ever has with all kinds of input, against what is configured;
//! and a ring file whose slots all carry real headers, cut off without a farewell: how long until capture begins
//! again, how long until all its slots are known, by how many reads.

use holdfast_base::{ByteSize, Clock, HEAD, SystemClock};
use holdfast_bench::compare::{Rounds, Spread};
use holdfast_bench::fio::Job;
use holdfast_bench::miniature::{self, Elements, Miniature, Setup};
use holdfast_bench::place::Place;
use holdfast_bench::program::{Program, holdfast};
use holdfast_bench::report::{Goal, Report};
use holdfast_bench::watched::Watched;
use holdfast_bench::{Scale, Trouble, row, run, tool};
use holdfast_format::SlotFlags;
use holdfast_ingest::Batch;
use holdfast_media::{Access, BufferPool, Device, Lock, RealDisk};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// What a recorder may take beside its buffers and its table.
const BASE: u64 = 64 << 20;
/// Of each slot in its table.
const OF_A_SLOT: u64 = 64;
const MIB: f64 = 1_048_576.0;

fn main() -> std::process::ExitCode {
    run(|scale| {
        let mut report = Report::new("memory", scale);
        match holdfast("holdfast-recorder", scale) {
            Ok(program) => resident(&program, scale, &mut report)?,
            Err(why) => println!("{why}"),
        }
        restart(scale, &mut report)?;
        report.finish()
    })
}

/// The most memory with each kind of input.
fn resident(program: &Path, scale: Scale, report: &mut Report) -> Result<(), Trouble> {
    let (size, slot, slots): (u64, u64, u64) = scale.pick((32 << 20, 1 << 20, 27), (2 << 30, 8 << 20, 252));
    let place = Place::with_room(size)?;
    let inputs = [
        ("20 B elements", "fixed:20", vec![7; 1_000_000]),
        ("60 MiB elements", "fixed:62914560", vec![7; 60 << 20]),
        ("short lines", "lines", b"one line\n".repeat(100_000)),
        ("a line without end", "lines", vec![7; 1 << 20]),
        ("empty lines", "lines", vec![b'\n'; 1 << 20]),
    ];
    let mut rows = vec![row!["input", "configured", "allowed MiB", "most MiB", "verdict"]];
    for memory in scale.pick(&[64u64 << 20][..], &[128 << 20, 512 << 20][..]) {
        for (name, framing, piece) in &inputs {
            let ring = place.file("ring");
            let _ = std::fs::remove_file(&ring);
            let text = |bytes: u64| format!("{}KiB", bytes >> 10);
            let (size, slot, memory_text) = (text(size), text(slot), text(*memory));
            let ring = ring.display().to_string();
            let arguments = [
                &ring,
                "--size",
                &size,
                "--slot",
                &slot,
                "--memory",
                &memory_text,
                "--json",
                "--source",
                "stdin",
                "--name",
                "s",
                "--frame",
                framing,
            ];
            let mut recorder = Program::start(program, &arguments, Stdio::piped(), &place.file("said"))?;
            let mut given = 0;
            let total = scale.pick(8 << 20, 1 << 30);
            if let Some(mut input) = recorder.input() {
                while given < total {
                    // A recorder that ends early tells why itself.
                    if input.write_all(piece).is_err() {
                        break;
                    }
                    given += piece.len() as u64;
                }
                // All of it is taken in while the pipe is still open.
                std::thread::sleep(Duration::from_millis(scale.pick(20, 200)));
                let most = recorder.most_memory().unwrap_or(0);
                drop(input);
                // The line without end is cut by the end of the input, which is told by exit code 1.
                let said = recorder.end(&[0, 1])?;
                if !said.contains("\"elements\"") || given < total {
                    return Err(Trouble::Accounting(format!("after {given} bytes of {name} it said {said}")));
                }
                let allowed = memory + OF_A_SLOT * slots + BASE;
                let show = |bytes: u64| format!("{:.0}", bytes as f64 / MIB);
                let verdict = Goal::AtMost(1.0).verdict(&Spread::of([most as f64 / allowed as f64]));
                let verdict = verdict.replace(" (≤ 1)", "");
                rows.push(row![name, ByteSize(*memory), show(allowed), show(most), verdict]);
            }
        }
    }
    report.table(&rows);
    Ok(())
}

/// Capturing again on a full ring.
fn restart(scale: Scale, report: &mut Report) -> Result<(), Trouble> {
    let (slot_bytes, slots): (u64, u64) = scale.pick((64 << 10, 256), (1 << 20, 16_384));
    let place = Place::with_room(slots * 24 * 1024 + (8 << 20))?;
    let path = place.file("sparse");
    let file = File::create(&path).map_err(Trouble::file(&path, "make it"))?;
    file.set_len(HEAD + (4 + slots) * slot_bytes).map_err(Trouble::file(&path, "make it long"))?;
    drop(file);
    let geometry = miniature::make(&path, slot_bytes)?;
    fill(&path, slot_bytes, slots)?;
    let mut begins = Vec::new();
    let mut reads = holdfast_bench::watched::Reads::default();
    let measured = scale == Scale::Real && tool::find("fio").is_some();
    let area = slots * slot_bytes;
    let rounds = Rounds::run(scale.pick(1, 5), if measured { 2 } else { 1 }, |who| {
        if who == 0 {
            let began = begin(&path, slot_bytes, slots)?;
            begins.push(began.capturing.as_secs_f64());
            reads = began.reads;
            return Ok(began.known.as_secs_f64());
        }
        let block = (reads.bytes / reads.count.max(1)).next_multiple_of(4096).max(4096);
        let total = slots * block;
        // At the heads of slots: elsewhere there are holes, which cost nothing to read.
        let job = Job {
            kind: "randread",
            path: &path,
            offset: geometry.first_slot(),
            size: area,
            total,
            block,
            depth: 1,
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
        rows.push(row!["time of one such read of every slot by fio, ms", millis(rounds.of(1)), ""]);
        rows.push(row!["time to know all slots, to fio's", ratio.show(2), verdict]);
    }
    report.table(&rows);
    Ok(())
}

/// A run that goes once around the ring with slots of one small element, and is cut off.
fn fill(path: &Path, slot_bytes: u64, slots: u64) -> Result<(), Trouble> {
    let setup = Setup { slot_bytes, buffers: 8, writes: 8 };
    let mut pool =
        BufferPool::new(8, slot_bytes as usize, Lock::Prefault).map_err(Trouble::of("getting buffers"))?;
    let device = Device::open(path, Access::Own).map_err(Trouble::of("opening the lane"))?;
    let disk = Watched::hasty(RealDisk::new(device, &[pool.region()], 16));
    let buffers = std::iter::from_fn(|| pool.take()).collect();
    let mut recorder = Miniature::over(disk, buffers, setup)?;
    let clock = SystemClock::new();
    let batches = vec![Batch::new(ByteSize::kib(128), 16)];
    let mut elements = Elements::new(1000, batches, recorder.next_ordinal());
    for _ in 0..slots + slots / 8 {
        recorder.take(elements.next(clock.now(), 1))?;
        recorder.seal(SlotFlags::SHORT);
    }
    recorder.settle();
    Ok(())
}

/// How a run began.
struct Began {
    capturing: Duration,
    known: Duration,
    reads: holdfast_bench::watched::Reads,
}

fn begin(path: &Path, slot_bytes: u64, slots: u64) -> Result<Began, Trouble> {
    let setup = Setup { slot_bytes, buffers: 4, writes: 2 };
    let mut pool =
        BufferPool::new(4, slot_bytes as usize, Lock::Prefault).map_err(Trouble::of("getting buffers"))?;
    let device = Device::open(path, Access::Own).map_err(Trouble::of("opening the lane"))?;
    let disk = Watched::counting(RealDisk::new(device, &[pool.region()], 16));
    let buffers = std::iter::from_fn(|| pool.take()).collect();
    let start = Instant::now();
    let mut recorder = Miniature::over(disk, buffers, setup)?;
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
        return Err(Trouble::Accounting(format!(
            "{} reads cannot tell {slots} slots: {data:?}",
            reads.count
        )));
    }
    Ok(Began { capturing, known, reads })
}
