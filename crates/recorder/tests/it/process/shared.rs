//! Tests of shared memory through the whole program: a producer compiled from the published header continues over the
//! end of one recorder and the start of the next; nothing is duplicated, and nothing is lost where the end did not
//! interrupt an element (promises 2 and 6).

use crate::process::common::{Contents, Recorder, Running, TestFolder, reader};
use holdfast_format::Cause;
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};

const RING: [&str; 4] = ["--size", "64MiB", "--slot", "256KiB"];

/// A producer that is fed with lines.
struct Producer {
    child: Running,
    input: ChildStdin,
    sent: u64,
}

impl Producer {
    /// In C; none where there is no compiler.
    fn start(place: &TestFolder, socket: &Path, how: &str) -> Option<Self> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/shared.c");
        let program = place.path("shared");
        let built = Command::new("cc").args(["-O2", "-o"]).arg(&program).arg(source).status();
        let Ok(built) = built else {
            println!("skipped: there is no compiler");
            return None;
        };
        assert!(built.success());
        let child = Command::new(program).arg(how).arg(socket).stdin(Stdio::piped()).spawn().unwrap();
        let mut child = Running::of(child);
        let input = child.stdin.take().unwrap();
        Some(Self { child, input, sent: 0 })
    }

    /// Lets it send so many lines more.
    fn send(&mut self, lines: u64) {
        let text: String = (self.sent..self.sent + lines).map(|number| line(number) + "\n").collect();
        self.sent += lines;
        self.input.write_all(text.as_bytes()).unwrap();
    }

    /// Lets it end.
    fn end(mut self) {
        drop(self.input);
        assert!(self.child.wait().unwrap().success());
    }
}

fn line(number: u64) -> String {
    let size = if number.is_multiple_of(500) { 9000 } else { number * 7 % 300 };
    format!("{number} {}", "~".repeat(size as usize))
}

struct Scene {
    place: TestFolder,
    socket: PathBuf,
    source: String,
}

impl Scene {
    fn new() -> Self {
        let place = TestFolder::in_memory();
        let socket = place.path("camera.sock");
        let source = format!("shm:{}", socket.display());
        Self { place, socket, source }
    }

    fn start(&self, made: bool, more: &[&str]) -> Recorder {
        // Smaller than the largest line.
        let source = ["--source", &self.source, "--name", "s", "--area", "4KiB", "--flush", "20ms"];
        self.place.start(&[if made { &RING[..] } else { &[] }, &source, more].concat())
    }
}

#[test]
fn a_recorder_that_ends_and_starts_again_has_every_element_once() {
    let scene = Scene::new();
    let mut recorder = scene.start(true, &[]);
    let Some(mut producer) = Producer::start(&scene.place, &scene.socket, "put") else { return };
    for round in 1..4 {
        producer.send(3000);
        // In the middle of what it has to send.
        recorder.await_packed(1000);
        recorder.signal(Signal::INT);
        let ended = recorder.end();
        assert_eq!(ended.status.code(), Some(0), "{round}: {}", ended.err);
        recorder = scene.start(false, &[]);
    }
    producer.send(100);
    producer.end();
    // What is in the area by now is taken.
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(0), "{}", ended.err);
    let contents = scene.place.contents();
    let same =
        contents.payloads().iter().map(|data| data.to_vec()).eq((0..9100).map(|n| line(n).into_bytes()));
    // A line that was cut off by an end came again.
    assert!(same && contents.gaps.iter().all(|gap| gap.4 == Cause::Aborted), "{}", contents.brief());
}

#[test]
fn a_recorder_that_is_killed_has_nothing_twice_and_says_that_something_may_be_lost() {
    let scene = Scene::new();
    let mut recorder = scene.start(true, &[]);
    let Some(mut producer) = Producer::start(&scene.place, &scene.socket, "put") else { return };
    for _ in 0..3 {
        producer.send(3000);
        recorder.await_packed(1000);
        recorder.signal(Signal::KILL);
        recorder.end();
        recorder = scene.start(false, &[]);
    }
    producer.send(100);
    producer.end();
    recorder.signal(Signal::INT);
    assert!(recorder.end().status.success());
    let contents = Contents::read(&mut reader(&scene.place.ring));
    let numbers: Vec<u64> = contents
        .payloads()
        .iter()
        .map(|data| {
            let text = String::from_utf8(data.to_vec()).unwrap();
            let number = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(text, line(number), "it came whole");
            number
        })
        .collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "nothing is there twice");
    assert_eq!(numbers.last(), Some(&9099));
    let crashes = contents.gaps.iter().filter(|gap| gap.4 == Cause::Crash && gap.3.is_none()).count();
    assert_eq!(crashes, 3, "{}", contents.brief());
}

#[test]
fn a_producer_that_finds_no_place_is_told_of_in_status_and_log() {
    let scene = Scene::new();
    let recorder = scene.start(true, &[]);
    let come = || {
        let mut producer = UnixStream::connect(&scene.socket).unwrap();
        let mut greeting = [0; 16];
        producer.read_exact(&mut greeting).unwrap();
        producer
    };
    let (first, second) = (come(), come());
    let status = recorder.connect().status().unwrap().recorder.unwrap();
    assert_eq!((status.sources[0].connections, status.sources[0].refused), (1, 1));
    drop((first, second));
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    let told = ended
        .err
        .matches("a producer was rejected or disconnected: the source accepts one producer at a time")
        .count();
    assert_eq!(told, 1, "{}", ended.err);
}

#[test]
fn attributes_come_along_and_a_second_recorder_at_the_same_socket_is_refused() {
    let scene = Scene::new();
    let given = ["--frame", "attr32", "--attr", "line:uint=given", "--attr", "word:text=given"];
    let recorder = scene.start(true, &given);
    let Some(mut producer) = Producer::start(&scene.place, &scene.socket, "given") else { return };
    producer.send(2000);
    producer.end();
    recorder.await_packed(2000);
    let other = TestFolder::new();
    let (code, said) = other.refused(&[&RING[..], &["--source", &scene.source, "--name", "s"]].concat());
    assert!(code == 1 && said.contains("another recorder or source listens there"), "{code} {said}");
    assert!(!other.ring.exists(), "nothing was made");
    let status = recorder.connect().status().unwrap().recorder.unwrap();
    assert_eq!((status.sources[0].undecodable, status.sources[0].packed_elements), (0, 2000));
    recorder.signal(Signal::INT);
    assert!(recorder.end().status.success());
    assert!(!scene.socket.exists());
    let found = crate::process::attributes::of_elements(&mut reader(&scene.place.ring));
    assert_eq!(found, crate::process::attributes::on_medium(&scene.place.ring).0);
    assert_eq!(found.len(), 2000);
}
