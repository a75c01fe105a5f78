//! Tests of recorded attributes, from the option to the columns in slots: every cell on the medium belongs to its
//! element (promise 5), schemas grow and never change, and invalid ones are refused (promise 8).

use crate::process::common::{Recorder, TestFolder, reader};
use holdfast_attributes::{Element, Extractor, MAX_DATA, Schema};
use holdfast_base::{Sequence, StreamId};
use holdfast_format::{
    Blocks, CellBuffer, Chunk, Flags, MAX_TEXT, SectionKind, check_image, decode_directory,
};
use holdfast_ingest::packet::Preamble;
use holdfast_protocol::RingLocation;
use holdfast_reader::{Item, RingReader, Selection};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;

/// Cells by stream and ordinal, a text each.
pub(crate) type Cells = BTreeMap<(StreamId, u64), Vec<String>>;

/// The cells that slots have, read as the format says; and how many slots have columns.
pub(crate) fn on_medium(ring: &Path) -> (Cells, usize) {
    let superblock = RingLocation::read(ring).unwrap().superblock;
    let lane = std::fs::read(ring).unwrap();
    let (mut all, mut with_columns) = (Cells::new(), 0);
    for slot in reader(ring).slots().unwrap().iter().filter(|slot| slot.has_data()) {
        let at = superblock.geometry.slot_offset(slot.slot) as usize;
        let image = &lane[at..at + superblock.geometry.slot_bytes as usize];
        let (header, summary) = check_image(image, &superblock.key, superblock.ring).unwrap();
        assert_eq!(header.sequence, slot.sequence);
        let section = |kind| summary.section(kind).unwrap();
        let directory = section(SectionKind::ChunkDirectory);
        let chunks = &image[section(SectionKind::Chunks).range()];
        let mut completed: Vec<Vec<(StreamId, u64)>> = vec![Vec::new(); summary.entries.len()];
        for entry in decode_directory(&image[directory.range()], directory.crc).unwrap() {
            let chunk =
                Chunk::decode_at(&entry, Sequence(header.sequence.0), &chunks[entry.offset as usize..])
                    .unwrap();
            for (row, _) in chunk.rows().filter(|(row, _)| row.completes_element()) {
                let entry = usize::from(row.stream);
                completed[entry].push((summary.entries[entry].stream, row.ordinal.0));
            }
        }
        for (number, (entry, completed)) in summary.entries.iter().zip(&completed).enumerate() {
            with_columns += usize::from(entry.schema > 0 && !completed.is_empty());
            for column in 0..entry.schema as u16 {
                let Some(section) = summary.column(number as u16, column) else { continue };
                let mut shown = Vec::new();
                for block in Blocks::new(section, &image[section.range()], header.sequence) {
                    let block = block.unwrap().decode().unwrap();
                    shown.extend(
                        block.iter().map(|cell| cell.map_or("-".to_owned(), |cell| format!("{cell:?}"))),
                    );
                }
                assert_eq!(shown.len(), completed.len());
                for (key, cell) in completed.iter().zip(shown) {
                    all.entry(*key).or_default().push(cell);
                }
            }
        }
    }
    (all, with_columns)
}

/// The cells that every element that is read back has with its stream's schema; which of those slots have is another matter.
pub(crate) fn of_elements(reader: &mut RingReader) -> Cells {
    let mut extractors = BTreeMap::new();
    let mut links: BTreeMap<StreamId, Vec<u16>> = BTreeMap::new();
    for stream in reader.streams().unwrap() {
        let schema = Schema::parse(&reader.schema(stream.id).unwrap()).unwrap();
        assert_eq!(schema.len() as u32, stream.schema);
        let preamble = reader.preamble(stream.id, stream.preamble).unwrap().unwrap_or_default();
        let interfaces = Preamble::validate(&preamble).unwrap_or_default();
        links.insert(stream.id, interfaces.iter().map(|interface| interface.link_type.0).collect());
        extractors.insert(stream.id, (Extractor::new(&schema), schema));
    }
    let plan = reader.plan(&Selection::ALL).unwrap();
    let mut all = Cells::new();
    let mut sink = |item: Item<'_>| {
        if let Item::Element(element) = item {
            let (extractor, schema) = extractors.get_mut(&element.stream).unwrap();
            let mut cells: Vec<CellBuffer> =
                schema.classes().iter().map(|class| CellBuffer::new(class, 1, MAX_TEXT)).collect();
            let size = element.data.len() as u64;
            let whole = Element {
                data: &element.data[..element.data.len().min(MAX_DATA)],
                size,
                original_size: size + u64::from(element.extra),
                link_type: links[&element.stream].get(usize::from(element.tag)).copied(),
                header: element.flags.has(Flags::HEADER).then_some(element.meta),
            };
            let outcome = extractor.extract(&whole, &mut cells);
            if schema.event_time().is_some() {
                assert_eq!(element.event, outcome.event_time);
            }
            let shown = cells.iter().map(|column| {
                let cell = column.valid()[0].then(|| column.cells().at(0).unwrap());
                cell.map_or("-".to_owned(), |cell| format!("{cell:?}"))
            });
            all.insert((element.stream, element.ordinal.0), shown.collect());
        }
        ControlFlow::Continue(())
    };
    reader.read(&plan, &mut sink).unwrap();
    all
}

/// Real captures, where they are.
fn captures() -> Vec<PathBuf> {
    let Some(data) = std::env::var_os("HOLDFAST_TEST_DATA") else { return Vec::new() };
    let Ok(folder) = std::fs::read_dir(Path::new(&data).join("pcap")) else { return Vec::new() };
    let mut all: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "pcap" || end == "pcapng"));
    all.sort();
    all
}

#[test]
fn packets_of_real_captures_have_the_cells_of_each_on_the_medium() {
    let captures = captures();
    if captures.is_empty() {
        println!("skipped: no captures in $HOLDFAST_TEST_DATA/pcap");
    }
    for capture in captures {
        let place = TestFolder::in_memory();
        let source = format!("replay:{}", capture.display());
        let ended = place.record(
            &["--size", "256MiB", "--slot", "1MiB", "--source", &source, "--name", "net", "--speed", "max"],
            b"",
        );
        assert!(ended.status.success(), "{}", ended.err);
        let wanted = of_elements(&mut reader(&place.ring));
        let (found, slots) = on_medium(&place.ring);
        assert!(slots > 0 && wanted.len() > 100, "{}", capture.display());
        assert_eq!(wanted.values().next().unwrap().len(), 16);
        assert!(found == wanted, "{}", capture.display());
        // Nearly all that travels is understood.
        let told =
            wanted.values().filter(|cells| cells.iter().filter(|cell| *cell != "-").count() >= 8).count();
        assert!(told * 10 > wanted.len() * 9, "{}: {told} of {}", capture.display(), wanted.len());
    }
}

const LINES: [&str; 10] =
    ["--source", "stdin", "--name", "log", "--frame", "lines", "--flush", "20ms", "--memory", "64MiB"];

const RING: [&str; 4] = ["--size", "32MiB", "--slot", "256KiB"];

fn with<'a>(parts: &[&[&'a str]]) -> Vec<&'a str> {
    parts.concat()
}

fn document(number: u64) -> String {
    match number % 10 {
        7 => format!("{{\"n\":{number},\"t\":\"late"),
        8 => format!("{{\"n\":{number},\"name\":\"{}\"}}", "x".repeat(2000)),
        _ => {
            format!("{{\"n\":{number},\"t\":{number}.25,\"name\":\"{}\"}}", "y".repeat(number as usize % 90))
        }
    }
}

/// Writes lines in pieces that are packed one by one, so that slots and journal see elements in pieces, too; while the input is kept, the
/// recorder goes on.
fn feed_slowly(recorder: &mut Recorder, numbers: std::ops::Range<u64>) -> ChildStdin {
    let mut stdin = recorder.stdin().unwrap();
    let began = numbers.start;
    for number in numbers {
        let line = document(number) + "\n";
        let (first, rest) = line.split_at(line.len() / 3);
        stdin.write_all(first.as_bytes()).unwrap();
        if number % 16 == 3 {
            // The first part is in a slot before the rest comes.
            recorder.await_packed(number - began);
        }
        stdin.write_all(rest.as_bytes()).unwrap();
    }
    stdin
}

#[test]
fn documents_that_come_slowly_have_their_cells_and_their_nulls_are_counted() {
    let place = TestFolder::in_memory();
    let attributes = [
        "--attr",
        "event_time:time=json:t",
        "--attr",
        "n:int=json:n",
        "--attr",
        "name:text=json:name,comment=who it is",
    ];
    let mut recorder = place.start(&with(&[&RING, &LINES, &attributes]));
    let _input = feed_slowly(&mut recorder, 0..400);
    recorder.await_packed(400);
    let status = recorder.connect().status().unwrap().recorder.unwrap();
    assert_eq!((status.sources[0].undecodable, status.sources[0].too_long), (40, 40));
    let live = of_elements(&mut recorder.reader());
    recorder.signal(Signal::INT);
    let ended = recorder.end();
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.out.contains("; 40 elements undecodable; 40 texts too long\n"), "{}", ended.out);
    let wanted = of_elements(&mut reader(&place.ring));
    assert_eq!(wanted.len(), 400);
    assert!(live == wanted);
    assert!(on_medium(&place.ring).0 == wanted);
}

#[test]
fn a_schema_may_get_longer_is_kept_where_nothing_is_said_and_never_changes() {
    let place = TestFolder::in_memory();
    let n = ["--attr", "n:int=json:n"];
    let name = ["--attr", "name:text=json:name"];
    let input = |from: u64| (from..from + 50).map(|number| document(number) + "\n").collect::<String>();
    let schema = || {
        let mut reader = reader(&place.ring);
        let stream = reader.streams().unwrap().remove(0);
        reader.schema(stream.id).unwrap()
    };
    let run = |options: &[&str], from| {
        let ended = place.record(options, input(from).as_bytes());
        assert!(ended.status.success(), "{}", ended.err);
    };
    run(&with(&[&RING, &LINES, &n]), 0);
    assert_eq!(schema(), "n:int=json:n\n");
    // More of it; nothing said; none this time; nothing said again.
    run(&with(&[&LINES, &n, &name]), 50);
    run(&LINES, 100);
    run(&with(&[&LINES, &["--attr", "none"]]), 150);
    run(&LINES, 200);
    assert_eq!(schema(), "n:int=json:n\nname:text=json:name\n");
    let wanted = of_elements(&mut reader(&place.ring));
    let (found, _) = on_medium(&place.ring);
    assert_eq!(wanted.len(), 250);
    for (key, cells) in &wanted {
        let had = match key.1 / 50 {
            0 => Some(&cells[..1]),
            3 => None,
            _ => Some(&cells[..]),
        };
        assert_eq!(found.get(key).map(Vec::as_slice), had, "{key:?}");
    }
    for (attributes, said) in [
        (&["--attr", "n:uint=json:n"][..], "would become `n:uint=json:n`"),
        (&name, "the attribute `n:int=json:n` would become"),
        (&n, "the attribute `name:text=json:name` is missing"),
    ] {
        let (code, error) = place.refused(&with(&[&LINES, attributes]));
        assert_eq!(code, 1, "{error}");
        assert!(error.contains("stream log: --attr: ") && error.contains(said), "{error}");
        assert!(error.contains("holdfast streams RING --attributes"), "{error}");
    }
    assert_eq!(schema(), "n:int=json:n\nname:text=json:name\n");
}

#[test]
fn a_schema_outlives_a_kill_and_what_the_journal_gives_back_reads_the_same() {
    let place = TestFolder::in_memory();
    let attributes = ["--attr", "n:int=json:n", "--attr", "name:text=json:name"];
    for (run, parts) in [&[&RING[..], &LINES, &attributes][..], &[&LINES], &[&LINES]].into_iter().enumerate()
    {
        let mut recorder = place.start(&with(parts));
        let _input = feed_slowly(&mut recorder, 0..600);
        recorder.await_packed(600);
        if run == 2 {
            recorder.signal(Signal::INT);
            assert!(recorder.end().status.success());
        } else {
            recorder.signal(Signal::KILL);
            recorder.end();
        }
    }
    let wanted = of_elements(&mut reader(&place.ring));
    let (found, slots) = on_medium(&place.ring);
    assert!(slots > 0 && wanted.len() >= 600, "{slots} {}", wanted.len());
    assert!(found.iter().all(|(key, cells)| wanted.get(key) == Some(cells)));
    // The last run ended well: all of its elements are in slots with columns.
    let last = wanted.keys().next_back().unwrap().1;
    let stream = wanted.keys().next().unwrap().0;
    assert!((last - 599..=last).all(|ordinal| found.contains_key(&(stream, ordinal))));
}

#[test]
fn attributes_that_cannot_be_are_refused() {
    let place = TestFolder::new();
    for (options, code, said) in [
        (&["--attr", "t:float=json:"][..], 2, "--attr: in `t:float=json:`, column "),
        (&["--attr", "packets"], 2, "--source stdin delivers none"),
        (&["--attr", "none", "--attr", "vdif"], 2, "--attr: in `none`"),
    ] {
        let (found, error) = place.refused(&with(&[&RING, &["--source", "stdin", "--name", "s"], options]));
        assert_eq!(found, code, "{error}");
        assert!(error.contains(said), "{error}");
        assert!(!place.ring.exists(), "it left a ring behind");
    }
    // More than slots of 64 KiB take.
    let many: Vec<String> = (0..40).map(|number| format!("a{number}:uint=at:{number}:u8")).collect();
    let many: Vec<&str> = many.iter().flat_map(|text| ["--attr", text]).collect();
    let small = ["--size", "16MiB", "--slot", "64KiB", "--source", "stdin", "--name", "s"];
    let (code, error) = place.refused(&with(&[&small, &many]));
    assert_eq!(code, 1, "{error}");
    assert!(error.contains("--attr: ") && error.contains("larger slots"), "{error}");
    assert!(!place.ring.exists(), "it left a ring behind");
}

#[test]
fn attributes_that_nobody_asked_for_never_keep_a_recorder_from_starting() {
    let capture = tempfile::Builder::new().suffix(".pcap").tempfile().unwrap();
    let mut bytes = [0xa1b2_c3d4u32, 0x0004_0002, 0, 0, 65_535, 1].map(u32::to_le_bytes).concat();
    bytes.extend([1u32, 0, 60, 60].map(u32::to_le_bytes).concat());
    bytes.extend([1; 60]);
    std::fs::write(capture.path(), bytes).unwrap();
    let replay = format!("replay:{}", capture.path().display());
    let place = TestFolder::new();
    let three = ["a", "b", "c"].map(|name| ["--source", &replay, "--name", name, "--speed", "max"]).concat();
    let ended = place.record(&with(&[&["--size", "16MiB", "--slot", "64KiB"], &three]), b"");
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.err.contains("sources without --attr get no attributes"), "{}", ended.err);
    assert_eq!(on_medium(&place.ring).1, 0);
    assert_eq!(of_elements(&mut reader(&place.ring)).len(), 3);
}

// Promises 5 and 6: every cell belongs to its element, and a stream keeps what was inferred, over a restart and a crash.
#[test]
fn attributes_are_inferred_and_kept() {
    let place = TestFolder::in_memory();
    let auto = with(&[&RING, &LINES, &["--attr", "own:float=json:t", "--attr", "auto"]]);
    let mut recorder = place.start(&auto);
    let mut input = recorder.stdin().unwrap();
    let lines: String = (0..2000).map(|number| document(number) + "\n").collect();
    input.write_all(lines.as_bytes()).unwrap();
    recorder.await_packed(2000);
    // Elements in pieces, too.
    for number in 2000..2300 {
        let line = document(number) + "\n";
        let (first, rest) = line.split_at(line.len() / 3);
        input.write_all(first.as_bytes()).unwrap();
        if number % 16 == 3 {
            recorder.await_packed(number);
        }
        input.write_all(rest.as_bytes()).unwrap();
    }
    recorder.await_packed(2300);
    let text = |reader: &mut RingReader| {
        let streams = reader.streams().unwrap();
        reader.schema(streams[0].id).unwrap()
    };
    let wanted = "own:float=json:t\nn:int=json:n\nname:text=json:name\n";
    assert_eq!(text(&mut recorder.reader()), wanted);
    let live = of_elements(&mut recorder.reader());
    assert_eq!(live.len(), 2300);
    recorder.signal(Signal::INT);
    assert!(recorder.end().status.success());
    let (found, slots) = on_medium(&place.ring);
    assert!(slots > 0 && found.iter().all(|(key, cells)| live[key].starts_with(cells)));
    // The explicit one from the beginning, all of them behind the inference.
    let having = |count| found.values().filter(|cells| cells.len() == count).count();
    assert!(having(1) + having(3) == 2300 && having(3) >= 400, "{} and {}", having(1), having(3));

    // Other fields do not change it; the recorder is killed.
    let mut recorder = place.start(&with(&[&LINES, &["--attr", "auto"]]));
    let mut input = recorder.stdin().unwrap();
    input.write_all(b"{\"other\":1,\"n\":5}\n").unwrap();
    recorder.await_packed(1);
    assert_eq!(text(&mut recorder.reader()), wanted);
    recorder.signal(Signal::KILL);
    recorder.end();
    let mut after = reader(&place.ring);
    assert_eq!(text(&mut after), wanted);

    // An explicit list must begin with what is there.
    let (_, said) = place.refused(&with(&[&LINES, &["--attr", "auto", "--attr", "n:float=json:n"]]));
    assert!(said.contains("own:float=json:t"), "{said}");
    let ended =
        place.record(&with(&[&LINES, &["--attr", "auto", "--attr", "own:float=json:t"]]), b"{\"n\":7}\n");
    assert!(ended.status.success(), "{}", ended.err);
    let (found, _) = on_medium(&place.ring);
    assert!(found.values().all(|cells| matches!(cells.len(), 1 | 3)));
}

// Promise 8: what is not taken is named, and what to do about it.
#[test]
fn what_attributes_leave_out_is_said() {
    let place = TestFolder::in_memory();
    let ended = place
        .record(&with(&[&RING, &LINES, &["--attr", "auto"]]), b"{\"a\":1,\"bad\\nkey\":2,\"list\":[3]}\n");
    assert!(ended.status.success(), "{}", ended.err);
    assert!(ended.err.contains(": --attr auto leaves out bad\\nkey: "), "{}", ended.err);
    // One header at the head of the input; frames without a rate.
    let place = TestFolder::in_memory();
    let input = [&b"HDR_VERSION 1.0\nNBIT 8\n"[..], &[0; 41], &[7; 640]].concat();
    let source = ["--source", "stdin", "--name", "a", "--frame", "fixed:64", "--attr", "dada:nbit"];
    let ended = place.record(&with(&[&RING, &source]), &input);
    assert!(ended.out.contains("; 10 of 11 elements have no DADA header; "), "{}", ended.out);
    assert!(ended.out.contains("--preamble 4096), without --attr dada"), "{}", ended.out);
    let frame = [&[0, 0, 0, 0x40, 1, 0, 0, 28, 8, 0, 0, 0, 0, 0, 0, 0][..], &[7; 48]].concat();
    for (attribute, is_whole) in [("vdif:event_time", true), ("vdif:event_time,rate=100", false)] {
        let place = TestFolder::in_memory();
        let source = ["--source", "stdin", "--name", "a", "--frame", "fixed:64", "--attr", attribute];
        let ended = place.record(&with(&[&RING, &source]), &frame);
        let said = "event times of 1 element in whole seconds";
        assert_eq!(ended.out.contains(said), is_whole, "{}", ended.out);
    }
}

#[test]
fn inference_is_refused_where_it_makes_no_sense() {
    let place = TestFolder::in_memory();
    for (options, wanted) in [
        (vec!["--source", "iface:lo", "--name", "a", "--attr", "auto"], "attributes are inferred from JSON"),
        (
            vec!["--source", "stdin", "--name", "a", "--attr", "auto", "--attr", "none"],
            "--attr none --attr auto",
        ),
    ] {
        let (code, said) = place.refused(&with(&[&RING, &options]));
        assert!(code == 2 && said.contains(wanted), "{said}");
    }
}
