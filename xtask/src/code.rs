//! Rust text with its comments and literals blanked out, so that a rule looks at code and nothing else.
//!
//! A lexer of four states, not a parser: it knows where code ends, not what it means.

/// `text` with every comment, string and character literal replaced by spaces; lines stay where they are.
pub(crate) fn only(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => line_end(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => comment_end(&chars, at),
            '"' => string_end(&chars, at),
            'r' if !follows_word(&chars, at) => raw_end(&chars, at),
            '\'' => char_end(&chars, at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// The lines of `code` (from 1) that hold `word` as a whole word.
pub(crate) fn lines_with(code: &str, word: &str) -> Vec<usize> {
    let whole = |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let edge = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
            edge(line[..at].chars().next_back()) && edge(line[at + word.len()..].chars().next())
        })
    };
    code.lines().enumerate().filter(|(_, line)| whole(line)).map(|(number, _)| number + 1).collect()
}

fn follows_word(chars: &[char], at: usize) -> bool {
    // `br"…"` is a literal, `for"…"` is not: a lone `b` or `c` before the `r` belongs to the literal.
    let word =
        |back: usize| at.checked_sub(back).is_some_and(|i| chars[i].is_alphanumeric() || chars[i] == '_');
    word(1) && (!matches!(chars[at - 1], 'b' | 'c') || word(2))
}

fn line_end(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |n| at + n)
}

fn comment_end(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                i += 1;
                continue;
            }
        }
        i += 2;
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

fn string_end(chars: &[char], at: usize) -> usize {
    let mut i = at + 1;
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

/// The end of `r"…"` or `r#"…"#` that starts at `at`; `at` when there is none.
fn raw_end(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at;
    }
    (open + 1..chars.len())
        .find(|i| {
            chars[*i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
        })
        .map_or(chars.len(), |i| i + 1 + hashes)
}

/// The end of the character literal that starts at `at`; `at` when it is a lifetime.
fn char_end(chars: &[char], at: usize) -> usize {
    if chars.get(at + 1) == Some(&'\\') {
        let close = chars[(at + 3).min(chars.len())..].iter().position(|c| *c == '\'');
        return close.map_or(chars.len(), |n| at + 3 + n + 1);
    }
    if chars.get(at + 2) == Some(&'\'') { at + 3 } else { at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked_and_code_is_not() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("b \" c") + g"#, "f(        ) + g"),
            ("r#\"a \" b\"# c br\"d\" e", "           c b     e"),
            ("r#type for_r", "r#type for_r"),
            (r"x('\'', 'b', '\u{41}') as &'a str", "x(    ,    ,         ) as &'a str"),
            ("\"open", "     "),
            ("/* open", "       "),
            ("'\\", "  "),
        ] {
            assert_eq!(only(text), code, "{text}");
        }
    }

    #[test]
    fn words_are_found_whole() {
        assert_eq!(lines_with("unsafe {\nunsafe_code\nx.unsafe\n(unsafe)", "unsafe"), [1, 3, 4]);
    }
}
