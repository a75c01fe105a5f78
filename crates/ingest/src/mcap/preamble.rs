//! Preamble of an MCAP stream: header, schemas and channels of a file, as the beginning of a file of its own.

use super::{Fields, MAGIC, Message, Record, opcode};
use super::{McapDamage, McapError, McapReader};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

/// What messages need, by number: the beginning of an MCAP file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McapPreamble {
    header: Vec<u8>,
    schemas: BTreeMap<u16, Vec<u8>>,
    channels: BTreeMap<u16, Vec<u8>>,
    bytes: usize,
}

/// What a look through a file found.
#[derive(Debug, Default)]
pub struct McapScanReport {
    /// Whole messages.
    pub messages: u64,
    /// Attachments, metadata and records of unknown types, which are not replayed.
    pub left_out: u64,
    /// Messages whose log or publish time is after 2262, the end of nanoseconds in 63 bits.
    pub late: u64,
    /// Where the file stops being readable, if it does.
    pub broke: Option<McapError>,
}

impl McapPreamble {
    fn header(&mut self, content: &[u8]) {
        if self.header.is_empty() {
            self.bytes += content.len();
            self.header = content.to_vec();
        }
    }

    /// Adds the schema or channel of a record that [`Self::check`] accepts.
    fn add(&mut self, record: &Record<'_>) {
        let (known, content) = match record {
            Record::Header(content) => return self.header(content),
            Record::Schema(content) => (&mut self.schemas, content),
            Record::Channel(content) => (&mut self.channels, content),
            Record::Message(_) | Record::Other => return,
        };
        if let Some(id) = Fields(content).u16()
            && !known.contains_key(&id)
        {
            self.bytes += content.len() + 9;
            known.insert(id, content.to_vec());
        }
    }

    /// Checks a record against the schemas and channels of all records before it. A replay stops at the record at which
    /// the scan stopped, since the preamble has nothing behind that.
    pub fn check(&self, record: &Record<'_>) -> Result<(), McapDamage> {
        match *record {
            Record::Header(content) => header(content).ok_or(McapDamage::Malformed(opcode::HEADER)),
            Record::Schema(content) => {
                let id = schema(content).ok_or(McapDamage::Malformed(opcode::SCHEMA))?;
                // The same again, as each chunk may have it.
                match self.schemas.get(&id) {
                    Some(known) if known != content => Err(McapDamage::SchemaTwice(id)),
                    _ => Ok(()),
                }
            }
            Record::Channel(content) => {
                let (channel, schema) = channel(content).ok_or(McapDamage::Malformed(opcode::CHANNEL))?;
                if schema != 0 && !self.schemas.contains_key(&schema) {
                    return Err(McapDamage::NoSchema { channel, schema });
                }
                if has_key_twice(content) {
                    return Err(McapDamage::KeyTwice(channel));
                }
                match self.channels.get(&channel) {
                    Some(known) if known != content => Err(McapDamage::ChannelTwice(channel)),
                    _ => Ok(()),
                }
            }
            Record::Message(Message { channel, .. }) if !self.channels.contains_key(&channel) => {
                Err(McapDamage::NoChannel(channel))
            }
            Record::Message(_) | Record::Other => Ok(()),
        }
    }

    /// As bytes: those of a file that has no messages and no end.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let mut push = |kind: u8, content: &[u8]| {
            bytes.push(kind);
            bytes.extend((content.len() as u64).to_le_bytes());
            bytes.extend(content);
        };
        push(opcode::HEADER, &self.header);
        self.schemas.values().for_each(|content| push(opcode::SCHEMA, content));
        self.channels.values().for_each(|content| push(opcode::CHANNEL, content));
        bytes
    }

    /// The topic of a channel.
    pub fn topic(&self, channel: u16) -> Option<&str> {
        let mut fields = Fields(self.channels.get(&channel)?);
        let _ids = fields.u32();
        fields.text()
    }
}

/// Checks the fields of a header: profile and library.
fn header(content: &[u8]) -> Option<()> {
    let mut fields = Fields(content);
    fields.text().and(fields.text()).map(|_| ())
}

fn schema(content: &[u8]) -> Option<u16> {
    let mut fields = Fields(content);
    let id = fields.u16().filter(|id| *id != 0)?;
    let _name = (fields.text()?, fields.text()?);
    fields.bytes().map(|_| id)
}

/// A channel's number and its schema's.
fn channel(content: &[u8]) -> Option<(u16, u16)> {
    let mut fields = Fields(content);
    let ids = (fields.u16()?, fields.u16()?);
    let _topic_and_encoding = (fields.text()?, fields.text()?);
    let mut metadata = Fields(fields.bytes()?);
    while !metadata.0.is_empty() {
        let _pair = (metadata.text()?, metadata.text()?);
    }
    Some(ids)
}

/// Tells if the metadata of a well-formed channel repeats a key, which readers refuse.
fn has_key_twice(content: &[u8]) -> bool {
    let mut fields = Fields(content);
    let _ids_topic_and_encoding = (fields.u32(), fields.bytes(), fields.bytes());
    let mut metadata = Fields(fields.bytes().unwrap_or_default());
    let mut keys = BTreeSet::new();
    while let (Some(key), Some(_)) = (metadata.bytes(), metadata.bytes()) {
        if !keys.insert(key) {
            return true;
        }
    }
    false
}

/// Looks through a whole file: makes its preamble, and counts. What is broken ends it, with all that is whole before that;
/// `Err` where that is nothing, or the preamble has more than `limit` bytes.
pub fn scan(input: impl Read, limit: usize) -> Result<(McapPreamble, McapScanReport), McapError> {
    let mut reader = McapReader::new(input);
    let (mut preamble, mut report) = (McapPreamble::default(), McapScanReport::default());
    report.broke = loop {
        let checked = match reader.next_record() {
            Ok(None) => break None,
            Ok(Some(record)) => preamble.check(&record).map(|()| {
                preamble.add(&record);
                report.count(&record);
            }),
            Err(error @ (McapError::Io { .. } | McapError::Broken { damage: McapDamage::NotMcap, .. })) => {
                return Err(error);
            }
            Err(error) => break Some(error),
        };
        let at_byte = reader.position();
        if let Err(damage) = checked {
            break Some(McapError::Broken { at_byte, damage });
        }
        if preamble.bytes > limit {
            return Err(McapError::Broken { at_byte, damage: McapDamage::Preamble { limit } });
        }
    };
    // A file without a header has one that says nothing in its export.
    preamble.header(&[0; 8]);
    Ok((preamble, report))
}

impl McapScanReport {
    fn count(&mut self, record: &Record<'_>) {
        match record {
            Record::Message(message) => {
                self.messages += 1;
                self.late += u64::from(message.is_late());
            }
            Record::Other => self.left_out += 1,
            Record::Header(_) | Record::Schema(_) | Record::Channel(_) => {}
        }
    }
}
