//! TCP and UDP (promise 2): sent = recorded + gaps, with the kernel's drops among the gaps, whatever the pace.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::rig::{Rig, count, opened};
use holdfast_base::{Clock, SystemClock};
use holdfast_ingest::{Cause, Framing, Overload, SourceEnd, SourceOptions, SourceSpec, StopFlag, open};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

/// A port that was free a moment ago.
fn free_port(udp: bool) -> u16 {
    let any = (Ipv4Addr::LOCALHOST, 0);
    if udp {
        UdpSocket::bind(any).unwrap().local_addr().unwrap().port()
    } else {
        TcpListener::bind(any).unwrap().local_addr().unwrap().port()
    }
}

fn tcp(framing: Framing, overload: Overload) -> (Rig, SocketAddr) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(false)));
    let options =
        SourceOptions { framing: Some(framing), overload: Some(overload), ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("tcp:{address}"), &options);
    (Rig::start(opened, stop, 4), address)
}

// RFC 6587: both kinds, of two senders at once, in pieces.
#[test]
fn syslog_senders_with_and_without_counts_deliver_into_one_stream() {
    let (mut rig, address) = tcp(Framing::Syslog, Overload::Block);
    let senders: Vec<_> = [true, false]
        .into_iter()
        .map(|counts| {
            thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                for number in 0..100 {
                    let message = format!("<34>1 - host app - - {counts} {number}");
                    let framed =
                        if counts { format!("{} {message}", message.len()) } else { format!("{message}\n") };
                    let (first, second) = framed.as_bytes().split_at(number % framed.len());
                    stream.write_all(first).unwrap();
                    stream.write_all(second).unwrap();
                }
            })
        })
        .collect();
    for sender in senders {
        sender.join().unwrap();
    }
    rig.collect_until(|collector| collector.elements.len() == 200);
    let (collector, end) = rig.stop();
    assert!(matches!(end, Ok(SourceEnd::Stopped)) && collector.all_lost() == 0);
    for counts in [true, false] {
        let of = |e: &&common::Element| String::from_utf8_lossy(&e.data).contains(&counts.to_string());
        let seen: Vec<_> = collector.elements.iter().filter(of).map(|e| e.data.clone()).collect();
        let sent = |number| format!("<34>1 - host app - - {counts} {number}").into_bytes();
        assert!(seen == (0..100).map(sent).collect::<Vec<_>>());
    }
}

/// An element that says who sent it, its number, and is checkable.
fn element(producer: usize, number: usize, size: usize) -> Vec<u8> {
    let mut data = format!("{producer}:{number}:").into_bytes();
    let head = data.len();
    data.extend((head..size.max(head)).map(|at| (at * (producer + 3) + number) as u8 | 0x80));
    data
}

#[test]
fn many_producers_deliver_into_one_stream_and_none_breaks_anothers_elements() {
    let (mut rig, address) = tcp(Framing::Len32, Overload::Block);
    let producers = 20;
    let each = 60;
    // Some elements are small, some larger than what is kept aside, some larger than a batch.
    let size = |producer: usize, number: usize| match (producer + number) % 7 {
        0 => 30_000,
        1 if number % 20 == 1 => 400_000,
        n => n * 17,
    };
    let threads: Vec<_> = (0..producers)
        .map(|producer| {
            thread::spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                for number in 0..each {
                    let data = element(producer, number, size(producer, number));
                    let mut bytes = (data.len() as u32).to_le_bytes().to_vec();
                    bytes.extend(&data);
                    // In two parts, so that elements are open while others deliver.
                    let middle = bytes.len() * 2 / 3;
                    stream.write_all(&bytes[..middle]).unwrap();
                    thread::yield_now();
                    stream.write_all(&bytes[middle..]).unwrap();
                }
            })
        })
        .collect();
    rig.collect_until(|collector| collector.elements.len() == producers * each);
    for thread in threads {
        thread.join().unwrap();
    }
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!(collector.gaps, []);
    let mut next = vec![0; producers];
    for found in &collector.elements {
        let text = String::from_utf8_lossy(&found.data[..found.data.len().min(10)]).into_owned();
        let mut parts = text.split(':');
        let producer: usize = parts.next().unwrap().parse().unwrap();
        assert!(found.data == element(producer, next[producer], size(producer, next[producer])), "{text}");
        next[producer] += 1;
    }
    assert_eq!(next, vec![each; producers]);
}

#[test]
fn a_connection_that_breaks_inside_an_element_costs_just_that_element() {
    let (mut rig, address) = tcp(Framing::Fixed(100_000), Overload::Block);
    let mut good = TcpStream::connect(address).unwrap();
    good.write_all(&vec![1; 100_000]).unwrap();
    let mut bad = TcpStream::connect(address).unwrap();
    bad.write_all(&vec![2; 100_000 + 70_001]).unwrap();
    drop(bad);
    rig.collect_until(|collector| collector.elements.len() == 2 && collector.gaps.len() == 1);
    good.write_all(&vec![3; 100_000]).unwrap();
    rig.collect_until(|collector| collector.elements.len() == 3);
    assert_eq!(count(&rig.counters().connections), 1);
    let (collector, _) = rig.stop();
    assert_eq!(collector.lost(Cause::Aborted as u8), 1);
    assert_eq!(collector.recorded_bytes() + collector.lost_bytes(), 370_001);
    assert!(collector.elements.iter().zip([1, 2, 3]).all(|(e, n)| e.data.iter().all(|b| *b == n)));
}

#[test]
fn tcp_under_drop_newest_counts_all_that_it_drops() {
    let (mut rig, address) = tcp(Framing::Fixed(500), Overload::DropNewest);
    let counters = rig.counters();
    let mut stream = TcpStream::connect(address).unwrap();
    let mut sent = 0;
    // Until all batches are held and more is dropped.
    while counters.dropped(Cause::NoBuffer) < 1000 {
        stream.write_all(&vec![7; 5000]).unwrap();
        sent += 10;
        if rig.collector.held.len() < 4 {
            rig.collector.hold_one(&mut rig.inlet);
        }
    }
    stream.write_all(&[7; 250]).unwrap();
    drop(stream);
    rig.collect_until(|collector| collector.next == sent + 1);
    let (collector, _) = rig.stop();
    assert_eq!(collector.elements.len() as u64 + collector.all_lost(), sent + 1);
    assert_eq!(collector.recorded_bytes() + collector.lost_bytes(), sent * 500 + 250);
    assert!(collector.lost(Cause::NoBuffer as u8) >= 1000);
}

/// Waits until the kernel has handed over all that was sent: the other side may read it.
fn await_delivery(stream: &TcpStream) {
    let port = format!(":{:04X} ", stream.local_addr().unwrap().port());
    loop {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let mut ours = table.lines().filter_map(|line| line.split_once(": ").map(|(_, rest)| rest));
        let ours = ours.find(|rest| rest.get(8..14) == Some(&port)).unwrap();
        // The addresses, the state, and then what is not acknowledged yet.
        if ours.split_ascii_whitespace().nth(3).unwrap().starts_with("00000000:") {
            return;
        }
        thread::yield_now();
    }
}

#[test]
fn what_producers_sent_before_a_stop_is_recorded_or_counted() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(false)));
    let options = SourceOptions { framing: Some(Framing::Len32), ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("tcp:{address}"), &options);
    let producers: Vec<TcpStream> = (0..5)
        .map(|producer| {
            let mut stream = TcpStream::connect(address).unwrap();
            for number in 0..20 {
                let data = element(producer, number, 900);
                stream.write_all(&(data.len() as u32).to_le_bytes()).unwrap();
                stream.write_all(&data).unwrap();
            }
            // Two do not get to the end of another one.
            if producer % 2 == 1 {
                stream.write_all(&[100, 0, 0, 0, 1, 2, 3]).unwrap();
            }
            await_delivery(&stream);
            stream
        })
        .collect();
    // Before any of them is let in.
    stop.stop();
    let (collector, end) = Rig::start(opened, stop, 4).finish();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!((collector.elements.len(), collector.lost(Cause::Aborted as u8)), (100, 2));
    assert_eq!((collector.next, collector.lost_bytes()), (102, 6));
    for (at, found) in collector.elements.iter().enumerate() {
        assert!(found.data == element(at / 20, at % 20, 900), "{at}");
    }
    drop(producers);
}

#[test]
fn what_comes_behind_an_open_element_before_a_stop_is_taken() {
    let (mut rig, address) = tcp(Framing::Fixed(40_000), Overload::Block);
    let mut large = TcpStream::connect(address).unwrap();
    // Its element is begun, and too large to be set aside.
    large.write_all(&vec![1; 60_000]).unwrap();
    await_delivery(&large);
    rig.collect_until(|collector| collector.elements.len() == 1);
    let mut small = TcpStream::connect(address).unwrap();
    small.write_all(&vec![2; 40_000]).unwrap();
    await_delivery(&small);
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!((collector.elements.len(), collector.lost(Cause::Aborted as u8)), (2, 1));
    assert_eq!((collector.lost_bytes(), &collector.elements[1].data), (20_000, &vec![2; 40_000]));
}

#[test]
fn a_producer_that_never_pauses_does_not_keep_the_source_from_ending() {
    let (mut rig, address) = tcp(Framing::Fixed(1000), Overload::Block);
    let mut stream = TcpStream::connect(address).unwrap();
    // Until the connection is closed.
    let data = vec![7; 100_000];
    let producer = thread::spawn(move || while stream.write_all(&data).is_ok() {});
    rig.collect_until(|collector| collector.elements.len() > 1000);
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert!(collector.all_lost() <= 1, "{:?}", collector.gaps);
    producer.join().unwrap();
}

fn udp(overload: Overload) -> (Rig, UdpSocket) {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port(true)));
    let options = SourceOptions { overload: Some(overload), ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("udp:{address}"), &options);
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    sender.connect(address).unwrap();
    (Rig::start(opened, stop, 4), sender)
}

#[test]
fn every_datagram_is_an_element_the_empty_and_the_largest_too() {
    let (mut rig, sender) = udp(Overload::DropNewest);
    let sizes = [0usize, 1, 1400, 65_507, 0, 9000];
    for size in sizes {
        sender.send(&vec![size as u8; size]).unwrap();
    }
    rig.collect_until(|collector| collector.elements.len() == sizes.len());
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert!(collector.elements.iter().zip(sizes).all(|(e, size)| e.data == vec![size as u8; size]));
    assert_eq!(collector.gaps, []);
}

#[test]
fn datagrams_that_find_no_batch_are_counted_exactly() {
    let (mut rig, sender) = udp(Overload::DropNewest);
    let counters = rig.counters();
    let mut sent = 0u64;
    while counters.dropped(Cause::NoBuffer) < 500 {
        // Not more at once than surely fits the socket.
        for _ in 0..100 {
            sender.send(&[9; 1000]).unwrap();
            sent += 1;
        }
        if rig.collector.held.len() < 4 {
            rig.collector.hold_one(&mut rig.inlet);
        }
        while count(&counters.elements) + counters.dropped(Cause::Kernel) < sent {
            thread::yield_now();
        }
    }
    let (collector, _) = rig.stop();
    assert_eq!(collector.elements.len() as u64 + collector.all_lost(), sent);
    assert_eq!(collector.recorded_bytes() + collector.lost_bytes(), sent * 1000);
    assert!(collector.lost(Cause::NoBuffer as u8) >= 500);
}

#[test]
fn what_the_kernel_drops_is_counted_exactly_behind_the_last_datagram_too() {
    let (mut rig, sender) = udp(Overload::Block);
    // A source that waits does not read: the socket fills up, and the kernel drops.
    let mut sent = 0u64;
    while rig.collector.held.len() < 4 {
        sender.send(&[9; 1000]).unwrap();
        sent += 1;
        rig.collector.hold_one(&mut rig.inlet);
    }
    for _ in 0..80_000 {
        sender.send(&[9; 1400]).unwrap();
        sent += 1;
    }
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    let dropped = collector.lost(Cause::Kernel as u8);
    assert!(dropped > 0, "the socket has room for fewer");
    assert_eq!(collector.elements.len() as u64 + dropped, sent);
    assert_eq!(collector.all_lost(), dropped);
    assert!(collector.gaps.iter().all(|gap| gap.bytes.is_none()), "bytes are unknown, and say so");
}

#[test]
fn datagrams_go_on_behind_the_kernels_drops_and_the_gap_stands_between() {
    let (mut rig, sender) = udp(Overload::Block);
    let mut sent = 0u64;
    for lap in 1..=2 {
        // A source that waits does not read: the socket fills up, and the kernel drops.
        while rig.collector.held.len() < 4 {
            sender.send(&[9; 1000]).unwrap();
            sent += 1;
            rig.collector.hold_one(&mut rig.inlet);
        }
        for _ in 0..60_000 {
            sender.send(&[9; 1400]).unwrap();
            sent += 1;
        }
        rig.collect_until(|collector| collector.next == sent);
        for _ in 0..10 {
            sender.send(b"after").unwrap();
            sent += 1;
        }
        rig.collect_until(|collector| collector.next == sent);
        assert!(rig.collector.gaps.len() >= lap, "the socket has room for fewer");
    }
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!(collector.elements.last().unwrap().data, b"after");
    assert_eq!(collector.elements.len() as u64 + collector.lost(Cause::Kernel as u8), sent);
}

#[test]
fn the_times_of_a_gap_enclose_what_the_kernel_dropped() {
    let (mut rig, sender) = udp(Overload::Block);
    let clock = SystemClock::new();
    let mut bursts = Vec::new();
    for asks in [false, true, false] {
        while rig.collector.held.len() < 4 {
            sender.send(&[9; 1000]).unwrap();
            rig.collector.hold_one(&mut rig.inlet);
        }
        let begun = clock.now().0;
        for _ in 0..80_000 {
            sender.send(&[9; 1400]).unwrap();
        }
        if !asks {
            // There is room for one when the kernel has let go of some of the others, which it does in large portions:
            // that one tells of the drops.
            rig.collect_until(|collector| {
                let arrived = collector.elements.last().is_some_and(|element| element.data == b"after");
                if !arrived {
                    sender.send(b"after").unwrap();
                }
                arrived
            });
        }
        bursts.push((begun, clock.now().0));
        let known = bursts.len();
        rig.collect_until(|collector| collector.gaps.len() >= known);
    }
    let (collector, _) = rig.stop();
    assert!(collector.gaps.len() >= bursts.len(), "the socket has room for fewer");
    for gap in &collector.gaps {
        let within = |&(begun, ended): &(i64, i64)| gap.from <= ended && begun <= gap.to;
        assert!(bursts.iter().any(within), "{gap:?} {bursts:?}");
    }
    for (begun, ended) in bursts {
        assert!(collector.gaps.iter().any(|gap| gap.from <= ended && begun <= gap.to), "{begun} {ended}");
    }
}

#[test]
fn a_group_of_one_link_is_joined_on_an_interface_and_not_without() {
    if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("skipped: there is no IPv6 here");
        return;
    }
    let stop = StopFlag::new().unwrap();
    let try_open = |text: &str| open(&text.parse().unwrap(), &SourceOptions::default(), &stop);
    // Of a link, of an interface, and of a site, which needs no interface.
    for group in ["udp:[ff02::1234]:0@lo", "udp:[ff01::1234]:0@lo", "udp:[ff05::1234]:0@lo"] {
        assert!(try_open(group).is_ok(), "{group}: {:?}", try_open(group));
    }
    let said = try_open("udp:[ff02::1234]:6001").unwrap_err().to_string();
    assert!(said.contains("udp:[ff02::1234]:6001@INTERFACE"), "{said}");
}

#[test]
fn a_multicast_group_is_joined() {
    let port = free_port(true);
    let (opened, stop) = opened(&format!("udp:239.77.3.9:{port}@lo"), &SourceOptions::default());
    let mut rig = Rig::start(opened, stop, 4);
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    rustix::net::sockopt::set_ip_multicast_if_with_ifindex(
        &sender,
        &Ipv4Addr::UNSPECIFIED,
        &Ipv4Addr::LOCALHOST,
        1,
    )
    .unwrap();
    sender.send_to(b"to the group", (Ipv4Addr::new(239, 77, 3, 9), port)).unwrap();
    rig.collect_until(|collector| collector.elements.len() == 1);
    let (collector, _) = rig.stop();
    assert_eq!(collector.elements[0].data, b"to the group");
}

#[test]
fn addresses_that_cannot_be_had_are_refused_with_a_reason() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let stop = StopFlag::new().unwrap();
    let say = |text: String| {
        let spec: SourceSpec = text.parse().unwrap();
        open(&spec, &SourceOptions::default(), &stop).unwrap_err().to_string()
    };
    let said = say(format!("tcp:{}", taken.local_addr().unwrap()));
    assert!(said.contains("cannot listen there") && said.contains("another program has that port"), "{said}");
    let said = say("udp:192.0.2.1:5000".to_owned());
    assert!(said.contains("no interface has that address"), "{said}");
    let said = say("udp:239.1.2.3:5000@none0".to_owned());
    assert!(said.contains("no such interface"), "{said}");
    let said = say("udp:127.0.0.1:0@lo".to_owned());
    assert!(said.contains("only a multicast group"), "{said}");
}
