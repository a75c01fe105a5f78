//! Translation of a pattern of `similar to` into a regular expression, with the rules of `PostgreSQL`.

use datafusion::common::plan_err;
use datafusion::error::Result;
use std::iter::Peekable;
use std::str::Chars;

/// The regular expression that matches the same whole texts.
pub(super) fn regular_expression(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut result = "^(?s:".to_owned();
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            _ if Some(char) == escape => literal(&mut result, escaped(&mut chars, pattern)?),
            '%' => result.push_str(".*"),
            '_' => result.push('.'),
            '(' => result.push_str("(?:"),
            '[' => class(&mut result, &mut chars, pattern, escape)?,
            ')' | '|' | '*' | '+' | '?' | '{' | '}' => result.push(char),
            _ => literal(&mut result, char),
        }
    }
    result.push_str(")$");
    if regex::Regex::new(&result).is_err() {
        return plan_err!(
            "cannot use the pattern '{pattern}' of `similar to`: it is no pattern of standard SQL; use `~` and a \
             regular expression"
        );
    }
    Ok(result)
}

fn literal(result: &mut String, char: char) {
    result.push_str(&regex::escape(char.encode_utf8(&mut [0; 4])));
}

/// The character behind the escape character.
fn escaped(chars: &mut Peekable<Chars<'_>>, pattern: &str) -> Result<char> {
    match chars.next() {
        Some(char) if !char.is_alphanumeric() && char != '"' => Ok(char),
        _ => plan_err!(
            "cannot use the pattern '{pattern}' of `similar to`: only a special character can stand behind the escape \
             character; use `~` and a regular expression"
        ),
    }
}

/// A class of characters, from behind its bracket on.
fn class(
    result: &mut String,
    chars: &mut Peekable<Chars<'_>>,
    pattern: &str,
    escape: Option<char>,
) -> Result<()> {
    result.push('[');
    if chars.next_if_eq(&'^').is_some() {
        result.push('^');
    }
    let mut is_first = true;
    while let Some(char) = chars.next() {
        match char {
            ']' if !is_first => {
                result.push(']');
                return Ok(());
            }
            '[' if chars.peek() == Some(&':') => {
                // A class by name, as [:digit:].
                result.push('[');
                for char in chars.by_ref() {
                    result.push(char);
                    if char == ']' {
                        break;
                    }
                }
            }
            '[' if matches!(chars.peek(), Some('.' | '=')) => {
                return plan_err!(
                    "cannot use the pattern '{pattern}' of `similar to`: it has a collating element; write the characters"
                );
            }
            _ if Some(char) == escape => literal(result, escaped(chars, pattern)?),
            '-' => result.push('-'),
            _ => literal(result, char),
        }
        is_first = false;
    }
    plan_err!(
        "cannot use the pattern '{pattern}' of `similar to`: a bracket is not closed; write `\\[` for the character"
    )
}

#[cfg(test)]
mod tests {
    use super::regular_expression;
    use regex::Regex;

    #[test]
    fn patterns_match_as_in_postgresql() {
        // Answers of PostgreSQL 15.
        for (pattern, text, expected) in [
            ("abc", "abc", true),
            ("abc", "xabc", false),
            ("a|abc", "abc", true),
            ("a%", "a\nb", true),
            ("_", "\n", true),
            ("a.c", "abc", false),
            ("a.c", "a.c", true),
            ("^a$", "a", false),
            ("^a$", "^a$", true),
            ("(a|b)+", "abba", true),
            ("a{2,3}", "aaaa", false),
            ("a{2,3}", "aaa", true),
            ("[a-c]_%", "bx", true),
            ("[^a-c]%", "bx", false),
            ("[]x]", "]", true),
            ("[a&&b]", "&", true),
            ("[[:digit:]]+", "123", true),
            ("[a~b]", "~", true),
            (r"a\%", "a%", true),
            (r"a\%", "ab", false),
            (r"[\]]", "]", true),
            (r"\(a\)", "(a)", true),
            ("a#b c", "a#b c", true),
            ("", "", true),
        ] {
            let regular = regular_expression(pattern, Some('\\')).unwrap();
            assert_eq!(
                Regex::new(&regular).unwrap().is_match(text),
                expected,
                "{pattern} {text:?}: {regular}"
            );
        }
        let regular = regular_expression("a#%b", Some('#')).unwrap();
        assert!(Regex::new(&regular).unwrap().is_match("a%b"));
        assert_eq!(regular_expression(r"a\b", None).unwrap(), r"^(?s:a\\b)$");
    }

    #[test]
    fn other_patterns_are_refused() {
        for pattern in ["*a", "(a", "a)", "[a", r"a\", r"\d", "a{", "(?i:a)", "[[.a.]]"] {
            assert!(regular_expression(pattern, Some('\\')).is_err(), "{pattern}");
        }
    }
}
