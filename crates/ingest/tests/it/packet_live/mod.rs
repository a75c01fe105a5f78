//! Tests of the live receiver on a virtual link between two network name spaces: every packet is accounted for
//! (promises 1 and 2), as it was sent (promise 5), and no packet that was sent elsewhere. Needs root; where such a link
//! cannot be created each test says so and ends.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

pub(crate) mod link;
mod removal;

use crate::common;

use common::rig::{Rig, opened};
use holdfast_base::Timestamp;
use holdfast_ingest::SourceOptions;
use holdfast_ingest::packet::af_packet::{
    Capture, CaptureError, Fanout, InterfaceCounters, KernelCounters, LivePacket, Options, TimeSource,
};
use holdfast_ingest::packet::filter::FilterError;
use holdfast_ingest::packet::{Direction, Flags, LinkType, Preamble, Reception};
use link::{EXPERIMENTAL, Link, for_the_port, frame, number, tagged};
use rustix::net::sockopt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

/// What a test remembers of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    data: Vec<u8>,
    original_len: u32,
    time: Timestamp,
    flags: Flags,
}

impl From<LivePacket<'_>> for Seen {
    fn from(packet: LivePacket<'_>) -> Self {
        assert_eq!(packet.hardware_time, None);
        Self {
            data: packet.data.to_vec(),
            original_len: packet.original_len,
            time: packet.time,
            flags: packet.flags,
        }
    }
}

/// Waits for so many packets. Gives up when none comes for long, so that a loss fails the test instead of hanging it.
fn take(capture: &mut Capture, wanted: usize) -> Vec<Seen> {
    let mut seen = Vec::new();
    while seen.len() < wanted {
        if !capture.poll(Duration::from_secs(10)).unwrap() {
            break;
        }
        capture.take_block(|packet| seen.push(packet.into()));
    }
    assert_eq!(capture.counters().unwrap().malformed, 0);
    seen
}

/// The same for packets of the test, among which the machine's own may be.
fn take_ours(capture: &mut Capture, wanted: usize) -> Vec<Seen> {
    let mut ours = Vec::new();
    while ours.len() < wanted {
        let seen = take(capture, 1);
        if seen.is_empty() {
            break;
        }
        ours.extend(seen.into_iter().filter(|packet| number(&packet.data).is_some()));
    }
    ours
}

fn only(mut captures: Vec<Capture>) -> Capture {
    assert_eq!(captures.len(), 1);
    captures.remove(0)
}

/// Everything of the test's own protocol on the near end of the link.
fn options(link: &Link) -> Options {
    Options {
        filter: Some(format!("ether proto {EXPERIMENTAL:#x}")),
        retire: Duration::from_millis(10),
        ..Options::new(&link.near)
    }
}

#[test]
fn all_that_was_sent_is_there_as_it_was_sent() {
    let Some(link) = Link::make() else { return };
    let start = Timestamp(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as i64);
    // No filter: also what the machine itself may send there must be accounted for.
    let all = Options { filter: None, promiscuous: true, ..options(&link) };
    let before = InterfaceCounters::read(&link.near).unwrap();
    let mut capture = only(Capture::open(&all).unwrap());
    assert_eq!((capture.link_type(), capture.time_source()), (LinkType::ETHERNET, TimeSource::Kernel));
    let sent: Vec<Vec<u8>> = (0..5000).map(|n| frame(n, 20 + n as usize % 1480)).collect();
    link.send(&sent);
    let mut seen = take(&mut capture, sent.len());
    let received = |seen: &[Seen]| {
        seen.iter().filter(|packet| packet.flags.direction() == Direction::Inbound).count() as u64
    };
    let mut after = InterfaceCounters::read(&link.near).unwrap();
    // Should the machine itself have said something on the link, that is still to come.
    while received(&seen) < after.rx_packets - before.rx_packets {
        let more = take(&mut capture, 1);
        assert!(!more.is_empty(), "the interface counted more than was seen");
        seen.extend(more);
        after = InterfaceCounters::read(&link.near).unwrap();
    }
    assert_eq!(received(&seen), after.rx_packets - before.rx_packets);
    assert_eq!(after.lost_before(), before.lost_before());
    let counted = capture.counters().unwrap();
    assert_eq!((counted.received, counted.dropped, counted.full), (seen.len() as u64, 0, 0));
    seen.retain(|packet| number(&packet.data).is_some());
    assert_eq!(seen.len(), sent.len());
    for (packet, sent) in seen.iter().zip(&sent) {
        assert_eq!((&packet.data, packet.original_len as usize), (sent, sent.len()));
        assert_eq!(packet.flags, Flags::new(Direction::Inbound, Reception::Broadcast));
        assert!(packet.time >= start);
    }
    let preamble = Preamble::live(&[capture.describe()]).unwrap();
    assert_eq!(preamble.interfaces()[0].name(), Some(&link.near[..]));
}

/// Whether the interface takes frames for others, as the kernel has it.
fn takes_all(link: &Link) -> bool {
    let flags = std::fs::read_to_string(format!("/sys/class/net/{}/flags", link.near)).unwrap();
    let flags = u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap();
    flags & libc::IFF_PROMISC as u32 != 0
}

#[test]
fn an_interface_takes_frames_for_others_while_a_promiscuous_capture_wants_them() {
    let Some(link) = Link::make() else { return };
    let mut elsewhere = frame(7, 60);
    elsewhere[..6].copy_from_slice(&[2, 0, 0, 0, 0, 77]);
    for (promiscuous, rings) in [(false, 1), (true, 1), (true, 3)] {
        let mut captures = Capture::open(&Options { promiscuous, rings, ..options(&link) }).unwrap();
        assert_eq!(takes_all(&link), promiscuous);
        if promiscuous && rings == 1 {
            link.send(std::slice::from_ref(&elsewhere));
            let seen = take(&mut captures[0], 1);
            assert_eq!(seen[0].data, elsewhere);
            assert_eq!(seen[0].flags, Flags::new(Direction::Inbound, Reception::Promiscuous));
        }
        drop(captures);
        // As it was, as soon as no program that another test is just starting has the socket, too.
        let closed = Instant::now();
        while takes_all(&link) {
            assert!(closed.elapsed() < Duration::from_mins(1), "it takes all frames for ever");
            std::thread::yield_now();
        }
    }
}

#[test]
fn what_the_kernel_drops_is_counted_exactly() {
    let Some(link) = Link::make() else { return };
    let small = Options { block_bytes: 128 << 10, blocks: 2, ..options(&link) };
    let mut capture = only(Capture::open(&small).unwrap());
    let sent: Vec<Vec<u8>> = (0..2000).map(|n| frame(n, 1000)).collect();
    link.send(&sent);
    let counted = capture.counters().unwrap();
    assert!(counted.dropped > 0 && counted.full > 0, "{counted:?}");
    assert_eq!(counted.received + counted.dropped, sent.len() as u64);
    let first = take(&mut capture, counted.received as usize);
    assert_eq!(first.len() as u64, counted.received);
    // The ring works on, and its counters go on from where they were.
    link.send(&sent[..7]);
    let more = take(&mut capture, 7);
    assert_eq!(more.len(), 7);
    let later = capture.counters().unwrap();
    assert_eq!((later.received, later.dropped), (counted.received + 7, counted.dropped));
    let numbers: Vec<u32> = first.iter().map(|packet| number(&packet.data).unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b));
    assert!(first.iter().all(|packet| packet.data.len() == 1000));
}

// Promise 1: one thread waits for all rings at once, and has what comes to any of them as soon as it is there.
#[test]
fn several_rings_are_waited_for_at_once() {
    let Some(link) = Link::make() else { return };
    let shared = Options { rings: 3, fanout: Fanout::RoundRobin, ..options(&link) };
    let mut captures = Capture::open(&shared).unwrap();
    assert!(!Capture::poll_any(&mut captures, Duration::from_millis(1)).unwrap());
    let mut seen = [0; 3];
    // One at a time, so that each has a ring to itself, whichever that is.
    for sent in 0..9 {
        link.send(&[frame(sent, 60)]);
        assert!(Capture::poll_any(&mut captures, Duration::from_mins(1)).unwrap());
        for (seen, capture) in seen.iter_mut().zip(&mut captures) {
            capture.take_block(|_| *seen += 1);
        }
    }
    assert_eq!(seen, [3; 3]);
    // That the link is down is told by each of them.
    link.set("down");
    for _ in 0..3 {
        let error = Capture::poll_any(&mut captures, Duration::from_mins(1)).unwrap_err();
        assert!(matches!(error, CaptureError::Down { .. }), "{error}");
    }
    assert!(!Capture::poll_any(&mut captures, Duration::from_millis(1)).unwrap());
}

/// All these frames are seen; how many of them the interface counts as perhaps lost, once that is `wanted`.
fn all_seen(link: &Link, sent: &[Vec<u8>], wanted: u64) {
    let all = Options { filter: Some("ether src 02:00:00:00:00:09".into()), ..options(link) };
    let mut capture = only(Capture::open(&all).unwrap());
    let before = InterfaceCounters::read(&link.near).unwrap();
    link.send(sent);
    let seen: Vec<Vec<u8>> = take(&mut capture, sent.len()).into_iter().map(|packet| packet.data).collect();
    assert_eq!(seen, sent);
    // The last one is counted a moment after it was seen.
    let sought = Instant::now();
    let after = loop {
        let after = InterfaceCounters::read(&link.near).unwrap();
        if after.perhaps_lost() - before.perhaps_lost() >= wanted {
            break after;
        }
        assert!(sought.elapsed() < Duration::from_mins(1), "{after:?}");
    };
    assert_eq!(after.perhaps_lost() - before.perhaps_lost(), wanted);
    assert_eq!(after.lost_before(), before.lost_before());
}

// Promise 2: what is there is not lost, though nobody else wanted it.
#[test]
fn frames_that_nobody_else_wants_are_seen_and_are_no_known_loss() {
    let Some(link) = Link::make() else { return };
    all_seen(&link, &(0..50).map(tagged).collect::<Vec<_>>(), 50);
    let Some(_bridge) = link.bridge() else { return };
    all_seen(&link, &(50..80).map(for_the_port).collect::<Vec<_>>(), 30);
}

#[test]
fn vlan_tags_are_where_they_were_on_the_wire() {
    let Some(link) = Link::make() else { return };
    let tagged = |n: u32, tags: &[[u8; 4]]| {
        let plain = frame(n, 60);
        [&plain[..12], &tags.concat(), &plain[12..]].concat()
    };
    let sent = [
        tagged(0, &[]),
        tagged(1, &[[0x81, 0, 0x20, 5]]),
        tagged(2, &[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 5]]),
        tagged(3, &[[0x81, 0, 0, 6]]),
        tagged(4, &[[0x81, 0, 0, 5]]),
    ];
    let all = Options { filter: None, ..options(&link) };
    let filtered = Options { filter: Some("vlan 5".into()), ..options(&link) };
    let cut = Options { filter: Some("vlan 6".into()), snaplen: 20, ..options(&link) };
    let mut captures: Vec<Capture> =
        [all, filtered, cut].iter().map(|options| only(Capture::open(options).unwrap())).collect();
    link.send(&sent);
    let mut seen = take(&mut captures[0], sent.len());
    seen.retain(|packet| packet.data[..6] == sent[0][..6]);
    let data: Vec<&[u8]> = seen.iter().map(|packet| &packet.data[..]).collect();
    assert_eq!(data, sent);
    assert!(seen.iter().all(|packet| packet.original_len as usize == packet.data.len()));
    let seen = take(&mut captures[1], 2);
    assert_eq!([&seen[0].data, &seen[1].data], [&sent[1], &sent[4]]);
    let seen = take(&mut captures[2], 1);
    assert_eq!((&seen[0].data[..], seen[0].original_len), (&sent[3][..20], 64));
}

#[test]
fn the_snap_length_cuts_and_the_original_length_stays() {
    let Some(link) = Link::make() else { return };
    for filter in [None, options(&link).filter] {
        let mut capture = only(Capture::open(&Options { snaplen: 96, filter, ..options(&link) }).unwrap());
        let sent = [frame(0, 1000), frame(1, 97), frame(2, 96), frame(3, 40)];
        link.send(&sent);
        let seen = take_ours(&mut capture, 4);
        let lengths: Vec<_> = seen.iter().map(|packet| (packet.data.len(), packet.original_len)).collect();
        assert_eq!(lengths, [(96, 1000), (96, 97), (96, 96), (40, 40)]);
        assert!(seen.iter().zip(&sent).all(|(packet, sent)| sent.starts_with(&packet.data)));
    }
    // What is cut takes no room in the ring: whole, these packets would fill it twice. Nobody empties it meanwhile, so
    // its blocks must not be handed over because of their age, however slowly the packets come.
    for (snaplen, all_fit) in [(96, true), (0, false)] {
        let retire = Duration::from_mins(1);
        let small = Options { block_bytes: 128 << 10, blocks: 2, snaplen, retire, ..options(&link) };
        let mut capture = only(Capture::open(&small).unwrap());
        let sent: Vec<Vec<u8>> = (0..500).map(|n| frame(n, 1000)).collect();
        link.send(&sent);
        let counted = capture.counters().unwrap();
        assert_eq!(counted.received + counted.dropped, 500);
        assert_eq!(counted.dropped == 0, all_fit, "{counted:?}");
    }
}

#[test]
fn several_rings_get_every_packet_once() {
    let Some(link) = Link::make() else { return };
    for (fanout, shared) in [(Fanout::RoundRobin, true), (Fanout::FlowThenAny, false), (Fanout::Cpu, false)] {
        let several = Options { rings: 3, fanout, ..options(&link) };
        let mut captures = Capture::open(&several).unwrap();
        let sent: Vec<Vec<u8>> = (0..900).map(|n| frame(n, 100)).collect();
        link.send(&sent);
        let mut numbers = Vec::new();
        for capture in &mut captures {
            let counted = capture.counters().unwrap();
            assert_eq!(counted.dropped, 0);
            let seen = take(capture, counted.received as usize);
            assert_eq!(seen.len() as u64, counted.received);
            assert!(!shared || seen.len() == 300, "{}", seen.len());
            numbers.extend(seen.iter().map(|packet| number(&packet.data).unwrap()));
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..900).collect::<Vec<u32>>());
    }
}

#[test]
fn loopback_packets_are_seen_once() {
    let Some(link) = Link::make() else { return };
    link.inside(|| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        let wanted = Options {
            filter: Some(format!("udp port {port}")),
            retire: Duration::from_millis(10),
            ..Options::new("lo")
        };
        let mut capture = only(Capture::open(&wanted).unwrap());
        for n in 0..10u8 {
            socket.send_to(&[n], ("127.0.0.1", port)).unwrap();
        }
        let seen = take(&mut capture, 10);
        let last: Vec<u8> = seen.iter().map(|packet| *packet.data.last().unwrap()).collect();
        assert_eq!(last, (0..10).collect::<Vec<u8>>());
        assert!(seen.iter().all(|packet| packet.flags.direction() == Direction::Inbound));
        assert_eq!(capture.counters().unwrap(), KernelCounters { received: 10, ..KernelCounters::default() });
    });
}

#[test]
fn both_directions_are_told() {
    let Some(link) = Link::make() else { return };
    link.inside(|| {
        let both = Options { interface: link.far.clone(), ..options(&link) };
        let mut capture = only(Capture::open(&both).unwrap());
        let outbound = Options {
            filter: Some("outbound and not ip6".into()),
            interface: link.far.clone(),
            ..options(&link)
        };
        let mut outbound = only(Capture::open(&outbound).unwrap());
        link.send(&[frame(0, 60)]);
        link.reply(&[frame(1, 60)]);
        let seen = take(&mut capture, 2);
        let directions: Vec<_> = seen.iter().map(|packet| packet.flags.direction()).collect();
        assert_eq!(directions, [Direction::Outbound, Direction::Inbound]);
        let seen = take(&mut outbound, 1);
        assert!(seen.iter().all(|packet| packet.flags.direction() == Direction::Outbound));
        assert!(seen.iter().any(|packet| number(&packet.data) == Some(0)));
    });
}

/// Sends to a group through an interface; once the witness has it, whoever else was to have it has it, too.
fn send_through(interface: &str, text: &[u8], group: SocketAddr, witness: &UdpSocket) {
    let any = if group.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let sender = UdpSocket::bind(any).unwrap();
    let index = rustix::net::netdevice::name_to_index(&sender, interface).unwrap();
    if group.is_ipv4() {
        let any = Ipv4Addr::UNSPECIFIED;
        sockopt::set_ip_multicast_if_with_ifindex(&sender, &any, &any, index).unwrap();
    } else {
        sockopt::set_ipv6_multicast_if(&sender, index).unwrap();
    }
    sender.send_to(text, group).unwrap();
    witness.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut buffer = [0; 100];
    let len = witness.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], text);
}

#[test]
fn a_group_on_one_interface_gets_nothing_from_another() {
    let Some(link) = Link::make() else { return };
    link.inside(|| {
        let ip = |line: &str| assert!(link::run("ip", &line.split(' ').collect::<Vec<_>>()), "{line}");
        let far = link.far.as_str();
        ip("link add hfone type veth peer name hftwo");
        let mut groups = vec!["239.77.3.9:7009", "239.77.3.9:7010"];
        for (number, name) in [far, "hfone", "hftwo"].into_iter().enumerate() {
            ip(&format!("link set {name} up"));
            ip(&format!("addr add 10.77.{number}.1/24 dev {name}"));
            if std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "0").is_ok() {
                ip(&format!("-6 addr add fd00:77:{number}::1/64 dev {name} nodad"));
            }
        }
        if std::fs::exists("/proc/sys/net/ipv6").unwrap() {
            groups.extend(["[ff05::7709]:7009", "[ff05::7709]:7010"]);
        }
        for (number, group) in groups.into_iter().enumerate() {
            let group: SocketAddr = group.parse().unwrap();
            // Once either way round.
            let (here, elsewhere) = if number % 2 == 0 { ("hfone", far) } else { (far, "hfone") };
            let (opened, stop) = opened(&format!("udp:{group}@{here}"), &SourceOptions::default());
            let mut rig = Rig::start(opened, stop, 4);
            // Somebody else on this machine wants the group from everywhere.
            let any: SocketAddr = if group.is_ipv4() {
                ([0, 0, 0, 0], group.port()).into()
            } else {
                ([0; 16], group.port()).into()
            };
            let witness = shared(any);
            for interface in [here, elsewhere] {
                let index = rustix::net::netdevice::name_to_index(&witness, interface).unwrap();
                let any = Ipv4Addr::UNSPECIFIED;
                match group.ip() {
                    IpAddr::V4(group) => {
                        sockopt::set_ip_add_membership_with_ifindex(&witness, &group, &any, index)
                    }
                    IpAddr::V6(group) => sockopt::set_ipv6_add_membership(&witness, &group, index),
                }
                .unwrap();
            }
            send_through(elsewhere, b"from elsewhere", group, &witness);
            send_through(here, b"from here", group, &witness);
            rig.collect_until(|collector| collector.elements.iter().any(|e| e.data == b"from here"));
            let (collector, _) = rig.stop();
            assert_eq!(collector.elements.len(), 1, "{group} on {here}: {:?}", collector.elements);
        }
    });
}

/// A socket on an address that others have, too.
fn shared(address: SocketAddr) -> UdpSocket {
    let family =
        if address.is_ipv4() { rustix::net::AddressFamily::INET } else { rustix::net::AddressFamily::INET6 };
    let kind = (rustix::net::SocketType::DGRAM, rustix::net::SocketFlags::CLOEXEC);
    let socket = rustix::net::socket_with(family, kind.0, kind.1, None).unwrap();
    sockopt::set_socket_reuseaddr(&socket, true).unwrap();
    rustix::net::bind(&socket, &address).unwrap();
    UdpSocket::from(socket)
}

/// Polls until something is wrong.
fn trouble(capture: &mut Capture) -> CaptureError {
    for _ in 0..100 {
        match capture.poll(Duration::from_secs(1)) {
            Ok(_) => capture.take_block(|_| {}),
            Err(error) => return error,
        };
    }
    panic!("nothing is wrong");
}

#[test]
fn an_interface_that_goes_down_comes_back_and_one_that_is_removed_does_not() {
    let Some(link) = Link::make() else { return };
    let mut capture = only(Capture::open(&options(&link)).unwrap());
    link.send(&[frame(0, 60)]);
    assert_eq!(take(&mut capture, 1).len(), 1);
    link.set("down");
    let error = trouble(&mut capture);
    assert!(matches!(error, CaptureError::Down { .. }) && error.may_pass(), "{error}");
    assert!(matches!(Capture::open(&options(&link)), Err(CaptureError::Down { .. })));
    link.set("up");
    link.send(&[frame(1, 60)]);
    let seen = take(&mut capture, 1);
    assert_eq!(number(&seen[0].data), Some(1));
    link.remove();
    let error = trouble(&mut capture);
    assert!(matches!(error, CaptureError::Gone { .. }) && error.may_pass(), "{error}");
    let error = Capture::open(&options(&link)).unwrap_err();
    assert!(matches!(error, CaptureError::NoInterface { .. }) && error.may_pass(), "{error}");
}

#[test]
fn an_interface_without_link_header_gives_plain_ip() {
    let Some(link) = Link::make() else { return };
    link.inside(|| {
        if !link::run("ip", &["tuntap", "add", "mode", "tun", "name", "hftun"]) {
            println!("skipped: this kernel has no tun devices");
            return;
        }
        assert!(link::run("ip", &["link", "set", "hftun", "up"]));
        let mut wanted = Options::new("hftun");
        assert_eq!(only(Capture::open(&wanted).unwrap()).link_type(), LinkType::RAW);
        // Compiled for what the packets really start with.
        wanted.filter = Some("ether host 02:00:00:00:00:01".into());
        assert!(matches!(Capture::open(&wanted), Err(CaptureError::Filter(_))));
    });
}

#[test]
fn wrong_orders_are_told_with_what_to_do() {
    let error = Capture::open(&Options::new("no-such-if")).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("`no-such-if`") && told.contains("lo"), "{told}");
    for (wrong, option) in [
        (Options { rings: 0, ..Options::new("lo") }, "rings"),
        (Options { block_bytes: 100_000, ..Options::new("lo") }, "block bytes"),
        (Options { blocks: 1, ..Options::new("lo") }, "blocks"),
        (Options { retire: Duration::ZERO, ..Options::new("lo") }, "retire (ms)"),
    ] {
        match Capture::open(&wrong) {
            Err(CaptureError::Option { option: told, .. }) => assert_eq!(told, option),
            other => panic!("{other:?}"),
        }
    }
    let Some(link) = Link::make() else { return };
    let error = Capture::open(&Options { filter: Some("tcp prot 80".into()), ..options(&link) }).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("`tcp prot 80`") && told.contains("syntax error"), "{told}");
    assert!(matches!(error, CaptureError::Filter(FilterError::Expression { link_type: 1, .. })));
}

/// Set for the run of this program without privileges.
const UNPRIVILEGED: &str = "HOLDFAST_TEST_UNPRIVILEGED";

#[test]
fn without_the_privilege_the_error_says_how_to_get_it() {
    if std::env::var_os(UNPRIVILEGED).is_some() {
        let error = Capture::open(&Options::new("lo")).unwrap_err();
        assert!(matches!(error, CaptureError::NoPrivilege { .. }), "{error}");
        assert!(error.to_string().contains("setcap cap_net_raw"), "{error}");
        return;
    }
    if !link::is_root() {
        println!("skipped: only root can run a program as somebody else");
        return;
    }
    // A copy, since nobody else may enter the folder that this program is in.
    let folder = tempfile::Builder::new().prefix("holdfast").tempdir().unwrap();
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let program = folder.path().join("test");
    // By a process of its own: what another test starts meanwhile would have our copy open for writing, and it could
    // not be run.
    let copied = Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap();
    assert!(copied.success());
    let output = Command::new(&program)
        .args(["--exact", "packet_live::without_the_privilege_the_error_says_how_to_get_it"])
        .env(UNPRIVILEGED, "1")
        .current_dir(folder.path())
        .uid(65_534)
        .gid(65_534)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
