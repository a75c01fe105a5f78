//! File series: files of a directory whose names differ by a number, or that match a given pattern.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Files of one name pattern that make a series.
const LEAST_FILES: usize = 16;

/// Series of a packed folder at most: each is an MCAP channel, of which a file has 65 535.
const MOST_SERIES: usize = 4096;

/// Membership of a file in a series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Member {
    /// Topic of the series' channel.
    pub(crate) topic: Arc<str>,
    /// Number in the file's name.
    pub(crate) number: u64,
}

/// Rules that find series.
#[derive(Debug, Default)]
pub(crate) struct SeriesRules {
    given: Vec<(Arc<str>, glob::Pattern)>,
    found: usize,
}

/// Patterns of a directory's file names: prefix, suffix, and topic.
#[derive(Debug, Default)]
pub(crate) struct DirectorySeries(BTreeMap<(Vec<u8>, Vec<u8>), Arc<str>>);

impl SeriesRules {
    /// Rules with patterns that the user gave; the text of one that is none, and its error.
    pub(crate) fn new(globs: &[String]) -> Result<Self, (String, String)> {
        let parse = |text: &String| match glob::Pattern::new(text) {
            Ok(pattern) => Ok((Arc::from(text.as_str()), pattern)),
            Err(error) => Err((text.clone(), error.to_string())),
        };
        Ok(Self { given: globs.iter().map(parse).collect::<Result<_, _>>()?, found: 0 })
    }

    /// Finds the series among the names of a directory's files.
    pub(crate) fn examine<'n>(
        &mut self,
        directory: &[u8],
        names: impl Iterator<Item = &'n [u8]>,
    ) -> DirectorySeries {
        let mut counts: BTreeMap<(&[u8], &[u8]), usize> = BTreeMap::new();
        for (prefix, _, suffix) in names.filter_map(numbered) {
            *counts.entry((prefix, suffix)).or_default() += 1;
        }
        let mut series = DirectorySeries::default();
        for ((prefix, suffix), _) in counts.into_iter().filter(|(_, count)| *count >= LEAST_FILES) {
            if self.given.len() + self.found >= MOST_SERIES {
                break;
            }
            self.found += 1;
            let slash: &[u8] = if directory.is_empty() { b"" } else { b"/" };
            let topic = [directory, slash, prefix, b"*", suffix].concat();
            let topic = Arc::from(String::from_utf8_lossy(&topic).as_ref());
            series.0.insert((prefix.to_vec(), suffix.to_vec()), topic);
        }
        series
    }

    /// The series of a file; given patterns lead.
    pub(crate) fn member(&self, directory: &DirectorySeries, path: &[u8], name: &[u8]) -> Option<Member> {
        let parts = numbered(name);
        let number = parts.map_or(0, |(_, number, _)| number);
        let options = glob::MatchOptions { require_literal_separator: true, ..glob::MatchOptions::new() };
        let text = String::from_utf8_lossy(path);
        let given = self.given.iter().find(|(_, pattern)| pattern.matches_with(&text, options));
        if let Some((topic, _)) = given {
            return Some(Member { topic: Arc::clone(topic), number });
        }
        let (prefix, _, suffix) = parts?;
        let topic = directory.0.get(&(prefix.to_vec(), suffix.to_vec()))?;
        Some(Member { topic: Arc::clone(topic), number })
    }
}

/// A name's part before its number, the number, and the part behind it. The number is the last one before the
/// extension, or the extension itself.
fn numbered(name: &[u8]) -> Option<(&[u8], u64, &[u8])> {
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(|dot| *dot > 0);
    let is_numeric = |dot: &usize| name.len() > dot + 1 && name[dot + 1..].iter().all(u8::is_ascii_digit);
    let limit = dot.filter(|dot| !is_numeric(dot)).unwrap_or(name.len());
    let end = name[..limit].iter().rposition(u8::is_ascii_digit)? + 1;
    let start = name[..end].iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    let number = name[start..end]
        .iter()
        .fold(0u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    Some((&name[..start], number, &name[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_name_is_the_last_before_its_extension() {
        let parts = |name: &'static str| numbered(name.as_bytes());
        let told = |prefix: &'static str, number, suffix: &'static str| {
            Some((prefix.as_bytes(), number, suffix.as_bytes()))
        };
        assert_eq!(parts("frame_000012.pgm"), told("frame_", 12, ".pgm"));
        assert_eq!(parts("cam2-7.h5"), told("cam2-", 7, ".h5"));
        assert_eq!(parts("scan.003"), told("scan.", 3, ""));
        assert_eq!(parts("17"), told("", 17, ""));
        assert_eq!(parts("a.h5"), None);
        assert_eq!(parts("none"), None);
    }

    #[test]
    fn files_of_one_pattern_are_a_series_if_they_are_many_or_given() {
        let mut rules = SeriesRules::new(&["few/*.raw".to_owned()]).unwrap();
        let names: Vec<String> =
            (0..20).map(|at| format!("f{at}.pgm")).chain(["x1.txt".to_owned()]).collect();
        let found = rules.examine(b"cam", names.iter().map(String::as_bytes));
        let member = rules.member(&found, b"cam/f7.pgm", b"f7.pgm");
        assert_eq!(member, Some(Member { topic: "cam/f*.pgm".into(), number: 7 }));
        assert_eq!(rules.member(&found, b"cam/x1.txt", b"x1.txt"), None);
        let given = rules.member(&found, b"few/a3.raw", b"a3.raw");
        assert_eq!(given, Some(Member { topic: "few/*.raw".into(), number: 3 }));
        assert_eq!(rules.member(&found, b"few/b/a3.raw", b"a3.raw"), None);
        assert_eq!(SeriesRules::new(&["[".to_owned()]).unwrap_err().0, "[");
    }
}
