//! Extraction: attributes from the headers of finished files. Everything that a file says is untrusted.
//!
//! An extractor returns attributes with plain names; a file of another format gives none. Here they become names of the
//! catalog: `EXTRACTOR.NAME`, or `DRIVER.NAME` for those that a program prints. They are in lower case, with `_` in the place
//! of characters other than letters, digits and `_ . : -`. Attributes that the catalog would refuse are left out, and so are
//! those beyond 256.
//!
//! | extractor | format | names |
//! |---|---|---|
//! | `fits` | primary header of FITS 4.0 | keywords, as in `fits.exptime`; units from `[…]` in comments |
//! | `filterbank` | header of SIGPROC filterbank files | keywords, as in `filterbank.tsamp` |
//! | `dada` | header of DADA files | keys, as in `dada.utc_start` |

mod dada;
mod filterbank;
mod fits;
mod json;

use crate::archive::ReadAt;
use crate::error::reason;
use holdfast_catalog::{Attribute, Value};
use std::io;
use std::sync::Arc;

pub(crate) use json::{read_json, read_value};

/// Bytes of a header that are read at most, more than any sensible header has.
pub(crate) const MOST_HEADER: usize = 1 << 20;

/// Attributes of one extractor at most: bounds the operation in the catalog.
const MOST_ATTRIBUTES: usize = 256;

/// Bytes from which an extractor recognises its format.
const PROBE: usize = 4 << 10;

type Extract = dyn Fn(&dyn ReadAt, u64) -> io::Result<Vec<Attribute>> + Send + Sync;

/// Function that reads attributes from contents.
#[derive(Clone)]
pub struct Extractor {
    name: String,
    extract: Arc<Extract>,
}

impl Extractor {
    /// Extractor with a name, the prefix of its attributes. `extract` gets the contents and their size; it returns no
    /// attributes for files of another format, and an error only if the contents cannot be read.
    pub fn new(
        name: &str,
        extract: impl Fn(&dyn ReadAt, u64) -> io::Result<Vec<Attribute>> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.to_owned(), extract: Arc::new(extract) }
    }

    /// Extractor of a format that begins with a header.
    fn of_header(name: &str, read: fn(&[u8]) -> Option<Vec<Attribute>>, is_it: fn(&[u8]) -> bool) -> Self {
        Self::new(name, move |contents, size| {
            let probe = read_head(contents, size.min(PROBE as u64) as usize)?;
            if !is_it(&probe) {
                return Ok(Vec::new());
            }
            let head = read_head(contents, size.min(MOST_HEADER as u64) as usize)?;
            Ok(read(&head).unwrap_or_default())
        })
    }
}

/// Extractors of a server by their names.
pub(crate) struct Extractors(Vec<Extractor>);

impl Default for Extractors {
    fn default() -> Self {
        Self(vec![
            Extractor::of_header("fits", fits::read, fits::is_fits),
            Extractor::of_header("filterbank", filterbank::read, filterbank::is_filterbank),
            Extractor::of_header("dada", dada::read, dada::is_dada),
        ])
    }
}

impl Extractors {
    /// Adds extractors; one with a known name takes the place of that.
    pub(crate) fn with(mut self, more: Vec<Extractor>) -> Self {
        self.0.retain(|known| more.iter().all(|new| new.name != known.name));
        self.0.extend(more);
        self
    }

    /// Names of all extractors.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.0.iter().map(|extractor| extractor.name.as_str()).collect()
    }

    /// True if there is an extractor with the name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// Attributes that an extractor reads from contents. The error is the reason to try again.
    pub(crate) fn extract(
        &self,
        name: &str,
        contents: &dyn ReadAt,
        size: u64,
    ) -> Result<Vec<Attribute>, String> {
        let Some(extractor) = self.0.iter().find(|extractor| extractor.name == name) else {
            return Err(format!("cannot read attributes: there is no extractor '{name}'; configure another"));
        };
        let read = (extractor.extract)(contents, size);
        let read = read.map_err(|error| {
            format!("cannot read attributes with the extractor '{name}': {}; check the file", reason(&error))
        })?;
        Ok(accept(name, read))
    }
}

/// Attributes under names of the catalog, without those that it would refuse.
fn accept(source: &str, attributes: impl IntoIterator<Item = Attribute>) -> Vec<Attribute> {
    let named = attributes.into_iter().map(|attribute| {
        let name = plain_name(&attribute.name);
        (name.len(), Attribute { name: prefix_of(source) + &name, ..attribute })
    });
    let usable = named.filter(|(length, attribute)| *length > 0 && attribute.check().is_ok());
    usable.map(|(_, attribute)| attribute).take(MOST_ATTRIBUTES).collect()
}

/// Prefix of the names of attributes from an extractor or a driver.
pub(crate) fn prefix_of(source: &str) -> String {
    plain_name(source) + "."
}

/// Name that conditions write without brackets.
fn plain_name(name: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c if c.is_ascii_alphanumeric() || "_.:-".contains(c) => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

/// First bytes of contents; fewer only at their end.
fn read_head(contents: &dyn ReadAt, length: usize) -> io::Result<Vec<u8>> {
    let mut head = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match contents.read_at(&mut head[filled..], filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    head.truncate(filled);
    Ok(head)
}

/// Attribute with a unit, unless that is empty.
fn with_unit(name: impl Into<String>, value: Value, unit: &str) -> Attribute {
    let attribute = Attribute::new(name, value);
    if unit.is_empty() { attribute } else { attribute.with_unit(unit) }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    struct Bytes(Vec<u8>);

    impl ReadAt for Bytes {
        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let rest = self.0.get(offset as usize..).unwrap_or_default();
            // Short reads are allowed, and happen.
            let length = rest.len().min(buffer.len()).min(1000);
            buffer[..length].copy_from_slice(&rest[..length]);
            Ok(length)
        }
    }

    pub(crate) fn extract(name: &str, bytes: &[u8]) -> Vec<Attribute> {
        Extractors::default().extract(name, &Bytes(bytes.to_vec()), bytes.len() as u64).unwrap()
    }

    fn headers() -> [(&'static str, Vec<u8>); 3] {
        [
            ("fits", fits::tests::header()),
            ("filterbank", filterbank::tests::header()),
            ("dada", dada::tests::header()),
        ]
    }

    #[test]
    fn a_file_of_another_format_has_no_attributes() {
        for (name, _) in headers() {
            for (other, header) in headers() {
                assert_eq!(extract(name, &header).is_empty(), name != other, "{name} on {other}");
            }
            assert!(extract(name, b"").is_empty() && extract(name, &[0; 9000]).is_empty(), "{name}");
        }
    }

    #[test]
    fn names_are_those_of_conditions_and_bad_attributes_are_left_out() {
        let many = (0..300).map(|number| Attribute::new(format!("A {number}Ü"), 1));
        let bad = [Attribute::new("", 1), Attribute::new("n", "a\0"), Attribute::new("n".repeat(300), 1)];
        let accepted = accept("x", bad.into_iter().chain(many));
        assert_eq!((accepted.len(), accepted[0].name.as_str()), (256, "x.a_0_"));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..6000)) {
            for (name, _) in headers() {
                extract(name, &bytes);
            }
            let _ = read_json("x", &bytes);
        }

        #[test]
        fn mutated_headers_give_attributes_that_the_catalog_takes(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
            cut in any::<prop::sample::Index>(),
        ) {
            for (name, mut header) in headers() {
                for (place, byte) in &changes {
                    let at = place.index(header.len());
                    header[at] = *byte;
                }
                for bytes in [&header[..], &header[..cut.index(header.len())]] {
                    for attribute in extract(name, bytes) {
                        prop_assert!(attribute.check().is_ok());
                    }
                }
            }
        }
    }
}
