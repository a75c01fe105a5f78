//! Search beside a naive reference that takes each line on its own (promise 5).

use crate::common::{options, scanned};
use holdfast_scan::{Hit, Options, Search, SearchOptions, Syntax, Wanted};
use proptest::prelude::*;
use regex::bytes::{Regex, RegexBuilder};
use std::fs;

const PATTERNS: [&str; 9] = ["ab", "a+b", r"\bab\b", "b$", "^a", "x*", "a{3,10}", "(?-u)[^ab]", "a.{20,60}c"];

/// Offset and matches of a line.
type Found = (u64, Vec<(u64, u64)>);

fn naive(pattern: &Regex, text: &[u8]) -> Vec<Found> {
    let mut offset = 0;
    let mut found = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let content = line.strip_suffix(b"\n").unwrap_or(line);
        let matches = pattern.find_iter(content);
        let matches: Vec<_> =
            matches.map(|found| (offset + found.start() as u64, offset + found.end() as u64)).collect();
        if !matches.is_empty() {
            found.push((offset, matches));
        }
        offset += line.len() as u64;
    }
    found
}

/// Text of short and long lines of few letters, so that matches lie at every border.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec!["a", "b", "ab", "c", " ", "\n", "\n\n", "aaaa", "\u{e9}", "x"]);
    let line = (word, 1_usize..200).prop_map(|(word, count)| word.repeat(count));
    prop::collection::vec(line, 0..400).prop_map(|parts| parts.concat().into_bytes())
}

fn found(search: &Search, text: &[u8], options: Options) -> Vec<Found> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), text).unwrap();
    let scanned = scanned(search, folder.path(), options);
    assert_eq!(scanned.troubles, []);
    let lines = scanned.outputs.into_iter().map(|hit| match hit {
        Hit::Line(line) => (line.offset, line.matches),
        Hit::Count(..) => panic!("lines were asked for"),
    });
    lines.collect()
}

fn search(pattern: &str, wanted: Wanted) -> Search {
    Search::new(SearchOptions { patterns: vec![pattern.to_owned()], wanted, ..SearchOptions::default() })
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn lines_and_matches_are_those_of_a_naive_search(
        text in text(),
        pattern in prop::sample::select(PATTERNS.to_vec()),
        options in options(),
    ) {
        let regex = RegexBuilder::new(pattern).build().unwrap();
        // The first 1024 matches of a line are told apart.
        let wanted: Vec<Found> = naive(&regex, &text)
            .into_iter()
            .map(|(offset, matches)| (offset, matches.into_iter().take(1024).collect()))
            .collect();
        prop_assert_eq!(found(&search(pattern, Wanted::Lines), &text, options), wanted);
    }

    #[test]
    fn words_are_those_of_an_alternation(text in text(), options in options()) {
        let words = ["ab", "aaa", "aa", "c c", "x", "\u{e9}\u{e9}"];
        let regex = Regex::new(&words.join("|")).unwrap();
        let patterns = words.map(str::to_owned).to_vec();
        let search = SearchOptions { patterns, syntax: Syntax::Text, ..SearchOptions::default() };
        let wanted: Vec<Found> = naive(&regex, &text)
            .into_iter()
            .map(|(offset, matches)| (offset, matches.into_iter().take(1024).collect()))
            .collect();
        prop_assert_eq!(found(&Search::new(search).unwrap(), &text, options), wanted);
    }

    #[test]
    fn numbers_and_counts_of_lines_are_those_of_a_naive_search(
        text in text(),
        pattern in prop::sample::select(PATTERNS.to_vec()),
        options in options(),
    ) {
        let regex = Regex::new(pattern).unwrap();
        let lines = naive(&regex, &text);
        let number = |offset: u64| {
            text[..offset as usize].split(|byte| *byte == b'\n').count() as u64
        };
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("text"), &text).unwrap();
        let outputs = scanned(&search(pattern, Wanted::NumberedLines), folder.path(), options).outputs;
        let numbers: Vec<_> = outputs
            .iter()
            .map(|hit| if let Hit::Line(line) = hit { line.number } else { None })
            .collect();
        let wanted: Vec<_> = lines.iter().map(|(offset, _)| Some(number(*offset))).collect();
        prop_assert_eq!(numbers, wanted);
        let outputs = scanned(&search(pattern, Wanted::Counts), folder.path(), options).outputs;
        let count: u64 = outputs.iter().map(|hit| if let Hit::Count(_, count) = hit { *count } else { 0 }).sum();
        prop_assert_eq!(count, lines.len() as u64);
    }
}

#[test]
fn an_empty_match_behind_another_one_is_none_at_any_border() {
    let pattern = Regex::new("x*").unwrap();
    let search = search("x*", Wanted::Lines);
    let options = Options { small: 0, block: 4096, ..Options::default() };
    for lead in 0..3 {
        // Matches end at every third byte: a border lies behind one of them.
        let line = format!("{}\n", "xxa".repeat(35));
        let text = ["a".repeat(lead), line.repeat(4000)].concat().into_bytes();
        assert_eq!(found(&search, &text, options), naive(&pattern, &text), "{lead}");
    }
}

#[test]
fn bytes_are_found_across_line_ends_and_block_borders() {
    let mut text = vec![0_u8; 40_000];
    let places = [0, 4094, 8190, 16_383, 39_996];
    for place in places {
        text[place..place + 4].copy_from_slice(b"\x0a\xde\xad\x0a");
    }
    let options = SearchOptions {
        patterns: vec!["0a de:AD 0a".to_owned()],
        syntax: Syntax::Hex,
        ..SearchOptions::default()
    };
    let search = Search::new(options).unwrap();
    for small in [0, u64::MAX] {
        let found = found(&search, &text, Options { small, block: 4096, ..Options::default() });
        let starts: Vec<u64> = found.iter().flat_map(|(_, matches)| matches).map(|(from, _)| *from).collect();
        assert_eq!(starts, places.map(|place| place as u64), "small up to {small}");
    }
}

#[test]
fn enough_lines_end_the_search_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        fs::write(folder.path().join(name), "needle\n".repeat(100_000)).unwrap();
    }
    let options =
        SearchOptions { patterns: vec!["needle".to_owned()], most: Some(3), ..SearchOptions::default() };
    for small in [0, u64::MAX] {
        let limits = Options { small, block: 4096, ..Options::default() };
        let scanned = scanned(&Search::new(options.clone()).unwrap(), folder.path(), limits);
        assert_eq!(scanned.outputs.len(), 6);
    }
}
