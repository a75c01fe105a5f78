//! Reading a range back, every byte checked: by the reader that all commands use, and by `holdfast read` as a whole
//! (which also makes a BLAKE3 of what it writes, here to nowhere), beside `fio` reading the same slots directly and in
//! order, with requests of the reader's size, as many at once, into huge pages. Then all once more from a disk that gives no more
//! than a fast one does: this machine's may be as fast as its memory.

use crate::control_group::{DiskDirection, as_it_is_and_slowed};
use crate::fio::{HugePages, Job};
use crate::miniature::{self, MemoryElements, MiniatureRecorder, MiniatureSetup};
use crate::program::{Program, holdfast};
use crate::report::{Goal, Report};
use crate::rounds::Rounds;
use crate::work_folder::WorkFolder;
use crate::{BenchError, Scale, row, tools};
use holdfast_base::{ByteSize, Clock, SystemClock};
use holdfast_ingest::{Batch, MAX_BATCH_BYTES};
use holdfast_media::{Prefill, create_file};
use holdfast_reader::{Item, RingReader, Selection};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

/// What the reader asks for at once, and how often.
const REQUEST: u64 = 2 << 20;
const AT_ONCE: usize = 8;
const MIB: f64 = 1_048_576.0;

/// What a disk that is slowed gives a second.
const FAST: ByteSize = ByteSize::gib(2);

/// A ring and what is in it.
struct FilledRing {
    elements: u64,
    bytes: u64,
}

/// Measures each reader of a ring.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let bytes: u64 = scale.pick(24 << 20, 12 << 30);
    let place = WorkFolder::with_room(bytes)?;
    let path = place.file("ring");
    drop(create_file(&path, bytes, Prefill::No).map_err(BenchError::during("making a file"))?);
    let slot_bytes = scale.pick(1 << 20, 64 << 20);
    let mut report = Report::new("reading", scale);
    let mut rows = vec![row!["elements", "disk", "read by", "MiB/s", "fio MiB/s", "ratio", "verdict"]];
    let _pages = scale.pick(None, Some(())).map(|()| HugePages::reserve(REQUEST * AT_ONCE as u64));
    for size in [1500, 1 << 20] {
        let geometry = miniature::make(&path, slot_bytes)?;
        // A quarter is left free for the runway: nothing of what is read has expired.
        let wanted = (u64::from(geometry.slots) * 3 / 4 - 2) * slot_bytes;
        let filled = fill(&path, slot_bytes, size.min(slot_bytes / 8), wanted)?;
        let program = holdfast("holdfast", scale);
        if let Err(why) = &program {
            println!("{why}");
        }
        let job = Job {
            kind: "read",
            path: &path,
            offset: geometry.first_slot(),
            size: wanted,
            total: wanted,
            block: REQUEST,
            depth: AT_ONCE,
            align: None,
        };
        as_it_is_and_slowed(FAST.0, DiskDirection::Read, &path, |slowed| {
            let disk = if slowed { format!("{FAST}/s at most") } else { "as it is".to_owned() };
            let head = row![ByteSize(size), disk];
            if scale == Scale::Tiny || tools::find("fio").is_none() {
                read(&path, &filled)?;
                if let Ok(program) = &program {
                    export(program, &path, &place.file("said"), &filled)?;
                }
                rows.push([head, row!["both", "–", "–", "–", "not measured"]].concat());
                return Ok(());
            }
            let contestants = if program.is_ok() { 3 } else { 2 };
            let rounds = Rounds::run(7, contestants, |who| match (who, &program) {
                (0, _) => job.run(),
                (1, _) | (_, Err(_)) => read(&path, &filled),
                (_, Ok(program)) => export(program, &path, &place.file("said"), &filled),
            })?;
            for (who, name) in (1..contestants).zip(["the reader", "`holdfast read`"]) {
                let ratio = rounds.ratio(who, 0);
                let show = |who: usize| format!("{:.0}", rounds.of(who).median / MIB);
                let verdict = Goal::AtLeast(0.9).verdict(&ratio);
                rows.push([head.clone(), row![name, show(who), show(0), ratio.show(3), verdict]].concat());
            }
            Ok(())
        })?;
    }
    report.table(&rows);
    report.finish()
}

fn fill(path: &Path, slot_bytes: u64, size: u64, bytes: u64) -> Result<FilledRing, BenchError> {
    let mut recorder = MiniatureRecorder::start(path, MiniatureSetup { slot_bytes, buffers: 4, writes: 2 })?;
    let batches = (0..16).map(|_| Batch::new(MAX_BATCH_BYTES, 4096)).collect();
    let mut elements = MemoryElements::new(size, batches, recorder.next_ordinal());
    let clock = SystemClock::new();
    while elements.ordinal().0 * size < bytes {
        recorder.take(elements.next(clock.now(), u64::MAX))?;
    }
    let (counts, _) = recorder.end();
    if counts.errors > 0 {
        return Err(BenchError::Accounting(format!("the disk failed {} requests", counts.errors)));
    }
    let elements = elements.ordinal().0;
    Ok(FilledRing { elements, bytes: elements * size })
}

/// Payload bytes a second.
fn read(path: &Path, filled: &FilledRing) -> Result<f64, BenchError> {
    let mut reader = RingReader::open(path).map_err(BenchError::during("opening the ring"))?;
    let start = Instant::now();
    let plan = reader.plan(&Selection::ALL).map_err(BenchError::during("planning"))?;
    let mut touched = 0u64;
    let mut sink = |item: Item<'_>| {
        if let Item::Element(element) = item {
            touched += u64::from(element.data.first().copied().unwrap_or(0));
        }
        ControlFlow::Continue(())
    };
    let report = reader.read(&plan, &mut sink).map_err(BenchError::during("reading"))?;
    let took = start.elapsed().as_secs_f64();
    if (report.elements, report.bytes) != (filled.elements, filled.bytes) || touched == 0 {
        return Err(BenchError::Accounting(format!(
            "{} elements were recorded, and read: {report:?}",
            filled.elements
        )));
    }
    Ok(filled.bytes as f64 / took)
}

/// As [`read`], by the program from its start to its end.
fn export(program: &Path, path: &Path, said: &Path, filled: &FilledRing) -> Result<f64, BenchError> {
    let ring = path.display().to_string();
    let output = std::path::PathBuf::from("/dev/null");
    let arguments = ["read", &ring, "--stream", "bench", "--format", "raw", "-o", "-", "--json"];
    let start = Instant::now();
    let command = Program::start_apart(program, &arguments, Stdio::null(), &output, said)?;
    let said = command.end(&[0])?;
    let took = start.elapsed().as_secs_f64();
    if !said.contains(&filled.bytes.to_string()) {
        return Err(BenchError::Accounting(format!(
            "{} bytes were recorded, and `holdfast read` says {said}",
            filled.bytes
        )));
    }
    Ok(filled.bytes as f64 / took)
}
