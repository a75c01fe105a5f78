//! Conversion of a ROS bag to an MCAP file with the profile `ros1`, which ROS tools read.

use crate::bag::reader::{BagItem, read_bag};
use crate::damage::Damage;
use crate::error::DatasetError;
use crate::evacuate::failure;
use crate::mcap_writer::McapWriter;
use crate::storage::LocalFile;
use crate::writer::Options;
use holdfast_base::counted;
use holdfast_base::failure::{Failure, Result};
use holdfast_export::{Existing, OutputFile, SourceAccess};
use mcap::records::{Header, MessageHeader};
use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Bytes that are gathered before a write.
const GATHER: usize = 1 << 20;

/// Conversion of a ROS bag.
pub struct BagConversion<'a> {
    /// Path of the bag.
    pub bag: &'a Path,
    /// MCAP file, which must not exist.
    pub to: &'a Path,
    /// Options of the chunks.
    pub options: Options,
    /// True if the whole chunks of a damaged bag are written; otherwise damage is an error, and nothing is written.
    pub salvage: bool,
}

/// Bag that was converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvertedBag {
    /// Bytes of the MCAP file.
    pub bytes: u64,
    /// Number of its channels.
    pub channels: u64,
    /// Number of its messages.
    pub messages: u64,
    /// Damage of the bag.
    pub damage: Option<Damage>,
}

/// Converts a bag. `progress` is told the bytes of the bag that were read.
pub fn convert_bag(conversion: &BagConversion<'_>, progress: &mut dyn FnMut(u64)) -> Result<ConvertedBag> {
    let BagConversion { bag, to, options, salvage } = conversion;
    let file = LocalFile::open(bag).map_err(|error| Failure::io("cannot open the bag", bag, &error))?;
    let output = OutputFile::make(to, Existing::Keep, SourceAccess::of(bag))?;
    let out = BufWriter::with_capacity(GATHER, output.writer()?);
    let mut converter = Converter::new(out, options).map_err(|error| failure(&error, to))?;
    // Errors of the bag and of the MCAP file have different places.
    let mut unwritten = None;
    let mut sink =
        |item: BagItem<'_>| converter.item(&item).inspect_err(|error| unwritten = Some(failure(error, to)));
    let read = read_bag(&file, &mut sink, progress);
    let damage = match (read, unwritten) {
        (_, Some(failure)) => return Err(failure),
        (Err(DatasetError::Io(error)), None) => return Err(Failure::io("cannot read the bag", bag, &error)),
        (Err(error), None) => return Err(Failure::failed(&error).at_path(bag)),
        (Ok(damage), None) => damage,
    };
    let (messages, channels) = (converter.messages, converter.channels.len() as u64);
    if let Some(Damage { at, cause, .. }) = &damage
        && (!salvage || messages == 0)
    {
        let what = format!("the bag is damaged: the record at byte {at}: {cause}");
        let whole = counted(messages, "message");
        return Err(Failure::failed(what).at_path(bag).advice(if messages == 0 {
            "no message of it can be saved".to_owned()
        } else {
            format!("{whole} can be saved: `--salvage` writes them")
        }));
    }
    let (_, bytes) = converter.mcap.finish().map_err(|error| failure(&error, to))?;
    output.finish()?;
    Ok(ConvertedBag { bytes, channels, messages, damage })
}

/// Channel of a connection.
struct ChannelState {
    id: u16,
    /// Number of its next message.
    sequence: u32,
}

struct Converter<W> {
    mcap: McapWriter<W>,
    channels: HashMap<u32, ChannelState>,
    messages: u64,
}

impl<W: Write> Converter<W> {
    fn new(out: W, options: &Options) -> std::result::Result<Self, DatasetError> {
        let library = concat!("holdfast ", env!("CARGO_PKG_VERSION")).to_owned();
        let header = Header { profile: "ros1".to_owned(), library };
        let threads = options.threads.get();
        let mcap = McapWriter::with_header(out, &header, options.compression, options.chunk_bytes, threads)?;
        Ok(Self { mcap, channels: HashMap::new(), messages: 0 })
    }

    fn item(&mut self, item: &BagItem<'_>) -> std::result::Result<(), DatasetError> {
        match *item {
            BagItem::Connection(connection) => {
                let schema = self.mcap.schema(&connection.kind, "ros1msg", &connection.definition)?;
                let metadata = &connection.metadata;
                let id = self.mcap.new_channel(schema, &connection.topic, "ros1", metadata)?;
                self.channels.insert(connection.id, ChannelState { id, sequence: 0 });
            }
            BagItem::Message { connection, time, data } => {
                // The reader gives connections first.
                let Some(channel) = self.channels.get_mut(&connection) else { return Ok(()) };
                let header = MessageHeader {
                    channel_id: channel.id,
                    sequence: channel.sequence,
                    log_time: time,
                    publish_time: time,
                };
                channel.sequence = channel.sequence.wrapping_add(1);
                self.mcap.message(&header, data)?;
                self.messages += 1;
            }
        }
        Ok(())
    }
}
