//! Tokens of the condition language.

use super::{ConditionError, MAX_CONDITION_BYTES, Operator};
use crate::ids::Nanos;
use crate::value::{Finite, Value, size_factor};

/// Token with its kind and content.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// Bare word: a name or a keyword.
    Word(String),
    /// Name in brackets, never a keyword.
    Name(String),
    /// Quoted text; `None` stands for a star without a backslash.
    Text(Vec<Option<char>>),
    /// Number or time, without quotes.
    Literal(Value),
    /// Comparison operator of two values.
    Operator(Operator),
    /// Opening parenthesis of a group.
    Open,
    /// Closing parenthesis of a group.
    Close,
    /// End of the condition.
    End,
}

/// Reader of tokens, which knows its place in the text.
pub(super) struct Lexer {
    text: Vec<char>,
    at: usize,
}

fn begins_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '-')
}

/// True for names that need no brackets.
pub(super) fn is_plain_name(name: &str) -> bool {
    name.chars().next().is_some_and(begins_name)
        && name.chars().all(continues_name)
        && !["and", "or", "not", "like"].iter().any(|keyword| name.eq_ignore_ascii_case(keyword))
}

impl Lexer {
    pub(super) fn new(text: &str) -> Result<Self, ConditionError> {
        let lexer = Self { text: text.chars().collect(), at: 0 };
        if text.len() > MAX_CONDITION_BYTES {
            return Err(lexer.error(0, "it is longer than 65536 bytes", "shorten it"));
        }
        Ok(lexer)
    }

    /// Error at a character, counted from 0.
    pub(super) fn error(&self, at: usize, reason: impl Into<String>, remedy: &'static str) -> ConditionError {
        let near: String = self.text.iter().skip(at).take(20).collect();
        ConditionError { place: at + 1, near: near.escape_debug().to_string(), reason: reason.into(), remedy }
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.at).copied()
    }

    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> String {
        let from = self.at;
        while self.peek().is_some_and(&accepts) {
            self.at += 1;
        }
        self.text[from..self.at].iter().collect()
    }

    /// Next token and the place of its first character.
    pub(super) fn next(&mut self) -> Result<(Token, usize), ConditionError> {
        self.take_while(char::is_whitespace);
        let start = self.at;
        let Some(first) = self.peek() else { return Ok((Token::End, start)) };
        let second = self.text.get(start + 1).copied();
        let (length, token) = match (first, second) {
            ('(', _) => (1, Token::Open),
            (')', _) => (1, Token::Close),
            ('=', Some('=')) => (2, Token::Operator(Operator::Equal)),
            ('=', _) => (1, Token::Operator(Operator::Equal)),
            ('!', Some('=')) | ('<', Some('>')) => (2, Token::Operator(Operator::Different)),
            ('<', Some('=')) => (2, Token::Operator(Operator::AtMost)),
            ('<', _) => (1, Token::Operator(Operator::Less)),
            ('>', Some('=')) => (2, Token::Operator(Operator::AtLeast)),
            ('>', _) => (1, Token::Operator(Operator::Greater)),
            ('"' | '\'', _) => return Ok((Token::Text(self.quoted(first)?), start)),
            ('[', _) => return Ok((self.bracketed(start)?, start)),
            (c, _) if begins_name(c) => return Ok((Token::Word(self.take_while(continues_name)), start)),
            (c, next)
                if c.is_ascii_digit()
                    || "-+.".contains(c) && next.is_some_and(|c| c.is_ascii_digit() || c == '.') =>
            {
                return Ok((self.literal(start)?, start));
            }
            _ => {
                let reason = format!("`{}` has no meaning here", first.escape_debug());
                return Err(self.error(start, reason, "put texts into quotes and odd names into brackets"));
            }
        };
        self.at += length;
        Ok((token, start))
    }

    /// Characters up to the closing quote.
    fn quoted(&mut self, quote: char) -> Result<Vec<Option<char>>, ConditionError> {
        let start = self.at;
        self.at += 1;
        let mut text = Vec::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                _ if c == quote => return Ok(text),
                '*' => text.push(None),
                '\\' => {
                    let escaped = match self.peek() {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some(c @ ('\\' | '"' | '\'' | '*')) => c,
                        _ => {
                            let remedy = "use \\\\ \\\" \\' \\* \\n or \\t";
                            return Err(self.error(self.at - 1, "the escape is unknown", remedy));
                        }
                    };
                    self.at += 1;
                    text.push(Some(escaped));
                }
                '\0' => return Err(self.error(self.at - 1, "texts hold no NUL", "leave the NUL out")),
                other => text.push(Some(other)),
            }
        }
        Err(self.error(start, "the text has no end", "close it with the same quote"))
    }

    /// Name in brackets, in which a backslash takes the next character as it is.
    fn bracketed(&mut self, start: usize) -> Result<Token, ConditionError> {
        self.at += 1;
        let mut name = String::new();
        while let Some(c) = self.peek() {
            self.at += 1;
            match c {
                ']' if name.is_empty() => return Err(self.error(start, "the name is empty", "give a name")),
                ']' => return Ok(Token::Name(name)),
                '\0' => return Err(self.error(self.at - 1, "names hold no NUL", "leave the NUL out")),
                '\\' => {
                    name.extend(self.peek().filter(|c| *c != '\0'));
                    self.at += 1;
                }
                other => name.push(other),
            }
        }
        Err(self.error(start, "the name has no end", "close it with ]"))
    }

    /// Number with an optional suffix, or time.
    fn literal(&mut self, start: usize) -> Result<Token, ConditionError> {
        let text = self.take_while(|c| c.is_ascii_alphanumeric() || ".:+-".contains(c));
        if is_date(&text) {
            let time = time(&text);
            let remedy = "write 2026-11-20T10:05:00Z, 2026-11-20T11:05:00.25+01:00 or 2026-11-20";
            return time
                .map(|nanos| Token::Literal(Value::Time(nanos)))
                .ok_or_else(|| self.error(start, format!("`{text}` is not a time"), remedy));
        }
        number(&text).map(Token::Literal).ok_or_else(|| {
            let remedy = "write 12, -1.5e3, 1.5GB, 4KiB (kB MB GB TB PB, KiB MiB GiB TiB PiB)";
            self.error(start, format!("`{text}` is not a number"), remedy)
        })
    }
}

/// True if a text begins as a date does: four digits and a hyphen.
fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 10 && bytes[4] == b'-' && bytes[..4].iter().all(u8::is_ascii_digit)
}

/// Reads a time as conditions write it.
pub(crate) fn read_time(text: &str) -> Option<Nanos> {
    if is_date(text) { time(text) } else { None }
}

/// Reads a number without a unit as conditions write it. Numbers with leading zeros are labels, and refused.
pub(crate) fn read_number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_label = digits.starts_with('0') && digits[1..].starts_with(|c: char| c.is_ascii_digit());
    if is_label || text.starts_with('+') || text.ends_with('B') { None } else { number(text) }
}

/// Reads an RFC 3339 time; without a zone it is UTC, without a clock time it is midnight.
fn time(text: &str) -> Option<Nanos> {
    let utc =
        |civil: jiff::civil::DateTime| civil.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|at| at.timestamp());
    let time = match text.len() {
        10 => utc(text.parse::<jiff::civil::Date>().ok()?.to_datetime(jiff::civil::Time::midnight()))?,
        _ => text.parse::<jiff::Timestamp>().ok().or_else(|| utc(text.parse().ok()?))?,
    };
    i64::try_from(time.as_nanosecond()).ok().map(Nanos)
}

/// Reads a decimal number with an optional exponent and an optional unit of size, exactly where possible.
fn number(text: &str) -> Option<Value> {
    let is_exponent = |at: usize| {
        let after = text[at + 1..].trim_start_matches(['+', '-']);
        text[at..].starts_with(['e', 'E']) && after.starts_with(|c: char| c.is_ascii_digit())
    };
    let digits = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let end = if digits < text.len() && is_exponent(digits) {
        let unit = |c: char| c.is_ascii_alphabetic();
        text[digits + 1..].find(unit).map_or(text.len(), |at| digits + 1 + at)
    } else {
        digits
    };
    let (mantissa, suffix) = text.split_at(end);
    let factor = if suffix.is_empty() { 1 } else { size_factor(suffix)? };
    scaled(mantissa, factor)
}

/// Product of a decimal number and a factor: an integer if it is one.
pub(super) fn scaled(mantissa: &str, factor: i64) -> Option<Value> {
    let float: f64 = mantissa.parse().ok().filter(|number: &f64| number.is_finite())?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let scale = u32::try_from(fraction.len()).ok()?;
    let exact = format!("{whole}{fraction}").parse::<i128>().ok().and_then(|digits| {
        let (product, divisor) = (digits.checked_mul(i128::from(factor))?, 10_i128.checked_pow(scale)?);
        if product % divisor == 0 { i64::try_from(product / divisor).ok() } else { None }
    });
    match exact {
        Some(number) if fraction.is_empty() || factor != 1 => Some(Value::Integer(number)),
        _ => Finite::new(float * factor as f64).ok().map(Value::Float),
    }
}
