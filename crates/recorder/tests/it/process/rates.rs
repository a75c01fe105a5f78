//! Tests of promises 1 and 2 through the whole program: a stream that exceeds its declared rate loses data or waits
//! alone, and its losses are accounted for. `tests/it/rates.rs` does the same in virtual time, with readers and a
//! failing drive.

use crate::process::common::{Ended, TestFolder};
use crate::process::promises::made_to_gather;
use std::io::Write as _;
use std::net::UdpSocket;

/// Bytes of an element of the stream that comes too fast, and what is sent of it: three laps.
const ELEMENT: usize = 4096;
const SENT: u64 = 1 << 30;

/// Datagrams of the stream that keeps to its rate.
const DATAGRAMS: u64 = 512;

/// A ring that takes 20 MiB/s with as little memory as that takes: half of it is declared by `udp`, which keeps to it, a
/// twentieth by `pipe`, which brings all that goes through a pipe.
fn run(policy: &str) -> (TestFolder, Ended) {
    let place = TestFolder::in_memory();
    made_to_gather(&place, 1);
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let udp = format!("udp:127.0.0.1:{port}");
    let frame = format!("fixed:{ELEMENT}");
    let words = [
        &["--source", &udp, "--name", "udp", "--rate", "10MiB/s", "--elements", "20000"][..],
        &["--source", "stdin", "--name", "pipe", "--frame", &frame, "--on-overload", policy],
        &["--rate", "1MiB/s", "--elements", "256", "--flush", "10ms", "--json"],
    ];
    let words = words.concat();
    let (_, error) = place.refused(&[&words[..], &["--memory", "24MiB"]].concat());
    let (_, least) = error.split_once("use --memory ").unwrap();
    let least = least.split(' ').next().unwrap().to_owned();
    let mut recorder = place.start(&[&words[..], &["--memory", &least]].concat());
    let mut pipe = recorder.stdin().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let piece = vec![7; (SENT / DATAGRAMS) as usize];
    for _ in 0..DATAGRAMS {
        pipe.write_all(&piece).unwrap();
        socket.send_to(&[8; 1000], format!("127.0.0.1:{port}")).unwrap();
    }
    drop(pipe);
    // All that was sent has been taken, then nothing more comes.
    let mut connection = recorder.connect();
    let elements = [DATAGRAMS, SENT / ELEMENT as u64];
    let came = |status: &holdfast_protocol::wire::RecorderStatus| {
        status.sources.iter().zip(elements).all(|(source, sent)| source.elements == sent)
            && status.sources[0].packed_elements == DATAGRAMS
    };
    while !came(&connection.status().unwrap().recorder.unwrap()) {}
    recorder.signal(rustix::process::Signal::TERM);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    (place, ended)
}

/// A figure of a stream in the summary.
fn figure(ended: &Ended, stream: &str, name: &str) -> u64 {
    let (_, of) = ended.out.split_once(&format!("\"name\":\"{stream}\"")).unwrap();
    let (_, value) = of.split_once(&format!("\"{name}\":")).unwrap();
    value.split([',', '}']).next().unwrap().parse().unwrap()
}

/// Elements of a stream that the summary says were lost to a cause.
fn lost_to(ended: &Ended, stream: &str, cause: &str) -> u64 {
    let (_, of) = ended.out.split_once(&format!("\"name\":\"{stream}\"")).unwrap();
    let (of, _) = of.split_once("},\"interrupted\":").unwrap();
    if of.contains(&format!("\"{cause}\":")) { figure(ended, stream, cause) } else { 0 }
}

fn has_all_datagrams(ended: &Ended) {
    assert_eq!(figure(ended, "udp", "elements"), DATAGRAMS, "{}", ended.out);
    assert_eq!(figure(ended, "udp", "gaps"), 0, "{}", ended.out);
}

#[test]
fn a_stream_that_is_too_fast_drops_only_what_is_beyond_and_the_other_loses_nothing() {
    let (_place, ended) = run("drop-newest");
    has_all_datagrams(&ended);
    let (kept, lost) = (figure(&ended, "pipe", "elements"), figure(&ended, "pipe", "lost_elements"));
    assert_eq!(kept + lost, SENT / ELEMENT as u64, "{}", ended.out);
    // Whether there is room beyond its rate, and which of the two lacks it, depends on who is faster here, the pipe, the
    // packer or the memory behind the ring: `tests/rates.rs` has it decided in virtual time.
    assert!(kept > 0, "{}", ended.out);
    let causes = ["over_rate", "no_buffer", "no_processor"];
    let told = causes.iter().map(|cause| lost_to(&ended, "pipe", cause)).sum::<u64>();
    assert_eq!(told, lost, "{}", ended.out);
}

#[test]
fn a_stream_that_may_wait_does_and_the_other_does_not() {
    let (place, ended) = run("block");
    has_all_datagrams(&ended);
    assert_eq!(figure(&ended, "pipe", "elements"), SENT / ELEMENT as u64, "{}", ended.out);
    assert_eq!(figure(&ended, "pipe", "gaps"), 0, "{}", ended.out);
    assert!(place.contents().damaged.is_empty());
}
