//! Tests of a running recorder as its clients see it: promises 1, 4 and 5.

use crate::process::common::{Contents, TestFolder, hold, hold_of, reader};
use holdfast_base::{ByteSize, Ordinal, Sequence, Timestamp};
use holdfast_format::ConditionHold;
use holdfast_protocol::ProtocolError;
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{Purpose, Reply, Request, SourceState};
use holdfast_ring::{ExtendRequest, HoldRequest, Order, Outcome, PurgeRequest, Range, Refusal};
use rustix::process::Signal;
use std::io::Write as _;
use std::os::unix::net::UnixStream;

const LINES: [&str; 8] = ["--size", "16MiB", "--slot", "256KiB", "--source", "stdin", "--name", "s"];

fn lines(more: &[&'static str]) -> Vec<&'static str> {
    LINES.iter().chain(&["--frame", "lines"]).chain(more).copied().collect()
}

#[test]
fn status_streams_slots_and_the_open_slot_are_seen_while_it_records() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&[]));
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"alpha\nbeta\n").unwrap();
    recorder.await_packed(2);
    let mut reader = recorder.reader();
    let status = reader.status().unwrap();
    let running = status.recorder.unwrap();
    assert_eq!(running.pid, recorder.child.id());
    assert_eq!((running.sources[0].elements, running.sources[0].bytes), (2, 9));
    assert_eq!(running.sources[0].state, SourceState::Running);
    assert_eq!(running.sources[0].spec, "stdin");
    assert_eq!(status.ring.lane.as_str(), place.ring.to_str().unwrap());
    assert_eq!(reader.slots().unwrap().len() as u32, status.ring.slots.total);
    let stream = &reader.streams().unwrap()[0];
    assert_eq!((stream.name.as_str(), stream.framing.as_str(), stream.counters.received), ("s", "lines", 2));
    // Nothing of this is on the medium yet.
    assert_eq!(Contents::read(&mut reader).payloads(), [&b"alpha"[..], b"beta"]);
    drop(stdin);
    assert!(recorder.end().status.success());
}

#[test]
fn who_has_read_a_slot_while_it_was_open_reads_all_of_it_once_it_has_a_place() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&[]));
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"early\n").unwrap();
    recorder.await_packed(1);
    let mut reader = recorder.reader();
    assert_eq!(Contents::read(&mut reader).payloads(), [&b"early"[..]]);
    let late = vec![b'x'; 1000];
    for _ in 0..300 {
        stdin.write_all(&late).unwrap();
        stdin.write_all(b"\n").unwrap();
    }
    recorder.await_packed(301);
    while !reader.slots().unwrap().iter().any(holdfast_ring::SlotStatus::has_data) {}
    let contents = Contents::read(&mut reader);
    assert_eq!((contents.elements.len(), contents.damaged.len()), (301, 0), "{}", contents.brief());
    drop(stdin);
    assert!(recorder.end().status.success());
}

#[test]
fn slots_are_read_through_tickets_with_everything_checked() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&[]));
    let mut stdin = recorder.stdin().unwrap();
    let text: Vec<u8> = (0..200_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    stdin.write_all(&text).unwrap();
    recorder.await_packed(200_000);
    let contents = Contents::read(&mut recorder.reader());
    let mut joined = contents.payloads().join(&b'\n');
    joined.push(b'\n');
    assert!(joined == text, "{} elements, {} gaps", contents.elements.len(), contents.gaps.len());
    drop(stdin);
    assert!(recorder.end().status.success());
}

#[test]
fn a_hold_outlives_the_laps_that_follow_it_and_a_release_ends_it() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&["--flush", "50ms"]));
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"keep me\n").unwrap();
    let now = recorder.await_packed(1);
    let mut connection = recorder.connect();
    let outcome = hold(&mut connection, Timestamp(0), now);
    let Outcome::Held { id, slots, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(slots, 1);
    assert_eq!(connection.holds().unwrap().iter().map(|h| (h.id, h.slots)).collect::<Vec<_>>(), [(id, 1)]);
    // Three laps.
    let filler = vec![b'x'; 1000];
    for _ in 0..50_000 {
        stdin.write_all(&filler).unwrap();
        stdin.write_all(b"\n").unwrap();
    }
    recorder.await_packed(50_001);
    let contents = Contents::read(&mut recorder.reader());
    assert_eq!(contents.elements[0].2, b"keep me");
    assert!(contents.elements[1..].iter().all(|(_, ordinal, _)| *ordinal < 300 || *ordinal > 30_000));
    assert_eq!(connection.holds().unwrap()[0].slots, 1);
    assert_eq!(connection.order(Order::Release(id.into())).unwrap(), Outcome::Released { slots: 1 });
    let again = connection.order(Order::Release(id.into())).unwrap();
    assert_eq!(again, Outcome::Refused(Refusal::NoSuchHold(id)));
    drop(stdin);
    assert!(recorder.end().status.success());
}

#[test]
fn whoever_is_told_that_an_order_was_carried_out_sees_it() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&["--flush", "10ms"]));
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"keep me\n").unwrap();
    recorder.await_packed(1);
    let mut connection = recorder.connect();
    let holds = |connection: &mut Connection| connection.status().unwrap().ring.holds;
    // Each a moment after the figures before it.
    for _ in 0..20 {
        assert_eq!(holds(&mut connection), 0);
        let outcome = hold(&mut connection, Timestamp::MIN, Timestamp::MAX);
        let Outcome::Held { id, .. } = outcome else { panic!("{outcome:?}") };
        assert_eq!(holds(&mut connection), 1);
        assert!(matches!(connection.order(Order::Release(id.into())).unwrap(), Outcome::Released { .. }));
    }
    drop(stdin);
    assert!(recorder.end().status.success());
}

#[test]
fn a_hold_by_condition_grows_by_what_its_evaluator_finds_and_waits_for_the_next_one() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&["--flush", "50ms"]));
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"keep me\n").unwrap();
    recorder.await_packed(1);
    let mut connection = recorder.connect();
    let Order::Hold(request) = hold_of(Timestamp::MIN, Timestamp::MAX) else { unreachable!() };
    let condition_hold = ConditionHold {
        condition: "keep > 0".into(),
        after: 1_000_000_000,
        standing: true,
        quota: 3,
        ..ConditionHold::default()
    };
    let begin =
        HoldRequest { sequences: Some(Vec::new()), condition_hold: Some(condition_hold.clone()), ..request };
    let outcome = connection.order(Order::Hold(begin)).unwrap();
    let Outcome::Held { id, slots: 0, .. } = outcome else { panic!("{outcome:?}") };
    let promised = |connection: &mut Connection| connection.status().unwrap().ring.slots.promised;
    assert_eq!(promised(&mut connection), 3);
    // It is in the open slot: the answer comes when that much of it is durable.
    let (open, stream) = (connection.status().unwrap().ring.sequence, connection.streams().unwrap()[0].id);
    let found = ExtendRequest {
        hold: id,
        sequences: vec![(open, open)],
        watermarks: vec![(stream, Ordinal(1))],
        durable: true,
    };
    let outcome = connection.order(Order::Extend(found.clone())).unwrap();
    assert_eq!(outcome, Outcome::Extended { added: 1, slots: 1, left: 2, missed: 0 });
    let filler = vec![b'x'; 1000];
    for _ in 0..50_000 {
        stdin.write_all(&filler).unwrap();
        stdin.write_all(b"\n").unwrap();
    }
    recorder.await_packed(50_001);
    let late = ExtendRequest { sequences: vec![(open.next(), open.next())], ..found };
    let outcome = connection.order(Order::Extend(late)).unwrap();
    assert_eq!(outcome, Outcome::Extended { added: 0, slots: 1, left: 2, missed: 1 });
    assert_eq!(promised(&mut connection), 2);
    drop(connection);
    recorder.signal(Signal::KILL);
    assert!(!recorder.end().status.success());
    // Only now: a recorder whose input ends would end by itself, and well.
    drop(stdin);
    let mut reader = reader(&place.ring);
    let hold = reader.holds().unwrap().remove(0);
    let condition_hold = ConditionHold { watermarks: vec![(stream, Ordinal(1))], ..condition_hold };
    assert_eq!((hold.id, hold.slots, hold.condition_hold), (id, 1, Some(condition_hold)));
    assert_eq!(reader.status().unwrap().ring.slots.promised, 2);
    assert_eq!(Contents::read(&mut reader).elements[0].2, b"keep me");
}

#[test]
fn a_purge_takes_just_its_range_while_the_recording_goes_on() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&[]));
    let mut stdin = recorder.stdin().unwrap();
    stdin.write_all(b"before\nsecret\nafter\n").unwrap();
    recorder.await_packed(3);
    let mut connection = recorder.connect();
    let range =
        Range { ordinals: Some((holdfast_base::Ordinal(1), holdfast_base::Ordinal(2))), ..Range::ALL };
    let purge =
        PurgeRequest { streams: Vec::new(), range, held: false, reason: "test".into(), owner: "me".into() };
    let outcome = connection.order(Order::Purge(purge)).unwrap();
    assert!(matches!(outcome, Outcome::Purged { elements: 1, bytes: 6, .. }), "{outcome:?}");
    stdin.write_all(b"later\n").unwrap();
    drop(stdin);
    assert!(recorder.end().status.success());
    assert_eq!(place.contents().payloads(), [&b"before"[..], b"after", b"later"]);
    let bytes = std::fs::read(&place.ring).unwrap();
    assert!(!bytes.windows(6).any(|w| w == b"secret"), "it is still on the medium");
}

#[test]
fn a_ring_grows_under_its_recorder() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&[]));
    let mut connection = recorder.connect();
    let before = connection.status().unwrap().ring.slots.total;
    // It takes what is there; making the file longer may take long, and is not its work.
    let long = std::fs::metadata(&place.ring).unwrap().len();
    let refused = connection.order(Order::Grow(ByteSize::mib(24))).unwrap();
    assert!(
        matches!(&refused, Outcome::Refused(Refusal::Geometry(why)) if why.contains("longer first")),
        "{refused:?}"
    );
    assert_eq!(std::fs::metadata(&place.ring).unwrap().len(), long);
    holdfast_media::extend_file(&place.ring, 24 << 20, holdfast_media::Prefill::No).unwrap();
    let outcome = connection.order(Order::Grow(ByteSize::mib(24))).unwrap();
    let Outcome::Grown { slots } = outcome else { panic!("{outcome:?}") };
    assert_eq!(slots, before + 32);
    assert_eq!(connection.status().unwrap().ring.slots.total, slots);
    assert_eq!(recorder.reader().superblock().geometry.slots, slots, "a newcomer is told");
    recorder.stdin().unwrap().write_all(b"x\n").unwrap();
    assert!(recorder.end().status.success());
    assert_eq!(place.contents().elements.len(), 1);
}

#[test]
fn clients_that_misbehave_lose_their_connection_and_nothing_else() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&[]));
    let mut stdin = recorder.stdin().unwrap();
    // Garbage.
    let mut garbage = UnixStream::connect(&recorder.socket).unwrap();
    garbage.write_all(&[0xff; 4096]).unwrap();
    let mut said = Vec::new();
    std::io::Read::read_to_end(&mut garbage, &mut said).unwrap();
    // Half a request, then silence.
    let mut half = UnixStream::connect(&recorder.socket).unwrap();
    half.write_all(&[1]).unwrap();
    // One that asks for much and never reads.
    let mut deaf = recorder.connect();
    for _ in 0..200 {
        deaf.send(&Request::Slots { from: 0, count: u32::MAX }).unwrap();
    }
    stdin.write_all(b"y\n").unwrap();
    recorder.await_packed(1);
    // Reads of nonsense.
    let mut connection = recorder.connect();
    for (sequence, offset, len) in [(1, 1, 4096), (1, 0, 0), (1, 0, 1 << 30), (1, !4095, 4096), (1, 0, 100)] {
        let request = Request::Read { sequence: Sequence(sequence), offset, len, purpose: Purpose::Search };
        let refused = connection.call(&request);
        assert!(matches!(refused, Err(ProtocolError::Refused { .. })), "{refused:?}");
    }
    let request = Request::Read { sequence: Sequence(99_999), offset: 0, len: 4096, purpose: Purpose::Scrub };
    assert_eq!(connection.call(&request).unwrap(), Reply::Expired);
    assert_eq!(connection.call(&Request::Done { offset: 77 }).unwrap(), Reply::Done { kept: false });
    drop(stdin);
    let ended = recorder.end();
    assert!(ended.status.success());
    assert_eq!(place.contents().elements.len(), 1);
}

#[test]
fn reads_beyond_the_tickets_there_are_do_not_stand_in_the_way_of_their_return() {
    let place = TestFolder::new();
    let mut recorder = place.start(&lines(&[]));
    let mut stdin = recorder.stdin().unwrap();
    for _ in 0..2000 {
        stdin.write_all(&[[b'x'; 999].as_slice(), b"\n"].concat()).unwrap();
    }
    recorder.await_packed(2000);
    let mut connection = recorder.connect();
    let slots = connection.slots().unwrap();
    let sequence = slots.iter().map(|slot| slot.sequence).max().unwrap();
    // More than there can be tickets, all before the first answer is looked at.
    let asked = 30;
    for _ in 0..asked {
        connection.send(&Request::Read { sequence, offset: 0, len: 4096, purpose: Purpose::Scrub }).unwrap();
    }
    let mut kept = 0;
    while kept < asked {
        match connection.next_reply().unwrap().1 {
            Reply::Ready { offset, .. } => {
                connection.send(&Request::Done { offset }).unwrap();
            }
            Reply::Done { kept: was } => {
                assert!(was, "a piece was taken back though it was returned at once");
                kept += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    drop(stdin);
    assert!(recorder.end().status.success());
}
