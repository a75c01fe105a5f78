//! Packets longer than the snapshot length of their interface: what is exported keeps every byte, and libpcap reads it.

use crate::packet_files::builder::{File, read_whole};
use crate::packet_files::round_trip::{exported, run};
use holdfast_ingest::packet::{RaisedSnaplen, Reader, scan};

/// An Ethernet frame of UDP, and bytes behind it.
fn frame(len: usize) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.extend([
        0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 1, 1, 1, 10, 1, 1, 2, 3, 232, 7, 209, 0, 8, 0, 0,
    ]);
    frame.resize(len, 0);
    frame
}

/// A pcapng file: snapshot lengths of interfaces, then packets by interface and length.
fn pcapng(snaplens: &[u32], packets: &[(u32, usize)]) -> Vec<u8> {
    let mut file = File::new(false);
    file.section(&[]);
    for snaplen in snaplens {
        file.interface(1, *snaplen, &[]);
    }
    for (interface, len) in packets {
        file.packet(*interface, 5, *len as u32, &frame(*len), &[]);
    }
    file.bytes
}

fn raised(bytes: &[u8]) -> (Vec<u32>, Vec<(u32, u32)>) {
    let (preamble, report) = scan(bytes, 1 << 20).unwrap();
    let lengths = preamble.interfaces().iter().map(|interface| interface.snaplen).collect();
    let of = |RaisedSnaplen { declared, raised }: &RaisedSnaplen| (*declared, *raised);
    (lengths, report.raised.iter().map(of).collect())
}

// Promise 5.
#[test]
fn snapshot_lengths_rise_to_the_longest_packet_and_no_other_length_changes() {
    type Case<'a> = (&'a [u32], &'a [(u32, usize)], &'a [u32], &'a [(u32, u32)]);
    let cases: [Case<'_>; 6] = [
        (&[20], &[(0, 42), (0, 60), (0, 44)], &[60], &[(20, 60)]),
        (&[60], &[(0, 60)], &[60], &[]),
        (&[0], &[(0, 300_000)], &[0], &[]),
        (&[u32::MAX], &[(0, 42)], &[u32::MAX], &[]),
        // Interfaces of one length stay of one length.
        (&[20, 20], &[(1, 42)], &[42, 42], &[(20, 42)]),
        (&[50, 0, 20, 96], &[(0, 51), (1, 99), (2, 42), (3, 42)], &[51, 0, 42, 96], &[(20, 42), (50, 51)]),
    ];
    for (snaplens, packets, wanted, told) in cases {
        let bytes = pcapng(snaplens, packets);
        assert_eq!(raised(&bytes), (wanted.to_vec(), told.to_vec()), "{snaplens:?}");
        let out = exported(&bytes);
        assert_eq!(raised(&out), (wanted.to_vec(), Vec::new()), "{snaplens:?}");
        let (before, after) = (read_whole(&bytes), read_whole(&out));
        assert_eq!(before, after);
    }
}

#[test]
fn an_original_length_below_the_captured_one_is_counted() {
    let mut file = File::new(true);
    file.pcap(0xa1b2_c3d4, 65_535, 1);
    for original in [41, 42, 43, 0] {
        file.record(1, 2, original, &[], &frame(42));
    }
    assert_eq!(scan(&file.bytes[..], 1 << 20).unwrap().1.originals_too_short, 2);
}

#[test]
fn tcpdump_reads_what_is_exported_of_a_file_that_it_reads() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = vec![pcapng(&[0], &[(0, 42)]), pcapng(&[u32::MAX], &[(0, 42)])];
    // libpcap refuses a length above the snapshot length in pcapng, not in pcap.
    for snaplen in [0, 20, 42, 65_535, u32::MAX] {
        let mut file = File::new(false);
        file.pcap(0xa1b2_c3d4, snaplen, 1);
        for original in [42, 1500, 20] {
            file.record(1, 2, original, &[], &frame(42));
        }
        files.push(file.bytes);
    }
    for (number, bytes) in files.iter().enumerate() {
        let (before, after) = (folder.path().join("before"), folder.path().join("after.pcapng"));
        std::fs::write(&before, bytes).unwrap();
        std::fs::write(&after, exported(bytes)).unwrap();
        for path in [&before, &after] {
            let Some(text) = run("tcpdump", &["-n", "-r"], path) else { return };
            assert_eq!(text.lines().count(), read_whole(bytes).len(), "file {number}: {text}");
        }
    }
}

#[test]
fn preambles_of_raised_lengths_are_preambles() {
    let (preamble, _) = scan(&pcapng(&[20], &[(0, 42)])[..], 1 << 20).unwrap();
    let reader = holdfast_ingest::packet::Preamble::from_bytes(preamble.as_bytes().to_vec()).unwrap();
    assert_eq!(reader, preamble);
    assert!(Reader::new(preamble.as_bytes()).next_packet().unwrap().is_none());
}
