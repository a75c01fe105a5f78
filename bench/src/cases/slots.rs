//! Writing slots: elements in memory, through packer, ring and lane, to a preallocated file and to a loop device over
//! it, beside `fio` writing the same place sequentially with requests of a slot's size, as many at once, direct and
//! `O_DSYNC`, from huge pages. The file was written once before. Buffers are as many as the recorder has of itself on such a ring.
//! Beside both, what the disk takes from as many buffers that nobody fills: `fio` writes the same two again and again, which stay
//! in the processor's cache, where new data never are.
//! Then all once more with a disk that takes no more than a fast one does: this machine's may be faster than its memory.

use crate::control_group::{DiskDirection, as_it_is_and_slowed};
use crate::fio::{HugePages, Job};
use crate::miniature::{self, MemoryElements, MiniatureRecorder, MiniatureSetup};
use crate::report::{Goal, Report};
use crate::rounds::Rounds;
use crate::work_folder::{LoopDevice, WorkFolder};
use crate::{BenchError, Scale, row, tools};
use holdfast_base::{ByteSize, Clock, SystemClock};
use holdfast_format::Geometry;
use holdfast_ingest::{Batch, MAX_BATCH_BYTES};
use holdfast_media::{
    Access, BufferPool, Device, Disk as _, Lock, Op, Prefill, RealDisk, Request, create_file,
};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// Small enough that the slots become full: what is written at once is as long as a request of `fio`.
const ELEMENT: u64 = 64 << 10;
const MIB: f64 = 1_048_576.0;

/// What a disk that is slowed takes a second.
const FAST: ByteSize = ByteSize::gib(2);

/// Measures slots written to a file and to a loop device.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let bytes: u64 = scale.pick(40 << 20, 4 << 30);
    let place = WorkFolder::with_room(bytes)?;
    let path = place.file("ring");
    drop(create_file(&path, bytes, Prefill::No).map_err(BenchError::during("making a file"))?);
    let mut report = Report::new("slots", scale);
    let mut rows = vec![row![
        "where",
        "slot",
        "at once",
        "Holdfast MiB/s",
        "fio MiB/s",
        "ratio",
        "verdict",
        "its buffers MiB/s",
        "ratio to that"
    ]];
    // One at a time there is always a pause between writes; two is what the recorder uses.
    let setups: &[MiniatureSetup] = scale.pick(
        &[MiniatureSetup { slot_bytes: 1 << 20, buffers: 4, writes: 2 }],
        &[
            MiniatureSetup { slot_bytes: 64 << 20, buffers: 7, writes: 2 },
            MiniatureSetup { slot_bytes: 8 << 20, buffers: 15, writes: 2 },
        ],
    );
    let most = setups.iter().map(|setup| setup.slot_bytes * setup.writes as u64).max().unwrap_or(0);
    let pages = scale.pick(None, Some(())).map(|()| HugePages::reserve(most));
    let loops = LoopDevice::over(&path);
    let mut places = vec![("file", path.as_path())];
    match &loops {
        Ok(device) => places.push(("loop device", device.path())),
        Err(why) => println!("{why}"),
    }
    for (name, path) in places {
        as_it_is_and_slowed(FAST.0, DiskDirection::Write, path, |slowed| {
            let name = if slowed { format!("{name}, {FAST}/s at most") } else { name.to_owned() };
            // Where the disk sets the pace, rounds are alike.
            let rounds = if slowed { 5 } else { 7 };
            for setup in setups {
                rows.push(compare(&name, path, *setup, rounds, scale)?);
            }
            Ok(())
        })?;
    }
    report.table(&rows);
    if pages.is_some() {
        report.say(&format!("fio's buffers: {}.", HugePages::describe()));
    }
    drop(loops);
    report.finish()
}

fn compare(
    name: &str,
    path: &Path,
    setup: MiniatureSetup,
    rounds: usize,
    scale: Scale,
) -> Result<Vec<String>, BenchError> {
    let geometry = miniature::make(path, setup.slot_bytes)?;
    let area = u64::from(geometry.slots) * setup.slot_bytes;
    // More than a lap, so that slots expire while others are written.
    let total = area + area / 4;
    let head = row![name, ByteSize(setup.slot_bytes), setup.writes];
    let job = Job {
        kind: "write",
        path,
        offset: geometry.first_slot(),
        size: area,
        total,
        block: setup.slot_bytes,
        depth: setup.writes,
        align: None,
    };
    if scale == Scale::Tiny || tools::find("fio").is_none() {
        let rate = record(path, &geometry, setup, total)?;
        let why = scale.pick("not measured", "no fio here (scripts/need bench installs it)");
        return Ok([head, row![format!("{:.0}", rate / MIB), "–", "–", why, "–", "–"]].concat());
    }
    // The first lap is nobody's.
    job.run()?;
    let turn = |who| match who {
        0 => record(path, &geometry, setup, total),
        1 => job.run(),
        _ => bare(path, &geometry, setup, total),
    };
    let rounds = Rounds::run(rounds, 3, turn)?;
    let show = |who: usize| format!("{:.0}", rounds.of(who).median / MIB);
    let ratio = rounds.ratio(0, 1);
    let (verdict, bare) = (Goal::AtLeast(0.97).verdict(&ratio), rounds.ratio(0, 2));
    Ok([head, row![show(0), show(1), ratio.show(3), verdict, show(2), bare.show(3)]].concat())
}

/// Records `total` bytes; payload bytes a second until all of it is on the medium.
fn record(path: &Path, geometry: &Geometry, setup: MiniatureSetup, total: u64) -> Result<f64, BenchError> {
    miniature::make(path, setup.slot_bytes)?;
    let mut recorder = MiniatureRecorder::start(path, setup)?;
    let batches = (0..16).map(|_| Batch::new(MAX_BATCH_BYTES, 16)).collect();
    let mut elements =
        MemoryElements::new(ELEMENT.min(setup.slot_bytes / 8), batches, recorder.next_ordinal());
    let clock = SystemClock::new();
    let start = Instant::now();
    let mut given = 0;
    while given < total {
        let batch = elements.next(clock.now(), u64::MAX);
        given += batch.filled().len() as u64;
        recorder.take(batch)?;
    }
    recorder.settle();
    let rate = given as f64 / start.elapsed().as_secs_f64();
    let (counts, _) = recorder.end();
    let slots = given.div_ceil(setup.slot_bytes);
    if counts.errors > 0
        || counts.writes < slots
        || counts.write_bytes < given
        || u64::from(geometry.slots) > slots
    {
        return Err(BenchError::Accounting(format!(
            "{given} bytes in {slots} slots were given, and {counts:?} written"
        )));
    }
    Ok(rate)
}

/// Writes as much to the same places from as many buffers, which stay as they are; bytes a second.
fn bare(path: &Path, geometry: &Geometry, setup: MiniatureSetup, total: u64) -> Result<f64, BenchError> {
    let len = setup.slot_bytes as usize;
    let device = Device::open(path, Access::Own).map_err(BenchError::during("opening the lane"))?;
    let pool = BufferPool::new(setup.buffers, len, Lock::Prefault);
    let mut pool = pool.map_err(BenchError::during("getting buffers"))?;
    let mut disk = RealDisk::new(device, &[pool.region()], setup.writes);
    let mut free: VecDeque<_> = std::iter::from_fn(|| pool.take()).collect();
    for (number, buffer) in free.iter_mut().enumerate() {
        buffer.fill(number as u8 | 1);
    }
    let start = Instant::now();
    let (mut begun, mut ended, slots) = (0, 0, total / setup.slot_bytes);
    while ended < slots {
        if begun < slots.min(ended + setup.writes as u64)
            && let Some(buffer) = free.pop_front()
        {
            let offset = geometry.first_slot() + begun % u64::from(geometry.slots) * setup.slot_bytes;
            let op = Op::Write { offset, buffer, len, durable: true };
            if disk.submit(Request { tag: begun, op }).is_err() {
                return Err(BenchError::skipped("the disk takes fewer writes at once than it was made for"));
            }
            begun += 1;
            continue;
        }
        if let Some(done) = disk.complete(Duration::from_secs(1)) {
            done.result.map_err(BenchError::during("writing"))?;
            free.extend(done.buffer);
            ended += 1;
        }
    }
    Ok((slots * setup.slot_bytes) as f64 / start.elapsed().as_secs_f64())
}
