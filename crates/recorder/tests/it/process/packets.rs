//! Tests of packets from several rings of the kernel through the whole recorder: promises 1 and 2 on a virtual link.
//! Needs root; where no such link can be created each test says so and ends.

use crate::process::common::{Contents, Recorder, TestFolder};
use crate::process::link::{self, Link};
use holdfast_format::Cause;
use holdfast_protocol::wire::{SourceState, SourceStatus};
use rustix::process::Signal;

/// A broadcast UDP packet of one of 256 flows, that carries its number; `size` from 60 on.
fn packet(number: u32, size: usize) -> Vec<u8> {
    let mut packet = vec![0xff; 6];
    packet.extend([2, 0, 0, 0, 0, 9, 8, 0]);
    let len = (size - 14) as u16;
    packet.extend([0x45, 0]);
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 255]);
    let sum: u32 =
        packet[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    packet[24..26].copy_from_slice(&sum.to_be_bytes());
    packet.extend((10_000 + number as u16 % 256).to_be_bytes());
    packet.extend(9u16.to_be_bytes());
    packet.extend((len - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(number.to_be_bytes());
    packet.extend((packet.len()..size).map(|at| (at * 7) as u8));
    packet
}

fn number(data: &[u8]) -> u32 {
    u32::from_be_bytes(data[42..46].try_into().unwrap())
}

fn start(place: &TestFolder, link: &Link, size: &str, rings: &str) -> Recorder {
    let source = format!("iface:{}", link.near);
    let filter = "udp and src host 192.0.2.1";
    place.start(&[
        "--size", size, "--slot", "1MiB", "--json", "--source", &source, "--name", "net", "--filter", filter,
        "--rings", rings,
    ])
}

/// Sockets that listen to all packets of the link.
fn sockets(link: &Link) -> usize {
    let index = std::fs::read_to_string(format!("/sys/class/net/{}/ifindex", link.near)).unwrap();
    let all = std::fs::read_to_string("/proc/net/packet").unwrap();
    all.lines().filter(|line| line.split_whitespace().nth(4) == Some(index.trim())).count()
}

/// Waits until so many are packed or known to be dropped; what was dropped, by cause.
fn await_all(recorder: &Recorder, sent: u64) -> Vec<(Cause, u64)> {
    let mut connection = recorder.connect();
    loop {
        let status = connection.status().unwrap().recorder.unwrap();
        let source = &status.sources[0];
        let dropped: u64 = source.dropped.iter().map(|d| d.elements).sum();
        assert!(source.packed_elements + dropped <= sent, "{source:?}");
        if source.packed_elements + dropped == sent {
            return source.dropped.iter().map(|d| (d.cause, d.elements)).collect();
        }
    }
}

/// Every packet is there once, as it was sent, or in a gap; how many are in gaps, by cause.
fn accounted(contents: &Contents, sent: &[Vec<u8>]) -> Vec<(Cause, u64)> {
    assert!(contents.damaged.is_empty() && contents.partial == 0 && contents.expired.is_empty());
    let mut seen = vec![false; sent.len()];
    for (_, ordinal, data) in &contents.elements {
        let number = number(data) as usize;
        assert!(data == &sent[number], "ordinal {ordinal}");
        assert!(!std::mem::replace(&mut seen[number], true), "packet {number} is there twice");
    }
    let mut lost: Vec<(Cause, u64)> = Vec::new();
    let mut ordinals: Vec<(u64, u64)> = contents.elements.iter().map(|(_, first, _)| (*first, 1)).collect();
    for (_, first, skipped, elements, cause) in &contents.gaps {
        assert_eq!(*elements, Some(*skipped), "{cause:?}");
        ordinals.push((*first, *skipped));
        match lost.iter_mut().find(|(known, _)| known == cause) {
            Some((_, count)) => *count += skipped,
            None => lost.push((*cause, *skipped)),
        }
    }
    ordinals.sort_unstable();
    let mut next = 0;
    for (first, count) in ordinals {
        assert_eq!(first, next, "a hole in the ordinals, or one twice");
        next += count;
    }
    assert_eq!(next, sent.len() as u64);
    lost.sort_unstable_by_key(|(cause, _)| *cause as u8);
    lost
}

#[test]
fn three_rings_give_the_ring_on_disk_every_packet_once() {
    let Some(link) = Link::make() else { return };
    let place = TestFolder::in_memory();
    let recorder = start(&place, &link, "32MiB", "3");
    assert_eq!(sockets(&link), 3);
    let sent: Vec<Vec<u8>> = (0..9000).map(|n| packet(n, 60 + n as usize % 1440)).collect();
    for part in sent.chunks(3000) {
        link.send(part);
    }
    assert_eq!(await_all(&recorder, sent.len() as u64), []);
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.out.contains("\"elements\":9000,"), "{}", ended.out);
    assert_eq!(accounted(&place.contents(), &sent), []);
}

#[test]
fn what_the_kernel_drops_of_several_rings_is_a_gap_of_just_that_size() {
    let Some(link) = Link::make() else { return };
    let place = TestFolder::in_memory();
    let recorder = start(&place, &link, "256MiB", "2");
    // More than both rings hold, while nobody empties them.
    recorder.signal(Signal::STOP);
    let sent: Vec<Vec<u8>> = (0..110_000).map(|n| packet(n, 1500)).collect();
    link.send(&sent);
    recorder.signal(Signal::CONT);
    // What was still in the kernel when it went on may have been too much for the buffers, too.
    let mut dropped = await_all(&recorder, sent.len() as u64);
    dropped.sort_unstable_by_key(|(cause, _)| *cause as u8);
    assert!(dropped.iter().any(|(cause, count)| *cause == Cause::Kernel && *count > 0), "{dropped:?}");
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    let lost: u64 = dropped.iter().map(|(_, count)| count).sum();
    assert!(ended.out.contains(&format!("\"lost_elements\":{lost},")), "{}", ended.out);
    assert_eq!(accounted(&place.contents(), &sent), dropped);
}

/// Waits until its source is as wanted.
fn await_source(recorder: &Recorder, wanted: impl Fn(&SourceStatus) -> bool) -> SourceStatus {
    let mut connection = recorder.connect();
    loop {
        let source = connection.status().unwrap().recorder.unwrap().sources.remove(0);
        if wanted(&source) {
            return source;
        }
    }
}

#[test]
fn what_was_perhaps_lost_before_us_is_told_while_it_is_recorded_and_at_the_end() {
    let Some(link) = Link::make() else { return };
    let place = TestFolder::in_memory();
    let recorder = start(&place, &link, "32MiB", "1");
    // From here on it has looked what the interface had lost before.
    link.send(&[packet(0, 60)]);
    recorder.await_packed(1);
    // The near end takes nothing of this size any more, and counts it. A virtual link tells its sender so.
    assert!(link::run("ip", &["link", "set", &link.near, "mtu", "500"]));
    let lose = |number| {
        link.inside(|| {
            let mut sender = pcap::Capture::from_device(&link.far[..]).unwrap().open().unwrap();
            assert!(sender.sendpacket(packet(number, 1000)).is_err());
        });
    };
    lose(1);
    lose(2);
    link.send(&[packet(3, 60)]);
    // The same counter also has what was recorded and then thrown away: the kernel tells no more.
    let source = await_source(&recorder, |source| source.perhaps_lost == 2);
    assert_eq!((source.dropped, source.unknown_losses, source.interface_drops), (Vec::new(), 0, 0));
    lose(4);
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.out.contains("\"lost_elements\":0,"), "{}", ended.out);
    let said = "\"interface_drops\":0,\"interface_perhaps_lost\":3,";
    assert!(ended.out.contains(said), "what came last is among them: {}", ended.out);
}

// Promise 2: sent is recorded, and what is in gaps, and what was lost before us. Nothing of it is counted twice.
#[test]
fn frames_that_only_the_recorder_wants_are_recorded_and_are_no_known_loss() {
    let Some(link) = Link::make() else { return };
    let place = TestFolder::in_memory();
    let source = format!("iface:{}", link.near);
    let ours = ["--filter", "ether src 02:00:00:00:00:09"];
    let options = ["--size", "32MiB", "--slot", "1MiB", "--json", "--source", &source, "--name", "net"];
    let recorder = place.start(&[&options[..], &ours].concat());
    let mut sent: Vec<Vec<u8>> = vec![link::frame(0, 60)];
    link.send(&sent);
    recorder.await_packed(1);
    let tagged: Vec<Vec<u8>> = (1..51).map(link::tagged).collect();
    link.send(&tagged);
    sent.extend(tagged);
    // On a port of a bridge there are such without a tag.
    let bridge = link.bridge();
    if bridge.is_some() {
        let untagged: Vec<Vec<u8>> = (51..81).map(link::for_the_port).collect();
        link.send(&untagged);
        sent.extend(untagged);
    }
    let thrown_away = sent.len() as u64 - 1;
    recorder.await_packed(sent.len() as u64);
    let source = await_source(&recorder, |source| source.perhaps_lost == thrown_away);
    assert_eq!((source.dropped, source.unknown_losses, source.interface_drops), (Vec::new(), 0, 0));
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.out.contains("\"lost_elements\":0,"), "{}", ended.out);
    let there: Vec<Vec<u8>> = place.contents().elements.into_iter().map(|(_, _, data)| data).collect();
    assert_eq!(there, sent);
}

#[test]
fn a_source_whose_interface_is_switched_off_says_so_until_it_is_on_again() {
    let Some(link) = Link::make() else { return };
    let place = TestFolder::in_memory();
    let recorder = start(&place, &link, "32MiB", "2");
    link.send(&[packet(0, 60)]);
    recorder.await_packed(1);
    link.set("down");
    let source = await_source(&recorder, |source| !source.error.is_empty());
    assert_eq!((source.state, &source.error[..]), (SourceState::Running, "the interface is down or removed"));
    link.set("up");
    await_source(&recorder, |source| source.error.is_empty());
    link.send(&[packet(1, 60)]);
    recorder.await_packed(2);
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert_eq!(place.contents().elements.len(), 2);
}

// Promise 2, without the privileges that the source was opened with.
#[test]
fn a_source_whose_interface_is_removed_goes_on_with_the_next_one_of_the_name() {
    let Some(link) = Link::make() else { return };
    let place = TestFolder::in_memory();
    let recorder = start(&place, &link, "32MiB", "1");
    link.send(&[packet(0, 60)]);
    recorder.await_packed(1);
    link.remove();
    await_source(&recorder, |source| !source.error.is_empty());
    assert!(link.connect());
    await_source(&recorder, |source| source.unknown_losses == 1 && source.error.is_empty());
    link.send(&[packet(1, 60)]);
    recorder.await_packed(2);
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.out.contains("\"interrupted\":1,"), "{}", ended.out);
    let contents = place.contents();
    assert_eq!(
        contents.elements.iter().map(|(_, at, data)| (*at, number(data))).collect::<Vec<_>>(),
        [(0, 0), (1, 1)]
    );
    let gaps: Vec<_> = contents.gaps.iter().map(|gap| (gap.1, gap.3, gap.4)).collect();
    assert_eq!(gaps, [(1, None, Cause::Upstream)]);
}
