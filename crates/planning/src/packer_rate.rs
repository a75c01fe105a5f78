//! Rate of the packer on this machine: elements of 20 bytes, cells of their attributes, and bytes of large ones. Measured for a profile, on one
//! core, as the capture thread has it: slots are filled in memory, sealed, and thrown away.

use holdfast_attributes::Schema;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{Ordinal, Rate, Sequence, SlotNo, StreamId, Timestamp};
use holdfast_format::{Counters, Entry, Flags, Key, SlotFlags, SlotId};
use holdfast_ingest::{
    BATCH_ROWS, Batch, BatchPosition, BatchRow, Content, Extraction, MAX_BATCH_BYTES, Packer, Progress,
    SourceCounters,
};
use std::time::{Duration, Instant};

/// Bytes of a slot: large enough that sealing counts as it does later.
const SLOT: usize = 16 << 20;
/// Bytes of a small element.
const SMALL: u32 = 20;
/// Bytes of a large one.
const LARGE: u32 = 1 << 20;
/// How often it is measured: the middle one counts.
const ROUNDS: usize = 5;
/// How long each time.
const ROUND: Duration = Duration::from_millis(80);

/// What the packer manages in a second.
pub(crate) struct Packing {
    /// Elements of 20 bytes.
    pub(crate) elements: u64,
    /// Cells of attributes, beside their elements.
    pub(crate) cells: u64,
    /// Bytes of elements of 1 MiB.
    pub(crate) bytes: Rate,
}

/// The attributes that are measured: one of each class, no two elements alike.
const ATTRIBUTES: [&str; 4] =
    ["a:uint=at:0:u64le", "b:uint=at:8:u64le", "c:ipv6=at:0:ipv6", "d:binary=at:0:bytes16"];

/// Measures it.
pub(crate) fn measure() -> Result<Packing> {
    let none = Schema::default();
    let some = Schema::typed(ATTRIBUTES)
        .map_err(|error| Failure::failed(format_args!("the packer cannot be measured: {error}")))?;
    let elements = middle(SMALL, &none)? / f64::from(SMALL);
    let with_cells = middle(SMALL, &some)? / f64::from(SMALL);
    // What the cells of an element take beside the element; too little to be seen is none too much.
    let each = (1.0 / with_cells - 1.0 / elements).max(0.1 / with_cells) / ATTRIBUTES.len() as f64;
    let whole = |rate: f64| (rate as u64).max(1);
    Ok(Packing {
        elements: whole(elements),
        cells: whole(1.0 / each),
        bytes: Rate(whole(middle(LARGE, &none)?)),
    })
}

fn middle(size: u32, schema: &Schema) -> Result<f64> {
    let mut rates = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        rates.push(round(size, schema)?);
    }
    rates.sort_unstable_by(f64::total_cmp);
    Ok(rates[ROUNDS / 2])
}

/// Payload bytes a second, the making of batches not counted.
fn round(size: u32, schema: &Schema) -> Result<f64> {
    let cannot = |error| Failure::failed(format_args!("the packer cannot be measured: {error}"));
    let mut packer = Packer::new(SLOT as u64, 1);
    let plain = Entry { stream: StreamId(1), classes: schema.classes(), ..Entry::default() };
    packer.prepare(&[plain]).map_err(cannot)?;
    let mut batch = Batch::new(MAX_BATCH_BYTES, BATCH_ROWS).with_columns(schema.classes());
    let mut extraction = Extraction::new(schema, Vec::new());
    let (mut spare, mut sequence, mut ordinal) = (Some(vec![0u8; SLOT]), 0, 0);
    let (mut bytes, mut spent, mut first) = (0u64, Duration::ZERO, true);
    while spent < ROUND {
        refill(&mut batch, size, &mut ordinal);
        extraction.fill(&mut batch, &SourceCounters::default());
        let began = Instant::now();
        let mut place = BatchPosition::default();
        loop {
            if let Some(buffer) = spare.take() {
                sequence += 1;
                let id = SlotId { sequence: Sequence(sequence), ..SlotId::default() };
                let counters = Counters { next_ordinal: Ordinal(ordinal), ..Counters::default() };
                let entry = Entry { counters, ..plain };
                packer.open(buffer, id, Timestamp(0), &[entry]).map_err(|(_, error)| cannot(error))?;
            }
            match packer.push(0, &batch, place) {
                Progress::Done => break,
                Progress::Full(from) => place = from,
            }
            let sealed = packer.seal(&Key([7; 32]), SlotNo(0), Timestamp(0), SlotFlags::default());
            spare = sealed.map(|(buffer, _)| buffer);
        }
        // The first touches memory that is not there yet.
        if !std::mem::take(&mut first) {
            spent += began.elapsed();
            bytes += batch.rows().iter().map(|row| u64::from(row.len)).sum::<u64>();
        }
    }
    Ok(bytes as f64 / spent.as_secs_f64())
}

/// As many elements as there is room for.
fn refill(batch: &mut Batch, size: u32, ordinal: &mut u64) {
    batch.clear();
    let count = (batch.capacity() / size as usize).min(BATCH_ROWS) as u32;
    // As many values as elements.
    for (n, element) in batch.free().chunks_mut(size as usize).take(count as usize).enumerate() {
        let noise = (*ordinal + n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (place, eight) in element.chunks_mut(8).take(2).enumerate() {
            let noise = noise.rotate_left(17 * place as u32).to_le_bytes();
            eight.copy_from_slice(&noise[..eight.len()]);
        }
    }
    batch.fill((count * size) as usize);
    for n in 0..count {
        batch.push(BatchRow {
            content: Content::Whole,
            flags: Flags::default(),
            meta: 0,
            tag: 0,
            at: n * size,
            len: size,
            extra: 0,
            ordinal: Ordinal(*ordinal),
            arrival: Timestamp(1_795_169_100_000_000_000 + *ordinal as i64),
            span: 0,
            event: Timestamp(0),
        });
        *ordinal += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sizes_are_packed_whole() {
        let mut batch = Batch::new(MAX_BATCH_BYTES, BATCH_ROWS);
        let mut ordinal = 0;
        refill(&mut batch, LARGE, &mut ordinal);
        assert_eq!((batch.rows().len(), ordinal), (1, 1));
        refill(&mut batch, SMALL, &mut ordinal);
        assert_eq!((batch.rows().len(), ordinal), (BATCH_ROWS, 1 + BATCH_ROWS as u64));
        let Packing { elements, cells, bytes } = measure().unwrap();
        assert!(elements > 1 && cells > 1 && bytes > Rate(1));
        let schema = Schema::typed(ATTRIBUTES).unwrap();
        let mut batch = Batch::new(MAX_BATCH_BYTES, BATCH_ROWS).with_columns(schema.classes());
        refill(&mut batch, SMALL, &mut ordinal);
        Extraction::new(&schema, Vec::new()).fill(&mut batch, &SourceCounters::default());
        assert!(batch.cells().iter().all(|column| column.len() == BATCH_ROWS && column.nulls() == 0));
    }
}
