//! SIGPROC filterbank: keywords between `HEADER_START` and `HEADER_END`, with little-endian values.
//!
//! ```text
//! string   length as 32-bit integer (1 to 80), then its bytes
//! entry    string with the keyword, then the value: 32-bit integer, 64-bit float, string or byte, by keyword
//! ```
//!
//! A keyword that is not in the tables ends the header, as the length of its value is unknown.

use super::with_unit;
use holdfast_catalog::{Attribute, Value};

/// Longest string of a header in bytes, the limit of SIGPROC.
const MOST_STRING: usize = 80;

/// Keywords whose values are integers.
const INTEGERS: [&str; 12] = [
    "telescope_id",
    "machine_id",
    "data_type",
    "barycentric",
    "pulsarcentric",
    "nbits",
    "nsamples",
    "nchans",
    "nifs",
    "nbeams",
    "ibeam",
    "nbins",
];

/// Keywords with floats, and their units.
const FLOATS: [(&str, &str); 11] = [
    ("az_start", "deg"),
    ("za_start", "deg"),
    ("src_raj", ""),
    ("src_dej", ""),
    ("tstart", "d"),
    ("tsamp", "s"),
    ("fch1", "MHz"),
    ("foff", "MHz"),
    ("refdm", "pc/cm^3"),
    ("period", "s"),
    ("fchannel", "MHz"),
];

/// Keywords whose values are strings.
const STRINGS: [&str; 2] = ["rawdatafile", "source_name"];

/// Keywords without a value, around a table of channels.
const MARKS: [&str; 2] = ["FREQUENCY_START", "FREQUENCY_END"];

/// True if the bytes begin as a filterbank file does.
pub(super) fn is_filterbank(bytes: &[u8]) -> bool {
    bytes.starts_with(b"\x0c\0\0\0HEADER_START")
}

/// Attributes of a header up to its end, or to the first entry that is not understood.
pub(super) fn read(bytes: &[u8]) -> Option<Vec<Attribute>> {
    let mut reader = Reader(bytes);
    reader.string()?;
    let mut attributes = Vec::new();
    while let Some(keyword) = reader.string()
        && keyword != "HEADER_END"
        && let Some(field) = reader.field(keyword)
    {
        // Tables of channels may have thousands of rows; one attribute of each name is enough.
        let is_new = attributes.iter().all(|known: &Attribute| known.name != keyword);
        if let (true, Field::Value(value, unit)) = (is_new, field) {
            attributes.push(with_unit(keyword, value, unit));
        }
    }
    Some(attributes)
}

/// Field of an entry.
enum Field {
    /// Value with its unit, which may be empty.
    Value(Value, &'static str),
    /// No value: that of a mark, or a float that is not finite.
    Nothing,
}

/// Reader of entries; it ends where the bytes do.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn integer(&mut self) -> Option<i32> {
        Some(i32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn string(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.integer()?).ok()?;
        let bytes = self.take(length).filter(|bytes| (1..=MOST_STRING).contains(&bytes.len()))?;
        std::str::from_utf8(bytes).ok()
    }

    /// Field behind a keyword; nothing if it cannot be read.
    fn field(&mut self, keyword: &str) -> Option<Field> {
        if INTEGERS.contains(&keyword) {
            return Some(Field::Value(Value::from(i64::from(self.integer()?)), ""));
        }
        if let Some((_, unit)) = FLOATS.iter().find(|(name, _)| *name == keyword) {
            let number = f64::from_le_bytes(self.take(8)?.try_into().ok()?);
            return Some(Value::float(number).map_or(Field::Nothing, |value| Field::Value(value, unit)));
        }
        if STRINGS.contains(&keyword) {
            return Some(Field::Value(Value::from(self.string()?), ""));
        }
        if keyword == "signed" {
            return Some(Field::Value(Value::from(i64::from(*self.take(1)?.first()?)), ""));
        }
        MARKS.contains(&keyword).then_some(Field::Nothing)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::tests::extract;
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as i32).to_le_bytes(), text.as_bytes()].concat()
    }

    pub(crate) fn header() -> Vec<u8> {
        [
            string("HEADER_START"),
            string("source_name"),
            string("B0329+54"),
            string("nchans"),
            1024_i32.to_le_bytes().to_vec(),
            string("tsamp"),
            6.4e-5_f64.to_le_bytes().to_vec(),
            string("FREQUENCY_START"),
            string("fchannel"),
            1500.0_f64.to_le_bytes().to_vec(),
            string("fchannel"),
            1499.0_f64.to_le_bytes().to_vec(),
            string("FREQUENCY_END"),
            string("signed"),
            vec![1],
            string("HEADER_END"),
            vec![7; 100],
        ]
        .concat()
    }

    #[test]
    fn entries_become_typed_attributes() {
        let float = |number| Value::float(number).unwrap();
        let expected = [
            Attribute::new("filterbank.source_name", "B0329+54"),
            Attribute::new("filterbank.nchans", 1024),
            Attribute::new("filterbank.tsamp", float(6.4e-5)).with_unit("s"),
            Attribute::new("filterbank.fchannel", float(1500.0)).with_unit("MHz"),
            Attribute::new("filterbank.signed", 1),
        ];
        assert_eq!(extract("filterbank", &header()), expected);
        let unknown = [string("HEADER_START"), string("nbits"), vec![8, 0, 0, 0], string("other")].concat();
        assert_eq!(extract("filterbank", &unknown), [Attribute::new("filterbank.nbits", 8)]);
    }
}
