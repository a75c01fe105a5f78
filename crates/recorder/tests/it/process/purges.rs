//! Tests of purges beside a recording: under load, with the fewest buffers possible, and on a device that fails.
//! Promises 1, 2 and 8.

use crate::process::common::{Contents, Recorder, TestFolder};
use crate::process::device::Frail;
use holdfast_base::Ordinal;
use holdfast_format::Cause;
use holdfast_ring::{Order, Outcome, PurgeRequest, Range};
use std::sync::mpsc::channel;

fn line(ordinal: u64) -> Vec<u8> {
    format!("line {ordinal} {}", "x".repeat((ordinal % 500) as usize)).into_bytes()
}

const SOURCE: [&str; 6] = ["--source", "stdin", "--name", "s", "--frame", "lines"];

fn purge(from: u64, to: u64) -> Order {
    let range = Range { ordinals: Some((Ordinal(from), Ordinal(to))), ..Range::ALL };
    Order::Purge(PurgeRequest {
        streams: Vec::new(),
        range,
        held: false,
        reason: "test".into(),
        owner: "me".into(),
    })
}

/// All lines are there but those that were purged, and what expired before the first.
fn without(contents: &Contents, sent: u64, purged: &[std::ops::Range<u64>]) {
    assert!(contents.damaged.is_empty() && contents.partial == 0, "{}", contents.brief());
    let mut wanted = contents.elements.first().map_or(sent, |(_, first, _)| *first);
    for (_, ordinal, data) in &contents.elements {
        while purged.iter().any(|range| range.contains(&wanted)) {
            wanted += 1;
        }
        assert_eq!((*ordinal, data), (wanted, &line(wanted)));
        wanted += 1;
    }
    assert_eq!(wanted, sent);
    assert!(contents.gaps.iter().all(|gap| gap.4 == Cause::Purged), "{:?}", contents.gaps);
}

#[test]
fn purges_beside_a_recording_at_full_speed_take_just_their_range_with_the_least_memory() {
    let place = TestFolder::in_memory();
    let options: Vec<&str> = ["--size", "48MiB", "--slot", "64KiB"].into_iter().chain(SOURCE).collect();
    let least = place.least(&options);
    let options: Vec<&str> = options.into_iter().chain(["--memory", &least, "--flush", "20ms"]).collect();
    let mut recorder = place.start(&options);
    let mut stdin = recorder.stdin().unwrap();
    // With every purge some 4 MiB more come, as fast as they can; all together less than a lap, so that nothing expires
    // before it is looked at.
    let (more, allowed) = channel();
    let (sent, purged) = std::thread::scope(|scope| {
        let feeder = scope.spawn(move || {
            let mut sent = 0;
            for part in allowed {
                send(&mut stdin, sent..sent + part);
                sent += part;
            }
            sent
        });
        more.send(10_000).unwrap();
        let mut purged = Vec::new();
        let mut connection = recorder.connect();
        for at in 0..3u64 {
            let (from, to) = (at * 1500 + 100, at * 1500 + 700);
            recorder.await_packed(to + 200);
            more.send(16_000).unwrap();
            let outcome = connection.order(purge(from, to)).unwrap();
            assert!(matches!(outcome, Outcome::Purged { elements: 600, .. }), "{outcome:?}");
            purged.push(from..to);
        }
        drop(more);
        (feeder.join().unwrap(), purged)
    });
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    without(&place.contents(), sent, &purged);
    let medium = std::fs::read(&place.ring).unwrap();
    for number in [100, 399, 3699] {
        let secret = format!("line {number} x");
        assert!(
            !medium.windows(secret.len()).any(|w| w == secret.as_bytes()),
            "{secret} is still on the medium"
        );
    }
    let kept = b"line 99 x";
    assert!(medium.windows(kept.len()).any(|w| w == kept));
}

fn send(stdin: &mut impl std::io::Write, range: std::ops::Range<u64>) {
    let text: Vec<u8> = range.flat_map(|n| [line(n), b"\n".to_vec()].concat()).collect();
    stdin.write_all(&text).unwrap();
}

/// Waits until the device is as wanted, as the recorder sees it.
fn await_device(recorder: &Recorder, wanted: holdfast_protocol::wire::DeviceState) {
    let mut connection = recorder.connect();
    while connection.status().unwrap().recorder.unwrap().device.state != wanted {}
}

#[test]
fn a_purge_that_meets_a_failing_device_says_so_or_waits_and_never_says_that_it_is_done() {
    let mut place = TestFolder::in_memory();
    let options: Vec<&str> = ["--size", "48MiB", "--slot", "64KiB"].into_iter().chain(SOURCE).collect();
    assert!(place.record(&options, b"").status.success());
    let Some(device) = Frail::over(&place.ring) else { return };
    place.ring = device.device.path();
    let options: Vec<&str> = SOURCE.into_iter().chain(["--flush", "20ms"]).collect();
    let mut recorder = place.start(&options);
    let mut stdin = recorder.stdin().unwrap();
    send(&mut stdin, 0..10_000);
    recorder.await_packed(10_000);
    device.fail();
    let outcome = std::thread::scope(|scope| {
        let order = scope.spawn(|| recorder.connect().order(purge(1000, 2000)));
        // What is recorded meanwhile makes the device's state known.
        send(&mut stdin, 10_000..10_500);
        await_device(&recorder, holdfast_protocol::wire::DeviceState::Absent);
        device.heal();
        await_device(&recorder, holdfast_protocol::wire::DeviceState::Ok);
        order.join().unwrap()
    });
    let mut purged = Vec::new();
    match outcome {
        Ok(Outcome::Purged { elements, .. }) => assert_eq!(elements, 1000, "it waited, and did all of it"),
        Ok(Outcome::Refused(_)) | Err(_) => {
            let again = recorder.connect().order(purge(1000, 2000)).unwrap();
            assert!(matches!(again, Outcome::Purged { .. }), "{again:?}");
        }
        Ok(other) => panic!("{other:?}"),
    }
    purged.push(1000..2000);
    send(&mut stdin, 10_500..12_000);
    drop(stdin);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    without(&place.contents(), 12_000, &purged);
    let medium = std::fs::read(place.path("r.hf")).unwrap();
    let secret = b"line 1499 x";
    assert!(!medium.windows(secret.len()).any(|w| w == secret), "it is still on the medium");
}
