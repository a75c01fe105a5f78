//! Records of a ROS bag as bytes: a header of named fields, and data.
//!
//! ```text
//! header length (4) │ header: fields │ data length (4) │ data        field: length (4) │ name '=' value
//! ```
//!
//! All integers are little-endian.

use std::collections::BTreeMap;

/// Kinds of records, in the field `op`.
pub(crate) mod op {
    pub(crate) const MESSAGE: u8 = 0x02;
    pub(crate) const BAG_HEADER: u8 = 0x03;
    pub(crate) const CHUNK: u8 = 0x05;
    pub(crate) const CHUNK_INFO: u8 = 0x06;
    pub(crate) const CONNECTION: u8 = 0x07;
}

/// Fields of a record's header.
#[derive(Debug)]
pub(crate) struct Fields<'a>(Vec<(&'a [u8], &'a [u8])>);

/// Number of fields at most: ROS writes six.
const MOST_FIELDS: usize = 256;

impl<'a> Fields<'a> {
    /// Parses the fields of a header.
    pub(crate) fn parse(mut bytes: &'a [u8]) -> Result<Self, String> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk().ok_or("a field of its header is cut off")?;
            let (field, rest) = split(rest, u32::from_le_bytes(*length))
                .ok_or("a field of its header is longer than the header")?;
            let equals = field.iter().position(|byte| *byte == b'=');
            let equals = equals.ok_or("a field of its header has no name")?;
            if fields.len() == MOST_FIELDS {
                return Err(format!("its header has more than {MOST_FIELDS} fields"));
            }
            fields.push((&field[..equals], &field[equals + 1..]));
            bytes = rest;
        }
        Ok(Self(fields))
    }

    /// Value of a field.
    pub(crate) fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.0.iter().find(|(known, _)| *known == name.as_bytes()).map(|(_, value)| *value)
    }

    /// Kind of the record.
    pub(crate) fn op(&self) -> Result<u8, String> {
        match self.get("op") {
            Some([op]) => Ok(*op),
            _ => Err("its header has no field `op` of one byte".to_owned()),
        }
    }

    fn fixed<const N: usize>(&self, name: &str) -> Result<[u8; N], String> {
        let value = self.get(name).and_then(|value| value.try_into().ok());
        value.ok_or_else(|| format!("its header has no field `{name}` of {N} bytes"))
    }

    /// Value of a field of 32 bits.
    pub(crate) fn u32(&self, name: &str) -> Result<u32, String> {
        self.fixed(name).map(u32::from_le_bytes)
    }

    /// Value of a field of 64 bits.
    pub(crate) fn u64(&self, name: &str) -> Result<u64, String> {
        self.fixed(name).map(u64::from_le_bytes)
    }

    /// Value of a time field: seconds and nanoseconds, in nanoseconds since 1970.
    pub(crate) fn time(&self, name: &str) -> Result<u64, String> {
        let [s0, s1, s2, s3, n0, n1, n2, n3] = self.fixed(name)?;
        let seconds = u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
        let nanoseconds = u64::from(u32::from_le_bytes([n0, n1, n2, n3]));
        Ok(seconds * 1_000_000_000 + nanoseconds)
    }

    /// Value of a text field.
    pub(crate) fn text(&self, name: &str) -> Result<String, String> {
        let value = self.get(name).ok_or_else(|| format!("its header has no field `{name}`"))?;
        text(name, value)
    }
}

fn text(name: &str, value: &[u8]) -> Result<String, String> {
    String::from_utf8(value.to_vec()).map_err(|_| format!("its field `{name}` is not UTF-8"))
}

fn split(bytes: &[u8], length: u32) -> Option<(&[u8], &[u8])> {
    bytes.split_at_checked(usize::try_from(length).ok()?)
}

/// The record at the beginning of some bytes: header, data, and the bytes behind it.
pub(crate) fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (header, rest) = split(rest, u32::from_le_bytes(*length))?;
    let (length, rest) = rest.split_first_chunk()?;
    let (data, rest) = split(rest, u32::from_le_bytes(*length))?;
    Some((header, data, rest))
}

/// Connection: the messages of one publisher on one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) id: u32,
    /// Topic in the bag.
    pub(crate) topic: String,
    /// Type of the messages, as `std_msgs/String`.
    pub(crate) kind: String,
    /// Definition of the type, with those of all types that it contains.
    pub(crate) definition: Vec<u8>,
    /// All other fields: `md5sum`, and `callerid`, `latching` and more where the bag has them.
    pub(crate) metadata: BTreeMap<String, String>,
}

impl Connection {
    /// Parses the header and data of a connection record.
    pub(crate) fn parse(header: &Fields<'_>, data: &[u8]) -> Result<Self, String> {
        let fields = Fields::parse(data)?;
        let topic = header.text("topic")?;
        let mut metadata = BTreeMap::new();
        for (name, value) in &fields.0 {
            let name = text("name", name)?;
            let value = match &*name {
                "type" | "message_definition" => continue,
                // A topic that was renamed keeps the name that it was published with.
                "topic" if *value == topic.as_bytes() => continue,
                _ => text(&name, value)?,
            };
            metadata.insert(name, value);
        }
        let definition = fields.get("message_definition").unwrap_or_default().to_vec();
        Ok(Self { id: header.u32("conn")?, topic, kind: fields.text("type")?, definition, metadata })
    }
}
