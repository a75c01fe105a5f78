//! Cut and damaged files: what is whole is delivered, and the place is told (promise 8).

use crate::packet_files::builder::{File, read_all, read_whole};
use holdfast_ingest::packet::{Broken, Damage, MAX_BLOCK, ReadError, Reader, ScanError, scan, scan_within};
use proptest::prelude::*;

fn broken(bytes: &[u8]) -> Broken {
    match read_all(bytes).1 {
        Some(ReadError::Broken(broken)) => broken,
        other => panic!("not broken: {other:?}"),
    }
}

fn pcap() -> File {
    let mut file = File::new(true);
    file.pcap(0xa1b2_3c4d, 100, 1);
    for n in 0..4 {
        file.record(n, 0, 50, &[], &vec![n as u8; 3 + n as usize]);
    }
    file
}

#[test]
fn a_file_cut_anywhere_gives_all_packets_before_the_cut_and_the_place() {
    for file in [pcap(), File::mixed(false), File::mixed(true)] {
        let all = read_whole(&file.bytes);
        for cut in 0..file.bytes.len() {
            let (packets, error) = read_all(&file.bytes[..cut]);
            // What the file had when the last whole block or record ended.
            let (end, count) = file.ends.iter().copied().rfind(|(end, _)| *end <= cut).unwrap_or_default();
            assert_eq!(packets, all[..count], "cut at {cut}");
            match error {
                None => assert_eq!((end, cut > 0), (cut, true), "cut at {cut}: the end was not noticed"),
                Some(ReadError::Broken(Broken { at_byte, damage })) => {
                    assert_eq!(at_byte, end as u64, "cut at {cut}");
                    assert!(end < cut || cut == 0, "cut at {cut}: {damage}");
                    assert!(matches!(damage, Damage::Truncated { end, .. } if end == cut as u64), "{damage}");
                }
                Some(error) => panic!("{error}"),
            }
        }
    }
}

// Promise 1: what a file says of itself is no reason to take memory.
#[test]
fn a_length_beyond_the_end_of_a_file_takes_no_memory_and_a_large_packet_what_was_said() {
    let mut file = pcap();
    let small = scan(&file.bytes[..], 1 << 16).unwrap().1.room;
    file.record(9, 0, 3 << 20, &[], &vec![5; 3 << 20]);
    let whole = file.bytes.len();
    // A packet of 40 MiB, of which there are 8.
    file.bytes.extend([10u32, 0, 40 << 20, 40 << 20].map(u32::to_be_bytes).concat());
    file.bytes.extend(vec![5; 8 << 20]);
    let length = file.bytes.len() as u64;
    let (_, report) = scan_within(&file.bytes[..], length, 1 << 16).unwrap();
    assert_eq!((report.packets, report.broke), (5, Some(broken(&file.bytes))));
    assert!(small < 1 << 20 && (3 << 20..4 << 20).contains(&report.room), "{small} {}", report.room);
    // As replaying has it: all memory is there before.
    let memory = |length| {
        let mut reader = Reader::within(&file.bytes[..], length, vec![0; report.room]);
        let mut packets = 0;
        while let Ok(Some(_)) = reader.next_packet() {
            packets += 1;
        }
        (packets, reader.memory())
    };
    assert_eq!(memory(length), (5, report.room));
    // It became longer since it was looked through, behind a packet and within one, which may be in memory already.
    for length in [whole as u64, whole as u64 - 1] {
        let (packets, bytes) = memory(length);
        assert!((4..=5).contains(&packets) && bytes == report.room, "{length}: {packets}, {bytes}");
    }
}

#[test]
fn a_scan_counts_what_a_reader_delivers() {
    let file = File::mixed(false);
    let (preamble, report) = scan(&file.bytes[..], 1 << 16).unwrap();
    assert_eq!((report.packets, report.interfaces, report.broke), (4, 2, None));
    assert_eq!((report.bytes, report.largest), (5 + 6 + 64 + 6, 64));
    assert_eq!(preamble.interfaces().len(), 2);
    let cut = file.bytes.len() - 1;
    let (_, report) = scan(&file.bytes[..cut], 1 << 16).unwrap();
    assert_eq!(report.packets, 3);
    assert_eq!(report.broke, Some(broken(&file.bytes[..cut])));
    assert!(matches!(scan(&b"hello world"[..], 1 << 16), Err(ScanError::NotACapture(_))));
    for (bytes, wanted) in [
        (&b"hello world"[..], "(it starts with \"hell"),
        (b"\x1f\x8c\x08\0more", "(it starts with 1f 8c 08 00"),
        (b"\x1f\x8b\x08\0more", "compressed by gzip"),
    ] {
        let said = scan(bytes, 1 << 16).err().unwrap().to_string();
        assert!(said.contains(wanted), "{said}");
    }
    assert!(matches!(scan(&b""[..], 1 << 16), Err(ScanError::NotACapture(_))));
    assert!(matches!(scan(&file.bytes[..], 100), Err(ScanError::TooLarge { limit: 100 })));
}

#[test]
fn damage_is_named_by_its_block_and_its_field() {
    let at = |file: &File, unit: usize| file.ends[unit - 1].0;
    let mixed = File::mixed(false);
    let packet = at(&mixed, 2);
    let change = |place: usize, bytes: &[u8]| {
        let mut changed = mixed.bytes.clone();
        changed[place..place + bytes.len()].copy_from_slice(bytes);
        broken(&changed)
    };
    // Unit 2 is the first packet: type, length, interface, time, captured length.
    let told = change(packet + 8, &[9, 0, 0, 0]);
    assert_eq!(told.at_byte, packet as u64);
    assert_eq!(told.damage, Damage::UnknownInterface { interface: 9, known: 1 });
    let told = change(packet + 20, &[200, 0, 0, 0]);
    assert!(matches!(told.damage, Damage::Field { at, .. } if at == packet as u64 + 20), "{told}");
    let told = change(packet + 4, &[1, 2, 0, 0]);
    assert!(matches!(told.damage, Damage::BlockLength { len: 513, .. }), "{told}");
    let told = change(packet + 4, &(MAX_BLOCK as u32 + 4).to_le_bytes());
    assert!(matches!(told.damage, Damage::BlockLength { .. }), "{told}");
    let told = change(at(&mixed, 3) - 4, &[4, 0, 0, 0]);
    assert_eq!(told.at_byte, packet as u64);
    assert_eq!(
        told.to_string(),
        format!(
            "the capture file is damaged at byte {packet}: a block of type 0x00000006 says {} bytes at its start and 4 at \
             its end (byte {})",
            at(&mixed, 3) - packet,
            at(&mixed, 3) - 4
        )
    );
    let told = change(packet + 28 + 8 + 2, &[99, 0]);
    assert!(matches!(told.damage, Damage::Field { at, .. } if at == packet as u64 + 36), "{told}");

    let mut file = File::new(false);
    file.pcap(0xa1b2_c3d4, 0, 1);
    file.record(1, 2, 3, &[], b"ok");
    let end = file.bytes.len();
    file.bytes.extend([[0; 4], [0; 4], u32::MAX.to_le_bytes(), [0; 4]].concat());
    assert_eq!(
        broken(&file.bytes),
        Broken { at_byte: end as u64, damage: Damage::PacketLength { len: u32::MAX } }
    );
}

#[test]
fn a_damaged_reader_says_the_same_again() {
    let file = File::mixed(true);
    let mut reader = holdfast_ingest::packet::Reader::new(&file.bytes[..file.bytes.len() - 3]);
    while let Ok(Some(_)) = reader.next_packet() {}
    let first = reader.next_packet().unwrap_err().to_string();
    assert_eq!(reader.next_packet().unwrap_err().to_string(), first);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), start in 0..4usize) {
        let starts: [&[u8]; 4] = [
            b"",
            &[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0],
            &[0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
            &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 28, 0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0],
        ];
        let bytes = [starts[start], &bytes].concat();
        let (packets, _) = read_all(&bytes);
        if let Ok((_, report)) = scan(&bytes[..], 1 << 20) {
            prop_assert_eq!(report.packets, packets.len() as u64);
        }
    }

    /// Random bytes rarely get past the first block; a good file with a few of its bytes changed does.
    #[test]
    fn a_changed_byte_costs_nothing_that_stands_before_it(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        big in any::<bool>(),
        old in any::<bool>(),
    ) {
        let file = if old { pcap() } else { File::mixed(big) };
        let whole = read_whole(&file.bytes);
        let mut bytes = file.bytes.clone();
        let mut first = bytes.len();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
            first = first.min(at);
        }
        let (packets, error) = read_all(&bytes);
        let count = file.ends.iter().rfind(|(end, _)| *end <= first).map_or(0, |(_, count)| *count);
        prop_assert!(packets.len() >= count);
        prop_assert_eq!(&packets[..count], &whole[..count]);
        if let Some(ReadError::Broken(broken)) = error {
            prop_assert!(broken.at_byte <= bytes.len() as u64);
        }
        let _ = scan(&bytes[..], 1 << 20);
    }
}
