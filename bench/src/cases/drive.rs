//! The emulated drive in real time against its own model: streams with a few requests in the queue, and small random
//! reads one after the other, on the mounted file and on a loop device over it. A round in which the drive was late
//! does not count.

use crate::emulated::Emulated;
use crate::report::{Goal, Report};
use crate::rounds::Spread;
use crate::work_folder::{LoopDevice, WorkFolder};
use crate::{BenchError, Scale, row};
use holdfast_base::{BLOCK, ByteSize};
use holdfast_media::drive::{AccessKind, Drive, DriveAccess, DriveKind, DriveModel};
use holdfast_media::{Buffer, BufferPool, Device, Disk, Lock, Op, Request, Seed, UringDisk, run_first};
use rustix::fs::OFlags;
use std::fs::File;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a streaming request, and how many are under way.
const PIECE: u64 = 1 << 20;
const DEPTH: usize = 8;

/// Below the drive, above everything else: what is measured is not how the machine divides its time.
const PRIORITY: i32 = 42;

/// How much is measured.
#[derive(Clone, Copy, Debug)]
struct DriveWork {
    bytes: u64,
    stream: u64,
    reads: u64,
    rounds: usize,
}

/// Measures the drives of all models.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let tiny = DriveWork { bytes: 16 << 20, stream: 4 << 20, reads: 4, rounds: 1 };
    let amount = scale.pick(tiny, DriveWork { bytes: 1 << 30, stream: 128 << 20, reads: 250, rounds: 7 });
    let place = WorkFolder::with_room(1 << 20)?;
    let mut report = Report::new("drive", scale);
    let mut rows = vec![row!["drive", "where", "work", "model", "measured to model", "discarded", "verdict"]];
    if scale == Scale::Real
        && let Err(cause) = run_first(PRIORITY)
    {
        report.say(&format!("Measured without real-time priority ({cause})."));
    }
    let models = [DriveModel::paper(), DriveModel::rpm7200(), DriveModel::shingled()];
    for model in &models[scale.pick(1, 0)..] {
        // Overlapping tracks stream from a zone's start on only: each round writes a zone of its own.
        let stream = match &model.kind {
            DriveKind::Shingled(_, shingles) => shingles.zone,
            _ => amount.stream,
        };
        let amount = DriveWork { stream, ..amount };
        let bytes = amount.bytes.to_string();
        let arguments = ["--model", model.name, "--squeezed", "--bytes", &bytes];
        let drive = Emulated::mount(&place, &arguments, scale)?;
        let model = model.squeezed(amount.bytes);
        let path = drive.path();
        let bench = DriveBench { drive: &drive, model: &model, amount, scale };
        rows.extend(bench.all("file", &path)?);
        match LoopDevice::over(&path) {
            Ok(device) => rows.extend(bench.all("loop device", device.path())?),
            Err(why) => println!("{why}"),
        }
    }
    report.table(&rows);
    report.finish()
}

/// One drive.
struct DriveBench<'a> {
    drive: &'a Emulated,
    model: &'a DriveModel,
    amount: DriveWork,
    scale: Scale,
}

impl DriveBench<'_> {
    /// Streams and random reads in one place.
    fn all(&self, name: &str, path: &Path) -> Result<Vec<Vec<String>>, BenchError> {
        let mut rows = Vec::new();
        for (work, kind) in [("sequential writes", AccessKind::Write), ("sequential reads", AccessKind::Read)]
        {
            let (ratio, discarded) = self.rounds(|round| self.stream(path, kind, round))?;
            let twin = Drive::new(self.model.clone(), 0);
            let all = twin.stream_time(kind, 0, self.amount.bytes).as_secs_f64();
            let rate = format!("{:.1} MiB/s", self.amount.bytes as f64 / all / 1_048_576.0);
            let verdict = Goal::Near(0.03).verdict(&ratio);
            rows.push(row![self.model.name, name, work, rate, ratio.show(3), discarded, verdict]);
        }
        let mut predicted = Vec::new();
        let (ratio, discarded) = self.rounds(|round| {
            let (model, ratio) = self.random(path, round)?;
            predicted.push(self.amount.reads as f64 / model.as_secs_f64());
            Ok(ratio)
        })?;
        let rate = format!("{:.1} a second", Spread::of(predicted).median);
        let verdict = Goal::Near(0.05).verdict(&ratio);
        let work = "random reads of 4 KiB";
        rows.push(row![self.model.name, name, work, rate, ratio.show(3), discarded, verdict]);
        Ok(rows)
    }

    /// So many rounds in which the drive kept up, and how many in which it did not.
    fn rounds(
        &self,
        mut measure: impl FnMut(u64) -> Result<f64, BenchError>,
    ) -> Result<(Spread, usize), BenchError> {
        let (mut good, mut discarded) = (Vec::new(), 0);
        while good.len() < self.amount.rounds {
            self.drive.order("reset")?;
            let ratio = measure((good.len() + discarded) as u64)?;
            // A tiny run measures nothing.
            if self.scale == Scale::Real && self.drive.too_slow()? {
                discarded += 1;
                if discarded > 3 * self.amount.rounds {
                    return Err(BenchError::skipped("the machine is too slow for the model all the time"));
                }
            } else {
                good.push(ratio);
            }
        }
        Ok((Spread::of(good), discarded))
    }

    /// A stream, each round elsewhere; the rate from the first completion to the last, to the model's.
    fn stream(&self, path: &Path, kind: AccessKind, round: u64) -> Result<f64, BenchError> {
        let pool = BufferPool::new(DEPTH, PIECE as usize, Lock::Prefault);
        let mut pool = pool.map_err(BenchError::during("getting buffers"))?;
        let device = Device::open(path, holdfast_media::Access::Own);
        let device = device.map_err(BenchError::during("opening the drive"))?;
        let disk = UringDisk::new(device, &[pool.region()], DEPTH);
        let mut disk = disk.map_err(|(_, cause)| BenchError::skipped(format!("no io_uring ({cause})")))?;
        let DriveWork { bytes, stream, .. } = self.amount;
        let from = stream * round % bytes;
        let (first, last) = (from / PIECE, (from + stream).min(bytes) / PIECE);
        let request = |n: u64, buffer: Buffer| {
            let (offset, len) = (n * PIECE, PIECE as usize);
            let op = match kind {
                AccessKind::Write => Op::Write { offset, buffer, len, durable: false },
                _ => Op::Read { offset, buffer, len },
            };
            Request { tag: n, op }
        };
        let (mut next, mut begin, mut done) = (first, None, 0);
        while next < last
            && let Some(buffer) = pool.take()
        {
            let _ = disk.submit(request(next, buffer));
            next += 1;
        }
        let mut end = Instant::now();
        while done < last - first {
            let completion = disk.complete(Duration::from_secs(10));
            let completion = completion
                .ok_or_else(|| BenchError::Accounting(format!("{done} of {} pieces", last - first)))?;
            completion.result.map_err(BenchError::during("using the drive"))?;
            end = Instant::now();
            begin.get_or_insert(end);
            done += 1;
            if let Some(buffer) = completion.buffer.filter(|_| next < last) {
                let _ = disk.submit(request(next, buffer));
                next += 1;
            }
        }
        let twin = Drive::new(self.model.clone(), 0);
        let wanted = twin.stream_time(kind, (first + 1) * PIECE, (last - first - 1) * PIECE);
        let counted = match kind {
            AccessKind::Write => "written_bytes",
            _ => "read_bytes",
        };
        // The kernel may read more, ahead or beside; never less.
        if self.drive.figure(counted)? < ((last - first) * PIECE) as f64 {
            return Err(BenchError::Accounting(format!(
                "the drive missed some of it: {}",
                self.drive.report()?
            )));
        }
        Ok(wanted.as_secs_f64() / begin.map_or(0.0, |begin| end.duration_since(begin).as_secs_f64()))
    }

    /// Reads of a block one after the other; what the model says that they take, and the rate to the model's.
    fn random(&self, path: &Path, round: u64) -> Result<(Duration, f64), BenchError> {
        let failed = || BenchError::file(path, "read it");
        let mut options = File::options();
        let file = options.read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path);
        let file = file.map_err(failed())?;
        let mut buffer = Buffer::aligned(BLOCK).map_err(BenchError::during("getting a buffer"))?;
        let (mut twin, mut seed) = (Drive::new(self.model.clone(), round), Seed::new(round));
        let begin = Instant::now();
        for _ in 0..self.amount.reads {
            let offset = seed.below(self.amount.bytes / BLOCK as u64) * BLOCK as u64;
            file.read_exact_at(&mut buffer[..BLOCK], offset).map_err(failed())?;
            let now = twin.free();
            twin.serve(DriveAccess { kind: AccessKind::Read, offset, len: BLOCK as u64 }, now);
        }
        let took = begin.elapsed();
        let wanted = twin.free().since(holdfast_base::Timestamp(0));
        let least = ByteSize(self.amount.reads * BLOCK as u64);
        if self.drive.figure("read_bytes")? < least.0 as f64 {
            return Err(BenchError::Accounting(format!(
                "fewer than {least} were read: {}",
                self.drive.report()?
            )));
        }
        Ok((wanted, wanted.as_secs_f64() / took.as_secs_f64()))
    }
}
