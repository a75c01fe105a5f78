//! JSON lines: everything the reader gives, one object each, told apart by `kind`. docs/commands.md lists the fields.

use crate::export::place;
use crate::json::{self, Gap};
use crate::output::{Output, failed};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use holdfast_base::failure::Result;
use holdfast_base::{StreamId, Timestamp};
use holdfast_format::{Direction, Flags};
use holdfast_reader::{Element, Item};
use holdfast_ring::StreamStatus;
use serde::{Serialize, Serializer};
use std::io::Write;

/// An export of any streams.
pub(crate) struct Jsonl {
    pub(crate) output: Output,
    streams: Vec<StreamId>,
    names: Vec<String>,
}

/// Bytes as text where they are one that a person could have typed, otherwise in base64.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Bytes<'a> {
    Text(&'a str),
    Data(#[serde(serialize_with = "base64")] &'a [u8]),
}

fn base64<S: Serializer>(bytes: &&[u8], to: S) -> std::result::Result<S::Ok, S::Error> {
    to.collect_str(&Base64Display::new(bytes, &STANDARD))
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        let plain = |text: &&str| !text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r'));
        match std::str::from_utf8(bytes).ok().filter(plain) {
            Some(text) => Self::Text(text),
            None => Self::Data(bytes),
        }
    }
}

#[derive(Serialize)]
struct ElementLine<'a> {
    kind: &'static str,
    stream: &'a str,
    ordinal: u64,
    #[serde(serialize_with = "json::time")]
    first: Timestamp,
    #[serde(serialize_with = "json::time")]
    arrival: Timestamp,
    #[serde(serialize_with = "json::time_if", skip_serializing_if = "Option::is_none")]
    event: Option<Timestamp>,
    len: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_len: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    direction: Option<&'static str>,
    #[serde(skip_serializing_if = "is_zero")]
    tag: u16,
    #[serde(skip_serializing_if = "<[u8]>::is_empty", serialize_with = "base64")]
    meta: &'a [u8],
    #[serde(flatten)]
    bytes: Bytes<'a>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(tag: &u16) -> bool {
    *tag == 0
}

impl<'a> ElementLine<'a> {
    fn new(stream: &'a str, element: &Element<'a>) -> Self {
        Self {
            kind: "element",
            stream,
            ordinal: element.ordinal.0,
            first: element.first,
            arrival: element.arrival,
            event: element.event,
            len: element.data.len(),
            original_len: (element.extra > 0).then(|| element.data.len() as u64 + u64::from(element.extra)),
            direction: match element.flags.direction() {
                Direction::Unknown => None,
                Direction::In => Some("in"),
                Direction::Out => Some("out"),
            },
            tag: element.tag,
            meta: element.meta,
            bytes: element.data.into(),
        }
    }
}

#[derive(Serialize)]
struct GapLine<'a> {
    kind: &'static str,
    #[serde(flatten)]
    gap: Gap<'a>,
}

#[derive(Serialize)]
struct PreambleLine<'a> {
    kind: &'static str,
    stream: &'a str,
    version: u32,
    len: usize,
    #[serde(flatten)]
    bytes: Bytes<'a>,
}

#[derive(Serialize)]
struct NoteLine<'a> {
    kind: &'static str,
    stream: &'a str,
    #[serde(serialize_with = "json::time")]
    arrival: Timestamp,
    tag: u16,
    pcapng_options: bool,
    #[serde(flatten)]
    bytes: Bytes<'a>,
}

#[derive(Serialize)]
struct PartialLine<'a> {
    kind: &'static str,
    stream: &'a str,
    ordinal: u64,
    why: String,
}

#[derive(Serialize)]
struct DamagedLine<'a> {
    kind: &'static str,
    slot: u32,
    sequence: u64,
    place: &'a str,
}

#[derive(Serialize)]
struct ExpiredLine {
    kind: &'static str,
    from_sequence: u64,
    to_sequence: u64,
    #[serde(serialize_with = "json::time_if")]
    first: Option<Timestamp>,
    #[serde(serialize_with = "json::time_if")]
    last: Option<Timestamp>,
}

impl Jsonl {
    pub(crate) fn new(streams: &[StreamStatus], output: Output) -> Self {
        Self {
            output,
            streams: streams.iter().map(|stream| stream.id).collect(),
            names: streams.iter().map(|stream| stream.name.clone()).collect(),
        }
    }

    pub(crate) fn item(&mut self, item: &Item<'_>) -> Result<()> {
        let names = &self.names;
        let name = |stream: StreamId| place(&self.streams, stream).map_or("", |place| names[place].as_str());
        let written = match item {
            Item::Element(element) => {
                line(&mut self.output, &ElementLine::new(name(element.stream), element))
            }
            Item::Gap { stream, ordinal, gap } => {
                line(&mut self.output, &GapLine { kind: "gap", gap: Gap::new(name(*stream), ordinal.0, gap) })
            }
            Item::Preamble { stream, version, bytes } => line(
                &mut self.output,
                &PreambleLine {
                    kind: "preamble",
                    stream: name(*stream),
                    version: *version,
                    len: bytes.len(),
                    bytes: (*bytes).into(),
                },
            ),
            Item::Note { stream, arrival, tag, flags, meta } => line(
                &mut self.output,
                &NoteLine {
                    kind: "note",
                    stream: name(*stream),
                    arrival: *arrival,
                    tag: *tag,
                    pcapng_options: flags.has(Flags::PCAPNG_OPTIONS),
                    bytes: (*meta).into(),
                },
            ),
            Item::Partial { stream, ordinal, why } => line(
                &mut self.output,
                &PartialLine {
                    kind: "partial",
                    stream: name(*stream),
                    ordinal: ordinal.0,
                    why: why.to_string(),
                },
            ),
            Item::Damaged { slot, sequence, place } => line(
                &mut self.output,
                &DamagedLine { kind: "damaged", slot: slot.0, sequence: sequence.0, place },
            ),
            Item::Expired { from, to, first, last } => line(
                &mut self.output,
                &ExpiredLine {
                    kind: "expired",
                    from_sequence: from.0,
                    to_sequence: to.0,
                    first: *first,
                    last: *last,
                },
            ),
            Item::Progress { .. } => Ok(()),
        };
        written.map_err(|error| failed(&error))
    }
}

fn line(output: &mut Output, object: &impl Serialize) -> std::io::Result<()> {
    serde_json::to_writer(&mut *output, object)?;
    output.write_all(b"\n")
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::sample::{damaged, element, export, gap, packet, stream};
    use holdfast_base::{Ordinal, StreamId};
    use holdfast_format::StreamKind;
    use holdfast_reader::{Element, Item, Missing};
    use serde_json::{Value, json};

    fn lines(items: &[Item<'_>]) -> Vec<Value> {
        let streams =
            [stream(1, "log", StreamKind::Bytes, "lines"), stream(2, "eth0", StreamKind::Packets, "whole")];
        let text = String::from_utf8(export(Format::Jsonl, &streams, items).unwrap()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn everything_is_an_object_of_its_own() {
        let of_two = Element { stream: StreamId(2), ..packet(1) };
        let items = [
            Item::Preamble { stream: StreamId(1), version: 2, bytes: &[0, 255] },
            Item::Element(element(0, "grüße \"x\"\t".as_bytes())),
            Item::Element(element(1, b"\x1b[2J")),
            Item::Element(of_two),
            gap(),
            Item::Partial { stream: StreamId(1), ordinal: Ordinal(3), why: Missing::Aborted },
            damaged(),
            Item::Progress { bytes: 5 },
        ];
        assert_eq!(
            lines(&items),
            [
                json!({"kind": "preamble", "stream": "log", "version": 2, "len": 2, "data": "AP8="}),
                json!({"kind": "element", "stream": "log", "ordinal": 0, "first": "2026-11-20T10:05:00.000000123Z",
                       "arrival": "2026-11-20T10:05:00.000000123Z", "len": 12, "text": "grüße \"x\"\t"}),
                json!({"kind": "element", "stream": "log", "ordinal": 1, "first": "2026-11-20T10:05:01.000000123Z",
                       "arrival": "2026-11-20T10:05:01.000000123Z", "len": 4, "data": "G1sySg=="}),
                json!({"kind": "element", "stream": "eth0", "ordinal": 1, "first": "2026-11-20T10:05:01.000000123Z",
                       "arrival": "2026-11-20T10:05:01.000000123Z", "event": "2026-11-20T10:05:00.000000119Z",
                       "len": 42, "original_len": 142, "direction": "in", "meta": "AQACAGhpAAA=",
                       "data": "////////AgAAAAABCABFAAAcAAAAAEARAAAKAAABCgAAAgAJAAkACAAA"}),
                json!({"kind": "gap", "stream": "log", "ordinal": 7, "ordinals": 3, "elements": 3, "bytes": null,
                       "first": "2026-11-20T10:05:00.000000123Z", "last": "2026-11-20T10:05:00.000000124Z",
                       "cause": "kernel"}),
                json!({"kind": "partial", "stream": "log", "ordinal": 3, "why": "its source broke off in the middle"}),
                json!({"kind": "damaged", "slot": 4, "sequence": 9, "place": "payload block 2"}),
            ]
        );
    }
}
