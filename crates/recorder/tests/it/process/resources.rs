//! Tests of promise 1: memory stays within the configured bound, whatever is requested.

use crate::process::common::{Contents, TestFolder};
use holdfast_base::ByteSize;
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

/// A figure of `/proc/PID/status`, in bytes.
fn memory(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

#[test]
fn resident_memory_is_bounded_by_the_plan_the_slots_and_64_mib() {
    for bound in ["16MiB", "48MiB"] {
        let place = TestFolder::new();
        let options = [
            "--size",
            "32MiB",
            "--slot",
            "256KiB",
            "--memory",
            bound,
            "--source",
            "stdin",
            "--name",
            "s",
            "--frame",
            "fixed:1024",
        ];
        let mut recorder = place.start(&options);
        let mut stdin = recorder.stdin().unwrap();
        let block = vec![7u8; 64 << 10];
        for _ in 0..800 {
            stdin.write_all(&block).unwrap();
        }
        recorder.await_packed(51_200);
        assert!(Contents::read(&mut recorder.reader()).damaged.is_empty());
        for _ in 0..50 {
            recorder.connect().status().unwrap();
        }
        let slots = u64::from(recorder.connect().status().unwrap().ring.slots.total);
        let peak = memory(recorder.child.id(), "VmHWM");
        assert!(peak <= bytes(bound) + 64 * slots + (64 << 20), "{peak} resident for {bound}");
        drop(stdin);
        let ended = recorder.end();
        assert!(ended.status.success());
        assert!(ended.out.contains("51200 elements"), "{}", ended.out);
    }
}

/// A size as options have it.
fn bytes(size: &str) -> u64 {
    size.parse::<ByteSize>().unwrap().0
}

/// A capture file: a packet of a few bytes, one of so many, and one an hour later, before which there is time to look.
fn packets(large: usize) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(word.to_le_bytes());
    }
    for (second, size) in [(0, 60), (0, large), (3600, 60)] {
        for word in [1_700_000_000 + second, 0, size as u32, size as u32] {
            file.extend(word.to_le_bytes());
        }
        file.resize(file.len() + size, 7);
    }
    file
}

#[test]
fn the_largest_packet_of_a_file_that_is_replayed_is_counted() {
    let place = TestFolder::in_memory();
    let mut options: Vec<String> = ["--size", "256MiB", "--slot", "256KiB"].map(str::to_owned).to_vec();
    for name in ["a", "b", "c"] {
        let path = place.path(name);
        std::fs::write(&path, packets(30 << 20)).unwrap();
        options.extend([
            "--source".into(),
            format!("replay:{}", path.display()),
            "--name".into(),
            name.into(),
        ]);
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let bound = place.least(&options);
    assert!(bytes(&bound) > 90 << 20, "three packets of 30 MiB are in it: {bound}");
    let recorder = place.start(&[&options[..], &["--memory", &bound]].concat());
    recorder.await_packed(6);
    let slots = u64::from(recorder.connect().status().unwrap().ring.slots.total);
    let peak = memory(recorder.child.id(), "VmHWM");
    assert!(peak <= bytes(&bound) + 64 * slots + (64 << 20), "{peak} resident for {bound}");
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
}

#[test]
fn a_thousand_connections_are_counted_in_memory_and_one_more_is_told_of() {
    let wanted = 1100;
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < 2 * wanted) {
        println!("skipped: there may not be so many open files");
        return;
    }
    if limit.current.is_some_and(|now| now < 2 * wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(2 * wanted), ..limit }).unwrap();
    }
    let place = TestFolder::in_memory();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let source = format!("tcp:127.0.0.1:{port}");
    let options = |source| {
        ["--size", "64MiB", "--slot", "256KiB", "--source", source, "--name", "s", "--frame", "fixed:8000"]
    };
    let least = |source| place.least(&options(source));
    let bound = least(&source);
    assert!(bytes(&bound) > bytes(&least("stdin")) + (8 << 20), "{bound}: 8 KiB are kept aside for each");
    let recorder = place.start(&[&options(&source)[..], &["--memory", &bound]].concat());
    // Each with an element that is not whole, of which all is kept aside.
    let connect = || {
        let mut producer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        producer.write_all(&[7; 7000]).unwrap();
        producer
    };
    let mut producers: Vec<TcpStream> = (0..1024).map(|_| connect()).collect();
    let mut connection = recorder.connect();
    let mut source = || connection.status().unwrap().recorder.unwrap().sources.remove(0);
    while source().connections < 1024 {}
    assert_eq!(source().refused, 0);
    // It sees its connection closed.
    let mut late = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    assert!(matches!(late.read(&mut [0]), Ok(0) | Err(_)));
    let now = source();
    assert_eq!((now.connections, now.refused), (1024, 1));
    for producer in &mut producers {
        producer.write_all(&[7; 1000]).unwrap();
    }
    recorder.await_packed(1024);
    let peak = memory(recorder.child.id(), "VmHWM");
    let slots = u64::from(recorder.connect().status().unwrap().ring.slots.total);
    assert!(peak <= bytes(&bound) + 64 * slots + (64 << 20), "{peak} resident for {bound}");
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.out.contains("1024 elements"), "{}", ended.out);
    let told = ended
        .err
        .matches("a producer was rejected or disconnected: the source accepts 1024 producers at a time")
        .count();
    assert_eq!(told, 1, "{}", ended.err);
}
