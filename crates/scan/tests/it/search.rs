//! Search beside a naive reference that takes each line on its own (promise 5).

use crate::common::{options, scanned};
use holdfast_scan::{Hit, Line, Options, Search, SearchOptions, Syntax, Wanted};
use proptest::prelude::*;
use regex::bytes::Regex;
use std::fs;

const PATTERNS: [&str; 15] = [
    "ab",
    "a+b",
    r"\bab\b",
    "b$",
    "^a",
    "x*",
    "a{3,10}",
    "(?-u)[^ab]",
    "a.{20,60}c",
    r"\Aa",
    r"b\z",
    "a.*c$",
    r"x+\b",
    r"\Bb",
    "",
];

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

/// Lines of output over a text.
fn told(search: &Search, text: &[u8], options: Options) -> Vec<Line> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), text).unwrap();
    let scanned = scanned(search, folder.path(), options);
    // Patterns without a limit may miss long matches of lines that exceed the longest one.
    let is_limit = |(_, reason): &(String, String)| reason.contains("may be missed");
    assert!(scanned.troubles.iter().all(is_limit), "{:?}", scanned.troubles);
    assert!(scanned.troubles.is_empty() || options.longest_line < text.len());
    let lines = scanned.outputs.into_iter().map(|hit| match hit {
        Hit::Line(line) => line,
        Hit::Count(..) => panic!("lines were asked for"),
    });
    lines.collect()
}

fn found(search: &Search, text: &[u8], options: Options) -> Vec<Found> {
    told(search, text, options).into_iter().map(|line| (line.offset, line.matches)).collect()
}

/// Offsets of all matches, which are told one by one with their texts.
fn matches(search: &Search, text: &[u8], options: Options) -> Vec<(u64, u64)> {
    let lines = told(search, text, options).into_iter().map(|line| {
        let (from, end) = line.matches[0];
        assert_eq!((line.matches.len(), line.text_offset), (1, from));
        assert_eq!(line.text, text[from as usize..end as usize]);
        (from, end)
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
        let regex = Regex::new(pattern).unwrap();
        let all = naive(&regex, &text);
        let alone: Vec<(u64, u64)> = all.iter().flat_map(|(_, matches)| matches.iter().copied()).collect();
        prop_assert_eq!(matches(&search(pattern, Wanted::Matches), &text, options), alone);
        // The first 1024 matches of a line are told with it.
        let wanted: Vec<Found> =
            all.into_iter().map(|(offset, matches)| (offset, matches.into_iter().take(1024).collect())).collect();
        prop_assert_eq!(found(&search(pattern, Wanted::Lines), &text, options), wanted);
    }

    #[test]
    fn a_line_longer_than_the_longest_one_is_searched_in_pieces(
        parts in prop::collection::vec((prop::sample::select(vec!["a", "ab ", "xxc", "\u{e9}b", "b"]), 1_usize..900), 30..90),
        borders in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        pattern in prop::sample::select(PATTERNS.to_vec()),
        options in options(),
    ) {
        let mut text: Vec<u8> = Vec::new();
        for (word, count) in parts {
            text.extend(word.repeat(count).into_bytes());
            // No match of any pattern exceeds the overlap.
            text.extend(b"cy");
        }
        for border in borders {
            let at = border.index(text.len());
            text.insert(at, b'\n');
        }
        let options = Options { longest_line: 20_000, ..options };
        prop_assume!(pattern != "a.*c$");
        let regex = Regex::new(pattern).unwrap();
        let all = naive(&regex, &text);
        let alone: Vec<(u64, u64)> = all.iter().flat_map(|(_, matches)| matches.iter().copied()).collect();
        prop_assert_eq!(matches(&search(pattern, Wanted::Matches), &text, options), alone);
        let offsets = |lines: Vec<Found>| lines.into_iter().map(|(offset, _)| offset).collect::<Vec<_>>();
        prop_assert_eq!(offsets(found(&search(pattern, Wanted::Lines), &text, options)), offsets(all));
    }

    #[test]
    fn context_and_inverted_lines_are_those_of_a_naive_search(
        text in text(),
        pattern in prop::sample::select(PATTERNS.to_vec()),
        options in options(),
        invert in any::<bool>(),
        (before, after) in (0_usize..4, 0_usize..4),
        most in prop::option::of(1_u64..8),
        longest_line in prop::sample::select(vec![20_000, 16 << 20]),
    ) {
        let regex = Regex::new(pattern).unwrap();
        let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let mut selected = 0;
        let is_selected: Vec<bool> = lines.iter().map(|line| {
            let is_match = regex.is_match(line.strip_suffix(b"\n").unwrap_or(line)) != invert;
            selected += u64::from(is_match);
            is_match && most.is_none_or(|most| selected <= most)
        }).collect();
        let is_shown = |at: usize| {
            is_selected[at.saturating_sub(after)..(at + before + 1).min(lines.len())].iter().any(|is| *is)
        };
        let (mut offset, mut wanted, mut last) = (0, Vec::new(), None);
        for (at, line) in lines.iter().enumerate() {
            if is_shown(at) {
                let follows = last.is_some_and(|last: usize| last + 1 == at);
                wanted.push((offset, Some(at as u64 + 1), !is_selected[at], follows));
                last = Some(at);
            }
            offset += line.len() as u64;
        }
        let search = SearchOptions {
            patterns: vec![pattern.to_owned()], wanted: Wanted::NumberedLines, invert, before, after, most,
            ..SearchOptions::default()
        };
        let told = told(&Search::new(search).unwrap(), &text, Options { longest_line, ..options });
        let told: Vec<_> =
            told.into_iter().map(|line| (line.offset, line.number, line.is_context, line.follows)).collect();
        prop_assert_eq!(told, wanted);
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

#[test]
fn a_long_line_ends_nowhere_but_at_its_end() {
    // The line goes over the borders of blocks of both kinds, and on to 200 KB behind the last one.
    let text = [b"k".as_slice(), &b"x".repeat(300_000), b"y\n", b"kx\n"].concat();
    for (pattern, lines) in
        [("kx*$", 1), (r"kx*\z", 1), (r"kx*\b$", 1), ("k.*x$", 1), ("kx+y", 1), ("x$", 1), ("^x", 0)]
    {
        for small in [0, u64::MAX] {
            let options = Options { small, block: 4096, ..Options::default() };
            let found = found(&search(pattern, Wanted::Lines), &text, options);
            assert_eq!(found.len(), lines, "{pattern}, small up to {small}");
        }
    }
}

#[test]
fn matches_of_a_line_are_all_told_with_their_texts() {
    let text = "ab".repeat(50_000).into_bytes();
    let options = Options { small: 0, block: 4096, ..Options::default() };
    assert_eq!(matches(&search("a", Wanted::Matches), &text, options).len(), 50_000);
    let line = told(&search("a", Wanted::Lines), &text, options);
    assert_eq!((line.len(), line[0].matches.len()), (1, 1024));
}

#[test]
fn a_match_that_exceeds_the_overlap_is_told_as_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("text"), [b"k".as_slice(), &b"x".repeat(100_000), b"y"].concat()).unwrap();
    let options = Options { small: 0, block: 4096, longest_line: 20_000, ..Options::default() };
    let scanned = scanned(&search("kx+y$", Wanted::Lines), folder.path(), options);
    assert_eq!(scanned.outputs.len(), 0);
    assert_eq!(scanned.troubles.len(), 1);
    let reason = &scanned.troubles[0].1;
    assert!(reason.starts_with("the line at offset 0 has more than"), "{reason}");
}
