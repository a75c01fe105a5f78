//! Tests of replayed MCAP files (promises 5 and 8): every message arrives as in the file and in its order, whatever the
//! chunking and compression; of a truncated or damaged file all intact messages arrive, and the position of the damage
//! is reported.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::rig::{Rig, opened};
use holdfast_attributes::given;
use holdfast_ingest::mcap::{MAGIC, McapError, McapReader, Message, Record, scan};
use holdfast_ingest::{Cause, Framing, SourceEnd, SourceOptions, Speed, StreamKind, open};
use proptest::prelude::*;
use std::io::Write as _;
use std::path::Path;

/// How a chunk is packed; `None`: no chunk at all.
type Packing = Option<&'static str>;

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[kind][..], &(content.len() as u64).to_le_bytes(), content].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
}

fn schema(id: u16) -> Vec<u8> {
    record(3, &[&id.to_le_bytes()[..], &text("Point"), &text("ros2msg"), &text("float64 x")].concat())
}

fn other_schema(id: u16) -> Vec<u8> {
    record(3, &[&id.to_le_bytes()[..], &text("Point"), &text("ros2msg"), &text("float32 x")].concat())
}

fn channel(id: u16, schema: u16, topic: &str) -> Vec<u8> {
    channel_of(id, schema, topic, &["rate", "10"])
}

fn channel_with(id: u16, metadata: &[&str]) -> Vec<u8> {
    channel_of(id, 0, "/t", metadata)
}

fn channel_of(id: u16, schema: u16, topic: &str, metadata: &[&str]) -> Vec<u8> {
    let metadata: Vec<u8> = metadata.iter().flat_map(|one| text(one)).collect();
    let metadata = [&(metadata.len() as u32).to_le_bytes()[..], &metadata].concat();
    let ids = [id.to_le_bytes(), schema.to_le_bytes()].concat();
    record(4, &[&ids[..], &text(topic), &text("cdr"), &metadata].concat())
}

#[derive(Clone, Debug, PartialEq)]
struct Sent {
    channel: u16,
    sequence: u32,
    log_time: u64,
    publish_time: u64,
    data: Vec<u8>,
}

impl Sent {
    fn record(&self) -> Vec<u8> {
        let head = [&self.channel.to_le_bytes()[..], &self.sequence.to_le_bytes()].concat();
        let times = [self.log_time.to_le_bytes(), self.publish_time.to_le_bytes()].concat();
        record(5, &[&head[..], &times, &self.data].concat())
    }

    fn of(message: &Message<'_>) -> Self {
        let Message { channel, sequence, log_time, publish_time, data } = *message;
        Self { channel, sequence, log_time, publish_time, data: data.to_vec() }
    }
}

fn chunk(packing: &str, records: &[u8]) -> Vec<u8> {
    let packed = match packing {
        "lz4" => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(records).unwrap();
            encoder.finish().unwrap()
        }
        "zstd" => zstd::encode_all(records, 1).unwrap(),
        _ => records.to_vec(),
    };
    let head = [&[0; 16][..], &(records.len() as u64).to_le_bytes(), &crc32fast::hash(records).to_le_bytes()];
    let packed = [&(packed.len() as u64).to_le_bytes()[..], &packed].concat();
    record(6, &[&head.concat()[..], &text(packing), &packed].concat())
}

/// A file of these messages, so many to a chunk; how many bytes it has up to the end of each message or of the chunk that has it.
fn file(sent: &[Sent], parts: &[(Packing, usize)]) -> (Vec<u8>, Vec<usize>) {
    let mut bytes = [&MAGIC[..], &record(1, &[text("ros2"), text("test")].concat())].concat();
    // Something to pass over, and of a kind that nobody knows.
    bytes.extend(record(12, b"metadata"));
    bytes.extend(record(0x80, b"private"));
    let (mut ends, mut rest, mut known) = (Vec::new(), sent, Vec::new());
    for (packing, count) in parts.iter().cycle() {
        let (now, later) = rest.split_at((*count).min(rest.len()));
        let mut records = Vec::new();
        for message in now {
            if !known.contains(&message.channel) {
                known.push(message.channel);
                let schema_of = message.channel % 3;
                if schema_of > 0 {
                    records.extend(schema(schema_of));
                }
                records.extend(channel(message.channel, schema_of, &format!("/topic/{}", message.channel)));
            }
            records.extend(message.record());
            if packing.is_none() {
                ends.push(bytes.len() + records.len());
            }
        }
        match packing {
            Some(packing) => {
                bytes.extend(chunk(packing, &records));
                ends.extend(now.iter().map(|_| bytes.len()));
            }
            None => bytes.extend(records),
        }
        rest = later;
        if rest.is_empty() {
            break;
        }
    }
    bytes.extend(record(15, &[0; 4]));
    bytes.extend(channel(0, 0, "an index repeats what was there"));
    bytes.extend(record(2, &[0; 20]));
    bytes.extend(MAGIC);
    (bytes, ends)
}

fn read(bytes: &[u8]) -> (Vec<Sent>, Option<McapError>) {
    let (mut reader, mut all) = (McapReader::new(bytes), Vec::new());
    loop {
        match reader.next_record() {
            Ok(Some(Record::Message(message))) => all.push(Sent::of(&message)),
            Ok(Some(_)) => {}
            Ok(None) => return (all, None),
            Err(error) => return (all, Some(error)),
        }
    }
}

fn sent() -> impl Strategy<Value = Vec<Sent>> {
    let one = (0u16..7, any::<u32>(), any::<u32>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..300));
    let one = one.prop_map(|(channel, sequence, log_time, publish_time, data)| Sent {
        channel,
        sequence,
        log_time: log_time.into(),
        publish_time: publish_time.into(),
        data,
    });
    prop::collection::vec(one, 1..60)
}

fn parts() -> impl Strategy<Value = Vec<(Packing, usize)>> {
    let packing = prop_oneof![Just(None), Just(Some("")), Just(Some("lz4")), Just(Some("zstd"))];
    prop::collection::vec((packing, 1usize..20), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_message_of_a_file_comes_however_it_is_packed_and_all_that_are_whole_of_one_that_is_cut(
        sent in sent(), parts in parts(), cut in any::<prop::sample::Index>(), flipped in any::<prop::sample::Index>(),
    ) {
        let (bytes, ends) = file(&sent, &parts);
        let (all, error) = read(&bytes);
        prop_assert!(error.is_none(), "{error:?}");
        prop_assert_eq!(&all, &sent);
        let (preamble, report) = scan(&bytes[..], 1 << 20).unwrap();
        prop_assert_eq!((report.messages, report.left_out, report.broke.is_none()), (sent.len() as u64, 2, true));
        for message in &sent {
            let topic = format!("/topic/{}", message.channel);
            prop_assert_eq!(preamble.topic(message.channel), Some(topic.as_str()));
        }
        // What a reader needs is the beginning of a file that says the same.
        let again = preamble.to_bytes();
        let (same, report) = scan(&again[..], 1 << 20).unwrap();
        prop_assert!(same == preamble && report.messages == 0);

        let at = cut.index(bytes.len());
        let (some, error) = read(&bytes[..at]);
        let whole = ends.iter().filter(|end| **end <= at).count();
        let data_end = bytes.len() - 8 - 29 - channel(0, 0, "an index repeats what was there").len();
        if at >= data_end {
            prop_assert!(error.is_none() && some == sent);
        } else {
            prop_assert_eq!(&some[..], &sent[..whole]);
            let Some(McapError::Broken { at_byte, .. }) = error else { panic!("{error:?}") };
            prop_assert!(at_byte <= at as u64 && ends.iter().filter(|end| **end as u64 <= at_byte).count() >= whole);
        }

        // Of chunks nothing comes that was not sent, and nothing in another order.
        let mut damaged = bytes.clone();
        let at = flipped.index(damaged.len());
        damaged[at] ^= 1;
        let packed = parts.iter().all(|(packing, _)| packing.is_some());
        let (some, _) = read(&damaged);
        if packed {
            let mut left = sent.iter();
            prop_assert!(some.iter().all(|one| left.any(|other| other == one)));
        }
    }
}

fn of(dir: &Path, bytes: &[u8]) -> String {
    let path = dir.join("any name");
    std::fs::write(&path, bytes).unwrap();
    format!("replay:{}", path.display())
}

fn some() -> Vec<Sent> {
    let one = |n: u64| Sent {
        channel: (n % 2) as u16,
        sequence: (n / 2 + u64::from(n >= 6)) as u32,
        log_time: 1_700_000_000_000_000_000 + n,
        publish_time: 1_600_000_000_000_000_000 + n,
        data: vec![n as u8; n as usize * 1000],
    };
    (0..10).map(one).collect()
}

#[test]
fn messages_are_elements_with_what_the_file_says_of_them() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = file(&some(), &[(Some("zstd"), 3), (None, 1), (Some("lz4"), 2)]);
    let max = SourceOptions { speed: Some(Speed::Max), ..SourceOptions::default() };
    let (opened, stop) = opened(&of(dir.path(), &bytes), &max);
    assert_eq!((opened.kind, opened.framing), (StreamKind::Bytes, Framing::Attr32));
    assert!(opened.preamble.as_ref().unwrap().starts_with(&MAGIC));
    assert!(
        opened.notes[0].contains("attachments, metadata and records of unknown types left out: 2"),
        "{:?}",
        opened.notes
    );
    let mut rig = Rig::counting(opened, stop, Some("mcap".parse().unwrap()));
    rig.collect_until(|_| false);
    let (collector, end) = rig.finish();
    assert_eq!(end.unwrap(), SourceEnd::Ended);
    assert_eq!(collector.elements.len(), 10);
    for (element, sent) in collector.elements.iter().zip(some()) {
        assert_eq!((element.event, &element.data), (Some(sent.log_time as i64), &sent.data));
        let values: Vec<_> = given::values(&element.meta).collect();
        let number = |number: u64| number.to_le_bytes();
        let topic = format!("/topic/{}", sent.channel);
        let numbers = [number(sent.sequence.into()), number(sent.publish_time), number(sent.channel.into())];
        let wanted = [topic.as_bytes(), &numbers[0], &numbers[1], &numbers[2]].map(Some);
        assert_eq!(values, wanted);
    }
    // A number of each channel is missing.
    assert_eq!((collector.lost(Cause::Upstream as u8), collector.all_lost()), (2, 2));
}

#[test]
fn a_file_is_looped_and_one_that_breaks_is_replayed_as_far_as_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, ends) = file(&some(), &[(Some("zstd"), 4)]);
    let looped = SourceOptions { speed: Some(Speed::Max), repeat: true, ..SourceOptions::default() };
    let (source, stop) = opened(&of(dir.path(), &bytes), &looped);
    let mut rig = Rig::counting(source, stop, Some("mcap".parse().unwrap()));
    rig.collect_until(|collector| collector.elements.len() > 25);
    let (collector, _) = rig.stop();
    assert!(
        collector.elements.iter().zip(some().iter().cycle()).all(|(element, sent)| element.data == sent.data)
    );
    let rounds = collector.elements.len() as u64 / 10;
    assert!(
        (2 * rounds..=2 * rounds + 2).contains(&collector.lost(Cause::Upstream as u8)),
        "no loss from round to round"
    );

    let (source, stop) = opened(&of(dir.path(), &bytes[..ends[4] + 50]), &looped);
    let said = format!("at byte {}: the file is truncated; whole messages before it: 8", ends[4]);
    assert!(source.notes[1].contains(&said), "{:?}", source.notes);
    let (collector, end) = Rig::start(source, stop, 8).finish();
    assert_eq!((collector.elements.len(), collector.gaps.len()), (8, 1));
    let error = end.unwrap_err().to_string();
    assert!(error.contains(&format!("at byte {}: the file is truncated", ends[4])), "{error}");
}

fn message(channel: u16, sequence: u32, log_time: u64, publish_time: u64) -> Sent {
    Sent { channel, sequence, log_time, publish_time, data: b"{}".to_vec() }
}

// Promise 5: a message is never recorded as one of a channel that is not its own.
#[test]
fn a_replay_ends_where_the_look_through_the_file_ended() {
    let dir = tempfile::tempdir().unwrap();
    let max = SourceOptions { speed: Some(Speed::Max), ..SourceOptions::default() };
    let before = [channel_of(1, 0, "/t", &[]), message(1, 1, 5, 6).record()].concat();
    let behind = message(1, 2, 5, 6).record();
    for (damage, said) in [
        (channel(1, 0, "/other"), "channel 1 is defined again with other contents"),
        ([schema(7), other_schema(7)].concat(), "schema 7 is defined again with other contents"),
        (channel(2, 7, "/other"), "channel 2 refers to schema 7, which no record before it defines"),
        (channel_with(2, &["a", "1", "a", "1"]), "the metadata of channel 2 has a key twice"),
        (message(9, 1, 5, 6).record(), "a message refers to channel 9, which no record before it defines"),
    ] {
        for chunked in [false, true] {
            let damaged = [&damage[..], &schema(7), &behind].concat();
            let damaged = if chunked { chunk("zstd", &damaged) } else { damaged };
            let bytes = [&MAGIC[..], &before, &damaged, &record(15, &[0; 4])].concat();
            let (source, stop) = opened(&of(dir.path(), &bytes), &max);
            let notes = source.notes.join("\n");
            assert!(notes.contains(said) && notes.contains("whole messages before it: 1"), "{notes}");
            let (collector, end) = Rig::start(source, stop, 8).finish();
            assert_eq!((collector.elements.len(), collector.gaps.len()), (1, 1), "{said}");
            let error = end.unwrap_err().to_string();
            assert!(error.contains(said) && notes.contains(&error), "{error} / {notes}");
        }
    }
}

#[test]
fn times_after_2262_follow_in_the_header_and_are_reported() {
    let dir = tempfile::tempdir().unwrap();
    let max = SourceOptions { speed: Some(Speed::Max), ..SourceOptions::default() };
    let late = 1u64 << 63;
    let sent = [message(1, 1, late, 5), message(1, 2, 5, late), message(1, 3, late - 1, late - 1)];
    let records: Vec<u8> = sent.iter().flat_map(Sent::record).collect();
    let bytes = [&MAGIC[..], &channel(1, 0, "/t"), &records, &record(15, &[0; 4])].concat();
    let (source, stop) = opened(&of(dir.path(), &bytes), &max);
    assert!(source.notes[0].contains("time after the year 2262: 2; exports"), "{:?}", source.notes);
    let (collector, end) = Rig::start(source, stop, 8).finish();
    assert_eq!(end.unwrap(), SourceEnd::Ended);
    for (element, sent) in collector.elements.iter().zip(&sent) {
        assert_eq!(element.event, i64::try_from(sent.log_time).ok());
        let values: Vec<_> = given::values(&element.meta).skip(2).collect();
        let publish_time = sent.publish_time.to_le_bytes();
        let exact = [sent.log_time.to_le_bytes(), publish_time];
        let representable = (sent.publish_time < late).then_some(&publish_time[..]);
        let all = [representable, Some(&[1, 0, 0, 0, 0, 0, 0, 0]), Some(&exact[0]), Some(&exact[1])];
        let any_late = sent.log_time.max(sent.publish_time) >= late;
        assert_eq!(values, all[..if any_late { 4 } else { 2 }]);
    }
}

#[test]
fn a_file_without_a_header_has_an_empty_one_in_the_preamble() {
    let bytes = [&MAGIC[..], &channel(1, 0, "/t"), &record(15, &[0; 4])].concat();
    let (preamble, report) = scan(&bytes[..], 1 << 20).unwrap();
    assert!(report.broke.is_none());
    assert!(preamble.to_bytes()[8..].starts_with(&record(1, &[0; 8])));
}

#[test]
fn what_cannot_be_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (bytes, _) = file(&some(), &[(None, 4)]);
    let refused = |bytes: &[u8], options: &SourceOptions| {
        let spec = of(dir.path(), bytes).parse().unwrap();
        open(&spec, options, &holdfast_ingest::StopFlag::new().unwrap()).unwrap_err().to_string()
    };
    let plain = SourceOptions::default();
    let filter = SourceOptions { filter: Some("tcp".into()), ..plain.clone() };
    assert!(refused(&bytes, &filter).contains("--filter cannot be used with replay:"));
    let counter = SourceOptions { counter: Some("mcap".parse().unwrap()), ..plain.clone() };
    assert!(refused(b"\xd4\xc3\xb2\xa1 a capture", &counter).contains("--counter mcap cannot be used"));
    for other in [&b"\x89MCAP1\r\n"[..], b"\x89MCAP"] {
        assert!(refused(other, &plain).contains("at byte 0: not an MCAP file of version 0"));
    }
    let many: Vec<u8> = (1..60).flat_map(|id| channel(id, 0, &"x".repeat(300_000))).collect();
    assert!(refused(&[&MAGIC[..], &many].concat(), &plain).contains("more than 16 MiB"));
    // What is broken from its first record on has nothing whole, and says where.
    for (records, said) in [
        (record(5, &[0; 30]), "at byte 8: a message refers to channel 0, which no record before it defines"),
        (channel(1, 9, "x"), "at byte 8: channel 1 refers to schema 9, which no record before it defines"),
        (channel(1, 0, "x")[..20].to_vec(), "at byte 8: the file is truncated"),
        (record(4, &[0; 5]), "at byte 8: a channel record is malformed"),
        (record(1, b"\0"), "at byte 8: a header record is malformed"),
        ([channel(1, 0, "x"), channel(1, 0, "y")].concat(), "channel 1 is defined again with other contents"),
        ([schema(7), other_schema(7)].concat(), "schema 7 is defined again with other contents"),
        (channel_with(1, &["a", "1", "b", "1", "a", "2"]), "the metadata of channel 1 has a key twice"),
        (chunk("brotli", &[]), "at byte 8: a chunk is compressed with neither"),
        (record(6, &[0xff; 60]), "at byte 8: a chunk record is malformed"),
        ([&[5][..], &u64::MAX.to_le_bytes()].concat(), "at byte 8: a record is larger than 32 MiB"),
    ] {
        let (_, report) = scan(&[&MAGIC[..], &records].concat()[..], 1 << 20).unwrap();
        let broke = report.broke.unwrap().to_string();
        assert!(broke.contains(said), "{broke}");
    }
}
