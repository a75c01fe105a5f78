//! FITS: the primary header, cards of 80 bytes up to `END`.
//!
//! Long strings are continued by `CONTINUE`, and long keywords written by `HIERARCH`, as their conventions say. Comments,
//! history and complex numbers are left out.

use super::with_unit;
use holdfast_catalog::{Attribute, Value};

/// Length of a card in bytes.
const CARD: usize = 80;

/// True if the bytes begin as a FITS file does.
pub(super) fn is_fits(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SIMPLE  = ")
}

/// Attributes of a header, also of one whose end is missing.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Attribute>> {
    let mut attributes = Vec::new();
    // String that the next card may continue, with its keyword.
    let mut open: Option<(String, String)> = None;
    for card in bytes.chunks_exact(CARD) {
        // Cards consist of printable ASCII; another byte means that the header is damaged from here on.
        let card = std::str::from_utf8(card)
            .ok()
            .filter(|card| card.bytes().all(|byte| matches!(byte, 32..=126)))?;
        if let Some(rest) = card.strip_prefix("CONTINUE  ")
            && let Some((name, mut text)) = open.take()
        {
            if let Some((more, _)) = string(rest.trim_start()) {
                text.pop();
                text.push_str(&more);
            }
            keep(name, text, "", &mut open, &mut attributes);
            continue;
        }
        close(&mut open, &mut attributes);
        if card.trim_end() == "END" {
            break;
        }
        let Some((name, field)) = keyword(card) else { continue };
        let field = field.trim_start();
        if let Some((text, rest)) = string(field) {
            keep(name, text, unit(comment(rest)), &mut open, &mut attributes);
        } else {
            let (value, _) = field.split_once('/').unwrap_or((field, ""));
            let value = number(value.trim());
            attributes.extend(value.map(|value| with_unit(name, value, unit(comment(field)))));
        }
    }
    close(&mut open, &mut attributes);
    Some(attributes)
}

/// Keyword and field of a card with a value.
fn keyword(card: &str) -> Option<(String, &str)> {
    if let Some(long) = card.strip_prefix("HIERARCH ") {
        let (name, field) = long.split_once('=')?;
        let words: Vec<&str> = name.split_whitespace().collect();
        return (!words.is_empty()).then(|| (words.join("."), field));
    }
    let (name, rest) = card.split_at(8);
    let field = rest.strip_prefix("= ")?;
    let name = name.trim_end();
    (!name.is_empty()).then(|| (name.to_owned(), field))
}

/// String between quotes, in which two quotes are one, and the text behind it.
fn string(field: &str) -> Option<(String, &str)> {
    let mut rest = field.strip_prefix('\'')?;
    let mut text = String::new();
    loop {
        let (before, behind) = rest.split_once('\'')?;
        text.push_str(before);
        match behind.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                rest = more;
            }
            // Spaces at the end mean nothing, those at the beginning do.
            None => return Some((text.trim_end().to_owned(), behind)),
        }
    }
}

/// Keeps a string: as open if it ends as one that is continued, else as an attribute.
fn keep(
    name: String,
    text: String,
    unit: &str,
    open: &mut Option<(String, String)>,
    attributes: &mut Vec<Attribute>,
) {
    if text.ends_with('&') {
        *open = Some((name, text));
        return;
    }
    // Dates without a zone are UTC, unless the header names another time system, which is told by `fits.timesys`.
    let time = Some(&text).filter(|_| name.starts_with("DATE")).and_then(|text| Value::read_time(text));
    attributes.push(with_unit(name, time.unwrap_or(Value::Text(text)), unit));
}

/// Ends an open string that no card continues.
fn close(open: &mut Option<(String, String)>, attributes: &mut Vec<Attribute>) {
    attributes.extend(open.take().map(|(name, text)| Attribute::new(name, text.as_str())));
}

/// Logical value, integer or real number; `D` may stand for the `E` of an exponent.
fn number(text: &str) -> Option<Value> {
    match text {
        "T" => Some(Value::from("true")),
        "F" => Some(Value::from("false")),
        _ if !text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.EDed".contains(&byte)) => None,
        _ => match text.parse::<i64>() {
            Ok(integer) => Some(Value::Integer(integer)),
            Err(_) => Value::float(text.replace(['D', 'd'], "E").parse().ok()?).ok(),
        },
    }
}

/// Text behind the slash.
fn comment(rest: &str) -> &str {
    rest.split_once('/').map_or("", |(_, comment)| comment.trim())
}

/// Unit in brackets at the beginning of a comment.
fn unit(comment: &str) -> &str {
    let inside = comment.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    inside.map_or("", |(unit, _)| unit.trim())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::tests::extract;
    use super::*;

    /// Header of one block with a card for every rule.
    pub(crate) fn header() -> Vec<u8> {
        let cards = [
            "SIMPLE  =                    T / conforms to FITS",
            "BITPIX  =                  -32 / bits",
            "EXPTIME =               1.5D+1 / [s] exposure",
            "OBJECT  = 'O''Neill / x '      / name",
            "DATE-OBS= '2026-11-20T10:05:00' / UTC",
            "LONGSTR = 'abc&'",
            "CONTINUE  'def&'",
            "CONTINUE  'ghi' / end",
            "HIERARCH ESO DET CHIP1 ID = 7",
            "COMMENT = 'not a value'",
            "CPLX    = (1.0, 2.0)",
            "HISTORY nothing",
            "UNDEF   =",
            "END",
        ];
        let mut bytes: Vec<u8> = cards.iter().flat_map(|card| format!("{card:<80}").into_bytes()).collect();
        bytes.resize(2880, b' ');
        bytes
    }

    #[test]
    fn cards_become_typed_attributes() {
        let expected = [
            Attribute::new("fits.simple", "true"),
            Attribute::new("fits.bitpix", -32),
            Attribute::new("fits.exptime", Value::float(15.0).unwrap()).with_unit("s"),
            Attribute::new("fits.object", "O'Neill / x"),
            Attribute::new("fits.date-obs", Value::read_time("2026-11-20T10:05:00Z").unwrap()),
            Attribute::new("fits.longstr", "abcdefghi"),
            Attribute::new("fits.eso.det.chip1.id", 7),
            Attribute::new("fits.comment", "not a value"),
        ];
        assert_eq!(extract("fits", &header()), expected);
        // A second header, or data, is not read.
        let mut two = header();
        two.extend(header());
        assert_eq!(extract("fits", &two).len(), expected.len());
    }
}
