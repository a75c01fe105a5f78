//! Rules on documentation comments: the first word of a paragraph, and the least length.

use crate::{Finding, Tree};

/// First words that announce a clause in the place of a noun or a sentence.
const CLAUSE_WORDS: [&str; 7] = ["What", "Whether", "Who", "Whoever", "How", "Where", "Of"];

/// The least number of words of a documentation comment: fewer only repeat the item's name.
const LEAST_WORDS: usize = 4;

/// One `///` or `//!` comment: its first line, from 1, and its lines without the marks.
struct Comment<'a> {
    line: usize,
    lines: Vec<&'a str>,
}

/// The documentation comments of a Rust text, in order.
fn comments(text: &str) -> Vec<Comment<'_>> {
    let mut all: Vec<Comment<'_>> = Vec::new();
    let mut before = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let mark =
            ["///", "//!"].into_iter().find(|mark| line.starts_with(mark) && !line.starts_with("////"));
        if let Some(mark) = mark {
            let content = line[mark.len()..].trim();
            match all.last_mut().filter(|_| before == Some(mark)) {
                Some(comment) => comment.lines.push(content),
                None => all.push(Comment { line: number + 1, lines: vec![content] }),
            }
        }
        before = mark;
    }
    all
}

/// No paragraph of a documentation comment begins with a clause word.
pub(crate) fn clause_openings(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        for comment in comments(&file.text) {
            let mut begins = true;
            for (at, line) in comment.lines.iter().enumerate() {
                let word = line.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
                if begins && CLAUSE_WORDS.contains(&word) {
                    let what = format!("a comment begins with `{word}`: name the thing, or say what it does");
                    findings.push(Finding::new(&file.path, comment.line + at, what));
                }
                begins = line.is_empty();
            }
        }
    }
    findings
}

/// No documentation comment is shorter than a sentence.
pub(crate) fn short_comments(tree: &Tree) -> Vec<Finding> {
    let words = |comment: &Comment<'_>| {
        let all = comment.lines.iter().flat_map(|line| line.split_whitespace());
        all.filter(|word| word.contains(char::is_alphanumeric)).count()
    };
    let mut findings = Vec::new();
    for file in tree.rust() {
        for comment in comments(&file.text).iter().filter(|comment| words(comment) < LEAST_WORDS) {
            let what = format!("a comment of fewer than {LEAST_WORDS} words: say what the name does not");
            findings.push(Finding::new(&file.path, comment.line, what));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(rule: fn(&Tree) -> Vec<Finding>, text: &str) -> Vec<usize> {
        rule(&Tree::of(&[("a.rs", text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_comment_that_begins_with_a_clause_is_found() {
        for word in CLAUSE_WORDS {
            assert_eq!(lines(clause_openings, &format!("//! {word} it is.\n")), [1], "{word}");
        }
        assert_eq!(
            lines(clause_openings, "/// Size.\n///\n/// What it is.\nfn a() {\n    /// Of it.\n"),
            [3, 5]
        );
        assert_eq!(lines(clause_openings, "/// Size. Of all\n/// What there is.\n// What it is.\n"), [0; 0]);
        assert_eq!(
            lines(clause_openings, "/// However it is.\n/// Offsets.\nlet a = \"/// What\";\n"),
            [0; 0]
        );
    }

    #[test]
    fn a_comment_that_only_repeats_a_name_is_found() {
        assert_eq!(
            lines(short_comments, "/// The size.\nsize: u64,\n/// A – B.\n//! Two words.\n"),
            [1, 3, 4]
        );
        assert_eq!(lines(short_comments, "/// Bytes of\n/// a slot.\n// Bytes.\n//// Bytes.\n"), [0; 0]);
    }
}
