//! Attributes: elements a second on one core from their bytes to cells, for packets (real captures, and made ones), elements
//! of 20 bytes with four columns, and JSON lines; and from their bytes in a batch to a slot with their columns, bounds and filters.
//! Elements and buffers for cells are in memory; reading files and making elements is not counted.

use crate::miniature::BarePacker;
use crate::report::{Goal, Report};
use crate::rounds::{Rounds, Spread};
use crate::{BenchError, Scale, row};
use holdfast_attributes::{Element, Extractor, Schema};
use holdfast_base::{ByteSize, Ordinal, Timestamp};
use holdfast_format::{CellBuffer, Flags, MAX_TEXT};
use holdfast_ingest::packet::{Reader, scan};
use holdfast_ingest::{BATCH_BYTES, BATCH_ROWS, Batch, BatchRow, Content, Extraction, SourceCounters};
use holdfast_media::{Buffer, BufferPool, Lock};
use std::path::Path;
use std::time::{Duration, Instant};

/// Elements whose cells are made before the buffers are emptied: about a batch.
const AT_ONCE: usize = 4096;

/// Bytes of an element with fixed columns.
const FIXED: usize = 20;

/// How its elements are read.
#[derive(Clone, Copy, PartialEq)]
enum ExtractionMode {
    Single,
    Together,
}

/// Elements of one kind, one behind the other.
struct ElementSample {
    name: String,
    schema: Schema,
    way: ExtractionMode,
    goal: Option<Goal>,
    bytes: Vec<u8>,
    /// Where each ends, what it had on the wire, and what it begins with.
    elements: Vec<(usize, u64, u16)>,
}

/// Measures the extraction of attributes.
pub fn bench(scale: Scale) -> Result<(), BenchError> {
    let mut stocks = Vec::new();
    match captures(scale)? {
        Some(stock) => stocks.push(stock),
        None => println!("no real captures: HOLDFAST_TEST_DATA names no folder with a pcap/"),
    }
    stocks.push(made("packets, small UDP", Goal::AtLeast(1.5), small_packet)?);
    stocks.push(made("packets, large TCP", Goal::AtLeast(1.5), large_packet)?);
    stocks.push(fixed("four columns, together", ExtractionMode::Together, Some(Goal::AtLeast(5.0)))?);
    stocks.push(fixed("four columns, one by one", ExtractionMode::Single, Some(Goal::AtLeast(5.0)))?);
    stocks.push(lines()?);
    let elements = scale.pick(10_000, 4_000_000);
    let slot_bytes = scale.pick(1 << 20, 64 << 20);
    let mut pool =
        BufferPool::new(1, slot_bytes as usize, Lock::Prefault).map_err(BenchError::during("a buffer"))?;
    let mut buffer = pool.take();
    let ways = 2 * stocks.len();
    let rounds = Rounds::run(scale.pick(1, 9), ways, |which| {
        if let Some(stock) = stocks.get(which) {
            return stock.rate(elements);
        }
        let (rate, back) = stocks[which - stocks.len()].packed(elements, slot_bytes, buffer.take())?;
        buffer = Some(back);
        Ok(rate)
    })?;
    let mut report = Report::new("attributes", scale);
    let mut rows = vec![row![
        "elements",
        "bytes each",
        "attributes",
        "to cells: M elements/s",
        "MiB/s",
        "and into a slot: M elements/s",
        "MiB/s",
        "verdict"
    ]];
    for (which, stock) in stocks.iter().enumerate() {
        let each = stock.bytes.len() as u64 / stock.elements.len() as u64;
        let scaled = |which: usize, unit: f64| {
            let Spread { median, least, most } = rounds.of(which);
            Spread { median: median / unit, least: least / unit, most: most / unit }
        };
        let both = |which: usize| (scaled(which, 1e6), scaled(which, 1_048_576.0 / each as f64));
        let ((million, mib), (packed, packed_mib)) = (both(which), both(which + stocks.len()));
        // Of both together.
        let verdict = stock.goal.map(|goal| goal.verdict(&packed)).unwrap_or_default();
        rows.push(row![
            stock.name,
            ByteSize(each),
            stock.schema.len(),
            million.show(2),
            mib.show(0),
            packed.show(2),
            packed_mib.show(0),
            verdict
        ]);
    }
    report.table(&rows);
    report.finish()
}

impl ElementSample {
    fn new(
        name: &str,
        attributes: &[&str],
        way: ExtractionMode,
        goal: Option<Goal>,
    ) -> Result<Self, BenchError> {
        let schema = Schema::typed(attributes).map_err(BenchError::during("a schema"))?;
        Ok(Self { name: name.into(), schema, way, goal, bytes: Vec::new(), elements: Vec::new() })
    }

    fn push(&mut self, element: &[u8], original_size: u64, link_type: u16) {
        self.bytes.extend_from_slice(element);
        self.elements.push((self.bytes.len(), original_size, link_type));
    }

    /// Elements a second, as many as these at least: the stock over and over.
    fn rate(&self, wanted: usize) -> Result<f64, BenchError> {
        let mut extractor = Extractor::new(&self.schema);
        let buffer = |class| CellBuffer::new(class, AT_ONCE, AT_ONCE * MAX_TEXT);
        let mut cells: Vec<CellBuffer> = self.schema.classes().iter().map(buffer).collect();
        let (mut done, mut known) = (0, 0);
        let start = Instant::now();
        while done < wanted {
            let mut from = 0;
            for some in self.elements.chunks(AT_ONCE) {
                cells.iter_mut().for_each(CellBuffer::clear);
                match (self.way, extractor.fixed()) {
                    (ExtractionMode::Together, Some(fixed)) => {
                        let to = from + some.len() * FIXED;
                        fixed.extract_many(&self.bytes[from..to], FIXED, &mut cells);
                        from = to;
                    }
                    _ => {
                        for (to, original_size, link_type) in some {
                            let data = &self.bytes[from..*to];
                            let size = data.len() as u64;
                            let element = Element {
                                data,
                                size,
                                original_size: *original_size,
                                link_type: Some(*link_type),
                                header: None,
                            };
                            extractor.extract(&element, &mut cells);
                            from = *to;
                        }
                    }
                }
                done += some.len();
                known += cells.iter().map(|buffer| buffer.len() - buffer.nulls()).sum::<usize>();
                if let Some(buffer) = cells.iter().find(|buffer| buffer.len() != some.len()) {
                    let said =
                        format!("{} elements, and {} cells of one attribute", some.len(), buffer.len());
                    return Err(BenchError::Accounting(said));
                }
            }
        }
        let took = start.elapsed();
        if known < 2 * done {
            return Err(BenchError::Accounting(format!(
                "only {known} values of {done} elements: {}",
                self.name
            )));
        }
        Ok(done as f64 / took.as_secs_f64())
    }

    /// The same as a source and capture do it, one after the other: cells into a batch, and the batch into slots; and the buffer back.
    fn packed(
        &self,
        wanted: usize,
        slot_bytes: u64,
        buffer: Option<Buffer>,
    ) -> Result<(f64, Buffer), BenchError> {
        let buffer = buffer.ok_or_else(|| BenchError::Accounting("the buffer did not come back".into()))?;
        let mut links: Vec<u16> = self.elements.iter().map(|(.., link_type)| *link_type).collect();
        links.sort_unstable();
        links.dedup();
        let mut extraction = Extraction::new(&self.schema, links.clone());
        let mut batch = Batch::new(BATCH_BYTES, BATCH_ROWS).with_columns(self.schema.classes());
        let mut bare = BarePacker::with_columns(buffer, slot_bytes, self.schema.classes())?;
        let counters = SourceCounters::default();
        let (mut done, mut took, mut from) = (0, Duration::ZERO, 0);
        let mut elements = self.elements.iter().cycle().peekable();
        while done < wanted {
            batch.clear();
            while let Some((to, original_size, link_type)) = elements.peek().copied() {
                from = if *to <= from { 0 } else { from };
                let data = &self.bytes[from..*to];
                if batch.rows_left() == 0 || batch.room() < data.len() {
                    break;
                }
                batch.free()[..data.len()].copy_from_slice(data);
                let at = batch.filled().len();
                batch.fill(data.len());
                batch.push(BatchRow {
                    content: Content::Whole,
                    flags: Flags::default(),
                    meta: 0,
                    tag: links.binary_search(link_type).unwrap_or_default() as u16,
                    at: at as u32,
                    len: data.len() as u32,
                    extra: (original_size - data.len() as u64) as u32,
                    ordinal: Ordinal(done as u64),
                    arrival: Timestamp(done as i64 * 150),
                    span: 0,
                    event: Timestamp(0),
                });
                (done, from) = (done + 1, *to);
                elements.next();
            }
            let start = Instant::now();
            extraction.fill(&mut batch, &counters);
            bare.take(&batch, Timestamp(done as i64 * 150))?;
            took += start.elapsed();
        }
        let start = Instant::now();
        bare.seal(Timestamp(done as i64 * 150));
        took += start.elapsed();
        if bare.received().received != done as u64 {
            return Err(BenchError::Accounting(format!("{done} elements, and {:?}", bare.received())));
        }
        let buffer =
            bare.into_buffer().ok_or_else(|| BenchError::Accounting("a slot is still open".into()))?;
        Ok((done as f64 / took.as_secs_f64(), buffer))
    }
}

/// The packets of all real captures, as they are.
fn captures(scale: Scale) -> Result<Option<ElementSample>, BenchError> {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else { return Ok(None) };
    let folder = Path::new(&data).join("pcap");
    if !folder.is_dir() {
        return Ok(None);
    }
    let mut stock = ElementSample::new(
        "packets, real captures",
        &["packets"],
        ExtractionMode::Single,
        Some(Goal::AtLeast(1.5)),
    )?;
    let files = std::fs::read_dir(&folder).map_err(BenchError::file(&folder, "read it"))?;
    let mut paths: Vec<_> = files.filter_map(|file| file.ok().map(|file| file.path())).collect();
    paths.sort();
    paths.truncate(scale.pick(1, paths.len()));
    for path in paths {
        let file = std::fs::read(&path).map_err(BenchError::file(&path, "read it"))?;
        let (preamble, _) = scan(&file[..], 1 << 20).map_err(BenchError::during("a capture file"))?;
        let mut reader = Reader::new(&file[..]);
        while let Some(packet) = reader.next_packet().map_err(BenchError::during("a capture file"))? {
            let interface = preamble.interfaces().get(usize::from(packet.interface));
            let link_type = interface.map_or(0, |interface| interface.link_type.0);
            stock.push(packet.data, packet.original_len.into(), link_type);
        }
    }
    Ok(Some(stock))
}

/// Packets that differ in their addresses and ports.
fn made(name: &str, goal: Goal, packet: impl Fn(u32) -> Vec<u8>) -> Result<ElementSample, BenchError> {
    let mut stock = ElementSample::new(name, &["packets"], ExtractionMode::Single, Some(goal))?;
    for number in 0..AT_ONCE as u32 {
        let packet = packet(number.wrapping_mul(0x9e37_79b9));
        stock.push(&packet, packet.len() as u64, 1);
    }
    Ok(stock)
}

/// Ethernet and IPv4 in front of so many bytes.
fn head(protocol: u8, len: u16, number: u32) -> Vec<u8> {
    let [n3, n2, n1, n0] = number.to_be_bytes();
    let [l1, l0] = len.to_be_bytes();
    let ethernet = [2, 0, 0, 0, 0, n0, 2, 0, 0, 0, 1, n1, 8, 0];
    let ip = [
        0x45, 0, l1, l0, n3, n2, 0x40, 0, 64, protocol, 0, 0, 10, 0, n3, n2, 192, 168, n1, n0, n3, n2, 0x1f,
        0x90,
    ];
    [&ethernet[..], &ip].concat()
}

/// 64 bytes.
fn small_packet(number: u32) -> Vec<u8> {
    [&head(17, 50, number)[..], &[0, 30, 0, 0], &[7; 22]].concat()
}

/// 1514 bytes.
fn large_packet(number: u32) -> Vec<u8> {
    [&head(6, 1500, number)[..], &[0; 8], &[0x50, 0x10, 0, 0, 0, 0, 0, 0], &[7; 1460]].concat()
}

/// Four columns of 20 bytes: a counter, a beam, a time and a strength.
fn fixed(name: &str, way: ExtractionMode, goal: Option<Goal>) -> Result<ElementSample, BenchError> {
    let attributes = [
        "frame:uint=at:0:u32le:bits0..24",
        "beam:uint=at:4:u16be",
        "at:time=at:6:u64le,unit=us",
        "snr:float=at:14:f32le",
    ];
    let mut stock = ElementSample::new(name, &attributes, way, goal)?;
    for number in 0..16 * AT_ONCE as u32 {
        let time = 1_795_000_000_000_000 + u64::from(number);
        let strength = (number % 97) as f32 / 8.0;
        let element = [
            &number.to_le_bytes()[..],
            &(number as u16 % 300).to_be_bytes(),
            &time.to_le_bytes(),
            &strength.to_le_bytes(),
            &[0; 2],
        ]
        .concat();
        stock.push(&element, FIXED as u64, 0);
    }
    Ok(stock)
}

/// Lines as a service logs them, of which four values are asked.
fn lines() -> Result<ElementSample, BenchError> {
    let attributes = [
        "event_time:time=json:time",
        "client:ip=json:client.ip",
        "status:uint=json:status",
        "took:float=json:took",
    ];
    let mut stock = ElementSample::new("JSON lines", &attributes, ExtractionMode::Single, None)?;
    for number in 0..AT_ONCE as u32 {
        let line = format!(
            "{{\"time\":\"2026-11-22T10:05:{:02}.{:06}Z\",\"level\":\"info\",\"client\":{{\"ip\":\"10.0.{}.{}\",\"port\":{}}},\
             \"method\":\"GET\",\"path\":\"/rings/lwa1/2026-11-22/{number}.pcapng\",\"status\":{},\"took\":0.{:04}}}",
            number % 60,
            number * 7,
            number / 256,
            number % 256,
            1024 + number,
            200 + number % 5,
            number,
        );
        stock.push(line.as_bytes(), line.len() as u64, 0);
    }
    Ok(stock)
}
