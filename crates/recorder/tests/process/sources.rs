//! Promise 2 through the whole program, for every kind of source: what was sent is on the ring, or in a gap that says
//! how much it was. Packets of an interface are in `packets`.

use crate::common::{Place, Recorder, reader};
use crate::link::{Link, run};
use holdfast_format::Cause;
use holdfast_link::{Item, Selection};
use rustix::process::Signal;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::ops::ControlFlow;
use std::path::Path;

/// What is on a ring: elements in their order, and the sums of the gaps.
#[derive(Debug, Default)]
struct Account {
    elements: Vec<Vec<u8>>,
    /// Event and arrival time of each.
    times: Vec<(Option<i64>, i64)>,
    lost: u64,
    lost_bytes: u64,
    /// Elements of gaps by cause.
    causes: Vec<(Cause, u64)>,
}

impl Account {
    /// Reads all; what is there may not be damaged, and every ordinal must be accounted for once.
    fn of(ring: &Path) -> Self {
        let mut reader = reader(ring);
        let plan = reader.plan(&Selection::ALL).unwrap();
        let mut all = Self::default();
        let mut ordinals = Vec::new();
        reader
            .read(&plan, &mut |item| {
                match item {
                    Item::Element(e) => {
                        ordinals.push((e.ordinal.0, 1));
                        all.elements.push(e.data.to_vec());
                        all.times.push((e.event.map(|at| at.0), e.arrival.0));
                    }
                    Item::Gap { ordinal, gap, .. } => {
                        ordinals.push((ordinal.0, gap.ordinals));
                        assert_eq!(gap.elements, Some(gap.ordinals), "{gap:?}");
                        all.lost += gap.ordinals;
                        all.lost_bytes += gap.bytes.unwrap_or(0);
                        all.causes.push((gap.cause, gap.ordinals));
                    }
                    Item::Damaged { place, .. } => panic!("{place}"),
                    Item::Expired { .. } => panic!("the ring is too small"),
                    _ => {}
                }
                ControlFlow::Continue(())
            })
            .unwrap();
        ordinals.sort_unstable();
        let mut next = 0;
        for (first, count) in ordinals {
            assert_eq!(first, next, "a hole in the ordinals, or one twice");
            next += count;
        }
        all
    }

    fn sent(&self) -> u64 {
        self.elements.len() as u64 + self.lost
    }

    fn bytes(&self) -> u64 {
        self.elements.iter().map(|element| element.len() as u64).sum()
    }

    fn lost_to(&self, cause: Cause) -> u64 {
        self.causes.iter().filter(|(known, _)| *known == cause).map(|(_, count)| count).sum()
    }
}

fn with<'a>(options: &[&'a str]) -> Vec<&'a str> {
    ["--slot", "1MiB", "--json"].iter().chain(options).copied().collect()
}

/// The number of a key in the summary, the stream's.
fn told(summary: &str, key: &str) -> u64 {
    let stream = &summary[summary.find("\"streams\":").unwrap()..];
    let at = stream.find(&format!("\"{key}\":")).unwrap() + key.len() + 3;
    stream[at..].chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

/// Ends it; the summary says the same as the ring.
fn settle(place: &Place, recorder: Recorder) -> Account {
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
    let account = Account::of(&place.ring);
    for (key, value) in [
        ("elements", account.elements.len() as u64),
        ("bytes", account.bytes()),
        ("lost_elements", account.lost),
        ("lost_bytes", account.lost_bytes),
    ] {
        assert_eq!(told(&ended.out, key), value, "{key}: {}", ended.out);
    }
    account
}

/// Waits until so many are packed or dropped.
fn await_all(recorder: &Recorder, sent: u64) {
    let mut connection = recorder.connect();
    loop {
        let status = connection.status().unwrap().recorder.unwrap();
        let source = &status.sources[0];
        assert_eq!(source.error, "");
        let dropped: u64 = source.dropped.iter().map(|d| d.elements).sum();
        assert!(source.packed_elements + dropped <= sent, "{source:?}");
        if source.packed_elements + dropped == sent {
            return;
        }
    }
}

#[test]
fn udp_goes_on_behind_what_the_kernel_dropped() {
    let place = Place::in_memory();
    let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let source = format!("udp:127.0.0.1:{port}");
    let recorder = place.start(&with(&["--size", "256MiB", "--source", &source, "--name", "net"]));
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    sender.connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    // More than the socket holds, while nobody empties it.
    recorder.signal(Signal::STOP);
    let mut sent: Vec<Vec<u8>> = (0..60_000u32).map(|n| n.to_le_bytes().repeat(300)).collect();
    for datagram in &sent {
        sender.send(datagram).unwrap();
    }
    recorder.signal(Signal::CONT);
    await_all(&recorder, sent.len() as u64);
    for n in 60_000..60_010u32 {
        sent.push(n.to_le_bytes().repeat(300));
        sender.send(&sent[n as usize]).unwrap();
    }
    await_all(&recorder, sent.len() as u64);
    let account = settle(&place, recorder);
    assert_eq!(account.sent(), sent.len() as u64);
    assert!(account.lost_to(Cause::Kernel) > 0, "the socket has room for fewer");
    assert!(account.elements.ends_with(&sent[60_000..]));
    let mut sent = sent.iter();
    assert!(account.elements.iter().all(|element| sent.any(|datagram| datagram == element)), "in order");
}

#[test]
fn a_link_local_group_of_ipv6_is_received_on_its_interface() {
    let Some(link) = Link::make() else { return };
    // The link was made quiet: here it needs its addresses.
    let speak = |name: &str| std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "0");
    let address = |line: String| run("ip", &line.split(' ').collect::<Vec<_>>());
    let ready = speak(&link.near).is_ok()
        && link.inside(|| speak(&link.far)).is_ok()
        && address(format!("-6 addr add fe80::71/64 dev {} nodad", link.near))
        && link.inside(|| address(format!("-6 addr add fe80::72/64 dev {} nodad", link.far)));
    if !ready {
        println!("skipped: there is no IPv6 here");
        return;
    }
    let place = Place::new();
    let port = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let source = format!("udp:[ff02::1234]:{port}@{}", link.near);
    let recorder = place.start(&with(&["--size", "16MiB", "--source", &source, "--name", "feed"]));
    let sent = link.inside(|| {
        let sender =
            UdpSocket::bind("[fe80::72%0]:0".replace("%0", &format!("%{}", index(&link.far)))).unwrap();
        let to = SocketAddrV6::new("ff02::1234".parse().unwrap(), port, 0, index(&link.far));
        let sent: Vec<Vec<u8>> = (0..50u32).map(|n| n.to_le_bytes().repeat(100)).collect();
        for datagram in &sent {
            sender.send_to(datagram, to).unwrap();
        }
        sent
    });
    await_all(&recorder, 50);
    assert_eq!(settle(&place, recorder).elements, sent);
}

/// An interface's number.
fn index(name: &str) -> u32 {
    let any = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
    rustix::net::netdevice::name_to_index(any, name).unwrap()
}

#[test]
fn elements_that_tcp_producers_break_off_are_gaps_with_all_their_bytes() {
    let place = Place::in_memory();
    let port = free_tcp_port();
    let source = format!("tcp:127.0.0.1:{port}");
    let recorder = place.start(&with(&["--size", "256MiB", "--source", &source, "--name", "s"]));
    // Small and large, in one batch and over several slots; some break off within their length.
    let mut chance = 1u64;
    let mut random = |below: u64| {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (chance >> 33) % below
    };
    let (mut whole, mut broken, mut bytes) = (Vec::new(), 0, 0);
    for (n, most) in [100, 20_000, 200_000, 1_000_000, 4_000_000].repeat(8).into_iter().enumerate() {
        let mut producer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let mut element = || (0..=random(most)).map(|at| (at * 7 + n as u64) as u8).collect::<Vec<u8>>();
        let (first, second) = (element(), element());
        let came = random(second.len() as u64) as usize;
        for (element, came) in [(&first, first.len()), (&second, came)] {
            producer.write_all(&(element.len() as u32).to_le_bytes()).unwrap();
            producer.write_all(&element[..came]).unwrap();
            bytes += came as u64;
        }
        whole.push(first);
        broken += 1;
        drop(producer);
        // One after the other, so that the order is known.
        await_all(&recorder, 2 * broken);
    }
    let account = settle(&place, recorder);
    assert!(account.elements == whole);
    assert_eq!((account.lost_to(Cause::Aborted), account.lost), (broken, broken));
    assert_eq!(account.bytes() + account.lost_bytes, bytes, "sent = recorded + gaps");
}

#[test]
fn a_file_that_is_cut_is_recorded_as_far_as_it_is_whole_and_the_rest_is_counted() {
    let place = Place::in_memory();
    for (n, came) in [0usize, 1, 100_000, 10_000_000].into_iter().enumerate() {
        let file = place.path(&format!("cut{n}"));
        let element = vec![n as u8; 100_000];
        let mut input = Vec::new();
        for size in [element.len(), 20_000_000] {
            input.extend((size as u32).to_le_bytes());
            input.extend(&element[..size.min(element.len())]);
        }
        input.resize(element.len() + 8 + came, 7);
        std::fs::write(&file, &input).unwrap();
        let place = Place::in_memory();
        let source = format!("file:{}", file.display());
        let frame = ["--size", "64MiB", "--source", &source, "--name", "s", "--frame", "len32"];
        let ended = place.record(&with(&frame), &[]);
        assert_eq!(ended.status.code(), Some(1), "{}", ended.err);
        assert!(ended.err.contains(&format!("{came} of 20000000 bytes")), "{}", ended.err);
        let account = Account::of(&place.ring);
        assert_eq!(account.elements, [element]);
        assert_eq!((account.lost_to(Cause::Aborted), account.lost_bytes), (1, came as u64));
        assert_eq!((told(&ended.out, "bytes"), told(&ended.out, "lost_bytes")), (100_000, came as u64));
    }
}

fn free_tcp_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}
