//! Packing: elements a second and MiB/s on one core, for elements from 20 bytes to 60 MiB. Batches in memory go through
//! the packer into slots of 64 MiB, which are sealed and thrown away. Making the batches is not counted.

use holdfast_base::{ByteSize, Clock, Ordinal, SystemClock};
use holdfast_bench::compare::{Rounds, Spread};
use holdfast_bench::miniature::{Bare, Elements};
use holdfast_bench::report::{Goal, Report};
use holdfast_bench::{Scale, Trouble, row, run};
use holdfast_ingest::{BATCH_BYTES, BATCH_ROWS, Batch};
use holdfast_media::{Buffer, BufferPool, Lock};
use std::time::{Duration, Instant};

const SIZES: [u64; 5] = [20, 64, 1500, 1 << 20, 60 << 20];
/// The one whose byte rate the others are held against.
const REFERENCE: usize = 3;
const MIB: f64 = 1_048_576.0;

fn main() -> std::process::ExitCode {
    run(bench)
}

fn bench(scale: Scale) -> Result<(), Trouble> {
    let slot_bytes = scale.pick(1 << 20, 64 << 20);
    // More elements than a slot has room for, so that sealing is part of it; and long enough, a tenth of a second, that what
    // others on the machine do to its memory in a moment does not make the figure.
    let bytes = scale.pick(3 << 20, 1 << 30);
    let mut pool =
        BufferPool::new(1, slot_bytes as usize, Lock::Prefault).map_err(Trouble::of("a buffer"))?;
    let mut buffer = pool.take();
    let rounds = Rounds::run(scale.pick(1, 15), SIZES.len(), |which| {
        let size = scale.pick(SIZES[which].min(2 << 20), SIZES[which]);
        let (rate, back) = pack(size, bytes.max(size), slot_bytes, buffer.take())?;
        buffer = Some(back);
        Ok(rate)
    })?;
    let mut report = Report::new("elements", scale);
    let mut rows = vec![row!["element", "M elements/s", "MiB/s", "to the MiB/s at 1 MiB", "verdict"]];
    for (which, size) in SIZES.iter().enumerate() {
        let scaled = |unit: f64| {
            let Spread { median, least, most } = rounds.of(which);
            Spread { median: median / unit, least: least / unit, most: most / unit }
        };
        let (million, mib) = (scaled(*size as f64 * 1e6), scaled(MIB));
        let ratio = rounds.ratio(which, REFERENCE);
        let verdict = match size {
            20 => Goal::AtLeast(5.0).verdict(&million),
            1500.. => Goal::AtLeast(0.9).verdict(&ratio),
            _ => String::new(),
        };
        let million = if *size > 1500 { format!("{:.6}", million.median) } else { million.show(2) };
        rows.push(row![ByteSize(*size), million, mib.show(0), ratio.show(2), verdict]);
    }
    report.table(&rows);
    report.finish()
}

/// Payload bytes a second, and the buffer back.
fn pack(size: u64, bytes: u64, slot_bytes: u64, buffer: Option<Buffer>) -> Result<(f64, Buffer), Trouble> {
    let buffer = buffer.ok_or_else(|| Trouble::Accounting("the buffer did not come back".into()))?;
    let clock = SystemClock::new();
    let batches = (0..8).map(|_| Batch::new(BATCH_BYTES, BATCH_ROWS)).collect();
    let mut elements = Elements::new(size, batches, Ordinal(0));
    let mut bare = Bare::new(buffer, slot_bytes);
    let wanted = bytes / size;
    let mut took = Duration::ZERO;
    while elements.ordinal().0 < wanted {
        let now = clock.now();
        let batch = elements.next(now, wanted - elements.ordinal().0);
        let start = Instant::now();
        bare.take(batch, now)?;
        took += start.elapsed();
    }
    let start = Instant::now();
    bare.seal(clock.now());
    took += start.elapsed();
    let counted = bare.received();
    if (counted.received, bare.payload_bytes) != (wanted, wanted * size) {
        let said =
            format!("{wanted} elements of {size} bytes, but {counted:?} and {} bytes", bare.payload_bytes);
        return Err(Trouble::Accounting(said));
    }
    let buffer = bare.into_buffer().ok_or_else(|| Trouble::Accounting("a slot is still open".into()))?;
    Ok(((wanted * size) as f64 / took.as_secs_f64(), buffer))
}
