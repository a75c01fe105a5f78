//! MCAP: one channel a stream, no schema, the payloads as messages; preambles as attachments, losses as metadata
//! records at the end. Written front to back, so that it goes through a pipe. What was replayed from an MCAP file has the
//! profile, channels, schemas, times and numbers again that it had there.

use crate::export::{happened, place};
use crate::output::{Output, failed};
use holdfast_attributes::given;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::times;
use holdfast_base::{StreamId, Timestamp};
use holdfast_format::{Flags, Gap};
use holdfast_ingest::mcap::{MAGIC, McapDamage, McapError as Unreadable, McapReader, Record as Replayed};
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use mcap::read::parse_record;
use mcap::records::{Channel, MessageHeader, Metadata, Record, SchemaHeader, op};
use mcap::write::NoSeek;
use mcap::{Attachment, McapError, WriteOptions, Writer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Bytes of a chunk, the unit that readers load.
const CHUNK: u64 = 4 << 20;

/// Losses that are told one by one; more are counted.
const MOST_GAPS: usize = 10_000;

/// An export of any streams.
pub(crate) struct Mcap {
    writer: LazyWriter,
    streams: Vec<StreamId>,
    names: Vec<String>,
    framings: Vec<BTreeMap<String, String>>,
    /// The channel of each stream, once it has one.
    channels: Vec<Option<u16>>,
    /// Of each, what was replayed from a file: the channels that it had there, and those that they are here.
    replayed: Vec<BTreeMap<u16, u16>>,
    preambles: Vec<Vec<u8>>,
    gaps: Vec<BTreeMap<String, String>>,
    more_gaps: u64,
}

impl Mcap {
    pub(crate) fn new(streams: &[StreamStatus], output: Output) -> Self {
        let framing = |stream: &StreamStatus| {
            BTreeMap::from([
                ("framing".to_owned(), stream.framing.clone()),
                ("kind".to_owned(), stream.kind.name().to_owned()),
            ])
        };
        Self {
            writer: LazyWriter::Output(output),
            streams: streams.iter().map(|stream| stream.id).collect(),
            names: streams.iter().map(|stream| stream.name.clone()).collect(),
            framings: streams.iter().map(framing).collect(),
            channels: vec![None; streams.len()],
            replayed: vec![BTreeMap::new(); streams.len()],
            preambles: vec![Vec::new(); streams.len()],
            gaps: Vec::new(),
            more_gaps: 0,
        }
    }

    pub(crate) fn item(&mut self, item: &Item<'_>) -> Result<()> {
        match item {
            Item::Preamble { stream, version, bytes } => self.preamble(*stream, *version, bytes),
            Item::Element(element) => self.message(element),
            Item::Gap { stream, ordinal, gap } => {
                self.gap(*stream, ordinal.0, gap);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn preamble(&mut self, stream: StreamId, version: u32, bytes: &[u8]) -> Result<()> {
        let Some(place) = place(&self.streams, stream) else { return Ok(()) };
        if self.preambles[place] == bytes {
            return Ok(());
        }
        self.preambles[place] = bytes.to_vec();
        if bytes.starts_with(&MAGIC)
            && let Some(file) = ReplayedFile::parse(bytes)
        {
            return self.replayed(place, &file);
        }
        let attachment = Attachment {
            log_time: 0,
            create_time: 0,
            name: format!("{}.preamble.{version}", self.names[place]),
            media_type: "application/octet-stream".to_owned(),
            data: Cow::Borrowed(bytes),
        };
        self.writer.begun("")?.attach(&attachment).map_err(wrong)
    }

    /// Writes the schemas and channels of a file that was replayed, under their own numbers where these are free.
    fn replayed(&mut self, place: usize, file: &ReplayedFile) -> Result<()> {
        let profile = if self.streams.len() == 1 { &file.profile } else { "" };
        let writer = self.writer.begun(profile)?;
        let (mut schemas, mut channels) = (BTreeMap::from([(0, 0)]), BTreeMap::new());
        for (SchemaHeader { id, name, encoding }, data) in &file.schemas {
            let added = match writer.add_schema_with_id(*id, name, encoding, data) {
                Err(McapError::ConflictingSchemas(_)) => writer.add_schema(name, encoding, data),
                added => added,
            };
            schemas.insert(*id, added.map_err(wrong)?);
        }
        for Channel { id, schema_id, topic, message_encoding, metadata } in &file.channels {
            let schema = schemas.get(schema_id).copied().unwrap_or(0);
            let added = match writer.add_channel_with_id(*id, schema, topic, message_encoding, metadata) {
                Err(McapError::ConflictingChannels(_)) => {
                    writer.add_channel(schema, topic, message_encoding, metadata)
                }
                added => added,
            };
            channels.insert(*id, added.map_err(wrong)?);
        }
        self.replayed[place] = channels;
        Ok(())
    }

    /// The channel of a stream.
    fn channel(&mut self, place: usize) -> Result<u16> {
        if let Some(channel) = self.channels[place] {
            return Ok(channel);
        }
        let writer = self.writer.begun("")?;
        let added = writer.add_channel(0, &self.names[place], "", &self.framings[place]);
        let channel = added.map_err(wrong)?;
        self.channels[place] = Some(channel);
        Ok(channel)
    }

    fn message(&mut self, element: &Element<'_>) -> Result<()> {
        let Some(place) = place(&self.streams, element.stream) else { return Ok(()) };
        if let Some(header) = replayed_header(element, &self.replayed[place]) {
            return self.writer.begun("")?.write_to_known_channel(&header, element.data).map_err(wrong);
        }
        let header = MessageHeader {
            channel_id: self.channel(place)?,
            // MCAP has 32 bits for it; readers that need more count.
            sequence: element.ordinal.0 as u32,
            log_time: nanos(happened(element)),
            publish_time: nanos(element.arrival),
        };
        self.writer.begun("")?.write_to_known_channel(&header, element.data).map_err(wrong)
    }

    fn gap(&mut self, stream: StreamId, ordinal: u64, gap: &Gap) {
        let Some(place) = place(&self.streams, stream) else { return };
        if self.gaps.len() == MOST_GAPS {
            self.more_gaps += 1;
            return;
        }
        let known = |count: Option<u64>| count.map_or("unknown".to_owned(), |count| count.to_string());
        self.gaps.push(BTreeMap::from(
            [
                ("stream", self.names[place].clone()),
                ("ordinal", ordinal.to_string()),
                ("ordinals", gap.ordinals.to_string()),
                ("elements", known(gap.elements)),
                ("bytes", known(gap.bytes)),
                ("first", times::rfc3339(gap.first)),
                ("last", times::rfc3339(gap.last)),
                ("cause", gap.cause.name().to_owned()),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        ));
    }

    pub(crate) fn finish(mut self) -> Result<Output> {
        // A stream that had nothing to say is a channel all the same.
        for place in 0..self.streams.len() {
            if self.replayed[place].is_empty() {
                self.channel(place)?;
            }
        }
        let mut writer = self.writer.into_begun()?;
        for metadata in self.gaps {
            writer.write_metadata(&Metadata { name: "gap".to_owned(), metadata }).map_err(wrong)?;
        }
        if self.more_gaps > 0 {
            let metadata = BTreeMap::from([("count".to_owned(), self.more_gaps.to_string())]);
            writer.write_metadata(&Metadata { name: "more gaps".to_owned(), metadata }).map_err(wrong)?;
        }
        writer.finish().map_err(wrong)?;
        Ok(writer.into_inner().into_inner())
    }
}

/// Header of a replayed message as in its file, where `channels` are the numbers of its channels: there and here. `None` for elements that
/// were not replayed.
pub fn replayed_header(element: &Element<'_>, channels: &BTreeMap<u16, u16>) -> Option<MessageHeader> {
    if channels.is_empty() || !element.flags.has(Flags::HEADER) {
        return None;
    }
    let mut values = given::values(element.meta);
    let _topic = values.next()?;
    let mut number = || Some(values.next()?.and_then(|value| value.try_into().ok()).map(u64::from_le_bytes));
    let (sequence, publish_time, channel) = (number()?, number()?, number()??);
    // Times that attributes cannot have follow.
    let late = number().flatten().zip(number().flatten());
    let (log_time, publish_time) =
        late.unwrap_or((nanos(happened(element)), publish_time.unwrap_or_default()));
    Some(MessageHeader {
        channel_id: *channels.get(&u16::try_from(channel).ok()?)?,
        sequence: sequence? as u32,
        log_time,
        publish_time,
    })
}

/// Writer whose header is written with its first record, since a replayed file's profile is known by then.
enum LazyWriter {
    Output(Output),
    Begun(Box<Writer<NoSeek<Output>>>),
    /// The header could not be written.
    Failed,
}

impl LazyWriter {
    /// The writer; with this profile in the header, if nothing is written yet.
    fn begun(&mut self, profile: &str) -> Result<&mut Writer<NoSeek<Output>>> {
        if let Self::Output(_) = self
            && let Self::Output(output) = std::mem::replace(self, Self::Failed)
        {
            let library = concat!("holdfast ", env!("CARGO_PKG_VERSION"));
            let options = WriteOptions::library(WriteOptions::new(), library)
                .profile(profile)
                .compression(None)
                .chunk_size(Some(CHUNK))
                .disable_seeking(true);
            *self = Self::Begun(Box::new(options.create(NoSeek::new(output)).map_err(wrong)?));
        }
        match self {
            Self::Begun(writer) => Ok(writer),
            Self::Output(_) | Self::Failed => Err(Failure::failed("cannot write MCAP: its header failed")),
        }
    }

    fn into_begun(mut self) -> Result<Box<Writer<NoSeek<Output>>>> {
        self.begun("")?;
        match self {
            Self::Begun(writer) => Ok(writer),
            Self::Output(_) | Self::Failed => Err(Failure::failed("cannot write MCAP: its header failed")),
        }
    }
}

/// Profile, schemas and channels of a file that was replayed, from the preamble of its stream.
struct ReplayedFile {
    profile: String,
    schemas: Vec<(SchemaHeader, Vec<u8>)>,
    channels: Vec<Channel>,
}

impl ReplayedFile {
    /// Reads a preamble; `None` where it is not that of a replayed file.
    fn parse(preamble: &[u8]) -> Option<Self> {
        let mut file = Self { profile: String::new(), schemas: Vec::new(), channels: Vec::new() };
        let mut reader = McapReader::new(preamble);
        loop {
            let (kind, content) = match reader.next_record() {
                Ok(Some(Replayed::Header(content))) => (op::HEADER, content),
                Ok(Some(Replayed::Schema(content))) => (op::SCHEMA, content),
                Ok(Some(Replayed::Channel(content))) => (op::CHANNEL, content),
                // A preamble has no record of the end of data.
                Err(Unreadable::Broken { at_byte, damage: McapDamage::Cut })
                    if at_byte == preamble.len() as u64 =>
                {
                    return Some(file);
                }
                Ok(Some(Replayed::Message(_) | Replayed::Other) | None) | Err(_) => return None,
            };
            match parse_record(kind, content) {
                Ok(Record::Header(header)) => file.profile = header.profile,
                Ok(Record::Schema { header, data }) => file.schemas.push((header, data.into_owned())),
                Ok(Record::Channel(channel)) => file.channels.push(channel),
                // Recorders before this version left an empty header where the file had none.
                Err(_) if kind == op::HEADER => {}
                Ok(_) | Err(_) => return None,
            }
        }
    }
}

/// MCAP counts from 1970 without a sign.
fn nanos(time: Timestamp) -> u64 {
    u64::try_from(time.0).unwrap_or(0)
}

fn wrong(error: McapError) -> Failure {
    match error {
        McapError::Io(error) => failed(&error),
        other => {
            Failure::failed(format_args!("cannot write MCAP: {other}")).advice("choose another --format")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use crate::sample::{START, element, export, gap, packet, stream};
    use holdfast_format::StreamKind;
    use mcap::{MessageStream, Summary};

    fn streams() -> [StreamStatus; 2] {
        [stream(1, "adc", StreamKind::Bytes, "fixed:3"), stream(2, "eth0", StreamKind::Packets, "whole")]
    }

    #[test]
    fn every_stream_is_a_channel_and_every_element_a_message() {
        let of_two = Element { stream: StreamId(2), ..packet(1) };
        let large = vec![5u8; 3 * CHUNK as usize];
        let items = [
            Item::Preamble { stream: StreamId(1), version: 1, bytes: b"HEAD" },
            Item::Element(element(0, b"one")),
            Item::Element(of_two),
            gap(),
            Item::Preamble { stream: StreamId(1), version: 1, bytes: b"HEAD" },
            Item::Element(element((1 << 32) + 7, &large)),
        ];
        let file = export(Format::Mcap, &streams(), &items).unwrap();
        let messages: Vec<_> = MessageStream::new(&file).unwrap().map(Result::unwrap).collect();
        let told: Vec<_> = messages.iter().map(|one| (one.channel.topic.as_str(), one.sequence)).collect();
        assert_eq!(told, [("adc", 0), ("eth0", 1), ("adc", 7)]);
        assert_eq!((messages[0].log_time, messages[0].publish_time), (START as u64, START as u64));
        assert_eq!(messages[1].log_time, START as u64 - 4, "the event time, where there is one");
        assert_eq!(messages[1].publish_time, START as u64 + 1_000_000_000);
        assert!(*messages[2].data == *large);
        assert_eq!(messages[0].channel.metadata["framing"], "fixed:3");
        let summary = Summary::read(&file).unwrap().unwrap();
        assert_eq!(summary.channels.len(), 2);
        assert_eq!(summary.attachment_indexes.len(), 1, "the same preamble twice is one attachment");
        assert_eq!(summary.attachment_indexes[0].name, "adc.preamble.1");
        assert_eq!(summary.attachment_indexes[0].data_size, 4);
        let gap = mcap::read::metadata(&file, &summary.metadata_indexes[0]).unwrap();
        assert_eq!((gap.metadata["stream"].as_str(), gap.metadata["ordinal"].as_str()), ("adc", "7"));
        assert_eq!((gap.metadata["elements"].as_str(), gap.metadata["bytes"].as_str()), ("3", "unknown"));
    }

    #[test]
    fn losses_beyond_the_limit_are_counted() {
        let items = vec![gap(); MOST_GAPS + 5];
        let file = export(Format::Mcap, &streams(), &items).unwrap();
        let summary = Summary::read(&file).unwrap().unwrap();
        let last = summary.metadata_indexes.last().unwrap();
        assert_eq!((last.name.as_str(), summary.metadata_indexes.len()), ("more gaps", MOST_GAPS + 1));
        assert_eq!(mcap::read::metadata(&file, last).unwrap().metadata["count"], "5");
    }
}
