//! Raw: the preamble, then the payloads put back through the framing that had cut them, so that the bytes are those
//! that came in.

use crate::output::{Output, failed};
use holdfast_base::failure::{Failure, Result};
use holdfast_format::Flags;
use holdfast_ingest::Framing;
use holdfast_reader::Item;
use holdfast_ring::StreamStatus;
use std::io::Write;

/// A raw export of one stream.
pub(crate) struct Raw {
    pub(crate) output: Output,
    framing: Framing,
    preamble: Vec<u8>,
}

impl Raw {
    pub(crate) fn new(stream: &StreamStatus, output: Output) -> Result<Self> {
        let framing = stream.framing.parse().map_err(|error| {
            Failure::failed(format_args!(
                "the framing of stream `{}` is not known here: {error}",
                stream.name
            ))
            .advice("use the release of Holdfast that recorded it, or --format jsonl")
        })?;
        Ok(Self { output, framing, preamble: Vec::new() })
    }

    pub(crate) fn item(&mut self, item: &Item<'_>) -> Result<()> {
        let written = match item {
            // The same preamble again, after a restart of the recorder, would stand in the middle of the data.
            Item::Preamble { bytes, .. } if *bytes != self.preamble => {
                self.preamble = bytes.to_vec();
                self.output.write_all(bytes)
            }
            Item::Element(element) => {
                let header = element.flags.has(Flags::HEADER).then_some(element.meta);
                let lead = self.framing.lead(element.data.len() as u64, header.map(<[u8]>::len), element.tag);
                let trail = self.framing.trail(element.tag);
                let parts = [lead.as_ref(), header.unwrap_or_default(), element.data, trail];
                parts.into_iter().try_for_each(|part| self.output.write_all(part))
            }
            _ => Ok(()),
        };
        written.map_err(|error| failed(&error))
    }
}

#[cfg(test)]
mod tests {
    use crate::Format;
    use crate::sample::{element, export, gap, stream};
    use holdfast_base::StreamId;
    use holdfast_format::{Flags, StreamKind};
    use holdfast_ingest::UNTERMINATED;
    use holdfast_reader::{Element, Item};

    const PREAMBLE: Item<'_> = Item::Preamble { stream: StreamId(1), version: 1, bytes: b"HEAD" };

    fn raw(framing: &str, items: &[Item<'_>]) -> String {
        let bytes = export(Format::Raw, &[stream(1, "a", StreamKind::Bytes, framing)], items).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn payloads_are_put_back_as_they_came_behind_their_preamble() {
        let last = Element { tag: UNTERMINATED, ..element(2, b"three") };
        let items = [PREAMBLE, Item::Element(element(0, b"one")), gap(), Item::Element(element(1, b""))];
        assert_eq!(raw("blocks:4", &items), "HEADone");
        assert_eq!(raw("lines", &[&items[..], &[Item::Element(last)]].concat()), "HEADone\n\nthree");
        assert_eq!(raw("len32", &items), "HEAD\u{3}\0\0\0one\0\0\0\0");
        let headed = Element { flags: Flags::HEADER, meta: b"\x02\0ab", ..element(3, b"x") };
        let without = Element { tag: 9, ..element(4, b"y") };
        let items = [Item::Element(headed), Item::Element(without)];
        assert_eq!(raw("attr32", &items), "\u{7}\0\0\0\u{4}\0\u{2}\0abx\u{3}\0\0\0\u{9}\0y");
    }

    #[test]
    fn a_preamble_stands_once_unless_it_changes() {
        let other = Item::Preamble { stream: StreamId(1), version: 3, bytes: b"NEXT" };
        let one = Item::Element(element(0, b"x"));
        assert_eq!(raw("fixed:1", &[PREAMBLE, one, PREAMBLE, one, other, one]), "HEADxxNEXTx");
    }

    #[test]
    fn a_framing_of_another_release_is_told() {
        let failure = export(Format::Raw, &[stream(1, "a", StreamKind::Bytes, "cobs")], &[]).unwrap_err();
        assert!(failure.to_string().contains("`cobs`"), "{failure}");
    }
}
