//! Conversion of JSON values to cells of an attribute's type.

use super::JsonSpan;
use crate::unit::TimeUnit;
use crate::{Cell, Type, rfc3339, value};
use hifijson::SliceLexer;
use hifijson::escape::Lex as _;
use holdfast_format::MAX_TEXT;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What becomes of it.
pub(super) enum Converted<'a> {
    Cell(Cell<'a>),
    /// Nothing, or something of another type.
    Null,
    /// A text that no cell can have.
    TooLong,
    /// A text with half of a surrogate pair.
    Undecodable,
}

/// Whether a key between its quotes is this name.
pub(super) fn is_key(raw: &[u8], name: &str) -> bool {
    if !raw.contains(&b'\\') {
        return raw == name.as_bytes();
    }
    let mut rest = name.as_bytes();
    let same = unescape(raw, |piece| match rest.strip_prefix(piece) {
        Some(behind) => {
            rest = behind;
            true
        }
        None => false,
    });
    same.is_ok() && rest.is_empty()
}

/// The text of a string, given as it stands between its quotes; `None` if half of a character is missing.
pub(super) fn decoded(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.contains('\\') {
        return Some(Cow::Borrowed(raw));
    }
    let mut text = Vec::with_capacity(raw.len());
    let told = unescape(raw.as_bytes(), |piece| {
        text.extend_from_slice(piece);
        true
    });
    told.ok()?;
    String::from_utf8(text).ok().map(Cow::Owned)
}

/// A number as a whole number, if it is one of 64 bits: `1e3` is, `0.5` is not.
pub(super) fn whole_number(number: &str) -> Option<i64> {
    match of_number(number.as_bytes(), Type::Int, TimeUnit::default())? {
        Cell::Word(word) => Some((word ^ 1 << 63) as i64),
        _ => None,
    }
}

/// Why a string has no text.
enum NoText {
    /// `put` does not want it.
    Refused,
    /// Half of a character.
    Surrogate,
}

/// Gives what a string says to `put`, piece by piece.
fn unescape(mut raw: &[u8], mut put: impl FnMut(&[u8]) -> bool) -> Result<(), NoText> {
    loop {
        let plain = raw.iter().position(|byte| *byte == b'\\');
        let (piece, rest) = raw.split_at(plain.unwrap_or(raw.len()));
        if !put(piece) {
            return Err(NoText::Refused);
        }
        let [_, kind, rest @ ..] = rest else { return Ok(()) };
        let mut lexer = SliceLexer::new(rest);
        let character = lexer.escape(*kind).map_err(|_| NoText::Surrogate)?;
        if !put(character.encode_utf8(&mut [0; 4]).as_bytes()) {
            return Err(NoText::Refused);
        }
        raw = lexer.as_slice();
    }
}

/// What stands in `data`, as a cell of this type; `scratch` is room for a text.
pub(super) fn convert<'a>(
    found: JsonSpan,
    data: &'a [u8],
    kind: Type,
    unit: TimeUnit,
    scratch: &'a mut [u8; MAX_TEXT],
) -> Converted<'a> {
    let cell = match found {
        JsonSpan::Nothing | JsonSpan::Container(..) => None,
        JsonSpan::Bool(truth) => (kind == Type::Bool).then_some(Cell::Word(truth.into())),
        JsonSpan::Number(from, to) => data.get(from..to).and_then(|number| of_number(number, kind, unit)),
        JsonSpan::Text(from, to) => {
            let Some(raw) = data.get(from..to) else { return Converted::Null };
            if kind == Type::Text {
                return of_text(raw, scratch);
            }
            std::str::from_utf8(raw).ok().and_then(|text| of_word(text, kind))
        }
    };
    cell.map_or(Converted::Null, Converted::Cell)
}

/// The number up to which floating-point numbers are every whole number.
const EXACT: f64 = 9_007_199_254_740_992.0;

fn of_number(number: &[u8], kind: Type, unit: TimeUnit) -> Option<Cell<'static>> {
    let text = std::str::from_utf8(number).ok()?;
    let whole = || text.parse().ok().filter(|number: &f64| number.fract() == 0.0 && number.abs() <= EXACT);
    Some(Cell::Word(match kind {
        Type::Int => value::int(text.parse().ok().or_else(|| whole().map(|number| number as i64))?),
        Type::Uint => {
            let number = || whole().filter(|number| *number >= 0.0).map(|number| number as u64);
            text.parse().ok().or_else(number)?
        }
        Type::Float => value::float(text.parse().ok().filter(|number: &f64| number.is_finite())?),
        Type::Time => value::int(unit.decimal(number)?),
        _ => return None,
    }))
}

/// A text that says a time or an address.
fn of_word(text: &str, kind: Type) -> Option<Cell<'static>> {
    Some(match kind {
        Type::Time => Cell::Word(value::int(rfc3339::nanos(text.as_bytes())?)),
        Type::Ipv4 => Cell::Word(value::ipv4(text.parse::<Ipv4Addr>().ok()?.octets())),
        Type::Ipv6 => Cell::Wide(text.parse::<Ipv6Addr>().ok()?.into()),
        Type::Ip => match text.parse().ok()? {
            IpAddr::V4(address) => Cell::Wide(value::mapped(address.octets())),
            IpAddr::V6(address) => Cell::Wide(address.into()),
        },
        Type::Mac => Cell::Word(mac(text.as_bytes())?),
        _ => return None,
    })
}

/// Six bytes in hexadecimal, with `:` or `-` between them.
fn mac(text: &[u8]) -> Option<u64> {
    let between = *text.get(2).filter(|byte| matches!(byte, b':' | b'-'))?;
    let mut number = 0;
    let mut bytes = 0;
    for byte in text.split(|byte| *byte == between) {
        let [high, low] = byte else { return None };
        let digit = |digit: u8| char::from(digit).to_digit(16).map(u64::from);
        number = number << 8 | digit(*high)? << 4 | digit(*low)?;
        bytes += 1;
        if bytes > 6 {
            return None;
        }
    }
    (bytes == 6).then_some(number)
}

fn of_text<'a>(raw: &'a [u8], scratch: &'a mut [u8; MAX_TEXT]) -> Converted<'a> {
    if !raw.contains(&b'\\') {
        return if raw.len() > MAX_TEXT { Converted::TooLong } else { Converted::Cell(Cell::Bytes(raw)) };
    }
    let mut len = 0;
    let told = unescape(raw, |piece| match scratch.get_mut(len..len + piece.len()) {
        Some(room) => {
            room.copy_from_slice(piece);
            len += piece.len();
            true
        }
        None => false,
    });
    match told {
        Ok(()) => Converted::Cell(Cell::Bytes(&scratch[..len])),
        Err(NoText::Refused) => Converted::TooLong,
        Err(NoText::Surrogate) => Converted::Undecodable,
    }
}
