//! Replayed files and live interfaces (promises 2, 5 and 8): every packet with its time, lengths and options; what the
//! kernel drops is counted; a damaged file says where.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::rig::{Rig, opened};
use holdfast_ingest::packet::{Packet, Preamble, Reader, pcapng};
use holdfast_ingest::{
    Cause, Overload, SourceEnd, SourceError, SourceOptions, SourceSpec, Speed, StopFlag, StreamKind, open,
};
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};

fn max() -> SourceOptions {
    SourceOptions { speed: Some(Speed::Max), ..SourceOptions::default() }
}

/// A small file that is always there: two packets, one of them cut, one with a comment.
fn generated(dir: &Path) -> PathBuf {
    let interface = holdfast_ingest::packet::LiveInterface {
        name: "gen0",
        link_type: holdfast_ingest::packet::LinkType(1),
        snaplen: 0,
        filter: None,
        mac: None,
        speed: None,
    };
    let mut bytes = Preamble::live(&[interface]).unwrap().as_bytes().to_vec();
    for n in 0..300u32 {
        let data: Vec<u8> = (0..60 + n * 7).map(|at| (at + n) as u8).collect();
        let packet = Packet {
            interface: 0,
            time: Some(holdfast_base::Timestamp(1_700_000_000_000_000_000 + i64::from(n) * 1000)),
            original_len: data.len() as u32 + n % 3,
            flags: holdfast_ingest::packet::Flags(n % 3),
            options: if n % 5 == 0 { &[1, 0, 3, 0, b'h', b'i', b'!', 0] } else { &[] },
            data: &data,
        };
        pcapng::write_packet(&mut bytes, &packet).unwrap();
    }
    let path = dir.join("generated.pcapng");
    std::fs::write(&path, bytes).unwrap();
    path
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files = vec![generated(dir)];
    if let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") {
        let found = std::fs::read_dir(PathBuf::from(data).join("pcap"));
        files.extend(found.into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())));
    }
    files
}

#[test]
fn a_replayed_file_gives_all_its_packets_with_times_lengths_interfaces_and_options() {
    let dir = tempfile::tempdir().unwrap();
    for path in files(dir.path()) {
        let (opened, stop) = opened(&format!("replay:{}", path.display()), &max());
        assert_eq!(opened.kind, StreamKind::Packets);
        let interfaces = Preamble::validate(opened.preamble.as_deref().unwrap()).unwrap();
        let (collector, end) = Rig::start(opened, stop, 4).finish();
        assert_eq!(end.unwrap(), SourceEnd::Ended);
        assert_eq!(collector.gaps, []);
        let mut reader = Reader::new(std::fs::File::open(&path).unwrap());
        let mut elements = collector.elements.iter();
        while let Some(packet) = reader.next_packet().unwrap() {
            let element = elements.next().unwrap();
            assert_eq!(element.data, packet.data);
            assert_eq!((element.tag, element.event), (packet.interface, packet.time.map(|time| time.0)));
            assert_eq!(element.extra, packet.original_len - packet.data.len() as u32);
            assert!(usize::from(element.tag) < interfaces.len());
            assert!(element.meta.starts_with(packet.options));
        }
        assert!(elements.next().is_none());
    }
}

#[test]
fn a_filter_a_snap_length_and_a_loop_do_what_they_say() {
    let dir = tempfile::tempdir().unwrap();
    let path = generated(dir.path());
    let options =
        SourceOptions { filter: Some("greater 1000".into()), snaplen: Some(100), repeat: true, ..max() };
    let (opened, stop) = opened(&format!("replay:{}", path.display()), &options);
    let mut rig = Rig::start(opened, stop, 4);
    rig.collect_until(|collector| collector.elements.len() > 1000);
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert!(collector.elements.iter().all(|element| element.data.len() == 100 && element.extra >= 900));
    let first = collector.elements[0].event;
    assert!(
        collector.elements.iter().filter(|element| element.event == first).count() > 5,
        "times are original"
    );
}

// Promise 5: a length is never changed without a word.
#[test]
fn a_length_that_cannot_stay_is_reported_when_the_file_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("longer.pcap");
    let mut bytes = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 20, 1].map(u32::to_le_bytes).concat();
    for original in [42u32, 10] {
        bytes.extend([0, 0, 42, original].map(u32::to_le_bytes).concat());
        bytes.extend([7; 42]);
    }
    std::fs::write(&path, bytes).unwrap();
    let (opened, stop) = opened(&format!("replay:{}", path.display()), &max());
    let said = opened.notes.join("\n");
    for wanted in [
        "longer than the snapshot length of their interface, 20 bytes; recorded as 42 bytes",
        "original length is less than their captured length, which is recorded as both: 1",
    ] {
        assert!(said.contains(wanted), "{said}");
    }
    let (collector, _) = Rig::start(opened, stop, 4).finish();
    assert!(collector.elements.iter().all(|element| (element.data.len(), element.extra) == (42, 0)));
}

#[test]
fn a_truncated_capture_gives_what_is_whole_and_says_at_which_byte_it_breaks() {
    let dir = tempfile::tempdir().unwrap();
    let path = generated(dir.path());
    let mut reader = Reader::new(std::fs::File::open(&path).unwrap());
    for _ in 0..200 {
        reader.next_packet().unwrap().unwrap();
    }
    let at = reader.position();
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..at as usize + 33]).unwrap();
    let (opened, stop) = opened(&format!("replay:{}", path.display()), &max());
    assert!(opened.notes[0].contains("whole packets before it: 200"), "{:?}", opened.notes);
    let (collector, end) = Rig::start(opened, stop, 4).finish();
    let error = end.unwrap_err();
    assert!(matches!(error, SourceError::Packets { .. }));
    assert!(error.to_string().contains(&format!("is damaged at byte {at}: ")), "{error}");
    assert_eq!(collector.elements.len(), 200);
    assert_eq!(collector.gaps.len(), 1);
    assert_eq!((collector.gaps[0].cause, collector.gaps[0].elements), (Cause::SourceFailed as u8, None));
}

/// A block of pcapng.
fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let len = (12 + body.len() as u32).to_le_bytes();
    [&kind.to_le_bytes(), &len[..], body, &len].concat()
}

// Promise 2: what of a packet cannot be taken is told of before it is replayed.
#[test]
fn options_and_times_that_cannot_be_kept_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rich.pcapng");
    // Times in whole seconds, ten before 1970.
    let resolution = [&[9, 0, 1, 0, 0, 0, 0, 0, 14, 0, 8, 0], &(-10i64).to_le_bytes()[..]].concat();
    let interface = [&[1, 0, 0, 0, 0, 0, 0, 0], &resolution[..]].concat();
    let comment = [&[1, 0, 0x40, 0x9c][..], &b"c".repeat(40_000)].concat();
    let packet = |seconds: u32, comments: usize| {
        let head = [0, 0, seconds, 4, 4].map(u32::to_le_bytes).concat();
        block(6, &[&head, &b"data"[..], &comment.repeat(comments)].concat())
    };
    let section =
        block(0x0a0d_0d0a, &[&0x1a2b_3c4du32.to_le_bytes(), &[1, 0, 0, 0][..], &[0xff; 8]].concat());
    let packets = [packet(5, 1), packet(6, 3), packet(70, 2)].concat();
    std::fs::write(&path, [section, block(1, &interface), packets].concat()).unwrap();
    let (opened, stop) = opened(&format!("replay:{}", path.display()), &max());
    let said = opened.notes.join("\n");
    assert_eq!(opened.notes.len(), 2, "{said}");
    assert!(said.contains("64 KiB of them: 3\n") && said.ends_with("2262: 2"), "{said}");
    let (collector, end) = Rig::start(opened, stop, 4).finish();
    assert_eq!(end.unwrap(), SourceEnd::Ended);
    let told: Vec<_> = collector.elements.iter().map(|one| (one.meta.len(), one.event)).collect();
    assert_eq!(told, [(40_004, None), (40_004, None), (40_004, Some(60_000_000_000))]);
}

#[test]
fn what_is_no_capture_or_no_filter_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let stop = StopFlag::new().unwrap();
    let say = |path: &Path, options: &SourceOptions| {
        let spec: SourceSpec = format!("replay:{}", path.display()).parse().unwrap();
        open(&spec, options, &stop).unwrap_err().to_string()
    };
    let text = dir.path().join("text");
    std::fs::write(&text, "no packets here at all").unwrap();
    assert!(say(&text, &max()).contains("not a pcap, pcapng or MCAP file"));
    assert!(say(dir.path(), &max()).contains("only a regular file"));
    let filter = SourceOptions { filter: Some("tcp prot 80".into()), ..max() };
    assert!(say(&generated(dir.path()), &filter).contains("the filter `tcp prot 80` is not in the syntax"));
}

#[test]
fn replay_drops_by_policy_and_counts_every_packet() {
    let dir = tempfile::tempdir().unwrap();
    let path = generated(dir.path());
    let options = SourceOptions { overload: Some(Overload::DropNewest), ..max() };
    let (opened, stop) = opened(&format!("replay:{}", path.display()), &options);
    let mut rig = Rig::start(opened, stop, 4);
    let counters = rig.counters();
    while common::rig::count(&counters.elements) < 300 {
        rig.collector.hold_one(&mut rig.inlet);
        std::thread::yield_now();
    }
    let (collector, end) = rig.finish();
    assert_eq!(end.unwrap(), SourceEnd::Ended);
    assert_eq!(collector.elements.len() as u64 + collector.lost(Cause::NoBuffer as u8), 300);
}

/// Opens the loopback interface for the datagrams to one port; `None` without the privilege.
fn loopback(port: u16, overload: Overload, batches: usize) -> Option<Rig> {
    let options = SourceOptions {
        filter: Some(format!("udp dst port {port}")),
        overload: Some(overload),
        ..SourceOptions::default()
    };
    let stop = StopFlag::new().unwrap();
    match open(&SourceSpec::Iface("lo".into()), &options, &stop) {
        Ok(opened) => Some(Rig::start(opened, stop, batches)),
        Err(error) => {
            assert!(error.to_string().contains("no permission"), "{error}");
            println!("not tested: {error}");
            None
        }
    }
}

#[test]
fn every_packet_of_an_interface_is_recorded() {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let Some(mut rig) = loopback(receiver.local_addr().unwrap().port(), Overload::DropNewest, 4) else {
        return;
    };
    let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for n in 0..500usize {
        from.send_to(&vec![n as u8; n], receiver.local_addr().unwrap()).unwrap();
    }
    rig.collect_until(|collector| collector.elements.len() == 500);
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!(collector.gaps, []);
    for (n, element) in collector.elements.iter().enumerate() {
        assert!(element.data.ends_with(&vec![n as u8; n]) && element.event.is_some());
        assert_eq!(element.data.len(), 14 + 20 + 8 + n);
    }
}

#[test]
fn what_the_packet_ring_has_no_room_for_is_counted() {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let Some(mut rig) = loopback(receiver.local_addr().unwrap().port(), Overload::Block, 4) else { return };
    let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let mut sent = 0u64;
    let mut packet = || {
        from.send_to(&vec![5; 60_000], receiver.local_addr().unwrap()).unwrap();
        sent += 1;
    };
    // The source waits for a batch; then the kernel's 64 MiB fill up.
    while rig.collector.held.len() < 4 {
        packet();
        rig.collector.hold_one(&mut rig.inlet);
    }
    for _ in 0..2000 {
        packet();
    }
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    let dropped = collector.lost(Cause::Kernel as u8);
    assert!(dropped > 0);
    assert_eq!(collector.elements.len() as u64 + dropped, sent);
}

// Promise 2: nothing is dropped while the kernel's ring can keep it.
#[test]
fn while_capture_is_behind_packets_wait_in_the_kernels_ring() {
    const BATCHES: usize = 32;
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = receiver.local_addr().unwrap().port();
    let Some(mut rig) = loopback(port, Overload::DropNewest, BATCHES) else { return };
    let from = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    // Several times what the batches can take, and half of what the ring can.
    for n in 0..500u32 {
        let mut data = vec![0; 60_000];
        data[..4].copy_from_slice(&n.to_le_bytes());
        from.send_to(&data, receiver.local_addr().unwrap()).unwrap();
        if rig.collector.held.len() < BATCHES {
            rig.collector.hold_one(&mut rig.inlet);
        }
    }
    rig.collect_until(|all| all.elements.len() as u64 + all.lost(Cause::NoBuffer as u8) == 500);
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!(collector.gaps, []);
    for (n, element) in collector.elements.iter().enumerate() {
        assert_eq!(element.data[42..46], (n as u32).to_le_bytes());
    }
}
