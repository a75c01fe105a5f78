//! Tests of distilling beside a recording at full speed: wanted elements stay, the slots are freed, nothing else is
//! touched, and a purge need not wait for the end. Promises 1, 3, 4 and 8.

use crate::process::common::{Contents, TestFolder, hold};
use holdfast_base::{Ordinal, Sequence, StreamId, Timestamp};
use holdfast_protocol::client::Connection;
use holdfast_protocol::wire::{Reply, Request};
use holdfast_ring::{DistilRequest, Order, Original, Outcome, PurgeRequest, Range, Refusal};

fn line(ordinal: u64) -> Vec<u8> {
    format!("line {ordinal} {}\n", "x".repeat((ordinal % 500) as usize)).into_bytes()
}

fn send(stdin: &mut impl std::io::Write, range: std::ops::Range<u64>) {
    let text: Vec<u8> = range.flat_map(line).collect();
    stdin.write_all(&text).unwrap();
}

const OPTIONS: [&str; 10] =
    ["--size", "6MiB", "--slot", "64KiB", "--source", "stdin", "--name", "s", "--frame", "lines"];

#[test]
fn what_is_wanted_of_a_hold_stays_beside_a_recording_and_the_rest_of_its_slots_comes_back() {
    let place = TestFolder::in_memory();
    let mut recorder = place.start(&OPTIONS);
    let mut stdin = recorder.stdin().unwrap();
    send(&mut stdin, 0..3_000);
    let now = recorder.await_packed(3_000);
    let mut connection = recorder.connect();
    let outcome = hold(&mut connection, Timestamp(0), now);
    let Outcome::Held { id, slots, .. } = outcome else { panic!("{outcome:?}") };
    assert!(slots > 10, "{slots}");
    let stream = connection.streams().unwrap()[0].id;
    let wanted = [7, 800, 801, 2_222];
    let distil = |connection: &mut Connection| {
        let held = connection.holds().unwrap().remove(0);
        let sequences = held.sequences.iter().flat_map(|(first, last)| first.0..=last.0);
        let keep: Vec<_> = wanted.map(|o| (stream, Ordinal(o), Ordinal(o + 1))).into();
        let originals = sequences
            .map(|s| Original { sequence: Sequence(s), holds: vec![id], keep: keep.clone() })
            .collect();
        Order::Distil(DistilRequest { hold: id, originals })
    };
    // Nothing has expired yet, so that nothing goes.
    let order = distil(&mut connection);
    let outcome = connection.order(order).unwrap();
    assert_eq!(outcome, Outcome::Distilled { originals: 0, copies: 0, elements: 0, bytes: 0, due: 0 });
    // More than a lap, and on and on while it is distilled.
    send(&mut stdin, 3_000..40_000);
    recorder.await_packed(40_000);
    let order = distil(&mut connection);
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| send(&mut stdin, 40_000..60_000));
        connection.order(order).unwrap()
    });
    let Outcome::Distilled { originals, copies, elements, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!((originals, copies, elements), (slots, 1, 4));
    assert_eq!(connection.holds().unwrap()[0].slots, 1);
    recorder.await_packed(60_000);
    drop(stdin);
    assert!(recorder.end().status.success());
    let contents = place.contents();
    assert!(contents.damaged.is_empty() && contents.gaps.is_empty(), "{}", contents.brief());
    let (kept, rest) = contents.elements.split_at(wanted.len());
    let text = |ordinal: u64| line(ordinal).strip_suffix(b"\n").unwrap().to_vec();
    for ((_, ordinal, data), wanted) in kept.iter().zip(wanted) {
        assert_eq!((*ordinal, data), (wanted, &text(wanted)));
    }
    let first = rest[0].1;
    assert!(first > 30_000, "{first}");
    for ((_, ordinal, data), wanted) in rest.iter().zip(first..) {
        assert_eq!((*ordinal, data), (wanted, &text(wanted)));
    }
    assert_eq!(rest.last().unwrap().1, 59_999);
}

#[test]
fn one_job_is_at_work_at_a_time_and_a_purge_waits_for_a_distilling() {
    let place = TestFolder::in_memory();
    let mut recorder = place.start(&OPTIONS);
    let mut stdin = recorder.stdin().unwrap();
    send(&mut stdin, 0..3_000);
    let now = recorder.await_packed(3_000);
    let mut connection = recorder.connect();
    let Outcome::Held { id, .. } = hold(&mut connection, Timestamp(0), now) else { panic!() };
    send(&mut stdin, 3_000..40_000);
    recorder.await_packed(40_000);
    let held = connection.holds().unwrap().remove(0);
    let sequences = held.sequences.iter().flat_map(|(first, last)| first.0..=last.0);
    let keep = vec![(StreamId(1), Ordinal(9), Ordinal(10))];
    let originals =
        sequences.map(|s| Original { sequence: Sequence(s), holds: vec![id], keep: keep.clone() }).collect();
    let distil = Order::Distil(DistilRequest { hold: id, originals });
    let range = Range { ordinals: Some((Ordinal(0), Ordinal(5))), ..Range::ALL };
    let (reason, owner) = ("test".to_owned(), "me".to_owned());
    let purge = PurgeRequest { streams: Vec::new(), range, held: true, reason, owner };
    // All of these are read before the first has ended.
    let asked = [distil.clone(), distil, Order::Purge(purge)]
        .map(|order| connection.send(&Request::Order(order)).unwrap());
    let mut outcomes = Vec::new();
    for _ in 0..asked.len() {
        let (id, reply) = connection.next_reply().unwrap();
        let Reply::Outcome(outcome) = reply else { panic!("{reply:?}") };
        outcomes.push((id, outcome));
    }
    outcomes.sort_unstable_by_key(|(id, _)| *id);
    let [(_, first), (_, second), (_, third)] = <[_; 3]>::try_from(outcomes).unwrap();
    assert!(matches!(first, Outcome::Distilled { .. }), "{first:?}");
    assert!(
        matches!(second, Outcome::Refused(Refusal::Busy("distilling")) | Outcome::Distilled { .. }),
        "{second:?}"
    );
    // Of the five there may be none left by then.
    let done = matches!(third, Outcome::Purged { .. } | Outcome::Refused(Refusal::Nothing { .. }));
    assert!(done, "it is not refused because something is at work: {third:?}");
    drop(stdin);
    assert!(recorder.end().status.success());
    let contents = Contents::read(&mut crate::process::common::reader(&place.ring));
    assert!(contents.damaged.is_empty(), "{}", contents.brief());
    assert!(contents.elements.iter().all(|(_, ordinal, _)| *ordinal >= 5));
}
