//! Conversion of ROS bags: every compression, order and numbers of messages, and damage at any byte.

use holdfast_dataset::{BagConversion, Compression, ConvertedBag, Options, convert_bag};
use mcap::MessageStream;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::Path;

fn prefixed(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_le_bytes(), bytes].concat()
}

fn fields(fields: &[(&str, &[u8])]) -> Vec<u8> {
    fields.iter().flat_map(|(name, value)| prefixed(&[name.as_bytes(), b"=", value].concat())).collect()
}

fn record(header: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    [prefixed(&fields(header)), prefixed(data)].concat()
}

/// Connection record; connections 0 and 1 share a topic and a type.
fn connection(id: u32) -> Vec<u8> {
    let topic = ["/chatter", "/chatter", "/odom"][id as usize];
    let kind = ["std_msgs/String", "std_msgs/String", "nav_msgs/Odometry"][id as usize];
    let caller = format!("/node{id}");
    let data = fields(&[
        ("topic", topic.as_bytes()),
        ("type", kind.as_bytes()),
        ("md5sum", b"992ce8a1687cec8c8bd883ec73ca41d1"),
        ("message_definition", b"string data\n"),
        ("callerid", caller.as_bytes()),
        ("latching", b"1"),
    ]);
    record(&[("op", &[7]), ("conn", &id.to_le_bytes()), ("topic", topic.as_bytes())], &data)
}

fn payload(number: u32) -> Vec<u8> {
    prefixed(format!("message {number} ").repeat(number as usize % 5).as_bytes())
}

/// Times go back and forth, as those of several publishers do.
fn time(number: u32) -> (u32, u32) {
    (1_700_000_000 + number / 3, (number * 7919) % 1_000_000_000)
}

fn message(number: u32) -> Vec<u8> {
    let (seconds, nanoseconds) = time(number);
    let time = [seconds.to_le_bytes(), nanoseconds.to_le_bytes()].concat();
    record(&[("op", &[2]), ("conn", &(number % 3).to_le_bytes()), ("time", &time)], &payload(number))
}

fn packed(compression: &str, records: &[u8]) -> Vec<u8> {
    match compression {
        "lz4" => {
            let info = lz4_flex::frame::FrameInfo::new().content_checksum(true);
            let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
            encoder.write_all(records).unwrap();
            encoder.finish().unwrap()
        }
        "bz2" => {
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::new(9));
            encoder.write_all(records).unwrap();
            encoder.finish().unwrap()
        }
        _ => records.to_vec(),
    }
}

/// Messages of each chunk.
const CHUNK: u32 = 7;

/// Bag of so many chunks with an index, and the first and last offset of each chunk record.
fn bag(compression: &str, chunks: u32) -> (Vec<u8>, Vec<(usize, usize)>) {
    let mut body = Vec::new();
    let (mut places, mut infos) = (Vec::new(), Vec::new());
    let head = 13 + 4096;
    for chunk in 0..chunks {
        let numbers = chunk * CHUNK..(chunk + 1) * CHUNK;
        let mut records = Vec::new();
        if chunk == 0 {
            records.extend((0..3).flat_map(connection));
        }
        records.extend(numbers.clone().flat_map(message));
        let start = head + body.len();
        let size = (records.len() as u32).to_le_bytes();
        let header: [(&str, &[u8]); 3] =
            [("op", &[5]), ("compression", compression.as_bytes()), ("size", &size)];
        body.extend(record(&header, &packed(compression, &records)));
        places.push((start, head + body.len()));
        for id in 0..3u32 {
            body.extend(record(
                &[
                    ("op", &[4]),
                    ("ver", &1u32.to_le_bytes()),
                    ("conn", &id.to_le_bytes()),
                    ("count", &[0; 4]),
                ],
                &[],
            ));
        }
        let counts = (0..3u32).flat_map(|id| {
            let count = numbers.clone().filter(|number| number % 3 == id).count() as u32;
            [id.to_le_bytes(), count.to_le_bytes()].concat()
        });
        infos.extend(record(&[("op", &[6]), ("ver", &1u32.to_le_bytes())], &counts.collect::<Vec<u8>>()));
    }
    let index = (head + body.len()) as u64;
    body.extend((0..3).flat_map(connection));
    body.extend(infos);
    let mut header = fields(&[
        ("op", &[3]),
        ("index_pos", &index.to_le_bytes()),
        ("conn_count", &3u32.to_le_bytes()),
        ("chunk_count", &chunks.to_le_bytes()),
    ]);
    header = prefixed(&header);
    let padding = 4096 - header.len() - 4;
    header.extend(prefixed(&vec![b' '; padding]));
    ([b"#ROSBAG V2.0\n", &header[..], &body].concat(), places)
}

fn converted(dir: &Path, bytes: &[u8], salvage: bool) -> Result<(ConvertedBag, Vec<String>), String> {
    let (bag, to) = (dir.join("in.bag"), dir.join("out.mcap"));
    fs::write(&bag, bytes).unwrap();
    let _ = fs::remove_file(&to);
    let options = Options { compression: Compression::None, chunk_bytes: 500, threads: NonZeroUsize::MIN };
    let conversion = BagConversion { bag: &bag, to: &to, options, salvage };
    let done = convert_bag(&conversion, &mut |_| ()).map_err(|error| error.to_string());
    assert_eq!(done.is_ok(), to.exists());
    Ok((done?, told(&to)))
}

/// All that a reader is told of each message.
fn told(file: &Path) -> Vec<String> {
    let bytes = fs::read(file).unwrap();
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    let statistics = summary.stats.unwrap();
    let messages: Vec<String> = MessageStream::new(&bytes)
        .unwrap()
        .map(|message| {
            let message = message.unwrap();
            assert_eq!(message.log_time, message.publish_time);
            let schema = message.channel.schema.as_ref().unwrap();
            let mut line = format!("{} {} ", message.channel.topic, schema.name);
            let caller = message.channel.metadata.get("callerid").map_or("", |caller| caller);
            write!(line, "{caller} {} {} {:?}", message.sequence, message.log_time, message.data).unwrap();
            line
        })
        .collect();
    assert_eq!(statistics.message_count, messages.len() as u64);
    messages
}

/// The messages as the bag has them.
fn wanted(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    let line = |number: u32| {
        let (topic, kind) =
            if number % 3 == 2 { ("/odom", "nav_msgs/Odometry") } else { ("/chatter", "std_msgs/String") };
        let (seconds, nanoseconds) = time(number);
        let time = u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds);
        format!("{topic} {kind} /node{} {} {time} {:?}", number % 3, number / 3, payload(number))
    };
    numbers.into_iter().map(line).collect()
}

#[test]
fn bags_of_every_compression_keep_order_times_and_connections() {
    let folder = tempfile::tempdir().unwrap();
    for compression in ["none", "lz4", "bz2"] {
        let (bytes, _) = bag(compression, 9);
        let (done, messages) = converted(folder.path(), &bytes, false).unwrap();
        assert_eq!((done.messages, done.channels, done.damage), (63, 3, None));
        assert_eq!(messages, wanted(0..63), "{compression}");
        let file = fs::read(folder.path().join("out.mcap")).unwrap();
        let summary = mcap::Summary::read(&file).unwrap().unwrap();
        let channel = &summary.channels[&0];
        assert_eq!((&*channel.message_encoding, channel.metadata["latching"].as_str()), ("ros1", "1"));
        assert_eq!(channel.metadata.len(), 3, "{channel:?}");
        assert_eq!((summary.schemas.len(), summary.schemas[&1].encoding.as_str()), (2, "ros1msg"));
        assert!(file.starts_with(b"\x89MCAP0\r\n\x01") && file[17..25] == *b"\x04\0\0\0ros1");
    }
}

#[test]
fn a_cut_bag_names_the_cut_and_salvage_gives_its_whole_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let (bytes, places) = bag("bz2", 4);
    let borders = places.iter().flat_map(|(start, end)| [*start, end - 1, *end]);
    for length in (0..bytes.len()).step_by(41).chain(borders) {
        let cut = &bytes[..length];
        let whole = places.iter().filter(|(_, end)| *end <= length).count() as u32;
        let said = converted(folder.path(), cut, false).unwrap_err();
        let saved = converted(folder.path(), cut, true);
        if length < 13 {
            assert!(said.contains("this is no ROS 1 bag"), "{length}: {said}");
        } else if whole == 0 {
            assert!(said.contains("no message of it can be saved"), "{length}: {said}");
            assert_eq!(saved.unwrap_err(), said);
        } else {
            let count = format!("{} messages can be saved: `--salvage`", whole * CHUNK);
            assert!(said.contains(&count), "{length}: {said}");
            let (done, messages) = saved.unwrap();
            assert!(done.damage.is_some() && messages == wanted(0..whole * CHUNK), "{length}");
        }
    }
}

#[test]
fn a_damaged_chunk_costs_its_own_messages() {
    let folder = tempfile::tempdir().unwrap();
    for (compression, first) in [("bz2", 0), ("bz2", 1), ("lz4", 0), ("lz4", 2)] {
        let (mut bytes, places) = bag(compression, 3);
        bytes[places[first].0 + 120] ^= 0x10;
        let said = converted(folder.path(), &bytes, false).unwrap_err();
        let place = format!("the record at byte {}: ", places[first].0);
        assert!(said.contains(&place) && said.contains("14 messages can be saved"), "{said}");
        let (done, messages) = converted(folder.path(), &bytes, true).unwrap();
        assert_eq!(done.damage.unwrap().lost_chunks, 1);
        // Numbers count the messages that are there.
        let data = |line: &String| line.split_once(" [").unwrap().1.to_owned();
        let left = (0..21).filter(|number| number / CHUNK != first as u32);
        assert!(messages.iter().map(data).eq(wanted(left).iter().map(data)), "{compression} {first}");
    }
}

#[test]
fn bags_that_are_none_or_unclosed_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    for (bytes, words) in [
        (&b""[..], "does not begin with `#ROSBAG V2.0`"),
        (b"#ROSBAG V1.2\n#messages", "version 1.2"),
        (b"\x89MCAP0\r\n", "does not begin"),
        (b"#ROSBAG V2.0\n", "cut off"),
    ] {
        let said = converted(folder.path(), bytes, true).unwrap_err();
        assert!(said.contains(words), "{said}");
    }
    let (mut bytes, places) = bag("lz4", 2);
    let field = bytes.windows(10).position(|bytes| bytes == b"index_pos=").unwrap() + 10;
    bytes[field..field + 8].fill(0);
    let said = converted(folder.path(), &bytes, false).unwrap_err();
    assert!(
        said.contains("it has no index: its recorder was killed") && said.contains("14 messages"),
        "{said}"
    );
    assert_eq!(converted(folder.path(), &bytes, true).unwrap().1, wanted(0..14));
    let (_, messages) = converted(folder.path(), &bytes[..places[1].0], true).unwrap();
    assert_eq!(messages, wanted(0..7));
}

#[test]
fn changed_bytes_give_an_error_or_messages_of_the_bag() {
    let folder = tempfile::tempdir().unwrap();
    let mut state = 0x686f_6c64_6661_7374u64;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let all: Vec<Vec<u8>> = (0..14).map(payload).collect();
    for round in 0..450 {
        let (mut bytes, _) = bag(["none", "lz4", "bz2"][round % 3], 2);
        for _ in 0..=below(3) {
            // The padding of the header is worth few changes.
            let at = if below(8) == 0 { below(200) } else { 4109 + below(bytes.len() - 4109) };
            match below(4) {
                0 => bytes[at] ^= 1 << below(8),
                1 => bytes[at] = [0, 1, 0x7f, 0xff][below(4)],
                2 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0xff),
                _ => drop(bytes.drain(at..at + below(8).min(bytes.len() - at))),
            }
        }
        if let Ok((_, messages)) = converted(folder.path(), &bytes, true)
            && round % 3 == 2
        {
            // The checksum of bzip2 covers the messages.
            let known = |line: &String| all.iter().any(|data| line.ends_with(&format!("{data:?}")));
            assert!(messages.iter().all(known), "round {round}");
        }
    }
}
