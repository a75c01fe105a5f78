//! Packing: elements a second and MiB/s on one core, for elements from 20 bytes to 60 MiB. Batches in memory go through
//! the packer into slots of 64 MiB, which are sealed and thrown away. Making the batches is not counted. Elements with
//! attributes go to the builder of slots with cells that are there already: what comes of them is counted, and how many bytes
//! each takes beside its own.

use crate::miniature::{BarePacker, MemoryElements};
use crate::report::{Goal, Report};
use crate::rounds::{Rounds, Spread};
use crate::{BenchError, Scale, row};
use holdfast_base::{Age, ByteSize, Clock, Ordinal, Sequence, SlotNo, SystemClock, Timestamp};
use holdfast_format::{
    Builder, CellBuffer, CellsAt, Class, Classes, Entry, Key, Row, SlotFlags, SlotId, StreamKind,
};
use holdfast_ingest::{BATCH_BYTES, BATCH_ROWS, Batch};
use holdfast_media::{Buffer, BufferPool, Lock};
use std::time::{Duration, Instant};

const SIZES: [u64; 5] = [20, 64, 1500, 1 << 20, 60 << 20];
/// The one whose byte rate the others are held against.
const REFERENCE: usize = 3;
const MIB: f64 = 1_048_576.0;

/// What the four attributes of an element are like, and how long it is.
const COLUMNS: [(&str, ColumnContent, usize); 5] = [
    ("20 B, no attributes, without packer", ColumnContent::None, 20),
    ("20 B, 4 random attributes", ColumnContent::Random, 20),
    ("20 B, 4 attributes as packets have", ColumnContent::Packets, 20),
    ("1.5 KiB, 4 random attributes", ColumnContent::Random, 1500),
    ("1.5 KiB, 4 attributes as packets have", ColumnContent::Packets, 1500),
];

#[derive(Clone, Copy)]
enum ColumnContent {
    None,
    Random,
    Packets,
}

/// Measures elements of all sizes, without and with attributes.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let slot_bytes = scale.pick(1 << 20, 64 << 20);
    // More elements than a slot has room for, so that sealing is part of it; and long enough, a tenth of a second, that what
    // others on the machine do to its memory in a moment does not make the figure.
    let bytes = scale.pick(3 << 20, 1 << 30);
    let mut pool =
        BufferPool::new(1, slot_bytes as usize, Lock::Prefault).map_err(BenchError::during("a buffer"))?;
    let mut buffer = pool.take();
    let rounds = Rounds::run(scale.pick(1, 15), SIZES.len(), |which| {
        let size = scale.pick(SIZES[which].min(2 << 20), SIZES[which]);
        let (rate, back) = pack(size, bytes.max(size), slot_bytes, buffer.take())?;
        buffer = Some(back);
        Ok(rate)
    })?;
    let mut buffer = pool_again(slot_bytes)?;
    let mut beside = [0.0; COLUMNS.len()];
    let elements = |size: usize| scale.pick(1 << 20, 160 << 20) / size as u64;
    let columns = Rounds::run(scale.pick(1, 15), COLUMNS.len(), |which| {
        let (_, content, size) = COLUMNS[which];
        let (rate, bytes, back) = gather((content, size), elements(size), slot_bytes, buffer.take())?;
        (buffer, beside[which]) = (Some(back), bytes);
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
    let mut rows = vec![row!["element", "M elements/s", "bytes beside its own", "% of its own", "verdict"]];
    for (which, (name, content, size)) in COLUMNS.iter().enumerate() {
        let Spread { median, least, most } = columns.of(which);
        let million = Spread { median: median / 1e6, least: least / 1e6, most: most / 1e6 };
        let share = 100.0 * beside[which] / *size as f64;
        let verdict = match (content, size) {
            (ColumnContent::Random | ColumnContent::Packets, 20) => Goal::AtLeast(5.0).verdict(&million),
            (ColumnContent::Packets, _) => Goal::AtMost(2.0).verdict(&Spread::of(std::iter::once(share))),
            _ => String::new(),
        };
        let (bytes, share) = (format!("{:.1}", beside[which]), format!("{share:.1}"));
        rows.push(row![name, million.show(2), bytes, share, verdict]);
    }
    report.table(&rows);
    report.finish()
}

fn pool_again(slot_bytes: u64) -> Result<Option<Buffer>, BenchError> {
    let pool = BufferPool::new(1, slot_bytes as usize, Lock::Prefault);
    Ok(pool.map_err(BenchError::during("a buffer"))?.take())
}

/// Elements a second, bytes that each takes beside its own, and the buffer back.
fn gather(
    (content, size): (ColumnContent, usize),
    elements: u64,
    slot_bytes: u64,
    buffer: Option<Buffer>,
) -> Result<(f64, f64, Buffer), BenchError> {
    const RUN: usize = 256;
    let mut buffer = buffer.ok_or_else(|| BenchError::Accounting("the buffer did not come back".into()))?;
    let count = if matches!(content, ColumnContent::None) { 0 } else { 4 };
    let classes: Classes = std::iter::repeat_n(Class::Word, count).collect();
    let entry = Entry { kind: StreamKind::Bytes, classes, ..Entry::default() };
    let mut builder = Builder::new(slot_bytes, 1);
    builder.prepare(&[entry]).map_err(BenchError::during("preparing columns"))?;
    let mut columns: Vec<CellBuffer> =
        classes.iter().map(|class| CellBuffer::new(class, BATCH_ROWS, 0)).collect();
    let bytes = vec![7; size * BATCH_ROWS];
    let mut rows = Vec::with_capacity(BATCH_ROWS);
    let (mut ordinal, mut state, mut sequence, mut sealed_bytes) = (0, 1, 0, 0);
    let mut took = Duration::ZERO;
    let mut open = |builder: &mut Builder, buffer: &mut Buffer| {
        sequence += 1;
        let id = SlotId { sequence: Sequence(sequence), age: Age(sequence), ..SlotId::default() };
        builder.open(buffer, id, Timestamp(0), &[entry]).map_err(BenchError::during("opening a slot"))
    };
    let key = Key([7; 32]);
    open(&mut builder, &mut buffer)?;
    while ordinal < elements {
        rows.clear();
        columns.iter_mut().for_each(CellBuffer::clear);
        for _ in 0..BATCH_ROWS {
            let now = ordinal as i64 * 150;
            let arrival = Timestamp(now);
            rows.push(Row { len: size as u32, ordinal: Ordinal(ordinal), arrival, ..Row::default() });
            for (column, cell) in columns.iter_mut().zip(cells(content, &mut state, now)) {
                column.word(cell);
            }
            ordinal += 1;
        }
        let start = Instant::now();
        let mut first = 0;
        while first < BATCH_ROWS {
            let room = builder.run_room();
            let run =
                RUN.min(room.rows).min(BATCH_ROWS - first).min(room.bytes / (size + builder.row_room(0)));
            if run == 0 && builder.room() < size {
                sealed_bytes +=
                    builder.seal(&mut buffer, &key, SlotNo(0), Timestamp(0), SlotFlags::default()).bytes;
                open(&mut builder, &mut buffer)?;
                continue;
            }
            let run = run.max(1);
            let cells = CellsAt { columns: &columns, first };
            let bytes = &bytes[first * size..(first + run) * size];
            builder.write_elements(&mut buffer, bytes, &rows[first..first + run], |row| *row, cells);
            first += run;
        }
        took += start.elapsed();
    }
    let start = Instant::now();
    sealed_bytes += builder.seal(&mut buffer, &key, SlotNo(0), Timestamp(0), SlotFlags::default()).bytes;
    took += start.elapsed();
    let beside = sealed_bytes as f64 / ordinal as f64 - size as f64;
    Ok((ordinal as f64 / took.as_secs_f64(), beside, buffer))
}

/// The cells of the next element: any words; or an address and a port, of which some come again and again, a length and a time.
fn cells(content: ColumnContent, state: &mut u64, now: i64) -> [u64; 4] {
    let mut next = || {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ z >> 27
    };
    match content {
        ColumnContent::None => [0; 4],
        ColumnContent::Random => std::array::from_fn(|_| next()),
        ColumnContent::Packets => {
            let (address, port, len) = (next() >> 40, next() >> 40, next() >> 40);
            // A few talk most of the time.
            let address = address % (1 << (address >> 12 & 7)) % 100;
            let port = if port % 4 == 0 { 1024 + (port >> 4) % 60_000 } else { 443 };
            [0x0a00_0000 + address * 77, port, 64 + len % 1400, now as u64]
        }
    }
}

/// Payload bytes a second, and the buffer back.
fn pack(size: u64, bytes: u64, slot_bytes: u64, buffer: Option<Buffer>) -> Result<(f64, Buffer), BenchError> {
    let buffer = buffer.ok_or_else(|| BenchError::Accounting("the buffer did not come back".into()))?;
    let clock = SystemClock::new();
    let batches = (0..8).map(|_| Batch::new(BATCH_BYTES, BATCH_ROWS)).collect();
    let mut elements = MemoryElements::new(size, batches, Ordinal(0));
    let mut bare = BarePacker::new(buffer, slot_bytes);
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
        return Err(BenchError::Accounting(said));
    }
    let buffer = bare.into_buffer().ok_or_else(|| BenchError::Accounting("a slot is still open".into()))?;
    Ok(((wanted * size) as f64 / took.as_secs_f64(), buffer))
}
