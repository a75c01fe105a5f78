//! Tests of attributes that producers send in headers: through the whole program, in pieces, in fragments, over several
//! connections and a kill, each element has its own header, and frames come back byte for byte (promises 2 and 5).

use crate::process::attributes::{of_elements, on_medium};
use crate::process::common::{TestFolder, reader};
use holdfast_ingest::{Flags, Framing};
use holdfast_reader::{Item, RingReader, Selection};
use rustix::process::Signal;
use std::io::Write as _;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::ControlFlow;

const GIVEN: [&str; 12] = [
    "--frame",
    "attr32",
    "--attr",
    "n:uint=given",
    "--attr",
    "name:text=given",
    "--attr",
    "first:uint=at:0:u8",
    "--attr",
    "event_time:time=given",
    "--flush",
    "20ms",
];

/// Rows have at most 8 KiB, so that many elements are in fragments.
const RING: [&str; 4] = ["--size", "64MiB", "--slot", "64KiB"];

/// A frame of a producer: its number, a name, a time; now and then less, something wrong, or no header at all.
fn frame(producer: u64, number: u64) -> Vec<u8> {
    let name = format!("{producer}.{number} {}", "x".repeat((number * 31 % 1000) as usize));
    let mut header = Vec::new();
    for value in [&number.to_le_bytes()[..], name.as_bytes(), &(number * 1000).to_le_bytes()] {
        header.extend((value.len() as u16).to_le_bytes());
        header.extend(value);
    }
    match number % 10 {
        3 => header.truncate(10),
        4 => header.truncate(11),
        5 => header.extend(vec![0; 7000]),
        _ => {}
    }
    let size = if number.is_multiple_of(9) { 30_000 } else { number * 7 % 80 };
    let data: Vec<u8> = (0..size).map(|at| (at * 7 + number) as u8).collect();
    let mut frame = Vec::new();
    let header = Some(&header[..]).filter(|_| number % 10 != 6);
    Framing::Attr32.restore(&mut frame, header, &data, u16::MAX);
    frame
}

/// How many of so many frames do not have what they should.
fn undecodable(numbers: std::ops::Range<u64>) -> u64 {
    // Without a header; cut in a value; and without a first byte.
    let wrong = |number: &u64| {
        matches!(number % 10, 4 | 6) || (!number.is_multiple_of(9) && (number * 7).is_multiple_of(80))
    };
    numbers.filter(wrong).count() as u64
}

/// All that can be read back, put through its framing again, an element each.
fn restored(reader: &mut RingReader) -> Vec<Vec<u8>> {
    let plan = reader.plan(&Selection::ALL).unwrap();
    let mut all = Vec::new();
    let mut sink = |item: Item<'_>| {
        if let Item::Element(element) = item {
            let header = element.flags.has(Flags::HEADER).then_some(element.meta);
            let mut frame = Vec::new();
            Framing::Attr32.restore(&mut frame, header, element.data, element.tag);
            all.push(frame);
        }
        ControlFlow::Continue(())
    };
    reader.read(&plan, &mut sink).unwrap();
    all
}

#[test]
fn frames_that_come_in_pieces_keep_their_headers_over_a_kill() {
    let place = TestFolder::in_memory();
    let source = ["--source", "stdin", "--name", "s"];
    for (run, first) in
        [[&RING[..], &source, &GIVEN].concat(), [&source[..], &GIVEN].concat()].iter().zip([0, 500])
    {
        let mut recorder = place.start(run);
        let mut input = recorder.stdin().unwrap();
        for number in first..first + 500 {
            let frame = frame(0, number);
            // In the length, in the header or in the data: its first part is in a slot before the rest comes.
            let (begin, rest) = frame.split_at(frame.len() * (number % 13) as usize / 13);
            input.write_all(begin).unwrap();
            if number % 8 == 3 {
                recorder.await_packed(number - first);
            }
            input.write_all(rest).unwrap();
        }
        recorder.await_packed(500);
        let status = recorder.connect().status().unwrap().recorder.unwrap();
        assert_eq!(status.sources[0].undecodable, undecodable(first..first + 500));
        if first == 0 {
            recorder.signal(Signal::KILL);
            recorder.end();
        } else {
            recorder.signal(Signal::INT);
            assert!(recorder.end().status.success());
        }
    }
    let mut reader = reader(&place.ring);
    let back = restored(&mut reader);
    // What the kill cost came last before it; and whatever is there is as it came.
    let sent: Vec<Vec<u8>> = (0..1000).map(|number| frame(0, number)).collect();
    let kept = back.len() - 500;
    assert!(kept > 0 && back[..kept] == sent[..kept] && back[kept..] == sent[500..]);
    let wanted = of_elements(&mut reader);
    let (found, slots) = on_medium(&place.ring);
    assert!(slots > 0 && found.iter().all(|(key, cells)| wanted.get(key) == Some(cells)));
    assert!(found.len() >= 500, "the last run ended well: {}", found.len());
}

#[test]
fn producers_at_once_each_give_their_own() {
    let place = TestFolder::in_memory();
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port();
    let source = format!("tcp:127.0.0.1:{port}");
    let recorder = place.start(&[&RING[..], &["--source", &source, "--name", "s"], &GIVEN].concat());
    let producers = (0..4).map(|producer| {
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
            for number in 0..300 {
                let frame = frame(producer, number);
                let (begin, rest) = frame.split_at(frame.len() * (number % 7) as usize / 7);
                stream.write_all(begin).unwrap();
                stream.write_all(rest).unwrap();
            }
        })
    });
    producers.collect::<Vec<_>>().into_iter().for_each(|producer| producer.join().unwrap());
    recorder.await_packed(1200);
    recorder.signal(Signal::INT);
    assert!(recorder.end().status.success());
    let mut reader = reader(&place.ring);
    let mut back = restored(&mut reader);
    let mut sent: Vec<Vec<u8>> =
        (0..4).flat_map(|producer| (0..300).map(move |number| frame(producer, number))).collect();
    back.sort_unstable();
    sent.sort_unstable();
    assert!(back == sent);
    let wanted = of_elements(&mut reader);
    assert!(wanted.len() == 1200 && on_medium(&place.ring).0 == wanted);
}
