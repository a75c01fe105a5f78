//! Search beside ripgrep, over generated patterns and files: binary payloads, long lines, mixed encodings.
//!
//! ripgrep runs as `rg --no-config -uuu -a -j1 --encoding=none --json`: without ignore files, and with binary files searched to
//! their end. Its options `-w`, `-i`, `-x`, `-v` and `--no-unicode` are those of the same names.

use crate::common::scanned;
use crate::matching::common::Random;
use holdfast_scan::{Hit, Options, Search, SearchOptions, Wanted};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Pairs of a pattern and a file that are compared.
const PAIRS: usize = 500;

/// Atoms of generated patterns.
const ATOMS: [&str; 22] = [
    "a",
    "b",
    "foo",
    "bar",
    ".",
    ".*",
    "a+",
    "[ab]+",
    "[^a]",
    r"\w+",
    r"\d",
    r"\s",
    "x{2,5}",
    "$",
    "^",
    "\u{e9}",
    r"\xff",
    "(foo|ba)",
    "(?i)FOO",
    "k.*y",
    "o$",
    "[[:alpha:]]+",
];

/// Atoms with word boundaries, and with the begin and the end of a text.
const LOOKS: [&str; 4] = [r"\b", r"\B", r"\A", r"\z"];

/// Parts of generated files.
const PARTS: [&[u8]; 20] = [
    b"a",
    b"b",
    b"foo",
    b"bar",
    b" ",
    b"\n",
    b"\n",
    b"\n\n",
    b"\0",
    b"\xff",
    b"\xfe",
    b"\xc3",
    "\u{e9}".as_bytes(),
    "\u{20ac}".as_bytes(),
    b"xxx",
    b"FOO",
    b"k",
    b"y",
    b"\r\n",
    b"12",
];

fn pattern(random: &mut Random) -> String {
    let mut pattern = String::new();
    for _ in 0..=random.below(3) {
        let atoms: &[&str] = if random.below(6) == 0 { &LOOKS } else { &ATOMS };
        pattern.push_str(atoms[random.below(atoms.len())]);
    }
    pattern
}

/// Text of parts; some have a line of up to 10 MB.
fn text(random: &mut Random, pair: usize) -> Vec<u8> {
    let mut text = Vec::new();
    let add = |random: &mut Random, text: &mut Vec<u8>, parts: usize| {
        for _ in 0..parts {
            let part = PARTS[random.below(PARTS.len())];
            let count = if random.below(40) == 0 { 1 + random.below(3000) } else { 1 };
            text.extend(part.repeat(count));
        }
    };
    let parts = random.below(300);
    add(random, &mut text, parts);
    if pair.is_multiple_of(25) {
        let bytes = 10_000_000;
        let part = [b"x".as_slice(), b"foo ", b"\0", "\u{e9}".as_bytes()][random.below(4)];
        let count = random.below(bytes / part.len());
        text.extend(part.repeat(count));
    }
    let parts = 1 + random.below(100);
    add(random, &mut text, parts);
    text
}

/// Line of output: offset, number, matches.
type Found = (u64, u64, Vec<(u64, u64)>);

/// Lines that ripgrep finds; `None`: it does not take the pattern.
fn of_ripgrep(options: &SearchOptions, flags: &[&str], file: &Path) -> Option<Vec<Found>> {
    let mut command = Command::new(program());
    command.args(["--no-config", "-uuu", "-a", "-j1", "--encoding=none", "--json"]).args(flags);
    command.arg("-e").arg(&options.patterns[0]).arg(file);
    let output = command.output().unwrap();
    if output.status.code() == Some(2) {
        return None;
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let lines = messages.filter_map(|message| {
        let message: serde_json::Value = serde_json::from_slice(message).unwrap();
        let data = &message["data"];
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        (message["type"] == "match").then(|| {
            let offset = number(&data["absolute_offset"]);
            let matches = data["submatches"].as_array().unwrap().iter();
            let matches =
                matches.map(|found| (offset + number(&found["start"]), offset + number(&found["end"])));
            (offset, number(&data["line_number"]), matches.collect())
        })
    });
    Some(lines.collect())
}

/// Program of ripgrep: beside the Python programs that `make test` installs, else that of the machine.
fn program() -> PathBuf {
    let python = std::env::var_os("HOLDFAST_PYTHON").map(PathBuf::from);
    let installed = python.map(|python| python.with_file_name("rg")).filter(|program| program.exists());
    installed.unwrap_or_else(|| PathBuf::from("rg"))
}

/// Version of ripgrep; `None` where it is not installed.
fn version() -> Option<u64> {
    let output = Command::new(program()).arg("--version").output().ok()?;
    String::from_utf8_lossy(&output.stdout).strip_prefix("ripgrep ")?.split('.').next()?.parse().ok()
}

/// Matches that are compared: ripgrep tells an empty match at the end of a line in some forms of output only.
fn compared(lines: Vec<Found>) -> Vec<Found> {
    let not_empty = |(from, end): &(u64, u64)| from < end;
    let lines = lines.into_iter().map(|(offset, number, matches)| {
        (offset, number, matches.into_iter().filter(not_empty).take(900).collect())
    });
    lines.collect()
}

#[test]
fn lines_and_matches_are_those_of_ripgrep() {
    let Some(version) = version() else {
        eprintln!("left out: ripgrep is not installed");
        return;
    };
    if version < 14 {
        eprintln!("ripgrep {version} gets -w wrong: pairs with it are left out");
    }
    let mut random = Random(20_261_129);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text");
    let (mut pair, mut refused) = (0, 0);
    while pair < PAIRS {
        std::fs::write(&file, text(&mut random, pair)).unwrap();
        let chance = |random: &mut Random, share: usize| random.below(share) == 0;
        let options = SearchOptions {
            patterns: vec![pattern(&mut random)],
            ignore_case: chance(&mut random, 4),
            word: version >= 14 && chance(&mut random, 4),
            whole_line: chance(&mut random, 8),
            invert: chance(&mut random, 6),
            wanted: Wanted::NumberedLines,
            ..SearchOptions::default()
        };
        let flag = |is: bool, flag: &'static str| is.then_some(flag);
        // Ripgrep takes the last one of -w and -x.
        let flags = [
            flag(options.ignore_case, "-i"),
            flag(options.word, "-w"),
            flag(options.whole_line, "-x"),
            flag(options.invert, "-v"),
        ];
        let flags: Vec<&str> = flags.into_iter().flatten().collect();
        let Some(wanted) = of_ripgrep(&options, &flags, &file) else {
            refused += 1;
            assert!(refused < PAIRS, "ripgrep refuses too many patterns");
            continue;
        };
        let search = Search::new(options.clone()).unwrap();
        let small = if chance(&mut random, 2) { 0 } else { u64::MAX };
        let limits = Options { small, block: 65_536, ..Options::default() };
        let scanned = scanned(&search, &file, limits);
        assert_eq!(scanned.troubles, [], "{options:?}");
        let lines = scanned.outputs.into_iter().map(|hit| match hit {
            Hit::Line(line) => (line.offset, line.number.unwrap(), line.matches),
            Hit::Count(..) => panic!("lines were asked for"),
        });
        let (mut found, mut wanted) = (compared(lines.collect()), compared(wanted));
        if options.patterns[0].contains(r"\A") || options.patterns[0].contains(r"\z") {
            // ripgrep selects lines by their own begin and end, and then looks for matches in more than the line.
            found.iter_mut().chain(&mut wanted).for_each(|(.., matches)| matches.clear());
        }
        let differs = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
        let differs = differs
            .map(|(found, wanted)| (found.0, found.1, wanted.0, wanted.1, found.2.len(), wanted.2.len()));
        assert_eq!((found.len(), differs), (wanted.len(), None), "pair {pair}: {options:?}");
        pair += 1;
    }
}
