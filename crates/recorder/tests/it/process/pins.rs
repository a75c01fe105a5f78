//! Tests of slots that clients pin: they outlive laps, end with the client however it ends, and cost capture nothing.
//! Promises 1 and 3.

use crate::process::common::{Contents, Recorder, Running, TestFolder, hold_of};
use holdfast_base::{Sequence, Timestamp};
use holdfast_protocol::ProtocolError;
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{FrameHead, HEAD_BYTES, MAX_FRAME, MAX_PINS, Reply, Request, VERSION};
use holdfast_ring::{HoldRequest, Order, Outcome, SlotLook, SlotStatus};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, Command};

/// A ring of some two hundred slots.
const LINES: [&str; 10] =
    ["--size", "16MiB", "--slot", "64KiB", "--source", "stdin", "--name", "s", "--frame", "lines"];

struct Run {
    recorder: Recorder,
    stdin: ChildStdin,
    written: u64,
}

impl Run {
    fn start(place: &TestFolder) -> Self {
        let mut recorder = place.start(&LINES);
        let stdin = recorder.stdin().unwrap();
        Self { recorder, stdin, written: 0 }
    }

    /// Writes so many lines of a thousand bytes, numbered, and waits until they are packed.
    fn write(&mut self, lines: u64) {
        for number in self.written..self.written + lines {
            self.stdin.write_all(format!("{number:0999}\n").as_bytes()).unwrap();
        }
        self.written += lines;
        self.recorder.await_packed(self.written);
    }

    /// Once round the ring, and a bit.
    fn lap(&mut self) {
        self.write(17_000);
    }

    fn end(self) {
        drop(self.stdin);
        let ended = self.recorder.end();
        assert!(ended.status.success(), "{}", ended.err);
    }
}

fn data(connection: &mut Connection) -> Vec<SlotStatus> {
    let mut slots = connection.slots().unwrap();
    slots.retain(SlotStatus::has_data);
    slots.sort_unstable_by_key(|slot| slot.age);
    slots
}

fn sequences(slots: &[SlotStatus]) -> Vec<Sequence> {
    slots.iter().map(|slot| slot.sequence).collect()
}

/// Waits until so many slots are pinned: what a client that is gone had is given back a moment later.
fn await_pinned(connection: &mut Connection, wanted: u32) {
    while connection.status().unwrap().ring.slots.pinned != wanted {}
}

#[test]
fn what_a_client_pins_outlives_laps_until_it_is_gone() {
    let place = TestFolder::new();
    let mut run = Run::start(&place);
    run.lap();
    let mut watch = run.recorder.connect();
    let budget = watch.status().unwrap().ring.slots.total / 20;
    assert!(budget > 5, "{budget}");
    let mut client = run.recorder.connect();
    let wanted = sequences(&data(&mut watch)[..3 * budget as usize]);
    assert_eq!(client.pin(wanted.clone()).unwrap(), budget);
    let pinned = &wanted[..budget as usize];
    await_pinned(&mut watch, budget);
    run.lap();
    run.lap();
    let slots = data(&mut watch);
    let shown: Vec<_> = slots.iter().filter(|slot| slot.look == SlotLook::Pinned).copied().collect();
    assert_eq!(sequences(&shown), pinned);
    assert_eq!(sequences(&slots[..pinned.len()]), pinned, "they are the oldest by far");
    assert!(slots[pinned.len()].sequence > *wanted.last().unwrap());
    let contents = Contents::read(&mut run.recorder.reader());
    assert_eq!((contents.gaps.len(), contents.damaged.len()), (0, 0), "{}", contents.brief());
    // Another one gets its share, of which the first loses what it would need last.
    let mut other = run.recorder.connect();
    let young = sequences(&data(&mut watch)[60..90]);
    assert_eq!(other.pin(young).unwrap(), budget / 2);
    await_pinned(&mut watch, budget);
    drop(client);
    await_pinned(&mut watch, budget / 2);
    run.lap();
    assert!(!sequences(&data(&mut watch)).contains(&pinned[0]));
    // What it names no longer it pins no longer.
    assert_eq!(other.pin(Vec::new()).unwrap(), 0);
    await_pinned(&mut watch, 0);
    run.end();
}

#[test]
fn the_pins_of_a_client_that_is_killed_are_gone() {
    let place = TestFolder::new();
    let mut run = Run::start(&place);
    run.lap();
    let mut watch = run.recorder.connect();
    let wanted = sequences(&data(&mut watch)[..4]);
    let mut socket = UnixStream::connect(&run.recorder.socket).unwrap();
    socket.write_all(&Request::Hello { version: VERSION }.encode(1)).unwrap();
    socket.write_all(&Request::Pin { sequences: wanted }.encode(2)).unwrap();
    let reply = loop {
        let mut head = [0; HEAD_BYTES];
        socket.read_exact(&mut head).unwrap();
        let head = FrameHead::decode(&head, MAX_FRAME).unwrap();
        let mut body = vec![0; head.body as usize];
        socket.read_exact(&mut body).unwrap();
        if head.id == 2 {
            break Reply::decode(head, &body).unwrap();
        }
    };
    assert_eq!(reply, Reply::Pinned { granted: 4 });
    // From here on another process has the connection, and nobody else.
    let client = Command::new("sleep").arg("600").stdin(OwnedFd::from(socket)).spawn().unwrap();
    let mut client = Running::of(client);
    await_pinned(&mut watch, 4);
    run.lap();
    assert_eq!(watch.status().unwrap().ring.slots.pinned, 4);
    client.kill().unwrap();
    client.wait().unwrap();
    await_pinned(&mut watch, 0);
    run.end();
}

#[test]
fn a_client_that_pins_everything_costs_capture_nothing() {
    let place = TestFolder::new();
    let mut run = Run::start(&place);
    run.lap();
    let mut greedy = run.recorder.connect();
    let too_many = greedy.pin(vec![Sequence(1); MAX_PINS + 1]);
    assert!(
        matches!(&too_many, Err(ProtocolError::Refused { text, .. }) if text.contains("1024")),
        "{too_many:?}"
    );
    let all = data(&mut greedy);
    let status = greedy.status().unwrap().ring.slots;
    // All that may be held is.
    let held = &all[all.len() - status.holdable as usize..];
    let ranges = sequences(held).into_iter().map(|sequence| (sequence, sequence)).collect();
    let Order::Hold(request) = hold_of(Timestamp::MIN, Timestamp::MAX) else { unreachable!() };
    let outcome = greedy.order(Order::Hold(HoldRequest { sequences: Some(ranges), ..request })).unwrap();
    assert!(matches!(outcome, Outcome::Held { .. }), "{outcome:?}");
    for _ in 0..8 {
        let there: Vec<_> = data(&mut greedy).into_iter().filter(|s| s.look != SlotLook::Held).collect();
        let granted = greedy.pin(sequences(&there)).unwrap();
        assert!(granted <= status.total / 20, "{granted}");
        // As much as all slots take that nothing holds.
        run.write(64 * u64::from(status.total - status.holdable));
    }
    let running = greedy.status().unwrap().recorder.unwrap();
    assert!(running.sources[0].dropped.is_empty(), "{:?}", running.sources[0].dropped);
    let contents = Contents::read(&mut run.recorder.reader());
    assert_eq!((contents.gaps.len(), contents.damaged.len()), (0, 0), "{}", contents.brief());
    assert_eq!(contents.elements.last().unwrap().1, run.written - 1);
    let last = greedy.holds().unwrap();
    assert_eq!(last[0].slots, status.holdable);
    run.end();
}
