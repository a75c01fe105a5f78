//! Replay of an MCAP file: messages of all channels, each with its header of given attributes and its log time as event
//! time.
//!
//! When they are due, and how often the file is begun again, is as `replay` has it for packets.

use super::error::{Fault, SourceError};
use super::open::problem;
use super::replay::{Pace, wait_until_due};
use super::stop::StopFlag;
use super::{MAX_PREAMBLE, Opened, Source, SourceEnd, SourceOptions, Speed};
use crate::framing::{Framing, MAX_HEADER};
use crate::mcap::{self, McapError, McapPreamble, McapReader, Message, Record, scan};
use crate::producer::{Marks, Overload, Producer};
use holdfast_attributes::given;
use holdfast_base::Timestamp;
use holdfast_format::{Flags, MAX_TEXT, StreamKind};
use std::fs::File;
use std::io::{BufReader, Seek};

struct MessageSource {
    name: String,
    file: File,
    preamble: McapPreamble,
    speed: Speed,
    repeat: bool,
    header: Vec<u8>,
}

/// Looks through the file once, for its channels; the messages are read when the source runs.
pub(super) fn open(
    name: &str,
    mut file: File,
    options: &SourceOptions,
    overload: Overload,
) -> Result<Opened, SourceError> {
    let no_packets = [(options.filter.is_some(), "--filter"), (options.snaplen.is_some(), "--snaplen")];
    if let Some((_, option)) = no_packets.into_iter().find(|(wrong, _)| *wrong) {
        let why = "an MCAP file has messages, not packets";
        return Err(SourceError::Option { name: name.to_owned(), option, why });
    }
    let (preamble, report) = scan(BufReader::new(&file), MAX_PREAMBLE.0 as usize)
        .map_err(|error| SourceError::Messages { name: name.to_owned(), error })?;
    file.rewind().map_err(|error| problem(name, "read the file again", error))?;
    let mut notes = Vec::new();
    if report.left_out > 0 {
        notes.push(format!(
            "{name}: attachments, metadata and records of unknown types left out: {}",
            report.left_out
        ));
    }
    if report.late > 0 {
        notes.push(format!(
            "{name}: messages with a log or publish time after the year 2262: {}; exports have these times, searches find nulls",
            report.late
        ));
    }
    if let Some(broke) = &report.broke {
        notes.push(format!("{name}: {broke}; whole messages before it: {}", report.messages));
    }
    let bytes = preamble.to_bytes();
    let source = MessageSource {
        name: name.to_owned(),
        file,
        preamble,
        speed: options.speed.unwrap_or(Speed::Times(1.0)),
        repeat: options.repeat && report.messages > 0,
        header: Vec::with_capacity(MAX_HEADER),
    };
    Ok(Opened {
        source: Box::new(source),
        kind: StreamKind::Bytes,
        preamble: Some(bytes),
        leads: false,
        framing: Framing::Attr32,
        overload,
        notes,
        memory: (2 * mcap::MOST_RECORD + mcap::LZ4_BUFFERS) as u64,
    })
}

/// The header of a message, in the order of the ready-made list `mcap`. Where a time of it is after 2262, the log and the
/// publish time of the file follow: no attribute takes them, an export does.
pub fn header(into: &mut Vec<u8>, message: &Message<'_>, topic: &str) {
    into.clear();
    given::push(into, Some(topic.as_bytes()).filter(|topic| topic.len() <= MAX_TEXT));
    given::push(into, Some(&u64::from(message.sequence).to_le_bytes()));
    given::push(
        into,
        i64::try_from(message.publish_time).ok().map(i64::to_le_bytes).as_ref().map(<[u8; 8]>::as_slice),
    );
    given::push(into, Some(&u64::from(message.channel).to_le_bytes()));
    if message.is_late() {
        given::push(into, Some(&message.log_time.to_le_bytes()));
        given::push(into, Some(&message.publish_time.to_le_bytes()));
    }
}

impl MessageSource {
    fn replay_all(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        loop {
            let end = self.replay_once(out, stop)?;
            if end != SourceEnd::Ended || !self.repeat {
                return Ok(end);
            }
            let rewound = self.file.rewind();
            rewound.map_err(|error| self.failed(McapError::Io { after_byte: 0, error }))?;
            out.count_anew()?;
        }
    }

    fn failed(&self, error: McapError) -> Fault {
        SourceError::Messages { name: self.name.clone(), error }.into()
    }

    fn replay_once(&mut self, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, Fault> {
        let mut reader = McapReader::new(BufReader::new(&self.file));
        let mut pace = Pace::of(self.speed);
        loop {
            if stop.is_stopped() {
                return Ok(SourceEnd::Stopped);
            }
            let record = match reader.next_record() {
                Ok(Some(record)) => record,
                Ok(None) => return Ok(SourceEnd::Ended),
                Err(error) => return Err(self.failed(error)),
            };
            if let Err(damage) = self.preamble.check(&record) {
                return Err(self.failed(McapError::Broken { at_byte: reader.position(), damage }));
            }
            let Record::Message(message) = record else { continue };
            let topic = self.preamble.topic(message.channel).unwrap_or_default();
            let time = i64::try_from(message.log_time).ok().map(Timestamp);
            if let (Some(pace), Some(time)) = (&mut pace, time)
                && !wait_until_due(pace, time, out, stop, &self.name)?
            {
                return Ok(SourceEnd::Stopped);
            }
            out.stamp();
            header(&mut self.header, &message, topic);
            let marks = Marks { flags: Flags::HEADER, event: time, ..Marks::default() };
            out.element(&self.header, message.data, marks)?;
        }
    }
}

impl Source for MessageSource {
    fn run(mut self: Box<Self>, out: &mut Producer, stop: &StopFlag) -> Result<SourceEnd, SourceError> {
        Fault::settle(self.replay_all(out, stop))
    }
}
