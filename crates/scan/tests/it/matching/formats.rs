//! Formats of module `bio`: FASTA, FASTQ and gzip, whole and broken.

use crate::matching::biology::{Plain, expected, plain};
use crate::matching::common::{outputs, run, sizes};
use flate2::Compression;
use flate2::write::GzEncoder;
use holdfast_scan::{Biology, BiologyOptions};
use proptest::prelude::*;
use std::io::Write as _;

/// Record of a generated file: name, rest of the header, sequence.
type Record = (String, String, Vec<u8>);

fn options() -> BiologyOptions {
    let patterns = vec![b"ACCA".to_vec(), b"GATTN".to_vec()];
    BiologyOptions { patterns, distance: 1, ..BiologyOptions::default() }
}

fn records() -> impl Strategy<Value = Vec<Record>> {
    let sequence = prop::collection::vec(prop::sample::select(b"ACGTacgtuN".as_slice()), 0..120);
    let record = ("[!-~]{1,8}", "( [ -~]{0,10})?", sequence);
    prop::collection::vec(record, 1..8)
}

/// Lines of a sequence, of one width.
fn lines(sequence: &[u8], width: usize, line_end: &str) -> Vec<u8> {
    let lines = sequence.chunks(width).map(|line| [line, line_end.as_bytes()].concat());
    lines.collect::<Vec<_>>().concat()
}

fn fasta(records: &[Record], width: usize, line_end: &str) -> Vec<u8> {
    let mut file = b"\n".to_vec();
    for (name, comment, sequence) in records {
        write!(file, ">{name}{comment}{line_end}").unwrap();
        file.extend(lines(sequence, width, line_end));
        write!(file, "{line_end};comment ACCA{line_end}").unwrap();
    }
    file
}

fn fastq(records: &[Record], width: usize, line_end: &str) -> Vec<u8> {
    let mut file = Vec::new();
    for (name, comment, sequence) in records {
        // The quality has all the marks of the format in it, at the begins of lines too.
        let quality: Vec<u8> = b"@+>;I".iter().copied().cycle().take(sequence.len()).collect();
        write!(file, "@{name}{comment}{line_end}").unwrap();
        file.extend(lines(sequence, width, line_end));
        write!(file, "+{comment}{line_end}").unwrap();
        file.extend(lines(&quality, width + 1, line_end));
        if sequence.is_empty() {
            file.extend(line_end.as_bytes());
        }
    }
    file
}

/// Gzip file of two members.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let (left, right) = bytes.split_at(bytes.len() / 3);
    let members = [left, right].map(|part| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(part).unwrap();
        encoder.finish().unwrap()
    });
    members.concat()
}

fn wanted(records: &[Record]) -> Vec<Plain> {
    records.iter().flat_map(|(name, _, sequence)| expected(&options(), name, sequence)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn records_of_all_formats_are_read_for_each_division(
        records in records(),
        width in 1_usize..80,
        line_end in prop::sample::select(vec!["\n", "\r\n"]),
        sizes in sizes(),
    ) {
        let wanted = wanted(&records);
        let module = Biology::new(options()).unwrap();
        for file in [fasta(&records, width, line_end), fastq(&records, width, line_end)] {
            for file in [gzip(&file), file] {
                prop_assert_eq!(&plain(outputs(&module, &file, &[])), &wanted);
                prop_assert_eq!(&plain(outputs(&module, &file, &sizes)), &wanted);
            }
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in prop::collection::vec(prop::sample::select(b"@>;+\nAC\r \x1f\x8b\x08\0".as_slice()), 0..60),
        sizes in sizes(),
    ) {
        let module = Biology::new(options()).unwrap();
        prop_assert_eq!(run(&module, &bytes, &[]), run(&module, &bytes, &sizes));
    }
}

fn error(file: &[u8]) -> String {
    let module = Biology::new(options()).unwrap();
    let errors = [&[][..], &[1], &[7]].map(|sizes| run(&module, file, sizes).error.unwrap().to_string());
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0], errors[2]);
    errors[0].clone()
}

#[test]
fn broken_fastq_is_an_error_that_names_the_record() {
    let good = "@good\nACGT\n+\nIIII\n";
    let short = error(format!("{good}@bad one\nACGT\n+\nIII").as_bytes());
    assert_eq!(
        short,
        "cannot read FASTQ record `bad` at byte offset 18 of the text: its quality ends after 3 of 4 letters; \
         the file is cut off or is no FASTQ"
    );
    assert!(
        error(format!("{good}@bad\nACGT\n+\nIIIII\n{good}").as_bytes()).contains("longer than its 4 letters")
    );
    assert!(error(format!("{good}@bad\nACGT\n{good}").as_bytes()).contains("record `bad`"));
    assert!(error(format!("{good}@bad\nACGT").as_bytes()).contains("in front of its line `+`"));
    assert!(error(format!("{good}ACGT\n").as_bytes()).contains("`A` follows its quality"));
}

#[test]
fn broken_gzip_is_an_error_that_names_the_offset() {
    let file = gzip(&b">r\nGATTACAGATTACA\n".repeat(2000));
    for cut in [3, 12, file.len() / 2, file.len() - 1] {
        let text = error(&file[..cut]);
        assert!(text.starts_with("cannot decompress gzip up to its end"), "{text}");
        assert!(text.contains(&format!("at byte offset {cut}:")), "{text}");
    }
    let mut damaged = file.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    assert!(error(&damaged).starts_with("cannot decompress gzip"));
}

#[test]
fn empty_items_and_headers_without_letters_have_no_hits() {
    let module = Biology::new(options()).unwrap();
    for file in
        [&b""[..], b"\x1f", b"\n\n", b">name", b">name\n", b"@name\n\n+\n\n", b"@name\n+", b">\n\n>\n"]
    {
        assert_eq!(outputs(&module, file, &[]), []);
        assert_eq!(outputs(&module, file, &[1]), []);
    }
}
