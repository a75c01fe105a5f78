//! Header of a DADA file (PSRDADA): ASCII lines of a key and a value, with `#` before comments, in the first `HDR_SIZE`
//! bytes, padded with zeros.

use crate::cursor::Cursor;
use crate::unit::TimeUnit;
use crate::{Outcome, Problem, SchemaError, Type, rfc3339, value};
use holdfast_format::{CellBuffer, MAX_TEXT};

/// Bytes of a header: what `HDR_SIZE` is unless somebody needs more.
const HEADER: usize = 4096;

/// The key behind which that stands.
const SIZE: &[u8] = b"HDR_SIZE";
/// A key without which it is no such header.
const MARK: &[u8] = b"HDR_VERSION";

/// Of which types a value may be.
pub(crate) const GIVES: [Type; 5] = [Type::Int, Type::Uint, Type::Float, Type::Time, Type::Text];

/// The ready-made list.
pub(crate) const USUAL: [(&str, Type); 10] = [
    ("UTC_START", Type::Time),
    ("OBS_OFFSET", Type::Uint),
    ("SOURCE", Type::Text),
    ("TELESCOPE", Type::Text),
    ("FREQ", Type::Float),
    ("BW", Type::Float),
    ("TSAMP", Type::Float),
    ("NCHAN", Type::Uint),
    ("NPOL", Type::Uint),
    ("NBIT", Type::Uint),
];

/// A key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DadaKey(pub(crate) String);

impl DadaKey {
    pub(crate) fn parse(cursor: &mut Cursor<'_>) -> Result<Self, SchemaError> {
        let key = cursor.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        match key {
            "" => Err(cursor.wrong(Problem::Wanted("a key of the header, such as UTC_START,"))),
            key => Ok(Self(key.to_owned())),
        }
    }
}

/// The lines of one header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DadaHeader<'a>(&'a [u8]);

impl<'a> DadaHeader<'a> {
    /// `None` if it is none.
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        let within = |bytes: usize| {
            let header = &data[..data.len().min(bytes)];
            let end = header.iter().position(|byte| *byte == 0).unwrap_or(header.len());
            Self(&header[..end])
        };
        let header = within(HEADER);
        header.value(MARK)?;
        let larger = header.value(SIZE).and_then(|size| std::str::from_utf8(size).ok()?.parse().ok());
        Some(larger.filter(|size| *size > HEADER).map_or(header, within))
    }

    /// What stands behind a key, the first time; nothing is no value.
    fn value(self, key: &[u8]) -> Option<&'a [u8]> {
        let of_line = |line: &'a [u8]| {
            let rest = line.trim_ascii_start().strip_prefix(key)?;
            let value = rest.split(|byte| *byte == b'#').next().unwrap_or_default();
            let apart = value.first().is_none_or(u8::is_ascii_whitespace);
            apart.then(|| value.trim_ascii())
        };
        self.0.split(|byte| *byte == b'\n').find_map(of_line).filter(|value| !value.is_empty())
    }

    /// The value of a key as a cell.
    pub(crate) fn push(
        self,
        key: &DadaKey,
        kind: Type,
        unit: TimeUnit,
        into: &mut CellBuffer,
        outcome: &mut Outcome,
    ) {
        let Some(value) = self.value(key.0.as_bytes()) else { return into.null() };
        let Ok(text) = std::str::from_utf8(value) else {
            outcome.undecodable = true;
            return into.null();
        };
        let word = match kind {
            Type::Text if text.len() <= MAX_TEXT => return into.bytes(text.as_bytes()),
            Type::Text => {
                outcome.too_long += 1;
                None
            }
            Type::Int => text.parse().ok().map(value::int),
            Type::Uint => text.parse().ok(),
            Type::Float => text.parse().ok().map(value::float),
            Type::Time => time(text).or_else(|| unit.decimal(number(text)?)).map(value::int),
            _ => None,
        };
        match word {
            Some(word) => into.word(word),
            None => into.null(),
        }
    }
}

/// A decimal number as it may stand in a document.
fn number(text: &str) -> Option<&[u8]> {
    text.parse::<f64>().ok().filter(|number| number.is_finite())?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit()).then_some(text.as_bytes())
}

/// `2013-07-02-01:37:40`, with or without a fraction: UTC.
fn time(text: &str) -> Option<i64> {
    // As RFC 3339 has it, with `T` between day and time and `Z` at the end; digits of a fraction beyond nanoseconds say nothing.
    let text = text.as_bytes();
    let (day, time) = (text.get(..10)?, text.get(11..)?);
    if text[10] != b'-' || time.len() > 18 {
        return None;
    }
    let mut all = [0; 30];
    all[..10].copy_from_slice(day);
    all[10] = b'T';
    all[11..11 + time.len()].copy_from_slice(time);
    all[11 + time.len()] = b'Z';
    rfc3339::nanos(&all[..12 + time.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Extractor, Schema};
    use holdfast_format::Cells;

    const HEAD: &[u8] = b"HEADER DADA # as it was\nHDR_VERSION 1.0\n  UTC_START\t2013-07-02-01:37:40.5 # UTC\nBW -8\nNCHANS 7\nNCHAN 64\nNONE #x\nSOURCE  J0437 4715 \n\0\0FREQ 5\n";

    fn words(typed: &[&str], data: &[u8]) -> (Vec<Option<u64>>, Outcome) {
        let schema = Schema::typed(typed).unwrap();
        let mut cells: Vec<CellBuffer> =
            schema.classes().iter().map(|class| CellBuffer::new(class, 1, 4096)).collect();
        let outcome = Extractor::new(&schema).extract(&Element::of(data), &mut cells);
        let word = |buffer: &CellBuffer| match (buffer.cells(), buffer.valid()) {
            (Cells::Words([word]), [true]) => Some(*word),
            (Cells::Bytes([end], _), [true]) => Some(u64::from(*end)),
            _ => None,
        };
        (cells.iter().map(word).collect(), outcome)
    }

    #[test]
    fn values_are_those_behind_their_keys() {
        let typed = [
            "event_time:time=dada:UTC_START",
            "b:int=dada:BW",
            "n:uint=dada:NCHAN",
            "s:text=dada:SOURCE",
            "x:text=dada:NONE",
            "y:uint=dada:BW",
            "f:float=dada:FREQ",
            "t:text=dada:UTC_START",
        ];
        let (found, outcome) = words(&typed, HEAD);
        // 2013-07-02T01:37:40.5Z.
        assert_eq!(outcome.event_time.map(|time| time.0), Some(1_372_729_060_500_000_000));
        assert_eq!(found[1..], [Some(value::int(-8)), Some(64), Some(10), None, None, None, Some(21)]);
        assert!(!outcome.undecodable);
    }

    #[test]
    fn a_value_that_is_not_utf_8_is_undecodable() {
        let header = b"HDR_VERSION 1.0\nSOURCE J\xe4\nNCHAN 64\n";
        let (found, outcome) = words(&["s:text=dada:SOURCE", "n:uint=dada:NCHAN"], header);
        assert_eq!((found, outcome.undecodable), (vec![None, Some(64)], true));
    }

    #[test]
    fn a_header_is_as_long_as_it_says() {
        let header =
            |size: usize| format!("HDR_VERSION 1.0\nHDR_SIZE {size}\n#{}\nNCHAN 64\n", "x".repeat(5000));
        let read = |size| words(&["n:uint=dada:NCHAN"], header(size).as_bytes()).0[0];
        assert_eq!([read(8192), read(4096), read(0), read(usize::MAX)], [Some(64), None, None, Some(64)]);
    }

    #[test]
    fn what_is_no_header_has_no_values() {
        for data in [&b""[..], b"HDR_SIZE 4096\n", b"\0HDR_VERSION 1.0\n", b"HDR_VERSIONS 1.0"] {
            let (found, outcome) = words(&["n:uint=dada:HDR_SIZE"], data);
            assert!(outcome.undecodable && found == [None], "{data:?}");
        }
    }

    #[test]
    fn times_that_are_none() {
        assert_eq!(time("1970-01-01-00:00:01"), Some(1_000_000_000));
        for text in ["", "1970-01-01", "1970-01-01T00:00:01", "1970-13-01-00:00:01", "1970-01-01-00:00:01Z"] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
