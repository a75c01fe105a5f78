//! Test that a running source does not allocate (promise 1: memory is fixed): not per element, batch or slot.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;
use crate::packet_live::link;

use allocation_counter::measure;
use common::hand::Hand;
use common::rig::{Rig, opened};
use holdfast_base::{Ordinal, Sequence, SlotNo, StreamId, SystemClock, Timestamp};
use holdfast_format::{
    Builder, CellBuffer, CellsAt, Class, Classes, Counters, Entry, Key, Row, SlotFlags, SlotId,
};
use holdfast_ingest::{
    BatchPosition, Cutter, Framing, Marks, Overload, Packer, Parker, Pressure, Producer, ProducerSettings,
    Progress, Source, SourceEnd, SourceError, SourceOptions, Speed, StopFlag, channel,
};
use link::{EXPERIMENTAL, Link, frame};
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a source may allocate when it begins to run.
const AT_START: u64 = 32;

#[test]
fn producer_and_packer_allocate_nothing() {
    let settings = ProducerSettings { batches: 5, ..ProducerSettings::new(Overload::DropNewest, Ordinal(0)) };
    let clock = Arc::new(SystemClock::new());
    let (mut producer, mut inlet) =
        channel(&settings, clock, Arc::new(Pressure::default()), Parker::new().waker());
    let mut cutter = Cutter::new(Framing::Lines);
    let mut packer: Packer<Vec<u8>> = Packer::new(1 << 20, 2);
    let key = Key([3; 32]);
    let mut first_buffer = Some(vec![0; 1 << 20]);
    let mut sequence = 0;
    let text: Vec<u8> =
        (0..70_000u32).map(|n| if n % 37 == 0 || n % 301 == 5 { b'\n' } else { b'x' }).collect();
    let large = vec![7; 700_000];
    let allocated = measure(|| {
        let mut begin = |packer: &mut Packer<Vec<u8>>, buffer: Vec<u8>| {
            sequence += 1;
            let id = SlotId { sequence: Sequence(sequence), ..SlotId::default() };
            let counters = Counters { next_ordinal: Ordinal(0), ..Counters::default() };
            let entry = Entry { stream: StreamId(1), counters, ..Entry::default() };
            packer.open(buffer, id, Timestamp(0), &[entry]).unwrap();
        };
        begin(&mut packer, first_buffer.take().unwrap());
        for round in 0..60 {
            let space = producer.space(&cutter).unwrap();
            let n = space.len().min(text.len());
            space[..n].copy_from_slice(&text[..n]);
            producer.feed(n, &mut cutter).unwrap();
            if round % 3 == 0 {
                producer.end_element(1).unwrap();
                cutter = Cutter::new(Framing::Lines);
                producer.element(b"meta", &large, Marks::default()).unwrap();
                producer.lost_before(3, Timestamp(0));
            }
            // For a while nothing is taken, and the producer drops.
            if round % 20 > 12 {
                continue;
            }
            while let Some(batch) = inlet.take() {
                let mut place = BatchPosition::default();
                while let Progress::Full(at) = packer.push(0, &batch, place) {
                    place = at;
                    let sealed = packer.seal(&key, SlotNo(0), Timestamp(1), SlotFlags::default());
                    begin(&mut packer, sealed.unwrap().0);
                }
                packer.cut();
                inlet.give_back(batch);
            }
        }
    });
    assert!(sequence > 10 && producer.counters().all_dropped() > 100, "it has really been at work");
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn columns_take_the_memory_that_is_said_before_and_none_afterwards() {
    const SLOT: u64 = 1 << 20;
    let classes: Classes = [Class::Word, Class::Wide, Class::Bytes, Class::Word].into_iter().collect();
    let entry = Entry { stream: StreamId(1), classes, ..Entry::default() };
    let mut cells: Vec<_> = classes.iter().map(|class| CellBuffer::new(class, 4096, 1 << 20)).collect();
    for n in 0..4096u64 {
        cells[0].word(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        cells[1].wide(u128::from(n % 7) << 100);
        cells[2].bytes(&[n as u8; 200][..(n % 200) as usize]);
        if n % 3 == 0 { cells[3].null() } else { cells[3].word(n) }
    }
    let rows: Vec<Row> = (0..4096).map(|n| Row { ordinal: Ordinal(n), len: 20, ..Row::default() }).collect();
    let bytes = vec![7; 20 * 256];
    let mut buffer = vec![0; SLOT as usize];
    let mut builder = Builder::new(SLOT, 1);
    let said = Builder::column_memory(SLOT, &[classes]).unwrap();
    let prepared = measure(|| builder.prepare(&[entry]).unwrap());
    // What is beside is the same for every builder: tables to find values by.
    let beside = prepared.bytes_current as usize - said;
    assert!(beside < 16 << 10, "{beside} bytes more than {said}");
    let mut slots = 0;
    let allocated = measure(|| {
        for sequence in 1..5 {
            let id = SlotId { sequence: Sequence(sequence), ..SlotId::default() };
            builder.open(&mut buffer, id, Timestamp(0), &[entry]).unwrap();
            while builder.room() > (20 + builder.row_room(0)) * 256 {
                for (at, run) in rows.chunks(256).enumerate() {
                    if builder.room() < (20 + builder.row_room(0)) * 256 {
                        break;
                    }
                    let cells = CellsAt { columns: &cells, first: 256 * at };
                    builder.write_elements(&mut buffer, &bytes, run, |row| *row, cells);
                }
            }
            builder.seal(&mut buffer, &Key([3; 32]), SlotNo(0), Timestamp(1), SlotFlags::default());
            slots += 1;
        }
    });
    assert_eq!((allocated.count_total, slots), (0, 4));
}

/// Runs a source and keeps how often it allocated.
struct Measured {
    source: Option<Box<dyn Source>>,
    allocations: Arc<AtomicU64>,
}

impl Source for Measured {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        let source = self.source.take().unwrap();
        let mut end = None;
        let allocated = measure(|| end = Some(source.run(out, stop)));
        self.allocations.store(allocated.count_total, Ordering::SeqCst);
        end.unwrap()
    }
}

/// Starts a source, lets `feed` give it elements until `enough` came, and returns how often it allocated.
fn allocations(spec: &str, options: &SourceOptions, enough: usize, feed: impl FnOnce()) -> u64 {
    let (opened, stop) = opened(spec, options);
    let allocations = Arc::new(AtomicU64::new(u64::MAX));
    let source = Measured { source: Some(opened.source), allocations: Arc::clone(&allocations) };
    let mut rig = Rig::run(Box::new(source), opened.overload, stop, 8);
    feed();
    rig.collect_until(|collector| collector.next >= enough as u64);
    rig.stop().1.unwrap();
    allocations.load(Ordering::SeqCst)
}

#[test]
fn sources_allocate_nothing_while_they_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lines");
    std::fs::write(&path, "a line\n".repeat(100_000)).unwrap();
    let lines = SourceOptions { framing: Some(Framing::Lines), ..SourceOptions::default() };
    assert_eq!(allocations(&format!("file:{}", path.display()), &lines, 100_000, || {}), 0);

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let tcp = allocations(&format!("tcp:127.0.0.1:{port}"), &lines, 20 * 5000, || {
        for _ in 0..20 {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
            stream.write_all("a line\n".repeat(5000).as_bytes()).unwrap();
        }
    });
    assert_eq!(tcp, 0);

    let path = dir.path().join("area.sock");
    let shared = allocations(&format!("shm:{}", path.display()), &lines, 20 * 1500, || {
        // No more than there are batches for: each producer waits until the last one's rest is taken. A program that another test starts
        // has the last one's socket, too, until it has begun.
        for _ in 0..20 {
            let mut hand = loop {
                match Hand::come(&path) {
                    Ok(hand) => break hand,
                    Err(why) => assert_eq!(why, 1),
                }
            };
            hand.put("a line\n".repeat(1000).as_bytes());
            hand.give_up(500, 3500);
        }
    });
    assert_eq!(shared, 0);

    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let udp = allocations(&format!("udp:127.0.0.1:{port}"), &SourceOptions::default(), 5000, || {
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..5000 {
            sender.send_to(&[1; 100], ("127.0.0.1", port)).unwrap();
        }
    });
    assert!(udp < AT_START, "{udp}");

    // A classic capture file of 10 000 packets, replayed once.
    let path = dir.path().join("many.pcap");
    let mut file = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    for n in 0..10_000u32 {
        file.extend([n, 0, 60, 60].map(u32::to_le_bytes).concat());
        file.extend([n as u8; 60]);
    }
    std::fs::write(&path, file).unwrap();
    let max = SourceOptions { speed: Some(Speed::Max), ..SourceOptions::default() };
    let replay = allocations(&format!("replay:{}", path.display()), &max, 10_000, || {});
    assert!(replay < AT_START, "{replay}");

    // A tenth of it a hundred times over allocates no more: with a new lap nothing is new.
    let mut file = std::fs::read(&path).unwrap();
    file.truncate(24 + 1000 * 76);
    std::fs::write(&path, file).unwrap();
    let again = SourceOptions { repeat: true, ..max };
    let laps = allocations(&format!("replay:{}", path.display()), &again, 100_000, || {});
    assert!(laps < AT_START, "{laps}");
}

#[test]
fn a_network_interface_is_read_without_allocations() {
    let Some(link) = Link::make() else { return };
    let options =
        SourceOptions { filter: Some(format!("ether proto {EXPERIMENTAL:#x}")), ..SourceOptions::default() };
    let iface = allocations(&format!("iface:{}", link.near), &options, 5000, || {
        let frames: Vec<Vec<u8>> = (0..5000).map(|n| frame(n, 100)).collect();
        link.send(&frames);
    });
    assert_eq!(iface, 0);
}
