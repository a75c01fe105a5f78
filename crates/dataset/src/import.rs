//! Import of a capture file (pcap, pcapng) or an MCAP file: its packets or messages as the items of a stream.
//!
//! Items are those that a ring gives after a replay of the file. The arrival of an element is its time in the file, but not before
//! that of the element before it.

use crate::chunk_map::unseen_damage;
use crate::damage::Damage;
use crate::error::DatasetError;
use crate::evacuate::{failure, written_here};
use crate::writer::{DatasetWriter, Options, StreamHead, Written};
use crate::{LocalFile, Provenance};
use holdfast_attributes::Schema;
use holdfast_base::failure::{Failure, Result};
use holdfast_base::{FileKind, MAX_META, MAX_NAME, Ordinal, StreamId, Timestamp};
use holdfast_format::{Counters, Flags, StreamKind};
use holdfast_ingest::mcap::{self, McapError, McapPreamble, McapReader};
use holdfast_ingest::packet::{Preamble, ReadError, Reader, scan_within};
use holdfast_ingest::{MAX_PREAMBLE, Marks, message_header, packet_marks, packet_metadata};
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek as _, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Stream of an import: the only one.
const STREAM: StreamId = StreamId(1);

/// Bytes that are gathered before a read or a write.
const GATHER: usize = 1 << 20;

/// File that is imported as a stream.
pub struct Import {
    path: PathBuf,
    file: File,
    head: StreamHead,
    contents: Contents,
    damage: Option<Damage>,
    elements: u64,
}

/// Contents of the file.
enum Contents {
    Packets(Preamble, u64),
    Messages(Box<McapPreamble>),
}

impl Contents {
    fn preamble(&self) -> Vec<u8> {
        match self {
            Self::Packets(preamble, _) => preamble.as_bytes().to_vec(),
            Self::Messages(preamble) => preamble.to_bytes(),
        }
    }
}

impl Import {
    /// Opens a file and scans it; its name without the ending is the name of the stream unless one is given.
    pub fn open(path: &Path, name: Option<&str>) -> Result<Self> {
        let file = File::open(path).map_err(|error| Failure::io("cannot open the file", path, &error))?;
        Self::of_file(file, path, name)
    }

    /// Scans an open file from its begin; `path` is its name in messages, and the name of the stream without its ending.
    pub fn of_file(mut file: File, path: &Path, name: Option<&str>) -> Result<Self> {
        let read = |error: &std::io::Error| Failure::io("cannot read the file", path, error);
        let about = file.metadata().map_err(|error| read(&error))?;
        if !about.is_file() {
            return Err(
                Failure::usage("only a regular file can be converted: it is read twice").at_path(path)
            );
        }
        let limit = MAX_PREAMBLE.0 as usize;
        let mut first = [0; FileKind::BYTES];
        let count = file.read_at(&mut first, 0).map_err(|error| read(&error))?;
        let is_mcap = FileKind::of_bytes(&first[..count]) == Some(FileKind::Mcap);
        let (contents, elements, damage, preset) = if is_mcap {
            let (preamble, report) = mcap::scan(BufReader::with_capacity(GATHER, &file), limit)
                .map_err(|error| Failure::failed(&error).at_path(path))?;
            let damage = match report.broke.map(|error| damage_of(&error)).transpose() {
                Ok(None) => file
                    .try_clone()
                    .and_then(|file| LocalFile::new(file, path.display().to_string()))
                    .and_then(|file| unseen_damage(&file, report.messages))
                    .map_err(|error| error.to_string()),
                seen => seen,
            };
            (Contents::Messages(Box::new(preamble)), report.messages, damage, "mcap")
        } else {
            let (preamble, report) = scan_within(&file, about.len(), limit)
                .map_err(|error| Failure::failed(&error).at_path(path))?;
            let damage = report.broke.map(|broken| Damage {
                at: broken.at_byte,
                cause: broken.damage.to_string(),
                lost_chunks: 0,
            });
            (Contents::Packets(preamble, about.len()), report.packets, Ok(damage), "packets")
        };
        let damage = damage.map_err(|error| Failure::failed(error).at_path(path))?;
        file.rewind().map_err(|error| read(&error))?;
        // `run1.pcap.gz` becomes the stream `run1`.
        let is_packed = path.extension().is_some_and(|ending| ending == "gz" || ending == "zst");
        let unpacked = if is_packed { path.with_extension("") } else { path.to_owned() };
        let stem = unpacked.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let name = name.unwrap_or(&stem);
        if name.len() > MAX_NAME && name != stem {
            return Err(
                Failure::usage(format_args!("a stream's name has at most {MAX_NAME} bytes")).at("--stream")
            );
        }
        let (kind, framing) = match contents {
            Contents::Packets(..) => (StreamKind::Packets, "whole"),
            Contents::Messages(_) => (StreamKind::Bytes, "attr32"),
        };
        let schema = Schema::typed([preset]).map_err(Failure::failed)?;
        let status = StreamStatus {
            id: STREAM,
            name: name[..name.floor_char_boundary(MAX_NAME)].to_owned(),
            kind,
            framing: framing.to_owned(),
            created: Timestamp(0),
            counters: Counters { received: elements, next_ordinal: Ordinal(elements), ..Counters::default() },
            preamble: 1,
            preamble_bytes: contents.preamble().len() as u32,
            schema: schema.len() as u32,
        };
        let head = StreamHead { status, schema: schema.text() };
        Ok(Self { path: path.to_owned(), file, head, contents, damage, elements })
    }

    /// Stream that the file becomes.
    pub fn head(&self) -> &StreamHead {
        &self.head
    }

    /// First damage of the file; the items end there.
    pub fn damage(&self) -> Option<&Damage> {
        self.damage.as_ref()
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.file.metadata().map_or(0, |about| about.len())
    }

    /// Number of packets or messages before the damage.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// Gives the preamble and all elements before the damage. `progress` is told the number of elements.
    pub fn read(
        &self,
        sink: &mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let bytes = self.contents.preamble();
        if sink(Item::Preamble { stream: STREAM, version: 1, bytes: &bytes }).is_break() {
            return Ok(());
        }
        let mut elements = Elements { next: 0, arrival: Timestamp(0), sink, progress };
        let mut scratch = Vec::with_capacity(MAX_META);
        match &self.contents {
            Contents::Packets(_, length) => {
                let mut reader = Reader::within(&self.file, *length, Vec::new());
                while elements.next < self.elements {
                    let packet = match reader.next_packet() {
                        Ok(Some(packet)) => packet,
                        Ok(None) | Err(ReadError::Broken(_)) => break,
                        Err(error) => return Err(Failure::failed(&error).at_path(&self.path)),
                    };
                    let kept = packet.data.len();
                    let original = packet.original_len.max(kept as u32);
                    let mut marks = packet_marks(packet.interface, packet.time, packet.flags, original, kept);
                    let meta = packet_metadata(&packet, &mut scratch);
                    if !meta.is_empty() {
                        marks.flags = marks.flags.with(Flags::PCAPNG_OPTIONS);
                    }
                    if elements.give(marks, meta, packet.data).is_break() {
                        break;
                    }
                }
            }
            Contents::Messages(preamble) => {
                let mut reader = McapReader::new(BufReader::with_capacity(GATHER, &self.file));
                while elements.next < self.elements {
                    let message = match reader.next_record() {
                        Ok(Some(mcap::Record::Message(message))) => message,
                        Ok(Some(_)) => continue,
                        Ok(None) | Err(McapError::Broken { .. }) => break,
                        Err(error) => return Err(Failure::failed(&error).at_path(&self.path)),
                    };
                    let topic = preamble.topic(message.channel).unwrap_or_default();
                    message_header(&mut scratch, &message, topic);
                    let event = i64::try_from(message.log_time).ok().map(Timestamp);
                    let marks = Marks { flags: Flags::HEADER, event, ..Marks::default() };
                    if elements.give(marks, &scratch, message.data).is_break() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

fn damage_of(error: &McapError) -> std::result::Result<Damage, String> {
    match error {
        McapError::Broken { at_byte, damage } => {
            Ok(Damage { at: *at_byte, cause: damage.to_string(), lost_chunks: 0 })
        }
        McapError::Io { .. } => Err(error.to_string()),
    }
}

/// Elements that are given one after the other.
struct Elements<'s> {
    /// Ordinal of the next element.
    next: u64,
    arrival: Timestamp,
    sink: &'s mut dyn FnMut(Item<'_>) -> ControlFlow<()>,
    progress: &'s mut dyn FnMut(u64),
}

impl Elements<'_> {
    fn give(&mut self, marks: Marks, meta: &[u8], data: &[u8]) -> ControlFlow<()> {
        let Marks { flags, tag, extra, event } = marks;
        self.arrival = self.arrival.max(event.unwrap_or(self.arrival));
        let flags = if event.is_some() { flags.with(Flags::EVENT) } else { flags };
        let element = Element {
            stream: STREAM,
            ordinal: Ordinal(self.next),
            first: self.arrival,
            arrival: self.arrival,
            event,
            flags,
            tag,
            extra,
            meta,
            data,
        };
        self.next += 1;
        (self.progress)(self.next);
        (self.sink)(Item::Element(element))
    }
}

/// Writes the stream of a file as a dataset to `out`, which is named `to` in messages.
pub fn import_dataset<W: Write>(
    import: &Import,
    out: W,
    to: &Path,
    options: &Options,
    progress: &mut dyn FnMut(u64),
) -> Result<Written> {
    let failed = |error: &DatasetError| failure(error, to);
    let out = BufWriter::with_capacity(GATHER, out);
    let reason = format!("converted from {}", import.path.display());
    let provenance = Provenance { reason, ..written_here() };
    let heads = std::slice::from_ref(&import.head);
    let mut writer = DatasetWriter::new(out, options, heads, provenance).map_err(|error| failed(&error))?;
    let mut trouble = None;
    let mut sink = |item: Item<'_>| match writer.item(&item) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            trouble = Some(failed(&error));
            ControlFlow::Break(())
        }
    };
    import.read(&mut sink, progress)?;
    trouble.map_or(Ok(()), Err)?;
    Ok(writer.finish().map_err(|error| failed(&error))?.1)
}
