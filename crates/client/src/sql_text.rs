//! The text of a question: where its quotes and comments are, where it ends, and the mark under a place in it. What is wrong
//! there says `complaint`.

use std::collections::BTreeMap;
use std::ops::Range;

/// What a stretch of a question is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Words, numbers, signs, and what is between them.
    Words,
    /// A text, with its quotes.
    Text,
    /// A name, with its quotes.
    Name,
    /// A comment.
    Comment,
    /// A comment that lacks its end.
    Open,
}

/// A question in stretches, one behind the other. What lacks its end goes on to the end.
pub fn pieces(sql: &str) -> Vec<(Piece, Range<usize>)> {
    let (mut pieces, mut words, mut at) = (Vec::new(), 0, 0);
    while at < sql.len() {
        let Some((piece, end)) = quoted(&sql.as_bytes()[at..]) else {
            at += 1;
            continue;
        };
        if words < at {
            pieces.push((Piece::Words, words..at));
        }
        pieces.push((piece, at..at + end));
        at += end;
        words = at;
    }
    if words < at {
        pieces.push((Piece::Words, words..at));
    }
    pieces
}

/// What begins here, unless it is words, and where it ends.
fn quoted(rest: &[u8]) -> Option<(Piece, usize)> {
    Some(match rest {
        [quote @ (b'\'' | b'"'), ..] => {
            let piece = if *quote == b'"' { Piece::Name } else { Piece::Text };
            let mut end = 1;
            while end < rest.len() {
                match rest[end..] {
                    // It stands for itself.
                    [a, b, ..] if a == *quote && b == *quote => end += 2,
                    [a, ..] if a == *quote => return Some((piece, end + 1)),
                    _ => end += 1,
                }
            }
            (piece, end)
        }
        [b'-', b'-', ..] => {
            let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
            (Piece::Comment, end)
        }
        [b'/', b'*', ..] => {
            let (mut end, mut depth) = (2, 1);
            while end < rest.len() && depth > 0 {
                match rest[end..] {
                    [b'/', b'*', ..] => (depth, end) = (depth + 1, end + 2),
                    [b'*', b'/', ..] => (depth, end) = (depth - 1, end + 2),
                    _ => end += 1,
                }
            }
            (if depth == 0 { Piece::Comment } else { Piece::Open }, end)
        }
        _ => return None,
    })
}

/// Whether there is no question in it: nothing, or comments.
pub fn is_blank(text: &str) -> bool {
    pieces(text).into_iter().all(|(piece, at)| match piece {
        Piece::Comment => true,
        Piece::Words => text[at].trim().is_empty(),
        Piece::Text | Piece::Name | Piece::Open => false,
    })
}

/// The questions of a text, apart from each other by `;`.
pub fn questions(text: &str) -> impl Iterator<Item = &str> {
    let (whole, rest) = split(text);
    whole.into_iter().chain(Some(rest.trim()).filter(|rest| !is_blank(rest)))
}

/// Those that are ended, and what comes behind the last of them.
pub fn split(text: &str) -> (Vec<&str>, &str) {
    let (mut start, mut whole) = (0, Vec::new());
    for at in signs(text, ";") {
        whole.extend(Some(text[start..at].trim()).filter(|question| !is_blank(question)));
        start = at + 1;
    }
    (whole, &text[start..])
}

/// Where these signs stand among its words.
pub fn signs(sql: &str, signs: &str) -> Vec<usize> {
    let words = pieces(sql).into_iter().filter(|(piece, _)| *piece == Piece::Words);
    words
        .flat_map(|(_, at)| sql[at.clone()].match_indices(signs).map(move |(from, _)| at.start + from))
        .collect()
}

/// Where a text stands in it, by what it says: of several that say the same nobody knows which one is meant.
pub fn text(sql: &str, said: &str) -> Vec<usize> {
    texts(sql).into_iter().filter(|(_, text)| text == said).map(|(at, _)| at).collect()
}

/// Its texts: where each begins, and what it says.
pub fn texts(sql: &str) -> Vec<(usize, String)> {
    let texts = pieces(sql).into_iter().filter(|(piece, _)| *piece == Piece::Text);
    let said = |quoted: &str| {
        let text = quoted.strip_prefix('\'').unwrap_or(quoted);
        text.strip_suffix('\'').unwrap_or(text).replace("''", "'")
    };
    texts.map(|(_, at)| (at.start, said(&sql[at]))).collect()
}

/// Where a name stands in it, as a word or in quotes, or as a text where that is all there is of it.
pub fn word(sql: &str, name: &str) -> Option<usize> {
    words(sql, name).first().copied().or_else(|| text(sql, name).first().copied())
}

/// Where it stands as a word or in quotes, whether its letters are capitals or not.
pub fn words(sql: &str, name: &str) -> Vec<usize> {
    let (lower, name) = (sql.to_ascii_lowercase(), name.to_ascii_lowercase());
    if name.is_empty() {
        return Vec::new();
    }
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let is_whole = |at: &usize| {
        let before = at.checked_sub(1).and_then(|at| lower.as_bytes().get(at));
        !is_part(before) && !is_part(lower.as_bytes().get(at + name.len()))
    };
    let named = pieces(sql).into_iter().filter(|(piece, _)| matches!(piece, Piece::Words | Piece::Name));
    named
        .flat_map(|(_, at)| {
            lower[at.clone()].match_indices(&name).map(|(from, _)| at.start + from).collect::<Vec<_>>()
        })
        .filter(is_whole)
        .collect()
}

/// The byte at a line and a column, both counted from 1.
pub fn at(sql: &str, line: usize, column: usize) -> Option<usize> {
    let (line, column) = (line.checked_sub(1)?, column.saturating_sub(1));
    let text = sql.split('\n').nth(line)?;
    let before: usize = sql.split('\n').take(line).map(|line| line.len() + 1).sum();
    Some(before + text.char_indices().nth(column).map_or(text.len(), |(at, _)| at))
}

/// The lines of a question with marks under what stands at these bytes of it, which rise.
pub fn mark(sql: &str, places: &[usize]) -> Option<String> {
    let mut marks: BTreeMap<usize, String> = BTreeMap::new();
    for at in places {
        let before = sql.get(..*at)?;
        let column = before.rsplit('\n').next()?.chars().count();
        let marks = marks.entry(before.matches('\n').count()).or_default();
        *marks = format!("{marks:column$}^");
    }
    let here = if places.len() == 1 { "here:" } else { "at one of these:" };
    let line = |(number, marks)| format!("\n  {}\n  {marks}", sql.lines().nth(number).unwrap_or_default());
    (!marks.is_empty()).then(|| here.to_owned() + &marks.into_iter().map(line).collect::<String>())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn questions_end_with_a_semicolon_outside_of_quotes() {
        let split = |text| questions(text).collect::<Vec<_>>();
        assert_eq!(
            split("select 1;\n select ';' ; ; select \"a;b\""),
            ["select 1", "select ';'", "select \"a;b\""]
        );
        assert_eq!(split(" ;\n"), Vec::<&str>::new());
        assert_eq!(super::split("select ';\n"), (vec![], "select ';\n"));
        assert_eq!(split("select 'it''s;'; select 2"), ["select 'it''s;'", "select 2"]);
    }

    #[test]
    fn comments_are_no_part_of_where_a_question_ends() {
        let split = |text| questions(text).collect::<Vec<_>>();
        assert_eq!(
            split(
                "-- it's one\nselect 1; select /* a;b */ 2 -- and; this\n; /* /* ; */ ' */ select '--;' -- end"
            ),
            [
                "-- it's one\nselect 1",
                "select /* a;b */ 2 -- and; this",
                "/* /* ; */ ' */ select '--;' -- end"
            ]
        );
        assert_eq!(split("-- nothing\n; /* at all */ "), Vec::<&str>::new());
        assert_eq!(super::split("select 1 /* ;\n"), (vec![], "select 1 /* ;\n"));
        assert!(is_blank("-- a") && is_blank("/* a */ ") && !is_blank("/* a"));
        assert_eq!(split("select 2 - 1 / 3; select 4"), ["select 2 - 1 / 3", "select 4"]);
    }

    #[test]
    fn names_and_texts_are_told_apart() {
        let sql = "select \"a b\", 'x', 'it''s' -- nosuch 'y'\n from nosuch_2 where NoSuch = 'x'";
        assert_eq!(word(sql, "nosuch"), sql.find("NoSuch"));
        assert_eq!(word(sql, "a b"), Some(8));
        assert_eq!(text(sql, "x"), [14, sql.len() - 3], "it stands there twice");
        assert_eq!(text(sql, "it's"), [19]);
        assert_eq!((text(sql, "y"), word(sql, "such"), word(sql, "")), (Vec::new(), None, None));
        assert_eq!(word("select * from 'x.csv'", "x.csv"), Some(14));
    }

    #[test]
    fn a_mark_stands_under_what_is_wrong() {
        let sql = "select 1\nx ü t";
        assert_eq!(mark(sql, &[at(sql, 2, 5).unwrap()]).unwrap(), "here:\n  x ü t\n      ^");
        assert_eq!(mark("select 1", &[8]).unwrap(), "here:\n  select 1\n          ^");
        assert_eq!((at("select 1", 9, 1), at("select 1", 0, 1), mark("select 1", &[9])), (None, None, None));
        assert_eq!(mark("select 1", &[]), None);
    }

    #[test]
    fn marks_stand_under_all_that_may_be_wrong() {
        let sql = "select ü = 'x',\n 'x' = a and b = 'x'";
        let marked = "at one of these:\n  select ü = 'x',\n             ^\n   'x' = a and b = 'x'\n   ^               ^";
        assert_eq!(mark(sql, &text(sql, "x")).unwrap(), marked);
    }
}
