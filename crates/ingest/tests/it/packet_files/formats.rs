//! Tests of every supported variant of pcap and pcapng, with files built by hand.

use crate::packet_files::builder::{File, Owned, read_whole};
use holdfast_base::Timestamp;
use holdfast_ingest::packet::{Direction, Item, LinkType, Reader, Reception};
use std::io::{self, Read};

#[test]
fn pcap_is_read_in_both_orders_and_resolutions() {
    for big in [false, true] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let mut file = File::new(big);
            file.pcap(magic, 3, 101);
            file.record(1_700_000_000, 123_456, 60, &[], b"abc");
            file.record(u32::MAX, 999_999, 0, &[], b"");
            let mut reader = Reader::new(&file.bytes[..]);
            let first = reader.next_packet().unwrap().unwrap();
            assert_eq!(first.time, Some(Timestamp(1_700_000_000_000_000_000 + 123_456 * unit)));
            assert_eq!((first.original_len, first.data, first.options), (60, &b"abc"[..], &b""[..]));
            let second = reader.next_packet().unwrap().unwrap();
            assert_eq!(second.time, Some(Timestamp(i64::from(u32::MAX) * 1_000_000_000 + 999_999 * unit)));
            assert!(reader.next_packet().unwrap().is_none());
            assert_eq!(reader.position(), file.bytes.len() as u64);
            assert_eq!(
                (reader.interfaces()[0].link_type, reader.interfaces()[0].snaplen),
                (LinkType::RAW, 3)
            );
        }
    }
}

#[test]
fn modified_pcap_tells_the_direction() {
    for big in [false, true] {
        let mut file = File::new(big);
        file.pcap(0xa1b2_cd34, 65_535, 1);
        file.record(1, 2, 3, &[0, 0, 0, 2, 8, 0, 4, 0], b"out");
        file.record(1, 2, 3, &[0, 0, 0, 2, 8, 0, 1, 0], b"all");
        let packets = read_whole(&file.bytes);
        assert_eq!(packets[0].flags.direction(), Direction::Outbound);
        assert_eq!(packets[1].flags.direction(), Direction::Inbound);
        assert_eq!(packets[1].flags.reception(), Reception::Broadcast);
        assert_eq!((&packets[0].data[..], &packets[1].data[..]), (&b"out"[..], &b"all"[..]));
    }
}

#[test]
fn an_interface_with_a_check_sequence_says_so() {
    let mut file = File::new(false);
    file.pcap(0xa1b2_c3d4, 0, 0x2400_0001);
    file.record(0, 0, 0, &[], b"");
    let mut reader = Reader::new(&file.bytes[..]);
    reader.next_packet().unwrap();
    assert_eq!(reader.interfaces()[0].link_type, LinkType::ETHERNET);
    assert_eq!(reader.interfaces()[0].options, [13, 0, 1, 0, 32, 0, 0, 0]);
}

#[test]
fn pcapng_is_read_in_both_orders_even_in_one_file() {
    for big in [false, true] {
        let file = File::mixed(big);
        let mut reader = Reader::new(&file.bytes[..]);
        let mut seen = Vec::new();
        while let Some(item) = reader.next_item().unwrap() {
            seen.push(match item {
                Item::Section { options } => format!("section {}", options.len()),
                Item::Interface(index) => format!("interface {index}"),
                Item::Packet(packet) => {
                    let data = &packet.data[..packet.data.len().min(6)];
                    let time = packet.time.map(|time| time.0);
                    format!("{} {time:?} {} {}", packet.interface, packet.original_len, data.escape_ascii())
                }
                Item::Other(block) => format!("{:#x} {}", block.kind, block.body.escape_ascii()),
            });
        }
        assert_eq!(
            seen,
            [
                "section 12",
                "interface 0",
                "0 Some(1000000001) 5 first",
                "0x70000001 unknown\\x00",
                "0 Some(2000000002) 6 second",
                "0 None 100 \\x07\\x07\\x07\\x07\\x07\\x07",
                "section 0",
                "interface 1",
                "1 Some(3000003000) 9 fourth",
            ]
        );
        let interfaces = reader.interfaces();
        assert_eq!((interfaces[0].name(), interfaces[0].snaplen), (Some("eth0"), 64));
        assert_eq!((interfaces[1].name(), interfaces[1].link_type), (None, LinkType::RAW));
    }
}

#[test]
fn every_time_resolution_and_offset_is_understood() {
    for big in [false, true] {
        let mut file = File::new(big);
        file.section(&[]);
        let cases: [(&[u8], i64, u64, Option<i64>); 7] = [
            (&[], 0, 1_700_000_000_000_001, Some(1_700_000_000_000_001_000)),
            (&[3], 0, 1_700_000_000_001, Some(1_700_000_000_001_000_000)),
            (&[9], 0, 1_700_000_000_000_000_001, Some(1_700_000_000_000_000_001)),
            (&[12], 0, 1_700_000_000_000_000_999, Some(1_700_000_000_000_000)),
            (&[0x80 | 0x20], 0, (1_700_000_000 << 32) | (1 << 31), Some(1_700_000_000_500_000_000)),
            (&[0], 1_700_000_000, 5, Some(1_700_000_005_000_000_000)),
            (&[0], -10, 5, None),
        ];
        for (resolution, offset, _, _) in cases {
            let mut options = Vec::new();
            if !resolution.is_empty() {
                options.extend(file.option(9, resolution));
            }
            if offset != 0 {
                options.extend(file.option(14, &file.u64(offset as u64)));
            }
            file.interface(1, 0, &options);
        }
        for (at, (_, _, ticks, _)) in cases.iter().enumerate() {
            file.packet(at as u32, *ticks, 0, b"", &[]);
        }
        let mut reader = Reader::new(&file.bytes[..]);
        for (at, (_, _, _, nanos)) in cases.iter().enumerate() {
            let packet = reader.next_packet().unwrap().unwrap();
            assert_eq!((packet.interface, packet.time), (at as u16, nanos.map(Timestamp)), "case {at}");
        }
        assert!(reader.next_packet().unwrap().is_none());
        assert_eq!(reader.notes().times_left_out, 1);
    }
}

#[test]
fn options_of_both_orders_come_out_the_same() {
    let of = |big| {
        let mut file = File::new(big);
        file.section(&[]);
        file.interface(1, 0, &[]);
        let vendor = [file.u32(32_473), b"own".to_vec()].concat();
        let options = [
            file.option(1, b"a comment"),
            file.option(2, &file.u32(0b1_0010)),
            file.option(3, &[2, 0xde, 0xad]),
            file.option(4, &file.u64(7)),
            file.option(5, &file.u64(1 << 40)),
            file.option(6, &file.u32(3)),
            file.option(7, &[vec![1], file.u64(9)].concat()),
            file.option(8, &[file.u32(300), file.u32(301)].concat()),
            file.option(2988, &vendor),
            file.option(19372, &vendor),
            file.option(0, b""),
        ]
        .concat();
        file.packet(0, 0, 4, b"data", &options);
        file.old_packet(0, 9, 0, b"old", &file.option(2, &file.u32(1)));
        file.old_packet(0, 0xffff, 0, b"old", &[]);
        read_whole(&file.bytes)
    };
    let little = of(false);
    assert_eq!(little, of(true));
    let file = File::new(false);
    let vendor = [file.u32(32_473), b"own".to_vec()].concat();
    let wanted = [
        file.option(1, b"a comment"),
        file.option(2, &file.u32(0b1_0010)),
        file.option(3, &[2, 0xde, 0xad]),
        file.option(4, &file.u64(7)),
        file.option(5, &file.u64(1 << 40)),
        file.option(6, &file.u32(3)),
        file.option(7, &[vec![1], file.u64(9)].concat()),
        file.option(8, &[file.u32(300), file.u32(301)].concat()),
        file.option(2988, &vendor),
        file.option(19372, &vendor),
    ]
    .concat();
    assert_eq!(little[0].options, wanted);
    assert_eq!(little[0].flags.direction(), Direction::Outbound);
    assert_eq!(little[0].flags.reception(), Reception::Promiscuous);
    let drops = [file.option(2, &file.u32(1)), file.option(4, &file.u64(9))].concat();
    assert_eq!((&little[1].options, little[1].flags.direction()), (&drops, Direction::Inbound));
    assert_eq!(little[2].options, b"");
}

#[test]
fn a_large_aggregated_frame_passes_beyond_the_snap_length() {
    let frame: Vec<u8> = (0..3u32 << 20).map(|at| (at % 253) as u8).collect();
    let mut file = File::new(true);
    file.section(&[]);
    file.interface(1, 1500, &[]);
    file.packet(0, 0, 4 << 20, &frame, &[]);
    file.packet(0, 0, 3, b"end", &[]);
    let packets = read_whole(&file.bytes);
    assert!(packets[0].data == frame);
    assert_eq!((packets[0].original_len, &packets[1].data[..]), (4 << 20, &b"end"[..]));
}

/// Gives as many bytes as the next number of a fixed row says.
struct Pieces<'a>(&'a [u8], usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.1 = (self.1 * 5 + 3) % 17;
        let count = (self.1 + 1).min(into.len()).min(self.0.len());
        into[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn how_the_bytes_arrive_makes_no_difference() {
    let file = File::mixed(true);
    let mut reader = Reader::new(Pieces(&file.bytes, 1));
    let mut packets = Vec::<Owned>::new();
    while let Some(packet) = reader.next_packet().unwrap() {
        packets.push(packet.into());
    }
    assert_eq!(packets, read_whole(&file.bytes));
}
