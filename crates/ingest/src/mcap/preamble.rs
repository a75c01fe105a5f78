//! Preamble of an MCAP stream: header, schemas and channels of a file, as the beginning of a file of its own.

use super::{Fields, MAGIC, Record, opcode};
use super::{McapDamage, McapError, McapReader};
use std::collections::BTreeMap;
use std::io::Read;

/// What messages need, by number: the beginning of an MCAP file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McapPreamble {
    header: Vec<u8>,
    schemas: BTreeMap<u16, Vec<u8>>,
    channels: BTreeMap<u16, Vec<u8>>,
    bytes: usize,
}

/// The topics of channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channels(BTreeMap<u16, String>);

impl Channels {
    /// A channel's.
    pub fn topic(&self, channel: u16) -> Option<&str> {
        self.0.get(&channel).map(String::as_str)
    }
}

/// What a look through a file found.
#[derive(Debug, Default)]
pub struct McapScanReport {
    /// Whole messages.
    pub messages: u64,
    /// Attachments and metadata, which are not replayed.
    pub left_out: u64,
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

    fn schema(&mut self, content: &[u8]) -> Result<(), McapDamage> {
        let id = schema(content).ok_or(McapDamage::Malformed(opcode::SCHEMA))?;
        // The same again, as each chunk may have it.
        once(&mut self.schemas, &mut self.bytes, id, content)
    }

    fn channel(&mut self, content: &[u8]) -> Result<(), McapDamage> {
        let (id, schema, _) = channel(content).ok_or(McapDamage::Malformed(opcode::CHANNEL))?;
        if schema != 0 && !self.schemas.contains_key(&schema) {
            return Err(McapDamage::Malformed(opcode::CHANNEL));
        }
        once(&mut self.channels, &mut self.bytes, id, content)
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

    /// The topics of its channels.
    pub fn channels(&self) -> Channels {
        let topic = |(id, content): (&u16, &Vec<u8>)| Some((*id, channel(content)?.2.to_owned()));
        Channels(self.channels.iter().filter_map(topic).collect())
    }
}

fn once(
    known: &mut BTreeMap<u16, Vec<u8>>,
    bytes: &mut usize,
    id: u16,
    content: &[u8],
) -> Result<(), McapDamage> {
    if let Some(before) = known.get(&id) {
        return if before == content { Ok(()) } else { Err(McapDamage::Twice) };
    }
    *bytes += content.len() + 9;
    known.insert(id, content.to_vec());
    Ok(())
}

fn schema(content: &[u8]) -> Option<u16> {
    let mut fields = Fields(content);
    let id = fields.u16().filter(|id| *id != 0)?;
    let _name = (fields.text()?, fields.text()?);
    fields.bytes().map(|_| id)
}

/// A channel's number, its schema's, and its topic.
fn channel(content: &[u8]) -> Option<(u16, u16, &str)> {
    let mut fields = Fields(content);
    let (id, schema, topic) = (fields.u16()?, fields.u16()?, fields.text()?);
    let _encoding = fields.text()?;
    let mut metadata = Fields(fields.bytes()?);
    while !metadata.0.is_empty() {
        let _pair = (metadata.text()?, metadata.text()?);
    }
    Some((id, schema, topic))
}

/// Looks through a whole file: makes its preamble, and counts. What is broken ends it, with all that is whole before that;
/// `Err` where that is nothing, or the preamble has more than `limit` bytes.
pub fn scan(input: impl Read, limit: usize) -> Result<(McapPreamble, McapScanReport), McapError> {
    let mut reader = McapReader::new(input);
    let (mut preamble, mut report) = (McapPreamble::default(), McapScanReport::default());
    loop {
        let (record, kept) = match reader.next_record() {
            Ok(None) => return Ok((preamble, report)),
            Ok(Some(Record::Message(message))) => (
                true,
                match preamble.channels.get(&message.channel) {
                    Some(_) => Ok(()),
                    None => Err(McapDamage::NoChannel),
                },
            ),
            Ok(Some(Record::Header(content))) => {
                preamble.header(content);
                (false, Ok(()))
            }
            Ok(Some(Record::Schema(content))) => (false, preamble.schema(content)),
            Ok(Some(Record::Channel(content))) => (false, preamble.channel(content)),
            Ok(Some(Record::Other)) => {
                report.left_out += 1;
                (false, Ok(()))
            }
            Err(error @ (McapError::Io { .. } | McapError::Broken { damage: McapDamage::NotMcap, .. })) => {
                return Err(error);
            }
            Err(error) => {
                report.broke = Some(error);
                return Ok((preamble, report));
            }
        };
        let at_byte = reader.position();
        if let Err(damage) = kept {
            report.broke = Some(McapError::Broken { at_byte, damage });
            return Ok((preamble, report));
        }
        report.messages += u64::from(record);
        if preamble.bytes > limit {
            return Err(McapError::Broken { at_byte, damage: McapDamage::Preamble { limit } });
        }
    }
}
