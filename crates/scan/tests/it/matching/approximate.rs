//! Module `approx` beside naive dynamic programming.

use crate::matching::common::{Random, outputs, sizes, text_around};
use crate::matching::naive::{Found, edit_hits, hamming_hits};
use holdfast_scan::{Approximate, ApproximateHit, ApproximateOptions, Metric};
use proptest::prelude::*;

/// Pattern, start, end, distance and text of a hit.
type Plain = (usize, u64, u64, u32, Vec<u8>);

fn plain(hits: Vec<ApproximateHit>) -> Vec<Plain> {
    hits.into_iter().map(|hit| (hit.pattern, hit.start, hit.end, hit.distance, hit.text)).collect()
}

fn expected(options: &ApproximateOptions, text: &[u8]) -> Vec<Plain> {
    let same = |one: u8, other: u8| one == other || (options.ignore_case && one.eq_ignore_ascii_case(&other));
    let mut found: Vec<(usize, usize, Found)> = Vec::new();
    for (number, pattern) in options.patterns.iter().enumerate() {
        let hits = match options.metric {
            Metric::Edit => edit_hits(pattern, options.distance, text, same, |_| true),
            Metric::Hamming => hamming_hits(pattern, options.distance, text, same),
        };
        found.extend(hits.into_iter().map(|hit| (hit.last, number, hit)));
    }
    found.sort_by_key(|(last, number, _)| (*last, *number));
    let most = options.most.map_or(usize::MAX, |most| most as usize);
    let hits = found.into_iter().take(most).map(|(_, number, hit)| {
        let text = text[hit.start..hit.end.min(hit.start + 1100)].to_vec();
        (number, hit.start as u64, hit.end as u64, hit.distance, text)
    });
    hits.collect()
}

/// Options and a text; patterns of few letters, so that there are many matches, minima and ties.
fn search(letters: &'static [u8]) -> impl Strategy<Value = (ApproximateOptions, Vec<u8>)> {
    let short = prop::collection::vec(prop::sample::select(letters), 1..12);
    let long = prop::collection::vec(prop::sample::select(letters), 60..200);
    let patterns = prop::collection::vec(prop_oneof![4 => short, 1 => long], 1..4);
    let metric = prop::sample::select(vec![Metric::Edit, Metric::Hamming]);
    let most = prop_oneof![3 => Just(None), 1 => (0_u64..6).prop_map(Some)];
    (patterns, metric, any::<bool>(), most, 0_u32..5, 10_usize..300).prop_flat_map(
        move |(patterns, metric, ignore_case, most, distance, length)| {
            let shortest = patterns.iter().map(Vec::len).min().unwrap_or(1);
            let distance = distance.min(shortest as u32 - 1);
            let text = text_around(patterns[0].clone(), letters, length);
            let options = ApproximateOptions { patterns, distance, metric, ignore_case, most };
            (Just(options), text)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn hits_are_those_of_dynamic_programming_for_each_division(
        (options, text) in prop_oneof![search(b"ab"), search(b"abAB[{\n*_\x7f"), search(b"abcde")],
        sizes in sizes(),
    ) {
        let wanted = expected(&options, &text);
        let module = Approximate::new(options).unwrap();
        prop_assert_eq!(&plain(outputs(&module, &text, &[])), &wanted);
        prop_assert_eq!(&plain(outputs(&module, &text, &sizes)), &wanted);
    }
}

#[test]
fn a_plateau_over_many_blocks_is_one_hit_at_most() {
    let options = ApproximateOptions { patterns: vec![b"aaab".to_vec()], distance: 1, ..Default::default() };
    let module = Approximate::new(options).unwrap();
    let mut text = vec![b'a'; 50_000];
    text[40_000] = b'b';
    let hits = plain(outputs(&module, &text, &[997]));
    assert_eq!(hits[0], (0, 39_997, 40_001, 0, b"aaab".to_vec()));
    assert_eq!(hits.len(), 2, "the `b`, and the plateau behind it; that in front falls to the `b`: {hits:?}");
}

#[test]
fn an_exact_copy_is_a_hit_whatever_distance_is_allowed() {
    let text = b"neexxx needle needlenedle needle nexdle";
    let mut hits: Vec<Vec<Plain>> = Vec::new();
    for distance in 0..6 {
        let patterns = vec![b"needle".to_vec()];
        let options = ApproximateOptions { patterns, distance, ..Default::default() };
        hits.push(plain(outputs(&Approximate::new(options).unwrap(), text, &[])));
    }
    assert_eq!(hits[0].len(), 3);
    for pair in hits.windows(2) {
        assert!(pair[0].iter().all(|hit| pair[1].contains(hit)), "{pair:?}");
    }
}

#[test]
fn large_items_are_searched_in_pieces() {
    let mut random = Random(7);
    let mut text = random.letters(b"abcdefgh", 600_000);
    let pattern = random.letters(b"abcdefgh", 40);
    for place in [0, (128 << 10) - 20, (256 << 10) - 40, (384 << 10) - 1, 500_000, 600_000 - 40] {
        text[place..place + 40].copy_from_slice(&pattern);
        text[place + 5] = b'x';
    }
    for metric in [Metric::Edit, Metric::Hamming] {
        let patterns = vec![pattern.clone(), b"abcabcab".to_vec()];
        let options = ApproximateOptions { patterns, distance: 3, metric, ..Default::default() };
        let wanted = expected(&options, &text);
        assert!(wanted.iter().filter(|(pattern, ..)| *pattern == 0).count() >= 6);
        let module = Approximate::new(options).unwrap();
        assert_eq!(plain(outputs(&module, &text, &[])), wanted);
        assert_eq!(plain(outputs(&module, &text, &[100_003, 65_536])), wanted);
    }
}

#[test]
fn errors_name_the_pattern_and_the_remedy() {
    let error = |patterns: &[&[u8]], distance| {
        let patterns = patterns.iter().map(|pattern| pattern.to_vec()).collect();
        Approximate::new(ApproximateOptions { patterns, distance, ..Default::default() }).unwrap_err()
    };
    assert_eq!(error(&[], 0), "cannot search approximately: there are 0 patterns; give 1 to 1000");
    assert_eq!(error(&[b"a", b""], 0), "cannot search pattern 2: it has 0 bytes; give 1 to 1000 bytes");
    assert!(error(&[&[b'a'; 1001]], 0).contains("it has 1001 bytes"));
    assert!(error(&[b"abc"], 3).ends_with("give a distance of at most 2"));
}
