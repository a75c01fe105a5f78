//! Recovery of datasets and other MCAP files that are cut or changed at any byte.

use crate::common::{checkpointed, of_dataset, open, record, write};
use holdfast_dataset::{Checkpoint, Compression, Dataset, LocalFile, Manifest, Recovered, recover, verify};
use holdfast_reader::Selection;
use mcap::records::MessageHeader;
use mcap::{MessageStream, WriteOptions, Writer};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All that a reader is told of each message of a complete file.
fn told(bytes: &[u8]) -> Vec<String> {
    let told = |message: mcap::Message<'_>| {
        let schema = message.channel.schema.as_ref().map(|schema| schema.name.clone());
        let (topic, data) = (&message.channel.topic, &message.data);
        format!("{topic} {schema:?} {} {} {data:?}", message.sequence, message.log_time)
    };
    MessageStream::new(bytes).unwrap().map(|message| told(message.unwrap())).collect()
}

/// Recovers bytes; the new file is valid, and its summary has the messages that are in it.
fn recovered(dir: &Path, bytes: &[u8]) -> Result<(Recovered, Vec<String>), String> {
    let (old, new) = (dir.join("old.mcap"), dir.join("new.mcap"));
    let _ = fs::remove_file(&new);
    fs::write(&old, bytes).unwrap();
    let done = recover(&old, &new, Compression::None, &mut |_| ()).map_err(|error| error.to_string());
    assert_eq!(done.is_ok(), new.exists());
    let done = done?;
    let bytes = fs::read(&new).unwrap();
    assert_eq!(done.bytes, bytes.len() as u64);
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    assert_eq!(summary.stats.as_ref().unwrap().message_count, done.messages);
    let messages = told(&bytes);
    assert_eq!(messages.len() as u64, done.messages);
    // The summary leads to every message.
    let mut indexed = 0;
    for chunk in &summary.chunk_indexes {
        let places = summary.read_message_indexes(&bytes, chunk).unwrap();
        indexed += places.values().map(Vec::len).sum::<usize>();
        assert_eq!(
            summary.stream_chunk(&bytes, chunk).unwrap().count(),
            places.values().map(Vec::len).sum::<usize>()
        );
    }
    assert_eq!(indexed, messages.len());
    Ok((done, messages))
}

/// Dataset of lines without compression, and its manifest.
fn dataset(dir: &Path) -> (PathBuf, Manifest) {
    let line = |at: u32| format!("{{\"n\": {at}, \"s\": \"text {}\"}}", at % 7);
    let lines = (0..60).map(line).collect::<Vec<_>>().join("\n") + "\n";
    fs::write(dir.join("in.jsonl"), lines).unwrap();
    let source = format!("--source file:{} --name lines --frame lines", dir.join("in.jsonl").display());
    let ring = record(dir, &format!("--size 4MiB --slot 64KiB {source} --attr n:int=json:n"));
    let file = dir.join("whole.mcap");
    write(&ring, &file, "none", 600);
    let manifest = open(&file).manifest().clone();
    (file, manifest)
}

/// First bytes of all records in the data section.
fn borders(bytes: &[u8]) -> Vec<usize> {
    let (mut at, mut borders) = (8, Vec::new());
    while at + 9 <= bytes.len() - 8 {
        borders.push(at);
        at += 9 + u64::from_le_bytes(bytes[at + 1..at + 9].try_into().unwrap()) as usize;
    }
    borders
}

#[test]
fn a_dataset_cut_at_any_byte_gives_the_messages_of_its_whole_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let (file, manifest) = dataset(folder.path());
    let bytes = fs::read(&file).unwrap();
    let id = open(&file).id().to_owned();
    let all = told(&bytes);
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    let counts =
        summary.chunk_indexes.iter().map(|chunk| summary.stream_chunk(&bytes, chunk).unwrap().count());
    let counts: Vec<usize> = counts.collect();
    assert!(counts.len() > 4 && all.len() >= 60);
    let place =
        summary.attachment_indexes.iter().find(|index| index.name == "holdfast/manifest.json").unwrap();
    let end_of_manifest = (place.offset + place.length) as usize;
    let strided = (0..bytes.len()).step_by(61);
    let edges = borders(&bytes).into_iter().flat_map(|at| [at - 1, at, at + 1]);
    let cuts: BTreeSet<usize> = strided.chain(edges).collect();
    for length in cuts {
        let ends = manifest.chunks.iter().map(|chunk| (chunk.offset + chunk.length) as usize);
        let whole = ends.filter(|end| *end <= length).count();
        let expected: usize = counts[..whole].iter().sum();
        match recovered(folder.path(), &bytes[..length]) {
            Ok((done, messages)) => {
                assert!(whole > 0 && messages == all[..expected], "{length}");
                assert!(done.damage.is_some() && done.chunks == whole as u64, "{length}");
                let new = folder.path().join("new.mcap");
                if length < end_of_manifest {
                    assert_eq!(done.dataset, None, "{length}");
                    let opened = Dataset::open(Arc::new(LocalFile::open(&new).unwrap()));
                    assert!(opened.unwrap_err().to_string().contains("no manifest"), "{length}");
                } else {
                    // The cut is behind the manifest: the same dataset comes back.
                    assert_eq!(done.dataset.as_ref(), Some(&id));
                    let dataset = open(&new);
                    assert_eq!(dataset.id(), id);
                    assert_eq!(verify(&dataset, &mut |_| ()).unwrap(), []);
                }
            }
            Err(said) => {
                assert_eq!(whole, 0, "{length}: {said}");
                let words =
                    if length < 8 { "not a complete MCAP file" } else { "no chunk of the file is whole" };
                assert!(said.contains(words), "{length}: {said}");
            }
        }
    }
    let (done, _) = recovered(folder.path(), &bytes).unwrap();
    assert_eq!((done.damage, done.dataset), (None, Some(id)));
    assert!(
        fs::read(folder.path().join("new.mcap")).unwrap() == bytes,
        "a whole dataset comes back as it is"
    );
}

#[test]
fn a_damaged_chunk_is_left_out_and_the_rest_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (file, manifest) = dataset(folder.path());
    let mut bytes = fs::read(&file).unwrap();
    let all = told(&bytes);
    let chunk = &manifest.chunks[1];
    bytes[(chunk.offset + chunk.length) as usize - 3] ^= 1;
    let (done, messages) = recovered(folder.path(), &bytes).unwrap();
    let damage = done.damage.unwrap();
    assert_eq!((damage.at, damage.lost_chunks, done.dataset), (chunk.offset, 1, None));
    assert!(damage.cause.contains("CRC-32"), "{damage:?}");
    assert_eq!(done.chunks, manifest.chunks.len() as u64 - 1);
    let lost = all.len() - messages.len();
    assert!(
        lost > 1
            && lost < 20
            && all.starts_with(&messages[..2])
            && all.ends_with(&messages[messages.len() - 9..])
    );
}

/// MCAP file of another program, with records in every place that the format allows.
fn foreign(chunks: bool) -> Vec<u8> {
    let options =
        WriteOptions::new().compression(None).use_chunks(chunks).chunk_size(Some(400)).profile("ros2");
    let mut out = std::io::Cursor::new(Vec::new());
    let mut writer: Writer<_> = options.create(&mut out).unwrap();
    let point = writer.add_schema("geometry/Point", "ros2msg", b"float64 x").unwrap();
    let channels = [
        writer.add_channel(point, "/position", "cdr", &BTreeMap::new()).unwrap(),
        writer.add_channel(0, "/log", "json", &BTreeMap::from([("a".to_owned(), "b".to_owned())])).unwrap(),
    ];
    for number in 0..40u32 {
        let header = MessageHeader {
            channel_id: channels[number as usize % 2],
            sequence: number,
            log_time: u64::from(1000 - number),
            publish_time: 5,
        };
        writer.write_to_known_channel(&header, &[number as u8; 30]).unwrap();
        if number == 20 {
            let (name, media_type) = ("map.png".to_owned(), "image/png".to_owned());
            let data = vec![7; 50].into();
            let map = mcap::Attachment { log_time: 3, create_time: 4, name, media_type, data };
            writer.attach(&map).unwrap();
            let metadata = BTreeMap::from([("robot".to_owned(), "r2".to_owned())]);
            writer.write_metadata(&mcap::records::Metadata { name: "run".to_owned(), metadata }).unwrap();
        }
    }
    writer.finish().unwrap();
    drop(writer);
    out.into_inner()
}

#[test]
fn files_of_other_programs_are_recovered_with_attachments_and_metadata() {
    let folder = tempfile::tempdir().unwrap();
    for chunks in [true, false] {
        let bytes = foreign(chunks);
        let all = told(&bytes);
        assert_eq!(all.len(), 40);
        for length in (8..bytes.len()).step_by(29) {
            let Ok((done, messages)) = recovered(folder.path(), &bytes[..length]) else { continue };
            assert!(done.damage.is_some() && all.starts_with(&messages), "{length}");
        }
        let (done, messages) = recovered(folder.path(), &bytes[..bytes.len() - 60]).unwrap();
        assert_eq!((messages, done.channels, done.dataset), (all, 2, None));
        let new = fs::read(folder.path().join("new.mcap")).unwrap();
        let summary = mcap::Summary::read(&new).unwrap().unwrap();
        assert_eq!(
            (summary.attachment_indexes[0].name.as_str(), summary.attachment_indexes[0].create_time),
            ("map.png", 4)
        );
        assert_eq!(mcap::read::attachment(&new, &summary.attachment_indexes[0]).unwrap().data[..], [7; 50]);
        let metadata = mcap::read::metadata(&new, &summary.metadata_indexes[0]).unwrap();
        assert_eq!((metadata.name.as_str(), metadata.metadata["robot"].as_str()), ("run", "r2"));
        assert_eq!(new[17..25], *b"\x04\0\0\0ros2");
    }
}

/// One bit of the head of any record changes, opcode or length: the chunk index leads to every chunk, and the damage is
/// told. Without a summary a chunk with another opcode is recognised.
#[test]
fn a_damaged_head_of_a_record_costs_no_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = foreign(true);
    let all = told(&bytes);
    let summary = mcap::Summary::read(&bytes).unwrap().unwrap();
    let chunks: Vec<usize> =
        summary.chunk_indexes.iter().map(|chunk| chunk.chunk_start_offset as usize).collect();
    let borders = borders(&bytes);
    let ends_data = |at: &usize| bytes[*at] == mcap::records::op::DATA_END;
    let end = borders.iter().copied().find(ends_data).unwrap();
    assert!(chunks.len() > 3 && chunks.iter().all(|at| borders.contains(at)));
    for at in borders.into_iter().filter(|at| *at <= end) {
        let bits: &[usize] =
            if chunks.contains(&at) { &[0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 17, 40, 71] } else { &[2, 7, 9, 33] };
        for bit in bits {
            let mut changed = bytes.clone();
            changed[at + bit / 8] ^= 1 << (bit % 8);
            let (done, messages) = recovered(folder.path(), &changed).unwrap();
            assert_eq!(messages, all, "byte {at}, bit {bit}");
            let damage = done.damage.map(|damage| (damage.at, damage.lost_chunks));
            // A longer header takes a byte of the next record; records of other programs may stand anywhere.
            let is_exact = at > 8 && (*bit != 7 || chunks.contains(&at));
            assert!(!is_exact || damage == Some((at as u64, 0)), "byte {at}, bit {bit}: {damage:?}");
        }
    }
    for at in chunks {
        for bit in 0..8 {
            let mut changed = bytes[..end].to_vec();
            changed[at] ^= 1 << bit;
            let (done, messages) = recovered(folder.path(), &changed).unwrap();
            assert_eq!((messages, done.damage.unwrap().at), (all.clone(), at as u64), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn changed_bytes_give_an_error_or_messages_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (file, _) = dataset(folder.path());
    let own = fs::read(&file).unwrap();
    for bytes in [own, foreign(true)] {
        let data = |line: &String| line.split_once('[').unwrap().1.to_owned();
        let all: BTreeSet<String> = told(&bytes).iter().map(data).collect();
        for at in (8..bytes.len()).step_by(37) {
            let mut changed = bytes.clone();
            changed[at] = changed[at].wrapping_add([1, 0x80, 0xff][at % 3]);
            // A checksum of 0 is none, and MCAP has no other check of chunks.
            if let Ok((_, messages)) = recovered(folder.path(), &changed) {
                assert!(messages.iter().all(|line| all.contains(&data(line))), "{at}");
            }
        }
    }
}

#[test]
fn a_dataset_that_is_cut_while_it_is_written_is_one_up_to_its_last_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    let lines = (0..60).map(|at| format!("{{\"n\": {at}}}\n")).collect::<Vec<_>>().concat();
    fs::write(dir.join("in.jsonl"), lines).unwrap();
    let source = format!("--source file:{} --name lines --frame lines", dir.join("in.jsonl").display());
    let ring = record(dir, &format!("--size 4MiB --slot 64KiB {source} --attr n:int=json:n"));
    let (file, places) = checkpointed(&ring, dir, 20);
    let (bytes, whole) = (fs::read(&file).unwrap(), of_dataset(&open(&file), &Selection::ALL));
    assert_eq!((places.len(), open(&file).manifest().streams[0].elements), (3, 60));
    for cut in borders(&bytes).into_iter().chain((0..bytes.len()).step_by(97)) {
        let old = dir.join("cut.mcap");
        fs::write(&old, &bytes[..cut]).unwrap();
        let old = LocalFile::open(&old).unwrap();
        let found = Checkpoint::last_of(&old).unwrap();
        // A checkpoint counts as soon as it is whole.
        let ended = places.iter().filter(|place| **place <= cut).count();
        let Some(checkpoint) = found else {
            assert_eq!(ended, 0, "{cut}");
            continue;
        };
        assert_eq!(checkpoint.name, format!("lines-{}", ended * 20), "{cut}");
        let new = dir.join("new.mcap");
        let (_, written) = checkpoint.complete(&old, fs::File::create(&new).unwrap()).unwrap().unwrap();
        let dataset = open(&new);
        assert_eq!((dataset.id(), dataset.size()), (written.id.as_str(), written.bytes));
        assert!(verify(&dataset, &mut |_| ()).unwrap().is_empty());
        let told = of_dataset(&dataset, &Selection::ALL);
        assert_eq!(told, whole[..told.len()], "{cut}");
        assert_eq!(dataset.manifest().streams[0].elements, ended as u64 * 20);
        mcap::Summary::read(&fs::read(&new).unwrap()).unwrap().unwrap();
    }
}

#[test]
fn damage_before_a_checkpoint_makes_no_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::write(dir.join("in.txt"), "line\n".repeat(60)).unwrap();
    let source = format!("--source file:{} --name lines --frame lines", dir.join("in.txt").display());
    let ring = record(dir, &format!("--size 4MiB --slot 64KiB {source}"));
    let (file, places) = checkpointed(&ring, dir, 20);
    let mut bytes = fs::read(&file).unwrap();
    bytes.truncate(places[2]);
    let chunk = borders(&bytes).into_iter().find(|at| bytes[*at] == mcap::records::op::CHUNK).unwrap();
    bytes[chunk + 60] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let file = LocalFile::open(&file).unwrap();
    let checkpoint = Checkpoint::last_of(&file).unwrap().unwrap();
    assert!(checkpoint.complete(&file, Vec::new()).unwrap().is_none());
}

#[test]
fn damage_behind_a_checkpoint_leaves_the_dataset_up_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    fs::write(dir.join("in.txt"), "line\n".repeat(60)).unwrap();
    let source = format!("--source file:{} --name lines --frame lines", dir.join("in.txt").display());
    let ring = record(dir, &format!("--size 4MiB --slot 64KiB {source}"));
    let (file, places) = checkpointed(&ring, dir, 20);
    let mut bytes = fs::read(&file).unwrap();
    bytes.truncate(places[2]);
    let is_chunk = |at: &usize| *at >= places[0] && bytes[*at] == mcap::records::op::CHUNK;
    let chunk = borders(&bytes).into_iter().find(is_chunk).unwrap();
    bytes[chunk + 60] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let file = LocalFile::open(&file).unwrap();
    let last = Checkpoint::last_of(&file).unwrap().unwrap();
    let second = last.before(&file).unwrap().unwrap();
    let first = second.before(&file).unwrap().unwrap();
    assert_eq!((second.name.as_str(), first.name.as_str()), ("lines-40", "lines-20"));
    assert!(first.before(&file).unwrap().is_none());
    assert!(second.complete(&file, Vec::new()).unwrap().is_none());
    let (_, written) = first.complete(&file, Vec::new()).unwrap().unwrap();
    assert_eq!(written.manifest.streams[0].elements, 20);
}
