//! Counters, attributes at fixed places and in the header that a producer gives, and those of VDIF frames, SPEAD packets, and the headers of
//! DADA and SIGPROC files.

use crate::attributes::{check, schema};
use holdfast_attributes::{Counter, Cycle, Element, Extractor};
use holdfast_format::{CellBuffer, MAX_TEXT};

/// The input is a size, then elements of this size: read one by one and at once it is the same.
pub fn run(data: &[u8]) {
    let Some((size, data)) = data.split_first() else { return };
    check(&schema(&["vdif"]), &Element::of(data));
    check(&schema(&["dada"]), &Element::of(data));
    check(&schema(&["sigproc"]), &Element::of(data));
    check(&schema(&["spead"]), &Element::of(data));
    for counter in ["vdif", "spead", "rtp", "at:1:u32le:bits3..17,flow=at:5:u8"] {
        let Ok(counter) = counter.parse::<Counter>() else { panic!("{counter} is none") };
        let Some(count) = counter.read(&Element::of(data)) else { continue };
        let most = match counter.cycle() {
            Cycle::Bits(bits) => u64::MAX >> (64 - bits),
            Cycle::Second => 0xff_ffff,
        };
        assert!(count.number <= most && count.second < 1 << 30);
    }
    let given = [
        "a:uint=given",
        "b:text=given",
        "event_time:time=given",
        "c:ip=given",
        "d:binary=given",
        "e:bool=given",
    ];
    check(&schema(&given), &Element { header: Some(data), ..Element::of(data) });
    let fixed = schema(&[
        "a:uint=at:0:u32le:bits3..17",
        "b:text=at:4:text4",
        "c:ip=at:8:ipv6",
        "d:time=at:2:i64be,unit=us",
        "e:float=at:12:f32le",
        "event_time:time=at:1:f64le,unit=ms",
        "f:binary=at:1:bytes3",
        "g:bool=at:3:u8:bits7..8",
    ]);
    let size = usize::from(*size).max(1);
    let elements = data.len() / size;
    let buffer = |class| CellBuffer::new(class, elements, elements * MAX_TEXT);
    let mut buffers: Vec<CellBuffer> = fixed.classes().iter().map(buffer).collect();
    let lacking = Extractor::new(&fixed).fixed().map(|fixed| fixed.extract_many(data, size, &mut buffers));
    let alone = data.chunks_exact(size).filter(|element| check(&fixed, &Element::of(element)));
    assert_eq!(lacking, Some(alone.count() as u64));
    assert!(buffers.iter().all(|buffer| buffer.len() == elements));
}

/// A frame, a packet, elements of 20 bytes, and the headers of a DADA and of a SIGPROC file.
pub fn seeds() -> Vec<Vec<u8>> {
    let words = [14_363_767u32, 28 << 24, 1 << 29 | 8, 1 << 26 | 0x4566].map(u32::to_le_bytes).concat();
    let items =
        [0x8001_0000_0000_0007u64, 0x9600_0000_0000_ffff, 0x0004_0000_0000_0010].map(u64::to_be_bytes);
    let given =
        [&[8, 0, 7, 0, 0, 0, 0, 0, 0, 0, 3, 0][..], b"yes", &[255, 255, 4, 0, 10, 0, 0, 1, 1, 0, 9, 1, 0, 1]];
    let key = |name: &str| [&(name.len() as u32).to_le_bytes()[..], name.as_bytes()].concat();
    let sigproc = [
        key("HEADER_START"),
        key("source_name"),
        key("J0437-4715"),
        key("nchans"),
        1024u32.to_le_bytes().to_vec(),
        key("tstart"),
        59_000.5f64.to_le_bytes().to_vec(),
        key("HEADER_END"),
    ];
    let dada = b"HDR_VERSION 1.0\nHDR_SIZE 4096\nUTC_START 2026-11-22-10:05:00\nFREQ 1382.0 # MHz\nNCHAN 1024\nOBS_OFFSET 0\n";
    vec![
        [&[64][..], &sigproc.concat()].concat(),
        [&[64][..], dada].concat(),
        [&[1][..], &given.concat()].concat(),
        [&[64][..], &words, &[7; 48]].concat(),
        [&[40][..], &[0x53, 4, 2, 6, 0, 0, 0, 3], &items.concat(), &[9; 16]].concat(),
        [&[12][..], &[0x80, 0x60, 0, 9, 0, 0, 0, 0, 0, 0, 0, 5]].concat(),
        [&[20][..], &b"0123text\0\0890123456789".repeat(5)].concat(),
    ]
}
