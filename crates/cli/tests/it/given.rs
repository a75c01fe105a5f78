//! Attributes that a producer gives with each element: found by SQL with a recorder and without, in copies, too,
//! and read back with their frames, byte for byte (promises 5 and 8).
#![allow(missing_docs, clippy::unwrap_used)]

use crate::common;

use common::{ends, folder, record};
use holdfast_ingest::Framing;
use std::fs::{self, File};

const ATTRIBUTES: &str = "--attr gain:float=given,unit=dB --attr who:ip=given --attr site:text=given";

fn frame(number: u8) -> Vec<u8> {
    let gain = f64::from(number) / 4.0;
    let site = if number.is_multiple_of(3) { "north" } else { "" };
    let mut header = Vec::new();
    for value in [&gain.to_le_bytes()[..], &[10, 0, 0, number], site.as_bytes()] {
        header.extend((value.len() as u16).to_le_bytes());
        header.extend(value);
    }
    let mut frame = Vec::new();
    Framing::Attr32.restore(&mut frame, Some(&header), format!("sample {number}").as_bytes(), 0);
    frame
}

#[test]
fn what_a_producer_gives_is_found_and_comes_back() {
    let folder = folder();
    let dir = folder.path();
    // The last one has no header, and is kept all the same.
    let mut input: Vec<u8> = (0..200).flat_map(frame).collect();
    Framing::Attr32.restore(&mut input, None, b"bare", 9);
    fs::write(dir.join("input"), &input).unwrap();
    let options = format!("--source stdin --name s --frame attr32 {ATTRIBUTES}");
    let line = format!("r.hf --size 16MiB --slot 64KiB {options}");
    let said = record(dir, &line, File::open(dir.join("input")).unwrap().into());
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(ends(dir, "read r.hf --format raw", 0).bytes == input);
    let lines = ends(dir, "read r.hf --format jsonl --ordinals 3..4", 0).lines();
    assert_eq!((lines[0]["text"].as_str(), lines[0]["len"].as_u64()), (Some("sample 3"), Some(8)));
    assert!(lines[0]["meta"].is_string());
    let ask = |sql: &str| ends(dir, &format!("query r.hf --format csv {}", sql.replace(' ', "_")), 0).out;
    let answers = || {
        [
            "select ordinal, gain, size, text(payload) from s where who = '10.0.0.9'",
            "select site, count(*), max(gain) from s where ordinal >= 8 group by site order by site",
            "select ordinal, hex(payload) from s where gain is null",
        ]
        .map(ask)
    };
    let before = answers();
    assert!(before[0].contains("9,2.25,8,sample 9"), "{}", before[0]);
    assert!(before[2].contains("200,62617265"), "{}", before[2]);
    assert!(before[1].contains("north,64,49.5"), "{}", before[1]);
    // A copy has them, too.
    ends(dir, "purge r.hf --ordinals 4..6 --reason law", 0);
    assert_eq!(answers(), before);
    let left: Vec<u8> = (0..200).filter(|number| !matches!(number, 4 | 5)).flat_map(frame).collect();
    assert!(ends(dir, "read r.hf --format raw", 0).bytes.starts_with(&left));
}

#[test]
fn what_is_given_wants_frames_that_have_it() {
    let folder = folder();
    for source in ["stdin", "file:x --frame lines", "tcp::5000 --frame len32", "udp::5000"] {
        let said = ends(
            folder.path(),
            &format!("record r.hf --size 16MiB --source {source} --name s {ATTRIBUTES}"),
            2,
        );
        assert!(said.err.contains("gain:float=given") && said.err.contains("--frame attr32"), "{}", said.err);
    }
}
