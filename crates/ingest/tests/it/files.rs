//! Tests of files, pipes and named pipes (promises 2, 5 and 8): real inputs come back byte for byte, a truncation is
//! reported by its byte offset, and a writer that goes away loses only its unfinished element.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::common;

use common::Collector;
use common::rig::{Rig, opened};
use holdfast_base::ByteSize;
use holdfast_ingest::{
    Cause, Framing, Overload, PreambleFrom, SourceEnd, SourceError, SourceOptions, SourceSpec, StopFlag, open,
};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A real input where there is one, else bytes that look as arbitrary.
fn real(name: &str, dir: &Path, otherwise: usize) -> PathBuf {
    let found = std::env::var_os("HOLDFAST_TEST_DATA").map(|data| PathBuf::from(data).join(name));
    if let Some(found) = found.filter(|path| path.exists()) {
        return found;
    }
    let path = dir.join(name.replace('/', "-"));
    let mut state = 1u32;
    let bytes: Vec<u8> = (0..otherwise)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8 % 64 + if state.is_multiple_of(50) { 10 } else { 32 }
        })
        .collect();
    std::fs::write(&path, bytes).unwrap();
    path
}

fn restored(collector: &Collector, framing: Framing, preamble: Option<Vec<u8>>) -> Vec<u8> {
    let mut out = preamble.unwrap_or_default();
    for element in &collector.elements {
        framing.restore(&mut out, element.header(), &element.data, element.tag);
    }
    out
}

#[test]
fn real_inputs_come_back_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let leading = |bytes| Some(PreambleFrom::Leading(ByteSize(bytes)));
    for (name, otherwise, framing, preamble) in [
        ("vlbi/sample.vdif", 16 * 5032, "fixed:5032", None),
        ("vlbi/sample_mkbf.dada", 4096 + 70_000, "blocks:64KiB", leading(4096)),
        ("filterbank/parkes_8bit_1.fil", 500_000, "blocks:8KiB", leading(300)),
        ("robot/sample.ulg", 600_000, "blocks:64KiB", None),
        ("robot/sample.ulg", 600_000, "blocks:1", None),
        ("text/sherlock.txt", 600_000, "lines", None),
        ("text/subtitles_en.txt", 600_001, "lines", None),
        ("vlbi/sample_drao_corrupted.vdif", 10 * 5032, "fixed:5032", None),
    ] {
        let path = real(name, dir.path(), otherwise);
        let framing: Framing = framing.parse().unwrap();
        let options =
            SourceOptions { framing: Some(framing), preamble: preamble.clone(), ..SourceOptions::default() };
        let (opened, stop) = opened(&format!("file:{}", path.display()), &options);
        assert_eq!(opened.framing, framing);
        let preamble = opened.preamble.clone();
        let (collector, end) = Rig::start(opened, stop, 4).finish();
        assert_eq!(end.unwrap(), SourceEnd::Ended, "{name}");
        assert_eq!(collector.gaps, [], "{name}");
        assert!(restored(&collector, framing, preamble) == std::fs::read(&path).unwrap(), "{name} {framing}");
    }
}

#[test]
fn a_slow_capture_side_loses_nothing_of_a_file_and_all_is_counted_when_it_may() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("data");
    let data: Vec<u8> = (0..10_000_000u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&path, &data).unwrap();
    for overload in [Overload::Block, Overload::DropNewest] {
        let options = SourceOptions {
            framing: Some(Framing::Fixed(1000)),
            overload: Some(overload),
            ..SourceOptions::default()
        };
        let (opened, stop) = opened(&format!("file:{}", path.display()), &options);
        let mut rig = Rig::start(opened, stop, 4);
        rig.starve(4);
        if overload == Overload::DropNewest {
            // It must have dropped all the rest before anything is given back.
            let counters = rig.counters();
            while common::rig::count(&counters.elements) < 10_000 {
                std::thread::yield_now();
            }
        }
        let (collector, end) = rig.finish();
        assert_eq!(end.unwrap(), SourceEnd::Ended);
        let recorded = collector.elements.len() as u64;
        assert_eq!((recorded + collector.all_lost(), collector.next), (10_000, 10_000));
        assert_eq!(collector.recorded_bytes() + collector.lost_bytes(), data.len() as u64);
        if overload == Overload::Block {
            assert_eq!(collector.gaps, []);
            assert!(restored(&collector, Framing::Fixed(1000), None) == data);
        } else {
            assert_eq!(collector.gaps.len(), 1, "{:?}", collector.gaps);
            assert_eq!(collector.lost(Cause::NoBuffer as u8), 10_000 - recorded);
            for element in &collector.elements {
                let at = element.ordinal as usize * 1000;
                assert!(element.data == data[at..at + 1000]);
            }
        }
    }
}

#[test]
fn an_input_that_ends_inside_an_element_says_where_and_counts_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cut");
    std::fs::write(&path, vec![9; 100 + 2 * 5032 + 17]).unwrap();
    let options = SourceOptions {
        framing: Some(Framing::Fixed(5032)),
        preamble: Some(PreambleFrom::Leading(ByteSize(100))),
        ..SourceOptions::default()
    };
    let (opened, stop) = opened(&format!("file:{}", path.display()), &options);
    let (collector, end) = Rig::start(opened, stop, 4).finish();
    let said = end.unwrap_err().to_string();
    assert!(said.ends_with(": the last element is truncated: 17 of 5032 bytes at byte 10164"), "{said}");
    assert_eq!(
        (collector.elements.len(), collector.lost(Cause::Aborted as u8), collector.lost_bytes()),
        (2, 1, 17)
    );
    assert_eq!(collector.gaps.len(), 1, "the loss is known, and no other is told");
}

/// A named pipe in `dir`.
fn named_pipe(dir: &Path) -> PathBuf {
    let path = dir.join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    path
}

#[test]
fn a_named_pipe_goes_from_writer_to_writer_until_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let path = named_pipe(dir.path());
    let options = SourceOptions { framing: Some(Framing::Lines), ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("file:{}", path.display()), &options);
    let mut rig = Rig::start(opened, stop, 4);
    for round in 0..20 {
        let mut writer = std::fs::File::options().write(true).open(&path).unwrap();
        write!(writer, "{round} one\n{round} two\n{round} open").unwrap();
        drop(writer);
        // Three lines each: the writer's end ends its last line.
        rig.collect_until(|collector| collector.elements.len() == 3 * (round + 1));
    }
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    let lines: Vec<_> =
        collector.elements.iter().map(|e| String::from_utf8_lossy(&e.data).into_owned()).collect();
    assert_eq!(lines[57..], ["19 one", "19 two", "19 open"]);
}

#[test]
fn a_source_that_waits_for_a_slow_writer_sends_what_it_has_and_stops_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = named_pipe(dir.path());
    let options = SourceOptions { framing: Some(Framing::Fixed(10)), ..SourceOptions::default() };
    let (opened, stop) = opened(&format!("file:{}", path.display()), &options);
    let mut rig = Rig::start(opened, stop, 4);
    let mut writer = std::fs::File::options().write(true).open(&path).unwrap();
    writer.write_all(b"0123456789abc").unwrap();
    rig.collect_until(|collector| collector.elements.len() == 1);
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert_eq!(collector.recorded_bytes() + collector.lost_bytes(), 13);
    assert_eq!((collector.elements.len(), collector.lost(Cause::Aborted as u8)), (1, 1));
}

#[test]
fn what_was_written_into_a_pipe_before_a_stop_is_taken() {
    let dir = tempfile::tempdir().unwrap();
    let path = named_pipe(dir.path());
    for preamble in [None, Some(PreambleFrom::Leading(ByteSize(3)))] {
        let options = SourceOptions {
            framing: Some(Framing::Fixed(10)),
            preamble: preamble.clone(),
            ..SourceOptions::default()
        };
        let (opened, stop) = opened(&format!("file:{}", path.display()), &options);
        let mut writer = std::fs::File::options().write(true).open(&path).unwrap();
        if preamble.is_some() {
            writer.write_all(b"PRE").unwrap();
        }
        writer.write_all(&b"0123456789".repeat(6000)).unwrap();
        writer.write_all(b"cut").unwrap();
        // Before the source has looked at the pipe even once.
        stop.stop();
        let (collector, end) = Rig::start(opened, stop, 4).finish();
        assert_eq!(end.unwrap(), SourceEnd::Stopped);
        assert_eq!(collector.preamble.as_deref(), preamble.map(|_| &b"PRE"[..]));
        assert_eq!((collector.elements.len(), collector.lost(Cause::Aborted as u8)), (6000, 1));
        assert_eq!((collector.recorded_bytes(), collector.lost_bytes()), (60_000, 3));
    }
}

#[test]
fn a_pipe_that_never_empties_a_device_without_end_and_a_file_stop_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = named_pipe(dir.path());
    let options = SourceOptions { framing: Some(Framing::Fixed(1000)), ..SourceOptions::default() };
    let (source, stop) = opened(&format!("file:{}", path.display()), &options);
    let mut rig = Rig::start(source, stop, 4);
    let writer = std::thread::spawn(move || {
        let mut writer = std::fs::File::options().write(true).open(&path).unwrap();
        let mut written = 0;
        // Until nobody reads any more.
        while let Ok(n) = writer.write(&[7; 5000]) {
            written += n as u64;
        }
        written
    });
    rig.collect_until(|collector| collector.elements.len() > 100);
    let (collector, end) = rig.stop();
    assert_eq!(end.unwrap(), SourceEnd::Stopped);
    assert!(collector.recorded_bytes() + collector.lost_bytes() <= writer.join().unwrap());

    let (source, stop) = opened("file:/dev/zero", &options);
    let mut rig = Rig::start(source, stop, 4);
    rig.collect_until(|collector| collector.elements.len() > 100);
    assert_eq!(rig.stop().1.unwrap(), SourceEnd::Stopped);

    // Nobody waits until it is read, and it is there later, too.
    let file = dir.path().join("file");
    std::fs::write(&file, vec![7; 100_000]).unwrap();
    let (source, stop) = opened(&format!("file:{}", file.display()), &options);
    stop.stop();
    let (collector, end) = Rig::start(source, stop, 4).finish();
    assert_eq!((end.unwrap(), collector.next), (SourceEnd::Stopped, 0));
}

#[test]
fn what_cannot_be_read_is_refused_with_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let stop = StopFlag::new().unwrap();
    let say = |text: String, options: &SourceOptions| {
        let spec: SourceSpec = text.parse().unwrap();
        open(&spec, options, &stop).unwrap_err().to_string()
    };
    let none = SourceOptions::default();
    let said = say(format!("file:{}", dir.path().join("missing").display()), &none);
    assert!(said.contains("cannot open the file") && said.contains("check the name"), "{said}");
    let said = say(format!("file:{}", dir.path().display()), &none);
    assert!(said.contains("this is a directory"), "{said}");
    let short = dir.path().join("short");
    std::fs::write(&short, "abc").unwrap();
    let leading = SourceOptions { preamble: Some(PreambleFrom::Leading(ByteSize(4))), ..none.clone() };
    let said = say(format!("file:{}", short.display()), &leading);
    assert!(said.contains("ends before its preamble of 4 B"), "{said}");
    let missing = SourceOptions { preamble: Some(PreambleFrom::File("/nonexistent".into())), ..none };
    let said = say(format!("file:{}", short.display()), &missing);
    assert!(said.contains("--preamble /nonexistent"), "{said}");
}

/// Runs only as the child of the next test, which feeds its standard input.
#[test]
fn child_that_reads_standard_input() {
    if std::env::var_os("HOLDFAST_TEST_STDIN").is_none() {
        return;
    }
    let options = SourceOptions {
        framing: Some(Framing::Len32Be),
        preamble: Some(PreambleFrom::Leading(ByteSize(4))),
        ..SourceOptions::default()
    };
    let (opened, stop) = opened("stdin", &options);
    assert!(opened.leads && opened.preamble.is_none());
    if std::env::var_os("HOLDFAST_TEST_STOP").is_some() {
        stop.stop();
    }
    let (collector, end) = Rig::start(opened, stop, 4).finish();
    let preamble = collector.preamble.as_ref().unwrap();
    let cut = matches!(end, Err(SourceError::Cut { have: 1, want: Some(9), .. }));
    let sum: usize = collector.elements.iter().map(|element| element.data.len()).sum();
    println!("RESULT {preamble:?} {} {sum} {cut}", collector.elements.len());
}

#[test]
fn what_was_written_to_standard_input_before_a_stop_is_taken() {
    let (input, mut pipe) = std::io::pipe().unwrap();
    pipe.write_all(b"HEAD").unwrap();
    for size in [0usize, 1, 30_000, 77, 20_000] {
        pipe.write_all(&(size as u32).to_be_bytes()).unwrap();
        pipe.write_all(&vec![5; size]).unwrap();
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::child_that_reads_standard_input", "--nocapture"])
        .envs([("HOLDFAST_TEST_STDIN", "1"), ("HOLDFAST_TEST_STOP", "1")])
        .stdin(input)
        .output()
        .unwrap();
    // The writer is there all the time.
    drop(pipe);
    assert!(child.status.success());
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(said.contains("RESULT [72, 69, 65, 68] 5 50078 false"), "{said}");
}

#[test]
fn standard_input_is_read_to_its_end() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "files::child_that_reads_standard_input", "--nocapture"])
        .env("HOLDFAST_TEST_STDIN", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"HEAD").unwrap();
    let mut sum = 0;
    for size in [0usize, 1, 300_000, 77, 5_000_000] {
        stdin.write_all(&(size as u32).to_be_bytes()).unwrap();
        stdin.write_all(&vec![5; size]).unwrap();
        sum += size;
    }
    stdin.write_all(&[0, 0, 0, 9, 1]).unwrap();
    drop(stdin);
    let mut said = String::new();
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    assert!(said.contains(&format!("RESULT [72, 69, 65, 68] 5 {sum} true")), "{said}");
}
