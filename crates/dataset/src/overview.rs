//! Overview of an MCAP file without a manifest: channels, counts and times, from its summary or by a scan.

use crate::error::DatasetError;
use crate::reader::{Summary, records, summary};
use crate::records::{HEAD, record};
use crate::scan::{Scan, Step};
use crate::storage::RangeRead;
use mcap::parse_record;
use mcap::records::{MessageHeader, Record, Statistics, op};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a chunk at most that a scan reads.
const MOST_CHUNK: u64 = 2 << 30;

/// Channel of an MCAP file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelOverview {
    /// Topic of its messages.
    pub topic: String,
    /// Encoding of its messages.
    pub encoding: String,
    /// Name of the schema; empty without one.
    pub schema: String,
    /// Number of its messages.
    pub messages: u64,
}

/// Overview of an MCAP file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct McapOverview {
    /// Bytes of the file.
    pub bytes: u64,
    /// Channels in the order of their ids.
    pub channels: Vec<ChannelOverview>,
    /// Number of all messages.
    pub messages: u64,
    /// First and last log time, in nanoseconds since 1970 (UTC).
    pub times_ns: Option<(u64, u64)>,
    /// Number of its chunks.
    pub chunks: u64,
    /// Compressions of the chunks.
    pub compressions: Vec<String>,
    /// True if the whole file was scanned, since its summary lacks the counts.
    pub scanned: bool,
}

impl McapOverview {
    /// Reads the summary of a file, or all of it where the summary has no statistics.
    pub fn of(file: &dyn RangeRead) -> Result<Self, DatasetError> {
        match summary(file) {
            Ok(found) if found.statistics.is_some() => Ok(Self::new(file, found, false)),
            Ok(_) | Err(DatasetError::NotMcap(_)) => Ok(Self::new(file, scanned(file)?, true)),
            Err(error) => Err(error),
        }
    }

    fn new(file: &dyn RangeRead, found: Summary, scanned: bool) -> Self {
        let statistics = found.statistics.unwrap_or_default();
        let schemas: BTreeMap<u16, &str> =
            found.schemas.iter().map(|schema| (schema.id, schema.name.as_str())).collect();
        let channels: BTreeMap<u16, ChannelOverview> = found
            .channels
            .iter()
            .map(|channel| {
                let messages =
                    statistics.channel_message_counts.get(&channel.id).copied().unwrap_or_default();
                let overview = ChannelOverview {
                    topic: channel.topic.clone(),
                    encoding: channel.message_encoding.clone(),
                    schema: schemas.get(&channel.schema_id).copied().unwrap_or_default().to_owned(),
                    messages,
                };
                (channel.id, overview)
            })
            .collect();
        let compressions: BTreeSet<&str> =
            found.chunks.iter().map(|chunk| chunk.compression.as_str()).collect();
        let named = |name: &str| if name.is_empty() { "none".to_owned() } else { name.to_owned() };
        let has_messages = statistics.message_count > 0;
        Self {
            bytes: file.size(),
            channels: channels.into_values().collect(),
            messages: statistics.message_count,
            times_ns: has_messages.then_some((statistics.message_start_time, statistics.message_end_time)),
            chunks: u64::from(statistics.chunk_count),
            compressions: compressions.into_iter().map(named).collect(),
            scanned,
        }
    }
}

/// Summary of a file by a scan: up to its end, or to the record that is cut off.
fn scanned(file: &dyn RangeRead) -> Result<Summary, DatasetError> {
    let none = || DatasetError::NotMcap("it does not begin with the MCAP magic".to_owned());
    let mut scan = Scan::new(file)?.ok_or_else(none)?;
    let (mut found, mut statistics) = (Summary::default(), Statistics::default());
    while let Step::Record(place) = scan.next()? {
        let is_read = matches!(place.opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE | op::CHUNK);
        if matches!(place.opcode, op::DATA_END | op::FOOTER) {
            break;
        }
        if !is_read || place.length > MOST_CHUNK {
            continue;
        }
        let bytes = scan.record(place)?;
        if place.opcode != op::CHUNK {
            add(&mut found, &mut statistics, &bytes);
            continue;
        }
        let damaged =
            |cause: String| DatasetError::damaged(format!("the chunk at byte {}", place.at), &cause);
        let records = records(&bytes).map_err(damaged)?;
        add(&mut found, &mut statistics, &records);
        statistics.chunk_count += 1;
        if let Ok(Record::Chunk { header, .. }) = parse_record(op::CHUNK, &bytes[HEAD..])
            && !found.chunks.iter().any(|known| known.compression == header.compression)
        {
            // One entry a compression is enough for an overview.
            found.chunks.push(mcap::records::ChunkIndex {
                message_start_time: 0,
                message_end_time: 0,
                chunk_start_offset: place.at,
                chunk_length: place.length,
                message_index_offsets: BTreeMap::new(),
                message_index_length: 0,
                compression: header.compression,
                compressed_size: header.compressed_size,
                uncompressed_size: header.uncompressed_size,
            });
        }
    }
    found.statistics = Some(statistics);
    Ok(found)
}

/// Adds records to a summary.
fn add(found: &mut Summary, statistics: &mut Statistics, mut records: &[u8]) {
    while let Some((opcode, content)) = record(records) {
        records = &records[HEAD + content.len()..];
        match parse_record(opcode, content) {
            Ok(Record::Schema { header, .. }) if !found.schemas.iter().any(|known| known.id == header.id) => {
                found.schemas.push(header);
            }
            Ok(Record::Channel(channel)) if !found.channels.iter().any(|known| known.id == channel.id) => {
                found.channels.push(channel);
            }
            Ok(Record::Message { header, .. }) => count(statistics, &header),
            _ => {}
        }
    }
}

fn count(statistics: &mut Statistics, header: &MessageHeader) {
    let (time, is_first) = (header.log_time, statistics.message_count == 0);
    let start = statistics.message_start_time;
    statistics.message_start_time = if is_first { time } else { start.min(time) };
    statistics.message_end_time = statistics.message_end_time.max(time);
    statistics.message_count += 1;
    *statistics.channel_message_counts.entry(header.channel_id).or_default() += 1;
}
