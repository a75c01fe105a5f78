//! The header of a SIGPROC file (filterbank, time series): `HEADER_START`, then keywords, each with its length in front and its
//! value behind, then `HEADER_END`. Numbers are little-endian.
//!
//! ```text
//! keyword   length (4) | characters
//! value     int: 4 bytes | long (npuls): 8 bytes | double: 8 bytes | string: length (4) | characters
//! ```

use crate::unit::TimeUnit;
use crate::{Outcome, Type, value};
use holdfast_format::{CellBuffer, MAX_TEXT};

/// Bytes of a string, at most: what is longer is no header.
const MOST_STRING: usize = 80;

/// What a keyword's value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Int,
    Long,
    Double,
    Text,
    /// One byte.
    Flag,
}

/// A keyword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SigprocField(usize);

const KEYWORDS: [(&str, Form); 27] = [
    ("source_name", Form::Text),
    ("rawdatafile", Form::Text),
    ("telescope_id", Form::Int),
    ("machine_id", Form::Int),
    ("data_type", Form::Int),
    ("barycentric", Form::Int),
    ("pulsarcentric", Form::Int),
    ("nbits", Form::Int),
    ("nsamples", Form::Int),
    ("nchans", Form::Int),
    ("nifs", Form::Int),
    ("nbeams", Form::Int),
    ("ibeam", Form::Int),
    ("nbins", Form::Int),
    ("npuls", Form::Long),
    ("signed", Form::Flag),
    ("tstart", Form::Double),
    ("tsamp", Form::Double),
    ("fch1", Form::Double),
    ("foff", Form::Double),
    ("refdm", Form::Double),
    ("period", Form::Double),
    ("az_start", Form::Double),
    ("za_start", Form::Double),
    ("src_raj", Form::Double),
    ("src_dej", Form::Double),
    ("fchannel", Form::Double),
];

/// The ready-made list.
pub(crate) const USUAL: [&str; 10] =
    ["source_name", "tstart", "tsamp", "fch1", "foff", "nchans", "nbits", "nifs", "ibeam", "nbeams"];

impl SigprocField {
    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        (0..KEYWORDS.len()).map(Self).collect()
    }

    /// The one of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        KEYWORDS.iter().position(|(keyword, _)| *keyword == name).map(Self)
    }

    fn keyword(self) -> (&'static str, Form) {
        KEYWORDS.get(self.0).copied().unwrap_or(KEYWORDS[0])
    }

    pub(crate) fn name(self) -> &'static str {
        self.keyword().0
    }

    /// The type of its values, and when it is a day: the time, too.
    pub(crate) fn gives(self) -> &'static [Type] {
        match self.keyword() {
            ("tstart", _) => &[Type::Float, Type::Time],
            (_, Form::Int) => &[Type::Int],
            // Schemas of earlier recordings have it as a float.
            (_, Form::Long) => &[Type::Int, Type::Float],
            (_, Form::Double) => &[Type::Float],
            (_, Form::Text) => &[Type::Text],
            (_, Form::Flag) => &[Type::Bool],
        }
    }
}

/// The header of one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SigprocHeader<'a>(&'a [u8]);

/// Keywords and values, one after the other.
struct KeywordReader<'a>(&'a [u8]);

impl<'a> KeywordReader<'a> {
    fn bytes<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(taken)
    }

    fn string(&mut self) -> Option<&'a [u8]> {
        let len = u32::from_le_bytes(*self.bytes()?) as usize;
        let (taken, rest) = self.0.split_at_checked(len).filter(|_| len <= MOST_STRING.max(MAX_TEXT))?;
        self.0 = rest;
        Some(taken)
    }

    fn value(&mut self, form: Form) -> Option<&'a [u8]> {
        Some(match form {
            Form::Int => self.bytes::<4>()?,
            Form::Long | Form::Double => self.bytes::<8>()?,
            Form::Flag => self.bytes::<1>()?,
            Form::Text => return self.string(),
        })
    }
}

impl<'a> SigprocHeader<'a> {
    /// `None` if it is none, is cut, or has a keyword that nobody knows, behind which nothing can be read.
    pub(crate) fn read(data: &'a [u8]) -> Option<Self> {
        let mut reader = KeywordReader(data);
        if reader.string()? != b"HEADER_START" {
            return None;
        }
        let header = Self(reader.0);
        loop {
            match reader.string()? {
                b"HEADER_END" => return Some(header),
                keyword if is_bracket(keyword) => {}
                keyword => {
                    reader.value(form(keyword)?)?;
                }
            }
        }
    }

    /// What stands behind a keyword, the first time.
    fn find(self, name: &[u8]) -> Option<&'a [u8]> {
        let mut reader = KeywordReader(self.0);
        loop {
            let keyword = reader.string()?;
            if is_bracket(keyword) {
                continue;
            }
            let value = reader.value(form(keyword)?)?;
            if keyword == name {
                return Some(value);
            }
        }
    }

    pub(crate) fn push(self, field: SigprocField, kind: Type, into: &mut CellBuffer, outcome: &mut Outcome) {
        let (name, form) = field.keyword();
        let Some(bytes) = self.find(name.as_bytes()) else { return into.null() };
        match (form, kind, bytes) {
            (Form::Text, _, text) if std::str::from_utf8(text).is_err() => {
                outcome.undecodable = true;
                into.null();
            }
            (Form::Text, _, text) if text.len() > MAX_TEXT => {
                outcome.too_long += 1;
                into.null();
            }
            (Form::Text, _, text) => into.bytes(text),
            (Form::Flag, _, flag) => into.word(u64::from(flag.first().is_some_and(|byte| *byte != 0))),
            (Form::Int, _, bytes) => match bytes.first_chunk() {
                Some(bytes) => into.word(value::int(i32::from_le_bytes(*bytes).into())),
                None => into.null(),
            },
            (Form::Long, kind, bytes) => {
                let number = bytes.first_chunk().map_or(0, |bytes| i64::from_le_bytes(*bytes));
                into.word(if kind == Type::Float { value::float(number as f64) } else { value::int(number) });
            }
            (Form::Double, kind, bytes) => {
                let number = bytes.first_chunk().map_or(f64::NAN, |bytes| f64::from_le_bytes(*bytes));
                match kind {
                    Type::Time => match mjd(number) {
                        Some(nanos) => into.word(value::int(nanos)),
                        None => into.null(),
                    },
                    _ => into.word(value::float(number)),
                }
            }
        }
    }
}

/// What stands around a table of frequencies, each an `fchannel`, and has no value.
fn is_bracket(keyword: &[u8]) -> bool {
    matches!(keyword, b"FREQUENCY_START" | b"FREQUENCY_END")
}

fn form(keyword: &[u8]) -> Option<Form> {
    KEYWORDS.iter().find(|(name, _)| name.as_bytes() == keyword).map(|(_, form)| *form)
}

/// Nanoseconds since 1970 of a modified Julian date. A double of today's days tells times to a microsecond.
fn mjd(days: f64) -> Option<i64> {
    /// That of 1970-01-01.
    const EPOCH: f64 = 40_587.0;
    TimeUnit::Seconds.float((days - EPOCH) * 86_400.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, Extractor, Schema};
    use holdfast_format::Cells;

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
    }

    fn header() -> Vec<u8> {
        let mut all = string("HEADER_START");
        all.extend([string("source_name"), string("J0534+2200")].concat());
        all.extend([string("nchans"), 832i32.to_le_bytes().to_vec()].concat());
        all.extend([string("tstart"), 40_588.5f64.to_le_bytes().to_vec()].concat());
        all.extend(string("FREQUENCY_START"));
        for channel in [1500.0f64, 1499.5] {
            all.extend([string("fchannel"), channel.to_le_bytes().to_vec()].concat());
        }
        all.extend(string("FREQUENCY_END"));
        all.extend([string("signed"), vec![1]].concat());
        all.extend(string("HEADER_END"));
        all
    }

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
    fn values_are_those_behind_their_keywords() {
        let typed = [
            "event_time:time=sigproc:tstart",
            "n:int=sigproc:nchans",
            "s:text=sigproc:source_name",
            "t:float=sigproc:tstart",
            "g:bool=sigproc:signed",
            "f:float=sigproc:foff",
        ];
        let (found, outcome) = words(&typed, &[&header()[..], &[7; 99]].concat());
        assert_eq!(outcome.event_time.map(|time| time.0), Some(129_600_000_000_000));
        assert_eq!(
            found[1..],
            [Some(value::int(832)), Some(10), Some(value::float(40_588.5)), Some(1), None]
        );
        assert!(!outcome.undecodable);
    }

    /// `npuls` is a `long` of C: an integer of 8 bytes, told as a float by schemas of earlier recordings.
    #[test]
    fn pulses_are_counted_in_integers() {
        let pulses = 1_234_567_890_123i64;
        let header = [string("HEADER_START"), string("npuls"), pulses.to_le_bytes().to_vec()].concat();
        let header = [header, string("nifs"), vec![1, 0, 0, 0], string("HEADER_END")].concat();
        let typed = ["a:int=sigproc:npuls", "b:float=sigproc:npuls", "c:int=sigproc:nifs"];
        let (found, outcome) = words(&typed, &header);
        let wanted = [value::int(pulses), value::float(1_234_567_890_123.0), value::int(1)];
        assert_eq!((found, outcome.undecodable), (wanted.map(Some).to_vec(), false));
        assert_eq!(SigprocField::named("npuls").unwrap().gives()[0], Type::Int);
    }

    #[test]
    fn a_text_that_is_not_utf_8_is_undecodable() {
        let name = [vec![2, 0, 0, 0], vec![b'a', 0xe4]].concat();
        let header = [string("HEADER_START"), string("source_name"), name, string("HEADER_END")].concat();
        let (found, outcome) = words(&["s:text=sigproc:source_name"], &header);
        assert_eq!((found, outcome.undecodable), (vec![None], true));
    }

    #[test]
    fn what_is_cut_or_unknown_is_no_header() {
        let whole = header();
        for cut in 0..whole.len() {
            let (found, outcome) = words(&["n:int=sigproc:nchans"], &whole[..cut]);
            assert!(outcome.undecodable && found == [None], "{cut}");
        }
        let other = [string("HEADER_START"), string("colour"), vec![0; 4], string("HEADER_END")].concat();
        assert!(words(&["n:int=sigproc:nchans"], &other).1.undecodable);
    }
}
