//! Streams of a ring: names, preambles, and the state that a new run continues.

use crate::journal;
use crate::ledger::{Ledger, Preamble};
use crate::snapshot::Item;
use crate::state::{Appending, Ring};
use crate::{Refusal, StreamStatus};
use holdfast_base::{MAX_NAME, MAX_STREAMS, Sequence, StreamId, Timestamp};
use holdfast_format::{Classes, Counters, Entry, Name, StreamKind, StreamRecord};

/// What a source says of its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewStream<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its elements are.
    pub kind: StreamKind,
    /// How they are cut, as given on the command line.
    pub framing: &'a str,
    /// What a reader needs first.
    pub preamble: Option<&'a [u8]>,
    /// What is known of each element; none: what was known before is known no longer of those to come.
    pub schema: Option<NewSchema<'a>>,
}

/// What is known of each element of a stream. It begins with what was known before: that is whoever makes it to see to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewSchema<'a> {
    /// It, as text.
    pub text: &'a str,
    /// What its columns are made of.
    pub classes: Classes,
}

/// Whether a stream has something that was cut by another rule.
fn is_framed_otherwise(stream: &StreamRecord, framing: &str) -> bool {
    stream.framing != framing && stream.counters != Counters::default()
}

impl Ledger {
    pub(crate) fn stream_looks(&self) -> impl Iterator<Item = StreamStatus> {
        self.streams.iter().map(|s| StreamStatus {
            id: s.id,
            name: s.name.clone(),
            kind: s.kind,
            framing: s.framing.clone(),
            created: s.created,
            counters: s.counters,
            preamble: s.preamble,
            preamble_bytes: self.preamble(s.id, s.preamble).map_or(0, |p| p.bytes.len() as u32),
            schema: s.schema,
        })
    }

    /// A stream's schema as text.
    pub(crate) fn schema(&self, stream: StreamId) -> &str {
        self.streams.iter().find(|s| s.id == stream).map_or("", |s| &s.schema_text)
    }
}

impl Ring {
    /// Finds the stream or makes it, with this preamble in force; a preamble that differs from the last gets the next
    /// version. The dictionary entry is what a slot is opened with.
    pub fn add_stream(&mut self, new: &NewStream<'_>, now: Timestamp) -> Result<Entry, Refusal> {
        let limit = MAX_STREAMS.min(self.ledger.geometry.max_streams());
        let name = Name::new(new.name).map_err(|_| {
            Refusal::Wrong(format!(
                "`{}` is no name for a stream: it has 1 to {MAX_NAME} bytes of UTF-8",
                new.name
            ))
        })?;
        let backup = (self.ledger.streams.clone(), self.ledger.preambles.clone());
        let at = match self.ledger.streams.iter().position(|s| s.name == new.name) {
            Some(at) if self.ledger.streams[at].kind != new.kind => {
                return Err(Refusal::Wrong(format!(
                    "stream `{}` of this ring has elements of another kind: give the source another --name",
                    new.name
                )));
            }
            // What is recorded is put back by the framing that it was cut with.
            Some(at) if is_framed_otherwise(&self.ledger.streams[at], new.framing) => {
                return Err(Refusal::Wrong(format!(
                    "stream `{}` of this ring is framed as `{}`, and what is recorded reads back by that and not by `{}`: choose another name (--name), or the same framing",
                    new.name, self.ledger.streams[at].framing, new.framing
                )));
            }
            Some(at) => at,
            None if self.ledger.streams.len() >= limit => {
                return Err(Refusal::Wrong(format!(
                    "the ring has {limit} streams already, and no more fit a summary"
                )));
            }
            None => {
                let id = self.ledger.next_stream;
                self.ledger.next_stream = StreamId(id.0 + 1);
                self.ledger.streams.push(StreamRecord {
                    id,
                    kind: new.kind,
                    preamble: 0,
                    schema: 0,
                    created: now,
                    counters: Counters::default(),
                    name: new.name.to_owned(),
                    framing: String::new(),
                    schema_text: String::new(),
                });
                self.ledger.streams.len() - 1
            }
        };
        let id = self.ledger.streams[at].id;
        let before = self.ledger.streams[at].preamble;
        let version = self.version_of(id, before, new.preamble);
        let stream = &mut self.ledger.streams[at];
        stream.preamble = version;
        new.framing.clone_into(&mut stream.framing);
        if let Some(schema) = new.schema {
            stream.schema = schema.classes.len() as u32;
            schema.text.clone_into(&mut stream.schema_text);
        }
        let entry = Entry {
            stream: id,
            kind: stream.kind,
            name,
            preamble: version,
            classes: new.schema.map_or_else(Classes::default, |schema| schema.classes),
            counters: stream.counters,
            began: None,
        };
        let (bytes, budget) = (self.ledger.lasting_bytes(), self.ledger.geometry.control_budget());
        if bytes > budget {
            (self.ledger.streams, self.ledger.preambles) = backup;
            return Err(Refusal::JournalFull { bytes, budget });
        }
        self.ledger.make_room();
        // The snapshot with which a run begins has them all.
        let later = self.is_starting() && self.journal.snapshot.is_none() && self.appending != Appending::Yes;
        let queue = if later { &mut self.joining } else { &mut self.journal.queue };
        if version != before {
            queue.push_back(journal::Entry::new(Item::Preamble { stream: id, version, offset: 0 }));
        }
        queue.push_back(journal::Entry::new(Item::Stream(id)));
        Ok(entry)
    }

    /// The version under which a stream has that preamble; adds it if it is new.
    fn version_of(&mut self, stream: StreamId, current: u32, bytes: Option<&[u8]>) -> u32 {
        if self.ledger.preamble(stream, current).is_some_and(|known| Some(known.bytes.as_slice()) == bytes) {
            return current;
        }
        let next = self.ledger.next;
        if let Some(old) =
            self.ledger.preambles.iter_mut().find(|p| p.stream == stream && p.version == current)
        {
            // No slot from here on needs it; those before may, whatever is known of them.
            old.last_used = old.last_used.max(next);
            let offset = old.bytes.len() as u32;
            self.journal.push(Item::Preamble { stream, version: current, offset }, None);
        }
        let Some(bytes) = bytes else {
            return 0;
        };
        let newest = self.ledger.preambles.iter().filter(|p| p.stream == stream).map(|p| p.version).max();
        let version = newest.unwrap_or(0).max(current) + 1;
        self.ledger.preambles.push(Preamble {
            stream,
            version,
            last_used: Sequence(0),
            bytes: bytes.to_vec(),
        });
        version
    }

    /// Whether what was last said of a stream is on the medium, its preamble included.
    pub fn is_recorded(&self, stream: StreamId) -> bool {
        let in_flight = self.journal.flight.iter().flat_map(|flight| &flight.entries);
        let of_it = |item: &Item| match item {
            Item::Stream(id) | Item::Preamble { stream: id, .. } => *id == stream,
            _ => false,
        };
        !self.is_starting() && !self.journal.queue.iter().chain(in_flight).any(|entry| of_it(&entry.item))
    }

    /// The streams that have a schema, and it as text.
    pub fn schemas(&self) -> impl Iterator<Item = (StreamId, &str)> {
        let some = self.ledger.streams.iter().filter(|stream| !stream.schema_text.is_empty());
        some.map(|stream| (stream.id, stream.schema_text.as_str()))
    }

    /// A stream's schema as text; empty for none.
    pub fn schema(&self, stream: StreamId) -> &str {
        self.ledger.schema(stream)
    }

    /// A preamble.
    pub fn preamble(&self, stream: StreamId, version: u32) -> Option<&[u8]> {
        self.ledger.preamble(stream, version).map(|p| p.bytes.as_slice())
    }
}
