//! Attribute extraction for the elements of a batch. It runs on the source's thread when the batch is sent, so that
//! capture only copies cells. The `attributes` crate knows where values lie in an element.

use crate::batch::{Batch, BatchRow, Content};
use crate::counters::{SourceCounters, add};
use crate::framing::MAX_HEADER;
use holdfast_attributes::{Element, Extractor, MAX_DATA, Schema};
use holdfast_format::{Classes, Flags};

/// Reads the attributes of one stream's elements.
#[derive(Clone, Debug)]
pub struct Extraction {
    extractor: Extractor,
    classes: Classes,
    /// Whether elements that are alike may be read many at once: not where each has an event time.
    many: bool,
    /// By tag: what the packets of an interface begin with.
    link_types: Vec<u16>,
    /// The beginning of an element that came in pieces, as much as is looked at; the bytes that came of it; and its header.
    window: Vec<u8>,
    came: u64,
    header: Vec<u8>,
}

impl Extraction {
    /// For elements with this schema; `link_types` are those of a packet stream's interfaces.
    pub fn new(schema: &Schema, link_types: Vec<u16>) -> Self {
        Self {
            extractor: Extractor::new(schema),
            classes: schema.classes(),
            many: schema.event_time().is_none(),
            link_types,
            window: Vec::with_capacity(MAX_DATA),
            came: 0,
            header: Vec::with_capacity(MAX_HEADER),
        }
    }

    /// Extracts by another schema from here on; an element that has begun goes on.
    pub(crate) fn continue_with(&mut self, schema: &Schema) {
        self.extractor = Extractor::new(schema);
        self.classes = schema.classes();
        self.many = schema.event_time().is_none();
    }

    /// Memory that one takes.
    pub const BYTES: usize = MAX_DATA + MAX_HEADER;

    /// What the cells are.
    pub fn classes(&self) -> Classes {
        self.classes
    }

    /// Reads the attributes of all elements that end in `batch`, which has the columns for them and no cells yet.
    pub fn fill(&mut self, batch: &mut Batch, counters: &SourceCounters) {
        let (rows, bytes, cells) = batch.parts();
        let (mut undecodable, mut too_long, mut whole_seconds) = (0, 0, 0);
        let mut at = 0;
        while let Some(row) = rows.get(at) {
            if self.many
                && let Some(fixed) = self.extractor.fixed()
                && let Some((run, elements)) = alike(&rows[at..], bytes)
            {
                undecodable += fixed.extract_many(elements, row.len as usize, cells);
                at += run;
                continue;
            }
            let whole = bytes.get(row.at as usize..row.at as usize + row.bytes()).unwrap_or_default();
            let (meta, data) = whole.split_at_checked(row.meta.into()).unwrap_or_default();
            let row = &mut rows[at];
            at += 1;
            let link_type = self.link_types.get(usize::from(row.tag)).copied();
            let element = match row.content {
                Content::Whole => element(row, meta, data, data.len() as u64, link_type),
                Content::First { .. } => {
                    self.window.clear();
                    self.header.clear();
                    self.came = 0;
                    self.look(row.flags, meta, data);
                    continue;
                }
                Content::Middle => {
                    self.look(row.flags, meta, data);
                    continue;
                }
                Content::Last => {
                    self.look(row.flags, meta, data);
                    element(row, &self.header, &self.window, self.came, link_type)
                }
                Content::Abort | Content::Gap | Content::Note => continue,
            };
            let outcome = self.extractor.extract(&element, cells);
            undecodable += u64::from(outcome.undecodable);
            too_long += u64::from(outcome.too_long);
            whole_seconds += u64::from(outcome.whole_second);
            if let Some(event) = outcome.event_time {
                row.event = event;
                row.flags = row.flags.with(Flags::EVENT);
            }
        }
        if undecodable > 0 {
            add(&counters.undecodable, undecodable);
        }
        if too_long > 0 {
            add(&counters.too_long, too_long);
        }
        if whole_seconds > 0 {
            add(&counters.whole_seconds, whole_seconds);
        }
    }

    /// Takes in a piece.
    fn look(&mut self, flags: Flags, meta: &[u8], data: &[u8]) {
        if flags.has(Flags::HEADER) {
            let more = meta.len().min(MAX_HEADER - self.header.len());
            self.header.extend_from_slice(&meta[..more]);
        }
        let more = data.len().min(MAX_DATA - self.window.len());
        self.window.extend_from_slice(&data[..more]);
        self.came += data.len() as u64;
    }
}

fn element<'a>(
    row: &BatchRow,
    meta: &'a [u8],
    data: &'a [u8],
    size: u64,
    link_type: Option<u16>,
) -> Element<'a> {
    let header = row.flags.has(Flags::HEADER).then_some(meta);
    Element { data, size, original_size: size + u64::from(row.extra), link_type, header }
}

/// Elements of one size that lie one behind the other, from the first row on: how many, and their bytes.
fn alike<'a>(rows: &[BatchRow], bytes: &'a [u8]) -> Option<(usize, &'a [u8])> {
    let first = rows.first()?;
    let (start, len) = (first.at as usize, first.len as usize);
    let follows = |(number, row): &(usize, &BatchRow)| {
        row.content == Content::Whole
            && row.meta == 0
            && row.len as usize == len
            && row.at as usize == start + number * len
    };
    let run = rows.iter().enumerate().take_while(follows).count();
    (run > 0 && (1..=MAX_DATA).contains(&len)).then_some((run, bytes.get(start..start + run * len)?))
}
