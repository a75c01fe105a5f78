//! Tests of devices that go away during a recording: promises 1, 2 and 6 with the real program, on real loop devices.

use crate::process::common::{Contents, Recorder, TestFolder, hold_of};
use crate::process::device::{Frail, Freezing, Lockable};
use holdfast_base::Timestamp;
use holdfast_format::Cause;
use holdfast_protocol::wire::{DeviceState, RecorderStatus, Status};
use holdfast_ring::Outcome;
use rustix::process::Signal;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ChildStdin;

const ELEMENT: usize = 1000;

const SOURCE: [&str; 8] =
    ["--source", "stdin", "--name", "s", "--frame", "fixed:1000", "--on-overload", "drop-newest"];

/// An element that says which it is.
fn element(number: u64) -> Vec<u8> {
    let mut data = number.to_le_bytes().to_vec();
    data.resize(ELEMENT, number as u8);
    data
}

/// What is fed, by number.
struct Feed {
    stdin: ChildStdin,
    next: u64,
}

impl Feed {
    fn of(recorder: &mut Recorder) -> Self {
        Self { stdin: recorder.stdin().unwrap(), next: 0 }
    }

    fn some(&mut self, count: u64) {
        let data: Vec<u8> = (self.next..self.next + count).flat_map(element).collect();
        // As a slow producer gives them, so that the recorder's reads end anywhere in an element.
        for piece in data.chunks(1500) {
            self.stdin.write_all(piece).unwrap();
        }
        self.next += count;
    }

    /// Feeds until it is as wanted.
    fn until(&mut self, recorder: &Recorder, wanted: impl Fn(&RecorderStatus) -> bool) {
        let mut connection = recorder.connect();
        while !wanted(&connection.status().unwrap().recorder.unwrap()) {
            self.some(200);
        }
    }
}

fn is_absent(status: &RecorderStatus) -> bool {
    status.device.state == DeviceState::Absent
}

fn dropped(status: &RecorderStatus, cause: Cause) -> u64 {
    status.sources[0].dropped.iter().filter(|d| d.cause == cause).map(|d| d.elements).sum()
}

/// A ring in a file, made and empty.
fn made() -> TestFolder {
    let place = TestFolder::in_memory();
    let options: Vec<&str> = ["--size", "48MiB", "--slot", "256KiB"].into_iter().chain(SOURCE).collect();
    assert!(place.record(&options, b"").status.success());
    place
}

fn options(more: &[&'static str]) -> Vec<&'static str> {
    SOURCE.iter().copied().chain(["--flush", "20ms"]).chain(more.iter().copied()).collect()
}

/// What is there is right, and so is every ordinal that is not; the elements that gaps tell of, by cause.
fn accounted(contents: &Contents, sent: u64) -> Vec<(Cause, u64)> {
    assert!(
        contents.damaged.is_empty() && contents.partial == 0 && contents.expired.is_empty(),
        "of {sent}: {}",
        contents.brief()
    );
    let mut seen = vec![false; sent as usize];
    for (_, ordinal, data) in &contents.elements {
        assert_eq!(data, &element(*ordinal), "ordinal {ordinal}");
        assert!(!std::mem::replace(&mut seen[*ordinal as usize], true), "{ordinal} is there twice");
    }
    let mut by_cause: Vec<(Cause, u64)> = Vec::new();
    for (_, first, ordinals, elements, cause) in &contents.gaps {
        assert_eq!(*elements, Some(*ordinals), "what was dropped here is counted exactly");
        for ordinal in *first..first + ordinals {
            assert!(!std::mem::replace(&mut seen[ordinal as usize], true), "{ordinal} is there and lost");
        }
        match by_cause.iter_mut().find(|(known, _)| known == cause) {
            Some((_, count)) => *count += ordinals,
            None => by_cause.push((*cause, *ordinals)),
        }
    }
    assert!(seen.iter().all(|seen| *seen), "neither there nor in a gap");
    by_cause
}

/// Recorded to while it goes away and comes back.
fn goes_and_comes_back(mut place: TestFolder, device: PathBuf, fail: &dyn Fn(), heal: &dyn Fn()) {
    place.ring = device;
    let mut recorder = place.start(&options(&["--json"]));
    let mut feed = Feed::of(&mut recorder);
    feed.some(3000);
    recorder.await_packed(3000);
    fail();
    // The source is drained all the while: else this would not come to an end.
    feed.until(&recorder, |status| is_absent(status) && dropped(status, Cause::DeviceAbsent) > 500);
    let status = recorder.connect().status().unwrap().recorder.unwrap();
    assert!(!status.device.error.is_empty());
    heal();
    let mut connection = recorder.connect();
    loop {
        let status = connection.status().unwrap().recorder.unwrap();
        if !is_absent(&status) && status.buffers.in_use <= 1 && status.sources[0].waiting == 0 {
            break;
        }
    }
    let before = connection.status().unwrap().recorder.unwrap().sources[0].packed_elements;
    feed.some(1000);
    recorder.await_packed(before + 1000);
    let slots = connection.status().unwrap().ring.slots;
    let last = connection.status().unwrap().recorder.unwrap();
    assert_eq!(slots.bad, 0, "the device was away: no slot of it is bad");
    let sent = feed.next;
    drop(feed);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.err.contains("the device does not answer"), "{}", ended.err);
    assert!(ended.err.contains("the device answers again"), "{}", ended.err);
    let by_cause = accounted(&place.contents(), sent);
    for (cause, lost) in &by_cause {
        assert!(matches!(cause, Cause::DeviceAbsent | Cause::NoBuffer | Cause::NoProcessor), "{cause:?}");
        assert_eq!(*lost, dropped(&last, *cause), "{cause:?}");
    }
    let absent = by_cause.iter().find(|(cause, _)| *cause == Cause::DeviceAbsent).unwrap().1;
    assert!(ended.out.contains(&format!("\"device_absent\":{absent}")), "{}", ended.out);
}

#[test]
fn a_device_that_takes_no_writes_for_a_while_costs_what_did_not_fit_into_memory_and_nothing_else() {
    let place = made();
    let Some(device) = Lockable::over(&place.ring) else { return };
    goes_and_comes_back(place, device.0.path(), &|| device.lock(), &|| device.unlock());
}

#[test]
fn a_device_that_answers_errors_for_a_while_costs_what_did_not_fit_into_memory_and_nothing_else() {
    let place = made();
    let Some(device) = Frail::over(&place.ring) else { return };
    goes_and_comes_back(place, device.device.path(), &|| device.fail(), &|| device.heal());
}

#[test]
fn a_hold_while_the_device_is_away_tells_what_it_waits_for_and_is_granted_when_that_is_back() {
    let mut place = made();
    let Some(device) = Lockable::over(&place.ring) else { return };
    place.ring = device.0.path();
    let mut recorder = place.start(&options(&[]));
    let mut feed = Feed::of(&mut recorder);
    feed.some(3000);
    recorder.await_packed(3000);
    device.lock();
    feed.until(&recorder, is_absent);
    let (told, tells) = std::sync::mpsc::channel();
    let mut connection = recorder.connect();
    let waiting = std::thread::spawn(move || {
        let mut state = |status: &Status| {
            told.send(status.recorder.as_ref().unwrap().device.state).unwrap();
        };
        connection.order_watched(hold_of(Timestamp::MIN, Timestamp::MAX), &mut state).unwrap()
    });
    assert_eq!(tells.recv().unwrap(), DeviceState::Absent);
    device.unlock();
    assert!(matches!(waiting.join().unwrap(), Outcome::Held { .. }));
    drop(feed);
    assert!(recorder.end().status.success());
}

/// What is on the ring after a run that was cut off: a beginning of what was sent, each as it was.
fn cut_off(place: &TestFolder, sent: u64) {
    let ended = place.start(&options(&[])).end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.err.contains("the last run was cut off"), "{}", ended.err);
    let contents = place.contents();
    assert!(contents.damaged.is_empty(), "{:?}", contents.damaged);
    for (at, (_, ordinal, data)) in contents.elements.iter().enumerate() {
        assert_eq!((*ordinal, data), (at as u64, &element(at as u64)));
    }
    assert!(contents.elements.len() as u64 <= sent);
    assert!(contents.gaps.iter().any(|(.., cause)| *cause == Cause::Crash), "{:?}", contents.gaps);
}

#[test]
fn told_to_end_while_the_device_is_away_it_gives_up_and_says_what_is_lost() {
    let mut place = made();
    let Some(device) = Lockable::over(&place.ring) else { return };
    place.ring = device.0.path();
    let mut recorder = place.start(&options(&["--patience", "100ms"]));
    let mut feed = Feed::of(&mut recorder);
    feed.some(500);
    recorder.await_packed(500);
    device.lock();
    feed.until(&recorder, is_absent);
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.err);
    assert!(ended.err.contains("cannot write to the ring: /dev/loop"), "{}", ended.err);
    assert!(ended.err.contains(" in memory)"), "{}", ended.err);
    device.unlock();
    cut_off(&place, feed.next);
}

/// A recorder whose device says nothing any more, with the elements fed so far.
fn silenced(patience: &'static str) -> Option<(TestFolder, Freezing, Recorder, Feed)> {
    let mut place = made();
    let device = Freezing::with(place.folder.path(), &place.ring)?;
    place.ring = device.path();
    let mut recorder = place.start(&options(&["--patience", patience]));
    let mut feed = Feed::of(&mut recorder);
    // Packed means that its first words are on the medium: before that nothing would be.
    feed.some(500);
    recorder.await_packed(500);
    device.freeze();
    feed.some(500);
    recorder.await_packed(1000);
    Some((place, device, recorder, feed))
}

#[test]
fn told_to_end_while_the_device_is_silent_it_gives_up_too() {
    let Some((place, device, recorder, feed)) = silenced("50ms") else { return };
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(1), "{}", ended.err);
    assert!(ended.err.contains("the device has not answered for"), "{}", ended.err);
    device.thaw();
    cut_off(&place, feed.next);
}

#[test]
fn a_second_signal_ends_it_at_once_while_the_device_is_silent() {
    let Some((place, device, mut recorder, feed)) = silenced("1h") else { return };
    recorder.signal_until_it_ends();
    let ended = recorder.end();
    assert_eq!(ended.status.code(), Some(130), "{}", ended.err);
    device.thaw();
    cut_off(&place, feed.next);
}
