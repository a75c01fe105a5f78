//! Tests of promise 2 through the whole program, for every kind of source: everything sent is on the ring, or in a gap
//! that says how much it was. Packets of an interface are in `packets`.

use crate::process::common::{Ended, Recorder, TestFolder, reader};
use crate::process::link::{Link, run};
use holdfast_format::Cause;
use holdfast_reader::{Item, Selection};
use rustix::process::Signal;
use std::io::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Stdio;

/// What is on a ring: elements in their order, and the sums of the gaps.
#[derive(Debug, Default)]
struct Account {
    elements: Vec<Vec<u8>>,
    /// Event and arrival time of each, and what it had beyond its bytes.
    about: Vec<(Option<i64>, i64, u32)>,
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
                        all.about.push((e.event.map(|at| at.0), e.arrival.0, e.extra));
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

/// Tells it to end; the summary says the same as the ring.
fn settle(place: &TestFolder, recorder: Recorder) -> Account {
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
    checked(place, &ended)
}

/// What is on the ring of a run that has ended.
fn checked(place: &TestFolder, ended: &Ended) -> Account {
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
    let place = TestFolder::in_memory();
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
    let place = TestFolder::new();
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
    let place = TestFolder::in_memory();
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
    let place = TestFolder::in_memory();
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
        let place = TestFolder::in_memory();
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

#[test]
fn standard_input_is_recorded_to_its_last_byte_or_counted() {
    let input: Vec<u8> = (0..3_000_500u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    // A length that does not fit is a loss; the last block and the last line are as long as they are.
    for (frame, lost) in [("fixed:1000", 500), ("fixed:400000", 200_500), ("blocks:4096", 0), ("lines", 0)] {
        let place = TestFolder::in_memory();
        let options = ["--size", "64MiB", "--source", "stdin", "--name", "s", "--frame", frame];
        let ended = place.record(&with(&options), &input);
        assert_eq!(ended.status.code(), Some(i32::from(lost > 0)), "{frame}: {}", ended.err);
        let account = checked(&place, &ended);
        assert_eq!(
            (account.lost_to(Cause::Aborted), account.lost_bytes),
            (u64::from(lost > 0), lost),
            "{frame}"
        );
        let ends = if frame == "lines" { account.elements.len() as u64 - 1 } else { 0 };
        assert_eq!(account.bytes() + account.lost_bytes + ends, input.len() as u64, "{frame}");
        let between: &[u8] = if frame == "lines" { b"\n" } else { b"" };
        assert!(input.starts_with(&account.elements.join(between)), "{frame}");
    }
}

/// A capture file of packets whose sizes are `sizes`, a millisecond times `step` apart.
fn capture_file(sizes: impl IntoIterator<Item = usize>, step: u64) -> (Vec<u8>, Vec<Vec<u8>>) {
    let mut bytes = [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    let mut packets = Vec::new();
    for (n, size) in sizes.into_iter().enumerate() {
        let at = n as u64 * step;
        let head = [1_700_000_000 + (at / 1000) as u32, (at % 1000) as u32 * 1000, size as u32, size as u32];
        bytes.extend(head.map(u32::to_le_bytes).concat());
        packets.push((0..size).map(|byte| (byte * 3 + n) as u8).collect::<Vec<u8>>());
        bytes.extend(&packets[n]);
    }
    (bytes, packets)
}

#[test]
fn a_replayed_file_is_there_packet_by_packet_cut_at_the_snap_length_and_as_far_as_it_is_whole() {
    let place = TestFolder::in_memory();
    let file = place.path("x.pcap");
    let (bytes, packets) = capture_file((0..2000).map(|n| 14 + n * 37 % 60_000), 1);
    std::fs::write(&file, &bytes).unwrap();
    let source = format!("replay:{}", file.display());
    let options = ["--size", "256MiB", "--source", &source, "--name", "s", "--speed", "max"];
    let ended = place.record(&with(&options), &[]);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
    let account = checked(&place, &ended);
    assert!(account.elements == packets && account.lost == 0);
    assert!(
        account
            .about
            .iter()
            .zip(0..)
            .all(|(about, n)| { (about.0, about.2) == (Some(1_700_000_000_000_000_000 + n * 1_000_000), 0) })
    );

    let cut = TestFolder::in_memory();
    let ended = cut.record(&with(&[&options[..], &["--snaplen", "100"]].concat()), &[]);
    let account = checked(&cut, &ended);
    for ((kept, about), packet) in account.elements.iter().zip(&account.about).zip(&packets) {
        assert_eq!(
            (&kept[..], kept.len() + about.2 as usize),
            (&packet[..packet.len().min(100)], packet.len())
        );
    }
    assert_eq!(account.elements.len(), packets.len());

    // Broken off inside the last packet.
    std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
    let broken = TestFolder::in_memory();
    let ended = broken.record(&with(&options), &[]);
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.err.contains(&format!("ends at byte {}", bytes.len() - 1)), "{}", ended.err);
    assert!(ended.out.contains("\"elements\":1999,"), "{}", ended.out);
}

#[test]
fn options_that_a_small_slot_cannot_hold_are_counted_at_the_end() {
    let place = TestFolder::new();
    let file = place.path("rich.pcapng");
    let block = |kind: u32, body: &[u8]| {
        let len = (12 + body.len() as u32).to_le_bytes();
        [&kind.to_le_bytes(), &len[..], body, &len].concat()
    };
    // An eighth of a slot is 8 KiB.
    let packet = |comment: usize| {
        let head = [0, 0, 0, 4, 4].map(u32::to_le_bytes).concat();
        let option = [&[1, 0], &(comment as u16).to_le_bytes()[..], &vec![b'c'; comment]].concat();
        block(6, &[&head, &b"data"[..], &option].concat())
    };
    let section = [&0x1a2b_3c4du32.to_le_bytes(), &[1, 0, 0, 0][..], &[0xff; 8]].concat();
    let all = [block(0x0a0d_0d0a, &section), block(1, &[1, 0, 0, 0, 0, 0, 0, 0])];
    let packets = [8188, 8192, 100, 40_000].map(packet).concat();
    std::fs::write(&file, [all.concat(), packets].concat()).unwrap();
    let source = format!("replay:{}", file.display());
    let options =
        ["--size", "16MiB", "--slot", "64KiB", "--source", &source, "--name", "s", "--speed", "max"];
    let ended = place.record(&options, b"");
    assert!(ended.status.success(), "{}", ended.err);
    let said = "s: 4 elements, 16 B";
    let left_out = ", nothing lost; options of 2 elements left out: ";
    assert!(ended.out.contains(said) && ended.out.contains(left_out), "{}", ended.out);
    let ended = place.record(&[&options[..], &["--json"]].concat(), b"");
    assert!(ended.out.contains("\"options_left_out\":2,"), "{}", ended.out);
    let account = Account::of(&place.ring);
    assert_eq!((account.elements, account.lost), (vec![b"data".to_vec(); 8], 0));
}

#[test]
fn packets_are_replayed_at_their_own_distances_divided_by_the_speed() {
    let place = TestFolder::in_memory();
    let file = place.path("x.pcap");
    // A quarter of an hour.
    std::fs::write(&file, capture_file([60; 31], 30_000).0).unwrap();
    let source = format!("replay:{}", file.display());
    let options = ["--size", "16MiB", "--source", &source, "--name", "s", "--speed", "3000"];
    let ended = place.record(&with(&options), &[]);
    let account = checked(&place, &ended);
    assert_eq!(account.elements.len(), 31);
    // Never early, by more than the slack of a millisecond, however slow the machine is.
    let first = account.about[0];
    for about in &account.about {
        let due = (about.0.unwrap() - first.0.unwrap()) / 3000;
        assert!(about.1 - first.1 >= due - 1_100_000, "{about:?} {first:?}");
    }
}

#[test]
fn a_looped_file_ends_on_a_signal_and_every_lap_is_the_file() {
    let place = TestFolder::in_memory();
    let file = place.path("x.pcap");
    let (bytes, packets) = capture_file((0..10).map(|n| 60 + n), 1);
    std::fs::write(&file, bytes).unwrap();
    let source = format!("replay:{}", file.display());
    let recorder = place.start(&with(&["--size", "16MiB", "--source", &source, "--name", "s", "--loop"]));
    recorder.await_packed(35);
    let account = settle(&place, recorder);
    assert!(account.elements.len() >= 35 && account.lost == 0);
    let laps = packets.iter().enumerate().cycle();
    for ((element, about), (n, packet)) in account.elements.iter().zip(&account.about).zip(laps) {
        assert_eq!(element, packet);
        assert_eq!(about.0, Some(1_700_000_000_000_000_000 + n as i64 * 1_000_000));
    }
}

#[test]
fn several_tcp_producers_at_once_lose_nothing() {
    let place = TestFolder::in_memory();
    let port = free_tcp_port();
    let source = format!("tcp:127.0.0.1:{port}");
    let recorder = place.start(&with(&["--size", "64MiB", "--source", &source, "--name", "s"]));
    let element =
        |producer: usize, n: usize| vec![(producer * 31 + n) as u8; (producer + n * n * 7) % 30_000];
    std::thread::scope(|scope| {
        for producer in 0..6 {
            scope.spawn(move || {
                let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                for element in (0..200).map(|n| element(producer, n)) {
                    stream.write_all(&(element.len() as u32).to_le_bytes()).unwrap();
                    stream.write_all(&element).unwrap();
                }
            });
        }
    });
    await_all(&recorder, 1200);
    let account = settle(&place, recorder);
    let mut sent: Vec<_> = (0..6).flat_map(|producer| (0..200).map(move |n| element(producer, n))).collect();
    let mut found = account.elements;
    sent.sort_unstable();
    found.sort_unstable();
    assert!(found == sent && account.lost == 0);
}

fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_preamble_that_has_not_come_keeps_nobody_waiting() {
    let place = TestFolder::in_memory();
    let (pipe, port) = (place.path("pipe"), free_tcp_port());
    make_pipe(&pipe);
    let (tcp, pipe_source) = (format!("tcp:127.0.0.1:{port}"), format!("file:{}", pipe.display()));
    let options = with(&[
        "--size",
        "16MiB",
        "--source",
        &tcp,
        "--name",
        "net",
        "--frame",
        "lines",
        "--source",
        "stdin",
        "--name",
        "late",
        "--frame",
        "fixed:4",
        "--preamble",
        "6",
        "--source",
        &pipe_source,
        "--name",
        "never",
        "--preamble",
        "100",
    ]);
    let mut recorder = place.start(&options);
    let mut producer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    producer.write_all(b"before\n").unwrap();
    recorder.await_packed(1);
    let late = |recorder: &Recorder| recorder.reader().streams().unwrap()[1].clone();
    assert_eq!((late(&recorder).preamble, late(&recorder).counters.received), (0, 0));
    // In two parts, with an element behind it.
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"HEA").unwrap();
    stdin.write_all(b"DERdata").unwrap();
    recorder.await_packed(2);
    producer.write_all(b"after\n").unwrap();
    recorder.await_packed(3);
    assert_eq!((late(&recorder).preamble, late(&recorder).preamble_bytes), (1, 6));
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
    drop(stdin);
    let mut found = place.contents().elements.into_iter().map(|(_, _, data)| data).collect::<Vec<_>>();
    found.sort_unstable();
    assert_eq!(found, [&b"after"[..], b"before", b"data"]);
    let mut reader = reader(&place.ring);
    let stream = reader.streams().unwrap()[1].clone();
    assert_eq!(reader.preamble(stream.id, stream.preamble).unwrap().unwrap(), b"HEADER");

    // The same one again is no new version; another one is.
    for (input, version) in [(&b"HEADERmore"[..], 1), (b"HEADESmore", 2)] {
        let options = with(&["--source", "stdin", "--name", "late", "--frame", "fixed:4", "--preamble", "6"]);
        assert!(place.record(&options, input).status.success());
        assert_eq!(crate::process::common::reader(&place.ring).streams().unwrap()[1].preamble, version);
    }
}

#[test]
fn an_input_that_ends_before_its_preamble_is_told_and_a_signal_ends_waiting_for_it() {
    let place = TestFolder::in_memory();
    let options = with(&["--size", "16MiB", "--source", "stdin", "--name", "s", "--preamble", "6"]);
    let ended = place.record(&options, b"HEAD");
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.err.contains("stdin: it ends before its preamble of 6 B is complete"), "{}", ended.err);
    let mut recorder = place.start(&options);
    let stdin = recorder.stdin();
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
    drop(stdin);
    assert!(place.contents().elements.is_empty());
}

#[test]
fn a_named_pipe_is_not_waited_for_where_a_file_is_wanted() {
    let place = TestFolder::in_memory();
    let pipe = place.path("pipe");
    make_pipe(&pipe);
    let pipe = format!("replay:{}", pipe.display());
    let (code, said) = place.refused(&with(&["--size", "16MiB", "--source", &pipe, "--name", "s"]));
    assert_eq!(code, 1);
    assert!(said.contains("only a regular file can be replayed"), "{said}");
}

#[test]
fn one_pipe_for_two_sources_is_wrong_use_and_one_file_is_not() {
    let place = TestFolder::in_memory();
    let (pipe, file) = (place.path("pipe"), place.path("file"));
    make_pipe(&pipe);
    std::fs::write(&file, b"text").unwrap();
    let (pipe, file) = (format!("file:{}", pipe.display()), format!("file:{}", file.display()));
    let twice = |first: &str, second: &str, input: Stdio| {
        let options =
            ["--size", "16MiB", "--source", first, "--name", "a", "--source", second, "--name", "b"];
        let output = place.command(&with(&options)).stdin(input).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (silent, _kept) = rustix::pipe::pipe().unwrap();
    for (first, second, input, said) in [
        ("stdin", "stdin", Stdio::null(), "--source stdin is given twice"),
        ("stdin", "-", Stdio::null(), "--source stdin is given twice"),
        (&pipe, &pipe, Stdio::null(), "read the same pipe"),
        ("stdin", "file:/dev/stdin", silent.into(), "read the same pipe"),
    ] {
        let (code, error) = twice(first, second, input);
        assert_eq!(code, 2, "{error}");
        assert!(error.contains(said), "{error}");
        assert!(!place.ring.exists());
    }
    assert_eq!(twice(&file, &file, Stdio::null()).0, 0);
    assert_eq!(place.contents().payloads(), [b"text", b"text"]);
}
